"""Gaussian processes of many rows through a few inducing inputs: the variational bound and its fit."""

from bayessel.gp.sparse._fit import SparseFit, fit_sparse
from bayessel.gp.sparse.bound import SparseMarginal

__all__ = ["SparseFit", "SparseMarginal", "fit_sparse"]
