"""Precisions, variances and scales of Normal variables: what is conjugate, and the conditional draw.

A positive variable x is conjugate when everything that depends on it is a Normal variable whose mean is free of x and
whose standard deviation is s·xᵏ, element by element. With k = −1/2 and a Gamma prior, or k = 1/2 and an inverse-gamma
prior, the conditional is of the same family; with k = 1 and a half-Student prior it is a mixture of such; under the
other usual priors it is log-concave in log x and drawn exactly all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pymc.distributions.continuous import HalfCauchyRV, HalfStudentTRV, WeibullBetaRV
from pymc.logprob.transforms import LogTransform
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import ExponentialRV, GammaRV, HalfNormalRV, InvGammaRV, LogNormalRV
from scipy import sparse

from bayessel._check import FloatArray
from bayessel.samplers import conditionals, log_scales
from bayessel.samplers.conjugacy.affine import affine, check_moved, design
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, distribution_name, precision
from bayessel.samplers.conjugacy.monomial import monomial
from bayessel.samplers.conjugacy.program import Program
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
#: Rows × columns² of a decomposition that is still worth its while.
MAX_WORK = 1e9
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
        power, programs = 0.0, []
        for child in children:
            mean, sd = graph.normal(child)
            if x in graph.roots([mean]):
                raise NotConjugateError(f"stands in the mean of {child.name}")
            part = monomial(graph, sd, x)
            if power and part.power != power:
                raise NotConjugateError(f"enters {child.name} and {children[0].name} with different powers")
            power = part.power
            if not power:
                raise NotConjugateError(f"does not set the scale of {child.name}")
            programs.append(_Child(graph, child, mean, sd, part.places))
        self.power = power
        self.children = programs
        parameters = [v for v in op.dist_params(x.owner) if hasattr(v.type, "dtype")]
        if x in graph.roots(parameters):
            raise NotConjugateError("its prior depends on itself")
        self.prior = graph.program(parameters)
        self.kind = self._kind(op)
        reads = [v for program in (self.prior, *(c.program for c in programs)) for v in program.inputs]
        self.reads = list(dict.fromkeys([x, *reads]))  # to take in data and shapes
        self.needs = [v for v in self.reads if v is not x or self.kind not in EXACT]  # to draw
        for reader in programs:
            if len(reader.index.outputs) > 1:
                # several places where x is read must be the same element, which only the data can tell
                initial = graph.initial
                reader.program.refresh()
                shape = np.shape(reader.program(initial)[0])
                reader.find_places(x, np.shape(initial[x]), shape, initial)
        names = ", ".join(str(c.name) for c in children)
        role = _POWER_NAMES.get(power, f"a precision to the power {-0.5 / power:g}")
        self.says = f"{distribution_name(x)} prior of {role}; Normal in {names}"

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
            return conditionals.log_variance(parameters[0], parameters[1], n, S, rng)
        log_now = np.log(env[self.x])
        if self.kind == "log-concave":
            # log x ∝ prior · x^(−kn) exp(−½ S x^(−2k)); half-Student priors at other powers than 1 come here too
            c, terms, rest = _log_prior(self.x.owner.op, parameters)
            k = self.power
            h = LogConcave(self.shape, c - k * n, [*terms, (0.5 * S, -2.0 * k)], **rest)
            near = np.log(np.divide(S, n)) / (2.0 * k)
            x = log_scales.draw(h, np.where(np.isfinite(near), near, 0.0), log_now, rng)
            return x.item() if isinstance(n, float) else x
        df, A = (1.0, parameters[0]) if self.kind == "half-Cauchy" else parameters
        return conditionals.log_half_student_scale(
            log_now.item() if isinstance(n, float) else log_now, df, A, n, S, rng
        )


def _log_prior(op: Any, parameters: list[Any]) -> tuple[Any, list[tuple[Any, Any]], dict[str, Any]]:
    """Parameters (c, (a, p) pairs, the rest) of the log density of log x, see `log_scales`."""
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


class _Child:
    """One Normal variable whose scale x sets: its standardised residuals, added up by element of x."""

    def __init__(
        self, graph: ModelGraph, child: Variable, mean: Variable, sd: Variable, index: tuple[Variable, ...]
    ) -> None:
        self.name = child.name
        self.program = graph.program([graph.value(child), mean, precision(sd)])
        self.index = graph.program(list(index))
        self.places: Any = None
        self.linear: Program | None = None
        self.roots = sorted(graph.roots([mean]), key=graph.variables.index)
        try:
            part = affine(graph, mean, self.roots) if self.roots else None
            if part is not None and not part.coefficients:
                self.linear = graph.program([part.linear])
        except NotConjugateError:
            pass  # the mean may be anything; a linear one is only cheaper

    def refresh(self, x: Variable, shape: tuple[int, ...], env: dict[Variable, Any]) -> FloatArray:
        """Number of elements of the child that belong to each element of x."""
        # at x = 1 the precision is 1/s²
        self.program.refresh({x: np.ones(shape)})
        value, mean, weight = self.program(env)
        size = int(np.prod(shape))
        value_static, mean_static, weight_static = self.program.static
        self.mean_is_zero = mean_static and not np.any(mean)
        self.unit = weight_static and bool(np.all(np.asarray(weight) == 1.0))
        child_shape = np.shape(value)
        self.places = None
        self.reduced = _Reduced.of(self, x, shape, env) if size == 1 and value_static and weight_static else None
        self.one = size == 1
        if self.one:
            return np.array([float(np.prod(child_shape))])
        places = self.find_places(x, shape, child_shape, env)
        if child_shape != shape or not np.array_equal(places, np.arange(size)):
            self.places = places
        return np.bincount(places, minlength=size).astype(np.float64)

    def find_places(
        self, x: Variable, shape: tuple[int, ...], child_shape: tuple[int, ...], env: dict[Variable, Any]
    ) -> npt.NDArray[np.intp]:
        """The element of x that each element of the child belongs to."""
        self.index.refresh({x: np.arange(np.prod(shape), dtype=np.float64).reshape(shape)})
        with np.errstate(all="ignore"):
            found = [np.broadcast_to(i, child_shape) for i in self.index(env)]
        if any(not np.array_equal(found[0], other) for other in found[1:]):
            raise NotConjugateError(f"elements of {self.name} depend on several elements of {x.name}")
        return found[0].astype(np.intp).ravel()

    def sum_of_squares(self, env: dict[Variable, Any], shape: tuple[int, ...]) -> Any:
        """S = Σ ((value − mean)/s)², one number per element of x."""
        if self.reduced is not None:
            return self.reduced.sum_of_squares(env)
        value, mean, weight = self.program(env)
        r = value if self.mean_is_zero else value - mean
        if self.one:
            if self.unit:
                r = r.ravel()
                return float(r @ r)
            return float((weight * np.square(r)).sum())
        r2 = np.square(r) if self.unit else weight * np.square(r)
        if self.places is None:
            return r2
        return np.bincount(self.places, weights=r2.ravel(), minlength=int(np.prod(shape))).reshape(shape)


class _Reduced:
    """S of a constant y about Aw in the coordinates of A = QR: ‖y − Aw‖² = ‖y − QQᵀy‖² + ‖Qᵀy − Rw‖²."""

    def __init__(self, A: FloatArray, y: FloatArray, members: list[Variable]) -> None:
        Q, R = np.linalg.qr(A)
        self.R, self.z, self.members = np.ascontiguousarray(R), Q.T @ y, members
        rest = y - Q @ self.z
        self.rest = float(rest @ rest)

    @classmethod
    def of(cls, child: _Child, x: Variable, shape: tuple[int, ...], env: dict[Variable, Any]) -> _Reduced | None:
        """Where the mean is linear, of constant design, and of far fewer variables than rows; else None."""
        members = child.roots
        if child.linear is None:
            return None
        shapes = [np.shape(env[v]) for v in members]
        zeros = {v: np.zeros(k) for v, k in zip(members, shapes, strict=True)}
        columns = sum(v.size for v in zeros.values())
        value, _, tau = child.program(env)
        if 2 * columns > np.size(value) or np.size(value) * columns**2 > MAX_WORK:
            return None
        child.linear.refresh()
        child.program.refresh({x: np.ones(shape), **zeros})
        _, offset, _ = child.program(env)
        child.program.refresh({x: np.ones(shape)})
        out = np.shape(value)
        weight = np.sqrt(np.broadcast_to(tau, out).ravel())
        A = design(child.linear, members, shapes, out, env)
        if sparse.issparse(A):
            return None
        A = A * weight[:, None]
        return cls(A, np.broadcast_to(value - offset, out).ravel() * weight, members)

    def sum_of_squares(self, env: dict[Variable, Any]) -> float:
        w = env[self.members[0]] if len(self.members) == 1 else np.concatenate([env[v].ravel() for v in self.members])
        r = self.z - self.R @ w.ravel()
        return float(r @ r) + self.rest
