"""Widths of a relevance vector machine: the gradient, the best of a scan, irrelevant inputs, odd data.

Guards `bayessel.linear.widths.rvm_width`, `bayessel.linear.widths.gradient`.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import bayessel as bs
from bayessel.linear import fit_rvm
from bayessel.linear.widths import rvm_width
from bayessel.linear.widths.rvm_width import fit_rvm_width, width_gradient
from bayessel.policy import NOISE_SHARE_OF_EVIDENCES, leaves_noise
from tests.oracles import linear as oracles

KINDS = ("gaussian", "multiquadric", "inverse_multiquadric", "cauchy")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("k", [1, 5, 25])
def test_the_gradient_is_that_of_the_dense_evidence(rng, kind, bias, k):
    X, centers = rng.uniform(-1, 1, (18, 2)), rng.uniform(-1, 1, (k, 2))
    t = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=18)
    m = k + bias
    theta = np.concatenate([np.log([0.7, 1.6]), rng.normal(size=m), [2.0]])

    def f(x):
        Phi = oracles.radial(kind, X, centers, np.exp(x[:2]))
        Phi = np.c_[Phi, np.ones(18)] if bias else Phi
        return oracles.log_evidence(Phi, t, np.exp(x[2:-1]), np.exp(x[-1]))

    value, by_width, by_alpha, by_beta = width_gradient(
        theta[:2], theta[2:-1], theta[-1], X, centers, t, kind=kind, bias=bias
    )
    assert value == pytest.approx(f(theta), rel=1e-9)
    numeric = oracles.central_difference(f, theta, step=2e-3)
    scale = np.maximum(1.0, np.abs(numeric))
    np.testing.assert_allclose(np.concatenate([by_width, by_alpha, [by_beta]]) / scale, numeric / scale, atol=1e-6)


def test_a_missing_term_of_the_gradient_would_be_seen(rng):
    """Control: without Phi Sigma in D the width gradient is off by far more than the tolerance."""
    X = rng.uniform(-1, 1, (18, 1))
    t = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=18)
    alpha, beta, r = np.full(4, 0.5), 5.0, 0.7
    Phi = oracles.radial("gaussian", X, X[:4], r)
    mu, _ = oracles.posterior(Phi, t, alpha, beta)
    half = np.sum(beta * np.outer(t - Phi @ mu, mu) * Phi * 2 * (X - X[:4].T) ** 2 / r**2)
    _, by_width, *_ = width_gradient(np.log([r]), np.log(alpha), np.log(beta), X, X[:4], t)
    assert abs(half - by_width[0]) > 1e-2


def test_no_columns_at_all():
    X, t = np.linspace(0, 1, 5)[:, None], np.arange(5.0)
    value, by_width, by_alpha, by_beta = width_gradient(np.zeros(1), np.zeros(0), 0.3, X, X[:0], t, origin=X[0])
    assert value == pytest.approx(-0.5 * (5 * (np.log(2 * np.pi) - 0.3) + np.exp(0.3) * 30))
    assert by_width[0] == 0.0 and by_alpha.size == 0
    assert by_beta == pytest.approx(2.5 - 0.5 * np.exp(0.3) * 30)


def sinc(seed, n=40):
    rng = np.random.default_rng([3, seed])
    x = np.sort(rng.uniform(-10, 10, n))
    return x[:, None], np.sinc(x / np.pi) + 0.1 * rng.normal(size=n)


def chirp(seed, n=200):
    rng = np.random.default_rng([4, seed])
    x = np.linspace(-3, 3, n)
    return x[:, None], np.cos(x**2) + rng.uniform(-0.1, 0.1, n)


def two_waves(seed, n=40):
    rng = np.random.default_rng([5, seed])
    x = np.sort(rng.uniform(0, 1, n))
    return x[:, None], np.sin(4 * x) + 0.3 * np.sin(40 * x) + 0.1 * rng.normal(size=n)


def assert_best_of_a_grid(X, t, points):
    found = fit_rvm_width(X, t)
    ends = found.history[0]["width"], found.history[-1]["width"]
    best = -np.inf
    for r in np.geomspace(*ends, points):
        fit = fit_rvm(bs.RBFDictionary(X, r).design(X), t)
        if leaves_noise(fit.n_rows, fit.gamma, NOISE_SHARE_OF_EVIDENCES):  # the others interpolate
            best = max(best, fit.log_evidence)
    # of optima that lie some tenths of a nat apart no search finds the highest every time, and the grid has many
    assert found.log_evidence >= best - 0.5
    assert ends[0] <= found.widths[0] <= ends[1]
    Phi = bs.RBFDictionary(X, found.widths[0]).design(X)[:, found.fit.basis]
    assert found.log_evidence == pytest.approx(
        oracles.log_evidence(Phi, t, found.fit.alpha, found.fit.beta), rel=1e-6, abs=1e-5
    )
    assert found.optima[0].log_evidence == found.log_evidence
    heights = [o.log_evidence for o in found.optima]
    assert heights == sorted(heights, reverse=True)


def test_one_width_is_the_best_of_a_grid():
    assert_best_of_a_grid(*sinc(0, 24), points=9)


@pytest.mark.slow
@pytest.mark.parametrize("make", [sinc, chirp, two_waves])
@pytest.mark.parametrize("seed", range(1, 7))
def test_one_width_is_the_best_of_a_fine_grid(make, seed):
    assert_best_of_a_grid(*make(seed), points=80)


def plane(seed, n):
    rng = np.random.default_rng([6, seed])
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(2.5 * X[:, 0]) * np.cos(1.5 * X[:, 1]) + 0.1 * rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_an_irrelevant_input_gets_wide_every_time(seed):
    X, t = plane(seed, 120)
    own = fit_rvm_width(X, t, shared=False, n_scan=5, n_starts=2, init="greedy")
    # beyond twice the range of the inputs a kernel hardly varies; the inputs that matter stay below it
    assert own.widths.shape == (3,) and own.widths[2] > 4 > 2 > own.widths[:2].max()
    shared = fit_rvm_width(X, t, n_scan=5, n_starts=2, init="greedy")
    assert shared.widths.shape == (1,) and own.log_evidence > shared.log_evidence


def test_an_irrelevant_input_gets_wide():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    t = np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=40)
    own = fit_rvm_width(X, t, shared=False, n_scan=5, n_starts=1)
    assert own.widths[1] > 5 * own.widths[0]


@pytest.mark.parametrize("shared", [False, True])
def test_the_scan_is_told_in_the_units_of_the_inputs(rng, shared):
    """From half the distance of neighbours, here of 40, to ten times the range, and the evidence at those widths."""
    X = np.arange(25.0)[:, None] * 40.0
    t = np.sin(X[:, 0] / 150.0) + 0.1 * rng.normal(size=25)
    found = fit_rvm_width(X, t, n_scan=5, n_starts=1, shared=shared)
    widths = np.array([one["width"] for one in found.history])
    unit = 1.0 if shared else X.std()
    np.testing.assert_allclose(widths * unit, np.geomspace(20.0, 9600.0, 5), rtol=1e-9)
    for one in found.history[1:4]:
        Phi = np.hstack([oracles.radial("gaussian", X, X, one["width"] * unit), np.ones((25, 1))])
        assert one["log_evidence"] == pytest.approx(fit_rvm(Phi, t, init="greedy").log_evidence, abs=0.1)


@pytest.mark.slow
def test_units_do_not_matter():
    X, t = plane(0, 60)
    units = np.array([1e-3, 1e4, 1.0])
    one, other = fit_rvm_width(X, t, shared=False), fit_rvm_width(X * units, 7.0 * t, shared=False)
    np.testing.assert_allclose(other.log_evidence, one.log_evidence - 60 * np.log(7.0), atol=0.05)
    np.testing.assert_allclose(other.widths[:2], (one.widths * units)[:2], rtol=0.05)


@pytest.mark.parametrize("case", ["constant input", "constant target", "two rows", "one row", "duplicate rows"])
@pytest.mark.parametrize("shared", [True, False])
def test_degenerate_data_get_widths_and_a_status(rng, case, shared):
    X, t = rng.uniform(-1, 1, (12, 2)), rng.normal(size=12)
    if case == "constant input":
        X[:] = 3.0
    elif case == "constant target":
        t = np.full(12, 2.0)
    elif case == "duplicate rows":
        X[6:] = X[:6]
    else:
        n = 2 if case == "two rows" else 1
        X, t = X[:n], t[:n]
    found = fit_rvm_width(X, t, shared=shared, n_scan=3, n_starts=1)
    assert np.all(found.widths > 0) and np.isfinite(found.widths).all()
    assert np.isfinite(found.log_evidence) and isinstance(found.status, bs.Status)


def test_interpolation_does_not_win():
    """A function for almost every row comes last, whatever its evidence; among the others the evidence decides."""
    gammas, heights = (19.5, 18.1, 17.9, 5.0), (90.0, 80.0, 3.0, 2.0)
    fits = [
        SimpleNamespace(n_rows=20, n_counted=20, gamma=g, log_evidence=e) for g, e in zip(gammas, heights, strict=True)
    ]
    ends = [rvm_width._End(np.zeros(1), fit) for fit in fits]
    order = sorted(ends, key=rvm_width._End.rank, reverse=True)
    assert [end.value for end in order] == [3.0, 2.0, 90.0, 80.0]


def test_a_coarse_scan_loses_nothing(monkeypatch):
    """The scan looks with one start; what it finds is then fitted from all of them."""
    X = np.linspace(-3, 3, 60)[:, None]
    t = np.cos(X[:, 0] ** 2) + 0.05 * np.random.default_rng(0).normal(size=60)
    starts = []

    def spy(design, target, **options):
        starts.append(options["init"])
        return fit_rvm(design, target, **options)

    monkeypatch.setattr(rvm_width, "fit_rvm", spy)
    found = fit_rvm_width(X, t, n_scan=9, n_starts=2)
    assert starts.count("greedy") == 9 and starts.count("auto") <= 14
    monkeypatch.undo()
    here = fit_rvm(bs.RBFDictionary(X, float(found.widths[0])).design(X), t)
    assert found.log_evidence > here.log_evidence - 0.5


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"X": [[np.nan], [0.0]], "t": [1.0, 2.0]}, ValueError, "X must be finite"),
        ({"t": [1.0]}, ValueError, "t must have one value per row"),
        ({"kind": "sinc"}, ValueError, "kind must be one of"),
        ({"X": [[1e200], [0.0], [2e200], [3e200]]}, ValueError, "X has values of size 3e.200, .*; rescale it"),
        ({"centers": np.ones((2, 3))}, ValueError, "centers must have the 1 columns"),
        ({"bias": 1}, TypeError, "bias must be True or False"),
        ({"n_scan": 2}, ValueError, "n_scan must be at least 3"),
        ({"init": "warm"}, ValueError, "init must be one of"),
    ],
)
def test_bad_input_is_refused_at_the_door(arguments, error, text):
    X = np.arange(4.0)[:, None]
    with pytest.raises(error, match=text):
        fit_rvm_width(**{"X": X, "t": [0.0, 1.0, 0.0, 2.0], **arguments})
