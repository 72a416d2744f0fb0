"""Coordinates for Normal variables whose scale is sampled too: as far from their mean as the data say nothing of them.

Effects x ~ Normal(μ, σ) that the data determine are best sampled as they are, centred; those that they leave to the
prior as (x − μ)/σ, for their scale is a funnel otherwise. Between the two

    x = (1 − λ) μ + σ^(1−λ) z,

where λ follows the share of their precision that comes from the data (Papaspiliopoulos, Roberts & Sköld 2003). That
share is smaller where σ is small, and chains have to get there: λ is its square, and 0 below `CENTRED_FROM`. The steps
of a random walk are such effects too. The posterior is the same for any λ; what differs is how easily it is sampled.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.exceptions import SamplingError
from pymc.model.transform.conditioning import change_value_transforms
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import NormalRV

from bayessel._check import FloatArray
from bayessel._pymc import RandomWalkRV, Transform
from bayessel.samplers.persistent_hmc import PersistentHMC

#: draws of the short run: to tune in, to keep, and how many of these are looked at
TUNE, KEPT, LOOKED_AT = 200, 100, 10
#: λ from which on it is not rounded to 0: a funnel with a wider neck is one
CENTRED_FROM = 0.3
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


class PartlyCentredWalk(PartlyCentred):
    """The same of the steps of a random walk, its first value as it is."""

    name = "partly_centred"
    ndim_supp = 1

    def _parts(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        return super()._parts(normal_parameters(inputs[1]))

    def forward(self, value: Any, *inputs: Any) -> Any:
        """First value and z of the walk."""
        return pt.concatenate([value[:1], super().forward(pt.diff(value), *inputs)])

    def backward(self, value: Any, *inputs: Any) -> Any:
        """The walk of its first value and z."""
        return pt.cumsum(pt.concatenate([value[:1], super().backward(value[1:], *inputs)]))

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """Log of |∂x/∂z|."""
        return pt.sum(super().log_jac_det(value[1:], *inputs))


def normal_parameters(rv: Variable) -> list[Any]:
    """Mean and standard deviation of a Normal variable."""
    return list(rv.owner.op.dist_params(rv.owner))


def scale_of(rv: Variable) -> Variable | None:
    """Standard deviation of a Normal variable, or of the steps of a random walk; None of anything else."""
    if isinstance(rv.owner.op, NormalRV):
        return cast(Variable, normal_parameters(rv)[1])
    walks = isinstance(rv.owner.op, RandomWalkRV) and rv.type.ndim == 1
    return scale_of(rv.owner.inputs[1]) if walks and rv.owner.inputs[1].owner is not None else None


def partly_centred(model: pm.Model, variables: Sequence[Variable]) -> pm.Model:
    """The model with other coordinates of some Normal variables, as `shares` finds them; itself where none move."""
    try:
        found = shares(model, variables)
    except SamplingError:  # what is wrong with the model is said where it is sampled
        return model
    moved: dict[Variable, Transform | None] = {
        rv: (PartlyCentredWalk if isinstance(rv.owner.op, RandomWalkRV) else PartlyCentred)(share)
        for rv, share in found.items()
        if np.any(share < 1.0)
    }
    return recoordinated(model, moved) if moved else model


def recoordinated(model: pm.Model, transforms: Mapping[Variable, Transform | None]) -> pm.Model:
    """The model with other transforms; it is for sampling only, so that old objects of the user's do not matter."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Detected variables likely created by GP objects", UserWarning)
        return change_value_transforms(model, dict(transforms))


def shares(model: pm.Model, variables: Sequence[Variable]) -> dict[Variable, FloatArray]:
    """λ of each element, the squared share of its precision that comes from the data; in tenths, always the same.

    Along each element the density has the curvature h + 1/σ²: the share is h / (h + 1/σ²), averaged over a short run.
    Of many effects all are moved at once, up or down by chance: what one does to another averages out, and where they
    are independent given the rest there is nothing to average.
    """
    with model:
        step = PersistentHMC(model=model, updates_per_draw="auto")
    places = {name: (place, shape) for name, place, shape in step.density.layout}
    effects = [(rv, *places[str(model.rvs_to_values[rv].name)]) for rv in variables]
    if not step.makes_many or sum(place.stop - place.start for _, place, _ in effects) > MOST:
        return {}
    scales = model.compile_fn(
        model.replace_rvs_by_values([scale_of(rv) for rv in variables]),
        inputs=model.value_vars,
        on_unused_input="ignore",
        mode="FAST_COMPILE",
    )
    total: dict[Variable, FloatArray] = {}
    rng = np.random.default_rng(0)
    for here in _short_run(step, model.initial_point(0)):
        q = step.density.vector(here)
        for (rv, place, shape), given in zip(effects, scales(here), strict=True):
            walks = isinstance(rv.owner.op, RandomWalkRV)
            scale = given if walks else np.broadcast_to(given, shape).ravel()
            share = _share(step.density.both, q, place, scale, walks, rng)
            total[rv] = total.get(rv, 0.0) + (share if walks else share.reshape(shape))
    squares = {rv: (one / LOOKED_AT) ** 2 for rv, one in total.items()}
    return {rv: np.where(one < CENTRED_FROM, 0.0, np.round(one, 1)) for rv, one in squares.items()}


def _short_run(step: PersistentHMC, point: dict[str, FloatArray]) -> list[dict[str, FloatArray]]:
    """Some draws from afar."""
    step.setup_chain(0, TUNE, KEPT)
    done = 0
    while done < TUNE:
        point, _, said = step.draws(point, TUNE - done, np.inf)
        done += len(said["v"])
    step.stop_tuning()
    _, draws, _ = step.draws(point, KEPT, np.inf)
    apart = KEPT // LOOKED_AT
    return [{name: draws[name][i] for name in draws} for i in range(apart - 1, KEPT, apart)]


def _share(
    both: Callable[..., Any], q: FloatArray, place: slice, sigma: FloatArray, walks: bool, rng: np.random.Generator
) -> FloatArray:
    """The share of the data at q, of each effect; a step of a walk moves all that comes after it."""
    size = place.stop - place.start

    def moved(steps: FloatArray) -> FloatArray:
        return np.cumsum(np.append(0.0, steps)) if walks else steps

    def along(slope: FloatArray) -> FloatArray:
        return np.cumsum(slope[::-1])[::-1][1:] if walks else slope

    rises = np.zeros(size - walks)
    sigma = np.broadcast_to(sigma, rises.shape)
    # steps of a walk depend on each other too much for directions at random
    for direction in np.eye(rises.size) if walks else _directions(rises.size, rng):
        away = np.zeros_like(q)
        away[place] = moved(APART * sigma * direction)
        rises += direction * along((both(q - away)[1] - both(q + away)[1])[place])
    with np.errstate(all="ignore"):
        # of the curvature times σ²
        share = 1.0 - 1.0 / (rises * sigma / (2.0 * APART))
    return np.clip(np.nan_to_num(share, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)


def _directions(size: int, rng: np.random.Generator) -> FloatArray:
    """Directions d to look in, one to a row; Σ d dᵀ is the identity, or has it as its mean."""
    if size <= DIRECTIONS:
        return np.eye(size)
    return rng.choice([-1.0, 1.0], size=(DIRECTIONS, size)) / DIRECTIONS**0.5
