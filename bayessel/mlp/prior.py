"""Priors of a network's weights: Normal in groups, the groups' precisions Gamma, relevance of inputs in three layers.

A Gamma distribution is given as in Neal (1996) and Rasmussen (1996) by its mean μ and "shape" α,

    p(τ) ∝ τ^{α/2−1} exp(−τα/(2μ)),    the usual Gamma with shape α/2 and rate α/(2μ).

A group worth τ ~ Gamma(μ, α) has seen α weights of mean square 1/μ before it sees its own.

The precision of the hidden-to-output weights is ∝ H. With v_h ~ N(0, 1/τ) independent of the hidden units,
Var Σ_h v_h z_h = Σ_h E[z_h²]/τ = H E[z²]/τ: constant in H if and only if τ ∝ H. So the mean of τ is 100·H, the
standard deviation of one weight about 0.1/√H. (Rasmussen (1996), § 3.7, prints 100·H⁻¹ beside "the variance for the
weights inversely proportional to the number of hidden units"; a precision like that lets Var f grow as H².)

That of the weights of one input of D is ∝ D². Its three layers, τ_i ~ Gamma(μ, 1) and μ ~ Gamma(25·D², ½), have heavy
tails: P(1/√τ_i > s) ∝ 1/s given μ. Of D inputs the number beyond s is then constant in D when μ ∝ D²: a few inputs
matter, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bayessel._check import FloatArray, as_positive
from bayessel.mlp.architecture import Architecture, Weights


@dataclass(frozen=True)
class Gamma:
    """τ > 0 with mean μ and shape α in the sense above; `alpha` and `beta` are the usual shape and rate.

    Examples
    --------
    >>> vague = Gamma(mean=400.0, shape=0.5)
    >>> vague.alpha, vague.beta
    (0.25, 0.000625)
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        for name in ("mean", "shape"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))

    @property
    def alpha(self) -> float:
        """The usual shape, α/2."""
        return 0.5 * self.shape

    @property
    def beta(self) -> float:
        """The usual rate, α/(2μ)."""
        return 0.5 * self.shape / self.mean

    def log_density(self, tau: FloatArray | float) -> float:
        """Sum of log p(τ), constants included; for log τ add log τ."""
        return _log_gamma(np.asarray(tau), self.alpha, self.beta)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...] | None = None) -> FloatArray:
        """Draws of τ; a zero, which tiny shapes round to, becomes the smallest number there is."""
        return np.maximum(rng.standard_gamma(self.alpha, size) / self.beta, np.finfo(np.float64).tiny)


class Precisions(NamedTuple):
    """All hyperparameters, named as in `bayessel.models.mlp` without ``tau_``; the means are the third layer."""

    noise: FloatArray  # (K,)
    hidden_bias: FloatArray  # ()
    hidden_output: FloatArray  # ()
    input_hidden: FloatArray  # (D,)
    mean_input_hidden: FloatArray  # ()
    input_output: FloatArray  # (D,)
    mean_input_output: FloatArray  # ()


#: The names of the PyMC model's variables, in the order of `Precisions`.
PRECISION_NAMES = (
    "tau_noise",
    "tau_hidden_bias",
    "tau_hidden_output",
    "tau_input_hidden",
    "mean_tau_input_hidden",
    "tau_input_output",
    "mean_tau_input_output",
)


@dataclass(frozen=True)
class NetworkPrior:
    """The prior of a network and its noise; by default that of Rasmussen (1996), § 3.7, for standardised data.

    Parameters
    ----------
    architecture : Architecture
        The network it is for.
    noise : Gamma
        Precision of the noise of each output: (400, ½), a standard deviation of about 0.05, vague.
    bias_sd : float
        Standard deviation of the output biases: 1.
    hidden_bias : Gamma
        Precision of the hidden biases: (100, ½).
    hidden_output : Gamma
        Precision of the hidden-to-output weights: (100·H, ½).
    input_hidden, input_output : Gamma
        Top layer, the mean of the precisions of the inputs' weights: (25·D², ½) both.
    input_hidden_shape, input_output_shape : float
        Shape of each input's precision about that mean: 1 both.

    Examples
    --------
    >>> prior = NetworkPrior(Architecture(inputs=2, hidden=6))
    >>> prior.hidden_output.mean, prior.input_hidden.mean
    (600.0, 100.0)
    >>> weights, precisions = prior.draw(np.random.default_rng(0))
    >>> weights.input_hidden.shape
    (2, 6)
    """

    architecture: Architecture
    noise: Gamma = Gamma(400.0, 0.5)
    bias_sd: float = 1.0
    hidden_bias: Gamma = Gamma(100.0, 0.5)
    hidden_output: Gamma = None  # type: ignore[assignment]  # filled in below: it depends on H
    input_hidden: Gamma = None  # type: ignore[assignment]  # and these on D
    input_hidden_shape: float = 1.0
    input_output: Gamma = None  # type: ignore[assignment]
    input_output_shape: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.architecture, Architecture):
            raise TypeError(f"architecture must be an Architecture, got {type(self.architecture).__name__}")
        D, H = self.architecture.inputs, self.architecture.hidden
        usual = {"hidden_output": 100.0 * H, "input_hidden": 25.0 * D**2, "input_output": 25.0 * D**2}
        for name, mean in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, Gamma(mean, 0.5))
        for name in ("noise", "hidden_bias", *usual):
            if not isinstance(getattr(self, name), Gamma):
                raise TypeError(f"{name} must be a Gamma(mean, shape), got {getattr(self, name)!r}")
        for name in ("bias_sd", "input_hidden_shape", "input_output_shape"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))

    def draw_precisions(self, rng: np.random.Generator) -> Precisions:
        """All hyperparameters from the prior."""
        D, K = self.architecture.inputs, self.architecture.outputs
        mean_hidden, mean_output = self.input_hidden.draw(rng), self.input_output.draw(rng)
        return Precisions(
            self.noise.draw(rng, K),
            self.hidden_bias.draw(rng),
            self.hidden_output.draw(rng),
            Gamma(float(mean_hidden), self.input_hidden_shape).draw(rng, D),
            mean_hidden,
            Gamma(float(mean_output), self.input_output_shape).draw(rng, D),
            mean_output,
        )

    def at_mean(self) -> Precisions:
        """Every hyperparameter at its prior mean."""
        D, K = self.architecture.inputs, self.architecture.outputs
        return Precisions(
            np.full(K, self.noise.mean),
            np.asarray(self.hidden_bias.mean),
            np.asarray(self.hidden_output.mean),
            np.full(D, self.input_hidden.mean),
            np.asarray(self.input_hidden.mean),
            np.full(D, self.input_output.mean),
            np.asarray(self.input_output.mean),
        )

    def weight_precisions(self, precisions: Precisions) -> FloatArray:
        """The precision of each weight in packed order: log p(weights | precisions) = Σ ½ log(τ/2π) − ½ τ weight²."""
        H, K = self.architecture.hidden, self.architecture.outputs
        return np.concatenate(
            [
                np.full(H, float(precisions.hidden_bias)),
                np.repeat(precisions.input_hidden, H),
                np.full(K, self.bias_sd**-2),
                np.full(H * K, float(precisions.hidden_output)),
                np.repeat(precisions.input_output, K),
            ]
        )

    def draw_weights(self, precisions: Precisions, rng: np.random.Generator) -> FloatArray:
        """Packed weights given their precisions."""
        return rng.standard_normal(self.architecture.size) / np.sqrt(self.weight_precisions(precisions))

    def draw(self, rng: np.random.Generator) -> tuple[Weights, Precisions]:
        """A whole network and its hyperparameters."""
        precisions = self.draw_precisions(rng)
        return self.architecture.split(self.draw_weights(precisions, rng)), precisions

    def weights_log_density(self, vector: FloatArray, precisions: Precisions) -> float:
        """Log p(packed weights | precisions), constants included."""
        tau = self.weight_precisions(precisions)
        return float(0.5 * np.sum(np.log(tau / (2.0 * np.pi)) - tau * vector**2))

    def precisions_log_density(self, precisions: Precisions) -> float:
        """Log p(precisions), constants included; a density of the precisions themselves, not of their logarithms."""
        p = precisions
        total = self.noise.log_density(p.noise) + self.hidden_bias.log_density(p.hidden_bias)
        total += self.hidden_output.log_density(p.hidden_output)
        total += self.input_hidden.log_density(p.mean_input_hidden)
        total += Gamma(float(p.mean_input_hidden), self.input_hidden_shape).log_density(p.input_hidden)
        total += self.input_output.log_density(p.mean_input_output)
        return total + Gamma(float(p.mean_input_output), self.input_output_shape).log_density(p.input_output)


def _log_gamma(tau: FloatArray, alpha: float, beta: float) -> float:
    constant = alpha * np.log(beta) - gammaln(alpha)
    return float(np.sum(constant + (alpha - 1.0) * np.log(tau) - beta * tau))
