"""The log density of some variables of a PyMC model as functions of one vector, and points as vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pymc import Model
from pymc import compile as compile_pymc
from pytensor.graph.basic import Variable

from bayessel._check import FloatArray
from bayessel._pymc import PointType, density_and_gradient, get_value_vars_from_user_vars, join_nonshared_inputs

#: some of a model's variables, or their names
type Variables = Variable | str | Sequence[Variable | str]


def value_variables(model: Model, variables: Variables) -> list[Variable]:
    """Value variables of what is asked for."""
    listed = variables if isinstance(variables, list | tuple) else [variables]
    return list(get_value_vars_from_user_vars([model[v] if isinstance(v, str) else v for v in listed], model))


def continuous(model: Model, variables: Variables | None) -> list[Variable]:
    """Value variables of what is asked for, by default all; discrete ones are refused."""
    free = list(model.continuous_value_vars) if variables is None else value_variables(model, variables)
    discrete = [str(var.name) for var in free if np.dtype(var.type.dtype).kind != "f"]
    if discrete:
        raise TypeError(f"vars must be continuous, got {', '.join(discrete)}; give those to another step method")
    return free


class Density:
    """Compiled density of `variables`, the others in shared variables.

    Attributes
    ----------
    both : callable
        q -> (log density, gradient).
    value : callable or None
        q -> log density, compiled only where `value_alone` asks for it.
    shared : dict
        Name of another variable -> where its value is put before a call.
    """

    def __init__(
        self,
        model: Model,
        variables: Sequence[Variable],
        initial_point: PointType | None,
        compile_kwargs: Mapping[str, object],
        value_alone: bool = False,
    ) -> None:
        start = model.initial_point() if initial_point is None else initial_point
        self.layout: list[tuple[str, slice, tuple[int, ...]]] = []
        end = 0
        for variable in variables:
            name = str(variable.name)
            array = np.asarray(start[name])
            self.layout.append((name, slice(end, end + array.size), array.shape))
            end += array.size
        self.size = end
        self.both, self.shared = self._compile(model, variables, start, compile_kwargs)
        self.both.trust_input = True
        ours = {id(shared) for shared in self.shared.values()}
        self._data = [shared for shared in self.both.get_shared() if id(shared) not in ours]
        self.value: Any = None
        if value_alone:
            named = {variable.name: variable for variable in model.value_vars}
            [logp], joined = join_nonshared_inputs(
                start, [model.logp()], list(variables), {named[name]: shared for name, shared in self.shared.items()}
            )
            self.value = compile_pymc([joined], logp, **compile_kwargs)
            self.value.trust_input = True

    def _compile(
        self, model: Model, variables: Sequence[Variable], start: PointType, compile_kwargs: Mapping[str, object]
    ) -> tuple[Any, dict[str, Any]]:
        """The function, and where the values of the other variables are put before a call."""
        return density_and_gradient(model, variables, start, **compile_kwargs)

    def data(self) -> list[Any]:
        """The arrays behind `pm.Data`; `pm.set_data` puts others in their place."""
        return [shared.get_value(borrow=True) for shared in self._data]

    def vector(self, point: PointType) -> FloatArray:
        """The variables' values, one after the other."""
        return np.concatenate([point[name].ravel() for name, _, _ in self.layout])

    def points(self, vectors: FloatArray) -> dict[str, FloatArray]:
        """Values by name of many vectors, one to a row."""
        return {name: vectors[:, place].reshape(len(vectors), *shape) for name, place, shape in self.layout}

    def point(self, vector: FloatArray, others: PointType) -> PointType:
        """The point with the vector's values in it; keys keep their order."""
        new = dict(others)
        for name, place, shape in self.layout:
            new[name] = vector[place].reshape(shape).copy()
        return new
