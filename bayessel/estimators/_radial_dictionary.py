"""The radial dictionary of an estimator, from its parameters width, centers, kind and bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_matrix, as_positive_vector, one_of
from bayessel.basis import KINDS, LazyDesign, RBFDictionary
from bayessel.estimators.found_width import Engine, FoundWidth, find_width

#: one kernel per row beyond this would need more than 3 GB for the design alone
MAX_OWN_CENTRES = 20_000


def centres_for(estimator: Any, X: FloatArray) -> FloatArray:
    """Centres of the dictionary: those given, or the rows."""
    one_of(estimator.kind, "kind", KINDS)
    if not isinstance(estimator.bias, bool | np.bool_):
        raise TypeError(f"bias must be True or False, got {estimator.bias!r}")
    if estimator.centers is None:
        return X
    centers = as_matrix(estimator.centers, "centers", allow_1d=X.shape[1] == 1)
    if centers.shape[1] != X.shape[1]:
        raise ValueError(f"centers must have the {X.shape[1]} columns of X, got shape {centers.shape}")
    return centers


def set_dictionary(estimator: Any, chosen: Any, centers: FloatArray) -> None:
    """Set ``width_`` and ``dictionary_`` from a width, or one per input."""
    r = as_positive_vector(chosen, "width", centers.shape[1])
    estimator.width_ = float(r[0]) if np.ndim(chosen) == 0 else r
    estimator.dictionary_ = RBFDictionary(centers, estimator.width_, kind=estimator.kind, bias=bool(estimator.bias))


def default_width(
    estimator: Any, X: FloatArray, y: FloatArray, screen: Engine, judge: Engine | None = None, per_input: bool = False
) -> FoundWidth:
    """Widths that `width=None` stands for, one per input, and how they were found."""
    return find_width(
        X,
        y if y.ndim == 2 else y[:, None],
        screen,
        centers=None if estimator.centers is None else centres_for(estimator, X),
        kind=estimator.kind,
        bias=bool(estimator.bias),
        judge=judge,
        per_input=per_input,
    )


def design_of(dictionary: RBFDictionary, X: FloatArray, stored: int) -> Any:
    """The design, made column by column where it has more than so many entries."""
    large = len(X) * dictionary.n_columns > stored
    return LazyDesign(dictionary, X) if large else dictionary.design(X)
