"""Proof, from the graph alone, that an expression is affine in given variables: e = L(x) + c.

Each operation is one of: linear in all its arguments together (sums, joins, views), linear in one argument while the
others are free of x (products, matrix products, indexing), or neither, which ends the proof. The linear part L is built
on the way, with free terms replaced by zeros of their shape, so that a large c cannot swamp it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from scipy import sparse

from bayessel._check import FloatArray
from bayessel._pymc import DeepCopyOp, SolveTriangular, ViewOp
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.conjugacy.graph_interpreter import Program

#: Operations that read their first argument at places given by the others.
VIEWS = (DimShuffle, Reshape, Subtensor, AdvancedSubtensor, SpecifyShape, Alloc)
_UNARY = (TensorFromScalar, ScalarFromTensor)
_WRITES = (IncSubtensor, AdvancedIncSubtensor)
#: Entries of one dense design; beyond, the memory is better spent by a gradient-based step.
MAX_ENTRIES = 50_000_000
#: Entries from which on it is worth looking for zeros.
SPARSE_FROM = 2_000
#: Share of non-zero entries below which a large design is kept as a sparse matrix.
SPARSE_BELOW = 0.1


class Affine(NamedTuple):
    """L as an expression, and the random variables in its coefficients."""

    linear: Variable
    coefficients: frozenset[Variable]


def affine(graph: ModelGraph, expression: Variable, block: Iterable[Variable]) -> Affine | None:
    """The linear part of `expression` in the variables of `block` jointly; None where it is free of them.

    Raises
    ------
    NotConjugateError
        It depends on them in a way that cannot be proved affine.
    """
    return _Reader(graph, frozenset(block)).read(expression)


def check_line(graph: ModelGraph, x: Variable) -> None:
    """Refuse a variable whose transform is not an affine map of the whole line onto itself."""
    transform = graph.model.rvs_to_transforms[x]
    if transform is None:
        return
    value, expression = graph.space.backward_expression(x)
    refusal = NotConjugateError(f"the transform {transform.name} of {x.name} is not affine")
    if np.size(graph.model.initial_point()[value.name]) != np.size(graph.initial[x]):
        raise refusal  # such as that of variables that sum to zero: affine, but not onto
    try:
        part = affine(graph.with_variable(value), expression, [value])
    except NotConjugateError as error:
        raise refusal from error
    if part is None or x in part.coefficients:
        raise refusal


def check_moved(graph: ModelGraph, targets: Sequence[Variable]) -> None:
    """Refuse targets on which the support of another variable may depend, through that one's transform."""
    for rv in graph.space.moved_by(targets):
        check_line(graph, rv)


def design(
    program: Program,
    members: Sequence[Variable],
    shapes: Sequence[tuple[int, ...]],
    out: tuple[int, ...],
    env: dict[Variable, Any],
) -> Any:
    """The matrix of a linear part, column by column: its value, broadcast to shape `out`, at each unit vector.

    A large one with few entries comes back as a sparse matrix.
    """
    unit = dict(env)
    unit.update({x: np.zeros(shape) for x, shape in zip(members, shapes, strict=True)})
    rows, columns = int(np.prod(out)), sum(int(np.prod(shape)) for shape in shapes)
    kept: list[FloatArray] = []
    places: list[Any] = []
    large = rows * columns >= SPARSE_FROM
    for x, shape in zip(members, shapes, strict=True):
        zero = unit[x]
        for place in np.ndindex(shape):
            unit[x] = np.zeros(shape)
            unit[x][place] = 1.0
            column = np.broadcast_to(program(unit)[0], out).ravel()
            if large:
                nonzero = np.flatnonzero(column)
                places.append(nonzero)
                kept.append(column[nonzero])
            else:
                kept.append(column)
        unit[x] = zero
    if not large:
        return np.column_stack(kept) if kept else np.zeros((rows, 0))
    ends = np.concatenate([[0], np.cumsum([len(p) for p in places])])
    A = sparse.csc_matrix((np.concatenate(kept), np.concatenate(places), ends), shape=(rows, columns))
    return A if A.nnz < SPARSE_BELOW * rows * columns else A.toarray()


class _Reader:
    def __init__(self, graph: ModelGraph, block: frozenset[Variable]) -> None:
        self.graph, self.block = graph, block
        self.done: dict[Variable, Affine | None] = {}

    def free(self, v: Variable) -> bool:
        return not (self.graph.roots([v]) & self.block)

    def read(self, v: Variable) -> Affine | None:
        if v not in self.done:
            self.done[v] = self._read(v)
        return self.done[v]

    def _read(self, v: Variable) -> Affine | None:
        if v in self.block:
            return Affine(v, frozenset())
        if self.free(v):
            return None
        node = v.owner
        if isinstance(node.op, ViewOp | DeepCopyOp):  # what is named by pm.Deterministic
            return self.read(node.inputs[0])
        together, alone = _arguments(node)
        if not together:
            names = ", ".join(sorted(str(x.name) for x in self.graph.roots([v]) & self.block))
            raise NotConjugateError(f"the mean is not linear in {names} (through {_label(node)})")
        dependent = [i for i in together if not self.free(node.inputs[i])]
        fill = [0] if isinstance(getattr(node.op, "scalar_op", None), ps.Second) else []  # only its shape counts
        others = [i for i in range(len(node.inputs)) if i not in (*together, *fill)]
        stray = [i for i in others if not self.free(node.inputs[i])]
        if stray or (alone and len(dependent) > 1):
            involved = [node.inputs[i] for i in (*stray, *dependent)]
            names = ", ".join(sorted(str(x.name) for x in self.graph.roots(involved) & self.block))
            raise NotConjugateError(f"the mean is not linear in {names} jointly (through {_label(node)})")
        inputs = list(node.inputs)
        coefficients: set[Variable] = set()
        for i, argument in enumerate(node.inputs):
            part = self.read(argument) if i in dependent else None
            if part is not None:
                inputs[i] = part.linear
                coefficients |= part.coefficients
            elif i in together and not alone:
                inputs[i] = pt.zeros_like(argument)
            elif i not in fill:
                coefficients |= self.graph.roots([argument])
        return Affine(node.clone_with_new_inputs(inputs).outputs[v.index or 0], frozenset(coefficients))


def _arguments(node: Apply) -> tuple[list[int], bool]:
    """Positions of the arguments it is linear in, and whether in each alone (a product) or in all at once (a sum)."""
    op: Any = node.op
    every = list(range(len(node.inputs)))
    if isinstance(op, Elemwise):
        return _elementwise(op.scalar_op, node, every)
    core = op.core_op if isinstance(op, Blockwise) else op
    if isinstance(core, Dot):
        return every, True
    if isinstance(core, SolveTriangular):
        return [1], True
    if isinstance(op, (*VIEWS, *_UNARY, Sum)) or (isinstance(op, CumOp) and op.mode == "add"):
        return [0], True
    if isinstance(op, Join | MakeVector):
        return every, False
    if isinstance(op, _WRITES):
        return [0, 1], False
    return [], False


def _elementwise(op: Any, node: Apply, every: list[int]) -> tuple[list[int], bool]:
    if isinstance(op, ps.Add | ps.Sub | ps.Neg):
        return every, False
    is_float = isinstance(op, ps.Cast) and node.outputs[0].type.dtype == "float64"
    if is_float or isinstance(op, ps.Identity | ps.TrueDiv):
        return [0], True
    if isinstance(op, ps.Mul):
        return every, True
    if isinstance(op, ps.Second):
        return [1], True
    if isinstance(op, ps.Switch):
        return [1, 2], False
    return [], False


def _label(node: Apply) -> str:
    op: Any = node.op
    return type(getattr(op, "scalar_op", getattr(op, "core_op", op))).__name__
