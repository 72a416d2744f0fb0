"""What bayessel uses of PyMC and PyTensor that their documentation does not promise.

Every private attribute, and every name from a module that is not documented, is used here and nowhere else, with a test
each: an upgrade that takes one away shows in one place, under the name of what is gone. Importing this module imports
PyMC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pymc.backends.arviz import coords_and_dims_for_inferencedata, find_constants, find_observations
from pymc.blocking import PointType, StatsType
from pymc.distributions.continuous import HalfCauchyRV, HalfStudentTRV, WeibullBetaRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.initial_point import make_initial_point_fns_per_chain
from pymc.logprob.transforms import LogTransform, Transform
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
from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.link.basic import PerformLinker
from pytensor.link.numba.dispatch.basic import numba_funcify, numba_njit, register_funcify_default_op_cache_key
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular

__all__ = [
    "Competence",
    "DeepCopyOp",
    "HalfCauchyRV",
    "HalfStudentTRV",
    "LogTransform",
    "PerformLinker",
    "PointType",
    "PopulationArrayStepShared",
    "RandomGeneratorState",
    "SolveTriangular",
    "StatsType",
    "StepMethodState",
    "SymbolicRandomVariable",
    "Transform",
    "ViewOp",
    "WeibullBetaRV",
    "competence",
    "coords_and_dims_for_inferencedata",
    "dataclass_state",
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
    "make_initial_point_fns_per_chain",
    "numba_funcify",
    "numba_njit",
    "random_generator_from_state",
    "register_funcify_default_op_cache_key",
    "reseed_rngs",
    "state_class",
    "stored_bytes",
]


def density_and_gradient(
    model: Any, variables: Sequence[Any], point: PointType, **compile_kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """Return a compiled function of one vector, and where the values of the other variables are put before a call.

    `Model.logp_dlogp_function` wraps the function in checks that cost more than a small density.
    """
    compiled = model.logp_dlogp_function(list(variables), ravel_inputs=True, initial_point=point, **compile_kwargs)
    return compiled._pytensor_function, compiled._extra_vars_shared


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
