r"""What Laplace's approximation and expectation propagation share: one n×n factor, and gradients from it.

Both see each row as a normal site with precision :math:`W_i \ge 0` on the latent function. With :math:`S = W^{1/2}`,

.. math:: B = I + SKS = LL^T,\quad R = SB^{-1}S = (K + W^{-1})^{-1},\quad \Sigma = (K^{-1} + W)^{-1} = K - KRK

(Rasmussen and Williams 2006, section 3.4). B is well conditioned whatever K is, so no jitter is needed.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self, override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.linalg import blas, lapack

from bayessel._check import FloatArray, as_target
from bayessel._numerics import few_threads_of_cholesky
from bayessel.count_prediction import CountPrediction
from bayessel.covariance import Bias, Covariance, Linear, Prior, SquaredExponential
from bayessel.covariance.base import PANEL, Evaluation
from bayessel.covariance.standard import as_covariance
from bayessel.fit import Status
from bayessel.gp._inverse import invert
from bayessel.gp.marginal import KEEP, SearchedProcess
from bayessel.likelihoods import Likelihood
from bayessel.prediction import ClassPrediction, Prediction

#: site precisions below this, in units of one over the prior variance, have their marginal variances from a solve
_WEAK = 1e-6
#: mean and standard deviation of the logarithm of v₀ for labels: standard deviations of the function of ½ to 5
VARIANCE_OF_LABELS = (1.0, 1.2)


def latent_covariance(covariance: Covariance | None) -> Covariance:
    """The covariance of a latent function; by default that of the thesis without its noise."""
    if covariance is None:
        return SquaredExponential() + Linear() + Bias()
    found = as_covariance(covariance)
    if found.noisy:
        raise ValueError(
            "covariance must have no noise term for a latent function, whose likelihood has a noise of its own; leave "
            "Noise() out, and take SquaredExponential() + Linear() + Bias() for Standard()"
        )
    return found


class Marginals(NamedTuple):
    """Approximate posterior of the latent values at the rows, and without each row's own site.

    Attributes
    ----------
    mean, variance : (n,) array
    cavity_mean, cavity_variance : (n,) array
        As if the row had not been seen.
    """

    mean: FloatArray
    variance: FloatArray
    cavity_mean: FloatArray
    cavity_variance: FloatArray


class Normals(NamedTuple):
    """Normal distributions of latent values: means (N,) and variances (N,); of C functions (N, C) and (N, C, C)."""

    mean: FloatArray
    variance: FloatArray


class LeftOut(NamedTuple):
    """log p(t_i | t_-i) of the rows, (n,), and the latent values as if the row had not been seen."""

    log_densities: FloatArray
    cavities: Normals


class LatentState(NamedTuple):
    """What predictions need: K⁻¹ times the mean at the rows, the roots S of the precisions, and the factor of B."""

    weights: FloatArray
    root: FloatArray
    L: FloatArray


class ApproximateMarginal(SearchedProcess):
    """An approximate log evidence of latent functions with what predicts by them.

    Attributes
    ----------
    kind : str
        Name of the approximation.
    labels : bool
        Whether targets are labels.
    n_covariance : int
        Parameters of the covariance of the (first) latent function, the first of θ.
    """

    kind: str
    labels: bool
    n_covariance: int

    def _threads(self) -> AbstractContextManager[None]:
        return few_threads_of_cholesky(len(self.t))

    @override
    def noise(self, theta: FloatArray) -> float:
        return 0.0

    def of_function(self) -> Prior:
        """Default prior of the covariance's parameters: of labels with a variance of the log odds, not of a target."""
        given = super().prior()
        if not self.labels:
            return given
        varies = np.array([name.endswith("log v0") for name in self.covariance.names(self.X.shape[1])], dtype=bool)
        varies &= given.is_normal
        first, second = (
            np.where(varies, VARIANCE_OF_LABELS[0], given.first),
            np.where(varies, VARIANCE_OF_LABELS[1], given.second),
        )
        return Prior(given.is_normal, first, second)

    @abstractmethod
    def state(self, theta: ArrayLike) -> Any:
        """What predicts at θ; arrays of their own."""

    @abstractmethod
    def function(self, state: Any, theta: FloatArray, new: FloatArray) -> Normals:
        """The latent functions at new inputs."""

    @abstractmethod
    def targets(self, there: Normals, theta: FloatArray) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions of targets where the latent functions are normal."""

    @abstractmethod
    def left_out(self, theta: ArrayLike) -> LeftOut:
        """Log densities of the rows without their own sites, and what is known of the functions there then."""


class LatentMarginal(ApproximateMarginal):
    """An approximate log evidence of a latent process; θ are covariance parameters, then those of the likelihood.

    Parameters
    ----------
    X : (n, m) array
    t : (n,) array
    covariance : Covariance or None
        Without noise. None: squared exponential with a length per input, linear part and bias.
    likelihood : Likelihood
    offset : (n,) array, optional
        Added to the latent function at the rows, such as the logarithm of an exposure.
    """

    def __init__(
        self,
        X: ArrayLike,
        t: ArrayLike,
        covariance: Covariance | None,
        likelihood: Likelihood,
        offset: ArrayLike | None = None,
    ) -> None:
        super().__init__(X, likelihood.targets(t), latent_covariance(covariance))
        self.likelihood = likelihood
        self.labels = likelihood.labels
        self.offset = np.zeros(len(self.t)) if offset is None else np.array(as_target(offset, len(self.t), "offset"))
        self.n_covariance = self.size
        self.names = (*self.names, *likelihood.names)
        self.size = len(self.names)
        self._work: LatentWorkspace | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_work": None}

    @override
    def start(self) -> FloatArray:
        return np.concatenate([super().start(), self.likelihood.start(self.t)])

    @override
    def prior(self) -> Prior:
        return Prior.join(self.of_function(), self.likelihood.prior(self.t))

    @override
    def part(self, rows: npt.NDArray[np.intp]) -> Self:
        return type(self)(self.X[rows], self.t[rows], self.covariance, self.likelihood, self.offset[rows])

    def _at(self, theta: ArrayLike) -> tuple[LatentWorkspace, FloatArray] | None:
        """The workspace with K at θ, and φ; None where the numbers leave double precision."""
        if self._work is None:
            self._work = LatentWorkspace(self.X, self.covariance)
        vector = self.as_theta(theta)
        ready = self._work.covariances(vector[: self.n_covariance])
        self.status = Status.CONVERGED if ready else Status.ILL_CONDITIONED
        return (self._work, vector[self.n_covariance :]) if ready else None

    @override
    def value(self, theta: ArrayLike) -> float:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            at = self._at(theta)
            return -np.inf if at is None else self._found(self._approximate(*at))

    @override
    def value_and_gradient(self, theta: ArrayLike) -> tuple[float, FloatArray]:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            at = self._at(theta)
            if at is None:
                return -np.inf, np.zeros(self.size)
            value = self._found(self._approximate(*at))
            if not np.isfinite(value):
                return -np.inf, np.zeros(self.size)
            return value, np.concatenate(self._gradient(*at))

    def _found(self, value: float) -> float:
        self.status = Status.CONVERGED if np.isfinite(value) else Status.ILL_CONDITIONED
        return value if np.isfinite(value) else -np.inf

    @override
    def state(self, theta: ArrayLike) -> LatentState:
        """What predicts at θ; arrays of their own."""
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            at = self._at(theta)
            if at is None or not np.isfinite(self._approximate(*at)):
                raise np.linalg.LinAlgError("the latent process has no approximation at this theta")
            work = at[0]
            weights = self._posterior_weights()
            if not work.factored and not work.factorise(work.root**2):
                raise np.linalg.LinAlgError("the latent process has no factor at this theta")
            return LatentState(weights, work.root.copy(), np.tril(work.B))

    def marginals(self, theta: ArrayLike) -> Marginals:
        """Posterior of the latent values at the rows, offsets included, and their cavities."""
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            at = self._at(theta)
            if at is None or not np.isfinite(self._approximate(*at)):
                raise np.linalg.LinAlgError("the latent process has no approximation at this theta")
            found = self._marginals(at[0])
            return found._replace(mean=found.mean + self.offset, cavity_mean=found.cavity_mean + self.offset)

    @override
    def function(self, state: LatentState, theta: FloatArray, new: FloatArray) -> Normals:
        """The latent function at new inputs, without offsets."""
        of_covariance = theta[: self.n_covariance]
        across = self.covariance.matrix(of_covariance, self.X, new)
        half, _ = lapack.dtrtrs(state.L.T, state.root[:, None] * across, lower=0, trans=1)
        prior = self.covariance.diagonal(of_covariance, new)
        left = prior - np.einsum("ij,ij->j", half, half)
        return Normals(state.weights @ across, np.maximum(left, np.finfo(float).eps * prior))

    @override
    def targets(self, there: Normals, theta: FloatArray) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions of targets where the latent function is normal."""
        return self.likelihood.predict(there.mean, there.variance, theta[self.n_covariance :])

    @override
    def left_out(self, theta: ArrayLike) -> LeftOut:
        """Log densities of the rows without their own sites, and what is known of the function there then."""
        found, phi = self.marginals(theta), self.as_theta(theta)[self.n_covariance :]
        cavities = Normals(found.cavity_mean, found.cavity_variance)
        return LeftOut(self.likelihood.tilted(self.t, *cavities, phi).log_z, cavities)

    @abstractmethod
    def _approximate(self, work: LatentWorkspace, phi: FloatArray) -> float:
        """The log evidence; the factor of B is left in the workspace."""

    @abstractmethod
    def _gradient(self, work: LatentWorkspace, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives by the covariance's parameters and by φ, after `_approximate`; the factor is lost."""

    @abstractmethod
    def _posterior_weights(self) -> FloatArray:
        """K⁻¹ times the posterior mean, after `_approximate`."""

    @abstractmethod
    def _marginals(self, work: LatentWorkspace) -> Marginals:
        """Of the latent values without offsets, after `_approximate`; the factor is lost."""


class LatentWorkspace:
    """Two n×n arrays of one data set, K and B in their lower triangles, and what happens in them."""

    def __init__(self, X: FloatArray, covariance: Covariance) -> None:
        n = len(X)
        self.K, self.B = np.empty((n, n)), np.empty((n, n))
        self.prior_variance = np.empty(n)
        self.root = np.zeros(n)
        self.factored = False
        self.evaluation: Evaluation = covariance.evaluation(X, keep=n <= KEEP)
        height = max(PANEL, (n + 1) // 2) if n <= 4 * PANEL else PANEL
        self.panels = [(slice(i, min(i + height, n)), slice(0, min(i + height, n))) for i in range(0, n, height)]
        self.half = np.tril(np.ones((height, height))) - 0.5 * np.eye(height)
        self.diagonal = self.B.reshape(-1)[:: n + 1]

    def covariances(self, theta: FloatArray) -> bool:
        """Fill K at θ; False where the numbers overflow."""
        evaluation = self.evaluation
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if not (np.isfinite(theta).all() and evaluation.at(theta).finite):
                return False
            for rows, cols in self.panels:
                evaluation.fill(rows, cols, self.K[rows, cols])
            self.prior_variance = np.array(evaluation.diagonal())
            self.K.reshape(-1)[:: len(self.K) + 1] = self.prior_variance
        return bool(np.isfinite(self.prior_variance).all())

    def whole(self) -> FloatArray:
        """K, both triangles."""
        lower = np.tril(self.K)
        return np.asarray(lower + np.tril(lower, -1).T)

    def times_K(self, v: FloatArray) -> FloatArray:
        """Kv."""
        return np.asarray(blas.dsymv(1.0, self.K.T, v, lower=0))

    def factorise(self, precisions: FloatArray) -> bool:
        """B = I + SKS for these site precisions, then its factor in the lower triangle."""
        self.root = np.sqrt(precisions)
        for rows, cols in self.panels:
            np.multiply(self.K[rows, cols], self.root[cols], out=self.B[rows, cols])
            self.B[rows, cols] *= self.root[rows, None]
        self.diagonal += 1.0
        if not np.isfinite(self.diagonal.sum()):
            return False
        _, info = lapack.dpotrf(self.B.T, lower=0, overwrite_a=1, clean=0)
        self.factored = bool(info == 0)
        return self.factored

    def half_log_det(self) -> float:
        """½ log|B|."""
        return float(np.log(self.diagonal).sum())

    def times_R(self, v: FloatArray) -> FloatArray:
        """Rv, from the factor."""
        solved, _ = lapack.dpotrs(self.B.T, self.root * v, lower=0)
        return np.asarray(self.root * solved)

    def times_inverse(self, v: FloatArray) -> FloatArray:
        """B⁻¹v, after `invert`."""
        return np.asarray(blas.dsymv(1.0, self.B.T, v, lower=0))

    def invert(self) -> tuple[FloatArray, FloatArray]:
        """Marginal variances Σ_ii and the diagonal of B⁻¹ = I − SΣS; the factor becomes the inverse."""
        weak = np.flatnonzero(self.root**2 * self.prior_variance < _WEAK)
        solved = np.empty(0)
        if weak.size:
            # (1 − B⁻¹_ii)/W_i would lose all digits
            columns = self.root[:, None] * self._columns(weak)
            half, _ = lapack.dtrtrs(self.B.T, columns, lower=0, trans=1)
            solved = self.prior_variance[weak] - np.einsum("ij,ij->j", half, half)
        invert(self.B.T)
        self.factored = False
        left = np.array(self.diagonal)
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = (1.0 - left) / self.root**2
        variances[weak] = solved
        return np.maximum(variances, np.finfo(float).tiny), left

    def _columns(self, chosen: npt.NDArray[np.intp]) -> FloatArray:
        """Columns of K, from its lower triangle."""
        n = len(self.K)
        rows = np.arange(n)[:, None]
        low, high = np.minimum(rows, chosen), np.maximum(rows, chosen)
        return np.asarray(self.K[high, low])

    def pull(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Σ M∘∂K/∂θ for M = ½(left rightᵀ + right leftᵀ) − ½R, after `invert`; the inverse is lost."""
        B, root, evaluation = self.B, self.root, self.evaluation
        for rows, cols in self.panels:
            B[rows, cols] *= -0.5 * root[rows, None]
            B[rows, cols] *= root[cols]
        blas.dsyr2(0.5, left, right, lower=0, a=B.T, overwrite_a=1)
        for rows, cols in self.panels:
            size = rows.stop - rows.start
            B[rows, rows] *= self.half[:size, :size]
            # the lower triangle stands for both
            B[rows, cols] *= 2.0
            evaluation.pull(rows, cols, B[rows, cols])
        return evaluation.gradient()
