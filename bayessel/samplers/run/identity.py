"""What makes a run the same run: model, data, seed, lengths, steps. Written once, compared at every resume."""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from platform import python_version
from typing import Any

import numpy as np
import pymc as pm
from pymc.step_methods import BlockedStep

from bayessel._pymc import state_class
from bayessel.errors import DataMismatchError, StoreWarning
from bayessel.samplers.run.fingerprint import fingerprints
from bayessel.samplers.run.kernel import Kernel, Point
from bayessel.work.json_values import dumps

_PACKAGES = ("bayessel", "pymc", "pytensor", "numpy", "scipy", "numba", "arviz")
#: Constructor arguments that are no settings: what they are is seen from the model.
_NO_SETTINGS = {"self", "vars", "model", "rng", "initial_point", "compile_kwargs", "blocked", "logp_dlogp_func"}


def versions() -> dict[str, str]:
    """Return the releases that have a say in the draws."""
    return {"python": python_version()} | {name: version(name) for name in _PACKAGES}


def identity(
    model: pm.Model, kernel: Kernel, point: Point, *, seed: Any, chains: int, draws: int, initvals: Any
) -> dict[str, Any]:
    """Return the header of a run."""
    model_name, data_name = fingerprints(model)
    return {
        "model": model_name,
        "data": data_name,
        "seed": seed,
        "chains": chains,
        "tune": kernel.tune,
        "draws": draws,
        "variables": {name: [str(value.dtype), list(value.shape)] for name, value in point.items()},
        "initvals": _described_initvals(initvals),
        "steps": [_described(step) for step in kernel.steps],
        "beginnings": _beginnings(kernel, point),
        "versions": versions(),
    }


def check_same(stored: Mapping[str, Any], now: Mapping[str, Any], folder: Any) -> None:
    """Refuse to go on with another run than the stored one; say what differs."""
    # another model has other constants too, and all arrays count as data
    if stored["model"] == now["model"] and stored["data"] != now["data"]:
        raise DataMismatchError(
            f"the store {folder} was sampled with other data, or other arrays in the model, such as those of a prior "
            f"(fingerprints {stored['data']} there, {now['data']} here); give the same, or another store"
        )
    remedies = {
        "variables": "the model has other variables; give the model that was stored, or another store",
        "model": "the model is another one; give the model that was stored, or another store",
        "seed": "pass the stored seed or random_seed=None, or another store",
        "chains": "pass the stored number, or another store",
        "tune": "pass the stored number, or another store",
        "initvals": "pass the stored ones, or another store",
        "steps": "pass steps with the stored settings, or another store",
        "beginnings": "the steps begin with other settings; pass the stored ones, or another store",
    }
    for what, remedy in remedies.items():
        if stored[what] != now[what]:
            where, there, here = _differing(stored[what], now[what], what)
            raise ValueError(
                f"the store {folder} holds another run: {where} is {there} there and {here} here; {remedy}"
            )
    if stored["versions"] != now["versions"]:
        _, there, here = _differing(stored["versions"], now["versions"], "versions")
        warnings.warn(
            f"the store {folder} was written with {there}, this is {here}: the chains go on, but may differ in "
            "rounding from what the old releases would have drawn",
            StoreWarning,
            stacklevel=4,
        )


def _described(step: BlockedStep) -> dict[str, Any]:
    """Class, variables and settings of a step: constructor arguments kept under their name, and frozen state."""
    changing = {field.name for field in fields(state_class(step)) if not field.metadata.get("frozen", False)}
    frozen = {field.name for field in fields(state_class(step))} - changing - {"var_names"}
    arguments = set(inspect.signature(type(step).__init__).parameters) - _NO_SETTINGS - changing
    settings = {}
    for name in sorted(arguments | frozen):
        value = _setting(getattr(step, name, None))
        if value is not None:
            settings[name] = value
    return {"step": type(step).__name__, "variables": [str(one.name) for one in step.vars], "settings": settings}


def _setting(value: Any) -> Any:
    """Return a setting as JSON knows it; None for what is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(value)  # NaN and infinity are equal to themselves as text
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        # as text: NaN is equal to itself there
        return repr(value.tolist()) if value.size <= 8 else hashlib.sha256(value.tobytes()).hexdigest()[:16]
    if isinstance(value, list | tuple) and all(isinstance(one, bool | int | float | str) for one in value):
        return [repr(one) if isinstance(one, float) else one for one in value]
    return None


def _beginnings(kernel: Kernel, point: Point) -> dict[str, str]:
    """Digest of the state in which each step begins: initial step sizes, masses and the like, no generators."""
    begun = kernel.begin(0, point, np.random.default_rng(0))
    kernel.restore()
    return {
        f"{i} {type(step).__name__}": hashlib.sha256(dumps(_without_generators(tree)).encode()).hexdigest()[:16]
        for i, (step, tree) in enumerate(zip(kernel.steps, begun.state, strict=True))
    }


def _without_generators(tree: Any) -> Any:
    if isinstance(tree, dict):
        if tree.get("@") in ("rng", "generator"):
            return None
        return {key: _without_generators(value) for key, value in tree.items()}
    return [_without_generators(one) for one in tree] if isinstance(tree, list) else tree


def _described_initvals(initvals: Any) -> Any:
    if not initvals:
        return None
    if isinstance(initvals, Sequence):
        return [_described_initvals(one) for one in initvals]
    return {
        str(getattr(name, "name", name)): value if isinstance(value, str) else np.asarray(value).tolist()
        for name, value in initvals.items()
    }


def _differing(there: Any, here: Any, path: str) -> tuple[str, Any, Any]:
    """Return the part in which two values differ, and where it stands."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
        if len(keys) == 1 and keys[0] in there and keys[0] in here:
            return _differing(there[keys[0]], here[keys[0]], f"{path}.{keys[0]}")
        return path, {key: there.get(key) for key in keys}, {key: here.get(key) for key in keys}
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip(there, here, strict=True)) if a != b]
        if len(pairs) == 1:
            i, a, b = pairs[0]
            label = a.get("step", i) if isinstance(a, dict) else i
            return _differing(a, b, f"{path}[{label}]")
    return path, there, here
