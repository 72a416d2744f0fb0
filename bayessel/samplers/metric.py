"""Dense scales of a posterior: a matrix L such that L⁻¹q has unit covariance, about.

For a Gaussian of covariance Σ the gradients of the log density have covariance Σ⁻¹, so that draws and gradients both
say Σ. The positive definite Σ with Σ cov(∇) Σ = cov(q), their geometric mean, minimises the Fisher divergence between
a Gaussian and the posterior. It is exact for a Gaussian after a few more draws than there are dimensions, however they
depend on each other, where the covariance of the draws alone still is a poor guess.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_matrix, as_positive_vector

#: draws' worth of belief that the coordinates, in the scales of a diagonal mass, are independent
SHRINK = 3.0
#: how often they are drawn there
PASSES = 3


def geometric_mean(gradients: FloatArray, draws: FloatArray) -> FloatArray:
    """The positive definite Σ with Σ G Σ = C for covariances G of gradients and C of draws, both positive definite."""
    values, vectors = np.linalg.eigh(gradients)
    root = np.sqrt(values)
    half, inverse_half = (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
    values, vectors = np.linalg.eigh(half @ draws @ half)
    return np.asarray(inverse_half @ ((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T) @ inverse_half)


def dense_scale(draws: FloatArray, gradients: FloatArray, count: int, scale: FloatArray) -> FloatArray | None:
    """Lower triangular L with LLᵀ ≈ Σ from covariances of `count` draws and gradients; None if they say nothing.

    Both covariances are drawn towards independence, so that fewer draws than dimensions are enough for something better
    than a diagonal: first in the coordinates q/scale, with the scales of a diagonal mass, then in those just found, in
    which nearly independent they are.
    """
    keep, more = count / (count + SHRINK), SHRINK / (count + SHRINK)
    unit = np.eye(len(scale))
    factor = np.diag(scale)
    for _ in range(PASSES):
        with np.errstate(all="ignore"):
            C = np.linalg.solve(factor, np.linalg.solve(factor, draws).T)
            G = factor.T @ gradients @ factor
        if not (np.isfinite(C).all() and np.isfinite(G).all()):
            return None
        try:
            found = np.linalg.cholesky(geometric_mean(keep * G + more * unit, keep * C + more * unit))
        except np.linalg.LinAlgError:
            return None
        factor = factor @ found
    return factor if np.isfinite(factor).all() else None


def scale_of(mass: Any, size: int) -> FloatArray:
    """M^{-1/2} of a given mass: a vector for a number or one per coordinate, S with SSᵀ = M⁻¹ for a matrix."""
    if np.ndim(mass) != 2:
        return as_positive_vector(mass, "mass", size) ** -0.5
    matrix = as_matrix(mass, "mass")
    if matrix.shape != (size, size):
        raise ValueError(f"mass must be {size} numbers or a ({size}, {size}) matrix, got shape {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-9 * np.abs(matrix).max()):
        raise ValueError("mass must be symmetric; pass (M + M.T) / 2 if it is so but for rounding")
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(matrix)).T)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "mass must be positive definite, got smallest eigenvalue "
            f"{np.linalg.eigvalsh(matrix)[0]:g}; the Hessian of -log p is so only near a mode"
        ) from error
