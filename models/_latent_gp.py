"""A Gaussian process whose values at the rows are variables of the model, under any likelihood with one function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayessel._check import FloatArray
from bayessel.covariance import Bias, Covariance, Linear, SquaredExponential
from bayessel.covariance.standard import as_covariance
from bayessel.models._latent_op import LatentAtNew, LatentValues
from bayessel.models._observations import declare_parameters, observe
from bayessel.models._origin import origin


def latent_covariance(covariance: Covariance | None) -> Covariance:
    """The covariance of f: as it is given, or `Standard` without its noise."""
    return SquaredExponential() + Bias() + Linear() if covariance is None else as_covariance(covariance)


def observe_process(
    kind: str, covariance: Covariance, theta: Any, X: Any, t: Any, log_exposure: FloatArray | None
) -> Any:
    """Declare v, the process L(θ)v, the likelihood's parameters and the observed t in the model on the stack."""
    v = pm.Normal("v", 0.0, 1.0, dims="row")
    f = latent = declare_values(covariance, theta, X, v)
    if log_exposure is not None:
        f = f + pt.log(pm.Data("exposure", np.exp(log_exposure), dims="row"))
    parameters = declare_parameters(kind, np.asarray(t.get_value(), dtype=np.float64))
    # at other inputs the v of a trace are another function, from which PyMC would draw
    return observe(kind, "t", f, parameters, origin(latent, theta, v), observed=t, dims="row")


def declare_values(covariance: Covariance, theta: Any, X: Any, v: Any) -> Any:
    """Declare ``latent`` = L(θ)v, the process at the rows, in the model on the stack."""
    outputs: Any = LatentValues(covariance)(theta, X, v)
    return pm.Deterministic("latent", outputs[0], dims="row")


def latent_at(covariance: Covariance, theta: Any, v: Any, X: Any, inputs: Any, given: Any) -> Any:
    """A draw of the process at new inputs given its values L(θ)v at X, in symbols; `given` refuses other data."""
    z = pm.Normal.dist(0.0, 1.0, size=inputs.shape[:1])
    drawn: Any = LatentAtNew(covariance)(theta, v, X, inputs, given, z)
    return drawn
