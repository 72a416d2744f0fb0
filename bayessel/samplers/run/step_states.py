"""Sampling states of PyMC steps as plain trees, and trees as JSON: nothing is pickled, so a store is safe to open.

A step's `sampling_state` is a dataclass of numbers, arrays, generators and further dataclasses. `to_tree` takes it
apart into dictionaries, lists, numbers and arrays; `from_tree` puts it together on the pattern of a state of the same
step, from which it takes the classes and the fields that cannot change ("frozen" in PyMC's words). The round trip
keeps every bit, the dtype of scalars and the memory order of arrays: BLAS sums a transposed matrix in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from bayessel._pymc import RandomGeneratorState, get_state_from_generator, random_generator_from_state
from bayessel.work import json_values
from bayessel.work.json_values import TAG, Tree, UnstorableError


def to_tree(value: Any, path: str = "state") -> Tree:
    """Take a state apart; `path` names the place in messages."""
    return json_values.to_tree(value, path, _of_steps)


def _of_steps(value: Any, path: str) -> Tree:
    """Take apart what only states of steps hold."""
    if isinstance(value, np.random.Generator):
        return {TAG: "generator", "state": to_tree(get_state_from_generator(value), path)}
    if isinstance(value, RandomGeneratorState):
        seeds = value.seed_seq_state
        return {TAG: "rng", "bits": to_tree(value.bit_generator_state, path), "seeds": to_tree(seeds, path)}
    if is_dataclass(value) and not isinstance(value, type):
        inside = {
            field.name: to_tree(getattr(value, field.name), f"{path}.{field.name}")
            for field in fields(value)
            if not field.metadata.get("frozen", False)
        }
        return {TAG: "fields", "of": type(value).__name__, "values": inside}
    raise UnstorableError(
        f"{path} is a {type(value).__name__}, which cannot be carried from one process to another; a step's "
        "sampling_state may hold numbers, text, arrays, generators, and lists, dictionaries and dataclasses of these"
    )


def from_tree(tree: Tree, pattern: Any, path: str = "state") -> Any:
    """Put a state together on the pattern of one of the same step."""
    if isinstance(tree, list):
        like = pattern if isinstance(pattern, list | tuple) else []
        return [from_tree(item, _at(like, i), f"{path}[{i}]") for i, item in enumerate(tree)]
    if not isinstance(tree, dict):
        return tree.copy(order="K") if isinstance(tree, np.ndarray) else tree
    kind = tree.get(TAG)
    if kind == "rng":
        return RandomGeneratorState(
            bit_generator_state=from_tree(tree["bits"], {}), seed_seq_state=from_tree(tree["seeds"], {})
        )
    if kind == "scalar":
        return tree["value"][()]
    if kind == "generator":
        return random_generator_from_state(from_tree(tree["state"], None))
    if kind == "tuple":
        like = pattern if isinstance(pattern, list | tuple) else []
        return tuple(from_tree(item, _at(like, i), f"{path}[{i}]") for i, item in enumerate(tree["items"]))
    if kind == "dict":
        known = pattern if isinstance(pattern, Mapping) else {}
        pairs = [(from_tree(key, None), item) for key, item in tree["items"]]
        return {key: from_tree(item, known.get(key), f"{path}[{key!r}]") for key, item in pairs}
    if kind == "fields":
        return _dataclass(tree, pattern, path)
    raise ValueError(f"{path} holds an unknown kind of value, {kind!r}")


def _dataclass(tree: Tree, pattern: Any, path: str) -> Any:
    if not is_dataclass(pattern) or isinstance(pattern, type) or type(pattern).__name__ != tree["of"]:
        raise ValueError(
            f"{path} was written as a {tree['of']}, but the step now has a {type(pattern).__name__} there; "
            "the step methods have changed since"
        )
    values, arguments = tree["values"], {}
    for field in fields(pattern):
        present = getattr(pattern, field.name)
        if field.metadata.get("frozen", False):
            arguments[field.name] = present
        elif field.name in values:
            arguments[field.name] = from_tree(values[field.name], present, f"{path}.{field.name}")
        else:
            raise ValueError(
                f"{path} was written without the field {field.name!r}; the step methods have changed since"
            )
    return type(pattern)(**arguments)


def _at(items: Any, position: int) -> Any:
    """Return the pattern of an item; a list that has grown repeats its last pattern."""
    return items[min(position, len(items) - 1)] if items else None
