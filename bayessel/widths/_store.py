"""A width comparison as an xarray DataTree, on disk and back.

Groups: ``comparison`` (dimension ``width``, or ``candidate`` with the coordinates ``kind`` and ``width`` where several
kinds were compared; one variable per column of the table), ``observed_data`` (X, y and the centres of the functions),
``held_out_data`` where rows were held out, ``predictions`` (dimension ``fitted``: mean and std at the rows, along a
grid if there is one input, and for a sparse model the weights and their precisions, one column per centre and one for
the bias: NaN where a function is not in use). ``width_posterior`` where the width was sampled: the prior and the names
of its inputs, and below it the groups of the run as `bayessel.sample` made them. Everything else is attributes of the
root.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from bayessel._files import unsealed
from bayessel._fingerprint import fingerprint
from bayessel.errors import DamagedFileError
from bayessel.widths._posterior import WidthPosterior
from bayessel.widths.curves import DrawnFit, Label, width_of

if TYPE_CHECKING:
    from bayessel.widths._comparison import WidthComparison

_FORM = "bayessel width comparison"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_ROOT = tuple(
    "criteria names target model kinds bias planned searched unsettled interrupted fingerprint created versions".split()
)
_TUPLES = ("criteria", "names", "kinds", "searched", "unsettled")


def to_datatree(comparison: WidthComparison) -> xr.DataTree:
    """Arrange a comparison in groups."""
    table = comparison.table
    observed = {
        "X": (("row", "input"), comparison.X),
        "y": ("row", comparison.y),
        "centers": (("center", "input"), comparison.centers),
    }
    names = {"input": np.array(comparison.names, dtype=str)}
    groups: dict[str, Any] = {"/comparison": _table(table), "/observed_data": xr.Dataset(observed, coords=names)}
    if comparison.held is not None:
        held = {"X": (("row", "input"), comparison.held[0]), "y": ("row", comparison.held[1])}
        groups["/held_out_data"] = xr.Dataset(held, coords=names)
    if comparison.fits:
        groups["/predictions"] = _predictions(comparison.fits, len(comparison.centers) + 1)
    if comparison.posterior is not None:
        groups |= _sampled(comparison.posterior)
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
    """Read the fields of a comparison; whatever is not as it was written is a `DamagedFileError`."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    with open(file, "rb") as opened:
        if opened.read(len(_HDF5)) != _HDF5:
            raise DamagedFileError(f"{file} cannot be read as NetCDF: it does not begin like an HDF5 file")
    content = unsealed(file, "width comparison")
    try:
        with xr.open_datatree(io.BytesIO(content), engine="h5netcdf") as opened_tree:
            fields = _fields(opened_tree.load())
    except DamagedFileError as error:
        raise DamagedFileError(f"{file} {error}") from None
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{file} was written by another release, or is damaged: {error}") from error
    found = fingerprint(fields["X"], fields["y"])
    if found != fields["fingerprint"]:
        raise DamagedFileError(
            f"{file} is damaged: its data have the fingerprint {found}, not {fields['fingerprint']} as it says"
        )
    return fields


def _fields(tree: xr.DataTree) -> dict[str, Any]:
    if tree.attrs.get("form") != _FORM:
        raise DamagedFileError(f"holds no width comparison (its groups are {', '.join(tree.groups)})")
    missing = [name for name in _ROOT if name not in tree.attrs]
    if missing:
        raise DamagedFileError(f"was written by another release: it does not say {', '.join(missing)}")
    data = tree["comparison"].to_dataset()
    columns = {name: _column(data[name].to_numpy()) for name in json.loads(tree.attrs["columns"])}
    observed = tree["observed_data"].to_dataset()
    fields: dict[str, Any] = {name: json.loads(tree.attrs[name]) for name in _ROOT}
    fields |= {name: tuple(fields[name]) for name in _TUPLES}
    held = tree["held_out_data"].to_dataset() if "held_out_data" in tree else None
    return fields | {
        "table": pd.DataFrame(columns, index=_index(data)),
        "X": observed["X"].to_numpy(),
        "y": observed["y"].to_numpy(),
        "centers": observed["centers"].to_numpy(),
        "held": None if held is None else (held["X"].to_numpy(), held["y"].to_numpy()),
        "fits": _fits(tree["predictions"].to_dataset()) if "predictions" in tree else {},
        "posterior": _posterior(tree) if "width_posterior" in tree else None,
    }


def _table(table: pd.DataFrame) -> xr.Dataset:
    widths = np.array([width_of(label) for label in table.index])
    if table.index.nlevels == 1:
        dimension, coordinates = "width", {"width": ("width", widths)}
    else:
        kinds = np.array([str(label[0]) for label in table.index], dtype=str)
        dimension, coordinates = "candidate", {"width": ("candidate", widths), "kind": ("candidate", kinds)}
    return xr.Dataset({str(name): (dimension, _values(table[name])) for name in table}, coords=coordinates)


def _index(data: xr.Dataset) -> pd.Index[Any]:
    widths = pd.Index(data["width"].to_numpy(), name="width", dtype=np.float64)
    if "kind" not in data.coords:
        return widths
    return pd.MultiIndex.from_arrays([[str(kind) for kind in data["kind"].to_numpy()], widths], names=["kind", "width"])


def _predictions(fits: dict[Label, DrawnFit], columns: int) -> xr.Dataset:
    kept = list(fits.values())
    variables: dict[str, Any] = {
        name: (("fitted", "row"), np.stack([getattr(fit, name) for fit in kept])) for name in ("mean", "std")
    }
    if len(kept[0].grid):
        variables["grid"] = ("grid_point", kept[0].grid)
        for name in ("grid_mean", "grid_std"):
            variables[name] = (("fitted", "grid_point"), np.stack([getattr(fit, name) for fit in kept]))
    if any(len(fit.basis) for fit in kept):
        for name in ("coef", "alpha"):
            values = np.full((len(kept), columns), np.nan)
            for row, fit in zip(values, kept, strict=True):
                row[fit.basis] = getattr(fit, name)
            variables[name] = (("fitted", "column"), values)
    coordinates: dict[str, Any] = {"fitted_width": ("fitted", np.array([width_of(label) for label in fits]))}
    kinds = [label[0] for label in fits if isinstance(label, tuple)]
    if kinds:
        coordinates["fitted_kind"] = ("fitted", np.array(kinds, dtype=str))
    return xr.Dataset(variables, coords=coordinates)


def _fits(data: xr.Dataset) -> dict[Label, DrawnFit]:
    found: dict[Label, DrawnFit] = {}
    grid = data["grid"].to_numpy() if "grid" in data else np.empty(0)
    for i, r in enumerate(data["fitted_width"].to_numpy()):
        label = (str(data["fitted_kind"].to_numpy()[i]), float(r)) if "fitted_kind" in data.coords else float(r)
        parts = {name: data[name].to_numpy()[i] for name in ("mean", "std")}
        for name in ("grid_mean", "grid_std"):
            parts[name] = data[name].to_numpy()[i] if "grid" in data else np.empty(0)
        if "coef" in data:
            used = np.flatnonzero(np.isfinite(data["coef"].to_numpy()[i]))
            parts |= {"basis": used} | {name: data[name].to_numpy()[i][used] for name in ("coef", "alpha")}
        found[label] = DrawnFit(grid=grid, **parts)
    return found


def _sampled(posterior: WidthPosterior) -> dict[str, Any]:
    """The prior, and the run; one that Ctrl-C ended before its first draw is left out."""
    dims = ("width_of",) if posterior.inputs else ()
    own = xr.Dataset(
        {"prior_median": (dims, posterior.prior_median), "prior_log_sd": (dims, posterior.prior_log_sd)},
        coords={"width_of": np.array(posterior.inputs, dtype=str)} if posterior.inputs else {},
        attrs={"chains": posterior.draws.shape[0], "interrupted": int(posterior.interrupted)},
    )
    run = {"/width_posterior/run": posterior.trace} if posterior.trace is not None and posterior.n_draws else {}
    return {"/width_posterior": own, **run}


def _posterior(tree: xr.DataTree) -> WidthPosterior:
    own = tree["width_posterior"].to_dataset()
    median, log_sd = own["prior_median"].to_numpy(), own["prior_log_sd"].to_numpy()
    trace, draws = None, np.empty((int(own.attrs["chains"]), 0, *median.shape))
    if "run" in tree["width_posterior"]:
        run: Any = tree["width_posterior/run"]
        trace = xr.DataTree.from_dict({key: node.to_dataset(inherit=False) for key, node in run.subtree_with_keys})
        draws = np.asarray(run["posterior"]["width"].to_numpy(), dtype=np.float64)
    inputs = tuple(map(str, own["width_of"].to_numpy())) if "width_of" in own.coords else ()
    return WidthPosterior(draws, trace, inputs, median, log_sd, bool(own.attrs["interrupted"]))


def _values(column: pd.Series) -> np.ndarray[Any, Any]:
    """Numbers as they are, text as NumPy's own strings, which NetCDF can hold."""
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return column.to_numpy() if numeric else np.array([str(value) for value in column], dtype=str)


def _column(values: np.ndarray[Any, Any]) -> Any:
    return values if values.dtype.kind in "fiub" else [str(value) for value in values]
