"""Which step samples which variable: Gaussian blocks integrated out, exact Gibbs draws, HMC elsewhere.

Where the rest of a model is Gaussian given some variables, these are sampled without it, and it is drawn given them:
nothing walks along a ridge. Elsewhere an exact draw given everything else is no help where everything else moves slowly
given the draw. In a hierarchy, or a mean that is linear in some variables with coefficients that are others, Gibbs and
HMC in turn walk along a ridge that HMC of all variables together goes along in one trajectory, and a compiled
trajectory costs less than an exact draw. So where a variable needs HMC, it takes what it is connected with too.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import pymc as pm
from pymc import modelcontext
from pymc.step_methods import STEP_METHODS, BlockedStep, CompoundStep
from pytensor.gradient import NullTypeGradError, grad
from pytensor.graph.basic import Variable

from bayessel._check import one_of
from bayessel._pymc import competence, default_transform
from bayessel.samplers.conjugacy.block import GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, distribution_name
from bayessel.samplers.conjugacy.logistic import LogisticBlock
from bayessel.samplers.conjugacy.marginal import MarginalBlock
from bayessel.samplers.conjugacy.scale import ScaleConditional
from bayessel.samplers.gibbs import GammaPrecisionGibbs, GaussianWeightsGibbs, PolyaGammaGibbs, SparseWeightsGibbs
from bayessel.samplers.loss_differences_step import DifferencesGibbs
from bayessel.samplers.marginal_hmc import MarginalHMC
from bayessel.samplers.network.step import NetworkSampler
from bayessel.samplers.no_u_turn import NoUTurn
from bayessel.samplers.normal_groups import block_of, coupled, grouped, joint_block, sparse_of
from bayessel.samplers.partial_centring import partly_centred, recoordinated, scale_of
from bayessel.samplers.persistent_hmc import PersistentHMC
from bayessel.samplers.whole_model import WholeModelStep

#: a step method, or several in one
type Step = BlockedStep | CompoundStep


#: how variables may be divided: HMC takes what is connected with what needs it, or only that
SPLITS = ("auto", "conjugate")
#: how HMC moves
TRANSITIONS: dict[str, type[PersistentHMC] | type[NoUTurn]] = {"persistent": PersistentHMC, "nuts": NoUTurn}


class StepPlan(NamedTuple):
    """Variables by step, and for each variable the reason."""

    blocks: list[GaussianBlock]
    #: weights with precisions of their own, and these
    sparse: list[Variable]
    scales: list[Variable]
    #: discrete variables, and those that the density has no gradient for
    others: list[Variable]
    hamiltonian: list[Variable]
    #: what is integrated out of the density that HMC samples
    integrated: list[Variable]
    reason: dict[Variable, str]


def steps(
    model: pm.Model | None = None,
    *,
    assigned: Step | Iterable[Step] = (),
    split: str = "auto",
    transition: str = "persistent",
    **hmc: Any,
) -> list[Step]:
    """Step methods for every free variable of a PyMC model; ``pm.sample(step=bs.steps(model))`` runs them.

    As far as the model's graph proves it, weights that have a precision of their own each, as in a relevance vector
    machine, are drawn together with these by `SparseWeightsGibbs`. Other Normal variables in which the rest is linear
    and Normal are integrated out, and HMC samples what is left (`MarginalHMC`). Where that cannot be, they get
    `GaussianWeightsGibbs`, and precisions, scales, rates and means of Gamma variables `GammaPrecisionGibbs`. Other
    continuous variables get `PersistentHMC`, and all that is connected with them too, logistic regressions among them;
    discrete variables, and those for which there is no gradient, what PyMC itself would choose. The networks of
    `bayessel.models.mlp` and the hierarchies of `bayessel.models.loss_differences` have samplers of their own.

    Parameters
    ----------
    model : pymc.Model, optional
        Any model; default the one on the stack.
    assigned : step method or list of them
        Your own choices, made before: they come first in the result and their variables are left to them.
    split : {"auto", "conjugate"}
        "conjugate": exact draws given all other variables wherever they are proved, also of variables that are
        connected with others that need HMC.
    transition : {"persistent", "nuts"}
        How HMC moves. "nuts": trajectories that end where they turn back (the No-U-Turn sampler), for posteriors whose
        scales differ from place to place, such as funnels; also for models that have a sampler of their own.
    **hmc
        Passed to `PersistentHMC`, the No-U-Turn sampler or `NetworkSampler`, for instance ``window=4`` or
        ``target_accept=0.95``; to the first, unless given, ``updates_per_draw="auto"``, and what the model says of its
        variables (``bs.models.gp``: a dense mass, and jumps).

    Returns
    -------
    list of step methods

    See Also
    --------
    explain_steps : the same choice in words.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> model = bs.models.linear(np.eye(4), [0.1, 0.9, 2.1, 2.9])
    >>> [step.name for step in bs.steps(model)]
    ['marginal_hmc']
    """
    model = modelcontext(model)
    own = _as_steps(assigned)
    one_of(transition, "transition", tuple(TRANSITIONS))
    whole = None if own or transition == "nuts" else _whole(model)
    if whole is not None and (whole.has_settings or not hmc):
        return [whole(model=model, **hmc)]
    plan = _plan(model, own, split, transition)
    hamiltonian = MarginalHMC if plan.integrated else TRANSITIONS[transition]
    made: list[Step] = [*own]
    # weights before precisions: a chain that starts with all weights at zero must not take that for information
    made += [_gibbs_step(block)(block.members, model=model) for block in plan.blocks]
    if plan.sparse:
        made.append(SparseWeightsGibbs(plan.sparse, model=model))
    if plan.scales:
        made.append(GammaPrecisionGibbs(plan.scales, model=model))
    chosen: dict[Any, list[Variable]] = {}
    for rv in plan.others:
        chosen.setdefault(_pymc_choice(rv), []).append(rv)
    for method, rvs in chosen.items():
        made.append(method([model.rvs_to_values[rv] for rv in rvs], model=model))
    if plan.hamiltonian:
        settings = {} if transition == "nuts" else {"updates_per_draw": "auto", **_said(plan.hamiltonian)}
        made.append(hamiltonian(plan.integrated or plan.hamiltonian, model=model, **settings | hmc))
    return made


def _whole(model: pm.Model) -> type[WholeModelStep] | None:
    """The step that samples all of the model, if one of ours was made for it."""
    return next((step for step in (NetworkSampler, DifferencesGibbs) if step.said_of(model) is not None), None)


def _said(variables: list[Variable]) -> dict[str, Any]:
    """Settings that a model has put on its variables, where they all say the same; mass and jumps belong together."""
    said = [getattr(variable.tag, "hamiltonian", {}) for variable in variables]
    return dict(said[0]) if all(one == said[0] for one in said) else {}


def explain_steps(
    model: pm.Model | None = None,
    *,
    assigned: Step | Iterable[Step] = (),
    split: str = "auto",
    transition: str = "persistent",
) -> str:
    """Say which step `steps` chooses for each variable, and why: one line per variable.

    Parameters
    ----------
    model : pymc.Model, optional
        Any model; default the one on the stack.
    assigned : step method or list of them
        Your own choices, as in `steps`.
    split : {"auto", "conjugate"}
        As in `steps`.
    transition : {"persistent", "nuts"}
        As in `steps`.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> model = bs.models.linear(np.eye(4), [0.1, 0.9, 2.1, 2.9])
    >>> print(bs.explain_steps(model))
    beta   MarginalHMC  w integrated out
    alpha  MarginalHMC  w integrated out
    w      MarginalHMC  Normal; the mean of t is linear in it; integrated out
    """
    model = modelcontext(model)
    own = _as_steps(assigned)
    names = [str(rv.name) for rv in model.free_RVs]
    width = max(map(len, names), default=0)
    one_of(transition, "transition", tuple(TRANSITIONS))
    whole = None if own or transition == "nuts" else _whole(model)
    if whole is not None:
        return "\n".join(f"{name:{width}}  {whole.__name__}  a model of bs.models.{whole.maker}" for name in names)
    plan = _plan(model, own, split, transition)
    hamiltonian = MarginalHMC if plan.integrated else TRANSITIONS[transition]
    chosen: dict[Variable, str] = {}
    for step in own:
        for value in step.vars:
            chosen[model.values_to_rvs[value]] = type(step).__name__
    for block in plan.blocks:
        members, name = [str(rv.name) for rv in block.members], _gibbs_step(block).__name__
        if len(members) > 5:
            members = [*members[:2], "…", members[-1]]
        label = f"{name}[{', '.join(members)}]" if len(members) > 1 else name
        chosen |= dict.fromkeys(block.members, label)
    chosen |= dict.fromkeys(plan.scales, "GammaPrecisionGibbs") | dict.fromkeys(plan.sparse, "SparseWeightsGibbs")
    chosen |= {rv: _pymc_choice(rv).__name__ for rv in plan.others}
    chosen |= dict.fromkeys([*plan.hamiltonian, *plan.integrated], hamiltonian.__name__)
    wide = max((len(label) for label in chosen.values()), default=0)
    return "\n".join(
        f"{name:{width}}  {chosen[rv]:{wide}}  {plan.reason.get(rv, 'your own choice')}".rstrip()
        for name, rv in zip(names, model.free_RVs, strict=True)
    )


def in_suited_coordinates(model: pm.Model, *, run: bool = True) -> pm.Model:
    """Return the model, the same distribution, with coordinates that suit the steps of `steps`.

    A transform that follows the precisions, such as the whitening of `models.rvm`, suits gradients; to an exact draw it
    is factorisations that gain nothing: what is drawn so is sampled as it is. Where HMC samples all, Normal
    effects with a sampled scale are partly centred, by a short run (`partial_centring`) that `run` leaves out.
    """
    if model.parent is not None or any(one is not None for one in model.rvs_to_initial_values.values()):
        return model  # PyMC makes no copies of such models
    graph, plan = ModelGraph(model), _plan(model, [])
    drawn = [*plan.sparse, *(rv for block in plan.blocks for rv in block.members)]
    moving = [rv for rv in drawn if graph.space.transform_roots(rv)]
    if moving:
        return recoordinated(model, dict.fromkeys(moving))
    others = len(plan.hamiltonian) < len(model.free_RVs)
    if not run or others or not plan.hamiltonian or _whole(model) is not None or _said(plan.hamiltonian):
        return model
    effects = [
        rv
        for rv in plan.hamiltonian
        if model.rvs_to_transforms[rv] is None and (scale := scale_of(rv)) is not None and graph.roots([scale])
    ]
    return partly_centred(model, effects) if effects else model


def _as_steps(assigned: Step | Iterable[Step]) -> list[Step]:
    given = list(assigned) if isinstance(assigned, Iterable) else [assigned]
    for step in given:
        if not isinstance(step, BlockedStep | CompoundStep):
            raise TypeError(f"assigned must be step methods, got {step!r}; build them first, for instance pm.NUTS([x])")
    return given


def _plan(model: pm.Model, own: list[Step], split: str = "auto", transition: str = "persistent") -> StepPlan:
    one_of(split, "split", SPLITS)
    graph = ModelGraph(model)
    taken = {model.values_to_rvs[value] for step in own for value in step.vars}
    reason: dict[Variable, str] = {}
    scales: list[Variable] = []
    normal: list[Variable] = []
    rest: list[Variable] = []
    others: list[Variable] = []
    for rv in model.free_RVs:
        if rv in taken:
            continue
        if rv.type.dtype.startswith(("int", "uint", "bool")):
            others.append(rv)
            reason[rv] = f"{distribution_name(rv)}: discrete, PyMC's own choice"
            continue
        is_normal = distribution_name(rv) in ("Normal", "Flat")
        try:
            if is_normal and (graph.children(rv) or distribution_name(rv) == "Normal"):
                block = block_of(graph, [rv])
                reason[rv] = block.says
                # a trajectory costs less than a Pólya-Gamma variable for each row
                (rest if split == "auto" and isinstance(block, LogisticBlock) else normal).append(rv)
            else:
                reason[rv] = ScaleConditional(graph, [rv]).says
                scales.append(rv)
        except NotConjugateError as declined:
            rest.append(rv)
            reason[rv] = f"not conjugate: {declined}"
    for rv in _without_gradient(model, rest):
        rest.remove(rv)
        others.append(rv)
        reason[rv] += "; the density has no gradient for it, PyMC's own choice"
    left = [*rest, *others]
    sparse = sparse_of(graph, normal, scales, left) if split == "auto" else None
    if sparse is None and split == "auto" and transition == "persistent" and not taken and not others:
        integrated = _integrated(graph, normal)
        if integrated:
            sampled = [rv for rv in model.free_RVs if rv not in integrated]
            names = ", ".join(str(rv.name) for rv in integrated[:2]) + (" …" if len(integrated) > 2 else "")
            reason |= {rv: f"{reason[rv]}; integrated out" for rv in integrated}
            reason |= {rv: f"{names} integrated out" for rv in sampled}
            return StepPlan([], [], [], [], sampled, integrated, reason)
        sparse = sparse_of(graph, normal, scales, left, hierarchy=True)
    if sparse is not None:
        reason |= dict.fromkeys(sparse.weights or sparse.members, sparse.says)
        reason |= {rv: f"{reason[rv]}; drawn without the weights" for rv in sparse.members if rv in scales}
        normal, scales, rest = ([rv for rv in part if rv not in sparse.members] for part in (normal, scales, rest))
    if rest and split == "auto":
        near = {rv: {rv, *graph.children(rv)} for rv in [*rest, *normal, *scales]}
        reached = {one for rv in rest for one in coupled(rv, list(near), near)}
        joined = [rv for rv in [*normal, *scales] if rv in reached]
        cannot = _without_gradient(model, joined)
        joined = [rv for rv in joined if rv not in cannot]
        for rv in joined:
            reason[rv] = f"connected with {', '.join(str(one.name) for one in rest[:2])}{' …' if len(rest) > 2 else ''}"
        normal, scales = ([rv for rv in part if rv not in joined] for part in (normal, scales))
        rest = [rv for rv in model.free_RVs if rv in {*rest, *joined}]
    return StepPlan(grouped(graph, normal), sparse.members if sparse else [], scales, others, rest, [], reason)


def integrated_out(model: pm.Model) -> list[Variable]:
    """Normal variables that can be integrated out of the density of a model, for less than they save."""
    graph = ModelGraph(model)
    normal = []
    for rv in model.free_RVs:
        if distribution_name(rv) in ("Normal", "Flat"):
            with suppress(NotConjugateError):
                normal.append(block_of(graph, [rv]).members[0])
    return _integrated(graph, normal)


def _integrated(graph: ModelGraph, candidates: list[Variable]) -> list[Variable]:
    """The largest block that can be integrated out, of Normal variables; empty where there is none.

    What is left is sampled by HMC, which wants it on the whole line.
    """
    transforms = graph.model.rvs_to_transforms
    if any(transforms[rv] is None and default_transform(rv) is not None for rv in graph.model.free_RVs):
        return []
    best: list[Variable] = []
    size = 0
    groups = grouped(graph, candidates)
    together = joint_block(graph, [x for block in groups for x in block.members]) if len(groups) > 1 else None
    for block in [*groups, *([together] if together else [])]:
        # the mean of what is sampled itself is no ridge that would go
        if isinstance(block, LogisticBlock) or not any(child in graph.model.observed_RVs for child in block.children):
            continue
        try:
            found = MarginalBlock(graph, block)
        except NotConjugateError:
            continue
        if found.size > size and not _without_gradient(
            graph.model, [graph.model.values_to_rvs[v] for v in found.others]
        ):
            best, size = block.members, found.size
    return best


def _without_gradient(model: pm.Model, variables: list[Variable]) -> list[Variable]:
    """Those of some variables for which the log density has no gradient."""
    if not variables:
        return []
    logp = model.logp()

    def has(some: list[Variable]) -> bool:
        try:
            grad(logp, [model.rvs_to_values[rv] for rv in some], disconnected_inputs="ignore")
        except (NotImplementedError, NullTypeGradError):
            return False
        return True

    return [] if has(variables) else [rv for rv in variables if not has([rv])]


def _gibbs_step(block: GaussianBlock) -> type[GaussianWeightsGibbs]:
    return PolyaGammaGibbs if isinstance(block, LogisticBlock) else GaussianWeightsGibbs


def _pymc_choice(rv: Variable) -> Any:
    """The step method PyMC prefers for a variable without gradient."""
    return max(STEP_METHODS, key=lambda method: competence(method, rv, False))
