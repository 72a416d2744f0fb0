"""Coordinates for Normal variables whose scale is sampled too: as far from their mean as the data say nothing of them.

Effects x ~ Normal(μ, σ) that the data determine are best sampled as they are, centred; those that they leave to the
prior as (x − μ)/σ, for their scale is a funnel otherwise. Between the two, with the share λ of their precision that
comes from the data (Papaspiliopoulos, Roberts & Sköld 2003),

    x = (1 − λ) μ + σ^(1−λ) z.

The posterior is the same for any λ; what differs is how easily it is sampled. The shares are found by a short run.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.exceptions import SamplingError
from pymc.model.transform.conditioning import change_value_transforms
from pytensor.graph.basic import Variable

from bayessel._check import FloatArray
from bayessel._pymc import Transform
from bayessel.samplers.persistent_hmc import PersistentHMC

#: draws of the short run: to tune in, to keep, and how many of these are looked at
TUNE, KEPT, LOOKED_AT = 200, 100, 10
#: elements beyond which no short run is made
MOST = 1_000
#: directions in which the curvature of all elements of a variable is looked at; of no more elements, at each by itself
DIRECTIONS = 16
#: steps between which slopes are compared, in units of the scale
APART = 1e-3


class PartlyCentred(Transform):
    """z with x = (1 − λ) μ + σ^(1−λ) z, of a Normal variable with mean μ and standard deviation σ."""

    name = "partly_centred"
    ndim_supp = 0

    def __init__(self, share: FloatArray) -> None:
        self.left = 1.0 - np.asarray(share, dtype=float)

    def _parts(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        mean, scale = inputs[-2:]
        return self.left * mean, pt.cast(scale, "float64") ** self.left

    def forward(self, value: Any, *inputs: Any) -> Any:
        """z of x."""
        centre, unit = self._parts(inputs)
        return (value - centre) / unit

    def backward(self, value: Any, *inputs: Any) -> Any:
        """x of z."""
        centre, unit = self._parts(inputs)
        return centre + unit * value

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """Log of |∂x/∂z|, element by element."""
        return pt.log(self._parts(inputs)[1]) + pt.zeros_like(value)


def partly_centred(model: pm.Model, variables: Sequence[Variable]) -> pm.Model:
    """The model with other coordinates of some Normal variables, as `shares` finds them; itself where none move."""
    try:
        found = shares(model, variables)
    except SamplingError:  # what is wrong with the model is said where it is sampled
        return model
    moved = {rv: PartlyCentred(share) for rv, share in found.items() if np.any(share < 1.0)}
    return recoordinated(model, moved) if moved else model


def recoordinated(model: pm.Model, transforms: Mapping[Variable, Transform | None]) -> pm.Model:
    """The model with other transforms; it is for sampling only, so that old objects of the user's do not matter."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Detected variables likely created by GP objects", UserWarning)
        return change_value_transforms(model, dict(transforms))


def shares(model: pm.Model, variables: Sequence[Variable]) -> dict[Variable, FloatArray]:
    """Share λ of the precision of each element that comes from the data, in tenths; by a short run, always the same.

    Along each element the density has the curvature h + 1/σ²: λ = h / (h + 1/σ²) on average over the draws. Of many
    elements all are moved at once, up or down by chance: what one does to another averages out, and where they are
    independent given the rest there is nothing to average.
    """
    values = [model.rvs_to_values[rv] for rv in variables]
    with model:
        step = PersistentHMC(model=model, updates_per_draw="auto")
    if not step.makes_many or sum(rv_size(model, value) for value in values) > MOST:
        return {}
    scales = model.compile_fn(
        model.replace_rvs_by_values([rv.owner.inputs[-1] for rv in variables]),
        inputs=model.value_vars,
        on_unused_input="ignore",
        mode="FAST_COMPILE",
    )
    places = {name: (place, shape) for name, place, shape in step.density.layout}
    point = model.initial_point(0)
    step.setup_chain(0, TUNE, KEPT)
    done = 0
    while done < TUNE:
        point, _, said = step.draws(point, TUNE - done, np.inf)
        done += len(said["v"])
    step.stop_tuning()
    _, draws, _ = step.draws(point, KEPT, np.inf)
    slope = step.density.both
    rng = np.random.default_rng(0)
    total = {rv: np.zeros(places[str(value.name)][1]) for rv, value in zip(variables, values, strict=True)}
    looked_at = range(KEPT // LOOKED_AT - 1, KEPT, KEPT // LOOKED_AT)
    for i in looked_at:
        here = {name: draws[name][i] for name in draws}
        q = step.density.vector(here)
        for rv, value, scale in zip(variables, values, scales(here), strict=True):
            place, shape = places[str(value.name)]
            sigma = np.broadcast_to(scale, shape).ravel()
            rises = np.zeros(sigma.size)
            for direction in _directions(sigma.size, rng):
                away = np.zeros_like(q)
                away[place] = APART * sigma * direction
                rises += direction * (slope(q - away)[1] - slope(q + away)[1])[place]
            with np.errstate(all="ignore"):
                curvature = rises / (2.0 * APART * sigma)
                share = 1.0 - 1.0 / (curvature * sigma**2)
            total[rv] += np.clip(np.nan_to_num(share, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0).reshape(shape)
    return {rv: np.round(one / len(looked_at), 1) for rv, one in total.items()}


def _directions(size: int, rng: np.random.Generator) -> FloatArray:
    """Directions d to look in, one to a row; Σ d dᵀ is the identity, or has it as its mean."""
    if size <= DIRECTIONS:
        return np.eye(size)
    return rng.choice([-1.0, 1.0], size=(DIRECTIONS, size)) / DIRECTIONS**0.5


def rv_size(model: pm.Model, value: Variable) -> int:
    """Elements of a value variable."""
    return int(np.size(model.initial_point(0)[str(value.name)]))
