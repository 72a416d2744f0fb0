"""One method on one instance: fit, predict, losses of every test case, what it cost, and what went wrong."""

from __future__ import annotations

import inspect
import random
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from bayessel import _memory as memory
from bayessel._check import FloatArray, as_float_array, check_finite
from bayessel._formulas import log_normal
from bayessel._numerics import few_threads
from bayessel.diagnostics.delve._losses import standardised_losses
from bayessel.diagnostics.delve._task import Instance
from bayessel.diagnostics.fresh_estimators import prepare, unfitted_copy

#: warnings kept of a unit, and characters of each
_WARNINGS, _LENGTH = 5, 300
#: begins the reason why there is no loss, where that is an error
FAILED = "failed: "


class Method(Protocol):
    """What a study fits and has predict; a mean of the targets is enough, other predictions are asked for by name."""

    def fit(self, X: FloatArray, y: FloatArray, /) -> object:
        """Fit to a training set; what is returned, if anything, predicts."""

    def predict(self, X: FloatArray, /) -> object:
        """Predict the targets of test cases."""


#: makes a method, without arguments or from the size of the training set
MakeMethod = Callable[[], Method] | Callable[[int], Method]


class StudyUnit(NamedTuple):
    """A method on an instance of a task."""

    method: str
    task: str
    instance: int

    @property
    def key(self) -> str:
        """Its name among units of work."""
        return "\0".join(map(str, self))


@dataclass
class Outcome:
    """What became of a method on an instance.

    Attributes
    ----------
    losses : mapping of str to array (J,)
        Standardised, of every test case.
    missing : mapping of str to str
        Losses there are none of, and why.
    error : str
        What the method failed with, and where; empty if it did not.
    status : str
        Name of the estimator's own status, if it has one.
    notes : list of str
        Warnings.
    seed : int
        Of everything random in it.
    fit_seconds, predict_seconds, cpu_seconds : float
        On the wall clock; and of processor, for both.
    memory : float
        Megabytes that the process grew by at the peak.
    interrupted : bool
        It was cut short: not a result.
    """

    seed: int
    losses: dict[str, FloatArray] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    error: str = ""
    status: str = ""
    notes: list[str] = field(default_factory=list)
    fit_seconds: float = np.nan
    predict_seconds: float = np.nan
    cpu_seconds: float = np.nan
    memory: float = np.nan
    interrupted: bool = False

    def covers(self, losses: Iterable[str]) -> bool:
        """Whether there is an answer for each of these losses, be it that there is none."""
        return bool(self.error) or all(loss in self.losses or loss in self.missing for loss in losses)

    @property
    def failures(self) -> dict[str, str]:
        """Errors by loss; "all" where there is no loss at all."""
        if self.error:
            return {"all": self.error}
        return {loss: why.removeprefix(FAILED) for loss, why in self.missing.items() if why.startswith(FAILED)}


def perform(method: Any, instance: Instance, losses: tuple[str, ...], seed: int) -> Outcome:
    """Fit and judge; whatever the method raises is an outcome, `sys.exit` included, and only Ctrl-C is not."""
    outcome = Outcome(seed)
    memory.reset_high_water()
    before, began = memory.resident(), time.process_time()
    caught: list[warnings.WarningMessage] = []
    try:
        with few_threads(0), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _judge(method, instance, losses, outcome)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        outcome.losses.clear()
        outcome.error = _told(error)
    outcome.cpu_seconds = time.process_time() - began
    outcome.memory = max(0.0, memory.high_water() - before)
    said = dict.fromkeys(f"{one.category.__name__}: {one.message}"[:_LENGTH] for one in caught)
    outcome.notes = list(said)[:_WARNINGS]
    return outcome


def _judge(method: Any, instance: Instance, losses: tuple[str, ...], outcome: Outcome) -> None:
    # those that draw from the global generators give the same numbers too
    random.seed(outcome.seed)
    np.random.seed(outcome.seed)  # noqa: NPY002
    model = _made(method, len(instance.y))
    prepare(model, outcome.seed)
    began = time.perf_counter()
    fitted = model.fit(instance.X, instance.y)
    model = model if fitted is None else fitted
    outcome.fit_seconds = time.perf_counter() - began
    says = _Says(model, instance)
    status = getattr(getattr(says.last, "status_", None), "name", "")
    outcome.status = status if isinstance(status, str) else ""  # anybody may call anything status_
    outcome.interrupted = outcome.status == "INTERRUPTED"
    began = time.perf_counter()
    for loss in losses:
        try:
            said = says.of(loss)
            if isinstance(said, str):
                outcome.missing[loss] = said
            else:
                outcome.losses[loss] = standardised_losses(instance.y_test, said, loss)
        except Exception as error:  # one loss that cannot be had does not spoil the others
            outcome.missing[loss] = FAILED + _told(error)
    outcome.predict_seconds = time.perf_counter() - began
    failed = [said for said in outcome.missing.values() if said.startswith(FAILED)]
    if failed and not outcome.losses:
        outcome.error = failed[0].removeprefix(FAILED)


class _Says:
    """What a fitted model says of the test cases, each thing asked once."""

    def __init__(self, model: Any, instance: Instance) -> None:
        self.model, self.instance = model, instance
        self.last, self.X = _last(model, instance.X_test)

    def of(self, loss: str) -> FloatArray | str:
        """What a loss is computed from, (J,); or why there is no such thing."""
        if loss == "log":
            return self._density()
        if loss == "absolute" and hasattr(self.last, "predict_median"):
            return self._finite(self.last.predict_median(self.X), "predicted medians")
        return self._mean

    @cached_property
    def _mean(self) -> FloatArray:
        return self._finite(self.model.predict(self.instance.X_test), "predictions")

    def _density(self) -> FloatArray | str:
        y = self.instance.y_test
        if hasattr(self.last, "log_predictive_density"):
            density = self.last.log_predictive_density(self.X, y)
        elif "return_std" in inspect.signature(self.last.predict).parameters:
            mean, std = self.last.predict(self.X, return_std=True)
            mean, std = self._finite(mean, "predicted means"), self._finite(std, "predicted standard deviations")
            if (std < 0.0).any():
                raise ValueError(f"predicted standard deviations must not be negative, got {std.min():g}")
            density = np.where(std > 0.0, log_normal(y - mean, np.where(std > 0.0, std, 1.0) ** 2), -np.inf)
        else:
            return "the method predicts no density: it has neither log_predictive_density nor predict(return_std=True)"
        values = self._column(density, "log predictive densities")
        if impossible := int(np.isneginf(values).sum()):
            return f"the density of {impossible} of {len(y)} test cases is nil: the loss is infinite"
        return self._finite(values, "log predictive densities")

    def _finite(self, values: Any, what: str) -> FloatArray:
        column = self._column(values, what)
        check_finite(column, what)
        return column

    def _column(self, values: Any, what: str) -> FloatArray:
        """Real numbers, one per test case: (J,) or (J, 1)."""
        n, array = len(self.instance.y_test), as_float_array(values, what)
        if array.shape not in ((n,), (n, 1)):
            raise ValueError(f"{what} must be one number for each of {n} test cases, got shape {array.shape}")
        return array.reshape(n)


def _made(method: Any, size: int) -> Any:
    """A fresh estimator: a copy of one, or what a factory makes."""
    if hasattr(method, "fit") and not isinstance(method, type):
        return unfitted_copy(method)
    return method(size) if takes_size(method) else method()


def takes_size(factory: Callable[..., Any]) -> bool:
    """Whether a factory needs an argument: it is given the size of the training set."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.kind in needed and one.default is inspect.Parameter.empty for one in parameters)


def _last(model: Any, X: FloatArray) -> tuple[Any, Any]:
    """The estimator at the end of pipelines and searches, and the inputs as it sees them."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps") and hasattr(model, "__getitem__"):
            X, model = (model[:-1].transform(X) if len(model.steps) > 1 else X), model[-1]
        else:
            return model, X


def _told(error: BaseException) -> str:
    """The error in one line, and the last places it came through."""
    said = f"{type(error).__name__}: {error}".strip()
    places = traceback.extract_tb(error.__traceback__)[-4:]
    where = [f"{one.name} ({one.filename.rpartition('/')[2]}:{one.lineno})" for one in reversed(places)]
    return f"{said}\nin {' < '.join(where)}"
