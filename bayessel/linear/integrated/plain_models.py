"""Plain models that every fit can be compared with: a linear trend, and the constant, hyperparameters integrated."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np
import numpy.typing as npt

from bayessel._check import as_flag, as_matrix, as_positive_vector, as_target
from bayessel._row_weights import RowWeights
from bayessel.basis import KINDS
from bayessel.linear.integrated._fit_integrated import constant, look, mixture, varies
from bayessel.linear.integrated.hyperparameter_grid import HyperparameterGrid
from bayessel.linear.integrated.mixture import IntegratedFit


def fit_trend(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    spread: npt.ArrayLike,
    centre: bool = True,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> IntegratedFit:
    """Linear regression with its ridge and noise level integrated out, in the same units as `fit_integrated`."""
    began = perf_counter()
    grid = _grid(X, t, spread, centre, noise_std, sample_weight)
    looked = look(grid, [(np.inf, 1.0)], 1.0) if varies(grid) else {}
    fit = mixture(grid, looked, 1.0, True) if looked else constant(grid)
    return replace(fit, seconds=perf_counter() - began)


def fit_constant(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    centre: bool = True,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> IntegratedFit:
    """The constant alone, its noise level integrated out; of zero without a bias."""
    X = as_matrix(X, "X", allow_1d=True)
    return constant(_grid(X, t, np.ones(X.shape[1]), centre, noise_std, sample_weight))


def _grid(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    spread: npt.ArrayLike,
    centre: bool,
    noise_std: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> HyperparameterGrid:
    """A grid without radial functions."""
    X = as_matrix(X, "X", allow_1d=True)
    as_flag(centre, "centre")
    scale = as_positive_vector(spread, "spread", X.shape[1])
    weights = RowWeights.of(len(X), noise_std, sample_weight)
    return HyperparameterGrid(X, as_target(t, len(X)), X[:1], KINDS[0], scale, centre, weights)
