"""The contract of a fit, kept by every engine that chooses columns of a dictionary.

Guards `bayessel.linear.columns.fit`.
"""

import numpy as np
import pytest
from scipy import stats

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel.fit import Fit, LeaveOneOut, Status
from bayessel.linear import fit_loomi, fit_rvm, forward_select, project, search
from bayessel.prediction import ClassPrediction, Prediction

ENGINES = {
    "rvm": fit_rvm,
    "search": search,
    "search, bias": lambda F, t: search(F, t, centre=True),
    "ols": forward_select,
    "rols, bias": lambda F, t: forward_select(F, t, "rols", centre=True),
    "backward": lambda F, t: forward_select(F, t, "backward"),
    "loomi": lambda F, t: fit_loomi(F, np.sign(t)),
    "projection": lambda F, t: project(F, t, 0.1, size=3),
}


class Made:
    """Columns that are made when they are looked at."""

    def __init__(self, F):
        self.F, self.shape = F, F.shape

    def columns(self, which):
        return self.F[:, which]


def problem(rng, n=60, p=15):
    F = rng.normal(size=(n, p))
    return F, F[:, [3, 7]] @ [2.0, -1.0] + 0.2 * rng.normal(size=n)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_keeps_the_contract(rng, name):
    F, t = problem(rng)
    fit = ENGINES[name](F, t)
    target = np.sign(t) if name == "loomi" else t
    assert isinstance(fit, Fit) and fit.n_rows == 60 and fit.seconds > 0.0
    assert fit.status is ((fit.notes and max(fit.notes, key=lambda note: note.severity)) or Status.CONVERGED)
    named = target[:, None] if name == "projection" else target
    assert fit.fingerprint == fingerprint(F, named) and fit.target_fingerprint == fingerprint(target)
    assert isinstance(fit.history, tuple) and len(fit.history) > 1
    used = fit.order if name == "projection" else fit.basis
    assert sorted(fit.optima[0].basis) == sorted(used.tolist())
    assert len({frozenset(one.basis) for one in fit.optima}) == len(fit.optima)
    left_out, there = fit.leave_one_out(), fit.predict(F[:5])
    assert isinstance(left_out, LeaveOneOut) and left_out.errors.shape == (60,)
    if name in ("loomi", "projection"):
        assert fit.evidence is None and np.isnan(fit.log_evidence)
    else:
        assert fit.evidence.kind == "type2" and fit.evidence.value == fit.log_evidence
        np.testing.assert_allclose(there.variance - there.function.variance, 1.0 / fit.beta, rtol=1e-12)
        np.testing.assert_array_equal(fit.mean(F[:5]), there.mean)
    assert isinstance(there, ClassPrediction if name == "loomi" else Prediction)


@pytest.mark.parametrize("name", ENGINES)
def test_the_same_data_have_the_same_name_however_they_are_stored(rng, name):
    F, t = problem(rng)
    engine = ENGINES[name]
    same = engine(np.asfortranarray(F), t)
    assert same.fingerprint == engine(F, t).fingerprint
    other = F.copy()
    other[0, 0] += 1e-9
    assert engine(other, t).fingerprint != same.fingerprint
    one = engine(Made(F), t).fingerprint
    assert one == engine(Made(F), t).fingerprint != engine(Made(F + 1e-9), t).fingerprint


def test_a_lazy_design_is_named_by_what_it_is_made_from(rng):
    X = rng.uniform(-1, 1, size=(30, 2))
    t = X[:, 0] + 0.1 * rng.normal(size=30)
    names = set()
    for centers, width, kind, bias, linear in (
        (X, 0.5, "gaussian", True, False),
        (X, 0.6, "gaussian", True, False),
        (X, 0.5, "cauchy", True, False),
        (X, 0.5, "gaussian", False, False),
        (X, 0.5, "gaussian", True, True),
        (X + 1e-9, 0.5, "gaussian", True, False),
    ):
        dictionary = bs.RBFDictionary(centers, width, kind=kind, bias=bias, linear=linear)
        names |= {fit_rvm(bs.basis.LazyDesign(dictionary, X), t).fingerprint for _ in range(2)}
    assert len(names) == 6


@pytest.mark.parametrize("centre", [False, True])
def test_a_projection_without_a_row(rng, centre):
    """Leave-one-out of a projection against least squares on the other rows."""
    F = rng.normal(size=(20, 6))
    mu, A = rng.normal(size=20), 0.5 * rng.normal(size=(20, 4))
    whole = project(F, mu, 0.3, A @ A.T, size=4, centre=centre)
    for fit in (whole, whole.at(2)):
        H = F[:, fit.order]
        H = np.column_stack([np.ones(20), H]) if centre else H
        left_out = fit.leave_one_out()
        for i in range(20):
            others = np.arange(20) != i
            row = H[i] @ np.linalg.pinv(H[others])
            variance = float(np.sum((row @ A[others]) ** 2)) + fit.noise_std**2
            assert left_out.errors[i] == pytest.approx(mu[i] - row @ mu[others], rel=1e-8)
            assert left_out.variances[i] == pytest.approx(variance, rel=1e-8)
        expected = stats.norm.logpdf(left_out.errors, scale=np.sqrt(left_out.variances))
        np.testing.assert_allclose(left_out.log_densities, expected, rtol=1e-10)


def test_labels_left_out_are_distributions(rng):
    F, t = problem(rng)
    labels = np.where(t + rng.normal(size=60) > 0.0, 1.0, -1.0)
    fit = fit_loomi(F, labels)
    p = fit.calibration.loo_probability
    left_out = fit.leave_one_out()
    of_labels = np.column_stack([1.0 - p, p])
    for errors, variances, log_density, label, row in zip(
        left_out.errors, left_out.variances, left_out.log_densities, labels, of_labels, strict=True
    ):
        mean = row @ [-1.0, 1.0]
        assert errors == pytest.approx(label - mean) and log_density == pytest.approx(np.log(row[int(label > 0)]))
        assert variances == pytest.approx(row @ (np.array([-1.0, 1.0]) - mean) ** 2)
    there = fit.predict(F)
    np.testing.assert_allclose(there.probabilities.sum(axis=1), 1.0)
    decided = fit.decision(F) != 0.0
    np.testing.assert_array_equal(there.mode[decided], np.sign(fit.decision(F))[decided])


def test_different_optima_of_a_relevance_vector_machine_are_told_apart():
    x = np.linspace(-10, 10, 100)
    t = np.sinc(x / np.pi) + 0.1 * np.random.default_rng(3).normal(size=100)
    F = np.exp(-((x[:, None] - x) ** 2) / 9.0)
    fit = fit_rvm(F, t)
    assert fit.optima[0].value == fit.log_evidence and fit.optima[0].basis == tuple(fit.basis)
    heights = [one.value for one in fit.optima[1:]]
    assert len(heights) > 1 and heights == sorted(heights, reverse=True)
    assert set(heights) <= set(fit.starts.values())
