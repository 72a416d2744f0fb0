"""Explicit selection of basis functions: searches that the model evidence guides."""

from bayessel.linear.columns.fit import ColumnChoice
from bayessel.linear.selection._search import search
from bayessel.linear.selection.result import SearchFit
from bayessel.linear.selection.selection_search import SelectionSearch
from bayessel.linear.selection.strategies import PTA, SFFS, Oscil, Strategy

__all__ = ["PTA", "SFFS", "ColumnChoice", "Oscil", "SearchFit", "SelectionSearch", "Strategy", "search"]
