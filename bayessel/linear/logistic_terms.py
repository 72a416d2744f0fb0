r"""A Bayesian logistic model on the few columns that a selection has left.

:math:`p = \sigma(\beta_0 + \Phi\beta)`, in the orthonormal form :math:`[1, \Phi] = QR`, :math:`q = \sqrt N Q`: the
prior :math:`N(0, 1/\alpha)` on the coordinates then says how far log odds vary over the rows, whatever the scale of the
columns and however alike they are (wide functions). The posterior is Laplace's, α the one of the largest Laplace
evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

from bayessel._check import FloatArray

#: precisions of the prior that are compared, from a model of almost one probability to almost none
PRECISIONS = 10.0 ** np.arange(3.0, -4.1, -0.5)
#: precision of the prior of the constant: log odds of the classes within ±6 or so
OF_CONSTANT = 0.1
#: a column of which less than this part lies outside the span of those before it is left out
OUTSIDE = 1e-8
#: nats below the best at which smaller precisions are no longer tried
FALLEN = 5.0


class LogisticTerms:
    """p(y = 1 | columns) under the logistic model, its uncertainty included.

    Parameters
    ----------
    design : (N, M) array
        Columns at the training rows.
    labels : (N,) array
        -1 and 1.
    weights : None or (N,) array
        Weights of the rows, of mean 1.

    Attributes
    ----------
    precision : float
        α, of the largest evidence.
    log_evidence : float
        Laplace's, at α.
    mode : (K,) array
        Mode of the coordinates that were kept, the constant's first.
    """

    def __init__(self, design: FloatArray, labels: FloatArray, weights: FloatArray | None = None) -> None:
        n = len(labels)
        omega = np.ones(n) if weights is None else weights
        full = np.column_stack([np.ones(n), design])
        root = np.sqrt(omega)[:, None]
        R = np.linalg.qr(root * full, mode="r")
        heights = np.zeros(full.shape[1])
        heights[: len(R)] = abs(np.diag(R))
        self._kept = np.flatnonzero(heights > OUTSIDE * np.linalg.norm(root * full, axis=0))
        self._R = np.linalg.qr(root * full[:, self._kept], mode="r") / np.sqrt(n)
        H = self._coordinates(design)
        w = np.zeros(H.shape[1])
        self.log_evidence = -np.inf
        for alpha in PRECISIONS:
            prior = np.full(len(w), alpha)
            prior[0] = OF_CONSTANT
            w, factor, evidence = posterior(H, labels, omega, prior, w)
            if evidence > self.log_evidence:
                self.precision, self.log_evidence, self.mode, self._factor = float(alpha), evidence, w, factor
            elif evidence < self.log_evidence - FALLEN:
                break
        # leaving a row out of the quadratic form at the mode, as least squares would
        variance = self._variance(H)
        eta = H @ self.mode
        p = expit(eta)
        share = np.minimum(omega * p * (1.0 - p) * variance, 1.0 - 1e-12)
        left_out = variance / (1.0 - share)
        self.loo_probability = np.asarray(expit(towards_zero(eta - left_out * omega * ((labels > 0.0) - p), left_out)))

    def _coordinates(self, design: FloatArray) -> FloatArray:
        full = np.column_stack([np.ones(len(design)), design])[:, self._kept]
        return np.asarray(solve_triangular(self._R, full.T, trans="T").T)

    def _variance(self, H: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ji->i", H, cho_solve(self._factor, H.T)))

    def probability(self, design: Any) -> FloatArray:
        """Probability of the label 1 at new rows, (n, M) columns."""
        return np.asarray(expit(self.log_odds(design)))

    def log_odds(self, design: Any) -> FloatArray:
        """Logarithm of p / (1 - p) at new rows."""
        H = self._coordinates(np.asarray(design, dtype=np.float64))
        return towards_zero(H @ self.mode, self._variance(H))


def posterior(
    H: FloatArray, labels: FloatArray, omega: FloatArray, prior: FloatArray, start: FloatArray
) -> tuple[FloatArray, tuple[FloatArray, bool], float]:
    """Mode, Cholesky factor of the negative Hessian there, and Laplace's log evidence, by Newton's method."""

    def height(w: FloatArray) -> float:
        return float(-(omega @ np.logaddexp(0.0, -labels * (H @ w))) - 0.5 * prior @ w**2)

    w, here = start, height(start)
    for _ in range(100):
        p = expit(H @ w)
        curvature = (H.T * (omega * p * (1.0 - p))) @ H
        curvature[np.diag_indices(len(w))] += prior
        factor = cho_factor(curvature, lower=True)
        gradient = H.T @ (omega * ((labels > 0.0) - p)) - prior * w
        step = cho_solve(factor, gradient)
        if gradient @ step < 1e-12 * (1.0 + abs(here)):
            break
        length = 1.0
        while (there := height(w + length * step)) < here and length > 1e-10:
            length *= 0.5
        w, here = w + length * step, there
    evidence = here + 0.5 * float(np.log(prior).sum()) - float(np.log(np.diag(factor[0])).sum())
    return w, factor, evidence


def towards_zero(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Log odds of the mean of σ over a normal of log odds, by MacKay's approximation."""
    return np.asarray(mean / np.sqrt(1.0 + np.pi / 8.0 * variance))
