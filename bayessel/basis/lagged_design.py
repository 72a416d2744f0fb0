r"""Inputs of a series from its own past: the autoregressive design.

The row of the target :math:`y_t` has the values :math:`y_{t-h-l+1}` for each lag l, where h is the horizon: lag 1 is
the newest value that is known h steps ahead of the target (Orr 1996, section 2.2).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_count, as_float_array, one_of

if TYPE_CHECKING:
    import pandas as pd

GAPS = ("refuse", "drop")


class LaggedDesign(NamedTuple):
    """Inputs, target, and where in the series the targets stand; tables where the series was one, else arrays."""

    X: Any
    y: Any
    index: Any


def lagged(
    series: npt.ArrayLike | pd.Series[Any] | pd.DataFrame,
    lags: int | Sequence[int],
    horizon: int = 1,
    *,
    target: Hashable = None,
    gaps: str = "refuse",
) -> LaggedDesign:
    """Make inputs and target for forecasting a series from its past.

    Parameters
    ----------
    series
        Values at equal steps of time, oldest first: (N,), or several series (N, K); a pandas Series or DataFrame
        keeps its names and its index.
    lags
        A number L for the lags 1 … L, or a list of lags.
    horizon
        Steps from the newest value known to the target.
    target
        Of several series: the number or name of the one to forecast; None forecasts all of them, a target (n, K).
    gaps
        'refuse' says where values are missing (NaN); 'drop' leaves out the rows that need one of them.

    Returns
    -------
    LaggedDesign
        (X, y, index): inputs with the columns lag_1, lag_2, … (of several series NAME_lag_1, …, with arrays in this
        order), the targets, and the index of the targets (of arrays their place in the series).

    Examples
    --------
    >>> import numpy as np
    >>> X, y, index = lagged(np.arange(10.0), lags=3)
    >>> X[0].tolist(), float(y[0]), int(index[0])
    ([2.0, 1.0, 0.0], 3.0, 3)
    """
    one_of(gaps, "gaps", GAPS)
    ahead = as_count(horizon, "horizon")
    past = _as_lags(lags)
    table: Any = series if hasattr(series, "iloc") else None
    if table is not None:
        _check_steps(table.index)
    values = as_float_array(series, "series")
    single = values.ndim == 1
    values = values[:, None] if single else values
    if values.ndim != 2 or not values.size:
        raise ValueError(f"series must be (N,), or (N, K) for K series, with at least one value; got {values.shape}")
    if np.isinf(values).any():
        raise ValueError("series has infinite values; replace them by NaN and pass gaps='drop', or drop them")
    several = table is not None and not single
    names = [str(name) for name in table.columns] if several else [f"x[{k}]" for k in range(values.shape[1])]
    wanted = None if target is None else _place_of(target, table, names)
    first = ahead + max(past) - 1
    if len(values) <= first:
        raise ValueError(
            f"lags up to {max(past)} at horizon {ahead} need more than {first} values, got {len(values)}: take fewer "
            "lags, or a longer series"
        )
    by_lag = [values[first - ahead - lag + 1 : len(values) - ahead - lag + 1] for lag in past]
    X = np.stack(by_lag, axis=2).reshape(len(values) - first, -1)  # the lags of the first series first
    y = values[first:, 0] if single else values[first:] if wanted is None else values[first:, wanted]
    keep = _complete(X, y, gaps)
    rows = np.flatnonzero(keep) + first
    if table is None:
        return LaggedDesign(X[keep], y[keep], rows)
    import pandas as pd

    titles = [f"lag_{lag}" for lag in past]
    titles = titles if single else [f"{name}_{title}" for name in names for title in titles]
    index = table.index[rows]
    inputs = pd.DataFrame(X[keep], index=index, columns=titles)
    if y.ndim == 2:
        return LaggedDesign(inputs, pd.DataFrame(y[keep], index=index, columns=names), index)
    name = table.name if single else names[wanted or 0]
    return LaggedDesign(inputs, pd.Series(y[keep], index=index, name=name), index)


def _as_lags(lags: Any) -> list[int]:
    """Lags in the order given."""
    if isinstance(lags, str) or not isinstance(lags, Iterable):
        return list(range(1, as_count(lags, "lags") + 1))
    found = [as_count(lag, "each of lags") for lag in lags]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"lags must be a number or a list of different lags, got {found}")
    return found


def _place_of(target: Any, table: Any, names: list[str]) -> int:
    """Number of the series to forecast."""
    if hasattr(table, "columns") and target in list(table.columns):
        return list(table.columns).index(target)
    if isinstance(target, int | np.integer) and not isinstance(target, bool) and 0 <= target < len(names):
        return int(target)
    raise ValueError(f"target must be the number or name of one of the series {', '.join(names)}; got {target!r}")


def _complete(X: FloatArray, y: FloatArray, gaps: str) -> npt.NDArray[np.bool_]:
    """Rows without a missing value."""
    keep = np.asarray(np.isfinite(X).all(axis=1) & np.isfinite(y.reshape(len(y), -1)).all(axis=1))
    if gaps == "refuse" and not keep.all():
        raise ValueError(
            f"the series has missing values, which {int((~keep).sum())} of {len(keep)} rows need: fill them, or pass "
            "gaps='drop' to leave these rows out"
        )
    if not keep.any():
        raise ValueError("no row of the design is without a missing value: fill the gaps, or take fewer lags")
    return keep


def _check_steps(index: Any) -> None:
    """Refuse an index of times or numbers that does not rise by equal steps."""
    import pandas as pd

    if isinstance(index, pd.RangeIndex) or len(index) < 3:
        rises = len(index) < 2 or bool(index[1] > index[0])
    elif isinstance(index, pd.DatetimeIndex):
        # months and business days are steps too
        rises = bool(index.is_monotonic_increasing) and (index.freq is not None or pd.infer_freq(index) is not None)
    elif isinstance(index, pd.PeriodIndex | pd.TimedeltaIndex) or pd.api.types.is_numeric_dtype(index):
        steps = np.diff(index.asi8 if hasattr(index, "asi8") else np.asarray(index, dtype=np.float64))
        rises = bool(steps[0] > 0) and bool(np.allclose(steps, steps[0], rtol=1e-6, atol=0.0))
    else:
        rises = True
    if not rises:
        raise ValueError(
            "the index of the series does not rise by equal steps, so that a lag would mean different times: sort it, "
            "give it every time with .asfreq(...) or .reindex(...), and pass gaps='drop'"
        )
