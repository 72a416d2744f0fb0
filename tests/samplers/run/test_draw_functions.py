"""Outputs for many draws at a time: by operations of whole arrays, right to rounding also in the tails.

Guards `bayessel.samplers.run.draw_functions`.
"""

import time

import mpmath
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.tensor.elemwise import Elemwise

from bayessel.samplers.run.draw_functions import FunctionOfDraws
from bayessel.samplers.run.result import Finisher


def logistic(rows, columns=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = rng.random(rows) < 0.5
    with pm.Model() as made:
        b = pm.Normal("b", shape=columns)
        pm.Bernoulli("y", logit_p=X @ b, observed=y)
    return made, X, y


def test_no_function_is_called_number_by_number():
    made, X, y = logistic(50)
    finisher = Finisher(made, made.initial_point(0), 20, likelihood=True, density=False)
    nodes = finisher._function._function.maker.fgraph.toposort()
    assert not [node for node in nodes if isinstance(node.op, Elemwise) and node.op.nfunc_spec is None]
    b = np.random.default_rng(1).normal(size=(2, 10, 3)) * 5.0
    _, likelihood, _ = finisher({"b": b})
    eta = b @ X.T
    np.testing.assert_allclose(likelihood["y"], y * eta - np.logaddexp(0.0, eta), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "oracle", "at"),
    [
        (pt.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), [-800.0, -40.0, -1.0, 0.0, 1e-9, 2.0, 35.0, 700.0, 1e5]),
        (pt.log1mexp, lambda x: mpmath.log(-mpmath.expm1(x)), [-800.0, -40.0, -1.0, -0.7, -0.6, -1e-3, -1e-12]),
    ],
)
def test_replaced_functions_are_right_to_rounding(function, oracle, at):
    with pm.Model() as made:
        x = pm.Normal("x", shape=len(at))
        pm.Deterministic("value", function(x))
    found = FunctionOfDraws(made, [function(made.value_vars[0])], {"x": np.array(at)})
    values = found({"x": np.array([at, at])})[0]
    with mpmath.workdps(50):
        exact = np.array([float(oracle(mpmath.mpf(one))) for one in at])
    np.testing.assert_allclose(values, [exact, exact], rtol=1e-15 * 8)


@pytest.mark.slow
def test_a_likelihood_of_ten_million_numbers_takes_seconds():
    made, _, _ = logistic(10_000)
    finisher = Finisher(made, made.initial_point(0), 1000, likelihood=True, density=False)
    draws = np.random.default_rng(1).normal(size=(4, 250, 3))
    began = time.process_time()
    finisher({"b": draws})
    assert time.process_time() - began < 3.0  # seven, called number by number
