"""Are ranks uniform? A χ² test over bins, and simultaneous bands around the empirical distribution function.

Ranks r are whole numbers 0 … L, each as probable as the others if the sampler is right. With R of them, the number at
or below k is binomial with z = (k + 1)/(L + 1). Following Säilynoja, Bürkner and Vehtari (2022) a band of pointwise
level γ is widened until it holds everywhere at once with the level asked for; here γ comes from simulated uniform
ranks, which takes their discreteness into account, and the same simulation gives a p-value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from bayessel._check import FloatArray

IntArray = npt.NDArray[np.int64]

#: Simulated sets of ranks: p-values below 1/20 000 are not told apart.
SIMULATIONS = 20_000
#: Fewest ranks expected in a bin of the χ² test, and most bins.
_PER_BIN, _MOST_BINS = 10, 20


class Band(NamedTuple):
    """Rank ≤ k as a fraction z of all, and the counts between which the band lies."""

    z: FloatArray
    lower: IntArray
    upper: IntArray


def rank(draws: FloatArray, truth: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return the number of draws (rows) below the truth, per column; ties are broken at random."""
    below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    return np.asarray(below + rng.integers(0, equal + 1), dtype=np.int64)


def bin_edges(n_ranks: int, n_values: int) -> IntArray:
    """Edges in 0 … n_values of bins as wide as each other, or nearly, that expect enough ranks."""
    bins = int(np.clip(n_ranks // _PER_BIN, 2, min(_MOST_BINS, n_values)))
    # bins of exactly one width if that costs few of them
    divisors = [b for b in range(bins, bins // 2, -1) if n_values % b == 0]
    return np.linspace(0, n_values, (divisors[0] if divisors else bins) + 1).astype(np.int64)


def chi_square(ranks: IntArray, n_values: int) -> float:
    """p-value of the χ² test that ranks are uniform on 0 … n_values − 1."""
    edges = bin_edges(len(ranks), n_values)
    counts = np.histogram(ranks, bins=edges - 0.5)[0]
    return float(stats.chisquare(counts, len(ranks) * np.diff(edges) / n_values).pvalue)


def ecdf(ranks: IntArray, n_values: int) -> float:
    """p-value of the largest excursion of the empirical distribution function, wherever it is."""
    counts = np.cumsum(np.bincount(ranks, minlength=n_values))[:-1]
    depth = _depths(len(ranks), n_values)[counts, np.arange(n_values - 1)].min()
    null = _null(len(ranks), n_values)
    return float((1 + np.searchsorted(null, depth * (1 + 1e-12), side="right")) / (1 + len(null)))


def band(n_ranks: int, n_values: int, level: float) -> Band:
    """Counts within which the whole empirical distribution function stays with probability 1 − level."""
    null = _null(n_ranks, n_values)
    depth = null[min(int(level * len(null)), len(null) - 1)]
    within = _depths(n_ranks, n_values) >= depth
    lower = within.argmax(axis=0)
    upper = n_ranks - within[::-1].argmax(axis=0)
    return Band(np.arange(1, n_values) / n_values, lower.astype(np.int64), upper.astype(np.int64))


@lru_cache(maxsize=16)
def _depths(n_ranks: int, n_values: int) -> FloatArray:
    """Two-sided tail probability of every count (rows) at every k < n_values − 1 (columns)."""
    counts = np.arange(n_ranks + 1)[:, None]
    z = np.arange(1, n_values) / n_values
    at_most = special.bdtr(counts, n_ranks, z)
    at_least = np.vstack([np.ones_like(z), special.bdtrc(counts[:-1], n_ranks, z)])
    return np.asarray(2.0 * np.minimum(at_most, at_least))


@lru_cache(maxsize=16)
def _null(n_ranks: int, n_values: int) -> FloatArray:
    """The smallest depth of simulated uniform ranks, sorted; always the same simulation."""
    rng = np.random.default_rng(20_220_131)
    depths, columns = _depths(n_ranks, n_values), np.arange(n_values - 1)
    found = []
    for _ in range(SIMULATIONS // 1_000):
        counts = rng.multinomial(n_ranks, np.full(n_values, 1.0 / n_values), size=1_000)
        found.append(depths[np.cumsum(counts, axis=1)[:, :-1], columns].min(axis=1))
    return np.sort(np.concatenate(found))
