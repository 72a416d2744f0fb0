"""A model as a density that is to be integrated: of all its variables, or of those that are left when a block is gone.

Normal blocks in which the rest of the model is linear and Normal are integrated out in closed form first
(`samplers.conjugacy.marginal`): what is left has fewer dimensions, no funnels, and the same integral.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import compile as compile_pymc
from pytensor.gradient import grad
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph

from bayessel._check import FloatArray
from bayessel._pymc import FlatRV, HalfFlatRV, find_rng_nodes, join_nonshared_inputs, multiplications, reseed_rngs
from bayessel.marginal_likelihood.density_rows import log_densities
from bayessel.samplers.compiled_density import CompiledCall, CompiledDensity, LogDensity
from bayessel.samplers.conjugacy.block import GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.conjugacy.marginal import MarginalBlock
from bayessel.samplers.density import Density
from bayessel.samplers.marginal_hmc import MarginalDensity
from bayessel.samplers.step_choice import integrated_out

#: shares of the points that are taken of densities of rising cost, and multiplications from which a cost counts as high
SHARES, DEAR = (1.0, 0.25, 0.0625), (2e4, 2e5)
#: draws of the prior that are looked at before it is trusted
_LOOKED_AT = 200


class TargetDensity:
    """The unnormalised density whose integral is the probability of the data.

    Parameters
    ----------
    model : pymc.Model
        All free variables continuous.

    Attributes
    ----------
    size : int
        Unconstrained coordinates that are left to integrate over.
    integrated : tuple of str
        Variables that are integrated out in closed form before.
    is_gaussian : bool
        Whether the density is proved to be a normal one times a constant.
    unnormalised : str
        Why the prior is none that integrates to one; empty where nothing says so.
    """

    def __init__(self, model: pm.Model) -> None:
        self.model = model
        self._graph = ModelGraph(model)
        members = integrated_out(model)
        self.integrated = tuple(str(rv.name) for rv in members)
        self._block: MarginalBlock | None = None
        if members:
            self._block = MarginalBlock(self._graph, GaussianBlock(self._graph, members))
            self._density: Density = MarginalDensity(self._block, None, {})
        else:
            self._density = Density(model, list(model.value_vars), None, {})
        self.left = [rv for rv in model.free_RVs if rv not in members]
        self.size = self._density.size
        self.is_gaussian = not members and _is_gaussian(self._graph)
        self._code = CompiledDensity.of(self._density.both)
        self._point = model.initial_point()
        self._prior: tuple[Any, CompiledDensity | None] | None = None
        self._drawn: tuple[Any, list[Any]] | None = None
        self._forward: dict[Variable, tuple[list[Variable], Any]] = {}
        self.unnormalised = _unnormalised(model)
        self.no_prior = self.unnormalised or self._why_no_prior()

    @property
    def share(self) -> float:
        """How many of the usual points are affordable: all where an evaluation takes microseconds, fewer where more."""
        if self._code is None:
            return SHARES[1]
        return next((SHARES[k] for k in (2, 1) if multiplications(self._density.both) > DEAR[k - 1]), SHARES[0])

    def data_changed(self) -> bool:
        """Take in what the model's data containers hold now; False where that asks for another density."""
        if self._block is not None and not self._block.refresh():
            return False
        self._point = self.model.initial_point()
        if self.start.size != self.size:
            return False
        self.unnormalised = _unnormalised(self.model)
        self.no_prior = self.unnormalised or self._why_no_prior()
        return True

    # --- values -----------------------------------------------------------------------------------------------------

    @property
    def start(self) -> FloatArray:
        """PyMC's initial point."""
        return self._density.vector(self._point)

    @property
    def whole(self) -> LogDensity:
        """What a loop evaluates: log density and gradient."""
        return self._density.both if self._code is None else self._code.call(self.start)

    def logs(self, rows: FloatArray) -> FloatArray:
        """Log density of each row."""
        return log_densities(self.whole, rows)[0]

    # --- the prior --------------------------------------------------------------------------------------------------

    @property
    def prior(self) -> LogDensity:
        """What a loop evaluates: log prior of the coordinates that are left, and its gradient."""
        if self._prior is None:
            values = [self.model.rvs_to_values[rv] for rv in self.left]
            [logp], joined = join_nonshared_inputs(self._point, [self.model.logp(vars=self.left)], values, {})
            function = compile_pymc([joined], [logp, grad(logp, joined)])
            function.trust_input = True
            self._prior = function, CompiledDensity.of(function)
        function, code = self._prior
        return function if code is None else code.call(self.start)

    @property
    def prior_and_whole(self) -> tuple[LogDensity, LogDensity]:
        """Both, either as machine code or as functions: a loop takes no mixture."""
        prior, whole = self.prior, self.whole
        if isinstance(prior, CompiledCall) and isinstance(whole, CompiledCall):
            return prior, whole
        assert self._prior is not None
        return self._prior[0], self._density.both

    def prior_draws(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draws of the prior in these coordinates, (n, size)."""
        if self._drawn is None:
            outs = [_in_coordinates(self.model, rv) for rv in self.left]
            function = compile_pymc([], outs, mode="FAST_COMPILE")
            self._drawn = function, find_rng_nodes(outs)
        function, rngs = self._drawn
        reseed_rngs(rngs, int(rng.integers(2**31)))
        found = np.empty((n, self.size))
        with np.errstate(all="ignore"):
            for row in found:
                row[:] = np.concatenate([np.ravel(one) for one in function()])
        return found

    def prior_quantiles(self) -> tuple[Callable[[FloatArray], FloatArray] | None, str]:
        """What maps rows of uniform numbers to draws of the prior in these coordinates; None with the reason."""
        u, place, made, outs = pt.matrix("u", shape=(None, self.size)), 0, dict[Variable, Any](), []
        one = pt.vector("u", shape=(self.size,))
        try:
            for rv in self.left:
                shape = self._point[str(self.model.rvs_to_values[rv].name)].shape
                size = int(np.prod(shape))
                [own] = clone_replace([rv], made, rebuild_strict=False) if made else [rv]
                made[rv] = pm.icdf(own, one[place : place + size].reshape(shape))
                out: Any = clone_replace([_in_coordinates(self.model, rv)], made, rebuild_strict=False)[0]
                outs.append(out.ravel())
                place += size
            [many] = vectorize_graph([pt.concatenate(outs)], {one: u})
            function = compile_pymc([u], many)
        except Exception as reason:  # whatever a distribution may raise that has no quantiles
            return None, f"the prior has no quantiles ({(str(reason).splitlines() or [''])[0][:80]})"
        return function, ""

    def _why_no_prior(self) -> str:
        """Why points cannot be drawn from the prior; nothing where they can. Sees a prior that a transform cuts."""
        free = set(self.model.free_RVs)
        for rv in self.left:
            if outside := (self._graph.parents[rv] & free) - set(self.left):
                name = min(str(one.name) for one in outside)
                return f"the prior of {rv.name} depends on {name}, which is integrated out"
        try:
            rows = self.prior_draws(np.random.default_rng(0), _LOOKED_AT)
        except Exception as reason:  # whatever a distribution may raise that has no draws
            return f"its prior has no draws ({(str(reason).splitlines() or [''])[0][:80]})"
        inside = np.isfinite(rows).all(axis=1)
        inside[inside] = np.isfinite(log_densities(self.prior, rows[inside])[0])
        if not inside.all():
            self.unnormalised = (
                f"{100.0 * (1.0 - inside.mean()):.0f} % of draws of the prior lie outside the coordinates that are "
                "sampled, as with an ordered transform: the density that PyMC samples has as much less mass"
            )
        return self.unnormalised

    # --- draws of a trace -------------------------------------------------------------------------------------------

    def coordinates(self, posterior: Any) -> FloatArray:
        """Draws of a group ``posterior`` in these coordinates, (chains, draws, size)."""
        parts = []
        for rv in self.left:
            values = _of_trace(posterior, rv)
            if self.model.rvs_to_transforms[rv] is not None:
                needed, function = self._forwards(rv)
                columns = [_of_trace(posterior, one) for one in needed]
                shape = values.shape[:2]
                with np.errstate(all="ignore"):
                    flat = [
                        np.ravel(function(*(column[i, j, ...] for column in columns)))
                        for i in range(shape[0])
                        for j in range(shape[1])
                    ]
                values = np.array(flat).reshape(*shape, -1)
            parts.append(values.reshape(*values.shape[:2], -1))
        return np.concatenate(parts, axis=2)

    def _forwards(self, rv: Variable) -> tuple[list[Variable], Any]:
        """The variables that decide the coordinates of one, itself among them, and the function of their values."""
        if rv not in self._forward:
            given = {one: one.clone() for one in self.model.free_RVs}
            [out] = clone_replace([_in_coordinates(self.model, rv)], given, rebuild_strict=False)
            needed = [one for one in self.model.free_RVs if one is rv or one in self._graph.parents[rv]]
            inputs = [given[one] for one in needed]
            function = compile_pymc(inputs, out, mode="FAST_COMPILE", on_unused_input="ignore")
            function.trust_input = True
            self._forward[rv] = needed, function
        return self._forward[rv]


def _in_coordinates(model: pm.Model, rv: Variable) -> Any:
    """A random variable in the coordinates that PyMC samples it in."""
    transform = model.rvs_to_transforms[rv]
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


def _of_trace(posterior: Any, rv: Variable) -> FloatArray:
    """Values of a variable, (chain, draw, …)."""
    found = posterior[str(rv.name)]
    return np.asarray(found.transpose("chain", "draw", ...).values, dtype=float)


def _is_gaussian(graph: ModelGraph) -> bool:
    """Whether all variables together are one Normal block."""
    model = graph.model
    if model.potentials or any(model.rvs_to_transforms[rv] is not None for rv in model.free_RVs):
        return False
    try:
        block = GaussianBlock(graph, list(model.free_RVs))
    except NotConjugateError:
        return False
    return type(block) is GaussianBlock


def _unnormalised(model: pm.Model) -> str:
    """What in a model says that its prior is none that integrates to one."""
    flat = [str(rv.name) for rv in model.free_RVs if isinstance(rv.owner.op, FlatRV | HalfFlatRV)]
    if flat:
        return f"the prior of {', '.join(flat)} is flat and does not integrate to one"
    if model.potentials:
        return f"the potential {model.potentials[0].name} changes the density by what no distribution accounts for"
    return ""


def refuse_discrete(model: pm.Model) -> None:
    """Refuse discrete variables, over which nothing here integrates."""
    discrete = [str(rv.name) for rv in model.free_RVs if np.dtype(rv.type.dtype).kind != "f"]
    if discrete:
        raise TypeError(
            f"the free variables must be continuous, and {', '.join(discrete)} {'is' if len(discrete) == 1 else 'are'} "
            "discrete: sum them out in the model, by pm.Mixture, or by pymc_extras.marginalize"
        )
