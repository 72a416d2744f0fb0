"""Is one method better than another, by how much, and can we tell? The designs of DELVE (Rasmussen 1996, ch. 2)."""

from bayessel.diagnostics.delve._folder import datasets, divided, load
from bayessel.diagnostics.delve._hierarchical import Hierarchical, hierarchical
from bayessel.diagnostics.delve._losses import LOSSES, standardised_losses
from bayessel.diagnostics.delve._mean_posterior import MeanPosterior
from bayessel.diagnostics.delve._run import run
from bayessel.diagnostics.delve._store import TaskFacts
from bayessel.diagnostics.delve._study import Study
from bayessel.diagnostics.delve._task import DESIGNS, Dataset, Instance, Prototask, Task
from bayessel.diagnostics.delve._two_way import TwoWay, two_way
from bayessel.diagnostics.delve._unit import Outcome, Unit
from bayessel.diagnostics.delve._verdict import Verdict, verdict

__all__ = [
    "DESIGNS",
    "LOSSES",
    "Dataset",
    "Hierarchical",
    "Instance",
    "MeanPosterior",
    "Outcome",
    "Prototask",
    "Study",
    "Task",
    "TaskFacts",
    "TwoWay",
    "Unit",
    "Verdict",
    "datasets",
    "divided",
    "hierarchical",
    "load",
    "run",
    "standardised_losses",
    "two_way",
    "verdict",
]
