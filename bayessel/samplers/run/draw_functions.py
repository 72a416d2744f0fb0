"""Functions of many draws at a time, by NumPy's operations: nothing needs to be compiled."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import node_rewriter, out2in
from pytensor.tensor.elemwise import Elemwise

from bayessel._pymc import Log1mexp, PerformLinker, Softplus, stored_bytes
from bayessel.samplers.run.kernel import Array, Point

#: Held while functions are compiled: PyTensor changes its configuration then, for all threads, and two at a time leave
#: it changed.
compiler = threading.RLock()
#: Bytes of intermediate results while draws are finished.
WORKING_MEMORY = 3e7


class FunctionOfDraws:
    """Outputs of a model's variables for many draws.

    Plain Python needs no machine code, which from an empty cache takes longer to make than most models to sample. What
    cannot be done for many draws at once is compiled as usual, and called draw by draw.

    Parameters
    ----------
    model
        The model.
    outputs
        Graphs of its value variables.
    point
        A point of it, for shapes.
    """

    def __init__(self, model: pm.Model, outputs: Sequence[Any], point: Point) -> None:
        self._model, self._outputs = model, outputs
        self._inputs = [str(value.name) for value in model.value_vars]
        example = [np.asarray(point[name]) for name in self._inputs]
        try:
            self._function, self._ranks, per_draw = _for_many(model, outputs, example)
            self._chunk = max(1, int(WORKING_MEMORY / max(per_draw, 1)))
        except Exception:  # whatever an operation may raise that knows nothing of batches
            self._one_by_one()
        self.data_changed(point)

    def data_changed(self, point: Point) -> None:
        """Take the shapes anew from a point, for other data."""
        # shapes and dtypes, for the case without any draw
        self._example = self._call([np.asarray(point[name])[None] for name in self._inputs])

    def __call__(self, draws: Mapping[str, Array]) -> list[Array]:
        """Return each output for draws by name, the draw first."""
        columns = [draws[name] for name in self._inputs]
        found = [np.empty((len(columns[0]), *one.shape[1:]), dtype=one.dtype) for one in self._example]
        try:
            self._fill(found, columns)
        except Exception:  # what some draws bring with them, such as masks that choose another number of elements
            if not self._chunk:
                raise
            self._one_by_one()
            self._fill(found, columns)
        return found

    def _fill(self, found: list[Array], columns: list[Array]) -> None:
        chunk, count = self._chunk or 1, len(columns[0])
        for begin in range(0, count, chunk):
            part = slice(begin, begin + chunk)
            for array, values in zip(found, self._call([column[part] for column in columns]), strict=True):
                array[part] = values

    def _one_by_one(self) -> None:
        """Compute draw by draw from here on."""
        with compiler:
            self._function = self._model.compile_fn(
                self._outputs, inputs=self._model.value_vars, point_fn=False, on_unused_input="ignore"
            )
        self._ranks, self._chunk = [], 0

    def _call(self, columns: list[Array]) -> list[Array]:
        """Return the outputs of some draws, the draw first; what does not depend on the draw is repeated."""
        if not self._chunk:
            return [np.asarray(out)[None] for out in self._function(*(column[0] for column in columns))]
        count = len(columns[0])
        outs = [np.asarray(out) for out in self._function(*columns)]
        return [
            out if out.ndim > rank else np.broadcast_to(out, (count, *out.shape))
            for out, rank in zip(outs, self._ranks, strict=True)
        ]


@node_rewriter([Elemwise])
def _by_ufuncs(graph: Any, node: Any) -> list[Any] | None:
    """Replace functions that NumPy does not have, and that Python would call for each number, by some that it has."""
    (x, *_) = node.inputs
    if isinstance(node.op.scalar_op, Softplus):
        return [pt.maximum(x, 0.0) + pt.log1p(pt.exp(-pt.abs(x)))]
    if isinstance(node.op.scalar_op, Log1mexp):
        return [pt.switch(x < -np.log(2.0), pt.log1p(-pt.exp(x)), pt.log(-pt.expm1(x)))]
    return None


def _for_many(model: pm.Model, outputs: Sequence[Any], example: Sequence[Array]) -> tuple[Any, list[int], float]:
    """Return a function of many draws, the rank of each output for one draw, and the bytes it works on per draw."""
    values = model.value_vars
    batches = {one: pt.tensor(one.name, dtype=one.type.dtype, shape=(None, *one.type.shape)) for one in values}
    many = vectorize_graph(list(outputs), replace=batches)
    # what is left unfused and kept shows how much memory a draw needs
    plain = Mode(linker=PerformLinker(allow_gc=False), optimizer="fast_run").excluding("fusion", "inplace")
    plain = plain.register((out2in(_by_ufuncs), 100.0))
    function = model.compile_fn(
        many,
        inputs=list(batches.values()),
        mode=plain,
        point_fn=False,
        on_unused_input="ignore",
    )
    ranks = [one.type.ndim for one in outputs]
    sizes = []
    for count in (2, 3):
        outs = function(*(np.repeat(value[None], count, axis=0) for value in example))
        if any(np.ndim(out) > rank and len(out) != count for out, rank in zip(outs, ranks, strict=True)):
            raise ValueError("an output does not follow the number of draws")
        sizes.append(stored_bytes(function))
    return function, ranks, sizes[1] - sizes[0]
