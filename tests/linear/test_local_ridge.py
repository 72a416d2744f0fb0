"""One penalty per column: the analytic minimiser against brute force, the sweeps against dense ones.

Guards `bayessel.linear.local_ridge`, `bayessel.linear.several_outputs`.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from bayessel import linear
from bayessel.fit import Status
from bayessel.linear import local_ridge
from bayessel.linear.several_outputs import SeveralOutputs
from tests.oracles import linear as oracles
from tests.problems import linear as problems


def gcv(Phi: np.ndarray, t: np.ndarray, lam: np.ndarray) -> float:
    P = oracles.projection(Phi, lam)
    return float(len(t) * np.sum((P @ t) ** 2) / np.trace(P) ** 2)


def gcv_along(Phi: np.ndarray, t: np.ndarray, lam: np.ndarray, j: int):
    """GCV of lambda_j alone, from dense P_j and h_j: P = P_j - P_j h h' P_j / (lambda_j + h'P_j h)."""
    without = lam.copy()
    without[j] = np.inf
    Pj, h = oracles.projection(Phi, without), Phi[:, j]
    Pjt, Pjh = Pj @ t, Pj @ h

    def value(lam_j: float) -> float:
        delta = lam_j + h @ Pjh
        r = Pjt - Pjh * (Pjh @ t) / delta
        return float(len(t) * r @ r / (np.trace(Pj) - Pjh @ Pjh / delta) ** 2)

    return value, (Pj, h)


def brute_force(value) -> tuple[float, float]:
    """Best lambda_j on [0, inf] and the value there: a log grid refined by golden section, and both ends."""
    grid = np.geomspace(1e-10, 1e10, 400)
    sampled = [value(x) for x in grid]
    k = int(np.argmin(sampled))
    bounds = np.log([grid[max(k - 1, 0)], grid[min(k + 1, 399)]])
    inner = minimize_scalar(lambda u: value(np.exp(u)), bounds=bounds, method="bounded", options={"xatol": 1e-10})
    choices = [(float(inner.fun), float(np.exp(inner.x))), (value(0.0), 0.0), (value(1e300), np.inf)]
    best, at = min(choices)
    return at, best


def local_problem(seed: int):
    rng = np.random.default_rng([7, seed])
    n, m = int(rng.integers(6, 25)), int(rng.integers(2, 12))
    Phi, t = problems.regression_problem(rng, n, m, noise=float(10 ** rng.uniform(-1.5, 1)))
    lam = 10 ** rng.uniform(-2, 2, m)
    if rng.random() < 0.3:
        lam[rng.integers(m)] = np.inf
    return Phi, t, lam, int(rng.integers(m))


def coefficients(Pj: np.ndarray, h: np.ndarray, t: np.ndarray) -> dict[str, float]:
    """a, b, c, eta, xi and h'P_j h as the appendix writes them."""
    return {
        "a": t @ Pj @ Pj @ t,
        "b": (t @ Pj @ Pj @ h) * (t @ Pj @ h),
        "c": (h @ Pj @ Pj @ h) * (t @ Pj @ h) ** 2,
        "eta": np.trace(Pj),
        "xi": h @ Pj @ Pj @ h,
        "hph": h @ Pj @ h,
    }


def test_the_analytic_minimiser_is_the_brute_force_one():
    ends = {"zero": 0, "infinity": 0, "between": 0}
    for seed in range(200):
        Phi, t, lam, j = local_problem(seed)
        value, (Pj, h) = gcv_along(Phi, t, lam, j)
        at, best = brute_force(value)
        got = local_ridge.best_penalty(**coefficients(Pj, h, t))
        reached = value(1e300 if np.isinf(got) else got)
        assert reached <= best * (1 + 1e-10), (seed, got, at, reached, best)
        if np.isinf(at) or at == 0:
            ends["infinity" if at else "zero"] += 1
            if value(0.0) != value(1e300):
                assert got == at, (seed, got, at)
        else:
            ends["between"] += 1
            np.testing.assert_allclose(got, at, rtol=1e-3, err_msg=str(seed))
    assert min(ends.values()) >= 5, ends  # the problems exercise all three cases


def test_a_wrong_sign_in_the_minimiser_is_seen():
    """Control: with the test of b eta against a xi turned round, some of the 200 problems must complain."""
    worse = 0
    for seed in range(200):
        Phi, t, lam, j = local_problem(seed)
        value, (Pj, h) = gcv_along(Phi, t, lam, j)
        k = coefficients(Pj, h, t)
        star = (k["c"] * k["eta"] - k["b"] * k["xi"]) / (k["b"] * k["eta"] - k["a"] * k["xi"]) - k["hph"]
        wrong = star if star >= 0 else (0.0 if k["a"] * k["xi"] >= k["b"] * k["eta"] else 1e300)
        worse += value(wrong) > brute_force(value)[1] * (1 + 1e-10)
    assert worse > 20


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_local_ridge_ends_where_no_single_penalty_helps(seed, centre):
    Phi, t, *_ = local_problem(seed)
    fit = linear.fit_ridge(Phi, t, penalty="local", centre=centre)
    lam = np.asarray(fit.lam)
    if centre:  # the free mean is a column without penalty
        Phi, lam = np.column_stack([Phi, np.ones(len(t))]), np.append(lam, 0.0)
    np.testing.assert_allclose(fit.value, gcv(Phi, t, lam), rtol=1e-8)
    for j in range(len(fit.lam)):
        best = brute_force(gcv_along(Phi, t, lam, j)[0])[1]
        assert best > fit.value * (1 - 1e-4), (j, best, fit.value)
    assert list(fit.basis) == list(np.flatnonzero(np.isfinite(fit.lam)))
    assert np.all(fit.coef[np.isinf(fit.lam)] == 0)
    np.testing.assert_allclose(fit.coef, oracles.ridge_weights(Phi, t, lam)[: len(fit.coef)], rtol=1e-6, atol=1e-9)


def local_against_global(draws: range) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """GCV ratio, number pruned, and the ratio of true errors, over draws of the sin(12x) example."""
    x = np.linspace(0, 1, 250)[:, None]
    truth = np.sin(12 * x[:, 0])
    ratios, pruned, errors = [], [], []
    for seed in draws:
        X, Phi, t = problems.sin12x(seed)
        new = oracles.radial("gaussian", x, X, 0.05)
        one = linear.fit_ridge(Phi, t)
        many = linear.fit_ridge(Phi, t, penalty="local")
        ratios.append(many.value / one.value)
        pruned.append(int(np.isinf(many.lam).sum()))
        errors.append(np.sqrt(np.mean((new @ many.coef - truth) ** 2) / np.mean((new @ one.coef - truth) ** 2)))
    return np.array(ratios), np.array(pruned), np.array(errors)


def dense_sweeps(Phi: np.ndarray, t: np.ndarray, start: float) -> tuple[float, int]:
    """Local ridge with every P_j from its own QR of [Phi; sqrt(Lambda)]: GCV reached, columns pruned."""

    def projection(lam: np.ndarray) -> np.ndarray:
        keep = np.isfinite(lam)
        Q = np.linalg.qr(np.vstack([Phi[:, keep], np.diag(np.sqrt(lam[keep]))]))[0][: len(Phi)]
        return np.eye(len(Phi)) - Q @ Q.T

    lam, before = np.full(Phi.shape[1], start), np.inf
    for _ in range(60):
        for j in range(len(lam)):
            without = lam.copy()
            without[j] = np.inf
            lam[j] = local_ridge.best_penalty(**coefficients(projection(without), Phi[:, j], t))
        P = projection(lam)
        value = len(t) * np.sum((P @ t) ** 2) / np.trace(P) ** 2
        if value > before * (1 - 1e-4):
            break
        before = value
    return float(value), int(np.isinf(lam).sum())


@pytest.mark.parametrize("seed", [4, 16, 17, 19, 22, 28])
def test_local_ridge_reaches_what_dense_sweeps_reach(seed):
    _, Phi, t = problems.sin12x(seed)
    grid = np.geomspace(1e-9, 1e5, 1000)
    values = oracles.criterion_curve("gcv", Phi, t, grid)
    start = grid[min(oracles.local_optima(values, -1), key=lambda k: values[k])]
    reached, _ = dense_sweeps(Phi, t, start)
    assert linear.fit_ridge(Phi, t, penalty="local").value <= 1.03 * reached
    assert linear.fit_ridge(Phi, t, penalty="local", start=start).value <= 1.03 * reached


@pytest.mark.parametrize("draws", [range(8), pytest.param(range(30), marks=pytest.mark.slow)], ids=["8", "30"])
def test_local_ridge_on_the_tutorial_example(draws):
    """The tutorial: GCV 0.016 -> 0.009 with 18 of 50 pruned; over draws 0.5-0.8 and 15-38; true error either way."""
    ratios, pruned, errors = local_against_global(draws)
    assert ratios.min() >= 0.5
    assert ratios.max() <= 0.8
    assert pruned.min() >= 15
    assert pruned.max() <= 38
    assert 0 < np.mean(errors < 1) < 1


ODD = [range(2, 100, 5), pytest.param(range(2, 1400, 5), marks=pytest.mark.slow)]


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seeds", ODD, ids=["20", "280"])
def test_odd_problems_get_finite_fits(seeds, centre):
    """Warnings are errors here: nothing overflows or divides by zero on the way."""
    for seed in seeds:
        Phi, t = problems.odd_problem(seed)
        fit = linear.fit_ridge(Phi, t, penalty="local", centre=centre)
        assert np.isfinite(fit.coef).all(), seed
        assert np.isfinite([fit.intercept, fit.gamma]).all(), seed
        assert fit.noise_std > 0, seed


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seed", [187, 352, 592, 712, 1057, 1072])
def test_local_ridge_of_dependent_columns(seed, centre):
    Phi, t = problems.odd_problem(seed)
    fit = linear.fit_ridge(Phi, t, penalty="local", centre=centre)
    assert np.isfinite(fit.coef).all()
    assert fit.value <= linear.fit_ridge(Phi, t, centre=centre).value * (1 + 1e-9)


def test_a_penalty_of_zero_leaves_no_evidence(rng):
    """The evidence of a flat prior is what one says its width is: none is reported, and the notes say why."""
    Phi, t = problems.regression_problem(rng, 30, 4)
    free = linear.fit_ridge(Phi, t, penalty="local", start=[0.0, 1.0, 1.0, 1.0], max_sweeps=1)
    assert (free.lam == 0.0).any() == (free.evidence is None) == (Status.IMPROPER_PRIOR in free.notes)
    state = linear.RidgeState(Phi, t, [0.0, 1.0, 1.0, 1.0])
    fit = state.fit(2.0)
    assert fit.evidence is None and np.isnan(fit.log_evidence) and fit.status is Status.IMPROPER_PRIOR
    assert np.isnan(state.log_evidence(2.0)) and np.isnan(linear.posterior(Phi, t, [0.0, 1, 1, 1], 2.0).log_evidence)
    full = linear.fit_ridge(Phi, t)
    assert full.evidence is not None and SeveralOutputs((full, full)).log_evidence == 2.0 * full.log_evidence
    improper = replace(full, evidence=None)
    assert all(SeveralOutputs(parts).evidence is None for parts in ((full, improper), (improper, full)))


@pytest.mark.parametrize("n", [2, 5])
def test_the_noise_is_as_large_as_the_target_where_the_weights_take_every_row(n):
    """S/(N - gamma) is rounding over rounding there: the mean square of the target stands for it."""
    t = np.arange(1.0, n + 1.0)
    fit = linear.fit_ridge(np.eye(n), t, penalty="local", start=1e-9)
    assert fit.gamma > n - 1e-6 and Status.TOO_FEW_ROWS in fit.notes
    np.testing.assert_allclose(fit.noise_std, np.sqrt(np.mean(t**2)), rtol=1e-12)


def test_several_outputs_are_as_sound_as_the_worst_of_them(rng):
    Phi, t = problems.regression_problem(rng, 30, 3)
    good, flat = (linear.fit_evidence(Phi, target, centre=True) for target in (t, np.full(30, 2.0)))
    assert good.status is not flat.status is Status.CONSTANT_TARGET
    for parts in ((good, flat), (flat, good)):
        both = SeveralOutputs(parts)
        assert both.status is Status.CONSTANT_TARGET and set(both.notes) == {*good.notes, *flat.notes}


@pytest.mark.parametrize("seed", [28, 159, 319, 363])
def test_the_penalties_reported_are_those_of_the_lowest_value_seen(seed):
    """Sweeps over nearly equal columns rise now and then, by rounding: what they rose to is not what is reported."""
    rng = np.random.default_rng(seed)
    x, centres = np.sort(rng.uniform(-1, 1, 13)), rng.uniform(-1, 1, 5)
    Phi = np.exp(-(((x[:, None] - centres) / 3.0) ** 2))
    Phi = np.column_stack([Phi, Phi[:, :2] + 1e-6 * rng.normal(size=(13, 2))])
    t = np.sin(4 * x) + 0.3 * rng.normal(size=13)
    fit = linear.fit_ridge(Phi, t, penalty="local", start=1e-9)
    np.testing.assert_allclose(fit.value, min(entry["value"] for entry in fit.history), rtol=1e-5)


def test_a_column_of_zeros_without_a_penalty_is_left_out():
    """Its triangle is zero: no ratio to take, and no warning of one."""
    fit = linear.fit_ridge(np.ones((5, 1)), np.arange(5.0), penalty="local", centre=True, start=0.0)
    assert not len(fit.basis)
    np.testing.assert_allclose(fit.intercept, 2.0)


def test_a_remark_stands_once():
    notes = linear.fit_ridge(np.ones((1, 1)), np.ones(1), centre=True).notes
    assert len(notes) == len(set(notes))
