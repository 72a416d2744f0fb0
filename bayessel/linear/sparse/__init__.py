"""Sparse Bayesian learning: the relevance vector machine by type-II maximum likelihood."""

from bayessel.linear.sparse._fit_rvm import fit_rvm
from bayessel.linear.sparse.result import SparseFit

__all__ = ["SparseFit", "fit_rvm"]
