"""R-hat and effective sample sizes of many variables at once.

Rank-normalised split R-hat, bulk and tail effective sample size of Vehtari, Gelman, Simpson, Carpenter and Bürkner
(2021), on arrays (chain, draw, variable). The numbers are ArviZ's, which takes one variable at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.fft import next_fast_len
from scipy.special import ndtri
from scipy.stats import rankdata

from bayessel._check import FloatArray

#: quantiles whose effective sample sizes are the tail ESS
TAILS = (0.05, 0.95)
#: shortest chains that have these numbers
SHORTEST = 4
#: numbers that are worked on at a time
_AT_A_TIME = 1_000_000
#: a spread below is none
_RESOLUTION = 1e-15
#: batches per chain whose means show which variables are slow
_BATCHES = 10


def r_hat(x: FloatArray) -> FloatArray:
    """Rank-normalised split R-hat of each variable, the larger of that for centres and that for spreads.

    NaN for a single chain; infinite where every half-chain stands still, at different places.
    """
    return _by_parts(_r_hat, x, x.shape[0] > 1)


def ess_bulk(x: FloatArray) -> FloatArray:
    """Effective sample size of each variable for its centre."""
    return _by_parts(lambda part: _ess(_normal_scores(_halves(part))), x)


def ess_tail(x: FloatArray) -> FloatArray:
    """Effective sample size of each variable for its tails: the smaller of those for the quantiles `TAILS`."""

    def smaller(part: FloatArray) -> FloatArray:
        low, high = np.quantile(part, TAILS, axis=(0, 1))
        return np.minimum(*(_ess(_halves((part <= bound).astype(np.float64))) for bound in (low, high)))

    return _by_parts(smaller, x)


def ess_mean(x: FloatArray) -> FloatArray:
    """Effective sample size of each variable for its mean."""
    return _by_parts(lambda part: _ess(_halves(part)), x)


def slowness(x: FloatArray) -> FloatArray:
    """How much more the means of batches scatter than those of independent draws: no ranks, no autocorrelations.

    A first look at which of many variables are slow, or at different places in different chains. Infinite where draws
    are not finite.
    """
    chains, draws, variables = x.shape
    length = max(1, draws // _BATCHES)
    count = draws // length
    found = np.full(variables, np.inf)
    step = max(1, _AT_A_TIME // max(1, chains * draws))
    for begin in range(0, variables, step):
        part = x[:, draws - count * length :, begin : begin + step]
        with np.errstate(all="ignore"):
            means = part.reshape(chains * count, length, -1).mean(axis=1)
            ratio = length * means.var(axis=0, ddof=1) / part.var(axis=(0, 1), ddof=1)
        constant = np.ptp(part, axis=(0, 1)) == 0.0
        found[begin : begin + step] = np.where(constant, 0.0, np.where(np.isfinite(ratio), ratio, np.inf))
    return found


def _by_parts(numbers: Callable[[FloatArray], FloatArray], x: FloatArray, known: bool = True) -> FloatArray:
    """Numbers of each variable, some variables at a time."""
    _, draws, variables = x.shape
    found = np.full(variables, np.nan)
    if known and draws >= SHORTEST:
        for part in _parts(x):
            with np.errstate(all="ignore"):
                found[part] = numbers(x[:, :, part])
    return found


def _parts(x: FloatArray) -> Iterator[slice]:
    step = max(1, _AT_A_TIME // max(1, x.shape[0] * x.shape[1]))
    for begin in range(0, x.shape[2], step):
        yield slice(begin, begin + step)


def _halves(x: FloatArray) -> FloatArray:
    """First and last halves of chains as chains."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _normal_scores(x: FloatArray) -> FloatArray:
    """Normal quantiles of the ranks among all draws (Blom 1958)."""
    # one variable after the other in memory: sorting along strides takes twice as long
    flat = np.ascontiguousarray(x.reshape(-1, x.shape[2]).T)
    scores = ndtri((rankdata(flat, axis=1) - 0.375) / (flat.shape[1] + 0.25))
    return np.asarray(scores.T.reshape(x.shape))


def _r_hat(x: FloatArray) -> FloatArray:
    halves = _halves(x)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.fmax(*(_of_scores(_normal_scores(one)) for one in (halves, folded)))


def _of_scores(z: FloatArray) -> FloatArray:
    draws = z.shape[1]
    between, within = z.mean(axis=1).var(axis=0, ddof=1), z.var(axis=1, ddof=1).mean(axis=0)
    within[(np.ptp(z, axis=1) == 0.0).all(axis=0)] = 0.0  # not what rounding leaves of it
    return np.asarray(np.sqrt(between / within + (draws - 1) / draws))


def _ess(x: FloatArray) -> FloatArray:
    """n/τ of chains as they are, by Geyer's initial monotone sequence of sums of neighbouring autocorrelations."""
    chains, draws, _ = x.shape
    away = x - x.mean(axis=1, keepdims=True)
    transformed = np.fft.rfft(away, n=next_fast_len(2 * draws, real=True), axis=1)
    power = (transformed.real**2 + transformed.imag**2).mean(axis=0)
    covariance = np.fft.irfft(power, n=next_fast_len(2 * draws, real=True), axis=0)[:draws] / draws
    within = covariance[0] * draws / (draws - 1)
    total = covariance[0] + (x.mean(axis=1).var(axis=0, ddof=1) if chains > 1 else 0.0)
    rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    last = max(0, -(-(draws - 2) // 2) - 1)  # the last pair that is looked at
    even, sums = rho[0 : 2 * last + 1 : 2], rho[0 : 2 * last + 1 : 2] + rho[1 : 2 * last + 2 : 2]
    positive = np.logical_and.accumulate(sums > 0.0)
    positive[-1] = False
    end = positive.sum(axis=0)[None]
    tail = np.take_along_axis(even, end, 0)[0]
    tail = np.where(np.take_along_axis(sums, end, 0)[0] > 0.0, tail, np.maximum(tail, 0.0))
    tau = -1.0 + 2.0 * (np.minimum.accumulate(sums) * positive).sum(axis=0) + tail
    size = chains * draws
    found = size / np.maximum(tau, 1.0 / np.log10(size))
    found = np.where(np.isnan(rho).any(axis=0), np.nan, found)
    return np.asarray(np.where(np.ptp(x, axis=(0, 1)) < _RESOLUTION, float(size), found))
