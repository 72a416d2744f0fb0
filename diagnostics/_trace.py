"""Reading a trace: its variables, statistics, times and attributes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray

if TYPE_CHECKING:
    import xarray as xr


def posterior_of(trace: Any, var_names: Sequence[str] | None) -> xr.Dataset:
    import xarray as xr

    try:
        group = trace["posterior"]
    except (KeyError, TypeError, IndexError) as error:
        raise TypeError(
            f"convergence needs a trace with a group 'posterior', as bs.sample and pm.sample return, got "
            f"{type(trace).__name__}"
        ) from error
    dataset: xr.Dataset = group if isinstance(group, xr.Dataset) else group.to_dataset()
    if not {"chain", "draw"} <= set(dataset.sizes):
        raise ValueError(f"the posterior must have dimensions chain and draw, got {', '.join(map(str, dataset.sizes))}")
    wanted = list(dataset.data_vars) if var_names is None else [var_names] if isinstance(var_names, str) else var_names
    missing = [str(name) for name in wanted if name not in dataset.data_vars]
    if missing:
        there = ", ".join(map(str, dataset.data_vars))
        raise ValueError(f"no variable is called {', '.join(missing)}; the posterior has {there}")
    numeric = [name for name in wanted if dataset[name].dtype.kind in "biuf" and dataset[name].size]
    if not numeric and int(dataset.sizes["draw"]):
        raise ValueError("the posterior has no numeric variable to look at")
    return dataset[numeric]


def run_attributes(trace: Any) -> dict[str, Any]:
    """Attributes of the run: on the root from `bayessel.sample`, on the posterior from PyMC."""
    found: dict[str, Any] = {}
    for place in (_sample_stats(trace), trace["posterior"], trace):
        found |= dict(getattr(place, "attrs", None) or {})
    return found


def times(trace: Any) -> tuple[float | None, dict[str, float]]:
    found = run_attributes(trace)
    try:
        seconds = float(found["sampling_time"])
    except (KeyError, TypeError, ValueError):
        seconds = float("nan")
    if found.get("resumed_draws"):
        seconds = float("nan")  # that of the last call alone, which did not make all the draws
    steps = found.get("step_seconds", {})
    if isinstance(steps, str):
        steps = json.loads(steps)
    return (seconds if seconds > 0.0 else None), {str(k): float(v) for k, v in dict(steps).items()}


def _sample_stats(trace: Any) -> Any:
    """The group of the sampler's statistics; None where the trace has none."""
    try:
        return trace["sample_stats"]
    except KeyError:
        return None


def statistics(trace: Any) -> dict[str, FloatArray]:
    """The sampler's statistics that are numbers, by name."""
    group = _sample_stats(trace)
    if group is None:
        return {}
    return {str(k): np.asarray(v.values) for k, v in group.data_vars.items() if v.dtype.kind in "biuf"}
