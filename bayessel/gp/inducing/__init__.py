"""Gaussian processes of many rows through a few inducing inputs: the variational bound and its fit."""

from bayessel.gp.inducing.inducing_fit import fit_inducing

__all__ = ["fit_inducing"]
