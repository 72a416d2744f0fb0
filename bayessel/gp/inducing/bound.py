r"""The variational lower bound of the log marginal likelihood with M inducing inputs, and its whole gradient.

.. math::
    F = \log N(t \mid 0, Q + r^2 I) - \tfrac{1}{2r^2} \operatorname{tr}(K - Q),
    \qquad Q = K_{XZ} K_{ZZ}^{-1} K_{ZX}

(Titsias 2009, eq. 9). Bias and linear terms are not approximated: their weights stand beside the inducing values, so
that K and Q differ in the other terms only. With V the columns of L⁻¹K_{ZX} (LLᵀ = K_{ZZ}) above those of the scaled
features, and B = I + VVᵀ/r², everything is a sum over blocks of rows: memory is O(M² + block M), work 4-5 n M².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import blas, lapack, solve_triangular

from bayessel._check import FOURTH_POWERS, FloatArray, as_matrix, check_magnitude
from bayessel._numerics import local_minima
from bayessel.covariance import Covariance
from bayessel.fit import Status
from bayessel.gp.inducing.covariance_parts import parts_of
from bayessel.gp.inducing.cross_covariance import Cross
from bayessel.gp.marginal import Process

#: added to the diagonal of K_ZZ, relative to its mean. It stays a bound: that of inducing values seen through noise
JITTER = 1e-10
#: entries of V that are kept from the first pass over the data for the second, rather than computed anew
KEPT_ENTRIES = 2**24
#: entries of a block: it and its like should stay in the cache
BLOCK_ENTRIES = 2**18


class InducingFactor(NamedTuple):
    """What predictions need: K_ZZ = LLᵀ, B = RRᵀ, and the weights B⁻¹V t/r² of the whitened inducing values."""

    L: FloatArray
    R: FloatArray
    weights: FloatArray


class _Sums(NamedTuple):
    """One pass over the data: factors, sums, and V in blocks if there was room."""

    L: FloatArray
    R: FloatArray
    B: FloatArray
    c: FloatArray
    unexplained: float
    value: float
    blocks: list[FloatArray] | None


class InducingMarginal(Process):
    """Lower bound of log p(t|θ), a function of θ and of inducing inputs Z.

    Parameters
    ----------
    X, t, covariance
        As of `bayessel.gp.Marginal`; bias and linear terms are not approximated.
    jitter : float
        Added to the diagonal of K_ZZ, relative to its mean; it can only lower the bound.
    """

    def __init__(
        self, X: ArrayLike, t: ArrayLike, covariance: Covariance | None = None, jitter: float = JITTER
    ) -> None:
        super().__init__(X, t, covariance)
        check_magnitude(self.t, "t", FOURTH_POWERS)
        self.jitter = jitter
        self.parts = parts_of(self.covariance, self.X.shape[1])
        self._positions = self.parts.positions
        design = self.parts.design(self.X)
        self._gram, self._design_t = design.T @ design, design.T @ self.t
        self._tt = float(self.t @ self.t)

    # ------------------------------------------------------------------ values

    def value(self, theta: ArrayLike, Z: ArrayLike) -> float:
        """The bound in nats; −inf where K_ZZ is not positive definite in double precision."""
        sums = self._pass(*self._arguments(theta, Z), keep=False)[0]
        return -np.inf if sums is None else sums.value

    def value_and_gradient(self, theta: ArrayLike, Z: ArrayLike) -> tuple[float, FloatArray, FloatArray]:
        """The bound and its derivatives by θ and by Z; (−inf, zeros, zeros) where `value` is −inf."""
        theta, Z = self._arguments(theta, Z)
        by_theta, by_Z = np.zeros(self.size), np.zeros_like(Z)
        sums, kernels = self._pass(theta, Z, keep=len(self.t) * len(Z) <= KEPT_ENTRIES)
        if sums is None:
            return -np.inf, by_theta, by_Z
        r2, M = self.covariance.noise(theta, self.X.shape[1]), len(Z)
        # everything below is in whitened coordinates; see the derivation in docs/inducing.md
        inverse, _ = lapack.dpotri(sums.R, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        weights = solve_triangular(sums.R, sums.c, lower=True, trans="T", check_finite=False)
        pull_V = -inverse[:M]
        pull_V[:, :M].flat[:: M + 1] += 1.0
        pull_V = solve_triangular(sums.L, pull_V, lower=True, trans="T", check_finite=False)
        mean_weights = solve_triangular(sums.L, weights[:M], lower=True, trans="T", check_finite=False)
        misfit = self._pull_blocks(theta, sums, kernels, pull_V / r2, mean_weights / r2, weights)
        inner = sums.B[:M, :M] + inverse[:M, :M] + np.outer(weights[:M], weights[:M])
        inner.flat[:: M + 1] -= 2.0
        half = solve_triangular(sums.L, inner, lower=True, trans="T", check_finite=False)
        by_K = -0.5 * solve_triangular(sums.L, half.T, lower=True, trans="T", check_finite=False)
        by_K.flat[:: M + 1] += self.jitter * np.trace(by_K) / M
        for kernel in kernels:
            kernel.pull_among(by_K, kernel.among())
            kernel.pull_variance(-0.5 / r2)
            kernel.add_gradient(by_theta, by_Z)
        scale = 0.5 * (np.diag(inverse)[M:] + weights[M:] ** 2 - 1.0)
        np.add.at(by_theta, self._positions, scale)
        n_seen = len(weights) - float(np.trace(inverse))
        by_log_noise = 0.5 * ((misfit + sums.unexplained) / r2 + n_seen - len(self.t))
        for position in self.parts.noise:
            by_theta[position] += by_log_noise * np.exp(theta[position]) / r2
        return sums.value, by_theta, by_Z

    def upper(self, theta: ArrayLike, Z: ArrayLike) -> float:
        """An upper bound of log p(t|θ) itself (Titsias 2014): the evidence lies between this and `value`."""
        theta, Z = self._arguments(theta, Z)
        sums, _ = self._pass(theta, Z, keep=False)
        if sums is None:
            return np.inf
        n, r2 = len(self.t), self.covariance.noise(theta, self.X.shape[1])
        # |Q + r²I| from below, and the quadratic form with all of tr(K − Q) given to the noise
        wide = r2 + max(sums.unexplained, 0.0)
        S = (sums.B - np.eye(len(sums.B))) * (r2 / wide)
        S.flat[:: len(S) + 1] += 1.0
        R, info = lapack.dpotrf(S, lower=1)
        if info:
            return np.inf
        Vt = sums.R @ sums.c * r2
        c = solve_triangular(R, Vt, lower=True, check_finite=False) / wide
        log_det = n * np.log(2.0 * np.pi * r2) + 2.0 * float(np.log(np.diag(sums.R)).sum())
        return -0.5 * float(log_det + self._tt / wide - c @ c)

    def best_noise(self, theta: ArrayLike, Z: ArrayLike) -> FloatArray:
        """θ with the one noise variance that makes the bound highest, all else held; θ itself where there is no one.

        In the eigenvectors of VVᵀ the bound is a sum over M terms for every r², so that this costs one pass.
        """
        theta, Z = self._arguments(theta, Z)
        theta = theta.copy()
        sums, _ = self._pass(theta, Z, keep=False)
        if sums is None or len(self.parts.noise) != 1:
            return theta
        n, r2 = len(self.t), self.covariance.noise(theta, self.X.shape[1])
        s, U = np.linalg.eigh(sums.B)
        s = np.maximum(s - 1.0, 0.0) * r2
        along = (U.T @ (sums.R @ sums.c) * r2) ** 2
        rest = self._tt + max(sums.unexplained, 0.0)

        def minus_bound(log_noise: FloatArray) -> FloatArray:
            noise = np.exp(log_noise)[:, None]
            terms = np.log1p(s / noise) - along / (noise * (noise + s))
            return n * log_noise + rest / noise[:, 0] + terms.sum(axis=1)

        power = np.log(max(rest, 1e-300) / n)
        grid = np.linspace(power - 25.0, power + 1.0, 105)
        found = local_minima(minus_bound, grid)
        if found:
            theta[self.parts.noise[0]] = found[0][0]
        return theta

    def factor(self, theta: ArrayLike, Z: ArrayLike) -> InducingFactor:
        """Factors and weights for predictions."""
        sums, _ = self._pass(*self._arguments(theta, Z), keep=False)
        if sums is None:
            raise np.linalg.LinAlgError("the covariance of the inducing inputs is not positive definite at this theta")
        weights = solve_triangular(sums.R, sums.c, lower=True, trans="T", check_finite=False)
        return InducingFactor(sums.L, sums.R, weights)

    def predict(
        self, theta: ArrayLike, Z: ArrayLike, factor: InducingFactor, Xnew: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the noise-free function at new inputs, O(M²) each."""
        theta, Z = self._arguments(theta, Z)
        X = as_matrix(Xnew, "Xnew", allow_1d=True)
        if X.shape[1] != Z.shape[1]:
            raise ValueError(f"Xnew must have {Z.shape[1]} columns, as X had, got shape {X.shape}")
        check_magnitude(X, "Xnew", tiny=True)
        mean, unseen, seen = self._predicted(theta, Z, factor, X)
        return mean, np.maximum(unseen + seen, 0.0)

    def leave_one_out(self, theta: ArrayLike, Z: ArrayLike, factor: InducingFactor) -> tuple[FloatArray, FloatArray]:
        """Errors of each row predicted from all others, and the variances of those predictions, noise included.

        Exact for N(0, Q + r²I): with h = vᵀB⁻¹v/r² of a row, its error is residual/(1 − h), its variance r²/(1 − h);
        what the inducing inputs do not see of the row, k − q, is added to the variance, as for new rows.
        """
        theta, Z = self._arguments(theta, Z)
        r2 = self.covariance.noise(theta, self.X.shape[1])
        residuals, alone, unseen = self.residuals(theta, Z, factor)
        # rows that nothing but themselves determine have infinite errors and variances
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.where(alone > 0.0, residuals / alone, np.inf)
            return errors, r2 / alone + unseen

    def residuals(self, theta: FloatArray, Z: FloatArray, factor: InducingFactor) -> FloatArray:
        """Residuals Pt of the fitted mean, the diagonal 1 − h of P = r²(Q + r²I)⁻¹, and k − q of each row, (3, n)."""
        mean, unseen, seen = self._predicted(theta, Z, factor, self.X)
        share = 1.0 - seen / self.covariance.noise(theta, self.X.shape[1])
        return np.array([self.t - mean, np.maximum(share, 0.0), np.maximum(unseen, 0.0)])

    def _predicted(self, theta: FloatArray, Z: FloatArray, factor: InducingFactor, X: FloatArray) -> FloatArray:
        """At inputs X: mean, variance that Z does not see, variance of the rest given the targets; (3, rows)."""
        kernels, found = self.parts.at(theta, X, Z), np.empty((3, len(X)))
        for rows in _blocks(len(X), len(Z)):
            V, F = _whiten(factor.L, _values(kernels, rows, len(Z))), self._features(theta, X[rows])
            both = np.hstack([V, F])
            rest = solve_triangular(factor.R, both.T, lower=True, check_finite=False)
            found[0, rows] = both @ factor.weights
            found[1, rows] = sum(kernel.variances(rows) for kernel in kernels) - np.einsum("ij,ij->i", V, V)
            found[2, rows] = np.einsum("ij,ij->j", rest, rest)
        return found

    def unexplained(self, theta: ArrayLike, Z: ArrayLike) -> float:
        """tr(K − Q)/tr(K), the fraction of prior variance of the rows that Z does not see; features left out."""
        theta, Z = self._arguments(theta, Z)
        sums, kernels = self._pass(theta, Z, keep=False)
        if sums is None:
            return float("nan")
        whole = sum(float(kernel.variances(slice(0, len(self.t))).sum()) for kernel in kernels)
        return max(sums.unexplained, 0.0) / whole

    # ------------------------------------------------------------------ passes over the data

    def _arguments(self, theta: ArrayLike, Z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        vector, places = self.as_theta(theta), as_matrix(Z, "Z", allow_1d=True)
        if places.shape[1] != self.X.shape[1]:
            raise ValueError(f"Z must have {self.X.shape[1]} columns, as X has, got shape {places.shape}")
        return vector, places

    def _features(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        return self.parts.design(X) * np.exp(0.5 * theta[self._positions])

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def _pass(self, theta: FloatArray, Z: FloatArray, keep: bool) -> tuple[_Sums | None, list[Cross]]:
        n, M, q = len(self.t), len(Z), len(self._positions)
        kernels = self.parts.at(theta, self.X, Z)
        r2 = self.covariance.noise(theta, self.X.shape[1])
        scales = np.exp(0.5 * theta[self._positions])
        K = np.asarray(np.sum([kernel.among() for kernel in kernels], axis=0))
        K.flat[:: M + 1] += self.jitter * np.trace(K) / M
        good = np.isfinite(K).all() and np.isfinite(scales).all() and r2 > 0.0 and np.isfinite(r2)
        L, info = lapack.dpotrf(K.T, lower=1) if good else (K, 1)
        if info:
            self.status = Status.ILL_CONDITIONED
            return None, kernels
        B, Vt = np.zeros((M + q, M + q), order="F"), np.empty(M + q)
        inner, beside, V_t = np.zeros((M, M), order="F"), np.zeros((q, M)), np.zeros(M)
        blocks: list[FloatArray] | None = [] if keep else None
        for rows in _blocks(n, M):
            V = _whiten(L, _values(kernels, rows, len(Z)))
            inner = blas.dsyrk(1.0, V.T, beta=1.0, c=inner, lower=1, overwrite_c=1)
            beside += self.parts.design(self.X[rows]).T @ V
            V_t += self.t[rows] @ V
            if blocks is not None:
                blocks.append(V)
        explained = float(np.trace(inner))
        B[:M, :M] = np.tril(inner) + np.tril(inner, -1).T
        B[M:, :M] = scales[:, None] * beside
        B[:M, M:] = B[M:, :M].T
        B[M:, M:] = scales[:, None] * self._gram * scales
        Vt[:M], Vt[M:] = V_t, scales * self._design_t
        B /= r2
        B.flat[:: M + q + 1] += 1.0
        R, info = lapack.dpotrf(B, lower=1) if np.isfinite(B).all() else (B, 1)
        if info:
            self.status = Status.ILL_CONDITIONED
            return None, kernels
        self.status = Status.CONVERGED
        c = solve_triangular(R, Vt, lower=True, check_finite=False) / r2
        unexplained = sum(float(kernel.variances(slice(0, n)).sum()) for kernel in kernels) - explained
        value = -0.5 * float(n * np.log(2.0 * np.pi * r2) + (self._tt + unexplained) / r2 - c @ c)
        value -= float(np.log(np.diag(R)).sum())
        if not np.isfinite(value):
            self.status = Status.ILL_CONDITIONED
            return None, kernels
        return _Sums(L, R, B, c, unexplained, value, blocks), kernels

    def _pull_blocks(
        self,
        theta: FloatArray,
        sums: _Sums,
        kernels: list[Cross],
        pull_V: FloatArray,
        pull_misfit: FloatArray,
        weights: FloatArray,
    ) -> float:
        """Second pass: hand every block of ∂F/∂k(X, Z) to the kernels; returns |t − mean|²."""
        M = len(pull_misfit)
        left, right = np.asfortranarray(pull_V[:, :M]), np.vstack([pull_V[:, M:].T, pull_misfit])
        misfit = 0.0
        for k, rows in enumerate(_blocks(len(self.t), M)):
            K = [kernel.values(rows, np.empty((rows.stop - rows.start, M))) for kernel in kernels]
            if sums.blocks is not None:
                V = sums.blocks[k]
                sums.blocks[k] = np.empty(0)
            else:
                V = _whiten(sums.L, sum(K[1:], K[0].copy()))
            F = self._features(theta, self.X[rows])
            residual = self.t[rows] - V @ weights[:M] - F @ weights[M:]
            misfit += float(residual @ residual)
            H = np.column_stack([F, residual]) @ right
            H = blas.dgemm(1.0, left, V.T, beta=1.0, c=H.T, overwrite_c=1).T
            for i, (kernel, values) in enumerate(zip(kernels, K, strict=True)):
                kernel.pull(rows, H if i == len(kernels) - 1 else H.copy(), values)
        return misfit


def _values(kernels: list[Cross], rows: slice, M: int) -> FloatArray:
    """k(X[rows], Z), all terms."""
    out = kernels[0].values(rows, np.empty((rows.stop - rows.start, M)))
    for kernel in kernels[1:]:
        out += kernel.values(rows, np.empty_like(out))
    return out


def _whiten(L: FloatArray, K: FloatArray) -> FloatArray:
    """Rows L⁻¹k(Z, x), one for each row of K = k(X, Z), which is overwritten."""
    return np.asarray(blas.dtrsm(1.0, L, K.T, lower=1, overwrite_b=1).T)


def _blocks(n: int, M: int) -> list[slice]:
    step = max(64, BLOCK_ENTRIES // max(M, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]
