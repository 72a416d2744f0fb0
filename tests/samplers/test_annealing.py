"""Annealing along any path: a Gaussian whose evidence is known, resampling, temperatures, and moves that are wrong.

Guards `bayessel.samplers.annealing`.
"""

import numpy as np
import pytest

from bayessel.samplers.annealing import (
    backwards,
    draw_anew,
    effective,
    forwards,
    log_mean,
    next_temperature,
    pilot,
    relative_error,
)

SCALE = 0.5


class Gaussian:
    """x ~ N(0, 1), y_i | x ~ N(x, SCALE²): a random walk at each temperature, the last of two arrays moved alone."""

    def __init__(self, y, drift=0.0):
        self.y, self.drift = y, drift

    def first(self, rng, n):
        return (rng.standard_normal((n, 1)),)

    def gains(self, particles):
        r = (self.y - particles[0]) / SCALE
        return -0.5 * (r * r).sum(axis=1) - len(self.y) * np.log(SCALE * np.sqrt(2.0 * np.pi))

    def density(self, x, t):
        return -0.5 * x[:, 0] ** 2 + t * self.gains((x,))

    def move(self, rng, particles, step, t):
        (x,) = particles
        rates = 0.0
        for _ in range(2):
            new = x + step * rng.standard_normal(x.shape) + self.drift
            ratio = self.density(new, t) - self.density(x, t)
            taken = -rng.standard_exponential(len(x)) < ratio
            x[taken] = new[taken]
            rates += np.exp(np.minimum(ratio, 0.0)).mean() / 2
        return rates

    @property
    def truth(self):
        n = len(self.y)
        covariance = SCALE**2 * np.eye(n) + np.ones((n, n))
        return -0.5 * (self.y @ np.linalg.solve(covariance, self.y) + np.linalg.slogdet(2 * np.pi * covariance)[1])


Y = np.array([1.4, 1.9])


def z_of_runs(path, rng, runs=200, n=12):
    _, schedule = pilot(path, 100, rng)
    logs = np.array([forwards(path, schedule, n, rng)[0] for _ in range(runs)])
    w = np.exp(logs - Gaussian(Y).truth)
    return (w.mean() - 1.0) / (w.std(ddof=1) / np.sqrt(runs)), logs


def test_runs_are_unbiased_and_their_logarithms_too_low(rng):
    z, logs = z_of_runs(Gaussian(Y), rng)
    assert abs(z) < 4.0
    assert logs.mean() < Gaussian(Y).truth


def test_a_move_that_is_not_invariant_would_be_seen(rng):
    assert abs(z_of_runs(Gaussian(Y, drift=0.2), rng)[0]) > 4.0


def test_a_run_ends_where_the_posterior_is(rng):
    path = Gaussian(Y)
    roughly, schedule = pilot(path, 400, rng)
    assert roughly == pytest.approx(path.truth, abs=0.3)
    assert schedule.temperatures[0] == 0.0 and schedule.temperatures[-1] == 1.0
    assert (np.diff(schedule.temperatures) > 0.0).all()
    assert len(schedule.step_sizes) == len(schedule.acceptance_rates) == len(schedule.temperatures) - 1
    found = np.array(
        [[part.mean(), part.var()] for part in (forwards(path, schedule, 200, rng)[1][0] for _ in range(50))]
    )
    precision = 1.0 + len(Y) / SCALE**2
    expected = np.array([Y.sum() / SCALE**2 / precision, 1.0 / precision])
    # a sample's variance is short by that of its mean, which resampled particles share
    z = (found.mean(axis=0) - expected) / (found.std(axis=0, ddof=1) / np.sqrt(50))
    assert abs(z[0]) < 4.0
    assert 0.9 < found[:, 1].mean() / expected[1] < 1.05


def test_runs_back_are_unbiased_for_one_over_the_evidence(rng):
    path, precision = Gaussian(Y), 1.0 + len(Y) / SCALE**2
    _, schedule = pilot(path, 100, rng)
    exact = [(Y.sum() / SCALE**2 / precision + rng.standard_normal((12, 1)) / np.sqrt(precision),) for _ in range(200)]
    kept = exact[0][0].copy()
    logs = np.array([backwards(path, schedule, particles, rng) for particles in exact])
    assert (exact[0][0] == kept).all()
    w = np.exp(path.truth - logs)
    assert abs(w.mean() - 1.0) < 4.0 * w.std(ddof=1) / np.sqrt(200)
    assert logs.mean() > path.truth


def test_resampling_takes_each_as_often_as_its_weight_says(rng):
    logs = np.array([-2.0, 0.5, -np.inf, 1.0, 0.0])
    w = np.exp(logs) / np.exp(logs).sum()
    counts = np.array([np.bincount(draw_anew(logs, rng), minlength=5) for _ in range(4000)])
    assert (counts.sum(axis=1) == 5).all() and (np.abs(counts - 5 * w) < 1.0).all() and not counts[:, 2].any()
    error = counts.std(axis=0, ddof=1) / np.sqrt(len(counts)) + 1e-12
    assert (np.abs(counts.mean(axis=0) - 5 * w) < 4.0 * error).all()


def test_temperatures_keep_the_share_that_was_asked_for(rng):
    logs = rng.normal(scale=30.0, size=200)
    t = next_temperature(logs, 0.2)
    assert effective((t - 0.2) * logs) == pytest.approx(0.95 * 200, rel=1e-6)
    assert next_temperature(1e-3 * logs, 0.2) == 1.0
    dead = np.concatenate([logs, np.full(50, -np.inf)])
    assert next_temperature(dead, 0.2) == pytest.approx(t)
    assert next_temperature(1e200 * logs, 0.2) > 0.2
    with pytest.raises(ValueError, match="no draw of the prior gives the targets a likelihood"):
        next_temperature(np.full(3, -np.inf), 0.0)


def test_runs_in_which_nothing_is_left_say_so(rng):
    class Nowhere(Gaussian):
        def gains(self, particles):
            return np.full(len(particles[0]), -np.inf)

    _, schedule = pilot(Gaussian(Y), 50, rng)
    assert forwards(Nowhere(Y), schedule, 5, rng)[0] == -np.inf


def test_errors_of_logarithms(rng):
    logs = 0.1 * rng.standard_normal(400) - 2000.0
    assert relative_error(logs) == pytest.approx(np.std(np.exp(logs + 2000.0), ddof=1) / 20.0, rel=0.02)
    assert log_mean(logs) == pytest.approx(-2000.0, abs=0.05)
    assert np.isnan(relative_error(logs[:1])) and np.isnan(relative_error(np.full(3, -np.inf)))
