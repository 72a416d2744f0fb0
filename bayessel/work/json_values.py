"""Values as JSON: numbers, text, arrays, lists, tuples and dictionaries, without losing a bit, and never by pickles."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

#: a value taken apart: dictionaries, lists, numbers, text and arrays
Tree = Any
#: the key that tells what a dictionary of a tree stands for
TAG = "@"
#: dtypes that are bytes and no more
KINDS = "biufcSU"


class UnstorableError(TypeError):
    """A value holds something that cannot be written down."""


def to_tree(value: Any, path: str = "value", other: Callable[[Any, str], Tree] | None = None) -> Tree:
    """Take a value apart; `path` names the place in messages, `other(value, path)` knows further types."""
    if value is None or isinstance(value, str) or type(value) in (bool, int, float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind not in KINDS:
            raise UnstorableError(
                f"{path} is an array of {value.dtype}, which a store cannot hold; use a numeric dtype"
            )
        return value if isinstance(value, np.ndarray) else {TAG: "scalar", "value": value[...]}
    if type(value) in (list, tuple):
        items = [to_tree(item, f"{path}[{i}]", other) for i, item in enumerate(value)]
        return {TAG: "tuple", "items": items} if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        pairs = [[to_tree(key, path, other), to_tree(item, f"{path}[{key!r}]", other)] for key, item in value.items()]
        return {TAG: "dict", "items": pairs}
    if other is not None:
        return other(value, path)
    raise UnstorableError(f"{path} is a {type(value).__name__}, which a store cannot hold")


def from_tree(tree: Tree) -> Any:
    """Put a value together."""
    if isinstance(tree, list):
        return [from_tree(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    kind = tree.get(TAG)
    if kind == "scalar":
        return tree["value"][()]
    if kind == "tuple":
        return tuple(from_tree(item) for item in tree["items"])
    if kind == "dict":
        return {from_tree(key): from_tree(item) for key, item in tree["items"]}
    raise ValueError(f"a store holds an unknown kind of value, {kind!r}")


def dumps(tree: Tree) -> str:
    """Return a tree as JSON: arrays as base64 with their dtype, shape and order."""
    return json.dumps(tree, default=_array, separators=(",", ":"))


def loads(text: str | bytes) -> Tree:
    """Return the tree that `dumps` wrote."""
    return json.loads(text, object_hook=_restored)


def _array(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        raise UnstorableError(f"a {type(value).__name__} cannot be written down")
    order: Literal["C", "F"] = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    data = base64.b64encode(value.tobytes(order)).decode()
    return {TAG: "array", "dtype": value.dtype.str, "shape": list(value.shape), "order": order, "data": data}


def _restored(found: dict[str, Any]) -> Any:
    if found.get(TAG) != "array":
        return found
    dtype = np.dtype(found["dtype"])
    if dtype.kind not in KINDS:
        raise ValueError(f"an array of {dtype} does not belong in a store")
    try:
        flat = np.frombuffer(base64.b64decode(found["data"], validate=True), dtype=dtype)
    except binascii.Error as error:
        raise ValueError(f"an array of the store cannot be read: {error}") from error
    return flat.reshape(found["shape"], order=found["order"]).copy(order=found["order"])
