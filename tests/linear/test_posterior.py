"""The posterior, its evidence and the criteria against sixty-digit arithmetic, on problems made to lose digits.

Guards `bayessel.linear.weight_posterior`, `bayessel.linear.reported_sums`, `bayessel.linear.unpenalised_columns`,
`bayessel.linear.thin_svd`.
"""

from functools import cache

import numpy as np
import pytest
from mpmath import mp

from bayessel import linear
from tests.oracles import linear as oracles
from tests.problems import linear as problems

QUICK = range(60)
ALL = range(300)
QUANTITIES = ("log_evidence", "gamma", "loo", "gcv")


@cache
def reference(seed: int) -> oracles.Exact:
    p = problems.hard_problem(seed)
    return oracles.exact(p.Phi, p.t, p.alpha, p.beta)


def package_value(quantity: str, p: problems.Problem) -> float:
    if quantity == "log_evidence":
        return linear.log_evidence(p.Phi, p.t, p.alpha, p.beta)
    return linear.criteria(p.Phi, p.t, p.lam)[quantity]


def misses(quantity: str, seeds: range, value=package_value) -> list[str]:
    """Problems outside the promise. An evidence near zero is the difference of large terms: its scale is one nat."""
    found = []
    for seed in seeds:
        p = problems.hard_problem(seed)
        got, want = value(quantity, p), getattr(reference(seed), quantity)
        error = oracles.relative(got, want, floor=1.0 if quantity == "log_evidence" else 0.0)
        if not error <= p.tolerance:
            found.append(f"{p.name}, beta/alpha {p.ratio:.1e}, beta {p.beta:.1e}: {got!r}, exact {float(want)!r}")
    return found


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_sixty_problems_to_the_promised_digits(quantity):
    assert misses(quantity, QUICK) == []


@pytest.mark.slow
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_three_hundred_problems_to_the_promised_digits(quantity):
    assert misses(quantity, ALL) == []


def centred_misses(quantity: str, seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        p = problems.hard_problem(seed)
        if len(p.t) == 1 and quantity != "gamma":
            continue  # one row and a free mean: nothing is left to judge by
        want = getattr(oracles.exact(p.Phi, p.t, p.alpha, p.beta, centre=True), quantity)
        if quantity == "log_evidence":
            got = linear.log_evidence(p.Phi, p.t, p.alpha, p.beta, centre=True)
        else:
            got = linear.criteria(p.Phi, p.t, p.lam, centre=True)[quantity]
        error = oracles.relative(got, want, floor=1.0 if quantity == "log_evidence" else 0.0)
        if not error <= p.tolerance:
            found.append(f"{p.name}, beta/alpha {p.ratio:.1e}, beta {p.beta:.1e}: {got!r}, exact {float(want)!r}")
    return found


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_sixty_problems_with_a_free_mean(quantity):
    assert centred_misses(quantity, QUICK) == []


@pytest.mark.slow
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_three_hundred_problems_with_a_free_mean(quantity):
    assert centred_misses(quantity, ALL) == []


def test_one_row_and_a_free_mean_leave_nothing_to_judge_by(rng):
    got = linear.criteria(rng.normal(size=(1, 3)), [2.0], 0.5, centre=True)
    assert got["gamma"] == pytest.approx(1.0)
    assert all(np.isinf(got[key]) or np.isnan(got[key]) for key in ("loo", "gcv", "uev", "fpe", "bic"))


def test_the_problems_are_hard_enough_to_break_plain_double_precision():
    def dense(quantity, p):
        try:
            return oracles.log_evidence(p.Phi, p.t, p.alpha, p.beta)
        except np.linalg.LinAlgError:
            return np.nan

    def squared_condition(quantity, p):
        alpha = np.broadcast_to(p.alpha, p.Phi.shape[1])
        H = p.beta * p.Phi.T @ p.Phi + np.diag(alpha)
        mu = p.beta * np.linalg.lstsq(H, p.Phi.T @ p.t)[0]
        r = p.t - p.Phi @ mu
        n = len(p.t)
        logs = n * np.log(2 * np.pi) + np.linalg.slogdet(H)[1] - n * np.log(p.beta) - np.log(alpha).sum()
        return -0.5 * (logs + p.beta * r @ r + alpha @ mu**2)

    assert len(misses("log_evidence", QUICK, dense)) > 10
    assert len(misses("log_evidence", QUICK, squared_condition)) > 5


def test_a_forgotten_constant_is_seen():
    def without_two_pi(quantity, p):
        return package_value(quantity, p) + 0.5 * len(p.t) * np.log(2 * np.pi)

    assert len(misses("log_evidence", QUICK, without_two_pi)) > 50


@pytest.mark.parametrize("seed", range(12))
def test_the_two_ways_of_writing_the_evidence_agree(seed):
    """Check the oracle itself: N x N form against the M x M form with Sigma and mu, on benign problems."""
    rng = np.random.default_rng([3, seed])
    n, m = ((4, 9), (7, 7), (12, 3))[seed % 3]
    Phi, t = problems.regression_problem(rng, n, m)
    alpha, beta = 10 ** rng.uniform(-1, 1, m), float(10 ** rng.uniform(-1, 1))
    mu, Sigma = oracles.posterior(Phi, t, alpha, beta)
    r = t - Phi @ mu
    other = -0.5 * (
        n * np.log(2 * np.pi) - np.linalg.slogdet(Sigma)[1] - n * np.log(beta) - np.log(alpha).sum()
        + beta * r @ r + alpha @ mu**2
    )  # fmt: skip
    exact = oracles.exact(Phi, t, alpha, beta)
    doubles = [other, oracles.log_evidence(Phi, t, alpha, beta)]
    np.testing.assert_allclose(doubles, float(exact.log_evidence), rtol=1e-11)
    np.testing.assert_allclose(float(exact.gamma), np.sum(1 - alpha * np.diag(Sigma)), rtol=1e-10)
    np.testing.assert_allclose([float(w) for w in exact.mean], mu, rtol=1e-8, atol=1e-10)
    twin = oracles.criteria(Phi, t, alpha / beta)
    np.testing.assert_allclose([float(exact.loo), float(exact.gcv)], [twin["loo"], twin["gcv"]], rtol=1e-9)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize(("n", "m"), [(4, 9), (7, 7), (15, 4), (6, 1)])
def test_loo_is_honest_retraining(rng, n, m, centre):
    Phi, t = problems.regression_problem(rng, n, m)
    Phi, t = Phi + 3.0, t + 7.0
    for lam in (0.03, 2.0, 10 ** rng.uniform(-2, 2, m)):
        np.testing.assert_allclose(
            linear.criteria(Phi, t, lam, centre=centre)["loo"],
            oracles.loo_by_retraining(Phi, t, lam, centre=centre),
            rtol=1e-9,
        )


@pytest.mark.parametrize("centre", [False, True])
def test_loo_of_rows_that_alone_decide_a_weight(rng, centre):
    """A design of many rows, two of which are ten million times larger: 1 - leverage is 1e-14, and keeps its digits.

    The oracle removes each row from the normal equations of fifty digits and solves them.
    """
    n, m, lam = 450, 2, 0.5
    Phi = rng.normal(size=(n, m))
    Phi[3, 0], Phi[200, 1] = 1e7, -3e7
    t = Phi @ [1.0, -0.5] + rng.normal(size=n)
    wide = np.column_stack([Phi, np.ones(n)]) if centre else Phi
    with mp.workdps(50):
        rows, y = mp.matrix(wide.tolist()), mp.matrix(t.tolist())
        A, b = rows.T * rows, rows.T * y
        for j in range(m):
            A[j, j] += lam
        total = mp.mpf(0)
        for i in range(n):
            row = rows[i, :]
            w = mp.lu_solve(A - row.T * row, b - row.T * y[i])
            total += (y[i] - (row * w)[0]) ** 2
        expected = float(total / n)
    assert linear.criteria(Phi, t, lam, centre=centre)["loo"] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("n", "m"), [(4, 9), (15, 4), (2, 1), (5, 5)])
def test_centred_criteria_are_those_of_a_model_with_a_free_mean(rng, n, m):
    """The unpenalised bias costs one parameter: P annihilates constants, gamma counts it."""
    Phi, t = problems.regression_problem(rng, n, m)
    lam = 10 ** rng.uniform(-2, 2, m)
    with_bias = oracles.criteria(np.column_stack([Phi, np.ones(n)]), t, np.append(lam, 0.0))
    got = linear.criteria(Phi, t, lam, centre=True)
    for key, value in with_bias.items():
        np.testing.assert_allclose(got[key], value, rtol=1e-8, err_msg=key)


@pytest.mark.parametrize(("n", "m"), [(4, 9), (7, 7), (15, 4)])
def test_an_infinite_lambda_is_a_column_left_out(rng, n, m):
    Phi, t = problems.regression_problem(rng, n, m)
    lam = 10 ** rng.uniform(-2, 2, m)
    lam[[0, m // 2]] = np.inf
    keep = np.isfinite(lam)
    got = linear.criteria(Phi, t, lam)
    for key, value in oracles.criteria(Phi[:, keep], t, lam[keep]).items():
        np.testing.assert_allclose(got[key], value, rtol=1e-9, err_msg=key)


def test_every_column_left_out_leaves_the_target(rng):
    Phi, t = problems.regression_problem(rng, 8, 3)
    got = linear.criteria(Phi, t, np.inf)
    for key in ("loo", "gcv", "uev", "fpe", "bic"):
        np.testing.assert_allclose(got[key], t @ t / 8, rtol=1e-12, err_msg=key)
    assert got["gamma"] == 0.0


def test_scaling_the_target_moves_the_evidence_by_n_log_s(rng):
    Phi, t = problems.regression_problem(rng, 9, 4)
    s, alpha, beta = 37.0, 0.3, 5.0
    np.testing.assert_allclose(
        linear.log_evidence(Phi, s * t, alpha / s**2, beta / s**2),
        linear.log_evidence(Phi, t, alpha, beta) - 9 * np.log(s),
        rtol=1e-12,
    )


def test_one_alpha_is_many_equal_ones(rng):
    Phi, t = problems.regression_problem(rng, 9, 4)
    np.testing.assert_allclose(
        linear.log_evidence(Phi, t, 0.3, 5.0), linear.log_evidence(Phi, t, np.full(4, 0.3), 5.0), rtol=1e-13
    )


def tall_design(kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "wide gaussians":
        return problems.gaussian_dictionary(rng, 4300, 12, 2.0)
    if kind == "gaussians of low rank":
        return problems.gaussian_dictionary(rng, 1700, 30, 2.0)
    return problems.conditioned(rng, 6500, 8, float(kind)) * np.sqrt(6500)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("kind", ["3", "500", "1e4", "1e10", "wide gaussians", "gaussians of low rank"])
def test_designs_large_enough_to_be_factored_differently(kind, centre):
    """Thousands of rows invite a Gram matrix or a QR; the digits must be those of the small ones."""
    rng = np.random.default_rng(17)
    Phi = tall_design(kind, rng)
    n, m = Phi.shape
    t = Phi @ rng.normal(size=m)
    cases = ((0.3, 1.0), (1e-5, 1e-3)) if not centre else ((1e-3, 1e-3),)
    for noise, alpha in cases:
        y = t + noise * rng.normal(size=n) + 2.0 * centre
        beta = noise**-2
        Phi_c, y_c = (Phi - Phi.mean(axis=0), y - y.mean()) if centre else (Phi, y)
        evidence, gamma, error = oracles.exact_tall(Phi_c, y_c, alpha / beta, beta)
        if centre:
            evidence, gamma = evidence - 0.5 * np.log(beta * y_c @ y_c), gamma + 1
        assert oracles.relative(linear.log_evidence(Phi, y, alpha, beta, centre=centre), evidence) < 1e-8
        got = linear.criteria(Phi, y, alpha / beta, centre=centre)
        assert oracles.relative(got["gamma"], gamma) < 1e-8
        assert oracles.relative(got["uev"], error / (n - gamma)) < 1e-8
        shared = linear.Spectrum.of(Phi, y, centre=centre)  # without rows: the fast routes
        values = float(shared.gamma(alpha / beta)) + centre, float(shared.sum_squares(alpha / beta))
        assert oracles.relative(values[0], gamma) < 1e-8
        assert oracles.relative(values[1], error) < 1e-8


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("noise", [1e-1, 1e-4, 1e-6])
def test_a_small_residual_of_a_tall_design_with_a_free_mean_is_measured(rng, centre, noise):
    """Sums of squares, whose difference has cancelled: offsets of columns and target are no residual."""
    n, m, w = 12_000, 6, np.array([1.0, -2.0, 0.5, 3.0, 0.0, 1.0])
    Phi = rng.normal(size=(n, m)) + (2.0 if centre else 0.0)
    t = Phi @ w + noise * rng.normal(size=n) + (7.0 if centre else 0.0)
    shared = linear.Spectrum.of(Phi, t, centre=centre)
    assert shared.route == "gram"
    wide = np.column_stack([Phi, np.ones(n)]) if centre else Phi
    residual = t - wide @ np.linalg.lstsq(wide, t, rcond=None)[0]
    assert shared.rss == pytest.approx(residual @ residual, rel=1e-7)
    fit = linear.fit_evidence(shared)
    assert fit.noise_std == pytest.approx(noise, rel=0.05)
    assert fit.intercept == pytest.approx(7.0 if centre else 0.0, abs=10.0 * noise)


@pytest.mark.parametrize("n", [30, 300])
def test_columns_far_from_zero_with_penalties_of_their_own(rng, n):
    """The bias takes up the offsets of columns whatever their penalties: dense normal equations with a free one."""
    far = np.array([100.0, 0.0, -3000.0, 50.0])
    Phi = far + rng.normal(size=(n, 4))
    t = Phi @ [0.1, 1.0, 0.01, -0.2] + 0.1 * rng.normal(size=n)
    alpha = np.array([4.0, 0.3, 25.0, 0.0])
    mu, Sigma = oracles.posterior(np.column_stack([Phi, np.ones(n)]), t, np.append(alpha, 0.0), 2.0)
    got = linear.posterior(Phi, t, alpha, 2.0, centre=True)
    np.testing.assert_allclose([*got.coef, got.intercept], mu, rtol=1e-6)
    new = far + rng.normal(size=(5, 4))
    there = np.column_stack([new, np.ones(5)])
    np.testing.assert_allclose(got.predict(new).mean, there @ mu, rtol=1e-8)
    np.testing.assert_allclose(got.variance(new), np.einsum("ij,jk,ik->i", there, Sigma, there), rtol=1e-4)


def test_the_tall_oracle_agrees_with_the_wide_one(rng):
    Phi, t = problems.regression_problem(rng, 12, 4)
    evidence, gamma, error = oracles.exact_tall(Phi, t, 0.3, 5.0)
    other = oracles.exact(Phi, t, 1.5, 5.0)
    for one, two in ((evidence, other.log_evidence), (gamma, other.gamma), (error, other.error)):
        assert oracles.relative(float(one), two) < 1e-15


@pytest.mark.parametrize("shape", [(25, 6), (6, 25), (8, 8)])
@pytest.mark.parametrize("centre", [False, True])
def test_the_posterior_at_given_precisions(rng, shape, centre):
    Phi, t = problems.regression_problem(rng, *shape)
    t = t + 5.0
    alpha, beta = 10 ** rng.uniform(-1, 1, shape[1]), 4.0
    shift, level = (Phi.mean(axis=0), t.mean()) if centre else (np.zeros(shape[1]), 0.0)
    mu, Sigma = oracles.posterior(Phi - shift, t - level, alpha, beta)
    got = linear.posterior(Phi, t, alpha, beta, centre=centre)
    np.testing.assert_allclose(got.coef, mu, rtol=1e-9)
    np.testing.assert_allclose(got.intercept, level - shift @ mu if centre else 0.0, rtol=1e-9)
    new = rng.normal(size=(7, shape[1]))
    variance = np.einsum("ij,jk,ik->i", new - shift, Sigma, new - shift) + (1 / (shape[0] * beta) if centre else 0)
    np.testing.assert_allclose(got.variance(new), variance, rtol=1e-9)
    np.testing.assert_allclose(got.predict(new).mean, level + (new - shift) @ mu, rtol=1e-9)


def test_a_column_without_penalty_has_a_flat_prior(rng):
    """alpha -> 0 for one column: the limit of very small alphas."""
    Phi, t = problems.regression_problem(rng, 12, 4)
    alpha = np.array([1.0, 0.0, 2.0, np.inf])
    mu, Sigma = oracles.posterior(Phi[:, :3], t, np.array([1.0, 1e-12, 2.0]), 4.0)
    got = linear.posterior(Phi, t, alpha, 4.0)
    np.testing.assert_allclose(got.coef, [*mu, 0.0], rtol=1e-9)
    new = rng.normal(size=(5, 4))
    np.testing.assert_allclose(got.variance(new), np.einsum("ij,jk,ik->i", new[:, :3], Sigma, new[:, :3]), rtol=1e-8)


@pytest.mark.parametrize("n", [40, 4000])
def test_variances_with_columns_without_penalty_and_a_bias(rng, n):
    """Small designs keep their singular vectors, large ones do not: the unpenalised columns come in any order."""
    Phi = (rng.normal(size=(n, 20)) + 1.0) * np.where(np.arange(20) == 3, 0.01, 1.0)
    t, new = rng.normal(size=n) + 50.0, rng.normal(size=(4, 20))
    alpha = np.where(np.isin(np.arange(20), (3, 7)), 0.0, 2.0)
    wide, new_wide = (np.column_stack([A, np.ones(len(A))]) for A in (Phi, new))
    mu, Sigma = oracles.posterior(wide, t, np.append(alpha, 0.0), 1.5)
    got = linear.posterior(Phi, t, alpha, 1.5, centre=True)
    np.testing.assert_allclose([*got.coef, got.intercept], mu, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got.variance(new), np.einsum("ij,jk,ik->i", new_wide, Sigma, new_wide), rtol=1e-8)
