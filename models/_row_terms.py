"""Terms of rows as one PyTensor node: log p(t_i | t_{−i}) of a joint normal likelihood.

    t_i | t_{−i} ~ N(t_i − [Λ(t − μ)]_i / Λ_ii, 1/Λ_ii)    with the precision matrix Λ

No gradient goes through it: what the terms add to a density is taken away beside them (`declare_rest`), and whoever
simplifies a density before it is compiled has neither.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from bayessel._check import FloatArray
from bayessel._pymc import numba_funcify, numba_njit


class RowTerms(Op):
    """(t, …) -> log p(t_i | t_{−i}), (n,); nil where the parameters leave double precision, finite always."""

    __props__: tuple[str, ...] = ()
    #: shapes, for graphs of many draws
    gufunc_signature = ""

    @abstractmethod
    def terms(self, t: FloatArray, *parameters: Any) -> FloatArray:
        """The terms on arrays."""

    def finite(self, t: FloatArray, *parameters: Any) -> FloatArray:
        """The terms; nil if one of them is no number."""
        with np.errstate(all="ignore"):
            found = self.terms(t, *parameters)
        return found if np.isfinite(found).all() else np.zeros(len(t))

    def make_node(self, *inputs: Any) -> Apply:
        """One number for each row."""
        return Apply(self, [pt.as_tensor_variable(x) for x in inputs], [pt.dvector()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        outputs[0][0] = self.finite(*inputs)

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        """As many as rows."""
        return [(shapes[0][0],)]

    def connection_pattern(self, node: Any) -> Any:
        """Nothing is differentiated."""
        return [[False]] * len(node.inputs)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Nothing is differentiated."""
        return [disconnected_type() for _ in inputs]


@numba_funcify.register(RowTerms)
def _numba_row_terms(op: RowTerms, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node."""

    @numba_njit
    def row_terms(*inputs: Any) -> Any:
        with numba.objmode(found="float64[::1]"):
            found = op.finite(*inputs)
        return found

    return row_terms


def conditional_densities(pulled: FloatArray, precision: FloatArray) -> FloatArray:
    """Log p(t_i | t_{−i}) from Λ(t − μ) and the diagonal of Λ."""
    return np.asarray(0.5 * (np.log(precision) - np.log(2.0 * np.pi) - pulled**2 / precision))


def outside(left: FloatArray) -> FloatArray:
    """What of each row's unit vector lies outside the columns of an orthonormal Q; nil if Q is square, not rounding."""
    if left.shape[0] == left.shape[1]:
        return np.zeros(len(left))
    return np.asarray(np.maximum(1.0 - np.einsum("ij,ij->i", left, left), 0.0))


def beyond(left: FloatArray, z: FloatArray, value: FloatArray) -> FloatArray:
    """Value − Qz for z = Qᵀvalue; nil if Q is square, not rounding."""
    return np.zeros(len(left)) if left.shape[0] == left.shape[1] else np.asarray(value - left @ z)
