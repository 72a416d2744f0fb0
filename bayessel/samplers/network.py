"""A network's weights and hyperparameters moved in compiled code: Gibbs for precisions, trajectories for weights.

One update:

1. all hyperparameters from their exact conditionals;
2. L leapfrog steps of the weights, with a step size for each group from the present precisions, and acceptance between
   windows at both ends (Neal 1994); on rejection the momentum turns round;
3. φ ← aφ + √(1 − a²) ξ.

The momentum is in units of the step sizes, so it is standard normal whatever the precisions are, and may be kept.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit
from bayessel.mlp.energy import STUDENT, backward, forward, likelihood
from bayessel.samplers.network_gibbs import noise, precisions

OPTIONS = {"error_model": "numpy"}
#: an energy that rises by more is no discretisation error
DIVERGENCE = 1000.0


class Problem(NamedTuple):
    """What is fixed: likelihood, inputs (D, n), targets (K, n), hyperpriors, precision of biases, Σ x² of inputs."""

    kind: int
    X: FloatArray
    T: FloatArray
    prior: FloatArray
    bias_precision: float
    squares: FloatArray


class Settings(NamedTuple):
    """How to move: ε, its relative jitter, L, W, a, and whether hyperparameters are drawn."""

    step_size: float
    jitter: float
    n_leapfrog: int
    window: int
    persistence: float
    draw_precisions: bool


class Work(NamedTuple):
    """Space that is written over: hidden values, outputs, one row, prior precisions, step sizes, noise precisions."""

    Z: FloatArray
    f: FloatArray
    below: FloatArray
    tau: FloatArray
    size: FloatArray
    beta: FloatArray


def workspace(D: int, H: int, K: int, n: int) -> Work:
    """Space for a network and n rows."""
    P = H * (1 + D + K) + K + D * K
    return Work(np.empty((H, n)), np.empty((K, n)), np.empty(n), np.empty(P), np.empty(P), np.empty(K))


@njit(**OPTIONS)
def spread_out(s: FloatArray, bias_precision: float, D: int, H: int, K: int, tau: FloatArray) -> None:
    """The prior precision of each packed weight, from the logarithms s."""
    at_b = H + D * H
    at_v = at_b + K
    at_w = at_v + H * K
    tau[:H] = math.exp(s[K])
    for i in range(D):
        tau[H + i * H : H + (i + 1) * H] = math.exp(s[K + 2 + i])
        tau[at_w + i * K : at_w + (i + 1) * K] = math.exp(s[K + 3 + D + i])
    tau[at_b:at_v] = bias_precision
    tau[at_v:at_w] = math.exp(s[K + 1])


@njit(**OPTIONS)
def scales(problem: Problem, s: FloatArray, work: Work) -> None:
    """Precisions and a step for each weight: (prior precision + a guess of the curvature)^{−1/2} (Neal 1996, § 3.5).

    Noise of precision β has curvature β by each output, log losses at most ¼. The curvature by weights into a hidden
    unit is that times v², guessed to be 1/τ_v: guesses may depend on hyperparameters alone, or trajectories could not
    be walked back.
    """
    D, n = problem.X.shape
    H, K = work.Z.shape[0], work.f.shape[0]
    at_b = H + D * H
    at_v = at_b + K
    at_w = at_v + H * K
    spread_out(s, problem.bias_precision, D, H, K, work.tau)
    size, total = work.size, 0.0
    for k in range(K):
        work.beta[k] = math.exp(s[k]) if problem.kind <= STUDENT else 1.0
        curvature = work.beta[k] if problem.kind <= STUDENT else 0.25
        if problem.kind == STUDENT:
            nu = math.exp(s[len(s) - 1])
            curvature *= (nu + 1.0) / (nu + 3.0)
        total += curvature
        size[at_b + k] = curvature * n
        for h in range(H):
            size[at_v + h * K + k] = curvature * n
        for i in range(D):
            size[at_w + i * K + k] = curvature * problem.squares[i]
    hidden = total * math.exp(-s[K + 1])
    size[:H] = hidden * n
    for i in range(D):
        size[H + i * H : H + (i + 1) * H] = hidden * problem.squares[i]
    for j in range(len(size)):
        size[j] = 1.0 / math.sqrt(work.tau[j] + size[j])


@njit(**OPTIONS)
def density_here(problem: Problem, q: FloatArray, s: FloatArray, work: Work, g: FloatArray) -> float:
    """Log p(T, q | s) up to constants in q, and its gradient g, from the outputs at q; these are written over."""
    value = likelihood(problem.kind, work.f, problem.T, work.beta, math.exp(s[len(s) - 1]))
    backward(q, problem.X, work.Z, work.f, work.below, g)
    tau = work.tau
    for j in range(len(q)):
        value -= 0.5 * tau[j] * q[j] * q[j]
        g[j] -= tau[j] * q[j]
    return value


@njit(**OPTIONS)
def leap(
    problem: Problem, q: FloatArray, p: FloatArray, g: FloatArray, s: FloatArray, work: Work, step: float
) -> float:
    """One leapfrog step of (q, φ), in place, with the gradient g; returns −H."""
    size, kinetic = work.size, 0.0
    for j in range(len(q)):
        p[j] += 0.5 * step * size[j] * g[j]
        q[j] += step * size[j] * p[j]
    forward(q, problem.X, work.Z, work.f)
    value = density_here(problem, q, s, work, g)
    for j in range(len(q)):
        p[j] += 0.5 * step * size[j] * g[j]
        kinetic += p[j] * p[j]
    return value - 0.5 * kinetic


@njit(**OPTIONS)
def _include(
    rng: np.random.Generator,
    weight: float,
    seen: float,
    q: FloatArray,
    p: FloatArray,
    sign: float,
    chosen_q: FloatArray,
    chosen_p: FloatArray,
) -> float:
    """Let a state take part in a window: log of the window's weight with it, and perhaps it is the one taken."""
    if seen == -math.inf:
        both = weight
    else:
        top = max(seen, weight)
        both = top + math.log(math.exp(seen - top) + math.exp(weight - top))
    if seen == -math.inf or rng.random() < math.exp(weight - both):
        chosen_q[:] = q
        for j in range(len(p)):
            chosen_p[j] = sign * p[j]
    return both


@njit(**OPTIONS)
def trajectory(
    rng: np.random.Generator,
    problem: Problem,
    q: FloatArray,
    p: FloatArray,
    g: FloatArray,
    value: float,
    s: FloatArray,
    work: Work,
    settings: Settings,
    space: FloatArray,
) -> tuple[float, bool, bool, int]:
    """Move (q, φ) in place; g and value belong to q. `space` is (7, len(q)).

    A state where the density is no number ends the trajectory, which stays where it began: so it would from all states
    that share it. Returns the acceptance rate, whether it was accepted, whether it diverged, and how many gradients.
    """
    L, W = settings.n_leapfrog, settings.window
    walk_q, walk_p, walk_g = space[0], space[1], space[2]
    old_q, old_p, new_q, new_p = space[3], space[4], space[5], space[6]
    step = settings.step_size * (1.0 + settings.jitter * (2.0 * rng.random() - 1.0))
    start = 0.0
    for j in range(len(q)):
        start += p[j] * p[j]
    start = value - 0.5 * start
    back = rng.integers(0, W) if W > 1 else 0
    old_q[:] = q
    old_p[:] = p
    old, new, found, n_gradients = start, -math.inf, True, 0
    if L - W + 1 <= back:  # windows that overlap share the first state
        new_q[:] = q
        new_p[:] = p
        new = start
    for way in range(2):
        steps = back if way == 0 else L - back
        sign = -1.0 if way == 0 else 1.0
        walk_q[:] = q
        walk_g[:] = g
        for j in range(len(q)):
            walk_p[j] = sign * p[j]
        for j in range(steps):
            if not found:
                break
            energy = leap(problem, walk_q, walk_p, walk_g, s, work, step)
            n_gradients += 1
            found = math.isfinite(energy)
            place = back - 1 - j if way == 0 else back + 1 + j
            if found and place < W:
                old = _include(rng, energy, old, walk_q, walk_p, sign, old_q, old_p)
            if found and place >= L - W + 1:
                new = _include(rng, energy, new, walk_q, walk_p, sign, new_q, new_p)
    ratio = new - old if found else -math.inf
    diverging = not ratio >= -DIVERGENCE
    accepted = found and math.log(1.0 - rng.random()) < ratio
    if accepted:
        q[:] = new_q
        p[:] = new_p
    elif found:
        q[:] = old_q
        for j in range(len(p)):
            p[j] = -old_p[j]
    else:
        for j in range(len(p)):
            p[j] = -p[j]
    return math.exp(min(ratio, 0.0)), accepted, diverging, n_gradients


@njit(**OPTIONS)
def sweep(
    rng: np.random.Generator,
    problem: Problem,
    q: FloatArray,
    p: FloatArray,
    s: FloatArray,
    work: Work,
    settings: Settings,
    updates: int,
) -> tuple[float, int, bool, int]:
    """Some updates of weights q, momentum φ and log hyperparameters s, in place.

    Returns the mean acceptance rate, the number of rejections, whether any trajectory diverged, and the number of
    gradients.
    """
    D = problem.X.shape[0]
    H, K = work.Z.shape[0], work.f.shape[0]
    space = np.empty((7, len(q)))
    g = np.empty(len(q))
    keep = settings.persistence
    fresh = math.sqrt(1.0 - keep * keep)
    rates, rejected, diverging, n_gradients = 0.0, 0, False, 0
    for _ in range(updates):
        forward(q, problem.X, work.Z, work.f)
        if settings.draw_precisions:
            precisions(rng, q, s, problem.prior, D, H, K)
            noise(rng, problem.kind, work.f, problem.T, s, problem.prior)
        scales(problem, s, work)
        value = density_here(problem, q, s, work, g)
        rate, accepted, diverged, spent = trajectory(rng, problem, q, p, g, value, s, work, settings, space)
        rates += rate
        rejected += not accepted
        diverging = diverging or diverged
        n_gradients += 1 + spent
        for j in range(len(p)):
            p[j] = keep * p[j] + fresh * rng.standard_normal()
    return rates / updates, rejected, diverging, n_gradients


@njit(**OPTIONS)
def log_joint(problem: Problem, q: FloatArray, s: FloatArray, work: Work) -> float:
    """Log density of targets, weights and log hyperparameters, all constants kept."""
    D, n = problem.X.shape
    K = work.f.shape[0]
    scales(problem, s, work)
    forward(q, problem.X, work.Z, work.f)
    nu = math.exp(s[len(s) - 1])
    total = likelihood(problem.kind, work.f, problem.T, work.beta, nu)
    if problem.kind <= STUDENT:
        for k in range(K):
            total += 0.5 * n * s[k]
        total -= 0.5 * n * K * math.log(math.pi * (nu if problem.kind == STUDENT else 2.0))
        if problem.kind == STUDENT:
            total += n * K * (math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu))
    for j in range(len(q)):
        tau = work.tau[j]
        total += 0.5 * (math.log(tau / (2.0 * math.pi)) - tau * q[j] * q[j])
    for j in range(0 if problem.kind <= STUDENT else K, len(s)):
        shape, rate = problem.prior[j]
        if K + 2 <= j < K + 2 + D:
            rate = shape * math.exp(-s[K + 2 + D])
        elif K + 3 + D <= j < K + 3 + 2 * D:
            rate = shape * math.exp(-s[K + 3 + 2 * D])
        total += shape * (math.log(rate) + s[j]) - rate * math.exp(s[j]) - math.lgamma(shape)
    return total
