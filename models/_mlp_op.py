"""The network as one PyTensor node and its derivatives as a second one: one forward pass, one backward pass.

The forward node also gives the hidden values, from which the backward node goes on; nothing is computed twice. Both are
the compiled passes of `bayessel.mlp.compiled_passes`, also where the graph is interpreted.
"""

from __future__ import annotations

import inspect
import sys
import zlib
from typing import Any

import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, grad
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.replace import graph_replace

from bayessel import __version__, _fast_exp
from bayessel._pymc import numba_njit, register_funcify_default_op_cache_key
from bayessel.mlp import compiled_passes, fast_tanh


class Network(Op):
    """(a, u, b, v, w, X) -> outputs f (n, K) and hidden values Z (H, n); the weights in the order of `Weights`."""

    __props__ = ()
    gufunc_signature = "(h),(d,h),(k),(h,k),(d,k),(n,d)->(n,k),(h,n)"

    def make_node(self, *inputs: Any) -> Apply:
        """Shapes known at compile time are passed on: broadcasting relies on them."""
        tensors = [pt.as_tensor_variable(x) for x in inputs]
        if [x.ndim for x in tensors] != [1, 2, 1, 2, 2, 2]:
            raise TypeError(f"a network takes (a, u, b, v, w, X) of 1, 2, 1, 2, 2, 2 axes, got {tensors}")
        n, K, H = tensors[5].type.shape[0], tensors[2].type.shape[0], tensors[0].type.shape[0]
        outputs = [pt.tensor(dtype="float64", shape=(n, K)), pt.tensor(dtype="float64", shape=(H, n))]
        return Apply(self, tensors, outputs)

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """The compiled pass at run time."""
        outputs[0][0], outputs[1][0] = compiled_passes.forward_by_name(*inputs)

    def infer_shape(self, *arguments: Any) -> Any:
        """(n, K) and (H, n); the shapes of the inputs come last, after one or two arguments by PyTensor's version."""
        shapes = arguments[-1]
        n = shapes[5][0]
        return [(n, shapes[2][0]), (shapes[0][0], n)]

    def connection_pattern(self, node: Any) -> Any:
        """The inputs X are data."""
        return [[True, True]] * 5 + [[False, False]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """One backward pass from the hidden values of the forward pass."""
        by_f, by_Z = cotangents
        if not isinstance(by_Z.type, DisconnectedType):  # somebody uses Z itself, or asks for second derivatives
            return [*_written_out(plain, inputs, range(5), cotangents), disconnected_type()]
        found: Any = backward_pass(inputs[3], inputs[5], outputs[1], by_f)
        return [*found, disconnected_type()]


class BackwardPass(Op):
    """(v, X, Z, ∂/∂f) -> ∂/∂(a, u, b, v, w)."""

    __props__ = ()
    gufunc_signature = "(h,k),(n,d),(h,n),(n,k)->(h),(d,h),(k),(h,k),(d,k)"

    def make_node(self, *inputs: Any) -> Apply:
        """Five arrays of the shapes of the weights."""
        tensors = [pt.as_tensor_variable(x) for x in inputs]
        (H, K), D = tensors[0].type.shape, tensors[1].type.shape[1]
        shapes: Any = ((H,), (D, H), (K,), (H, K), (D, K))
        return Apply(self, tensors, [pt.tensor(dtype="float64", shape=shape) for shape in shapes])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """The compiled pass at run time."""
        for cell, value in zip(outputs, compiled_passes.backward_by_name(*inputs), strict=True):
            cell[0] = value

    def infer_shape(self, *arguments: Any) -> Any:
        """The shapes of the weights."""
        shapes = arguments[-1]
        (H, K), D = shapes[0], shapes[1][1]
        return [(H,), (D, H), (K,), (H, K), (D, K)]

    def connection_pattern(self, node: Any) -> Any:
        """For second derivatives; the inputs X are data."""
        return [[True] * 5, [False] * 5, [True] * 5, [True] * 5]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Second derivatives, from the same formulas written out: rare, so no pass of their own."""
        by_v, by_Z, by_df = _written_out(_plain_backward, inputs, (0, 2, 3), cotangents)
        return [by_v, disconnected_type(), by_Z, by_df]


def plain(a: Any, u: Any, b: Any, v: Any, w: Any, X: Any) -> list[Any]:
    """The network in PyTensor's own operations."""
    Z = pt.tanh(X @ u + a).T
    return [Z.T @ v + X @ w + b, Z]


def _plain_backward(v: Any, X: Any, Z: Any, df: Any) -> list[Any]:
    below = (v @ df.T) * (1.0 - Z**2)
    return [below.sum(axis=1), (below @ X).T, df.sum(axis=0), Z @ df, X.T @ df]


def _written_out(formulas: Any, inputs: Any, wanted: Any, cotangents: Any) -> list[Any]:
    """PyTensor's derivatives of the formulas by the `wanted` inputs, each input a variable of its own."""
    own = [x.type() for x in inputs]
    # the inputs may depend on each other, and so may the formulas: of f and Z, one is made from the other
    pairs = zip(formulas(*own), cotangents, strict=True)
    total = sum(pt.sum(g * x) for x, g in pairs if not isinstance(g.type, DisconnectedType))
    found: Any = grad(total, [own[k] for k in wanted], disconnected_inputs="ignore")
    return graph_replace(found, dict(zip(own, inputs, strict=True)), strict=False)


network_outputs = Network()
backward_pass = BackwardPass()


def _version(*modules: Any) -> int:
    """A number that changes with the code: PyTensor keeps machine code by the Op's name and this number."""
    try:
        text = "".join(inspect.getsource(module) for module in modules)
    except OSError:  # installed without sources
        text = __version__
    return zlib.crc32(text.encode())


_VERSION = _version(compiled_passes, fast_tanh, _fast_exp, sys.modules[__name__])


@register_funcify_default_op_cache_key(Network)
def _numba_network(op: Network, node: Any, **kwargs: Any) -> Any:
    @numba_njit
    def network_forward(a: Any, u: Any, b: Any, v: Any, w: Any, X: Any) -> Any:
        return compiled_passes.forward_by_name(a, u, b, v, w, X)

    return network_forward, _VERSION


@register_funcify_default_op_cache_key(BackwardPass)
def _numba_backward(op: BackwardPass, node: Any, **kwargs: Any) -> Any:
    @numba_njit
    def network_backward(v: Any, X: Any, Z: Any, df: Any) -> Any:
        return compiled_passes.backward_by_name(v, X, Z, df)

    return network_backward, _VERSION
