"""Sampled networks as a fit: what draws of `bayessel.models.mlp` predict, in standardised units."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, override

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.errors import NumericalWarning
from bayessel.estimators import _importance_loo
from bayessel.estimators.base import HERE
from bayessel.fit import LeaveOneOut
from bayessel.mlp.architecture import Architecture, Weights, pack
from bayessel.mlp.network_fit import NetworkFit, Networks
from bayessel.prediction import ClassPrediction, Prediction


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledNetworks(NetworkFit):
    """Networks drawn from their posterior, of equal weight.

    Attributes
    ----------
    networks : Networks
        Those that predict.
    noise : (S, K) array
        Variances of their noise; zeros for classes.
    rows, target : (n, D) array, (n, K) or (n,) array
        Training data; classes as their numbers.
    posterior : xarray.Dataset or None
        Draws after tuning; None where there are none.
    discarded : int
        Draws at its beginning that are not used.
    evidence : Evidence or None
        "sampled", once it was estimated.
    history : tuple of dict
        One entry per chain.
    """

    noise: FloatArray = field(repr=False)
    rows: FloatArray = field(repr=False)
    target: Any = field(repr=False)
    posterior: Any = field(repr=False)
    discarded: int

    @override
    def predict(self, rows: ArrayLike) -> Prediction | ClassPrediction:
        """Mixtures over the networks; of classes the means of their probabilities."""
        if self.networks.kind != "gaussian":
            p = np.exp(self.log_probabilities(rows))
            return ClassPrediction(np.arange(p.shape[1]), p)
        return self.networks.normal(self.networks.outputs(rows), self.noise[:, None], 0.0)

    def log_probabilities(self, rows: ArrayLike) -> FloatArray:
        """Log probability of each class, (n, C): the mean over the networks of their probabilities."""
        return np.asarray(logsumexp(self.networks.log_probabilities(rows), axis=0) - np.log(len(self.networks)))

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others, by importance weights of the draws, Pareto-smoothed."""
        return self._left_out[0]

    @property
    def noise_std(self) -> FloatArray | None:
        """Root mean square of the noise over the networks, (K,); None for classes."""
        return np.sqrt(self.noise.mean(axis=0)) if self.networks.kind == "gaussian" else None

    @property
    def pareto_k(self) -> FloatArray:
        """Shapes of the tails of the rows' importance weights, (n,); above 0.7 they are unsure."""
        return self._left_out[1]

    @cached_property
    def every(self) -> tuple[Networks, FloatArray]:
        """All draws that are not discarded, else those that predict, and the variances of their noise."""
        if self.posterior is None:
            return self.networks, self.noise
        chosen = slice(self.discarded, None)
        return networks_of(self.posterior, chosen, self.networks.architecture, self.networks)

    #: what `log_likelihood` has, as `bayessel.sample` says of models
    terms = "densities of rows given all parameters"

    def log_likelihood(self) -> FloatArray:
        """log p(t_i | w) of every draw, the first too, and row, of all outputs together, (draws, n)."""
        networks, noise = networks_of(self.posterior, slice(None), self.networks.architecture, self.networks)
        return self._densities(networks, noise)[0]

    def _densities(self, networks: Networks, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log densities of the training rows, (S, n), and the outputs, of classes the log probabilities."""
        if networks.kind == "gaussian":
            f = networks.outputs(self.rows)
            return log_normal(self.target - f, np.broadcast_to(noise[:, None], f.shape)).sum(axis=2), f
        log_p = networks.log_probabilities(self.rows)
        return log_p[:, np.arange(self.n_rows), self.target], log_p

    @cached_property
    def _left_out(self) -> tuple[LeaveOneOut, FloatArray]:
        networks, noise = self.every
        gaussian = networks.kind == "gaussian"
        densities, f = self._densities(networks, noise)
        if len(networks) < _importance_loo.FEW_DRAWS:
            log_weights = np.full_like(densities, -np.log(len(networks)))
            shapes = np.full(self.n_rows, np.inf)
        else:
            log_weights, shapes = _importance_loo.weights(densities)
            if said := _importance_loo.doubts(shapes, len(networks)):
                warnings.warn(said, NumericalWarning, skip_file_prefixes=HERE)
        out = np.asarray(logsumexp(densities + log_weights, axis=0))
        if gaussian:
            parts = f, np.broadcast_to(noise[:, None], f.shape), np.broadcast_to(log_weights[:, :, None], f.shape)
            if networks.single:
                return LeaveOneOut.of(Prediction(*(part[:, :, 0] for part in parts)), self.target[:, 0], out), shapes
            return LeaveOneOut.of(Prediction(*parts), self.target, out), shapes
        p = np.exp(logsumexp(f + log_weights[:, :, None], axis=0))
        errors, variances = (self.target[:, None] == np.arange(p.shape[1])) - p, p * (1.0 - p)
        if networks.kind == "logistic":
            errors, variances = errors[:, 1:], variances[:, 1:]
        if networks.single and networks.kind != "softmax":
            errors, variances = errors[:, 0], variances[:, 0]
        return LeaveOneOut(errors, variances, out), shapes


def networks_of(posterior: Any, chosen: Any, architecture: Architecture, like: Networks) -> tuple[Networks, FloatArray]:
    """Draws of `bayessel.models.mlp` at positions `chosen` of each chain, chain after chain, and their noise (S, K)."""

    def read(name: str) -> FloatArray:
        values = np.asarray(posterior[name].values)[:, chosen]
        return np.asarray(values.reshape(-1, *values.shape[2:]))

    packed = pack(Weights(*(read(name) for name in Weights._fields)))
    noise = 1.0 / read("tau_noise") if "tau_noise" in posterior else np.zeros((len(packed), architecture.outputs))
    return Networks(architecture, packed, like.kind, like.single), noise


def constant_network(architecture: Architecture, kind: str, single: bool, bias: FloatArray) -> Networks:
    """One network whose outputs are its biases."""
    weights = architecture.split(np.zeros(architecture.size))
    return Networks(architecture, pack(weights._replace(bias=bias))[None], kind, single)
