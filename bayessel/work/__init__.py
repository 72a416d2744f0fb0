"""How many things get done: units of work, processes and executors, Ctrl-C, time budgets, progress, seeds, journals."""

from bayessel.work._run import run
from bayessel.work.unit import WorkUnit

__all__ = ["WorkUnit", "run"]
