"""Calibration of model probabilities: true ones pass, wrong ones fail, by whatever is wrong with them.

Guards `bayessel.diagnostics.calibration._model_probabilities`, `bayessel.diagnostics.calibration._evidence_setup`,
`bayessel.diagnostics.calibration._compiled_setup`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from bayessel.diagnostics.calibration import model_probabilities
from bayessel.diagnostics.calibration._evidence_setup import EvidenceSetup
from bayessel.diagnostics.calibration._model_probabilities import ModelProbabilities, simulated
from benchmarks.evidence_probabilities import PAIRS

ROWS = 3
SDS = {"near": 0.5, "far": 2.0, "none": 0.1}


def declared(sd, rows=ROWS, name="y"):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, sd)
        pm.Normal(name, mu, 1.0, observed=pm.Data("data", np.zeros(rows)))
    return model


def covariance(sd):
    return sd**2 + np.eye(ROWS)


def exact(rng, n=500, names=("near", "far")):
    """Simulations of models of a mean, with evidences by the density of the data."""
    sds = [SDS[name] for name in names]
    made_by = rng.integers(len(sds), size=n)
    y = rng.normal(size=n)[:, None] * np.array(sds)[made_by, None] + rng.normal(size=(n, ROWS))
    logs = np.stack([stats.multivariate_normal.logpdf(y, np.zeros(ROWS), covariance(sd)) for sd in sds], axis=1)
    return ModelProbabilities(logs, np.zeros_like(logs), np.ones(logs.shape, bool), made_by, tuple(names), 0.01, 0.0)


@pytest.mark.parametrize("names", [("near", "far"), ("near", "far", "none")], ids=len)
def test_exact_probabilities_pass(rng, names):
    found = exact(rng, names=names)
    assert found.ok and not found.failed and "Calibrated as far as 500 simulations" in str(found)
    assert len(found.table) == (3 if len(names) == 2 else 7)
    assert (found.table["z"].abs() < 4.0).all()
    assert_allclose(found.probabilities.sum(axis=1), 1.0)


def test_wrong_probabilities_fail(rng):
    right = exact(rng)
    middle = right.log_evidence.mean(axis=1, keepdims=True)
    shuffled = replace(right, made_by=rng.permutation(right.made_by))
    assert shuffled.table.loc["score", "z"] < -4.0 and "score" in shuffled.failed and not shuffled.ok
    too_sure = replace(right, log_evidence=middle + 2.0 * (right.log_evidence - middle))
    assert {"score", "ranges of near"} <= set(too_sure.failed) and too_sure.table.loc["score", "z"] < -4.0
    unsure = replace(right, log_evidence=middle + 0.4 * (right.log_evidence - middle))
    assert "ranges of near" in unsure.failed and unsure.table.loc["score", "z"] > 4.0
    shifted = replace(right, log_evidence=right.log_evidence + np.array([0.7, 0.0]))
    assert "share of near" in shifted.failed and shifted.table.loc["share of near", "z"] < -4.0
    assert "expected" in str(shifted)


def test_alarms_are_as_rare_as_the_level_says(rng):
    smallest = np.array([exact(rng, 60).table["p"].min() for _ in range(60)])
    # of three tests, the smallest p is below 0.05 in at most 15 % of runs
    assert stats.binom.sf(np.sum(smallest < 0.05) - 1, 60, 0.15) > 1e-4
    assert np.sum(smallest < 0.5) > 25  # nor are they never


def test_shares_by_range_and_what_says_nothing(rng):
    found = exact(rng)
    ranges = found.ranges("far")
    p = found.probabilities[:, 1]
    assert sum(one.simulations for one in ranges) == 500
    assert_allclose(sum(one.simulations * one.mean for one in ranges), p.sum())
    assert_allclose(sum(one.simulations * one.share for one in ranges), (found.made_by == 1).sum())
    assert_allclose(sum((one.simulations * one.error) ** 2 for one in ranges), np.sum(p * (1.0 - p)))
    assert np.all(np.diff([one.mean for one in ranges]) > 0.0) and len(ranges) == 10
    with pytest.raises(ValueError, match="no model is called 'other'"):
        found.ranges("other")
    certain = replace(found, log_evidence=100.0 * np.eye(2)[found.made_by])
    assert not certain.failed and not certain.ok and "tell the models apart" in str(certain)
    assert np.isfinite(certain.table[["z", "p"]].to_numpy()).all()
    figure = found.plot()
    assert len(figure.axes) == 1 and len(figure.axes[0].lines[1].get_xdata()) == 10


def test_data_of_one_model_go_to_all_and_their_evidences_are_those_of_the_data(rng):
    models = {name: declared(SDS[name]) for name in ("near", "far")}
    setup = EvidenceSetup(models, ["quadrature"], 1.0)
    with setup.held() as compiled:
        for which in (0, 1, 1):
            compiled.draw_data(which, rng)
            y = models["near"]["data"].get_value()
            assert y.any()
            assert_array_equal(y, models["far"]["data"].get_value())
            for (name, _), evidence in zip(models.items(), compiled.evidences, strict=True):
                expected = stats.multivariate_normal.logpdf(y, np.zeros(ROWS), covariance(SDS[name]))
                assert_allclose(evidence(1).value, expected, rtol=1e-8)
    assert_array_equal(models["near"]["data"].get_value(), np.zeros(ROWS))


def test_a_setup_that_went_to_another_process_simulates_the_same():
    setup = EvidenceSetup({name: declared(SDS[name]) for name in ("near", "far")}, ["quadrature"], 1.0)
    sequence = np.random.SeedSequence(3)
    here, there = (simulated(one, sequence) for one in (setup, cloudpickle.loads(cloudpickle.dumps(setup))))
    assert here == there and len(here.log_evidence) == 2


def test_simulations_are_calibrated_and_do_not_depend_on_who_does_them():
    models = {name: declared(SDS[name]) for name in ("near", "far")}
    settings = {"routes": ["quadrature"], "random_seed": 5, "progressbar": False}
    with ThreadPoolExecutor(2) as threads:
        one, two = (model_probabilities(models, 20, executor=who, n_jobs=1, **settings) for who in (None, threads))
    assert_array_equal(one.log_evidence, two.log_evidence)
    assert_array_equal(one.made_by, two.made_by)
    assert not one.failed and one.reliable.all() and 0 < one.made_by.sum() < 20
    assert_array_equal(models["far"]["data"].get_value(), np.zeros(ROWS))


def test_models_of_other_data_are_refused():
    with pytest.raises(ValueError, match="two or more PyMC models by name, got 1 of them"):
        model_probabilities({"near": declared(1.0)})
    with pytest.raises(ValueError, match="two or more PyMC models by name, got list"):
        model_probabilities([declared(1.0), declared(2.0)])
    for other in (declared(1.0, rows=4), declared(1.0, name="z")):
        with pytest.raises(ValueError, match="the same observed variables, of the same shapes; near has"):
            model_probabilities({"near": declared(1.0), "other": other})


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_probabilities_of_models_that_have_no_closed_form_are_calibrated(pair):
    found = model_probabilities(PAIRS[pair](), 500, effort=0.2, random_seed=2, progressbar=False, n_jobs=1)
    assert found.ok, str(found)
    assert found.in_doubt > 40.0 and found.reliable.mean() > 0.97
    rng = np.random.default_rng(1)
    assert not replace(found, made_by=rng.permutation(found.made_by)).ok
    middle = found.log_evidence.mean(axis=1, keepdims=True)
    assert not replace(found, log_evidence=middle + 2.0 * (found.log_evidence - middle)).ok
