"""Evidences of sampled networks behind the estimators: units, data, tables with other models.

Guards `bayessel.estimators._annealed`.
"""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import bayessel as bs
from bayessel.diagnostics import compare
from bayessel.errors import DataMismatchError, SamplingWarning
from bayessel.estimators._annealed import log_hyperparameters
from bayessel.fit import Status
from bayessel.mlp.prior import Precisions
from bayessel.samplers import annealing
from bayessel.samplers.network.annealing import anneal_network
from tests.oracles.annealing import linear_log_evidence
from tests.problems.mlp import SHORT, M, short_classes, short_run, wave
from tests.samplers.network.test_network_annealing import silent, z_score

pytestmark = pytest.mark.filterwarnings(
    "ignore:CHAINS_DISAGREE",
    "ignore:UNSURE_EVIDENCE",
    "ignore:annealing has found networks",
    "ignore:.*leave-one-out predictions are unsure",
    "ignore:Estimated shape parameter",
)
QUICK = {"n_particles": 10, "n_runs": 3, "updates": 1, "n_leapfrog": 5, "n_pilots": 1}
SOME = SHORT | {"draws": 40, "tune": 10}


def test_it_is_that_of_the_model_in_units_of_the_data(rng):
    X, y = wave(rng)
    model = M(**SOME).fit(X, y)
    assert np.isnan(model.model_evidence_) and np.isnan(model.model_evidence_se_)
    found = model.evidence(**QUICK)
    assert model.model_evidence_ == found.value and model.model_evidence_se_ == found.error
    scale = np.abs(y - np.median(y)).mean()
    inside = anneal_network(
        *model._rows,
        hidden=3,
        draws=log_hyperparameters(model.fit_.inner),
        bracket=True,
        ends=(model.fit_.inner.every[0].packed, log_hyperparameters(model.fit_.inner)),
        random_state=np.random.default_rng(np.random.SeedSequence([0, 1])),
        **QUICK,
    )
    up, down = found.routes
    assert (up.name, down.name) == ("annealing", "annealing, down")
    assert up.value == pytest.approx(inside.log_evidence - len(y) * np.log(scale), rel=1e-12)
    assert found.engine.upper == pytest.approx(inside.upper - len(y) * np.log(scale), rel=1e-12)
    assert found.value == pytest.approx(up.value, rel=1e-12) and found.n_rows == len(y)
    assert (found.data_fingerprint, found.target_fingerprint) == (model.fingerprint_, model.target_fingerprint_)
    # in units 128 times as small densities are as much smaller, row by row; a power of two leaves the chains alone
    other = M(**SOME).fit(X, 128.0 * y)
    other.evidence(**QUICK)
    assert other.model_evidence_ == pytest.approx(model.model_evidence_ - len(y) * np.log(128.0), abs=1e-6)


def test_sign_and_units_are_those_of_a_linear_model(rng):
    """Direct connections alone, precisions held: the density of y under one Gaussian, written in units of y."""
    X = rng.standard_normal((8, 2))
    y = 40.0 + 5.0 * (X[:, 0] - 0.5 * X[:, 1] + 0.2 * rng.standard_normal(8))
    model = M(**SHORT).fit(X, y)
    Z, t = model._rows
    one = np.asarray(1.0)
    held = Precisions(np.array([4.0]), one, np.asarray(1e14), np.ones(2), one, np.array([0.5, 2.0]), one)
    result = anneal_network(Z, t, prior=silent(2, 2), precisions=held, n_runs=30, n_particles=20, random_state=0)
    result = result.in_units(model.fit_.log_units, model.fingerprint_)
    shift, scale = np.median(y), np.abs(y - np.median(y)).mean()
    truth = linear_log_evidence(Z, (y - shift)[:, None], held.noise / scale**2, held.input_output / scale**2, scale)
    assert abs(z_score(result, truth)) < 4.0 and result.standard_error < 0.2


def test_networks_and_processes_with_draws_stand_in_one_table():
    sampled, X, y = short_run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = {
            "H = 3": copy.copy(sampled),
            "H = 1": M(**SOME | {"hidden": 1}).fit(X, y),
            "gp": bs.GPRegressor("mc", draws=60, tune=30, chains=2, cores=1, random_state=0).fit(X, y),
        }
        for name in ("H = 3", "H = 1"):
            fits[name].evidence(**QUICK)
        table = compare(fits, by="model-evidence")
        assert (table["model-evidence_kind"] == "sampled").all()
        assert list(table["model-evidence"]) == sorted(table["model-evidence"], reverse=True)
        for name in ("H = 3", "H = 1"):
            assert table.loc[name, "model-evidence"] == fits[name].model_evidence_
            assert table.loc[name, "model-evidence_se"] == fits[name].model_evidence_se_
        # densities of the same rows in the same units
        assert np.ptp(table["model-evidence"]) < 40.0
        fits["rvm"] = bs.RVMRegressor(width=0.5).fit(X, y)
        with pytest.raises(ValueError, match=r"different kinds of evidence.*'rvm' has third-level"):
            compare(fits, by="model-evidence")
        mixed = compare(fits, by="model-evidence", allow_mixed=True)
        assert set(mixed.index) == set(fits) and mixed["model-evidence"].notna().all()
        fits["mode"] = bs.GPRegressor(random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="'mode' has laplace"):
            compare({name: fits[name] for name in ("H = 1", "mode")}, by="model-evidence")


def test_without_an_evidence_there_is_nothing_to_rank(rng):
    X, y = wave(rng, 20)
    one, two = (M(**SOME | {"hidden": h}).fit(X, y) for h in (1, 2))
    with pytest.raises(ValueError, match="no fit has a value of 'model-evidence'"):
        compare({"one": one, "two": two}, by="model-evidence")
    one.evidence(**QUICK)
    table = compare({"one": one, "two": two}, by="model-evidence")
    assert list(table.index) == ["one", "two"] and np.isnan(table.loc["two", "model-evidence"])
    other = M(**SOME).fit(X, y + 1.0)
    other.evidence(**QUICK)
    with pytest.raises(DataMismatchError, match="different targets"):
        compare({"one": one, "other": other}, by="model-evidence")


def test_it_lasts_until_the_next_fit(rng):
    X, y = wave(rng, 20)
    model = M(**SOME).fit(X, y)
    value = model.evidence(**QUICK).value
    assert pickle.loads(pickle.dumps(model)).model_evidence_ == value
    assert model.evidence(**QUICK).value == value  # the seed is that of the fit
    assert model.evidence(random_state=5, **QUICK).value != value
    model.continue_fit(draws=41)
    assert np.isfinite(model.model_evidence_)  # of the data and the model, which are the same
    assert np.isnan(model.fit(X, y).model_evidence_)
    assert not hasattr(clone(model), "model_evidence_")


@pytest.mark.parametrize("classes", [2, 3])
def test_labels(classes):
    model, _, y = short_classes(classes)
    model = copy.copy(model)  # others use it without an evidence
    found = model.evidence(**QUICK)
    # a probability of labels, and one that knows more than the classes' shares
    assert -2.0 * len(y) * np.log(classes) < found.value < 0.0
    assert found.n_rows == len(y)
    assert compare({"one": model}, by="model-evidence").loc["one", "model-evidence"] == found.value


def test_several_outputs(rng):
    X, y = wave(rng, 20, outputs=2)
    model, other = M(**SOME).fit(X, y), M(**SOME).fit(X, y * [16.0, 1.0])
    for one in (model, other):
        one.evidence(**QUICK)
    assert other.model_evidence_ == pytest.approx(model.model_evidence_ - 20 * np.log(16.0), abs=1e-6)


def test_few_draws_and_other_fits(rng):
    X, y = wave(rng, 20)
    few = M(**SHORT).fit(X, y)
    assert log_hyperparameters(few.fit_.inner) is None and np.isfinite(few.evidence(**QUICK).value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for how in ("early-stopping", "evidence"):
            fit = M(how, hidden=2, time_budget=0.3, random_state=0).fit(X, y)
            with pytest.raises(ValueError, match="use inference='mc'"):
                fit.evidence()
            assert np.isnan(fit.model_evidence_)


def test_an_evidence_that_is_unsure_warns(rng):
    X, y = wave(rng, 20)
    model = M(**SHORT).fit(X, y)
    with pytest.warns(SamplingWarning, match="UNSURE_EVIDENCE: the evidence is not reliable"):
        found = model.evidence(**QUICK | {"n_runs": 1})
    assert Status.UNSURE_EVIDENCE in found.notes and np.isnan(model.model_evidence_se_)
    with pytest.raises(ValueError, match="time_budget"):
        model.evidence(time_budget="soon")


def test_chains_that_are_stuck_are_told_of(rng, monkeypatch):
    X, y = wave(rng, 20)
    model, plain, offsets = M(**SOME).fit(X, y), annealing.pilot, [0.0, 30.0]

    def pilot(path, n, rng):
        estimate, schedule = plain(path, n, rng)
        return estimate + offsets.pop(0), schedule

    monkeypatch.setattr(annealing, "pilot", pilot)
    with pytest.warns(SamplingWarning, match="annealing has found networks that the chains have not"):
        model.evidence(**QUICK | {"n_pilots": 2})


@pytest.mark.slow
def test_sizes_are_told_apart(rng):
    """Two steps need two units; one that cannot bend twice loses by far, and four are hardly worse than two."""
    X = rng.uniform(-2.0, 2.0, (60, 1))
    y = np.tanh(6.0 * (X[:, 0] - 1.0)) + np.tanh(6.0 * (X[:, 0] + 1.0)) + 0.1 * rng.standard_normal(60)
    found = {}
    for hidden in (1, 2, 4):
        model = M("mc", hidden=hidden, updates_per_draw=20, progressbar=False, random_state=1).fit(X, y)
        found[hidden] = model.evidence(n_particles=200)
    # the runs up are sure of themselves; those back from draws confirm them for the smallest network alone
    assert all(one.engine.reliable for one in found.values()) and found[1].reliable
    assert found[2].value > found[1].value + 10.0
    assert abs(found[4].value - found[2].value) < 5.0
