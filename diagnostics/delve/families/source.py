"""A task that can be drawn again and again: inputs at random, a function, and its noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bayessel._check import FloatArray, as_count, as_generator
from bayessel._types import Seed
from bayessel.diagnostics.delve._task import Dataset

#: cases of DELVE's data sets
CASES = 8192
#: inputs (N, D) from a generator
Draw = Callable[[int, np.random.Generator], FloatArray]
#: targets (N,) of inputs; without noise if there is no generator
Respond = Callable[[FloatArray, np.random.Generator | None], FloatArray]


@dataclass(frozen=True)
class Source:
    """Where inputs come from and how targets follow.

    Parameters
    ----------
    name : str
        As in DELVE: family, number of inputs, f (fairly linear) or n (non-linear), m or h (medium or high noise).
    inputs, target : tuple of str, str
        Names of columns.
    draw, respond : callable
        Inputs, and the targets of given ones.
    attributes : dict
        What results may be averaged by.
    """

    name: str
    inputs: tuple[str, ...]
    target: str
    draw: Draw
    respond: Respond
    attributes: dict[str, Any] = field(default_factory=dict)

    def sample(self, n: int, random_state: Seed = None, *, noise: bool = True) -> tuple[pd.DataFrame, pd.Series]:
        """n cases: inputs and targets."""
        n = as_count(n, "n")
        rng = as_generator(random_state)
        X = self.draw(n, rng)
        y = self.respond(X, rng if noise else None)
        return pd.DataFrame(X, columns=list(self.inputs)), pd.Series(y, name=self.target)

    def dataset(self, n: int = CASES, random_state: Seed = 0) -> Dataset:
        """n cases as a data set that tasks can be made of, half of them for training."""
        X, y = self.sample(n, random_state)
        return Dataset(self.name, X.assign(**{self.target: y}), self.attributes)
