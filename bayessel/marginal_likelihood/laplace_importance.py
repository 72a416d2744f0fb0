r"""Laplace's approximation at the modes of a density, and importance sampling from Student t around them.

.. math:: \log Z \approx \log p(\hat\theta) + \tfrac d2 \log 2\pi + \tfrac12 \log |\Sigma|

with Σ the inverse of minus the Hessian. It is corrected by draws of a mixture of t distributions, one per mode, with
these scales: the mean of p/g over draws of g is Z without bias. The index of the generalised Pareto distribution that
fits the largest ratios (Vehtari et al. 2024) says whether its error means something.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from bayessel._check import FloatArray
from bayessel.marginal_likelihood.modes import DensityMode, FoundModes, laplace
from bayessel.marginal_likelihood.pareto import LARGEST_INDEX, tail_index
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.target_density import TargetDensity

#: degrees of freedom of the proposal
FREEDOM = 5.0
#: draws of the proposal
N_DRAWS = 8_000
#: index of the tail from which on the masses of modes are not believed, as at the many necks of a funnel
BELIEVED = 1.0
#: least share of the draws that a mode has
_LEAST = 0.05
NAME = "laplace"


def laplace_importance(
    target: TargetDensity, found: FoundModes, rng: np.random.Generator
) -> tuple[Route, list[DensityMode]]:
    """Importance sampling around the modes; with those whose masses it does not contradict."""
    if not found.modes:
        return Route.missing(NAME, "no maximum with a curvature was found", found.calls), []
    shares = np.array([laplace(mode) for mode in found.modes])
    shares = np.exp(shares - shares.max())
    shares = np.maximum(shares / shares.sum(), _LEAST)
    shares /= shares.sum()
    d = target.size
    which = rng.choice(len(shares), size=N_DRAWS, p=shares)
    normal = rng.standard_normal((N_DRAWS, d))
    stretch = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=N_DRAWS))
    rows = np.empty((N_DRAWS, d))
    for k, mode in enumerate(found.modes):
        own = which == k
        rows[own] = mode.place + (normal[own] * stretch[own, None]) @ mode.factor.T
    logs = target.logs(rows) - log_proposal(rows, found.modes, shares)
    calls = found.calls + N_DRAWS
    if not np.isfinite(logs).any():
        return Route.missing(NAME, "no draw around the modes has a density", calls), []
    value = float(logsumexp(logs) - np.log(N_DRAWS))
    weights = np.exp(logs - logs.max())
    error = float(weights.std(ddof=1) / (weights.mean() * np.sqrt(N_DRAWS)))
    index = tail_index(logs)
    plain = laplace(found.modes[0])
    several = f"{len(found.modes)} modes" if len(found.modes) > 1 else "one mode"
    said = f"{several}, Pareto k {index:.2f}, corrected by {value - plain:+.2f}"
    reliable = bool(index < LARGEST_INDEX and 0.0 < error < 0.5)
    reason = said if reliable else f"{said}: t around the mode is no cover"
    return Route(NAME, value, error, reliable, reason, calls), found.modes if index < BELIEVED else []


def log_proposal(rows: FloatArray, modes: list[DensityMode], shares: FloatArray) -> FloatArray:
    """Log density of the mixture of t distributions."""
    d = rows.shape[1]
    constant = gammaln(0.5 * (FREEDOM + d)) - gammaln(0.5 * FREEDOM) - 0.5 * d * np.log(FREEDOM * np.pi)
    parts = []
    for mode, share in zip(modes, shares, strict=True):
        z = np.linalg.solve(mode.factor, (rows - mode.place).T)
        spread = float(np.log(np.diag(mode.factor)).sum())
        parts.append(np.log(share) + constant - spread - 0.5 * (FREEDOM + d) * np.log1p((z**2).sum(axis=0) / FREEDOM))
    return np.asarray(logsumexp(parts, axis=0))
