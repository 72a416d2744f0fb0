"""A small interpreter of PyTensor graphs: no compilation, and what depends on data alone is computed once.

A Gibbs step needs a handful of cheap expressions per draw: a residual, a few scales. Compiling them costs seconds and
calling the compiled function as much as evaluating them with NumPy, one call per node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pytensor.scalar as ps
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot

_UFUNCS: dict[type, Any] = {
    ps.Add: np.add,
    ps.Sub: np.subtract,
    ps.Mul: np.multiply,
    ps.TrueDiv: np.true_divide,
    ps.Pow: np.power,
    ps.Exp: np.exp,
    ps.Log: np.log,
    ps.Sqrt: np.sqrt,
    ps.Sqr: np.square,
    ps.Abs: np.absolute,
    ps.Sign: np.sign,
    ps.Neg: np.negative,
    ps.Reciprocal: np.reciprocal,
}


class Program:
    """The values of `outputs` as a function of `inputs` (variables of the graph, cut there) and of the data.

    `refresh` computes, once, all that needs no input, and all that needs only the inputs it is given values for; a call
    computes the rest. Until the next `refresh` changes of shared variables are not seen.
    """

    def __init__(self, outputs: Sequence[Variable], inputs: Sequence[Variable]) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        nodes = io_toposort(self.inputs, self.outputs)
        slot: dict[Variable, int] = {}
        leaves = [*self.inputs, *outputs, *(v for node in nodes for v in node.inputs)]
        for variable in (*leaves, *(v for node in nodes for v in node.outputs)):
            slot.setdefault(variable, len(slot))
        made = {v for node in nodes for v in node.outputs}
        self._given = {v: slot[v] for v in self.inputs}
        self._leaves = [(slot[v], v) for v in dict.fromkeys(leaves) if v not in made and v not in self._given]
        for _, leaf in self._leaves:
            if not isinstance(leaf, Constant | SharedVariable):
                raise ValueError(f"{leaf} is neither an input of the expression nor data")
        self._code = [
            (_instruction(node), [slot[v] for v in node.inputs], [slot[v] for v in node.outputs]) for node in nodes
        ]
        self._outputs = [slot[v] for v in outputs]
        self._memory: list[Any] = [None] * len(slot)
        self._live: list[Any] = []
        self._loaded: list[int] = []
        self.static: list[bool] = []

    def refresh(self, held: dict[Variable, Any] | None = None) -> None:
        """Read the data, and fix the inputs in `held` at the given values until the next refresh."""
        memory, known = self._memory, set()
        for place, leaf in self._leaves:
            data: Any = leaf
            memory[place] = data.data if isinstance(leaf, Constant) else data.get_value(borrow=True)
            known.add(place)
        for variable, value in (held or {}).items():
            if variable in self._given:
                memory[self._given[variable]] = np.asarray(value)
                known.add(self._given[variable])
        self._live = []
        with np.errstate(all="ignore"):
            for step in self._code:
                if known.issuperset(step[1]):
                    _run(step, memory)
                    known.update(step[2])
                else:
                    self._live.append(step)
        self._loaded = [self._given[v] for v in self.inputs if self._given[v] not in known]
        self.free_inputs = [v for v in self.inputs if self._given[v] not in known]
        self.static = [place in known for place in self._outputs]

    def __call__(self, env: dict[Variable, Any]) -> list[Any]:
        """Values of the outputs, the inputs taken from `env`."""
        memory = self._memory
        for variable, place in zip(self.free_inputs, self._loaded, strict=True):
            memory[place] = env[variable]
        for step in self._live:
            _run(step, memory)
        return [memory[place] for place in self._outputs]


def _run(step: tuple[Callable[..., Any], list[int], list[int]], memory: list[Any]) -> None:
    function, inputs, outputs = step
    result = function(*[memory[i] for i in inputs])
    if len(outputs) == 1:
        memory[outputs[0]] = result
    else:
        for place, value in zip(outputs, result, strict=True):
            memory[place] = value


def _instruction(node: Any) -> Callable[..., Any]:
    """A NumPy function for the node, or its own Python implementation."""
    op = node.op
    floating = all(v.type.dtype == "float64" for v in (*node.inputs, *node.outputs) if hasattr(v.type, "dtype"))
    if isinstance(op, Elemwise) and node.outputs[0].type.dtype.startswith("float"):
        ufunc = _UFUNCS.get(type(op.scalar_op))
        if ufunc is None:
            return partial(_perform_in, node.outputs[0].type.dtype, node)
        if not floating:
            # integer and single-precision constants: NumPy alone would compute 1/2 in integers
            ufunc = partial(ufunc, dtype=node.outputs[0].type.dtype)
        return ufunc if len(node.inputs) == ufunc_arity(ufunc) else lambda *x: reduce(ufunc, x)
    if isinstance(op, DimShuffle) and list(op.shuffle) == sorted(op.shuffle):
        return partial(_reshape, op.new_order)
    if isinstance(op, Dot) and floating:
        return np.dot
    return partial(_perform, node)


def ufunc_arity(ufunc: Any) -> int:
    """Number of arguments of a ufunc, also behind `partial`."""
    return int(getattr(ufunc, "func", ufunc).nin)


def _reshape(order: tuple[Any, ...], x: Any) -> Any:
    shape = np.shape(x)
    return np.reshape(x, [1 if o == "x" else shape[o] for o in order])


def _perform_in(dtype: str, node: Any, *values: Any) -> Any:
    """An elementwise operation with a floating result: its whole numbers are made floating first, conditions kept."""
    result = _perform(node, *(v if np.asarray(v).dtype.kind in "fb" else np.asarray(v, dtype) for v in values))
    return np.asarray(result, dtype)


def _perform(node: Any, *values: Any) -> Any:
    inputs = [
        v if isinstance(v, np.ndarray) or not hasattr(var.type, "dtype") else np.asarray(v, dtype=var.type.dtype)
        for v, var in zip(values, node.inputs, strict=True)
    ]
    storage = [[None] for _ in node.outputs]
    node.op.perform(node, inputs, storage)
    return storage[0][0] if len(storage) == 1 else [cell[0] for cell in storage]
