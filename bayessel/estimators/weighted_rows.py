"""Rows that an estimator counts differently on request, or whose noise levels it is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_positive_vector
from bayessel._row_weights import RowWeights, check_counts, checked

#: estimators that take weights and noise levels
THOSE_WHO_DO = "EvidenceRegressor, RidgeRBFRegressor, RVMRegressor, BasisSearchRegressor and ForwardSelectionRegressor"


def without_weights[**P, R](fit: Callable[P, R]) -> Callable[P, R]:
    """A method `fit` that says which estimators take weights and noise levels of rows, where it is given any."""

    @wraps(fit)
    def refusing(*arguments: P.args, **named: P.kwargs) -> R:
        for name in {"sample_weight", "noise_std"} & named.keys():
            raise TypeError(f"{type(arguments[0]).__name__}.fit takes no {name}; {THOSE_WHO_DO} do")
        return fit(*arguments, **named)

    return refusing


def weighted_rows(
    X: FloatArray, y: FloatArray, sample_weight: Any, noise_std: Any
) -> tuple[FloatArray, FloatArray, RowWeights | None]:
    """The rows that count, their targets, and what is known of them; None where all are alike."""
    n = len(X)
    if sample_weight is not None:
        count = checked(sample_weight, n, "sample_weight")
        check_counts(count)
        used = count > 0.0
        if not used.all():
            X, y, sample_weight = X[used], y[used], count[used]
            noise_std = None if noise_std is None else checked(noise_std, n, "noise_std")[used]
    return X, y, RowWeights.of(len(X), noise_std, sample_weight)


def noise_ratio(estimator: Any, noise_std: ArrayLike, n_rows: int) -> FloatArray:
    """Noise levels of new rows, (N,), in units of that of a typical row of the fit."""
    refuse_levels(estimator)
    weights = estimator._row_weights
    if weights is None or not weights.knows_noise:
        raise ValueError(
            f"noise_std of new rows is measured against that of the rows fitted, and this {type(estimator).__name__} "
            "was fitted without: pass noise_std to fit too"
        )
    return np.asarray(as_positive_vector(noise_std, "noise_std", n_rows, allow_zero=True) / weights.unit)


def refuse_levels(estimator: Any) -> None:
    """Say which estimators take noise levels of rows, of one that does not."""
    if not hasattr(estimator, "_row_weights"):
        raise TypeError(f"{type(estimator).__name__} takes no noise_std; {THOSE_WHO_DO} do")


def refuse_weights(estimator: Any, what: str) -> None:
    """Say that something is there for rows that are alike alone."""
    if estimator._row_weights is not None:
        raise ValueError(f"{what} works with rows that are all alike, and this fit was given weights or noise levels")
