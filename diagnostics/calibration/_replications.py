"""Replications of a test of a sampler: units of work on one compiled model, each with a seed of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bayessel import work
from bayessel._check import as_flag, chosen_seed
from bayessel._types import Seed, SupportsSubmit
from bayessel.errors import SamplingWarning
from bayessel.work.executors import check_executor
from bayessel.work.jobs import check_jobs
from bayessel.work.seeds import seed_sequence

if TYPE_CHECKING:
    from bayessel.diagnostics.calibration._compiled_setup import CompiledSetup

#: kind and number of a replication; seeds are derived from them
Name = tuple[str, int] | tuple[str]
#: function of the setup, the seed and further arguments; and these
Call = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Replications[T]:
    """What the models were compiled to, results by name in the order of the calls, and the time."""

    made: T
    found: dict[Name, Any]
    seconds: float


def replicated[T](
    setup: CompiledSetup[T],
    calls: Mapping[Name, Call],
    enough: Callable[[Mapping[Name, Any]], bool],
    what: str,
    how: tuple[float, Seed, bool, int | None, SupportsSubmit | None],
) -> Replications[T]:
    """Do calls as units of work; the models' data, exchanged on the way, are put back.

    After Ctrl-C, or where processes died, what was finished is returned if that is `enough`. `how` are the last
    arguments of `sbc`: level, random_seed, progressbar, n_jobs, executor.
    """
    level, random_seed, progressbar, n_jobs, executor = how
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    seed, shown = chosen_seed(random_seed, "random_seed"), as_flag(progressbar, "progressbar")
    jobs, executor = check_jobs(n_jobs), check_executor(executor)
    units = {
        name: work.WorkUnit(" ".join(map(str, name)), function, (setup, seed_sequence(seed, *name), *arguments))
        for name, (function, arguments) in calls.items()
    }
    with setup.held() as made:
        report = work.run(units.values(), executor, jobs, None, shown, what=what)
    found = {name: report.values[unit.key] for name, unit in units.items() if unit.key in report.values}
    if report.interrupted and not enough(found):
        raise KeyboardInterrupt
    if report.lost:
        said = f"{len(report.lost)} of {len(units)} parts are missing: {next(iter(report.lost.values()))}"
        if not enough(found):
            raise RuntimeError(f"too little is left for a test ({said})")
        warnings.warn(said, SamplingWarning, stacklevel=3)
    return Replications(made, found, report.seconds)
