"""Types of arguments that many signatures share.

`ArrayLike` (numpy.typing) is what becomes an array: arrays, nested lists, pandas frames and series.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

#: what may be a seed (`bayessel._check.check_seed`): numbers, a generator that gives one, None for a fresh one
type Seed = int | np.integer | Sequence[int] | np.ndarray | np.random.Generator | np.random.RandomState | None


class SupportsSubmit(Protocol):
    """What `executor=` takes: `submit` returns a future, as Dask's client, concurrent.futures and submitit do."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Have `function(*arguments)` computed elsewhere; the future's `result()` waits for it."""
