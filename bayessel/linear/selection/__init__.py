"""Explicit selection of basis functions: searches that the model evidence guides."""

from bayessel.linear.selection._search import search
from bayessel.linear.selection.strategies import PTA, SFFS, Oscil

__all__ = ["PTA", "SFFS", "Oscil", "search"]
