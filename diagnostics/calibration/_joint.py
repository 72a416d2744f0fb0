"""A model as a joint distribution of parameters and data, compiled once, and step methods run on it.

Nothing is compiled again between data sets: observed data must be ``pm.Data``, which the compiled functions read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.step_methods import CompoundStep
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import ancestors

from bayessel._check import FloatArray
from bayessel._pymc import find_rng_nodes, flatten_steps, reseed_rngs
from bayessel.diagnostics.calibration._compiled_setup import CompiledSetup

Point = dict[str, Any]
MakeSteps = Callable[[pm.Model], Any]


class JointModel:
    """Draws of (parameters, data) from a model, of data given parameters, and the tested quantities at a point.

    Parameters
    ----------
    model : pymc.Model
        Its observed data are ``pm.Data`` and it has no potentials, which the prior cannot be drawn with.
    rng : numpy.random.Generator
        Seeds the compiled random draws.
    include : names
        Deterministic variables to test beside the free ones.
    compile_kwargs : dict
        Passed to ``pm.compile``.

    Attributes
    ----------
    names : list of str
        The tested quantities: every element of every free and included variable, the log prior density of the
        parameters (in their own space) and the log likelihood of the data.
    """

    def __init__(
        self,
        model: pm.Model,
        rng: np.random.Generator,
        include: Sequence[str] = (),
        compile_kwargs: Mapping[str, object] | None = None,
    ) -> None:
        if model.potentials:
            names = ", ".join(p.name for p in model.potentials)
            raise ValueError(f"the model has potentials ({names}): its prior has no exact draws, and so no calibration")
        if not model.observed_RVs or not model.free_RVs:
            raise ValueError("calibration needs a model with free variables and observed data")
        self.model = model
        self._data = [_data_of(model, rv) for rv in model.observed_RVs]
        kwargs = {"on_unused_input": "ignore", **(compile_kwargs or {})}
        values = [_forward(model, rv) for rv in model.free_RVs]
        self._value_names = [model.rvs_to_values[rv].name for rv in model.free_RVs]
        self._order = list(model.initial_point(0))
        self._generators = find_rng_nodes([*values, *model.observed_RVs])
        self._prior = pm.compile([], [*values, *model.observed_RVs], random_seed=0, **kwargs)
        observed = list(model.observed_RVs)
        self._predict = pm.compile(list(model.free_RVs), observed, random_seed=0, givens=_origins(observed), **kwargs)
        self.reseed(rng)
        tested = [*model.free_RVs, *(model[name] for name in include)]
        free = model.replace_rvs_by_values(list(model.free_RVs))
        outputs = [
            *free,
            *model.replace_rvs_by_values([model[name] for name in include]),
            model.logp(vars=list(model.free_RVs), jacobian=False),
            model.logp(vars=list(model.observed_RVs)),
        ]
        self._inputs = [v.name for v in model.value_vars]
        self._n_free = len(free)
        self._evaluate = pm.compile(list(model.value_vars), [pt.as_tensor_variable(o) for o in outputs], **kwargs)
        point, _ = self.draw()
        shapes = [np.shape(v) for v in self._evaluate(*(point[n] for n in self._inputs))]
        self.names = [
            *(name for rv, shape in zip(tested, shapes, strict=False) for name in _elements(rv.name, shape)),
            "log prior",
            "log likelihood",
        ]

    def reseed(self, rng: np.random.Generator) -> None:
        """Make all further draws those of `rng`."""
        reseed_rngs(self._generators, int(rng.integers(2**31)))

    def draw(self) -> tuple[Point, list[Any]]:
        """Return independent draws of the parameters, as a point of the samplers, and of the data."""
        drawn = self._prior()
        values = dict(zip(self._value_names, drawn, strict=False))
        point = {name: np.asarray(values[name]) for name in self._order}
        data = drawn[len(self._value_names) :]
        if not all(np.isfinite(v).all() for v in (*point.values(), *data)):
            raise ValueError(
                "a draw from the prior is not finite: give the model priors whose draws stay within double precision, "
                "for instance Gamma(2, 2) in place of Gamma(1e-6, 1e-6)"
            )
        return point, data

    def set_data(self, data: Sequence[Any]) -> None:
        """Make the model's observations these."""
        for shared, value in zip(self._data, data, strict=True):
            shared.set_value(np.asarray(value, dtype=shared.dtype))

    def get_data(self) -> list[Any]:
        """Return the model's observations."""
        return [shared.get_value() for shared in self._data]

    def look(self, point: Point) -> tuple[FloatArray, list[Any]]:
        """Return the tested quantities at a point and the present data, and the parameters in their own space."""
        outputs = self._evaluate(*(point[name] for name in self._inputs))
        return np.concatenate([np.ravel(v) for v in outputs]), outputs[: self._n_free]

    def new_data(self, free: Sequence[Any]) -> list[Any]:
        """Return a draw of the data given the parameters."""
        return list(self._predict(*free))


class CalibrationKernel:
    """The steps of a factory as one transition, told when the data change."""

    def __init__(self, model: pm.Model, make_steps: MakeSteps) -> None:
        with model:
            made = make_steps(model)
        self.steps = list(_flat(made))
        moved = {v for step in self.steps for v in step.vars}
        self._untouched = [getattr(step, "sampling_state", None) for step in self.steps]
        missing = [v.name for v in model.value_vars if v not in moved]
        if missing:
            raise ValueError(
                f"no step moves {', '.join(missing)}: make_steps must return steps for every free variable"
            )

    def start(self, rng: np.random.Generator, tune: int, draws: int) -> None:
        """Begin a chain, whatever was before it."""
        self._rng = rng
        for step, state, child in zip(self.steps, self._untouched, rng.spawn(len(self.steps)), strict=True):
            if state is not None:
                step.sampling_state = state
            # our steps reset everything in setup_chain; PyMC's need to be told
            if tune > 0 and hasattr(step, "reset_tuning"):
                step.reset_tuning()
            step.setup_chain(child, tune, draws)
        if tune == 0:
            self.stop_tuning()

    def stop_tuning(self) -> None:
        """Freeze what the steps adapt."""
        for step in self.steps:
            step.stop_tuning()

    def data_changed(self, tuning: bool) -> None:
        """Let every step forget what it computed from the data; one that cannot be told is set up anew."""
        for step in self.steps:
            if hasattr(step, "data_changed"):
                step.data_changed()
            elif not tuning:
                step.setup_chain(self._rng.spawn(1)[0], 0, 1)
                step.stop_tuning()

    def move(self, point: Point, count: int = 1) -> Point:
        """Some transitions of every step in turn; a step that makes many at a time, and is alone, makes them so."""
        while count > 1 and len(self.steps) == 1 and getattr(self.steps[0], "makes_many", False):
            point, _, said = self.steps[0].draws(point, count, float("inf"))
            count -= len(next(iter(said.values())))
        for _ in range(count):
            for step in self.steps:
                point, _ = step.step(point)
        return point


class JointSetup(CompiledSetup[tuple[JointModel, CalibrationKernel]]):
    """A model and the factory of its steps.

    Parameters
    ----------
    model, make_steps, include, compile_kwargs
        As for `JointModel` and `CalibrationKernel`.
    """

    def __init__(
        self,
        model: pm.Model,
        make_steps: MakeSteps,
        include: Sequence[str],
        compile_kwargs: Mapping[str, object] | None,
    ) -> None:
        super().__init__([model])
        self._arguments = make_steps, tuple(include), compile_kwargs

    def compiled(self) -> tuple[JointModel, CalibrationKernel]:
        """The joint distribution and the transition."""
        [model], (make_steps, include, compile_kwargs) = self.models, self._arguments
        joint = JointModel(model, np.random.default_rng(0), include, compile_kwargs)
        return joint, CalibrationKernel(model, make_steps)

    @contextmanager
    def made(self, rng: np.random.Generator) -> Iterator[tuple[JointModel, CalibrationKernel]]:
        """The compiled model, seeded by `rng`, and the steps; for one thread at a time, since they share the data."""
        with self.used() as (joint, kernel):
            joint.reseed(rng)
            yield joint, kernel


def _flat(made: Any) -> Iterator[Any]:
    if isinstance(made, list | tuple):
        for one in made:
            yield from _flat(one)
    elif isinstance(made, CompoundStep):
        yield from flatten_steps(made)
    elif hasattr(made, "step") and hasattr(made, "setup_chain"):
        yield made
    else:
        raise TypeError(f"make_steps must return step methods of PyMC, got {type(made).__name__}")


def _elements(name: str, shape: tuple[int, ...]) -> list[str]:
    return [name] if not shape else [f"{name}[{', '.join(map(str, i))}]" for i in np.ndindex(*shape)]


def _forward(model: pm.Model, rv: Any) -> Any:
    """The value a sampler moves, of a random variable drawn from the prior."""
    transform = model.rvs_to_transforms[rv]
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


def _origins(observed: list[Any]) -> list[tuple[Any, Any]]:
    """Let given parameters make targets, also where draws for parameters of a trace would be given the data too."""
    asked = [x for x in ancestors(observed) if x.owner is not None and getattr(x.owner.op, "tells_origin", False)]
    return [(one, pt.constant(np.int64(0))) for one in asked]


def _data_of(model: pm.Model, rv: Any) -> Any:
    """Find the shared variable that holds the observations of rv."""
    value = model.rvs_to_values[rv]
    while value.owner is not None and len(value.owner.inputs) == 1:  # a cast to the type of the variable
        value = value.owner.inputs[0]
    if not isinstance(value, SharedVariable):
        raise TypeError(
            f"the observed data of {rv.name} must be pm.Data, so that they can be exchanged without a new compilation; "
            f'declare observed=pm.Data("{rv.name}_data", ...)'
        )
    return value
