"""Transforms that tie variables together are taken off where a Gibbs step samples one of them.

Guards `bayessel.samplers.step_choice`.
"""

import numpy as np
import pymc as pm

import bayessel as bs
from bayessel.samplers.step_choice import in_suited_coordinates, integrated_out
from tests.problems.linear import regression_problem


def rvm_problem(rng):
    Phi, t = regression_problem(rng, n=12, m=4)
    return bs.models.rvm(Phi, t)


def test_weights_are_sampled_as_they_are(rng):
    model = rvm_problem(rng)
    plain = in_suited_coordinates(model)
    assert "w_whitened__" in {v.name for v in model.value_vars}
    assert {v.name for v in plain.value_vars} == {"w", "alpha_log__", "beta_log__"}
    assert plain.named_vars_to_dims["w"] == ("basis",)
    assert [step.name for step in bs.steps(model)] == ["sparse_weights_gibbs"]
    assert [step.name for step in bs.steps(plain)] == ["sparse_weights_gibbs"]
    # as they are, they can be integrated out too
    assert [str(rv.name) for rv in integrated_out(plain)] == ["w"]


def test_the_density_is_the_same(rng):
    model = rvm_problem(rng)
    plain = in_suited_coordinates(model)
    point = {"alpha_log__": rng.normal(size=4), "beta_log__": np.array(0.3)}
    z = rng.normal(size=4)
    # w where z is, from the model itself
    outputs = model.replace_rvs_by_values([model["w"]])
    find = model.compile_fn(outputs, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")
    w = find({**point, "w_whitened__": z})[0]
    with_z, with_w = (m.compile_logp(jacobian=False, mode="FAST_COMPILE") for m in (model, plain))
    here = with_z({**point, "w_whitened__": z})
    np.testing.assert_allclose(with_w({**point, "w": w}), here, rtol=1e-10)
    assert abs(with_w({**point, "w": w + 0.1}) - here) > 1e-3  # the comparison sees a difference


def test_a_model_without_such_coordinates_is_left_alone(rng):
    Phi, t = regression_problem(rng, n=12, m=4)
    model = bs.models.linear(Phi, t)
    assert in_suited_coordinates(model) is model


def test_coordinates_that_hamiltonian_steps_need_stay(rng):
    with pm.Model() as model:
        scale = pm.Weibull("scale", 2.0, 1.0)
        x = pm.Normal("x", 0.0, 1.0)
        # the interval moves with a variable that no Gibbs step draws, and neither does one draw x
        pm.Uniform("u", 0.0, scale)
        pm.Bernoulli("y", logit_p=x, observed=[1, 0, 1])
    assert in_suited_coordinates(model) is model
