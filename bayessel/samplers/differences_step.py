"""All of `bayessel.models.loss_differences` in one step method; the mathematics is in `differences`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
from pymc import modelcontext
from pymc.step_methods import BlockedStep

from bayessel._pymc import LogTransform, PointType, StatsType, StepMethodState, get_random_generator
from bayessel.samplers.differences import Belief, DifferencesState, LossCases, sweep

#: the variables of several tasks; with one there are neither of the first two, and a given ν leaves out the last
NAMES = ("mu_all", "tau", "mu", "omega", "set_effect", "sigma", "nu_minus_one")


class DifferencesGibbs(BlockedStep):
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
    default_blocked = True
    _state_class = StepMethodState

    def __init__(
        self, vars: Any = None, *, model: pm.Model | None = None, rng: Any = None, blocked: bool = True
    ) -> None:
        self.model = modelcontext(model)
        said = differences_of(self.model)
        if said is None:
            raise ValueError(
                "DifferencesGibbs needs a model that bayessel.models.loss_differences made and to which nothing was "
                "added; bayessel.steps finds steps for other models"
            )
        self.vars = list(self.model.value_vars)
        self.rng = get_random_generator(rng)
        self.said = said
        self.value = {str(rv.name): str(self.model.rvs_to_values[rv].name) for rv in self.model.free_RVs}
        self.data_changed()

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
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
        for name in ("tau", "omega", "sigma", "nu_minus_one"):
            values[name] = np.log(values[name])
        new = dict(point)  # the same order of keys: the trace relies on it
        for name, value in self.value.items():
            new[value] = np.asarray(values[name], dtype=np.float64)
        return new, [{}]


def differences_of(model: pm.Model) -> dict[str, Any] | None:
    """What `bayessel.models.loss_differences` wrote on its variables, where they are all there is in the model."""
    free = list(model.free_RVs)
    said = getattr(free[0].tag, "loss_differences", None) if free else None
    if said is None or any(getattr(rv.tag, "loss_differences", None) is not said for rv in free):
        return None
    expected = set(NAMES) if len(said["sets"]) > 1 else set(NAMES[2:])
    if said["belief"]["excess"] is None:
        expected.discard("nu_minus_one")
    alone = {str(rv.name) for rv in free} == expected and not model.potentials
    alone = alone and [rv.name for rv in model.observed_RVs] == ["y"]
    logs = all(
        isinstance(model.rvs_to_transforms[rv], LogTransform)
        for rv in free
        if rv.name in ("tau", "omega", "sigma", "nu_minus_one")
    )
    return said if alone and logs else None
