"""The path of `annealing` for a network: from a reference for its hyperparameters, nothing learned, to the posterior.

γ_t(w, s) = p(w|s) r(s)^{1−t} [p(s) p(T|w,s)]^t, so that g = log p(T|w,s) + log p(s) − log r(s). Weights w are packed,
hyperparameters s the logarithms of `network_gibbs`; their densities are those of the logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from bayessel._check import FloatArray
from bayessel.mlp.energy import GAUSSIAN
from bayessel.mlp.prior import NetworkPrior, Precisions
from bayessel.samplers.annealing import Particles

JITTER = 0.2


@dataclass
class NetworkPath:
    """One network's path.

    Attributes
    ----------
    problem, work
        Data and hyperpriors as `network` has them, and space to work in.
    prior : NetworkPrior
    held : (m,) array or None
        Logarithms of hyperparameters that are given; None: they are integrated out.
    reference : (m, 2) array
        Shape and rate of a Gamma distribution for each hyperparameter, r(s).
    updates, n_leapfrog : int
        Updates of each particle at each temperature, and leapfrog steps of each.
    n_gradients : int
        How many were computed so far.
    """

    problem: Any
    work: Any
    prior: NetworkPrior
    held: FloatArray | None
    reference: FloatArray
    updates: int
    n_leapfrog: int
    n_gradients: int = 0

    def first(self, rng: np.random.Generator, n: int) -> Particles:
        """Weights (n, P) and logarithms of hyperparameters (n, m) from the reference."""
        if self.held is not None:
            S = np.tile(self.held, (n, 1))
        else:
            shape, rate = self.reference.T
            S = log_gamma_draws(rng, np.tile(shape, (n, 1))) - np.log(rate)
        Q = np.empty((n, self.prior.architecture.size))
        for q, s in zip(Q, S, strict=True):
            q[:] = self.prior.draw_weights(precisions_of(s, self.prior), rng)
        return Q, S

    def gains(self, particles: Particles) -> FloatArray:
        """g of each particle."""
        from bayessel.samplers.network_tempered import log_likelihoods

        Q, S = particles
        found = np.empty(len(Q))
        log_likelihoods(self.problem, Q, S, self.work, found)
        if self.held is None:
            found += self.log_prior(S) - self.log_reference(S)
        return np.where(np.isfinite(found), found, -np.inf)

    def move(self, rng: np.random.Generator, particles: Particles, step_size: float, t: float) -> float:
        """Update all particles in place."""
        return self.walk(rng, particles, step_size, t, self.updates, self.n_leapfrog)

    def walk(
        self, rng: np.random.Generator, particles: Particles, step_size: float, t: float, updates: int, n_leapfrog: int
    ) -> float:
        """The same with so many updates of so many leapfrog steps."""
        from bayessel.samplers.network import Settings
        from bayessel.samplers.network_tempered import move

        settings = Settings(step_size, JITTER, n_leapfrog, 1, 0.0, self.held is None)
        rate, spent = move(rng, self.problem, self.reference, *particles, self.work, settings, t, updates)
        self.n_gradients += int(spent)
        return float(rate)

    def log_prior(self, S: FloatArray) -> FloatArray:
        """log p(s) of each row; the rates of second layers are their shape over the mean."""
        D, K = self.prior.architecture.inputs, self.prior.architecture.outputs
        shape, rate = (np.tile(part, (len(S), 1)) for part in self.problem.prior.T)
        for begin in (K + 2, K + 3 + D):
            mine, mean = slice(begin, begin + D), begin + D
            rate[:, mine] = shape[:, mine] * np.exp(-S[:, [mean]])
        return self._log_gammas(S, shape, rate)

    def log_reference(self, S: FloatArray) -> FloatArray:
        """log r(s) of each row."""
        return self._log_gammas(S, *self.reference.T)

    def _log_gammas(self, S: FloatArray, shape: FloatArray, rate: FloatArray) -> FloatArray:
        """Sums over hyperparameters; a noise that the model does not have counts nothing."""
        logs = shape * (np.log(rate) + S) - rate * np.exp(S) - gammaln(shape)
        if self.problem.kind != GAUSSIAN:
            logs = logs[:, self.prior.architecture.outputs :]
        return np.asarray(logs.sum(axis=1))


def log_gamma_draws(rng: np.random.Generator, shape: FloatArray) -> FloatArray:
    """Logarithms of Gamma(shape, 1) draws: G(s) = G(s + 1) u^{1/s} is never rounded to zero."""
    return np.asarray(np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.shape) / shape)


def logs_of(precisions: Precisions) -> FloatArray:
    """Logarithms in the order of `network_gibbs`."""
    return np.log(np.concatenate([np.ravel(part) for part in precisions]))


def precisions_of(s: FloatArray, prior: NetworkPrior) -> Precisions:
    """The inverse of `logs_of`."""
    D, K = prior.architecture.inputs, prior.architecture.outputs
    parts = np.split(np.exp(s), np.cumsum([K, 1, 1, D, 1, D]))
    return Precisions(*(part if i in (0, 3, 5) else part[0] for i, part in enumerate(parts)))
