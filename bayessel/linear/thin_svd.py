"""Thin singular value decompositions that do not fail, and the coordinates of a target in them."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from bayessel._check import FloatArray


def thin_svd(A: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return U, s, V^T; of empty arrays too."""
    if min(A.shape) == 0:
        return np.zeros((A.shape[0], 0)), np.zeros(0), np.zeros((0, A.shape[1]))
    try:
        U, s, Vt = sl.svd(A, full_matrices=False, check_finite=False)
    except sl.LinAlgError:  # the divide-and-conquer driver can fail where the slower one does not
        U, s, Vt = sl.svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return U, s, Vt


def svd_of_triangle(R: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return s, z = U^T y, V^T of a triangle, and the squared length of y outside its numerical range.

    Wide kernels leave a triangle of low numerical rank. Pivoting finds it at a fraction of the cost of an SVD, and
    what is dropped is no larger than the backward error of the SVD itself.
    """
    (qr, tau), P, pivots = sl.qr(R, mode="raw", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(P))
    rank = int((diagonal > np.finfo(float).eps * diagonal[0]).sum())
    if rank > 0.8 * len(R) or np.linalg.norm(P[rank:]) > 4.0 * np.finfo(float).eps * np.linalg.norm(P):
        U, s, Vt = thin_svd(R)
        return s, U.T @ y, Vt, 0.0
    rotated = sl.lapack.dormqr("L", "T", qr, tau, np.array(y[:, None], order="F"), 64 * len(R))[0][:, 0]
    U, s, Vp = thin_svd(P[:rank])
    Vt = np.empty_like(Vp)
    Vt[:, pivots] = Vp
    return s, U.T @ rotated[:rank], Vt, float(rotated[rank:] @ rotated[rank:])


def coordinates(U: FloatArray, y: FloatArray, n_flat: int = 0) -> tuple[FloatArray, FloatArray]:
    """Coordinates of y in U, and what is left; done twice, so that the remainder is orthogonal to working precision."""
    z = U.T @ y
    off = y - U @ z
    dz = U.T @ off
    off = off - U @ dz
    if U.shape[0] <= U.shape[1] + n_flat:
        off = np.zeros_like(off)  # everything is spanned; what is left is rounding
    return z + dz, off
