"""Estimators to be fitted anew: copies without what was fitted, each part with its seed."""

from __future__ import annotations

import copy
from typing import Any

#: settings of this library's estimators that do not change their numbers: who calls shows a bar and shares the cores
_FIXED = {"progressbar": False, "cores": 1}


def unfitted_copy(estimator: Any) -> Any:
    """A copy without what was fitted, where it follows scikit-learn's protocol; else a deep copy."""
    if callable(getattr(estimator, "get_params", None)):
        from sklearn.base import clone

        return clone(estimator)
    return copy.deepcopy(estimator)


def prepare(estimator: Any, seed: int) -> None:
    """Give every part its seed; no progress bar, and one core."""
    if not callable(getattr(estimator, "get_params", None)):
        return
    values: dict[str, Any] = {}
    for name in estimator.get_params(deep=True):
        last = name.rpartition("__")[2]
        if last == "random_state":
            values[name] = seed
        elif last in _FIXED:
            values[name] = _FIXED[last]
    if values:
        estimator.set_params(**values)
