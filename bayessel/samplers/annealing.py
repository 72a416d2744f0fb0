r"""Evidences by annealing: particles led from a distribution that can be drawn from to one that cannot.

A path of unnormalised densities γ_t(x) = r(x) e^{t g(x)}, t from 0 to 1, begins at a normalised r. Each step from t to
t′ multiplies a particle's weight by e^{(t′ − t) g(x)}; where weights have become unequal, particles are drawn anew by
them; at each t all are moved by updates that leave γ_t as it is. The mean weight is an unbiased estimate of ∫ γ_1,
however badly the moves mix (Neal 2001, Statistics and Computing 11, 125; Del Moral, Doucet and Jasra 2006, JRSS B 68,
411).

Temperatures and step sizes are chosen by a pilot run and then kept: a run that chose its own would not be unbiased. A
path may begin at several places; each has a pilot run, and the runs go on from the best.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel import work
from bayessel._check import FloatArray, as_count, as_flag, as_generator, as_positive
from bayessel._types import Seed, SupportsSubmit
from bayessel.errors import SamplingWarning
from bayessel.fit import Evidence, Status, worst
from bayessel.work.executors import check_executor
from bayessel.work.jobs import check_jobs

#: a step of the pilot run keeps so much of the effective number of particles; fewer than this share are drawn anew
KEEP, RESAMPLE = 0.95, 0.5
#: acceptance that step sizes are chosen for, their first value, and what they may be
TARGET_ACCEPTANCE, FIRST_STEP, STEPS = 0.8, 0.3, (1e-4, 2.0)
#: temperatures of a pilot run that does not end
MOST_TEMPERATURES = 5000

#: a standard error beyond, in nats, is itself unsure
LARGEST_ERROR = 0.5

#: arrays whose first axis is the particle
type Particles = tuple[FloatArray, ...]


class AnnealingPath(Protocol):
    """A path from r to the target; `begin` is for `anneal` alone."""

    n_gradients: int

    def begin(self, rng: np.random.Generator, number: int) -> None:
        """Choose r for one of the pilot runs."""
        ...

    def first(self, rng: np.random.Generator, n: int) -> Particles:
        """Draw n particles from r, the normalised beginning."""
        ...

    def gains(self, particles: Particles) -> FloatArray:
        """g, by which log weights grow for each unit of t; minus infinity where the target has no density."""
        ...

    def move(self, rng: np.random.Generator, particles: Particles, step_size: float, t: float) -> float:
        """Update all particles in place, γ_t left as it is; returns the mean acceptance rate."""
        ...


@dataclass
class Schedule:
    """Temperatures, and for each but the first the step size with which particles are moved there."""

    temperatures: list[float] = field(default_factory=lambda: [0.0])
    step_sizes: list[float] = field(default_factory=list)
    acceptance_rates: list[float] = field(default_factory=list)

    def steps(self) -> Iterator[tuple[float, float, float]]:
        """(temperature before, temperature, step size) of each step."""
        return zip(self.temperatures[:-1], self.temperatures[1:], self.step_sizes, strict=True)


@dataclass(frozen=True, eq=False)
class AnnealedEvidence:
    """An evidence by annealing.

    Attributes
    ----------
    evidence : Evidence
        log p(t), in nats, every constant included, "sampled"; hyperparameters integrated out, unless they were given.
        Its error is from the spread of the runs; NaN for a single run.
    log_weights : (n_runs,) array
        Log of each run's unbiased estimate. Their mean is below the log evidence on average.
    effective_runs : float
        Effective number of runs, (Σw)²/Σw²: near 1 when one of them is all there is.
    log_downs : (n_runs,) array
        From runs back to the prior: each above the log evidence on average. Empty unless asked for.
    pilots : (n_pilots,) array
        Rough log estimates by the pilot runs, each from a reference of its own; the first is that of the `draws`, where
        some were given. One that is lower by far began at a worse explanation of the data and stayed there.
    temperatures : (m,) array
        From 0 to 1.
    step_sizes, acceptance_rates : (m − 1,) array
        Of the best pilot run.
    n_gradients : int
    status, notes
        The most serious remark, and all of them.
    fingerprint : str
        Name of the data.
    n_rows : int
    seconds : float
        Compiling not counted.
    """

    evidence: Evidence
    log_weights: FloatArray = field(repr=False)
    effective_runs: float
    log_downs: FloatArray = field(repr=False)
    pilots: FloatArray = field(repr=False)
    temperatures: FloatArray = field(repr=False)
    step_sizes: FloatArray = field(repr=False)
    acceptance_rates: FloatArray = field(repr=False)
    n_gradients: int
    status: Status
    notes: tuple[Status, ...]
    fingerprint: str
    n_rows: int
    seconds: float

    @property
    def log_evidence(self) -> float:
        """Value of the evidence in nats."""
        return self.evidence.value

    @property
    def standard_error(self) -> float:
        """Error of the evidence in nats."""
        return np.nan if self.evidence.error is None else self.evidence.error

    @property
    def upper(self) -> float:
        """Mean of the runs back: above the log evidence on average. NaN where there are none."""
        return float(self.log_downs.mean()) if len(self.log_downs) else np.nan

    @property
    def reliable(self) -> bool:
        """Whether the error is so small that it can be believed."""
        return bool(self.standard_error < LARGEST_ERROR)

    def in_units(self, log_factor: float, fingerprint: str) -> AnnealedEvidence:
        """The same in other units of the targets, whose density is larger by a factor; and the name of those data."""
        return replace(
            self,
            evidence=replace(self.evidence, value=self.evidence.value + log_factor),
            log_weights=self.log_weights + log_factor,
            log_downs=self.log_downs + log_factor,
            pilots=self.pilots + log_factor,
            fingerprint=fingerprint,
        )


def anneal(
    path: AnnealingPath,
    *,
    n_particles: int,
    n_runs: int,
    n_pilots: int,
    bracket: bool,
    ends: Particles | None,
    time_budget: float | None,
    random_state: Seed,
    progress: Callable[[int, int], None] | None,
    n_jobs: int | None,
    executor: SupportsSubmit | None,
    integrated: tuple[str, ...],
    fingerprint: str,
    n_rows: int,
) -> AnnealedEvidence:
    """The evidence at the end of a path: pilot runs, then independent runs from the best beginning, as units of work.

    Options as of `bayessel.samplers.network.annealing.anneal_network`; the last three are about the result.
    """
    n_particles, n_runs = as_count(n_particles, "n_particles", 2), as_count(n_runs, "n_runs")
    n_pilots = as_count(n_pilots, "n_pilots")
    as_flag(bracket, "bracket")
    limit = np.inf if time_budget is None else as_positive(time_budget, "time_budget")
    jobs, executor = check_jobs(n_jobs), check_executor(executor)
    pilot_rng, *seeds, ends_rng = as_generator(random_state).spawn(2 + n_runs)
    parts: list[Particles | None] = [None] * n_runs
    if ends is not None:
        if len(ends[0]) < 2 * n_runs:
            raise ValueError(f"{n_runs} runs back need {2 * n_runs} draws to begin with, got {len(ends[0])}: draw more")
        order = ends_rng.permutation(len(ends[0]))
        parts = [chosen(ends, part[:n_particles]) for part in np.array_split(order, n_runs)]
    begin = perf_counter()
    done = 0

    def tell(*_: Any) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, n_pilots + n_runs)

    pilot_units = [
        work.WorkUnit(f"pilot {k}", _pilot_unit, (path, k, n_particles, rng))
        for k, rng in enumerate(pilot_rng.spawn(n_pilots))
    ]
    tried = work.run(pilot_units, executor, jobs, None, False, tell)
    if tried.interrupted or not tried.values:
        raise KeyboardInterrupt if tried.interrupted else RuntimeError(f"no pilot run ended: {tried.lost}")
    pilots = [tried.values[unit.key] for unit in pilot_units if unit.key in tried.values]
    _, schedule, path = max(pilots, key=lambda one: one[0])
    units = [
        work.WorkUnit(f"run {k}", _run_unit, (path, schedule, n_particles, bracket, parts[k], rng))
        for k, rng in enumerate(seeds)
    ]
    left = limit - (perf_counter() - begin)
    report = work.run(
        units if left > 0.0 else units[:1], executor, jobs, left if 0.0 < left < np.inf else None, False, tell
    )
    runs = [report.values[unit.key] for unit in units if unit.key in report.values]
    if not runs:
        raise KeyboardInterrupt if report.interrupted else RuntimeError(f"no run ended: {report.lost}")
    notes = [Status.INTERRUPTED] if report.interrupted and report.remaining else []
    if report.lost:
        said = next(iter(report.lost.values()))
        warnings.warn(f"{len(report.lost)} of {n_runs} runs are missing: {said}", SamplingWarning, stacklevel=3)
    elif len(runs) < n_runs and not report.interrupted:
        notes.append(Status.TIME_BUDGET)
    logs = np.array([one[0] for one in runs])
    error = relative_error(logs)
    if not error < LARGEST_ERROR:
        notes.append(Status.UNSURE_EVIDENCE)
    return AnnealedEvidence(
        evidence=Evidence(log_mean(logs), "sampled", error, integrated=integrated),
        log_weights=logs,
        effective_runs=effective(logs),
        log_downs=np.array([one[1] for one in runs if one[1] is not None]),
        pilots=np.array([one[0] for one in pilots]),
        temperatures=np.array(schedule.temperatures),
        step_sizes=np.array(schedule.step_sizes),
        acceptance_rates=np.array(schedule.acceptance_rates),
        n_gradients=sum(one[2].n_gradients for one in pilots) + sum(one[2] for one in runs),
        status=worst(notes),
        notes=tuple(notes),
        fingerprint=fingerprint,
        n_rows=n_rows,
        seconds=perf_counter() - begin,
    )


def _pilot_unit(
    path: AnnealingPath, number: int, n_particles: int, rng: np.random.Generator
) -> tuple[float, Schedule, AnnealingPath]:
    """Evidence roughly, the schedule that led to it, and the path with the beginning that was chosen."""
    own = _own(path)
    own.begin(rng, number)
    return *pilot(own, n_particles, rng), own


def _run_unit(
    path: AnnealingPath,
    schedule: Schedule,
    n_particles: int,
    bracket: bool,
    ends: Particles | None,
    rng: np.random.Generator,
) -> tuple[float, float | None, int]:
    """Log weight of a run, of one back if wanted, from draws of the target or from where it ended, and gradients."""
    own = _own(path)
    found, particles = forwards(own, schedule, n_particles, rng)
    if not bracket:
        return found, None, own.n_gradients
    return found, backwards(own, schedule, particles if ends is None else ends, rng), own.n_gradients


def _own(path: AnnealingPath) -> AnnealingPath:
    """A path that nobody else works on, and that has counted nothing."""
    own = copy.deepcopy(path)
    own.n_gradients = 0
    return own


def pilot(path: AnnealingPath, n: int, rng: np.random.Generator) -> tuple[float, Schedule]:
    """Temperatures chosen by how equal they leave the weights of n particles, step sizes by acceptance.

    Returns also a rough estimate of the log evidence, by which one path may be preferred to another.
    """
    schedule, step, total = Schedule(), FIRST_STEP, 0.0
    particles = path.first(rng, n)
    while schedule.temperatures[-1] < 1.0:
        before, logs = schedule.temperatures[-1], path.gains(particles)
        now = next_temperature(logs, before) if len(schedule.step_sizes) < MOST_TEMPERATURES else 1.0
        weights = (now - before) * logs
        total += log_mean(weights)
        particles = chosen(particles, draw_anew(weights, rng))
        rate = path.move(rng, particles, step, now)
        schedule.temperatures.append(now)
        schedule.step_sizes.append(step)
        schedule.acceptance_rates.append(rate)
        step = adapted(step, rate, 1.0)
    return total, schedule


def forwards(path: AnnealingPath, schedule: Schedule, n: int, rng: np.random.Generator) -> tuple[float, Particles]:
    """One run: log of its unbiased estimate, and n particles that stand for the target."""
    particles = path.first(rng, n)
    total, weights = 0.0, np.zeros(n)
    for before, now, step in schedule.steps():
        weights += (now - before) * path.gains(particles)
        if effective(weights) < RESAMPLE * n:
            total += log_mean(weights)
            if total == -np.inf:
                return total, particles
            particles, weights = chosen(particles, draw_anew(weights, rng)), np.zeros(n)
        path.move(rng, particles, step, now)
    return total + log_mean(weights), chosen(particles, draw_anew(weights, rng))


def backwards(path: AnnealingPath, schedule: Schedule, particles: Particles, rng: np.random.Generator) -> float:
    """From particles of the target to r: minus log of an estimate of one over the evidence.

    The same path in the opposite direction, so each move comes before the step of its temperature. Unbiased for draws
    of the target itself; for those that a run forwards has led there it misses the same parts as that one did.
    """
    particles = tuple(part.copy() for part in particles)
    n = len(particles[0])
    total, weights = 0.0, np.zeros(n)
    for before, now, step in reversed(list(schedule.steps())):
        path.move(rng, particles, step, now)
        weights -= (now - before) * path.gains(particles)
        if effective(weights) < RESAMPLE * n:
            total += log_mean(weights)
            particles, weights = chosen(particles, draw_anew(weights, rng)), np.zeros(n)
    return -(total + log_mean(weights))


def adapted(step: float, rate: float, gain: float) -> float:
    """A step size after moves with an acceptance rate."""
    return float(np.clip(step * np.exp(gain * (rate - TARGET_ACCEPTANCE)), *STEPS))


def effective(log_weights: FloatArray) -> float:
    """Effective number of particles, (Σw)²/Σw²; none where all weights are nil."""
    top = log_weights.max()
    if not np.isfinite(top):
        return 0.0
    w = np.exp(log_weights - top)
    return float(w.sum() ** 2 / np.sum(w * w))


def next_temperature(logs: FloatArray, temperature: float) -> float:
    """The temperature at which equal weights have become so unequal that `KEEP` of the particles are left, 1 at most.

    Of particles without a density nothing is left at any temperature: they are not counted.
    """
    alive = logs[np.isfinite(logs)]
    if not len(alive):
        raise ValueError("no draw of the prior gives the targets a likelihood; standardise inputs and targets")
    keep = KEEP * len(alive)
    if effective((1.0 - temperature) * alive) >= keep:
        return 1.0
    low, high = -100.0, 0.0  # log10 of the increment
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(10.0**middle * alive) >= keep else (low, middle)
    return min(max(temperature + 10.0**low, float(np.nextafter(temperature, 2.0))), 1.0)


def draw_anew(log_weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Systematic resampling: indices of particles, each as often as its weight says, give or take one."""
    w = np.exp(log_weights - log_weights.max())
    edges = np.cumsum(w) / w.sum()
    places = (np.arange(len(w)) + rng.random()) / len(w)
    # on the right of an edge: a particle of weight nil is never taken
    found = np.searchsorted(edges, places, side="right")
    return np.minimum(found, np.flatnonzero(w)[-1]).astype(np.int64)


def chosen(particles: Particles, indices: npt.NDArray[np.int64]) -> Particles:
    """Copies of some particles."""
    return tuple(part[indices] for part in particles)


def log_mean(log_weights: FloatArray) -> float:
    """Logarithm of the mean of exp(log weights)."""
    return float(logsumexp(log_weights) - np.log(len(log_weights)))


def relative_error(logs: FloatArray) -> float:
    """Standard error of the mean of exp(logs), relative to it: that of its logarithm while it is small."""
    if len(logs) < 2 or not np.isfinite(logs.max()):
        return float("nan")
    w = np.exp(logs - logs.max())
    return float(w.std(ddof=1) / (w.mean() * np.sqrt(len(w))))
