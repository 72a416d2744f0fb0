"""Multivariate adaptive regression splines on plain arrays (Friedman 1991)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.baselines.engines.hinges import Function, rounded_off, values
from bayessel.baselines.engines.linear_fit import noise_floor
from bayessel.baselines.engines.mars_backward import effective_number, prune
from bayessel.baselines.engines.mars_forward import grow
from bayessel.fit import Status


@dataclass(frozen=True, eq=False)
class MARSFit:
    """A sum of products of hinges.

    Attributes
    ----------
    functions : list
        Products of hinges in scaled inputs (x - low)/scale; the constant comes before them in `coef`.
    coef : (M + 1,) array
        Weights, the constant's first.
    low, scale : (D,) arrays
        Smallest value and range of each input.
    noise_variance : float
        Residual sum of squares over N less the effective number of parameters.
    root : (M + 1, R) array
        (HᵀH)⁻¹ = root rootᵀ of the columns H.
    gcv : float
        Generalised cross-validation of the pruned model with linear pieces, in squared units of y.
    effective : float
        Effective number of parameters C̃.
    path : list
        (columns, residual sum of squares, GCV) while functions left.
    history : list
        Steps of the forward pass.
    status : Status
        How it went.
    """

    functions: list[Function]
    coef: FloatArray
    low: FloatArray
    scale: FloatArray
    noise_variance: float
    root: FloatArray
    gcv: float
    effective: float
    path: list[tuple[int, float, float]]
    history: list[dict[str, float]]
    status: Status

    def design(self, X: FloatArray) -> FloatArray:
        """Columns (n, M + 1) of the constant and all functions."""
        return values(self.functions, (X - self.low) / self.scale)

    def predict(self, X: FloatArray) -> FloatArray:
        """Mean (n,)."""
        return self.design(X) @ self.coef

    def variance(self, X: FloatArray) -> FloatArray:
        """Variance (n,) of a new observation, as if the functions had been known: σ² + σ² hᵀ(HᵀH)⁻¹h."""
        return np.asarray(self.noise_variance * (1.0 + ((self.design(X) @ self.root) ** 2).sum(axis=1)))


def default_functions(n_inputs: int) -> int:
    """Most functions where the user names no number: twice the inputs, 20 to 200."""
    return min(200, max(20, 2 * n_inputs))


def fit_mars(
    X: FloatArray,
    y: FloatArray,
    *,
    max_functions: int | None = None,
    max_degree: int = 1,
    penalty: float | None = None,
    min_span: int | None = None,
    end: int | None = None,
    pieces: str = "linear",
    step: Callable[[int, int], None] | None = None,
) -> MARSFit:
    """Fit a target (N,) to inputs (N, D).

    `penalty` is what a knot costs in parameters: None for 3, or 2 where `max_degree` is 1 (the paper's section 3.6).
    `pieces` 'cubic' gives continuous slopes: the corners are rounded off after pruning, and the weights fitted again.
    """
    N, D = X.shape
    charge = (3.0 if max_degree > 1 else 2.0) if penalty is None else penalty
    low, high = X.min(axis=0), X.max(axis=0)
    scale = np.where(high > low, high - low, 1.0)
    scaled = (X - low) / scale
    mean = float(y.mean())
    size = float(y.std())
    floor = float(noise_floor(y[:, None])[0])
    if size**2 <= floor or N < 3:
        status = Status.CONSTANT_TARGET if size**2 <= floor else Status.TOO_FEW_ROWS
        root = np.full((1, 1), 1.0 / np.sqrt(N))
        noise = max(float(np.sum((y - mean) ** 2)) / max(N - 1, 1), floor)
        return MARSFit([], np.array([mean]), low, scale, noise, root, noise, 1.0, [], [], status)
    t = (y - mean) / size
    grown = grow(
        scaled,
        t,
        max_functions=default_functions(D) if max_functions is None else max_functions,
        max_degree=max_degree,
        min_span=min_span,
        end=end,
        step=step,
    )
    pruned = prune(values(grown.functions, scaled), t, grown.knots, charge)
    functions = [grown.functions[j - 1] for j in pruned.kept if j > 0]
    if pieces == "cubic":
        functions = rounded_off(functions, np.zeros(D), np.ones(D))
    coef, root, squares = least_squares(values(functions, scaled), t)
    effective = effective_number(pruned.kept, grown.knots, charge)
    noise = size**2 * squares / max(N - effective, 1.0)
    coef = size * coef
    coef[0] += mean
    status = Status.CONVERGED
    if noise <= N * floor:
        status = Status.NOISE_AT_FLOOR
    if grown.interrupted:
        status = Status.INTERRUPTED
    return MARSFit(
        functions,
        coef,
        low,
        scale,
        max(noise, floor),
        root,
        size**2 * pruned.gcv,
        effective,
        [(count, size**2 * rss, size**2 * score) for count, rss, score in pruned.path],
        grown.history,
        status,
    )


def least_squares(H: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Weights, a root of (HᵀH)⁻¹ and the residual sum of squares; directions within rounding of zero are left out."""
    size = np.sqrt((H**2).sum(axis=0))
    size = np.where(size > 0.0, size, 1.0)
    U, s, Vt = np.linalg.svd(H / size, full_matrices=False)
    used = s > 1e-10 * s[0]
    along = U[:, used].T @ t
    root: Any = Vt[used].T / s[used] / size[:, None]
    return root @ along, root, float(np.sum((t - U[:, used] @ along) ** 2))
