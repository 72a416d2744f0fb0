r"""Weights of the members of an average: by evidence, by stacking of log densities of rows held out, or as given.

By evidence (Barrio, Romero and Belanche 2010, eq. 15)

.. math:: w_k = P(H_k|t) = \frac{p(t|H_k)P(H_k)}{\sum_j p(t|H_j)P(H_j)};

by stacking the weights under which the mixture predicts rows held out best,

.. math:: \max_w \sum_n \log\sum_k w_k\, p_k(t_n|x_n, \text{other rows}) + \frac{1}{K}\sum_k\log w_k,

a prior worth one row in all. Members with the same densities count as one there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.estimators.held_out import mean_gain, stacking_weights

#: the candidate that every average has besides its members
CONSTANT = "constant"
#: stacking: members with less weight than this are left out
LEAST_WEIGHT = 0.02
#: stacking: steps of the iteration, and rows that the prior of all weights together counts
STEPS, PRIOR_ROWS = 2000, 1.0


@dataclass(frozen=True, eq=False)
class MemberWeights:
    """Weights and where they come from.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per member: ``weight``, what it was judged by, and in words ``why``.
    gains : (N,) array or None
        Nats over the constant of each row under the mixture, where rows were held out or left out.
    """

    table: pd.DataFrame
    gains: FloatArray | None = None

    @property
    def weights(self) -> FloatArray:
        """Weights that sum to one, in the order of the table."""
        return self.table["weight"].to_numpy(dtype=np.float64)


def by_evidence(log_evidences: Mapping[str, float], prior: Mapping[str, float] | None = None) -> MemberWeights:
    """Weights proportional to prior times evidence; the prior is equal for all where none is given."""
    names, values = list(log_evidences), np.array(list(log_evidences.values()), dtype=np.float64)
    before = np.full(len(names), 1.0 / len(names)) if prior is None else np.array([prior[name] for name in names])
    before = before / before.sum()
    with np.errstate(divide="ignore"):
        logs = values + np.log(before)
    weights = np.exp(logs - logsumexp(logs))
    best = float(values.max())
    said = ["the largest evidence" if v == best else f"{best - v:.3g} nats less evidence than the best" for v in values]
    columns = {"weight": weights, "log_evidence": values, "prior": before, "difference": best - values, "why": said}
    return MemberWeights(_table(names, columns))


def by_stacking(names: Sequence[str], gains: FloatArray, source: str) -> MemberWeights:
    """Stacking of K members, from the nats over a constant of each row under each, (K, N); the constant is the last.

    `source` says in a few words which rows these are.
    """
    gains = np.vstack([np.where(np.isnan(gains), -np.inf, gains), np.zeros(gains.shape[1])])
    alone, which, copies = np.unique(gains, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    prior = PRIOR_ROWS / len(alone)
    weights = (stacking_weights(alone, prior, STEPS) / copies)[which]
    weights = np.where(weights * copies[which] < LEAST_WEIGHT, 0.0, weights)
    weights = weights / weights.sum()
    means = np.array([mean_gain(line) for line in gains])
    best = gains[int(np.argmax(means))]
    with np.errstate(invalid="ignore", divide="ignore"):
        differences = means.max() - means
        errors = [_error(line) for line in gains]
        apart = [_error(best - line) for line in gains]
        mixed = logsumexp(gains + np.log(weights)[:, None], axis=0)
    why = [
        f"{mean:+.2f} ± {error:.2f} nats a row over a constant, on {source}"
        for mean, error in zip(means, errors, strict=True)
    ]
    why[-1] = "a constant with normal noise, always a candidate"
    columns = {
        "weight": weights,
        "gain": means,
        "gain_error": errors,
        "difference": differences,
        "difference_error": apart,
        "why": why,
    }
    return MemberWeights(_table([*names, CONSTANT], columns), mixed)


def as_given(names: Sequence[str], given: Mapping[str, float], why: str = "given") -> MemberWeights:
    """Weights that somebody else chose, made to sum to one."""
    weights = np.array([float(given.get(name, 0.0)) for name in names])
    return MemberWeights(_table(names, {"weight": weights / weights.sum(), "why": why}))


def beside_constant(chosen: MemberWeights, share: float) -> MemberWeights:
    """The weights times a share, the rest for the constant."""
    table = chosen.table.copy()
    table["weight"] *= share
    table.loc[CONSTANT, "weight"] = 1.0 - share
    table.loc[CONSTANT, "why"] = "rows left out are not predicted clearly better than by a constant"
    return MemberWeights(table, chosen.gains)


def without_folds(names: Sequence[str], why: str) -> MemberWeights:
    """Equal weights for all members and the constant."""
    every = [*names, CONSTANT]
    return as_given(every, dict.fromkeys(every, 1.0), why)


def _table(names: Sequence[str], columns: Mapping[str, object]) -> pd.DataFrame:
    return pd.DataFrame(dict(columns), index=pd.Index(list(names), name="member"))


def _error(terms: FloatArray) -> float:
    """Standard error of a mean over rows."""
    return float(terms.std(ddof=1) / np.sqrt(len(terms))) if np.isfinite(terms).all() and len(terms) > 1 else np.nan
