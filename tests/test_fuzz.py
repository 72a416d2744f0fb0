"""Extreme arguments meet a helpful refusal of ours or a finite answer; nothing of the caller's is changed.

A raw exception of another library or of Python, a warning that is not ours, an answer that is not finite or of another
shape, an array or a global setting that a call changed: each is a violation.

Guards `bayessel._check`.
"""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from tests.paths import ROOT
from tests.problems.fuzz import FAMILIES, Answer, Draw, watched

SOURCES = tuple(str(ROOT / folder) for folder in ("bayessel", "models", "diagnostics", "build"))
#: calls per family in the fast suite
FEW = 10
#: scikit-learn's own checks of its own arguments
GUESTS = re.compile(r"/sklearn/(utils/validation|base|utils/_tags|utils/multiclass)\.py$")


def innermost(error: BaseException) -> tuple[str, bool]:
    """File and line that raised, and whether it is ours or a guest's check."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = last.filename.startswith(SOURCES)
    return place(last.filename, last.lineno), ours or bool(GUESTS.search(last.filename))


def deepest(error: BaseException) -> str:
    """The last of our lines on the way to an exception."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(SOURCES)]
    return place(frames[-1].filename, frames[-1].lineno) if frames else "outside"


def place(filename: str, line: int | None) -> str:
    name = Path(filename).as_posix()
    for folder in SOURCES:
        name = name.removeprefix(folder.rpartition("/")[0] + "/")
    return f"{re.sub(r'^build/[^/]*/', '', name)}:{line}"


def judged(answer: Answer) -> list[tuple[str, str]]:
    found = []
    for name, (value, shape) in answer.items():
        if shape is None:
            continue
        value = np.asarray(value, dtype=float)
        if value.shape != shape:
            found.append((name, f"shape {value.shape} instead of {shape}"))
        elif not np.isfinite(value).all():
            found.append((name, "not finite"))
    return found


def violations(family: Callable[[Draw], Answer], draw: Draw) -> list[tuple[str, str]]:
    """(place, what) of everything one call does wrong."""
    found: list[tuple[str, str]] = []

    def heard(message: Any, category: type, filename: str, line: int, *_: Any) -> None:
        """Note a warning that is not ours beside the line of ours on whose behalf it came."""
        if not category.__module__.startswith("bayessel.") and category is not DataConversionWarning:
            frames = [f for f in traceback.extract_stack() if f.filename.startswith(SOURCES)]
            where = place(frames[-1].filename, frames[-1].lineno) if frames else place(filename, line)
            found.append((where, f"{category.__name__}: {message}"[:160]))

    with warnings.catch_warnings(), watched() as changed:
        warnings.simplefilter("always")
        warnings.showwarning = heard
        before, loaded = list(warnings.filters), len(sys.modules)
        try:
            found += judged(family(draw))
        except (ValueError, TypeError, NotImplementedError) as error:
            where, ours = innermost(error)
            if not ours:
                found.append((deepest(error), f"raw {type(error).__name__} from {where}: {error}"[:160]))
            elif len(str(error)) < 15:
                found.append((where, f"says little: {error}"))
        except AssertionError as error:
            found.append((deepest(error), f"AssertionError: {error}"[:160]))
        except Exception as error:
            found.append((deepest(error), f"raw {type(error).__name__}: {error}"[:160]))
        # a library that is loaded for the first time may add filters
        if list(warnings.filters) != before and len(sys.modules) == loaded:
            found.append(("warnings.filters", "changed"))
    found += [("global state", text) for text in changed if "filters" not in text]
    return found + [("arguments", f"changed: {text}") for text in draw.untouched()]


def run(name: str, calls: int, seed: int) -> dict[tuple[str, str], tuple[int, int, dict[str, Any]]]:
    """(place, what) -> how often, number of the first call, what it was given."""
    found: dict[tuple[str, str], tuple[int, int, dict[str, Any]]] = {}
    for k in range(calls):
        draw = Draw(np.random.default_rng([seed, list(FAMILIES).index(name), k]))
        for one in set(violations(FAMILIES[name], draw)):
            key = (one[0], re.sub(r"-?\d[\d.]*(e[-+]?\d+)?", "#", one[1]))
            times, first, said = found.get(key, (0, k, {"what": one[1], **draw.said}))
            found[key] = (times + 1, first, said)
    return found


def told(name: str, found: dict[tuple[str, str], tuple[int, int, dict[str, Any]]]) -> str:
    return "\n".join(
        f"{name} {where}: {said.pop('what')} ({times} times; call {first}: {said})"
        for (where, _), (times, first, said) in sorted(found.items())
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_few_calls(name, request):
    found = run(name, FEW, request.config.getoption("--seed"))
    assert not found, told(name, found)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_many_calls(name, request):
    calls = request.config.getoption("--fuzz-calls") // len(FAMILIES)
    found = run(name, calls, request.config.getoption("--seed") + 1)
    assert not found, told(name, found)


# --- the oracle sees faults ----------------------------------------------------------------------------------------


def _writes(d: Draw) -> Answer:
    array = d.array(3, 2)
    array[0, 0] = 7.0
    return {}


@pytest.mark.parametrize(
    ("family", "said"),
    [
        (lambda d: {"x": (np.array([np.nan]), (1,))}, "not finite"),
        (lambda d: {"x": (np.zeros(2), (1,))}, "shape"),
        (lambda d: {"x": (1 / 0, ())}, "ZeroDivisionError"),
        (lambda d: {"x": (np.linalg.inv(np.zeros((2, 2))), (2, 2))}, "LinAlgError"),
        (lambda d: {"x": (int("x"), ())}, "raw ValueError"),
        (lambda d: {"x": (np.log(np.zeros(1)), None)}, "RuntimeWarning"),
        (lambda d: {"x": (np.random.normal(), ())}, "generator moved"),  # noqa: NPY002
        (lambda d: dict.fromkeys(np.seterr(all="ignore"), (0.0, ())), "geterr"),
        (_writes, "changed"),
    ],
)
def test_a_fault_is_seen(family, said):
    draw = Draw(np.random.default_rng(3))
    found = violations(family, draw)
    assert any(said in what for _, what in found), found


def test_a_refusal_and_an_answer_pass():
    import bayessel as bs

    def refuses(d: Draw) -> Answer:
        return {"x": (bs.linear.log_evidence(np.zeros((3, 2)), np.zeros(4), 1.0, 1.0), ())}

    draw = Draw(np.random.default_rng(3))
    assert violations(refuses, draw) == []
    assert violations(lambda d: {"x": (np.ones(3), (3,))}, draw) == []
