"""How many things get done: units of work, processes and executors, Ctrl-C, time budgets, progress, seeds, journals."""

from bayessel.work._run import WorkReport, run
from bayessel.work.executors import check_executor
from bayessel.work.jobs import check_jobs, core_count
from bayessel.work.progress import Progress
from bayessel.work.result_store import ResultStore
from bayessel.work.seeds import seed_sequence
from bayessel.work.unit import WorkUnit

__all__ = [
    "Progress",
    "ResultStore",
    "WorkReport",
    "WorkUnit",
    "check_executor",
    "check_jobs",
    "core_count",
    "run",
    "seed_sequence",
]
