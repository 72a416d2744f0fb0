"""Weights of models in which they are integrated out, drawn exactly given the parameters of each draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayessel._check import FloatArray, as_generator
from bayessel._types import Seed
from bayessel.models._declared import declared
from bayessel.models._marginal import scaled_solve
from bayessel.models._radial_predict import moving_weights
from bayessel.models._trace_values import check_same_data, values_of

if TYPE_CHECKING:
    import xarray as xr


def draw_weights(model: pm.Model, trace: xr.DataTree, *, random_seed: Seed = None) -> xr.DataArray:
    """Draw the weights of a collapsed model: w ~ N(μ, Σ) at the parameters of each draw, exactly.

    Parameters
    ----------
    model : pymc.Model
        What `linear` or `rvm` declared with ``collapsed=True``.
    trace : DataTree
        What ``pm.sample`` or `bayessel.sample` returned for it.
    random_seed : int or numpy.random.Generator
        Seed of the draws.

    Returns
    -------
    xarray.DataArray
        ``w`` of dimensions chain, draw, basis; ``trace.posterior["w"] = w`` keeps it with the rest, and
        ``Phi_new @ w`` are draws of the function at new rows, with the intercept ``b`` beside it where there is one. Of
        a model with a ``width`` the design of each draw is another one: take `predict`.

    Notes
    -----
    By Bhattacharya, Chakraborty and Mallick (2016): draw (u, v) from the joint prior of weights and data, then add
    what the mismatch t − v says about the weights; O(k²M) per draw with k = min(N, M). With one precision for all
    weights the decomposition of the design is there already, and a draw costs O(kM).

    Examples
    --------
    >>> import bayessel as bs
    >>> x = np.linspace(-1.0, 1.0, 20)
    >>> model = bs.models.linear(x[:, None] ** [1, 2], 3.0 * x + 0.1 * np.cos(20.0 * x), collapsed=True)
    >>> trace = bs.sample(model, 50, tune=100, chains=2, random_seed=1, quiet=True)
    >>> w = draw_weights(model, trace, random_seed=1)
    >>> w.sizes["basis"], bool(abs(w[..., 0].mean() - 3.0) < 0.2)
    (2, True)
    """
    import xarray as xr

    mark, _ = declared(model, "draw_weights")
    if not mark.collapsed:
        raise ValueError(
            "draw_weights needs a model declared by bs.models.linear or bs.models.rvm with collapsed=True, "
            f"got one of bs.models.{mark.maker}" + (" that has w" if "w" in model.named_vars else "")
        )
    check_same_data(model, trace, "draw_weights")
    rng = as_generator(random_seed, "random_seed")
    if mark.dictionary is not None:
        nowhere = np.empty((0, model["X"].get_value().shape[1]))
        weights = moving_weights(model, mark, trace, nowhere, rng).weights
    else:
        alpha, beta, b = (values_of(model, trace, name) for name in ("alpha", "beta", "b"))
        target = model["t_data"].get_value()
        draw = _separate if mark.maker == "rvm" else _shared
        weights = draw(model, target, alpha, beta, b, rng)
    posterior: Any = trace["posterior"]
    coords = {"chain": posterior["chain"], "draw": posterior["draw"], "basis": np.asarray(model.coords["basis"])}
    return xr.DataArray(weights, dims=("chain", "draw", "basis"), coords=coords, name="w")


def _separate(
    model: pm.Model, target: FloatArray, alpha: Any, beta: Any, b: Any, rng: np.random.Generator
) -> FloatArray:
    """One precision for each weight."""
    left, right = model["Phi_left"].get_value(), model["Phi_right"].get_value()
    z = left.T @ target
    log_alpha, log_beta = np.log(alpha), np.log(beta)
    weights = np.empty_like(log_alpha)
    for index in np.ndindex(*log_beta.shape):
        weights[index] = one_draw(right, z, log_alpha[index], float(log_beta[index]), rng)
    return weights


def one_draw(
    R: FloatArray, z: FloatArray, log_alpha: FloatArray, log_beta: float, rng: np.random.Generator
) -> FloatArray:
    """One w ~ N(βΣRᵀz, Σ), Σ = (βRᵀR + A)⁻¹."""
    scale, noise = np.exp(-0.5 * log_alpha), np.exp(-0.5 * log_beta)
    u = scale * rng.standard_normal(len(log_alpha))
    v = R @ u + noise * rng.standard_normal(len(z))
    _, solved, U, *_ = scaled_solve(R, log_alpha, log_beta, z - v)
    return np.asarray(u + scale * (solved @ U) / noise)


def _shared(model: pm.Model, target: FloatArray, alpha: Any, beta: Any, b: Any, rng: np.random.Generator) -> FloatArray:
    """ΦS = U diag(s) V with S the prior scales for α = 1: coordinates Vw/S are independent given the rest."""
    left, singular, axes = (model[f"Phi_{part}"].get_value() for part in ("left", "singular", "axes"))
    own = model["prior_scale"].get_value() if "prior_scale" in model.named_vars else 1.0
    unit = alpha if "prior_scale" not in model.named_vars else np.ones_like(beta)
    half = singular * np.sqrt(beta / unit)[..., None]
    z = np.sqrt(beta)[..., None] * ((target - b[..., None]) @ left)
    u = rng.standard_normal((*beta.shape, axes.shape[1]))
    c = u @ axes.T
    moved = c / np.hypot(1.0, half) + half * z / (1.0 + half**2)
    return np.asarray((u + (moved - c) @ axes) * own / np.sqrt(unit)[..., None])
