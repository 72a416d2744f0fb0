"""A text that says what a method is: the same in every process, another one for other settings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayessel.diagnostics.delve._unit import takes_size

#: a factory that needs a size is known by what it makes for these
_PROBES = (64, 1024)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
#: set by the study, so that they do not tell methods apart
_OURS = ("random_state", "progressbar", "cores")
_DEEP = 8


def description(method: Any) -> str:
    """Classes and settings of a method: an estimator, or what a factory makes."""
    if hasattr(method, "fit") and not isinstance(method, type):
        return _said(method, 0)
    if takes_size(method):
        return "; ".join(f"{size}: {_made(method, size)}" for size in _PROBES)
    return _made(method)


def _made(factory: Any, *size: int) -> str:
    """What a factory makes; it may fail, be it for these sizes only, and that is for its units to tell."""
    try:
        return _said(factory(*size), 0)
    except Exception as error:
        return f"{_said(factory, 0)}, which raises {type(error).__name__}"


def _said(value: Any, depth: int) -> str:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if depth > _DEEP:
        return f"{type(value).__name__}(…)"
    deeper = depth + 1
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return f"array({[_said(one, deeper) for one in value.ravel()]}, {value.shape})"
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]
        return f"array({value.dtype}, {value.shape}, {digest})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_said(key, deeper)}: {_said(value[key], deeper)}" for key in value) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_said(one, deeper) for one in value) + "]"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(_said(one, deeper) for one in value)) + "}"
    if hasattr(value, "__qualname__"):  # a function or a class
        return f"{value.__module__}.{value.__qualname__}{_content(value, deeper)}"
    parameters = value.get_params(deep=False) if hasattr(value, "get_params") else getattr(value, "__dict__", None)
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if parameters is None:
        return f"{name}:{_ADDRESS.sub('', repr(value))}"
    settings = ", ".join(f"{key}={_said(parameters[key], deeper)}" for key in sorted(parameters) if key not in _OURS)
    return f"{name}({settings})"


def _content(function: Any, depth: int) -> str:
    """What a function of Python works with, for lambdas share a name; its bytes are others in every Python."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    constants = [one for one in code.co_consts if not hasattr(one, "co_consts")]
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    return _said([list(code.co_names), constants, list(function.__defaults__ or ()), held], depth)


def difference(there: str, here: str) -> str:
    """Where two descriptions part, in a few words of each."""
    k = next((k for k, (a, b) in enumerate(zip(there, here, strict=False)) if a != b), min(len(there), len(here)))
    start = max(there.rfind(sign, 0, k) + 1 for sign in ",( ")
    return f"{there[start : start + 60]!r} there, {here[start : start + 60]!r} here"
