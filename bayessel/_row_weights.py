r"""What is known of the rows before a fit: how often each counts, and how large its noise is beside that of others.

Row i counts :math:`w_i` times and has noise of variance :math:`\sigma_i^2/\beta`, with :math:`\sigma_i = s_i/\bar s`
the standard deviations given, in units of their weighted geometric mean :math:`\bar s`. Its part of the likelihood is

.. math:: N(t_i|f_i, \sigma_i^2/\beta)^{w_i},

so that a linear model is an ordinary one of rows multiplied by :math:`u_i = \sqrt{w_i}/\sigma_i`, but that the noise
counts :math:`W = \sum w_i` rows. In these units :math:`\sum w_i\log\sigma_i = 0`: the density of the multiplied targets
is that of the targets, and evidences of different noise levels compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_float_array, as_positive_vector, check_magnitude

#: largest ratio of two multipliers of rows: beyond it rounding in the one row is larger than the other
MOST_RATIO = 1e8
#: largest number of rows that one row may stand for
MOST_COUNT = 1e15


class Given(TypedDict, total=False):
    """Arguments of an engine that say what is known of the rows."""

    noise_std: FloatArray
    sample_weight: FloatArray


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Counts and relative noise levels of rows.

    Attributes
    ----------
    count : (N,) array
        How often each row counts, positive.
    std : (N,) array
        Standard deviation of the noise of each row in units of that of a typical one.
    unit : float
        Standard deviation that was given for a typical row, the geometric mean; 1 where none were.
    knows_noise : bool
        Whether noise levels were given.
    """

    count: FloatArray
    std: FloatArray
    unit: float = 1.0
    knows_noise: bool = False

    @classmethod
    def of(cls, n_rows: int, noise_std: Any = None, sample_weight: Any = None) -> RowWeights | None:
        """Check what was given; None where all rows are alike. Rows of weight zero must be left out before."""
        if noise_std is None and sample_weight is None:
            return None
        count, std, unit = np.ones(n_rows), np.ones(n_rows), 1.0
        if sample_weight is not None:
            count = checked(sample_weight, n_rows, "sample_weight")
            if not (count > 0.0).all():
                raise ValueError("sample_weight must be positive here; leave the rows of weight zero out")
            check_counts(count)
        if noise_std is not None:
            given = checked(noise_std, n_rows, "noise_std")
            if not (given > 0.0).all():
                raise ValueError(
                    "noise_std must be positive, got 0.0: no row is free of noise; give such rows a small one"
                )
            check_magnitude(given, "noise_std")
            unit = _geometric_mean(given, count)
            std = given / unit
        if noise_std is None and (count == 1.0).all():
            return None
        weights = cls(count, std, unit, noise_std is not None)
        if not weights.root.max() <= MOST_RATIO * weights.root.min():
            raise ValueError(
                "noise_std, and one over the root of sample_weight, must lie within a factor of "
                f"{MOST_RATIO:.0e}, got {weights.root.max() / weights.root.min():.0e}; leave out the rows that say "
                "nothing beside the others"
            )
        return weights

    @cached_property
    def root(self) -> FloatArray:
        """What the rows of a linear model are multiplied by, (N,)."""
        return np.asarray(np.sqrt(self.count) / self.std)

    @cached_property
    def total(self) -> float:
        """Rows that the noise counts."""
        return float(self.count.sum())

    @property
    def noise_std(self) -> FloatArray:
        """The standard deviations that were given; ones where none were."""
        return self.unit * self.std

    def some(self, rows: Any) -> RowWeights:
        """Of some of the rows, in units of their own."""
        count, std = self.count[rows], self.std[rows]
        own = _geometric_mean(std, count)
        return RowWeights(count, std / own, own * self.unit, self.knows_noise)

    def part(self, rows: Any) -> RowWeights:
        """Of some of the rows, in the same units."""
        return RowWeights(self.count[rows], self.std[rows], self.unit, self.knows_noise)

    def scale(self, rows: FloatArray) -> FloatArray:
        """Rows (N,) or (N, M) times their multipliers."""
        return np.asarray(rows * (self.root if rows.ndim == 1 else self.root[:, None]))

    def along(self, rows: FloatArray) -> FloatArray:
        """Weights of the bias that fit rows of the scaled model, (N,) or (N, M), best."""
        return np.asarray(self.root @ rows / (self.root @ self.root))

    def without_bias(self, rows: FloatArray) -> FloatArray:
        """Rows of the scaled model without what a bias explains of them."""
        return rows - np.multiply.outer(self.root, self.along(rows))


def shares_of_means(n_rows: int, weights: RowWeights | None) -> FloatArray:
    """What each row has of the bias that fits best, (N,)."""
    squares = np.ones(n_rows) if weights is None else weights.root**2
    return np.asarray(squares / squares.sum())


def given(weights: RowWeights | None) -> Given:
    """Arguments that hand weights on to an engine."""
    if weights is None:
        return {}
    found: Given = {"sample_weight": weights.count}
    return {**found, "noise_std": weights.noise_std} if weights.knows_noise else found


def some(weights: RowWeights | None, rows: Any) -> RowWeights | None:
    """Of some of the rows, in units of their own."""
    return None if weights is None else weights.some(rows)


def _geometric_mean(std: FloatArray, count: FloatArray) -> float:
    return float(np.exp(count @ np.log(std) / count.sum()))


def without_copies(
    X: FloatArray, t: FloatArray, weights: RowWeights | None
) -> tuple[FloatArray, FloatArray, RowWeights | None]:
    """Different rows, each counted as often as it came: the same data in fewer rows, sorted where some came twice."""
    count, std = (np.ones(len(t)), np.ones(len(t))) if weights is None else (weights.count, weights.std)
    rows, back = np.unique(np.column_stack([X, t, std]), axis=0, return_inverse=True)
    if len(rows) == len(t):
        return X, t, weights
    known = (1.0, False) if weights is None else (weights.unit, weights.knows_noise)
    together = RowWeights(np.bincount(back.ravel(), weights=count), rows[:, -1], *known)
    return rows[:, :-2], rows[:, -2], together


def checked(value: Any, n_rows: int, name: str) -> FloatArray:
    """One non-negative number per row, or one for all."""
    array = as_float_array(value, name)
    if array.ndim == 0:
        raise TypeError(f"{name} must be {n_rows} numbers, one per row; got {value!r}")
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must be {n_rows} numbers, one per row; got shape {array.shape}")
    return as_positive_vector(value, name, n_rows, allow_zero=True)


def check_counts(count: FloatArray) -> None:
    """Refuse weights that count less than two rows, or more than double precision does."""
    most, used = float(count.max(initial=0.0)), int((count > 0.0).sum())
    if used == 0:
        raise ValueError("sample_weight must not be zero for all rows: nothing is left to fit")
    if most > MOST_COUNT:
        raise ValueError(f"sample_weight counts rows and must lie below {MOST_COUNT:.0e}, got {most!r}")
    if count.sum() < min(2, used):
        raise ValueError(
            f"sample_weight counts rows (2 is a row that came twice), and these sum to {float(count.sum()):.3g} for "
            f"{used} rows: less than two are left to tell signal from noise. Multiply them by their number over their "
            "sum, or, where they say how exact the rows are, pass noise_std = weights ** -0.5 instead"
        )


def mean(values: FloatArray, weights: RowWeights | None) -> FloatArray:
    """Mean over the rows, each counted as often as its weight."""
    return np.asarray(values.mean(axis=0) if weights is None else weights.count @ values / weights.total)


def deviation(values: FloatArray, weights: RowWeights | None) -> float:
    """Standard deviation of (N,) values, each counted as often as its weight; NaN where one is infinite."""
    with np.errstate(invalid="ignore"):
        if weights is None:
            return float(values.std())
        return float(np.sqrt(weights.count @ (values - weights.count @ values / weights.total) ** 2 / weights.total))


def counted(values: npt.NDArray[Any], weights: RowWeights | None) -> float:
    """Number of rows, each counted as often as its weight."""
    return float(len(values)) if weights is None else weights.total


def rows_of_the_fit(rows: FloatArray, centre: bool, weights: RowWeights | None) -> FloatArray:
    """Rows (N,) or (N, M), multiplied where they have weights, without what a bias explains of them."""
    if weights is None:
        return rows - rows.mean(axis=0) if centre else rows
    scaled = weights.scale(rows)
    return weights.without_bias(scaled) if centre else scaled


def medians(values: FloatArray, weights: RowWeights | None) -> FloatArray:
    """Median over the rows of (N,) or (N, M) values, each counted as often as its weight."""
    if weights is None:
        return np.asarray(np.median(values, axis=0))
    columns = values.reshape(len(values), -1).T
    found = np.array([quantile(column, 0.5, weights.count) for column in columns])
    return found if values.ndim > 1 else found[0]


def quantile(values: FloatArray, q: float, count: FloatArray) -> float:
    """Quantile of (N,) values that came `count` times each, linear between neighbours as in `numpy.quantile`."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(count[order])
    place = q * max(float(upto[-1]) - 1.0, 0.0)
    low, high = (values[order[min(int(np.searchsorted(upto, k, side="right")), len(order) - 1)]]
                 for k in (np.floor(place), np.ceil(place)))  # fmt: skip
    return float(low + (place - np.floor(place)) * (high - low))
