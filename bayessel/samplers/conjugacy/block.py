"""Blocks of Normal variables that only Normal variables with affine means depend on: one exact joint draw.

Given everything else the block X has the density ∏ exp(−½ Σ τ_f (A_f X − y_f)²): one factor for each child, one for
each member's own prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pymc.exceptions import SamplingError
from pytensor.graph.basic import Variable
from scipy import sparse

from bayessel._check import FloatArray
from bayessel.samplers.arrowhead_block import ArrowheadBlock
from bayessel.samplers.conditionals import GaussianFactor, GaussianSpectrum, gaussian
from bayessel.samplers.conjugacy.affine import MAX_ENTRIES, Affine, affine, check_line, check_moved, design
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, precision


class GaussianBlock:
    """The joint conditional of Normal variables.

    Raises
    ------
    NotConjugateError
        The structure cannot be proved.
    """

    def __init__(self, graph: ModelGraph, members: Sequence[Variable]) -> None:
        self.graph, self.members = graph, list(members)
        block = frozenset(members)
        outputs: list[Variable] = []
        self.own: list[bool] = []  # the prior mean is free of the block
        self.factors: list[BlockFactor] = []
        for x in self.members:
            mean, sd = graph.normal(x)
            check_line(graph, x)
            graph.check_free_of_potentials(x)
            if graph.roots([sd]) & block:
                raise NotConjugateError(f"the standard deviation of {x.name} depends on the block itself")
            part = affine(graph, mean, block)
            self.own.append(part is None)
            if part is not None:
                self.factors.append(BlockFactor(graph, x, part, len(outputs), inside=True))
            outputs += [x, mean, precision(sd)]
        self.children = list(dict.fromkeys(c for x in self.members for c in graph.children(x) if c not in block))
        for child in self.children:
            outputs += self._read_child(child, block, len(outputs))
        self.program = graph.program(outputs)
        needs = [v for p in (self.program, *(f.linear for f in self.factors)) for v in p.inputs]
        self.inputs = list(dict.fromkeys([*self.members, *needs]))  # to take in data and shapes
        self.needs = [v for v in self.inputs if v not in block]  # to draw
        check_moved(graph, self.members)
        self._check_size(graph)

    @property
    def says(self) -> str:
        """What was proved."""
        names = ", ".join(str(c.name) for c in self.children)
        return f"Normal; the mean of {names} is linear in it" if names else "Normal; nothing else depends on it"

    def _read_child(self, child: Variable, block: frozenset[Variable], place: int) -> list[Variable]:
        """Add the factor of a child; return its value, mean and precision as expressions, which come at `place`."""
        graph = self.graph
        mean, sd = graph.normal(child)
        if graph.roots([sd]) & block:
            raise NotConjugateError(f"stands in the standard deviation of {child.name}")
        part = affine(graph, mean, block)
        if part is None:
            raise NotConjugateError(f"stands in {child.name}, but not in its mean")
        self.factors.append(BlockFactor(graph, child, part, place, inside=False))
        return [graph.value(child), mean, precision(sd)]

    def _check_size(self, graph: ModelGraph) -> None:
        initial = graph.initial
        columns = sum(np.size(initial[x]) for x in self.members)
        for factor in self.factors:
            value = graph.program([graph.value(factor.child)])
            value.refresh()
            factor.check_size(np.size(value(initial)[0]), columns)

    # --- preparation ---------------------------------------------------------------------------------------------

    def refresh(self, env: dict[Variable, Any]) -> None:
        """Take in data and shapes; `env` holds constrained values of all that is needed."""
        self.shapes = [np.shape(env[x]) for x in self.members]
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        ends = np.cumsum(sizes)
        self.slices = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]
        self.size = int(ends[-1])
        zeros = {x: np.zeros(shape) for x, shape in zip(self.members, self.shapes, strict=True)}
        self.program.refresh(zeros)
        values = self.program(env)
        static = self.program.static
        self._d, self._m = np.zeros(self.size), np.zeros(self.size)
        self._moving: list[tuple[int, int]] = []  # priors to be read in each draw
        for k, own in enumerate(self.own):
            if own:
                if static[3 * k + 1] and static[3 * k + 2]:
                    self._read_prior(k, values)
                else:
                    self._moving.append((k, 3 * k))
        for factor in self.factors:
            factor.refresh(self, env, values, static)
        constant = all(factor.A is not None and factor.one_precision for factor in self.factors)
        self._arrow = ArrowheadBlock.of([factor.A.design for factor in self.factors if factor.A]) if constant else None
        self._spectrum = None if self._arrow else self._find_spectrum(values, static)

    def _read_prior(self, k: int, values: list[Any]) -> None:
        place, shape = self.slices[k], self.shapes[k]
        self._m[place].reshape(shape)[...] = values[3 * k + 1]
        self._d[place].reshape(shape)[...] = values[3 * k + 2]

    def _find_spectrum(self, values: list[Any], static: list[bool]) -> GaussianSpectrum | None:
        """One constant design of one precision, and prior precisions in constant ratios: diagonal for good."""
        if len(self.factors) != 1 or not all(self.own):
            return None
        [factor] = self.factors
        if factor.A is None or not factor.one_precision:
            return None
        own = [3 * k + 2 for k in range(len(self.members))]
        self._centre_moves = not all(static[3 * k + 1] for k in range(len(self.members)))
        if all(static[i] for i in own):
            self._alpha = -1
            parts = [np.broadcast_to(values[i], shape).ravel() for i, shape in zip(own, self.shapes, strict=True)]
            c = np.sqrt(np.concatenate(parts))
        elif len(self.members) == 1 and np.size(values[own[0]]) == 1:
            self._alpha, c = own[0], np.ones(self.size)
        else:
            return None
        if not np.all(np.isfinite(c) & (c > 0.0)):
            return None
        spectrum = GaussianSpectrum(factor.A.A, c)
        means = [np.broadcast_to(values[3 * k + 1], shape).ravel() for k, shape in enumerate(self.shapes)]
        m = np.concatenate(means)
        self._centre = None if self._centre_moves or not m.any() else spectrum.forth @ m
        self._projection = spectrum.project(factor.y) if factor.y_static else None
        return spectrum

    # --- the draw ------------------------------------------------------------------------------------------------

    def move(self, env: dict[Variable, Any], point: dict[str, Any], rng: np.random.Generator) -> None:
        """Put the next values into `env`, and the sampled ones into `point`."""
        env.update(zip(self.members, self.draw(env, rng), strict=True))
        for rv in self.members:
            self.graph.space.write(rv, point, env)

    def draw(self, env: dict[Variable, Any], rng: np.random.Generator) -> list[FloatArray]:
        """Constrained values of the members."""
        values = self.program(env)
        if self._spectrum is not None:
            X = self._draw_spectrum(values, rng)
        else:
            for k, _ in self._moving:
                self._read_prior(k, values)
            factors = [factor.current(self, env, values, rng) for factor in self.factors]
            X = self._draw_arrow(factors, rng)
        if not np.isfinite(X.sum()):
            names = ", ".join(str(x.name) for x in self.members)
            if np.isnan(X).all() and self._d.min() == 0.0:
                raise SamplingError(
                    f"the data do not determine {names}, and a flat prior does not either: there is no posterior; "
                    "give it a prior of finite width, or leave out columns that others add up to"
                )
            raise SamplingError(
                f"the conditional of {names} has left double precision: prior precisions from {self._d.min():.3g} to "
                f"{self._d.max():.3g}; narrow the priors of the scales, or rescale the data"
            )
        if len(self.shapes) == 1:
            return [X.reshape(self.shapes[0])]
        return [X[place].reshape(shape) for place, shape in zip(self.slices, self.shapes, strict=True)]

    def _draw_arrow(self, factors: list[Any], rng: np.random.Generator) -> FloatArray:
        if self._arrow is not None:
            X = self._arrow.draw([tau for _, tau, _ in factors], [y for *_, y in factors], self._d, self._m, rng)
            if X is not None:
                return X
        return gaussian(factors, self._d, self._m, rng)

    def _draw_spectrum(self, values: list[Any], rng: np.random.Generator) -> FloatArray:
        spectrum, [factor] = self._spectrum, self.factors
        assert spectrum is not None
        alpha = 1.0 if self._alpha < 0 else values[self._alpha].item()
        beta, y = factor.scalar_precision(values)
        z = self._projection if y is None else spectrum.project(y)
        centre = self._centre
        if self._centre_moves:
            m = [np.broadcast_to(values[3 * k + 1], shape).ravel() for k, shape in enumerate(self.shapes)]
            centre = spectrum.forth @ np.concatenate(m)
        assert z is not None
        return spectrum.draw(alpha, beta, z, centre, rng)


class BlockFactor:
    """One Gaussian factor τ(AX − y)²; A, y and τ are kept as far as they do not depend on other random variables."""

    def __init__(self, graph: ModelGraph, child: Variable, part: Affine, place: int, inside: bool) -> None:
        self.child, self.place, self.inside = child, place, inside
        self.linear = graph.program([part.linear])
        self.constant_design = not part.coefficients
        self.A: GaussianFactor | None = None

    def check_size(self, rows: int, columns: int) -> None:
        """Refuse a design that would fill the memory."""
        if rows * columns > MAX_ENTRIES:
            raise NotConjugateError(f"the design of {self.child.name} has {rows} × {columns} entries, too many to keep")

    def refresh(self, block: GaussianBlock, env: dict[Variable, Any], values: list[Any], static: list[bool]) -> None:
        """Take in data and shapes."""
        self.linear.refresh()
        self.shape = np.shape(values[self.place])
        self.check_size(int(np.prod(self.shape)), block.size)
        tau, constant = values[self.place + 2], static[self.place + 2]
        self.one_precision = np.size(tau) == 1 or constant
        self.weight: Any = None  # of the rows, where their precisions are constant but differ
        if constant and np.size(tau) > 1:
            self.weight = np.sqrt(np.broadcast_to(tau, self.shape).ravel())
        self.y_static = static[self.place] and static[self.place + 1]
        self.A = self.design(block, env) if self.constant_design else None
        self.y = self.target(values)

    def design(self, block: GaussianBlock, env: dict[Variable, Any]) -> GaussianFactor:
        """A, column by column: the linear part at each unit vector."""
        A = design(self.linear, block.members, block.shapes, self.shape, env)
        if self.inside:
            own = block.slices[block.members.index(self.child)]
            unit = sparse.eye_array(own.stop - own.start, block.size, k=own.start, format="csc")
            A = unit - A if sparse.issparse(A) else unit.toarray() - A
        if self.weight is not None:
            A = sparse.diags_array(self.weight) @ A
        return GaussianFactor(A, kept=self.constant_design)

    def target(self, values: list[Any]) -> FloatArray:
        """What A x should be: y."""
        value, offset = values[self.place], values[self.place + 1]
        y = np.broadcast_to(offset if self.inside else value - offset, self.shape).ravel()
        return y if self.weight is None else y * self.weight

    def scalar_precision(self, values: list[Any]) -> tuple[float, FloatArray | None]:
        """(τ, y), y None where it is the constant one."""
        tau = 1.0 if self.weight is not None else values[self.place + 2].item()
        return tau, None if self.y_static else self.target(values)

    def current(
        self, block: GaussianBlock, env: dict[Variable, Any], values: list[Any], rng: np.random.Generator
    ) -> tuple[GaussianFactor, float | FloatArray, FloatArray]:
        """(A, τ, y) at the present values of everything else."""
        A = self.design(block, env) if self.A is None else self.A
        y = self.y if self.y_static else self.target(values)
        if self.one_precision:
            return A, self.scalar_precision(values)[0], y
        return A, np.broadcast_to(values[self.place + 2], self.shape).ravel(), y
