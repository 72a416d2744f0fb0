"""Blocks of Normal variables in which the log odds of Bernoulli variables are affine: Gaussian given Pólya-Gamma ones.

Given ω ~ PG(1, η), a Bernoulli variable y with log odds η is worth the Gaussian factor exp(−½ ω (η − (y − ½)/ω)²). The
ω are drawn given the present block, the block given them, and they are dropped. Other children of the block may be
Normal, with means affine in it, as of `GaussianBlock`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BernoulliRV

from bayessel._check import FloatArray
from bayessel.samplers.conditionals import Likelihood
from bayessel.samplers.conjugacy.affine import affine
from bayessel.samplers.conjugacy.block import BlockFactor, GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.polya_gamma import polya_gamma


class LogisticBlock(GaussianBlock):
    """The joint conditional of Normal variables, of whose children at least one is Bernoulli.

    Raises
    ------
    NotConjugateError
        The structure cannot be proved.
    """

    def __init__(self, graph: ModelGraph, members: Sequence[Variable]) -> None:
        super().__init__(graph, members)
        if not self.children:
            raise NotConjugateError("nothing depends on it")
        if not any(isinstance(factor, LogisticFactor) for factor in self.factors):
            raise NotConjugateError(f"{self.children[0].name} is not Bernoulli")
        self.needs = self.inputs  # the present block too, for the Pólya-Gamma variables

    @property
    @override
    def says(self) -> str:
        logistic = [f.child for f in self.factors if isinstance(f, LogisticFactor)]
        normal = [str(c.name) for c in self.children if c not in logistic]
        names = ", ".join(str(c.name) for c in logistic)
        means = f"; the mean of {', '.join(normal)} too" if normal else ""
        return f"Normal; the log odds of {names} are linear in it (by Pólya-Gamma variables){means}"

    @override
    def _read_child(self, child: Variable, block: frozenset[Variable], place: int) -> list[Variable]:
        if not isinstance(child.owner.op, BernoulliRV):
            return super()._read_child(child, block, place)
        log_odds = log_odds_of(self.graph, child)
        try:
            part = affine(self.graph, log_odds, block)
        except NotConjugateError as error:
            raise NotConjugateError(f"in the log odds of {child.name}, {error}") from error
        if part is None or part.coefficients:
            raise NotConjugateError(f"its coefficients in the log odds of {child.name} are no data")
        self.factors.append(LogisticFactor(self.graph, child, part, place, inside=False))
        return [self.graph.value(child), log_odds, pt.constant(1.0)]


class LogisticFactor(BlockFactor):
    """The factor of a Bernoulli variable: its ω are drawn anew whenever it is asked for."""

    @override
    def refresh(self, block: GaussianBlock, env: dict[Variable, Any], values: list[Any], static: list[bool]) -> None:
        super().refresh(block, env, values, static)
        self.one_precision = False

    @override
    def current(
        self, block: GaussianBlock, env: dict[Variable, Any], values: list[Any], rng: np.random.Generator
    ) -> tuple[Likelihood, float | FloatArray, FloatArray]:
        assert self.A is not None  # its coefficients are data
        present = np.concatenate([np.ravel(env[x]) for x in block.members])
        offset = np.broadcast_to(values[self.place + 1], self.shape).ravel()
        omega = polya_gamma(self.A.design @ present + offset, rng)
        return self.A, omega, (np.ravel(values[self.place]) - 0.5) / omega - offset


def log_odds_of(graph: ModelGraph, child: Variable) -> Variable:
    """The η of a Bernoulli variable with p = σ(η)."""
    (p,) = graph.parameters(child)
    node = p.owner
    if node is None or not isinstance(node.op, Elemwise) or not isinstance(node.op.scalar_op, ps.Sigmoid):
        raise NotConjugateError(f"{child.name} is not given by its log odds, logit_p")
    log_odds: Variable = node.inputs[0]
    return log_odds
