"""Choose how the dictionary is held for a search."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.sparse.columns import Columns
from bayessel.linear.sparse.compress import compress
from bayessel.linear.sparse.gram import GramForm
from bayessel.linear.sparse.orthogonal import OrthogonalForm

#: entries of W up to which the orthogonal form costs nothing worth saving
SMALL = 200_000
#: largest numerical rank for which orthogonal coordinates are tried
MOST = 400


def choose_form(columns: Columns, t: FloatArray) -> OrthogonalForm | GramForm:
    """Orthogonal coordinates where they are few (small problems, smooth dictionaries), inner products elsewhere."""
    n, p = columns.shape
    U = compress(columns, min(MOST, min(n, p)))
    if U is None and n <= p and n * p <= SMALL:
        return OrthogonalForm(columns.take(np.arange(p)), t, 0.0, n)
    if U is not None and (U.shape[1] * p <= SMALL or U.shape[1] <= 100):
        return rotated(columns.cross(U).T, U, t)
    if U is not None and U.shape[1] < 0.3 * n:
        z = U.T @ t
        form = GramForm(Columns(np.ascontiguousarray(columns.cross(U).T)), z)
        form.outside_of(t - U @ z, n)
        return form
    return GramForm(columns, t)


def rotated(W: FloatArray, U: FloatArray, t: FloatArray) -> OrthogonalForm:
    """Orthogonal form in the coordinates of U."""
    z = U.T @ t
    rest = t - U @ z
    more = U.T @ rest
    rest = rest - U @ more
    return OrthogonalForm(np.ascontiguousarray(W), z + more, float(rest @ rest), len(t))


def thin(columns: FloatArray, t: FloatArray) -> OrthogonalForm:
    """Orthogonal form of a few columns, exact to rounding."""
    U, W = np.linalg.qr(columns)
    return rotated(W, U, t)
