"""Ridge regression: the tutorial's numbers, every local minimum of every criterion, and local penalties."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from bayessel import linear
from bayessel.linear import local_ridge
from tests import oracles, problems

CRITERIA = ("loo", "gcv", "uev", "fpe", "bic")
GRID = np.geomspace(1e-9, 1e5, 3000)


def curve(name: str, Phi: np.ndarray, t: np.ndarray, grid: np.ndarray = GRID) -> np.ndarray:
    """A criterion on a grid of lambda, through the singular vectors: P = U g U', g = lambda / (lambda + s^2)."""
    U, s, _ = np.linalg.svd(Phi)
    mu = np.zeros(len(t))
    mu[: len(s)] = s**2
    g = grid[:, None] / (grid[:, None] + mu)
    z, n = U.T @ t, len(t)
    S, gamma = g**2 @ z**2, n - g.sum(axis=1)
    if name == "loo":
        return np.mean(((g * z) @ U.T / (g @ (U**2).T)) ** 2, axis=1)
    return {
        "gcv": n * S / (n - gamma) ** 2,
        "uev": S / (n - gamma),
        "fpe": (n + gamma) / (n - gamma) * S / n,
        "bic": (n + (np.log(n) - 1) * gamma) / (n - gamma) * S / n,
    }[name]


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
        lams, heights = (np.array(c) for c in zip(*fit.minima, strict=True))
        for at in oracles.local_optima(values, -1):
            if not (np.abs(np.log(lams / GRID[at])) <= 2 * np.log(GRID[1] / GRID[0])).any():
                found.append(f"draw {seed}: minimum {values[at]:.6f} at {GRID[at]:.3e} not among {lams}")
        if list(heights) != sorted(heights) or not np.allclose((fit.value, fit.lam), (heights[0], lams[0]), rtol=1e-9):
            found.append(f"draw {seed}: not best first: {heights}, returned {fit.value}")
        if fit.value > values.min() * (1 + 1e-9):
            found.append(f"draw {seed}: {fit.value} at {fit.lam:.3e}, the grid has {values.min()}")
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
        assert np.sum(fit.lam / (fit.lam + s2)) >= 5, (seed, fit.lam, fit.status)  # tr P: a tenth of the rows


def test_the_reestimation_formula_is_a_fixed_point_at_every_minimum():
    """lambda = S tr(A^-1 - lambda A^-2) / (w'A^-1 w) x factor, with each criterion's own factor (A.10)."""
    _, Phi, t = problems.sin12x(3)
    n = len(t)
    for name in ("uev", "fpe", "gcv", "bic"):
        for lam, _ in linear.fit_ridge(Phi, t, criterion=name).minima:
            if not 1e-6 < lam < 1e3:
                continue  # the dense inverse below has no digits there
            A_inv = np.linalg.inv(Phi.T @ Phi + lam * np.eye(n))
            w = A_inv @ Phi.T @ t
            S = np.sum((t - Phi @ w) ** 2)
            gamma = np.trace(A_inv @ Phi.T @ Phi)
            factor = {
                "uev": 1 / (2 * (n - gamma)),
                "fpe": n / ((n - gamma) * (n + gamma)),
                "gcv": 1 / (n - gamma),
                "bic": n * np.log(n) / (2 * (n - gamma) * (n + (np.log(n) - 1) * gamma)),
            }[name]
            again = S * np.trace(A_inv - lam * A_inv @ A_inv) / (w @ A_inv @ w) * factor
            np.testing.assert_allclose(again, lam, rtol=1e-4, err_msg=name)


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
            lam, status, _ = linear.reestimate_lambda(Phi, t, start=float(GRID[k]) * 1.02)
            if status.name == "CONVERGED":
                np.testing.assert_allclose(np.log(lam / GRID[k]), 0, atol=2 * np.log(GRID[1] / GRID[0]))


# --- local penalties --------------------------------------------------------------------------------------------


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
    values = curve("gcv", Phi, t)
    start = GRID[min(oracles.local_optima(values, -1), key=lambda k: values[k])]
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


ODD = [range(90), pytest.param(range(90, 1400), marks=pytest.mark.slow)]


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seeds", ODD, ids=["90", "1310 more"])
def test_odd_problems_get_finite_fits(seeds, centre):
    """Warnings are errors here: nothing overflows or divides by zero on the way."""
    for seed in seeds:
        Phi, t = problems.odd_problem(seed)
        fits = [linear.fit_ridge(Phi, t, criterion=name, centre=centre) for name in CRITERIA]
        if seed % 5 == 2:
            fits.append(linear.fit_ridge(Phi, t, penalty="local", centre=centre))
        for fit in fits:
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
