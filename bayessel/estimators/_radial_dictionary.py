"""The radial dictionary of an estimator: its centres and widths, given or found."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_matrix, as_positive_vector, one_of
from bayessel.basis import KINDS, RBFDictionary
from bayessel.estimators.base import new_rows
from bayessel.estimators.found_width import Engine, find_width
from bayessel.estimators.input_table import is_table
from bayessel.estimators.latent_widths import spread_centres

#: one kernel per row beyond this would need more than 3 GB for the design alone
MAX_OWN_CENTRES = 20_000


def centres_of(estimator: Any, X: FloatArray, stored: bool = False, most: int | None = None) -> FloatArray:
    """Centres of the dictionary: those given, or the rows, of these at most so many, evenly spread over their order.

    Refused where the design is `stored` and too large.
    """
    one_of(estimator.kind, "kind", KINDS)
    if not isinstance(estimator.bias, bool | np.bool_):
        raise TypeError(f"bias must be True or False, got {estimator.bias!r}")
    if estimator.centers is None:
        if most is not None and len(X) > most:
            return spread_centres(X, most)
        if stored and len(X) > MAX_OWN_CENTRES:
            raise ValueError(
                f"centers=None puts a function at each of the {len(X)} rows, a design of {8e-9 * len(X) ** 2:.0f} GB; "
                "pass centers=... (for instance a few hundred rows, or k-means centres)"
            )
        return X
    if is_table(estimator.centers) and not estimator.input_encoding_.plain:
        return new_rows(estimator, estimator.centers)
    centers = as_matrix(estimator.centers, "centers", allow_1d=X.shape[1] == 1)
    if centers.shape[1] != X.shape[1]:
        raise ValueError(f"centers must have the {X.shape[1]} columns of X, got shape {centers.shape}")
    return centers


def set_dictionary(estimator: Any, chosen: Any, centers: FloatArray) -> None:
    """Set `width_` and `dictionary_`."""
    r = as_positive_vector(chosen, "width", centers.shape[1])
    estimator.width_ = float(r[0]) if np.ndim(chosen) == 0 else r
    estimator.dictionary_ = RBFDictionary(centers, estimator.width_, kind=estimator.kind, bias=bool(estimator.bias))


def find_widths(
    estimator: Any, X: FloatArray, y: FloatArray, screen: Engine, judge: Engine | None = None, per_input: bool = False
) -> FloatArray:
    """Widths that `width=None` stands for, one per input; the search is kept as `found_width_`, with its remarks."""
    found = find_width(
        X,
        y if y.ndim == 2 else y[:, None],
        screen,
        centers=None if estimator.centers is None else centres_of(estimator, X),
        kind=estimator.kind,
        bias=bool(estimator.bias),
        judge=judge,
        per_input=per_input,
        weights=estimator._records.weights,
    )
    estimator.found_width_, estimator._width_notes = found, found.notes
    return found.widths
