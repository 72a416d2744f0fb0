"""Why draws of a posterior should not be built upon."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel.chains.verdict import NOT_YET
from bayessel.marginal_likelihood.bridge import effective_draws
from bayessel.marginal_likelihood.modes import DensityMode, unvisited

#: R-hat beyond which chains have seen different parts of the posterior
LARGEST_R_HAT = 1.02
#: effective draws of the slowest coordinate, below which errors are unsure
LEAST_EFFECTIVE = 200.0
#: share of the mass, by Laplace's approximation, that draws or particles may not have seen
LARGEST_MISSED = 0.005


class JudgedDraws(NamedTuple):
    """Draws (chains, draws, d), what is known of them, and a doubt: empty where there is none."""

    draws: FloatArray
    said: str
    doubt: str

    @property
    def flat(self) -> FloatArray:
        """All draws, (n, d)."""
        return self.draws.reshape(-1, self.draws.shape[2])


def judge_draws(draws: FloatArray, modes: list[DensityMode], verdict: str = "") -> JudgedDraws:
    """Whether the chains agree, have moved, and have been at all modes that are known; `verdict` is that of the run."""
    import arviz as az

    chains, count, d = draws.shape
    half = count // 2
    halves = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    with np.errstate(all="ignore"):
        r_hat = (
            max(float(np.nan_to_num(az.rhat(halves[:, :, i]), nan=np.inf)) for i in range(d)) if half > 3 else np.inf
        )
    least = min(effective_draws(draws[:, :, i]) for i in range(d))
    said = f"{chains} chains, R-hat {r_hat:.3f}, {least:.0f} effective draws"
    missed = unvisited(modes, draws.reshape(-1, d)) if modes else 0.0
    if not r_hat <= LARGEST_R_HAT:
        return JudgedDraws(draws, said, "the chains disagree")
    if verdict == NOT_YET:
        return JudgedDraws(draws, said, "the run's own verdict is not to use them")
    if least < LEAST_EFFECTIVE:
        return JudgedDraws(draws, said, "too few effective draws")
    if missed > LARGEST_MISSED:
        return JudgedDraws(draws, said, f"no draw lies near modes with {100.0 * missed:.0f} % of the mass")
    return JudgedDraws(draws, said, "")
