"""Names of a model and of its data: equal in every process that declares the same.

The model's name is a digest of its log density term by term, as a graph: operations with their settings, scalar
constants, names and types of what goes in; and of the deterministic variables. Arrays among the constants are data,
like `pm.Data` and observed values: they belong to the other name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.traversal import toposort

from bayessel._fingerprint import fingerprint
from bayessel._pymc import find_observations


def fingerprints(model: pm.Model) -> tuple[str, str]:
    """Return the names of the model and of its data, 16 hexadecimal digits each."""
    known = {variable: str(variable.name) for variable in model.value_vars}
    graph = _Graph(known)
    terms = list(model.basic_RVs) + list(model.potentials)
    density = model.logp(vars=terms, sum=False) if terms else []
    said = [f"{term.name}:{graph.name_of(value)}" for term, value in zip(terms, density, strict=True)]
    said += [f"{value.name}:{value.type}" for value in model.value_vars]
    said += [f"{one.name}={graph.name_of(one)}" for one in model.deterministics]
    observed = {f"observed {name}": np.ma.getdata(value) for name, value in find_observations(model).items()}
    return _digest(said), _digest([*graph.data(), *(f"{name}={_array(value)}" for name, value in observed.items())])


def observed_values(model: pm.Model) -> list[np.ndarray]:
    """The numbers observed, NaN where they are missing; without what a joint density has beyond its rows' terms."""
    names = [str(rv.name) for rv in model.observed_RVs if not hasattr(rv.tag, "rest_of")]
    values = {name: value for name, value in find_observations(model).items() if name in names}
    return [np.ma.filled(np.ma.asarray(value, dtype=float), np.nan) for value in values.values()]


def target_fingerprint(model: pm.Model) -> str:
    """Return the name of the observed values, as engines and estimators have it; empty where they are no numbers."""
    observed = observed_values(model)
    return fingerprint(*observed) if observed else ""


class _Graph:
    """Digests of variables, each computed once."""

    def __init__(self, known: Mapping[Variable, str]) -> None:
        self._names: dict[Variable, str] = {variable: f"value {name}" for variable, name in known.items()}
        self._shared: dict[str, str] = {}
        self._arrays: set[str] = set()

    def data(self) -> list[str]:
        """Return the digests of the arrays met on the way, in an order of their own."""
        return [*sorted(self._arrays), *(f"{name}={value}" for name, value in sorted(self._shared.items()))]

    def name_of(self, output: Variable) -> str:
        """Return the digest of one variable of the graph."""
        # a Python loop in topological order: graphs can be deeper than the recursion limit
        for node in toposort([output], blockers=list(self._names)):
            inputs = [self._leaf(variable) for variable in node.inputs]
            whole = _digest([_operation(node.op), *inputs])
            for position, variable in enumerate(node.outputs):
                self._names.setdefault(variable, f"{whole}[{position}]")
        return self._leaf(output)

    def _leaf(self, variable: Variable) -> str:
        if variable not in self._names:
            self._names[variable] = self._described(variable)
        return self._names[variable]

    def _described(self, variable: Variable) -> str:
        if isinstance(variable, Constant):
            value = variable.data
            if isinstance(value, np.ndarray) and value.size > 1:
                self._arrays.add(_array(value))
                return f"data {value.dtype} {value.ndim}"
            if isinstance(value, np.ndarray | np.generic):
                return f"constant {value.dtype} {np.shape(value)} {np.asarray(value).tobytes().hex()}"
            return f"constant {value!r}"
        if isinstance(variable, SharedVariable):
            value = variable.get_value(borrow=True)
            if isinstance(value, np.random.Generator):
                return "generator"
            name = str(variable.name)
            if isinstance(value, np.ndarray | np.generic):
                self._shared[name] = _array(np.asarray(value))
            return f"shared {name} {variable.type.ndim if hasattr(variable.type, 'ndim') else ''}"
        return f"free {variable.name} {variable.type}"


def _operation(op: Op) -> str:
    """Kind and settings of an operation, without anything that differs from process to process."""
    kind = f"{type(op).__module__}.{type(op).__qualname__}"
    properties = [f"{name}={_property(getattr(op, name))}" for name in getattr(op, "__props__", None) or ()]
    if isinstance(op, HasInnerGraph):
        inner = _Graph({variable: f"argument {i}" for i, variable in enumerate(op.inner_inputs)})
        properties += [inner.name_of(variable) for variable in op.inner_outputs]
    return "|".join([kind, *properties])


def _property(value: Any) -> str:
    if isinstance(value, Op):
        return _operation(value)
    if isinstance(value, list | tuple):
        return f"({','.join(_property(item) for item in value)})"
    if isinstance(value, Mapping):
        return f"({','.join(f'{_property(k)}:{_property(v)}' for k, v in sorted(value.items(), key=repr))})"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


def _array(value: Any) -> str:
    array = np.asarray(value)
    if array.dtype.kind == "O":
        return _digest([repr(item) for item in array.ravel()])
    if array.dtype.kind == "f":
        array = array + 0.0  # makes -0.0 and 0.0 one number
    return _digest([str(array.dtype), str(array.shape), hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()])


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
