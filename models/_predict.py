"""Predictions of new rows from a model and its trace, on arrays: moments exact given the parameters of each draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pymc as pm
from scipy.linalg import solve_triangular

from bayessel._check import FloatArray, as_generator
from bayessel._types import Seed
from bayessel.gp import Marginal
from bayessel.gp.noise_floor import NoiseFloor
from bayessel.mlp.compiled_passes import forward_by_name
from bayessel.models._declared import Declared, declared
from bayessel.models._gp_draws import root
from bayessel.models._latent_predict import latent_draws
from bayessel.models._marginal import scaled_solve
from bayessel.models._observations import SOFTMAX, Draws, drawn
from bayessel.models._predictive import NEW_ROW, new_offset, new_rows
from bayessel.models._radial_predict import moving_weights
from bayessel.models._trace_values import check_same_data, values_of
from bayessel.models._weights import draw_weights

if TYPE_CHECKING:
    import xarray as xr

_NETWORK = ("hidden_bias", "input_hidden", "bias", "hidden_output", "input_output")


def predict(
    model: pm.Model,
    trace: xr.DataTree,
    X: npt.ArrayLike,
    *,
    exposure: npt.ArrayLike | None = None,
    random_seed: Seed = None,
) -> xr.Dataset:
    """Predict new rows from the draws of a model of `bayessel.models`.

    Parameters
    ----------
    model : pymc.Model
        What `gp`, `linear`, `rvm`, `generalised` or `mlp` declared, with the data that the trace was sampled from.
    trace : DataTree
        What ``pm.sample``, nutpie or `bayessel.sample` returned for it.
    X : array (n, m)
        New rows: of the inputs (`gp`, `mlp`, dictionaries) or of the design (`linear`, `rvm`, `generalised`).
    exposure : array (n,) or number, optional
        What new counts are counted in; default 1, so that counts are per unit.
    random_seed : int or numpy.random.Generator
        Seed of the draws; mean and sd do not depend on it.

    Returns
    -------
    xarray.Dataset
        ``mean`` and ``sd`` of a new observation at each row (dimension ``new_row``), the parameters averaged over, and
        draws (chain, draw, ``new_row``): ``f`` of the function, and of observations under their name in the model. Of
        classes ``f`` and ``mean`` are probabilities, of softmax one for each class in the dimension ``output``; of
        counts both are means.

    Notes
    -----
    Given the parameters of a draw, mean and variance are exact where function or weights are integrated out, and of a
    latent process the function at new rows given that at those seen; over the draws, the mean is that of the means, and
    the variance is the mean of the variances plus the variance of the means.
    Student's noise with two degrees of freedom or fewer has no variance: ``sd`` is infinite then.

    A Gaussian process costs O(N³ + n³) operations for each draw: thin a long trace, ``trace.sel(draw=slice(None, None,
    10))``.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-1.5, 1.5, 20)
    >>> model = bs.models.gp(x[:, None], np.sin(2 * x))
    >>> trace = bs.sample(model, 100, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> found = bs.models.predict(model, trace, [[0.5], [1.0]])
    >>> bool((abs(found["mean"] - np.sin([1.0, 2.0])) < 0.1).all())
    True
    """
    import xarray as xr

    mark, observed = declared(model, "predict")
    new = new_rows(model, mark, X)
    check_same_data(model, trace, "predict")
    offset = new_offset(model, mark, exposure, len(new))
    rng = as_generator(random_seed, "random_seed")
    if mark.has_latent:
        found = latent_draws(model, mark, trace, new, offset, rng)
    else:
        make = {"gp": _gp, "linear": _weighted, "rvm": _weighted, "mlp": _mlp}[mark.maker]
        found = make(model, mark, trace, new, rng)
    mean = found.mean.mean(axis=(0, 1))
    variance = found.variance.mean(axis=(0, 1)) + found.mean.var(axis=(0, 1))
    rows = (NEW_ROW, "output")
    posterior: Any = trace["posterior"]

    def dims(array: FloatArray, lead: tuple[str, ...] = ()) -> tuple[str, ...]:
        return (*lead, *rows[: array.ndim - len(lead)])

    sampled = ("chain", "draw")
    return xr.Dataset(
        {
            "mean": (dims(mean), mean),
            "sd": (dims(mean), np.sqrt(variance)),
            "f": (dims(found.function, sampled), found.function),
            observed.name: (dims(found.observations, sampled), found.observations),
        },
        coords={"chain": posterior["chain"].values, "draw": posterior["draw"].values, NEW_ROW: np.arange(len(new))},
    )


def _gp(model: pm.Model, mark: Declared, trace: Any, new: FloatArray, rng: np.random.Generator) -> Draws:
    X, t = model["X"].get_value(), model["t_data"].get_value()
    covariance: Any = mark.covariance
    thetas = values_of(model, trace, "theta")
    marginal = Marginal(X, t, covariance)
    floor = NoiseFloor.of(marginal)
    mean, variance, function = np.empty((3, *thetas.shape[:2], len(new)))
    for index in np.ndindex(*thetas.shape[:2]):
        theta = thetas[index]
        factor = floor.factor(marginal, theta)
        across = covariance.matrix(theta, X, new)
        half = solve_triangular(factor.L, across, lower=True)
        left = covariance.matrix(theta, new) - half.T @ half
        mean[index] = factor.a @ across
        noise = covariance.noise(theta, X.shape[1])
        variance[index] = np.maximum(np.diag(left), 0.0) + noise
        function[index] = mean[index] + root(left) @ rng.standard_normal(len(new))
    noises = np.array([[covariance.noise(theta, X.shape[1]) for theta in chain] for chain in thetas])
    observations = function + np.sqrt(noises)[..., None] * rng.standard_normal(function.shape)
    return Draws(mean, variance, function, observations)


def _weighted(model: pm.Model, mark: Declared, trace: Any, new: FloatArray, rng: np.random.Generator) -> Draws:
    noise = 1.0 / values_of(model, trace, "beta")[..., None]
    level = values_of(model, trace, "b")[..., None]
    if mark.dictionary is not None:
        found = moving_weights(model, mark, trace, new, rng)
        function = found.function + level
        observations = function + np.sqrt(noise) * rng.standard_normal(function.shape)
        return Draws(found.mean + level, found.inside + noise, function, observations)
    if mark.collapsed:
        weights = draw_weights(model, trace, random_seed=rng).values
        mean, inside = (_separate if mark.maker == "rvm" else _shared)(model, trace, new)
    else:
        weights = values_of(model, trace, "w")
        mean, inside = weights @ new.T, np.zeros((*noise.shape[:2], len(new)))
    function = weights @ new.T + level
    observations = function + np.sqrt(noise) * rng.standard_normal(function.shape)
    return Draws(mean + level, inside + noise, function, observations)


def _shared(model: pm.Model, trace: Any, new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of Φw at new rows with one precision for all weights, or fixed ones."""
    alpha, beta, b = (values_of(model, trace, name)[..., None] for name in ("alpha", "beta", "b"))
    left, singular, axes = (model[f"Phi_{part}"].get_value() for part in ("left", "singular", "axes"))
    if "prior_scale" in model.named_vars:
        new, alpha = new * model["prior_scale"].get_value(), np.ones_like(beta)
    half = singular * np.sqrt(beta / alpha)
    centre = half * np.sqrt(beta) * ((model["t_data"].get_value() - b) @ left) / (1.0 + half**2)
    inside = new @ axes.T
    outside = np.maximum((new**2).sum(axis=1) - (inside**2).sum(axis=1), 0.0)
    mean = centre @ inside.T / np.sqrt(alpha)
    return mean, ((1.0 / (1.0 + half**2)) @ (inside**2).T + outside) / alpha


def _separate(model: pm.Model, trace: Any, new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same with a precision for each weight: C(x, x) − uᵀK⁻¹u with u = √β R A⁻¹ φ(x)."""
    log_alpha, log_beta = (np.log(values_of(model, trace, name)) for name in ("alpha", "beta"))
    left, right = model["Phi_left"].get_value(), model["Phi_right"].get_value()
    z = left.T @ model["t_data"].get_value()
    mean, variance = np.empty((2, *log_beta.shape, len(new)))
    for index in np.ndindex(*log_beta.shape):
        scale = np.exp(-0.5 * log_alpha[index])
        _, solved, U, *_ = scaled_solve(right, log_alpha[index], float(log_beta[index]), z)
        mean[index] = new @ (scale * (solved @ U)) * np.exp(0.5 * log_beta[index])
        _, s, axes = np.linalg.svd(U, full_matrices=False)
        scaled = new * scale
        inside = scaled @ axes.T
        outside = np.maximum((scaled**2).sum(axis=1) - (inside**2).sum(axis=1), 0.0)
        variance[index] = outside + inside**2 @ (1.0 / (1.0 + s**2))
    return mean, variance


def _mlp(model: pm.Model, mark: Declared, trace: Any, new: FloatArray, rng: np.random.Generator) -> Draws:
    weights = [values_of(model, trace, name) for name in _NETWORK]
    sizes = weights[0].shape[:2]
    f = np.empty((*sizes, len(new), weights[2].shape[2]))
    for index in np.ndindex(*sizes):
        f[index] = forward_by_name(*(w[index] for w in weights), new)[0]
    if mark.likelihood == SOFTMAX:
        return drawn(SOFTMAX, f, {}, rng)
    one = model["t_data"].get_value().ndim == 1
    f = f[..., 0] if one else f
    if mark.likelihood == "logistic":
        return drawn("logit", f, {}, rng)
    noise = 1.0 / np.sqrt(values_of(model, trace, "tau_noise"))
    parameters = {"noise": noise if one else noise[:, :, None, :]}
    if mark.likelihood == "student":
        nu = values_of(model, trace, "nu")
        parameters["nu"] = nu.reshape(*nu.shape, *(1,) * (f.ndim - 2))
    return drawn(mark.likelihood, f, parameters, rng)
