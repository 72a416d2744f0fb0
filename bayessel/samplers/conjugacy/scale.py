"""Precisions, variances and scales of Normal variables: what is conjugate, and the conditional draw.

A positive variable x is conjugate when everything that depends on it is a Normal variable whose mean is free of x and
whose standard deviation is s·xᵏ, element by element: k = −1/2 with a Gamma prior, 1/2 with an inverse-gamma prior, 1
with a half-Student prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pymc.distributions.continuous import HalfCauchyRV, HalfStudentTRV
from pymc.logprob.transforms import LogTransform
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import ExponentialRV, GammaRV, InvGammaRV

from bayessel._check import FloatArray
from bayessel.samplers import conditionals
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, distribution_name
from bayessel.samplers.conjugacy.monomial import monomial

_POWER_NAMES = {-0.5: "a precision", 0.5: "a variance", 1.0: "a standard deviation"}


class ScaleConditional:
    """The conditional of one positive variable, all its elements at once.

    Raises
    ------
    NotConjugateError
        The structure cannot be proved.
    """

    def __init__(self, graph: ModelGraph, x: Variable) -> None:
        self.x = x
        op = x.owner.op
        if not isinstance(op, GammaRV | ExponentialRV | InvGammaRV | HalfCauchyRV | HalfStudentTRV):
            raise NotConjugateError(f"{distribution_name(x)} is no conjugate prior of a scale")
        transform = graph.model.rvs_to_transforms[x]
        if transform is not None and not isinstance(transform, LogTransform):
            raise NotConjugateError(f"is sampled through the transform {transform.name}")
        graph.check_free_of_potentials(x)
        children = graph.children(x)
        if not children:
            raise NotConjugateError("nothing depends on it")
        power, programs = 0.0, []
        for child in children:
            mean, sd = graph.normal(child)
            if x in graph.roots([mean]):
                raise NotConjugateError(f"stands in the mean of {child.name}")
            part = monomial(graph, sd, x)
            if power and part.power != power:
                raise NotConjugateError(f"enters {child.name} and {children[0].name} with different powers")
            power = part.power
            programs.append(_Child(graph, child, mean, sd, part.index))
        self.power = power
        self.children = programs
        parameters = [v for v in op.dist_params(x.owner) if hasattr(v.type, "dtype")]
        if x in graph.roots(parameters):
            raise NotConjugateError("its prior depends on itself")
        self.prior = graph.program(parameters)
        self.kind = self._kind(op)
        needs = [v for program in (self.prior, *(c.program for c in programs)) for v in program.inputs]
        self.needs = list(dict.fromkeys([x, *needs]))
        self.says = f"{distribution_name(x)} prior of {_POWER_NAMES[power]}; Normal in {', '.join(str(c.name) for c in children)}"

    def _kind(self, op: Any) -> str:
        if self.power == -0.5 and isinstance(op, GammaRV | ExponentialRV):
            return "gamma" if isinstance(op, GammaRV) else "exponential"
        if self.power == 0.5 and isinstance(op, InvGammaRV):
            return "inverse gamma"
        if self.power == 1.0 and isinstance(op, HalfCauchyRV | HalfStudentTRV):
            return "half-Cauchy" if isinstance(op, HalfCauchyRV) else "half-Student"
        role = _POWER_NAMES.get(self.power, f"a power {-2.0 * self.power:g} of a precision")
        raise NotConjugateError(f"{distribution_name(self.x)} is no conjugate prior of {role}")

    def refresh(self, env: dict[Variable, Any]) -> None:
        """Take in data and shapes; `env` holds constrained values of all that is needed."""
        shape = np.shape(env[self.x])
        self.prior.refresh()
        n = np.zeros(int(np.prod(shape)))
        for child in self.children:
            n += child.refresh(self.x, shape, env)
        self.n = n.reshape(shape)

    def draw(self, env: dict[Variable, Any], rng: np.random.Generator) -> FloatArray:
        """Log of the next x."""
        S: Any = 0.0
        for child in self.children:
            S = S + child.sum_of_squares(env, np.shape(self.n))
        parameters = self.prior(env)
        if self.kind == "gamma":
            # PyMC keeps the scale, 1/rate
            return conditionals.log_precision(parameters[0], 1.0 / parameters[1], self.n, S, rng)
        if self.kind == "exponential":
            return conditionals.log_precision(1.0, 1.0 / parameters[0], self.n, S, rng)
        if self.kind == "inverse gamma":
            return conditionals.log_variance(parameters[0], parameters[1], self.n, S, rng)
        df, A = (1.0, parameters[0]) if self.kind == "half-Cauchy" else parameters
        return conditionals.log_half_student_scale(np.log(env[self.x]), df, A, self.n, S, rng)


class _Child:
    """One Normal variable whose scale x sets: its standardised residuals, added up by element of x."""

    def __init__(
        self, graph: ModelGraph, child: Variable, mean: Variable, sd: Variable, index: tuple[Variable, ...]
    ) -> None:
        self.name = child.name
        self.program = graph.program([graph.value(child), mean, sd])
        self.index = graph.program(list(index))
        self.places: Any = None

    def refresh(self, x: Variable, shape: tuple[int, ...], env: dict[Variable, Any]) -> FloatArray:
        """Number of elements of the child that belong to each element of x."""
        # at x = 1 the standard deviation is s
        self.program.refresh({x: np.ones(shape)})
        value, mean, s = self.program(env)
        size = int(np.prod(shape))
        self.mean_is_zero = self.program.static[1] and not np.any(mean)
        self.static_s = self.program.static[2]
        self.unit = self.static_s and bool(np.all(np.asarray(s) == 1.0))
        child_shape = np.shape(value)
        self.places = None
        if size == 1:
            return np.array([float(np.prod(child_shape))])
        self.index.refresh({x: np.arange(size, dtype=np.float64).reshape(shape)})
        found = [np.broadcast_to(i, child_shape) for i in self.index(env)]
        if any(not np.array_equal(found[0], other) for other in found[1:]):
            raise NotConjugateError(f"elements of {self.name} depend on several elements of {x.name}")
        places = found[0].astype(np.intp).ravel()
        if child_shape != shape or not np.array_equal(places, np.arange(size)):
            self.places = places
        return np.bincount(places, minlength=size).astype(np.float64)

    def sum_of_squares(self, env: dict[Variable, Any], shape: tuple[int, ...]) -> Any:
        """S = Σ ((value − mean)/s)², one number per element of x."""
        value, mean, s = self.program(env)
        r = value if self.mean_is_zero else value - mean
        if not self.unit:
            r = r / s
        if self.places is not None:
            return np.bincount(self.places, weights=np.square(r).ravel(), minlength=int(np.prod(shape))).reshape(shape)
        if np.prod(shape) != 1:
            return np.square(r)
        r = np.ravel(r)
        return np.reshape(r @ r, shape)
