"""What depends on a scale x: Normal variables through their standard deviation, Gamma variables through their rate.

As functions of log x both are worth n squared standard normals that add up to S,

    log p(child | x) = −k n log x − ½ S x^(−2k) + constant,

with s·xᵏ the standard deviation, n the number of elements and S the sum of squared residuals over s². A Gamma variable
y of shape a and rate r·x^(−2k) is worth n = 2a of them, with S = 2 r y: twice a Gamma variable over its scale is a χ²
with 2a degrees of freedom. The reciprocal of an inverse-gamma variable is one of those.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, override

import numpy as np
import numpy.typing as npt
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import ExponentialRV, GammaRV, InvGammaRV
from scipy import sparse

from bayessel._check import FloatArray
from bayessel.samplers.conjugacy.affine import affine, design
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, distribution_name, precision
from bayessel.samplers.conjugacy.graph_interpreter import Program
from bayessel.samplers.conjugacy.monomial import monomial

#: Rows × columns² of a decomposition that is still worth its while.
MAX_WORK = 1e9


def read_child(graph: ModelGraph, child: Variable, x: Variable) -> Child:
    """How `child` depends on x.

    Raises
    ------
    NotConjugateError
        Not as above, or that is not proved.
    """
    if isinstance(child.owner.op, GammaRV | ExponentialRV | InvGammaRV):
        return GammaChild(graph, child, x)
    return NormalChild(graph, child, x)


class Child:
    """A variable that x sets the scale of: n and S by element of x, and the power k."""

    #: what x is called by its power
    roles: ClassVar[dict[float, str]]
    power: float
    program: Program

    def __init__(self, graph: ModelGraph, child: Variable, places: tuple[Variable, ...]) -> None:
        self.name = str(child.name)
        self.kind = distribution_name(child)
        self.index = graph.program(list(places))
        self.places: Any = None

    @abstractmethod
    def refresh(self, x: Variable, shape: tuple[int, ...], env: dict[Variable, Any]) -> FloatArray:
        """Take in data and shapes; return n for each element of x, in a row."""

    @abstractmethod
    def sum_of_squares(self, env: dict[Variable, Any], shape: tuple[int, ...]) -> Any:
        """S for each element of x; a plain number when there is one."""

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

    def count(self, x: Variable, shape: tuple[int, ...], worth: FloatArray, env: dict[Variable, Any]) -> FloatArray:
        """n for each element of x, from what each element of the child is worth.

        Places of the elements are kept where they are not simply one to one.
        """
        self.places = None
        self.one = int(np.prod(shape)) == 1
        if self.one:
            return np.array([float(worth.sum())])
        places = self.find_places(x, shape, worth.shape, env)
        if worth.shape != shape or not np.array_equal(places, np.arange(places.size)):
            self.places = places
        return np.bincount(places, weights=worth.ravel(), minlength=int(np.prod(shape)))

    def by_element(self, squares: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Add up by element of x."""
        if self.places is None:
            return squares
        return np.bincount(self.places, weights=squares.ravel(), minlength=int(np.prod(shape))).reshape(shape)


class NormalChild(Child):
    """A Normal variable whose standard deviation is s·xᵏ, about a mean free of x."""

    roles: ClassVar = {-0.5: "a precision", 0.5: "a variance", 1.0: "a standard deviation"}

    def __init__(self, graph: ModelGraph, child: Variable, x: Variable) -> None:
        mean, sd = graph.normal(child)
        if x in graph.roots([mean]):
            raise NotConjugateError(f"stands in the mean of {child.name}")
        part = monomial(graph, sd, x)
        super().__init__(graph, child, part.places)
        self.power = part.power
        self.program = graph.program([graph.value(child), mean, precision(sd)])
        self.linear: Program | None = None
        self.roots = sorted(graph.roots([mean]), key=graph.variables.index)
        try:
            linear = affine(graph, mean, self.roots) if self.roots else None
            if linear is not None and not linear.coefficients:
                self.linear = graph.program([linear.linear])
        except NotConjugateError:
            pass  # the mean may be anything; a linear one is only cheaper

    @override
    def refresh(self, x: Variable, shape: tuple[int, ...], env: dict[Variable, Any]) -> FloatArray:
        # at x = 1 the precision is 1/s²
        self.program.refresh({x: np.ones(shape)})
        value, mean, weight = self.program(env)
        value_static, mean_static, weight_static = self.program.static
        self.mean_is_zero = mean_static and not np.any(mean)
        self.unit = weight_static and bool(np.all(np.asarray(weight) == 1.0))
        n = self.count(x, shape, np.ones(np.shape(value)), env)
        self.reduced = _Reduced.of(self, x, shape, env) if self.one and value_static and weight_static else None
        return n

    @override
    def sum_of_squares(self, env: dict[Variable, Any], shape: tuple[int, ...]) -> Any:
        if self.reduced is not None:
            return self.reduced.sum_of_squares(env)
        value, mean, weight = self.program(env)
        r = value if self.mean_is_zero else value - mean
        if self.one:
            if self.unit:
                r = r.ravel()
                return float(r @ r)
            return float((weight * np.square(r)).sum())
        return self.by_element(np.square(r) if self.unit else weight * np.square(r), shape)


class GammaChild(Child):
    """A Gamma, Exponential or inverse-gamma variable whose scale is s·x^m; its shape is free of random variables."""

    roles: ClassVar = {-0.5: "a rate", 0.5: "a scale"}

    def __init__(self, graph: ModelGraph, child: Variable, x: Variable) -> None:
        op = child.owner.op
        self.inverse = isinstance(op, InvGammaRV)
        *shapes, scale = graph.parameters(child)
        if x in graph.roots(shapes):
            raise NotConjugateError(f"stands in the shape of {child.name}")
        if graph.roots(shapes):
            raise NotConjugateError(f"the shape of {child.name} is random")
        part = monomial(graph, scale, x)
        super().__init__(graph, child, part.places)
        self.power = -0.5 * part.power if self.inverse else 0.5 * part.power
        a = shapes[0] if shapes else pt.constant(np.float64(1.0))
        self.program = graph.program([graph.value(child), scale])
        self.shapes = graph.program([pt.cast(a, "float64")])

    @override
    def refresh(self, x: Variable, shape: tuple[int, ...], env: dict[Variable, Any]) -> FloatArray:
        # at x = 1 the scale is s
        self.program.refresh({x: np.ones(shape)})
        self.shapes.refresh()
        value = self.program(env)[0]
        return self.count(x, shape, 2.0 * np.broadcast_to(self.shapes(env)[0], np.shape(value)), env)

    @override
    def sum_of_squares(self, env: dict[Variable, Any], shape: tuple[int, ...]) -> Any:
        value, scale = self.program(env)
        squares = 2.0 * (np.divide(scale, value) if self.inverse else np.divide(value, scale))
        return float(np.sum(squares)) if self.one else self.by_element(squares, shape)


class _Reduced:
    """S of a constant y about Aw in the coordinates of A = QR: ‖y − Aw‖² = ‖y − QQᵀy‖² + ‖Qᵀy − Rw‖²."""

    def __init__(self, A: FloatArray, y: FloatArray, members: list[Variable]) -> None:
        Q, R = np.linalg.qr(A)
        self.R, self.z, self.members = np.ascontiguousarray(R), Q.T @ y, members
        rest = y - Q @ self.z
        self.rest = float(rest @ rest)

    @classmethod
    def of(cls, child: NormalChild, x: Variable, shape: tuple[int, ...], env: dict[Variable, Any]) -> _Reduced | None:
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
