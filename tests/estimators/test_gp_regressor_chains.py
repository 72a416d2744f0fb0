"""GPRegressor with inference="mc": runs that stop and go on, leaving rows out of what was drawn.

Guards `bayessel.estimators._chains`, `bayessel.estimators._importance_loo`, `bayessel.estimators._sampled_process`.
"""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import arviz as az
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.base import clone

import bayessel as bs
from bayessel._check import chosen_seed
from bayessel.errors import NumericalWarning, SamplingWarning
from bayessel.estimators import _chains, _importance_loo
from bayessel.estimators import gp as module
from bayessel.gp import Predictor
from bayessel.gp.map_result import MapOptimum
from tests.problems.gp import NEW, G, dense, robust, short_run, wave


@pytest.fixture(scope="module")
def sampled():
    return short_run()


# --- leave one out ---------------------------------------------------------------------------------------------


def test_leave_one_out_at_the_mode_leaves_a_row_out(rng):
    X, y = wave(rng, 15)
    model = G("map", random_state=0).fit(X, y)
    out = model.leave_one_out()
    errors, variances = out.errors, out.variances
    Z, t = model._rows
    for i in range(15):
        others = np.arange(15) != i
        alone = Predictor(Z[others], t[others], None, model.theta_)(Z[[i]]).scaled(*robust(y))
        assert y[i] - errors[i] == pytest.approx(alone.mean[0], rel=1e-9)
        assert variances[i] == pytest.approx(alone.variance[0], rel=1e-9)
    expected = scipy.stats.norm.logpdf(errors, 0.0, np.sqrt(variances))
    np.testing.assert_allclose(out.log_densities, expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning", "ignore:Estimated shape parameter:UserWarning")
def test_leave_one_out_of_a_run_weights_the_draws_and_is_what_arviz_finds(sampled):
    model, _, y = sampled
    out = model.leave_one_out()
    total, errors, variances = out.log_densities, out.errors, out.variances
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
    assert errors.shape == variances.shape == (24,) and (variances > 0).all()
    # the mean of a weighted mixture: between the extremes of its components
    low, high = (np.sort(model.fit_.inner._predictor_of_all.leave_one_out().means, axis=0)[k] for k in (0, -1))
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
    flat = _importance_loo.weights(np.full((50, 1), -1.3))
    np.testing.assert_allclose(np.exp(flat[0]), 1 / 50)
    stuck = np.repeat([[-1.0], [-3.0]], 40, axis=0)
    weights, shape = _importance_loo.weights(stuck)
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
        with_all.append(model.leave_one_out().log_densities[list(rows)])
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
    mode = G("map", random_state=3).fit(X, y)
    np.testing.assert_allclose(model.predict(NEW, return_std=True), mode.predict(NEW, return_std=True), rtol=1e-12)
    for name in ("errors", "variances", "log_densities"):
        found, expected = (getattr(fit.leave_one_out(), name) for fit in (model, mode))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
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
    optima = [MapOptimum(np.full(2, k), -1.0, height) for k, height in enumerate((-5.0, -7.0, -9.0))]
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
    assert [one["theta"].tolist() for one in given["initvals"]] == [model.fit_.mode.theta.tolist()] * 2
    few, many = given["step"], _chains.step(model.to_pymc(), 101, "tuned")
    assert (few.mass, few.jumps, few.updates_per_draw) == ("dense", False, 20)
    assert (many.mass, many.jumps, many.updates_per_draw) == ("dense", True, "auto")


def test_an_interrupted_search_for_the_mode_is_not_followed_by_chains(sampled, monkeypatch):
    whole, X, y = sampled
    stopped = replace(whole.fit_.mode, status=bs.Status.INTERRUPTED, notes=(bs.Status.INTERRUPTED,))
    monkeypatch.setattr(module, "found_mode", lambda *_, **__: stopped)
    monkeypatch.setattr(_chains, "run", lambda *_, **__: pytest.fail("sampled"))
    model = clone(whole).fit(X, y)
    assert model.status_ is bs.Status.INTERRUPTED and model.trace_ is None
    np.testing.assert_allclose(model.predict(NEW), dense(model, X, y, whole.fit_.mode.theta)[1](NEW)[0], rtol=1e-8)
    monkeypatch.undo()
    assert np.array_equal(model.continue_fit().theta_, whole.theta_)


@pytest.mark.parametrize(("cause", "expected"), [("interrupt", "INTERRUPTED"), ("time budget", "TIME_BUDGET")])
def test_what_stopped_a_run_in_its_tuning_is_told_from_facts(sampled, monkeypatch, cause, expected):
    """Of a run without draws the status says that tuning is not finished, not why."""
    from bayessel.samplers.run import sampling

    facts = {"status": "tuning unfinished", "stopped_by": cause, "tuning_steps": 3, "tune_asked": 60, "draws": 0}
    told = SimpleNamespace(attrs=facts | {"draws_asked": 60, "advice": "for users of bayessel.sample"})

    def sample(model, store, **options):
        store.mkdir()
        return told

    monkeypatch.setattr(sampling, "sample", sample)
    chains = _chains.Chains({})
    chains.run(None)
    assert [note.name for note in chains.notes()] == [expected]
    cause = "it was interrupted" if cause == "interrupt" else "the time budget was over"
    assert told.attrs["advice"].startswith(f"{cause} after 3 of 60 draws of tuning")
    assert told.attrs["advice"].endswith("or call continue_fit()") and "20 times as long" in told.attrs["advice"]


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
    as_generator = chosen_seed(np.random.default_rng(1))
    assert as_generator == chosen_seed(np.random.default_rng(1)) != chosen_seed(None)
    assert chosen_seed(np.random.RandomState(1)) == chosen_seed(np.random.RandomState(1))
    assert chosen_seed(7) == 7


def test_the_settings_of_the_thesis(sampled):
    whole, X, y = sampled
    with pytest.warns(NumericalWarning, match="CHAINS_DISAGREE: the chains have not mixed"):
        model = G("mc", sampler="1996", draws=4, tune=2, chains=1, cores=1, random_state=0).fit(X, y)
    assert model.status_ is bs.Status.CHAINS_DISAGREE is not whole.status_
    stats = model.trace_["sample_stats"]
    np.testing.assert_allclose(stats["step_size"], 0.5 * len(y) ** -0.5)
    np.testing.assert_allclose(stats["persistence"], 0.95)
    assert (stats["n_steps"] >= 10).all() and model.theta_.shape == (4, 6)


@pytest.mark.parametrize(("draws", "limit"), [(100, 0.5), (1000, 2 / 3), (100_000, 0.7)])
def test_few_draws_are_told_off_at_smaller_shapes_of_a_tail(draws, limit):
    """Beyond min(1 − 1/log10 S, 0.7) importance weights are not to be trusted (Vehtari et al. 2024, eq. 13)."""
    below, above = limit - 1e-6, limit + 1e-6
    assert not _importance_loo.doubts(np.array([below, -0.2]), draws)
    said = _importance_loo.doubts(np.array([below, above, 0.9, np.inf]), draws)
    assert said.startswith("3 of 4 rows") and f"above {limit:.2f}" in said
