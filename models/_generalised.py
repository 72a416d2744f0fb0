"""Linear models of labels, classes, counts and noise with heavy tails: weights beside what is observed at Φw + b."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayessel._check import FloatArray, as_flag, as_matrix, as_positive, check_magnitude, one_of
from bayessel.likelihoods import Likelihood
from bayessel.models._declared import Declared, remember
from bayessel.models._labels import column_labels
from bayessel.models._linear import BIAS_SPREADS, _constant, _given_alpha, _precision
from bayessel.models._observations import (
    COUNTS,
    REAL,
    SOFTMAX,
    as_kind,
    as_log_exposure,
    as_observed,
    declare_parameters,
    noise_prior,
    observe,
)
from bayessel.models._priors import GammaPrior, separate_precision_rates, spread, weight_precision_prior

#: prior standard deviation of the intercept of labels and counts: odds of 20 000 to 1 are two of them away
BIAS_SCALE = 5.0
#: log odds, or log means, that the functions together make up under the prior, in size
TYPICAL = 2.0
#: one precision for each weight
SEPARATE = "separate"
#: targets farther than so many spreads from their median do not say what the priors are
WINSOR = 3.0


def generalised(
    Phi: npt.ArrayLike,
    y: npt.ArrayLike,
    likelihood: str | Likelihood = "logit",
    alpha: float | npt.ArrayLike | str | None = None,
    *,
    exposure: npt.ArrayLike | None = None,
    varying_noise: bool = False,
    bias: bool = True,
    alpha_shape: float = 0.5,
    alpha_rate: float | None = None,
    bias_scale: float | None = None,
    names: Sequence[str] | None = None,
) -> pm.Model:
    """Declare y ~ p(y | f, φ), f = Φw + b, w ~ N(0, A⁻¹); `pm.sample(model=...)` and `bs.sample` run on the result.

    Parameters
    ----------
    Phi : array (N, M)
        Design: one column per function.
    y : array (N,)
        Targets: labels 0 and 1, or -1 and 1 ("logit", "probit"); classes 0 … K-1 ("softmax"); counts ("poisson",
        "negative-binomial"); numbers ("gaussian", "student").
    likelihood : str or one of `bayessel.likelihoods`
        What is observed at f, see there. "softmax" has weights and an intercept for each class.
    alpha : None, number, M numbers or "separate", unit [Φ]² (/[y]² of "gaussian" and "student")
        Weight precision. None: one shared random variable with a Gamma prior. "separate": one for each function, as in
        a relevance vector machine. A number, or one per column: fixed.
    exposure : array (N,) or number, optional
        What counts were counted in, as hours or areas: their means are this times eᶠ.
    varying_noise : bool
        The logarithm of the noise of "gaussian" and "student" is another linear function, log noise = c + Φv.
    bias : bool
        Add an intercept ``b``: N(0, bias_scale²) for labels and classes, about the logarithm of the mean rate for
        counts, about the median for numbers.
    alpha_shape, alpha_rate : float
        The Gamma prior, p(α) ∝ α^(shape-1) exp(-rate·α). By default shape = 1/2 and the rate is that of one extra
        weight seen: of the size at which f is about 2 in size, or, for numbers, a tenth of the size that lets the prior
        alone account for their spread, as in `linear`. Of "separate" each has the rate that goes with its function.
    bias_scale : float
        Prior standard deviation of the intercept. Default 5, for numbers 100 of their spreads.
    names : M labels, optional
        Coordinates of the dimension ``basis``; default 0 … M-1.

    Returns
    -------
    pymc.Model
        Random variables ``w`` (dimension ``basis``, of softmax also ``class``), ``alpha``, ``b``; ``noise`` (standard
        deviation; scale of Student's t), ``nu`` (deterministic, of ``nu_beyond_2``) and ``r`` where the likelihood has
        them; the observed ``y`` (dimension ``row``). With `varying_noise` ``noise`` is deterministic, a number for each
        row, of ``log_noise`` and ``w_noise``. The design is the data ``Phi``, the targets are ``y_data``, and exposures
        ``exposure``, so that prediction at new rows is ``pm.set_data({"Phi": new, "y_data": zeros}, coords={"row":
        rows})`` and ``pm.sample_posterior_predictive``.

    Notes
    -----
    Parameters have the priors of `bayessel.likelihoods`: log noise² ~ N(-3, 3²) in units of the spread of y, log(ν-2) ~
    N(log 4, 1), log r ~ N(log 5, 1.5²). Median and spread of numbers are those of targets that are pulled in to three
    robust spreads of their median, so that outliers do not widen the priors.

    `bayessel.steps` integrates the weights of "gaussian" out, and gives the others to `PersistentHMC`; with
    ``split="conjugate"`` w and b of "logit" and "negative-binomial" to `PolyaGammaGibbs`: exact draws given one
    auxiliary variable per row.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-1, 1, 20)
    >>> Phi = bs.RBFDictionary(x[::5], width=0.5, bias=False).design(x)
    >>> model = bs.models.generalised(Phi, abs(x) < 0.5)
    >>> sorted(variable.name for variable in model.free_RVs)
    ['alpha', 'b', 'w']

    Counts of events, in hours of different number:

    >>> counts, hours = np.arange(20) % 4, np.linspace(1.0, 3.0, 20)
    >>> model = bs.models.generalised(Phi, counts, "negative-binomial", exposure=hours)
    >>> sorted(variable.name for variable in model.free_RVs)
    ['alpha', 'b', 'r', 'w']
    """
    design = as_matrix(Phi, "Phi")
    check_magnitude(design, "Phi")
    n_rows, n_columns = design.shape
    kind = as_kind(likelihood, several=True)
    targets = as_observed(y, n_rows, kind, "y")
    log_exposure = as_log_exposure(exposure, n_rows, kind)
    with_bias, moving = as_flag(bias, "bias"), as_flag(varying_noise, "varying_noise")
    if moving and kind not in REAL:
        raise ValueError(f"varying_noise is of {' and '.join(map(repr, REAL))}, and the likelihood is {kind!r}")
    scales = _Scales.of(targets, kind, log_exposure, with_bias)
    given = _read_alpha(alpha, design, scales, alpha_shape, alpha_rate)
    scale = scales.bias if bias_scale is None else as_positive(bias_scale, "bias_scale")
    classes = max(int(targets.max()) + 1, 2) if kind == SOFTMAX else 0

    coords: dict[str, Any] = {"row": np.arange(n_rows), "basis": column_labels(names, n_columns)}
    own = ("class",) if classes else ()
    with pm.Model(coords=coords | ({"class": np.arange(classes)} if classes else {})) as model:
        # data are shared variables: constants would enter the key of the compiled code, one compilation per data set
        y_data = pm.Data("y_data", targets, dims="row")
        columns = pm.Data("Phi", design, dims=("row", "basis"))
        tau = _declare_alpha(given)
        tau = tau[:, None] if classes and tau.ndim else tau
        f: Any = pt.dot(columns, pm.Normal("w", 0.0, tau=tau, dims=("basis", *own)))
        if with_bias:
            f = f + pm.Normal("b", _constant(scales.level), _constant(scale), dims=own or None)
        if log_exposure is not None:
            f = f + pt.log(pm.Data("exposure", np.exp(log_exposure), dims="row"))
        noise = _declare_noise(kind, columns, design, scales) if moving else None
        parameters = declare_parameters(kind, scales.target, scales.spread, noise)
        observed = observe(kind, "y", f, parameters, observed=y_data, dims="row")
        remember(observed, Declared("generalised", likelihood=kind))
    return model


class _Scales(NamedTuple):
    """What default priors are made of: targets without their outliers, their spread, where b lies and how far."""

    target: FloatArray
    real: bool
    centre: bool
    spread: float
    level: float
    bias: float

    @classmethod
    def of(cls, targets: FloatArray, kind: str, log_exposure: FloatArray | None, centre: bool) -> _Scales:
        target = np.asarray(targets, dtype=np.float64)
        if kind in REAL:
            target = _pulled_in(target)
            size = spread(target)
            return cls(target, True, centre, size, float(np.median(target)), BIAS_SPREADS * size)
        level = 0.0
        if kind in COUNTS:
            units = float(len(target)) if log_exposure is None else float(np.exp(log_exposure).sum())
            # half a count more, so that there is a level where nothing was counted
            level = float(np.log((target.sum() + 0.5) / units))
        return cls(target, False, centre, 1.0, level, BIAS_SCALE)


def _pulled_in(t: FloatArray) -> FloatArray:
    """Targets within some robust spreads of their median; as they are where half of them are equal."""
    centre = float(np.median(t))
    reach = WINSOR * 1.4826 * float(np.median(np.abs(t - centre)))
    return np.clip(t, centre - reach, centre + reach) if reach > 0.0 else t


class _SeparatePriors(NamedTuple):
    """Gamma priors of as many precisions as weights."""

    shape: float
    rates: FloatArray


def _read_alpha(
    alpha: Any, design: FloatArray, scales: _Scales, shape: float, rate: float | None
) -> float | FloatArray | GammaPrior | _SeparatePriors:
    """What was given as it is, or the prior of what was not."""
    if alpha is not None and not isinstance(alpha, str):
        given: Any = _given_alpha(alpha, design.shape[1])
        return given
    if alpha is None and scales.real:
        return weight_precision_prior(design, scales.target, centre=scales.centre, shape=shape, rate=rate)
    shape = as_positive(shape, "alpha_shape")
    if alpha is None:
        size = TYPICAL / max(float(np.sqrt((design**2).sum(axis=1).mean())), 1e-100)
        return GammaPrior(shape, 0.5 * size**2 if rate is None else as_positive(rate, "alpha_rate"))
    one_of(alpha, "alpha", (SEPARATE,))
    n_columns = design.shape[1]
    if rate is not None:
        return _SeparatePriors(shape, np.full(n_columns, as_positive(rate, "alpha_rate")))
    if scales.real:
        return _SeparatePriors(
            shape, separate_precision_rates(design, scales.target, centre=scales.centre, shape=shape)
        )
    norms = np.sqrt((design**2).mean(axis=0) * n_columns)
    # a column of zeros has no scale; any will do
    return _SeparatePriors(shape, 0.5 * (TYPICAL / np.where(norms > 0.0, norms, 1.0)) ** 2)


def _declare_alpha(given: float | FloatArray | GammaPrior | _SeparatePriors) -> Any:
    """Declare alpha in the model on the stack."""
    if isinstance(given, _SeparatePriors):
        return pm.Gamma("alpha", _constant(given.shape), _constant(given.rates), dims="basis")
    return _precision("alpha", given)


def _declare_noise(kind: str, columns: Any, design: FloatArray, scales: _Scales) -> Any:
    """Declare noise = exp(c + Φv) in the model on the stack, a number for each row; log noise varies by about one."""
    level, width = noise_prior(kind, scales.target, scales.spread)
    c = pm.Normal("log_noise", _constant(level), _constant(width))
    size = 1.0 / max(float(np.sqrt((design**2).sum(axis=1).mean())), 1e-100)
    v = pm.Normal("w_noise", 0.0, _constant(size), dims="basis")
    return pm.Deterministic("noise", pt.exp(c + pt.dot(columns, v)), dims="row")
