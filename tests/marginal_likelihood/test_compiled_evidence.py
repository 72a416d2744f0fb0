"""Evidences of one model given one data set after another: those of the data, and nothing compiled again.

Guards `bayessel.marginal_likelihood.compiled_evidence`, `bayessel.marginal_likelihood.target_density`.
"""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from pymc.model.fgraph import clone_model
from scipy import stats

from bayessel.errors import SamplingWarning
from bayessel.marginal_likelihood import compiled_evidence, target_density
from bayessel.marginal_likelihood.compiled_evidence import CompiledEvidence

COUNTS = np.array([[2, 0, 5, 1], [9, 14, 7, 11]])


def rates(counts):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 0.5, shape=4)
        pm.Poisson("y", rate, observed=pm.Data("counts", counts))
    return model


def line(x, y):
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 2.0)
        pm.Normal("y", slope * pm.Data("x", x), 0.5, observed=pm.Data("y_data", y))
    return model


def exact_rates(counts):
    return stats.nbinom.logpmf(counts, 2.0, 0.5 / 1.5).sum()


def exact_line(x, y):
    return stats.multivariate_normal.logpdf(y, np.zeros(len(x)), 4.0 * np.outer(x, x) + 0.25 * np.eye(len(x)))


def test_draws_and_particles_follow_the_data_and_nothing_is_compiled_again(monkeypatch):
    model = rates(COUNTS[0])
    compiled = CompiledEvidence(model, effort=0.2)
    found = []
    for counts in COUNTS[[0, 1]]:
        pm.set_data({"counts": counts}, model=model)
        found.append(compiled(3))
        assert {one.name for one in found[-1].routes} >= {"laplace", "bridge", "annealing"} and found[-1].reliable
        assert abs(found[-1].value - exact_rates(counts)) < 4.0 * found[-1].error
        # a second call has all it needs
        monkeypatch.setattr(target_density, "compile_pymc", None)
        monkeypatch.setattr(compiled_evidence, "compiled_fits", None)
    pm.set_data({"counts": COUNTS[0]}, model=model)
    assert compiled(3).value == found[0].value  # nothing is left of other data
    assert found[0].data_fingerprint != found[1].data_fingerprint
    assert found[0].model_fingerprint == found[1].model_fingerprint


def test_a_normal_block_is_summed_up_anew_also_when_there_are_more_rows(rng):
    x, y = np.linspace(-1.0, 1.0, 4), rng.normal(size=(2, 4))
    model = line(x, y[0])
    compiled = CompiledEvidence(model)
    assert_allclose(compiled(1).value, exact_line(x, y[0]), rtol=1e-8)
    pm.set_data({"y_data": y[1]}, model=model)
    assert_allclose(compiled(1).value, exact_line(x, y[1]), rtol=1e-8)
    longer, more = np.linspace(-2.0, 2.0, 7), rng.normal(size=7)
    pm.set_data({"x": longer, "y_data": more}, model=model)
    assert_allclose(compiled(1).value, exact_line(longer, more), rtol=1e-8)


def test_a_model_that_is_sampled_as_a_copy_gets_the_data_too(rng, monkeypatch):
    monkeypatch.setattr(compiled_evidence, "in_suited_coordinates", lambda model, run: clone_model(model))
    x, y = np.linspace(-1.0, 1.0, 4), rng.normal(size=4)
    model = line(x, np.zeros(4))
    compiled = CompiledEvidence(model)
    pm.set_data({"y_data": y}, model=model)
    assert_allclose(compiled(1).value, exact_line(x, y), rtol=1e-8)


def test_what_is_not_reliable_warns_and_what_cannot_be_sampled_says_why(monkeypatch):
    compiled = CompiledEvidence(rates(COUNTS[0]), effort=0.1, routes=["bridge"])

    def failing(*unused):
        class Fits:
            kernel = type("Kernel", (), {"draws": 0})()

            def __call__(self, data, seed):
                return type("Fit", (), {"row": {"status": "failed", "reason": "no start"}})()

        return Fits()

    with monkeypatch.context() as patched:
        patched.setattr(compiled_evidence, "compiled_fits", failing)
        with pytest.raises(RuntimeError, match="cannot be sampled: no start"):
            compiled(1)
    compiled = CompiledEvidence(rates(COUNTS[0]), effort=0.1, routes=["annealing"])
    compiled._target.no_prior = "cut"
    monkeypatch.setattr(compiled._target, "data_changed", lambda: True)
    with pytest.warns(SamplingWarning, match="the evidence is not reliable"):
        assert not compiled(1).reliable


def test_arguments_are_those_of_evidence():
    model = rates(COUNTS[0])
    with pytest.raises(ValueError, match="routes"):
        CompiledEvidence(model, routes=["tea leaves"])
    with pytest.raises(ValueError, match="effort"):
        CompiledEvidence(model, effort=-1.0)
    with pm.Model() as empty, pytest.raises(ValueError, match="no free variable"):
        CompiledEvidence(empty)
