"""What `sample` accepts: every argument checked, and put into the form that the run works with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymc as pm
from pymc.step_methods import BlockedStep, CompoundStep

from bayessel._check import as_count, as_fraction
from bayessel._pymc import SimulatorRV, batched, flatten_steps
from bayessel.work.jobs import core_count, in_worker

if TYPE_CHECKING:
    from bayessel.samplers.step_choice import Step


def as_model(model: pm.Model | None) -> pm.Model:
    """Return the model, or that of the context."""
    if model is None:
        try:
            return pm.modelcontext(None)
        except TypeError:
            raise TypeError("there is no model: pass one, sample(model), or call sample inside `with model:`") from None
    if not isinstance(model, pm.Model):
        raise TypeError(f"model must be a pymc.Model, got {type(model).__name__}; estimators have .to_pymc()")
    if parts := batched(model):
        raise ValueError(
            f"{', '.join(parts)} {'sees' if len(parts) == 1 else 'see'} a random part of the data at every evaluation "
            "(pm.Minibatch) or is scaled by total_size: that is for pm.fit, and no chain has such a posterior; declare "
            "the model on all data, without Minibatch and total_size"
        )
    return model


def as_cores(cores: int | None, chains: int) -> int:
    """Return how many processes work: all cores by default, never more than chains."""
    cores = core_count() if cores is None else as_count(cores, "cores")
    # a worker of a pool may not have workers of its own; the draws are the same
    return 1 if in_worker() else min(cores, chains)


def as_folder(store: str | os.PathLike[str] | None) -> Path | None:
    """Return the store's folder."""
    if store is None:
        return None
    if not isinstance(store, str | os.PathLike) or not os.fspath(store):
        raise TypeError(f"store must be the name of a folder, got {store!r}")
    return Path(os.fspath(store)).expanduser()


def as_steps(step: Step | Sequence[Step] | None, model: pm.Model, target_accept: float | None = None) -> list[Step]:
    """Return steps that together move every variable of the model; what is not assigned is by `bayessel.steps`.

    A `target_accept` is for Hamiltonian steps that `bayessel.steps` chooses; without any it is refused.
    """
    if not model.free_RVs:
        raise ValueError("the model has no free variables: everything is fixed or observed, there is nothing to sample")
    simulated = [str(rv.name) for rv in model.basic_RVs if isinstance(rv.owner.op, SimulatorRV)]
    if simulated:
        raise ValueError(
            f"{', '.join(simulated)}: a Simulator has no density, but one drawn anew at each call, and no step accepts "
            "or rejects rightly by that; sample the model by pm.sample_smc"
        )
    given = [] if step is None else list(step) if isinstance(step, Sequence) else [step]
    for one in given:
        if isinstance(one, type):
            raise TypeError(f"step holds the class {one.__name__}; make an instance of it, {one.__name__}(…)")
        if not isinstance(one, BlockedStep | CompoundStep):
            raise TypeError(f"step must be a PyMC step method or a list of them, got {type(one).__name__}")
    values = list(model.value_vars)
    moved = [variable for one in given for leaf in flatten_steps(one) for variable in leaf.vars]
    foreign = [str(variable.name) for variable in moved if variable not in values]
    if foreign:
        raise ValueError(
            f"the steps move {', '.join(foreign)}, which are no value variables of this model "
            f"({', '.join(str(value.name) for value in values)}); were they made for another model?"
        )
    if any(value not in moved for value in values):
        from bayessel.samplers.step_choice import steps

        rate = None if target_accept is None else as_fraction(target_accept, "target_accept")
        settings: dict[str, Any] = {} if rate is None else {"target_accept": rate}
        made = steps(model, assigned=given, **settings)
        _check_taken(rate, made[len(given) :], given)
        return made
    _check_taken(target_accept, [], given)
    return given


def _check_taken(target_accept: float | None, chosen: Sequence[Step], given: Sequence[Step]) -> None:
    """Refuse a setting that no step has taken."""
    if target_accept is None:
        return
    leaves = [leaf for one in chosen for leaf in flatten_steps(one)]
    if any(getattr(leaf, "target_accept", None) == target_accept for leaf in leaves):
        return
    names = ", ".join(dict.fromkeys(type(leaf).__name__ for one in (*given, *chosen) for leaf in flatten_steps(one)))
    raise ValueError(
        f"target_accept={target_accept} is for Hamiltonian steps that bayessel.steps chooses, and there are none: the "
        f"variables are moved by {names}; "
        + (
            "give it to your own step, for instance bs.PersistentHMC(target_accept=0.95)"
            if given
            else "leave it out, or pass step=bs.PersistentHMC(target_accept=0.95, model=model)"
        )
    )
