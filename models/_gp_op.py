"""The log marginal likelihood of a Gaussian process as one PyTensor node, fused with its gradient.

All numbers come from `bayessel.gp.Marginal`, for the default covariance and few rows from its compiled twin; the node
makes them known to whoever compiles a graph: PyMC's own samplers, nutpie, `pm.find_MAP` and our steps. Where the
gradient is not asked for, only the value is computed.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.rewriting.basic import register_canonicalize, register_specialize

from bayessel._check import FloatArray
from bayessel._pymc import numba_funcify, numba_njit
from bayessel.covariance import Covariance
from bayessel.gp import Marginal
from bayessel.gp.compiled_marginal import marginal_of
from bayessel.gp.inducing.covariance_parts import parts_of
from bayessel.gp.inducing.select import greedy_variance
from bayessel.gp.loo import leave_one_out
from bayessel.gp.noise_floor import NoiseFloor
from bayessel.gp.vecchia.conditional_predictor import PrecisionLeftOut
from bayessel.gp.vecchia.vecchia_marginal import VecchiaMarginal
from bayessel.models._row_terms import RowTerms, conditional_densities


class ChosenNeighbours(NamedTuple):
    """Vecchia's approximation: numbers of neighbours and of inducing inputs, chosen where the covariance starts."""

    neighbours: int
    inducing: int

    def marginal(self, X: FloatArray, t: FloatArray, covariance: Covariance) -> VecchiaMarginal:
        """The approximate likelihood of these data."""
        plain = VecchiaMarginal(X, t, covariance, neighbours=self.neighbours)
        if not self.inducing or len(X) <= self.neighbours + 1:
            return plain
        parts, theta = parts_of(covariance, X.shape[1]), covariance.start(X.shape[1])
        Z, _ = greedy_variance(parts, theta, plain.rows, self.inducing, np.random.default_rng(0))
        return plain.changed(inducing=Z)


class MarginalPerThread(threading.local):
    """A marginal for the data seen last, one per thread: samplers may run chains in threads, and it is written to.

    With neighbours it is that of Vecchia's approximation.
    """

    def __init__(self, covariance: Covariance, near: ChosenNeighbours | None = None) -> None:
        self.covariance, self.near = covariance, near
        self.marginal: Marginal | VecchiaMarginal | None = None
        self.floor = NoiseFloor(None, -np.inf)
        self.X, self.t = np.empty((0, 0)), np.empty(0)

    def at(self, X: FloatArray, t: FloatArray) -> Marginal | VecchiaMarginal:
        """The marginal likelihood for these data, made anew when they change (`pm.set_data`)."""
        # by value: compiled code hands over the same data in new arrays, and may change an old one in place
        same = X.shape == self.X.shape and bool((t == self.t).all()) and bool((X == self.X).all())
        if self.marginal is None or not same:
            self.X, self.t = np.array(X), np.array(t)
            if self.near is None:
                self.marginal = marginal_of(self.X, self.t, self.covariance)
            else:
                self.marginal = self.near.marginal(self.X, self.t, self.covariance)
            self.floor = NoiseFloor.of(self.marginal)
        return self.marginal


class LogMarginal(Op):
    """(θ, X, t) -> log p(t|θ), and with `gradient` its derivatives in θ too; −∞ where Q is not positive definite."""

    __props__ = ("covariance", "gradient", "near")

    def __init__(self, covariance: Covariance, gradient: bool = True, near: ChosenNeighbours | None = None) -> None:
        self.covariance, self.gradient, self.near = covariance, gradient, near
        self.gufunc_signature = "(p),(n,m),(n)->(),(p)" if gradient else "(p),(n,m),(n)->()"
        self.workspace = MarginalPerThread(covariance, near)

    def __getstate__(self) -> dict[str, Any]:
        """The description alone: workspaces stay in their threads."""
        return {"covariance": self.covariance, "gradient": self.gradient, "near": self.near}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def make_node(self, *inputs: Any) -> Apply:
        """One node for both, so that the gradient costs no second factorisation."""
        outputs = [pt.dscalar(), pt.dvector()] if self.gradient else [pt.dscalar()]
        return Apply(self, [pt.as_tensor_variable(x) for x in inputs], outputs)

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        if self.gradient:
            value, outputs[1][0] = self.both(*inputs)
        else:
            value = self.value(*inputs)
        outputs[0][0] = np.asarray(value)

    def value(self, theta: FloatArray, X: FloatArray, t: FloatArray) -> float:
        """log p(t|θ); −∞ also at a θ that is not finite, where an integrator may arrive."""
        if not np.isfinite(theta).all():
            return -np.inf
        return self.workspace.floor.value(self.workspace.at(X, t), theta)

    def both(self, theta: FloatArray, X: FloatArray, t: FloatArray) -> tuple[float, FloatArray]:
        """The same and its derivatives in θ."""
        if not np.isfinite(theta).all():
            return -np.inf, np.zeros(len(theta))
        return self.workspace.floor.value_and_gradient(self.workspace.at(X, t), theta)

    def connection_pattern(self, node: Any) -> Any:
        """Nothing may be differentiated in X and t: they are data."""
        return [[k == 0] * len(node.outputs) for k in range(3)]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """The derivatives are there already."""
        if not all(isinstance(g.type, DisconnectedType) for g in cotangents[1:]):
            raise NotImplementedError("the marginal likelihood of a Gaussian process has first derivatives only")
        full: Any = outputs if self.gradient else LogMarginal(self.covariance, near=self.near)(*inputs)
        by_theta = full[1]
        return [cotangents[0] * by_theta, disconnected_type(), disconnected_type()]


@register_specialize("fast_compile")
@register_canonicalize
@node_rewriter([LogMarginal])
def one_node(fgraph: Any, node: Any) -> Any:
    """Leave the gradient, two thirds of the work, out where nobody asks for it; have no second node where one does."""
    if node.op.gradient:
        if fgraph.clients[node.outputs[1]]:
            return None
        return {node.outputs[0]: LogMarginal(node.op.covariance, False, node.op.near)(*node.inputs)}
    # PyMC simplifies a density before it differentiates it, and then has the value alone and the gradient
    for client, _ in fgraph.clients[node.inputs[0]]:
        same = isinstance(client.op, LogMarginal) and client.op.covariance == node.op.covariance
        same = same and client.op.near == node.op.near
        if same and client.op.gradient and client.inputs == node.inputs and fgraph.clients[client.outputs[1]]:
            return [client.outputs[0]]
    return None


@numba_funcify.register(LogMarginal)
def _numba_log_marginal(op: LogMarginal, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node; the call itself costs a few microseconds."""
    if not op.gradient:

        @numba_njit
        def log_marginal(theta: Any, X: Any, t: Any) -> Any:
            with numba.objmode(value="float64"):
                value = float(op.value(theta, X, t))
            return np.asarray(value)

        return log_marginal

    @numba_njit
    def log_marginal_and_gradient(theta: Any, X: Any, t: Any) -> Any:
        with numba.objmode(value="float64", gradient="float64[::1]"):
            value, gradient = op.both(theta, X, t)
        return np.asarray(value), gradient

    return log_marginal_and_gradient


class ProcessRowTerms(RowTerms):
    """(t, θ, X) -> log p(t_i|t_{−i}, θ), (n,), with the noise of `LogMarginal`; nil where that is −∞."""

    __props__ = ("covariance", "near")
    gufunc_signature = "(n),(p),(n,m)->(n)"

    def __init__(self, covariance: Covariance, near: ChosenNeighbours | None = None) -> None:
        self.covariance, self.near = covariance, near
        self.workspace = MarginalPerThread(covariance, near)

    def __getstate__(self) -> dict[str, Any]:
        """The description alone."""
        return {"covariance": self.covariance, "near": self.near}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def terms(self, t: FloatArray, *parameters: Any) -> FloatArray:
        """Log densities of each row given all others."""
        theta, X = parameters
        if not np.isfinite(theta).all():
            return np.zeros(len(t))
        marginal = self.workspace.at(X, t)
        try:
            if isinstance(marginal, VecchiaMarginal):
                errors, variances = PrecisionLeftOut(marginal, self.workspace.floor.raised(theta)).rows()
            else:
                errors, variances = leave_one_out(self.workspace.floor.factor(marginal, theta))
        except np.linalg.LinAlgError:
            return np.zeros(len(t))
        return conditional_densities(errors / variances, 1.0 / variances)


class NoiseVariance(Op):
    """θ -> variance of the noise, of covariances of which only a function of numbers is known."""

    __props__ = ("covariance", "inputs")

    def __init__(self, covariance: Covariance, inputs: int) -> None:
        self.covariance, self.inputs = covariance, inputs

    def make_node(self, *inputs: Any) -> Apply:
        """A scalar."""
        return Apply(self, [pt.as_tensor_variable(x) for x in inputs], [pt.dscalar()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        outputs[0][0] = np.asarray(self.covariance.noise(inputs[0], self.inputs), dtype=np.float64)


def noise_variance(covariance: Covariance, theta: Any, inputs: int) -> Any:
    """Variance of the noise in symbols: the sum of the parameters that are called r², where it is that."""
    places = [k for k, name in enumerate(covariance.names(inputs)) if name.endswith("log r2")]
    start = np.array(covariance.start(inputs))
    for trial in (start, start + np.linspace(-1.0, 1.0, len(start))):
        if not np.isclose(covariance.noise(trial, inputs), np.exp(trial[places]).sum(), rtol=1e-12):
            return NoiseVariance(covariance, inputs)(theta)
    return pt.sum(pt.exp(theta[places]))
