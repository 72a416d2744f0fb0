"""Weights with a precision of their own each, these precisions and that of the noise: updated as one block.

t = A x + c + noise, x_i ~ N(m_i, 1/τ_i) and noise ~ N(0, 1/β), where τ_i = s_i y_i^(−2k), y_i one element of a positive
variable that stands nowhere else, and β likewise. Weights of fixed prior precision and a fixed β may stand beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pymc.exceptions import SamplingError
from pytensor.graph.basic import Variable

from bayessel._check import FloatArray
from bayessel.samplers.collapsed_sweep import Reduced, collapsed_sweep
from bayessel.samplers.conjugacy.block import GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.conjugacy.scale import LARGEST_LOG, PRIORS, ScaleConditional
from bayessel.samplers.log_precision_draws import NO_PRIOR, log_prior_rows

#: weights beyond which a draw, of this number cubed multiplications, takes longer than it is worth
MOST = 600


class _Scale(NamedTuple):
    """A positive variable: the weights that its elements are precisions of (−1: of the noise), one each."""

    conditional: ScaleConditional
    weights: Any


class SparseBlock:
    """The joint conditional of weights, their precisions and that of the noise.

    Parameters
    ----------
    graph : ModelGraph
    members : sequence of variables
        The Normal ones are the weights, the others their scales and that of the noise.

    Raises
    ------
    NotConjugateError
        The structure cannot be proved.
    """

    def __init__(self, graph: ModelGraph, members: Sequence[Variable]) -> None:
        self.graph, self.members = graph, list(members)
        scales = [x for x in members if isinstance(x.owner.op, PRIORS)]
        self.weights = [x for x in members if x not in scales]
        if not self.weights or not scales:
            raise NotConjugateError("weights and their precisions are needed")
        self.block = GaussianBlock(graph, self.weights)
        if len(self.block.factors) != 1 or not all(self.block.own) or not self.block.children:
            raise NotConjugateError("the weights must stand in the mean of one variable, and there alone")
        [self.factor] = self.block.factors
        if not self.factor.constant_design:
            raise NotConjugateError("the coefficients of the weights are random")
        self.target = self.factor.child
        self.conditionals = [ScaleConditional(graph, [x]) for x in scales]
        inside = set(self.weights)
        for conditional in self.conditionals:
            children = set(graph.children(conditional.x))
            if not (children <= inside or children == {self.target}):
                raise NotConjugateError(f"{conditional.x.name} is no scale of the weights alone, or the noise alone")
        drawn = {*members}
        reads = [*self.block.inputs, *(v for one in self.conditionals for v in one.inputs)]
        self.inputs = list(dict.fromkeys(reads))
        self.needs = [v for v in self.inputs if v not in inside]
        self._others = [v for v in self.needs if v not in drawn]
        with np.errstate(all="ignore"):
            self.refresh(dict(graph.initial))

    @property
    def says(self) -> str:
        """What was proved."""
        return f"the mean of {self.target.name} is linear in the weights, which have precisions of their own"

    @property
    def separate(self) -> int:
        """How many weights have a precision of their own."""
        return sum(len(one.weights) for one in self.scales if one.weights[0] >= 0)

    # --- preparation ---------------------------------------------------------------------------------------------

    def refresh(self, env: dict[Variable, Any]) -> None:
        """Take in data and shapes; `env` holds constrained values of all that is needed."""
        block, factor = self.block, self.factor
        block.refresh(env)
        if block.size > MOST:
            raise NotConjugateError(f"it has {block.size} weights, and up to {MOST} are drawn so")
        if not factor.one_precision:
            raise NotConjugateError(f"rows of {self.target.name} have different precisions, not all of them known")
        assert factor.A is not None
        R, left = factor.A.reduced
        self._R, self._left = np.ascontiguousarray(R), left
        self._gram = np.ascontiguousarray(factor.A.gram)
        self.scales = [self._read(conditional, env) for conditional in self.conditionals]
        taken = np.concatenate([one.weights for one in self.scales])
        if len(set(taken.tolist())) < len(taken):
            raise NotConjugateError("a weight has several scales")
        self._is_separate = np.zeros(block.size, dtype=bool)
        self._is_separate[taken[taken >= 0]] = True
        static = block.program.static
        means = [static[3 * k + 1] for k in range(len(self.weights))]
        self._data = None
        if factor.y_static and all(means):
            self._data = self._reduced(block.program(env))

    def _read(self, conditional: ScaleConditional, env: dict[Variable, Any]) -> _Scale:
        """Which weight each element belongs to."""
        conditional.refresh(env)
        x, shape = conditional.x, conditional.shape
        size = int(np.prod(shape))
        if conditional.children[0].name == self.target.name:
            if size != 1:
                raise NotConjugateError(f"{x.name} has {size} elements for one noise")
            return _Scale(conditional, np.array([-1]))
        found = np.full(size, -1)
        for child in conditional.children:
            k = next(k for k, one in enumerate(self.weights) if one.name == child.name)
            first, n = self.block.slices[k].start, int(np.prod(self.block.shapes[k]))
            places = np.zeros(n, dtype=int) if size == 1 else child.places
            places = np.arange(n) if places is None else places
            if (found[places] >= 0).any() or len(set(places.tolist())) < n:
                raise NotConjugateError(f"several weights share an element of {x.name}")
            found[places] = first + np.arange(n)
        if (found < 0).any():
            raise NotConjugateError(f"an element of {x.name} belongs to no weight")
        return _Scale(conditional, found)

    def _reduced(self, values: list[Any]) -> Reduced:
        """Targets about the prior mean, in the coordinates of R."""
        y = self.factor.target(values)
        assert self.factor.A is not None
        y = y - self.factor.A.A @ self._prior(values, 1)
        z = y if self._left is None else self._left @ y
        rest = 0.0 if self._left is None else float(np.sum((y - self._left.T @ z) ** 2))
        z = np.ascontiguousarray(z, dtype=np.float64)
        return Reduced(self._R, self._gram, z, self._R.T @ z, rest, len(y))

    def _prior(self, values: list[Any], what: int) -> FloatArray:
        """Prior means (1) or precisions (2) of all weights."""
        parts = [np.broadcast_to(values[3 * k + what], shape).ravel() for k, shape in enumerate(self.block.shapes)]
        return np.concatenate(parts).astype(np.float64)

    # --- the update ----------------------------------------------------------------------------------------------

    def move(self, env: dict[Variable, Any], point: dict[str, Any], rng: np.random.Generator) -> None:
        """Put the next values into `env`, and the sampled ones into `point`."""
        block = self.block
        values = block.program(env)
        data = self._reduced(values) if self._data is None else self._data
        u = np.append(np.log(self._prior(values, 2)), np.log(self.factor.scalar_precision(values)[0]))
        is_drawn, priors = np.append(self._is_separate, False), np.empty((block.size + 1, 8))
        priors[:] = NO_PRIOR
        offsets = []
        for one in self.scales:
            conditional = one.conditional
            twice = 2.0 * conditional.power
            offsets.append(u[one.weights] + twice * np.log(env[conditional.x]).ravel())
            is_drawn[one.weights] = True
            priors[one.weights] = log_prior_rows(conditional.prior_now(env), twice, offsets[-1])
        w = update(rng, data, u, is_drawn, priors, ", ".join(str(x.name) for x in self.weights))
        w += self._prior(values, 1)
        for one, offset in zip(self.scales, offsets, strict=True):
            log_x = (offset - u[one.weights]) / (2.0 * one.conditional.power)
            env[one.conditional.x] = np.exp(np.clip(log_x, -LARGEST_LOG, LARGEST_LOG)).reshape(one.conditional.shape)
        for x, place, shape in zip(self.weights, block.slices, block.shapes, strict=True):
            env[x] = w[place].reshape(shape)
        for x in self.members:
            self.graph.space.write(x, point, env)


def update(
    rng: np.random.Generator, data: Reduced, u: FloatArray, is_drawn: Any, priors: FloatArray, names: str
) -> FloatArray:
    """Weights, and the log precisions u updated in place; `names` are those of the weights."""
    w = np.empty(len(u) - 1)
    collapsed_sweep(rng, data, u, is_drawn, priors, w)
    if not np.isfinite(w.sum()):
        raise SamplingError(
            f"the conditional of {names} has left double precision: log prior precisions from {u[:-1].min():.3g} to "
            f"{u[:-1].max():.3g}; narrow the priors of the scales, or rescale the data"
        )
    return w
