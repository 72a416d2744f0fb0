"""Gaussian processes of many rows through a few inducing inputs: the variational bound and its fit."""

from bayessel.gp.inducing._fit import SparseFit, fit_sparse
from bayessel.gp.inducing.bound import SparseMarginal

__all__ = ["SparseFit", "SparseMarginal", "fit_sparse"]
