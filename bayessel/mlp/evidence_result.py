"""What the evidence framework returns: the most probable network, error bars, relevance of the inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, override

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.fit import Evidence, LeaveOneOut
from bayessel.mlp.architecture import forward
from bayessel.mlp.hessian import jacobian
from bayessel.mlp.network_fit import NetworkFit, Networks
from bayessel.mlp.targets import link
from bayessel.prediction import ClassPrediction, Prediction

#: what of a row's error its own target leaves at least
LEAST_SHARE = 1e-3


class NetworkOptimum(NamedTuple):
    """Where one search ended: log evidence by Laplace's approximation, packed weights (P,), hidden units in use."""

    log_evidence: float
    weights: FloatArray
    units_in_use: int


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkEvidenceFit(NetworkFit):
    """A network at its most probable weights, under precisions of greatest evidence.

    Attributes
    ----------
    networks : Networks
        The one network; `weights` (P,) are its packed weights.
    evidence : Evidence
        log p(t | α, β) by Laplace's approximation, in nats, every constant and the symmetries included: "laplace".
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
    relevance : (D,) array
        Root mean square over rows and outputs of ∂f/∂x_i: how strongly outputs follow each input of equal spread.
    optima : tuple of NetworkOptimum
        Ends of the searches, those that leave rows to the noise first, then by their evidence.
    history : tuple of dict
        One entry per start.
    """

    evidence: Evidence
    alpha: dict[str, float] = field(repr=False)
    beta: FloatArray | None
    gamma: dict[str, float] = field(repr=False)
    units_in_use: int
    covariance: FloatArray = field(repr=False)
    relevance: FloatArray = field(repr=False)
    left_out: LeaveOneOut = field(repr=False)

    @property
    def weights(self) -> FloatArray:
        """Packed weights (P,)."""
        return np.asarray(self.networks.packed[0])

    @property
    def noise_std(self) -> FloatArray | None:
        """Standard deviation of the noise of each output; None for classes."""
        return None if self.beta is None else self.beta**-0.5

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters of all groups together."""
        return float(sum(self.gamma.values()))

    @override
    def predict(self, rows: npt.ArrayLike) -> Prediction | ClassPrediction:
        """Normal distributions of new observations, outputs as if they were linear in the weights about the best ones.

        Of classes moderated probabilities: averages over the Gaussian of the outputs, about (`moderated`).
        """
        X = self.networks.checked(rows)
        f, Z = forward(self.networks.architecture.split(self.weights), X)
        covariances = self._covariances(X, Z)
        if self.beta is None:
            return self.networks.classes(moderated(f, covariances, self.networks.kind))
        inside = np.maximum(np.einsum("nkk->nk", covariances), 0.0)
        return self.networks.normal(f[None], inside + 1.0 / self.beta, inside)

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others, at the precisions of all rows, outputs linear in the weights."""
        return self.left_out

    def _covariances(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Of the outputs, (n, K, K), in blocks of rows."""
        architecture = self.networks.architecture
        covariances = np.empty((len(X), architecture.outputs, architecture.outputs))
        size = max(1, 2_000_000 // (architecture.size * architecture.outputs))
        for begin in range(0, len(X), size):
            rows = slice(begin, begin + size)
            J = jacobian(architecture, self.weights, X[rows], Z[rows])
            covariances[rows] = output_covariances(J, self.covariance)
        return covariances


def output_covariances(J: FloatArray, covariance: FloatArray) -> FloatArray:
    """Covariances (n, K, K) of outputs with derivatives J (K, n, P) by weights of a covariance (P, P)."""
    return np.asarray(np.einsum("knp,lnp->nkl", J @ covariance, J))


def leave_out(
    networks: Networks, T: FloatArray, f: FloatArray, p: FloatArray, V: FloatArray, beta: FloatArray
) -> LeaveOneOut:
    r"""Each row from the others by one Newton step without it, outputs taken for linear in the weights.

    With the outputs' covariances V, curvatures Λ = −∇∇ log p(t|f) and slopes d = −∇ log p(t|f) of the row's own loss,
    its outputs without it are f + V′d with covariance :math:`V' = (V^{-1} - \Lambda)^{-1}`. Of one output with Gaussian
    noise errors grow by 1/(1 − βV). What a row leaves is never taken for less than `LEAST_SHARE`.
    """
    K = T.shape[1]
    if networks.kind == "softmax":
        curvature = p[:, :, None] * (np.eye(K) - p[:, None, :])
        slope = p - T
    else:
        each = np.broadcast_to(beta, p.shape) if networks.kind == "gaussian" else p * (1.0 - p)
        curvature, slope = each[:, :, None] * np.eye(K), (beta if networks.kind == "gaussian" else 1.0) * (p - T)
    values, vectors = np.linalg.eigh(curvature)
    root = np.einsum("nij,nj,nkj->nik", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)
    values, vectors = np.linalg.eigh(root @ V @ root)
    grown = 1.0 / np.maximum(1.0 - np.maximum(values, 0.0), LEAST_SHARE)
    middle = np.einsum("nij,nj,nkj->nik", vectors, grown, vectors)
    alone = V + V @ root @ middle @ root @ V
    f = f + np.einsum("nij,nj->ni", alone, slope)
    if networks.kind == "gaussian":
        return networks.left_out(T, f, np.einsum("nkk->nk", alone) + 1.0 / beta)
    return networks.left_out(T, moderated(f, alone, networks.kind))


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
