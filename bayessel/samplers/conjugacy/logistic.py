"""Blocks of Normal variables in which log odds of labels or counts are affine: Gaussian given Pólya-Gamma variables.

Given ω ~ PG(1, η), a Bernoulli variable y with log odds η is worth the Gaussian factor exp(−½ ω (η − (y − ½)/ω)²). A
negative-binomial count y of dispersion r and mean μ has the log odds ψ = log μ − log r, and given ω ~ PG(y + r, ψ) is
worth exp(−½ ω (ψ − ½(y − r)/ω)²); r may be known or random. The ω are drawn given the present block, the block given
them, and they are dropped. Other children of the block may be Normal, with means affine in it, as of `GaussianBlock`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import BernoulliRV, NegBinomialRV

from bayessel._check import FloatArray
from bayessel.samplers.conditionals import GaussianFactor
from bayessel.samplers.conjugacy.affine import Affine, affine
from bayessel.samplers.conjugacy.block import BlockFactor, GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.polya_gamma import polya_gamma, polya_gamma_sum


class LogisticBlock(GaussianBlock):
    """The joint conditional of Normal variables, of whose children at least one is Bernoulli or negative binomial.

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
            raise NotConjugateError(f"{self.children[0].name} is not Bernoulli, and not negative binomial")
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
        if not isinstance(child.owner.op, BernoulliRV | NegBinomialRV):
            return super()._read_child(child, block, place)
        counts = isinstance(child.owner.op, NegBinomialRV)
        log_odds, trials = _log_odds_of_counts(self.graph, child) if counts else (log_odds_of(self.graph, child), None)
        if trials is not None and self.graph.roots([trials]) & block:
            raise NotConjugateError(f"stands in the dispersion of {child.name}, beside its log odds")
        try:
            part = affine(self.graph, log_odds, block)
        except NotConjugateError as error:
            raise NotConjugateError(f"in the log odds of {child.name}, {error}") from error
        if part is None or part.coefficients:
            raise NotConjugateError(f"its coefficients in the log odds of {child.name} are no data")
        self.factors.append(LogisticFactor(self.graph, child, part, place, counts))
        found = [self.graph.value(child), log_odds, pt.constant(1.0)]
        return found if trials is None else [*found, trials]


class LogisticFactor(BlockFactor):
    """The factor of labels or counts: its ω are drawn anew whenever it is asked for."""

    def __init__(self, graph: ModelGraph, child: Variable, part: Affine, place: int, counts: bool) -> None:
        super().__init__(graph, child, part, place, inside=False)
        self.counts = counts

    @override
    def refresh(self, block: GaussianBlock, env: dict[Variable, Any], values: list[Any], static: list[bool]) -> None:
        super().refresh(block, env, values, static)
        self.one_precision = False

    @override
    def current(
        self, block: GaussianBlock, env: dict[Variable, Any], values: list[Any], rng: np.random.Generator
    ) -> tuple[GaussianFactor, float | FloatArray, FloatArray]:
        assert self.A is not None  # its coefficients are data
        present = np.concatenate([np.ravel(env[x]) for x in block.members])
        offset = np.broadcast_to(values[self.place + 1], self.shape).ravel()
        log_odds, y = self.A.design @ present + offset, np.ravel(values[self.place])
        if not self.counts:
            omega = polya_gamma(log_odds, rng)
            return self.A, omega, (y - 0.5) / omega - offset
        r = np.broadcast_to(values[self.place + 3], self.shape).ravel()
        omega = polya_gamma_sum(y + r, log_odds, rng)
        return self.A, omega, 0.5 * (y - r) / omega - offset


def log_odds_of(graph: ModelGraph, child: Variable) -> Variable:
    """The η of a Bernoulli variable with p = σ(η)."""
    (p,) = graph.parameters(child)
    node = p.owner
    if node is None or not isinstance(node.op, Elemwise) or not isinstance(node.op.scalar_op, ps.Sigmoid):
        raise NotConjugateError(f"{child.name} is not given by its log odds, logit_p")
    log_odds: Variable = node.inputs[0]
    return log_odds


def _log_odds_of_counts(graph: ModelGraph, child: Variable) -> tuple[Variable, Variable]:
    """(ψ, r) of negative-binomial counts: p = σ(−ψ), and PyMC makes −ψ = log r − log μ of a mean μ."""
    r, p = graph.parameters(child)
    node = p.owner
    if node is None or not isinstance(node.op, Elemwise) or not isinstance(node.op.scalar_op, ps.Sigmoid):
        raise NotConjugateError(f"the log odds of {child.name} are not those of its mean: it is not given by mu")
    return pt.neg(_without_exponentials(node.inputs[0])), r


def _without_exponentials(v: Variable) -> Variable:
    """The same expression with log e^x as x, also where e^x is a factor, or divided, or broadcast."""
    node = v.owner
    if node is None or not isinstance(node.op, Elemwise | DimShuffle):
        return v
    op = getattr(node.op, "scalar_op", None)
    if isinstance(node.op, DimShuffle) or isinstance(op, ps.Add | ps.Sub | ps.Neg):
        return node.clone_with_new_inputs([_without_exponentials(x) for x in node.inputs]).outputs[0]
    return _log(node.inputs[0]) if isinstance(op, ps.Log) else v


def _log(v: Variable) -> Variable:
    """Log v as an expression."""
    node = v.owner
    op = getattr(getattr(node, "op", None), "scalar_op", None)
    if isinstance(op, ps.Exp):
        return node.inputs[0]
    if isinstance(op, ps.Mul):
        return pt.add(*(_log(x) for x in node.inputs))
    if isinstance(op, ps.TrueDiv):
        return pt.sub(_log(node.inputs[0]), _log(node.inputs[1]))
    if node is not None and isinstance(node.op, DimShuffle):
        return node.clone_with_new_inputs([_log(node.inputs[0])]).outputs[0]
    return pt.log(v)
