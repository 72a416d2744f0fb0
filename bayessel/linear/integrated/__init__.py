"""Linear models whose hyperparameters are integrated out on a grid: widths, share of the trend, penalty and noise."""

from bayessel.linear.integrated._fit_integrated import fit_constant, fit_integrated, fit_trend

__all__ = ["fit_constant", "fit_integrated", "fit_trend"]
