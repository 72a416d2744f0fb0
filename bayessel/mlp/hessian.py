r"""The exact Hessian of a network's log likelihood, and searches and Gaussian peaks that are made of it.

With f_k = Σ_h v_hk z_h + …, z_h = tanh(ũ_h·x̃), x̃ = (1, x), and a loss ℓ(f) of each row,

.. math:: \nabla\nabla \ell = \sum_{kl} J_k^T \frac{\partial^2\ell}{\partial f_k\partial f_l} J_l
          + \sum_k \frac{\partial\ell}{\partial f_k} \nabla\nabla f_k.

∇∇f_k joins weights of one hidden unit only: v_hk z_h″ x̃x̃ᵀ among ũ_h, z_h′ x̃ between ũ_h and v_hk. So the exact Hessian
costs hardly more than the first sum, which is the Gauss-Newton approximation (Bishop 1992).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from bayessel._check import FloatArray
from bayessel.mlp.architecture import Architecture, backward, forward
from bayessel.mlp.targets import KINDS, link


class NetworkProblem(NamedTuple):
    """Data, the kind of likelihood, the network."""

    X: FloatArray
    T: FloatArray
    kind: str
    architecture: Architecture


class Point(NamedTuple):
    """Packed weights, outputs (n, K), hidden values (n, H), predictions (n, K), derivatives of the loss by outputs."""

    q: FloatArray
    f: FloatArray
    Z: FloatArray
    p: FloatArray
    df: FloatArray


def loss_at(problem: NetworkProblem, q: FloatArray, beta: FloatArray) -> tuple[float, Point]:
    """Minus log likelihood at weights q with noise precisions β (K,), constants left out; what derivatives need."""
    from bayessel.mlp.compiled_passes import NUMBERS, likelihood

    f, Z = forward(problem.architecture.split(q), problem.X)
    by_f = np.array(f.T, order="C")
    precision = beta if problem.kind == "gaussian" else np.ones_like(beta)
    value = likelihood(NUMBERS[problem.kind], by_f, np.ascontiguousarray(problem.T.T), precision, 1.0)
    return -value, Point(q, f, Z, link(f, problem.kind), -by_f.T)


def gradient(problem: NetworkProblem, at: Point) -> FloatArray:
    """Of the loss by the packed weights."""
    return backward(problem.architecture.split(at.q), problem.X, at.Z, at.df)


def jacobian(network: Architecture, q: FloatArray, X: FloatArray, Z: FloatArray) -> FloatArray:
    """∂f_k/∂weights for each row, (K, n, P), from inputs X and hidden values Z."""
    n, (D, H, K) = len(X), (network.inputs, network.hidden, network.outputs)
    place, v = network.slices, network.split(q).hidden_output
    J = np.zeros((K, n, network.size))
    slope = 1.0 - Z * Z
    for k in range(K):
        below = slope * v[:, k]
        J[k, :, place["hidden_bias"]] = below
        J[k, :, place["input_hidden"]] = (X[:, :, None] * below[:, None, :]).reshape(n, D * H)
        J[k, :, place["bias"].start + k] = 1.0
        J[k, :, place["hidden_output"]][:, k::K] = Z
        J[k, :, place["input_output"]][:, k::K] = X
    return J


def gauss_newton(problem: NetworkProblem, at: Point, beta: FloatArray, J: FloatArray) -> FloatArray:
    """The first sum, (P, P)."""
    if problem.kind == "gaussian":
        return np.asarray(sum(b * (j.T @ j) for b, j in zip(beta, J, strict=True)))
    if problem.kind == "logistic":
        return np.asarray(sum((j.T * (p * (1.0 - p))) @ j for p, j in zip(at.p.T, J, strict=True)))
    if problem.kind == "softmax":
        mean = np.einsum("nk,knp->np", at.p, J)
        return np.asarray(sum((j.T * p) @ j for p, j in zip(at.p.T, J, strict=True)) - mean.T @ mean)
    raise ValueError(f"there is no Gauss-Newton Hessian for kind {problem.kind!r}; kinds are {', '.join(KINDS)}")


def bends(problem: NetworkProblem, at: Point, df: FloatArray) -> FloatArray:
    """The second sum with derivatives df (n, K) by the outputs, (P, P)."""
    network = problem.architecture
    D, H, K = network.inputs, network.hidden, network.outputs
    place, v = network.slices, network.split(at.q).hidden_output
    C = np.zeros((network.size, network.size))
    Xt = np.column_stack([np.ones(len(problem.X)), problem.X])
    slope = 1.0 - at.Z * at.Z
    second = -2.0 * at.Z * slope * (df @ v.T)
    first_v = place["hidden_output"].start
    for h in range(H):
        mine = np.concatenate([[h], H + np.arange(D) * H + h])
        C[np.ix_(mine, mine)] = (Xt.T * second[:, h]) @ Xt
        cross = (Xt.T * slope[:, h]) @ df
        out = first_v + h * K + np.arange(K)
        C[np.ix_(mine, out)] = cross
        C[np.ix_(out, mine)] = cross.T
    return C


class Peak(NamedTuple):
    """A Gaussian peak: Cholesky factor of its precision, each row and column times `scale`."""

    L: FloatArray
    scale: FloatArray

    @property
    def log_determinant(self) -> float:
        """Of the precision itself."""
        return float(2.0 * np.sum(np.log(np.diag(self.L)) - np.log(self.scale)))

    def solve(self, b: FloatArray) -> FloatArray:
        """Precision⁻¹ b."""
        s = self.scale if b.ndim == 1 else self.scale[:, None]
        return np.asarray(s * lapack.dpotrs(self.L, s * b, lower=1)[0].reshape(b.shape))

    def covariance(self) -> FloatArray:
        """Precision⁻¹."""
        inverse = np.tril(lapack.dpotri(self.L, lower=1)[0])
        return np.asarray((inverse + np.tril(inverse, -1).T) * np.outer(self.scale, self.scale))


def gaussian_peak(A: FloatArray, scale: FloatArray, damping: float = 0.0) -> Peak | None:
    """The peak of precision A, or None where A is not positive definite."""
    scaled = A * np.outer(scale, scale)
    scaled[np.diag_indices_from(scaled)] += damping
    if not np.isfinite(scaled).all():
        return None
    L, info = lapack.dpotrf(scaled, lower=1, clean=1)
    return None if info else Peak(L, scale)


class NewtonEnd(NamedTuple):
    """Where a search came to: the point, loss and penalty, Jacobian, two Hessians, the exact one's peak.

    `converged`: it is a minimum.
    """

    at: Point
    value: float
    J: FloatArray
    gauss_newton: FloatArray
    A: FloatArray
    peak: Peak | None
    damping: float
    converged: bool


def newton(
    problem: NetworkProblem,
    q: FloatArray,
    alpha: FloatArray,
    beta: FloatArray,
    steps: int,
    damping: float = 1e-3,
    tol: float = 1e-7,
) -> NewtonEnd:
    """Go towards a minimum of loss + ½ Σ α q² by damped Newton steps; α (P,) for each weight.

    It is found when another full step would gain less than `tol`.
    """
    value, at = loss_at(problem, q, beta)
    value += 0.5 * float(np.sum(alpha * q * q))
    while True:
        J = jacobian(problem.architecture, at.q, problem.X, at.Z)
        GN = gauss_newton(problem, at, beta, J)
        GN[np.diag_indices_from(GN)] += alpha
        A = GN + bends(problem, at, at.df)
        scale = 1.0 / np.sqrt(np.diag(GN))
        full = gaussian_peak(A, scale)
        g = gradient(problem, at) + alpha * at.q
        if full is not None and 0.5 * float(g @ full.solve(g)) <= tol:
            return NewtonEnd(at, value, J, GN, A, full, damping, True)
        if steps == 0:
            return NewtonEnd(at, value, J, GN, A, full, damping, False)
        steps -= 1
        length = 0.3
        while True:
            damped = full if damping == 0.0 else gaussian_peak(A, scale, damping)
            if damped is not None:
                step = -damped.solve(g)
                promised = -float(g @ step + 0.5 * step @ A @ step)
                if full is None and (promised <= tol or damping > 1.0):  # a saddle, or close to one
                    away, gain = _downhill(A, scale, g, length)
                    length *= 0.2
                    if gain > promised:
                        step, promised = away, gain
                new_value, new = loss_at(problem, at.q + step, beta)
                new_value += 0.5 * float(np.sum(alpha * new.q * new.q))
                if promised > 0.0 and np.isfinite(new_value) and value - new_value > 1e-3 * promised:
                    if value - new_value > 0.75 * promised:
                        damping = 0.2 * damping if damping > 1e-6 else 0.0
                    value, at = new_value, new
                    break
            damping = max(5.0 * damping, 1e-4)
            if damping > 1e12:  # rounding is all there is left to gain
                return NewtonEnd(at, value, J, GN, A, full, 1e-3, full is not None)


def _downhill(A: FloatArray, scale: FloatArray, g: FloatArray, length: float) -> tuple[FloatArray, float]:
    """A step along the most negative curvature, and what it promises."""
    values, vectors = np.linalg.eigh(A * np.outer(scale, scale))
    way = scale * vectors[:, 0]
    step = np.where(g @ way > 0.0, -length, length) * way
    return step, -float(g @ step + 0.5 * step @ A @ step) if values[0] < 0.0 else 0.0
