"""What every regressor shares: checks of the data, densities of new observations, pickles that know their version."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_y,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from bayessel._check import FloatArray, as_float_array, check_magnitude
from bayessel.errors import NumericalWarning, VersionWarning
from bayessel.fit import Status

#: warnings are about the first line outside these files
HERE = (str(Path(__file__).parent),)


def validated(estimator: Any, *data: Any, reset: bool, **options: Any) -> Any:
    """scikit-learn's validation; where it lets a bare conversion error through, the remedy is added.

    `reset` says that a fit begins, which then knows the version that made it.
    """
    try:
        # sums of huge numbers of either sign, by which it looks for infinities
        with np.errstate(over="ignore", invalid="ignore"):
            found = validate_data(estimator, *data, reset=reset, dtype=np.float64, **options)
    except TypeError as error:
        if "complex" not in str(error):
            raise
        raise TypeError("X and y must be real numbers, got complex ones; pass their parts as columns") from error
    except OverflowError as error:
        raise ValueError("X and y must be numbers up to 1e308, got integers beyond; rescale them") from error
    except ValueError as error:
        text = str(error)
        if "could not convert" in text:
            raise ValueError(f"X and y must be numeric: {text}; encode or drop such columns first") from error
        if "setting an array element" in text:
            raise ValueError(f"X and y must be rectangular arrays of numbers, rows of one length: {text}") from error
        raise
    if reset:
        estimator.version_ = version("bayessel")
    return found


def validated_regression(estimator: Any, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[FloatArray, FloatArray]:
    """Inputs (N, D) and a target (N,) or (N, K) of a regressor, checked; a column counts as (N,), with a warning."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    rows, target = validated(estimator, X, y, multi_output=estimator._several_outputs, y_numeric=True, reset=reset)
    target = as_float_array(target, "y")
    check_magnitude(target, "y")
    if target.ndim == 2 and target.shape[1] == 1:
        target = column_or_1d(target, warn=True)
    return np.asarray(rows, dtype=np.float64), target


def validated_classification(
    estimator: Any, X: ArrayLike, y: Any
) -> tuple[FloatArray, npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Inputs (N, D), the classes of a classifier, at least two, and the class of each row by its number, checked."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    X = np.asarray(validated(estimator, X, reset=True), dtype=np.float64)
    check_magnitude(X, "X")
    with np.errstate(over="ignore", invalid="ignore"):  # sums of labels, and labels as integers
        labels = _check_y(y, multi_output=False, y_numeric=False, estimator=estimator)
        check_consistent_length(X, labels)
        check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {classes.tolist()[0]!r}")
    return X, classes, codes


def new_rows(estimator: Any, X: ArrayLike) -> FloatArray:
    """Inputs (N, D) that a fitted estimator is asked about."""
    check_is_fitted(estimator)
    return np.asarray(validated(estimator, X, reset=False), dtype=np.float64)


class Versioned(BaseEstimator):
    """Base of every estimator: pickles know which version fitted them, and a status that matters is said aloud."""

    status_: Status
    #: whether a target may have several columns
    _several_outputs = False

    def _warn(self) -> None:
        """Warn where the status deserves it; the last thing that a fit does."""
        if self.status_.distrusted:
            said = f"{self.status_.name}: {self.status_.value}"
            warnings.warn(said, NumericalWarning, skip_file_prefixes=HERE)

    def __setstate__(self, state: Any) -> None:
        """Restore a pickled estimator; a fit made by another version is used with a warning, as scikit-learn does."""
        super().__setstate__(state)
        made_by, here = getattr(self, "version_", None), version("bayessel")
        if made_by is not None and made_by != here:
            warnings.warn(
                f"this {type(self).__name__} was fitted by bayessel {made_by} and is loaded by {here}; "
                "its numbers may mean something else there: fit it again",
                VersionWarning,
                stacklevel=2,
            )
