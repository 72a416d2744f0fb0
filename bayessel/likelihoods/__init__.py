"""Likelihoods of targets given a latent function: classes, counts, noise with heavy tails."""

from bayessel.likelihoods.base import Likelihood
from bayessel.likelihoods.registry import LIKELIHOODS, as_likelihood

__all__ = [
    "LIKELIHOODS",
    "Likelihood",
    "as_likelihood",
]
