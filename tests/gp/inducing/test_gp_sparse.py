"""Inducing inputs: the bound against its definition, its gradient, its limits, and the fit.

Guards `bayessel.gp.inducing.inducing_fit`, `bayessel.gp.inducing.bound`, `bayessel.gp.inducing.covariance_parts`,
`bayessel.gp.inducing.cross_covariance`, `bayessel.gp.inducing.select`,
`bayessel.gp.inducing.squared_exponential_cross`.
"""

from functools import partial

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayessel.covariance import (
    Arcsin,
    Bias,
    Linear,
    Matern32,
    Noise,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    Standard,
)
from bayessel.fit import Status
from bayessel.gp import Predictor, fit_map, log_marginal
from bayessel.gp.inducing import bound, fit_inducing
from bayessel.gp.inducing import inducing_fit as fitting
from bayessel.gp.inducing.bound import InducingMarginal
from bayessel.gp.inducing.covariance_parts import parts_of
from bayessel.gp.inducing.select import greedy_variance

COVARIANCES = {
    "standard": Standard(),
    "some columns": Standard().on([2, 0]),
    "isotropic and affine": SquaredExponential(ard=False).on([0, 2]) + Bias() + Linear().on([1]) + Noise(),
    "no amplitude": SquaredExponential(amplitude=False) + Matern32(amplitude=False).on([1]) + Bias() + Noise(),
    "additive": SquaredExponential().on([2, 0]) + SquaredExponential().on([1]) + Noise(),
    "matern": Matern32() + Noise(),
    "mixed": RationalQuadratic() + SquaredExponential() + Linear() + Noise(),
    "product": SquaredExponential() * Periodic(amplitude=False) + Noise(),
    "arcsin": Arcsin() + Noise(),
    "noise twice": SquaredExponential() + Noise() + Noise(),
}


def problem(rng, n=47, m=3, M=8):
    X = rng.normal(size=(n, m))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=n), X[:M] + 0.1 * rng.normal(size=(M, m))


def exact_terms(covariance, theta, X, Z):
    """Finite-rank part and the two factors of the rest, (n, n), (M, M) and (M, n), from `matrix` of each term alone."""
    m = X.shape[1]
    if isinstance(covariance, Standard):
        k = len(covariance.used(m))
        terms = [
            (SquaredExponential(columns=covariance.columns), np.r_[0, 2 : k + 2]),
            (Bias(), [k + 2]),
            (Linear(columns=covariance.columns), [k + 3]),
        ]
    else:
        ends = np.cumsum([0, *(term.size(m) for term in covariance.terms)])
        terms = [(term, np.arange(a, b)) for term, a, b in zip(covariance.terms, ends, ends[1:], strict=False)]
    plane = np.zeros((len(X), len(X)))
    K_XX, K_ZZ, K_ZX = np.zeros((len(X), len(X))), np.zeros((len(Z), len(Z))), np.zeros((len(Z), len(X)))
    for term, at in terms:
        if isinstance(term, Noise):
            continue
        if isinstance(term, Bias | Linear):
            plane += term.matrix(theta[at], X)
        else:
            K_XX += term.matrix(theta[at], X)
            K_ZZ += term.matrix(theta[at], Z)
            K_ZX += term.matrix(theta[at], Z, X)
    return plane, K_XX, K_ZZ, K_ZX


def dense_bound(covariance, theta, X, t, Z, jitter=bound.JITTER):
    """log N(t | 0, Q + r²I) − tr(K − Q)/2r² (Titsias 2009, eq. 9), written out."""
    r2 = covariance.noise(theta, X.shape[1])
    plane, K, K_ZZ, K_ZX = exact_terms(covariance, theta, X, Z)
    K_ZZ = K_ZZ + jitter * np.trace(K_ZZ) / len(Z) * np.eye(len(Z))
    Q = K_ZX.T @ np.linalg.solve(K_ZZ, K_ZX)
    density = multivariate_normal(np.zeros(len(t)), plane + Q + r2 * np.eye(len(t))).logpdf(t)
    return density - 0.5 / r2 * np.trace(K - Q)


def differences(f, x, h=1e-4):
    """Central differences of fourth order."""
    found = np.empty(x.size)
    for i in range(x.size):
        d = np.zeros(x.size)
        d[i] = h
        d = d.reshape(x.shape)
        found[i] = (8 * (f(x + d) - f(x - d)) - (f(x + 2 * d) - f(x - 2 * d))) / (12 * h)
    return found.reshape(x.shape)


@pytest.mark.parametrize("name", COVARIANCES)
def test_the_bound_is_its_definition(name, rng):
    X, t, Z = problem(rng)
    covariance = COVARIANCES[name]
    marginal = InducingMarginal(X, t, covariance)
    theta = covariance.start(3) + 0.2 * rng.normal(size=marginal.size)
    expected = dense_bound(covariance, theta, X, t, Z)
    np.testing.assert_allclose(marginal.value(theta, Z), expected, rtol=1e-9)
    np.testing.assert_allclose(marginal.value_and_gradient(theta, Z)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("name", COVARIANCES)
def test_the_gradient_is_that_of_the_bound(name, rng):
    X, t, Z = problem(rng)
    covariance = COVARIANCES[name]
    marginal = InducingMarginal(X, t, covariance, jitter=0.03)  # so much that its derivative is seen
    theta = covariance.start(3) + 0.2 * rng.normal(size=marginal.size)
    np.testing.assert_allclose(marginal.value(theta, Z), dense_bound(covariance, theta, X, t, Z, 0.03), rtol=1e-9)
    _, by_theta, by_Z = marginal.value_and_gradient(theta, Z)
    expected = differences(lambda x: marginal.value(x, Z), theta)
    np.testing.assert_allclose(by_theta, expected, atol=1e-7 * np.abs(expected).max())
    expected = differences(lambda x: marginal.value(theta, x), Z)
    np.testing.assert_allclose(by_Z, expected, atol=1e-7 * np.abs(expected).max())


def test_the_gradient_is_that_of_automatic_differentiation(rng):
    """A second opinion to more digits than differences have: the dense bound of the thesis' sum in PyTensor."""
    import pytensor
    import pytensor.tensor as pt

    X, t, Z = problem(rng)
    marginal = InducingMarginal(X, t)
    theta = Standard().start(3) + 0.2 * rng.normal(size=marginal.size)
    p, z, n, M = pt.dvector("p"), pt.dmatrix("z"), len(t), len(Z)

    def exponential(A, B):
        return pt.exp(p[0] - 0.5 * (pt.exp(p[2:-2]) * (A[:, None] - B[None]) ** 2).sum(axis=2))

    K_ZZ, K_ZX = exponential(z, z) + bound.JITTER * pt.exp(p[0]) * pt.eye(M), exponential(z, X)
    Q = K_ZX.T @ pt.linalg.solve(K_ZZ, K_ZX)
    C = Q + pt.exp(p[-2]) + pt.exp(p[-1]) * pt.as_tensor(X @ X.T) + pt.exp(p[1]) * pt.eye(n)
    value = -0.5 * (pt.linalg.slogdet(C)[1] + t @ pt.linalg.solve(C, t) + n * np.log(2 * np.pi))
    value -= 0.5 * (n * pt.exp(p[0]) - pt.trace(Q)) / pt.exp(p[1])
    dense = pytensor.function([p, z], [value, *pytensor.grad(value, [p, z])], mode="FAST_COMPILE")
    found, expected = marginal.value_and_gradient(theta, Z), dense(theta, Z)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8 * np.abs(other).max())


def test_blocks_and_what_is_kept_of_them_change_nothing(rng, monkeypatch):
    X, t, Z = problem(rng, n=333)
    theta = Standard().start(3)
    whole = InducingMarginal(X, t).value_and_gradient(theta, Z)
    monkeypatch.setattr(bound, "BLOCK_ENTRIES", 1)  # blocks of 64 rows, the last one shorter
    in_blocks = InducingMarginal(X, t).value_and_gradient(theta, Z)
    monkeypatch.setattr(bound, "KEPT_ENTRIES", 0)
    anew = InducingMarginal(np.asfortranarray(X), t).value_and_gradient(theta, Z)
    for one, two, three in zip(whole, in_blocks, anew, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(three, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", COVARIANCES)
def test_the_evidence_lies_between_the_bounds_and_they_meet_at_the_rows(name, rng):
    X, t, Z = problem(rng)
    covariance = COVARIANCES[name]
    marginal = InducingMarginal(X, t, covariance)
    theta = covariance.start(3) + 0.2 * rng.normal(size=marginal.size)
    exact = log_marginal(theta, X, t, covariance)
    assert marginal.value(theta, Z) < exact < marginal.upper(theta, Z)
    assert marginal.value(theta, Z) < marginal.value(theta, np.vstack([Z, X[20:23]])) < exact  # more inputs: higher
    np.testing.assert_allclose(marginal.value(theta, X), exact, atol=1e-5)
    np.testing.assert_allclose(marginal.upper(theta, X), exact, atol=1e-5)


def test_at_the_rows_predictions_are_exact(rng):
    X, t, _ = problem(rng)
    new = rng.normal(size=(11, 3))
    for covariance in (Standard(), Matern32() + Linear() + Noise()):
        theta = covariance.start(3)
        marginal = InducingMarginal(X, t, covariance)
        mean, variance = marginal.predict(theta, X, marginal.factor(theta, X), new)
        exact = Predictor(X, t, covariance, theta)(new).function
        np.testing.assert_allclose(mean, exact.mean, atol=1e-6)
        np.testing.assert_allclose(variance, exact.variance, atol=1e-6)


def test_predictions_and_leave_one_out_are_those_of_the_approximate_process(rng):
    X, t, Z = problem(rng, n=15, M=4)
    new, theta, covariance = rng.normal(size=(5, 3)), Standard().start(3), Standard()
    marginal = InducingMarginal(X, t)
    factor = marginal.factor(theta, Z)
    mean, variance = marginal.predict(theta, Z, factor, new)
    every = np.vstack([X, new])
    plane, K, K_ZZ, K_ZX = exact_terms(covariance, theta, every, Z)
    Q = K_ZX.T @ np.linalg.solve(K_ZZ, K_ZX)
    C, r2, n = plane + Q, covariance.noise(theta, 3), len(t)

    def given(rows, at):
        gain = np.linalg.solve(C[np.ix_(rows, rows)] + r2 * np.eye(len(rows)), C[np.ix_(rows, at)])
        unseen = np.diag(K - Q)[at]
        return gain.T @ t[rows], np.diag(C)[at] - np.einsum("ij,ij->j", gain, C[np.ix_(rows, at)]) + unseen

    expected_mean, expected_variance = given(np.arange(n), np.arange(n, n + 5))
    np.testing.assert_allclose(mean, expected_mean, atol=1e-7)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-7)
    errors, variances = marginal.leave_one_out(theta, Z, factor)
    for i in range(n):
        m_i, v_i = given(np.delete(np.arange(n), i), [i])
        np.testing.assert_allclose(errors[i], t[i] - m_i[0], atol=1e-7)
        np.testing.assert_allclose(variances[i], v_i[0] + r2, atol=1e-7)


def test_the_best_noise_is_where_its_slope_is_nil(rng):
    X, t, Z = problem(rng)
    marginal = InducingMarginal(X, t)
    start = Standard().start(3)
    theta = marginal.best_noise(start, Z)
    value, by_theta, _ = marginal.value_and_gradient(theta, Z)
    assert value > marginal.value(start, Z)
    assert abs(by_theta[1]) < 1e-3
    assert (theta != start).tolist() == [False, True, *[False] * 5]


def test_trouble_is_a_status(rng):
    X, t, Z = problem(rng)
    marginal = InducingMarginal(X, t)
    start = Standard().start(3)
    doubled = np.vstack([Z, Z])
    np.testing.assert_allclose(marginal.value(start, doubled), marginal.value(start, Z), atol=1e-3)
    for entry, far in ((0, 800.0), (1, 800.0), (2, 800.0), (5, 800.0), (1, -800.0)):
        theta = start.copy()
        theta[entry] = far
        value, by_theta, by_Z = marginal.value_and_gradient(theta, Z)
        if not np.isfinite(value):
            assert value == -np.inf and not by_theta.any() and not by_Z.any()
            assert marginal.status is Status.ILL_CONDITIONED
    assert np.isfinite(marginal.value(start, Z)) and marginal.status is Status.CONVERGED
    for w in (-40.0, 12.0, 40.0):  # relevant to no digit, and to all of them
        theta = start.copy()
        theta[2] = w
        assert np.isfinite(marginal.value_and_gradient(theta, Z)[0])


def test_large_weights_lose_no_digits(rng):
    """Inducing inputs a hair beside the rows: the expanded square would be rounded to the distance itself."""
    X, t, _ = problem(rng, n=30)
    Z = X[:6] + 3e-6 * rng.normal(size=(6, 3))
    theta = Standard().start(3)
    theta[2:5] = 24.0
    value, by_theta, _ = InducingMarginal(X, t).value_and_gradient(theta, Z)
    np.testing.assert_allclose(value, dense_bound(Standard(), theta, X, t, Z), rtol=1e-10)
    expected = differences(lambda x: dense_bound(Standard(), x, X, t, Z), theta)
    np.testing.assert_allclose(by_theta, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"theta": np.zeros(3)}, ValueError, "theta must have 7 entries"),
        ({"Z": np.zeros((4, 2))}, ValueError, "Z must have 3 columns"),
        ({"covariance": Bias() + Noise()}, ValueError, "need no inducing inputs"),
    ],
)
def test_bad_arguments_of_the_bound(arguments, error, said, rng):
    X, t, Z = problem(rng)
    given = {"theta": Standard().start(3), "Z": Z, "covariance": None} | arguments
    with pytest.raises(error, match=said):
        InducingMarginal(X, t, given["covariance"]).value(given["theta"], given["Z"])


def test_greedy_choice_is_a_pivoted_factor(rng):
    X, _, _ = problem(rng, n=40)
    theta = Standard().start(3)
    found, left = greedy_variance(parts_of(Standard(), 3), theta, X, 6, rng)
    K = SquaredExponential().matrix(theta[[0, 2, 3, 4]], X)
    chosen = []
    for _ in range(6):
        inner = K[:, chosen] @ np.linalg.pinv(K[np.ix_(chosen, chosen)]) @ K[chosen] if chosen else np.zeros_like(K)
        chosen.append(int(np.round(np.diag(K - inner), 10).argmax()))
    np.testing.assert_array_equal(found, X[chosen])
    Q = K[:, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen])
    np.testing.assert_allclose(left, np.trace(K - Q) / np.trace(K), rtol=1e-6)
    twice = np.vstack([X[:3], X[:3]])
    assert len(greedy_variance(parts_of(Standard(), 3), theta, twice, 6, rng)[0]) == 3  # copies say nothing


def test_a_fit_comes_close_to_the_exact_one(rng):
    X = rng.uniform(-3, 3, size=(500, 1))
    t = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=500)
    exact = fit_map(X, t, starts=1)
    sparse = fit_inducing(X, t, n_inducing=15, max_evaluations=60)
    assert exact.log_posterior - 0.1 < sparse.log_posterior < exact.log_posterior + 1e-3  # its search ends there
    assert sparse.log_evidence < log_marginal(sparse.theta, X, t) < sparse.upper
    assert (sparse.evidence.kind, len(sparse.inducing), sparse.n_rows) == ("bound", 15, 500)
    new = np.linspace(-3, 3, 20)[:, None]
    functions = [fit.predict(new).function for fit in (sparse, exact)]
    for one, other in zip(*((at.mean, at.variance) for at in functions), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)
    assert abs(sparse.noise_std - exact.noise_std) < 1e-3
    assert sparse.unexplained < 1e-4
    np.testing.assert_allclose(sparse.relevance["length"], exact.relevance["length"], rtol=0.05)
    np.testing.assert_allclose(sparse.model_evidence.value, exact.model_evidence.value, atol=1.0)
    again = fit_inducing(X, t, n_inducing=15, max_evaluations=60)
    np.testing.assert_array_equal(again.inducing, sparse.inducing)


def test_a_fit_with_inducing_inputs_held_moves_theta_only(rng):
    X, t, Z = problem(rng, n=80)
    start = Standard().start(3)
    fit = fit_inducing(X, t, inducing=Z, move_inducing=False, start=start, prior=None, max_evaluations=30)
    np.testing.assert_array_equal(fit.inducing, Z)
    assert fit.log_evidence > InducingMarginal(X, t).value(start, Z)
    assert fit.prior is None and fit.log_posterior == fit.log_evidence
    moved = fit_inducing(X, t, inducing=Z, start=fit.theta, prior=None, max_evaluations=30)
    assert moved.log_evidence > fit.log_evidence


def test_an_interrupted_fit_gives_back_the_best_it_saw(rng):
    X, t, Z = problem(rng, n=80)
    seen = []

    def stop(count, value):
        seen.append(value)
        if value < max(seen):  # a step too far
            raise KeyboardInterrupt

    fit = fit_inducing(X, t, inducing=Z, start=Standard().start(3), prior=None, callback=stop)
    assert fit.status is Status.INTERRUPTED and fit.n_evaluations == len(seen)
    assert fit.log_evidence == max(seen) > seen[-1]


@pytest.mark.parametrize("M", [2, 6])
def test_a_fit_counts_the_parameters_of_its_own_mean(rng, M):
    """The mean is linear in the targets: its matrix has M columns beside bias and slope, however little they see."""
    X = np.sort(rng.uniform(-3, 3, 60))[:, None]
    t = np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=60)
    fit = fit_inducing(X, t, n_inducing=M, max_evaluations=30)
    plane, _, K_ZZ, K_ZX = exact_terms(Standard(), fit.theta, X, fit.inducing)
    K_ZZ = K_ZZ + fit.jitter * np.trace(K_ZZ) / M * np.eye(M)
    S = plane + K_ZX.T @ np.linalg.solve(K_ZZ, K_ZX)
    hat = S @ np.linalg.inv(S + fit.noise_std**2 * np.eye(60))
    np.testing.assert_allclose(fit.gamma, np.trace(hat), rtol=1e-5)
    np.testing.assert_allclose(fit.sum_squares, np.sum((t - hat @ t) ** 2), rtol=1e-5)
    assert fit.unexplained > 0.01 and fit.gamma < M + 2


def test_more_jitter_than_usual_is_told(rng, monkeypatch):
    """Rows of K_ZZ that are equal need some: here the usual jitter is none."""
    monkeypatch.setattr(fitting, "InducingMarginal", partial(InducingMarginal, jitter=0.0))
    X, t, Z = problem(rng, n=60)
    plain, doubled = (
        fit_inducing(X, t, inducing=places, start=Standard().start(3), move_inducing=False, max_evaluations=20)
        for places in (Z, np.vstack([Z, Z]))
    )
    assert plain.jitter == 0.0 and Status.ILL_CONDITIONED not in plain.notes
    assert doubled.jitter > 0.0 and Status.ILL_CONDITIONED in doubled.notes


def test_the_rows_of_the_first_fit_are_drawn_from_all_of_them(rng, monkeypatch):
    """Sorted rows: the first few would be one end of the inputs."""
    monkeypatch.setattr(fitting, "FIRST_ROWS", 40)
    seen = []

    def first_fit(X, *arguments, **options):
        seen.append(X[:, 0])
        return fit_map(X, *arguments, **options)

    monkeypatch.setattr(fitting, "fit_map", first_fit)
    X = np.arange(200.0)[:, None]
    for seed in (0, 0, 1):
        fit_inducing(X / 50, np.sin(X[:, 0] / 50), n_inducing=4, max_evaluations=2, random_state=seed)
    assert all(len(rows) == len(set(rows)) == 40 for rows in seen)
    assert all(np.ptp(rows) > 3.0 and abs(rows.mean() - 2.0) < 0.8 for rows in seen)
    assert set(seen[0]) == set(seen[1]) != set(seen[2])


def test_the_search_does_not_see_the_units_of_the_inputs(rng):
    X, t, Z = problem(rng, n=80)
    units = np.array([1.0, 30.0, 0.05])
    start, moved = Standard().start(3), Standard().start(3)
    start[-1] = moved[-1] = -30.0  # no plane: it has one variance for all inputs
    moved[2:5] -= 2 * np.log(units)
    values = []
    for scale, theta in ((np.ones(3), start), (units, moved)):
        fit = fit_inducing(X * scale, t, inducing=Z * scale, start=theta, prior=None, max_evaluations=12)
        values.append([entry["value"] for entry in fit.history])
    np.testing.assert_allclose(values[1], values[0], rtol=1e-5)


def test_as_many_inducing_inputs_as_rows_and_rows_alike(rng):
    X = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0)
    fit = fit_inducing(X, np.tile([0.0, 0.1, -0.1, 0.05], 3), n_inducing=50, max_evaluations=20)
    assert len(fit.inducing) <= 3
    assert np.isfinite(fit.log_evidence)


@pytest.mark.parametrize(
    ("X", "t", "status"),
    [
        (np.zeros((1, 1)), np.zeros(1), Status.TOO_FEW_ROWS),
        (np.arange(30.0)[:, None] / 15, np.ones(30), Status.CONSTANT_TARGET),
        (np.ones((20, 2)), np.arange(20.0), Status.PURE_NOISE),
    ],
)
def test_degenerate_data_have_a_status(X, t, status):
    fit = fit_inducing(X, t, n_inducing=12, max_evaluations=40)
    assert status in (*fit.notes, fit.status)
    assert np.isfinite([fit.log_evidence, fit.upper, *fit.predict(X).mean]).all()
    assert fit.log_evidence <= fit.upper + 1e-2


@pytest.mark.slow
def test_two_thousand_rows_against_the_exact_process(rng):
    """Friedman's first function: 300 inducing inputs come within some nats of the evidence and a tenth of the error."""
    X = rng.uniform(size=(2500, 5))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    t, X = (f - f.mean()) / f.std() + 0.2 * rng.normal(size=2500), (X - 0.5) / 0.25
    truth = ((f - f.mean()) / f.std())[2000:]
    exact = fit_map(X[:2000], t[:2000], starts=1)
    sparse = fit_inducing(X[:2000], t[:2000], n_inducing=300, max_evaluations=120)
    assert exact.log_posterior - 10.0 < sparse.log_posterior < exact.log_posterior
    errors = [np.sqrt(np.mean((fit.predict(X[2000:]).mean - truth) ** 2)) for fit in (exact, sparse)]
    assert errors[1] < 1.1 * errors[0]
    assert abs(sparse.noise_std / exact.noise_std - 1.0) < 0.02
