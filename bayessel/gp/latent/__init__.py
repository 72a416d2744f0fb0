"""Gaussian processes seen through another likelihood than normal noise: labels, counts, heavy tails."""

from bayessel.gp.latent.latent_search import fit_latent_process

__all__ = ["fit_latent_process"]
