"""`numba.njit` that keeps machine code on disk, and makes it anew when anything it was made from has changed.

Numba's own cache looks at the file of the function alone: with a function called from another file it goes on using
what that was when the caller was compiled. Here the stamp is of the byte code, the constants and the options of every
compiled function that can be reached. Files lie where Numba puts them: beside the sources, or in the user's folder of
caches where these cannot be written, or in NUMBA_CACHE_DIR. Where there is no place, code is compiled in each process.

Importing this module imports Numba.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
from numba.core import caching
from numba.extending import overload

#: what constants of a module may be; other globals are functions, or no part of the machine code
_PLAIN = (bool, int, float, complex, str, bytes, tuple)
#: where plain functions are looked for that compiled ones call (`numba.extending.register_jitable`)
_OURS = __name__.partition(".")[0] + "."


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit(**options)`` with the cache of this module."""

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        # no place to write to, or another Numba inside: compile in each process
        with suppress(AttributeError, TypeError, RuntimeError, OSError):
            dispatcher._cache = _Cache(function)
        return dispatcher

    return compiled


def compiled_as(
    plain: Callable[..., Any], *inside: Callable[..., Any], choose: Callable[..., int] = lambda *types: 0
) -> None:
    """Let calls of a plain function be calls of another inside compiled code; stamps see the others.

    `choose` says which of several, by the types of the arguments.
    """
    overload(plain, strict=False)(lambda *arguments: inside[choose(*arguments)])
    plain.__dict__[_INSIDE] = inside


def stamp(function: FunctionType) -> str:
    """Digest of all that the machine code of a function is made from."""
    found: dict[int, str] = {}
    _reach(function, {}, found)
    return hashlib.sha256("\n".join(found.values()).encode()).hexdigest()


#: attribute of a plain function
_INSIDE = "compiled_as"


class _Cache(caching.FunctionCache):
    """Numba's cache of one function, with our stamp; whatever is wrong with a file, the function is compiled."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code from disk, or None."""
        self._cache_file._source_stamp = stamp(self._py_func)  # not before: it may call what is defined below it
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling a damaged file, or one of a class that has moved, may raise
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Machine code to disk, if it can be."""
        with suppress(OSError):
            try:
                super().save_overload(sig, data)
            except Exception:  # the index is damaged, or tells of a class that has moved: begin another
                self.flush()
                super().save_overload(sig, data)


def _reach(function: FunctionType, options: Any, found: dict[int, str]) -> None:
    """Describe a function and those that it calls, each once."""
    if id(function) in found:
        return
    code = function.__code__
    found[id(function)] = ""  # it may call itself
    constants = []
    names = sorted(_names(code))
    for name in names:
        value = function.__globals__.get(name, _Cache)
        # ``module.function(…)``: whatever it has of the names that are mentioned
        inside = isinstance(value, ModuleType)
        held = [(one, vars(value).get(one, _Cache)) for one in names] if inside else [(name, value)]
        for attribute, member in held:
            if isinstance(inner := getattr(member, "py_func", None), FunctionType):
                _reach(inner, getattr(member, "targetoptions", {}), found)
            elif isinstance(inner := getattr(member, "_defn", None), FunctionType):  # an intrinsic
                _reach(inner, {}, found)
            elif isinstance(member, FunctionType) and member.__module__.startswith(
                _OURS
            ):  # compiled where it is called
                for inner in member.__dict__.get(_INSIDE, (member,)):
                    _reach(inner, {}, found)
            elif isinstance(member, _PLAIN):
                constants.append((attribute, repr(member)))
    found[id(function)] = repr((_text(code), constants, sorted((key, _sorted(one)) for key, one in options.items())))


def _names(code: CodeType) -> set[str]:
    """Globals and attributes that a function or one inside it mentions."""
    inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


def _text(code: CodeType) -> tuple[Any, ...]:
    """What a function does, without where it stands."""
    constants = [_text(one) if isinstance(one, CodeType) else _sorted(one) for one in code.co_consts]
    return (code.co_code.hex(), code.co_names, code.co_varnames, constants)


def _sorted(value: Any) -> str:
    """`repr`, the same in every process."""
    return repr(sorted(value, key=repr)) if isinstance(value, set | frozenset) else repr(value)
