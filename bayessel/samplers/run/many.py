"""`sample_many`: one model and many data sets, compiled once."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import xarray as xr

from bayessel import work
from bayessel._check import as_count, as_flag, as_seconds, check_seed, chosen_seed
from bayessel._pymc import coords_and_dims_for_inferencedata
from bayessel._types import Seed
from bayessel.chains.findings import few
from bayessel.chains.verdict import NOT_YET
from bayessel.errors import SamplingWarning
from bayessel.samplers.run.arguments import as_cores, as_model, as_steps
from bayessel.samplers.run.data_sets import Data, checked_data, with_places
from bayessel.samplers.run.draw_functions import compiler
from bayessel.samplers.run.fit_of_data import DataFit, DataFits, FitService, compiled_fits, of_the_service
from bayessel.samplers.run.identity import versions
from bayessel.samplers.run.kernel import Array, Kernel
from bayessel.samplers.run.start import ValuesByName
from bayessel.work.executors import LocalProcesses
from bayessel.work.processes import fork_is_safe
from bayessel.work.progress import tell
from bayessel.work.threads import one_blas_thread

if TYPE_CHECKING:
    from bayessel.samplers.step_choice import Step

#: share of data sets with doubtful draws that is no news: chance makes one in a hundred
_EXPECTED = 0.05


def sample_many(
    model: pm.Model | None,
    datasets: Sequence[Data] | Mapping[str, Data],
    draws: int = 500,
    *,
    tune: int = 500,
    chains: int = 2,
    cores: int | None = None,
    random_seed: Seed = None,
    make_steps: Callable[[pm.Model], Step | Sequence[Step]] | None = None,
    var_names: Sequence[str] | None = None,
    time_budget: float | str | None = None,
    initvals: ValuesByName | None = None,
    target_accept: float | None = None,
    progressbar: bool = True,
    quiet: bool = False,
) -> xr.DataTree:
    """Sample one model given each of many data sets; everything is compiled once.

    For simulation-based calibration, bootstrap, forecasts from growing pasts, and studies. The draws given a data set
    are the same in any company and for any number of cores. Where the data are ``pm.Data`` they are those of
    `bayessel.sample` with the seed that the result has for the data set; where they are constants, which compilers fold
    in another order, they are others of the same posterior.

    Parameters
    ----------
    model : pymc.Model or None
        None takes the model of the context. It is left as it was.
    datasets : sequence of mappings, or mapping of labels to mappings
        Values by the names of ``pm.Data`` containers or of observed variables. What a data set leaves out is as the
        model has it. Shapes of observed values that are no ``pm.Data`` are those of the model.
    draws, tune, chains : int
        As in `bayessel.sample`, for each data set.
    cores : int, optional
        Processes that work at the same time, each on a data set; by default as many as the machine has.
    random_seed : int, list of int or Generator, optional
        Each data set has a seed of its own, by its position: ``SeedSequence(random_seed, spawn_key=(position,))``.
    make_steps : callable, optional
        model -> step methods; by default `bayessel.steps`, which is also asked for variables that they leave.
    var_names : sequence of str, optional
        Variables to keep, also deterministic ones; by default the free variables.
    time_budget : number of seconds or text, optional
        After it no data set is begun; those that are being sampled are finished.
    initvals, target_accept : optional
        As in `bayessel.sample`.
    progressbar, quiet : bool
        A bar on a terminal, and a line at the end; `quiet` leaves them out as well.

    Returns
    -------
    xarray.DataTree
        Group ``posterior``: the variables with dimensions (dataset, chain, draw, …), of data sets that have draws;
        ``trace.posterior.sel(dataset=3)`` is what ArviZ knows as a posterior. ``sample_stats``: the log density and
        divergences, alike. ``fits``: numbers by data set, also of those that failed (status, reason, verdict, problems,
        largest_r_hat, smallest_ess_bulk, smallest_ess_tail, divergences, n_gradient_evaluations, seed, seconds).
        Attributes of the root: status ("complete", "time budget" or "interrupted"), datasets, datasets_asked, failed,
        not_usable, sampling_time, compile_time, random_seed, versions (JSON), …

    Warns
    -----
    SamplingWarning
        Data sets failed, or the draws of more than 5% should not be used.

    Notes
    -----
    Ctrl-C gives back the data sets that are done. A variable whose shape differs between data sets is left out.

    Examples
    --------
    >>> import numpy as np, pymc as pm, bayessel as bs
    >>> with pm.Model() as model:
    ...     mean = pm.Normal("mean", 0.0, 10.0)
    ...     y = pm.Normal("y", mean, 1.0, observed=np.zeros(3))
    >>> data = [{"y": [0.1, 0.2, 0.3]}, {"y": [5.1, 5.2, 5.3]}]
    >>> trace = bs.sample_many(model, data, draws=100, tune=10, random_seed=1)
    >>> trace.posterior["mean"].mean(("chain", "draw")).round().values
    array([0., 5.])
    """
    began = perf_counter()
    model = as_model(model)
    draws, tune, chains = as_count(draws, "draws"), as_count(tune, "tune", 0), as_count(chains, "chains")
    budget, seed = as_seconds(time_budget), check_seed(random_seed, "random_seed")
    shown = as_flag(progressbar, "progressbar") and not as_flag(quiet, "quiet")
    if make_steps is not None and not callable(make_steps):
        raise TypeError(
            f"make_steps must be a function of a model that returns step methods, got {type(make_steps).__name__}; for "
            "instance lambda model: bs.PersistentHMC(model=model)"
        )
    seed = chosen_seed(None) if seed is None else seed
    if make_steps is None:
        from bayessel.samplers.step_choice import in_suited_coordinates

        with compiler:
            model = in_suited_coordinates(model, run=False)  # what suits one data set may not suit the others
    made, places, aliases = with_places(model)
    labels, data = checked_data(datasets, places, aliases)
    kept = _kept_names(made, var_names)
    places = {name: places[name] for name in data[0]}
    cores = as_cores(cores, len(data))
    seeds = [_seed_of(seed, k) for k in range(len(data))]
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        stack.enter_context(_put_back(places))
        stack.enter_context(made)
        with compiler:
            kernel = Kernel(as_steps(make_steps(made) if make_steps else None, made, target_accept), tune, draws)
            fits = compiled_fits(made, kernel, places, list(zip(data, seeds, strict=True)), chains, initvals, kept)
        compiled = perf_counter()
        report = _run(fits, data, seeds, cores, budget, shown)
        coordinates = coords_and_dims_for_inferencedata(made)
    found = [report.values.get(_key(k), _lost(report, k, seeds[k])) for k in range(len(data))]
    done = {labels[k]: one for k, one in enumerate(found) if one is not None}
    result = _tree(done, coordinates)
    status = "interrupted" if report.interrupted else "time budget" if report.out_of_time else "complete"
    result.attrs = {
        "status": status,
        "datasets": sum(1 for one in done.values() if one.row["status"] == "complete"),
        "datasets_asked": len(data),
        "failed": sum(1 for one in done.values() if one.row["status"] != "complete"),
        "not_usable": sum(1 for one in done.values() if one.row.get("verdict") == NOT_YET),
        "draws": draws,
        "tuning_steps": tune,
        "chains": chains,
        "cores": cores,
        "random_seed": seed if isinstance(seed, int) and seed < 2**63 else str(seed),
        "sampling_time": report.seconds,
        "compile_time": compiled - began,
        "versions": json.dumps(versions()),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **result.attrs,
    }
    _close({str(k): v for k, v in result.attrs.items()}, done, shown)
    return result


def _seed_of(seed: int | Sequence[int], position: int) -> int:
    """The seed of a data set: a number of 63 bits, which NetCDF and `bayessel.sample` take."""
    (word,) = np.random.SeedSequence(seed, spawn_key=(position,)).generate_state(1, np.uint64)
    return int(word) >> 1


def _kept_names(model: pm.Model, var_names: Sequence[str] | None) -> list[str]:
    free = [str(rv.name) for rv in model.free_RVs]
    there = [*free, *(str(one.name) for one in model.deterministics)]
    wanted = free if var_names is None else [var_names] if isinstance(var_names, str) else list(var_names)
    if not wanted or (missing := [str(name) for name in wanted if name not in there]):
        what = ", ".join(missing) if wanted else "nothing"
        raise ValueError(f"var_names names {what}; the model has {', '.join(there)}")
    return wanted


@contextmanager
def _put_back(places: Mapping[str, Any]) -> Iterator[None]:
    """Leave the data of the model as they were."""
    before = {name: place.get_value() for name, place in places.items()}
    try:
        yield
    finally:
        for name, place in places.items():
            place.set_value(before[name], borrow=True)


def _run(
    fits: DataFits,
    data: Sequence[Mapping[str, Array]],
    seeds: Sequence[int],
    cores: int,
    budget: float | None,
    shown: bool,
) -> Any:
    """Do the fits as units of work; their report."""
    function: Any = fits if cores == 1 else of_the_service
    units: list[work.WorkUnit[DataFit]] = [
        work.WorkUnit(_key(k), function, call) for k, call in enumerate(zip(data, seeds, strict=True))
    ]
    pool = None
    if cores > 1:
        pool = LocalProcesses(cores, FitService(fits), fork=fork_is_safe())
        pool.start()
    return work.run(units, pool, 1, budget, shown, what=f"sampling given {len(units)} data sets")


def _key(k: int) -> str:
    return f"data set {k}"


def _lost(report: Any, k: int, seed: int) -> DataFit | None:
    """What is said of a data set whose process ended; None where it was not tried."""
    why = report.lost.get(_key(k))
    return None if why is None else DataFit(row={"status": "failed", "reason": why, "seed": seed})


def _tree(done: Mapping[Any, DataFit], coordinates: tuple[Mapping[str, Any], Mapping[str, Any]]) -> xr.DataTree:
    """Arrange fits by data set."""
    import arviz_base

    coords, dims = coordinates
    sampled = {label: one for label, one in done.items() if one.row["status"] == "complete"}
    groups, dropped = {}, []
    for group in ("posterior", "stats"):
        values: dict[str, Array] = {}
        for name in list(next((getattr(one, group) for one in sampled.values()), {})):
            parts = [getattr(one, group).pop(name) for one in sampled.values()]
            if len({part.shape for part in parts}) == 1:
                values[name] = np.stack(parts)
            else:
                dropped.append(name)
        groups[f"/{group if group == 'posterior' else 'sample_stats'}"] = arviz_base.dict_to_dataset(
            values,
            coords={**coords, "dataset": list(sampled)},
            dims={name: list(dims.get(name, ())) for name in values},
            sample_dims=["dataset", "chain", "draw"],
            check_conventions=False,
        )
    groups["/fits"] = _rows({label: one.row for label, one in done.items()})
    tree = xr.DataTree.from_dict(groups)
    if dropped:
        tree.attrs["variables_dropped"] = ", ".join(dropped)
    return tree


def _rows(rows: Mapping[Any, Mapping[str, Any]]) -> xr.Dataset:
    """Rows by data set as a dataset; text that a row does not have is empty, a number NaN."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    columns = {}
    for name in names:
        is_text = any(isinstance(row.get(name), str) for row in rows.values())
        columns[name] = ("dataset", [row.get(name, "" if is_text else np.nan) for row in rows.values()])
    return xr.Dataset(columns, coords={"dataset": list(rows)})


def _close(attributes: Mapping[str, Any], done: Mapping[Any, DataFit], shown: bool) -> None:
    """Say in a line, or in a warning, how the fits have gone."""
    count, failed, doubtful = (int(attributes[name]) for name in ("datasets", "failed", "not_usable"))
    kinds = Counter(kind for one in done.values() for kind in one.row.get("problems", "").split() if kind)
    why = f": {few([f'{kind} ({n})' for kind, n in kinds.most_common()], 4)}" if doubtful and kinds else ""
    said = f"{count} of {attributes['datasets_asked']} data sets sampled, {failed} failed"
    tell(shown, f"{said}; of {doubtful} the draws should not be used{why}")
    reasons = [str(one.row["reason"]) for one in done.values() if "reason" in one.row]
    if reasons:
        warnings.warn(f"{said}: {reasons[0]} (fits.reason of the result has all)", SamplingWarning, stacklevel=3)
    if doubtful > _EXPECTED * max(count, 1):
        warnings.warn(
            f"of {doubtful} of {count} data sets the draws should not be used{why}; fits.verdict of the result says of "
            "which. Tune longer, draw longer, or pass a higher target_accept",
            SamplingWarning,
            stacklevel=3,
        )
