"""MLPRegressor: predictions from the draws written out, scikit-learn's protocol, runs that stop and go on.

Guards `bayessel.estimators.mlp_regressor`, `bayessel.estimators._network`, `bayessel.estimators._network_estimator`,
`bayessel.estimators._sampled_networks`.
"""

import functools
import pickle
import warnings

import arviz as az
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.errors import SamplingWarning, VersionWarning
from bayessel.estimators._network import planned
from bayessel.mlp import fit_early_stopping, fit_network_evidence
from bayessel.mlp.architecture import Architecture, hidden_units
from bayessel.mlp.network_fit import slopes
from tests.problems.mlp import NEW, SHORT, C, M, outputs_written_out, short_classes, short_run, wave

pytestmark = pytest.mark.filterwarnings(
    "ignore:CHAINS_DISAGREE", "ignore:.*leave-one-out predictions are unsure", "ignore:Estimated shape parameter"
)


def robust(column):
    return np.median(column), np.abs(column - np.median(column)).mean()


def components(model, X, y):
    """(chain, draw) of the states in use, their means and noise standard deviations at NEW, in the user's units."""
    shift, scale = np.array([robust(column) for column in X.T]).T
    y = y.reshape(len(X), -1)
    centre, spread = np.array([robust(column) for column in y.T]).T
    chains, draws = (model.trace_.posterior.sizes[name] for name in ("chain", "draw"))
    first = model.discarded_ - SHORT_TUNE
    each = 26 // chains
    chosen = [draws - 1 - (k * (draws - first)) // each for k in range(each)][::-1]
    means, noise = [], []
    for chain in range(chains):
        for draw in chosen:
            f = outputs_written_out(model.trace_, chain, draw, (NEW - shift) / scale)
            means.append(centre + spread * f)
            noise.append(spread * model.trace_.posterior["tau_noise"].values[chain, draw] ** -0.5)
    return np.array(means), np.array(noise)


SHORT_TUNE = 14


# --- predictions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 2])
def test_predictions_are_mixtures_over_the_draws(outputs):
    model, X, y = short_run(outputs)
    # of 14 + 40 draws the first 18 are discarded
    assert model.discarded_ == 18 and len(model.weights_.bias) == 26
    means, noise = components(model, X, y)
    spread = np.broadcast_to(noise[:, None], means.shape)
    mean, std, (low, median) = model.predict(NEW, return_std=True, return_quantiles=[0.1, 0.5])
    every = (lambda array: array[:, 0]) if outputs == 1 else (lambda array: array)
    np.testing.assert_allclose(mean, every(means.mean(axis=0)), rtol=1e-10)
    np.testing.assert_allclose(std, every(np.sqrt((spread**2).mean(axis=0) + means.var(axis=0))), rtol=1e-9)
    for level, found in ((0.1, low), (0.5, median)):
        cdf = scipy.stats.norm.cdf(found.reshape(1, 5, -1), means, spread).mean(axis=0)
        np.testing.assert_allclose(cdf, level, atol=1e-8)
    np.testing.assert_array_equal(model.predict_median(NEW), median)
    assert mean.shape == model.predictive(NEW).means.shape[1:] == y[:5].shape
    # outputs share the network, so their densities are products in each, and not of the mixtures
    new = mean + 0.3 * std
    joint = scipy.stats.norm.logpdf(new.reshape(1, 5, -1), means, spread).sum(axis=2)
    density = model.log_predictive_density(NEW, new)
    np.testing.assert_allclose(density, logsumexp(joint, axis=0) - np.log(26), rtol=1e-9)
    if outputs == 2:
        separate = logsumexp(scipy.stats.norm.logpdf(new[None], means, spread), axis=0) - np.log(26)
        assert np.abs(density - separate.sum(axis=1)).max() > 1e-3
    np.testing.assert_allclose(model.noise_std_, np.squeeze(np.sqrt((noise**2).mean(axis=0))), rtol=1e-12)
    bare = model.predictive(NEW, noise=False)
    assert not bare.variances.any() and np.isfinite(model.score(X, y))


def test_predictions_in_pieces_are_those_of_all_at_once(monkeypatch):
    from bayessel.estimators import mlp_regressor

    for outputs in (1, 2):
        model, X, y = short_run(outputs)
        whole = model.predict(X, return_std=True, return_quantiles=[0.2, 0.9])
        density = model.log_predictive_density(X, y)
        with monkeypatch.context() as patch:
            patch.setattr(mlp_regressor, "CHUNK", 1)
            assert model._piece() == 16 < len(X)
            for one, other in zip(model.predict(X, return_std=True, return_quantiles=[0.2, 0.9]), whole, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9)
            np.testing.assert_allclose(model.log_predictive_density(X, y), density, rtol=1e-9)


def test_units_of_the_data_do_not_matter(rng):
    X, y = wave(rng, 20)
    model = M(**SHORT).fit(X, y)
    units = np.array([1024.0, 1.0 / 64.0])  # powers of two: other roundings grow along trajectories
    other = M(**SHORT).fit(X * units, y / 128.0)
    np.testing.assert_allclose(other.predict(NEW * units), model.predict(NEW) / 128.0, rtol=1e-9)
    scaled = other.log_predictive_density(X * units, y / 128.0)
    np.testing.assert_allclose(scaled, model.log_predictive_density(X, y) + np.log(128.0), rtol=1e-9)
    np.testing.assert_allclose(other.relevance_["slope"], model.relevance_["slope"] / 128.0 / units, rtol=1e-9)
    np.testing.assert_allclose(other.relevance_["standardised"], model.relevance_["standardised"], rtol=1e-9)
    raw = M(**SHORT, standardise=False).fit(X, y)
    assert np.abs(raw.predict(X) - model.predict(X)).max() > 1e-3


def test_leave_one_out_weights_the_draws_as_arviz_does():
    model, _, y = short_run()
    out = model.leave_one_out()
    total, errors, variances = out.log_densities, out.errors, out.variances
    states, noise = model.fit_.inner.every
    assert len(states) == 2 * (40 - 4)
    Z, t = model._rows
    densities = scipy.stats.norm.logpdf(t[None, :, 0], states.outputs(Z)[..., 0], np.sqrt(noise))
    data = az.from_dict(
        {
            "posterior": {"x": np.zeros((2, 36))},
            "log_likelihood": {"t": densities.reshape(2, 36, -1) - np.log(robust(y)[1])},
        }
    )
    np.testing.assert_allclose(total, az.loo(data, pointwise=True).elpd_i.values, atol=1e-8)
    inside = logsumexp(densities, axis=0) - np.log(len(states)) - np.log(robust(y)[1])
    assert (total < inside).all() and model.pareto_k_.shape == y.shape
    assert errors.shape == y.shape and (variances > 0).all()
    seen = t[:, 0] - states.outputs(Z)[..., 0].mean(axis=0)
    assert np.mean(errors**2) > robust(y)[1] ** 2 * np.mean(seen**2)


def test_slopes_by_complex_steps(rng):
    network = Architecture(3, 4, 2)
    packed, X = rng.normal(size=network.size), rng.normal(size=(6, 3))
    found = slopes(network.split(packed), X)
    for i in range(3):
        step = np.zeros(3, dtype=complex)
        step[i] = 1e-30j
        a, u, b, v, w = network.split(packed)
        f = np.tanh((X + step) @ u + a) @ v + (X + step) @ w + b
        np.testing.assert_allclose(found[:, i], f.imag / 1e-30, rtol=1e-12)


def test_relevance_is_the_slope_along_the_input():
    model, X, _ = short_run()
    h = 1e-6
    for i, name in enumerate(model.relevance_.index):
        step = h * np.eye(2)[i]
        difference = (model.predictive(X + step).means - model.predictive(X - step).means) / (2 * h)
        each = np.sqrt((difference**2).mean(axis=1))
        row = model.relevance_.loc[name]
        np.testing.assert_allclose(row[["lower", "slope", "upper"]], np.quantile(each, [0.025, 0.5, 0.975]), rtol=1e-6)
    kept = model.trace_.posterior["tau_input_hidden"].values[:, 4:].reshape(-1, 2)
    np.testing.assert_allclose(model.relevance_["hidden"], np.median(kept, axis=0) ** -0.5)


# --- runs that stop and go on ----------------------------------------------------------------------------------


def assert_same_run(found, expected):
    for name in ("posterior", "sample_stats"):
        assert found.trace_[name].to_dataset().equals(expected.trace_[name].to_dataset())
    np.testing.assert_array_equal(found.predict(NEW, return_std=True), expected.predict(NEW, return_std=True))
    assert found.trace_.attrs["status"] == "complete" and found.status_ is expected.status_
    assert found.discarded_ == expected.discarded_


def test_a_run_with_more_draws_is_one_that_was_asked_for_them_at_once(tmp_path):
    whole, X, y = short_run()
    part = M(**whole.get_params() | {"draws": 10}).fit(X, y)
    assert part.trace_.posterior.sizes["draw"] == 10 and part.discarded_ == 14
    joblib.dump(part, tmp_path / "model.joblib")
    back = joblib.load(tmp_path / "model.joblib").continue_fit(draws=40)
    assert_same_run(back, whole)
    assert_same_run(back.continue_fit(draws=40), whole)  # nothing left to do
    with pytest.raises(ValueError, match=r"there are 40 draws per chain.*draws=10"):
        back.continue_fit(draws=10)
    with pytest.raises(ValueError, match=r"settings of fit: updates_per_draw was 1, is now 2"):
        back.set_params(updates_per_draw=2).continue_fit(draws=60)


@pytest.mark.filterwarnings("ignore::bayessel.errors.SamplingWarning")
def test_a_run_stopped_by_its_budget_and_continued_is_one_that_never_was():
    _, X, y = short_run()
    settings = SHORT | {"draws": 60, "tune": 20, "updates_per_draw": 20}
    whole = M(**settings).fit(X, y)
    model = M(**settings, time_budget=0.02).fit(X, y)
    stops = 0
    while model.status_ is bs.Status.TIME_BUDGET:
        stops += 1
        assert "continue_fit()" in model.trace_.attrs["advice"]
        model = pickle.loads(pickle.dumps(model)).continue_fit(time_budget="0.02s" if stops < 3 else None)
    assert stops
    assert_same_run(model, whole)


def test_a_budget_without_a_number_of_draws_is_used_and_no_fault(rng):
    X, y = wave(rng, 20)
    model = M("mc", time_budget=0.6, hidden=3, cores=1, tune=2, updates_per_draw=2, random_state=0).fit(X, y)
    assert bs.Status.TIME_BUDGET not in model.notes_
    made, seconds = model.trace_.posterior.sizes["draw"], model.trace_.attrs["sampling_time"]
    assert made > 2 and 0.4 < seconds < 3.0
    assert model.discarded_ == max(2, -(-(made + 2) // 3))
    model.continue_fit(time_budget=0.3)
    assert model.trace_.posterior.sizes["draw"] > made


def test_settings_follow_from_the_size_and_the_budget_alone():
    def plan(n, seconds, **options):
        return planned(
            M(**options, time_budget=seconds).get_params(), n, Architecture(8, hidden_units("auto", n, 8)).size
        )

    small, large = plan(64, None), plan(1024, None)
    assert (small.tune, small.draws) == (large.tune, large.draws) == (100, 200)
    assert small.updates > 5 * large.updates >= 5 and small.updates == plan(64, 1e4).updates
    short = plan(64, 0.5)
    assert short.updates < small.updates and short.tune <= 100 and short.draws > 1e5
    assert plan(1024, 0.05).tune == 10 and plan(1024, 0.05).updates == 1
    assert plan(64, 5.0, tune=7, draws=9, updates_per_draw=4)[:3] == (4, 7, 9)


def test_before_the_first_draw_the_mean_predicts(rng):
    X, y = wave(rng, 20, outputs=2)
    with pytest.warns(SamplingWarning, match=r"no draws of the posterior yet.*of no input at all") as caught:
        model = M(hidden=3, tune=1_000_000, draws=5, time_budget=0.05, cores=1, random_state=0).fit(X, y)
    assert caught[0].filename == __file__
    assert model.status_ is bs.Status.TIME_BUDGET
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, np.broadcast_to(y.mean(axis=0), (5, 2)))
    np.testing.assert_allclose(std, np.broadcast_to(y.std(axis=0), (5, 2)))
    assert model.relevance_["slope"].eq(0.0).all() and model.leave_one_out().log_densities.shape == (20,)


def test_the_same_seed_gives_the_same_draws_on_one_core_and_on_two():
    whole, X, y = short_run()
    assert_same_run(M(**whole.get_params() | {"cores": 2}).fit(X, y), whole)
    assert not np.array_equal(
        M(**SHORT).fit(X, y).predict(NEW), M(**SHORT | {"random_state": 1}).fit(X, y).predict(NEW)
    )


# --- protocol --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [M(**SHORT), C(**SHORT | {"draws": 40, "tune": 20, "updates_per_draw": 4})])
def test_every_check_of_scikit_learn_passes(model):
    left, count = {}, 0
    for candidate, check in estimator_checks_generator(model):
        count += 1
        try:
            check(candidate)
        except BaseException as error:
            # the one check that needs a variable set before SciPy is imported
            if not str(error).startswith("SCIPY_ARRAY_API is not set"):
                left[check.func.__name__] = f"{type(error).__name__}: {error}"
    assert count > 45 and left == {}


def test_no_tag_skips_a_check():
    for model, kind in ((M(), "regressor"), (C(), "classifier")):
        tags = model.__sklearn_tags__()
        assert (tags.estimator_type, tags.requires_fit, tags.no_validation) == (kind, True, False)
        assert (tags.non_deterministic, tags._skip_test) == (False, False)
        assert tags.target_tags.multi_output == (kind == "regressor")


def test_frames_pipelines_and_clones(rng):
    X, y = wave(rng, 20)
    frame = pd.DataFrame(X, columns=["length", "height"])
    model = M(**SHORT).fit(frame, pd.Series(y, name="target"))
    assert list(model.relevance_.index) == ["length", "height"] and model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["height", "length"]])
    assert make_pipeline(StandardScaler(), M(**SHORT)).fit(frame, y).predict(frame).shape == (20,)
    other = clone(M(hidden=4, time_budget="2m"))
    assert (other.hidden, other.time_budget) == (4, "2m") and not hasattr(other, "hidden_")
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        column = M(**SHORT).fit(X, y[:, None])
    np.testing.assert_array_equal(column.predict(X), model.predict(frame))


def test_a_pickled_estimator_predicts_identically():
    for model, X, y in (short_run(), short_classes(2)):
        back = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        np.testing.assert_array_equal(back.log_predictive_density(X, y), model.log_predictive_density(X, y))
        assert back.status_ is model.status_ and back.fingerprint_ == model.fingerprint_
        back.version_ = "0.0.1"
        with pytest.warns(VersionWarning, match=rf"{type(model).__name__} was fitted by bayessel 0\.0\.1"):
            pickle.loads(pickle.dumps(back))


def test_the_model_in_pymc_is_that_of_the_fit():
    model, _, _ = short_run()
    pymc = model.to_pymc()
    names = {name for name in model.trace_.posterior}
    assert {rv.name for rv in pymc.free_RVs} == names
    assert model.trace_.attrs["model_fingerprint"] and pymc["t"].eval().shape == (24,)
    assert np.isnan(model.log_evidence_) and model.kind_ == ""
    assert {"chain", "draws", "acceptance_rate", "step_size"} <= set(model.history_[1])


@pytest.mark.parametrize("make", [M, C])
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"inference": "mcmc"}, ValueError, "inference must be one of 'auto', 'mc'"),
        ({"hidden": 0}, ValueError, "hidden must be at least 1"),
        ({"hidden": "many"}, ValueError, "hidden must be 'auto' or a number"),
        ({"hidden": 2.5}, TypeError, "hidden must be an integer"),
        ({"time_budget": "soon"}, ValueError, "time_budget must be seconds, or text such as"),
        ({"time_budget": -1.0}, ValueError, "time_budget must be positive"),
        ({"random_state": "one"}, TypeError, "random_state must be an integer"),
        ({"standardise": "no"}, TypeError, "standardise must be True or False"),
        ({"progressbar": 1}, TypeError, "progressbar must be True or False"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"tune": -1}, ValueError, "tune must be at least 0"),
        ({"chains": 2.0}, TypeError, "chains must be an integer"),
        ({"n_states": 0}, ValueError, "n_states must be at least 1"),
        ({"updates_per_draw": 0}, ValueError, "updates_per_draw must be at least 1"),
        ({"cores": 0}, ValueError, "cores must be at least 1"),
    ],
)
def test_bad_parameters_are_refused_at_the_door(rng, make, arguments, error, text):
    X, y = wave(rng, 10)
    with pytest.raises(error, match=text):
        make(**arguments).fit(X, y if make is M else y > np.median(y))


@pytest.mark.parametrize(
    ("X", "y", "error", "text"),
    [
        ([[np.nan], [1.0]], [0.0, 1.0], ValueError, "NaN"),
        ([[0.0], [1.0]], [0.0, np.inf], ValueError, "infinity"),
        ([0.0, 1.0], [0.0, 1.0], ValueError, "Expected 2D array"),
        ([[0.0], [1.0]], [0.0, 1.0, 2.0], ValueError, "inconsistent numbers of samples"),
        ([["a"], ["b"]], [0.0, 1.0], ValueError, "must be numeric"),
        (np.empty((0, 1)), [], ValueError, "0 sample"),
        ([[0.0], [1.0]], None, ValueError, "requires y"),
        ([[0.0], [1.0]], [1e200, 0.0], ValueError, "rescale"),
        ([[0.0], [1.0]], np.zeros((2, 2, 2)), ValueError, "dim 3"),
    ],
)
def test_bad_data_is_refused_at_the_door(X, y, error, text):
    with pytest.raises(error, match=text):
        M(**SHORT).fit(X, y)


def test_bad_calls_after_the_fit():
    for call in ("predict", "predict_median", "predictive"):
        with pytest.raises(NotFittedError):
            getattr(M(), call)([[0.0]])
    for call in ("leave_one_out", "to_pymc", "continue_fit", "evidence"):
        with pytest.raises(NotFittedError):
            getattr(M(), call)()
    for name in ("relevance_", "weights_"):
        with pytest.raises(NotFittedError):
            getattr(M(), name)
    model, X, y = short_run()
    with pytest.raises(ValueError, match="1 features"):
        model.predict([[0.0]])
    with pytest.raises(ValueError, match="quantiles must be probabilities"):
        model.predict(NEW, return_quantiles=[0.5, 1.0])
    with pytest.raises(TypeError, match="return_std must be True or False"):
        model.predict(NEW, return_std="yes")
    with pytest.raises(ValueError, match="shape of the training target"):
        model.log_predictive_density(X, np.c_[y, y])


@pytest.mark.parametrize(
    ("X", "y", "status"),
    [
        ([[1.0]], [3.0], "TOO_FEW_ROWS"),
        ([[1.0], [2.0]], [3.0, 4.0], "TOO_FEW_ROWS"),
        (np.arange(12.0)[:, None], np.full(12, 1.3), "CONSTANT_TARGET"),
    ],
)
@pytest.mark.filterwarnings("ignore:(CONSTANT_TARGET|TOO_FEW_ROWS):bayessel.errors.NumericalWarning")
def test_data_that_tell_little_get_a_sensible_answer(X, y, status):
    model = M(**SHORT).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert model.status_.name == status
    assert np.isfinite(mean).all() and (std > 0).all() and np.abs(mean - np.mean(y)).max() < 3.0


def test_duplicate_rows_and_constant_columns_do_no_harm(rng):
    X, y = wave(rng, 12)
    X = np.c_[np.r_[X, X], np.ones(24)]
    model = M(**SHORT).fit(X, np.r_[y, y])
    assert np.isfinite(model.predict(X, return_std=True)).all() and model.relevance_["slope"].notna().all()


# --- ensembles and the most probable network -------------------------------------------------------------------


@functools.cache
def fitted(how, outputs=1):
    X, y = wave(np.random.default_rng(11), 45, outputs=outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a search may stop early; what it found is what is looked at
        return M(how, hidden=2, random_state=0, progressbar=False).fit(X, y), X, y


def engine(how, model, X, y):
    """The engine on rows standardised by hand, with centre and spread of the targets."""
    y = y.reshape(len(X), -1)
    shift, scale = np.array([robust(column) for column in X.T]).T
    centre, spread = np.array([robust(column) for column in y.T]).T
    Z, t = model._rows  # the same to the last bit, or training leads elsewhere
    np.testing.assert_allclose(Z, (X - shift) / scale, rtol=1e-12)
    np.testing.assert_allclose(t, (y - centre) / spread, rtol=1e-12, atol=1e-14)
    function = fit_early_stopping if how == "early-stopping" else fit_network_evidence
    fit = function(Z, t, hidden=2, random_state=0)
    return fit, (NEW - shift) / scale, centre, spread


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("how", ["early-stopping", "evidence"])
def test_predictions_are_those_of_the_engine_in_units_of_the_data(how, outputs):
    model, X, y = fitted(how, outputs)
    fit, Z, centre, spread = engine(how, model, X, y)
    mean, std = model.predict(NEW, return_std=True)
    if how == "evidence":
        expected, deviation = fit.predict(Z).mean, fit.predict(Z).std
    else:
        expected = fit.predict(Z).mean
        deviation = np.broadcast_to(fit.noise_std, expected.shape)
    squeezed = (lambda array: array[:, 0]) if outputs == 1 else (lambda array: array)
    np.testing.assert_allclose(mean, squeezed(centre + spread * expected), rtol=1e-7)
    np.testing.assert_allclose(std, squeezed(spread * deviation), rtol=1e-7)
    np.testing.assert_allclose(model.predict_median(NEW), mean, rtol=1e-12)
    new = mean + 0.7 * std
    density = scipy.stats.norm.logpdf(new, mean, std).reshape(5, -1).sum(axis=1)
    np.testing.assert_allclose(model.log_predictive_density(NEW, new), density, rtol=1e-9)
    assert model.hidden_ == 2 and model.trace_ is None and len(model.history_) >= 1
    if how == "evidence":
        assert model.kind_ == "laplace"
        np.testing.assert_allclose(model.log_evidence_, fit.log_evidence - 45 * np.log(spread).sum(), rtol=1e-7)
        bare = model.predictive(NEW, noise=False).variances[0]
        np.testing.assert_allclose(std**2 - bare, np.broadcast_to(model.noise_std_**2, bare.shape), rtol=1e-6)
        assert model.relevance_["hidden"].notna().all() and model.relevance_["lower"].isna().all()
    else:
        assert np.isnan(model.log_evidence_) and model.relevance_["lower"].notna().all()


def test_an_ensemble_leaves_rows_to_networks_that_have_not_seen_them():
    model, X, y = fitted("early-stopping")
    fit, _, centre, spread = engine("early-stopping", model, X, y)
    out = model.leave_one_out()
    errors, variances = out.errors, out.variances
    np.testing.assert_allclose(y - errors, centre + spread * fit.held_out[:, 0], rtol=1e-9)
    np.testing.assert_allclose(variances, (spread * fit.noise_std)[0] ** 2, rtol=1e-9)
    np.testing.assert_allclose(out.log_densities, scipy.stats.norm.logpdf(errors, 0.0, variances**0.5))


def test_rows_left_out_of_the_most_probable_network_by_its_leverages():
    model, X, y = fitted("evidence")
    out = model.leave_one_out()
    errors, variances = out.errors, out.variances
    share = 1.0 - model.predictive(X, noise=False).variances[0] / model.noise_std_**2
    assert (share > 0.1).all() and (share < 1.0).all()
    np.testing.assert_allclose(errors, (y - model.predict(X)) / share, rtol=1e-8)
    np.testing.assert_allclose(variances, model.noise_std_**2 / share, rtol=1e-8)


def test_an_ensemble_goes_on_bit_by_bit(rng):
    X, y = wave(rng, 40)
    model = M("early-stopping", hidden=2, time_budget=0.2, random_state=0).fit(X, y)
    before = [entry["held_out_loss"] for entry in model.history_]
    first = pickle.loads(pickle.dumps(model))
    back = pickle.loads(pickle.dumps(model)).continue_fit(time_budget="0.2s")
    after = [entry["held_out_loss"] for entry in back.history_]
    assert len(after) >= len(before) and after[: len(before)] == before
    np.testing.assert_array_equal(back.weights_.bias[: len(before)], first.weights_.bias[: len(before)])
    assert len(back.continue_fit().history_) >= len(after)  # as long as the fit was
    with pytest.raises(ValueError, match="pass time_budget alone"):
        back.continue_fit(draws=10)
    with pytest.raises(ValueError, match="use inference='mc'"):
        fitted("evidence")[0].continue_fit(time_budget=1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["early-stopping", "evidence"])
@pytest.mark.parametrize("make", [M, C])
def test_every_check_of_scikit_learn_passes_without_chains(make, how):
    left, count = {}, 0
    for candidate, check in estimator_checks_generator(make(how, hidden=3, random_state=0)):
        count += 1
        try:
            check(candidate)
        except BaseException as error:
            if not str(error).startswith("SCIPY_ARRAY_API is not set"):
                left[check.func.__name__] = f"{type(error).__name__}: {error}"
    assert count > 45 and left == {}
