"""Checks of arguments: every bad input becomes a ``ValueError`` or ``TypeError`` that names the remedy.

A message says what was needed, what came and what to do about it. Inside the library arrays are trusted.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from bayessel._types import Seed

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*")


def as_float_array(value: Any, name: str) -> FloatArray:
    """Return `value` as a float64 array, or say why it cannot be one."""
    if value is None:
        raise TypeError(f"{name} must be numbers, got None; pass an array")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError(f"{name} has masked values; fill them, or drop those rows, and pass a plain array")
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise TypeError(f"{name} is a sparse matrix; bayessel works on dense arrays: pass {name}.toarray()")
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers; its rows have different lengths") from error
    if raw.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got complex data; Complex data not supported: pass .real or .imag")
    if raw.dtype.kind in "OSUVMm":
        if raw.dtype.kind == "O":
            try:
                return np.ascontiguousarray(raw, dtype=np.float64)
            except OverflowError as error:
                raise ValueError(f"{name} has integers beyond 1e308, the largest number; rescale it") from error
            except (TypeError, ValueError):
                pass
        kinds = sorted({type(v).__name__ for v in raw.ravel()[:100]})
        raise TypeError(
            f"{name} must be numeric, got {'/'.join(kinds) or raw.dtype}; encode or drop such columns first"
        )
    # C order or Fortran order is kept: a copy of a large design costs more than it gains
    return np.asarray(raw, dtype=np.float64)


def check_finite(array: FloatArray, name: str) -> None:
    """Refuse NaN and infinity, and say where the first one is."""
    # the sum is finite whenever every entry is, and is cheap; only a suspicious one is looked at entry by entry
    with np.errstate(all="ignore"):
        suspicious = not np.isfinite(array.sum())
    if suspicious and not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        where = ", ".join(str(int(i)) for i in bad[0])
        kind = "NaN" if np.isnan(array[tuple(bad[0])]) else "infinity"
        raise ValueError(
            f"{name} must be finite, got {len(bad)} bad value(s), the first ({kind}) at [{where}]; "
            "drop or impute those rows"
        )


def as_matrix(value: Any, name: str, *, allow_1d: bool = False, finite: bool = True) -> FloatArray:
    """Return a (rows, columns) array with at least one row and one column, checked to be finite unless told not to."""
    array = as_float_array(value, name)
    if array.ndim == 1 and allow_1d:
        array = array[:, None]
    if array.ndim == 0:
        raise ValueError(f"{name} must be 2-D (rows, columns), got a single number, {value!r}; pass [[{value}]]")
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D (rows, columns), got an array of shape {array.shape}; "
            f"reshape it with {name}.reshape(-1, 1) if it is a single column"
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(f"{name} must have at least one row and one column, got shape {array.shape}")
    if finite:
        check_finite(array, name)
    return array


def as_target(value: Any, n_rows: int, name: str = "t") -> FloatArray:
    """Return a finite (n_rows,) target; an (n, 1) column is ravelled with scikit-learn's warning."""
    array = as_float_array(value, name)
    if array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected. Please change the shape of {name} to "
            f"(n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one value per row, got shape {array.shape}")
    if array.shape[0] != n_rows:
        raise ValueError(
            f"{name} must have one value per row: there are {n_rows} rows and {array.shape[0]} values of {name}"
        )
    check_finite(array, name)
    return array


def as_positive(value: Any, name: str) -> float:
    """Return `value` as a positive finite float."""
    if isinstance(value, bool | np.bool_) or isinstance(value, str):
        raise TypeError(f"{name} must be a positive number, got {value!r}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must be positive and finite, got an integer beyond 1e308") from error
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a positive number, got {value!r}") from error
    if not (np.isfinite(number) and number > 0.0):
        raise ValueError(f"{name} must be positive and finite, got {number!r}")
    return number


def as_positive_vector(
    value: Any, name: str, length: int, *, allow_zero: bool = False, allow_inf: bool = False
) -> FloatArray:
    """Return a vector of `length` non-negative numbers from a scalar or a sequence of that length."""
    if isinstance(value, bool | np.bool_) or isinstance(value, str):
        raise TypeError(f"{name} must be a number or {length} numbers, got {value!r}")
    if value is None:
        raise TypeError(f"{name} must be a number or {length} numbers, got None")
    if np.asarray(value, dtype=object).dtype == object and any(
        isinstance(v, bool | np.bool_) for v in np.ravel(np.asarray(value, dtype=object))
    ):
        raise TypeError(f"{name} must be a number or {length} numbers, got True or False among them")
    array = as_float_array(value, name)
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != length):
        raise ValueError(f"{name} must be one number or {length} numbers (one per column), got shape {array.shape}")
    bad = np.isnan(array) | (array < 0.0)
    if not allow_zero:
        bad |= array == 0.0
    if not allow_inf:
        bad |= np.isinf(array)
    if bad.any():
        raise ValueError(
            f"{name} must be {'non-negative' if allow_zero else 'positive'}"
            f"{'' if allow_inf else ' and finite'}, got {float(np.atleast_1d(array)[np.atleast_1d(bad)][0])!r}"
        )
    return np.broadcast_to(array, (length,)).astype(np.float64)


def one_of(value: Any, name: str, options: tuple[str, ...]) -> str:
    """Return `value` if it is one of `options`, else list them."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(repr(o) for o in options)}, got {value!r}")
    return value


def as_flag(value: Any, name: str) -> bool:
    """Return `value` if it is True or False; anything else, such as 'no', would silently count as True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


#: largest size, and one over the smallest, of values whose squares, and of values whose fourth powers are needed
SQUARES, FOURTH_POWERS = 1e100, 1e65


def check_magnitude(array: FloatArray, name: str, most: float = SQUARES, tiny: bool = False) -> None:
    """Refuse values whose squares overflow or vanish: outside 1/most to most in size; `tiny` ones may be allowed."""
    largest = max(float(array.max()), -float(array.min())) if array.size else 0.0
    if largest > most or (0.0 < largest < 1.0 / most and not tiny):
        beyond = "squares" if largest > SQUARES or largest < 1.0 / SQUARES else "powers"
        raise ValueError(f"{name} has values of size {largest:.0e}, whose {beyond} leave double precision; rescale it")


def as_count(value: Any, name: str, minimum: int = 1) -> int:
    """Return `value` as an integer of at least `minimum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer of at least {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def check_seed(seed: Seed, name: str = "random_state") -> int | list[int] | None:
    """Return a seed that can be written down: an integer, or a list of them; None stays None.

    A ``numpy.random.Generator`` or ``RandomState`` gives a number, and moves on.
    """
    if seed is None:
        return None
    if _draws(seed):
        return int(seed.integers(2**62) if hasattr(seed, "integers") else seed.randint(2**31))
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool | np.bool_):
        if seed < 0:
            raise ValueError(f"{name} must be at least 0, got {seed}; pass None for a random seed")
        return int(seed)
    if isinstance(seed, np.ndarray) and seed.ndim == 0:
        return check_seed(seed[()], name)
    if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str | bytes) and len(seed):
        numbers = [check_seed(one, name) for one in seed]
        if all(isinstance(one, int) for one in numbers):
            return [one for one in numbers if isinstance(one, int)]
    raise TypeError(f"{name} must be an integer, a list of integers, a numpy Generator or None, got {seed!r}")


def chosen_seed(seed: Seed, name: str = "random_state") -> int:
    """Return one number for whatever may be a seed; for None one from the operating system."""
    checked = check_seed(seed, name)
    if isinstance(checked, int):
        return checked
    return int(np.random.default_rng(checked).integers(2**62))


def as_generator(random_state: Seed, name: str = "random_state") -> np.random.Generator:
    """Return a generator from one, from a seed, or from None for a fresh one."""
    return np.random.default_rng(random_state if _draws(random_state) else check_seed(random_state, name))


def _draws(seed: Seed) -> TypeGuard[np.random.Generator | np.random.RandomState]:
    """Whether numbers can be drawn from this, beside its being a seed."""
    return isinstance(seed, np.random.Generator | np.random.RandomState)


def as_fraction(value: Any, name: str, *, zero: bool = False, one: bool = False) -> float:
    """Return `value` as a number between 0 and 1, ends included where told so."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number between 0 and 1, got {value!r}")
    if not (0.0 < value < 1.0 or (zero and value == 0.0) or (one and value == 1.0)):
        raise ValueError(f"{name} must be in {'[' if zero else '('}0, 1{']' if one else ')'}, got {value!r}")
    return float(value)


def as_seconds(budget: Any) -> float | None:
    """Return a time budget in seconds: a number, or text such as "30s", "2m", "1.5 h"."""
    if budget is None:
        return None
    if isinstance(budget, str):
        match = _TIME.fullmatch(budget.lower())
        if match is None or match.group(2) not in _UNITS:
            raise ValueError(
                f'time_budget must be seconds, or text such as "30s", "2m" or "1.5h", got {budget!r}; '
                f"units are {', '.join(unit for unit in _UNITS if unit)}"
            )
        return as_positive(float(match.group(1)) * _UNITS[match.group(2)], "time_budget")
    return as_positive(budget, "time_budget")
