"""Reading a PyMC model: which variable stands in which parameter, and how sampled values map to constrained ones."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Shape, Shape_i

from bayessel._pymc import FlatRV, LogTransform, SymbolicRandomVariable
from bayessel.samplers.conjugacy.graph_interpreter import Program


class NotConjugateError(ValueError):
    """The structure cannot be proved; the message is the reason, in one line."""


class ModelGraph:
    """The random variables of a model as a directed graph, with value dependence only (shapes do not count)."""

    def __init__(self, model: pm.Model) -> None:
        self.model = model
        self.variables: list[Variable] = list(model.basic_RVs)
        self._known = set(self.variables)
        self.parents = {rv: self.roots(self._parameters(rv)) for rv in self.variables}
        self._potential_roots = {p: self.roots([p]) for p in model.potentials}

    def with_variable(self, extra: Variable) -> ModelGraph:
        """The same graph, in which `extra` counts as a variable too."""
        other = copy(self)
        other._known = self._known | {extra}
        return other

    @staticmethod
    def _parameters(rv: Variable) -> list[Variable]:
        return [v for v in rv.owner.inputs if hasattr(v.type, "dtype")]

    def roots(self, expressions: Iterable[Variable], *, shapes: bool = False) -> frozenset[Variable]:
        """The model's random variables whose values (with `shapes`: or shapes) the expressions depend on."""
        found: set[Variable] = set()
        seen: set[Variable] = set()
        stack = list(expressions)
        while stack:
            v = stack.pop()
            if v in seen:
                continue
            seen.add(v)
            if v in self._known:
                found.add(v)
            elif v.owner is not None and (shapes or not isinstance(v.owner.op, Shape | Shape_i)):
                # fill(a, b) is b in the shape of a
                stack.extend(v.owner.inputs[1:] if not shapes and _is(v.owner, ps.Second) else v.owner.inputs)
        return frozenset(found)

    def has_stray_draw(self, expression: Variable) -> bool:
        """Whether the expression contains a random draw that is no variable of the model."""
        seen: set[Variable] = set()
        stack = [expression]
        while stack:
            v = stack.pop()
            if v in seen or v in self._known or v.owner is None:
                continue
            seen.add(v)
            if isinstance(v.owner.op, RandomVariable | SymbolicRandomVariable):
                return True
            stack.extend(v.owner.inputs)
        return False

    def children(self, rv: Variable) -> list[Variable]:
        """Random variables, free or observed, with `rv` in a parameter."""
        return [child for child in self.variables if rv in self.parents[child]]

    def check_free_of_potentials(self, rv: Variable) -> None:
        """Refuse a variable that stands in a potential."""
        for potential, roots in self._potential_roots.items():
            if rv in roots:
                raise NotConjugateError(f"stands in the potential {potential.name}")

    def normal(self, rv: Variable) -> tuple[Variable, Variable]:
        """(mean, sd) of a Normal variable of the model, or a flat one: infinitely wide; anything else is refused."""
        if isinstance(rv.owner.op, FlatRV):
            return pt.constant(0.0), pt.constant(np.inf)
        if not isinstance(rv.owner.op, NormalRV):
            raise NotConjugateError(f"{rv.name} is {distribution_name(rv)}, not Normal")
        mean, sd = self.parameters(rv)
        return mean, sd

    def parameters(self, rv: Variable) -> list[Variable]:
        """The parameters of a variable, as its distribution in PyTensor takes them."""
        found = list(rv.owner.op.dist_params(rv.owner))
        if any(self.has_stray_draw(parameter) for parameter in found):
            raise NotConjugateError(f"a parameter of {rv.name} contains an unnamed random draw")
        return found

    def value(self, rv: Variable) -> Variable:
        """What stands for the variable in an expression: itself when it is sampled, its data when it is observed."""
        return rv if rv in self.model.free_RVs else self.model.rvs_to_values[rv]

    @cached_property
    def space(self) -> Space:
        """How sampled and constrained values map to each other."""
        return Space(self)

    @cached_property
    def initial(self) -> dict[Variable, Any]:
        """Constrained initial values of the free variables: what shapes are read from before there is a point."""
        env: dict[Variable, Any] = {}
        point = self.model.initial_point()
        for rv in self.model.free_RVs:
            self.space.read(rv, point, env)
        return env

    def program(self, outputs: list[Variable]) -> Program:
        """An evaluator with every random variable that is reached, also by shape, as an input."""
        roots = self.roots(outputs, shapes=True)
        observed = [rv for rv in roots if rv not in self.model.free_RVs]
        if observed:
            raise NotConjugateError(f"a parameter depends on the observed variable {observed[0].name}")
        try:
            return Program(outputs, sorted(roots, key=self.variables.index))
        except ValueError as error:
            raise NotConjugateError(str(error)) from error


def precision(sd: Variable) -> Variable:
    """1/sd² as an expression; where PyMC made sd from a precision, that one."""
    given = _given_precision(sd)
    # a whole number would be squared in single precision
    return pt.reciprocal(pt.sqr(pt.cast(sd, "float64"))) if given is None else given


def _given_precision(sd: Variable) -> Variable | None:
    """The tau of |tau|^(−1/2) sign(tau), which is what PyMC makes of ``tau=``."""
    node = sd.owner
    if node is None:
        return None
    if isinstance(node.op, DimShuffle):
        inner = _given_precision(node.inputs[0])
        if inner is None or inner.type.ndim == 0:
            return inner  # one number for all needs no further dimensions
        return node.clone_with_new_inputs([inner]).outputs[0]
    if not _is(node, ps.Mul) or len(node.inputs) != 2:
        return None
    power, sign = (v.owner for v in node.inputs)
    if not (_is(power, ps.Pow) and _is(sign, ps.Sign) and _is(power.inputs[0].owner, ps.Abs)):
        return None
    tau, exponent = power.inputs[0].owner.inputs[0], power.inputs[1]
    while exponent.owner is not None and isinstance(exponent.owner.op, DimShuffle):
        exponent = exponent.owner.inputs[0]
    is_half = isinstance(exponent, Constant) and bool(np.all(exponent.data == -0.5))
    return tau if is_half and tau is sign.inputs[0] and tau.type.dtype == "float64" else None


def _is(node: Any, scalar_op: type) -> bool:
    return node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, scalar_op)


def distribution_name(rv: Variable) -> str:
    """Gamma, HalfCauchy, …: what the user wrote, up to aliases."""
    op = rv.owner.op
    label = getattr(op, "_print_name", None)
    return str(label[0]) if label else type(op).__name__.removesuffix("RV")


class Space:
    """The constrained values of a model's free variables, read from and written to a point of sampled values."""

    def __init__(self, graph: ModelGraph) -> None:
        self.graph = graph
        self._names = {rv: graph.model.rvs_to_values[rv].name for rv in graph.model.free_RVs}
        self._transform = {rv: graph.model.rvs_to_transforms[rv] for rv in graph.model.free_RVs}
        self._backward: dict[Variable, Program] = {}
        self._forward: dict[Variable, Program] = {}

    def is_log(self, rv: Variable) -> bool:
        """Whether the logarithm is sampled."""
        return isinstance(self._transform[rv], LogTransform)

    def value_name(self, rv: Variable) -> str:
        """The key of the variable in a point."""
        return str(self._names[rv])

    def transform_roots(self, rv: Variable) -> frozenset[Variable]:
        """Variables that the transform of `rv` depends on."""
        transform = self._transform[rv]
        if transform is None or isinstance(transform, LogTransform):
            return frozenset()
        value = self.graph.model.rvs_to_values[rv]
        return self.graph.roots([transform.backward(value, *rv.owner.inputs)]) - {rv}

    def moved_by(self, targets: Iterable[Variable]) -> list[Variable]:
        """Variables outside `targets` that would move if only the targets' sampled values were changed."""
        changed = set(targets)
        return [rv for rv in self.graph.model.free_RVs if rv not in changed and self.transform_roots(rv) & changed]

    def backward_expression(self, rv: Variable) -> tuple[Variable, Variable]:
        """(sampled value, constrained value as an expression of it)."""
        value = self.graph.model.rvs_to_values[rv]
        transform = self._transform[rv]
        return value, value if transform is None else transform.backward(value, *rv.owner.inputs)

    def read(self, rv: Variable, point: dict[str, Any], env: dict[Variable, Any]) -> None:
        """Put the constrained value of `rv` at `point` into `env`."""
        if rv in env:
            return
        value = point[self._names[rv]]
        transform = self._transform[rv]
        if transform is None:
            env[rv] = value
        elif isinstance(transform, LogTransform):
            env[rv] = np.exp(value)
        else:
            program = self._backward.get(rv)
            if program is None:
                value_variable, expression = self.backward_expression(rv)
                roots = self.graph.roots([expression], shapes=True)
                program = self._backward[rv] = Program([expression], [value_variable, *roots])
                program.refresh()
            for parent in program.inputs[1:]:
                self.read(parent, point, env)
            env[program.inputs[0]] = value
            env[rv] = np.asarray(program(env)[0])

    def write(self, rv: Variable, point: dict[str, Any], env: dict[Variable, Any]) -> None:
        """Put the sampled value that stands for the constrained ``env[rv]`` into `point`."""
        transform = self._transform[rv]
        if transform is None:
            point[self._names[rv]] = env[rv]
        elif isinstance(transform, LogTransform):
            point[self._names[rv]] = np.asarray(np.log(env[rv]))
        else:
            program = self._forward.get(rv)
            if program is None:
                expression = transform.forward(rv, *rv.owner.inputs)
                roots = self.graph.roots([expression], shapes=True) | {rv}
                program = self._forward[rv] = Program([expression], list(roots))
                program.refresh()
            for parent in program.inputs:
                self.read(parent, point, env)
            point[self._names[rv]] = np.asarray(program(env)[0])

    def data_changed(self) -> None:
        """Read shared variables anew."""
        for program in (*self._backward.values(), *self._forward.values()):
            program.refresh()
