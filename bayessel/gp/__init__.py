"""Gaussian-process regression on plain arrays: the marginal likelihood with its gradient, and what is built on it."""

from bayessel.gp.marginal import Factor, Marginal, log_marginal

__all__ = ["Factor", "Marginal", "log_marginal"]
