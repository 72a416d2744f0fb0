"""Units of work: a call, its content key, and what came of it."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from bayessel._numerics import few_threads


@dataclass(frozen=True, eq=False)
class WorkUnit[T]:
    """A pure call that can be pickled: its value depends on its arguments alone.

    Attributes
    ----------
    key : str
        Names the content of the call. Results are stored and found again under it, and a seed among the arguments is
        derived from it (`bayessel.work.seeds.seed_sequence`), so neither order nor company of units matters.
    function : callable
        Called as ``function(*arguments)``.
    arguments : tuple, or callable
        Its arguments, or what returns them when the unit is begun.
    label : str
        What the progress bar shows while units like it are worked on.

    Examples
    --------
    >>> unit = WorkUnit("2 to the tenth", pow, (2, 10))
    >>> unit.function(*unit.arguments)
    1024
    """

    key: str
    function: Callable[..., T]
    arguments: tuple[Any, ...] | Callable[[], tuple[Any, ...]] = ()
    label: str = ""

    def call(self) -> tuple[Callable[..., T], tuple[object, ...]]:
        """The function and its arguments."""
        return self.function, self.arguments() if callable(self.arguments) else self.arguments


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a call.

    Attributes
    ----------
    kind : {"value", "error", "unsent", "died"}
        It returned, it raised, it or its value could not be pickled, or the process that ran it ended by itself.
    value
        What it returned, or the exception if that can be pickled.
    text : str
        The traceback, or what happened to the process.
    """

    kind: Literal["value", "error", "unsent", "died"]
    value: Any = None
    text: str = ""


def perform(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Answer:
    """Call with one BLAS thread; what it raises is an answer too, except Ctrl-C.

    Cores are shared between units, and the last bits of a result would depend on the number of threads.
    """
    try:
        with few_threads(0):
            return Answer("value", function(*arguments))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return failure(error)


def failure(error: BaseException) -> Answer:
    """An exception as an answer: as text alone where the exception itself cannot be pickled."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return Answer("error", None, text)
    return Answer("error", error, text)


def raised(answer: Answer, what: str) -> BaseException:
    """The exception to raise in this process for an answer that is an error; `what` failed elsewhere."""
    if answer.value is None:
        return RuntimeError(f"{what} failed in a worker process:\n{answer.text}")
    error: BaseException = answer.value
    if not hasattr(error, "__notes__") and error.__traceback__ is None:  # it comes from another process
        error.add_note(f"It happened in a worker process:\n{answer.text}")
    return error
