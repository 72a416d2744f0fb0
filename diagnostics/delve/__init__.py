"""Is one method better than another, by how much, and can we tell? The designs of DELVE (Rasmussen 1996, ch. 2)."""

from bayessel.diagnostics.delve._designs import hierarchical, two_way
from bayessel.diagnostics.delve._folder import datasets, divided, load
from bayessel.diagnostics.delve._losses import LOSSES
from bayessel.diagnostics.delve._run import run
from bayessel.diagnostics.delve._study import Study
from bayessel.diagnostics.delve._task import Dataset, Task
from bayessel.diagnostics.delve._verdict import verdict

__all__ = [
    "LOSSES",
    "Dataset",
    "Study",
    "Task",
    "datasets",
    "divided",
    "hierarchical",
    "load",
    "run",
    "two_way",
    "verdict",
]
