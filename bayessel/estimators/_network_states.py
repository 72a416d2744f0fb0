"""What states of a network predict, in standardised units: mixtures, class probabilities, slopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, override

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.mlp.evidence_result import NetworkEvidenceFit
from bayessel.mlp.network import Architecture, Weights, forward
from bayessel.mlp.slopes import slopes
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class NetworkStates:
    """Networks of equal weight: draws from a posterior, or one that stands for all.

    Attributes
    ----------
    architecture : Architecture
        Of every one.
    packed : (S, P) array
        Their weights.
    noise : (S, K) array
        Variances of the noise; zeros for classes.
    """

    architecture: Architecture
    packed: FloatArray
    noise: FloatArray

    @classmethod
    def of_trace(cls, architecture: Architecture, posterior: Any, chosen: Any) -> NetworkStates:
        """Draws of `bayessel.models.mlp` at positions `chosen` of each chain, chain after chain."""

        def read(name: str) -> FloatArray:
            values = np.asarray(posterior[name].values)[:, chosen]
            return np.asarray(values.reshape(-1, *values.shape[2:]))

        packed = architecture.join(Weights(*(read(name) for name in Weights._fields)))
        noise = np.zeros((len(packed), architecture.outputs))
        if "tau_noise" in posterior:
            noise = 1.0 / read("tau_noise")
        return cls(architecture, packed, noise)

    @classmethod
    def constant(cls, architecture: Architecture, bias: FloatArray, noise: FloatArray) -> NetworkStates:
        """One network whose output is its bias."""
        weights = architecture.split(np.zeros(architecture.size))
        return cls(architecture, architecture.join(weights._replace(bias=bias))[None], noise[None])

    def __len__(self) -> int:
        """Number of networks."""
        return len(self.packed)

    @property
    def weights(self) -> Weights:
        """Their weights by name, the networks the first axis."""
        return self.architecture.split(self.packed)

    def outputs(self, X: FloatArray) -> FloatArray:
        """Outputs (S, n, K)."""
        return forward(self.weights, X)[0]

    def mixture(self, X: FloatArray, noise: bool = True) -> Prediction:
        """Predictive distributions of (n, K) observations, or of the function."""
        means = self.outputs(X)
        variances = self.noise[:, None] if noise else np.zeros((1, 1, 1))
        return Prediction(means, np.broadcast_to(variances, means.shape))

    def log_probabilities(self, X: FloatArray) -> FloatArray:
        """Log probability of each class, (n, C): the mean over the networks of their probabilities."""
        return np.asarray(logsumexp(self.log_probabilities_of_each(X), axis=0) - np.log(len(self)))

    def log_probabilities_of_each(self, X: FloatArray) -> FloatArray:
        """Log probability of each class by each network, (S, n, C)."""
        f = self.outputs(X)
        if f.shape[2] == 1:  # one output is the log odds of the second class
            f = np.concatenate([np.zeros_like(f), f], axis=2)
        return np.asarray(f - logsumexp(f, axis=2, keepdims=True))

    def rms_slopes(self, X: FloatArray, classes: bool = False) -> FloatArray:
        """Root mean square of each network's slope along each input, over the rows of X: (S, D).

        Squares are summed over outputs; those of several classes less their mean, which changes no probability.
        """
        found = np.empty((len(self), self.architecture.inputs))
        for s, packed in enumerate(self.packed):
            slope = slopes(self.architecture.split(packed), X)
            if classes and slope.shape[2] > 1:
                slope = slope - slope.mean(axis=2, keepdims=True)
            found[s] = np.sqrt((slope**2).sum(axis=2).mean(axis=0))
        return found


class AveragedNetworks(NetworkStates):
    """An ensemble whose average predicts, with one noise for all errors of that average."""

    @override
    def mixture(self, X: FloatArray, noise: bool = True) -> Prediction:
        mean = self.outputs(X).mean(axis=0, keepdims=True)
        variances = self.noise[:1, None] if noise else np.zeros((1, 1, 1))
        return Prediction(mean, np.broadcast_to(variances, mean.shape))


@dataclass(frozen=True, eq=False)
class ProbableNetwork(NetworkStates):
    """The most probable network with Laplace's approximation about it."""

    fit: NetworkEvidenceFit

    @override
    def mixture(self, X: FloatArray, noise: bool = True) -> Prediction:
        mean, std = self.fit.predict(X, return_std=True)
        variances = std**2 - (0.0 if noise else self.noise)
        return Prediction(mean[None], np.maximum(variances, 0.0)[None])

    @override
    def log_probabilities(self, X: FloatArray) -> FloatArray:
        p = np.asarray(self.fit.predict(X))
        p = np.concatenate([1.0 - p, p], axis=1) if p.shape[1] == 1 else p
        return np.log(np.maximum(p, np.finfo(float).tiny))
