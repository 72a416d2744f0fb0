"""A network's weights and hyperparameters moved in compiled code: Gibbs for precisions, trajectories for weights.

One update:

1. all hyperparameters from their exact conditionals;
2. L leapfrog steps of the weights, with a step size for each group from the present precisions, and acceptance between
   windows at both ends (Neal 1994); on rejection the momentum turns round;
3. φ ← aφ + √(1 − a²) ξ.

The momentum is in units of the step sizes, so it is standard normal whatever the precisions are, and may be kept.

At a temperature t (see `precisions`) Gaussian noise of precision β is noise of precision tβ as far as weights can see,
and log losses of classes are weighted by t; so the updates are the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit
from bayessel.mlp.compiled_passes import GAUSSIAN, NUMBERS, STUDENT, backward, forward, likelihood, places
from bayessel.mlp.prior import NetworkPrior
from bayessel.samplers.network.precisions import noise, precisions

OPTIONS = {"error_model": "numpy"}
#: an energy that rises by more is no discretisation error
DIVERGENCE = 1000.0


class NetworkPosterior(NamedTuple):
    """What is fixed: likelihood, inputs (D, n), targets (K, n), hyperpriors, precision of biases, Σ x² of inputs."""

    kind: int
    X: FloatArray
    T: FloatArray
    prior: FloatArray
    bias_precision: float
    squares: FloatArray


class TrajectorySettings(NamedTuple):
    """How to move: ε, its relative jitter, L, W, a, and whether hyperparameters are drawn."""

    step_size: float
    jitter: float
    n_leapfrog: int
    window: int
    persistence: float
    draw_precisions: bool


class Workspace(NamedTuple):
    """Space that is written over: hidden values, outputs, one row, prior precisions, step sizes, noise precisions."""

    Z: FloatArray
    f: FloatArray
    below: FloatArray
    tau: FloatArray
    size: FloatArray
    beta: FloatArray


def posterior_of(X: FloatArray, T: FloatArray, kind: str, prior: NetworkPrior) -> tuple[NetworkPosterior, Workspace]:
    """Inputs (n, D), targets (n, K) and a prior in the arrays of compiled code, and space for them."""
    (n, K), H, P = T.shape, prior.architecture.hidden, prior.architecture.size
    found = NetworkPosterior(
        NUMBERS[kind],
        np.ascontiguousarray(X.T),
        np.ascontiguousarray(T.T),
        hyperpriors(prior, kind == "student"),
        prior.bias_sd**-2,
        np.einsum("ij,ij->j", X, X),
    )
    space = Workspace(np.empty((H, n)), np.empty((K, n)), np.empty(n), np.empty(P), np.empty(P), np.empty(K))
    return found, space


def hyperpriors(prior: NetworkPrior, student: bool) -> FloatArray:
    """(shape, rate) of every hyperparameter in the order of `precisions`; second layers have no rate given."""
    D, K = prior.architecture.inputs, prior.architecture.outputs
    rows = [(one.alpha, one.beta) for one in (*[prior.noise] * K, prior.hidden_bias, prior.hidden_output)]
    for top, shape in (
        (prior.input_hidden, prior.input_hidden_shape),
        (prior.input_output, prior.input_output_shape),
    ):
        rows += [(0.5 * shape, np.nan)] * D + [(top.alpha, top.beta)]
    if student:
        rows.append((2.0, 0.1))
    return np.array(rows)


@njit(**OPTIONS)
def spread_out(s: FloatArray, bias_precision: float, D: int, H: int, K: int, tau: FloatArray) -> None:
    """The prior precision of each packed weight, from the logarithms s."""
    at_b, at_v, at_w = places(D, H, K)
    tau[:H] = math.exp(s[K])
    for i in range(D):
        tau[H + i * H : H + (i + 1) * H] = math.exp(s[K + 2 + i])
        tau[at_w + i * K : at_w + (i + 1) * K] = math.exp(s[K + 3 + D + i])
    tau[at_b:at_v] = bias_precision
    tau[at_v:at_w] = math.exp(s[K + 1])


@njit(**OPTIONS)
def scales(problem: NetworkPosterior, s: FloatArray, work: Workspace) -> None:
    """Precisions and a step for each weight: (prior precision + a guess of the curvature)^{−1/2} (Neal 1996, § 3.5).

    Noise of precision β has curvature β by each output, log losses at most ¼. The curvature by weights into a hidden
    unit is that times v², guessed to be 1/τ_v: guesses may depend on hyperparameters alone, or trajectories could not
    be walked back.
    """
    D, n = problem.X.shape
    H, K = work.Z.shape[0], work.f.shape[0]
    at_b, at_v, at_w = places(D, H, K)
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
def density_here(problem: NetworkPosterior, q: FloatArray, s: FloatArray, work: Workspace, g: FloatArray) -> float:
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
    problem: NetworkPosterior, q: FloatArray, p: FloatArray, g: FloatArray, s: FloatArray, work: Workspace, step: float
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
    problem: NetworkPosterior,
    q: FloatArray,
    p: FloatArray,
    g: FloatArray,
    value: float,
    s: FloatArray,
    work: Workspace,
    settings: TrajectorySettings,
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
    problem: NetworkPosterior,
    q: FloatArray,
    p: FloatArray,
    s: FloatArray,
    work: Workspace,
    settings: TrajectorySettings,
    updates: int,
    reference: FloatArray,
    temperature: float,
) -> tuple[float, int, bool, int]:
    """Some updates of weights q, momentum φ and log hyperparameters s, in place; at temperature 1 of the posterior.

    Returns the mean acceptance rate, the number of rejections, whether any trajectory diverged, and the number of
    gradients.
    """
    D = problem.X.shape[0]
    H, K = work.Z.shape[0], work.f.shape[0]
    space = np.empty((7, len(q)))
    g, seen = np.empty(len(q)), np.empty(len(s))  # the weights see `seen` for s
    keep = settings.persistence
    fresh = math.sqrt(1.0 - keep * keep)
    rates, rejected, diverging, n_gradients = 0.0, 0, False, 0
    for _ in range(updates):
        forward(q, problem.X, work.Z, work.f)
        if settings.draw_precisions:
            precisions(rng, q, s, problem.prior, D, H, K, reference, temperature)
            noise(rng, problem.kind, work.f, problem.T, s, problem.prior, reference, temperature)
        seen[:] = s
        if problem.kind == GAUSSIAN:
            for k in range(K):
                seen[k] += math.log(temperature)
        scales(problem, seen, work)
        if problem.kind > STUDENT:
            work.beta[:] = temperature
        value = density_here(problem, q, seen, work, g)
        rate, accepted, diverged, spent = trajectory(rng, problem, q, p, g, value, seen, work, settings, space)
        rates += rate
        rejected += not accepted
        diverging = diverging or diverged
        n_gradients += 1 + spent
        for j in range(len(p)):
            p[j] = keep * p[j] + fresh * rng.standard_normal()
    return rates / updates, rejected, diverging, n_gradients


@njit(**OPTIONS)
def sweep_all(
    rng: np.random.Generator,
    problem: NetworkPosterior,
    Q: FloatArray,
    S: FloatArray,
    work: Workspace,
    settings: TrajectorySettings,
    updates: int,
    reference: FloatArray,
    temperature: float,
) -> tuple[float, int]:
    """Some updates of each of N networks, weights Q (N, P) and log hyperparameters S (N, ·), in place.

    Returns the mean acceptance rate and the number of gradients.
    """
    p, rates, n_gradients = np.empty(Q.shape[1]), 0.0, 0
    for i in range(len(Q)):
        for j in range(len(p)):
            p[j] = rng.standard_normal()
        rate, _, _, spent = sweep(rng, problem, Q[i], p, S[i], work, settings, updates, reference, temperature)
        rates += rate if math.isfinite(rate) else 0.0
        n_gradients += spent
    return rates / len(Q), n_gradients


@njit(**OPTIONS)
def log_likelihood(problem: NetworkPosterior, q: FloatArray, s: FloatArray, work: Workspace) -> float:
    """Log p(targets | weights, noise), all constants kept."""
    n = problem.X.shape[1]
    K = work.f.shape[0]
    forward(q, problem.X, work.Z, work.f)
    work.beta[:] = 1.0
    nu, constant = math.exp(s[len(s) - 1]), 0.0
    if problem.kind <= STUDENT:
        for k in range(K):
            work.beta[k] = math.exp(s[k])
            constant += 0.5 * n * s[k]
        constant -= 0.5 * n * K * math.log(math.pi * (nu if problem.kind == STUDENT else 2.0))
        if problem.kind == STUDENT:
            constant += n * K * (math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu))
    return constant + likelihood(problem.kind, work.f, problem.T, work.beta, nu)


@njit(**OPTIONS)
def log_likelihoods(
    problem: NetworkPosterior, Q: FloatArray, S: FloatArray, work: Workspace, found: FloatArray
) -> None:
    """The same of each of N networks; minus infinity where it is no number."""
    for i in range(len(Q)):
        value = log_likelihood(problem, Q[i], S[i], work)
        found[i] = value if math.isfinite(value) else -math.inf


@njit(**OPTIONS)
def log_joint(problem: NetworkPosterior, q: FloatArray, s: FloatArray, work: Workspace) -> float:
    """Log density of targets, weights and log hyperparameters, all constants kept."""
    D, K = problem.X.shape[0], work.f.shape[0]
    scales(problem, s, work)
    total = log_likelihood(problem, q, s, work)
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
