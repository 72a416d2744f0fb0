"""The inverse of a factored matrix in its own place: LAPACK's, with what is slow on small matrices cut up."""

from __future__ import annotations

from scipy.linalg import blas, lapack

from bayessel._check import FloatArray

#: the inverse of a triangle is found by halves down to this size, where LAPACK's unblocked code is at its best
SMALL = 64
#: from this size on LAPACK's blocked code is as fast
LARGE = 600


def invert(U: FloatArray) -> None:
    """(UᵀU)⁻¹ from the Fortran-ordered upper factor U, in its upper triangle; what is below stays as it is."""
    if not SMALL < len(U) < LARGE:
        lapack.dpotri(U, lower=0, overwrite_c=1)
        return
    _invert_triangle(U)
    lapack.dlauum(U, lower=0, overwrite_c=1)


def _invert_triangle(U: FloatArray) -> FloatArray:
    """U⁻¹ by halves: [A C; 0 B]⁻¹ = [A⁻¹ −A⁻¹CB⁻¹; 0 B⁻¹], two thirds of it products of matrices."""
    n = len(U)
    if n <= SMALL:
        lapack.dtrtri(U, lower=0, overwrite_c=1)
        return U
    k = (n // 2 + 7) // 8 * 8
    A, B = _invert_triangle(U[:k, :k].copy("F")), _invert_triangle(U[k:, k:].copy("F"))
    C = blas.dtrmm(-1.0, A, U[:k, k:].copy("F"), side=0, lower=0, overwrite_b=1)
    U[:k, :k], U[k:, k:], U[:k, k:] = A, B, blas.dtrmm(1.0, B, C, side=1, lower=0, overwrite_b=1)
    return U
