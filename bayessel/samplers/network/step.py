"""All of `bayessel.models.mlp` in one step method: Gibbs for the precisions, trajectories for the weights, compiled.

The mathematics is in `trajectory` and `precisions`; this shell carries points to vectors and back, tunes the step size,
and keeps what the next draw depends on where PyMC looks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any, ClassVar

import numpy as np
import pymc as pm

from bayessel._check import FloatArray, as_count, as_flag, as_fraction, as_positive
from bayessel._pymc import PointType, StatsType, StepMethodState, dataclass_state
from bayessel._types import Seed
from bayessel.mlp.architecture import Weights
from bayessel.mlp.prior import PRECISION_NAMES, NetworkPrior
from bayessel.samplers import tuning
from bayessel.samplers.density import Variables
from bayessel.samplers.tuning import DualAveraging
from bayessel.samplers.whole_model import WholeModelStep
from bayessel.samplers.window import as_window

#: the first step size, before anything is known
FIRST_STEP = 0.2
JITTER = 0.2
#: (precision of the noise, trajectories) at the start of a tuned chain, hyperparameters held; and precisions of the
#: weights, those of D inputs together as free as one of this precision over D
FIRST_UPDATES = ((20.0, 20), (2.0, 20))
FIRST_TAU, FIRST_INPUT_TAU = 4.0, 0.5


@dataclass_state
class NetworkSamplerState(StepMethodState):
    """Everything the next draw depends on besides the point."""

    tune: bool
    step_size: float
    momentum: FloatArray | None
    progress: tuple[float, ...] | None


class NetworkSampler(WholeModelStep):
    """Hybrid of Gibbs sampling and Hamiltonian trajectories for all variables of `bayessel.models.mlp` (Neal 1996).

    Parameters
    ----------
    vars : sequence of variables, optional
        All free variables of the model, and these must be those of `bayessel.models.mlp`.
    n_leapfrog : int
        L, leapfrog steps per update; the hyperparameters are drawn between updates.
    step_size : float, optional
        ε, in units of each group's guessed standard deviations. None: tuned to `target_accept`.
    persistence : float in [0, 1)
        a, the part of the momentum that is kept between updates.
    window : int, optional
        W of Neal's windows of acceptance, at most L + 1; 1 is none. None: a tenth of L.
    updates_per_draw : int
        Updates between stored draws.
    target_accept : float in (0, 1)
        Mean acceptance rate to tune ε to.
    initialise : bool
        Begin each tuned chain with hyperparameters held, until the weights fit the data.
    model, rng, blocked
        As for PyMC's own steps.

    Notes
    -----
    Statistics of a draw: ``lp``, ``acceptance_rate``, ``diverging``, ``step_size``, ``n_steps`` (gradients),
    ``flips`` (rejections).

    References
    ----------
    Neal (1996), Bayesian Learning for Neural Networks, chapter 3; Rasmussen (1996), § 3.7.
    """

    name = "network_sampler"
    maker, observed, has_settings = "mlp", "t", True
    unidentified = ("hidden_bias", "input_hidden", "hidden_output")  # hidden units may change places, and signs
    _state_class = NetworkSamplerState
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {
        "model_logp": (np.float64, []),
        "acceptance_rate": (np.float64, []),
        "diverging": (bool, []),
        "step_size": (np.float64, []),
        "n_steps": (np.int64, []),
        "flips": (np.int64, []),
    }

    def __init__(
        self,
        vars: Variables | None = None,
        *,
        n_leapfrog: int = 200,
        step_size: float | None = None,
        persistence: float = 0.9,
        window: int | None = None,
        updates_per_draw: int = 1,
        target_accept: float = 0.85,
        initialise: bool = True,
        model: pm.Model | None = None,
        rng: Seed = None,
        blocked: bool = True,
    ) -> None:
        self.n_leapfrog = as_count(n_leapfrog, "n_leapfrog")
        self.window = as_window(max(1, self.n_leapfrog // 10) if window is None else window, self.n_leapfrog)
        self._step_size = None if step_size is None else as_positive(step_size, "step_size")
        self.persistence = as_fraction(persistence, "persistence", zero=True)
        self.updates_per_draw = as_count(updates_per_draw, "updates_per_draw")
        self.target_accept = as_fraction(target_accept, "target_accept")
        self.initialise = as_flag(initialise, "initialise")
        super().__init__(model, rng)
        self.prior: NetworkPrior = self.said["prior"]
        self.kind: str = self.said["likelihood"]
        self._layout()
        self._reset(1000)

    @staticmethod
    def _expected(said: Mapping[str, Any]) -> dict[str, bool]:
        names = dict.fromkeys(Weights._fields, False) | dict.fromkeys((*PRECISION_NAMES, "nu"), True)
        if said["likelihood"] != "student":
            del names["nu"]
        if said["likelihood"] in ("logistic", "softmax"):
            del names["tau_noise"]
        return names

    def _layout(self) -> None:
        """Names of the values PyMC samples and their places in the vectors of weights and of logarithms."""
        value = self.value
        architecture = self.prior.architecture
        D, K = architecture.inputs, architecture.outputs
        self._weights = [(value[name], place, architecture.shapes[name]) for name, place in architecture.slices.items()]
        self._logs: list[tuple[str, slice, tuple[int, ...]]] = []
        shapes: list[tuple[int, ...]] = [(K,), (), (), (D,), (), (D,), ()]
        end = 0
        for name, shape in zip(PRECISION_NAMES, shapes, strict=True):
            begin, end = end, end + int(np.prod(shape))
            if name in value:
                self._logs.append((value[name], slice(begin, end), shape))
        if self.kind == "student":
            self._logs.append((value["nu"], slice(end, end + 1), ()))
            end += 1
        self._n_logs = end

    # --- one chain ----------------------------------------------------------------------------------------------

    def _reset(self, n_tune: int) -> None:
        self.tune = n_tune > 0
        self.step_size = FIRST_STEP if self._step_size is None else self._step_size
        self.momentum: FloatArray | None = None
        self.progress: tuple[float, ...] | None = None
        self.data_changed()

    def setup_chain(self, rng: Seed, tune: int, draws: int) -> None:
        """Start a chain: nothing of an earlier one is kept."""
        super().setup_chain(rng, tune, draws)
        self._reset(tune)

    def stop_tuning(self) -> None:
        """Freeze the step size."""
        if self.progress is not None:
            self.step_size = exp(DualAveraging(*self.progress).mean)  # type: ignore[arg-type]
        self.progress = None
        self.tune = False

    def data_changed(self) -> None:
        """Read the data anew at the next draw."""
        self._problem: Any = None

    def _read(self) -> None:
        from bayessel.samplers.network.trajectory import posterior_of

        X = np.asarray(self.model["X"].get_value(borrow=True), dtype=np.float64)
        t = np.asarray(self.model["t_data"].get_value(borrow=True))
        if self.kind == "softmax":
            t = t[:, None] == np.arange(self.prior.architecture.outputs)
        T = np.asarray(t.reshape(len(X), -1), dtype=np.float64)
        self._problem, self._work = posterior_of(X, T, self.kind, self.prior)

    # --- one draw -----------------------------------------------------------------------------------------------

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make one draw."""
        from bayessel.samplers.network.trajectory import log_joint

        if self._problem is None:
            self._read()
        q, s = np.empty(self.prior.architecture.size), np.zeros(self._n_logs)
        for vector, layout in ((q, self._weights), (s, self._logs)):
            for name, place, _ in layout:
                vector[place] = np.ravel(point[name])
        n_steps = 0
        if self.momentum is None:
            self.momentum = self.rng.standard_normal(len(q))
            if self.tune and self._step_size is None:
                self.progress = tuple(tuning.averaging_from(self.step_size))
            if self.tune and self.initialise:
                n_steps += self._initialise(q, s)
        rate, rejected, diverging, spent = self._sweep(q, s, True, self.updates_per_draw)
        step_size = self.step_size
        if self.progress is not None:
            averaging = tuning.average(DualAveraging(*self.progress), self.target_accept - rate)  # type: ignore[arg-type]
            self.progress, self.step_size = tuple(averaging), exp(averaging.current)
        new = dict(point)  # the same order of keys: the trace relies on it
        for vector, layout in ((q, self._weights), (s, self._logs)):
            for name, place, shape in layout:
                new[name] = vector[place].reshape(shape).copy()
        return new, [
            {
                "model_logp": log_joint(self._problem, q, s, self._work),
                "acceptance_rate": rate,
                "diverging": diverging,
                "step_size": step_size,
                "n_steps": n_steps + spent,
                "flips": rejected,
            }
        ]

    def _sweep(self, q: FloatArray, s: FloatArray, draw_precisions: bool, updates: int) -> tuple[float, int, bool, int]:
        from bayessel.samplers.network.trajectory import TrajectorySettings, sweep

        settings = TrajectorySettings(
            self.step_size, JITTER, self.n_leapfrog, self.window, self.persistence, draw_precisions
        )
        none = np.ones((len(s), 2))  # a reference is for annealing
        found: tuple[float, int, bool, int] = sweep(
            self.rng, self._problem, q, self.momentum, s, self._work, settings, updates, none, 1.0
        )
        return found

    def _initialise(self, q: FloatArray, s: FloatArray) -> int:
        """Trajectories with hyperparameters held: weights are free to fit all there is, then what is there for sure.

        From there precisions grow to where they belong. With weights kept small the first residuals go to the noise,
        and inputs that are not used yet lose the freedom to be: chains stay for hundreds of updates, some for
        thousands, in an explanation that is linear or noise alone. Without the second part some fit the noise of hard
        targets, and stay there as long.
        """
        D, K = self.prior.architecture.inputs, self.prior.architecture.outputs
        known = len(s) - (self.kind == "student")
        s[:known] = np.log(FIRST_INPUT_TAU * D)
        s[K : K + 2] = np.log(FIRST_TAU)
        q *= 0.1
        n_steps = 0
        for tau, updates in FIRST_UPDATES:
            s[:K] = np.log(tau)
            n_steps += int(self._sweep(q, s, False, updates)[3])
        return n_steps
