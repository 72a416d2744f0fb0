"""A Gaussian block integrated out of a model: the density of all other variables alone, and the block given them.

Given the others, θ, the model's density is Gaussian in the block x: log p(x, θ) = l + bᵀ(x − x₀) − ½ (x − x₀)ᵀA(x − x₀)
with l, b and A functions of θ. Integrated over x it is

    log p(θ) = l + ½ bᵀA⁻¹b − ½ log|A| + ½ d log 2π,

and x given θ is Normal with mean x₀ + A⁻¹b and precision A. That is exact for any x₀; x₀ is where the block lies at the
model's initial point, so that l and ½ bᵀA⁻¹b, which may be large far from the data, do not cancel.

Factors whose design and targets are data, and whose rows have one precision τ, are summed up once: AᵀA, Aᵀr and rᵀr.
What is left to do for each θ is as little as the structure allows (`precision_forms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import shared
from pytensor.gradient import grad
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.replace import clone_replace, vectorize_graph
from scipy import sparse

from bayessel._check import FloatArray
from bayessel.samplers.conjugacy.block import BlockFactor, GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, precision
from bayessel.samplers.conjugacy.precision_forms import (
    CommonBasis,
    Loose,
    Partition,
    PrecisionForm,
    PrecisionSums,
    product,
)

#: multiplications of one evaluation that are always cheap enough
ALWAYS = 2e5
#: as many times the multiplications of the block's own factors are paid for fewer variables to sample
TIMES = 2.0
#: coordinates of which sums of products are kept and decomposed, once for each chain
MOST = 2_000


class MarginalForm(NamedTuple):
    """Expressions in the value variables of the others.

    Attributes
    ----------
    logp, slope : scalar
        log p(θ), with the Jacobians of the transforms; and what has its gradient, not through a factorisation.
    noise, draw : vector
        Standard Normals as an input, and the block's values one after the other.
    """

    logp: Variable
    slope: Variable
    noise: Variable
    draw: Variable


class _Rows(NamedTuple):
    """Rows √τ (A x − y) of a Normal variable; without τ where the precisions are data, whose roots are in A and y."""

    of: Variable
    tau: Variable | None
    design: Any
    targets: FloatArray
    roots: FloatArray


class MarginalBlock:
    """A Gaussian block that is integrated out.

    Parameters
    ----------
    graph : ModelGraph
    block : GaussianBlock

    Raises
    ------
    NotConjugateError
        It cannot be, or costs more than it gains.
    """

    def __init__(self, graph: ModelGraph, block: GaussianBlock) -> None:
        self.graph, self.block, self.members = graph, block, block.members
        model, inside = graph.model, set(block.members)
        for x in self.members:
            if model.rvs_to_transforms[x] is not None:
                raise NotConjugateError(f"{x.name} is sampled in other coordinates")
        self.others = [value for value in model.value_vars if model.values_to_rvs[value] not in inside]
        if not self.others:
            raise NotConjugateError("nothing is left when it is integrated out")
        groups = self._read()
        self.size = block.size
        self.taus = [group[0].tau for group in groups]
        spreads = [graph.normal(one.of)[1] for group in groups for one in group if one.tau is not None]
        self._spreads: list[Any] = list(dict.fromkeys(spreads))
        self._summed = _variables(groups)
        self._known = self._structure(groups)
        self._origin = shared(np.zeros(0), name="origin")
        self._constant = shared(np.zeros(()), name="constant")
        self._rows = [shared(np.zeros(()), name="rows") for _ in groups]
        self._designs = [shared(np.zeros((0, 0)), name="design") for _ in self.loose]
        sums = self._sum(groups)
        is_loose = bool(self.loose or self.loose_priors)
        try:
            few = not is_loose and len(sums) <= 2
            self._form: PrecisionForm = CommonBasis(sums) if few else Partition(sums, self.size, is_loose)
        except np.linalg.LinAlgError as error:
            raise NotConjugateError("the data do not determine it") from error
        self._check_cost(groups)

    def refresh(self) -> bool:
        """Take in data that have changed; False where their shapes or their structure have too."""
        groups = self._read()
        if self._structure(groups) != self._known:
            return False
        return self._form.take(self._sum(groups))

    # --- what is data -----------------------------------------------------------------------------------------------

    def _read(self) -> list[list[_Rows]]:
        """Rows that can be summed up, by precision; `loose` and `loose_priors` are the others."""
        block, env = self.block, dict(self.graph.initial)
        if not 0 < (size := sum(int(np.size(env[x])) for x in self.members)) <= MOST:
            raise NotConjugateError(f"it has {size} coordinates, and from 1 to {MOST} are integrated out")
        with np.errstate(all="ignore"):  # a scale that begins at zero
            block.refresh(env)
            self._env, self._values = env, block.program(env)
        values, static = self._values, block.program.static
        rows: list[_Rows] = []
        self.loose: list[BlockFactor] = []
        self.loose_priors: list[int] = []
        for factor in block.factors:
            if factor.A is None or not factor.y_static or not factor.one_precision:
                self.loose.append(factor)
                continue
            A, y, roots, tau = factor.A.design, factor.y, factor.weight, None
            if roots is None and static[factor.place + 2]:
                roots = np.full(len(y), np.sqrt(values[factor.place + 2].item()))
                A, y = A * roots[0], y * roots
            elif roots is None:
                roots, tau = np.ones(len(y)), self._tau(factor.child)
            rows.append(_Rows(factor.child, tau, A, y, roots))
        for k, x in enumerate(self.members):
            if not block.own[k]:
                continue
            place, shape = block.slices[k], block.shapes[k]
            unit = sparse.eye_array(place.stop - place.start, block.size, k=place.start, format="csr")
            mean = np.broadcast_to(values[3 * k + 1], shape).ravel()
            if not static[3 * k + 1] or (not static[3 * k + 2] and np.size(values[3 * k + 2]) > 1):
                self.loose_priors.append(k)
            elif static[3 * k + 2]:
                roots = np.sqrt(np.broadcast_to(values[3 * k + 2], shape).ravel())
                if not roots.any():
                    continue  # flat
                rows.append(_Rows(x, None, sparse.diags_array(roots) @ unit, roots * mean, roots))
            else:
                rows.append(_Rows(x, self._tau(x), unit, mean, np.ones(len(mean))))
        return _grouped(rows)

    def _structure(self, groups: Sequence[Sequence[_Rows]]) -> tuple[object, ...]:
        """What the expressions were built for: what is summed up, and shapes of the rest."""
        loose = [(one.child, one.shape, one.one_precision, one.weight is None) for one in self.loose]
        return self.block.shapes, _variables(groups), loose, self.loose_priors

    def _tau(self, rv: Variable) -> Variable:
        """The precision of a Normal variable whose elements have the same, as one number."""
        tau: Any = precision(self.graph.normal(rv)[1])
        return tau if tau.type.ndim == 0 else tau.ravel()[0]

    def _sum(self, groups: Sequence[Sequence[_Rows]]) -> list[PrecisionSums]:
        """Sums by precision, around where the block lies at the initial point."""
        centre = self._centre()
        self._origin.set_value(centre)
        found, constant = [], 0.5 * len(centre) * log(2.0 * pi)
        for i, group in enumerate(groups):
            gram, pull, squares, n = np.zeros((len(centre), len(centre))), np.zeros(len(centre)), 0.0, 0
            for one in group:
                residual = one.targets - one.design @ centre
                own = one.design.T @ one.design
                gram += own.toarray() if sparse.issparse(own) else own
                pull += one.design.T @ residual
                squares += float(residual @ residual)
                n += len(one.roots)
                constant += float(np.log(one.roots).sum()) - 0.5 * len(one.roots) * log(2.0 * pi)
            self._rows[i].set_value(np.asarray(float(n)))
            found.append(PrecisionSums(gram, pull, squares))
        self._constant.set_value(np.asarray(constant))
        for cell, factor in zip(self._designs, self.loose, strict=True):
            if factor.A is not None:
                cell.set_value(np.ascontiguousarray(factor.A.gram if factor.one_precision else factor.A.A))
        return found

    @np.errstate(all="ignore")
    def _centre(self) -> FloatArray:
        """Mean of the block at the initial point of the others; zeros where there is none."""
        block, env, values = self.block, self._env, self._values
        P, b = np.zeros((block.size, block.size)), np.zeros(block.size)
        for factor in block.factors:
            A, tau, y = factor.current(block, env, values, np.random.default_rng(0))
            weighted = (A.A * np.reshape(tau, (-1, 1))).T
            P += weighted @ A.A
            b += weighted @ y
        for k, own in enumerate(block.own):
            if own:
                place, shape = block.slices[k], block.shapes[k]
                d = np.broadcast_to(values[3 * k + 2], shape).ravel()
                P[place, place] += np.diag(d)
                b[place] += d * np.broadcast_to(values[3 * k + 1], shape).ravel()
        if not (np.isfinite(P).all() and np.isfinite(b).all()):
            return np.zeros(block.size)
        size = np.sqrt(np.diag(P)) + (np.diag(P) == 0.0)
        return np.linalg.lstsq(P / np.outer(size, size), b / size)[0] / size

    def _check_cost(self, groups: Sequence[Sequence[_Rows]]) -> None:
        """Refuse where an evaluation costs more than the variables that it saves."""
        columns = float(self.size)
        full = sum(_entries(one.design) for group in groups for one in group)
        cost = self._form.cost
        for factor in self.loose:
            n = float(np.prod(factor.shape))
            if factor.A is None:
                entries, own = n * columns, 4.0 * n * columns**2
            else:
                entries = _entries(factor.A.design)
                own = 4.0 * entries + (0.0 if factor.one_precision else n * columns**2)
            full, cost = full + entries, cost + own
        if cost > ALWAYS + TIMES * 2.0 * full:
            raise NotConjugateError("integrating it out would cost more than it gains")

    # --- expressions ------------------------------------------------------------------------------------------------

    def form(self) -> MarginalForm:
        """Build the expressions; they hold shared variables that `refresh` sets."""
        model, block = self.graph.model, self.block
        values = [model.rvs_to_values[x] for x in self.members]
        shapes = zip(block.slices, block.shapes, strict=True)
        at_origin = {
            value: self._origin[place.start : place.stop].reshape(shape)
            for value, (place, shape) in zip(values, shapes, strict=True)
        }
        left = [rv for rv in model.basic_RVs if rv not in self._summed] + list(model.potentials)
        rest = model.logp(left) if left else pt.constant(0.0)
        loose = Loose()
        if self.loose or self.loose_priors:
            slopes: Any = grad(rest, values, disconnected_inputs="ignore")
            pull: Any = clone_replace(
                [pt.concatenate([one.ravel() for one in slopes])], at_origin, rebuild_strict=False
            )[0]
            loose = Loose(self._loose_precision(values), pull)
        logp = clone_replace([rest], at_origin, rebuild_strict=False)[0] + self._constant
        moving = model.replace_rvs_by_values([tau for tau in self.taus if tau is not None])
        taus = [pt.constant(1.0) if tau is None else moving.pop(0) for tau in self.taus]
        for given, tau, rows in zip(self.taus, taus, self._rows, strict=True):
            if given is not None:
                logp = logp + 0.5 * rows * pt.log(tau)
        noise = pt.vector("noise", shape=(self.size,))
        solved = self._form.solve(taus, loose, noise)
        value, slope = logp + solved.value, logp + solved.slope
        if self._spreads:
            # a precision does not tell σ from −σ
            spreads: Any = model.replace_rvs_by_values(self._spreads)
            is_positive = pt.all([pt.all(pt.gt(spread, 0.0)) for spread in spreads])
            value = pt.switch(is_positive, value, -np.inf)
        return MarginalForm(value, slope, noise, self._origin + solved.draw)

    def _loose_precision(self, values: Sequence[Variable]) -> Variable:
        """The part of A that is no sum of data."""
        model, block, total = self.graph.model, self.block, pt.zeros((self.size, self.size))
        for cell, factor in zip(self._designs, self.loose, strict=True):
            [tau] = model.replace_rvs_by_values([precision(self.graph.normal(factor.child)[1])])
            if factor.A is not None and factor.one_precision:
                # of rows with different precisions, these are in the design
                total = total + (cell if factor.weight is not None else cell * tau.ravel()[0])
                continue
            tau = pt.broadcast_to(tau, factor.shape).ravel()
            design: Any = cell.T if factor.A is not None else self._moving_design(factor, values)
            total = total + product(design.T * tau[:, None], design.T)
        for k in self.loose_priors:
            [tau] = model.replace_rvs_by_values([precision(self.graph.normal(self.members[k])[1])])
            own = np.eye(self.size)[block.slices[k]]
            spread = pt.broadcast_to(tau, block.shapes[k]).ravel()
            total = total + pt.sum(own[:, :, None] * own[:, None, :] * spread[:, None, None], axis=0)
        return total

    def _moving_design(self, factor: BlockFactor, values: Sequence[Variable]) -> Variable:
        """The transposed design of a factor: its linear part at each unit vector."""
        block, unit = self.block, np.eye(self.size)
        linear: Any = self.graph.model.replace_rvs_by_values([factor.linear.outputs[0]])[0]
        columns = {
            value: pt.constant(unit[:, place].reshape(self.size, *shape))
            for value, place, shape in zip(values, block.slices, block.shapes, strict=True)
        }
        rows: Any = vectorize_graph([linear + np.zeros(factor.shape)], columns)[0]
        design = rows.reshape((self.size, int(np.prod(factor.shape))))
        if factor.inside:
            design = unit[:, block.slices[self.members.index(factor.child)]] - design
        return design


def _grouped(rows: Sequence[_Rows]) -> list[list[_Rows]]:
    """Rows of the same precision together."""
    groups: list[list[_Rows]] = []
    for one in rows:
        for group in groups:
            tau = group[0].tau
            if one.tau is tau or (one.tau is not None and tau is not None and equal_computations([one.tau], [tau])):
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _variables(groups: Sequence[Sequence[_Rows]]) -> set[Variable]:
    return {one.of for group in groups for one in group}


def _entries(design: Any) -> float:
    return float(design.nnz if sparse.issparse(design) else np.size(design))
