"""Transforms that help gradient samplers and hinder Gibbs steps, taken off for the latter."""

from __future__ import annotations

import pymc as pm
from pymc.model.transform.conditioning import change_value_transforms

from bayessel.samplers._steps import gibbs_blocks
from bayessel.samplers.conjugacy.graph import ModelGraph, Space


def without_coupled_transforms(model: pm.Model) -> pm.Model:
    """Return the model with weights sampled as they are, where their coordinates depend on what else is sampled.

    A transform such as the whitening of `models.rvm` follows the precisions: a gradient sampler likes it, but to a
    Gibbs step each new precision means new coordinates of all weights, at the price of factorisations that gain
    nothing, for the exact draw of the weights does not care. The distribution is the same. A model without such
    variables is returned as it is.
    """
    space = Space(ModelGraph(model))
    drawn = [rv for block in gibbs_blocks(model) for rv in block]
    coupled = [rv for rv in drawn if space.transform_roots(rv)]
    return change_value_transforms(model, dict.fromkeys(coupled)) if coupled else model
