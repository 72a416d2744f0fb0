"""What a trace says of the weights and of new rows where the width of the design moves with the draws, on arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from scipy.linalg import svd

from bayessel._check import FloatArray
from bayessel.models._declared import Declared
from bayessel.models._radial_design import at_width
from bayessel.models._trace_values import values_of


class MovingWeights(NamedTuple):
    """For each draw: weights (chain, draw, basis); of new rows Φw, its mean and variance (chain, draw, row)."""

    weights: FloatArray
    function: FloatArray
    mean: FloatArray
    inside: FloatArray


def moving_weights(
    model: pm.Model, mark: Declared, trace: Any, new: FloatArray, rng: np.random.Generator
) -> MovingWeights:
    """Weights and new rows of inputs, the design made anew at the width of each draw.

    The weights of a collapsed model are drawn from N(μ, Σ): with U = √β ΦA^{-1/2} = Q diag(s) V and w = A^{-1/2}u the
    coordinates Vu are independent, of mean s/(1 + s²) √β Qᵀ(t − b) and variance 1/(1 + s²), and what lies beside
    them keeps its prior.
    """
    dictionary: Any = mark.dictionary
    widths, beta, b = (values_of(model, trace, name) for name in ("width", "beta", "b"))
    X, t = model["X"].get_value(), model["t_data"].get_value()
    sizes, n_columns = beta.shape, dictionary.n_columns
    weights = np.empty((*sizes, n_columns)) if mark.collapsed else values_of(model, trace, "w")
    function, mean, inside = np.zeros((3, *sizes, len(new)))
    if mark.collapsed:
        alpha = values_of(model, trace, "alpha")
        alpha = np.broadcast_to(alpha if alpha.ndim == 3 else alpha[..., None], weights.shape)
    for index in np.ndindex(*sizes):
        here = at_width(dictionary, widths[index])
        rows = here.design(new) if len(new) else np.empty((0, n_columns))
        if mark.collapsed:
            scale = alpha[index] ** -0.5
            root = np.sqrt(beta[index])
            left, s, axes = svd(here.design(X) * (root * scale), full_matrices=False, check_finite=False)
            centre = s / (1.0 + s * s) * root * ((t - b[index]) @ left)
            u = rng.standard_normal(n_columns)
            c = axes @ u
            weights[index] = scale * (u + (centre + c / np.hypot(1.0, s) - c) @ axes)
            scaled = rows * scale
            along = scaled @ axes.T
            beside = np.maximum((scaled**2).sum(axis=1) - (along**2).sum(axis=1), 0.0)
            mean[index], inside[index] = along @ centre, beside + along**2 @ (1.0 / (1.0 + s * s))
        function[index] = rows @ weights[index]
        if not mark.collapsed:
            mean[index] = function[index]
    return MovingWeights(weights, function, mean, inside)
