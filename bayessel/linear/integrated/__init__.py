"""Linear models whose hyperparameters are integrated out on a grid: widths, share of the trend, penalty and noise."""

from bayessel.linear.integrated._fit_integrated import fit_integrated

__all__ = ["fit_integrated"]
