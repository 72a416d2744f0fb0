"""Choose how the dictionary is held for a search."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from bayessel._check import FloatArray
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.columns.interpolative import skeleton
from bayessel.linear.columns.numerical_range import compress
from bayessel.linear.rvm.gram_form import GramForm
from bayessel.linear.rvm.orthogonal_form import OrthogonalForm

#: entries of W up to which the orthogonal form costs nothing worth saving
SMALL = 400_000
#: largest numerical rank for which orthogonal coordinates are tried
MOST = 400


def choose_form(
    columns: Columns, t: FloatArray, n_counted: float | None = None
) -> tuple[Columns, OrthogonalForm | GramForm]:
    """Orthogonal coordinates where they are few (small problems, smooth dictionaries), inner products elsewhere.

    `n_counted` is the number of rows that the noise counts, default all. Returns the columns too, which may have been
    stored, or learned their lengths, on the way.
    """
    n, p = columns.shape
    rows = n if n_counted is None else n_counted
    found = skeleton(columns, MOST)
    if found is not None:
        U, W = found
        columns = Columns(columns.source, np.linalg.norm(W, axis=0))
        return columns, rotated(W * columns.inverse_lengths, U, t, rows)
    columns = columns.store()
    compressed = compress(columns, min(MOST, n, p))
    if compressed is None and n <= p and n * p <= SMALL:
        return columns, OrthogonalForm(columns.take(np.arange(p)), t, 0.0, rows)
    if compressed is None:
        return columns, GramForm(columns, t, n_rows=rows)
    basis, W = compressed[0], compressed[1].T
    if W.size <= SMALL or len(W) <= 100:
        return columns, rotated(W, basis, t, rows)
    if len(W) > 0.3 * n:
        return columns, GramForm(columns, t, n_rows=rows)
    z = basis.T @ t
    rest = t - basis @ z
    return columns, GramForm(Columns(np.ascontiguousarray(W)), z, float(rest @ rest), rows)


def rotated(W: FloatArray, U: FloatArray, t: FloatArray, n_rows: float) -> OrthogonalForm:
    """Orthogonal form in the coordinates of U."""
    z = U.T @ t
    rest = t - U @ z
    more = U.T @ rest
    rest = rest - U @ more
    return OrthogonalForm(np.ascontiguousarray(W), z + more, float(rest @ rest), n_rows)


def thin(columns: FloatArray, t: FloatArray, n_rows: float | None = None) -> OrthogonalForm:
    """Orthogonal form of a few columns, exact to rounding."""
    U, W = qr(np.asfortranarray(columns), mode="economic", overwrite_a=True, check_finite=False)
    return rotated(W, U, t, len(t) if n_rows is None else n_rows)
