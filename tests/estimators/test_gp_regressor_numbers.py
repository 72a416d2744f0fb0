"""GPRegressor: attributes and predictions against matrices written out, with inducing inputs too.

Guards `bayessel.estimators.gp`, `bayessel.estimators._data_units`, `bayessel.estimators._relevance`,
`bayessel.estimators._mixture_predictions`.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from sklearn.base import clone

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel.covariance import Bias, Linear, Noise, SquaredExponential, Standard
from bayessel.estimators import _process_predictions as module
from bayessel.pages.fit_page import plot_relevance
from bayessel.prediction import Prediction
from bayessel.work import progress
from tests.problems.gp import NEW, G, dense, robust, short_run, wave


@pytest.fixture(scope="module")
def sampled():
    return short_run()


# --- the numbers -----------------------------------------------------------------------------------------------


def test_attributes_are_those_of_the_model_they_describe(rng):
    X, y = wave(rng)
    model = G("map", random_state=0).fit(X, y)
    evidence, predict = dense(model, X, y, model.theta_)
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-9)
    scale, spread = np.array([robust(c)[1] for c in X.T]), robust(y)[1]
    assert model.model_evidence_ == pytest.approx(model.fit_.mode.model_evidence.value - 30 * np.log(spread), rel=1e-12)
    assert model.noise_std_ == pytest.approx(spread * np.exp(0.5 * model.theta_[1]), rel=1e-12)
    lengths = np.exp(-0.5 * model.theta_[2:4])
    table = model.relevance_
    assert list(table) == ["length", "lower", "upper", "standardised", "weight", "std"] and table.index.name == "input"
    np.testing.assert_allclose(table["length"], lengths * scale, rtol=1e-12)
    np.testing.assert_allclose(table["standardised"], lengths, rtol=1e-12)
    np.testing.assert_allclose(table["weight"], lengths**-2, rtol=1e-12)
    sd = np.sqrt(np.diag(np.linalg.inv(model.fit_.mode.hessian)))[2:4] / 2
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


@pytest.mark.filterwarnings("ignore:NO_BETTER_THAN_CONSTANT")
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
    monkeypatch.setattr(Prediction, "widened", lambda self: replace(self, variances=4.0 * self.variances))
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
    assert plot_relevance(table).axes[0].patches[0].get_width() == 0.0
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
    monkeypatch.setattr(progress, "LONG", 0.0)
    monkeypatch.setattr(module, "CHUNK", 1)  # the pieces are then four times the number of rows, 96
    model.predict(np.tile(NEW, (40, 1)), return_std=True)
    assert seen[0] is True and seen[1:] == sorted(seen[1:]) and seen[-1] == 26 * 200
    seen.clear()
    monkeypatch.setattr(model, "progressbar", False)
    model.predict(NEW, return_std=True)
    assert not seen


# --- inducing inputs -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:STEP_LIMIT")
def test_many_rows_through_inducing_inputs(rng):
    X, y = wave(rng, 150, d=1)
    exact = G("map", random_state=0).fit(X, y)
    model = G("map", inducing=25, random_state=0).fit(X, y)
    assert (model.kind_, exact.kind_) == ("bound", "type2") and len(model.fit_.mode.inducing) <= 25
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
    out, expected = model.leave_one_out(), exact.leave_one_out()
    np.testing.assert_allclose(out.errors, expected.errors, atol=0.05 * y.std())
    np.testing.assert_allclose(out.variances, expected.variances, rtol=0.1)
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


# --- odd data --------------------------------------------------------------------------------------------------


def test_a_mixture_is_what_a_whole_prediction_is(sampled):
    model, _, _ = sampled
    found = model.predictive(NEW)
    assert isinstance(found, Prediction) and found.means.shape == (26, len(NEW))
    np.testing.assert_array_equal(found.mean, model.predict(NEW))
