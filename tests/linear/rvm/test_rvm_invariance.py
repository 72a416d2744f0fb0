"""What may not change the answer of the relevance vector machine: units, order, storage, chance, where it starts.

Guards `bayessel.linear.rvm._fit_rvm`, `bayessel.linear.rvm.problem`.
"""

import pickle

import numpy as np
import pytest

from bayessel import RBFDictionary
from bayessel.basis import LazyDesign
from bayessel.fit import Status
from bayessel.linear import fit_rvm
from tests.linear.rvm.test_rvm import STARTS, regression
from tests.oracles import rvm_reference as reference
from tests.problems import rvm as rvm_problems


def same(one, two, rtol=1e-4):
    """Equal up to where the ascent stops: precisions to `rtol`, the evidence far better."""
    np.testing.assert_array_equal(one.basis, two.basis)
    np.testing.assert_allclose(one.alpha, two.alpha, rtol=50 * rtol)
    np.testing.assert_allclose([one.beta, one.gamma], [two.beta, two.gamma], rtol=rtol)
    np.testing.assert_allclose(one.log_evidence, two.log_evidence, atol=1e-4)


@pytest.mark.parametrize("s", [1e-6, 1 / 1024, 3.0, 1e6])
def test_units_of_the_target(rng, s):
    """y times s: alpha and beta divided by s^2, weights times s, evidence less N log s."""
    F, t = regression(rng)
    one, two = fit_rvm(F, t), fit_rvm(F, s * t)
    np.testing.assert_array_equal(one.basis, two.basis)
    np.testing.assert_allclose(two.alpha * s**2, one.alpha, rtol=5e-3)
    np.testing.assert_allclose(two.coef / s, one.coef, rtol=1e-3)
    np.testing.assert_allclose(two.beta * s**2, one.beta, rtol=1e-4)
    np.testing.assert_allclose(two.log_evidence, one.log_evidence - len(t) * np.log(s), atol=1e-4)
    fixed, scaled = fit_rvm(F, t, beta=5.0), fit_rvm(F, s * t, beta=5.0 / s**2)
    np.testing.assert_allclose(scaled.log_evidence, fixed.log_evidence - len(t) * np.log(s), atol=1e-4)


@pytest.mark.parametrize("c", [1e-6, 1e6, None])
def test_units_of_the_columns(rng, c):
    """A column times c: its alpha times c^2, its weight divided by c, nothing else."""
    F, t = regression(rng)
    c = np.full(F.shape[1], c) if c else 10 ** rng.uniform(-8, 8, F.shape[1])
    one, two = fit_rvm(F, t), fit_rvm(F * c, t)
    np.testing.assert_array_equal(one.basis, two.basis)
    np.testing.assert_allclose(two.alpha / c[two.basis] ** 2, one.alpha, rtol=5e-3)
    np.testing.assert_allclose(two.coef * c[two.basis], one.coef, rtol=1e-3)
    np.testing.assert_allclose([two.beta, two.log_evidence], [one.beta, one.log_evidence], rtol=1e-4)


def test_a_million_added_to_the_target(rng):
    """The bias carries it: noise, other weights and, but for the bias's own prior, the evidence stay."""
    F, t = regression(rng)
    F = np.column_stack([F, np.ones(len(F))])
    one, two = fit_rvm(F, t + 50), fit_rvm(F, t + 1e6)
    np.testing.assert_array_equal(one.basis, two.basis)
    np.testing.assert_allclose(two.coef[:-1], one.coef[:-1], rtol=1e-3)
    np.testing.assert_allclose(two.noise_std, one.noise_std, rtol=1e-3)
    np.testing.assert_allclose(two.coef[-1], 1e6, rtol=1e-6)
    # -log(s) of N(w | 0, s^2) at s = w: the only price
    np.testing.assert_allclose(one.log_evidence - two.log_evidence, np.log(1e6 / one.coef[-1]), atol=2e-3)


def test_order_of_rows(rng):
    F, t = regression(rng)
    order = rng.permutation(len(t))
    same(fit_rvm(F, t), fit_rvm(F[order], t[order]))


def test_order_of_columns(rng):
    F, t = regression(rng)
    order = rng.permutation(F.shape[1])
    one, two = fit_rvm(F, t), fit_rvm(F[:, order], t)
    back = np.argsort(order[two.basis])
    np.testing.assert_array_equal(one.basis, order[two.basis][back])
    np.testing.assert_allclose(one.coef, two.coef[back], rtol=1e-3)
    np.testing.assert_allclose(one.log_evidence, two.log_evidence, atol=1e-4)


def test_sign_of_a_column(rng):
    F, t = regression(rng)
    one, two = fit_rvm(F, t), fit_rvm(F * np.where(np.arange(F.shape[1]) % 2, -1, 1), t)
    same(one, two)
    np.testing.assert_allclose(np.abs(one.coef), np.abs(two.coef), rtol=1e-3)


@pytest.mark.parametrize("add", ["copies", "zeros", "noise-free copies twice as large"])
def test_columns_that_bring_nothing(rng, add):
    """A duplicate shares the weight of its twin at best: alpha and 1/alpha' + 1/alpha'' = 1/alpha are one model."""
    F, t = regression(rng)
    extra = {"copies": F, "zeros": np.zeros_like(F), "noise-free copies twice as large": 2 * F}[add]
    one, two = fit_rvm(F, t), fit_rvm(np.hstack([F, extra]), t)
    np.testing.assert_allclose(two.log_evidence, one.log_evidence, atol=2e-3)
    np.testing.assert_allclose(two.fitted, one.fitted, atol=2e-2 * one.noise_std)


STORAGE = {
    "Fortran order": np.asfortranarray,
    "every other entry of a larger array": lambda F: np.repeat(np.repeat(F, 2, axis=0), 2, axis=1)[::2, ::2],
    "read-only": lambda F: np.frombuffer(F.tobytes()).reshape(F.shape),
    "a list of lists": lambda F: F.tolist(),
    "made when asked for": rvm_problems.OnTheFly,
}


@pytest.mark.parametrize("how", STORAGE)
@pytest.mark.parametrize("wide", [False, True])
def test_storage(rng, how, wide):
    F, t = regression(rng)
    if wide:
        x, F = rvm_problems.kernels(rng, 40, 0.3)
        t = np.sin(7 * x) + 0.1 * rng.normal(size=40)
    one, two = fit_rvm(F, t), fit_rvm(STORAGE[how](F), t)
    if wide:  # rounding decides which of many optima is found
        np.testing.assert_allclose(two.log_evidence, one.log_evidence, atol=0.5)
    else:
        same(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool])
def test_other_number_types_are_the_numbers_they_hold(rng, dtype):
    F, t = regression(rng)
    F = (2 * F).astype(dtype)
    one, two = fit_rvm(F.astype(float), t), fit_rvm(F, t)
    np.testing.assert_allclose(two.log_evidence, one.log_evidence, atol=1e-3)
    exact = float(reference.exact_evidence(F[:, two.basis].astype(float), t, two.alpha, two.beta))
    assert abs(two.log_evidence - exact) <= 1e-8 * abs(exact)
    assert two.design.dtype == np.float64


def test_kernels_on_the_fly_are_the_kernels(rng):
    X = rng.uniform(-1, 1, (60, 2))
    t = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    D = RBFDictionary(X, width=0.8)
    one, two = fit_rvm(D.design(X), t), fit_rvm(LazyDesign(D, X), t)
    np.testing.assert_allclose(two.log_evidence, one.log_evidence, atol=1e-3)
    np.testing.assert_array_equal(two.design, D.design(X)[:, two.basis])


def test_the_same_twice_and_nothing_is_written_to(rng):
    x, F = rvm_problems.kernels(rng, 40, 0.3)
    t = np.sin(7 * x) + 0.1 * rng.normal(size=40)
    before = F.copy(), t.copy()
    one = fit_rvm(F, t)
    np.random.default_rng().normal()
    two = fit_rvm(F, t)
    np.testing.assert_array_equal(F, before[0])
    np.testing.assert_array_equal(t, before[1])
    assert one.log_evidence == two.log_evidence
    for name in ("basis", "alpha", "coef", "covariance", "fitted"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.history == two.history
    F[:], t[:] = 0, 0  # what was fitted is kept, not a view of what the caller goes on using
    np.testing.assert_array_equal(one.target, before[1])
    np.testing.assert_array_equal(one.design, before[0][:, one.basis])
    kept = pickle.loads(pickle.dumps(two))
    assert kept.log_evidence == two.log_evidence and kept.status is two.status
    np.testing.assert_array_equal(kept.mean(before[0]), two.mean(before[0]))


# --- the way there ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["auto", *STARTS])
@pytest.mark.parametrize("width", [0.1, 1.0, 10.0, None])
def test_evidence_never_decreases_when_the_noise_is_known(rng, width, init):
    F, t = regression(rng)
    if width:
        x, F = rvm_problems.kernels(rng, 40, width)
        t = np.sin(7 * x) + 0.1 * rng.normal(size=40)
    fit = fit_rvm(F, t, beta=100.0, init=init)
    path = np.array([step["log_evidence"] for step in fit.history])
    assert fit.beta == pytest.approx(100.0, rel=1e-12)
    assert len(path) > 1
    assert np.all(np.diff(path) >= -1e-8 * np.abs(path[:-1])), np.diff(path).min()
    np.testing.assert_allclose(path[-1], fit.log_evidence, rtol=1e-7)
    for step in fit.history:
        assert {"start", "action", "log_evidence", "n_basis", "noise_std"} <= set(step)
        np.testing.assert_allclose(step["noise_std"], 0.1)


def test_history_ends_at_the_result(rng):
    F, t = regression(rng)
    fit = fit_rvm(F, t)
    last = fit.history[-1]
    assert last["n_basis"] == fit.n_basis
    np.testing.assert_allclose(last["noise_std"], fit.noise_std, rtol=1e-6)
    np.testing.assert_allclose(last["log_evidence"], fit.log_evidence, rtol=1e-8)


@pytest.mark.parametrize("width", [None, 0.2, 2.0])
@pytest.mark.parametrize("known", [False, True])
def test_a_warm_start_is_never_made_worse(rng, width, known):
    F, t = regression(rng)
    if width:
        x, F = rvm_problems.kernels(rng, 40, width)
        t = np.sin(7 * x) + 0.1 * rng.normal(size=40)
    beta = 20.0 if known else None
    for _ in range(5):
        k = int(rng.integers(1, 12))
        start = rng.permutation(F.shape[1])[:k], 10 ** rng.uniform(-6, 6, k), 10 ** rng.uniform(-2, 4)
        floor = reference.evidence(F[:, start[0]], t, start[1], beta or start[2])
        fit = fit_rvm(F, t, init=start, beta=beta)
        assert fit.log_evidence >= floor - 1e-9 * abs(floor)
        np.testing.assert_allclose(fit.history[0]["log_evidence"], floor, rtol=1e-6)  # each alpha with its own column
    best = fit_rvm(F, t, beta=beta)
    again = fit_rvm(F, t, init=best, beta=beta)
    assert again.log_evidence >= best.log_evidence - 1e-9 * abs(best.log_evidence)
    assert again.log_evidence <= best.log_evidence + 1.0


def test_a_fit_starts_one_with_other_rows(rng):
    """A result carries its columns' numbers, so it can start a fit to other data of the same dictionary."""
    F, t = regression(rng, n=80)
    first = fit_rvm(F[:60], t[:60])
    floor = reference.evidence(F[:, first.basis], t, first.alpha, first.beta)
    assert fit_rvm(F, t, init=first).log_evidence >= floor


def test_restarts_only_help_and_do_help():
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, F = rvm_problems.kernels(rng, 60, 0.07)
        t = np.sin(15 * x) + 0.1 * rng.normal(size=60)
        for beta in (None, 80.0):
            values = [fit_rvm(F, t, beta=beta, restarts=r).log_evidence for r in (0, 3, 10)]
            assert values[1] >= values[0] - 1e-6
            assert values[2] >= values[1] - 1e-6
            gains.append(values[2] - values[0])
    assert max(gains) > 0.01


def test_few_steps_are_announced(rng):
    x, F = rvm_problems.kernels(rng, 60, 0.05)
    t = np.sin(30 * x) + 0.1 * rng.normal(size=60)
    fit = fit_rvm(F, t, init="greedy", max_steps=1)
    assert Status.STEP_LIMIT in (fit.status, *fit.notes)
    exact = float(reference.exact_evidence(fit.design, t, fit.alpha, fit.beta))
    assert abs(fit.log_evidence - exact) <= 1e-8 * max(1, abs(exact))
    assert fit_rvm(F, t, init="greedy").log_evidence >= fit.log_evidence - 1e-3


def test_optima_that_rounding_decides_between_are_said():
    """Seven rows of three inputs, moved by 1e-5: the fits differ by more than a nat, and both say there are several."""
    rng = np.random.default_rng(17)
    X = rng.normal(size=(7, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=7)
    dictionary = [RBFDictionary(Z, 1.0, bias=True).design(Z) for Z in (X, X + 1e-5)]
    fits = [fit_rvm(design, y) for design in dictionary]
    same = abs(fits[0].log_evidence - fits[1].log_evidence) < 1e-3
    assert same or all(Status.MULTIPLE_OPTIMA in fit.notes for fit in fits)
    assert len(fits[0].optima) > 1
