"""What the evidence framework hands back: the most probable network, error bars, relevance of the inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray, as_flag, as_matrix
from bayessel.fit import Status
from bayessel.mlp.hessian import Point, Problem, jacobian
from bayessel.mlp.network import Architecture, forward
from bayessel.mlp.targets import link


@dataclass(frozen=True, eq=False)
class NetworkEvidenceFit:
    """A network at its most probable weights, under precisions of greatest evidence.

    Attributes
    ----------
    weights : (P,) array
        Packed as by `Architecture`.
    architecture : Architecture
    kind_of_output : str
        "gaussian", "logistic" or "softmax".
    log_evidence : float
        log p(t | α, β) by Laplace's approximation, in nats, every constant and the symmetries included.
    alpha : dict
        Precision of each group of weights; that of the output biases ("bias") is given.
    beta : (K,) array or None
        Precisions of the noise; None for classes.
    gamma : dict
        Well-determined parameters of each group, from 0 to its number of weights.
    units_in_use : int
        Hidden units that do something.
    covariance : (P, P) array
        Of the weights.
    slopes : (D,) array
        Root mean square over the rows of ∂f/∂x_i.
    status, notes
        The most serious remark, and all of them.
    history : tuple of dict
        One entry per start.
    fingerprint : str
        Name of the data.
    n_rows : int
    seconds : float
    kind : str
        What sort of evidence it is: "laplace".
    """

    weights: FloatArray = field(repr=False)
    architecture: Architecture
    kind_of_output: str
    log_evidence: float
    alpha: dict[str, float] = field(repr=False)
    beta: FloatArray | None
    gamma: dict[str, float] = field(repr=False)
    units_in_use: int
    covariance: FloatArray = field(repr=False)
    slopes: FloatArray = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    history: tuple[dict[str, Any], ...] = field(repr=False)
    fingerprint: str
    n_rows: int
    seconds: float
    kind: str = "laplace"

    @property
    def noise_std(self) -> FloatArray | None:
        """Standard deviation of the noise of each output; None for classes."""
        return None if self.beta is None else self.beta**-0.5

    @property
    def relevance(self) -> FloatArray:
        """How strongly outputs follow each input: the root mean square slope, for inputs of equal spread."""
        return self.slopes

    def predict(self, X: Any, return_std: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Outputs (n, K), with standard deviations that include the noise; probabilities for classes.

        Probabilities are moderated: averages over the Gaussian of the outputs, about (`moderated`).
        """
        X = as_matrix(X, "X")
        if X.shape[1] != self.architecture.inputs:
            raise ValueError(
                f"the network has {self.architecture.inputs} inputs, got X with {X.shape[1]} columns; pass the same "
                "columns as in the fit"
            )
        if as_flag(return_std, "return_std") and self.beta is None:
            raise ValueError("probabilities of classes have no standard deviation: call predict(X)")
        f, Z = forward(self.architecture.split(self.weights), X)
        if self.beta is None:
            return moderated(f, self._covariances(X, f, Z), self.kind_of_output)
        if not return_std:
            return f
        variances = np.einsum("nkk->nk", self._covariances(X, f, Z))
        return f, np.sqrt(np.maximum(variances, 0.0) + 1.0 / self.beta)

    def _covariances(self, X: FloatArray, f: FloatArray, Z: FloatArray) -> FloatArray:
        """Of the outputs, (n, K, K), in blocks of rows."""
        covariances = np.empty((*f.shape, f.shape[1]))
        size = max(1, 2_000_000 // (self.architecture.size * self.architecture.outputs))
        problem = Problem(X, f, self.kind_of_output, self.architecture)
        for begin in range(0, len(X), size):
            rows = slice(begin, begin + size)
            at = Point(self.weights, f[rows], Z[rows], f[rows], f[rows])
            J = jacobian(problem, at, X[rows])
            covariances[rows] = np.einsum("knp,lnp->nkl", J @ self.covariance, J)
        return covariances


def moderated(f: FloatArray, covariances: FloatArray, kind: str) -> FloatArray:
    """Mean probabilities (n, K) under Gaussians of the outputs, means f (n, K), covariances (n, K, K).

    Of two classes σ(d/√(1 + πv/8)) for a difference d of variance v (MacKay 1992, Neural Computation 4, 720). Of
    several the same for each pair, 1/p_k = Σ_j exp(−d_kj/√(1 + πv_kj/8)), then scaled to sum to one: what is common to
    all outputs has a wide prior, no effect, and no part in it.
    """
    if kind == "logistic":
        v = np.maximum(np.einsum("nkk->nk", covariances), 0.0)
        return link(f / np.sqrt(1.0 + np.pi / 8.0 * v), kind)
    own = np.einsum("nkk->nk", covariances)
    v = np.maximum(own[:, :, None] + own[:, None, :] - 2.0 * covariances, 0.0)
    d = f[:, :, None] - f[:, None, :]
    return link(-logsumexp(-d / np.sqrt(1.0 + np.pi / 8.0 * v), axis=2), "softmax")
