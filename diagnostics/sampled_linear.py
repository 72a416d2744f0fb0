r"""Draws of a linear model as one message: weights, precisions and noise that stand for all draws.

The precisions are geometric means over the draws, the weights arithmetic ones: of ``w``, or where the weights were
integrated out, of their means given the precisions of each draw,

.. math:: \mu = A^{-1}\Phi^T C^{-1}(t - b), \qquad C = \beta^{-1}I + \Phi A^{-1}\Phi^T
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bayessel._check import FloatArray
from bayessel.criteria.capabilities import Message, matters

#: draws at which the means of weights that were integrated out are computed
MOST_DRAWS = 100
#: names of what the models have: the design, or the factors that it is the product of
DESIGNS = (("Phi",), ("Phi_left", "Phi_right"), ("Phi_left", "Phi_singular", "Phi_axes"))


class _Linear(NamedTuple):
    """Design (N, M), target (N,), and of each draw the precisions (S, M), the noise's (S,) and the intercept (S,)."""

    design: FloatArray
    target: FloatArray
    alpha: FloatArray
    beta: FloatArray
    intercept: FloatArray | None
    weights: FloatArray | None
    is_shared: bool


class SentDraws(NamedTuple):
    """What is sent of draws, and the design (N, M) and target (N,) that they are of."""

    message: Message
    design: FloatArray
    target: FloatArray


def has_weights(names: Any) -> bool:
    """Whether variables and data of these names are those of `bayessel.models.linear` and `rvm` on a design."""
    return {"t", "beta"} <= set(names) and any(set(design) <= set(names) for design in DESIGNS)


def sent_draws(trace: Any) -> SentDraws | None:
    """What a description length sends of the draws; None where they are of no linear model on a design."""
    linear = _read(trace)
    if linear is None:
        return None
    Phi, t = linear.design, linear.target
    alpha, beta = np.exp(np.log(linear.alpha).mean(axis=0)), float(np.exp(np.log(linear.beta).mean()))
    b = 0.0 if linear.intercept is None else float(linear.intercept.mean())
    weights = _means(linear) if linear.weights is None else linear.weights.mean(axis=0)
    sent = matters(weights, np.linalg.norm(Phi, axis=0), beta)
    kept = weights[sent]
    if linear.intercept is not None and matters(np.array([b]), np.sqrt(len(t)), beta)[0]:
        kept = np.append(kept, b)
    bias = int(linear.intercept is not None)
    factor = cho_factor(_covariance(Phi, alpha, beta), lower=True)
    form = (t - b) @ cho_solve(factor, t - b)
    message = Message(
        weights=kept,
        n_basis=Phi.shape[1] + bias,
        n_candidates=Phi.shape[1] + bias,
        n_precisions=1 if linear.is_shared else int(sent.sum()),
        beta=beta,
        sum_squares=float(np.sum((t - b - Phi @ weights) ** 2)),
        log_evidence=float(-0.5 * (len(t) * np.log(2.0 * np.pi) + form) - np.log(np.diag(factor[0])).sum()),
    )
    return SentDraws(message, Phi, t)


def _read(trace: Any) -> _Linear | None:
    if "constant_data" not in trace or "observed_data" not in trace or "t" not in trace["observed_data"]:
        return None
    posterior, data = trace["posterior"], trace["constant_data"]
    known = {str(name) for group in (posterior, data, trace["observed_data"]) for name in group.data_vars}
    if not has_weights(known):
        return None
    target = np.asarray(trace["observed_data"]["t"].values, dtype=float)
    parts = next(names for names in DESIGNS if set(names) <= known)
    design = _design([np.asarray(data[name].values, dtype=float) for name in parts])
    own = np.asarray(data["prior_scale"].values) if "prior_scale" in data else None
    design = design if own is None else design / own
    draws = posterior.sizes["chain"] * posterior.sizes["draw"]

    def read(name: str) -> FloatArray | None:
        """Values of each draw; of what was fixed the same for all."""
        if name in posterior:
            values = np.asarray(posterior[name].transpose("chain", "draw", ...).values, dtype=float)
            return values.reshape(draws, *values.shape[2:])
        fixed = np.asarray(data[name].values, dtype=float) if name in data else None
        return None if fixed is None else np.broadcast_to(fixed, (draws, *fixed.shape))

    if target.shape != design.shape[:1]:
        return None
    alpha = read("alpha") if own is None else np.broadcast_to(own**-2.0, (draws, len(own)))
    beta, weights = read("beta"), read("w")
    if alpha is None or beta is None:
        return None
    whole = np.broadcast_to(alpha[:, None] if alpha.ndim == 1 else alpha, (draws, design.shape[1]))
    return _Linear(design, target, whole, beta, read("b"), weights, alpha.ndim == 1)


def _design(parts: list[FloatArray]) -> FloatArray:
    """The product of the factors; singular values are a diagonal."""
    if len(parts) == 3:
        left, singular, axes = parts
        return np.asarray((left * singular) @ axes)
    return parts[0] if len(parts) == 1 else np.asarray(parts[0] @ parts[1])


def _covariance(Phi: FloatArray, alpha: FloatArray, beta: float) -> FloatArray:
    return np.asarray((Phi / alpha) @ Phi.T + np.eye(len(Phi)) / beta)


def _means(linear: _Linear) -> FloatArray:
    """Mean weights, given the precisions of draws evenly spread over all."""
    places = np.unique(np.linspace(0, len(linear.beta) - 1, MOST_DRAWS).astype(int))
    total = np.zeros(linear.design.shape[1])
    for place in places:
        alpha, beta = linear.alpha[place], float(linear.beta[place])
        deviation = linear.target - (0.0 if linear.intercept is None else linear.intercept[place])
        factor = cho_factor(_covariance(linear.design, alpha, beta), lower=True)
        total += linear.design.T @ cho_solve(factor, deviation) / alpha
    return np.asarray(total / len(places))
