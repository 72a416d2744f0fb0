"""The log marginal likelihood of Gaussian-process regression and its whole gradient, from one Cholesky factor.

log p(t|θ) = −½ log|Q| − ½ tᵀQ⁻¹t − n/2 log 2π,   ∂/∂θ_i = −½ Σ W∘∂Q/∂θ_i,   W = Q⁻¹ − aaᵀ,   a = Q⁻¹t

(Rasmussen 1996, eqs 4.15 and 4.16). A row that counts w times with noise of σ times the typical has σ²r²/w on the
diagonal, and −½(w−1) log 2πσ²r² − ½ log w beside it: what w equal targets say more than their mean.

Q, its factor, its inverse and W share the lower triangle of one n×n array, which is the upper triangle of its
transpose: LAPACK works on it in place, at powers of two faster than on the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self, override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.linalg import blas, lapack

from bayessel._check import FloatArray, as_flag, as_float_array, as_matrix, as_target, check_finite, check_magnitude
from bayessel._numerics import few_threads_of_cholesky
from bayessel._row_weights import RowWeights
from bayessel.covariance import Covariance, Prior
from bayessel.covariance.base import PANEL, Evaluation
from bayessel.covariance.standard import as_covariance
from bayessel.fit import Status
from bayessel.gp._inverse import invert

LOG_2PI = float(np.log(2.0 * np.pi))
#: up to so many rows the exponentials are kept for the gradient: beyond, making them again costs no more than memory
KEEP = 512


class Factor(NamedTuple):
    """Q = LLᵀ with L lower triangular (C-ordered, zeros above), a = Q⁻¹t, log|Q|."""

    L: FloatArray
    a: FloatArray
    log_det: float


class Process:
    """Data and covariance of a Gaussian process, checked.

    Parameters
    ----------
    X : (n, m) array
    t : (n,) array
    covariance : Covariance, optional
        Default: `bayessel.covariance.Standard`.
    weights : RowWeights, optional
        Counts and noise levels of the rows, where they differ.

    Attributes
    ----------
    names, size
        Of the parameters θ.
    status
        Of the last evaluation: ``Status.ILL_CONDITIONED`` where it was not possible in double precision.
    """

    def __init__(
        self,
        X: ArrayLike,
        t: ArrayLike,
        covariance: Covariance | None = None,
        weights: RowWeights | None = None,
    ) -> None:
        # copies: what the caller does to the arrays later must not change what was fitted
        self.X = np.array(as_matrix(X, "X", allow_1d=True))
        self.t = np.array(as_target(t, len(self.X)))
        check_magnitude(self.X, "X")
        check_magnitude(self.t, "t")
        self.covariance, self.weights = as_covariance(covariance), weights
        self.names = self.covariance.names(self.X.shape[1])
        self.size = len(self.names)
        self.status = Status.CONVERGED

    def start(self) -> FloatArray:
        """Where a search for θ begins."""
        return self.covariance.start(self.X.shape[1])

    def prior(self) -> Prior:
        """Default prior of θ."""
        return self.covariance.prior(self.X.shape[1])

    def noise(self, theta: FloatArray) -> float:
        """Variance r² of the noise at θ."""
        return self.covariance.noise(theta, self.X.shape[1])

    def as_theta(self, theta: ArrayLike, name: str = "theta") -> FloatArray:
        """θ as a vector, refused where its length is another."""
        vector = np.atleast_1d(as_float_array(theta, name))
        if vector.shape != (self.size,):
            raise ValueError(
                f"{name} must have {self.size} entries ({', '.join(self.names)}), got shape {vector.shape}"
            )
        return vector


class SearchedProcess(Process, ABC):
    """A process with a log evidence that searches for θ can ask for, on all rows or on some."""

    @abstractmethod
    def value(self, theta: ArrayLike) -> float:
        """log p(t|θ) in nats; −inf where it cannot be computed."""

    @abstractmethod
    def value_and_gradient(self, theta: ArrayLike) -> tuple[float, FloatArray]:
        """log p(t|θ) and its derivatives; (−inf, zeros) where it cannot be computed."""

    @abstractmethod
    def part(self, rows: npt.NDArray[np.intp]) -> Self:
        """The same process on some of the rows."""


class Marginal(SearchedProcess):
    """The log marginal likelihood of targets t at inputs X, a function of θ; parameters as of `Process`.

    Notes
    -----
    n³ operations for value and gradient, n³/3 for the value alone. The n×n array (two up to 512 rows) is allocated on
    first use and kept, so an object serves one thread; a pickle is the data alone.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-2.0, 2.0, 30)
    >>> marginal = Marginal(x, np.sin(2 * x))
    >>> value, gradient = marginal.value_and_gradient(marginal.covariance.start(1))
    >>> round(value, 2), gradient.round(1).tolist()
    (-9.78, [0.9, -12.2, 2.0, -0.1, -0.1])
    """

    def __init__(
        self,
        X: ArrayLike,
        t: ArrayLike,
        covariance: Covariance | None = None,
        weights: RowWeights | None = None,
    ) -> None:
        super().__init__(X, t, covariance, weights)
        self._work: _Workspace | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_work": None}

    @override
    def part(self, rows: npt.NDArray[np.intp]) -> Self:
        weights = None if self.weights is None else self.weights.part(rows)
        return type(self)(self.X[rows], self.t[rows], self.covariance, weights)

    def _threads(self) -> AbstractContextManager[None]:
        """Of BLAS, by the work of a factor."""
        return few_threads_of_cholesky(len(self.t))

    def _factorise(self, theta: ArrayLike) -> _Workspace | None:
        """The workspace with the factor in its lower triangle; None where there is none."""
        if self._work is None:
            self._work = _Workspace(self.X, self.covariance, self.weights)
        found = self._work.factorise(self.as_theta(theta))
        self.status = Status.CONVERGED if found else Status.ILL_CONDITIONED
        return self._work if found else None

    @override
    def value(self, theta: ArrayLike) -> float:
        """log p(t|θ) in nats; −inf where Q is not positive definite in double precision."""
        with self._threads():
            work = self._factorise(theta)
            return -np.inf if work is None else work.half_solved(self.t)[0]

    @override
    def value_and_gradient(self, theta: ArrayLike) -> tuple[float, FloatArray]:
        """log p(t|θ) and its derivatives; (−inf, zeros) where Q is not positive definite in double precision."""
        with self._threads():
            work = self._factorise(theta)
            if work is None:
                return -np.inf, np.zeros(self.size)
            value, v = work.half_solved(self.t)
            return value, work.gradient(work.solved(v))

    def factor(self, theta: ArrayLike) -> Factor:
        """Cholesky factor and weights at θ, for predictions; arrays of their own."""
        with self._threads():
            work = self._factorise(theta)
            if work is None:
                raise np.linalg.LinAlgError("the covariance matrix is not positive definite at this theta")
            _, v = work.half_solved(self.t)
            return Factor(np.tril(work.Q), work.solved(v), 2.0 * work.half_log_det())


class _Workspace:
    """The n×n array of one data set, and what happens in it."""

    def __init__(self, X: FloatArray, covariance: Covariance, weights: RowWeights | None = None) -> None:
        n = len(X)
        self.weights = weights
        #: the noise of each row's mean target, in units of the noise
        self.shares: Any = 1.0 if weights is None else weights.root**-2.0
        self.Q = np.empty((n, n))
        self.diagonal = self.Q.reshape(-1)[:: n + 1]
        self.evaluation: Evaluation = covariance.evaluation(X, keep=n <= KEEP)
        # two panels while they fit into the cache: each costs some 50 calls
        height = max(PANEL, (n + 1) // 2) if n <= 4 * PANEL else PANEL
        self.panels = [(slice(i, min(i + height, n)), slice(0, min(i + height, n))) for i in range(0, n, height)]
        self.half = np.tril(np.ones((height, height))) - 0.5 * np.eye(height)

    def factorise(self, theta: FloatArray) -> bool:
        """Q at θ, then its factor L; False where the numbers overflow or Q is not positive definite."""
        evaluation = self.evaluation
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if not (np.isfinite(theta).all() and evaluation.at(theta).finite):
                return False
            for rows, cols in self.panels:
                evaluation.fill(rows, cols, self.Q[rows, cols])
            np.add(evaluation.diagonal(), evaluation.noise * self.shares, out=self.diagonal)
            if not np.isfinite(self.diagonal.sum()):
                return False
        _, info = lapack.dpotrf(self.Q.T, lower=0, overwrite_a=1, clean=0)
        return bool(info == 0)

    def half_log_det(self) -> float:
        """½ log|Q|, from the factor."""
        return float(np.log(self.diagonal).sum())

    def half_solved(self, t: FloatArray) -> tuple[float, FloatArray]:
        """log p(t|θ) and L⁻¹t."""
        v = blas.dtrsv(self.Q.T, t, lower=0, trans=1)
        value = -0.5 * float(v @ v) - self.half_log_det() - 0.5 * len(v) * LOG_2PI
        return (value if self.weights is None else value + self._of_copies(self.weights)), v

    def _of_copies(self, weights: RowWeights) -> float:
        """What copies of targets say beyond their mean."""
        more = weights.count - 1.0
        with np.errstate(divide="ignore"):
            level = LOG_2PI + 2.0 * np.log(weights.std) + np.log(self.evaluation.noise)
        return -0.5 * float(more @ level + np.log(weights.count).sum())

    def solved(self, v: FloatArray) -> FloatArray:
        """L⁻ᵀv."""
        return np.asarray(blas.dtrsv(self.Q.T, v, lower=0, trans=0))

    def gradient(self, a: FloatArray) -> FloatArray:
        """Derivatives of log p(t|θ); the factor is lost."""
        Q, evaluation = self.Q, self.evaluation
        invert(Q.T)
        blas.dsyr(-1.0, a, lower=0, a=Q.T, overwrite_a=1)
        if self.weights is None:
            evaluation.pull_noise(0.5 * float(self.diagonal.sum()))
        else:
            copies = self.weights.total - len(a)
            evaluation.pull_noise(0.5 * (float(self.diagonal @ self.shares) + copies / evaluation.noise))
        for rows, cols in self.panels:
            # half of a symmetric sum: 1 below the diagonal, ½ on it; what is above is not of this θ
            size = rows.stop - rows.start
            Q[rows, rows] *= self.half[:size, :size]
            evaluation.pull(rows, cols, Q[rows, cols])
        return -evaluation.gradient()


def log_marginal(
    theta: ArrayLike, X: ArrayLike, t: ArrayLike, covariance: Covariance | None = None, return_grad: bool = False
) -> float | tuple[float, FloatArray]:
    """Log marginal likelihood of t at X in nats, with `return_grad` also its gradient; θ as `covariance.names` says.

    Examples
    --------
    >>> import numpy as np
    >>> X, t = np.zeros((1, 1)), np.zeros(1)
    >>> theta = np.log([1.0, 0.5, 1.0, 0.25, 0.25])  # v0, r2, w, a0, a1
    >>> round(log_marginal(theta, X, t), 3)  # -0.5 log(2 pi 1.75)
    -1.199
    """
    gradient = as_flag(return_grad, "return_grad")
    marginal = Marginal(X, t, covariance)
    check_finite(as_float_array(theta, "theta"), "theta")
    return marginal.value_and_gradient(theta) if gradient else marginal.value(theta)
