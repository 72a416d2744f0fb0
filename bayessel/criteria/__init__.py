"""Criteria that fits are judged by: one registry of their names, directions, units, formulas, and what each asks.

Tables, verdicts, reports, the command line and the estimators' options read this registry, so a criterion is spelled in
one place: the file that defines it.
"""

from bayessel.criteria._criterion import Criterion
from bayessel.criteria.registry import CRITERIA

__all__ = ["CRITERIA", "Criterion"]
