"""Sparse Bayesian learning: the relevance vector machine by type-II maximum likelihood."""

from bayessel.linear.rvm._fit_rvm import fit_rvm
from bayessel.linear.rvm.result import RVMFit

__all__ = ["RVMFit", "fit_rvm"]
