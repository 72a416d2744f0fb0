"""EvidenceRegressor and RidgeRBFRegressor: every number against an independent oracle.

Guards `bayessel.estimators.evidence`, `bayessel.estimators.ridge`, `bayessel.estimators._rbf_regressor`,
`bayessel.estimators._radial_dictionary`.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.integrate import quad
from sklearn.base import clone

from bayessel.fit import Status
from tests.oracles import linear as oracles
from tests.problems.estimators import BOTH, SETTINGS, E, R, exact_prediction, kernels, precisions, wave

# --- the evidence ----------------------------------------------------------------------------------------------


def tolerance(model, N):
    """The promise: 1e-8, and 10 eps sqrt(beta / alpha) beyond a ratio of 1e16."""
    ratio = float(np.max(model.beta_ / np.asarray(precisions(model))))
    return 1e-8 if ratio <= 1e16 else 10 * np.finfo(float).eps * np.sqrt(ratio)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_evidence_is_that_of_the_design_and_precisions_read_off(rng, name):
    checked = 0
    # a penalty of its own is zero for some weight in one data set of four, and without bias in most
    for _ in range(4 if "local" in name else 1):
        X, y = wave(rng, 16)
        model = clone(SETTINGS[name]).fit(X, y)
        Phi = model.dictionary_.design(X)[:, model.basis_]
        if model.bias:
            Phi = Phi[:, :-1]
        if "wide" in name:
            assert np.linalg.cond(Phi) > 1e16
        np.testing.assert_allclose(Phi, kernels(model, X), rtol=1e-12, atol=1e-300)
        # a weight whose prior is improper: with another width of that prior, any evidence could be had
        improper = bool(np.any(precisions(model) == 0))
        assert improper == (Status.IMPROPER_PRIOR in model.fit_.notes) == np.isnan(model.log_evidence_)
        if improper:
            assert "local" in name and model.fit_.evidence is None
            continue
        expected = oracles.exact(Phi, y, precisions(model), model.beta_, centre=model.bias).log_evidence
        assert oracles.relative(model.log_evidence_, expected) < tolerance(model, len(y))
        assert model.noise_std_ == pytest.approx(model.beta_**-0.5, rel=1e-14)
        checked += 1
    assert checked or name == "ridge, local, no bias"


@pytest.mark.filterwarnings("ignore:INTERPOLATION:bayessel.errors.NumericalWarning")
@BOTH
def test_evidence_with_bias_is_an_integral_over_the_bias(rng, make):
    """Flat prior of density 1 / (sqrt(2 pi) s), s the standard deviation of y, by numerical integration."""
    X, y = wave(rng, 12)
    model = make(width=0.3).fit(X, y)
    H, s = kernels(model, X), y.std()
    peak = float(model.coef_[-1])
    top = oracles.log_evidence(H, y - peak, model.alpha_, model.beta_)

    def integrand(b):
        return np.exp(oracles.log_evidence(H, y - b, model.alpha_, model.beta_) - top) / (np.sqrt(2 * np.pi) * s)

    # the integrand is a Gaussian in b: its own variance from the dense posterior of [H, 1]
    C = oracles.evidence_covariance(H, model.alpha_, model.beta_)
    width = (np.ones(len(y)) @ np.linalg.solve(C, np.ones(len(y)))) ** -0.5
    middle = float(np.ones(len(y)) @ np.linalg.solve(C, y)) * width**2
    value, _ = quad(integrand, middle - 12 * width, middle + 12 * width, points=[middle], epsabs=0, epsrel=1e-11)
    assert model.log_evidence_ == pytest.approx(top + np.log(value), rel=1e-9)


@pytest.mark.filterwarnings("ignore:(PURE_NOISE|INTERPOLATION):bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("bias", [True, False])
def test_evidence_of_several_outputs_is_their_sum(rng, bias):
    # a penalty is found to about the root of the rounding: the same factorisation twice agrees to 1e-7, not to 1e-15
    X, y = wave(rng)
    Y = np.column_stack([y, rng.normal(size=len(y)), -3 * y])
    for model in (E(width=0.3, bias=bias), R(width=0.3, bias=bias), R(width=0.1, bias=bias, penalty="local")):
        many = clone(model).fit(X, Y)
        single = [clone(model).fit(X, Y[:, k]) for k in range(3)]
        assert many.log_evidence_ == pytest.approx(
            sum(m.log_evidence_ for m in single), rel=1e-8, nan_ok=getattr(model, "penalty", "") == "local"
        )
        new = rng.uniform(0, 1, (7, 1))
        mean, std = many.predict(new, return_std=True)
        for k, one in enumerate(single):
            mean_k, std_k = one.predict(new, return_std=True)
            np.testing.assert_allclose(mean[:, k], mean_k, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(std[:, k], std_k, rtol=1e-6)
            assert many.noise_std_[k] == pytest.approx(one.noise_std_, rel=1e-6)
        density = many.log_predictive_density(X, Y)
        np.testing.assert_allclose(density[:, 1], single[1].log_predictive_density(X, Y[:, 1]), rtol=1e-5)


# --- prediction ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centers", [None, 4, 30], ids=["M = N", "M < N", "M > N"])
@pytest.mark.parametrize("bias", [True, False])
@BOTH
def test_prediction_is_the_dense_posterior(rng, make, bias, centers):
    X, y = wave(rng, 14)
    middle = None if centers is None else np.linspace(0, 1, centers)[:, None]
    model = make(width=0.4, bias=bias, centers=middle).fit(X, y)
    new = np.array([[-1.0], [0.0], [0.31], [0.9], [2.0]])
    expected_mean, expected_std = exact_prediction(model, X, y, new)
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(std, expected_std, rtol=1e-7)
    assert np.array_equal(model.predict(new), mean)


@BOTH
def test_far_from_the_data_only_the_bias_is_uncertain(rng, make):
    X, y = wave(rng)
    model = make(width=0.2).fit(X, y)
    mean, std = model.predict([[1e3]], return_std=True)
    H = kernels(model, X)
    C = oracles.evidence_covariance(H, model.alpha_, model.beta_)
    one = np.ones(len(y))
    variance_of_bias = 1 / (one @ np.linalg.solve(C, one))
    assert mean[0] == pytest.approx(one @ np.linalg.solve(C, y) * variance_of_bias, rel=1e-8)
    assert std[0] == pytest.approx(np.sqrt(1 / model.beta_ + variance_of_bias), rel=1e-8)
    assert std[0] > 1.001 * model.noise_std_


@pytest.mark.parametrize("name", ["evidence", "evidence, no bias", "ridge", "ridge, local"])
def test_log_predictive_density_is_that_of_the_normal(rng, name):
    X, y = wave(rng)
    model = clone(SETTINGS[name]).fit(X, y)
    new, values = wave(rng, 9)
    mean, std = exact_prediction(model, X, y, new) if name != "ridge, local" else model.predict(new, return_std=True)
    expected = scipy.stats.norm.logpdf(values, mean, std)
    np.testing.assert_allclose(model.log_predictive_density(new, values), expected, rtol=1e-7)


def test_densities_of_a_table_come_without_a_warning(rng):
    X, y = wave(rng)
    table = pd.DataFrame(X, columns=["time"])
    model = clone(SETTINGS["evidence"]).fit(table, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.log_predictive_density(table, y)
    np.testing.assert_array_equal(found, clone(SETTINGS["evidence"]).fit(X, y).log_predictive_density(X, y))


def test_local_prediction_is_the_dense_posterior_of_the_columns_kept(rng):
    X, y = wave(rng, 20)
    model = R(width=0.1, penalty="local").fit(X, y)
    assert 0 < model.n_basis_ < 21 and np.isinf(model.lam_).any()
    new = np.linspace(-0.2, 1.2, 9)[:, None]
    expected_mean, expected_std = exact_prediction(model, X, y, new)
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(std, expected_std, rtol=1e-7)


@pytest.mark.filterwarnings("ignore:PURE_NOISE:bayessel.errors.NumericalWarning")
def test_error_bars_cover_what_the_model_draws(rng):
    """68.3 % within one standard deviation, 95.4 % within two, on data drawn from the model itself."""
    inside, outside, total = np.zeros(2), np.zeros(2), 0
    centers = np.linspace(0, 1, 8)[:, None]
    for _ in range(120):
        X, new = rng.uniform(0, 1, (60, 1)), rng.uniform(0, 1, (20, 1))
        w = rng.normal(size=8)
        H, G = (oracles.radial("gaussian", Z, centers, 0.2) for Z in (X, new))
        y = 5.0 + H @ w + 0.5 * rng.normal(size=60)
        # one new observation per data set counts: those of one set share the errors of the weights
        seen = 5.0 + G @ w + 0.5 * rng.normal(size=20)
        model = E(width=0.2, centers=centers).fit(X, y)
        mean, std = model.predict(new, return_std=True)
        z, wrong = np.abs(seen - mean) / std, np.abs(seen - mean) / (0.7 * std)
        inside += [(z < 1).mean(), (z < 2).mean()]
        outside += [(wrong < 1).mean(), (wrong < 2).mean()]
        total += 1
    expected = scipy.stats.norm.cdf([1, 2]) - scipy.stats.norm.cdf([-1, -2])
    # noise dominates, so a binomial error for the 20 observations per set, doubled for what they share
    error = 2 * np.sqrt(expected * (1 - expected) / (total * 20))
    assert (np.abs(inside / total - expected) < 3 * error).all()
    assert (np.abs(outside / total - expected) > 3 * error).all()


# --- invariances -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["evidence", "evidence, fitted", "ridge", "ridge, loo", "ridge, local"])
def test_an_offset_changes_the_bias_alone(rng, name):
    X, y = wave(rng)
    y = np.round(y * 2**20) / 2**20  # so that adding 1e6 is exact
    plain, far = clone(SETTINGS[name]).fit(X, y), clone(SETTINGS[name]).fit(X, y + 1e6)
    np.testing.assert_allclose(far.coef_[:-1], plain.coef_[:-1], rtol=1e-5, atol=1e-7)
    assert far.coef_[-1] - plain.coef_[-1] == pytest.approx(1e6, rel=1e-12)
    assert far.log_evidence_ == pytest.approx(plain.log_evidence_, rel=1e-7)
    mean, std = plain.predict(X, return_std=True)
    far_mean, far_std = far.predict(X, return_std=True)
    np.testing.assert_allclose(far_mean - 1e6, mean, atol=1e-6)
    np.testing.assert_allclose(far_std, std, rtol=1e-6)


@pytest.mark.parametrize("name", ["evidence", "evidence, no bias", "ridge", "ridge, no bias", "ridge, local"])
@pytest.mark.parametrize("scale", [1e-6, 250.0])
def test_scaling_the_target_shifts_the_evidence_by_n_log_s(rng, name, scale):
    X, y = wave(rng)
    plain, scaled = clone(SETTINGS[name]).fit(X, y), clone(SETTINGS[name]).fit(X, scale * y)
    assert scaled.log_evidence_ == pytest.approx(plain.log_evidence_ - len(y) * np.log(scale), rel=1e-8)
    np.testing.assert_allclose(scaled.predict(X), scale * plain.predict(X), rtol=1e-6)
    assert scaled.noise_std_ == pytest.approx(scale * plain.noise_std_, rel=1e-7)


@BOTH
def test_layout_and_precision_of_the_input_do_not_matter(rng, make):
    X, y = wave(rng, d=2)
    expected = make().fit(X, y)
    wide = np.zeros((60, 4))
    wide[::2, ::2] = X
    frozen = X.copy()
    frozen.setflags(write=False)
    frozen_y = y.copy()
    frozen_y.setflags(write=False)
    for other, target in [
        (np.asfortranarray(X), y),
        (wide[::2, ::2], y),
        (frozen, frozen_y),
        (X[::-1][::-1], y[::-1][::-1]),
        (X.tolist(), y.tolist()),
    ]:
        model = make().fit(other, target)
        np.testing.assert_allclose(model.predict(other), expected.predict(X), rtol=1e-9, atol=1e-8)
        assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-6)
    assert np.array_equal(frozen, X)
    single = make().fit(X.astype(np.float32), y)
    double = make().fit(X.astype(np.float32).astype(float), y)
    assert single.log_evidence_ == double.log_evidence_ and single.coef_.dtype == np.float64


@pytest.mark.parametrize("name", ["evidence", "evidence, fitted", "ridge", "ridge, local"])
def test_the_same_input_gives_the_same_result(rng, name):
    X, y = wave(rng)
    first, second = clone(SETTINGS[name]).fit(X, y), clone(SETTINGS[name]).fit(X, y)
    assert np.array_equal(first.coef_, second.coef_) and first.log_evidence_ == second.log_evidence_
    again = first.coef_.copy()
    assert np.array_equal(first.fit(X, y).coef_, again)


# --- fitted widths ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_the_fitted_width_beats_a_grid(rng):
    X, y = wave(rng, 40)
    fitted = E(width="fit").fit(X, y)
    values = []
    for r in np.geomspace(0.02, 5, 31):  # the dense profile over lambda, at the restricted likelihood of N - 1 rows
        H = oracles.radial("gaussian", X, X, r)
        H = H - H.mean(axis=0)
        t = y - y.mean()
        s, U = np.linalg.eigh(H @ H.T)[0].clip(0), np.linalg.eigh(H @ H.T)[1]
        z2 = (U.T @ t) ** 2
        for lam in np.geomspace(1e-8, 1e4, 200):
            q = float(z2 @ (1 / (1 + s / lam)))
            beta = (len(y) - 1) / q
            values.append(
                -0.5 * (len(y) * np.log(2 * np.pi) - (len(y) - 1) * np.log(beta) + np.log1p(s / lam).sum() + beta * q)
                - 0.5 * np.log(t @ t)
            )
    assert fitted.log_evidence_ >= max(values) - 1e-6
    assert np.ndim(fitted.width_) == 0 and fitted.optima_[0].log_evidence == pytest.approx(fitted.log_evidence_)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_an_irrelevant_input_gets_a_wide_kernel(rng):
    X, y = wave(rng, 60, noise=0.05, d=2)
    model = E(width="ard").fit(X, y)
    assert model.width_.shape == (2,) and model.width_[1] > 5 * model.width_[0]
    common = E(width="fit").fit(X, y)
    assert model.log_evidence_ > common.log_evidence_
    for r in np.geomspace(0.5, 2.0, 7) * common.width_:
        assert common.log_evidence_ >= E(width=r).fit(X, y).log_evidence_ - 1e-6
