"""What a contestant is asked for and what it returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.rvm_cases import Array

#: a long call is repeated so often, if that takes fewer seconds than that
REPEATS, ENOUGH = 3, 5.0


@dataclass(frozen=True)
class Setting:
    """Chains one after the other; tuning and kept draws of each."""

    chains: int
    tune: int
    draws: int
    seed: int

    def starts(self, size: int) -> Array:
        """One starting point per chain: uniform on (−1, 1)."""
        return np.random.default_rng(self.seed).uniform(-1.0, 1.0, (self.chains, size))


@dataclass
class Run:
    """Draws and what they cost.

    Attributes
    ----------
    draws
        Named arrays (chain, draw, …) as `Target.finish` makes them.
    seconds, cpu
        Tuning and draws, by the clock and of processor; what makes the draws into `draws` included.
    compiling
        Seconds by the clock before that: compilation and a first call.
    gradients
        Gradient evaluations of the kept draws, of all chains; None where there are none to count.
    diverging
        Divergent transitions among the kept draws.
    """

    draws: dict[str, Array]
    seconds: float
    cpu: float
    compiling: float
    gradients: int | None = None
    diverging: int = 0


def timed(sample: Callable[[Setting], Any], setting: Setting) -> tuple[Any, float, float, float]:
    """What `sample` returns; its seconds by the clock and of processor; and those of a first call.

    The first call is short and compiles. What further short calls take is taken off the long one: it is what a call
    costs once, such as a function for the trace that is compiled anew. The least time of a few counts, of both.
    """
    short = replace(setting, tune=1, draws=setting.chains)  # ArviZ takes more chains than draws for a mistake
    _, first = _once(sample, short)
    once, long = [], []
    while not long or (len(long) < REPEATS and np.sum(long, axis=0)[0] < ENOUGH):
        once.append(_once(sample, short)[1])
        found, took = _once(sample, setting)
        long.append(took)
    seconds, cpu = np.maximum(np.min(long, axis=0) - np.min(once, axis=0), 1e-6)
    return found, float(seconds), float(cpu), float(first[0])


def _once(sample: Callable[[Setting], Any], setting: Setting) -> tuple[Any, Array]:
    """Call once; seconds by the clock and of processor."""
    start = np.array([time.perf_counter(), time.process_time()])
    found = sample(setting)
    return found, np.array([time.perf_counter(), time.process_time()]) - start
