r"""Evidences by annealing: particles led from a distribution that can be drawn from to one that cannot.

A path of unnormalised densities γ_t(x) = r(x) e^{t g(x)}, t from 0 to 1, begins at a normalised r. Each step from t to
t′ multiplies a particle's weight by e^{(t′ − t) g(x)}; where weights have become unequal, particles are drawn anew by
them; at each t all are moved by updates that leave γ_t as it is. The mean weight is an unbiased estimate of ∫ γ_1,
however badly the moves mix (Neal 2001, Statistics and Computing 11, 125; Del Moral, Doucet and Jasra 2006, JRSS B 68,
411).

Temperatures and step sizes are chosen by a pilot run and then kept: a run that chose its own would not be unbiased.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.fit import Evidence, Status

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
    """A path from r to the target."""

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
    upper : float
        From runs back to the prior: above the log evidence on average. NaN unless asked for.
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
    upper: float
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
    def reliable(self) -> bool:
        """Whether the error is so small that it can be believed."""
        return bool(self.standard_error < LARGEST_ERROR)

    def in_units(self, log_factor: float, fingerprint: str) -> AnnealedEvidence:
        """The same in other units of the targets, whose density is larger by a factor; and the name of those data."""
        return replace(
            self,
            evidence=replace(self.evidence, value=self.evidence.value + log_factor),
            log_weights=self.log_weights + log_factor,
            upper=self.upper + log_factor,
            pilots=self.pilots + log_factor,
            fingerprint=fingerprint,
        )


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
