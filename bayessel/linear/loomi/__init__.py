"""Forward selection of a two-class classifier by leave-one-out mutual information."""

from bayessel.linear.loomi._fit_loomi import fit_loomi

__all__ = ["fit_loomi"]
