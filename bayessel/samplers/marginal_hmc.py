"""HMC of what is left of a model when a Gaussian block is integrated out, and exact draws of the block.

Scales, and whatever else is not Gaussian, are sampled without what depends on them: where a chain that moves both walks
along a ridge or down a funnel, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from pymc import Model, modelcontext
from pymc import compile as compile_pymc
from pytensor.gradient import grad
from pytensor.graph.basic import Variable

from bayessel._check import FloatArray
from bayessel._pymc import (
    PointType,
    RandomGeneratorState,
    StatsType,
    dataclass_state,
    get_random_generator,
    join_nonshared_inputs,
)
from bayessel._types import Seed
from bayessel.samplers.conjugacy.block import GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.conjugacy.marginal import MarginalBlock
from bayessel.samplers.density import Density, Variables, value_variables
from bayessel.samplers.persistent_hmc import PersistentHMC, PersistentHMCState


class MarginalDensity(Density):
    """Log density of all variables but a block, which is integrated out, and the block's values given them."""

    def __init__(
        self,
        block: MarginalBlock,
        initial_point: PointType | None,
        compile_kwargs: Mapping[str, object],
        value_alone: bool = False,
    ) -> None:
        self.block = block
        super().__init__(block.graph.model, block.others, initial_point, compile_kwargs)
        if value_alone:
            self.value = compile_pymc([self._joined], self._logp, **compile_kwargs)
            self.value.trust_input = True

    def _compile(
        self, model: Model, variables: Sequence[Variable], start: PointType, compile_kwargs: Mapping[str, object]
    ) -> tuple[Any, dict[str, Any]]:
        form = self.block.form()
        [logp, slope, draw], joined = join_nonshared_inputs(
            start, [form.logp, form.slope, form.draw], list(variables), {}
        )
        self._joined, self._logp = joined, logp
        self._draw = compile_pymc([joined, form.noise], draw, **compile_kwargs)
        self._draw.trust_input = True
        return compile_pymc([joined], [logp, grad(slope, joined)], **compile_kwargs), {}

    def block_given(self, vectors: FloatArray, noise: FloatArray) -> dict[str, FloatArray]:
        """The block's values by name, one row for each vector of the others and each row of standard Normals."""
        rows, block = np.empty(noise.shape), self.block.block
        for row, vector, z in zip(rows, vectors, noise, strict=True):
            row[:] = self._draw(vector, z)
        return {
            str(x.name): rows[:, place].reshape(len(rows), *shape)
            for x, place, shape in zip(block.members, block.slices, block.shapes, strict=True)
        }


@dataclass_state
class MarginalHMCState(PersistentHMCState):
    """With the generator of the block's draws, so that these do not depend on how many are made together."""

    block_rng: RandomGeneratorState


class MarginalHMC(PersistentHMC):
    """`PersistentHMC` of all variables but a Gaussian block, which is integrated out and drawn given the others.

    Parameters
    ----------
    block : variable, name or list
        Normal or flat variables. All that depends on them must be Normal variables, observed or not, with means that
        are affine in all of the block jointly and standard deviations free of it.
    model, rng, initial_point, compile_kwargs
        As for PyMC's own steps. The other variables of the model must be continuous.
    **hmc
        As for `PersistentHMC`.

    Notes
    -----
    Statistics are those of `PersistentHMC`; ``marginal_logp`` is the log density of the others.

    The density that is sampled is log p(θ) = ∫ p(x, θ) dx in closed form: nothing is approximated. One draw of a linear
    regression with an unknown σ costs some microseconds, whatever the number of rows, and the same holds for two
    precisions that are unknown, as in a ridge regression or a hierarchy of Normal variables. In general a Cholesky
    factor is taken for each gradient, of those coordinates that share rows of data.

    See Also
    --------
    GaussianWeightsGibbs : draws the block given the others in turn.
    """

    name = "marginal_hmc"
    _state_class = MarginalHMCState
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {
        "marginal_logp" if name == "model_logp" else name: kind
        for name, kind in PersistentHMC.stats_dtypes_shapes.items()
    }
    density: MarginalDensity

    def __init__(self, block: Variables, *, model: Model | None = None, **hmc: Any) -> None:
        model = modelcontext(model)
        graph = ModelGraph(model)
        members = [model.values_to_rvs[value] for value in value_variables(model, block)]
        try:
            self._block = MarginalBlock(graph, GaussianBlock(graph, members))
        except NotConjugateError as reason:
            names = ", ".join(str(x.name) for x in members)
            raise ValueError(
                f"MarginalHMC needs a block that can be integrated out, and {names} cannot: {reason}; leave it to "
                "another step"
            ) from reason
        self.block_rng = get_random_generator(None)
        super().__init__(self._block.others, model=model, **hmc)
        self.vars = [*self.vars, *(model.rvs_to_values[x] for x in members)]

    def _density_of(
        self, model: Model, initial_point: PointType | None, compile_kwargs: Mapping[str, object]
    ) -> MarginalDensity:
        self._initial_point, self._compile_kwargs = initial_point, compile_kwargs
        return MarginalDensity(self._block, initial_point, compile_kwargs, self.jumps)

    def setup_chain(self, rng: Seed, tune: int, draws: int) -> None:
        """Start a chain: nothing of an earlier one is kept."""
        super().setup_chain(rng, tune, draws)
        self.block_rng = self.rng.spawn(1)[0]

    def data_changed(self) -> None:
        """Sum the data up again."""
        if not self._block.refresh():
            block = self._block
            try:
                self._block = MarginalBlock(block.graph, block.block)
            except NotConjugateError as reason:
                names = ", ".join(str(x.name) for x in block.members)
                raise ValueError(
                    f"MarginalHMC needs a block that can be integrated out, and given the new data {names} cannot: "
                    f"{reason}; make the steps anew, for instance by bs.steps(model)"
                ) from reason
            self.density = self._density_of(self._block.graph.model, self._initial_point, self._compile_kwargs)
            self._evaluate_by(self.density)
        super().data_changed()

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make one draw of the others: K updates; and one of the block."""
        new, [stats] = super().step(point)
        assert self.position is not None
        drawn = self._block_draws(self.position[None])
        stats["marginal_logp"] = stats.pop("model_logp")
        return new | {name: values[0] for name, values in drawn.items()}, [stats]

    def draws(
        self, point: PointType, count: int, seconds: float
    ) -> tuple[PointType, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Make up to `count` draws, those of `step`, until the seconds are over: the last point, all, their statistics.

        None of them may lie beyond the end of the tuning.
        """
        new, found, stats = super().draws(point, count, seconds)
        rows = np.concatenate([found[name].reshape(len(found[name]), -1) for name, _, _ in self.density.layout], axis=1)
        drawn = self._block_draws(rows)
        stats["marginal_logp"] = stats.pop("model_logp")
        return new | {name: values[-1] for name, values in drawn.items()}, found | drawn, stats

    def _block_draws(self, rows: FloatArray) -> dict[str, FloatArray]:
        """The block given each row; only given the last while the chain tunes, for the others are not kept."""
        noise = self.block_rng.standard_normal((len(rows), self._block.size))
        if not self.tune:
            return self.density.block_given(rows, noise)
        last = self.density.block_given(rows[-1:], noise[-1:])
        return {name: np.repeat(value, len(rows), axis=0) for name, value in last.items()}
