r"""How the evidence depends on the width of one prior, for all widths from one run.

With the scale of a prior stretched by c, p_c(x) = p(x/c)/c, and c drawn too, uniformly in log c, the density of log c
given the data is the evidence as a function of c, up to a constant. Given x it is known in closed form, so draws of x
give the whole curve:

.. math:: \frac{Z(c)}{Z(1)} = \frac{E[w_c]}{E[w_1]},\qquad w_c = \frac{p_c(x)}{\int p_{c'}(x)\,d\log c'}
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace, vectorize_graph

from bayessel._check import FloatArray, as_positive, chosen_seed
from bayessel._pymc import clone_model
from bayessel._text import number
from bayessel._types import Seed
from bayessel.errors import SamplingWarning
from bayessel.marginal_likelihood.bridge import effective_draws
from bayessel.marginal_likelihood.trace_check import check_trace
from bayessel.pages.result_view import ResultView, ShownResult
from bayessel.samplers.run.sampling import sample

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: points of the curve
_POINTS = 41
#: name of log c in the model that is sampled
_NAME = "log_stretch_of_the_prior"


@dataclass(frozen=True, eq=False)
class PriorSensitivity(ShownResult):
    """The evidence as a function of the width of a prior.

    Attributes
    ----------
    name : str
        The variable.
    factors : (n,) array
        By which the prior's scale is multiplied.
    change, error : (n,) array
        Log evidence minus that with the prior as it is, in nats, and its standard error.
    """

    name: str
    factors: FloatArray
    change: FloatArray
    error: FloatArray = field(repr=False)

    @property
    def best(self) -> float:
        """The factor of highest evidence."""
        return float(self.factors[int(np.argmax(self.change))])

    def _view(self) -> ResultView:
        low, high = self.change[0], self.change[-1]
        return ResultView(
            f"prior of {self.name}: a scale {number(float(1 / self.factors[0]))} times smaller changes the log "
            f"evidence by {low:+.2f} nats, one {number(float(self.factors[-1]))} times larger by {high:+.2f}; "
            f"highest at {number(self.best)} times ({self.change.max():+.2f})"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """The curve, with two standard errors on either side.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from bayessel.pages.figures import axes_for

        ax = axes_for(ax, 6.4, 3.6)
        ax.plot(self.factors, self.change, color="C0")
        ax.fill_between(
            self.factors, self.change - 2 * self.error, self.change + 2 * self.error, color="C0", alpha=0.25, lw=0
        )
        ax.axvline(1.0, color="0.6", lw=1.0)
        ax.set_xscale("log")
        ax.set_xlabel(f"scale of the prior of {self.name}, times what the model says")
        ax.set_ylabel("change of the log evidence, nats")
        return ax


def prior_sensitivity(
    model: pm.Model,
    trace: xr.DataTree | None,
    name: str,
    *,
    reach: float = 10.0,
    random_seed: Seed = None,
) -> PriorSensitivity:
    """How the log evidence changes when the prior of one variable is made wider or narrower, from one run.

    Parameters
    ----------
    model : pymc.Model
    trace : DataTree or None
        Draws of its posterior, to check against and to start from; None is fine.
    name : str
        A free variable, positive or on the whole line; its prior is stretched about zero, or about its mean where that
        is a number.
    reach : float
        The scale goes from 1/reach of what the model says to reach times that.
    random_seed : int or Generator, optional

    Returns
    -------
    PriorSensitivity
        `plot()` draws the curve.

    Examples
    --------
    >>> import pymc as pm, bayessel as bs
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", 0, 1)
    ...     y = pm.Normal("y", x, 1, observed=2.0)
    >>> curve = bs.diagnostics.prior_sensitivity(model, None, "x", random_seed=1)
    >>> exact = -0.5 * np.log((1 + 100) / 2) - 2.0 / (1 + 100) + 2.0 / 2
    >>> bool(abs(curve.change[-1] - exact) < 0.1)
    True
    """
    reach = as_positive(reach, "reach")
    if reach <= 1.0:
        raise ValueError(f"reach must be more than 1, got {reach}; 10 goes from a tenth to ten times the scale")
    names = [str(rv.name) for rv in model.free_RVs]
    if name not in names:
        raise ValueError(f"name must be a free variable of the model ({', '.join(names)}), got {name!r}")
    if trace is not None:
        check_trace(model, trace)
    start = model.rvs_to_transforms[model[name]]
    if start is not None and type(start).__name__ != "LogTransform":
        raise ValueError(
            f"{name} has a bounded prior, which has no scale to stretch: prior_sensitivity is for positive variables "
            "and for those on the whole line"
        )
    wide = clone_model(model)
    centre = _centre(wide, name)
    with wide:
        x = wide[name]
        stretch = pm.Uniform(_NAME, -np.log(reach), np.log(reach))
        inside = centre + (x - centre) * pm.math.exp(-stretch)
        changed = pm.logp(x, inside) - stretch - pm.logp(x, x)
        pm.Potential(f"{_NAME}_density", changed.sum())
    seed = chosen_seed(random_seed, "random_seed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        drawn = sample(wide, random_seed=seed, quiet=True, progressbar=False, log_likelihood=False)
    grid = np.linspace(-np.log(reach), np.log(reach), _POINTS)
    logs = _log_priors(wide, name, centre, drawn["posterior"], grid)
    weights = np.full(_POINTS, 1.0)
    weights[[0, -1]] = 0.5
    top = logs.max(axis=-1, keepdims=True)
    ratio = np.exp(logs - top)
    ratio /= (ratio * weights).sum(axis=-1, keepdims=True)
    mean = ratio.mean(axis=(0, 1))
    middle = _POINTS // 2
    error = np.empty(_POINTS)
    for k in range(_POINTS):
        apart = ratio[:, :, k] / mean[k] - ratio[:, :, middle] / mean[middle]
        error[k] = float(apart.std() / np.sqrt(effective_draws(apart))) if np.ptp(apart) > 0.0 else 0.0
    change = np.log(mean / mean[middle])
    if error.max() > 0.3:
        warnings.warn(
            f"the curve has errors up to {error.max():.1f} nats; take a smaller reach", SamplingWarning, stacklevel=2
        )
    return PriorSensitivity(name, np.exp(grid), change, error)


def _centre(model: pm.Model, name: str) -> Any:
    """About what a prior is stretched: the mean of a Normal, Student or Cauchy prior; zero of positive variables."""
    rv = model[name]
    if model.rvs_to_transforms[rv] is not None:
        return 0.0
    parameters = rv.owner.op.dist_params(rv.owner) if hasattr(rv.owner.op, "dist_params") else []
    kind = type(rv.owner.op).__name__
    if kind in ("NormalRV", "CauchyRV", "LaplaceRV", "LogisticRV") and parameters:
        return parameters[0]
    return parameters[1] if kind == "StudentTRV" and len(parameters) > 1 else 0.0


def _log_priors(model: pm.Model, name: str, centre: Any, posterior: Any, grid: FloatArray) -> FloatArray:
    """Log density of the stretched prior at the draws, (chains, draws, points)."""
    rv, free = model[name], list(model.free_RVs)
    one, many = pt.dscalar("stretch"), pt.dvector("stretches")
    logp = (pm.logp(rv, centre + (rv - centre) * pt.exp(-one)) - one).sum()
    given = {x: x.clone() for x in free}
    [out] = clone_replace([logp], given, rebuild_strict=False)
    [outs] = vectorize_graph([out], {one: many})
    function = pm.compile([*given.values(), many], outs, on_unused_input="ignore")
    columns = [posterior[str(x.name)].transpose("chain", "draw", ...).values for x in free]
    shape = columns[0].shape[:2]
    flat = [column.reshape(-1, *column.shape[2:]) for column in columns]
    rows = [function(*point, grid) for point in zip(*flat, strict=True)]
    return np.reshape(rows, (*shape, len(grid)))
