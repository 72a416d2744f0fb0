"""The conjugate conditionals of Gaussian models as functions of arrays: draws of precisions, scales and weights.

Notation: residuals r_i = (y_i − μ_i)/s_i, n of them to each precision, S = Σ r_i²; precision of y_i is τ/s_i².
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import blas, lapack, qr

from bayessel._check import FloatArray

#: One number, or one for each element.
Number = float | FloatArray

#: Rows × columns × the smaller of them up to which a design is decomposed: a second or so.
_DECOMPOSABLE = 1e9
#: Smallest squared pivot, of a unit diagonal, at which one Cholesky factor alone keeps half the digits.
_SAFE = 1e-8
#: Smallest one at which it is a good enough preconditioner for the refinement to converge.
_REFINABLE = 1e-13


def log_gamma(shape: Number, rng: np.random.Generator) -> Any:
    """Log of x ~ Gamma(shape, 1), also where x itself underflows: x = y U^{1/shape}, y ~ Gamma(shape + 1, 1)."""
    if (shape if isinstance(shape, float) else shape.min()) >= 0.5:
        return np.log(rng.standard_gamma(shape))
    return np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(np.shape(shape)) / shape


def log_precision(shape: Number, rate: Number, n: Number, S: Number, rng: np.random.Generator) -> Any:
    """Log τ for the prior τ ~ Gamma(shape, rate): τ | r ~ Gamma(shape + n/2, rate + S/2)."""
    return log_gamma(shape + 0.5 * n, rng) - np.log(rate + 0.5 * S)


def draw_log_variance(shape: Number, scale: Number, n: Number, S: Number, rng: np.random.Generator) -> Any:
    """Log v for the prior v ~ InvGamma(shape, scale), τ = 1/v: v | r ~ InvGamma(shape + n/2, scale + S/2)."""
    return np.log(scale + 0.5 * S) - log_gamma(shape + 0.5 * n, rng)


def log_half_student_scale(log_x: Number, df: Number, A: Number, n: Number, S: Number, rng: np.random.Generator) -> Any:
    """Next log x of a chain with the conditional of x ~ half-t(df, scale A), τ = 1/x², as invariant distribution.

    x² | a ~ InvGamma(df/2, df/a), a ~ InvGamma(1/2, 1/A²) has that prior (Wand et al. 2011, Bayesian Analysis 6, eq. 2
    and result 5); a is drawn given x, used once and dropped.
    """
    shape = 0.5 * (df + 1.0) + 0.0 * n  # one draw to each element
    log_a = np.logaddexp(np.log(df) - 2.0 * log_x, -2.0 * np.log(A)) - log_gamma(shape, rng)
    rate = np.exp(np.logaddexp(np.log(df) - log_a, np.log(0.5 * S)))
    return 0.5 * (np.log(rate) - log_gamma(0.5 * (df + n), rng))


class GaussianFactor:
    """A Gaussian factor exp(−½ Σ τ (Aw − y)²): its design and, at first use, what many draws need of it.

    Parameters
    ----------
    design : array or sparse matrix (N, M)
        A.
    kept : bool
        False: A is for one draw only, and nothing is decomposed.
    """

    def __init__(self, design: Any, *, kept: bool = True) -> None:
        self.design = design
        self.kept = kept
        self._dense: FloatArray | None = None
        self._gram: FloatArray | None = None
        self._reduced: tuple[FloatArray, FloatArray | None] | None = None

    @property
    def A(self) -> FloatArray:
        """The design as a plain array."""
        if self._dense is None:
            self._dense = np.ascontiguousarray(self.design.toarray() if sparse.issparse(self.design) else self.design)
        return self._dense

    @property
    def gram(self) -> FloatArray:
        """AᵀA in Fortran order."""
        if self._gram is None:
            product = self.design.T @ self.design
            self._gram = np.asfortranarray(product.toarray() if sparse.issparse(product) else product)
        return self._gram

    @property
    def reduced(self) -> tuple[FloatArray, FloatArray | None]:
        """(R, Uᵀ) with A = UR up to the rounding of each column of A, and as few rows of R as that allows.

        Uᵀ is None where R is A itself, because it has few rows, many of them independent, or a large decomposition
        would be needed to tell.
        """
        if self._reduced is None:
            self._reduced = self._reduce() if self.kept else (self.A, None)
        return self._reduced

    def _reduce(self) -> tuple[FloatArray, FloatArray | None]:
        A = self.A
        if sparse.issparse(self.design) or A.size * min(A.shape) > _DECOMPOSABLE:
            return A, None
        size = np.sqrt(np.einsum("ij,ij->j", A, A))
        size[size == 0.0] = 1.0
        U, s, Vt = np.linalg.svd(A / size, full_matrices=False)
        k = max(1, int(np.sum(s > 0.5 * np.finfo(float).eps * s[0])))
        return np.ascontiguousarray(s[:k, None] * Vt[:k] * size), np.ascontiguousarray(U[:, :k].T)


class GaussianSpectrum:
    """w | α, β with prior precisions α c_i² and one likelihood of precision β: O(M²) per draw.

    With A diag(1/c) = U diag(s) Vᵀ, the coordinates Vᵀ diag(c) w are independent, of precision α + β s².
    """

    def __init__(self, A: FloatArray, c: FloatArray) -> None:
        self.c = c
        n, m = A.shape
        U, s, Vt = np.linalg.svd(A / c, full_matrices=m > n)
        self.s = np.zeros(m)
        self.s[: len(s)] = s
        self.s2 = self.s**2
        self.U = np.ascontiguousarray(U[:, : min(n, m)].T)
        self.back = np.asfortranarray((Vt / c).T)  # w of the coordinates
        self.forth = np.ascontiguousarray(Vt * c)

    def project(self, y: FloatArray) -> FloatArray:
        """diag(s) Uᵀ y, all the draw needs of y."""
        z = np.zeros(len(self.c))
        z[: len(self.U)] = self.U @ y
        return z * self.s

    def draw(
        self, alpha: float, beta: float, z: FloatArray, centre: FloatArray | None, rng: np.random.Generator
    ) -> FloatArray:
        """One w; `z` is ``project(y)`` and `centre` the coordinates of the prior mean, None for zero."""
        precision = alpha + beta * self.s2
        pull = beta * z if centre is None else beta * z + alpha * centre
        return self.back @ (pull / precision + rng.standard_normal(len(self.c)) / np.sqrt(precision))


def gaussian(
    factors: list[tuple[GaussianFactor, float | FloatArray, FloatArray]],
    d: FloatArray,
    m: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw w ∝ exp(−½ Σ_f Σ τ_f (A_f w − y_f)² − ½ Σ d (w − m)²).

    Solved for x = D⁻¹w with D such that the precision matrix has a unit diagonal.

    Parameters
    ----------
    factors : list of (likelihood, τ, y)
        τ one number or one per row of A.
    d, m : arrays (M,)
        Precision and mean of an independent prior; d = 0 where there is none.
    rng : numpy.random.Generator
        Source of the draw.

    Returns
    -------
    w : array (M,)
    """
    one = len(factors) == 1 and np.ndim(factors[0][1]) == 0 and d.min() > 0.0
    if one and 2 * len(factors[0][0].reduced[0]) <= len(d):
        return _by_rows(factors[0], d, m, rng)
    P: FloatArray | None = None
    rhs = d * m
    for likelihood, tau, y in factors:
        A = likelihood.A
        if np.ndim(tau) == 0:
            part = likelihood.gram * tau
            rhs = rhs + tau * (y @ A)
        else:
            part = np.asfortranarray((A * np.reshape(tau, (-1, 1))).T @ A)
            rhs = rhs + (tau * y) @ A
        P = part if P is None else np.add(P, part, out=P)
    if P is None:
        return m + rng.standard_normal(len(d)) / np.sqrt(d)
    P.ravel(order="K")[:: len(d) + 1] += d
    D = 1.0 / np.sqrt(P.diagonal())
    P *= D[:, None]
    P *= D
    # the squares of the pivots say how much of a unit diagonal is left: few digits where columns nearly cancel
    L, failed = lapack.dpotrf(P, lower=1, clean=0, overwrite_a=1)
    left = 0.0 if failed else float(np.square(L.diagonal().min()))
    if left > _SAFE:
        x = blas.dtrsv(L, rhs * D, lower=1, overwrite_x=1)
        x += rng.standard_normal(len(x))
        return D * blas.dtrsv(L, x, lower=1, trans=1, overwrite_x=1)
    if left > _REFINABLE:
        return D * _perturbed(factors, d, m, D, L, rng)
    return D * _orthogonal(factors, d, m, D, rng)


def _by_rows(
    factor: tuple[GaussianFactor, float | FloatArray, FloatArray],
    d: FloatArray,
    m: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw for a design of few rows k, or of low rank k (Bhattacharya, Chakraborty and Mallick 2016): O(k²M).

    x = u + Bᵀ(I + BBᵀ)⁻¹(√τ y − Bu − δ) with u from the prior and δ ~ N(0, I): least change that explains y.
    """
    likelihood, tau, y = factor
    R, Ut = likelihood.reduced
    k, size = R.shape
    D = 1.0 / np.sqrt(d)
    root = np.sqrt(tau)
    B = R * (root * D)
    u = m / D + rng.standard_normal(size)
    gap = root * (y if Ut is None else Ut @ y) - B @ u - rng.standard_normal(k)
    K = B @ B.T
    K.ravel()[:: k + 1] += 1.0
    E = 1.0 / np.sqrt(K.diagonal())
    K *= E[:, None]
    K *= E
    L, failed = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
    if failed or np.square(L.diagonal().min()) < _SAFE:
        E, L = np.ones(k), _triangle(B)
    q = E * lapack.dpotrs(L, E * gap, lower=1)[0]
    for _ in range(3):
        # in units of the noise: what the data determine may be a small difference of large weights
        left = gap - q - B @ (q @ B)
        if np.abs(left).max() < 1e-7:
            break
        q += E * lapack.dpotrs(L, E * left, lower=1)[0]
    return D * (u + q @ B)


def _triangle(B: FloatArray) -> FloatArray:
    """L of LLᵀ = I + BBᵀ from a QR decomposition of (B, I)ᵀ: nothing is squared."""
    k, size = B.shape
    stack = np.zeros((size + k, k), order="F")
    stack[:size] = B.T
    stack[np.arange(size, size + k), np.arange(k)] = 1.0
    return np.asfortranarray(lapack.dgeqrf(stack, lwork=32 * k, overwrite_a=1)[0][:k].T)


def _perturbed(
    factors: list[tuple[GaussianFactor, float | FloatArray, FloatArray]],
    d: FloatArray,
    m: FloatArray,
    D: FloatArray,
    L: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw by least squares on perturbed data (Papandreou and Yuille 2010), refined with residuals taken through A.

    The Cholesky factor of the squared problem is only the preconditioner, so its lost digits cost nothing.
    """
    stack = [(f.A, np.sqrt(tau), np.sqrt(tau) * y + rng.standard_normal(len(y))) for f, tau, y in factors]
    root = np.sqrt(d) * D
    prior = np.sqrt(d) * m + np.where(d > 0.0, rng.standard_normal(len(d)), 0.0)
    x = np.zeros(len(d))
    for _ in range(4):
        w = D * x
        g = root * (prior - root * x)
        for A, scale, z in stack:
            g += D * ((scale * (z - scale * (A @ w))) @ A)
        step, _ = lapack.dpotrs(L, g, lower=1)
        x += step
        if step @ step <= 1e-20 * (x @ x):
            break
    return x


def _determined(designs: list[FloatArray], has_prior: npt.NDArray[np.bool_]) -> bool:
    """Whether rows of these designs, and a prior of some columns, leave no direction free."""
    stack = np.vstack([*designs, np.eye(len(has_prior))[has_prior]])
    size = np.linalg.norm(stack, axis=0)
    if len(stack) < len(size) or not size.all():
        return False
    sizes = np.linalg.svd(stack / size, compute_uv=False)
    return bool(sizes[-1] > np.finfo(float).eps * max(stack.shape))


def _orthogonal(
    factors: list[tuple[GaussianFactor, float | FloatArray, FloatArray]],
    d: FloatArray,
    m: FloatArray,
    D: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """The same draw by a QR decomposition of the stacked rows: nothing is squared, O((N + M)M²).

    NaN where there is no prior and the rows do not determine w.
    """
    if d.min() == 0.0 and not _determined([f.A for f, _, _ in factors], d > 0.0):
        return np.full(len(d), np.nan)
    rows = [np.reshape(np.sqrt(tau), (-1, 1)) * f.A * D for f, tau, _ in factors]
    target = [np.sqrt(tau) * y for _, tau, y in factors]
    has = d > 0.0
    stack = np.asfortranarray(np.vstack([*rows, np.diag(np.sqrt(d) * D)[has]]))
    z = np.concatenate([*target, (np.sqrt(d) * m)[has]])
    # rows of large size first, columns likewise, keep a graded matrix's small entries
    order = np.argsort(-np.abs(stack).max(axis=1), kind="stable")
    Q, R, pivots = qr(stack[order], mode="economic", pivoting=True, check_finite=False)
    x = np.empty(len(d))
    x[pivots] = blas.dtrsv(np.asfortranarray(R), Q.T @ z[order] + rng.standard_normal(len(d)))
    return x
