"""Persistent-momentum Hamiltonian Monte Carlo as a PyMC step method; the mathematics is in `horowitz`."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from pymc.blocking import PointType, StatsType
from pymc.exceptions import SamplingError
from pymc.model import Model, modelcontext
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator, get_value_vars_from_user_vars

from bayessel._check import FloatArray, as_count, as_flag, as_float_array, as_positive, one_of
from bayessel.samplers import horowitz, momentum
from bayessel.samplers.horowitz import Settings, State
from bayessel.samplers.leapfrog import Phase, energy


@dataclass_state
class PersistentHMCState(StepMethodState):
    """Everything the next draw depends on."""

    tune: bool
    step_size: float | None
    scale: FloatArray
    persistence: float
    delta: float
    updates: int
    momentum: FloatArray | None
    v: float
    position: FloatArray | None
    logp: float
    gradient: FloatArray | None
    others: list[np.ndarray]


class PersistentHMC(BlockedStep):
    """Persistent momentum.

    Parameters
    ----------
    vars : variables of the model, optional
        Default: all continuous ones.
    """

    name = "persistent_hmc"
    default_blocked = True
    _state_class = PersistentHMCState
    stats_dtypes_shapes = {
        "model_logp": (np.float64, []),
        "acceptance_rate": (np.float64, []),
        "diverging": (bool, []),
        "step_size": (np.float64, []),
        "energy": (np.float64, []),
        "n_steps": (np.int64, []),
        "persistence": (np.float64, []),
        "window": (np.int64, []),
        "flips": (np.int64, []),
        "v": (np.float64, []),
    }

    def __init__(
        self,
        vars: Sequence[Any] | None = None,
        *,
        n_leapfrog: int = 1,
        step_size: float | None = None,
        persistence: float | None = None,
        window: int = 1,
        accept: str = "nonreversible",
        updates_per_draw: int | str = 1,
        delta: float | None = None,
        target_accept: float | None = None,
        tune: bool = True,
        mass: str | npt.ArrayLike = "diag",
        model: Model | None = None,
        rng: Any = None,
        initial_point: PointType | None = None,
        compile_kwargs: dict[str, Any] | None = None,
        blocked: bool = True,
    ) -> None:
        model = modelcontext(model)
        free = model.continuous_value_vars if vars is None else get_value_vars_from_user_vars(vars, model)
        if initial_point is None:
            initial_point = model.initial_point()
        self.vars = list(free)
        self.rng = get_random_generator(rng)
        compiled = model.logp_dlogp_function(
            self.vars, ravel_inputs=True, initial_point=initial_point, **(compile_kwargs or {})
        )
        self._shared = compiled._extra_vars_shared
        self._function = compiled._pytensor_function
        self._function.trust_input = True
        self._layout = []
        end = 0
        for name in (var.name for var in self.vars):
            value = np.asarray(initial_point[name])
            self._layout.append((name, slice(end, end + value.size), value.shape))
            end += value.size
        self.size = end

        self.n_leapfrog = as_count(n_leapfrog, "n_leapfrog")
        self.window = as_count(window, "window")
        self.accept = one_of(accept, "accept", ("nonreversible", "metropolis"))
        self._given_step_size = None if step_size is None else as_positive(step_size, "step_size")
        self._given_persistence = persistence
        self._given_delta = delta
        self._given_updates = updates_per_draw
        self.adapt = as_flag(tune, "tune")
        self._reset()

    # --- one chain ----------------------------------------------------------------------------------------------

    def _reset(self) -> None:
        """Back to the state before the first draw of a chain."""
        self.tune = self.adapt
        self.step_size = 0.1 if self._given_step_size is None else self._given_step_size
        self.scale = np.ones(self.size)
        self.persistence = 0.95 if self._given_persistence is None else float(self._given_persistence)
        self.delta = 0.05 if self._given_delta is None else float(self._given_delta)
        self.updates = self._given_updates if isinstance(self._given_updates, int) else 1
        self.momentum = None
        self.v = 0.0
        self.data_changed()

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Start a chain: nothing of an earlier one is kept."""
        super().setup_chain(rng, tune, draws)
        self._reset()
        self.tune = self.adapt and tune > 0

    def stop_tuning(self) -> None:
        """Freeze all settings for the rest of the chain."""
        self.tune = False

    def data_changed(self) -> None:
        """Forget the density and gradient of the last point; the next draw evaluates them anew."""
        self.position = None
        self.logp = np.nan
        self.gradient = None
        self.others = []

    # --- one draw -----------------------------------------------------------------------------------------------

    def _ravel(self, point: PointType) -> FloatArray:
        return np.concatenate([point[name].ravel() for name, _, _ in self._layout])

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make one draw: `updates` Horowitz updates."""
        position = self._ravel(point)
        others = [point[name] for name in self._shared]
        n_gradients = 0
        if not self._is_known(position, others):
            for value, shared in zip(others, self._shared.values(), strict=True):
                shared.set_value(value, borrow=False)
            logp, gradient = self._function(position)
            self.position, self.logp, self.gradient = position, float(logp), gradient
            self.others = [np.array(value) for value in others]
            n_gradients = 1
            if not np.isfinite(self.logp):
                raise SamplingError(f"log density {self.logp}")
        if self.momentum is None:
            self.momentum = momentum.fresh(self.rng, self.size)
            self.v = 2.0 * self.rng.random() - 1.0
        state = State(Phase(self.position, self.momentum, self.logp, self.gradient), self.v)
        settings = Settings(
            self.step_size * self.scale,
            self.n_leapfrog,
            self.window,
            self.persistence,
            self.delta if self.accept == "nonreversible" else None,
        )
        rate = 0.0
        flips = 0
        diverging = False
        for _ in range(self.updates):
            state, info = horowitz.transition(state, self._function, settings, self.rng)
            rate += info.acceptance_rate
            flips += not info.accepted
            diverging |= info.diverging
            n_gradients += info.n_gradients
        (self.position, self.momentum, self.logp, self.gradient), self.v = state
        new = dict(point)
        for name, place, shape in self._layout:
            new[name] = self.position[place].reshape(shape).copy()
        return new, [
            {
                "model_logp": self.logp,
                "acceptance_rate": rate / self.updates,
                "diverging": diverging,
                "step_size": self.step_size,
                "energy": energy(state.phase),
                "n_steps": n_gradients,
                "persistence": self.persistence,
                "window": self.window,
                "flips": flips,
                "v": self.v,
            }
        ]

    def _is_known(self, position: FloatArray, others: list[np.ndarray]) -> bool:
        """Whether density and gradient were last evaluated here, with the other variables as they are now."""
        return (
            self.position is not None
            and np.array_equal(position, self.position)
            and all(np.array_equal(new, old) for new, old in zip(others, self.others, strict=True))
        )

    @staticmethod
    def competence(var: Any, has_grad: bool) -> Competence:
        """Any continuous variable with a gradient."""
        return Competence.COMPATIBLE if has_grad else Competence.INCOMPATIBLE
