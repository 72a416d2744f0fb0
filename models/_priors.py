"""Broad default hyperpriors, stated in the units of the data so that rescaling y or a column changes nothing.

A Gamma(a, b) prior on the precision of a zero-mean Gaussian is worth 2a extra draws of that Gaussian whose squares
add up to 2b. The defaults take a = 1/2, one extra draw, and choose its size: the prior on the standard deviation is
then ``size / |z|`` with z standard normal, 95 % of it between 0.45 and 32 sizes, with a heavy tail upwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray, as_positive

#: The pseudo-residual behind the default prior on beta, as a fraction of the spread of the target.
NOISE_FRACTION = 0.01
#: The pseudo-weight behind the default prior on alpha, as a fraction of the weight that explains the whole target.
WEIGHT_FRACTION = 0.1


class GammaPrior(NamedTuple):
    """Shape a (no unit) and rate b (unit of 1/precision) of p(x) = bᵃ xᵃ⁻¹ e^{−bx} / Γ(a)."""

    shape: float
    rate: float


def _rms(values: FloatArray, centre: bool) -> float:
    """Root mean square, about the column means if `centre`; 1 or the uncentred one where that is nil up to rounding."""
    largest = float(np.abs(values).max())
    if largest == 0.0:
        return 1.0
    unit = values / largest  # squares of the raw values may overflow
    raw = float(np.sqrt(np.mean(unit**2)))
    if centre:
        centred = float(np.sqrt(np.mean((unit - unit.mean(axis=0)) ** 2)))
        # a constant target has no spread: only its rounding is left, which is no scale to build a prior on
        if centred > 64.0 * np.finfo(float).eps * raw:
            return centred * largest
    return raw * largest


def _prior(name: str, shape: float, rate: float | None, size: float) -> GammaPrior:
    """Return the prior of that shape and rate; by default worth one draw (for shape 1/2) of the given size."""
    shape = as_positive(shape, f"{name}_shape")
    if rate is not None:
        return GammaPrior(shape, as_positive(rate, f"{name}_rate"))
    with np.errstate(over="ignore", under="ignore"):
        default = float(shape * np.square(size))
    if not (np.finfo(float).tiny < default < np.inf):
        raise ValueError(
            f"no default prior for {name}: its scale in the units of the data is {size:.3g}, out of range; "
            f"rescale Phi or t, or pass {name}_rate"
        )
    return GammaPrior(shape, default)


def noise_precision_prior(t: FloatArray, *, centre: bool, shape: float, rate: float | None) -> GammaPrior:
    """Prior of β (unit: 1/[t]²); the default rate is shape · (0.01 · spread of t)²."""
    return _prior("beta", shape, rate, NOISE_FRACTION * _rms(t, centre))


def weight_precision_prior(
    Phi: FloatArray, t: FloatArray, *, centre: bool, shape: float, rate: float | None
) -> GammaPrior:
    """Prior of α (unit: [Φ]²/[t]²); the default rate is shape · (0.1 · s)², M ⟨Φ²⟩ s² = (spread of t)²."""
    full = _rms(t, centre) / _rms(Phi, centre) / np.sqrt(Phi.shape[1])
    return _prior("alpha", shape, rate, WEIGHT_FRACTION * full)


def separate_precision_rates(Phi: FloatArray, t: FloatArray, *, centre: bool, shape: float) -> FloatArray:
    """Return b_i = shape · s_i² with M ⟨φ_i²⟩ s_i² = (spread of t)², one per column.

    Smaller scales would be sparser, but overlapping functions need weights that cancel, and a prior that forbids them
    fits nothing. With `centre` the spread is about the mean, for a constant column takes care of that: its own scale
    is then the root mean square of t.
    """
    full, spread_of_t = _rms(t, False), _rms(t, centre)
    rates = np.empty(Phi.shape[1])
    for i, column in enumerate(Phi.T):
        # a column of zeros has no scale; any will do
        size = _rms(column, False) * np.sqrt(Phi.shape[1])
        own = full if centre and np.ptp(column) == 0.0 else spread_of_t
        rates[i] = _prior("alpha", shape, None, own / size).rate
    return rates


def spread(t: FloatArray) -> float:
    """Return the standard deviation of t, or another positive scale when t is constant (unit of t)."""
    return _rms(t, centre=True)
