r"""States of the hyperparameters around their mode, weighed by how probable the targets make them.

States are :math:`\hat\theta + H^{-1/2}z_s`, H the Hessian of :math:`-\log p(t|\theta)p(\theta)` and z_s normal in pairs
of opposite sign; the weight of each is that of importance sampling, p(t|θ)p(θ) over the density it was drawn from, with
weights too large for their number cut off (Ionides 2008).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status
from bayessel.gp.latent.latent_fit import LatentProcessFit
from bayessel.work.interrupts import InterruptGuard

#: states at most, and the cubes of rows that they, and the Hessian before them, may take together
MOST_STATES, MOST_CUBES = 24, 3e10
#: least curvature in a direction, that of a prior with standard deviation 2
_LEAST_CURVATURE = 0.25


def mixed_over_states(fit: LatentProcessFit, seed: int) -> LatentProcessFit:
    """The fit with states around its mode; as it is where there are too many rows for that, or no mode to go around."""
    n, k = fit.n_rows, int(fit.free.sum())
    count = 2 * int(min(MOST_STATES, MOST_CUBES / max(n, 1) ** 3 - 2 * k) / 2)
    if count < 4 or not k or {Status.INTERRUPTED, Status.CONSTANT_TARGET} & set(fit.notes):
        return fit
    with InterruptGuard() as guard:
        found = _around(fit, count, seed)
        if found is not None:
            fit = found
    if guard.interrupted:
        notes = (*fit.notes, Status.INTERRUPTED)
        return replace(fit, notes=notes, status=Status.INTERRUPTED)
    return fit


def _around(fit: LatentProcessFit, count: int, seed: int) -> LatentProcessFit | None:
    H = fit.hessian[np.ix_(fit.free, fit.free)]
    if not np.isfinite(H).all():
        return None
    values, axes = np.linalg.eigh(H)
    spread = 1.0 / np.sqrt(np.maximum(values, _LEAST_CURVATURE))
    z = np.random.default_rng(seed).normal(size=(count // 2, len(H)))
    z = np.vstack([np.zeros(len(H)), z, -z])
    thetas = np.tile(fit.theta, (len(z), 1))
    thetas[:, fit.free] += (z * spread) @ axes.T
    heights = np.array([fit.log_joint(theta) for theta in thetas])
    log_weights = heights - heights[0] + 0.5 * (z**2).sum(axis=1)
    possible = np.isfinite(log_weights)
    # the mode is no draw: its density scales the weights, and it predicts where no draw can
    possible[0] = not possible[1:].any()
    thetas, log_weights = thetas[possible], log_weights[possible]
    log_weights = log_weights - np.logaddexp.reduce(log_weights)
    most = np.log(1.0 / np.sqrt(len(log_weights)))
    log_weights = np.minimum(log_weights, most)
    return replace(fit, thetas=thetas, log_weights=log_weights - np.logaddexp.reduce(log_weights))


def effective_states(log_weights: FloatArray) -> float:
    """Number of states of equal weight that say as much."""
    return float(np.exp(2.0 * np.logaddexp.reduce(log_weights) - np.logaddexp.reduce(2.0 * log_weights)))
