"""Whether a trace holds draws of the posterior of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm

from bayessel._pymc import find_observations
from bayessel.errors import DataMismatchError
from bayessel.samplers.run.fingerprint import fingerprints


def check_trace(model: pm.Model, trace: Any) -> None:
    """Refuse what is no trace, or one of another model or of other data."""
    try:
        posterior = trace["posterior"]
    except (KeyError, TypeError, IndexError) as error:
        raise TypeError(
            f"trace must be a DataTree with a group 'posterior', as bs.sample and pm.sample return, got "
            f"{type(trace).__name__}"
        ) from error
    start = model.initial_point()
    there = {str(name): one for name, one in posterior.data_vars.items()}
    missing = [str(rv.name) for rv in model.free_RVs if str(rv.name) not in there]
    if missing:
        raise ValueError(
            f"the trace has no draws of {', '.join(missing)}: it is of another model; its posterior has "
            f"{', '.join(there) or 'nothing'}"
        )
    for rv in model.free_RVs:
        one = there[str(rv.name)]
        if not {"chain", "draw"} <= set(one.dims):
            raise ValueError(
                f"the draws of {rv.name} must have dimensions chain and draw, got {', '.join(map(str, one.dims))}"
            )
        if one.ndim - 2 != rv.type.ndim:
            raise ValueError(
                f"{rv.name} has {one.ndim - 2} axes in the trace and {rv.type.ndim} in the model: it is of another "
                "model"
            )
        transform = model.rvs_to_transforms[rv]
        shape = start[str(model.rvs_to_values[rv].name)].shape
        if transform is None and tuple(one.transpose("chain", "draw", ...).shape[2:]) != shape:
            raise ValueError(f"{rv.name} has shape {one.shape[2:]} in the trace and {shape} in the model")
    attributes = dict(getattr(trace, "attrs", {}) or {})
    if "model_fingerprint" in attributes:
        of_model, of_data = fingerprints(model)
        if attributes["model_fingerprint"] != of_model:
            raise ValueError(
                f"the trace was sampled from another model with variables of these names (fingerprints "
                f"{attributes['model_fingerprint']} there, {of_model} here); sample this one, or where only a "
                "deterministic variable differs, delete the attribute model_fingerprint of the trace"
            )
        if attributes.get("data_fingerprint", of_data) != of_data:
            raise DataMismatchError(
                f"the trace was sampled with other data than the model has now (fingerprints "
                f"{attributes['data_fingerprint']} there, {of_data} here); sample it again"
            )
    observed = _group(trace, "observed_data")
    for name, value in find_observations(model).items():
        if observed is None or name not in observed:
            continue
        there_value = np.asarray(observed[name].values)
        here = np.ma.filled(np.ma.asarray(value, dtype=float), np.nan)
        if there_value.shape != here.shape or not np.allclose(
            np.asarray(there_value, dtype=float), here, rtol=1e-6, atol=0.0, equal_nan=True
        ):
            raise DataMismatchError(
                f"the trace was sampled with other values of {name} than the model has now; sample it again"
            )


def _group(trace: Any, name: str) -> Any:
    try:
        return trace[name]
    except (KeyError, TypeError):
        return None
