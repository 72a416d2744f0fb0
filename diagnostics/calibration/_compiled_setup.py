"""What is compiled of models where it is used: once in each process."""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable

from bayessel._pymc import custom_methods, register_custom_methods


class CompiledSetup[T](ABC):
    """Models, and what becomes of them in each process that uses them.

    Parameters
    ----------
    models : sequence of pymc.Model
        Their data are exchanged on the way.
    """

    def __init__(self, models: Sequence[pm.Model]) -> None:
        self._token = uuid.uuid4().hex
        self.models = list(models)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "custom": [custom_methods(model) for model in self.models]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for custom in state.pop("custom"):
            register_custom_methods(custom)
        self.__dict__.update(state)

    @abstractmethod
    def compiled(self) -> T:
        """Compile it."""

    @contextmanager
    def used(self) -> Iterator[T]:
        """What is compiled, for one thread at a time, since all share the data."""
        with _USE:
            if self._token not in _MADE:
                made = self.compiled()
                _MADE.clear()
                _MADE[self._token] = made
            yield _MADE[self._token]

    @contextmanager
    def held(self) -> Iterator[T]:
        """Compiled in this process, and forgotten at the end, when the models have the data again that they had."""
        places = [one for model in self.models for one in model.data_vars if isinstance(one, SharedVariable)]
        before = [place.get_value() for place in places]
        try:
            with self.used() as made:
                pass
            yield made
        finally:
            for place, value in zip(places, before, strict=True):
                place.set_value(value)
            _MADE.pop(self._token, None)


#: what the last setup of this process was compiled to, and the lock of its users
_MADE: dict[str, Any] = {}
_USE = threading.RLock()
