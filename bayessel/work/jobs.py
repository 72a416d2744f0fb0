"""Numbers of processes: one meaning of ``n_jobs`` in the whole library."""

from __future__ import annotations

import multiprocessing

import numpy as np

_state = {"worker": False}


def begin_worker() -> None:
    """From now on this is a worker process, which does not start workers of its own."""
    _state["worker"] = True


def in_worker() -> bool:
    """Whether this is a worker process, of ours or of a pool of the standard library."""
    return _state["worker"] or multiprocessing.current_process().daemon


def core_count() -> int:
    """Processor cores this process may use; one inside a worker process."""
    if in_worker():
        return 1
    from joblib import cpu_count

    return int(cpu_count())


def check_jobs(n_jobs: int | None, name: str = "n_jobs") -> int | None:
    """Return a number of processes: None stays None, -1 is every core, -2 all but one."""
    if n_jobs is None:
        return None
    needed = f"{name} must be None, a number of processes, or -1 for every core"
    if isinstance(n_jobs, bool | np.bool_) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"{needed}; got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError(f"{name} must not be 0; {needed}")
    if n_jobs < 0:
        return max(1, core_count() + 1 + int(n_jobs))
    return 1 if in_worker() else int(n_jobs)
