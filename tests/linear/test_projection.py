"""Projection of a full model's posterior on few functions, against least squares and divergences done by hand.

Guards `bayessel.linear.projection`.
"""

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import bayessel as bs
from bayessel.fit import Status
from bayessel.linear import project
from bayessel.linear.columns.dictionary import Columns


def problem(rng, n=25, p=12, rank=4):
    F = rng.normal(size=(n, p)) * np.exp(rng.normal(size=p)) + 0.3 * rng.normal(size=(n, 1))
    A = 0.4 * rng.normal(size=(n, rank))
    return F, F[:, :5] @ rng.normal(size=5) + 0.3 * rng.normal(size=n), A, float(np.exp(0.3 * rng.normal()))


def kl_normal(m0, s0, m1, s1):
    return np.log(s1 / s0) + (s0**2 + (m0 - m1) ** 2) / (2 * s1**2) - 0.5


def by_hand(H, mu, A, sigma):
    """Smallest mean divergence over functions that have this mean and covariance, and the noise that attains it."""
    spread = np.sqrt(A.shape[1]) * A.T
    functions = np.concatenate([mu + spread, mu - spread]) if A.shape[1] else mu[None]
    near = np.array([H @ np.linalg.lstsq(H, f, rcond=None)[0] if H.shape[1] else 0.0 * f for f in functions])

    def mean_kl(log_s):
        return kl_normal(functions, sigma, near, np.exp(log_s)).sum(axis=1).mean()

    best = minimize_scalar(mean_kl, bracket=(np.log(sigma), np.log(sigma) + 1.0), tol=1e-12)
    return best.fun, np.exp(best.x)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("rank", [0, 4])
def test_every_step_is_the_best_of_all(rng, centre, rank):
    for _ in range(5):
        F, mu, A, sigma = problem(rng, rank=rank)
        fit = project(F, mu, sigma, A @ A.T if rank else None, size=6, centre=centre)
        H = np.ones((len(F), int(centre)))
        for k, j in enumerate(fit.order):
            at, noise = by_hand(H, mu, A, sigma)
            assert fit.divergence[k] == pytest.approx(at, rel=1e-8)
            assert fit.history[k]["noise_std"] == pytest.approx(noise, rel=1e-6)
            every = {
                i: by_hand(np.column_stack([H, F[:, i]]), mu, A, sigma)[0] for i in set(range(12)) - set(fit.order[:k])
            }
            assert min(every, key=every.get) == j
            H = np.column_stack([H, F[:, j]])
        assert fit.divergence[-1] == pytest.approx(by_hand(H, mu, A, sigma)[0], rel=1e-8)
        inverse = np.linalg.pinv(H)
        weights = inverse @ mu
        np.testing.assert_allclose(fit.coef, weights[int(centre) :], rtol=1e-9)
        assert fit.intercept == pytest.approx(weights[0] if centre else 0.0)
        cov = inverse @ A @ A.T @ inverse.T
        np.testing.assert_allclose(
            fit.coef_cov, cov[int(centre) :, int(centre) :], atol=1e-9 * np.abs(cov).max(initial=1.0)
        )
        there = fit.predict(F)
        mean, std = there.mean, there.std
        np.testing.assert_allclose(mean, H @ weights, rtol=1e-9)
        np.testing.assert_allclose(std**2, np.diag(H @ cov @ H.T) + fit.noise_std**2, rtol=1e-9)
        np.testing.assert_array_equal(fit.predict(F[:, fit.order]).mean, mean)


def test_weights_and_noise_minimise_the_divergence_together(rng):
    F, mu, _, sigma = problem(rng)
    fit = project(F, mu, sigma, size=2)

    def kl(parameters):
        return kl_normal(mu, sigma, F[:, fit.order] @ parameters[:2], np.exp(parameters[2])).sum()

    best = minimize(kl, np.append(fit.coef + 0.1, 0.0), tol=1e-10)
    np.testing.assert_allclose(best.x, np.append(fit.coef, np.log(fit.noise_std)), atol=1e-4)
    assert best.fun == pytest.approx(fit.divergence[-1], rel=1e-8)


def test_a_prefix_is_the_smaller_projection(rng):
    F, mu, A, sigma = problem(rng)
    fit, small = (project(F, mu, sigma, A @ A.T, size=k, centre=True) for k in (6, 3))
    part = fit.at(3)
    for name in ("order", "coef", "coef_cov", "intercept", "noise_std", "divergence"):
        np.testing.assert_allclose(getattr(part, name), getattr(small, name), rtol=1e-12)
    for name in ("mean", "std"):
        np.testing.assert_allclose(getattr(part.predict(F), name), getattr(small.predict(F), name))
    empty = fit.at(0)
    assert empty.n_basis == 0
    mean, std = empty.predict(F).mean, empty.predict(F).std
    np.testing.assert_allclose(mean, mu.mean())
    assert (std > empty.noise_std).all()  # the bias is not known exactly
    with pytest.raises(ValueError, match="at most 6"):
        fit.at(7)


def test_units_and_storage_do_not_matter(rng):
    F, mu, A, sigma = problem(rng)
    fit = project(F, mu, sigma, A @ A.T, size=5)
    scale = np.exp(5 * rng.normal(size=12))
    other = project(np.asfortranarray(F * scale), 1e3 * mu, 1e3 * sigma, 1e6 * A @ A.T, size=5)
    np.testing.assert_array_equal(other.order, fit.order)
    np.testing.assert_allclose(other.divergence, fit.divergence, rtol=1e-9)
    np.testing.assert_allclose(other.coef * scale[fit.order], 1e3 * fit.coef, rtol=1e-9)
    X = rng.uniform(-3, 3, (40, 1))
    D = bs.RBFDictionary(X, 0.7, bias=False)
    mean = np.sin(2 * X[:, 0])
    lazy = project(bs.basis.LazyDesign(D, X), mean, 0.1)
    stored = project(D.design(X), mean, 0.1)
    np.testing.assert_array_equal(lazy.order, stored.order)
    np.testing.assert_allclose(lazy.coef, stored.coef, rtol=1e-8)


def inner(a, b):
    return mp.fsum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(("width", "bend"), [(0.5, 1.0), (3.0, 1.0), (20.0, 1.0), (5.0, 0.003)])
def test_wide_functions(width, bend):
    """Columns that agree to many digits, against Gram and Schmidt with fifty."""
    x = np.linspace(-3, 3, 24)
    F = bs.RBFDictionary(x[:, None], width, bias=False).design(x[:, None])
    mean = np.cos(bend * x**2)
    fit = project(F, mean, 1e-3, size=15)
    with mp.workdps(50):
        outside, left = [[mp.mpf(v) for v in f] for f in F.T.tolist()], [mp.mpf(v) for v in mean.tolist()]
        for k in range(fit.n_basis + 1):
            assert fit.divergence[k] == pytest.approx(float(12 * mp.log(1 + inner(left, left) / 24e-6)), rel=1e-5)
            if k == fit.n_basis:
                break
            length = [mp.sqrt(inner(f, f)) for f in outside]
            fair = [size > 1.1e-10 * np.linalg.norm(f) for size, f in zip(length, F.T, strict=True)]
            gains = [
                (inner(f, left) / max(size, mp.mpf("1e-40"))) ** 2 for f, size in zip(outside, length, strict=True)
            ]
            j = fit.order[k]
            assert gains[j] > 0.999 * max((g for g, ok in zip(gains, fair, strict=True) if ok), default=0)
            q = [v / length[j] for v in outside[j]]
            along = [inner(f, q) for f in [*outside, left]]
            *outside, left = (
                [v - a * w for v, w in zip(f, q, strict=True)] for f, a in zip([*outside, left], along, strict=True)
            )
    assert (np.diff(fit.divergence) <= 0.0).all()
    np.testing.assert_allclose(fit.predict(F).mean, F[:, fit.order] @ fit.coef)
    assert (fit.n_basis == 15) == (fit.status is Status.CONVERGED)


def test_copies_and_zeros_end_the_search(rng):
    f = rng.normal(size=(30, 2))
    F = np.column_stack([f, 2 * f, np.zeros(30)])
    fit = project(F, f @ [1.0, 2.0] + 0.1 * rng.normal(size=30), 0.1, size=4)
    assert fit.n_basis == 2
    assert fit.status is Status.COLLINEAR_SKIPPED
    assert project(F, np.zeros(30), 0.1).n_basis == 0


def test_candidates_that_do_not_reach_are_no_success(rng):
    F, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    fit = project(F, y, 0.01)
    assert fit.n_basis == 3 and fit.divergence[-1] > 100.0 and fit.status is Status.CANDIDATES_USED_UP
    assert project(F, y, 0.01, size=3).status is Status.CONVERGED  # as many as were asked for
    assert project(F, F @ [1.0, 2.0, 3.0], 0.01).status is Status.CONVERGED
    reached = project(F, y, 0.01, tol=2.0 * fit.divergence[-1])
    assert reached.divergence[-1] <= 2.0 * fit.divergence[-1] and reached.status is Status.CONVERGED


def test_as_many_functions_as_rows_leave_no_row_to_the_others(rng):
    """Every row is then met exactly, and nothing is known of it without itself: this is said, and one fewer is not."""
    F, mu = rng.normal(size=(8, 12)), rng.normal(size=8)
    for centre in (False, True):
        whole = project(F, mu, 0.3, size=8 - centre, centre=centre)
        assert whole.status is bs.Status.TOO_FEW_ROWS
        np.testing.assert_allclose(whole.predict(F).mean, mu, atol=1e-8)
        assert bs.Status.TOO_FEW_ROWS not in project(F, mu, 0.3, size=7 - centre, centre=centre).notes


@pytest.mark.parametrize("sigma", [1e-90, 1e90])
def test_noise_of_any_size_is_taken(rng, sigma):
    """The same in other units of the target."""
    F, y = rng.normal(size=(30, 5)), rng.normal(size=30)
    plain, scaled = project(F, y, 1.0, size=3), project(F, sigma * y, sigma, size=3)
    np.testing.assert_array_equal(plain.order, scaled.order)
    np.testing.assert_allclose(scaled.divergence, plain.divergence, rtol=1e-10)
    np.testing.assert_allclose(scaled.predict(F).mean, sigma * plain.predict(F).mean, rtol=1e-10)
    small = project(F, y, 1e-90, size=2).divergence  # n/2 log(left/(n sigma^2)), from logarithms
    rest = np.array(
        [1.0, *(np.sum((y - project(F, y, 1.0, size=k).predict(F).mean) ** 2) / np.sum(y**2) for k in (1, 2))]
    )
    np.testing.assert_allclose(small, 15 * (np.log(rest * np.sum(y**2) / 30) + 180 * np.log(10)), rtol=1e-9)


def test_it_ends_where_nobody_could_tell(rng):
    """A signal of two functions among many: the projection of all of them on few, good on new rows too."""
    F, new = rng.normal(size=(2, 150, 60))
    t = F[:, [7, 30]] @ [2.0, -1.5] + 0.5 * rng.normal(size=150)
    full = bs.linear.fit_evidence(F, t)
    V = F @ np.linalg.solve(F.T @ F + full.alpha / full.beta * np.eye(60), F.T) / full.beta
    fit = project(F, F @ full.coef, full.beta**-0.5, V, size=2)
    assert set(fit.order) == {7, 30}
    error = np.sqrt(np.mean((fit.predict(new).mean - new[:, [7, 30]] @ [2.0, -1.5]) ** 2))
    assert error < 0.7 * np.sqrt(np.mean((new @ full.coef - new[:, [7, 30]] @ [2.0, -1.5]) ** 2))
    whole = project(F, F @ full.coef, full.beta**-0.5, V)
    assert whole.divergence[-1] <= 1.0 < whole.divergence[-2]


def test_a_gaussian_process_by_a_few_functions(rng):
    """As docs/selection.md says it is done: mean and error bars are nearly the process' own."""
    x = np.sort(rng.uniform(-3, 3, 60))
    K = np.exp(-0.5 * (x[:, None] - x) ** 2 / 0.8**2)
    Q = K + 0.04 * np.eye(60)
    t = np.sin(2 * x) + 0.2 * rng.normal(size=60)
    V = K - K @ np.linalg.solve(Q, K)
    full = K @ np.linalg.solve(Q, t)
    F = bs.RBFDictionary(x[:, None], bs.width(lengthscale=0.8), bias=False).design(x[:, None])
    fit = project(F, full, 0.2, (V + V.T) / 2, centre=True)
    assert fit.n_basis < 20
    mean, std = fit.predict(F).mean, fit.predict(F).std
    assert np.sqrt(np.mean((mean - full) ** 2)) < 0.02
    np.testing.assert_allclose(std, np.sqrt(np.diag(V) + 0.04), rtol=0.05)


def test_an_interrupt_leaves_the_functions_before_it(rng, monkeypatch):
    F, mu, A, sigma = problem(rng)
    cov = A @ A.T
    calls, cross = [], Columns.cross

    def stops(self, V):
        calls.append(1)
        if len(calls) == 5:  # half-way through the entry of the fourth function
            raise KeyboardInterrupt
        return cross(self, V)

    whole = project(F, mu, sigma, cov=cov, size=5)
    monkeypatch.setattr(Columns, "cross", stops)
    cut = project(F, mu, sigma, cov=cov, size=5)
    assert cut.status is Status.INTERRUPTED and whole.status is Status.CONVERGED
    assert cut.order.tolist() == whole.order[:3].tolist()
    part = whole.at(3)
    for name in ("mean", "std"):
        np.testing.assert_allclose(getattr(cut.predict(F), name), getattr(part.predict(F), name), rtol=1e-10)


def test_bad_input(rng):
    F, mu, A, sigma = problem(rng)
    V = A @ A.T
    for arguments, words in (
        ((F, mu[:3], sigma), "one value per row"),
        ((F, mu, 0.0), "noise_std must be positive"),
        ((F, mu, sigma, V[:3]), "shape"),
        ((F, mu, sigma, V + np.triu(V)), "symmetric"),
        ((F, mu, sigma, -V), "negative eigenvalue"),
    ):
        with pytest.raises(ValueError, match=words):
            project(*arguments)
    for tol, error in (
        (-1.0, ValueError),
        (np.nan, ValueError),
        ("x", TypeError),
        (None, TypeError),
        (False, TypeError),
    ):
        with pytest.raises(error, match="tol must be"):
            project(F, mu, sigma, tol=tol)
    for sigma_beyond in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"noise_std has values of size .*; rescale it"):
            project(F, mu, sigma_beyond)
    with pytest.raises(ValueError, match="12 columns"):
        project(F, mu, sigma, size=2).predict(F[:, :5])
