"""Both estimators: scikit-learn's protocol, and every number against an independent oracle."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.errors import NumericalWarning
from tests import oracles

ROOT = Path(__file__).resolve().parents[1]
E, R = bs.EvidenceRegressor, bs.RidgeRBFRegressor
CHECKED = {
    "evidence": E(),
    "evidence, mackay": E(method="mackay"),
    "evidence, fitted width": E(width="fit"),
    "evidence, no bias": E(bias=False),
    "evidence, cauchy": E(kind="cauchy"),
    "ridge": R(),
    "ridge, local": R(penalty="local"),
    "ridge, loo": R(criterion="loo"),
    "ridge, no bias": R(bias=False),
    "ridge, cauchy": R(kind="cauchy"),
}
FEW = ("evidence", "ridge")
BOTH = pytest.mark.parametrize("make", [E, R], ids=["evidence", "ridge"])


def wave(rng, n=30, noise=0.2, d=1):
    X = rng.uniform(0, 1, (n, d))
    return X, 3.0 + np.sin(6 * X[:, 0]) + noise * rng.normal(size=n)


def kernels(model, X):
    """Kernel columns in use, from the formula."""
    H = oracles.radial(model.kind, X, model.dictionary_.centers, model.width_)
    last = H.shape[1]
    return H[:, model.basis_[model.basis_ < last]]


def precisions(model):
    alpha = np.asarray(model.alpha_)
    return float(alpha) if alpha.ndim == 0 else alpha[model.basis_[model.basis_ < len(alpha)]]


# --- scikit-learn's own checks ---------------------------------------------------------------------------------


def run_checks(estimator):
    """All checks by name; 'passed' or what came instead."""
    found = {}
    for number, (candidate, check) in enumerate(estimator_checks_generator(estimator)):
        try:
            check(candidate)
            outcome = "passed"
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        found[f"{number} {check.func.__name__}"] = outcome
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in CHECKED], ids=str)
def test_every_check_of_scikit_learn_passes(name):
    found = run_checks(CHECKED[name])
    assert len(found) > 45
    left = {key: value for key, value in found.items() if value != "passed"}
    # the one check that needs a variable set before SciPy is imported runs in the next test
    left = {key: value for key, value in left.items() if not value.startswith("SkipTest: SCIPY_ARRAY_API is not set")}
    assert left == {}


@BOTH
def test_the_array_api_check_passes_where_it_can_run(make):
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import bayessel as bs\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        f"pairs = list(estimator_checks_generator(bs.{make.__name__}()))\n"
        "some = [(e, c) for e, c in pairs if 'array_api' in c.func.__name__]\n"
        "assert some\n"
        "[c(e) for e, c in some]\n"
        "print(len(some), 'passed')"
    )
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.strip().endswith("passed"), done.stderr[-800:]


@pytest.mark.parametrize("name", CHECKED)
def test_no_tag_skips_a_check(name):
    tags = CHECKED[name].__sklearn_tags__()
    assert (tags.estimator_type, tags.requires_fit, tags.no_validation) == ("regressor", True, False)
    assert (tags.non_deterministic, tags._skip_test, tags.regressor_tags.poor_score) == (False, False, False)
    assert tags.target_tags.required and tags.target_tags.single_output and not tags.target_tags.positive_only
    assert tags.target_tags.multi_output == (CHECKED[name].width != "fit")
    inputs = tags.input_tags
    assert inputs.two_d_array and not (inputs.sparse or inputs.allow_nan or inputs.string or inputs.categorical)
    assert not (inputs.positive_only or inputs.pairwise or inputs.one_d_array or inputs.three_d_array)


# --- the evidence ----------------------------------------------------------------------------------------------

SETTINGS = {
    "evidence": E(width=0.2),
    "evidence, no bias": E(width=0.2, bias=False),
    "evidence, em": E(width=0.3, method="em"),
    "evidence, wide": E(width=20.0),
    "evidence, wide, no bias": E(width=20.0, bias=False),
    "evidence, multiquadric": E(width=0.5, kind="multiquadric"),
    "evidence, fitted": E(width="fit"),
    "evidence, few centres": E(width=0.3, centers=np.linspace(0, 1, 5)[:, None]),
    "ridge": R(width=0.2),
    "ridge, no bias": R(width=0.2, bias=False),
    "ridge, wide": R(width=20.0),
    "ridge, wide, no bias": R(width=20.0, bias=False, criterion="bic"),
    "ridge, loo": R(width=0.2, criterion="loo"),
    "ridge, local": R(width=0.1, penalty="local"),
    "ridge, local, no bias": R(width=0.1, penalty="local", bias=False, kind="cauchy"),
    "ridge, few centres": R(width=0.3, centers=np.linspace(0, 1, 5)[:, None]),
}


def tolerance(model, N):
    """The promise: 1e-8, and 10 eps sqrt(beta / alpha) beyond a ratio of 1e16."""
    ratio = float(np.max(model.beta_ / np.asarray(precisions(model))))
    return 1e-8 if ratio <= 1e16 else 10 * np.finfo(float).eps * np.sqrt(ratio)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_evidence_is_that_of_the_design_and_precisions_read_off(rng, name):
    X, y = wave(rng, 16)
    model = clone(SETTINGS[name]).fit(X, y)
    Phi = model.dictionary_.design(X)[:, model.basis_]
    if model.bias:
        Phi = Phi[:, :-1]
    if "wide" in name:
        assert np.linalg.cond(Phi) > 1e16
    np.testing.assert_allclose(Phi, kernels(model, X), rtol=1e-12, atol=1e-300)
    if np.any(precisions(model) == 0):  # a weight without a prior has no evidence
        assert name == "ridge, local, no bias" and model.log_evidence_ == -np.inf
        return
    expected = oracles.exact(Phi, y, precisions(model), model.beta_, centre=model.bias).log_evidence
    assert oracles.relative(model.log_evidence_, expected) < tolerance(model, len(y))
    assert model.noise_std_ == pytest.approx(model.beta_**-0.5, rel=1e-14)


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


@pytest.mark.parametrize("bias", [True, False])
def test_evidence_of_several_outputs_is_their_sum(rng, bias):
    # a penalty is found to about the root of the rounding: the same factorisation twice agrees to 1e-7, not to 1e-15
    X, y = wave(rng)
    Y = np.column_stack([y, rng.normal(size=len(y)), -3 * y])
    for model in (E(width=0.3, bias=bias), R(width=0.3, bias=bias), R(width=0.1, bias=bias, penalty="local")):
        many = clone(model).fit(X, Y)
        single = [clone(model).fit(X, Y[:, k]) for k in range(3)]
        assert many.log_evidence_ == pytest.approx(sum(m.log_evidence_ for m in single), rel=1e-8)
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


def exact_prediction(model, X, y, new):
    """Mean and standard deviation of new observations at sixty digits; the bias has prior precision zero."""
    with mpmath.workdps(oracles.DIGITS):
        rows, fresh = kernels(model, X), kernels(model, new)
        A = list(np.broadcast_to(precisions(model), (rows.shape[1],)))
        if model.bias:
            rows, fresh = np.c_[rows, np.ones(len(X))], np.c_[fresh, np.ones(len(new))]
            A = [*A, 0.0]
        Phi, beta = mpmath.matrix(rows.tolist()), mpmath.mpf(float(model.beta_))
        H = beta * (Phi.T * Phi) + mpmath.diag([mpmath.mpf(float(a)) for a in A])
        Sigma = H**-1
        mu = beta * (Sigma * (Phi.T * mpmath.matrix(y.tolist())))
        mean, std = [], []
        for row in fresh:
            f = mpmath.matrix(row.tolist())
            mean.append(float((f.T * mu)[0]))
            std.append(float(mpmath.sqrt(1 / beta + (f.T * Sigma * f)[0])))
        return np.array(mean), np.array(std)


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


def test_local_prediction_is_the_dense_posterior_of_the_columns_kept(rng):
    X, y = wave(rng, 20)
    model = R(width=0.1, penalty="local").fit(X, y)
    assert 0 < model.n_basis_ < 21 and np.isinf(model.lam_).any()
    new = np.linspace(-0.2, 1.2, 9)[:, None]
    expected_mean, expected_std = exact_prediction(model, X, y, new)
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(std, expected_std, rtol=1e-7)


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


# --- rows that come and go -------------------------------------------------------------------------------------

STREAMED = {
    "evidence": E(width=0.2, centers=np.linspace(0, 1, 7)[:, None]),
    "evidence, no bias": E(width=0.2, centers=np.linspace(0, 1, 7)[:, None], bias=False),
    "evidence, own centres": E(width=0.05),
    "ridge": R(width=0.2, centers=np.linspace(0, 1, 7)[:, None]),
    "ridge, local": R(width=0.1, penalty="local"),
}


def retrained(model, X, y, new):
    """Evidence, mean and std of the same columns and precisions with other rows, from dense formulas."""
    H = kernels(model, X)
    evidence = -np.inf  # of a weight without a prior
    if np.all(precisions(model) > 0):
        evidence = oracles.exact_log_evidence(H, y, precisions(model), model.beta_, centre=model.bias)
    mean, std = exact_prediction(model, X, y, new)
    return evidence, mean, std


def assert_retrained(model, X, y):
    new = np.linspace(-0.1, 1.1, 5)[:, None]
    evidence, mean, std = retrained(model, X, y, new)
    got_mean, got_std = model.predict(new, return_std=True)
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-9)
    np.testing.assert_allclose(got_mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got_std, std, rtol=1e-9)
    assert model.n_rows_ == len(y)


@pytest.mark.parametrize("name", STREAMED)
def test_adding_and_forgetting_rows_is_retraining(rng, name):
    X, y = wave(rng, 40)
    model = clone(STREAMED[name]).fit(X[:20], y[:20])
    model.partial_fit(X[20:], y[20:])
    assert_retrained(model, X, y)
    drop = np.array([3, 39, 0, 25, 11])
    model.forget(X[drop], y[drop])
    keep = np.setdiff1d(np.arange(40), drop)
    assert_retrained(model, X[keep], y[keep])
    model.partial_fit(X[drop[:1]], y[drop[:1]]).forget(X[keep[:6]], y[keep[:6]]).partial_fit(X[drop[1:]], y[drop[1:]])
    rest = np.concatenate([keep[6:], drop])
    assert_retrained(model, X[rest], y[rest])


def test_order_of_rows_does_not_matter(rng):
    X, y = wave(rng, 60)
    start = clone(STREAMED["evidence"]).fit(X[:20], y[:20])
    one_way, other = pickle.loads(pickle.dumps(start)), pickle.loads(pickle.dumps(start))
    for i in range(20, 60):
        one_way.partial_fit(X[[i]], y[[i]])
    one_way.forget(X[20:50], y[20:50])
    order = rng.permutation(np.arange(50, 60))
    other.partial_fit(X[order], y[order])
    np.testing.assert_allclose(one_way.coef_, other.coef_, rtol=1e-9)
    assert one_way.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-10)


@pytest.mark.parametrize("name", ["evidence", "ridge", "ridge, local"])
def test_reestimate_is_a_fresh_fit_with_the_same_centres(rng, name):
    X, y = wave(rng, 40)
    model = clone(STREAMED[name]).fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    before = np.array(model.beta_)
    model.reestimate()
    fresh = clone(STREAMED[name]).set_params(centers=model.dictionary_.centers).fit(X, y)
    np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=1e-9)
    assert model.log_evidence_ == pytest.approx(fresh.log_evidence_, rel=1e-12)
    assert model.beta_ == pytest.approx(fresh.beta_, rel=1e-12) and model.beta_ != before
    new = [[0.4]]
    np.testing.assert_allclose(model.predict(new, return_std=True), fresh.predict(new, return_std=True), rtol=1e-9)


@BOTH
def test_partial_fit_of_a_new_estimator_is_fit(rng, make):
    X, y = wave(rng)
    assert np.array_equal(make(width=0.3).partial_fit(X, y).coef_, make(width=0.3).fit(X, y).coef_)


@BOTH
def test_duplicate_rows_are_forgotten_one_at_a_time(rng, make):
    X, y = wave(rng, 10)
    twice_X, twice_y = np.vstack([X, X[:1]]), np.append(y, y[0])
    model = make(width=0.3, centers=X[:4]).fit(twice_X, twice_y).forget(X[:1], y[:1])
    assert_retrained(model, X, y)
    with pytest.raises(ValueError, match="not among the rows"):
        model.forget(X[[0, 0]], y[[0, 0]])
    assert_retrained(model, X, y)  # a refused call changes nothing


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
        np.testing.assert_allclose(model.predict(other), expected.predict(X), rtol=1e-9)
        assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-11)
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


# --- protocol --------------------------------------------------------------------------------------------------


@BOTH
def test_a_column_target_is_ravelled_with_a_warning(rng, make):
    X, y = wave(rng)
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = make().fit(X, y[:, None])
    assert np.array_equal(model.coef_, make().fit(X, y).coef_) and model.predict(X).shape == (30,)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@BOTH
def test_frames_pipelines_searches_and_clones(rng, make):
    X, y = wave(rng, 60, d=2)
    frame = pd.DataFrame(X, columns=["length", "height"])
    model = make().fit(frame, pd.Series(y, name="target"))
    assert model.feature_names_in_.tolist() == ["length", "height"] and model.n_features_in_ == 2
    np.testing.assert_allclose(model.predict(frame), make().fit(X, y).predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["height", "length"]])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), make()), {f"{make.__name__.lower()}__width": [1.0, 2.0]}, cv=3
    )
    search.fit(frame, y)
    assert search.best_estimator_.predict(frame).shape == (60,) and search.best_score_ > 0.5
    other = clone(make(width=[0.5, 2.0], kind="cauchy", bias=False))
    assert other.get_params()["width"] == [0.5, 2.0] and not hasattr(other, "coef_")
    assert make().set_params(kind="cauchy").kind == "cauchy"


@pytest.mark.parametrize("name", ["evidence", "evidence, fitted", "ridge", "ridge, local"])
def test_a_pickled_estimator_goes_on_where_it_stopped(rng, name):
    X, y = wave(rng)
    model = clone(SETTINGS[name]).fit(X, y)
    back = pickle.loads(pickle.dumps(model))
    new = rng.uniform(0, 1, (5, 1))
    assert np.array_equal(back.predict(new, return_std=True), model.predict(new, return_std=True))
    assert back.status_ is model.status_ and back.log_evidence_ == model.log_evidence_
    more = wave(rng, 3)
    assert np.array_equal(back.partial_fit(*more).coef_, model.partial_fit(*more).coef_)
    again = pickle.loads(pickle.dumps(back))
    assert np.array_equal(again.forget(*more).coef_, back.forget(*more).coef_)


@BOTH
def test_a_pickled_estimator_is_of_the_size_of_its_data(rng, make):
    X, y = wave(rng, 5000)
    model = make(width=0.2, centers=np.linspace(0, 1, 20)[:, None]).fit(X, y)
    # the rows and their 20 columns are 0.9 MB; what a factorisation keeps may be a few times that, N x N is 200 MB
    assert len(pickle.dumps(model)) < 4 * X.shape[0] * 22 * 8


@pytest.mark.parametrize("bias", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_pymc_model_is_that_of_the_fit(rng, bias):
    X, y = wave(rng, 12)
    fitted = E(width=0.4, bias=bias).fit(X, y)
    model = fitted.to_pymc()
    names = {variable.name for variable in model.free_RVs}
    assert names == ({"w", "alpha", "beta", "b"} if bias else {"w", "alpha", "beta"})
    point = model.initial_point()
    assert np.isfinite(model.compile_logp()(point))
    residual = y - kernels(fitted, X) @ point["w"] - point.get("b", 0.0)
    beta = np.exp(point["beta_log__"])
    expected = scipy.stats.norm.logpdf(residual, 0, beta**-0.5).sum()
    assert model.compile_logp(vars=model.observed_RVs)(point) == pytest.approx(expected, rel=1e-6)


@BOTH
def test_attributes_agree_with_each_other(rng, make):
    X, y = wave(rng)
    model = make(width=0.2).fit(X, y)
    design = model.dictionary_.design(X)[:, model.basis_]
    np.testing.assert_allclose(model.predict(X), design @ model.coef_, rtol=1e-12)
    assert model.n_basis_ == len(model.basis_) == len(model.coef_) == 31
    assert isinstance(model.status_, bs.Status) and isinstance(model.history_, list)
    # gamma: trace of the hat matrix of the dense ridge; the ridge estimator counts the bias, the evidence does not
    H = kernels(model, X)
    H = H - H.mean(axis=0)
    lam = model.alpha_ / model.beta_
    trace = np.trace(H @ np.linalg.solve(H.T @ H + lam * np.eye(30), H.T))
    assert model.gamma_ == pytest.approx(trace + (make is R), rel=1e-6)
    if make is R:
        S = float(((y - model.predict(X)) ** 2).sum())
        assert model.noise_std_ == pytest.approx(np.sqrt(S / (30 - model.gamma_)), rel=1e-8)
        assert model.criteria_["gcv"] == pytest.approx(30 * S / (30 - model.gamma_) ** 2, rel=1e-8)


def test_numerical_trouble_is_a_status_and_a_warning(rng):
    X = np.linspace(0, 1, 25)[:, None]
    with pytest.warns(NumericalWarning, match="ILL_CONDITIONED|NOISE_AT_FLOOR"):
        model = E(width=0.5).fit(X, np.exp(-((X[:, 0] - 0.4) ** 2) / 0.25))
    assert model.status_.name in ("ILL_CONDITIONED", "NOISE_AT_FLOOR")


def test_an_interrupted_partial_fit_leaves_what_was_fitted(rng, monkeypatch):
    X, y = rng.uniform(-1, 1, size=(30, 2)), rng.normal(size=30)
    model = bs.EvidenceRegressor(0.8, centers=X[:8]).fit(X[:20], y[:20])
    before = model.predict(X)
    add = bs.linear.RidgeState.add_row
    calls = []

    def interrupted(state, h, t):
        calls.append(t)
        if len(calls) == 5:
            raise KeyboardInterrupt
        add(state, h, t)

    monkeypatch.setattr(bs.linear.RidgeState, "add_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[20:], y[20:])
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit(X[20:], y[20:])
    assert model.n_rows_ == 30
