"""Draws of a Gaussian process at some inputs as one PyTensor node: from the prior, or given targets at others."""

from __future__ import annotations

from typing import Any, override

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy.linalg import solve_triangular

from bayessel._check import FloatArray
from bayessel._pymc import numba_funcify, numba_njit
from bayessel.covariance import Covariance
from bayessel.gp import Marginal
from bayessel.gp.noise_floor import NoiseFloor


def root(K: FloatArray) -> FloatArray:
    """A matrix B with BBᵀ = K, also where K is singular to rounding and a Cholesky factor fails."""
    values, vectors = np.linalg.eigh(K)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


class ProcessDraw(Op):
    """Base of draws of a process: one number for each of the inputs, which are the fourth argument."""

    __props__ = ("covariance",)

    def __init__(self, covariance: Covariance) -> None:
        self.covariance = covariance

    def make_node(self, *inputs: Any) -> Apply:
        """One number for each of the inputs."""
        return Apply(self, [pt.as_tensor_variable(x) for x in inputs], [pt.dvector()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        outputs[0][0] = self.draw(*inputs)

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        """As many as inputs."""
        return [(shapes[3][0],)]

    def draw(self, *inputs: FloatArray) -> FloatArray:
        """The same on arrays."""
        raise NotImplementedError


class FunctionAt(ProcessDraw):
    """(θ, X, t, inputs, given, z) -> the function at the inputs, for z standard normal, one number for each.

    From the prior, or where `given` is not nil given the targets t at X, with at least the noise of the likelihood.
    """

    gufunc_signature = "(p),(n,m),(n),(l,m),(),(l)->(l)"

    @override
    def draw(self, *inputs: FloatArray) -> FloatArray:
        theta, X, t, there, given, z = inputs
        K = self.covariance.matrix(theta, there)
        if not int(given):
            return np.asarray(root(K) @ z)
        marginal = Marginal(X, t, self.covariance)
        factor = NoiseFloor.of(marginal).factor(marginal, theta)
        across = self.covariance.matrix(theta, X, there)
        half = solve_triangular(factor.L, across, lower=True)
        return np.asarray(factor.a @ across + root(K - half.T @ half) @ z)


@numba_funcify.register(FunctionAt)
def _numba_function_at(op: FunctionAt, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node."""

    @numba_njit
    def function_at(theta: Any, X: Any, t: Any, inputs: Any, given: Any, z: Any) -> Any:
        with numba.objmode(f="float64[::1]"):
            f = op.draw(theta, X, t, inputs, given, z)
        return f

    return function_at


def function_at(covariance: Covariance, theta: Any, X: Any, t: Any, inputs: Any, given: Any) -> Any:
    """A draw of the function at inputs, in symbols."""
    z = pm.Normal.dist(0.0, 1.0, size=inputs.shape[:1])
    drawn: Any = FunctionAt(covariance)(theta, X, t, inputs, given, z)
    return drawn
