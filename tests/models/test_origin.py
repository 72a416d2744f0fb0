"""Predictive draws: from the prior, or given the data of a trace, and never given other data.

Guards `bayessel.models._origin`.
"""

from functools import cache

import arviz as az
import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode
from scipy import stats

import bayessel as bs
from bayessel.diagnostics.calibration._joint import JointModel
from tests.problems import pymc_models
from tests.problems.pymc_models import PHI, SEEN, TARGET

NUMBERS = {"mode": "FAST_COMPILE"}
OTHER = "the data in the model are not those of the trace"


def made(maker):
    if maker == "gp":
        return bs.models.gp(SEEN[:, None], TARGET)
    return getattr(bs.models, maker)(PHI, TARGET, collapsed=True)


@cache
def sampled(maker):
    model = made(maker)
    steps = bs.steps(model, compile_kwargs=NUMBERS)
    return bs.sample(model, 30, tune=30, chains=2, cores=1, random_seed=1, step=steps, quiet=True)


@pytest.fixture(params=["gp", "linear", "rvm"])
def maker(request):
    return request.param


@pytest.fixture
def model(maker):
    """One whose data a test may change."""
    return made(maker)


@pytest.fixture
def trace(maker):
    return sampled(maker)


def error_of(trace, model, **named):
    """Of the mean of predictive draws, in spreads of the targets: small if they know the targets, one if not."""
    drawn = pm.sample_posterior_predictive(
        trace, model=model, random_seed=1, progressbar=False, compile_kwargs=NUMBERS, var_names=["t"], **named
    )
    mean = drawn.posterior_predictive["t"].mean(("chain", "draw")).values
    return np.sqrt(np.mean((mean - TARGET) ** 2)) / np.std(TARGET)


def test_draws_for_a_trace_know_its_targets(model, trace, tmp_path):
    assert error_of(trace, model) < 0.4
    assert error_of(trace.sel(draw=slice(10, None)), model) < 0.4
    trace.to_netcdf(tmp_path / "trace.nc")
    assert error_of(az.from_netcdf(tmp_path / "trace.nc"), model) < 0.4


def test_parameters_drawn_anew_are_followed_by_targets_of_the_prior(model, trace):
    free = [rv.name for rv in model.free_RVs]
    assert error_of(trace, model, sample_vars=free) > 0.7


def test_other_data_are_refused(model, trace):
    with model:
        pm.set_data({"t_data": np.zeros(len(TARGET))})
    with pytest.raises(ValueError, match=OTHER):
        error_of(trace, model)
    with model:
        pm.set_data({"t_data": TARGET})
    assert error_of(trace, model) < 0.4
    with pytest.raises(ValueError, match=OTHER):  # nothing says what data these draws belong to
        error_of(trace["posterior"].to_dataset(), model)


def test_new_inputs_of_a_process_are_refused():
    trace, model = sampled("gp"), made("gp")
    with model:
        pm.set_data({"X": np.zeros((3, 1)), "t_data": np.zeros(3)}, coords={"row": np.arange(3)})
        with pytest.raises(ValueError, match=r"predict at new inputs by .*bs\.models\.predictive_model"):
            pm.sample_posterior_predictive(trace, progressbar=False, compile_kwargs=NUMBERS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_machine_code_refuses_too(trace, model):
    with model:
        pm.set_data({"t_data": np.zeros(len(TARGET))})
        with pytest.raises(ValueError, match=OTHER):
            pm.sample_posterior_predictive(trace, progressbar=False)


def test_targets_simulated_at_fixed_parameters_are_of_the_prior(model):
    point = {rv.name: np.asarray(pm.draw(rv, random_seed=1, **NUMBERS)) for rv in model.free_RVs}
    with pm.do(model, point):
        drawn = pm.sample_prior_predictive(200, var_names=["t"], random_seed=1, compile_kwargs=NUMBERS)
    t = drawn.prior_predictive["t"].values[0]
    # their mean is nought; given the targets it would be near these
    assert (np.abs(t.mean(axis=0)) < 4.5 * t.std(axis=0) / np.sqrt(200)).all()


def test_calibration_simulates_targets_at_given_parameters(maker, model, rng):
    joint = JointModel(model, rng, compile_kwargs=NUMBERS)
    names = [rv.name for rv in model.free_RVs]
    p = {key: value.values[0, 0] for key, value in sampled(maker).posterior.data_vars.items()}
    name = maker if maker == "gp" else f"{maker} collapsed"
    mean, C, noise = pymc_models.joint(name, p, PHI, SEEN)
    t = np.array([joint.new_data([p[one] for one in names])[0] for _ in range(200)])
    # whitened by the covariance of these parameters, they are unit normal
    white = np.linalg.solve(np.linalg.cholesky(C + noise * np.eye(len(SEEN))), (t - mean).T)
    assert stats.kstest(white.ravel(), "norm").pvalue > 1e-3


def test_without_rewriting_nothing_is_drawn(model):
    with pytest.raises(ValueError, match=OTHER):
        pm.draw(model["t"], mode=Mode(linker="py", optimizer=None))
