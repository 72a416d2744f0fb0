"""What a step of persistent-momentum HMC knows of its settings, and how it finds them while a chain tunes."""

from __future__ import annotations

from math import exp, nan
from typing import cast

import numpy as np

from bayessel._check import FloatArray
from bayessel._types import Seed
from bayessel.samplers import horowitz, tuning
from bayessel.samplers.ascent import leave
from bayessel.samplers.evaluated_step import EvaluatedStep
from bayessel.samplers.hmc_draws import Rules
from bayessel.samplers.leapfrog import Phase
from bayessel.samplers.tuning import Tuning, TuningParts

#: relative spread of the step sizes of trajectories of several steps
JITTER = 0.2
#: gradients per draw while the mass is still unknown and the number of updates is chosen automatically; a dense mass
#: has gradients to learn from, and needs no independent draws
FIRST_GRADIENTS = {"diag": 20, "dense": 10}


class TunedStep(EvaluatedStep):
    """Base of `PersistentHMC`: one chain's settings, as given or found; not for direct use."""

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
            self.stay = tuning.stay(self._tuning, self.stay)
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
        return n_jumps, int(not tunes or self.rng.random() * tuning.NOW_AND_THEN < 1.0)

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
