"""Tasks from generators: the robot arms of DELVE's kin and pumadyn families, Hwang's and Friedman's functions."""

from bayessel.diagnostics.delve.families._catalogue import family
from bayessel.diagnostics.delve.families.difficulty_indices import difficulty

__all__ = ["difficulty", "family"]
