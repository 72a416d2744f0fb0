"""Persistent-momentum Hamiltonian Monte Carlo as a PyMC step method.

The mathematics is in `horowitz` (one update), `hmc_draws` (updates and draws one after the other) and `tuning` (how
settings are found); this shell carries point dictionaries to vectors and back, and keeps what the next draw depends on
where PyMC looks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pymc import Model, modelcontext
from pytensor.graph.basic import Variable

from bayessel._check import FloatArray, as_count, as_flag, as_fraction, as_positive, one_of
from bayessel._pymc import Competence, PointType, StatsType, StepMethodState, dataclass_state, get_random_generator
from bayessel._types import Seed
from bayessel.samplers import jumps, tuning
from bayessel.samplers.density import Density, Variables, continuous
from bayessel.samplers.hmc_draws import COUNTS, NUMBERS, make_draws
from bayessel.samplers.jumps import Proposal
from bayessel.samplers.leapfrog import energy
from bayessel.samplers.tuned_step import TunedStep
from bayessel.samplers.tuning import TuningParts
from bayessel.samplers.window import as_window

#: acceptance rate the step size is tuned to
TARGET_ACCEPT = {"nonreversible": 0.9, "metropolis": 0.95}


@dataclass_state
class PersistentHMCState(StepMethodState):
    """Everything the next draw depends on: settings, momentum and v, the last evaluation, and the tuning under way."""

    n_tune: int
    tune: bool
    step_size: float | None
    scale: FloatArray
    location: FloatArray | None
    stay: float
    degrees: float
    bound: float
    relaxation: float
    momentum: FloatArray | None
    v: float
    position: FloatArray | None
    logp: float | None
    gradient: FloatArray | None
    others: list[np.ndarray]
    progress: TuningParts | None


class PersistentHMC(TunedStep):
    """Horowitz's Hamiltonian Monte Carlo: the momentum is kept between updates and only partly refreshed.

    One update makes `n_leapfrog` leapfrog steps, accepts or rejects (on rejection the momentum turns round), and
    mixes the momentum with fresh noise, φ ← aφ + √(1 − a²) ξ. With one leapfrog step per update and a near 1 it moves
    like long Hamiltonian trajectories, but another step method may move other variables after every gradient.

    Parameters
    ----------
    vars : sequence of variables or names, optional
        Which to sample; default all continuous variables of the model.
    n_leapfrog : int
        L, leapfrog steps per update. With L > 1 each trajectory takes a step size up to a fifth longer or shorter.
    step_size : float, optional
        ε, in units of the posterior standard deviations as the mass gives them. None: tuned to `target_accept`.
    persistence : float in [0, 1), optional
        a. None: exp(−0.5 εL/√λ) with λ the variance of the slowest direction in units of the mass. 0 is plain HMC.
    window : int
        W of Neal's windows of acceptance, at most L + 1; 1 is none.
    accept : {"nonreversible", "metropolis"}
        Whether the uniform of the accept/reject decision persists (Neal 2020) or is drawn anew.
    updates_per_draw : int or "auto"
        K. Updates between stored draws; "auto" takes about one decorrelation time, chosen while tuning.
    delta : float in (0, 1], optional
        How far the persistent uniform moves per update. None: (1 − a²)/2.
    target_accept : float in (0, 1), optional
        Mean acceptance rate to tune ε to. None: 0.9, and 0.95 with ``accept="metropolis"``.
    tune : bool
        Tune what was left None. False: ε is found by doubling and halving at the first point, the mass stays 1.
    mass : {"auto", "diag", "dense", "unit"} or array
        The mass matrix. "auto": "dense" up to 100 coordinates, else "diag". "diag": inverse variances, from the draws
        while tuning. "dense": an inverse covariance matrix, from draws and gradients while tuning; for correlated
        parameters, up to some hundreds. "unit": 1. An array, one positive number per coordinate in the order of `vars`,
        or a positive definite matrix such as the Hessian of −log p at the mode: fixed.
    jumps : bool
        Try jumps to independent points too, drawn from a Student t that tuning fits, at the price of one density and no
        gradient each; where enough of them are accepted they do most of the work. Needs ``mass="dense"``.
    model, rng, initial_point, compile_kwargs, blocked
        As for PyMC's own steps.

    Notes
    -----
    Statistics of a draw: ``lp``, ``acceptance_rate`` (mean over its updates), ``diverging``, ``step_size``,
    ``energy``, ``n_steps`` (gradients evaluated), ``persistence``, ``window``, ``flips`` (rejections), ``v``,
    ``n_jumps`` (densities evaluated without gradient), ``jumps_accepted``.

    References
    ----------
    Horowitz (1991) Phys. Lett. B 268; Neal (1994) J. Comp. Phys. 111; Neal (2020) arXiv:2001.11950; Hoffman & Sountsov
    (2022) AISTATS for the link between friction and the largest eigenvalue.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model():
    ...     x = pm.Normal("x", 0.0, [1.0, 10.0], shape=2)
    ...     step = PersistentHMC([x], updates_per_draw=5)
    ...     trace = pm.sample(50, tune=50, chains=1, step=step, random_seed=1, progressbar=False)
    >>> bool(trace.sample_stats["diverging"].any())
    False
    """

    name = "persistent_hmc"
    default_blocked = True
    _state_class = PersistentHMCState
    _numbers, _counts, _make = NUMBERS, COUNTS, staticmethod(make_draws)
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {
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
        "n_jumps": (np.int64, []),
        "jumps_accepted": (np.int64, []),
    }

    def __init__(
        self,
        vars: Variables | None = None,
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
        mass: str | npt.ArrayLike = "auto",
        jumps: bool = False,
        model: Model | None = None,
        rng: Seed = None,
        initial_point: PointType | None = None,
        compile_kwargs: Mapping[str, object] | None = None,
        blocked: bool = True,
    ) -> None:
        self.n_leapfrog = as_count(n_leapfrog, "n_leapfrog")
        self.window = as_window(window, self.n_leapfrog)
        self.accept = one_of(accept, "accept", ("nonreversible", "metropolis"))
        self.adapt = as_flag(tune, "tune")
        self._step_size = None if step_size is None else as_positive(step_size, "step_size")
        self._persistence = None if persistence is None else as_fraction(persistence, "persistence", zero=True)
        self._delta = None if delta is None else as_fraction(delta, "delta", one=True)
        self.updates_per_draw = "auto" if updates_per_draw == "auto" else as_count(updates_per_draw, "updates_per_draw")
        self.target_accept = (
            TARGET_ACCEPT[self.accept] if target_accept is None else as_fraction(target_accept, "target_accept")
        )

        model = modelcontext(model)
        self.vars = continuous(model, vars)
        self.rng = get_random_generator(rng)
        self.jumps = as_flag(jumps, "jumps")
        self.density = self._density_of(model, initial_point, compile_kwargs or {})
        self.size = self.density.size
        self._set_mass(mass)
        if self.jumps and self.mass != "dense":
            raise ValueError(f'jumps need mass="dense", which says how far to jump; got mass={mass!r}')
        self._evaluate_by(self.density)
        #: the proposal of the last jump, and what it was made of
        self._made: tuple[tuple[FloatArray, FloatArray, float], Proposal] | None = None
        self._reset(1000)

    def _density_of(
        self, model: Model, initial_point: PointType | None, compile_kwargs: Mapping[str, object]
    ) -> Density:
        return Density(model, self.vars, initial_point, compile_kwargs, value_alone=self.jumps)

    # --- draws --------------------------------------------------------------------------------------------------

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make one draw: K updates."""
        # overflow on the way out of the typical set is a rejection, counted as such
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            n_gradients = self._arrive(point) + self._begin()
            n_jumps, updates = self._plan()
            rates, jumped, excess = self._jump(n_jumps) if n_jumps else (0.0, 0, -np.inf)
            confined = self._confined() if not updates and self._tuning is None and excess > self.bound else None
            updates += self.updates if confined is not None else 0
            if updates:
                n_gradients += self._know_gradient()
                _, numbers, counts = self._move(1, updates, confined)
                stats = dict(zip(NUMBERS, numbers[0].tolist(), strict=True))
                stats |= dict(zip(COUNTS, counts[0].tolist(), strict=True))
                stats["diverging"] = stats["diverging"] and confined is None
                rates += updates * stats["acceptance_rate"]
            else:
                stats = {"model_logp": self.logp, "n_steps": 0, "flips": 0, "diverging": False, "v": self.v}
                stats |= {"step_size": self.step_size, "persistence": self.persistence, "energy": energy(self._phase())}
                if self._tuning is not None and self._adapts_mass:
                    assert self.position is not None
                    self._tuning = tuning.record(self._tuning, self.position, self.gradient)
            n_gradients += self._adapt()
        stats |= {
            "acceptance_rate": rates / (n_jumps + updates),
            "diverging": bool(stats["diverging"]),
            "n_steps": stats["n_steps"] + n_gradients,
            "window": self.window,
            "n_jumps": n_jumps,
            "jumps_accepted": jumped,
        }
        assert self.position is not None
        return self.density.point(self.position, point), [stats]

    @property
    def makes_many(self) -> bool:
        """Whether `draws` is there to be used."""
        return self._is_compiled and not self.jumps

    def draws(
        self, point: PointType, count: int, seconds: float
    ) -> tuple[PointType, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """As of `TunedStep`, the draws of `step`."""
        point, found, stats = super().draws(point, count, seconds)
        made = len(stats["v"])
        stats |= {"window": np.full(made, self.window)}
        stats |= {name: np.zeros(made, dtype=np.int64) for name in ("n_jumps", "jumps_accepted")}
        return point, found, stats

    @property
    def _number(self) -> int:
        return self.window

    def _jump(self, n_jumps: int) -> tuple[float, int, float]:
        """Jump some times; summed acceptance rates, how many were accepted, and log π/t at the end.

        The gradient is left for later.
        """
        assert self.position is not None and self.logp is not None
        proposal = self._proposal()
        rates, accepted, excess = 0.0, 0, -np.inf
        for _ in range(n_jumps):
            self.position, self.logp, info = jumps.jump(
                self.position, self.logp, self.density.value, proposal, self.rng
            )
            rates += info.acceptance_rate
            accepted += info.accepted
            excess = (info.there if info.accepted else info.here).excess
            if self._tuning is not None:
                self._tuning = tuning.observe_jump(self._tuning, info)
                if len(self._tuning.here) in tuning.JUDGED:
                    self.stay = tuning.stay(self._tuning, self.stay)
        if accepted:
            self.gradient = None  # `_know_gradient` finds it again when a trajectory needs it
        return rates, accepted, excess

    def _proposal(self) -> Proposal:
        assert self.location is not None
        made_of = (self.location, self.scale, self.degrees)
        if self._made is None or any(new is not old for new, old in zip(made_of, self._made[0], strict=True)):
            self._made = (made_of, jumps.proposal(*made_of))
        return self._made[1]

    def _confined(self) -> Callable[[FloatArray], tuple[float, FloatArray]]:
        """The density among the states that are hard to leave, nil elsewhere."""
        proposal = self._proposal()

        def confined(position: FloatArray) -> tuple[float, FloatArray]:
            logp, gradient = self._function(position)
            return logp if jumps.excess(position, logp, proposal).excess > self.bound else -np.inf, gradient

        return confined

    @staticmethod
    def competence(var: Variable, has_grad: bool) -> Competence:
        """Any continuous variable with a gradient; never preferred, so that PyMC does not choose it by itself."""
        return Competence.COMPATIBLE if has_grad else Competence.INCOMPATIBLE
