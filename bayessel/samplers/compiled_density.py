"""A log density with its gradient that compiled loops can call: the machine code that PyTensor made, by its address.

A loop that calls a Python function spends microseconds on each call, many small densities need less. PyTensor's Numba
mode leaves a dispatcher with the function's machine code; its address, with the signature, is a function value that a
compiled loop takes as an argument. So loops are compiled once, whatever the model.

A function called this way cannot raise: Numba prints the exception and goes on with garbage. Graphs that check or run
Python inside are therefore not offered; `CompiledDensity.of` returns None, and loops run in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import types
from numba.extending import overload, typeof_impl

from bayessel._check import FloatArray
from bayessel._pymc import machine_code, runs_python


class CompiledCall(NamedTuple):
    """A function value of (position, *others), and the others: arrays of shared variables."""

    function: Any
    others: tuple[Any, ...]


#: q -> (log density, its gradient), which must not keep or change q; or the same as machine code
LogDensity = Callable[[FloatArray], tuple[float, FloatArray]] | CompiledCall


def evaluate(log_density: LogDensity, position: FloatArray) -> tuple[float, FloatArray]:
    """Log density and gradient at a position; also inside compiled loops, where the density is a `CompiledCall`."""
    assert not isinstance(log_density, CompiledCall)
    logp, gradient = log_density(position)
    return float(logp), gradient


@overload(evaluate)
def _evaluate(log_density: Any, position: Any) -> Any:
    def inside(log_density: Any, position: Any) -> Any:
        logp, gradient = log_density.function((position, *log_density.others))
        return logp.item(), np.ascontiguousarray(gradient)

    return inside


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
        self._others = [cell.storage for cell in function.input_storage[1:]]

    @classmethod
    def of(cls, function: Any) -> CompiledDensity | None:
        """None where there is none, or where it could raise or call Python."""
        return None if runs_python(function) else cls(function)

    def call(self, position: FloatArray) -> CompiledCall:
        """What a loop takes, with the shared variables as they are now; compiled for their types at first."""
        others = tuple([storage[0] for storage in self._others])
        key = tuple([_kind(one) for one in others])
        value = self._values.get(key)
        if value is None:
            self._function(position)  # compiles
            value = self._values[key] = _FunctionValue(*machine_code(self._function, (position, *others)))
        return CompiledCall(value, others)


def _kind(value: Any) -> Any:
    """What decides how Numba sees a value."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype.char, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    return numba.typeof(value)
