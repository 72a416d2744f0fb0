"""Replications of a test of a sampler: units of work on one compiled model, each with a seed of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayessel import work
from bayessel._check import as_flag, chosen_seed
from bayessel._types import Seed, SupportsSubmit
from bayessel.errors import SamplingWarning
from bayessel.work.executors import check_executor
from bayessel.work.jobs import check_jobs
from bayessel.work.seeds import seed_sequence

if TYPE_CHECKING:
    from bayessel.diagnostics.calibration._joint import MakeSteps

#: kind and number of a replication; seeds are derived from them
Name = tuple[str, int] | tuple[str]
#: function of the setup, the seed and further arguments; and these
Call = tuple[Callable[..., Any], tuple[Any, ...]]


class Replications(NamedTuple):
    """Names of the quantities that a joint model has, results by name in the order of the calls, and the time."""

    quantities: tuple[str, ...]
    found: dict[Name, Any]
    seconds: float


def replicated(
    described: tuple[Any, MakeSteps, Sequence[str], Mapping[str, object] | None],
    calls: Mapping[Name, Call],
    enough: Callable[[Mapping[Name, Any]], bool],
    what: str,
    how: tuple[float, Seed, bool, int | None, SupportsSubmit | None],
) -> Replications:
    """Do calls as units of work; the model's data, exchanged on the way, are put back.

    After Ctrl-C, or where processes died, what was finished is returned if that is `enough`. `described` are the
    arguments of `JointSetup`, `how` the last of `sbc`: level, random_seed, progressbar, n_jobs, executor.
    """
    from bayessel.diagnostics.calibration._joint import JointSetup

    level, random_seed, progressbar, n_jobs, executor = how
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    seed, shown = chosen_seed(random_seed, "random_seed"), as_flag(progressbar, "progressbar")
    jobs, executor = check_jobs(n_jobs), check_executor(executor)
    setup = JointSetup(*described)
    units = {
        name: work.WorkUnit(" ".join(map(str, name)), function, (setup, seed_sequence(seed, *name), *arguments))
        for name, (function, arguments) in calls.items()
    }
    try:
        with setup.made(np.random.default_rng(0)) as (joint, _):
            before = joint.get_data()
        try:
            report = work.run(units.values(), executor, jobs, None, shown, what=what)
        finally:
            joint.set_data(before)
    finally:
        setup.forget()
    found = {name: report.values[unit.key] for name, unit in units.items() if unit.key in report.values}
    if report.interrupted and not enough(found):
        raise KeyboardInterrupt
    if report.lost:
        said = f"{len(report.lost)} of {len(units)} parts are missing: {next(iter(report.lost.values()))}"
        if not enough(found):
            raise RuntimeError(f"too little is left for a test ({said})")
        warnings.warn(said, SamplingWarning, stacklevel=3)
    return Replications(tuple(joint.names), found, report.seconds)
