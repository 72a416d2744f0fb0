"""What bayessel uses of PyMC and PyTensor that their documentation does not promise.

Every private attribute, and every name from a module that is not documented, is used here and nowhere else, with a test
each: an upgrade that takes one away shows in one place, under the name of what is gone. Importing this module imports
PyMC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba
import numpy as np
from pymc.backends.arviz import coords_and_dims_for_inferencedata, find_constants, find_observations
from pymc.blocking import PointType, StatsType
from pymc.data import MinibatchOp
from pymc.distributions.continuous import FlatRV, HalfCauchyRV, HalfFlatRV, HalfStudentTRV, WeibullBetaRV
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.distributions.distribution import SymbolicRandomVariable, _support_point
from pymc.distributions.shape_utils import _change_dist_size
from pymc.distributions.simulator import SimulatorRV
from pymc.distributions.timeseries import RandomWalkRV
from pymc.distributions.transforms import _default_transform
from pymc.initial_point import make_initial_point_fns_per_chain
from pymc.logprob.abstract import _logcdf, _logprob
from pymc.logprob.transforms import LogTransform, Transform
from pymc.model.fgraph import clone_model
from pymc.pytensorf import find_rng_nodes, join_nonshared_inputs, reseed_rngs
from pymc.step_methods.arraystep import PopulationArrayStepShared
from pymc.step_methods.compound import Competence, StepMethodState, flatten_steps
from pymc.step_methods.state import dataclass_state
from pymc.util import (
    RandomGeneratorState,
    get_random_generator,
    get_state_from_generator,
    get_untransformed_name,
    get_value_vars_from_user_vars,
    is_transformed_name,
    random_generator_from_state,
)
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.compile.sharedvalue import SharedVariable, shared
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors
from pytensor.link.basic import PerformLinker
from pytensor.link.numba.dispatch.basic import (
    numba_funcify,
    numba_funcify_and_cache_key,
    numba_funcify_default_op_cache_key,
    numba_njit,
    register_funcify_default_op_cache_key,
)
from pytensor.link.numba.linker import NumbaLinker
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.math import Log1mexp, Softplus
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular

__all__ = [
    "Competence",
    "DeepCopyOp",
    "FlatRV",
    "HalfCauchyRV",
    "HalfFlatRV",
    "HalfStudentTRV",
    "Log1mexp",
    "LogTransform",
    "PerformLinker",
    "PointType",
    "PopulationArrayStepShared",
    "RandomGeneratorState",
    "RandomWalkRV",
    "SimulatorRV",
    "Softplus",
    "SolveTriangular",
    "StatsType",
    "StepMethodState",
    "SymbolicRandomVariable",
    "Transform",
    "ViewOp",
    "WeibullBetaRV",
    "batched",
    "clone_model",
    "code_of",
    "competence",
    "coords_and_dims_for_inferencedata",
    "custom_methods",
    "dataclass_state",
    "default_transform",
    "density_and_gradient",
    "find_constants",
    "find_observations",
    "find_rng_nodes",
    "flatten_steps",
    "get_random_generator",
    "get_state_from_generator",
    "get_untransformed_name",
    "get_value_vars_from_user_vars",
    "is_transformed_name",
    "join_nonshared_inputs",
    "machine_code",
    "make_initial_point_fns_per_chain",
    "multiplications",
    "numba_funcify",
    "numba_njit",
    "random_generator_from_state",
    "register_custom_methods",
    "register_funcify_default_op_cache_key",
    "reseed_rngs",
    "runs_python",
    "state_class",
    "stored_bytes",
    "with_shared_observations",
    "without_initial_values",
]


#: single-dispatch functions in which PyMC looks a distribution's methods up
_DISPATCHED = {one.__name__: one for one in (_change_dist_size, _logcdf, _logprob, _support_point)}


def custom_methods(model: Any) -> dict[type, Mapping[str, Any]]:
    """Return what PyMC looks up for the classes that `CustomDist` makes, one for each variable of a model.

    A pickle holds such a class but not what was registered for it: another process has to be told.
    """
    kinds = {type(node.owner.op) for node in ancestors(model.basic_RVs) if node.owner is not None}
    return {
        kind: {name: one.registry[kind] for name, one in _DISPATCHED.items() if kind in one.registry}
        for kind in kinds
        if issubclass(kind, CustomDistRV | CustomSymbolicDistRV)
    }


def register_custom_methods(methods: Mapping[type, Mapping[str, Any]]) -> None:
    """Let PyMC know the methods that `custom_methods` returned, in the process that calls this."""
    for kind, own in methods.items():
        for name, method in own.items():
            _DISPATCHED[name].register(kind, method)


def batched(model: Any) -> list[str]:
    """Observed variables and potentials that see random parts of the data (`pm.Minibatch`) or are scaled as if so."""
    found = []
    for one in (*model.observed_RVs, *model.potentials):
        value = model.rvs_to_values.get(one, one)
        ops = [node.owner.op for node in ancestors([one, value]) if node.owner is not None]
        if any(isinstance(op, MinibatchOp | MinibatchRandomVariable) for op in ops):
            found.append(str(one.name))
    return found


def with_shared_observations(model: Any) -> tuple[Any, dict[str, Any]]:
    """Return the model with its observed values as shared variables, and these by the name of what is observed.

    The model that comes back shares everything else with the given one, which is as it was: a clone would have its
    variables in another order. Observed values that are data containers already stay what they are.
    """
    made = object.__new__(type(model))
    made.__dict__.update(model.__dict__)
    made.rvs_to_values, made.values_to_rvs = dict(model.rvs_to_values), dict(model.values_to_rvs)
    found = {}
    for rv in model.observed_RVs:
        value = leaf = model.rvs_to_values[rv]
        while leaf.owner is not None and len(leaf.owner.inputs) == 1:  # a cast to the type of the variable
            leaf = leaf.owner.inputs[0]
        if isinstance(leaf, Constant):
            leaf = shared(np.array(value.eval()), name=f"{rv.name} observed", shape=value.type.shape)
            del made.values_to_rvs[value]
            made.rvs_to_values[rv], made.values_to_rvs[leaf] = leaf, rv
        if isinstance(leaf, SharedVariable):
            found[str(rv.name)] = leaf
    return made, found


def without_initial_values(model: Any) -> Any:
    """Return the model without the initial values that were given, which `clone_model` refuses; it shares the rest."""
    made = object.__new__(type(model))
    made.__dict__.update(model.__dict__)
    made.rvs_to_initial_values = dict.fromkeys(model.rvs_to_initial_values)
    return made


def density_and_gradient(
    model: Any, variables: Sequence[Any], point: PointType, **compile_kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """Return a compiled function of one vector, and where the values of the other variables are put before a call.

    `Model.logp_dlogp_function` wraps the function in checks that cost more than a small density.
    """
    compiled = model.logp_dlogp_function(list(variables), ravel_inputs=True, initial_point=point, **compile_kwargs)
    return compiled._pytensor_function, compiled._extra_vars_shared


def default_transform(rv: Any) -> Any:
    """The transform that PyMC gives a variable of its own accord; None where all numbers are its values."""
    return _default_transform(rv.owner.op, rv)


def runs_python(function: Any) -> bool:
    """Whether a compiled function is no machine code throughout, or may raise at some value of its first input.

    Operations without machine code run in object mode, and so may those that are translated without a name for the
    cache. Checks of other inputs alone, as of the shapes of data, raise at the first call or never; so do indices,
    unless they follow from the first input.
    """
    if not isinstance(function.maker.linker, NumbaLinker) or not hasattr(function.vm, "jit_fn"):
        return True
    graph = function.maker.fgraph
    return _may_raise(graph, {graph.inputs[0]})


def multiplications(function: Any) -> float:
    """About how many multiplications a compiled function makes, from the shapes in its graph; unknown lengths are 1."""
    return _multiplications(function.maker.fgraph)


def _multiplications(graph: Any) -> float:
    total = 0.0
    for node in graph.toposort():
        inner = getattr(node.op, "fgraph", None)
        if inner is not None:
            total += _multiplications(inner) * (1.0 if isinstance(node.op, OpFromGraph) else 100.0)
        made = sum(float(np.prod([n or 1 for n in getattr(one.type, "shape", ())])) for one in node.outputs)
        name = type(getattr(node.op, "core_op", node.op)).__name__
        if any(part in name for part in ("Dot", "Gem", "Ger", "Chol", "Solve", "Det", "Inv", "Eig", "SVD")):
            shapes = [getattr(one.type, "shape", ()) for one in node.inputs]
            made *= max((float(n or 1) for shape in shapes for n in shape), default=1.0)
        total += made
    return total


def _may_raise(graph: Any, moved: set[Any]) -> bool:
    named = (numba_funcify_and_cache_key, numba_funcify_default_op_cache_key)
    for node in graph.toposort():
        if all(one.dispatch(type(node.op)) is one.dispatch(object) for one in named):
            return True
        of_moved = [k for k, one in enumerate(node.inputs) if one in moved]
        if isinstance(node.op, CheckAndRaise) and of_moved:
            return True
        if "Subtensor" in type(node.op).__name__ and any(_is_index(node, k) for k in of_moved):
            return True
        inner = getattr(node.op, "fgraph", None)
        if inner is not None and of_moved:
            same = isinstance(node.op, OpFromGraph)  # of loops, inputs are arranged anew
            at = [inner.inputs[k] for k in of_moved] if same else [x for x in inner.inputs if _dtype(x)[0] == "f"]
            if _may_raise(inner, set(at)):
                return True
        if of_moved:
            moved.update(node.outputs)
    return False


def _dtype(variable: Any) -> str:
    return str(getattr(variable.type, "dtype", "none"))


def _is_index(node: Any, k: int) -> bool:
    """Whether the k-th input of an indexing operation says which elements, by its type."""
    return k > 0 and _dtype(node.inputs[k])[0] in "iub"


def machine_code(function: Any, arguments: tuple[Any, ...]) -> tuple[int, Any]:
    """Address and signature of what a function compiled for such arguments; where it is cached they are one tuple."""
    overloads = function.vm.jit_fn.overloads
    packed = (numba.typeof(arguments),)
    return code_of(
        overloads[packed] if packed in overloads else overloads[tuple(numba.typeof(one) for one in arguments)]
    )


def code_of(compiled: Any) -> tuple[int, Any]:
    """Address and signature of what Numba has compiled."""
    name = compiled.fndesc.llvm_cfunc_wrapper_name
    return compiled.library.get_pointer_to_function(name), compiled.signature


def competence(method: type, rv: Any, has_gradient: bool) -> Any:
    """How well a step method suits a variable: the largest of what it says of each of the variable's values."""
    says: Callable[..., Sequence[Any]] = method._competence  # type: ignore[attr-defined]
    return says(rv, has_gradient)[0]


def state_class(step: Any) -> type:
    """The dataclass of a step method's sampling state."""
    found: type = step._state_class
    return found


def stored_bytes(function: Any) -> int:
    """Bytes of the arrays that a compiled function without garbage collection holds after a call."""
    cells = [cell[0] for cell in function.vm.storage_map.values()]
    return sum(one.nbytes for one in cells if isinstance(one, np.ndarray))
