"""Widths of radial functions fitted by the evidence: of all functions, or of those in a relevance vector machine."""

from bayessel.linear.widths.abf import fit_abf
from bayessel.linear.widths.rvm_width import fit_rvm_width

__all__ = ["fit_abf", "fit_rvm_width"]
