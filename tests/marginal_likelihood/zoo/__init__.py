"""A zoo of models whose evidence is known: conjugate families, integrals of few dimensions, sums over allocations."""

from tests.marginal_likelihood.zoo import (
    conjugate,
    hierarchies,
    mixtures,
    processes,
    regressions,
    shapes,
    without_comparison,
)

ALL = [
    *conjugate.CASES,
    *hierarchies.CASES,
    *processes.CASES,
    *shapes.CASES,
    *regressions.CASES,
    *mixtures.CASES,
    *without_comparison.CASES,
]
