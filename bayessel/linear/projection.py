r"""Few functions that predict as a large model does: projection of its posterior, function by function.

The full model knows the function at the N training inputs, :math:`f \sim N(\mu, V)`, and the noise, of standard
deviation :math:`\sigma`. Each f it holds possible is replaced by the closest :math:`\Phi w`, and the noise by the
closest :math:`\sigma_\perp`, in the sense of the mean divergence of the predictive densities over the posterior (Goutis
and Robert 1998; Piironen and Vehtari 2017). For gaussians that is least squares: with P the projection on the columns
chosen,

.. math:: \sigma_\perp^2 = \sigma^2 + \frac1N\left[|(1-P)\mu|^2 + \operatorname{tr}(1-P)V\right], \qquad
          \min E_f\,\mathrm{KL} = \frac N2 \log\frac{\sigma_\perp^2}{\sigma^2}, \qquad
          w \sim N(\Phi^+\mu, \Phi^+V\Phi^{+T}).

With :math:`V = AA^T` the bracket is the sum of squares of :math:`[\mu, A]` outside the span, so the search is
orthogonal least squares for several targets at once. It never looks at the noisy targets themselves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from bayessel._check import FloatArray, IntArray, as_count, as_flag, as_matrix, as_positive, as_target, check_magnitude
from bayessel._fingerprint import fingerprint
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, worst
from bayessel.linear.columns.dictionary import ColumnSource, as_columns
from bayessel.linear.columns.fit import ColumnChoice, in_use
from bayessel.linear.columns.greedy import INTERRUPTED, until_stopped
from bayessel.linear.columns.growing_model import WORN, GrowingModel
from bayessel.prediction import Prediction

_EPS = float(np.finfo(float).eps)
#: squared share outside the model below which a candidate is no longer offered: the weights have few digits left
SPANNED = 1e-20


@dataclass(frozen=True, eq=False, kw_only=True)
class Projection(Fit):
    r"""A large model's predictions by a few functions.

    Attributes
    ----------
    order : (k,) int array
        Columns in the order in which they came.
    coef, coef_cov : (k,), (k, k) arrays
        Mean and covariance of their weights, in that order; the covariance is zero where none was given.
    intercept : float
        Weight of the bias, 0 without `centre`.
    noise_std : float
        :math:`\sigma_\perp`: the noise, and what the functions do not follow of the full model.
    divergence : (k + 1,) array
        Smallest divergence in nats of N rows at 0 … k functions.
    status, notes : Status, tuple of Status
        COLLINEAR_SKIPPED where no candidate was left outside the span before the end was reached, CANDIDATES_USED_UP
        where all of them do not come within `tol`, INTERRUPTED with the functions that had come before Ctrl-C,
        TOO_FEW_ROWS where there are as many functions as rows: no row then follows from the others.
    evidence : None
        A projection sees no observations.
    optima : tuple of ColumnChoice
        The functions that are returned, and their divergence.
    history : tuple of dict
        Size, column that came, divergence and noise at 0 … k functions.
    target_fingerprint : str
        Name of the full model's mean, which is the target of a projection.
    """

    evidence: Evidence | None = None
    order: IntArray
    coef: FloatArray
    coef_cov: FloatArray = field(repr=False)
    intercept: float
    noise_std: float
    divergence: FloatArray
    status: Status
    notes: tuple[Status, ...]
    n_rows: int
    n_candidates: int
    seconds: float
    fingerprint: str = field(repr=False)
    target_fingerprint: str = field(repr=False)
    optima: tuple[ColumnChoice, ...] = field(repr=False)
    history: tuple[Mapping[str, Any], ...] = field(repr=False)
    centre: bool = field(repr=False)
    sigma: float = field(repr=False)
    targets: FloatArray = field(repr=False)
    directions: FloatArray = field(repr=False)
    triangle: FloatArray = field(repr=False)
    coordinates: FloatArray = field(repr=False)

    @property
    def n_basis(self) -> int:
        """Number of functions."""
        return len(self.order)

    def at(self, size: int) -> Projection:
        """Return the projection on the first `size` functions."""
        size = as_count(size, "size", 0)
        if size > self.n_basis:
            raise ValueError(f"size must be at most {self.n_basis}, the functions that were chosen; got {size}")
        k = size + self.centre
        return replace(
            self,
            status=Status.CONVERGED,
            notes=(),
            **_solved(
                self.order[:size],
                self.divergence[: size + 1],
                self.directions[:, :k],
                self.triangle[:k, :k],
                self.coordinates[:k],
                self.centre,
                self.sigma,
            ),
        )

    def predict(self, rows: npt.ArrayLike) -> Prediction:
        """Predictive distributions at new rows of the dictionary: all its columns, or those of `order`, in that order.

        Where all columns are in use, rows are those of the dictionary.
        """
        inside = in_use(rows, self.order, self.n_candidates)
        mean = inside @ self.coef + self.intercept
        if self.centre:
            inside = np.hstack([np.ones((len(inside), 1)), inside])
        root = sl.solve_triangular(self.triangle, self.coordinates[:, 1:]) if self.triangle.size else np.zeros((0, 1))
        variance = ((inside @ root) ** 2).sum(axis=1) if root.size else np.zeros(len(inside))
        return Prediction.normal(mean, variance + self.noise_std**2, variance)

    def leave_one_out(self) -> LeaveOneOut:
        r"""The full model's mean at each row predicted by the projection on these functions from all other rows.

        With h the leverages, :math:`[\mu, A]_i - ((1-P)[\mu, A])_i/(1-h_i)` are the mean and the root of the variance.
        """
        outside = self.targets - self.directions @ self.coordinates
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = 1.0 - np.einsum("ij,ij->i", self.directions, self.directions)
            change = np.where(rest[:, None] > 0.0, outside / rest[:, None], np.inf)
            variances = ((self.targets[:, 1:] - change[:, 1:]) ** 2).sum(axis=1) + self.noise_std**2
        return LeaveOneOut.normal(change[:, 0], variances, self.targets[:, 0])


def project(
    F: npt.ArrayLike | ColumnSource,
    mean: npt.ArrayLike,
    noise_std: float,
    cov: npt.ArrayLike | None = None,
    *,
    size: int | None = None,
    tol: float = 1.0,
    centre: bool = False,
) -> Projection:
    r"""Choose columns of a dictionary that predict as a full model does (projection predictive forward search).

    Parameters
    ----------
    F
        Dictionary (N, P), float64 or float32, or an object with ``shape`` and ``columns(indices)``.
    mean, cov
        Posterior of the full model's function at the training inputs (without noise): mean (N,), covariance (N, N).
        Without `cov` the mean alone is projected. Memory: as much as N × min(N, rank) and P × rank numbers.
    noise_std
        The full model's noise.
    size
        Number of functions; None goes on until the divergence is below `tol`.
    tol
        Divergence in nats, all N rows together; with 1, data of this size could hardly tell the models apart.
    centre
        The bias belongs to the projection, beside the functions.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.linear import fit_evidence
    >>> rng = np.random.default_rng(0)
    >>> F = rng.normal(size=(100, 30))
    >>> t = F[:, [3, 20]] @ [2.0, -1.0] + 0.3 * rng.normal(size=100)
    >>> full = fit_evidence(F, t)
    >>> small = project(F, F @ full.coef, full.beta**-0.5, size=2)
    >>> small.order.tolist(), bool(small.noise_std > full.beta**-0.5)
    ([3, 20], True)
    """
    start = time.perf_counter()
    columns = as_columns(F, "F")
    n, p = columns.shape
    mu = as_target(mean, n, "mean")
    check_magnitude(mu, "mean")
    sigma = as_positive(noise_std, "noise_std")
    check_magnitude(np.array([sigma]), "noise_std")
    centre = as_flag(centre, "centre")
    largest = min(p, n - centre) if size is None else min(as_count(size, "size", 0), p, n - centre)
    number = isinstance(tol, int | float | np.number) and not isinstance(tol, bool)
    tol = 0.0 if number and tol == 0 else as_positive(tol, "tol")
    targets = mu[:, None] if cov is None else np.hstack([mu[:, None], _root(cov, n)])
    with columns.threads():
        model = GrowingModel(columns, targets, centre=centre, least=SPANNED, lost=WORN)
        left, stopped = _forward(model, sigma, largest, tol if size is None else -1.0)
    k = len(left) - 1  # a function that was entering when Ctrl-C came does not count
    chosen, basis = model.chosen[:k], model.basis
    k += centre
    lengths = np.append(np.ones(int(centre)), columns.lengths[chosen])
    form = basis.rows[:k].T, basis.R[:k, :k] * lengths, basis.coordinates[:k]
    divergence = np.array([_divergence(rest, n, sigma) for rest in left])
    wanted = largest if size is None else min(size, p)
    notes = []
    if stopped == INTERRUPTED:
        notes.append(Status.INTERRUPTED)
    elif len(chosen) < wanted and (size is not None or divergence[-1] > tol):
        notes.append(Status.COLLINEAR_SKIPPED)
    elif size is None and divergence[-1] > tol:
        notes.append(Status.CANDIDATES_USED_UP)
    if k == n:
        notes.append(Status.TOO_FEW_ROWS)
    return Projection(
        **_solved(np.array(chosen, dtype=np.intp), divergence, *form, centre, sigma),
        status=worst(notes),
        notes=tuple(notes),
        n_rows=n,
        n_candidates=p,
        seconds=time.perf_counter() - start,
        fingerprint=columns.fingerprint(targets),
        target_fingerprint=fingerprint(mu),
        centre=centre,
        sigma=sigma,
        targets=targets,
    )


def _divergence(left: float, n: int, sigma: float) -> float:
    """Nats of n rows for a sum of squares that is left; the ratio of the two may leave double precision."""
    return float(0.5 * n * np.logaddexp(0.0, np.log(left / n) - 2.0 * np.log(sigma))) if left > 0.0 else 0.0


def _root(cov: npt.ArrayLike, n: int) -> FloatArray:
    """A with AA^T the covariance, the directions that are rounding left out."""
    V = as_matrix(cov, "cov")
    check_magnitude(V, "cov")
    if V.shape != (n, n):
        raise ValueError(f"cov must have shape ({n}, {n}), the covariance of the function at all rows; got {V.shape}")
    size = float(np.abs(V).max())
    if np.abs(V - V.T).max() > 1e-8 * size:
        raise ValueError("cov must be symmetric: it is the covariance of the function at the training inputs")
    values, vectors = sl.eigh(V, check_finite=False)
    if values[0] < -1e-6 * max(values[-1], 0.0) or values[-1] < 0.0:
        raise ValueError(f"cov must have no negative eigenvalue, got {values[0]:.3g} (the largest is {values[-1]:.3g})")
    kept = values > _EPS * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _forward(model: GrowingModel, sigma: float, largest: int, tol: float) -> tuple[list[float], str]:
    """Orthogonal forward selection for several targets: sums of squares left at every size, and why it ended."""
    left = [model.rss]

    def gains() -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.einsum("ij,ij->i", model.d, model.d) / model.c)

    def step() -> str | None:
        if model.n_columns >= largest:
            return "max_size"
        if _divergence(left[-1], len(model.t), sigma) <= tol:
            return "tol"
        best = model.best(gains)
        if best is None:
            return "candidates"
        model.absorb(model.columns.cross(model.extend(best)[:, None])[:, 0])
        left.append(min(model.rss, left[-1]))
        return None

    return left, until_stopped(step, lambda: left)


def _solved(
    order: IntArray, divergence: FloatArray, Q: FloatArray, R: FloatArray, Z: FloatArray, centre: bool, sigma: float
) -> dict[str, Any]:
    """Fields of a `Projection` that follow from the columns and their orthogonal form."""
    W = sl.solve_triangular(R, Z) if len(R) else np.zeros((0, Z.shape[1]))
    body, noise = W[int(centre) :], sigma * np.exp(divergence / len(Q))
    steps = zip([-1, *order.tolist()], divergence.tolist(), noise.tolist(), strict=True)
    return {
        "order": order,
        "coef": body[:, 0].copy(),
        "coef_cov": body[:, 1:] @ body[:, 1:].T,
        "intercept": float(W[0, 0]) if centre else 0.0,
        "noise_std": float(noise[-1]),
        "divergence": divergence,
        "optima": (ColumnChoice(float(divergence[-1]), tuple(order.tolist())),),
        "history": tuple(
            {"size": k, "column": j, "divergence": nats, "noise_std": std} for k, (j, nats, std) in enumerate(steps)
        ),
        "directions": Q,
        "triangle": R,
        "coordinates": Z,
    }
