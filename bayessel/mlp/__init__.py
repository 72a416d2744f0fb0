"""Bayesian multi-layer perceptrons on plain arrays: the network, its prior, and fits without PyMC."""

from bayessel.mlp.early_stopping import EarlyStoppingState, fit_early_stopping
from bayessel.mlp.early_stopping_result import EarlyStoppingEnsemble
from bayessel.mlp.network import Architecture, Weights, backward, default_hidden, forward
from bayessel.mlp.prior import Gamma, NetworkPrior, Precisions

__all__ = [
    "Architecture",
    "EarlyStoppingEnsemble",
    "EarlyStoppingState",
    "Gamma",
    "NetworkPrior",
    "Precisions",
    "Weights",
    "backward",
    "default_hidden",
    "fit_early_stopping",
    "forward",
]
