r"""Laplace's approximation of Gaussian processes for several classes: one function per class, one evidence for all.

.. math:: \log p(t|\theta) \approx t^T\hat f - \sum_i\log\sum_c e^{\hat f_{ic}} - \tfrac12\sum_c\hat f_c^TK^{-1}\hat f_c
    - \tfrac12\sum_c\log|B_c| - \tfrac12\log|\sum_cE_c|

with :math:`B_c = I + \pi_c^{1/2}K\pi_c^{1/2}` and :math:`E_c = \pi_c^{1/2}B_c^{-1}\pi_c^{1/2}` (Rasmussen and Williams
2006, algorithm 3.3; the last term, the determinant of what couples the classes, is missing there). All functions have
the same covariance.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self, override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.linalg import blas, lapack
from scipy.special import log_softmax, logsumexp

from bayessel._check import FloatArray
from bayessel.covariance import Covariance, Prior
from bayessel.fit import Status
from bayessel.gp.latent.latent_process import ApproximateMarginal, LatentWorkspace, LeftOut, Normals, latent_covariance
from bayessel.likelihoods.softmax import as_classes, mean_log_softmax
from bayessel.prediction import ClassPrediction

_MOST_STEPS, _HALVINGS, _CLOSE = 100, 30, 1e-11


class SoftmaxState(NamedTuple):
    """What predictions need: the weights (C, n), E_c (C, n, n) and the lower factor of their sum."""

    weights: FloatArray
    E: FloatArray
    M: FloatArray


class SoftmaxMarginal(ApproximateMarginal):
    """The log evidence of processes for several classes by Laplace's approximation.

    Parameters
    ----------
    X : (n, m) array
    t : (n,) array
        Classes 0 … C − 1.
    covariance : Covariance or None
        Of each function, without noise.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-3.0, 3.0, 30)
    >>> marginal = SoftmaxMarginal(x, np.digitize(x, [-1.0, 1.0]), None)
    >>> bool(-30 * np.log(3.0) < marginal.value(marginal.start()) < 0.0)
    True
    """

    kind = "laplace"
    labels = True

    def __init__(
        self, X: ArrayLike, t: ArrayLike, covariance: Covariance | None, classes: FloatArray | None = None
    ) -> None:
        super().__init__(X, t, latent_covariance(covariance))
        self.T = as_classes(self.t) if classes is None else classes
        self.n_covariance = self.size
        self._work: LatentWorkspace | None = None
        self._a: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_work": None, "_factors": None}

    @override
    def prior(self) -> Prior:
        return self.of_function()

    @override
    def part(self, rows: npt.NDArray[np.intp]) -> Self:
        # a class may be missing among some of the rows
        return type(self)(self.X[rows], self.t[rows], self.covariance, self.T[rows])

    def _at(self, theta: ArrayLike) -> LatentWorkspace | None:
        if self._work is None:
            self._work = LatentWorkspace(self.X, self.covariance)
        return self._work if self._work.covariances(self.as_theta(theta)) else None

    @override
    def value(self, theta: ArrayLike) -> float:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            work = self._at(theta)
            return self._found(-np.inf if work is None else self._approximate(work))

    @override
    def value_and_gradient(self, theta: ArrayLike) -> tuple[float, FloatArray]:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            work = self._at(theta)
            value = self._found(-np.inf if work is None else self._approximate(work))
            if work is None or value == -np.inf:
                return -np.inf, np.zeros(self.size)
            return value, self._gradient(work)

    def _found(self, value: float) -> float:
        good = bool(np.isfinite(value))
        self.status = Status.ILL_CONDITIONED if not good else self._how
        return value if good else -np.inf

    def _approximate(self, work: LatentWorkspace) -> float:
        """Newton's method for the mode; factors there are kept."""
        T, (n, C) = self.T, self.T.shape
        a = np.zeros((C, n)) if self._a is None else self._a
        f = _times_K(work, a)
        height = self._height(a, f)
        if not height >= (zero := -n * float(np.log(C))):
            a, f, height = np.zeros((C, n)), np.zeros((C, n)), zero
        self._how = Status.STEP_LIMIT
        for _ in range(_MOST_STEPS):
            logs = log_softmax(f, axis=0)
            pi = np.exp(logs)
            factors = self._factorise(work, pi)
            if factors is None:
                return -np.inf
            E, M, _ = factors
            slope = T.T - pi
            b = pi * f - pi * (pi * f).sum(axis=0) + slope
            c = np.einsum("cij,cj->ci", E, _times_K(work, b))
            solved, _ = lapack.dpotrs(M, c.sum(axis=0), lower=1)
            move = b - c + np.einsum("cij,j->ci", E, solved) - a
            change = _times_K(work, move)
            gain = 0.5 * float(((slope - a) * change).sum())
            step = 1.0
            for _ in range(_HALVINGS):
                new_a, new_f = a + step * move, f + step * change
                new = self._height(new_a, new_f)
                if new >= height - 1e-12 * abs(height):
                    break
                step *= 0.5
            else:
                if gain < 1e-6:
                    self._how = Status.CONVERGED
                break
            a, f, height = new_a, new_f, new
            if gain < _CLOSE * (1.0 + abs(height)):
                self._how = Status.CONVERGED
                break
        self._a, self._f = a, f
        factors = self._factorise(work, np.exp(log_softmax(f, axis=0)))
        if factors is None:
            return -np.inf
        self._factors = factors
        return height - factors[2]

    def _height(self, a: FloatArray, f: FloatArray) -> float:
        return float((self.T.T * f).sum() - logsumexp(f, axis=0).sum()) - 0.5 * float((a * f).sum())

    def _factorise(self, work: LatentWorkspace, pi: FloatArray) -> tuple[FloatArray, FloatArray, float] | None:
        """E_c (C, n, n), the lower factor of their sum, and half the log determinant."""
        C, n = pi.shape
        E, half = np.empty((C, n, n)), 0.0
        for c in range(C):
            if not work.factorise(pi[c]):
                return None
            half += work.half_log_det()
            inverse, _ = lapack.dpotri(work.B.T.copy(order="F"), lower=0, overwrite_c=1)
            inverse = np.triu(inverse)
            inverse = inverse + np.triu(inverse, 1).T
            np.multiply(work.root[:, None] * inverse, work.root, out=E[c])
        M, info = lapack.dpotrf(E.sum(axis=0), lower=1)
        if info:
            return None
        return E, np.asarray(M), half + float(np.log(np.diag(M)).sum())

    def _couplings(self, work: LatentWorkspace) -> tuple[FloatArray, FloatArray]:
        """Posterior covariances (n, C, C) of the rows, and V_c = M⁻¹E_cK (C, n, n)."""
        E, M, _ = self._factors
        K = work.whole()
        C, n = self._f.shape
        V, own = np.empty((C, n, n)), np.empty((C, n))
        for c in range(C):
            EK = E[c] @ K
            own[c] = work.prior_variance - np.einsum("ij,ij->j", K, EK)
            V[c], _ = lapack.dtrtrs(M, EK, lower=1)
        S = np.einsum("cin,din->ncd", V, V)
        S[:, np.arange(C), np.arange(C)] += own.T
        return S, V

    def _gradient(self, work: LatentWorkspace) -> FloatArray:
        E, M, _ = self._factors
        f = self._f
        pi = np.exp(log_softmax(f, axis=0))
        a = self.T.T - pi
        S, _ = self._couplings(work)
        # ∂L/∂f̂ = −½W(diag S − 2Sπ) of each row, with W = diag π − ππᵀ
        inner = np.einsum("ncc->nc", S) - 2.0 * np.einsum("ncd,dn->nc", S, pi)
        weighted = pi * inner.T
        s = -0.5 * (weighted - pi * weighted.sum(axis=0))
        Ks = np.einsum("cij,cj->ci", E, _times_K(work, s))
        solved, _ = lapack.dpotrs(M, Ks.sum(axis=0), lower=1)
        u = s - Ks + np.einsum("cij,j->ci", E, solved)
        # Σ_c of the blocks E_c − E_c(ΣE)⁻¹E_c of (K + W⁻¹)⁻¹
        total = E.sum(axis=0)
        for c in range(len(E)):
            half, _ = lapack.dtrtrs(M, E[c], lower=1)
            total -= half.T @ half
        weight = -0.5 * total
        left, right = a, 0.5 * a + u
        weight += 0.5 * (left.T @ right + right.T @ left)
        for rows, cols in work.panels:
            block = 2.0 * weight[rows, cols]
            size = rows.stop - rows.start
            block[:, rows] *= work.half[:size, :size]
            work.evaluation.pull(rows, cols, block)
        return work.evaluation.gradient()

    # ---- predicting

    @override
    def state(self, theta: ArrayLike) -> SoftmaxState:
        """What predicts at θ."""
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            work = self._at(theta)
            if work is None or not np.isfinite(self._approximate(work)):
                raise np.linalg.LinAlgError("the latent process has no approximation at this theta")
            assert self._a is not None
            E, M, _ = self._factors
            return SoftmaxState(self._a.copy(), E.copy(), M.copy())

    @override
    def function(self, state: SoftmaxState, theta: FloatArray, new: FloatArray) -> Normals:
        """Means (N, C) and covariances (N, C, C) of the functions at new inputs."""
        across = self.covariance.matrix(theta, self.X, new)
        prior = self.covariance.diagonal(theta, new)
        C = len(state.weights)
        v, own = np.empty((C, *across.shape)), np.empty((C, len(new)))
        for c in range(C):
            Ek = state.E[c] @ across
            own[c] = np.maximum(prior - np.einsum("ij,ij->j", across, Ek), np.finfo(float).eps * prior)
            v[c], _ = lapack.dtrtrs(state.M, Ek, lower=1)
        S = np.einsum("cin,din->ncd", v, v)
        S[:, np.arange(C), np.arange(C)] += own.T
        return Normals((state.weights @ across).T, S)

    @override
    def targets(self, there: Normals, theta: FloatArray) -> ClassPrediction:
        """Probabilities of the classes where the functions are normal."""
        logs = mean_log_softmax(there.mean, there.variance)
        return ClassPrediction(np.arange(self.T.shape[1]), np.exp(logs))

    @override
    def left_out(self, theta: ArrayLike) -> LeftOut:
        """Log densities of the rows without their own sites, and what is known of their functions then."""
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            work = self._at(theta)
            if work is None or not np.isfinite(self._approximate(work)):
                raise np.linalg.LinAlgError("the latent process has no approximation at this theta")
            S, _ = self._couplings(work)
            pi = np.exp(log_softmax(self._f, axis=0)).T
            W = pi[:, :, None] * np.eye(pi.shape[1]) - pi[:, :, None] * pi[:, None, :]
            # (S⁻¹ − W)⁻¹ = S(I − WS)⁻¹
            cavity = np.linalg.solve(np.eye(pi.shape[1]) - np.swapaxes(W @ S, 1, 2), np.swapaxes(S, 1, 2))
            cavity = 0.5 * (cavity + np.swapaxes(cavity, 1, 2))
            mean = self._f.T - np.einsum("ncd,nd->nc", cavity, self.T - pi)
            logs = mean_log_softmax(mean, cavity)
            return LeftOut((self.T * logs).sum(axis=1), Normals(mean, cavity))


def _times_K(work: LatentWorkspace, v: FloatArray) -> FloatArray:
    """K times the rows of v, (C, n)."""
    return np.asarray(blas.dsymm(1.0, work.K.T, v.T, lower=0).T)
