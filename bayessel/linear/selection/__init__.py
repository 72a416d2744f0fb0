"""Explicit selection of basis functions: searches that the model evidence guides."""

from bayessel.linear.selection._search import search
from bayessel.linear.selection.driver import PathPoint, Search
from bayessel.linear.selection.result import SearchFit, SelectionFit
from bayessel.linear.selection.strategies import PTA, SFFS, Oscil, Strategy

__all__ = ["PTA", "SFFS", "Oscil", "PathPoint", "Search", "SearchFit", "SelectionFit", "Strategy", "search"]
