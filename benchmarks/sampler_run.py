"""What a contestant is asked for and what it hands back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.rvm_cases import Array


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
        Seconds before that: compilation and a first call.
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
