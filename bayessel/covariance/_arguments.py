"""The door for covariances: everything that takes one says the same when something else comes."""

from __future__ import annotations

from typing import Any

from bayessel.covariance._base import Covariance
from bayessel.covariance.standard import Standard


def as_covariance(value: Any) -> Covariance:
    """Return a covariance; None stands for `Standard`."""
    if value is None:
        return Standard()
    if isinstance(value, type) and issubclass(value, Covariance):
        raise TypeError(
            f"covariance must be an object, got the class {value.__name__}: write {value.__name__}() with brackets"
        )
    if not isinstance(value, Covariance):
        raise TypeError(
            f"covariance must be one of bayessel.covariance, such as Standard(), got {type(value).__name__}"
        )
    return value
