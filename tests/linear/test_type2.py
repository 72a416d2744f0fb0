"""The evidence procedure against every other way of climbing the same surface, and against the surface itself.

Guards `bayessel.linear.type2`.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge

import bayessel as bs
from bayessel import linear
from tests.oracles import linear as oracles
from tests.problems import linear as problems

QUICK = range(40)
ALL = range(300)


@cache
def problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Every fourth: plain, more columns than rows, ill-conditioned gaussians, two maxima."""
    rng = np.random.default_rng([44, seed])
    if seed % 4 == 0:
        n, m = int(rng.integers(5, 40)), int(rng.integers(1, 5))
        return problems.regression_problem(rng, n, m, noise=float(10 ** rng.uniform(-2, 1)))
    if seed % 4 == 1:
        n, m = int(rng.integers(4, 25)), int(rng.integers(10, 40))
        return problems.regression_problem(rng, n, m, noise=float(10 ** rng.uniform(-2, 1)))
    if seed % 4 == 2:
        n, m = int(rng.integers(10, 40)), int(rng.integers(5, 40))
        x = np.linspace(0, 1, n)
        Phi = problems.gaussian_dictionary(rng, n, m, float(10 ** rng.uniform(-1.5, 1)))
        return Phi, np.sin(6 * x) + 10 ** rng.uniform(-2, 0) * rng.normal(size=n)
    return problems.two_scales(rng, spread=float(rng.uniform(1, 3)))


def best_of_grid(Phi: np.ndarray, t: np.ndarray, free: int) -> tuple[float, float]:
    """alpha and beta of the best of 120 x 120 points, by eigenvalues of Phi Phi'; beta enters as beta^(free/2)."""
    mu, U = np.linalg.eigh(Phi @ Phi.T)
    mu, c2 = np.maximum(mu, 0), (U.T @ t) ** 2
    top, power = mu.max(), np.mean(t**2)
    alphas, betas = np.geomspace(1e-8, 1e8, 120) * top / power, np.geomspace(1e-2, 1e8, 120) / power
    value = np.empty((120, 120))
    for i, a in enumerate(alphas):
        variance = 1 / betas[:, None] + mu / a
        value[i] = -0.5 * (np.log(variance) + c2 / variance).sum(axis=1) - 0.5 * (len(t) - free) * np.log(betas)
    i, j = np.unravel_index(value.argmax(), value.shape)
    return float(alphas[i]), float(betas[j])


def sklearn_bayesian_ridge(Phi: np.ndarray, t: np.ndarray, centre: bool) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        peer = BayesianRidge(
            max_iter=2000, tol=1e-8, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, fit_intercept=centre
        ).fit(Phi, t)
    return float(peer.lambda_), float(peer.alpha_)


def shortfalls(seeds: range, centre: bool) -> list[str]:
    """Competitors that found more evidence than the profile, each judged at its own alpha and beta."""
    found = []
    for seed in seeds:
        Phi, t = problem(seed)
        fit = linear.fit_evidence(Phi, t, centre=centre)
        Phi_c, t_c = (Phi - Phi.mean(axis=0), t - t.mean()) if centre else (Phi, t)
        rivals = {
            "grid": best_of_grid(Phi_c, t_c, len(t) - centre),
            "BayesianRidge": sklearn_bayesian_ridge(Phi, t, centre),
        }
        for method in ("mackay", "em"):
            try:
                other = linear.fit_evidence(Phi, t, centre=centre, method=method)
            except ArithmeticError as error:
                found.append(f"{seed} {Phi.shape} {method}: {error!r}")
                continue
            rivals[method] = (other.alpha, other.beta)
        for name, (alpha, beta) in rivals.items():
            if not (np.isfinite(beta) and alpha > 0 and beta > 0):
                continue
            value = oracles.exact_log_evidence(Phi, t, alpha, beta, centre=centre)
            if not fit.log_evidence >= value - 1e-7 * max(1.0, abs(value)):
                found.append(
                    f"{seed} {Phi.shape} {name}: {value!r} at lambda {alpha / beta:.3e}; profile {fit.log_evidence!r} "
                    f"at {fit.lam:.3e}, {fit.status.name}"
                )
    return found


@pytest.mark.parametrize("centre", [False, True])
def test_nobody_finds_more_evidence(centre):
    assert shortfalls(QUICK, centre) == []


@pytest.mark.slow
@pytest.mark.parametrize("centre", [False, True])
def test_nobody_finds_more_evidence_on_three_hundred(centre):
    assert shortfalls(ALL, centre) == []


def test_a_climber_that_stops_at_the_first_maximum_would_be_caught(monkeypatch):
    """Control: return the lower of two maxima and the same check must complain."""
    honest = linear.fit_evidence

    class Lower:
        def __init__(self, fit, Phi, t):
            peak = min(fit.optima, key=lambda m: m.log_evidence)
            self.lam, self.log_evidence, self.status = peak.lam, peak.log_evidence, fit.status

    def first_maximum(Phi, t, centre=False, method="profile"):
        fit = honest(Phi, t, centre=centre, method=method)
        return Lower(fit, Phi, t) if method == "profile" else fit

    monkeypatch.setattr(linear, "fit_evidence", first_maximum)
    assert len(shortfalls(range(3, 40, 4), centre=False)) >= 3


def disagreements(seeds: range, centre: bool, method: str) -> list[str]:
    """Fits whose evidence is not that of the design, alpha and beta they report."""
    found = []
    for seed in seeds:
        Phi, t = problem(seed)
        fit = linear.fit_evidence(Phi, t, centre=centre, method=method)
        exact = oracles.exact(Phi, t, fit.alpha, fit.beta, centre=centre)
        ratio = fit.beta / fit.alpha
        tolerance = 1e-8 if ratio <= 1e16 else 10 * problems.EPS * np.sqrt(ratio)
        if not oracles.relative(fit.log_evidence, exact.log_evidence, floor=1.0) <= tolerance:
            found.append(f"{seed} {Phi.shape}: {fit.log_evidence!r}, exact {float(exact.log_evidence)!r}")
    return found


@pytest.mark.parametrize("method", ["profile", "mackay", "em"])
@pytest.mark.parametrize("centre", [False, True])
def test_the_reported_evidence_is_that_of_the_reported_model(centre, method):
    assert disagreements(QUICK, centre, method) == []


@pytest.mark.slow
@pytest.mark.parametrize("centre", [False, True])
def test_the_reported_evidence_is_that_of_the_reported_model_on_three_hundred(centre):
    assert disagreements(ALL, centre, "profile") == []


ESTIMATORS = {
    "evidence": lambda X: bs.EvidenceRegressor(width=1.0),
    "evidence, no bias": lambda X: bs.EvidenceRegressor(width=1.0, bias=False),
    "evidence, em": lambda X: bs.EvidenceRegressor(width=0.5, method="em"),
    "evidence, few centres": lambda X: bs.EvidenceRegressor(width=3.0, centers=X[:4], kind="multiquadric"),
    "evidence, fitted width": lambda X: bs.EvidenceRegressor(width="fit"),
    "evidence, fitted widths": lambda X: bs.EvidenceRegressor(width="ard"),
    "ridge": lambda X: bs.RidgeRBFRegressor(width=0.5),
    "ridge, no bias": lambda X: bs.RidgeRBFRegressor(width=0.5, bias=False),
    "ridge, loo": lambda X: bs.RidgeRBFRegressor(width=1.0, criterion="loo", kind="cauchy"),
}


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("shape", [(12, 1), (30, 2), (5, 3)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_evidence_of_an_estimator_is_that_of_the_model_read_off_it(rng, name, shape):
    X = rng.uniform(-1, 1, shape)
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=shape[0]) + 4.0
    model = ESTIMATORS[name](X).fit(X, y)
    centers = X if model.centers is None else model.centers
    Phi = bs.RBFDictionary(centers, model.width_, kind=model.kind, bias=False).design(X)
    exact = oracles.exact_log_evidence(Phi, y, model.alpha_, model.beta_, centre=model.bias)
    ratio = model.beta_ / model.alpha_
    tolerance = 1e-8 if ratio <= 1e16 else 10 * problems.EPS * np.sqrt(ratio)
    assert oracles.relative(model.log_evidence_, exact, floor=1.0) <= tolerance


def missing_maxima(count: int) -> list[str]:
    found = []
    for seed, Phi, t, grid, values in problems.two_maxima_problems(count):
        fit = linear.fit_evidence(Phi, t)
        lams = np.array([m.lam for m in fit.optima])
        heights = np.array([m.log_evidence for m in fit.optima])
        step = np.log(grid[1] / grid[0])
        for at in oracles.local_optima(values, +1):
            near = np.abs(np.log(lams / grid[at])) <= 2 * step
            if not near.any():
                found.append(f"{seed} {Phi.shape}: maximum {values[at]:.4f} at {grid[at]:.2e} not among {lams}")
        if not np.allclose(heights, oracles.profile(Phi, t, lams), rtol=1e-6, atol=1e-5):
            found.append(f"{seed} {Phi.shape}: heights {heights}, profile there {oracles.profile(Phi, t, lams)}")
        if list(heights) != sorted(heights, reverse=True) or not np.isclose(fit.log_evidence, heights[0], rtol=1e-12):
            found.append(f"{seed} {Phi.shape}: not highest first: {heights}, returned {fit.log_evidence}")
    return found


def test_both_maxima_are_reported():
    assert missing_maxima(15) == []


@pytest.mark.slow
def test_both_maxima_are_reported_on_a_hundred():
    assert missing_maxima(100) == []


def test_every_maximum_of_a_dense_grid_is_reported():
    """Not only on crafted problems: whatever the grid sees, the fit lists (within the grid's own range)."""
    for seed in QUICK:
        Phi, t = problem(seed)
        fit = linear.fit_evidence(Phi, t)
        grid = np.geomspace(1e-9, 1e6, 400) * np.linalg.norm(Phi, 2) ** 2
        values = oracles.profile(Phi, t, grid)
        lams = np.array([m.lam for m in fit.optima])
        for at in oracles.local_optima(values, +1):
            if values[at] - min(values[max(at - 4, 0)], values[min(at + 4, 399)]) < 1e-6:
                continue  # flat to the precision of the dense formula
            assert np.abs(np.log(lams / grid[at])).min() < 2 * np.log(grid[1] / grid[0]), (seed, grid[at], lams)


@pytest.mark.parametrize("seed", range(8))
def test_alpha_and_beta_are_a_stationary_point(seed):
    """MacKay's equations hold at any interior maximum: alpha = gamma / |mu|^2, beta = (N - gamma) / |t - Phi mu|^2."""
    rng = np.random.default_rng([9, seed])
    Phi, t = problems.regression_problem(rng, 25, 6)
    fit = linear.fit_evidence(Phi, t)
    mu, Sigma = oracles.posterior(Phi, t, fit.alpha, fit.beta)
    gamma = np.sum(1 - fit.alpha * np.diag(Sigma))
    np.testing.assert_allclose(fit.alpha, gamma / (mu @ mu), rtol=1e-5)
    np.testing.assert_allclose(fit.beta, (25 - gamma) / np.sum((t - Phi @ mu) ** 2), rtol=1e-5)
    np.testing.assert_allclose(fit.gamma, gamma, rtol=1e-8)
    np.testing.assert_allclose(fit.coef, mu, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fit.noise_std, fit.beta**-0.5, rtol=1e-12)
    np.testing.assert_allclose(fit.lam, fit.alpha / fit.beta, rtol=1e-12)
    assert fit.intercept == 0.0
    assert fit.n_basis == 6 == len(fit.basis)
    assert fit.n_rows == 25
    assert fit.evidence.kind == "type2"


@pytest.mark.parametrize("shape", [(25, 6), (40, 30)])
@pytest.mark.parametrize("centre", [False, True])
def test_predictions_and_their_spread(rng, shape, centre):
    """y* = mu'phi, var = 1/beta + phi' Sigma phi; a free mean adds its own variance 1 / (N beta)."""
    Phi, t = problems.regression_problem(rng, *shape)
    t = t + 5.0
    new = rng.normal(size=(7, shape[1]))
    fit = linear.fit_evidence(Phi, t, centre=centre)
    shift, level = (Phi.mean(axis=0), t.mean()) if centre else (np.zeros(shape[1]), 0.0)
    mu, Sigma = oracles.posterior(Phi - shift, t - level, fit.alpha, fit.beta)
    variance = 1 / fit.beta + np.einsum("ij,jk,ik->i", new - shift, Sigma, new - shift)
    if centre:
        variance += 1 / (shape[0] * fit.beta)
    there = fit.predict(new)
    mean, std = there.mean, there.std
    np.testing.assert_allclose(mean, level + (new - shift) @ mu, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-6)


@pytest.mark.parametrize("method", ["mackay", "em"])
@pytest.mark.parametrize("shape", [(20, 4), (6, 15)])
def test_one_step_from_a_start_is_the_formula_there(rng, method, shape):
    """MacKay's and the EM step from a given alpha and beta, written out with the dense posterior."""
    Phi, t = problems.regression_problem(rng, *shape)
    alpha, beta = 0.7, 3.0
    mu, Sigma = oracles.posterior(Phi, t, np.full(shape[1], alpha), beta)
    misfit, gamma = float(np.sum((t - Phi @ mu) ** 2)), shape[1] - alpha * float(np.trace(Sigma))
    if method == "mackay":
        expected = gamma / (mu @ mu), (shape[0] - gamma) / misfit
    else:
        expected = (
            shape[1] / (mu @ mu + np.trace(Sigma)),
            shape[0] / (misfit + np.trace(Phi @ Sigma @ Phi.T)),
        )
    fit = linear.fit_evidence(Phi, t, method=method, alpha0=alpha, beta0=beta, max_steps=1)
    np.testing.assert_allclose((fit.alpha, fit.beta), expected, rtol=1e-9)
    assert (fit.history[0]["alpha"], fit.history[0]["beta"]) == (alpha, beta)
    assert fit.history[0]["log_evidence"] == pytest.approx(oracles.log_evidence(Phi, t, alpha, beta), rel=1e-10)
    assert bs.Status.STEP_LIMIT in fit.notes


@pytest.mark.parametrize("centre", [False, True])
def test_a_factorisation_with_another_target_is_that_of_the_target_alone(rng, centre):
    """Targets of other sizes: the floor of the noise is four roundings of the largest of them, wherever they began."""
    Phi = rng.normal(size=(12, 3))
    first, free = rng.normal(size=12), Phi @ [2.0, -1.0, 0.5]
    shared = linear.Spectrum.of(Phi, first, centre=centre, rows=True)
    for t in (1e6 * free, 1e-4 * free, rng.normal(size=12) + 30.0):
        other, own = shared.retarget(t), linear.Spectrum.of(Phi, t, centre=centre, rows=True)
        for name in ("rss", "tss", "t_scale", "z", "off_span", "target", "flat_offset"):
            one, two = getattr(other, name), getattr(own, name)
            assert (one is None) == (two is None), name
            if two is not None:
                np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-13 * np.abs(t).max(), err_msg=name)
        assert other.fingerprint == own.fingerprint != shared.fingerprint
    for size in (1e6, 1e-4):
        fit = linear.fit_evidence(shared.retarget(size * free))
        assert fit.status is bs.Status.NOISE_AT_FLOOR
        assert fit.noise_std == pytest.approx(4.0 * np.finfo(float).eps * np.abs(size * free).max(), rel=1e-9)


def test_an_offset_changes_the_intercept_and_nothing_else(rng):
    Phi, t = problems.regression_problem(rng, 30, 5)
    here, there = linear.fit_evidence(Phi, t, centre=True), linear.fit_evidence(Phi, t + 1e6, centre=True)
    np.testing.assert_allclose(there.intercept - here.intercept, 1e6, rtol=1e-14)
    np.testing.assert_allclose(there.coef, here.coef, rtol=1e-7)
    np.testing.assert_allclose([there.alpha, there.beta], [here.alpha, here.beta], rtol=1e-7)
    np.testing.assert_allclose(there.log_evidence, here.log_evidence, atol=1e-7)
    moved = linear.fit_evidence(Phi + 1e3, t, centre=True)
    np.testing.assert_allclose(moved.log_evidence, here.log_evidence, atol=1e-8)


@pytest.mark.parametrize("s", [1e-6, 37.0, 1e8])
@pytest.mark.parametrize("centre", [False, True])
def test_scaling_the_target_adds_minus_n_log_s(rng, s, centre):
    Phi, t = problems.regression_problem(rng, 30, 5)
    one, other = linear.fit_evidence(Phi, t, centre=centre), linear.fit_evidence(Phi, s * t, centre=centre)
    np.testing.assert_allclose(other.log_evidence, one.log_evidence - 30 * np.log(s), rtol=1e-10)
    np.testing.assert_allclose(other.model_evidence, one.model_evidence - 30 * np.log(s), rtol=1e-7)
    np.testing.assert_allclose(other.coef, s * one.coef, rtol=1e-6)


@pytest.mark.parametrize("s", [1e-5, 1e5])
def test_scaling_the_columns_changes_only_the_weights(rng, s):
    Phi, t = problems.regression_problem(rng, 30, 5)
    one, other = linear.fit_evidence(Phi, t), linear.fit_evidence(s * Phi, t)
    np.testing.assert_allclose(other.log_evidence, one.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(other.coef * s, one.coef, rtol=1e-6)
