"""Many independent calls on one core or several: results as they come, the same whatever the number of cores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bayessel._numerics import few_threads

#: Starting workers costs about two seconds: it must save more than that.
_WORTH_WORKERS = 5.0


def results(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], n_jobs: int | None) -> Iterator[Any]:
    """Yield (position, function(*call)) as the calls finish.

    With ``n_jobs=None`` the work stays in this process until it is known to be long; then all cores take part. Each
    call runs with one BLAS thread wherever it runs: the cores are shared between calls, and the numbers do not depend
    on who computes them.
    """
    began = time.perf_counter()
    jobs = _cores() if n_jobs is None else _cores() + 1 + n_jobs if n_jobs < 0 else n_jobs
    jobs = max(1, min(jobs, len(calls)))
    for position, call in enumerate(calls):
        rest = len(calls) - position
        spent = time.perf_counter() - began
        long = n_jobs is not None or (position > 1 and spent / position * rest * (1 - 1 / jobs) > _WORTH_WORKERS)
        if jobs > 1 and rest > 1 and long:
            yield from _shared(function, calls, position, jobs)
            return
        yield position, alone(function, *call)


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call with one BLAS thread."""
    with few_threads(0):
        return function(*arguments)


def _shared(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], begin: int, jobs: int
) -> Iterator[tuple[int, Any]]:
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", pre_dispatch="2*n_jobs")
    stream = parallel(delayed(_numbered)(k, function, *calls[k]) for k in range(begin, len(calls)))
    try:
        yield from stream
    finally:
        stream.close()


def _numbered(position: int, function: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    return position, alone(function, *arguments)


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())
