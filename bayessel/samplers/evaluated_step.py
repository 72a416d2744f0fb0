"""A step method that evaluates density and gradient exactly where something moved since they were last known."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
from pymc.exceptions import SamplingError
from pymc.step_methods import BlockedStep

from bayessel._check import FloatArray
from bayessel._pymc import PointType
from bayessel.samplers.compiled_density import CompiledDensity, LogDensity
from bayessel.samplers.density import Density


class EvaluatedStep(BlockedStep):
    """Base of `PersistentHMC`: takes over points that other steps changed; not for direct use."""

    density: Density
    momentum: FloatArray | None
    position: FloatArray | None
    logp: float | None
    gradient: FloatArray | None
    others: list[np.ndarray]

    def _evaluate_by(self, density: Density) -> None:
        """Set what evaluates; a function that finds the same can stand for the compiled one."""
        self._function: Callable[..., Any] = density.both
        self._compiled = CompiledDensity.of(density.both)
        self._shared = density.shared
        self._data_seen = density.data()

    @property
    def _is_compiled(self) -> bool:
        """Whether compiled loops can evaluate: the function is machine code, and nothing stands for it."""
        return self._compiled is not None and self._function is self.density.both

    def _log_density(self) -> LogDensity:
        """What a loop evaluates at this point; with the other variables and data as they are now."""
        if not self._is_compiled or self.position is None or self._compiled is None:
            return self._function
        return self._compiled.call(self.position)

    def data_changed(self) -> None:
        """Forget the density and gradient of the last point; the next draw evaluates them anew."""
        self.position = None
        self.logp = None
        self.gradient = None
        self.others = []

    def _arrive(self, point: PointType) -> int:
        """Take over the point; evaluate density and gradient if anything moved since they were last known."""
        position = self.density.vector(point)
        others = [point[name] for name in self._shared]
        for shared, value in zip(self._shared.values(), others, strict=True):
            shared.set_value(value, borrow=True)
        if self._is_known(position, others):
            return 0
        logp, gradient = self._function(position)
        if not isfinite(logp) or (self.momentum is None and not np.isfinite(gradient).all()):
            where = "log density" if not isfinite(logp) else "gradient of the log density"
            values = {name: point[name] for name, _, _ in self.density.layout}
            raise SamplingError(
                f"the {where} must be finite where sampling starts, got {logp if not isfinite(logp) else gradient} at "
                f"{values}; pass other initvals, or find the variable to blame with model.debug()"
            )
        self.position, self.logp, self.gradient = position, float(logp), gradient
        self.others = [np.array(value) for value in others]
        self._data_seen = self.density.data()
        return 1

    def _is_known(self, position: FloatArray, others: list[np.ndarray]) -> bool:
        """Whether density and gradient were last evaluated here, with other variables and data as they are now."""
        return (
            self.position is not None
            and np.array_equal(position, self.position)
            and all(np.array_equal(new, old) for new, old in zip(others, self.others, strict=True))
            and all(new is old for new, old in zip(self.density.data(), self._data_seen, strict=True))
        )

    def _know_gradient(self) -> int:
        """Evaluate it unless it is known; the number of evaluations."""
        if self.gradient is not None:
            return 0
        self.gradient = self._function(self.position)[1]
        return 1
