"""Where chains start: each at its own jittered point of finite log density."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
from pytensor.graph.basic import Variable

from bayessel._pymc import get_untransformed_name, is_transformed_name, make_initial_point_fns_per_chain
from bayessel.samplers.run.kernel import Point

#: values by name: numbers, expressions, or the names of PyMC's strategies
type ValuesByName = Mapping[str, npt.ArrayLike | Variable]
#: for all chains, or for each its own
type InitialValues = ValuesByName | Sequence[ValuesByName | None] | None

#: Jittered points tried per chain before giving up.
TRIES = 40


def initial_points(
    model: pm.Model,
    initvals: InitialValues,
    rngs: Sequence[np.random.Generator],
) -> list[Point]:
    """Return one point per chain: PyMC's initial point plus U(−1, 1) in the unconstrained space."""
    return Starts(model, initvals, len(rngs))(rngs)


class Starts:
    """Starting points of chains, compiled once for any data.

    Variables that `initvals` fixes and discrete ones are not jittered. A point whose log density is not finite is
    drawn again; every second try keeps the full jitter, the others halve it each time, since it may be the jitter or
    the middle of the prior that the model does not allow.
    """

    def __init__(self, model: pm.Model, initvals: InitialValues, chains: int) -> None:
        given = checked_initvals(model, initvals, chains)
        exact = {get_untransformed_name(name) if is_transformed_name(name) else name for one in given for name in one}
        jittered = {
            rv
            for rv in model.free_RVs
            if rv.name not in exact and model.rvs_to_values[rv].type.dtype.startswith("float")
        }
        shared: Any = given[0] if all(one is given[0] for one in given) else given

        def points(jitter: set[Any]) -> list[Callable[[int], Point]]:
            return list(
                make_initial_point_fns_per_chain(model=model, overrides=shared, jitter_rvs=jitter, chains=chains)
            )

        self._model = model
        self._moved = points(jittered)
        # made when needed: most chains start where they were jittered to
        self._centres = cache(lambda: points(set()))
        # FAST_COMPILE: a few calls of plain Python are sooner done than machine code is made for them
        self._density = model.compile_logp(mode="FAST_COMPILE")

    def __call__(self, rngs: Sequence[np.random.Generator]) -> list[Point]:
        """Return one point per chain, for the data as they are now."""
        return [
            _finite_point(self._model, self._density, moved, self._centres, rng, chain)
            for chain, (moved, rng) in enumerate(zip(self._moved, rngs, strict=True))
        ]


def checked_initvals(model: pm.Model, initvals: InitialValues, chains: int) -> list[Mapping[str, Any]]:
    """Return one mapping of names to values per chain, or say what is wrong with them."""
    given: list[Mapping[str, Any]]
    if initvals is None or isinstance(initvals, Mapping):
        given = [_by_name(initvals or {})] * chains
    elif isinstance(initvals, Sequence) and not isinstance(initvals, str):
        if len(initvals) != chains:
            raise ValueError(
                f"initvals must be one dictionary, or one per chain: there are {chains} chains and {len(initvals)} "
                "dictionaries"
            )
        given = [_by_name(one or {}) for one in initvals]
    else:
        raise TypeError(f"initvals must be a dictionary, or a list with one per chain, got {type(initvals).__name__}")
    free = {rv.name for rv in model.free_RVs} | {value.name for value in model.value_vars}
    unknown = sorted({name for one in given for name in one} - free)
    if unknown:
        raise ValueError(
            f"initvals names {', '.join(unknown)}, which the model does not sample; "
            f"it samples {', '.join(rv.name for rv in model.free_RVs)}"
        )
    if any(given):
        shapes = model.eval_rv_shapes()
        for one in given:
            _check_shapes(one, shapes)
    return given


def _check_shapes(values: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, value in values.items():
        if isinstance(value, str | Variable):
            continue  # a strategy of PyMC, or an expression
        found, needed = np.shape(value), tuple(int(n) for n in shapes[name])
        if found != needed:
            raise ValueError(
                f"initvals has {name} of shape {found}, and the model {needed}; give one value for each element, for "
                f"instance np.full({needed}, …)"
            )


def _by_name(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(getattr(name, "name", name)): value for name, value in values.items()}


def _finite_point(
    model: pm.Model,
    density: Callable[[Point], Any],
    moved: Callable[[int], Point],
    centres: Callable[[], list[Callable[[int], Point]]],
    rng: np.random.Generator,
    chain: int,
) -> Point:
    names = [value.name for value in model.value_vars]
    point: Point = {}
    for attempt in range(TRIES):
        seed = int(rng.integers(2**30))
        point = {name: np.asarray(value) for name, value in moved(seed).items()}
        if attempt % 2:
            shrink, centre = 0.5 ** ((attempt + 1) // 2), centres()[chain](seed)
            for name in names:
                if point[name].dtype.kind == "f":
                    point[name] = centre[name] + shrink * (point[name] - centre[name])
        if np.isfinite(density(point)):
            return point
    terms = {name: float(value) for name, value in model.point_logps(point).items()}
    bad = {name: value for name, value in terms.items() if not np.isfinite(value)} or terms
    raise ValueError(
        f"no starting point of finite log density was found for chain {chain} in {TRIES} tries; at the last one "
        f"log p = {bad}; give initvals= with a point that the model allows, or look at model.debug()"
    )
