r"""The dictionary in orthogonal coordinates: accurate where inner products would lose every digit.

The rows are rotated so that the dictionary has only as many of them as its numerical rank, :math:`F = U W`. What the
posterior needs comes from a QR factorisation of :math:`[X; I]`, and S is measured as the length of a residual rather
than as a difference of two large numbers: wide kernels have condition numbers of 1e16 and more, and squaring them in
a Gram matrix leaves nothing.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtri

from bayessel._check import FloatArray
from bayessel.linear.sparse.reestimation import reestimate
from bayessel.linear.sparse.state import IntArray, Scores, State, log_evidence


#: S is the square of a length measured to about 1e-15: below this share it is rounding
LEAST_SHARE = 1e-26


class OrthogonalForm:
    """Coordinates W (r, P) of unit columns, z (r,) of the target, and the squared length of what lies outside."""

    def __init__(self, W: FloatArray, z: FloatArray, outside: float, n_rows: int) -> None:
        self.W = W
        self.z = z
        self.outside = outside
        self.n_rows = n_rows
        self.n_columns = W.shape[1]

    def solve(self, active: IntArray, a: FloatArray, b: float) -> State:
        """Posterior and evidence from the QR factorisation of [X; I]."""
        k, r = len(active), len(self.z)
        scale = np.exp(0.5 * (b - a))
        X = self.W[:, active] * scale
        if k:
            stacked = np.empty((r + k, k))
            stacked[:r], stacked[r:] = X, np.eye(k)
            R = np.linalg.qr(stacked, mode="r")
            R *= np.where(np.diagonal(R) < 0.0, -1.0, 1.0)[:, None]
            Ri = dtrtri(R)[0]
            log_det = 2.0 * float(np.log(np.diagonal(R)).sum())
        else:
            Ri, log_det = np.zeros((0, 0)), 0.0
        Q1 = X @ Ri
        w = Ri @ (Q1.T @ self.z)
        residual = self.z - X @ w
        if k:  # one correction: the residual is what the moves are judged by
            step = Ri @ (Q1.T @ residual - Ri.T @ w)
            w = w + step
            residual = self.z - X @ w
        sum_squares = float(residual @ residual) + self.outside
        beta = np.exp(b)
        v = np.sqrt(beta) * w
        value = log_evidence(self.n_rows, b, log_det, float(beta * sum_squares + v @ v))
        return State(active, a, b, value, Ri, Ri @ Ri.T, v, scale, w, sum_squares, (Q1, residual))

    def score(self, state: State) -> Scores:
        """S as squared lengths of residuals, Q from the residual of the target."""
        Q1, residual = state.extra
        beta = np.exp(state.b)
        T = Q1.T @ self.W
        top = self.W - Q1 @ T
        bottom = state.Ri @ T
        S = beta * (np.einsum("ij,ij->j", top, top) + np.einsum("ij,ij->j", bottom, bottom))
        return Scores(S, beta * (residual @ self.W), T, S <= LEAST_SHARE * beta)

    def full_start(
        self, candidates: IntArray, noise: float, steps: int, hold: int, b: float | None
    ) -> tuple[IntArray, FloatArray, float]:
        """Re-estimate from these columns together; C = sigma^2 I + W A^-1 W^T is r x r, factored by QR without being formed."""
        r = len(self.z)

        def sums(active: IntArray, a: FloatArray, b: float) -> tuple[FloatArray, FloatArray, float]:
            sigma = np.exp(-0.5 * b)
            W = self.W[:, candidates[active]]
            stacked = np.vstack([(W * np.exp(-0.5 * a)).T, sigma * np.eye(r)])
            R = np.linalg.qr(stacked, mode="r")
            both = solve_triangular(R, np.column_stack([W, self.z]), trans="T", check_finite=False)
            Y, y = both[:, :-1], both[:, -1]
            inverse = solve_triangular(R, y, check_finite=False)
            alpha = np.exp(a)
            # gamma_i = S_i/alpha_i, mu_i = Q_i/alpha_i, residual = sigma^2 C^-1 z
            gamma = np.einsum("ij,ij->j", Y, Y) / alpha
            return gamma, (Y.T @ y) / alpha, float(sigma**4 * (inverse @ inverse)) + self.outside

        active, a, b = reestimate(sums, len(candidates), self.n_rows, noise, steps, hold, b)
        return candidates[active], a, b
