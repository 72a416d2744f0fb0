"""What rows held out of folds fitted anew say of sparse classifiers beside all functions and the class frequencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._numerics import few_threads
from bayessel.estimators.held_out import N_FOLDS, some_rows
from bayessel.estimators.latent_member import LatentMember
from bayessel.work.interrupts import InterruptGuard

#: (inputs, classes by number) -> a fit
Refit = Callable[[FloatArray, npt.NDArray[np.intp]], LatentMember]


@dataclass(frozen=True, eq=False)
class ClassFolds:
    """Log probabilities of the labels of rows held out, (n,) each; empty with too few rows for folds.

    Attributes
    ----------
    sparse, all_functions, frequencies : (n,) arrays
        Of the fits to the other folds, and of their class frequencies.
    interrupted : bool
        Whether Ctrl-C ended the folds: then there are none.
    """

    sparse: FloatArray
    all_functions: FloatArray
    frequencies: FloatArray
    interrupted: bool = False

    @property
    def falls_back(self) -> bool:
        """Whether the sparse fits predict clearly worse than all functions do: by a standard error of the mean."""
        return clearly_positive(self.all_functions - self.sparse)


def clearly_positive(gains: FloatArray) -> bool:
    """Whether a mean is larger than its standard error."""
    return len(gains) > 0 and bool(gains.mean() > max(float(gains.std()) / np.sqrt(len(gains)), 1e-9))


def class_folds(
    X: FloatArray, codes: npt.NDArray[np.intp], n_classes: int, sparse: Refit, all_functions: Refit
) -> ClassFolds:
    """Fit both to the other folds of at most 300 rows, equal inputs held out together."""
    few, rank = some_rows(X, codes[:, None].astype(float))
    nothing = np.zeros(0)
    if rank.max() + 1 < 2 * N_FOLDS:
        return ClassFolds(nothing, nothing, nothing)
    Z, shown, fold = X[few], codes[few], rank % N_FOLDS
    found = np.zeros((3, len(few)))
    with few_threads(len(few) ** 2), np.errstate(all="ignore"), InterruptGuard(lambda: True) as guard:
        for k in range(N_FOLDS):
            train, held = fold != k, fold == k
            counts = np.bincount(shown[train], minlength=n_classes) + 0.5
            own = np.arange(int(held.sum())), shown[held]
            tiny = np.finfo(float).tiny
            for row, make in zip(found[:2], (sparse, all_functions), strict=True):
                row[held] = np.log(np.maximum(make(Z[train], shown[train]).probabilities(Z[held])[own], tiny))
            found[2, held] = np.log(counts / counts.sum())[shown[held]]
    if guard.interrupted:
        return ClassFolds(nothing, nothing, nothing, True)
    return ClassFolds(*found)
