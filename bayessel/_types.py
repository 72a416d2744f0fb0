"""Types of arguments that many signatures share.

`ArrayLike` (numpy.typing) is what becomes an array: arrays, nested lists, pandas frames and series.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

#: what may be a seed (`bayessel._check.check_seed`): numbers, a generator that gives one, None for a fresh one
type Seed = int | np.integer | Sequence[int] | np.ndarray | np.random.Generator | np.random.RandomState | None

# What options may say: type checkers find a misspelling before it runs. `tests/test_pyright.py` compares them with the
# choices that are checked at run time.
type Missing = Literal["error", "indicator"]
type RadialKind = Literal["gaussian", "multiquadric", "inverse_multiquadric", "cauchy"]
type ModeInference = Literal["auto", "type2"]
type ProcessInference = Literal["auto", "map", "mc"]
type RadialLikelihood = Literal["gaussian", "student", "poisson", "negative-binomial"]
type ProcessLikelihood = Literal["gaussian", "student", "heteroscedastic", "poisson", "negative-binomial"]
type NetworkInference = Literal["auto", "mc", "early-stopping", "evidence"]
type SparseStart = Literal["auto", "greedy", "full", "backward", "quick"]
type PrecisionSteps = Literal["profile", "mackay", "em"]
type ForwardMethod = Literal["ols", "rfs", "rols", "backward"]
type ForwardGain = Literal["error", "cost"]
type WidthModelName = Literal["evidence", "rvm", "gp", "search"]
type Task = Literal["regression", "classification"]


class SupportsSubmit(Protocol):
    """What `executor=` takes: `submit` returns a future, as Dask's client, concurrent.futures and submitit do."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Have `function(*arguments)` computed elsewhere; the future's `result()` waits for it."""
