"""Names of data: digests of arrays, which differ where the data of results differ."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

#: numbers of a large array that are named at a time
_HASHED = 1 << 16


def fingerprint(*arrays: Any) -> str:
    """Return 16 hexadecimal digits that name the data: shapes and float64 values, in order."""
    digest = hashlib.sha256()
    for array in arrays:
        array = np.asarray(array)
        digest.update(repr(array.shape).encode())
        rows = np.atleast_1d(array)
        height = max(1, _HASHED * len(rows) // max(rows.size, 1))
        for start in range(0, len(rows), height):
            values = np.ascontiguousarray(rows[start : start + height], dtype=np.float64)
            digest.update((values + 0.0).astype("<f8", copy=False).data)  # + 0.0 makes -0.0 and 0.0 one number
    return digest.hexdigest()[:16]
