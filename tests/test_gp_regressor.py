"""GPRegressor: scikit-learn's protocol, every number against an oracle, chains that go on, odd data, bad input."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import arviz as az
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.covariance import Bias, Linear, Noise, SquaredExponential, Standard
from bayessel.diagnostics._fit_report import plot_lengths
from bayessel.errors import NumericalWarning, SamplingWarning, VersionWarning
from bayessel.estimators import _bar, _chains, _left_out
from bayessel.estimators import gp as module
from bayessel.estimators.standardise import Standardisation
from bayessel.gp import Mixture, Predictor
from bayessel.gp.map_result import Optimum
from bayessel.result import fingerprint

ROOT = Path(__file__).resolve().parents[1]
G = bs.GPRegressor
SHORT = {"inference": "mc", "draws": 12, "tune": 12, "cores": 1, "n_states": 10, "random_state": 0}
CHECKED = {
    "map": G(random_state=0),
    "map, inducing": G(inducing=8),
    "map, as it is": G(standardise=False),
    "mc": G(**SHORT),
}
NEW = np.array([[-2.0, 0.5], [0.0, 0.0], [0.31, 0.9], [0.9, 0.2], [8.0, 0.5]])


def wave(rng, n=30, noise=0.2, d=2):
    X = rng.uniform(0, 1, (n, d))
    return X, 30.0 + 5.0 * (np.sin(6 * X[:, 0]) + noise * rng.normal(size=n))


@pytest.fixture(scope="module")
def sampled():
    """One short run with data, for whatever needs draws and not how many."""
    X, y = wave(np.random.default_rng(5), 24)
    model = G(inference="mc", draws=60, tune=60, cores=1, n_states=26, random_state=3)
    return model.fit(X, y), X, y


def robust(column):
    """Median 0 and mean absolute deviation 1, by hand."""
    centre = (
        np.sort(column)[len(column) // 2] if len(column) % 2 else np.sort(column)[len(column) // 2 - 1 :][:2].mean()
    )
    return centre, np.abs(column - centre).mean()


# --- scikit-learn's own checks ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n if n == "map" else pytest.param(n, marks=pytest.mark.slow) for n in CHECKED])
def test_every_check_of_scikit_learn_passes(name):
    left, count = {}, 0
    for candidate, check in estimator_checks_generator(CHECKED[name]):
        count += 1
        try:
            check(candidate)
        except BaseException as error:
            # the one check that needs a variable set before SciPy is imported runs in the next test
            if not str(error).startswith("SCIPY_ARRAY_API is not set"):
                left[check.func.__name__] = f"{type(error).__name__}: {error}"
    assert count > 45 and left == {}


@pytest.mark.slow
def test_the_array_api_check_passes_where_it_can_run():
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import bayessel as bs\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "pairs = list(estimator_checks_generator(bs.GPRegressor()))\n"
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
    assert tags.target_tags.required and tags.target_tags.single_output and not tags.target_tags.multi_output
    assert tags.input_tags.two_d_array and not (tags.input_tags.sparse or tags.input_tags.allow_nan)


# --- standardisation -------------------------------------------------------------------------------------------


def test_real_columns_are_standardised_robustly_and_two_values_become_0_and_1(rng):
    X = np.column_stack(
        [rng.normal(5, 3, 31), rng.exponential(size=31), np.repeat([7.0, 9.0], [20, 11]), np.full(31, 4.0)]
    )
    y = 100 + 20 * rng.standard_t(3, 31)
    units = Standardisation.of(X, y)
    Z, t = units.inputs(X), units.targets(y)
    for column, raw in ((Z[:, 0], X[:, 0]), (Z[:, 1], X[:, 1]), (t, y)):
        centre, spread = robust(raw)
        np.testing.assert_allclose(column, (raw - centre) / spread, rtol=1e-12, atol=1e-13)
        assert np.median(column) == pytest.approx(0.0, abs=1e-13) and np.abs(column).mean() == pytest.approx(1.0)
    assert np.array_equal(np.unique(Z[:, 2]), [0.0, 1.0]) and not Z[:, 3].any()
    assert units.log_scale == pytest.approx(np.log(robust(y)[1]))
    nothing = Standardisation.none(4)
    assert np.array_equal(nothing.inputs(X), X) and np.array_equal(nothing.targets(y), y) and nothing.log_scale == 0.0


def test_a_target_with_two_values_is_a_real_target():
    units = Standardisation.of(np.arange(4.0)[:, None], np.array([0.0, 0.0, 0.0, 8.0]))
    assert (units.target_shift, units.target_scale) == (0.0, 2.0)


def test_outliers_move_the_units_little(rng):
    X, y = rng.normal(size=(101, 1)), rng.normal(size=101)
    plain = Standardisation.of(X, y)
    X[0] = y[0] = 50.0
    found = Standardisation.of(X, y)
    assert abs(found.target_shift - plain.target_shift) < 0.1 and found.target_scale < 2 * plain.target_scale
    assert found.input_scale[0] < 2 * plain.input_scale[0] < 0.4 * X.std() * 2


# --- the numbers -----------------------------------------------------------------------------------------------


def dense(model, X, y, theta):
    """Log evidence in the user's units, and a function for predictions, from matrices written out."""
    shift, scale = np.array([robust(column) for column in X.T]).T
    centre, spread = robust(y)
    Z, t, m = (X - shift) / scale, (y - centre) / spread, X.shape[1]
    v0, r2, w, a0, a1 = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2 : 2 + m]), *np.exp(theta[-2:])

    def kernel(A, B):
        return a0 + a1 * A @ B.T + v0 * np.exp(-0.5 * (((A[:, None] - B) ** 2) * w).sum(axis=2))

    Q = kernel(Z, Z) + r2 * np.eye(len(Z))
    evidence = scipy.stats.multivariate_normal(np.full(len(y), centre), spread**2 * Q).logpdf(y)

    def predict(new):
        k = kernel(Z, (new - shift) / scale)
        prior = np.diag(kernel((new - shift) / scale, (new - shift) / scale))
        mean = centre + spread * (k.T @ np.linalg.solve(Q, t))
        return mean, spread * np.sqrt(prior + r2 - (k * np.linalg.solve(Q, k)).sum(axis=0))

    return evidence, predict


def test_attributes_are_those_of_the_model_they_describe(rng):
    X, y = wave(rng)
    model = G(random_state=0).fit(X, y)
    evidence, predict = dense(model, X, y, model.theta_)
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-9)
    scale, spread = np.array([robust(c)[1] for c in X.T]), robust(y)[1]
    assert model.model_evidence_ == pytest.approx(model.fit_.model_evidence - 30 * np.log(spread), rel=1e-12)
    assert model.noise_std_ == pytest.approx(spread * np.exp(0.5 * model.theta_[1]), rel=1e-12)
    lengths = np.exp(-0.5 * model.theta_[2:4])
    table = model.relevance_
    assert list(table) == ["length", "lower", "upper", "standardised", "weight", "std"] and table.index.name == "input"
    np.testing.assert_allclose(table["length"], lengths * scale, rtol=1e-12)
    np.testing.assert_allclose(table["standardised"], lengths, rtol=1e-12)
    np.testing.assert_allclose(table["weight"], lengths**-2, rtol=1e-12)
    sd = np.sqrt(np.diag(np.linalg.inv(model.fit_.hessian)))[2:4] / 2
    np.testing.assert_allclose(table["std"], sd, rtol=1e-4)
    np.testing.assert_allclose(table["upper"], lengths * scale * np.exp(1.96 * sd), rtol=1e-3)
    np.testing.assert_allclose(model.width_, np.sqrt(2) * lengths * scale, rtol=1e-12)
    assert isinstance(model.status_, bs.Status) and isinstance(model.history_, list) and model.history_
    assert model.fingerprint_ == fingerprint(X, y) and model.target_fingerprint_ == fingerprint(y)
    assert model.version_ == bs.__version__ and model.trace_ is None
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, predict(NEW)[0], rtol=1e-9)
    np.testing.assert_allclose(std, predict(NEW)[1], rtol=1e-7)
    assert np.array_equal(model.predict_median(NEW), model.predict(NEW))
    low, high = model.predict(NEW, return_quantiles=[0.1, 0.9])[1]
    np.testing.assert_allclose(low, scipy.stats.norm.ppf(0.1, mean, std), rtol=1e-9)
    np.testing.assert_allclose(high, scipy.stats.norm.ppf(0.9, mean, std), rtol=1e-9)
    values = wave(rng, 5)[1]
    expected = scipy.stats.norm.logpdf(values, mean, std)
    np.testing.assert_allclose(model.log_predictive_density(NEW, values), expected, rtol=1e-9)


def test_the_width_is_that_of_the_gaussian_in_the_inputs_units(rng):
    X, y = wave(rng)
    model = G(random_state=0).fit(X, y)
    a, b = X[0], X[1]
    inside = Standard().matrix(model.theta_, *(model._units.inputs(row[None]) for row in (a, b)))[0, 0]
    rest = np.exp(model.theta_[-2]) + np.exp(model.theta_[-1]) * np.prod(model._units.inputs(X[:2]), axis=0).sum()
    shape = np.exp(-(((a - b) / model.width_) ** 2).sum())
    assert inside - rest == pytest.approx(np.exp(model.theta_[0]) * shape, rel=1e-10)


def test_numbers_as_they_are(rng):
    X, y = rng.normal(size=(25, 1)), rng.normal(size=25)
    model = G(standardise=False, random_state=0).fit(X, y)
    assert model.log_evidence_ == pytest.approx(bs.gp.log_marginal(model.theta_, X, y), rel=1e-12)
    np.testing.assert_array_equal(model._rows[0], X)
    np.testing.assert_array_equal(model.relevance_["length"], model.relevance_["standardised"])


def test_predictions_of_a_run_are_the_mixture_of_its_states(sampled, rng, monkeypatch):
    model, X, y = sampled
    theta = model.trace_.posterior["theta"].values
    assert theta.shape == (2, 60, 6) and model.theta_.shape == (26, 6)
    assert all((theta == state).all(axis=2).any() for state in model.theta_)
    each = [dense(model, X, y, state)[1](NEW) for state in model.theta_]
    means, sds = np.array([one[0] for one in each]), np.array([one[1] for one in each])
    mean, std, quantiles = model.predict(NEW, return_std=True, return_quantiles=[0.05, 0.5])
    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(std, np.sqrt((sds**2 + means**2).mean(axis=0) - means.mean(axis=0) ** 2), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(NEW), mean)
    np.testing.assert_allclose(scipy.stats.norm.cdf(quantiles[0], means, sds).mean(axis=0), 0.05, rtol=1e-6)
    np.testing.assert_allclose(scipy.stats.norm.cdf(quantiles[1], means, sds).mean(axis=0), 0.5, rtol=1e-6)
    np.testing.assert_allclose(model.predict_median(NEW), quantiles[1], rtol=1e-9)
    values = mean + std * rng.normal(size=len(NEW))
    expected = np.log(scipy.stats.norm.pdf(values, means, sds).mean(axis=0))
    np.testing.assert_allclose(model.log_predictive_density(NEW, values), expected, rtol=1e-8)
    monkeypatch.setattr(Mixture, "widened", lambda self: replace(self, variances=4.0 * self.variances))
    wide = np.log(scipy.stats.norm.pdf(values, means, 2 * sds).mean(axis=0))
    np.testing.assert_allclose(model.log_predictive_density(NEW, values, widen=True), wide, rtol=1e-8)
    function = model.predictive(NEW, noise=False)
    noise = model.predictive(NEW).variances - function.variances
    np.testing.assert_allclose(noise, np.exp(model.theta_[:, [1]]) * robust(y)[1] ** 2 + np.zeros(5), rtol=1e-6)
    assert model.noise_std_ == pytest.approx(np.sqrt(noise.mean()), rel=1e-9)


def test_relevance_of_a_run_is_read_from_all_draws(sampled):
    model, X, _ = sampled
    lengths = np.exp(-0.5 * model.trace_.posterior["theta"].values[..., 2:4].reshape(-1, 2))
    scale = np.array([robust(c)[1] for c in X.T])
    table = model.relevance_
    np.testing.assert_allclose(table["length"], scale * np.quantile(lengths, 0.5, axis=0), rtol=1e-9)
    np.testing.assert_allclose(table["lower"], scale * np.quantile(lengths, 0.025, axis=0), rtol=1e-9)
    np.testing.assert_allclose(table["std"], np.log(lengths).std(axis=0), rtol=1e-9)
    assert table["length"][0] < table["length"][1]
    np.testing.assert_allclose(model.width_, np.sqrt(2) * table["length"], rtol=1e-2)


@pytest.mark.filterwarnings("ignore:CHAINS_DISAGREE")
@pytest.mark.parametrize("inference", ["map", "mc"])
def test_inputs_that_no_term_looks_at_are_infinitely_long(rng, inference):
    X, y = wave(rng)
    some = SquaredExponential().on([0]) + Linear()
    model = G(inference, some, draws=5, tune=5, chains=1, cores=1, random_state=0).fit(X, y)
    assert model.covariance_ == some + Noise()  # a fit adds noise where there is none
    table = model.relevance_
    assert np.isfinite(table.loc[0]).all() and table["lower"][0] < table["length"][0] < table["upper"][0]
    assert np.isinf(table["length"][1]) and table["weight"][1] == 0.0 and np.isnan(table["upper"][1])
    assert np.isinf(model.width_[1])
    assert plot_lengths(table).axes[0].patches[0].get_width() == 0.0
    flat = G(inference, Linear() + Bias(), draws=5, tune=5, chains=1, cores=1, random_state=0).fit(X, y)
    assert flat.relevance_ is None and flat.width_ is None
    line = np.linspace(0, 1, 3)[:, None] * [1.0, 2.0]
    np.testing.assert_allclose(np.diff(flat.predict(line), 2), 0.0, atol=1e-9)


def test_predictions_come_in_pieces_that_do_not_show(sampled, monkeypatch, rng):
    model, _, _ = sampled
    many, values = rng.uniform(0, 1, (250, 2)), rng.normal(30, 5, 250)
    asked = {"return_std": True, "return_quantiles": [0.1, 0.5, 0.9]}
    whole, density = model.predict(many, **asked), model.log_predictive_density(many, values)
    monkeypatch.setattr(module, "CHUNK", 1)  # the pieces are then four times the number of rows
    for found, expected in zip(model.predict(many, **asked), whole, strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(model.log_predictive_density(many, values), density, rtol=1e-8)


def test_a_long_prediction_shows_a_bar_on_a_terminal_only(sampled, monkeypatch):
    import rich.progress

    model, _, _ = sampled
    seen = []

    class Bar(rich.progress.Progress):
        def __init__(self, *arguments, disable, **options):
            super().__init__(*arguments, disable=disable, **options)
            seen.append(disable)

        def update(self, task, **options):
            super().update(task, **options)
            seen.append(options["completed"])

    monkeypatch.setattr(rich.progress, "Progress", Bar)
    model.predict(NEW, return_std=True)
    assert not seen
    monkeypatch.setattr(_bar, "LONG", 0.0)
    monkeypatch.setattr(module, "CHUNK", 1)  # the pieces are then four times the number of rows, 96
    model.predict(np.tile(NEW, (40, 1)), return_std=True)
    assert seen[0] is True and seen[1:] == sorted(seen[1:]) and seen[-1] == 26 * 200
    seen.clear()
    monkeypatch.setattr(model, "progressbar", False)
    model.predict(NEW, return_std=True)
    assert not seen


# --- leave one out ---------------------------------------------------------------------------------------------


def test_leave_one_out_at_the_mode_leaves_a_row_out(rng):
    X, y = wave(rng, 15)
    model = G(random_state=0).fit(X, y)
    errors, variances = model.leave_one_out()
    Z, t = model._rows
    for i in range(15):
        others = np.arange(15) != i
        alone = Predictor(Z[others], t[others], None, model.theta_)(Z[[i]]).scaled(*robust(y))
        assert y[i] - errors[i] == pytest.approx(alone.mean[0], rel=1e-9)
        assert variances[i] == pytest.approx(alone.variance[0], rel=1e-9)
    expected = scipy.stats.norm.logpdf(errors, 0.0, np.sqrt(variances))
    np.testing.assert_allclose(model.log_leave_one_out(), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning", "ignore:Estimated shape parameter:UserWarning")
def test_leave_one_out_of_a_run_weights_the_draws_and_is_what_arviz_finds(sampled):
    model, _, y = sampled
    total = model.log_leave_one_out()
    Z, t = model._rows
    draws = model.trace_.posterior["theta"].values.reshape(-1, 6)
    stored = model.trace_["log_likelihood"]["t"].values.reshape(-1, len(t))
    for s, i in ((0, 0), (50, 7), (119, 23)):
        others = np.arange(len(t)) != i
        alone = Predictor(Z[others], t[others], None, draws[s])(Z[[i]]).scaled(*robust(y))
        assert stored[s, i] == pytest.approx(alone.log_density(y[[i]])[0], rel=1e-8)
    harmonic = -scipy.special.logsumexp(-stored, axis=0) + np.log(len(stored))
    np.testing.assert_allclose(total, harmonic, atol=0.3)
    assert not np.allclose(total, scipy.special.logsumexp(stored, axis=0) - np.log(len(stored)), atol=1e-3)
    np.testing.assert_allclose(total, az.loo(model.trace_, pointwise=True).elpd_i.values, atol=1e-10)
    errors, variances = model.leave_one_out()
    assert errors.shape == variances.shape == (24,) and (variances > 0).all()
    # the mean of a weighted mixture: between the extremes of its components
    low, high = (np.sort(model._every.leave_one_out().means, axis=0)[k] for k in (0, -1))
    means = model._units.targets(y - errors)
    assert (low <= means).all() and (means <= high).all()


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_shapes_of_importance_weights_are_those_of_the_fit_at_hand(sampled):
    model, X, y = pickle.loads(pickle.dumps(sampled[0])), *sampled[1:]
    model.leave_one_out()
    assert model.pareto_k_.shape == y.shape and "pareto_k_" in G.__doc__
    assert not hasattr(model.set_params(inference="map").fit(X, y), "pareto_k_")


def test_weights_where_nothing_can_be_smoothed():
    """Equal draws have equal weights; two values repeated have plain ones and an infinite shape."""
    flat = _left_out.weights(np.full((50, 1), -1.3))
    np.testing.assert_allclose(np.exp(flat[0]), 1 / 50)
    stuck = np.repeat([[-1.0], [-3.0]], 40, axis=0)
    weights, shape = _left_out.weights(stuck)
    assert np.isinf(shape[0])
    np.testing.assert_allclose(np.exp(weights[:, 0]), np.repeat([np.e, np.e**3], 40) / (40 * (np.e + np.e**3)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_leave_one_out_of_a_run_agrees_with_runs_without_the_row(rng):
    """In Monte Carlo standard errors, from independent runs; plain means of the densities differ."""
    X, y = wave(rng, 16)
    long = {"inference": "mc", "draws": 250, "tune": 150, "cores": 1, "n_states": 500, "progressbar": False}
    rows = (0, 5, 11)
    with_all, without, naive = [], [], []
    for seed in range(4):
        model = G(**long, random_state=seed).fit(X, y)
        with_all.append(model.log_leave_one_out()[list(rows)])
        stored = model.trace_["log_likelihood"]["t"].values.reshape(-1, 16)[:, list(rows)]
        naive.append(scipy.special.logsumexp(stored, axis=0) - np.log(len(stored)))
        found = []
        for i in rows:
            others = np.arange(16) != i
            alone = G(**long, random_state=100 + seed).fit(X[others], y[others])
            # in the units that all rows have, with priors in those units
            found.append(alone.log_predictive_density(X[[i]], y[[i]])[0])
        without.append(found)
    difference = np.array(with_all) - np.array(without)
    error = np.sqrt(np.var(with_all, axis=0, ddof=1) / 4 + np.var(without, axis=0, ddof=1) / 4)
    # without the row data and priors are standardised a little differently: a few hundredths of a nat
    assert (np.abs(difference.mean(axis=0)) < 4 * error + 0.05).all()
    assert (np.abs((np.array(naive) - np.array(without)).mean(axis=0)) > 4 * error + 0.05).any()


# --- runs that stop and go on ----------------------------------------------------------------------------------


def assert_same_run(found, expected):
    for name in ("posterior", "sample_stats"):
        assert found.trace_[name].to_dataset().equals(expected.trace_[name].to_dataset())
    np.testing.assert_array_equal(found.theta_, expected.theta_)
    np.testing.assert_array_equal(found.predict(NEW, return_std=True), expected.predict(NEW, return_std=True))
    assert found.trace_.attrs["status"] == "complete" and found.status_ is expected.status_


@pytest.mark.filterwarnings("ignore:CHAINS_DISAGREE")
def test_a_run_with_more_draws_is_one_that_was_asked_for_them_at_once(sampled, tmp_path):
    whole, X, y = sampled
    part = G(**whole.get_params() | {"draws": 20}).fit(X, y)
    assert part.trace_.posterior.sizes["draw"] == 20 and part.theta_.shape == (26, 6)
    joblib.dump(part, tmp_path / "model.joblib")
    back = joblib.load(tmp_path / "model.joblib").continue_fit(draws=60)
    assert back.trace_.attrs["resumed_draws"] == 2 * (60 + 20)
    assert_same_run(back, whole)
    again = back.continue_fit(draws=60)  # nothing left to do
    assert_same_run(again, whole)


@pytest.mark.filterwarnings("ignore:CHAINS_DISAGREE", "ignore::bayessel.errors.SamplingWarning")
def test_a_run_stopped_by_its_budget_and_continued_is_one_that_never_was(sampled):
    whole, X, y = sampled
    model = G(**whole.get_params() | {"time_budget": 0.15}).fit(X, y)
    stops = 0
    while model.status_ is bs.Status.TIME_BUDGET:
        stops += 1
        assert "continue_fit()" in model.trace_.attrs["advice"]
        model = pickle.loads(pickle.dumps(model)).continue_fit(time_budget="0.15s" if stops < 3 else None)
    assert stops
    assert_same_run(model, whole)


def test_going_on_throws_nothing_away_and_changes_no_setting(sampled):
    whole = pickle.loads(pickle.dumps(sampled[0]))
    with pytest.raises(ValueError, match=r"there are 60 draws per chain.*draws=10.*at least 60"):
        whole.continue_fit(draws=10)
    with pytest.raises(ValueError, match=r"there are 60 draws per chain.*draws=59"):
        whole.set_params(draws=59).continue_fit()
    for name, there, here in (("tune", 60, 10), ("chains", 2, 3), ("sampler", "tuned", "1996")):
        changed = pickle.loads(pickle.dumps(sampled[0])).set_params(**{name: here})
        with pytest.raises(ValueError, match=f"settings of fit: {name} was {there!r}, is now {here!r}; .*fit again"):
            changed.continue_fit(draws=80)
    assert whole.trace_.posterior.sizes["draw"] == 60


def test_before_the_first_draw_the_mode_predicts(sampled):
    whole, X, y = sampled
    with pytest.warns(SamplingWarning, match=r"no draws of the posterior yet.* of the mode"):
        model = G(**whole.get_params() | {"tune": 100_000, "time_budget": 0.1}).fit(X, y)
    assert model.status_ is bs.Status.TIME_BUDGET and model.theta_.shape == (1, 6)
    assert model.trace_.attrs["advice"].startswith("the time budget was over after")  # not what the mode left of it
    mode = G(random_state=3).fit(X, y)
    np.testing.assert_allclose(model.predict(NEW, return_std=True), mode.predict(NEW, return_std=True), rtol=1e-12)
    np.testing.assert_allclose(model.leave_one_out(), mode.leave_one_out(), rtol=1e-12)
    pd.testing.assert_frame_equal(model.relevance_, mode.relevance_)
    with pytest.raises(ValueError, match="use inference='mc'"):
        mode.continue_fit()


def test_states_that_predict_are_spread_evenly_and_end_with_the_last():
    assert _chains.kept_draws(10, 2, 100) == list(range(10))
    assert _chains.kept_draws(100, 2, 10) == [19, 39, 59, 79, 99]
    assert _chains.kept_draws(7, 1, 3) == [2, 4, 6]
    assert _chains.kept_draws(500, 4, 26) == [71, 142, 214, 285, 357, 428, 499]
    assert _chains.kept_draws(5, 3, 1) == [4]


def test_chains_begin_at_optima_of_similar_worth():
    optima = [Optimum(np.full(2, k), -1.0, height) for k, height in enumerate((-5.0, -7.0, -9.0))]
    found = _chains.starts(SimpleNamespace(optima=optima), 3)
    assert [one["theta"][0] for one in found] == [0.0, 1.0, 0.0]


def test_a_run_begins_at_the_mode_and_steps_as_many_rows_ask_for(sampled, monkeypatch):
    whole, X, y = sampled
    given = {}

    def run(archive, model, **options):
        given.update(options)
        return whole.trace_, b""

    monkeypatch.setattr(_chains, "run", run)
    model = clone(whole).fit(X, y)
    assert [one["theta"].tolist() for one in given["initvals"]] == [model.fit_.theta.tolist()] * 2
    few, many = given["step"], _chains.step(model.to_pymc(), 101, "tuned")
    assert (few.mass, few.jumps, few.updates_per_draw) == ("dense", False, 20)
    assert (many.mass, many.jumps, many.updates_per_draw) == ("dense", True, "auto")


def test_an_interrupted_search_for_the_mode_is_not_followed_by_chains(sampled, monkeypatch):
    whole, X, y = sampled
    stopped = replace(whole.fit_, status=bs.Status.INTERRUPTED, notes=(bs.Status.INTERRUPTED,))
    monkeypatch.setattr(module, "fit_map", lambda *_, **__: stopped)
    monkeypatch.setattr(_chains, "run", lambda *_, **__: pytest.fail("sampled"))
    model = clone(whole).fit(X, y)
    assert model.status_ is bs.Status.INTERRUPTED and model.trace_ is None
    np.testing.assert_allclose(model.predict(NEW), dense(model, X, y, whole.fit_.theta)[1](NEW)[0], rtol=1e-8)
    monkeypatch.undo()
    assert np.array_equal(model.continue_fit().theta_, whole.theta_)


def test_disagreement_of_chains_is_measured(rng):
    good = rng.normal(size=(2, 300, 3))
    rhat, size = _chains.agreement(good)
    assert rhat < 1.02 and size > 300
    good[1, :, 2] += 3.0
    assert _chains.agreement(good)[0] > 1.5
    assert _chains.agreement(np.ones((2, 50, 1))) == (np.inf, 0.0) == _chains.agreement(good[:, :3])


def test_the_same_seed_gives_the_same_draws_on_one_core_and_on_two(sampled):
    whole, X, y = sampled
    two = G(**whole.get_params() | {"cores": 2}).fit(X, y)
    assert_same_run(two, whole)
    as_generator = _chains.as_seed(np.random.default_rng(1))
    assert as_generator == _chains.as_seed(np.random.default_rng(1)) != _chains.as_seed(None)
    assert _chains.as_seed(np.random.RandomState(1)) == _chains.as_seed(np.random.RandomState(1))
    assert _chains.as_seed(7) == 7


def test_the_settings_of_the_thesis(sampled):
    whole, X, y = sampled
    with pytest.warns(NumericalWarning, match="CHAINS_DISAGREE: the chains have not mixed"):
        model = G("mc", sampler="1996", draws=4, tune=2, chains=1, cores=1, random_state=0).fit(X, y)
    assert model.status_ is bs.Status.CHAINS_DISAGREE is not whole.status_
    stats = model.trace_["sample_stats"]
    np.testing.assert_allclose(stats["step_size"], 0.5 * len(y) ** -0.5)
    np.testing.assert_allclose(stats["persistence"], 0.95)
    assert (stats["n_steps"] >= 10).all() and model.theta_.shape == (4, 6)


# --- inducing inputs -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:STEP_LIMIT")
def test_many_rows_through_inducing_inputs(rng):
    X, y = wave(rng, 150, d=1)
    exact = G(random_state=0).fit(X, y)
    model = G(inducing=25, random_state=0).fit(X, y)
    assert (model.kind_, exact.kind_) == ("bound", "type2") and len(model.fit_.inducing) <= 25
    # a bound at its own hyperparameters, and a close one
    there, _ = dense(model, X, y, model.theta_)
    assert there - 0.5 < model.log_evidence_ <= there + 1e-6
    assert model.log_evidence_ == pytest.approx(exact.log_evidence_, abs=1.0)
    new = np.linspace(-0.2, 1.2, 9)[:, None]
    mean, std, (low,) = model.predict(new, return_std=True, return_quantiles=[0.1])
    expected = dense(model, X, y, model.theta_)[1](new)
    np.testing.assert_allclose(mean, expected[0], atol=0.02 * y.std())
    np.testing.assert_allclose(std, expected[1], rtol=0.02)
    np.testing.assert_allclose(low, scipy.stats.norm.ppf(0.1, mean, std), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(new), mean)
    values = mean + std
    expected = scipy.stats.norm.logpdf(values, mean, std)
    np.testing.assert_allclose(model.log_predictive_density(new, values), expected, rtol=1e-9)
    function = model.predictive(new, noise=False)
    np.testing.assert_allclose(std**2 - function.variance, model.noise_std_**2, rtol=1e-9)
    errors, variances = model.leave_one_out()
    np.testing.assert_allclose(errors, exact.leave_one_out()[0], atol=0.05 * y.std())
    np.testing.assert_allclose(variances, exact.leave_one_out()[1], rtol=0.1)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict(new, return_std=True), (mean, std))
    scaled = clone(model).fit(X, 4.0 * y)
    assert scaled.log_evidence_ == pytest.approx(model.log_evidence_ - 150 * np.log(4.0), abs=1e-6)
    assert model.relevance_["length"][0] == pytest.approx(exact.relevance_["length"][0], rel=0.2)


def test_the_pymc_model_is_that_of_the_fit(sampled):
    model, _, _ = sampled
    declared = model.to_pymc()
    assert [v.name for v in declared.free_RVs] == ["theta"]
    assert list(declared.coords["parameter"]) == list(Standard().names(2))
    Z, t = model._rows
    point = {"theta": model.theta_[3]}
    expected = bs.gp.log_marginal(model.theta_[3], Z, t) + Standard().prior(2).log_density(model.theta_[3])
    found = declared.compile_logp(mode="FAST_COMPILE")(point)
    assert float(found) == pytest.approx(expected, rel=1e-10)


# --- protocol --------------------------------------------------------------------------------------------------


def test_a_column_target_is_ravelled_with_a_warning(rng):
    X, y = wave(rng)
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = G(random_state=0).fit(X, y[:, None])
    assert np.array_equal(model.theta_, G(random_state=0).fit(X, y).theta_) and model.predict(X).shape == (30,)


def test_frames_pipelines_searches_and_clones(rng):
    X, y = wave(rng, 40)
    frame = pd.DataFrame(X, columns=["length", "height"])
    model = G(random_state=0).fit(frame, pd.Series(y, name="target"))
    assert list(model.relevance_.index) == ["length", "height"] and model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["height", "length"]])
    pipeline = make_pipeline(StandardScaler(), G(random_state=0))
    search = GridSearchCV(pipeline, {"gpregressor__standardise": [True, False]}, cv=2).fit(frame, y)
    assert search.best_estimator_.predict(frame).shape == (40,) and search.best_score_ > 0.5
    other = clone(G(covariance=Standard(), chains=3, time_budget="2m"))
    assert other.get_params()["chains"] == 3 and other.time_budget == "2m" and not hasattr(other, "theta_")


@pytest.mark.filterwarnings("ignore:.*leave-one-out predictions are unsure")
def test_a_pickled_estimator_predicts_identically(sampled, rng, tmp_path):
    X, y = wave(rng, 25)
    for model in (G(random_state=0).fit(X, y), sampled[0]):
        model.predict(NEW, return_std=True)
        joblib.dump(model, tmp_path / "model.joblib")
        for back in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
            np.testing.assert_array_equal(back.predict(NEW, return_std=True), model.predict(NEW, return_std=True))
            np.testing.assert_array_equal(back.log_leave_one_out(), model.log_leave_one_out())
            assert back.status_ is model.status_ and back.log_evidence_ == model.log_evidence_
            assert back.fingerprint_ == model.fingerprint_ and back.version_ == bs.__version__
    model.version_ = "0.0.1"
    stored = pickle.dumps(model)
    model.version_ = bs.__version__
    with pytest.warns(VersionWarning, match=r"GPRegressor was fitted by bayessel 0\.0\.1"):
        pickle.loads(stored)


def test_a_pickle_is_of_the_size_of_the_data(rng):
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    model = G(random_state=0).fit(X, y)
    model.predict(X, return_std=True)
    assert len(pickle.dumps(model)) < 8 * 300 * 20  # a factor alone has 8 · 300 · 300 bytes


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"inference": "mcmc"}, ValueError, "inference must be one of 'map', 'mc', got 'mcmc'"),
        ({"inference": None}, ValueError, "inference must be one of"),
        ({"covariance": "rbf"}, TypeError, r"covariance must be a bayessel.covariance.Covariance, such as .*got 'rbf'"),
        ({"covariance": Standard}, TypeError, "covariance must be a bayessel.covariance.Covariance"),
        ({"time_budget": "soon"}, ValueError, "time_budget must be seconds, or text such as"),
        ({"time_budget": -1.0}, ValueError, "time_budget must be positive"),
        ({"random_state": "one"}, TypeError, "random_state must be an integer"),
        ({"random_state": -3}, ValueError, "random_state must be at least 0"),
        ({"standardise": "no"}, TypeError, "standardise must be True or False"),
        ({"progressbar": 1}, TypeError, "progressbar must be True or False"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"tune": -1}, ValueError, "tune must be at least 0"),
        ({"chains": 2.0}, TypeError, "chains must be an integer"),
        ({"n_states": 0}, ValueError, "n_states must be at least 1"),
        ({"cores": 0}, ValueError, "cores must be at least 1"),
        ({"sampler": "nuts"}, ValueError, "sampler must be one of 'tuned', '1996'"),
        ({"inducing": 0}, ValueError, "inducing must be at least 1"),
        ({"inducing": 5, "inference": "mc"}, ValueError, "inducing is for inference='map'"),
    ],
)
def test_bad_parameters_are_refused_at_the_door(rng, arguments, error, text):
    X, y = wave(rng, 10)
    with pytest.raises(error, match=text):
        G(**arguments).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "error", "text"),
    [
        ([[np.nan], [1.0]], [0.0, 1.0], ValueError, "NaN"),
        ([[0.0], [1.0]], [0.0, np.inf], ValueError, "infinity"),
        ([0.0, 1.0], [0.0, 1.0], ValueError, "Expected 2D array"),
        ([[0.0], [1.0]], [0.0, 1.0, 2.0], ValueError, "inconsistent numbers of samples"),
        ([["a"], ["b"]], [0.0, 1.0], ValueError, "must be numeric"),
        (np.empty((0, 1)), [], ValueError, "0 sample"),
        ([[0.0], [1.0]], np.ones((2, 2)), ValueError, "1d array"),
        ([[0.0], [1.0]], None, ValueError, "requires y"),
        ([[0.0], [1.0]], [1e200, 0.0], ValueError, "rescale"),
        ([[0.0], [1.0]], [1j, 0.0], ValueError, "Complex data not supported"),
        (
            np.zeros((module.MOST_ROWS + 1, 1)),
            np.zeros(module.MOST_ROWS + 1),
            ValueError,
            "needs 10 GB; pass inducing=500",
        ),
    ],
)
def test_bad_data_is_refused_at_the_door(X, y, error, text):
    with pytest.raises(error, match=text):
        G().fit(X, y)


def test_bad_calls_after_the_fit(rng):
    for call in ("predict", "predict_median", "predictive"):
        with pytest.raises(NotFittedError):
            getattr(G(), call)([[0.0]])
    for call in ("leave_one_out", "log_leave_one_out", "to_pymc", "continue_fit"):
        with pytest.raises(NotFittedError):
            getattr(G(), call)()
    for name in ("model_evidence_", "relevance_"):
        with pytest.raises(NotFittedError):
            getattr(G(), name)
    X, y = wave(rng)
    model = G(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="1 features"):
        model.predict([[0.0]])
    with pytest.raises(ValueError, match="quantiles must be probabilities"):
        model.predict(NEW, return_quantiles=[0.5, 1.0])
    with pytest.raises(TypeError, match="return_std must be True or False"):
        model.predict(NEW, return_std="yes")
    with pytest.raises(TypeError, match="widen must be True or False"):
        model.log_predictive_density(X, y, widen="a bit")
    with pytest.raises(TypeError, match="noise must be True or False"):
        model.predictive(NEW, noise=None)


# --- odd data --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:CHAINS_DISAGREE")
@pytest.mark.parametrize("inference", ["map", "mc"])
def test_units_and_offsets_of_inputs_and_target_scale_the_answer(rng, inference):
    X, y = wave(rng)
    model = G(inference, draws=5, tune=5, chains=1, cores=1, random_state=0)
    # powers of two: the standardised numbers are the same to the last bit, and every draw with them
    plain, scaled = clone(model).fit(X, y), clone(model).fit(X * [4.0, 0.5], 8.0 * y)
    assert scaled.log_evidence_ == pytest.approx(plain.log_evidence_ - 30 * np.log(8.0), abs=1e-9)
    assert scaled.model_evidence_ == pytest.approx(plain.model_evidence_ - 30 * np.log(8.0), abs=1e-6)
    np.testing.assert_array_equal(scaled.theta_, plain.theta_)
    asked = {"return_std": True, "return_quantiles": [0.2]}
    found, expected = scaled.predict(NEW * [4.0, 0.5], **asked), plain.predict(NEW, **asked)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, 8.0 * other, rtol=1e-9)
    moved = clone(model).fit(1000 * X + 12345.0, y - 1e4)
    np.testing.assert_allclose(moved.predict(1000 * NEW + 12345.0) + 1e4, plain.predict(NEW), rtol=1e-3)


ODD = {
    "one row": ([[0.3]], [2.0]),
    "two rows": ([[0.3], [0.9]], [2.0, 2.5]),
    "equal rows": ([[0.3], [0.3]], [2.0, 2.5]),
    "constant": (np.linspace(0, 1, 8)[:, None], np.full(8, 3.0)),
    "zero": (np.linspace(0, 1, 8)[:, None], np.zeros(8)),
    "duplicates": (np.repeat(np.linspace(0, 1, 5), 2)[:, None], [0, 0.1, 1, 1.1, 0, 0.1, -1, -0.9, 0, 0.1]),
    "one input value": (np.ones((6, 1)), np.arange(6.0)),
    "no noise": (np.linspace(0, 1, 25)[:, None], np.sin(6 * np.linspace(0, 1, 25))),
    "a line": (np.linspace(0, 1, 25)[:, None], 3 * np.linspace(0, 1, 25)),
    "far away": (1e8 + np.linspace(0, 1, 25)[:, None], 1e8 + np.cos(40 * np.arange(25))),
    "tiny numbers": (1e-90 * np.linspace(0, 1, 25)[:, None], 1e-90 * np.sin(6 * np.linspace(0, 1, 25))),
    "huge inputs": (1e200 * np.linspace(0, 1, 25)[:, None], np.sin(6 * np.linspace(0, 1, 25))),
    "more inputs than rows": (np.cos(np.arange(80.0).reshape(8, 10) ** 2), np.sin(np.arange(8.0) ** 2)),
}


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("inference", ["map", pytest.param("mc", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ODD)
def test_odd_data_get_a_sensible_answer(name, inference):
    X, y = (np.asarray(part, dtype=float) for part in ODD[name])
    model = G(inference, draws=20, tune=20, cores=1, random_state=0).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.abs(mean).max() <= 1.5 * np.abs(y).max() + 1e-9
    far_mean, far_std = model.predict(np.full((1, X.shape[1]), 50.0), return_std=True)
    assert np.isfinite(far_mean).all() and np.isfinite(far_std).all()
    assert isinstance(model.status_, bs.Status) and np.isfinite(model.log_evidence_)
    errors, variances = model.leave_one_out()
    assert np.isfinite(errors).all() and (variances > 0).all() and np.isfinite(model.log_leave_one_out()).all()
    assert len(model.relevance_) == X.shape[1] and np.isfinite(model.noise_std_) and not np.isinf(model.model_evidence_)
    if inference == "map":
        expected = {"constant": "CONSTANT_TARGET", "zero": "CONSTANT_TARGET", "no noise": "NOISE_AT_FLOOR"}
        few = "TOO_FEW_ROWS" if len(y) < 3 else expected.get(name)
        assert few is None or model.status_.name == few
    if np.ptp(y) == 0.0:
        np.testing.assert_allclose(mean, y, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "cause"), [("constant", "CONSTANT_TARGET"), ("one row", "TOO_FEW_ROWS")])
def test_the_status_of_a_run_is_the_cause_of_its_trouble(name, cause):
    X, y = (np.asarray(part, dtype=float) for part in ODD[name])
    model = G(**SHORT | {"draws": 3, "tune": 3}).fit(X, y)  # so short that chains cannot agree
    assert model.status_.name == cause and {bs.Status[cause], bs.Status.CHAINS_DISAGREE} <= set(model.notes_)
    assert "notes_" in G.__doc__


def test_numerical_trouble_is_a_status_and_a_warning():
    X, y = ODD["no noise"]
    with pytest.warns(NumericalWarning, match="NOISE_AT_FLOOR"):
        model = G(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-4)


def test_pure_noise_gives_an_honest_answer(rng):
    X, y = rng.uniform(0, 1, (60, 2)), rng.normal(size=60)
    model = G(random_state=0).fit(X, y)
    inside = rng.uniform(0, 1, (200, 2))
    mean, std = model.predict(inside, return_std=True)
    assert (std > 0.6).all() and np.abs(mean).max() < 1.0


def test_an_irrelevant_input_has_a_long_length(rng):
    X, y = wave(rng, 60, noise=0.05)
    table = G(random_state=0).fit(X, y).relevance_
    assert table["upper"][0] < table["lower"][1]


def test_error_bars_cover_what_the_model_draws(rng):
    """Of data drawn from the model 68 % within one standard deviation; with bars three quarters as long too few."""
    theta = np.array([0.0, -2.0, 1.0, -2.0, -2.0])
    inside, narrow = [], []
    for _ in range(60):
        X = rng.normal(size=(40, 1))
        Q = Standard().matrix(theta, X) + np.exp(-2.0) * np.eye(40)
        y = np.linalg.cholesky(Q) @ rng.normal(size=40)
        mean, std = G(random_state=0).fit(X[:30], y[:30]).predict(X[30:], return_std=True)
        z = np.abs(y[30:] - mean) / std
        inside.append((z < 1.0).mean())
        narrow.append((z < 0.75).mean())
    expected = 2 * scipy.stats.norm.cdf(1.0) - 1
    assert abs(np.mean(inside) - expected) < 4 * scipy.stats.sem(inside)
    assert abs(np.mean(narrow) - expected) > 4 * scipy.stats.sem(narrow)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_predictions_of_a_run_are_calibrated_over_the_prior(rng):
    """With θ from its prior and data from θ, the distribution function of a new target at the target is uniform."""
    found, narrow = [], []
    prior = Standard().prior(1)
    for seed in range(40):
        theta, X = prior.draw(rng), rng.normal(size=(9, 1))
        values, vectors = np.linalg.eigh(Standard().matrix(theta, X))
        root = np.sqrt(values.clip(0.0))
        y = vectors @ (root * rng.normal(size=9)) + np.exp(0.5 * theta[1]) * rng.normal(size=9)
        model = G("mc", standardise=False, draws=60, tune=100, chains=1, cores=1, random_state=seed).fit(X[:8], y[:8])
        mixture = model.predictive(X[8:])
        found.append(np.exp(mixture.log_cdf(y[8:])[0]))
        narrow.append(np.exp(replace(mixture, variances=mixture.variances / 16).log_cdf(y[8:])[0]))
    assert scipy.stats.kstest(found, "uniform").pvalue > 1e-3
    assert np.mean(np.abs(np.array(found) - 0.5) > 0.475) < 0.2 < np.mean(np.abs(np.array(narrow) - 0.5) > 0.475)


def test_a_mixture_is_what_a_whole_prediction_is(sampled):
    model, _, _ = sampled
    found = model.predictive(NEW)
    assert isinstance(found, Mixture) and found.means.shape == (26, len(NEW))
    np.testing.assert_array_equal(found.mean, model.predict(NEW))
