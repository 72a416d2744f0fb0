"""Reading a trace: its variables element by element, ArviZ's diagnostics of each, statistics, times and attributes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayessel._check import FloatArray

if TYPE_CHECKING:
    import xarray as xr

#: Limits of Vehtari et al. (2021).
MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100
#: A chain that repeats one value this often in a row, and for a tenth of its length, is stuck.
_LONG_STAY = 50
#: Quantiles whose effective sample sizes are the tail ESS.
_TAILS = (0.05, 0.95)
_NUMBERS = ("r_hat", "ess_bulk", "ess_tail", "mcse_over_sd")


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


def flat(array: Any) -> FloatArray:
    ordered = array.transpose("chain", "draw", ...).values
    return np.asarray(ordered.reshape(*ordered.shape[:2], -1), dtype=np.float64)


def labels(array: Any) -> list[str]:
    dims = [d for d in array.dims if d not in ("chain", "draw")]
    if not dims:
        return [str(array.name)]
    ticks = [array[d].values if d in array.coords else np.arange(array.sizes[d]) for d in dims]
    return [
        f"{array.name}[{', '.join(str(t[i]) for t, i in zip(ticks, index, strict=True))}]"
        for index in np.ndindex(*(len(t) for t in ticks))
    ]


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


def no_numbers() -> pd.DataFrame:
    return pd.DataFrame(columns=[*_NUMBERS, "mean", "sd", "note"])


def numbers(names: list[str], x: FloatArray, chains: int) -> tuple[pd.DataFrame, dict[str, str]]:
    """ArviZ's numbers for every column, and notes on those that have none."""
    import arviz as az

    rows, notes = {}, {}
    for j, name in enumerate(names):
        column = x[:, :, j]
        finite = np.isfinite(column)
        row = dict.fromkeys((*_NUMBERS, "mean", "sd"), np.nan)
        if not finite.all():
            notes[name] = "not finite"
        elif np.ptp(column) == 0.0:
            notes[name] = "constant"
            row |= {"mean": column[0, 0], "sd": 0.0}
        else:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                row |= {
                    "r_hat": float(az.rhat(column)) if column.shape[1] >= 4 else np.nan,
                    "ess_bulk": float(az.ess(column, method="bulk")) if column.shape[1] >= 4 else np.nan,
                    "ess_tail": float(az.ess(column, method="tail", prob=_TAILS)) if column.shape[1] >= 4 else np.nan,
                    "mean": float(column.mean()),
                    "sd": float(column.std(ddof=1)),
                }
                error = float(az.mcse(column, method="mean")) if column.shape[1] >= 4 else np.nan
                row["mcse_over_sd"] = error / row["sd"]
            still = [c for c in range(chains) if np.ptp(column[c]) == 0.0 or _longest_stay(column[c]) > 0]
            if still:
                notes[name] = f"stuck in chain {', '.join(map(str, still))}"
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("variable"), notes


def _longest_stay(x: FloatArray) -> int:
    """Length of the longest run of one value if it is suspicious, else 0; whole numbers may well repeat."""
    if (x == np.round(x)).all():
        return 0
    changes = np.flatnonzero(np.diff(x) != 0.0)
    longest = int(np.diff(np.concatenate([[-1], changes, [len(x) - 1]])).max())
    return longest if longest >= max(_LONG_STAY, len(x) // 10) else 0


def worst_first(table: pd.DataFrame) -> pd.DataFrame:
    """Broken columns first, then by R-hat over its limit or ESS below its own, constants last."""
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1)
    badness = np.maximum((table["r_hat"].to_numpy() - 1.0) / (MAX_RHAT - 1.0), MIN_ESS_PER_CHAIN / ess.to_numpy())
    badness = np.where(np.isnan(badness), np.inf, badness)
    badness = np.where(table["note"].to_numpy() == "constant", -1.0, badness)
    return table.iloc[np.argsort(-badness, kind="stable")]
