"""Rows that count differently, and noise levels of the rows: dense densities, repeated rows, refits, other packages.

Guards `bayessel._row_weights`, `bayessel.linear.spectrum`, `bayessel.linear.weight_posterior`,
`bayessel.linear.reported_sums`, `bayessel.linear.local_ridge`.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.linear_model import Ridge

from bayessel._row_weights import RowWeights, deviation, quantile
from bayessel.linear import Spectrum, fit_abf, fit_evidence, fit_ridge, fit_rvm, log_evidence
from bayessel.linear.columns.dictionary import MadeColumns
from bayessel.linear.reported_sums import sums
from bayessel.linear.weight_posterior import posterior
from bayessel.linear.widths.abf import profile_gradient
from bayessel.linear.widths.rvm_width import fit_rvm_width, width_gradient


def table(rng, n=14, m=4):
    """A design, a target, noise levels and counts."""
    Phi = rng.normal(size=(n, m)) + 0.3
    s = np.exp(rng.normal(size=n))
    return Phi, Phi @ rng.normal(size=m) + 2.0 + 0.3 * s * rng.normal(size=n), s, rng.integers(1, 4, size=n)


def repeated(counts, *arrays):
    """Rows as often as they count."""
    return [np.repeat(array, counts, axis=0) for array in arrays]


def test_evidence_is_the_density_of_one_gaussian(rng):
    Phi, t, s, _ = table(rng)
    alpha, beta = 0.7, 3.0
    unit = np.exp(np.log(s).mean())
    covariance = np.diag((s / unit) ** 2 / beta) + Phi @ Phi.T / alpha
    expected = multivariate_normal(np.zeros(len(t)), covariance).logpdf(t)
    np.testing.assert_allclose(log_evidence(Phi, t, alpha, beta, noise_std=s), expected, rtol=1e-11)
    each = np.array([0.3, 1.0, 4.0, 0.7])
    covariance = np.diag((s / unit) ** 2 / beta) + Phi @ np.diag(1.0 / each) @ Phi.T
    expected = multivariate_normal(np.zeros(len(t)), covariance).logpdf(t)
    np.testing.assert_allclose(log_evidence(Phi, t, each, beta, noise_std=s), expected, rtol=1e-11)


def test_evidence_with_a_bias_is_the_limit_of_a_wide_one(rng):
    Phi, t, s, _ = table(rng)
    alpha, beta, wide = 0.7, 3.0, 1e4
    unit = np.exp(np.log(s).mean())
    covariance = np.diag((s / unit) ** 2 / beta) + Phi @ Phi.T / alpha + wide**2
    # the prior density of the bias is that of a normal of the target's standard deviation at its middle, whatever s
    factor = np.linalg.cholesky(covariance)
    density = -0.5 * (len(t) * np.log(2.0 * np.pi) + np.sum(np.linalg.solve(factor, t) ** 2))
    expected = density - np.log(np.diag(factor)).sum() + np.log(wide) - np.log(t.std())
    np.testing.assert_allclose(log_evidence(Phi, t, alpha, beta, centre=True, noise_std=s), expected, rtol=1e-7)


def test_a_common_factor_of_the_noise_changes_nothing(rng):
    Phi, t, s, w = table(rng)
    one, other = (fit_evidence(Phi, t, centre=True, noise_std=f * s, sample_weight=w) for f in (1.0, 100.0))
    np.testing.assert_allclose([one.log_evidence, one.beta], [other.log_evidence, other.beta], rtol=1e-9)
    alike, plain = fit_evidence(Phi, t, centre=True, noise_std=np.full(len(t), 3.0)), fit_evidence(Phi, t, centre=True)
    np.testing.assert_allclose(alike.log_evidence, plain.log_evidence, rtol=1e-12)
    np.testing.assert_allclose(alike.coef, plain.coef, rtol=1e-9)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("shape", [(14, 4), (6, 9)])
def test_a_weight_is_a_repeated_row(rng, centre, shape):
    Phi, t, s, w = table(rng, *shape)
    Phi[:, -1] = 1e3 + Phi[:, -1]  # an offset
    many = repeated(w, Phi, t, s)
    np.testing.assert_allclose(
        log_evidence(Phi, t, 0.5, 2.0, centre=centre, sample_weight=w),
        log_evidence(*many[:2], 0.5, 2.0, centre=centre),
        rtol=1e-10,
    )
    there = posterior(Phi, t, 0.5, 2.0, centre=centre, sample_weight=w, noise_std=s).predict(Phi + 0.1)
    again = posterior(*many[:2], 0.5, 2.0, centre=centre, noise_std=many[2]).predict(Phi + 0.1)
    np.testing.assert_allclose(there.mean, again.mean, rtol=1e-8)
    np.testing.assert_allclose(there.function.std, again.function.std, rtol=1e-8)
    if len(t) < Phi.shape[1]:
        return  # copies that a fit may follow exactly leave no noise
    for named, as_often in (({}, {}), ({"noise_std": s}, {"noise_std": many[2]})):
        one = fit_evidence(Phi, t, centre=centre, sample_weight=w, **named)
        other = fit_evidence(*many[:2], centre=centre, **as_often)
        for name in ("log_evidence", "beta", "alpha", "gamma", "sum_squares", "model_evidence", "intercept"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, err_msg=name)
        there, again = one.predict(Phi + 0.1), other.predict(Phi + 0.1)
        np.testing.assert_allclose(there.mean, again.mean, rtol=1e-7)
        np.testing.assert_allclose(there.std, again.std, rtol=1e-7)
        for criterion in ("gcv", "uev", "fpe", "bic"):
            one = fit_ridge(Phi, t, criterion=criterion, centre=centre, sample_weight=w, **named)
            other = fit_ridge(*many[:2], criterion=criterion, centre=centre, **as_often)
            np.testing.assert_allclose(one.value, other.value, rtol=1e-8)
            np.testing.assert_allclose(one.coef, other.coef, rtol=1e-4, atol=1e-8)
            np.testing.assert_allclose(one.criteria["gamma"], other.criteria["gamma"], rtol=1e-6)
    one = fit_ridge(Phi, t, penalty="local", centre=centre, sample_weight=w)
    other = fit_ridge(*many[:2], penalty="local", centre=centre)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-6)


def test_ridge_is_that_of_scikit_learn(rng):
    Phi, t, s, w = table(rng)
    fit = fit_ridge(Phi, t, centre=True, noise_std=s, sample_weight=w)
    multiplied = w / RowWeights.of(len(t), s, w).std ** 2
    peer = Ridge(alpha=fit.lam).fit(Phi, t, sample_weight=multiplied)
    np.testing.assert_allclose(fit.coef, peer.coef_, rtol=1e-7)
    np.testing.assert_allclose(fit.intercept, peer.intercept_, rtol=1e-7)


def test_unpenalised_weights_are_weighted_least_squares(rng):
    Phi, t, s, _ = table(rng, 20)
    found = posterior(Phi, t, np.zeros(4), 2.0, centre=True, noise_std=s)
    with_bias = np.hstack([Phi, np.ones((20, 1))])
    coef = np.linalg.lstsq(with_bias / s[:, None], t / s, rcond=None)[0]
    np.testing.assert_allclose(np.append(found.coef, found.intercept), coef, rtol=1e-9)
    unit = np.exp(np.log(s).mean())
    covariance = np.linalg.inv(with_bias.T @ np.diag((unit / s) ** 2) @ with_bias) / 2.0
    fresh = np.hstack([rng.normal(size=(5, 4)), np.ones((5, 1))])
    there = found.predict(fresh[:, :4])
    np.testing.assert_allclose(there.function.variance, np.diag(fresh @ covariance @ fresh.T), rtol=1e-9)
    np.testing.assert_allclose(there.variance - there.function.variance, 0.5, rtol=1e-9)


def test_precisions_are_those_of_a_dense_search(rng):
    Phi, t, s, _ = table(rng)
    fit = fit_evidence(Phi, t, noise_std=s)
    std = s / np.exp(np.log(s).mean())

    def minus(u):
        covariance = np.diag(std**2) * np.exp(-u[1]) + Phi @ Phi.T * np.exp(-u[0])
        return -multivariate_normal(np.zeros(len(t)), covariance).logpdf(t)

    best = minimize(minus, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-11})
    np.testing.assert_allclose(fit.log_evidence, -best.fun, rtol=1e-9)
    np.testing.assert_allclose(np.log([fit.alpha, fit.beta]), best.x, atol=1e-4)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_left_out_rows_are_those_of_refits(rng, centre, large):
    Phi, t, s, w = table(rng)
    fit = fit_evidence(Phi, t, centre=centre, noise_std=s, sample_weight=w)
    weights = RowWeights.of(len(t), s, w)
    assert weights is not None
    if large:  # a factorisation that kept no rows
        spectrum = replace(fit.spectrum, U=None, off_span=None, slack=None)
        fit = replace(fit, posterior=replace(fit.posterior, spectrum=spectrum))
    found = fit.leave_one_out()
    for i in (0, 5, 13):
        others = np.delete(np.arange(len(t)), i)
        spectrum = Spectrum.of(
            Phi[others], t[others], centre=centre, weights=RowWeights(weights.count[others], weights.std[others])
        )
        again = type(fit.posterior).of(spectrum, fit.lam, fit.beta).predict(Phi[[i]])
        own = again.function.variance + weights.std[i] ** 2 / fit.beta
        np.testing.assert_allclose(found.errors[i], t[i] - again.mean[0], rtol=1e-8)
        np.testing.assert_allclose(found.variances[i], own[0], rtol=1e-8)
    ridge = fit_ridge(Phi, t, criterion="loo", centre=centre, sample_weight=w, noise_std=s)
    apart = ridge.leave_one_out()
    np.testing.assert_allclose(ridge.value, weights.root**2 @ apart.errors**2 / w.sum(), rtol=1e-9)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("shape", [(14, 4), (6, 9)])
def test_refined_sums_agree_with_plain_ones(rng, centre, shape, monkeypatch):
    Phi, t, s, w = table(rng, *shape)
    spectrum = Spectrum.of(Phi, t, centre=centre, rows=True, weights=RowWeights.of(len(t), s, w))
    plain = sums(spectrum, 1e-3, rows=True)
    monkeypatch.setattr("bayessel.linear.reported_sums.REFINE_ABOVE", 0.0)
    refined = sums(spectrum, 1e-3, rows=True)
    for name in ("quad", "sum_squares", "trace_p", "gamma", "log_det", "residuals", "diag_p"):
        np.testing.assert_allclose(getattr(refined, name), getattr(plain, name), rtol=1e-9, atol=1e-11, err_msg=name)


def test_other_targets_on_a_weighted_factorisation(rng):
    Phi, t, s, w = table(rng)
    weights = RowWeights.of(len(t), s, w)
    first = Spectrum.of(Phi, t, centre=True, rows=True, weights=weights)
    one = fit_evidence(first.retarget(t**2))
    other = fit_evidence(Spectrum.of(Phi, t**2, centre=True, rows=True, weights=weights))
    np.testing.assert_allclose([one.log_evidence, one.beta], [other.log_evidence, other.beta], rtol=1e-9)


def test_quantiles_are_those_of_repeated_values(rng):
    values, w = rng.normal(size=9).round(1), rng.integers(1, 5, size=9)
    for q in (0.0, 0.16, 0.5, 0.84, 1.0):
        np.testing.assert_allclose(quantile(values, q, w), np.quantile(np.repeat(values, w), q), rtol=1e-12)


@pytest.mark.parametrize(
    "given, kind, said",
    [
        ({"sample_weight": [1.0, 2.0]}, ValueError, "one per row; got shape"),
        ({"sample_weight": 2.0}, TypeError, "one per row; got 2.0"),
        ({"sample_weight": [1.0, -2.0, 1.0]}, ValueError, "non-negative"),
        ({"sample_weight": [1.0, np.nan, 1.0]}, ValueError, "sample_weight"),
        ({"sample_weight": [0.0, 0.0, 0.0]}, ValueError, "positive here"),
        ({"sample_weight": [1e-3, 1e-3, 1e-3]}, ValueError, "noise_std = weights"),
        ({"sample_weight": [1e16, 1.0, 1.0]}, ValueError, "counts rows"),
        ({"sample_weight": ["a", "b", "c"]}, (TypeError, ValueError), "sample_weight"),
        ({"noise_std": [1.0, 0.0, 1.0]}, ValueError, "no row is free of noise"),
        ({"noise_std": [1.0, np.inf, 1.0]}, ValueError, "noise_std"),
        ({"noise_std": [1.0, 1e9, 1.0]}, ValueError, "within a factor"),
        ({"noise_std": [1.0, 1e300, 1.0]}, ValueError, "noise_std"),
        ({"noise_std": [True, False, True]}, TypeError, "True or False"),
    ],
)
def test_bad_weights_are_refused(given, kind, said):
    with pytest.raises(kind, match=said):
        fit_evidence(np.eye(3), [1.0, 2.0, 4.0], **given)
    spectrum = Spectrum.of(np.eye(3), [1.0, 2.0, 4.0])
    with pytest.raises(TypeError, match="holds already"):
        fit_evidence(spectrum, **given)


def sparse_table(rng, n=40, p=12):
    """A dictionary of which two columns are used, a target, noise levels and counts."""
    Phi = rng.normal(size=(n, p))
    s = np.exp(0.7 * rng.normal(size=n))
    Phi[:, -1] = 1.0
    return Phi, Phi[:, [2, 7, -1]] @ [2.0, -1.5, 3.0] + 0.3 * s * rng.normal(size=n), s, rng.integers(1, 4, size=n)


@pytest.mark.parametrize("made", [False, True])
def test_relevance_vector_machine_of_repeated_rows(rng, made):
    Phi, t, s, w = sparse_table(rng)

    def source(A):
        return MadeColumns(A.shape, lambda which: A[:, which]) if made else A

    one = fit_rvm(source(Phi), t, sample_weight=w, noise_std=s)
    many, again, levels = repeated(w, Phi, t, s)
    other = fit_rvm(source(many), again, noise_std=levels)
    np.testing.assert_array_equal(one.basis, other.basis)
    for name in ("log_evidence", "model_evidence", "beta", "alpha", "coef", "gamma", "sum_squares"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, err_msg=name)
    np.testing.assert_array_equal(one.design, Phi[:, one.basis])
    np.testing.assert_array_equal(one.target, t)
    np.testing.assert_allclose(one.predict(Phi).std, other.predict(Phi).std, rtol=1e-5)
    assert len(one.leave_one_out().errors) == len(t)


def test_evidence_of_a_relevance_vector_machine_is_a_density(rng):
    Phi, t, s, _ = sparse_table(rng)
    fit = fit_rvm(Phi, t, noise_std=s)
    std = s / np.exp(np.log(s).mean())
    used = Phi[:, fit.basis]
    covariance = np.diag(std**2) / fit.beta + used @ np.diag(1.0 / fit.alpha) @ used.T
    expected = multivariate_normal(np.zeros(len(t)), covariance).logpdf(t)
    np.testing.assert_allclose(fit.log_evidence, expected, rtol=1e-10)
    np.testing.assert_allclose(fit.history[-1]["log_evidence"], expected, rtol=1e-10)
    np.testing.assert_allclose(max(fit.starts.values()), expected, atol=1e-3)
    assert fit_rvm(Phi, t).fingerprint == fit.fingerprint


@pytest.mark.parametrize("shared", [False, True])
def test_fitted_widths_of_repeated_rows(rng, shared):
    X = rng.uniform(-1, 1, size=(25, 2))
    t, s = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=25), np.exp(0.5 * rng.normal(size=25))
    w, centers = rng.integers(1, 4, size=25), rng.uniform(-1, 1, size=(8, 2))
    many, again, levels = repeated(w, X, t, s)
    known = {"centers": centers, "shared": shared}
    one = fit_abf(X, t, sample_weight=w, noise_std=s, n_starts=2, **known)
    other = fit_abf(many, again, noise_std=levels, n_starts=2, **known)
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-6)
    np.testing.assert_allclose(one.widths, other.widths, rtol=1e-2)
    one = fit_rvm_width(X, t, sample_weight=w, noise_std=s, n_scan=5, n_starts=1, **known)
    other = fit_rvm_width(many, again, noise_std=levels, n_scan=5, n_starts=1, **known)
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-6)


@pytest.mark.parametrize("centre", [False, True])
def test_width_slopes_of_weighted_rows_are_differences(rng, centre):
    X, t = rng.normal(size=(12, 2)), rng.normal(size=12)
    weights = RowWeights.of(12, np.exp(rng.normal(size=12)), rng.uniform(0.5, 3, size=12))
    assert weights is not None
    y = weights.scale(t)
    y = weights.without_bias(y) if centre else y
    known = {"centre": centre, "weights": weights}
    at, u = np.array([0.2, 0.5]), 0.3
    _, by_lam, by_r = profile_gradient(u, at, X, X[:5], y, **known)
    h = 1e-5
    ends = [profile_gradient(u + d, at, X, X[:5], y, **known)[0] for d in (h, -h)]
    np.testing.assert_allclose(by_lam, (ends[0] - ends[1]) / (2 * h), rtol=1e-6)
    for k in range(2):
        ends = [profile_gradient(u, at + d * np.eye(2)[k], X, X[:5], y, **known)[0] for d in (h, -h)]
        np.testing.assert_allclose(by_r[k], (ends[0] - ends[1]) / (2 * h), rtol=1e-6)
    ends = [width_gradient(at + d * np.eye(2)[0], np.zeros(6), 0.4, X, X[:5], t, bias=True, weights=weights) for d in
            (h, 0.0, -h)]  # fmt: skip
    np.testing.assert_allclose(ends[1][1][0], (ends[0][0] - ends[2][0]) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_infinite_value_has_no_deviation_and_no_warning(weighted):
    weights = RowWeights.of(3, None, [1.0, 2.0, 1.0]) if weighted else None
    assert np.isnan(deviation(np.array([-np.inf, 0.0, 1.0]), weights))
    assert deviation(np.array([0.0, 0.0, 2.0]), None) == pytest.approx(np.sqrt(8.0) / 3.0)
