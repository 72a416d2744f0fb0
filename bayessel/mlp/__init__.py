"""Bayesian multi-layer perceptrons on plain arrays: the network, its prior, and fits without PyMC."""

from bayessel.mlp.network import Architecture, Weights, backward, default_hidden, forward
from bayessel.mlp.prior import Gamma, NetworkPrior, Precisions

__all__ = ["Architecture", "Gamma", "NetworkPrior", "Precisions", "Weights", "backward", "default_hidden", "forward"]
