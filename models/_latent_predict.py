"""What a trace says of new rows where targets are independent given a function: Φw + b, or a Gaussian process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm

from bayessel._check import FloatArray
from bayessel.models._declared import Declared
from bayessel.models._gp_draws import root
from bayessel.models._latent_op import given_values
from bayessel.models._observations import PARAMETERS, SOFTMAX, Draws, drawn
from bayessel.models._trace_values import values_of


def latent_draws(
    model: pm.Model, mark: Declared, trace: Any, new: FloatArray, offset: FloatArray, rng: np.random.Generator
) -> Draws:
    """Moments and draws of new targets; `offset` is added to the latent function."""
    kind = mark.likelihood
    if mark.maker == "gp":
        f, *around = (part + offset * (k < 2) for k, part in enumerate(_process(model, mark, trace, new, rng)))
        return drawn(kind, f, _parameters(model, trace, kind, new), rng, (around[0], around[1]))
    w, b = values_of(model, trace, "w"), values_of(model, trace, "b")
    if kind == SOFTMAX:
        f = new @ w + b.reshape(*b.shape[:2], 1, -1)
    else:
        f = w @ new.T + b[..., None] + offset
    return drawn(kind, f, _parameters(model, trace, kind, new), rng)


def _parameters(model: pm.Model, trace: Any, kind: str, new: FloatArray) -> dict[str, FloatArray]:
    """Values of the likelihood's parameters for each draw, with an axis for the rows."""
    found = {name: values_of(model, trace, name)[..., None] for name in PARAMETERS.get(kind, ()) if name != "noise"}
    if kind in ("gaussian", "student"):
        found["noise"] = _noise(model, trace, new)
    return found


def _noise(model: pm.Model, trace: Any, new: FloatArray) -> FloatArray:
    """The noise, at new rows where it varies with them."""
    if "w_noise" not in model.named_vars:
        return values_of(model, trace, "noise")[..., None]
    return np.exp(values_of(model, trace, "log_noise")[..., None] + values_of(model, trace, "w_noise") @ new.T)


def _process(
    model: pm.Model, mark: Declared, trace: Any, new: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A draw of the process at new rows, and its mean and variance given its values at those that were seen."""
    X: FloatArray = model["X"].get_value()
    covariance: Any = mark.covariance
    thetas, v = values_of(model, trace, "theta"), values_of(model, trace, "v")
    function, mean, variance = np.empty((3, *thetas.shape[:2], len(new)))
    for index in np.ndindex(*thetas.shape[:2]):
        theta = thetas[index]
        mean[index], left = given_values(covariance, theta, v[index], X, new)
        variance[index] = np.maximum(np.diag(left), 0.0)
        function[index] = mean[index] + root(left) @ rng.standard_normal(len(new))
    return function, mean, variance
