"""The relevance vector machine on dictionaries too large for its small-problem arithmetic: the same promises.

Guards `bayessel.linear.rvm._fit_rvm`, `bayessel.linear.rvm.gram_form`.
"""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from bayessel.linear import fit_rvm
from tests.linear.rvm.test_rvm import names
from tests.oracles import linear as oracles
from tests.oracles import rvm_reference as reference
from tests.problems import rvm as rvm_problems

FLOOR = {"NOISE_AT_FLOOR", "ILL_CONDITIONED"}


def friedman(rng, n):
    """Five of eight inputs matter; Gaussians at all rows and a bias."""
    X = rng.uniform(0, 1, (n, 8))
    t = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    F = np.column_stack([np.exp(-cdist(X, X, "sqeuclidean") / 1.5**2), np.ones(n)])
    return F, t + rng.normal(size=n)


def sinc(rng, n, width=2.0):
    x = np.sort(rng.uniform(-10, 10, n))
    F = np.column_stack([np.exp(-(np.subtract.outer(x, x) ** 2) / width**2), np.ones(n)])
    return F, np.sinc(x / np.pi) + 0.1 * rng.normal(size=n)


def normal(rng, n, p, k, noise):
    F = rng.normal(size=(n, p))
    return F, rvm_problems.sparse_signal(rng, F, k, noise)


PROBLEMS = {
    "friedman 150": lambda rng: friedman(rng, 150),
    "sinc 900": lambda rng: sinc(rng, 900),
    "tall 1200x300": lambda rng: normal(rng, 1200, 300, 20, 0.5),
    "broad 100x2100": lambda rng: normal(rng, 100, 2100, 5, 0.2),
}
SLOW = {
    "friedman 300": lambda rng: friedman(rng, 300),
    "friedman 1000": lambda rng: friedman(rng, 1000),
    "narrow sinc 900": lambda rng: sinc(rng, 900, 0.02),
    "sinc 3000": lambda rng: sinc(rng, 3000),
    "broad 300x4000": lambda rng: normal(rng, 300, 4000, 10, 0.5),
    "tall 20000x200": lambda rng: normal(rng, 20_000, 200, 20, 2.0),
}
ALL = [*PROBLEMS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@pytest.mark.parametrize("name", ALL)
def test_large_problems_end_at_an_optimum_with_an_exact_evidence(rng, name):
    F, t = {**PROBLEMS, **SLOW}[name](rng)
    fit = fit_rvm(F, t)
    dense = reference.evidence(fit.design, t, fit.alpha, fit.beta)
    assert abs(fit.log_evidence - dense) <= (1e-5 if names(fit) & FLOOR else 1e-8) * max(abs(dense), 1)
    if (fit.n_basis <= 100 and len(t) <= 1000) or name == "broad 300x4000":
        exact = reference.exact_evidence(fit.design, t, fit.alpha, fit.beta, digits=40)
        assert oracles.relative(fit.log_evidence, exact) <= 1e-8
    np.testing.assert_array_equal(fit.design, F[:, fit.basis])
    if names(fit) & FLOOR:  # as many functions as rows: nothing is left to judge by
        assert fit.n_basis > 0.8 * len(t)
        return
    alpha = np.full(F.shape[1], np.inf)
    alpha[fit.basis] = fit.alpha
    gain, new = reference.gains(*reference.sq(F, t, fit.design, fit.alpha, fit.beta), alpha)
    best = int(gain.argmax())
    assert gain[best] < 1e-3, f"column {best}: alpha {alpha[best]:.3g} to {new[best]:.3g} gains {gain[best]:.3g}"
    assert fit.noise_std > 1e-6 * np.std(t)
    _, _, free, r = reference.moments(fit.design, t, fit.alpha, fit.beta)
    assert (0.5 * (free - fit.beta * r @ r)) ** 2 < 1e-3 * len(t)


@pytest.mark.parametrize("name", ["tall 1200x300", "sinc 900", pytest.param("friedman 300", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "storage", [lambda F: F.astype(np.float32), rvm_problems.OnTheFly], ids=["float32", "on the fly"]
)
def test_storage_of_large_problems(rng, name, storage):
    F, t = {**PROBLEMS, **SLOW}[name](rng)
    F = F.astype(np.float32).astype(float)
    one, two = fit_rvm(F, t), fit_rvm(storage(F), t)
    assert two.log_evidence >= one.log_evidence - 0.1
    dense = reference.evidence(F[:, two.basis], t, two.alpha, two.beta)
    assert abs(two.log_evidence - dense) <= 1e-8 * abs(dense)


def test_both_plain_procedures_on_friedman(rng):
    F, t = friedman(rng, 120)
    fit = fit_rvm(F, t)
    assert fit.log_evidence >= reference.greedy(F, t).log_evidence - 1e-3
    assert fit.log_evidence >= reference.mackay(F, t).log_evidence - 1e-3


def test_known_noise_on_a_large_dictionary(rng):
    F, t = sinc(rng, 900)
    fit = fit_rvm(F, t, beta=100.0)
    path = np.array([step["log_evidence"] for step in fit.history])
    assert np.all(np.diff(path) >= -1e-7 * np.abs(path[:-1]))
    assert fit.beta == pytest.approx(100.0, rel=1e-12)
    floor = reference.greedy(F, t, beta=100.0, max_steps=60).log_evidence
    assert fit.log_evidence >= floor - 1e-3
