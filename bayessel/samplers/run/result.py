"""From unconstrained draws to a DataTree as PyMC's users know it, with attributes that say how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr

from bayessel._pymc import coords_and_dims_for_inferencedata, find_constants, find_observations
from bayessel.samplers.run.draw_functions import FunctionOfDraws
from bayessel.samplers.run.kernel import Array, Point

#: Pointwise log likelihoods kept at most: draws × rows, 400 MB of them.
LARGEST_LIKELIHOOD = 5e7


class Finisher:
    """Computes everything the model defines from the value variables of a draw.

    One function gives constrained variables, deterministic ones and the pointwise log likelihood, of many draws in one
    call.

    Parameters
    ----------
    model
        The model.
    point
        A point of it, for shapes.
    draws : int
        Draws of all chains that are to be expected.
    likelihood : bool
        Whether the pointwise log likelihood is wanted.
    density : bool
        Whether the log density is wanted, because the steps do not tell it.
    names : sequence of str, optional
        Only these of the model's free and deterministic variables.
    """

    def __init__(
        self,
        model: pm.Model,
        point: Point,
        draws: int,
        likelihood: bool,
        density: bool,
        names: Sequence[str] | None = None,
    ) -> None:
        self.model = model
        observed = list(model.observed_RVs)
        rows = sum(int(np.size(np.ma.getdata(value))) for value in find_observations(model).values())
        self.likelihood_note = ""
        if not likelihood:
            self.likelihood_note = "not asked for"
        elif not observed:
            self.likelihood_note = "the model has no observed variables"
        elif draws * rows > LARGEST_LIKELIHOOD:
            self.likelihood_note = (
                f"left out: {draws} draws of {rows} rows exceed {LARGEST_LIKELIHOOD:.0e} numbers; "
                "pm.compute_log_likelihood adds it to a thinned trace"
            )
        if self.likelihood_note:
            observed = []
        # terms of rows are kept, without what a joint density has beyond their sum
        observed = [rv for rv in observed if not hasattr(rv.tag, "rest_of")]
        self.notes = {str(rv.name): rv.tag.terms for rv in observed if hasattr(rv.tag, "terms")}
        by_name = {str(one.name): one for one in model.unobserved_value_vars}
        self._names = [str(one.name) for one in (*model.free_RVs, *model.deterministics)] if names is None else [*names]
        self._observed = [str(rv.name) for rv in observed]
        outputs = [by_name[name] for name in self._names]
        wanted = [*model.basic_RVs, *model.potentials] if density else observed
        terms = dict(zip(wanted, model.logp(vars=wanted, sum=False), strict=True)) if wanted else {}
        densities = [terms[rv] for rv in observed]
        densities += [pt.add(*(pt.sum(term) for term in terms.values()))] if density else []
        self._function = FunctionOfDraws(model, [*outputs, *densities], point)

    def data_changed(self, point: Point) -> None:
        """Take the shapes anew from a point, for other data."""
        self._function.data_changed(point)

    def __call__(self, draws: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
        """Return (posterior, log likelihood, log density) of draws with axes (chain, draw, …)."""
        chains, length = next(iter(draws.values())).shape[:2]
        columns = {name: values.reshape(chains * length, *values.shape[2:]) for name, values in draws.items()}
        found = [array.reshape(chains, length, *array.shape[1:]) for array in self._function(columns)]
        n, m = len(self._names), len(self._names) + len(self._observed)
        parts = (self._names, found[:n]), (self._observed, found[n:m]), (["lp"] * (len(found) - m), found[m:])
        posterior, likelihood, density = (dict(zip(*part, strict=True)) for part in parts)
        return posterior, likelihood, density


def tree(
    finisher: Finisher,
    draws: Mapping[str, Array],
    stats: Mapping[str, Array],
    axes: Mapping[str, Sequence[str]],
    attributes: Mapping[str, Any],
) -> xr.DataTree:
    """Arrange a run in ArviZ's groups.

    `axes` names the entries of statistics that several steps share, as (chain, draw, step).
    """
    import arviz_base

    model = finisher.model
    posterior, likelihood, density = finisher(draws)
    coords, dims = coords_and_dims_for_inferencedata(model)
    for rv in model.free_RVs:  # a value variable whose transform keeps the shape has the dimensions of its variable
        value = model.rvs_to_values[rv]
        if rv.name in dims and value.name in draws and draws[value.name].shape == posterior[rv.name].shape:
            dims[value.name] = dims[rv.name]

    library = {name: value for name, value in attributes.items() if name.startswith("inference_library")}

    def dataset(values: Mapping[str, Array], sampled: bool = True, own: Mapping[str, Any] | None = None) -> xr.Dataset:
        # a coordinate that fits none of the variables would be an error, one that fits not all of them too
        mine: dict[Any, Any] = {
            name: list(own[name]) if own and name in own else list(dims.get(name, ())) for name in values
        }
        found: xr.Dataset = arviz_base.dict_to_dataset(
            {name: np.asarray(value) for name, value in values.items()},
            attrs=library,
            coords=coords,
            dims=mine,
            sample_dims=["chain", "draw"] if sampled else [],
            skip_event_dims=values is likelihood,
            check_conventions=False,
        )
        return found

    told = {**density, **stats}
    # a variable of the model may have the name of a statistic
    steps = {name: [f"{name}_step"] if name in axes else [] for name in told}
    groups = {
        "/posterior": dataset(posterior),
        "/unconstrained_posterior": dataset(draws),
        "/sample_stats": dataset(told, own=steps),
    }
    if likelihood:
        groups["/log_likelihood"] = dataset(likelihood)
        for name, note in finisher.notes.items():
            groups["/log_likelihood"][name].attrs["terms"] = note
            groups["/log_likelihood"].attrs["terms"] = note
    observed = {name: _filled(value) for name, value in find_observations(model).items()}
    if observed:
        groups["/observed_data"] = dataset(observed, sampled=False)
    if constants := find_constants(model):
        groups["/constant_data"] = dataset(constants, sampled=False)
    for name, labels in axes.items():
        if name not in stats:
            continue
        groups["/sample_stats"] = groups["/sample_stats"].assign_coords({f"{name}_step": list(labels)})
    result = xr.DataTree.from_dict(groups)
    result.attrs = dict(attributes)
    for name in ("sampling_time", "tuning_steps"):  # where PyMC has them
        result["posterior"].attrs[name] = attributes[name]
    return result


def _filled(value: Any) -> Array:
    """Return observed values with NaN where they are missing."""
    return np.ma.filled(value.astype(np.float64), np.nan) if np.ma.is_masked(value) else np.ma.getdata(value)
