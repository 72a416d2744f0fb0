"""What a description length sends of a linear model: its weights that matter, and how many could have been sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.criteria.capabilities import Message, matters
from bayessel.linear.weight_posterior import Posterior


def message_of(
    posterior: Posterior, coef: FloatArray, sizes: FloatArray, intercept: float, alpha: Any, n_candidates: int
) -> Message:
    """The message of columns in use.

    Parameters
    ----------
    posterior
        Of the weights.
    coef, sizes
        Weights (k,) of the columns in use and the lengths of these columns.
    intercept
        The bias of a centred fit: one more weight, with a flat prior, and one more candidate.
    alpha
        Precisions of the weights; one number where all share it.
    n_candidates
        Columns of the dictionary.
    """
    spectrum, beta = posterior.spectrum, posterior.beta
    sent = matters(coef, sizes, beta)
    weights = coef[sent]
    if spectrum.centred:
        bias = np.array([intercept])
        weights = np.append(weights, bias[matters(bias, np.sqrt(spectrum.n_counted), beta)])
    return Message(
        weights=weights,
        n_basis=len(coef) + int(spectrum.centred),
        n_candidates=n_candidates + int(spectrum.centred),
        n_precisions=1 if np.ndim(alpha) == 0 else int(sent.sum()),
        beta=float(beta),
        sum_squares=posterior.sum_squares,
    )


def sizes_of(posterior: Posterior) -> FloatArray:
    """Lengths of all columns as the factorisation has them; infinite where it has let go of them."""
    spectrum, columns = posterior.spectrum, posterior.columns
    sizes = np.full(columns.n_columns, np.inf)
    if len(columns.active):
        squares = np.einsum("k,kj,kj->j", spectrum.s**2, spectrum.Vt, spectrum.Vt)
        sizes[columns.active] = np.sqrt(squares) / columns.scale
    return sizes
