"""The model of all radial functions that estimators are, or are judged by: fitted once for all that see the same rows.

The members of an average are fitted to the same rows one after the other, and most of the time goes into this model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel.estimators._radial_dictionary import centres_of
from bayessel.estimators.found_width import FoundWidth
from bayessel.estimators.stacked_widths import RadialModel, fit_stacked
from bayessel.fit import Status
from bayessel.linear.integrated.mixture import IntegratedFit

#: name of rows and model -> the last reference fitted; None where nothing is shared
_last: ContextVar[dict[tuple[Any, ...], tuple[IntegratedFit, FoundWidth]] | None] = ContextVar("last", default=None)


@contextmanager
def shared_references() -> Iterator[None]:
    """Keep the last reference for estimators that are fitted to the same rows next, in this process."""
    token = _last.set({})
    try:
        yield
    finally:
        _last.reset(token)


def reference_of(estimator: Any, X: FloatArray, y: FloatArray) -> tuple[IntegratedFit, FoundWidth]:
    """The reference of an estimator at its rows, whose widths become the estimator's."""
    centers, weights = centres_of(estimator, X), estimator._records.weights
    model = RadialModel(None if estimator.centers is None else centers, estimator.kind, bool(estimator.bias))
    last = None if weights is not None else _last.get()
    name = () if last is None else (fingerprint(X, y, centers), estimator.centers is None, model.kind, model.centre)
    found = None if last is None else last.get(name)
    if found is None:
        found = fit_stacked(X, y, model, weights)
        if last is not None and Status.INTERRUPTED not in found[1].notes:
            last.clear()
            last[name] = found
    estimator.found_width_, estimator.width_ = found[1], found[1].widths
    return found
