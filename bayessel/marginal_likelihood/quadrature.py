r"""Integrals over one to three coordinates by the trapezoidal rule, to many digits.

For a smooth integrand that falls to nothing on both sides, the trapezoidal rule converges faster than any power of its
step (Trefethen and Weideman 2014, SIAM Review 56, 385). Coordinates are stretched, :math:`\theta = \mu + L \sinh(u)`, so
that tails that fall like powers fall exponentially. The step is halved until nothing changes.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.target_density import TargetDensity

#: coordinates up to which a grid is laid
MOST_COORDINATES = 3
#: evaluations at most
MOST_CALLS = 400_000
#: where on either side the density has fallen by so many nats, with the Jacobian, the rest is nothing
NEGLIGIBLE = 35.0
#: change from one step to the next that is convergence
CLOSE = 1e-6
#: points of the first grid along each of one, two or three coordinates
FIRST_GRID = (129, 33, 17)
NAME = "quadrature"


def quadrature(target: TargetDensity, centre: FloatArray, factor: FloatArray) -> Route:
    """The integral over a grid around a centre, in units of a factor L of the covariance."""
    d, calls = target.size, 0
    if d > MOST_COORDINATES:
        return Route.missing(NAME, f"{d} coordinates are left, and grids are laid over {MOST_COORDINATES} at most")
    log_scale = float(np.log(np.abs(np.linalg.det(factor))))

    def logs(u: FloatArray) -> FloatArray:
        nonlocal calls
        calls += len(u)
        with np.errstate(over="ignore", invalid="ignore"):
            found = target.logs(centre + np.sinh(u) @ factor.T) + np.log(np.cosh(u)).sum(axis=1)
        return np.where(np.isnan(found), -np.inf, found)

    bounds = [(-1.5, 1.5)] * d
    n, before, changes = FIRST_GRID[d - 1], float("nan"), float("inf")
    while calls + n**d <= MOST_CALLS:
        axes = [np.linspace(low, high, n) for low, high in bounds]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        values = logs(grid).reshape((n,) * d)
        top = float(values.max())
        if not np.isfinite(top):
            return Route.missing(NAME, "the density is nil on the grid", calls)
        wider, grown = [], False
        for axis, (low, high) in enumerate(bounds):
            first, last = (float(np.take(values, end, axis=axis).max()) for end in (0, -1))
            rise = 0.25 * (high - low)
            wider.append((low - rise * (first > top - NEGLIGIBLE), high + rise * (last > top - NEGLIGIBLE)))
            grown |= wider[-1] != (low, high)
            if max(-wider[-1][0], wider[-1][1]) > 300.0:
                return Route.missing(NAME, "the density does not fall off: it has no integral that a grid could see", calls)
        if grown:
            bounds, before = wider, float("nan")
            n += n % 2 == 0
            continue
        cell = float(np.prod([(high - low) / (n - 1) for low, high in bounds]))
        value = float(logsumexp(values)) + np.log(cell) + log_scale
        changes = abs(value - before)
        if changes < CLOSE:
            error = max(changes, 1e-9, 1e-12 * abs(value))
            return Route(NAME, value, error, True, f"a grid of {n} in each of {d} coordinates", calls, is_exact=True)
        before, n = value, 2 * n - 1
    reason = f"the grid has not converged within {MOST_CALLS} evaluations"
    error = changes if np.isfinite(changes) else float("inf")
    return Route(NAME, before, error, False, reason, calls)
