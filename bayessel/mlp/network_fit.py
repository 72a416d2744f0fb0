"""Networks of one architecture and what they predict: outputs, class probabilities, slopes along the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, override

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from bayessel._check import FloatArray, as_matrix
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.mlp.architecture import Architecture, Weights, forward
from bayessel.mlp.targets import link
from bayessel.prediction import ClassPrediction, Prediction


@dataclass(frozen=True, eq=False)
class Networks:
    """S networks and the kind of their outputs.

    Attributes
    ----------
    architecture : Architecture
        Of every one.
    packed : (S, P) array
        Their weights, as `Architecture` packs them.
    kind : str
        "gaussian", "logistic" or "softmax".
    single : bool
        The target is one column given as (n,), and so are predictions; else they have an axis of outputs.
    """

    architecture: Architecture
    packed: FloatArray
    kind: str = "gaussian"
    single: bool = False

    def __len__(self) -> int:
        """Number of networks."""
        return len(self.packed)

    @property
    def weights(self) -> Weights:
        """Weights by name, the networks the first axis."""
        return self.architecture.split(self.packed)

    def checked(self, X: npt.ArrayLike) -> FloatArray:
        """Inputs (n, D) as an array, refused where there are other columns."""
        X = as_matrix(X, "X")
        if X.shape[1] != self.architecture.inputs:
            raise ValueError(
                f"the networks have {self.architecture.inputs} inputs, got X with {X.shape[1]} columns; pass the same "
                "columns as in the fit"
            )
        return X

    def outputs(self, X: npt.ArrayLike) -> FloatArray:
        """Outputs (S, n, K) at inputs (n, D)."""
        X = self.checked(X)
        return np.array([forward(self.architecture.split(one), X)[0] for one in self.packed])

    def members(self, X: npt.ArrayLike) -> FloatArray:
        """Predictions of each network, (S, n, K): outputs, or probabilities of classes."""
        return np.array([link(f, self.kind) for f in self.outputs(X)])

    def log_probabilities(self, X: npt.ArrayLike) -> FloatArray:
        """Log probabilities of the classes 0, 1, … by each network, (S, n, C); (S, n, K, 2) of several labels."""
        f = self.outputs(X)
        if self.kind == "logistic":  # an output is the log odds of the second of two classes
            f = np.stack([np.zeros_like(f), f], axis=-1)
            f = f[:, :, 0] if self.single else f
        return np.asarray(log_softmax(f, axis=-1))

    def normal(self, means: FloatArray, variances: Any, function_variances: Any) -> Prediction:
        """Mixtures of normal distributions with means (S, n, K), in the shape of the target."""
        parts = [np.broadcast_to(part, means.shape) for part in (means, variances, function_variances)]
        means, variances, inside = (part[..., 0] for part in parts) if self.single else parts
        return Prediction(means, variances, None, inside)

    def classes(self, p: FloatArray) -> ClassPrediction:
        """Labels with these link's values (n, K) as probabilities."""
        if self.kind == "logistic":
            p = np.stack([1.0 - p, p], axis=-1)
            p = p[:, 0] if self.single else p
        return ClassPrediction(np.arange(p.shape[-1]), p)

    def left_out(self, T: FloatArray, p: FloatArray, variances: Any = None) -> LeaveOneOut:
        """Of targets (n, K) whose predictions from the other rows are p (n, K), outputs with `variances`, or classes.

        The error of a class is its indicator less its probability.
        """
        errors = T - p
        if self.kind == "gaussian":
            variances = np.broadcast_to(variances, errors.shape)
            if self.single:
                return LeaveOneOut.normal(errors[:, 0], variances[:, 0], T[:, 0])
            found = LeaveOneOut.normal(errors, variances, T)
            return replace(found, log_densities=found.log_densities.sum(axis=1))
        of_label = (T * p).sum(axis=1, keepdims=True) if self.kind == "softmax" else np.where(T == 1.0, p, 1.0 - p)
        densities = np.log(np.maximum(of_label, np.finfo(np.float64).tiny)).sum(axis=1)
        if self.single and self.kind == "logistic":
            errors, p = errors[:, 0], p[:, 0]
        return LeaveOneOut(errors, p * (1.0 - p), densities)

    def rms_slopes(self, X: FloatArray) -> FloatArray:
        """Root mean square of each network's slope along each input, over the rows of X: (S, D).

        Squares are summed over outputs; those of classes that exclude each other less their mean, which changes no
        probability.
        """
        found = np.empty((len(self), self.architecture.inputs))
        for s, packed in enumerate(self.packed):
            slope = slopes(self.architecture.split(packed), X)
            if self.kind == "softmax":
                slope = slope - slope.mean(axis=2, keepdims=True)
            found[s] = np.sqrt((slope**2).sum(axis=2).mean(axis=0))
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkFit(Fit):
    """What fits of networks have in common: those that predict, and the fields of every fit."""

    networks: Networks
    status: Status
    notes: tuple[Status, ...]
    history: tuple[Mapping[str, Any], ...] = field(repr=False)
    n_rows: int
    fingerprint: str
    target_fingerprint: str
    seconds: float
    evidence: Evidence | None = None
    optima: tuple[Any, ...] = field(default=(), repr=False)

    @property
    @override
    def predicts_labels(self) -> bool:
        """Whether the targets are classes."""
        return self.networks.kind != "gaussian"


def slopes(weights: Weights, X: FloatArray) -> FloatArray:
    """∂f_k/∂x_i = w_ik + Σ_h v_hk (1 − z_h²) u_ih of one network at inputs X: (n, D, K)."""
    Z = forward(weights, X)[1]
    inner = weights.hidden_output[None] * (1.0 - Z * Z)[:, :, None]
    return np.asarray(weights.input_hidden @ inner + weights.input_output)
