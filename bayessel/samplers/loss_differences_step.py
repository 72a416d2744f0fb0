"""All of `bayessel.models.loss_differences` in one step method.

The mathematics is in `bayessel.samplers.loss_differences`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm

from bayessel._pymc import PointType, StatsType, StepMethodState
from bayessel._types import Seed
from bayessel.samplers.density import Variables
from bayessel.samplers.loss_differences import Belief, DifferencesState, LossCases, sweep
from bayessel.samplers.whole_model import WholeModelStep

#: the variables of several tasks; with one there are neither of the first two, and a given ν leaves out the last
NAMES = ("mu_all", "tau", "mu", "omega", "set_effect", "sigma", "nu_minus_one")
#: those whose logarithms are sampled
POSITIVE = ("tau", "omega", "sigma", "nu_minus_one")


class DifferencesGibbs(WholeModelStep):
    """Gibbs sampling of all variables of `bayessel.models.loss_differences`, effects integrated out where it helps.

    Parameters
    ----------
    vars : sequence of variables, optional
        All free variables of the model, and these must be those of `bayessel.models.loss_differences`.
    model, rng, blocked
        As for PyMC's own steps.

    Notes
    -----
    There is nothing to tune.
    """

    name = "differences_gibbs"
    maker, observed, has_settings = "loss_differences", "y", False
    _state_class = StepMethodState

    def __init__(
        self, vars: Variables | None = None, *, model: pm.Model | None = None, rng: Seed = None, blocked: bool = True
    ) -> None:
        super().__init__(model, rng)
        self.data_changed()

    @staticmethod
    def _expected(said: Mapping[str, Any]) -> dict[str, bool]:
        names = {name: name in POSITIVE for name in (NAMES if len(said["sets"]) > 1 else NAMES[2:])}
        if said["belief"]["excess"] is None:
            del names["nu_minus_one"]
        return names

    def setup_chain(self, rng: Seed, tune: int, draws: int) -> None:
        """Start a chain: a generator of its own, and the data as they are now."""
        super().setup_chain(rng, tune, draws)
        self.data_changed()

    def data_changed(self) -> None:
        """Read the data anew at the next draw."""
        self._cases: LossCases | None = None

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make one draw."""
        if self._cases is None:
            y = np.asarray(self.model["y_data"].get_value(borrow=True), dtype=np.float64)
            self._cases = LossCases(y, self.said["per_set"], self.said["sets"])
            self._excess = 0.0 if "nu_minus_one" in self.value else float(self.model["nu"].get_value()) - 1.0
        belief: Belief = Belief(**self.said["belief"])
        at = {name: np.asarray(point[value]) for name, value in self.value.items()}
        several = "tau" in at
        found = sweep(
            self.rng,
            self._cases,
            belief,
            DifferencesState(
                float(at["mu_all"]) if several else 0.0,
                float(np.exp(at["tau"])) if several else belief.flat,
                at["mu"],
                np.exp(at["omega"]),
                at["set_effect"],
                np.exp(at["sigma"]),
                float(np.exp(at["nu_minus_one"])) if "nu_minus_one" in at else self._excess,
            ),
        )
        values: dict[str, Any] = dict(zip(NAMES, found, strict=True))
        for name in POSITIVE:
            values[name] = np.log(values[name])
        new = dict(point)  # the same order of keys: the trace relies on it
        for name, value in self.value.items():
            new[value] = np.asarray(values[name], dtype=np.float64)
        return new, [{}]
