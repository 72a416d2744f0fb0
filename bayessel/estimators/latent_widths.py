r"""Width of radial functions seen through a likelihood, by the Laplace evidence of all, on inputs in their own spread.

For each of ten widths r, from the distance of nearest neighbours to eight times a typical distance d of rows, the
precision is at its best; the prior is :math:`\log r\sim N(\log d, 1.5^2)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel._numerics import few_threads
from bayessel.basis import radial
from bayessel.estimators.found_width import _grid, robust_spread
from bayessel.estimators.held_out import spread_out
from bayessel.estimators.linear_trend import LinearTrend
from bayessel.likelihoods import Likelihood
from bayessel.linear.latent.laplace import LatentTargets
from bayessel.linear.latent.settings import default_bias_scale
from bayessel.linear.latent.shared_precision import SharedDesign, SharedModel
from bayessel.work.interrupts import InterruptGuard

#: rows looked at, and functions at most, while widths are compared; functions of the fit
MOST_ROWS, MOST_COMPARED, MOST_CENTRES = 1000, 150, 400
#: prior standard deviation of the logarithm of a width
WIDTH_SD = 1.5
#: digits of the evidence while widths are compared
_CLOSE = 1e-7
#: directions of a design below this many roundings are left out while widths are compared
_DIGITS = 1e5
#: widths whose log weight lies further below the best are left out, and most widths that are mixed
_FALL, MOST_WIDTHS = 3.0, 3


@dataclass(frozen=True, eq=False)
class LatentWidths:
    """Widths that were compared.

    Attributes
    ----------
    spread : (D,) array
        Robust spread of each input.
    typical : float
        Typical distance of two rows, in units of the spread.
    widths : (W,) array
        Shared widths in units of the spread, ascending.
    log_posterior : (W,) array
        Log evidence with the priors, in nats.
    interrupted : bool
        Whether Ctrl-C ended the comparison.
    """

    spread: FloatArray
    typical: float
    widths: FloatArray
    log_posterior: FloatArray
    interrupted: bool = False

    @property
    def best(self) -> float:
        """The most probable width, in units of the spread."""
        return float(self.widths[np.argmax(self.log_posterior)])

    @property
    def worth_mixing(self) -> FloatArray:
        """The most probable widths, the best first."""
        order = np.argsort(-self.log_posterior, kind="stable")[:MOST_WIDTHS]
        near = self.log_posterior[order] > self.log_posterior[order[0]] - _FALL
        return self.widths[order[near]]

    def log_prior(self, width: float) -> float:
        """Log prior probability of one of the widths compared."""
        logs = log_normal(np.log(self.widths / self.typical), WIDTH_SD**2)
        return float(logs[self.widths == width][0] - logsumexp(logs))


def spread_centres(X: FloatArray, most: int) -> FloatArray:
    """At most so many rows, evenly spread over their order by the first inputs."""
    if len(X) <= most:
        return X
    return np.asarray(X[np.lexsort(X.T[::-1])[spread_out(len(X), most)]])


def compare_latent_widths(
    X: FloatArray,
    order: npt.NDArray[np.number],
    targets: Sequence[FloatArray],
    likelihood: Likelihood,
    *,
    centers: FloatArray | None,
    kind: str,
    bias: bool,
    count: FloatArray | None = None,
) -> LatentWidths:
    """Compare shared widths, those of several targets (of each class against the rest) by the sum.

    Some of many rows are compared, evenly spread over `order` (N,) and the inputs; `count` is how often rows count.
    """
    spread = robust_spread(X)
    Z, shown = X / spread, [LatentTargets(likelihood, t, count) for t in targets]
    if len(Z) > MOST_ROWS:
        some = np.lexsort((*Z.T[::-1], order))[spread_out(len(Z), MOST_ROWS)]
        Z = Z[some]
        shown = [LatentTargets(likelihood, t[some], None if count is None else count[some]) for t in targets]
    C = spread_centres(Z if centers is None else centers / spread, MOST_COMPARED)
    typical, grid = _grid(spread_centres(Z, MOST_CENTRES))
    if not len(grid):
        return LatentWidths(spread, typical, np.array([typical]), np.zeros(1))
    scales = [default_bias_scale(likelihood, one.t) if bias else 0.0 for one in shown]
    z = cdist(Z, C, "sqeuclidean")
    found: list[float] = []
    near: dict[int, float] = {}
    with few_threads(z.size), np.errstate(all="ignore"), InterruptGuard(lambda: found) as guard:
        for r in grid:
            functions = radial(kind, z / r**2)
            columns = np.hstack([functions, LinearTrend.beside(Z, functions).columns(Z)])
            total = float(log_normal(np.array(np.log(r / typical)), WIDTH_SD**2))
            design = SharedDesign.of(columns, scales[0], _DIGITS, count=shown[0].count)
            for k, one in enumerate(shown):
                model = SharedModel.of(one, design)
                near[k], mode, _ = model.maximised(near.get(k), _CLOSE)
                total += model.objective(mode, near[k])
            found.append(total)
    part = shown[0].count
    share = len(Z) / len(X) if count is None or part is None else part.sum() / count.sum()
    value = np.array(found) / share
    return LatentWidths(spread, typical, grid[: len(value)], value, guard.interrupted)
