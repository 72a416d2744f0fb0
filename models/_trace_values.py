"""What a trace holds of a model: values of its parameters, and whether it was sampled from these data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayessel._check import FloatArray

if TYPE_CHECKING:
    import xarray as xr


def posterior_of(trace: Any, caller: str) -> Any:
    """The posterior group, or an error that says what was needed."""
    try:
        return trace["posterior"]
    except (KeyError, TypeError, IndexError):
        raise TypeError(
            f"{caller} needs the trace that pm.sample or bs.sample returned, with its group posterior, got "
            f"{type(trace).__name__}"
        ) from None


def values_of(model: pm.Model, trace: xr.DataTree, name: str) -> FloatArray:
    """Values of a parameter for each draw, (chain, draw, …): of the trace, of the data if it was fixed, or nought."""
    posterior: Any = trace["posterior"]
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    if name in posterior:
        return np.asarray(posterior[name].transpose("chain", "draw", ...).values, dtype=np.float64)
    if name in model.named_vars and name not in {rv.name for rv in model.free_RVs}:
        fixed = np.asarray(model[name].get_value(), dtype=np.float64)
        return np.broadcast_to(fixed, (*shape, *fixed.shape))
    if name in model.named_vars:
        raise ValueError(f"the posterior group of the trace has no {name}: it is of another model")
    return np.zeros(shape)


def check_same_data(model: pm.Model, trace: Any, caller: str) -> None:
    """Refuse a model whose data are not those that the trace was sampled from, as far as the trace has them."""
    posterior_of(trace, caller)
    said = "leave the data of the model as they were when it was sampled"
    if "constant_data" not in trace:
        return
    constants = trace["constant_data"]
    for data in model.data_vars:
        if data.name in constants and not np.array_equal(constants[data.name].values, data.get_value()):
            raise ValueError(f"{data.name} in the model is not the {data.name} that the trace was sampled from: {said}")
