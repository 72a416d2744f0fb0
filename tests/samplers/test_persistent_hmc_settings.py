"""The PyMC step: tuning seen from inside, bad settings and starts.

Guards `bayessel.samplers.persistent_hmc`, `bayessel.samplers.tuned_step`, `bayessel.samplers.horowitz`.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from pymc.exceptions import SamplingError

from bayessel.samplers import horowitz
from bayessel.samplers.persistent_hmc import PersistentHMC
from tests.problems.hmc_models import PYTHON, skewed


@pytest.fixture(scope="module")
def skewed_model():
    return skewed()


# --- tuning, seen from inside -----------------------------------------------------------------------------------


def momentum_is_new_after_a_window(step, point, rng):
    """Run to the end of the first window; whether the momentum is what the generator gives there."""
    step.setup_chain(rng, 100, 10)
    seen = []
    right = horowitz.fresh_momentum

    def noted(generator, size):
        seen.append(right(generator, size))
        return seen[-1]

    horowitz.fresh_momentum, before = noted, horowitz.fresh_momentum
    try:
        scale = step.scale
        while step.scale is scale:
            point, _ = step.step(point)
            assert step._tuning.draw < 30
    finally:
        horowitz.fresh_momentum = before
    return step.momentum is seen[-1]


def test_the_momentum_is_drawn_anew_when_the_mass_changes(skewed_model, monkeypatch, rng):
    step = PersistentHMC(model=skewed_model, compile_kwargs=PYTHON)
    assert momentum_is_new_after_a_window(step, skewed_model.initial_point(), rng)

    # planted: the old momentum is kept
    right = PersistentHMC._adapt

    def kept(self):
        before = self.momentum
        n_gradients = right(self)
        self.momentum = before
        return n_gradients

    monkeypatch.setattr(PersistentHMC, "_adapt", kept)
    assert not momentum_is_new_after_a_window(step, skewed_model.initial_point(), rng)


def settings_after_tuning(step, model, rng):
    """Step size, persistence, pace, updates and scales at every draw after tuning: one set if they are frozen."""
    step.setup_chain(rng, 50, 50)
    point, seen = model.initial_point(), set()
    for i in range(100):
        if i == 50:
            step.stop_tuning()
        point, (info,) = step.step(point)
        if i >= 50:
            seen.add(
                (step.step_size, info["step_size"], step.persistence, step.delta, step.updates, *step.scale.ravel())
            )
    return seen


def test_nothing_adapts_after_tuning(skewed_model, monkeypatch, rng):
    step = PersistentHMC(model=skewed_model, updates_per_draw="auto", compile_kwargs=PYTHON)
    assert len(settings_after_tuning(step, skewed_model, rng)) == 1
    assert step._tuning is None and step.sampling_state.progress is None

    # planted: the tuning goes on
    monkeypatch.setattr(PersistentHMC, "stop_tuning", lambda self: None)
    assert len(settings_after_tuning(step, skewed_model, rng)) > 10


def test_what_is_given_stays_as_given(skewed_model, rng):
    step = PersistentHMC(
        model=skewed_model, step_size=0.3, persistence=0.8, delta=0.07, mass=[4.0, 1.0, 0.25], updates_per_draw=2,
        compile_kwargs=PYTHON,
    )  # fmt: skip
    assert settings_after_tuning(step, skewed_model, rng) == {(0.3, 0.3, 0.8, 0.07, 2, 0.5, 1.0, 2.0)}
    step = PersistentHMC(model=skewed_model, tune=False, compile_kwargs=PYTHON)
    assert len(settings_after_tuning(step, skewed_model, rng)) == 1
    assert_allclose(step.scale, np.eye(3))
    step = PersistentHMC(model=skewed_model, mass="unit", compile_kwargs=PYTHON)
    settings_after_tuning(step, skewed_model, rng)
    assert_allclose(step.scale, 1.0)
    step = PersistentHMC(model=skewed_model, step_size=0.3, compile_kwargs=PYTHON)
    settings_after_tuning(step, skewed_model, rng)
    assert step.step_size == 0.3 and not (step.scale == 1.0).any()


# --- arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"n_leapfrog": 0}, ValueError, "n_leapfrog must be at least 1"),
        ({"window": 3, "n_leapfrog": 1}, ValueError, "window must be at most n_leapfrog [+] 1 = 2"),
        ({"step_size": -1.0}, ValueError, "step_size must be positive"),
        ({"persistence": 1.0}, ValueError, r"persistence must be in \[0, 1\)"),
        ({"persistence": "much"}, TypeError, "persistence must be a number"),
        ({"delta": 0.0}, ValueError, r"delta must be in \(0, 1\]"),
        ({"target_accept": 1.0}, ValueError, "target_accept must be in"),
        ({"accept": "always"}, ValueError, "'nonreversible', 'metropolis'"),
        ({"updates_per_draw": "some"}, TypeError, "updates_per_draw must be an integer"),
        ({"updates_per_draw": 0}, ValueError, "updates_per_draw must be at least 1"),
        ({"tune": 1}, TypeError, "tune must be True or False"),
        ({"mass": "full"}, ValueError, "mass must be one of"),
        ({"mass": [1.0, -1.0, 1.0]}, ValueError, "mass must be positive"),
        ({"mass": [1.0]}, ValueError, "mass must be one number or 3 numbers"),
        ({"mass": np.eye(2)}, ValueError, "mass must be 3 numbers or a .3, 3. matrix"),
        ({"mass": "diag", "jumps": True}, ValueError, 'jumps need mass="dense"'),
        ({"mass": "dense", "jumps": 1}, TypeError, "jumps must be True or False"),
    ],
)
def test_bad_settings(skewed_model, settings, error, said):
    with pytest.raises(error, match=said):
        PersistentHMC(model=skewed_model, compile_kwargs=PYTHON, **settings)


def test_discrete_variables_are_refused():
    with pm.Model() as model:
        pm.Poisson("k", 3.0)
        pm.Normal("x")
    with pytest.raises(TypeError, match="continuous, got k; give those to another step method"):
        PersistentHMC(["k", "x"], model=model)
    assert [v.name for v in PersistentHMC(model=model, compile_kwargs=PYTHON).vars] == ["x"]


def test_a_start_without_density_is_refused():
    with pm.Model() as model:
        x = pm.Flat("x", initval=1.0)
        pm.Potential("wall", pt.switch(x > 0.0, -x, -np.inf))
        step = PersistentHMC(compile_kwargs=PYTHON)
    assert step.step(model.initial_point())[1][0]["diverging"] in (True, False)
    with pytest.raises(SamplingError, match=r"log density must be finite.*-inf.*initvals"):
        step.step({"x": np.array(-1.0)})
