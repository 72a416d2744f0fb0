"""Time budgets in seconds of processor: what else the machine does is no part of a comparison."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from bayessel.mlp import early_stopping
from bayessel.samplers.run import kernel
from bayessel.work import clock


@contextmanager
def processor_time() -> Iterator[None]:
    """Let samplers and ensembles count processor time in place of the clock's."""
    clocks = ((clock, "monotonic"), (kernel, "perf_counter"), (early_stopping, "perf_counter"))
    with ExitStack() as stack:
        for module, name in clocks:
            stack.enter_context(patch.object(module, name, time.process_time))
        yield
