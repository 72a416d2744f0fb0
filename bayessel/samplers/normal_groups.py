"""Normal variables of a model in groups that are drawn together, as far as the model's graph proves it."""

from __future__ import annotations

from pytensor.graph.basic import Variable

from bayessel.samplers.conjugacy.block import GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.conjugacy.logistic import LogisticBlock
from bayessel.samplers.conjugacy.sparse_block import SparseBlock
from bayessel.samplers.conjugacy.sparse_marginal import SparseMarginal, sparse_marginal

#: precisions of separate weights from which on these are drawn with the weights integrated out
FEWEST = 2


def block_of(graph: ModelGraph, members: list[Variable]) -> GaussianBlock:
    """The members as one block, by Pólya-Gamma variables only where it is not one without.

    Raises
    ------
    NotConjugateError
        They are no block.
    """
    try:
        return GaussianBlock(graph, members)
    except NotConjugateError as declined:
        try:
            return LogisticBlock(graph, members)
        except NotConjugateError as other:
            # of labels and counts the second says more
            raise (other if "log odds" in str(other) else declined) from None


def grouped(graph: ModelGraph, candidates: list[Variable]) -> list[GaussianBlock]:
    """Normals that are coupled drawn together, as far as they are conjugate jointly: no walk along their ridges."""
    near = {x: {x, *graph.children(x)} for x in candidates}
    blocks: list[GaussianBlock] = []
    left = list(candidates)
    while left:
        together = coupled(left[0], left, near)
        block = joint_block(graph, together)
        if block is None:
            block = block_of(graph, together[:1])
            for x in together[1:]:
                reach = set().union(*(near[v] for v in block.members))
                if near[x] & reach:
                    block = joint_block(graph, [*block.members, x]) or block
        blocks.append(block)
        left = [x for x in left if x not in block.members]
    return blocks


def joint_block(graph: ModelGraph, members: list[Variable]) -> GaussianBlock | None:
    """The members as one block, or None."""
    try:
        return block_of(graph, members)
    except NotConjugateError:
        return None


def coupled(first: Variable, others: list[Variable], near: dict[Variable, set[Variable]]) -> list[Variable]:
    """All that share a factor with `first`, directly or through others."""
    found, reach, left = [first], set(near[first]), [x for x in others if x is not first]
    while True:
        step = [x for x in left if near[x] & reach]
        if not step:
            return sorted(found, key=others.index) if len(found) > 1 else found
        found += step
        reach = reach.union(*(near[x] for x in step))
        left = [x for x in left if x not in step]


def sparse_of(
    graph: ModelGraph, normal: list[Variable], scales: list[Variable], left: list[Variable], hierarchy: bool = False
) -> SparseBlock | SparseMarginal | None:
    """Weights with a precision of their own each and these precisions, where nothing else has a say in them.

    The weights may be gone from the model.

    Parameters
    ----------
    graph : ModelGraph
    normal, scales, left : list of variables
        Normal ones with conjugate conditionals, scales with such, and all others to be sampled.
    hierarchy : bool
        Whether scales may set the priors of the precisions: they are drawn given these.
    """
    gone = sparse_marginal(graph)
    if gone is not None and {*gone.members} <= {*left}:
        return gone
    for block in grouped(graph, normal):
        if len(block.children) != 1:
            continue
        one = {*block.members, *block.children}
        own = [x for x in scales if {*graph.children(x)} <= one]
        try:
            found = SparseBlock(graph, [*block.members, *own])
        except NotConjugateError:
            continue
        above = [x for x in scales if hierarchy and {*graph.children(x)} <= {*own}]
        near = {*found.members, found.target}
        enters = [
            x for x in (*normal, *scales, *left) if x not in (*found.members, *above) and {*graph.children(x)} & near
        ]
        if found.separate >= FEWEST and not enters:
            return found
    return None
