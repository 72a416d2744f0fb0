"""Where the parameters of a draw come from: the prior, or a trace together with the data that it was sampled from.

A likelihood whose function or weights are integrated out has two kinds of predictive draws. With parameters from their
prior, targets are drawn from t ~ N(0, C). With parameters from a trace, a new target depends on the targets that were
seen as well, since these say what the function is. PyMC asks the same random variable for both.

The values of a latent process belong to the rows of their trace too: these are refused at others in the same way.

Each such variable has the parameter `given`, an `Origin`. It looks at the graph of the function that is compiled:

- where random variables lead to the parameters, they are drawn from the prior, and it is 0;
- where the parameters are inputs of the function, and so is a deterministic variable that depends on the data, both
  come from a trace; since PyMC computes deterministic variables anew when data have changed, the data are those of
  the trace. It is 1;
- where the parameters are inputs but the deterministic variable is not, the data are not those of the trace. It is left
  as it is, and raises when it is called;
- where all is fixed, as by ``pm.do``, targets are simulated from the model, and it is 0.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable

from bayessel._pymc import SymbolicRandomVariable, numba_funcify, numba_njit

REFUSAL = (
    "the data in the model are not those of the trace, and its function or weights are integrated out, or stand at the "
    "rows of the trace alone, so that draws of new targets depend on the data they were sampled from: leave these as "
    "they are (pass the whole trace, with its constant_data), and predict at new inputs by "
    "pm.sample_posterior_predictive(trace, model=bs.models.predictive_model(model, X)) or by "
    "bs.models.predict(model, trace, X)"
)


class Origin(Op):
    """(deterministic variable of parameters and data, parameters …) -> 0: the prior, 1: a trace with these data."""

    __props__ = ()
    #: read by `bayessel.diagnostics.calibration`, which draws targets at given parameters
    tells_origin = True

    def make_node(self, *inputs: Any) -> Apply:
        """A scalar."""
        return Apply(self, [pt.as_tensor_variable(x) for x in inputs], [pt.lscalar()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """Raise: what can be answered was answered while the function was compiled."""
        refuse()

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        """A scalar."""
        return [()]

    def connection_pattern(self, node: Any) -> Any:
        """Nothing to differentiate."""
        return [[False]] * len(node.inputs)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Nothing to differentiate."""
        return [disconnected_type() for _ in inputs]


origin = Origin()


@node_rewriter([Origin])
def answer(fgraph: Any, node: Any) -> Any:
    """Replace the question by its answer; leave it where the answer is to raise."""
    tied, *_ = node.inputs
    above = list(ancestors(node.inputs))
    if any(x.owner is not None and isinstance(x.owner.op, RandomVariable | SymbolicRandomVariable) for x in above):
        return [pt.constant(np.int64(0))]
    given = {x for x in above if x.owner is None and not isinstance(x, Constant | SharedVariable)}
    if not given:
        return [pt.constant(np.int64(0))]
    return [pt.constant(np.int64(1))] if tied in given else None


# before anything else is rewritten: the graph is then that which PyMC has built
optdb.register("bayessel_origin", in2out(answer, name="bayessel_origin"), "fast_run", "fast_compile", position=0.001)


@numba_funcify.register(Origin)
def _numba_origin(op: Any, node: Any, **kwargs: Any) -> Any:
    """Raise in Python, whose message is kept."""

    @numba_njit
    def origin_of(*inputs: Any) -> Any:
        with numba.objmode(value="int64"):
            value = refuse()
        return np.asarray(value)

    return origin_of


def refuse() -> int:
    """Raise."""
    raise ValueError(REFUSAL)
