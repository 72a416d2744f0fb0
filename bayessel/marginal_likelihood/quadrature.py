r"""Integrals over one to three coordinates by the trapezoidal rule, to many digits.

For a smooth integrand that falls to nothing on both sides, the trapezoidal rule converges faster than any power of its
step (Trefethen and Weideman 2014, SIAM Review 56, 385). Coordinates are stretched, :math:`\theta = \mu + L
\sinh(u)`, so that tails that fall like powers fall exponentially. The step is halved until nothing changes.
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
#: a point outside the grid whose density is lower than the highest by less than this is taken into it, in nats
SEEN = 25.0
#: nats above the best mode at which a point of the grid is not believed
ABOVE = 30.0
#: bounds of the stretched coordinates: sinh of more has no square
FARTHEST = 300.0
#: change from one step to the next that is convergence, and error that is still one to rely on
CLOSE, GOOD_ENOUGH = 1e-6, 2e-3
#: points of the first grid along each of one, two or three coordinates
FIRST_GRID = (129, 33, 17)
NAME = "quadrature"


def quadrature(
    target: TargetDensity, centre: FloatArray, factor: FloatArray, elsewhere: FloatArray, highest: float = np.inf
) -> Route:
    """The integral over a grid around a centre, in units of a factor L of the covariance.

    Parameters
    ----------
    elsewhere : (n, d) array
        Points, as of the prior, by which it is seen whether the density has a part that the grid does not reach.
    highest : float
        Log density at the best mode that is known; where a grid has points far above it, they are rounding.
    """
    d = target.size
    if d > MOST_COORDINATES:
        return Route.missing(NAME, f"{d} coordinates are left, and grids are laid over {MOST_COORDINATES} at most")
    integrand = _Integrand(target, centre, factor)
    far = target.logs(elsewhere)
    far_u, calls = integrand.stretched(elsewhere), len(elsewhere)
    bounds = [(-1.5, 1.5)] * d
    n, before, change, finished = FIRST_GRID[d - 1], float("nan"), float("inf"), 0
    while calls + n**d <= MOST_CALLS:
        axes = [np.linspace(low, high, n) for low, high in bounds]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        values = integrand(grid).reshape((n,) * d)
        calls += n**d
        top = float(values.max())
        if integrand.highest > highest + ABOVE:
            return Route.missing(
                NAME, "points of the grid lie far above every mode: the density is nothing but rounding", calls
            )
        seen = far > top - SEEN
        if not np.isfinite(top) and not seen.any():
            return Route.missing(NAME, "the density is nil on the grid", calls)
        wider = []
        for axis, (low, high) in enumerate(bounds):
            first, last = (float(np.take(values, end, axis=axis).max()) for end in (0, -1))
            rise = 0.25 * (high - low)
            there = far_u[seen, axis]
            wider.append(
                (
                    min(low - rise * (first > top - NEGLIGIBLE), there.min(initial=np.inf)),
                    max(high + rise * (last > top - NEGLIGIBLE), there.max(initial=-np.inf)),
                )
            )
        if max(max(-low, high) for low, high in wider) > FARTHEST:
            return Route.missing(NAME, "the density does not fall off: no grid sees its integral", calls)
        if wider != bounds:
            bounds, before, finished = wider, float("nan"), 0
            continue
        cell = float(np.prod([(high - low) / (n - 1) for low, high in bounds]))
        value = float(logsumexp(values) + np.log(cell))
        change, before, n, points = abs(value - before), value, 2 * n - 1, n
        finished = finished + 1 if change < CLOSE else 0
        if finished >= 2 or (finished and d > 1):
            error = max(change, 1e-9, 1e-12 * abs(value))
            return Route(
                NAME, value, error, True, f"a grid of {points} in each of {d} coordinates", calls, is_exact=True
            )
    error = 3.0 * change if np.isfinite(change) else float("inf")
    said = f"the grid has not converged within {MOST_CALLS} evaluations"
    if error < GOOD_ENOUGH:
        return Route(NAME, before, error, True, f"{said} to more than this error", calls, is_exact=True)
    return Route(NAME, before, error, False, said, calls)


class _Integrand:
    """Log of the density times the Jacobian in stretched coordinates u, θ = centre + L sinh u."""

    def __init__(self, target: TargetDensity, centre: FloatArray, factor: FloatArray) -> None:
        self._target, self._centre, self._factor = target, centre, factor
        self.highest = -np.inf
        self._log_scale = float(np.log(np.abs(np.linalg.det(factor))))

    def __call__(self, u: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            logs = self._target.logs(self._centre + np.sinh(u) @ self._factor.T)
            self.highest = max(self.highest, float(logs.max()))
            found = logs + np.log(np.cosh(u)).sum(axis=1)
        return np.where(np.isnan(found), -np.inf, found + self._log_scale)

    def stretched(self, rows: FloatArray) -> FloatArray:
        """u of points."""
        return np.asarray(np.arcsinh(np.linalg.solve(self._factor, (rows - self._centre).T).T))
