"""Bayesian multi-layer perceptrons on plain arrays: the network, its prior, and fits without PyMC."""

from bayessel.mlp.architecture import Architecture, Weights, forward
from bayessel.mlp.early_stopping import fit_early_stopping
from bayessel.mlp.evidence import fit_network_evidence
from bayessel.mlp.prior import Gamma, NetworkPrior

__all__ = [
    "Architecture",
    "Gamma",
    "NetworkPrior",
    "Weights",
    "fit_early_stopping",
    "fit_network_evidence",
    "forward",
]
