"""The log marginal likelihood and its gradient: dense twins, autodiff, limits, memory, and what is no covariance.

Guards `bayessel.gp.marginal`, `bayessel.gp._inverse`.
"""

import pickle
import tracemalloc

import mpmath
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayessel import covariance as cov
from bayessel import gp
from bayessel.fit import Status
from bayessel.gp import _inverse
from tests.oracles import covariance as twins

NOISE = cov.Noise()


def problem(rng, n, m=3):
    X = rng.normal(size=(n, m))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


def near_start(covariance, rng, m=3):
    return covariance.start(m) + 0.3 * rng.normal(size=covariance.size(m))


@pytest.mark.parametrize("name", twins.TWINS)
def test_value_and_gradient_of_every_family(rng, name):
    """To 1e-10 of twins by elimination and complex steps, in one panel and in several."""
    covariance, twin = twins.TWINS[name][0] + NOISE, twins.TWINS[name][1]
    for n in (5, 67):
        X, t = problem(rng, n)
        theta = near_start(covariance, rng)
        theta[-1] = -1.0
        value, gradient = gp.log_marginal(theta, X, t, covariance, return_grad=True)
        expected, slope = twins.gradient(twin, theta, X, t)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10 * np.abs(slope).max())


OF_THREE_INPUTS = ("additive", "product", "mixed", "isotropic", "linear in one")


def expression(rng, depth):
    """A random covariance of three inputs and its twin: families on some inputs, in sums and products."""
    if depth == 0:
        name = rng.choice(
            [n for n in twins.TWINS if n not in ("additive", "product", "mixed", "isotropic", "linear in one")]
        )
        covariance, twin = twins.TWINS[name]
        columns = rng.permutation(3)[: rng.integers(1, 4)].tolist()
        return covariance.on(columns), lambda theta, X, Z: twin(theta, X[:, columns], Z[:, columns])
    (a, f), (b, g) = (expression(rng, int(rng.integers(depth))) for _ in range(2))
    k = a.size(3)
    if rng.random() < 0.5:
        return a + b, lambda theta, X, Z: f(theta[:k], X, Z) + g(theta[k:], X, Z)
    return a * b, lambda theta, X, Z: f(theta[:k], X, Z) * g(theta[k:], X, Z)


@pytest.mark.parametrize("seed", range(8))
def test_random_sums_and_products(seed):
    rng = np.random.default_rng(seed)
    covariance, twin = expression(rng, 3)
    covariance = covariance + NOISE
    X, t = problem(rng, 25)
    theta = covariance.start(3) + 0.2 * rng.normal(size=covariance.size(3))
    value, gradient = gp.log_marginal(theta, X, t, covariance, return_grad=True)
    expected, slope = twins.gradient(twin, theta, X, t)
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-10 * np.abs(slope).max())
    assert len(set(covariance.names(3))) == covariance.size(3)


def test_noise_alone(rng):
    X, t = problem(rng, 9)
    value, gradient = gp.log_marginal([np.log(0.3)], X, t, NOISE, return_grad=True)
    np.testing.assert_allclose(value, multivariate_normal(np.zeros(9), 0.3 * np.eye(9)).logpdf(t), rtol=1e-13)
    np.testing.assert_allclose(gradient, [0.5 * (t @ t / 0.3 - 9)], rtol=1e-12)


def dense(theta, X, t):
    """Of the standard covariance: log density of one Gaussian, and ½ tr((aaᵀ − Q⁻¹) ∂Q) with every ∂Q written out."""
    (v0, r2), w, (a0, a1) = np.exp(theta[:2]), np.exp(theta[2:-2]), np.exp(theta[-2:])
    D2 = (X[:, None] - X[None]) ** 2
    E = v0 * np.exp(-0.5 * D2 @ w)
    parts = [E, r2 * np.eye(len(X)), *(-0.5 * np.moveaxis(D2 * w, -1, 0) * E), np.full_like(E, a0), a1 * X @ X.T]
    Q = E + parts[1] + parts[-2] + parts[-1]
    inverse = np.linalg.inv(Q)
    a = inverse @ t
    gradient = [0.5 * np.sum((np.outer(a, a) - inverse) * part) for part in parts]
    return multivariate_normal(np.zeros(len(X)), Q).logpdf(t), np.array(gradient)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 128, 129, 200, 257, 300, 605])
def test_standard_at_every_size(rng, n):
    """Panels that are full and not, kept and made again; the inverse by halves and LAPACK's."""
    X, t = problem(rng, n, 2)
    theta = near_start(cov.Standard(), rng, 2)
    marginal = gp.Marginal(X, t)
    value, gradient = marginal.value_and_gradient(theta)
    expected, slope = dense(theta, X, t)
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-9 * np.abs(slope).max())
    assert marginal.value(theta) == value and marginal.status is Status.CONVERGED


def test_autodiff_agrees(rng):
    """PyTensor's gradient through its own Cholesky factor, to 1e-8."""
    import pytensor
    import pytensor.tensor as pt

    X, t = problem(rng, 40)
    theta = pt.dvector()
    w, v = pt.exp(theta[2:5]), pt.exp(theta)
    E = v[0] * pt.exp(-0.5 * (((X[:, None] - X[None]) ** 2) * w).sum(axis=-1))
    L = pt.linalg.cholesky(E + v[5] + v[6] * (X @ X.T) + v[1] * np.eye(40))
    z = pt.linalg.solve_triangular(L, t, lower=True)
    value = -0.5 * (z**2).sum() - pt.log(pt.diag(L)).sum() - 20 * np.log(2 * np.pi)
    compiled = pytensor.function([theta], [value, pytensor.grad(value, theta)], mode="FAST_COMPILE")
    marginal = gp.Marginal(X, t)
    for _ in range(5):
        at = near_start(cov.Standard(), rng)
        for ours, theirs in zip(marginal.value_and_gradient(at), compiled(at), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_central_differences_agree(rng):
    X, t = problem(rng, 90)
    for covariance in (cov.Standard(), cov.Matern52() * cov.Periodic(amplitude=False).on([1]) + NOISE):
        marginal, theta = gp.Marginal(X, t, covariance), near_start(covariance, rng)
        gradient = marginal.value_and_gradient(theta)[1]
        step = 1e-5 * np.eye(marginal.size)
        slope = [(marginal.value(theta + e) - marginal.value(theta - e)) / 2e-5 for e in step]
        np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("layout", ["C", "F", "reversed", "columns of a wider array", "float32 and integers"])
def test_layout_of_the_data_does_not_matter(rng, layout):
    X, t = problem(rng, 70)
    X, t = np.round(4 * X), np.round(4 * t)
    theta = near_start(cov.Standard(), rng)
    given = {
        "C": (X, t),
        "F": (np.asfortranarray(X), t),
        "reversed": (X[::-1].copy()[::-1], t[::-1].copy()[::-1]),
        "columns of a wider array": (np.hstack([X, X, X])[:, 3:6], np.c_[t, t][:, 1]),
        "float32 and integers": (X.astype(np.float32), t.astype(int)),
    }[layout]
    value, gradient = gp.log_marginal(theta, *given, return_grad=True)
    expected, slope = dense(theta, X, t)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9 * np.abs(slope).max())


def test_evaluations_leave_nothing_behind(rng):
    """The workspace is reused: the order of evaluations shows in no bit, and arrays handed out are not overwritten."""
    X, t = problem(rng, 150)
    marginal = gp.Marginal(X, t)
    a, b = (near_start(cov.Standard(), rng) for _ in range(2))
    value, gradient = marginal.value_and_gradient(a)
    kept, factor = gradient.copy(), marginal.factor(a)
    marginal.value(b)
    marginal.value_and_gradient(b + 1000.0)
    marginal.factor(b)
    again = marginal.value_and_gradient(a)
    np.testing.assert_array_equal(gradient, kept)
    np.testing.assert_array_equal(again[1], kept)
    assert again[0] == value == gp.Marginal(X, t).value(a)
    for x, y in zip(factor, marginal.factor(a), strict=True):
        np.testing.assert_array_equal(x, y)


def test_factor_is_that_of_q(rng):
    X, t = problem(rng, 130)
    theta = near_start(cov.Standard(), rng)
    L, a, log_det = gp.Marginal(X, t).factor(theta)
    Q = twins.standard(np.r_[theta], X, X) + np.exp(theta[1]) * np.eye(130)
    np.testing.assert_allclose(L @ L.T, Q, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(Q @ a, t, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(Q)[1], rtol=1e-11)
    assert (np.triu(L, 1) == 0.0).all() and L.flags.c_contiguous


def test_the_value_alone_needs_no_inverse(rng, monkeypatch):
    X, t = problem(rng, 20)
    marginal, theta = gp.Marginal(X, t), near_start(cov.Standard(), rng)
    expected = marginal.value_and_gradient(theta)[0]
    monkeypatch.setattr("bayessel.gp.marginal.invert", None)
    assert marginal.value(theta) == expected


@pytest.mark.parametrize("n", [1, 64, 65, 200, 511, 601])
def test_inverse_in_place(rng, n):
    """The upper triangle is the inverse, the lower one as it was: by halves and by LAPACK."""
    A = rng.normal(size=(n, n))
    Q = A @ A.T + n * np.eye(n)
    U = np.asfortranarray(np.linalg.cholesky(Q).T)
    below = rng.normal(size=(n, n))
    U[np.tril_indices(n, -1)] = below[np.tril_indices(n, -1)]
    _inverse.invert(U)
    np.testing.assert_allclose(np.triu(U), np.triu(np.linalg.inv(Q)), rtol=1e-9, atol=1e-13)
    np.testing.assert_array_equal(np.tril(U, -1), np.tril(below, -1))


def exact(theta, X, t):
    """Value and gradient of the standard covariance with 60 digits."""
    with mpmath.workdps(60):
        n, m = X.shape
        (v0, r2), a0, a1 = (mpmath.exp(x) for x in theta[:2]), *(mpmath.exp(x) for x in theta[-2:])
        w = [mpmath.exp(x) for x in theta[2:-2]]
        x = [[mpmath.mpf(float(v)) for v in row] for row in X]
        parts = [mpmath.zeros(n) for _ in theta]
        for p in range(n):
            for q in range(n):
                d2 = [(x[p][i] - x[q][i]) ** 2 for i in range(m)]
                E = v0 * mpmath.exp(-sum(a * b for a, b in zip(w, d2, strict=True)) / 2)
                parts[0][p, q], parts[1][p, q] = E, r2 if p == q else 0
                for i in range(m):
                    parts[2 + i][p, q] = -E * w[i] * d2[i] / 2
                parts[-2][p, q] = a0
                parts[-1][p, q] = a1 * sum(x[p][i] * x[q][i] for i in range(m))
        Q = parts[0] + parts[1] + parts[-2] + parts[-1]
        target = mpmath.matrix([mpmath.mpf(float(v)) for v in t])
        inverse = Q**-1
        a = inverse * target
        value = -(mpmath.log(mpmath.det(Q)) + (target.T * a)[0] + n * mpmath.log(2 * mpmath.pi)) / 2
        W = a * a.T - inverse
        slope = [sum(W[p, q] * part[p, q] for p in range(n) for q in range(n)) / 2 for part in parts]
        return float(value), np.array([float(s) for s in slope])


HARD = {
    "duplicate rows": lambda X, theta: (np.vstack([X[:4], X[:4]]), theta),
    "rows 1e-9 apart": lambda X, theta: (np.vstack([X[:4], X[:4] + 1e-9]), theta),
    "weights to nil": lambda X, theta: (X, np.r_[theta[:2], -80.0, -700.0, theta[4:]]),
    "weights to infinity": lambda X, theta: (X, np.r_[theta[:2], 80.0, 700.0, theta[4:]]),
    "one weight large": lambda X, theta: (X, np.r_[theta[:2], 11.0, theta[3:]]),
    "no signal": lambda X, theta: (X, np.r_[-700.0, theta[1:]]),
    "no plane": lambda X, theta: (X, np.r_[theta[:-2], -700.0, -740.0]),
    "rows far from the origin": lambda X, theta: (X + 1e4, np.r_[theta[:-2], -20.0, -20.0]),
    "one row": lambda X, theta: (X[:1], theta),
    "a constant input": lambda X, theta: (np.c_[X[:, 0], np.full(len(X), 3.0)], theta),
}


@pytest.mark.parametrize("name", HARD)
def test_edges_against_sixty_digits(rng, name):
    X, theta = HARD[name](rng.normal(size=(8, 2)), near_start(cov.Standard(), rng, 2))
    t = rng.normal(size=len(X))
    marginal = gp.Marginal(X, t)
    value, gradient = marginal.value_and_gradient(theta)
    expected, slope = exact(theta, X, t)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-8)
    assert marginal.status is Status.CONVERGED


def test_noise_of_1e_10(rng):
    """As many digits as the condition number leaves, or a status; with duplicates Q is singular to rounding."""
    X, theta = rng.normal(size=(8, 2)), cov.Standard().start(2)
    theta[1] = np.log(1e-10)
    t = rng.normal(size=8)
    value, gradient = gp.log_marginal(theta, X, t, return_grad=True)
    expected, slope = exact(theta, X, t)
    condition = np.linalg.cond(gp.Marginal(X, t).covariance.matrix(theta, X) + 1e-10 * np.eye(8))
    np.testing.assert_allclose(value, expected, rtol=1e-15 * condition)
    np.testing.assert_allclose(gradient, slope, rtol=1e-14 * condition, atol=1e-14 * condition * np.abs(slope).max())
    for scale in (1.0, 1e-8):
        both = gp.Marginal(np.vstack([X, X]), np.r_[t, t + scale], cov.Standard())
        value, gradient = both.value_and_gradient(np.r_[theta[0], np.log(1e-10 * scale), theta[2:]])
        if both.status is Status.CONVERGED:
            assert np.isfinite(value) and np.isfinite(gradient).all()
        else:
            assert value == -np.inf and not gradient.any()


def test_singular_is_a_status(rng):
    """Two rows alike and no noise to speak of: −∞, no gradient, and the next evaluation is unharmed."""
    X, t = np.ones((5, 2)), rng.normal(size=5)
    marginal = gp.Marginal(X, t, cov.SquaredExponential() + NOISE)
    singular = np.array([0.0, 0.0, 0.0, -60.0])
    value, gradient = marginal.value_and_gradient(singular)
    assert value == marginal.value(singular) == -np.inf and gradient.shape == (4,) and not gradient.any()
    assert marginal.status is Status.ILL_CONDITIONED
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        marginal.factor(singular)
    assert np.isfinite(marginal.value(np.zeros(4))) and marginal.status is Status.CONVERGED


@pytest.mark.parametrize("at", [710.0, 1e5, -1e5, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("which", [0, 1, 2, 4, 5])
def test_numbers_that_overflow_are_a_status(rng, at, which):
    """Warnings are errors here: none is given."""
    X, t = problem(rng, 70, 2)
    theta = cov.Standard().start(2)
    theta[which] = at
    marginal = gp.Marginal(X, t)
    value, gradient = marginal.value_and_gradient(theta)
    if at == -1e5:  # a parameter that is nil
        assert np.isfinite(value) and np.isfinite(gradient).all() and gradient[which] == 0.0
    else:
        assert value == -np.inf and not gradient.any() and marginal.status is Status.ILL_CONDITIONED


def test_memory_is_one_square_array(rng):
    """The first evaluation allocates n² numbers and panels, those after it next to nothing; no gradient is n×n."""
    n = 1000
    X, t = problem(rng, n, 8)
    marginal, theta = gp.Marginal(X, t), cov.Standard().start(8)
    tracemalloc.start()
    try:
        marginal.value_and_gradient(theta)
        first = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        marginal.value_and_gradient(theta)
        later = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert first < 1.4 * 8 * n * n and later < 0.05 * 8 * n * n


def test_a_pickle_is_the_data_alone(rng):
    X, t = problem(rng, 300)
    marginal, theta = gp.Marginal(X, t, cov.Matern32() + NOISE), np.zeros(5)
    value = marginal.value(theta)
    blob = pickle.dumps(marginal)
    assert len(blob) < 2 * X.nbytes and pickle.loads(blob).value(theta) == value


def test_log_marginal_at_the_door(rng):
    X, t = problem(rng, 6, 2)
    theta = cov.Standard().start(2)
    value = gp.log_marginal(theta, X, t)
    assert isinstance(value, float) and value == gp.log_marginal(list(theta), X, t, return_grad=True)[0]
    assert gp.Marginal(X, t).names == cov.Standard().names(2)
    for wrong, error, said in [
        (lambda: gp.log_marginal(theta[:-1], X, t), ValueError, r"6 entries \(log v0, log r2"),
        (lambda: gp.log_marginal(theta * np.nan, X, t), ValueError, "theta must be finite"),
        (lambda: gp.log_marginal(theta, X, t[:-1]), ValueError, "one value per row"),
        (lambda: gp.log_marginal(theta, X * np.nan, t), ValueError, "X must be finite"),
        (lambda: gp.log_marginal(theta, X[:0], t[:0]), ValueError, "at least one row"),
        (lambda: gp.log_marginal(theta, X, t, return_grad=1), TypeError, "return_grad"),
        (lambda: gp.log_marginal(theta, X, t, cov.Matern12), TypeError, r"write Matern12\(\)"),
        (lambda: gp.log_marginal(["a"] * 6, X, t), TypeError, "theta must be numeric"),
    ]:
        with pytest.raises(error, match=said):
            wrong()


@pytest.mark.slow
@pytest.mark.parametrize(("n", "bound"), [(256, 1.6), (1024, 1.4)])
def test_time_beside_lapack(rng, n, bound):
    """Value and gradient against dpotrf and dpotri alone; the bounds leave room for a busy machine."""
    from time import perf_counter

    from scipy.linalg import lapack

    X, t = problem(rng, n, 8)
    marginal, theta = gp.Marginal(X, t), cov.Standard().start(8)
    Q = np.asfortranarray(marginal.covariance.matrix(theta, X) + np.exp(theta[1]) * np.eye(n))
    room = Q.copy("F")
    times: dict[str, list[float]] = {"ours": [], "lapack": []}
    for _ in range(200 if n < 500 else 30):
        start = perf_counter()
        marginal.value_and_gradient(theta)
        times["ours"].append(perf_counter() - start)
        np.copyto(room, Q)
        start = perf_counter()
        lapack.dpotrf(room, lower=0, overwrite_a=1, clean=0)
        lapack.dpotri(room, lower=0, overwrite_c=1)
        times["lapack"].append(perf_counter() - start)
    assert min(times["ours"]) < bound * min(times["lapack"])
