"""The posterior of a network with Rasmussen's priors, written anew for peers, and what its draws say of test cases.

Cases are 'mlp friedman 256' or 'mlp kin-8nm 256': a DELVE family of `delve_cases` and a number of training cases. NumPy
and SciPy alone: peers import it.

q holds the weights (a, u, b, v, w) of f(x) = Σ_h v_h tanh(Σ_i x_i u_ih + a_h) + Σ_i x_i w_i + b, then logarithms of the
precisions of the noise, of a, of v, of the rows of u and their mean, of w and their mean. Rasmussen (1996), § 3.7, his
Gamma(mean, shape) in the usual shape and rate.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from benchmarks.delve_cases import Task
from benchmarks.rvm_cases import Array
from benchmarks.sampler_cases import Algebra, Data, Draws, Target

HIDDEN = 8
#: test cases at which predictions are compared
COMPARED = 10
#: usual shape of all top precisions; means but for their growth with H and D²
SHAPE, NOISE, HIDDEN_BIAS, OUTPUT, INPUT = 0.25, 400.0, 100.0, 100.0, 25.0
#: usual shape of an input's precision about the mean of all
INPUT_SHAPE = 0.5


class Split(NamedTuple):
    """Training and test cases, standardised by the training cases."""

    X: Array
    t: Array
    X_test: Array
    t_test: Array


@cache
def split(case: str) -> Split:
    """The first training set of a family, and its test set."""
    _, family, n = case.split()
    first = next(Task(family, int(n)).splits(1))
    centre, scale = first.X.mean(axis=0), first.X.std(axis=0)
    mean, deviation = first.y.mean(), first.y.std()
    return Split(
        (first.X - centre) / scale,
        (first.y - mean) / deviation,
        (first.X_test - centre) / scale,
        (first.y_test - mean) / deviation,
    )


def sizes(D: int) -> tuple[int, int]:
    """Numbers of weights and of precisions."""
    return HIDDEN * (D + 2) + 1 + D, 5 + 2 * D


def parts(weights: Any, D: int) -> tuple[Any, Any, Any, Any, Any]:
    """(a, u, b, v, w) of packed weights (…, P)."""
    H = HIDDEN
    ends = np.cumsum([0, H, D * H, 1, H, D])
    a, u, b, v, w = (weights[..., i:j] for i, j in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    return a, u, b, v, w


def network(case: str, form: str = "centred") -> Target:
    """The posterior; "non-centred": weights in units of their deviations, precisions of inputs over their mean."""
    known = split(case)
    D = known.X.shape[1]
    H = HIDDEN
    P, S = sizes(D)
    centred = form != "non-centred"

    def gamma(log_tau: Any, shape: float, log_rate: Any, xp: Any) -> Any:
        """Log density of log τ, but for lgamma."""
        return xp.sum(shape * (log_tau + log_rate) - xp.exp(log_tau + log_rate))

    def unpack(q: Any) -> tuple[Any, Any, Any]:
        """Weights as they stand in q, log precisions, and the log precision of each weight."""
        s = q[..., P:]
        noise, tau_a, tau_v = s[..., 0:1], s[..., 1:2], s[..., 2:3]
        tau_u, mean_u = s[..., 3 : 3 + D], s[..., 3 + D : 4 + D]
        tau_w, mean_w = s[..., 4 + D : 4 + 2 * D], s[..., 4 + 2 * D :]
        if not centred:
            tau_u, tau_w = tau_u + mean_u, tau_w + mean_w
        logs = (noise, tau_a, tau_v, tau_u, mean_u, tau_w, mean_w)
        ones = np.ones(H)
        by_input = tau_u[..., :, None] * ones
        each = (tau_a * ones, by_input, 0.0 * noise, tau_v * ones, tau_w)
        return q[..., :P], logs, each

    def density(q: Any, data: Data, algebra: Algebra) -> Any:
        xp = algebra.xp
        z, logs, each = unpack(q)
        noise, tau_a, tau_v, tau_u, mean_u, tau_w, mean_w = logs
        a, u, b, v, w = parts(z, D)
        u = u.reshape((D, H))
        total = -0.5 * xp.sum(b**2)
        if centred:
            for one, log_tau in zip((a, u, v, w), (each[0], each[1], each[3], each[4]), strict=True):
                total = total + 0.5 * xp.sum(log_tau - xp.exp(log_tau) * one**2)
        else:
            for one in (a, u, v, w):
                total = total - 0.5 * xp.sum(one**2)
            a, u, v, w = (
                one * xp.exp(-0.5 * log_tau)
                for one, log_tau in zip((a, u, v, w), (each[0], each[1], each[3], each[4]), strict=True)
            )
        total = total + gamma(noise, SHAPE, np.log(SHAPE / NOISE), xp)
        total = total + gamma(tau_a, SHAPE, np.log(SHAPE / HIDDEN_BIAS), xp)
        total = total + gamma(tau_v, SHAPE, np.log(SHAPE / (OUTPUT * H)), xp)
        for log_tau, mean in ((tau_u, mean_u), (tau_w, mean_w)):
            total = total + gamma(mean, SHAPE, np.log(SHAPE / (INPUT * D**2)), xp)
            total = total + gamma(log_tau, INPUT_SHAPE, np.log(INPUT_SHAPE) - mean, xp)
        f = xp.dot(xp.tanh(xp.dot(data["X"], u) + a), v) + xp.dot(data["X"], w) + b
        return total + 0.5 * xp.sum(noise - xp.exp(noise) * (data["t"] - f) ** 2)

    def finish(q: Array, rng: np.random.Generator) -> Draws:
        z, logs, each = unpack(q)
        if not centred:
            flat = [one.reshape((*q.shape[:-1], -1)) for one in each]
            z = z * np.exp(-0.5 * np.concatenate(flat, axis=-1))
        return {"weights": z, "log_noise": logs[0][..., 0]}

    return Target(P + S, {"X": known.X, "t": known.t}, density, finish)


def outputs(weights: Array, X: Array) -> Array:
    """f at rows X (n, D) of packed weights (…, P): (…, n)."""
    a, u, b, v, w = parts(weights, X.shape[1])
    Z = np.tanh(X @ u.reshape((*u.shape[:-1], X.shape[1], HIDDEN)) + a[..., None, :])
    return np.asarray((Z @ v[..., None])[..., 0] + w @ X.T + b)


def predictions(case: str, draws: Draws) -> Draws:
    """The outputs at the first test cases, by name."""
    f = outputs(draws["weights"], split(case).X_test[:COMPARED])
    return {f"prediction {j}": f[..., j] for j in range(COMPARED)}


def log_loss(case: str, draws: Draws) -> float:
    """Minus the mean log density of the test targets under the mixture of all draws, standardised targets, nats."""
    known = split(case)
    log_noise = draws["log_noise"].ravel()
    weights = draws["weights"].reshape((len(log_noise), -1))
    terms = np.empty((len(log_noise), len(known.t_test)))
    for s, (one, log_tau) in enumerate(zip(weights, log_noise, strict=True)):
        residual = known.t_test - outputs(one, known.X_test)
        terms[s] = 0.5 * (log_tau - np.log(2.0 * np.pi) - np.exp(log_tau) * residual**2)
    return float(np.log(len(log_noise)) - np.mean(logsumexp(terms, axis=0)))
