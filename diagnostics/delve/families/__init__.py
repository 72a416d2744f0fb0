"""Tasks from generators: the robot arms of DELVE's kin and pumadyn families, Hwang's and Friedman's functions."""

from bayessel.diagnostics.delve.families._catalogue import NAMES, family
from bayessel.diagnostics.delve.families.difficulty_indices import difficulty
from bayessel.diagnostics.delve.families.source import Source

__all__ = ["NAMES", "Source", "difficulty", "family"]
