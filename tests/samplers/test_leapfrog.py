"""The integrator: exact motion, order, reversibility, volume, energy, and that nothing handed in is changed.

Guards `bayessel.samplers.leapfrog`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayessel.samplers.leapfrog import Phase, energy, leapfrog, trajectory
from tests.problems import targets

TARGETS = [targets.skewed(3), targets.correlated(0.9), targets.funnel(), targets.linear_gaussian()]


def phase_at(target, rng, writeable=False):
    position, momentum = target.draw(rng), rng.standard_normal(target.size)
    logp, gradient = target.log_density(position)
    for array in (position, momentum, gradient):
        array.flags.writeable = writeable
    return Phase(position, momentum, logp, gradient)


def frozen(log_density):
    """The same density, handing out read-only gradients and refusing to see its argument change."""

    def wrapped(q):
        q.flags.writeable = False
        logp, gradient = log_density(q)
        gradient.flags.writeable = False
        return logp, gradient

    return wrapped


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_gradients_of_the_targets(target, rng):
    q = target.draw(rng)
    numeric = [(target.log_density(q + e)[0] - target.log_density(q - e)[0]) / 2e-6 for e in 1e-6 * np.eye(target.size)]
    assert_allclose(target.log_density(q)[1], numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_expectations_of_the_targets(target, rng):
    from tests.oracles.monte_carlo import assert_means

    draws = np.array([target.draw(rng) for _ in range(4000)])
    assert_means(target.features(draws), target.expected)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_turning_round_leads_back(target, rng):
    step = 0.1 * target.length * rng.uniform(0.5, 2.0, size=target.size)
    start = phase_at(target, rng)
    f = frozen(target.log_density)
    there, _ = trajectory(start, f, step, 20)
    back, _ = trajectory(there[-1]._replace(momentum=-there[-1].momentum), f, step, 20)
    assert len(there) == len(back) == 20
    assert_allclose(back[-1].position, start.position, rtol=1e-9, atol=1e-9)
    assert_allclose(-back[-1].momentum, start.momentum, rtol=1e-8, atol=1e-8)
    # a negative step undoes a positive one as well
    again, _ = trajectory(there[-1], f, -step, 20)
    assert_allclose(again[-1].position, start.position, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_volume_is_kept(target, rng):
    start = phase_at(target, rng, writeable=True)
    step = 0.2 * target.length * rng.uniform(0.5, 2.0, size=target.size)
    n = target.size

    def moved(x):
        phase = Phase(x[:n], x[n:], *target.log_density(x[:n]))
        end = trajectory(phase, target.log_density, step, 3)[0][-1]
        return np.concatenate([end.position, end.momentum])

    x = np.concatenate([start.position, start.momentum])
    jacobian = np.array([(moved(x + e) - moved(x - e)) / 2e-6 for e in 1e-6 * np.eye(2 * n)])
    assert_allclose(np.linalg.det(jacobian), 1.0, rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_energy_error_falls_with_the_square_of_the_step(target, rng):
    start = phase_at(target, rng)
    errors = []
    for n_steps in (64, 128, 256):
        step = np.full(target.size, 2.0 * target.length / n_steps)
        states, energies = trajectory(start, target.log_density, step, n_steps)
        assert_allclose(energies[-1], energy(states[-1]))
        errors.append(abs(energies[-1] - energy(start)))
    assert errors[0] < 0.1
    assert_allclose(np.array(errors[:-1]) / errors[1:], 4.0, rtol=0.1)


def test_a_harmonic_oscillator_turns_in_phase_space():
    # closed form of the leapfrog map for log p = −q²/2: a rotation by 2 arcsin(ε/2), squeezed by √(1 − ε²/4)
    step, n = 0.3, 17
    f = targets.gaussian([0.0], [[1.0]]).log_density
    q = np.array([1.2])
    states, _ = trajectory(Phase(q, np.array([-0.4]), *f(q)), f, np.array([step]), n)
    angle, squeeze = 2.0 * np.arcsin(step / 2.0), np.sqrt(1.0 - step**2 / 4.0)
    expected = 1.2 * np.cos(n * angle) - 0.4 / squeeze * np.sin(n * angle)
    assert_allclose(states[-1].position, [expected], rtol=1e-12)


def test_a_mass_is_a_change_of_units(rng):
    target = targets.correlated(0.5)
    scale = np.array([3.0, 0.2])
    start = phase_at(target, rng)

    def stretched(z):
        logp, gradient = target.log_density(z * scale)
        return logp, gradient * scale

    z = start.position / scale
    plain = leapfrog(Phase(z, start.momentum, *stretched(z)), stretched, np.full(2, 0.1))
    massive = leapfrog(start, target.log_density, 0.1 * scale)
    assert_allclose(massive.position, plain.position * scale, rtol=1e-12)
    assert_allclose(massive.momentum, plain.momentum, rtol=1e-12)


def test_what_comes_in_stays_as_it_is(rng):
    target = targets.skewed(3)
    start = phase_at(target, rng)
    before = [np.copy(part) for part in start]
    step = np.full(3, 0.1)
    step.flags.writeable = False
    end = leapfrog(start, frozen(target.log_density), step)
    for old, new in zip(before, start, strict=True):
        assert_allclose(old, new, rtol=0)
    assert not any(np.shares_memory(a, b) for a in (end.position, end.momentum) for b in start if np.ndim(b))
    assert isinstance(end.logp, float)


def test_a_trajectory_ends_before_the_first_state_that_is_not_finite():
    target = targets.half_normal()
    q = np.array([0.35])
    states, energies = trajectory(
        Phase(q, np.array([-1.0]), *target.log_density(q)), target.log_density, np.array([0.1]), 10
    )
    assert len(states) == len(energies) == 3
    assert all(np.isfinite(h) for h in energies)
    assert (
        energy(Phase(q, q, -np.inf, q)) == energy(Phase(q, q, 0.0, q)._replace(momentum=np.array([np.nan]))) == np.inf
    )
