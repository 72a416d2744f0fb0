"""A joint normal likelihood in two observed variables, so that each row has a term and the sum is the joint density.

Of t ~ N(μ, C) with precision matrix Λ = C⁻¹ each row has, given all others,

    t_i | t_{−i} ~ N(t_i − [Λ(t − μ)]_i / Λ_ii, 1/Λ_ii).

Their log densities are what leave-one-out criteria need (Bürkner, Gabry and Vehtari 2021), but they do not sum to
log p(t). So ``t`` has these terms, and ``t_rest`` has log p(t) less their sum, one number. Together they are log p(t),
whoever samples or tempers; `arviz.loo` needs ``var_name="t"``, and does not take one number for one observation.
"""

from __future__ import annotations

from typing import Any

import pymc as pm
import pytensor.tensor as pt

#: what is written beside the terms
TERMS = (
    "leave-one-out conditionals log p(t_i | t_-i, parameters) of a joint normal likelihood; their sum is not log p(t)"
)


def declare_rest(t: Any, joint: Any, terms: Any) -> None:
    """Declare ``t_rest``, what log p(t) has beyond the sum of the terms of t, in the model on the stack."""
    rest: Any = pm.CustomDist(
        "t_rest",
        joint - pt.sum(terms),
        logp=lambda value, rest: rest,
        dist=lambda rest, size: pm.DiracDelta.dist(pt.constant(0.0)),
        signature="()->()",
        observed=pm.Data("t_rest_data", 0.0),
    )
    # for `bs.sample`, which keeps the terms, and what they are beside them
    rest.tag.rest_of, t.tag.terms = t.name, TERMS


def declare_noise(deviation: Any, *data: Any) -> Any:
    """Declare the standard deviation of the noise, as something that goes with these data."""
    return declare_tied("noise", deviation, *data)


def declare_tied(name: str, value: Any, *data: Any) -> Any:
    """Declare a deterministic variable that PyMC computes anew when one of the data has changed, see `Origin`."""
    nothing = pt.zeros_like(pt.add(0.0, *(pt.sum(one) for one in data)))
    return pm.Deterministic(name, value + nothing)
