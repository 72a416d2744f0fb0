"""The data sets of many fits: what may be exchanged in a model, each data set checked and made complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable

from bayessel._pymc import with_shared_observations
from bayessel.samplers.run.kernel import Array

#: data by the names of containers and observed variables
type Data = Mapping[str, npt.ArrayLike]


def with_places(model: pm.Model) -> tuple[pm.Model, dict[str, Any], dict[str, str]]:
    """Return the model with places for data, these by name, and the other names by which they may be called.

    Places are data containers and the observed values of variables whose data are constants; a variable observed
    through a container may be called by its own name too.
    """
    made, observed = with_shared_observations(model)
    places = {str(one.name): one for one in made.data_vars if isinstance(one, SharedVariable)}
    names = {id(place): name for name, place in places.items()}
    aliases = {}
    for name, place in observed.items():
        if id(place) in names:
            aliases[name] = names[id(place)]
        else:
            places[name] = place
    return made, places, {alias: name for alias, name in aliases.items() if alias not in places}


def checked_data(
    datasets: Sequence[Data] | Mapping[str, Data], places: Mapping[str, Any], aliases: Mapping[str, str]
) -> tuple[list[Any], list[dict[str, Array]]]:
    """Return labels and data sets, each of which has a value for every place that any of them names."""
    if isinstance(datasets, Mapping):
        labels: list[Any] = list(datasets)
        given: list[Any] = list(datasets.values())
    elif isinstance(datasets, Sequence) and not isinstance(datasets, str):
        labels, given = list(range(len(datasets))), list(datasets)
    else:
        raise TypeError(
            "datasets must be a list of mappings of names to arrays, or a mapping of labels to such, got "
            f"{type(datasets).__name__}"
        )
    if not given:
        raise ValueError("datasets is empty: there is nothing to sample")
    for label, one in zip(labels, given, strict=True):
        if not isinstance(one, Mapping):
            raise TypeError(f"data set {label!r} must be a mapping of names to arrays, got {type(one).__name__}")
    known = {**{name: name for name in places}, **aliases}
    found = [
        {known[name]: _checked(value, places[known[name]], name, label) for name, value in one.items() if name in known}
        for label, one in zip(labels, given, strict=True)
    ]
    for label, one in zip(labels, given, strict=True):
        if unknown := sorted(set(map(str, one)) - set(known)):
            there = ", ".join(known) or "none"
            raise ValueError(
                f"data set {label!r} names {', '.join(unknown)}; the model's pm.Data and observed variables are {there}"
            )
    used = list(dict.fromkeys(name for one in found for name in one))
    if not used:
        raise ValueError(
            f"no data set names any data; the model's pm.Data and observed variables are {', '.join(known)}"
        )
    # what a data set leaves out is as the model has it, not as the one before left it
    usual = {name: places[name].get_value() for name in used}
    return labels, [{**usual, **one} for one in found]


def _checked(value: npt.ArrayLike, place: Any, name: str, label: object) -> Array:
    """Return a value as its place takes it."""
    array, dtype = np.ma.asarray(value), np.dtype(place.type.dtype)
    if np.ma.is_masked(array):
        raise ValueError(
            f"{name} of data set {label!r} has missing values: each pattern of them is another model; sample such data "
            "sets one by one"
        )
    found = np.asarray(np.ma.getdata(array))
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name} of data set {label!r} must be numbers, got dtype {found.dtype}")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError(f"{name} of data set {label!r} must be finite, got NaN or infinity")
    if found.ndim != place.type.ndim or any(
        k is not None and k != n for k, n in zip(place.type.shape, found.shape, strict=True)
    ):
        needed = "".join(f"{'any' if k is None else k}, " for k in place.type.shape).strip()
        raise ValueError(
            f"{name} of data set {label!r} has shape {found.shape}, and the model has ({needed}); "
            "where the number of rows changes declare it as pm.Data"
        )
    cast = found.astype(dtype)
    if not np.array_equal(cast, found) and dtype.kind != "f":
        raise ValueError(f"{name} of data set {label!r} must be whole numbers, as the model has them")
    return np.ascontiguousarray(cast) if found.ndim else cast
