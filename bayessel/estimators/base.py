"""What every regressor shares: checks of the data, densities of new observations, pickles that know their version."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    check_array,
    check_consistent_length,
    check_is_fitted,
    check_X_y,
    column_or_1d,
    validate_data,
)

from bayessel._check import FloatArray, as_float_array, check_finite, check_magnitude, one_of
from bayessel.errors import NumericalWarning, VersionWarning
from bayessel.estimators.input_encoding import MISSING, InputEncoding
from bayessel.estimators.input_table import (
    as_table,
    coded,
    is_table,
    labels_of,
    levels_of,
    positional_table,
    refuse_missing_labels,
    refuse_mixed_labels,
    target_column,
)
from bayessel.fit import Fit, Status, view_of
from bayessel.pages.result_view import ResultView
from bayessel.prediction import Prediction

#: warnings are about the first line outside these files
HERE = (str(Path(__file__).parent),)


@contextmanager
def _remedies() -> Iterator[None]:
    """Where scikit-learn lets a bare conversion error through, the remedy is added."""
    try:
        # sums of huge numbers of either sign, by which it looks for infinities
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except TypeError as error:
        if "complex" not in str(error):
            raise
        raise TypeError("X and y must be real numbers, got complex ones; pass their parts as columns") from error
    except OverflowError as error:
        raise ValueError("X and y must be numbers up to 1e308, got integers beyond; rescale them") from error
    except ValueError as error:
        text = str(error)
        if "could not convert" in text:
            said = "encode or drop such columns first, or pass categories of X in a pandas data frame"
            raise ValueError(f"X and y must be numeric: {text}; {said}") from error
        if "setting an array element" in text:
            raise ValueError(f"X and y must be rectangular arrays of numbers, rows of one length: {text}") from error
        if "Input y contains NaN" in text:
            raise ValueError(f"{text} Drop the rows whose target is missing: a fit learns nothing from them") from error
        raise


def _numbers(estimator: Any, X: Any, target: tuple[Any, ...], reset: bool, options: dict[str, Any]) -> Any:
    """Numbers and codes of categories (N, D), NaN where values are missing, and the target; what the columns hold."""
    table, known = as_table(X), None if reset else estimator.input_encoding_
    if not is_table(table) and known is not None and any(known.levels):
        table = positional_table(X)
    options = {"dtype": np.float64, "ensure_all_finite": "allow-nan", **options}
    if not is_table(table):
        found = validate_data(estimator, table, *target, reset=reset, **options)
        return found, None, () if known is None else known.levels
    if known is not None and np.ndim(X) == 1 and estimator.n_features_in_ != 1:
        raise ValueError(
            f"X is a pandas Series, a single input, and {type(estimator).__name__} was fitted to "
            f"{estimator.n_features_in_} inputs; pass one row of a table as frame.iloc[[0]]"
        )
    validate_data(estimator, table, reset=reset, skip_check_array=True)  # names of the columns, and their number
    labels = labels_of(table) if known is None or known.labels is None else known.labels
    levels = levels_of(table, labels) if known is None else known.levels
    check = check_X_y if target else check_array
    return check(coded(table, levels, labels), *target, estimator=estimator, **options), labels, levels


def validated(estimator: Any, X: Any, *target: Any, reset: bool, **options: Any) -> Any:
    """scikit-learn's validation of inputs and target, with tables encoded as numbers (`InputEncoding`).

    `reset` says that a fit begins, which learns the encoding, and then knows the version that made it.
    """
    fill = one_of(getattr(estimator, "missing", "error"), "missing", MISSING) == "indicator"
    with _remedies():
        found, labels, levels = _numbers(estimator, X, target, reset, options)
    rows = np.asarray(found[0] if target else found, dtype=np.float64)
    if reset:
        named = hasattr(estimator, "feature_names_in_") or any(levels)
        levels = levels or (None,) * rows.shape[1]
        takes = hasattr(estimator, "missing")
        estimator.input_encoding_ = InputEncoding.learned(rows, labels if named else None, levels, fill, takes)
        estimator.version_ = version("bayessel")
    rows = estimator.input_encoding_.encode(rows)
    return (rows, *found[1:]) if target else rows


def validated_regression(estimator: Any, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[FloatArray, FloatArray]:
    """Inputs (N, D) and a target (N,) or (N, K) of a regressor, checked; a column counts as (N,), with a warning."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    y = target_column(y)
    rows, target = validated(estimator, X, y, multi_output=estimator._several_outputs, y_numeric=True, reset=reset)
    target = as_float_array(target, "y")
    check_finite(target, "y")
    check_magnitude(target, "y")
    if target.ndim == 2 and target.shape[1] == 1:
        target = column_or_1d(target, warn=True)
    return rows, target


def validated_classification(
    estimator: Any, X: ArrayLike, y: Any
) -> tuple[FloatArray, npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Inputs (N, D), the classes of a classifier, at least two, and the class of each row by its number, checked."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    rows: FloatArray = validated(estimator, X, reset=True)
    check_magnitude(rows, "X")
    y = target_column(y)
    refuse_missing_labels(y)
    refuse_mixed_labels(y)
    with np.errstate(over="ignore", invalid="ignore"):  # sums of labels, and labels as integers
        labels = _check_y(y, multi_output=False, y_numeric=False, estimator=estimator)
        check_consistent_length(rows, labels)
        check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {classes.tolist()[0]!r}")
    return rows, classes, codes


def new_rows(estimator: Any, X: ArrayLike) -> FloatArray:
    """Inputs (N, D) that a fitted estimator is asked about."""
    check_is_fitted(estimator)
    found: FloatArray = validated(estimator, X, reset=False)
    return found


def card_of_fit(estimator: Any) -> str:
    """How the fit of an estimator ended, as HTML; empty before there is one."""
    status = getattr(estimator, "status_", None)
    if not isinstance(status, Status):
        return ""
    name, notes = type(estimator).__name__, (status, *getattr(estimator, "notes_", ()))
    fit = getattr(estimator, "fit_", None)
    if isinstance(fit, Fit):
        return view_of(fit, name, notes).html()
    advice = [(note.words, note.value) for note in dict.fromkeys(notes) if note is not Status.CONVERGED]
    return ResultView(name, status.words, status.standing, (), advice).html()


class Versioned(BaseEstimator):
    """Base of every estimator: pickles know which version fitted them, and a status that matters is said aloud."""

    status_: Status
    #: how the columns of a table become the columns that the engine sees
    input_encoding_: InputEncoding
    #: whether a target may have several columns
    _several_outputs = False

    def _warn(self) -> None:
        """Warn where the status deserves it; the last thing that a fit does."""
        if self.status_.distrusted:
            said = f"{self.status_.name}: {self.status_.value}"
            warnings.warn(said, NumericalWarning, skip_file_prefixes=HERE)

    def _mixtures(self) -> Callable[[FloatArray], Prediction] | None:
        """Predictive mixtures at inputs (N, D); None where predictions are normal."""
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_outputs
        tags.input_tags.allow_nan = getattr(self, "missing", "error") == "indicator"
        return tags

    @property
    def _repr_html_(self) -> Any:
        """scikit-learn's own card, with that of the fit above it."""
        inner = super()._repr_html_  # an AttributeError where scikit-learn is set to show text
        return lambda: card_of_fit(self) + inner()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = card_of_fit(self) + bundle["text/html"]
        return bundle

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
