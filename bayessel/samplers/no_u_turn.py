"""The No-U-Turn sampler as a PyMC step method, in compiled loops.

The mathematics is in `nuts_update` (one transition), `nuts_draws` (draws one after the other) and `tuning`; this shell
says what is kept and what is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pymc import Model, modelcontext
from pytensor.graph.basic import Variable

from bayessel._check import FloatArray, as_count, as_flag, as_fraction, as_positive
from bayessel._pymc import Competence, PointType, StatsType, StepMethodState, dataclass_state, get_random_generator
from bayessel._types import Seed
from bayessel.samplers.density import Density, Variables, continuous
from bayessel.samplers.nuts_draws import TREE_COUNTS, TREE_NUMBERS, make_tree_draws
from bayessel.samplers.tuned_step import TunedStep
from bayessel.samplers.tuning import TuningParts


@dataclass_state
class NoUTurnState(StepMethodState):
    """Everything the next draw depends on: settings, the last evaluation, and the tuning under way."""

    n_tune: int
    tune: bool
    step_size: float | None
    scale: FloatArray
    relaxation: float
    momentum: FloatArray | None
    position: FloatArray | None
    logp: float | None
    gradient: FloatArray | None
    others: list[np.ndarray]
    progress: TuningParts | None


class NoUTurn(TunedStep):
    """Hamiltonian trajectories that end by themselves where they would turn back (Hoffman & Gelman 2014).

    Each draw takes a new momentum and doubles its trajectory until it turns back; the draw is one of its states, in
    proportion to their densities (Betancourt 2017). No length has to be right for all of the posterior: narrow and wide
    parts, as of a funnel, get trajectories of their own.

    Parameters
    ----------
    vars : sequence of variables or names, optional
        Which to sample; default all continuous variables of the model.
    step_size : float, optional
        ε, in units of the posterior standard deviations as the mass gives them. None: tuned to `target_accept`.
    target_accept : float in (0, 1)
        Mean acceptance rate over the states of trajectories to tune ε to. Nearer to 1 for shorter steps, where draws
        diverge.
    max_treedepth : int
        Doublings of a trajectory at most.
    tune : bool
        Tune what was left None. False: ε is found by doubling and halving at the first point, the mass stays 1.
    mass : {"auto", "diag", "dense", "unit"} or array
        The mass matrix, as of `PersistentHMC`.
    model, rng, initial_point, compile_kwargs, blocked
        As for PyMC's own steps.

    Notes
    -----
    Statistics of a draw: ``lp``, ``acceptance_rate``, ``diverging``, ``step_size``, ``energy``, ``n_steps`` (gradients
    evaluated), ``tree_depth`` (doublings), ``reached_max_treedepth``.

    References
    ----------
    Hoffman & Gelman (2014) JMLR 15; Betancourt (2017) arXiv:1701.02434.
    """

    name = "no_u_turn"
    default_blocked = True
    _state_class = NoUTurnState
    _numbers, _counts, _make = TREE_NUMBERS, TREE_COUNTS, staticmethod(make_tree_draws)
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {
        "model_logp": (np.float64, []),
        "acceptance_rate": (np.float64, []),
        "diverging": (bool, []),
        "step_size": (np.float64, []),
        "energy": (np.float64, []),
        "n_steps": (np.int64, []),
        "tree_depth": (np.int64, []),
        "reached_max_treedepth": (bool, []),
    }

    # of the settings of other steps on the same base: one transition to a draw, and a new momentum
    n_leapfrog, updates_per_draw, window, accept, jumps = 1, 1, 1, "metropolis", False
    _persistence, _delta = 0.0, None

    def __init__(
        self,
        vars: Variables | None = None,
        *,
        step_size: float | None = None,
        target_accept: float = 0.8,
        max_treedepth: int = 10,
        tune: bool = True,
        mass: str | npt.ArrayLike = "auto",
        model: Model | None = None,
        rng: Seed = None,
        initial_point: PointType | None = None,
        compile_kwargs: Mapping[str, object] | None = None,
        blocked: bool = True,
    ) -> None:
        self._step_size = None if step_size is None else as_positive(step_size, "step_size")
        self.target_accept = as_fraction(target_accept, "target_accept")
        self.max_treedepth = as_count(max_treedepth, "max_treedepth")
        self.adapt = as_flag(tune, "tune")
        model = modelcontext(model)
        self.vars = continuous(model, vars)
        self.rng = get_random_generator(rng)
        self.density = Density(model, self.vars, initial_point, compile_kwargs or {})
        self.size = self.density.size
        self._set_mass(mass)
        self._evaluate_by(self.density)
        self._reset(1000)

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make one draw."""
        point, _, stats = self.draws(point, 1, 0.0)
        return point, [{name: values[0].item() for name, values in stats.items()}]

    @property
    def makes_many(self) -> bool:
        """Whether many draws at a time are worth their bookkeeping: where loops are compiled."""
        return self._is_compiled

    def draws(
        self, point: PointType, count: int, seconds: float
    ) -> tuple[PointType, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """As of `TunedStep`, the draws of `step`."""
        point, found, stats = super().draws(point, count, seconds)
        stats["reached_max_treedepth"] = stats["reached_max_treedepth"].astype(bool)
        return point, found, stats

    @property
    def _number(self) -> int:
        return self.max_treedepth

    @staticmethod
    def competence(var: Variable, has_grad: bool) -> Competence:
        """Any continuous variable with a gradient; never preferred, so that PyMC does not choose it by itself."""
        return Competence.COMPATIBLE if has_grad else Competence.INCOMPATIBLE
