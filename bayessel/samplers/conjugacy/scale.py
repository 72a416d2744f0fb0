"""Precisions, variances and scales of Normal and Gamma variables: what is conjugate, and the conditional draw.

A positive variable x is conjugate when everything that depends on it is a Normal variable whose mean is free of x and
whose standard deviation is s·xᵏ, or a Gamma variable whose shape is fixed and whose rate is r·x^(−2k), element by
element. With k = −1/2 and a Gamma prior, or k = 1/2 and an inverse-gamma prior, the conditional is of the same family;
with k = 1 and a half-Student prior it is a mixture of such; under the other usual priors, and for the mean of Gamma
variables, it is log-concave in log x and drawn exactly all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import ExponentialRV, GammaRV, HalfNormalRV, InvGammaRV, LogNormalRV

from bayessel._check import FloatArray
from bayessel._pymc import HalfCauchyRV, HalfStudentTRV, LogTransform, WeibullBetaRV
from bayessel.samplers import conditionals, log_scales
from bayessel.samplers.conjugacy.affine import check_moved
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, distribution_name
from bayessel.samplers.conjugacy.scale_children import read_child
from bayessel.samplers.log_scales import LogConcave

PRIORS = (
    GammaRV,
    ExponentialRV,
    InvGammaRV,
    HalfCauchyRV,
    HalfStudentTRV,
    HalfNormalRV,
    LogNormalRV,
    WeibullBetaRV,
)
#: Kinds of conditionals that are drawn without looking at the present value.
EXACT = ("gamma", "exponential", "inverse gamma")
#: Draws are kept inside: e^700 is the end of double precision, and priors such as Gamma(1e-6, 1e-6) reach beyond.
LARGEST_LOG = 690.0


class ScaleConditional:
    """The conditional of one positive variable, all its elements at once.

    Raises
    ------
    NotConjugateError
        The structure cannot be proved.
    """

    def __init__(self, graph: ModelGraph, members: Sequence[Variable]) -> None:
        (x,) = members
        self.x, self.space = x, graph.space
        op = x.owner.op
        if not isinstance(op, PRIORS):
            raise NotConjugateError(f"{distribution_name(x)} is no conjugate prior of a scale")
        transform = graph.model.rvs_to_transforms[x]
        if transform is not None and not isinstance(transform, LogTransform):
            raise NotConjugateError(f"is sampled through the transform {transform.name}")
        graph.check_free_of_potentials(x)
        check_moved(graph, [x])
        children = graph.children(x)
        if not children:
            raise NotConjugateError("nothing depends on it")
        self.power, self.children = 0.0, []
        for child in children:
            found = read_child(graph, child, x)
            if self.power and found.power != self.power:
                raise NotConjugateError(f"enters {child.name} and {children[0].name} with different powers")
            self.power = found.power
            if not self.power:
                raise NotConjugateError(f"does not set the scale of {child.name}")
            self.children.append(found)
        parameters = [v for v in op.dist_params(x.owner) if hasattr(v.type, "dtype")]
        if x in graph.roots(parameters):
            raise NotConjugateError("its prior depends on itself")
        self.prior = graph.program(parameters)
        self.kind = self._kind(op)
        reads = [v for program in (self.prior, *(c.program for c in self.children)) for v in program.inputs]
        self.inputs = list(dict.fromkeys([x, *reads]))  # to take in data and shapes
        self.needs = [v for v in self.inputs if v is not x or self.kind not in EXACT]  # to draw
        for reader in self.children:
            if len(reader.index.outputs) > 1:
                # several places where x is read must be the same element, which only the data can tell
                initial = graph.initial
                reader.program.refresh()
                shape = np.shape(reader.program(initial)[0])
                reader.find_places(x, np.shape(initial[x]), shape, initial)
        by_kind: dict[str, list[str]] = {}
        for reader in self.children:
            by_kind.setdefault(reader.kind, []).append(reader.name)
        names = "; ".join(f"{kind} in {', '.join(found)}" for kind, found in by_kind.items())
        role = self.children[0].roles.get(self.power, f"a precision to the power {-0.5 / self.power:g}")
        self.says = f"{distribution_name(x)} prior of {role}; {names}"

    def _kind(self, op: Any) -> str:
        if self.power == -0.5 and isinstance(op, GammaRV | ExponentialRV):
            return "gamma" if isinstance(op, GammaRV) else "exponential"
        if self.power == 0.5 and isinstance(op, InvGammaRV):
            return "inverse gamma"
        if self.power == 1.0 and isinstance(op, HalfCauchyRV | HalfStudentTRV):
            return "half-Cauchy" if isinstance(op, HalfCauchyRV) else "half-Student"
        return "log-concave"

    def refresh(self, env: dict[Variable, Any]) -> None:
        """Take in data and shapes; `env` holds constrained values of all that is needed."""
        shape = np.shape(env[self.x])
        self.prior.refresh()
        n = np.zeros(int(np.prod(shape)))
        for child in self.children:
            n += child.refresh(self.x, shape, env)
        self.shape = shape
        # plain numbers are several times as fast as arrays of one element
        self.n = float(n[0]) if n.size == 1 else n.reshape(shape)
        found = self.prior(env)
        self.parameters = self._numbers(found) if all(self.prior.static) else None

    def _numbers(self, found: list[Any]) -> list[Any]:
        if isinstance(self.n, float):
            return [float(np.ravel(v)[0]) for v in found]
        return [np.asarray(v, dtype=np.float64) for v in found]

    def prior_now(self, env: dict[Variable, Any]) -> tuple[Any, list[tuple[Any, Any]], dict[str, Any]]:
        """Parameters of the log density of log x under the prior alone, as `LogConcave` takes them."""
        parameters = self._numbers(self.prior(env)) if self.parameters is None else self.parameters
        return log_prior(self.x.owner.op, parameters)

    def move(self, env: dict[Variable, Any], point: dict[str, Any], rng: np.random.Generator) -> None:
        """Put the next x into `env`, and its sampled value into `point`."""
        log_x = self.draw(env, rng)
        env[self.x] = np.asarray(np.exp(log_x))
        point[self.space.value_name(self.x)] = np.asarray(log_x) if self.space.is_log(self.x) else env[self.x]

    def draw(self, env: dict[Variable, Any], rng: np.random.Generator) -> FloatArray:
        """Log of the next x."""
        if not np.size(self.n):
            return np.zeros(self.shape)
        S = self.children[0].sum_of_squares(env, self.shape)
        for child in self.children[1:]:
            S = S + child.sum_of_squares(env, self.shape)
        parameters = self._numbers(self.prior(env)) if self.parameters is None else self.parameters
        log_x = self._draw(parameters, S, env, rng)
        if isinstance(self.n, float):
            return np.full(self.shape, min(max(log_x, -LARGEST_LOG), LARGEST_LOG))
        return np.minimum(np.maximum(log_x, -LARGEST_LOG), LARGEST_LOG)

    def _draw(self, parameters: list[Any], S: Any, env: dict[Variable, Any], rng: np.random.Generator) -> Any:
        n = self.n
        if self.kind == "gamma":
            # PyMC keeps the scale, 1/rate
            return conditionals.log_precision(parameters[0], 1.0 / parameters[1], n, S, rng)
        if self.kind == "exponential":
            return conditionals.log_precision(1.0, 1.0 / parameters[0], n, S, rng)
        if self.kind == "inverse gamma":
            return conditionals.draw_log_variance(parameters[0], parameters[1], n, S, rng)
        log_now = np.log(env[self.x])
        if self.kind == "log-concave":
            # log x ∝ prior · x^(−kn) exp(−½ S x^(−2k)); half-Student priors at other powers than 1 come here too
            c, terms, rest = log_prior(self.x.owner.op, parameters)
            k = self.power
            h = LogConcave(self.shape, c - k * n, [*terms, (0.5 * S, -2.0 * k)], **rest)
            near = np.log(np.divide(S, n)) / (2.0 * k)
            x = log_scales.draw(h, np.where(np.isfinite(near), near, 0.0), log_now, rng)
            return x.item() if isinstance(n, float) else x
        df, A = (1.0, parameters[0]) if self.kind == "half-Cauchy" else parameters
        return conditionals.log_half_student_scale(
            log_now.item() if isinstance(n, float) else log_now, df, A, n, S, rng
        )


def log_prior(op: Any, parameters: list[Any]) -> tuple[Any, list[tuple[Any, Any]], dict[str, Any]]:
    """Parameters (c, (a, p) pairs, the rest) of the log density of log x, see `bayessel.samplers.log_scales`."""
    if isinstance(op, HalfNormalRV):
        return 1.0, [(0.5 / np.square(parameters[1]), 2.0)], {}
    if isinstance(op, ExponentialRV):
        return 1.0, [(1.0 / parameters[0], 1.0)], {}
    if isinstance(op, GammaRV):
        return parameters[0], [(1.0 / parameters[1], 1.0)], {}
    if isinstance(op, InvGammaRV):
        return -parameters[0], [(parameters[1], -1.0)], {}
    if isinstance(op, WeibullBetaRV):
        return parameters[0], [(np.power(parameters[1], -1.0 * parameters[0]), parameters[0])], {}
    if isinstance(op, LogNormalRV):
        return 0.0, [], {"m": parameters[0], "q": 1.0 / np.square(parameters[1])}
    df, A = (1.0, parameters[0]) if isinstance(op, HalfCauchyRV) else parameters
    return 1.0, [], {"r": 0.5 * (df + 1.0), "t": 1.0 / (df * np.square(A))}
