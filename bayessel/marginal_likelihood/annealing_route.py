"""Annealing of a model from its prior to its posterior, and from draws of the posterior back: the truth lies between.

Particles are led along prior × likelihood^t (`samplers.annealing`). On average the way up comes to less than the log of
the evidence; the way down, from draws of the posterior, to more.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from bayessel._check import FloatArray
from bayessel.marginal_likelihood.density_rows import log_densities, move_rows
from bayessel.marginal_likelihood.draws_doubt import LARGEST_MISSED, JudgedDraws
from bayessel.marginal_likelihood.modes import DensityMode, unvisited
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.target_density import TargetDensity
from bayessel.samplers import annealing
from bayessel.samplers.annealing import Particles

#: independent runs up, and runs down
RUNS = 8
#: updates of a particle at each temperature
UPDATES = 2
#: leapfrog steps of an update are drawn from 1 to this over the step size, and to `MOST_LEAPS` at most
TURN, MOST_LEAPS = 2.0, 12
#: standard error of a number that is relied on, in nats, and effective share of the runs
LARGEST_ERROR, LEAST_EQUAL = 0.3, 0.6
#: draws of the posterior that a run down begins with, at least
LEAST_DOWN = 50
#: particles per coordinate from which on their covariance is one
_PER_COORDINATE = 5
NAME = "annealing"
DOWN = f"{NAME}, down"


class PriorPath:
    """The path from prior to posterior, with the scales of the moves as the pilot run found them."""

    def __init__(self, target: TargetDensity) -> None:
        self.target, self.n_gradients = target, 0
        self.factors: dict[float, FloatArray] = {}

    def begin(self, rng: np.random.Generator, number: int) -> None:
        """The prior is the beginning of every run."""

    def first(self, rng: np.random.Generator, n: int) -> Particles:
        """Draws of the prior, with both log densities."""
        rows = self.target.prior_draws(rng, n)
        before = log_densities(self.target.prior, rows)[0]
        return rows, np.stack([before, self._whole(rows)], axis=1)

    def _whole(self, rows: FloatArray) -> FloatArray:
        self.n_gradients += len(rows)
        return self.target.logs(rows)

    def gains(self, particles: Particles) -> FloatArray:
        """Log likelihood."""
        logs = particles[1]
        with np.errstate(invalid="ignore"):
            found = logs[:, 1] - logs[:, 0]
        return np.where(np.isnan(found), -np.inf, found)

    def move(self, rng: np.random.Generator, particles: Particles, step_size: float, t: float) -> float:
        """Hamiltonian updates along the covariance that the pilot run had at this temperature."""
        rows, logs = particles
        if t not in self.factors:
            self.factors[t] = _factor(rows)
        leaps = int(np.clip(round(TURN / step_size), 1, MOST_LEAPS))
        self.n_gradients += int(len(rows) * UPDATES * 0.5 * (leaps + 1))
        return move_rows(*self.target.prior_and_whole, t, rows, logs, self.factors[t], step_size, leaps, UPDATES, rng)


def _factor(rows: FloatArray) -> FloatArray:
    """Cholesky factor of the covariance of particles; of few, of their variances."""
    n, d = rows.shape
    spread = rows.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1e-10)
    if n < _PER_COORDINATE * d:
        return np.diag(spread)
    z = (rows - rows.mean(axis=0)) / spread
    correlation = z.T @ z / n
    try:
        return spread[:, None] * np.linalg.cholesky(0.95 * correlation + 0.05 * np.eye(d))
    except np.linalg.LinAlgError:
        return np.diag(spread)


def annealing_routes(
    target: TargetDensity,
    judged: JudgedDraws | None,
    modes: list[DensityMode],
    n_particles: int,
    rng: np.random.Generator,
) -> tuple[Route, Route]:
    """Up from the prior, and down from draws of the posterior; particles should arrive at all modes."""
    up, down = NAME, DOWN
    if target.no_prior:
        return Route.missing(up, target.no_prior), Route.missing(down, target.no_prior)
    path = PriorPath(target)
    try:
        _, schedule = annealing.pilot(path, n_particles, rng)
    except ValueError as reason:
        return Route.missing(up, str(reason).partition(";")[0]), Route.missing(down, "there is no way up")
    temperatures, logs, arrived = len(schedule.temperatures), list[float](), list[FloatArray]()
    for _ in range(RUNS):
        value, (rows, _) = annealing.forwards(path, schedule, n_particles, rng)
        logs.append(value)
        arrived.append(rows)
    missed = unvisited(modes, np.concatenate(arrived)) if modes else 0.0
    doubt = f"no particle lies near modes with {100.0 * missed:.0f} % of the mass" if missed > LARGEST_MISSED else ""
    first = route_of_runs(up, np.array(logs), path.n_gradients, temperatures, 1.0, doubt)
    if judged is None or len(judged.flat) < RUNS * LEAST_DOWN:
        return first, Route.missing(down, "there are too few draws to begin with")
    path.n_gradients, back = 0, []
    for own in np.array_split(rng.permutation(judged.flat), RUNS):
        rows = own[:n_particles].copy()
        both = np.stack([log_densities(target.prior, rows)[0], target.logs(rows)], axis=1)
        back.append(annealing.backwards(path, schedule, (rows, both), rng))
    return first, route_of_runs(down, np.array(back), path.n_gradients, temperatures, -1.0, judged.doubt)


def route_of_runs(
    name: str,
    logs: FloatArray,
    calls: int,
    temperatures: int,
    sign: float,
    doubt: str,
    widest: float = LARGEST_ERROR,
) -> Route:
    """The mean of runs, of their inverses on the way down (`sign` −1), with an error for so few runs."""
    finite = logs[np.isfinite(logs)]
    if len(logs) == len(finite) == 1:
        return Route(name, float(logs[0]), float("inf"), False, "one run alone has no error", calls)
    if len(finite) < max(2, len(logs) // 2):
        return Route.missing(name, "most runs have lost all particles", calls)
    value = sign * annealing.log_mean(sign * finite)
    # two errors shall cover what they would cover of a normal distribution, though few runs tell the spread
    widening = float(stats.t.ppf(0.977, len(finite) - 1) / 2.0)
    error = annealing.relative_error(sign * finite) * widening
    if sign < 0.0:  # a bound, whose inverse weights have a heavy tail: one run is as good as their mean
        error = float(finite.std(ddof=1))
    equal = sign < 0.0 or annealing.effective(finite) > LEAST_EQUAL * len(logs)
    if not doubt and not (equal and 0.0 < error < widest):
        doubt = "too much for an error"
    said = f"{len(logs)} runs, {temperatures} temperatures, runs spread by {finite.std(ddof=1):.2f} nats"
    return Route(name, value, error, not doubt, f"{said}: {doubt}" if doubt else said, calls)
