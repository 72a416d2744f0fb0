"""A log density with its gradient that compiled loops can call: the machine code that PyTensor made, by its address.

A loop that calls a Python function spends microseconds on each call; many small densities need less. PyTensor's Numba
mode leaves a dispatcher with the function's machine code; its address, with the signature, is a function value that a
compiled loop takes as an argument. So loops are compiled once, whatever the model.

A function called this way cannot raise: Numba prints the exception and goes on with garbage. Graphs that check, that
index by what follows from the position, or run Python inside are therefore not offered; `CompiledDensity.of` returns
None, and loops run in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.extending import intrinsic, typeof_impl

from bayessel._check import FloatArray, IntArray
from bayessel._compiled import compiled_as
from bayessel._pymc import code_of, machine_code, runs_python


class CompiledCall(NamedTuple):
    """A function value, and what it takes besides the position.

    The function takes the position, or (position,) as one tuple, where there is nothing else; else the position and
    `others`, a table of where the arrays of shared variables lie.
    """

    function: Any
    others: Any


#: q -> (log density, its gradient), which must not keep or change q; or the same as machine code
LogDensity = Callable[[FloatArray], tuple[float, FloatArray]] | CompiledCall


def evaluate(log_density: LogDensity, position: FloatArray) -> tuple[float, FloatArray]:
    """Log density and gradient at a position; also inside compiled loops, where the density is a `CompiledCall`."""
    assert not isinstance(log_density, CompiledCall)
    logp, gradient = log_density(position)
    return float(logp), gradient


def _call(log_density: Any, position: Any) -> Any:
    logp, gradient = log_density.function((position,))
    return logp.item(), np.ascontiguousarray(gradient)


def _call_plain(log_density: Any, position: Any) -> Any:
    logp, gradient = log_density.function(position)
    return logp.item(), np.ascontiguousarray(gradient)


def _call_by_table(log_density: Any, position: Any) -> Any:
    return log_density.function(position, log_density.others)


def _chosen(density: Any, position: Any) -> int:
    if isinstance(density[1], types.Array):
        return 2
    return 0 if isinstance(density[0].signature.args[0], types.BaseTuple) else 1


compiled_as(evaluate, _call, _call_plain, _call_by_table, choose=_chosen)


class _FunctionValue(types.WrapperAddressProtocol):
    """Machine code as a first-class function value, with its type, which takes Numba longer to find than to use."""

    def __init__(self, address: int, signature: Any) -> None:
        self._address, self._signature = address, signature
        self.type = types.FunctionType(signature)

    def __wrapper_address__(self) -> int:
        return self._address

    def signature(self) -> Any:
        return self._signature


@typeof_impl.register(_FunctionValue)
def _(value: _FunctionValue, context: Any) -> Any:
    return value.type


class CompiledDensity:
    """The machine code behind a function that PyTensor compiled."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._values: dict[Any, _FunctionValue] = {}
        self._kept: list[npt.NDArray[Any]] = []
        self._others = [cell.storage for cell in function.input_storage[1:]]

    @classmethod
    def of(cls, function: Any) -> CompiledDensity | None:
        """None where there is none, or where it could raise or call Python, or takes what is no array."""
        if runs_python(function) or function.maker.fgraph.inputs[0].type.dtype != "float64":
            return None
        found = cls(function)
        return found if all(isinstance(storage[0], np.ndarray) for storage in found._others) else None

    def __getstate__(self) -> dict[str, Any]:
        """Without addresses, which mean nothing in another process."""
        return {"function": self._function}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["function"])  # type: ignore[misc]

    def call(self, position: FloatArray) -> CompiledCall:
        """What a loop takes, with the shared variables as they are now; compiled for their types at first."""
        # a table knows no strides; copies live as long as the loop
        others = self._kept = [_dense(storage[0]) for storage in self._others]
        key = tuple([_kind(storage[0]) for storage in self._others])
        value = self._values.get(key)
        if value is None:
            self._function(position)  # compiles
            arguments = (position, *(storage[0] for storage in self._others))
            value = _FunctionValue(*machine_code(self._function, arguments))
            if others:
                value = _by_table(value, others)
            self._values[key] = value
        return CompiledCall(value, _table(others) if others else None)


# --- shared variables: their types differ from model to model, and a loop is compiled for one type --------------------


@intrinsic
def _pointer(context: Any, address: Any) -> Any:
    """An address as a pointer."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), code


def _dense(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy whose elements lie one after the other."""
    flags = array.flags
    return array if flags.c_contiguous or (flags.f_contiguous and array.ndim > 1) else np.ascontiguousarray(array)


def _table(others: list[Any]) -> IntArray:
    """Address and shape of each array, one after the other."""
    return np.array([number for one in others for number in (one.ctypes.data, *one.shape)], dtype=np.int64)


def _by_table(function: _FunctionValue, others: list[Any]) -> _FunctionValue:
    """The same function of a position and a table of the others."""
    names, lines, place = [], [], 0
    for k, one in enumerate(others):
        shape = ", ".join(f"table[{place + 1 + axis}]" for axis in range(one.ndim))
        view = f"numba.carray(pointer(table[{place}]), ({shape or 1},), dtype_{k})"
        if one.ndim > 1 and not one.flags.c_contiguous:
            view = view.replace("carray", "farray")
        names.append(f"other_{k}")
        lines.append(f"    other_{k} = {view if one.ndim else f'np.asarray({view}[0])'}")
        place += 1 + one.ndim
    body, given = "\n".join(lines), f"position, {', '.join(names)}"
    if isinstance(function.signature().args[0], types.BaseTuple):
        given = f"({given},)"
    source = (
        f"def by_table(position, table):\n{body}\n    logp, gradient = function({given})\n"
        "    return logp.item(), np.ascontiguousarray(gradient)\n"
    )
    scope = {"numba": numba, "pointer": _pointer, "np": np, "function": function}
    scope |= {f"dtype_{k}": one.dtype for k, one in enumerate(others)}
    exec(source, scope)
    compiled: Any = numba.njit(scope["by_table"])
    compiled.compile((types.float64[::1], types.int64[::1]))
    return _FunctionValue(*code_of(next(iter(compiled.overloads.values()))))


def _kind(value: Any) -> Any:
    """What decides how Numba sees a value."""
    flags = value.flags
    return value.dtype.char, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
