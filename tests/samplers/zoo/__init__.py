"""A zoo of models that users write: what is sampled, by which steps, and the truth by numerical integration."""

from tests.samplers.zoo import discrete, hierarchies, mixtures, pitfalls, regressions, series

ALL = [*series.CASES, *mixtures.CASES, *regressions.CASES, *hierarchies.CASES, *discrete.CASES, *pitfalls.CASES]
REFUSED = discrete.REFUSED
