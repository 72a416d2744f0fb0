"""What a step of Hamiltonian Monte Carlo knows of its settings, how it finds them while tuning, and its draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import exp, nan
from time import perf_counter
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray, one_of
from bayessel._pymc import PointType
from bayessel._types import Seed
from bayessel.samplers import horowitz, metric, tuning
from bayessel.samplers.ascent import leave
from bayessel.samplers.compiled_density import LogDensity
from bayessel.samplers.evaluated_step import EvaluatedStep
from bayessel.samplers.hmc_draws import Moving, Rules
from bayessel.samplers.horowitz import HorowitzState
from bayessel.samplers.jumps import DEGREES
from bayessel.samplers.leapfrog import Phase
from bayessel.samplers.tuning import Tuning, TuningParts

#: relative spread of the step sizes of trajectories of several steps
JITTER = 0.2
#: gradients per draw while the mass is still unknown and the number of updates is chosen automatically; a dense mass
#: has gradients to learn from, and needs no independent draws
FIRST_GRADIENTS = {"diag": 20, "dense": 10}
#: coordinates up to which the mass is dense by default: beyond, what it costs and has to learn is too much
DENSE_UP_TO = 100
#: draws that are made together at most: there is room for so many, whatever the length of the chain
TOGETHER = 10_000
#: seconds that draws are made in without looking at the clock, about
UNWATCHED = 0.02


class TunedStep(EvaluatedStep):
    """Base of `PersistentHMC` and `NoUTurn`: one chain's settings, as given or found, its draws; not for direct use."""

    #: what makes draws; names of their numbers, and of their counts, of which gradients are the first
    _make: ClassVar[Callable[..., Moving]]
    _numbers: ClassVar[tuple[str, ...]]
    _counts: ClassVar[tuple[str, ...]]
    size: int
    n_leapfrog: int
    window: int
    accept: str
    adapt: bool
    mass: str
    jumps: bool
    target_accept: float
    updates_per_draw: int | str
    rng: np.random.Generator
    _step_size: float | None
    _persistence: float | None
    _delta: float | None
    _scale: FloatArray

    # --- one chain ----------------------------------------------------------------------------------------------

    def _reset(self, n_tune: int) -> None:
        """Back to the state before the first draw of a chain."""
        self.n_tune = n_tune
        self.tune = self.adapt and n_tune > 0
        self.step_size = self._step_size
        self.scale = self._scale
        self.location: FloatArray | None = None
        self.stay = np.inf
        self.degrees, self.bound = DEGREES[0], -np.inf
        self.relaxation = 1.0
        self.momentum: FloatArray | None = None
        self.v = 0.0
        self._tuning: Tuning | None = None
        self.data_changed()

    def setup_chain(self, rng: Seed, tune: int, draws: int) -> None:
        """Start a chain: nothing of an earlier one is kept."""
        super().setup_chain(rng, tune, draws)
        self._reset(tune)

    def stop_tuning(self) -> None:
        """Freeze all settings for the rest of the chain."""
        if self._tuning is not None:
            self.degrees, self.stay, self.bound = tuning.choose_jumps(self._tuning, self.stay)
            if self._step_size is None:
                self.step_size = exp(self._tuning.averaging.mean)
        self._tuning = None
        self.tune = False

    @property
    def progress(self) -> TuningParts | None:
        """The tuning under way as plain nested tuples, for the sampling state."""
        if self._tuning is None:
            return None
        return tuning.as_tuples(self._tuning)

    @progress.setter
    def progress(self, parts: TuningParts | None) -> None:
        self._tuning = None if parts is None else tuning.from_tuples(parts)

    # --- settings -----------------------------------------------------------------------------------------------

    @property
    def persistence(self) -> float:
        """Persistence a of the momentum, as given or by the rule."""
        if self._persistence is not None:
            return self._persistence
        return tuning.persistence(self.step_size or 1.0, self.n_leapfrog, self.relaxation)

    @property
    def delta(self) -> float:
        """Pace δ of the persistent uniform, as given or by the rule."""
        return tuning.pace(self.persistence) if self._delta is None else self._delta

    @property
    def updates(self) -> int:
        """Updates in the next draw."""
        if isinstance(self.updates_per_draw, int):
            return self.updates_per_draw
        if self._in_first_window:
            return max(1, FIRST_GRADIENTS[self.mass] // self.n_leapfrog)
        return tuning.updates_per_draw(self.step_size or 1.0, self.n_leapfrog, self.relaxation)

    @property
    def _in_first_window(self) -> bool:
        return self._tuning is not None and self._adapts_mass and tuning.in_first_window(self._tuning)

    @property
    def _adapts_mass(self) -> bool:
        return self.mass in ("diag", "dense")

    def _plan(self) -> tuple[int, int]:
        """Jumps and Hamiltonian updates in the next draw."""
        if self.location is None:
            return 0, self.updates
        tunes = self._tuning is not None
        otherwise = tuning.updates_per_draw(self.step_size or 1.0, self.n_leapfrog, self.relaxation)
        if not tuning.jumps_pay(self.stay, self.n_leapfrog * otherwise):
            return int(tunes), self.updates
        if isinstance(self.updates_per_draw, int):
            n_jumps = self.updates_per_draw
        else:
            n_jumps = 1 if tunes else tuning.jumps_per_draw(self.stay)
        return n_jumps, int(self.rng.random() * tuning.NOW_AND_THEN[not tunes] < 1.0)

    def _rules(self, updates: int) -> Rules:
        """Of the draws until the window of the tuning ends, with so many updates; 0 leaves their number to the rule."""
        tuned = self._tuning
        delta = nan if self._delta is None else self._delta
        return Rules(
            self.n_leapfrog,
            JITTER if self.n_leapfrog > 1 else 0.0,
            nan if self._persistence is None else self._persistence,
            delta if self.accept == "nonreversible" else 0.0,
            self.target_accept if tuned is not None and self._step_size is None else nan,
            self.relaxation,
            updates,
            tuned is not None and self._adapts_mass,
            1 if tuned is None else tuning.keep_every(tuned),
            0 if tuned is None else tuned.draw,
        )

    def _set_mass(self, mass: str | npt.ArrayLike) -> None:
        """What `mass` asks for, and the scale to begin with."""
        if isinstance(mass, str):
            self.mass = one_of(mass, "mass", ("auto", "diag", "dense", "unit"))
            if mass == "auto":
                self.mass = "dense" if self.size <= DENSE_UP_TO else "diag"
            self._scale = np.eye(self.size) if self.mass == "dense" else np.ones(self.size)
        else:
            self.mass = "given"
            self._scale = metric.scale_of(mass, self.size)
        self._no_window = tuning.empty_window(self.size, self._scale.ndim == 2)

    # --- draws --------------------------------------------------------------------------------------------------

    def draws(
        self, point: PointType, count: int, seconds: float
    ) -> tuple[PointType, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Make up to `count` draws until the seconds are over: the last point, all, their statistics.

        None of them may lie beyond the end of the tuning.
        """
        began, made, size, count = perf_counter(), 0, 1, min(count, TOGETHER)
        positions = np.empty((count, self.size))
        numbers = np.empty((count, len(self._numbers)))
        counts = np.empty((count, len(self._counts)), dtype=np.int64)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            before = self._arrive(point) + self._begin()
            while made < count:
                clock = perf_counter()
                size = min(size, count - made)
                if self._tuning is not None:
                    size = min(size, tuning.until_window_ends(self._tuning))
                fixed = isinstance(self.updates_per_draw, int) or self._in_first_window
                part = slice(made, made + size)
                positions[part], numbers[part], counts[part] = self._move(size, self.updates if fixed else 0)
                counts[made, 0] += before
                before, made = 0, made + size
                counts[made - 1, 0] += self._adapt()
                now = perf_counter()
                if now - began >= seconds:
                    break
                left = min(UNWATCHED, seconds - (now - began))
                size = max(1, min(4 * size, int(size * left / max(now - clock, 1e-9))))
        stats: dict[str, np.ndarray] = dict(zip(self._numbers, numbers[:made].T.copy(), strict=True))
        stats |= dict(zip(self._counts, counts[:made].T.copy(), strict=True))
        stats["diverging"] = stats["diverging"].astype(bool)
        found = self.density.points(positions[:made])
        return self.density.point(positions[made - 1], point), found, stats

    def _move(
        self, count: int, updates: int, log_density: LogDensity | None = None
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Make draws of so many updates (0: as the rule says): positions, numbers and counts."""
        assert self.step_size is not None
        positions, numbers = np.empty((count, self.size)), np.empty((count, len(self._numbers)))
        counts = np.empty((count, len(self._counts)), dtype=np.int64)
        tuned = self._tuning
        averaging = tuning.averaging_from(self.step_size) if tuned is None else tuned.averaging
        window = self._no_window if tuned is None else tuned.window
        there = self._make(
            Moving(HorowitzState(self._phase(), self.v), self.step_size, averaging),
            self.scale,
            self._rules(updates),
            window,
            self._log_density() if log_density is None else log_density,
            self._number,
            self.rng,
            positions,
            numbers,
            counts,
        )
        (self.position, self.momentum, self.logp, self.gradient), self.v = there.state
        self.step_size = there.step_size
        if tuned is not None:
            drawn = count if self._adapts_mass else 0
            self._tuning = tuned._replace(averaging=there.averaging, draw=tuned.draw + drawn)
        return positions, numbers, counts

    @property
    @abstractmethod
    def _number(self) -> int:
        """What `_make` takes besides the rules."""

    # --- the way in, and the windows --------------------------------------------------------------------------------

    def _begin(self) -> int:
        """Before the first update of a chain: momentum, uniform, a first step size, and the tuning; gradients taken."""
        if self.momentum is not None:
            return 0
        self.momentum = horowitz.fresh_momentum(self.rng, self.size)
        self.v = horowitz.fresh_uniform(self.rng)
        n_gradients = self._leave() if self.tune else 0
        if self.step_size is None:
            n_gradients += self._search_step_size(1.0)
        assert self.step_size is not None
        if self.tune and self.adapt:
            self._tuning = tuning.begin(
                self.n_tune, self.size, self.target_accept, self.step_size, self.mass == "dense"
            )
        return n_gradients

    def _leave(self) -> int:
        """Leave a starting point that is far below the posterior; gradients taken."""
        phase = self._phase()
        found, n_gradients = leave(phase.position, phase.logp, phase.gradient, self._function, self.rng)
        self.position, self.logp, self.gradient = found
        return n_gradients

    def _phase(self) -> Phase:
        assert self.position is not None and self.momentum is not None and self.logp is not None
        # after a jump nobody knows the gradient, and where no trajectory follows nobody needs it
        return Phase(self.position, self.momentum, self.logp, cast(FloatArray, self.gradient))

    def _search_step_size(self, guess: float) -> int:
        self.step_size, n_gradients = tuning.reasonable_step_size(self._phase(), self._function, self.scale, guess)
        return n_gradients

    def _adapt(self) -> int:
        """After draws while tuning: at the end of a window renew the mass and what hangs on it; gradients taken."""
        full = self._tuning
        if full is None or not self._adapts_mass or not tuning.ends_window(full):
            return 0
        assert self.step_size is not None
        self._tuning, self.scale = tuning.close_window(full, self.scale)
        self.relaxation = self._tuning.relaxation
        if self.jumps and full.seen >= 2 * self.size:
            self.location = tuning.centre(full, self.scale)
            self.stay = tuning.stay(full, self.stay)
        # the old momentum is along the path of another metric
        self.momentum = horowitz.fresh_momentum(self.rng, self.size)
        if self._step_size is not None:
            return 0
        n_gradients = self._know_gradient() + self._search_step_size(self.step_size)
        self._tuning = self._tuning._replace(averaging=tuning.averaging_from(self.step_size))
        return n_gradients
