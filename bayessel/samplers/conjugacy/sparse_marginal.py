"""Precisions of separate weights and that of the noise in a model from which the weights are gone already.

An observed variable whose tag says ``linear_marginal`` is N(0, I/β + QRA⁻¹RᵀQᵀ), A = diag(α), and has the parameters
(Q, R, α, β) first, QᵀQ = I: `bayessel.models.rvm` declares it. The update is that of `SparseBlock`, without the
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from bayessel._pymc import LogTransform
from bayessel.samplers.collapsed_sweep import Reduced
from bayessel.samplers.conjugacy.affine import check_moved
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, distribution_name
from bayessel.samplers.conjugacy.scale import LARGEST_LOG, PRIORS, log_prior
from bayessel.samplers.conjugacy.sparse_block import MOST, update
from bayessel.samplers.log_precision_draws import log_prior_rows


class SparseMarginal:
    """The joint density of α and β.

    Parameters
    ----------
    graph : ModelGraph
    members : sequence of variables
        α and β.

    Raises
    ------
    NotConjugateError
        The structure cannot be proved.
    """

    def __init__(self, graph: ModelGraph, members: Sequence[Variable]) -> None:
        self.graph, self.members = graph, list(members)
        self.target, left, right, alpha, beta = _marginal(graph)
        if {*members} != {alpha, beta}:
            raise NotConjugateError(f"the density of {self.target.name} needs both of its precisions")
        self.scales = [alpha, beta]
        parameters: list[Variable] = []
        for x in self.scales:
            if x not in graph.model.free_RVs or not isinstance(x.owner.op, PRIORS):
                raise NotConjugateError(f"{x.name} has no prior of a precision")
            transform = graph.model.rvs_to_transforms[x]
            if transform is not None and not isinstance(transform, LogTransform):
                raise NotConjugateError(f"{x.name} is sampled through the transform {transform.name}")
            graph.check_free_of_potentials(x)
            # what a joint density has beyond the sum of its rows' terms belongs to it
            if [one for one in graph.children(x) if not hasattr(one.tag, "rest_of")] != [self.target]:
                raise NotConjugateError(f"not only {self.target.name} depends on {x.name}")
            parameters += [v for v in x.owner.op.dist_params(x.owner) if hasattr(v.type, "dtype")]
        if graph.roots(parameters) & {*members}:
            raise NotConjugateError("the prior of one precision depends on the other")
        check_moved(graph, members)
        self._parameters = graph.program(parameters)
        self._n = [sum(hasattr(v.type, "dtype") for v in x.owner.op.dist_params(x.owner)) for x in self.scales]
        self._program = graph.program([left, right, graph.value(self.target)])
        reads = [*self.scales, *self._parameters.inputs, *self._program.inputs]
        self.inputs = self.needs = list(dict.fromkeys(reads))
        self.refresh(dict(graph.initial))

    @property
    def weights(self) -> list[Variable]:
        """None: they are gone."""
        return []

    @property
    def says(self) -> str:
        """What was proved."""
        names = " ".join(distribution_name(x) for x in self.scales[:1])
        return f"{names} prior of precisions of separate weights"

    def refresh(self, env: dict[Variable, Any]) -> None:
        """Take in data and shapes; `env` holds constrained values of all that is needed."""
        self._parameters.refresh()
        self._program.refresh()
        left, R, t = self._program(env)
        if not all(self._program.static):
            raise NotConjugateError(f"the design of {self.target.name} is random")
        if np.shape(env[self.scales[0]]) != (R.shape[1],) or np.size(env[self.scales[1]]) != 1:
            raise NotConjugateError("one precision for each weight is needed, and one for the noise")
        if R.shape[1] > MOST:
            raise NotConjugateError(f"it has {R.shape[1]} weights, and up to {MOST} are drawn so")
        R = np.ascontiguousarray(R, dtype=np.float64)
        z = np.ascontiguousarray(left.T @ t, dtype=np.float64)
        self._data = Reduced(R, R.T @ R, z, R.T @ z, float(np.sum((t - left @ z) ** 2)), len(t))

    def move(self, env: dict[Variable, Any], point: dict[str, Any], rng: np.random.Generator) -> None:
        """Put the next values into `env`, and the sampled ones into `point`."""
        u = np.concatenate([np.log(env[x]).ravel() for x in self.scales])
        found, rows = self._parameters(env), []
        for x, n, part in zip(self.scales, self._n, (slice(None, -1), slice(-1, None)), strict=True):
            prior = log_prior(x.owner.op, [np.asarray(v, dtype=np.float64) for v in found[:n]])
            rows.append(log_prior_rows(prior, -1.0, np.zeros(len(u[part]))))
            found = found[n:]
        names = f"the weights of {self.target.name}"
        update(rng, self._data, u, np.ones(len(u), dtype=bool), np.concatenate(rows), names)
        u = np.clip(u, -LARGEST_LOG, LARGEST_LOG)
        alpha, beta = self.scales
        env[alpha] = np.exp(u[:-1])
        env[beta] = np.exp(u[-1]).reshape(np.shape(env[beta]))
        for x in self.scales:
            self.graph.space.write(x, point, env)


def sparse_marginal(graph: ModelGraph) -> SparseMarginal | None:
    """The precisions of a model from which the weights are gone, where it is such a model."""
    try:
        _, _, _, *scales = _marginal(graph)
        return SparseMarginal(graph, scales)
    except NotConjugateError:
        return None


def _marginal(graph: ModelGraph) -> tuple[Variable, Variable, Variable, Variable, Variable]:
    """The observed variable and its parameters."""
    for rv in graph.model.observed_RVs:
        if getattr(rv.tag, "linear_marginal", False):
            left, right, alpha, beta = rv.owner.op.dist_params(rv.owner)[:4]
            return rv, left, right, alpha, beta
    raise NotConjugateError("weights and their precisions are needed")
