"""What may be averaged: members, their data, numbers given for them; everything else is refused with a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import _check_y, _is_fitted, check_consistent_length

from bayessel._check import FloatArray, as_float_array, check_magnitude
from bayessel._fingerprint import fingerprint
from bayessel.diagnostics.comparable_fits import refuse_different_data
from bayessel.diagnostics.fit_reader import Reading, read, row_weights_of, unwrap
from bayessel.errors import DataMismatchError
from bayessel.estimators.member_weights import CONSTANT
from bayessel.fit import Fit

#: name -> estimator, or fit of an engine
Members = Mapping[str, BaseEstimator | Fit]


def checked_members(members: Members, taken: Sequence[str]) -> dict[str, Any]:
    """The members by name; `taken` are names that they cannot have."""
    if not isinstance(members, Mapping):
        raise TypeError(
            f"members must be a dict of name -> estimator, got {type(members).__name__}; try {{'a': one, 'b': two}}"
        )
    if not members:
        raise ValueError("an average needs at least one member, got an empty dict; None takes the usual ones")
    for name, member in members.items():
        if not isinstance(name, str) or not name or "__" in name or name in (CONSTANT, *taken):
            raise ValueError(
                f"a member cannot be called {name!r}: names are text without '__' that is no parameter of the "
                f"average, and {CONSTANT!r} is the candidate that is always there"
            )
        if not isinstance(member, Fit) and not (hasattr(member, "fit") and hasattr(member, "predict")):
            raise TypeError(
                f"{name!r} must be an estimator or the fit of an engine (a bayessel.fit.Fit), got "
                f"{type(member).__name__}"
            )
        if not isinstance(member, Fit) and is_classifier(member):
            raise TypeError(f"{name!r} is a classifier: an average is of regressors of one target")
    return dict(members)


def is_fitted(member: Any) -> bool:
    """Whether a member can predict."""
    # an estimator that can predict from its prior, as scikit-learn's process does, counts once it has seen data
    return isinstance(member, Fit) or bool(_is_fitted(member))


def as_rows(X: Any) -> Any:
    """Rows that can be indexed: frames as they are, sparse matrices by rows, everything else as an array."""
    if hasattr(X, "iloc"):
        return X
    if hasattr(X, "tocsr"):
        return X.tocsr()
    rows = np.asarray(X)
    try:
        return rows.astype(np.float64) if rows.dtype == object else rows
    except (TypeError, ValueError):  # members may know what to do with these
        return rows


def checked_target(estimator: Any, X: Any, y: Any) -> FloatArray:
    """The target (N,), checked."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    target = as_float_array(_check_y(y, multi_output=False, y_numeric=True, estimator=estimator), "y")
    if not len(target):
        raise ValueError("an average needs rows: got X and y with 0 samples, while a minimum of 1 is required")
    check_magnitude(target, "y")
    return target


def row_codes(X: Any) -> npt.NDArray[np.intp]:
    """Rows as whole numbers, equal where the inputs are, whatever these are; one number per row where nobody knows."""
    try:
        columns = [pd.factorize(column)[0] for _, column in pd.DataFrame(X).items()]
    except (TypeError, ValueError):
        columns = []
    return np.column_stack(columns) if columns else np.arange(X.shape[0])[:, None]


def one_data_set(members: Mapping[str, Any]) -> tuple[str, str]:
    """Names of the one data set that all members were fitted to, and of its target."""
    readings: dict[str, Reading] = {}
    names: dict[str, str] = {}
    for name, member in members.items():
        inner, piped = unwrap(member)
        fit = inner if isinstance(inner, Fit) else getattr(inner, "fit_", None)
        if getattr(inner, "_row_weights", None) is not None or row_weights_of(inner) is not None:
            raise ValueError(
                f"{name!r} was fitted with sample_weight or noise_std, and an average weighs all rows alike: "
                "fit the members without"
            )
        if not isinstance(fit, Fit):  # of another library: it knows no names of its data
            continue
        readings[name] = read(member, repr(name))
        if not piped and (known := getattr(inner, "fingerprint_", None) or readings[name].fit.fingerprint):
            names[name] = known
    if readings:
        refuse_different_data(readings)
    first = next(iter(names), None)
    for name, known in names.items():
        if first is not None and known != names[first]:
            raise DataMismatchError(
                f"{first!r} and {name!r} were fitted to different inputs or designs (fingerprints {names[first]} and "
                f"{known}): an average predicts all members at the same rows; fit them to the same, or take estimators "
                "in place of fits of engines"
            )
    # of rows listed several times a fit knows the records alone
    targets = [at.target_fingerprint for at in readings.values() if at.target_fingerprint and not at.listed_once]
    return "" if first is None else names[first], targets[0] if targets else ""


def checked_data(estimator: Any, data: tuple[Any, Any], target_name: str) -> tuple[Any, FloatArray]:
    """Inputs and target that fitted members were fitted to, refused where the target has another name."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"data must be a pair (X, y), got {type(data).__name__}")
    X, y = as_rows(data[0]), checked_target(estimator, *data)
    check_consistent_length(X, y)
    if target_name and fingerprint(y) != target_name:
        raise DataMismatchError(
            f"data=(X, y) are not what the members were fitted to: the target has the fingerprint {fingerprint(y)}, "
            f"theirs {target_name}"
        )
    return X, y


def refuse_bad_numbers(given: Mapping[str, float], what: str, known: set[str], zero: bool) -> None:
    """Refuse a mapping that does not give members finite numbers, positive or, where told so, zero."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a dict of name -> number, got {type(given).__name__}")
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"{what} names {name!r}, which is no member; members are {', '.join(sorted(known))}")
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
        if not number or not np.isfinite(value) or value < 0.0 or (value == 0.0 and not zero):
            raise ValueError(
                f"{what} of {name!r} must be a finite number {'of at least' if zero else 'above'} 0, got {value!r}"
            )
    if not sum(given.values()) > 0.0:
        raise ValueError(f"{what} must have a positive sum, got {dict(given)!r}")
