"""Is one method better than another, by how much, and can we tell? The designs of DELVE (Rasmussen 1996, ch. 2)."""

from bayessel.diagnostics.delve._hierarchical import Hierarchical, hierarchical
from bayessel.diagnostics.delve._losses import LOSSES, standardised_losses
from bayessel.diagnostics.delve._mean_posterior import MeanPosterior
from bayessel.diagnostics.delve._two_way import TwoWay, two_way

__all__ = ["LOSSES", "Hierarchical", "MeanPosterior", "TwoWay", "hierarchical", "standardised_losses", "two_way"]
