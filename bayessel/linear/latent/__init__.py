"""Linear models of classes, counts and targets with heavy tails: any likelihood, by Laplace's method."""

from bayessel.linear.latent._fit_latent import fit_latent
from bayessel.linear.latent._fit_latent_rvm import fit_latent_rvm
from bayessel.linear.latent.result import LatentFit

__all__ = ["LatentFit", "fit_latent", "fit_latent_rvm"]
