r"""Find the few orthogonal rows a smooth dictionary really has.

A thousand wide gaussians on a line span, to the last digit, some thirty dimensions. With :math:`F \approx UW`, U of
orthonormal columns, the likelihood needs :math:`W` (r, P), :math:`U^Tt` and the length of what is left of t: r rows
instead of N. The range is found from a few columns; every column's remainder is then measured, and those that stick
out are added until none does.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from bayessel._check import FloatArray
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.columns.orthonormal import remainder

#: remainder of a unit column that counts as nothing
NEGLIGIBLE = 1e-12
#: columns tried at first
SAMPLE = 64


def compress(columns: Columns, most: int) -> tuple[FloatArray, FloatArray] | None:
    """Orthonormal basis U (N, r) of the dictionary's range with r <= most, and W^T (P, r); None if it needs more."""
    n, p = columns.shape
    if min(n, p) <= SAMPLE:
        if p > n:
            return None
        U = range_of(columns.take(np.arange(p)))
        return U, columns.cross(U)
    rng = np.random.default_rng(0)
    order = rng.permutation(p)
    count = SAMPLE
    while True:
        sample = columns.take(order[:count])
        U = range_of(sample)
        if U.shape[1] > 0.9 * count and count >= min(2 * most, p):
            return None
        if U.shape[1] > most or U.shape[1] >= n:
            return None
        if U.shape[1] <= 0.7 * count:
            break
        if count >= p:
            return U, columns.cross(U)
        # a sample whose columns are all independent tells how fast the spectrum falls: hopeless cases stop here
        if count == SAMPLE and _flat(sample):
            return None
        count = min(2 * count, p)
    for _ in range(6):
        W = columns.cross(U)
        left = columns.lengths_squared - np.einsum("ij,ij->i", W, W)
        suspects = np.argsort(-left)[:24]
        rest = remainder(U.T, columns.take(suspects))
        size = np.linalg.norm(rest, axis=0)
        if size.max() <= NEGLIGIBLE:
            return U, W
        more = range_of(rest[:, size > NEGLIGIBLE], floor=NEGLIGIBLE / float(size.max()))
        if U.shape[1] + more.shape[1] > most:
            return None
        U = np.hstack([U, more])
    return None  # columns still stick out: too rough to be worth it


def range_of(A: FloatArray, floor: float = 1e-14) -> FloatArray:
    """Orthonormal basis of the columns of A, directions below `floor` of the largest left out."""
    Q, R, _ = qr(A, mode="economic", pivoting=True, check_finite=False)
    d = np.abs(np.diagonal(R))
    if not len(d) or d[0] == 0.0:
        return np.zeros((len(A), 0))
    return np.ascontiguousarray(Q[:, d > floor * d[0]])


def _flat(sample: FloatArray) -> bool:
    """Whether the singular values of some columns fall so slowly that the rank must be large."""
    gram = sample.T @ sample
    values = np.linalg.eigvalsh(gram)
    return bool(values[0] > 1e-10 * values[-1])
