"""A width comparison as an xarray DataTree, on disk and back.

Groups: ``comparison`` (dimension ``width``, one variable per column of the table), ``observed_data`` (X, y),
``predictions`` (dimension ``fitted_width``: mean and std at the rows, and along a grid if there is one input).
Everything else is attributes of the root.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from bayessel.diagnostics._curves import Prediction

if TYPE_CHECKING:
    from bayessel.diagnostics._comparison import WidthComparison

_FORM = "bayessel width comparison"
_ROOT = tuple(
    "criteria names target model kind n_centers bias planned interrupted fingerprint created versions".split()
)


def to_datatree(comparison: WidthComparison) -> xr.DataTree:
    """Arrange a comparison in groups."""
    table = comparison.table
    columns = {str(name): ("width", _values(table[name])) for name in table}
    widths = table.index.to_numpy(dtype=np.float64)
    groups = {
        "/comparison": xr.Dataset(columns, coords={"width": widths}),
        "/observed_data": xr.Dataset(
            {"X": (("row", "input"), comparison.X), "y": ("row", comparison.y)},
            coords={"input": np.array(comparison.names, dtype=str)},
        ),
    }
    if comparison.fits:
        groups["/predictions"] = _predictions(comparison.fits)
    tree = xr.DataTree.from_dict(groups)
    # JSON in every attribute: lists, booleans and text come back as what they were
    tree.attrs = {name: json.dumps(getattr(comparison, name)) for name in _ROOT}
    tree.attrs |= {
        "form": _FORM,
        "columns": json.dumps([str(name) for name in table]),
        "creation_library": "bayessel",
        "creation_library_version": comparison.versions.get("bayessel", "unknown"),
        "created_at": comparison.created,
    }
    return tree


def from_netcdf(path: str | Path) -> dict[str, Any]:
    """Read the fields of a comparison."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    try:
        with xr.open_datatree(file, engine="h5netcdf") as opened:
            tree = opened.load()
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} cannot be read as NetCDF: {error}") from error
    if tree.attrs.get("form") != _FORM:
        raise ValueError(f"{file} holds no width comparison (its groups are {', '.join(tree.groups)})")
    data = tree["comparison"].to_dataset()
    columns = {name: _column(data[name].to_numpy()) for name in json.loads(tree.attrs["columns"])}
    observed = tree["observed_data"].to_dataset()
    fields: dict[str, Any] = {name: json.loads(tree.attrs[name]) for name in _ROOT}
    fields |= {"criteria": tuple(fields["criteria"]), "names": tuple(fields["names"])}
    return fields | {
        "table": pd.DataFrame(columns, index=pd.Index(data["width"].to_numpy(), name="width", dtype=np.float64)),
        "X": observed["X"].to_numpy(),
        "y": observed["y"].to_numpy(),
        "fits": _fits(tree["predictions"].to_dataset()) if "predictions" in tree else {},
    }


def _predictions(fits: dict[float, Prediction]) -> xr.Dataset:
    kept = list(fits.values())
    variables: dict[str, Any] = {
        name: (("fitted_width", "row"), np.stack([getattr(fit, name) for fit in kept])) for name in ("mean", "std")
    }
    if len(kept[0].grid):
        variables["grid"] = ("grid_point", kept[0].grid)
        for name in ("grid_mean", "grid_std"):
            variables[name] = (("fitted_width", "grid_point"), np.stack([getattr(fit, name) for fit in kept]))
    return xr.Dataset(variables, coords={"fitted_width": np.array(list(fits), dtype=np.float64)})


def _fits(data: xr.Dataset) -> dict[float, Prediction]:
    widths, mean, std = (data[name].to_numpy() for name in ("fitted_width", "mean", "std"))
    none = np.empty(0)
    grid = data["grid"].to_numpy() if "grid" in data else none
    along = [data[name].to_numpy() if "grid" in data else [none] * len(widths) for name in ("grid_mean", "grid_std")]
    return {float(r): Prediction(mean[i], std[i], grid, along[0][i], along[1][i]) for i, r in enumerate(widths)}


def _values(column: pd.Series) -> np.ndarray[Any, Any]:
    """Numbers as they are, text as NumPy's own strings, which NetCDF can hold."""
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return column.to_numpy() if numeric else np.array([str(value) for value in column], dtype=str)


def _column(values: np.ndarray[Any, Any]) -> Any:
    return values if values.dtype.kind in "fiub" else [str(value) for value in values]
