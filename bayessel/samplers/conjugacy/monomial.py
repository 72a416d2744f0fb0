"""Proof, from the graph alone, that every element of an expression is s·x_jᵏ: one power k, one element j of x each.

x is positive. The index j of each element is found by sending 0, 1, 2, … through the same views as x itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.elemwise import Elemwise

from bayessel._pymc import DeepCopyOp, ViewOp
from bayessel.samplers.conjugacy.affine import VIEWS
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError


class Monomial(NamedTuple):
    """The power k, and expressions of the index j.

    All of them must agree after broadcasting; each is written in the variable x, to be given 0, 1, 2, ….
    """

    power: float
    places: tuple[Variable, ...]


def monomial(graph: ModelGraph, expression: Variable, x: Variable) -> Monomial:
    """The power of x in `expression`.

    Raises
    ------
    NotConjugateError
        It depends on x in a way that is not proved to be a power, element by element.
    """
    if expression is x:
        return Monomial(1.0, (x,))
    if x not in graph.roots([expression]):
        return Monomial(0.0, ())
    node = expression.owner
    op: Any = node.op
    if isinstance(op, Elemwise):
        return _elementwise(graph, node, x)
    if isinstance(op, ViewOp | DeepCopyOp):
        return monomial(graph, node.inputs[0], x)
    if isinstance(op, VIEWS):
        if graph.roots(node.inputs[1:]):
            raise NotConjugateError(f"the places at which {x.name} is read are random")
        part = monomial(graph, node.inputs[0], x)
        index = tuple(node.clone_with_new_inputs([i, *node.inputs[1:]]).outputs[0] for i in part.places)
        return Monomial(part.power, index)
    raise NotConjugateError(f"a standard deviation depends on {x.name} through {type(op).__name__}")


def _elementwise(graph: ModelGraph, node: Any, x: Variable) -> Monomial:
    op = node.op.scalar_op
    parts = [monomial(graph, v, x) for v in node.inputs]
    out = node.outputs[0]
    index = tuple(
        # a later view needs the places in the shape of the result
        i if i.type.broadcastable == out.type.broadcastable else pt.second(out, i)
        for i in dict.fromkeys(i for part in parts for i in part.places)
    )
    powers = [part.power for part in parts]
    if isinstance(op, ps.Mul):
        power = sum(powers)
    elif isinstance(op, ps.TrueDiv):
        power = powers[0] - powers[1]
    elif isinstance(op, ps.Pow) and not parts[1].places and _number(node.inputs[1]) is not None:
        power = powers[0] * float(_number(node.inputs[1]) or 0.0)
    elif isinstance(op, ps.Sqrt):
        power = 0.5 * powers[0]
    elif isinstance(op, ps.Sqr):
        power = 2.0 * powers[0]
    elif isinstance(op, ps.Reciprocal):
        power = -powers[0]
    elif isinstance(op, ps.Neg | ps.Abs | ps.Identity) or (isinstance(op, ps.Cast) and out.type.dtype == "float64"):
        power = powers[0]
    elif isinstance(op, ps.Second):
        power = powers[1]
    elif isinstance(op, ps.Sign):
        power = 0.0  # the sign of s·xᵏ is that of s
    else:
        raise NotConjugateError(f"a standard deviation is not a power of {x.name} (through {type(op).__name__})")
    return Monomial(power, index)


def _number(v: Variable) -> float | None:
    """The single value of a constant, through views; None of anything else."""
    while v.owner is not None and isinstance(v.owner.op, VIEWS):
        v = v.owner.inputs[0]
    if isinstance(v, Constant) and np.size(v.data) and np.ptp(v.data) == 0:
        return float(np.ravel(v.data)[0])
    return None
