"""Targets of a network: numbers or classes are checked and become columns (n, K)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from bayessel._check import FloatArray, as_float_array, as_matrix, check_finite, check_magnitude, one_of

#: kinds of outputs that fits without PyMC know
KINDS = ("gaussian", "logistic", "softmax")
#: classes of a softmax; more are most likely numbers taken for classes
MOST_CLASSES = 1000


def as_data(X: npt.ArrayLike, t: npt.ArrayLike, kind: str) -> tuple[FloatArray, FloatArray]:
    """Inputs (n, D) and targets (n, K): numbers; zeros and ones; or for softmax a one at each row's class.

    Classes of softmax are the integers from 0, or rows that have a single one.
    """
    one_of(kind, "kind", KINDS)
    X = as_matrix(X, "X")
    check_magnitude(X, "X")
    T = as_float_array(t, "t")
    if T.ndim not in (1, 2) or len(T) != len(X) or T.size == 0:
        raise ValueError(
            f"t must have one row per row of X, {len(X)}, as (n,) or (n, K), got shape {T.shape}; pass a target or a "
            "row of targets for each row"
        )
    check_finite(T, "t")
    check_magnitude(T, "t")
    if kind == "softmax" and T.ndim == 1:
        T = _one_hot(T)
    T = T.reshape(len(X), -1)
    if kind == "gaussian":
        return X, T
    if not np.isin(T, (0.0, 1.0)).all():
        raise ValueError(f"t of kind {kind!r} must be zeros and ones, got {T[~np.isin(T, (0.0, 1.0))][0]!r}; encode it")
    if kind == "softmax" and (T.shape[1] < 2 or not (T.sum(axis=1) == 1.0).all()):
        raise ValueError(
            "t of kind 'softmax' must be integer classes from 0, or rows of at least 2 columns with a single one; for "
            "labels that exclude nothing use kind='logistic'"
        )
    return X, T


def _one_hot(classes: FloatArray) -> FloatArray:
    whole = classes.astype(np.int64)
    if (whole != classes).any() or whole.min() < 0 or whole.max() >= MOST_CLASSES:
        raise ValueError(
            f"t of kind 'softmax' must be the integers from 0 to the number of classes less 1, got values from "
            f"{classes.min():g} to {classes.max():g}; number the classes"
        )
    return np.asarray(whole[:, None] == np.arange(max(int(whole.max()) + 1, 2)), dtype=np.float64)


def link(f: FloatArray, kind: str) -> FloatArray:
    """Predictions from outputs (…, K): the outputs themselves, or probabilities."""
    if kind == "gaussian":
        return f
    if kind == "logistic":
        return np.asarray(special.expit(f))
    if kind == "softmax":
        return np.asarray(special.softmax(f, axis=-1))
    raise ValueError(f"there is no link for kind {kind!r}; kinds are {', '.join(KINDS)}")
