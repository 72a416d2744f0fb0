"""Logistic regression on basis functions as a PyMC model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayessel._check import as_flag, as_matrix, as_positive, as_target, check_magnitude
from bayessel.models._declared import Declared, remember
from bayessel.models._labels import column_labels
from bayessel.models._linear import _constant, _given_alpha, _precision
from bayessel.models._priors import GammaPrior

#: prior standard deviation of the intercept: odds of 20 000 to 1 are two of them away
BIAS_SCALE = 5.0
#: log odds that the functions together make up under the prior, in size
TYPICAL_LOG_ODDS = 2.0


def logistic(
    Phi: npt.ArrayLike,
    y: npt.ArrayLike,
    alpha: float | npt.ArrayLike | None = None,
    *,
    bias: bool = True,
    alpha_shape: float = 0.5,
    alpha_rate: float | None = None,
    bias_scale: float = BIAS_SCALE,
    names: Sequence[str] | None = None,
) -> pm.Model:
    """Declare y ~ Bernoulli(σ(Φw + b)), w ~ N(0, A⁻¹); `pm.sample(model=...)` runs on the result.

    Parameters
    ----------
    Phi : array (N, M)
        Design: one column per function, for instance those that `bayessel.linear.fit_loomi` chose.
    y : array (N,)
        Labels 0 and 1, or -1 and 1.
    alpha : None, number or M numbers, unit [Φ]²
        Weight precision. None: one shared random variable with a Gamma prior. A number, or one per column: fixed.
    bias : bool
        Add an intercept ``b`` with the prior N(0, `bias_scale`²).
    alpha_shape, alpha_rate : float
        The Gamma prior, p(α) ∝ α^(shape-1) exp(-rate·α). By default shape = 1/2 and the rate is that of one extra
        weight seen, of the size at which the log odds of a row are about 2 in size.
    bias_scale : float
        Prior standard deviation of the intercept, in log odds.
    names : M labels, optional
        Coordinates of the dimension ``basis``; default 0 … M-1.

    Returns
    -------
    pymc.Model
        Random variables ``w`` (dimension ``basis``), ``alpha``, ``b`` and the observed ``y`` (dimension ``row``). The
        design is the data ``Phi`` and the labels are ``y_data``, so that prediction at new rows is
        ``pm.set_data({"Phi": new, "y_data": zeros}, coords={"row": rows})`` and ``pm.sample_posterior_predictive``.

    Notes
    -----
    `bayessel.steps` gives all of it to `PersistentHMC`; with ``split="conjugate"`` α to `GammaPrecisionGibbs`, and w
    and b together to `PolyaGammaGibbs`: exact draws given one auxiliary variable per row.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-1, 1, 20)
    >>> Phi = bs.RBFDictionary(x[::5], width=0.5, bias=False).design(x)
    >>> model = bs.models.logistic(Phi, abs(x) < 0.5)
    >>> sorted(variable.name for variable in model.free_RVs)
    ['alpha', 'b', 'w']
    """
    design = as_matrix(Phi, "Phi")
    check_magnitude(design, "Phi")
    n_rows, n_columns = design.shape
    labels = as_target(y, n_rows, "y")
    found = set(np.unique(labels).tolist())
    if not (found <= {0.0, 1.0} or found <= {-1.0, 1.0}):
        raise ValueError(f"y must be labels 0 and 1, or -1 and 1, got {sorted(found)[:5]}")
    labels = (labels > 0.0).astype(np.int64)
    given: Any = _given_alpha(alpha, n_columns)
    if given is None:
        shape = as_positive(alpha_shape, "alpha_shape")
        size = TYPICAL_LOG_ODDS / max(float(np.sqrt((design**2).sum(axis=1).mean())), 1e-100)
        rate = 0.5 * size**2 if alpha_rate is None else as_positive(alpha_rate, "alpha_rate")
        given = GammaPrior(shape, rate)
    with_bias, scale = as_flag(bias, "bias"), as_positive(bias_scale, "bias_scale")

    with pm.Model(coords={"row": np.arange(n_rows), "basis": column_labels(names, n_columns)}) as model:
        # data are shared variables: constants would enter the key of the compiled code, one compilation per data set
        y_data = pm.Data("y_data", labels, dims="row")
        design_data = pm.Data("Phi", design, dims=("row", "basis"))
        w = pm.Normal("w", 0.0, tau=_precision("alpha", given), dims="basis")
        log_odds = pt.dot(design_data, w)
        if with_bias:
            log_odds = log_odds + pm.Normal("b", 0.0, _constant(scale))
        observed: Any = pm.Bernoulli("y", logit_p=log_odds, observed=y_data, dims="row")
        remember(observed, Declared("logistic"))
    return model
