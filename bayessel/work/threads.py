"""One BLAS thread for a whole run, shared by the runs of several Python threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


class _OneThread:
    """One BLAS thread from the beginning of the first run to the end of the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._limits: threadpool_limits | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if not self._runs:
                self._limits = threadpool_limits(limits=1)
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                if not self._runs and self._limits is not None:
                    self._limits.restore_original_limits()


one_blas_thread = _OneThread()
