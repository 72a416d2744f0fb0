"""Seeds of units, that depend on the seed of the whole and on their names alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np


def seed_sequence(seed: int | Sequence[int], *names: object) -> np.random.SeedSequence:
    """The seed of what is called so, from the seed of the whole and the names: order and company do not matter.

    The first 128 bits of SHA-256 of the names enter a ``numpy.random.SeedSequence`` beside the seed.
    """
    words = np.frombuffer(hashlib.sha256("\0".join(map(str, names)).encode()).digest()[:16], dtype="<u4")
    whole = [seed] if isinstance(seed, int) else list(seed)
    return np.random.SeedSequence([*whole, *map(int, words)])
