"""Likelihoods by the names that people ask for them."""

from __future__ import annotations

from bayessel.likelihoods.base import Likelihood
from bayessel.likelihoods.bernoulli import LogitLabels, ProbitLabels
from bayessel.likelihoods.counts import NegativeBinomialCounts, PoissonCounts
from bayessel.likelihoods.normal_noise import NormalNoise
from bayessel.likelihoods.student import StudentNoise

#: name -> likelihood
LIKELIHOODS: dict[str, type[Likelihood]] = {
    kind.name: kind
    for kind in (NormalNoise, StudentNoise, LogitLabels, ProbitLabels, PoissonCounts, NegativeBinomialCounts)
}


def as_likelihood(value: object) -> Likelihood:
    """Return a likelihood, given as such or by its name.

    Examples
    --------
    >>> as_likelihood("student").names, as_likelihood("logit").labels
    (('log sigma2', 'log nu-2'), True)
    """
    if isinstance(value, Likelihood):
        return value
    if isinstance(value, str):
        if value not in LIKELIHOODS:
            raise ValueError(f"likelihood must be one of {', '.join(map(repr, LIKELIHOODS))}, got {value!r}")
        return LIKELIHOODS[value]()
    raise TypeError(
        f"likelihood must be a name, such as 'student', or one of bayessel.likelihoods, got {type(value).__name__}"
    )
