r"""Values of a Gaussian process at its inputs, f = L(θ)v for v standard normal, as one PyTensor node with a gradient.

LLᵀ is the covariance of f at the inputs: K(θ), with the noise of the covariance if it has any, and `JITTER` times its
mean variance on the diagonal, without which smooth functions at close inputs have no factor. With the slopes f̄ of some
value in f, u = Lᵀf̄ and Φ the lower triangle with half its diagonal,

.. math:: \bar v = u,\quad \bar\theta_i = \sum S\circ\partial_i K,\quad S = L^{-T}\,\Phi(u v^T)\,L^{-1}

(Murray 2016, Differentiation of the Cholesky decomposition, eqs 8-10): the slopes in L are the lower triangle of f̄vᵀ,
and of LᵀL̄ the lower triangle is that of uvᵀ.
"""

from __future__ import annotations

import threading
from typing import Any, override

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy.linalg import lapack, solve_triangular

from bayessel._check import FloatArray
from bayessel._pymc import numba_funcify, numba_njit
from bayessel.covariance import Covariance
from bayessel.covariance.base import PANEL, Evaluation
from bayessel.models._gp_draws import ProcessDraw, root
from bayessel.models._origin import REFUSAL

#: of the mean variance: the standard deviation of f is right to 5e-9 of itself, and a factor exists for 1000 rows
JITTER = 1e-8


def factor(covariance: Covariance, theta: FloatArray, X: FloatArray) -> FloatArray:
    """L, C-ordered with zeros above; NaN where there is none in double precision."""
    return _Bound(covariance, X).factor(theta)


class _Bound:
    """A covariance at the inputs seen last."""

    def __init__(self, covariance: Covariance, X: FloatArray) -> None:
        n = len(X)
        self.X, self.m = np.array(X), X.shape[1]
        self.evaluation: Evaluation = covariance.evaluation(self.X)
        self.panels = [(slice(i, min(i + PANEL, n)), slice(0, min(i + PANEL, n))) for i in range(0, n, PANEL)]

    def factor(self, theta: FloatArray) -> FloatArray:
        """L at θ."""
        n, evaluation = len(self.X), self.evaluation
        K = np.full((n, n), np.nan)
        with np.errstate(all="ignore"):
            if not (np.isfinite(theta).all() and evaluation.at(theta).finite):
                return K
            for rows, cols in self.panels:
                evaluation.fill(rows, cols, K[rows, cols])
            diagonal = evaluation.diagonal()
            np.fill_diagonal(K, diagonal + evaluation.noise + JITTER * (diagonal.mean() + evaluation.noise))
        # the lower triangle, rows first, is the upper one of the transpose, columns first
        L, info = lapack.dpotrf(K.T, lower=0, overwrite_a=1, clean=1)
        return np.ascontiguousarray(L.T) if info == 0 else np.full((n, n), np.nan)

    def pulled(self, theta: FloatArray, S: FloatArray) -> FloatArray:
        """Σ S∘∂/∂θ of the covariance of f."""
        evaluation, n = self.evaluation, len(self.X)
        trace = float(np.trace(S))
        with np.errstate(all="ignore"):
            evaluation.at(theta)
            for rows, _ in self.panels:
                every = slice(0, n)
                evaluation.values(rows, every)
                evaluation.pull(rows, every, S[rows])
            evaluation.pull_diagonal(np.full(n, JITTER * trace / n))
            evaluation.pull_noise((1.0 + JITTER) * trace)
        return np.array(evaluation.gradient())


class _PerThread(threading.local):
    """The inputs seen last, one per thread: samplers may run chains in threads, and evaluations are written to."""

    def __init__(self, covariance: Covariance) -> None:
        self.covariance = covariance
        self.bound: _Bound | None = None

    def at(self, X: FloatArray) -> _Bound:
        """The covariance at these inputs, bound anew when they change (`pm.set_data`)."""
        if self.bound is None or self.bound.X.shape != X.shape or not (self.bound.X == X).all():
            self.bound = _Bound(self.covariance, X)
        return self.bound


class _ProcessOp(Op):
    """An operation with a covariance, which travels without its workspaces."""

    __props__ = ("covariance",)

    def __init__(self, covariance: Covariance) -> None:
        self.covariance = covariance
        self.workspace = _PerThread(covariance)

    def __getstate__(self) -> dict[str, Any]:
        """The description alone."""
        return {"covariance": self.covariance}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class LatentValues(_ProcessOp):
    """(θ, X, v) -> f = L(θ)v and L; NaN where the covariance has no factor in double precision."""

    gufunc_signature = "(p),(n,m),(n)->(n),(n,n)"

    def make_node(self, *inputs: Any) -> Apply:
        """L beside f, so that the gradient costs no second factorisation."""
        return Apply(self, [pt.as_tensor_variable(x) for x in inputs], [pt.dvector(), pt.dmatrix()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        outputs[0][0], outputs[1][0] = self.values(*inputs)

    def values(self, theta: FloatArray, X: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same on arrays."""
        if len(v) != len(X):
            raise ValueError(REFUSAL)
        L = self.workspace.at(X).factor(theta)
        return L @ v, L

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        """As many as rows."""
        return [(shapes[2][0],), (shapes[2][0], shapes[2][0])]

    def connection_pattern(self, node: Any) -> Any:
        """Inputs are data; slopes in L are refused."""
        return [[True, True], [False, False], [True, False]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """By the factor that is there already."""
        if not isinstance(cotangents[1].type, DisconnectedType):
            raise NotImplementedError("the factor of a latent Gaussian process is not for further use")
        theta, X, v = inputs
        by_theta: Any
        by_theta, by_v = LatentSlopes(self.covariance)(theta, X, v, outputs[1], cotangents[0])  # type: ignore[misc]
        return [by_theta, disconnected_type(), by_v]


class LatentSlopes(_ProcessOp):
    """(θ, X, v, L, f̄) -> slopes in θ and v of a value with the slopes f̄ in f."""

    gufunc_signature = "(p),(n,m),(n),(n,n),(n)->(p),(n)"

    def make_node(self, *inputs: Any) -> Apply:
        """Both at once."""
        return Apply(self, [pt.as_tensor_variable(x) for x in inputs], [pt.dvector(), pt.dvector()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        outputs[0][0], outputs[1][0] = self.slopes(*inputs)

    def slopes(
        self, theta: FloatArray, X: FloatArray, v: FloatArray, L: FloatArray, by_f: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same on arrays; NaN where f is."""
        u = L.T @ by_f
        if not np.isfinite(u).all():
            return np.full(len(theta), np.nan), np.full(len(v), np.nan)
        P = np.tril(np.outer(u, v))
        P[np.diag_indices(len(v))] *= 0.5
        right = solve_triangular(L, P.T, lower=True, trans=1, check_finite=False)  # (P L⁻¹)ᵀ
        S = solve_triangular(L, right.T, lower=True, trans=1, check_finite=False)
        return self.workspace.at(X).pulled(theta, S), u

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        """As θ and v."""
        return [shapes[0], shapes[2]]

    def connection_pattern(self, node: Any) -> Any:
        """Of everything, so that second derivatives are refused, and not taken for nought."""
        return [[True, True]] * 5

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """No second derivatives."""
        raise NotImplementedError("a latent Gaussian process has first derivatives only")


class LatentAtNew(ProcessDraw):
    """(θ, v, X, inputs, asked, z) -> the process at new inputs given L(θ)v at X, for z standard normal.

    `asked` is not used: it is there to be asked for, and to raise where the values are not those of the trace.
    """

    gufunc_signature = "(p),(n),(n,m),(l,m),(),(l)->(l)"

    @override
    def draw(self, *inputs: FloatArray) -> FloatArray:
        theta, v, X, there, _, z = inputs
        mean, left = given_values(self.covariance, theta, v, X, there)
        return mean + root(left) @ z


def given_values(
    covariance: Covariance, theta: FloatArray, v: FloatArray, X: FloatArray, inputs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of the process at new inputs given L(θ)v at X."""
    half = solve_triangular(factor(covariance, theta, X), covariance.matrix(theta, X, inputs), lower=True)
    own = covariance.matrix(theta, inputs) + covariance.noise(theta, X.shape[1]) * np.eye(len(inputs))
    return v @ half, own - half.T @ half


@numba_funcify.register(LatentValues)
def _numba_values(op: LatentValues, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node."""

    @numba_njit
    def latent_values(theta: Any, X: Any, v: Any) -> Any:
        with numba.objmode(f="float64[::1]", L="float64[:, ::1]"):
            f, L = op.values(theta, X, v)
        return f, L

    return latent_values


@numba_funcify.register(LatentSlopes)
def _numba_slopes(op: LatentSlopes, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node."""

    @numba_njit
    def latent_slopes(theta: Any, X: Any, v: Any, L: Any, by_f: Any) -> Any:
        with numba.objmode(by_theta="float64[::1]", by_v="float64[::1]"):
            by_theta, by_v = op.slopes(theta, X, v, L, by_f)
        return by_theta, by_v

    return latent_slopes


@numba_funcify.register(LatentAtNew)
def _numba_at_new(op: LatentAtNew, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node."""

    @numba_njit
    def latent_at_new(theta: Any, v: Any, X: Any, inputs: Any, asked: Any, z: Any) -> Any:
        with numba.objmode(f="float64[::1]"):
            f = op.draw(theta, v, X, inputs, asked, z)
        return f

    return latent_at_new
