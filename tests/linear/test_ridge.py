"""Ridge regression: the tutorial's numbers, every local minimum of every criterion, and local penalties.

Guards `bayessel.linear.ridge`, `bayessel.linear.ridge_criteria`, `bayessel.linear.spectrum`, `bayessel._formulas`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel import linear
from tests.oracles import linear as oracles
from tests.problems import linear as problems

CRITERIA = ("loo", "gcv", "uev", "fpe", "bic")
GRID = np.geomspace(1e-9, 1e5, 3000)


def curve(name: str, Phi: np.ndarray, t: np.ndarray, grid: np.ndarray = GRID) -> np.ndarray:
    return oracles.criterion_curve(name, Phi, t, grid)


# --- the line example -------------------------------------------------------------------------------------------

LINE = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
LINE_T = np.array([1.1, 1.8, 3.1])
LINE_P = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]]) / 6


def test_the_oracles_know_the_line_example():
    np.testing.assert_allclose(oracles.ridge_weights(LINE, LINE_T, 0.0), [0, 1], atol=1e-13)
    np.testing.assert_allclose(oracles.projection(LINE, 0.0), LINE_P, atol=1e-14)


def test_the_line_example():
    """Three points, two parameters: S = 0.06, one degree of freedom left."""
    got = linear.criteria(LINE, LINE_T, 0.0)
    P_t = LINE_P @ LINE_T
    want = {
        "gamma": 2.0,
        "uev": 0.06,
        "gcv": 3 * 0.06,
        "fpe": 5 * 0.06 / 3,
        "bic": (3 + (np.log(3) - 1) * 2) * 0.06 / 3,
        "loo": np.mean((P_t / np.diag(LINE_P)) ** 2),
    }
    for key, value in want.items():
        np.testing.assert_allclose(got[key], value, rtol=1e-11, err_msg=key)


# --- criteria ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_the_order_of_the_criteria(seed):
    """UEV <= FPE <= GCV always; FPE <= BIC from ln N = 2 on; GCV <= BIC as long as gamma <= N (ln N - 2)/(ln N - 1)."""
    rng = np.random.default_rng([5, seed])
    n, m = int(rng.integers(3, 60)), int(rng.integers(1, 40))
    Phi, t = problems.regression_problem(rng, n, m)
    c = linear.criteria(Phi, t, 10 ** rng.uniform(-3, 3))
    slack = 1 + 1e-12
    assert c["uev"] <= c["fpe"] * slack
    assert c["fpe"] <= c["gcv"] * slack
    if n >= 8:
        log_n = np.log(n)
        assert c["fpe"] <= c["bic"] * slack
        limit = n * (log_n - 2) / (log_n - 1)
        assert (c["gcv"] <= c["bic"] * slack) == (c["gamma"] <= limit * slack)


def test_gcv_passes_bic_when_nearly_every_parameter_is_used(rng):
    Phi, t = problems.regression_problem(rng, 50, 45)
    c = linear.criteria(Phi, t, 1e-6)
    assert c["gcv"] > c["bic"]


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("shape", [(20, 6), (6, 20), (12, 12)])
def test_the_value_at_the_minimum_is_the_criterion_there(rng, name, shape):
    Phi, t = problems.regression_problem(rng, *shape, noise=1.0)
    fit = linear.fit_ridge(Phi, t, criterion=name)
    twin = oracles.exact_criteria(Phi, t, fit.lam)
    np.testing.assert_allclose(fit.value, twin[name], rtol=1e-8)
    for key in fit.criteria.keys() | {"gcv", "uev", "fpe", "bic", "gamma"}:
        value = twin[key]
        np.testing.assert_allclose(fit.criteria[key], value, rtol=1e-7, err_msg=key)
    np.testing.assert_allclose(fit.gamma, twin["gamma"], rtol=1e-8)
    weights = [float(w) for w in oracles.exact(Phi, t, fit.lam, 1.0).mean]
    np.testing.assert_allclose(fit.coef, weights, rtol=1e-6, atol=1e-9)


def lost_minima(draws: range, name: str) -> list[str]:
    found = []
    for seed in draws:
        _, Phi, t = problems.sin12x(seed)
        fit = linear.fit_ridge(Phi, t, criterion=name)
        values = curve(name, Phi, t)
        lams, heights = (np.array(c) for c in zip(*fit.optima, strict=True))
        for at in oracles.local_optima(values, -1):
            if not (np.abs(np.log(lams / GRID[at])) <= 2 * np.log(GRID[1] / GRID[0])).any():
                found.append(f"draw {seed}: minimum {values[at]:.6f} at {GRID[at]:.3e} not among {lams}")
        # best first; minima that leave the noise too few rows (tr P < N / 10, or N / 4) come after all others
        needed = len(t) / (10 if name in ("gcv", "loo") else 4)
        s2 = np.linalg.svd(Phi, compute_uv=False) ** 2
        left = (lams[:, None] / (lams[:, None] + s2)).sum(axis=1) >= needed
        order = np.lexsort((heights, ~left))
        if list(order) != list(range(len(lams))) or not np.allclose((fit.value, fit.lam), (heights[0], lams[0]), 1e-9):
            found.append(f"draw {seed}: not best first: {heights}, {left}, returned {fit.value}")
        rows = (GRID[:, None] / (GRID[:, None] + s2)).sum(axis=1)
        allowed = min(values[at] for at in oracles.local_optima(values, -1) if rows[at] >= needed)
        if fit.value > allowed * (1 + 1e-9):
            found.append(f"draw {seed}: {fit.value} at {fit.lam:.3e}, the grid has {allowed}")
    return found


@pytest.mark.parametrize("name", CRITERIA)
def test_every_minimum_of_a_grid_is_found(name):
    assert lost_minima(range(30), name) == []


@pytest.mark.parametrize("width", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", ["gcv", "loo"])
def test_wide_kernels_find_their_minimum_at_tiny_penalties(name, width):
    """A few smooth directions carry the target, the rest are rounding: lambda may have to be 1e-20 and less."""
    for seed in range(3):
        X, _, t = problems.sin12x(seed, n=60)
        Phi = oracles.radial("gaussian", X, X, width)
        s = np.linalg.svd(Phi, compute_uv=False)
        grid = np.geomspace(1e4 * (60 * problems.EPS * s[0]) ** 2, 1e3 * s[0] ** 2, 600)
        left = 60 - (s**2 / (s**2 + grid[:, None])).sum(axis=1)  # tr P: rows not used up
        values = curve(name, Phi, t, grid)[left > 6]
        fit = linear.fit_ridge(Phi, t, criterion=name)
        # so far down two ways of rounding differ by eps s_max / sqrt(lambda), a few per cent
        assert fit.value <= 1.1 * values.min(), (seed, fit.lam, fit.value, values.min())


def test_the_draws_do_have_several_minima():
    """Control: without second and third minima the test above would show nothing."""
    counts = [len(oracles.local_optima(curve("gcv", *problems.sin12x(s)[1:]), -1)) for s in range(30)]
    assert sum(c >= 2 for c in counts) >= 10
    assert sum(c >= 3 for c in counts) >= 2


@pytest.mark.parametrize("name", CRITERIA)
def test_the_limit_of_no_penalty_is_not_an_answer(name):
    """With N <= M UEV, FPE and BIC vanish as lambda -> 0 and GCV turns to rounding: some rows must be left."""
    for seed in range(30):
        _, Phi, t = problems.sin12x(seed)
        fit = linear.fit_ridge(Phi, t, criterion=name)
        s2 = np.linalg.svd(Phi, compute_uv=False) ** 2
        left = np.sum(fit.lam / (fit.lam + s2))  # tr P of 50 rows
        assert left >= (5 if name in ("gcv", "loo") else 12.5), (seed, fit.lam, fit.status)
        assert fit.leaves_noise


def factors(n: int, gamma: float) -> dict[str, float]:
    """Half of h'/h of each criterion."""
    return {
        "uev": 1 / (2 * (n - gamma)),
        "fpe": n / ((n - gamma) * (n + gamma)),
        "gcv": 1 / (n - gamma),
        "bic": n * np.log(n) / (2 * (n - gamma) * (n + (np.log(n) - 1) * gamma)),
    }


def test_the_reestimation_formula_is_a_fixed_point_at_every_minimum():
    """lambda = S tr(A^-1 - lambda A^-2) / (w'A^-1 w) x factor, with each criterion's own factor (A.10)."""
    _, Phi, t = problems.sin12x(3)
    n = len(t)
    for name in ("uev", "fpe", "gcv", "bic"):
        for lam, _ in linear.fit_ridge(Phi, t, criterion=name).optima:
            if not 1e-6 < lam < 1e3:
                continue  # the dense inverse below has no digits there
            A_inv = np.linalg.inv(Phi.T @ Phi + lam * np.eye(n))
            w = A_inv @ Phi.T @ t
            S = np.sum((t - Phi @ w) ** 2)
            gamma = np.trace(A_inv @ Phi.T @ Phi)
            again = S * np.trace(A_inv - lam * A_inv @ A_inv) / (w @ A_inv @ w) * factors(n, gamma)[name]
            np.testing.assert_allclose(again, lam, rtol=1e-4, err_msg=name)
            step, *_ = linear.ridge.reestimate_lambda(Phi, t, criterion=name, start=1.5 * lam, max_steps=1)
            A_inv = np.linalg.inv(Phi.T @ Phi + 1.5 * lam * np.eye(n))
            w = A_inv @ Phi.T @ t
            S, gamma = np.sum((t - Phi @ w) ** 2), np.trace(A_inv @ Phi.T @ Phi)
            again = S * np.trace(A_inv - 1.5 * lam * A_inv @ A_inv) / (w @ A_inv @ w) * factors(n, gamma)[name]
            np.testing.assert_allclose(step, again, rtol=1e-4, err_msg=name)


def test_centring_is_a_free_bias(rng):
    Phi, t = problems.regression_problem(rng, 25, 6, noise=1.0)
    plain, moved = (linear.fit_ridge(Phi, t + offset, centre=True) for offset in (0.0, 1e6))
    np.testing.assert_allclose(moved.coef, plain.coef, rtol=1e-6)
    np.testing.assert_allclose(moved.intercept - plain.intercept, 1e6, rtol=1e-13)
    np.testing.assert_allclose(moved.value, plain.value, rtol=1e-6)
    with_bias = oracles.criteria(np.column_stack([Phi, np.ones(25)]), t, np.append(np.full(6, plain.lam), 0.0))
    np.testing.assert_allclose(plain.value, with_bias["gcv"], rtol=1e-8)


def test_one_factorisation_serves_every_criterion_and_the_evidence(rng):
    Phi, t = problems.regression_problem(rng, 30, 6, noise=1.0)
    for centre in (False, True):
        shared = linear.Spectrum.of(Phi, t, centre=centre)
        for name in ("gcv", "uev", "fpe", "bic"):
            own = linear.fit_ridge(Phi, t, criterion=name, centre=centre)
            assert linear.fit_ridge(shared, criterion=name).value == pytest.approx(own.value, rel=1e-12)
        own = linear.fit_evidence(Phi, t, centre=centre)
        assert linear.fit_evidence(shared).log_evidence == pytest.approx(own.log_evidence, rel=1e-12)


def test_reestimation_from_two_starts_ends_in_two_minima():
    """The tutorial's own warning: where there are several minima the fixed point finds the one next to its start."""
    for seed in range(30):
        _, Phi, t = problems.sin12x(seed)
        values = curve("gcv", Phi, t)
        at = [k for k in oracles.local_optima(values, -1) if 1e-7 < GRID[k] < 10]
        for k in at:
            lam, status, _ = linear.ridge.reestimate_lambda(Phi, t, start=float(GRID[k]) * 1.02)
            if status.name == "CONVERGED":
                np.testing.assert_allclose(np.log(lam / GRID[k]), 0, atol=2 * np.log(GRID[1] / GRID[0]))


ODD = [range(90), pytest.param(range(90, 1400), marks=pytest.mark.slow)]


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seeds", ODD, ids=["90", "1310 more"])
def test_odd_problems_get_finite_fits(seeds, centre):
    """Warnings are errors here: nothing overflows or divides by zero on the way."""
    for seed in seeds:
        Phi, t = problems.odd_problem(seed)
        fits = [linear.fit_ridge(Phi, t, criterion=name, centre=centre) for name in CRITERIA]
        for fit in fits:
            assert np.isfinite(fit.coef).all(), seed
            assert np.isfinite([fit.intercept, fit.gamma]).all(), seed
            assert fit.noise_std > 0, seed


@pytest.mark.parametrize("criterion", ["gcv", "uev", "fpe", "bic"])
def test_reestimation_of_a_target_without_residual_ends_at_a_bound(rng, criterion):
    """No residual, no next penalty: zero over something, whose logarithm is not asked for."""
    Phi = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for start in (1e-250, 1e-158, 1e-150):
        lam, status, _ = linear.ridge.reestimate_lambda(Phi, [1.0, 2.0, 3.0], criterion=criterion, start=start)
        assert lam > 0.0 and status is bs.Status.AT_BOUND
