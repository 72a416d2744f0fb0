"""Gaussian processes of many rows by Vecchia's approximation: each row given few rows near it."""

from bayessel.gp.vecchia.vecchia_fit import fit_vecchia

__all__ = ["fit_vecchia"]
