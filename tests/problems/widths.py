"""Data and comparisons for the tests of compare_widths."""

import functools

import numpy as np

import bayessel as bs
from bayessel.widths._verdict import verdict_sentences

HIGHER = ("evidence", "model-evidence")
LOWER = ("gcv", "loo", "uev", "fpe", "bic")
WIDTHS = (0.15, 0.4, 0.8)


@functools.cache
def noisy_sine():
    rng = np.random.default_rng(11)
    x = np.sort(rng.uniform(-2, 2, 26))
    return x, np.sin(3 * x) + 5.0 + 0.2 * rng.normal(size=26)


@functools.cache
def three_widths():
    return bs.compare_widths(*noisy_sine(), WIDTHS, progressbar=False)


@functools.cache
def many_widths():
    """Many widths, so that the optima lie inside."""
    return bs.compare_widths(*noisy_sine(), np.geomspace(0.05, 20, 24), progressbar=False)


def verdict(*arguments, **options):
    """The sentences of a verdict as one text."""
    return " ".join(verdict_sentences(*arguments, **options))
