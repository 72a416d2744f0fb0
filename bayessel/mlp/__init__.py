"""Bayesian multi-layer perceptrons on plain arrays: the network, its prior, and fits without PyMC."""

from bayessel.mlp.architecture import Architecture, Weights, backward, forward
from bayessel.mlp.early_stopping import EarlyStoppingState, fit_early_stopping
from bayessel.mlp.early_stopping_result import EarlyStoppingEnsemble
from bayessel.mlp.evidence import fit_network_evidence
from bayessel.mlp.evidence_result import NetworkEvidenceFit
from bayessel.mlp.prior import Gamma, NetworkPrior, Precisions

__all__ = [
    "Architecture",
    "EarlyStoppingEnsemble",
    "EarlyStoppingState",
    "Gamma",
    "NetworkEvidenceFit",
    "NetworkPrior",
    "Precisions",
    "Weights",
    "backward",
    "fit_early_stopping",
    "fit_network_evidence",
    "forward",
]
