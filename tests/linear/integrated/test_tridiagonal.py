"""Sums of the evidence from a tridiagonal form, against a singular value decomposition of the design.

Guards `bayessel.linear.integrated.tridiagonal`.
"""

import numpy as np
import pytest

from bayessel.linear.integrated.tridiagonal import Tridiagonal, quad_and_log_det

LAM = np.geomspace(1e-6, 1e3, 13)


def by_singular_values(B, t):
    """The same sums, written out."""
    U, s, _ = np.linalg.svd(B)
    s2 = np.zeros(len(t))
    s2[: len(s)] = s**2
    z2 = (U.T @ t) ** 2
    quad = np.array([lam * np.sum(z2 / (s2 + lam)) for lam in LAM])
    return quad, np.array([np.sum(np.log1p(s2 / lam)) for lam in LAM])


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (9, 4), (9, 9), (12, 30)])
@pytest.mark.parametrize("side", ["rows", "columns"])
def test_sums_are_those_of_the_singular_values(rng, n, k, side):
    B, t = rng.normal(size=(n, k)) * np.geomspace(1.0, 1e-3, k), rng.normal(size=n)
    form = Tridiagonal.of(B @ B.T, t) if side == "rows" else Tridiagonal.of(B.T @ B, B.T @ t, float(t @ t))
    other = Tridiagonal.of(np.eye(5), np.ones(5))  # of another size, in the same call
    quad, log_det = quad_and_log_det([form, other], LAM)
    expected = by_singular_values(B, t)
    np.testing.assert_allclose(quad[0], expected[0], rtol=1e-6, atol=1e-9 * float(t @ t))
    np.testing.assert_allclose(log_det[0], expected[1], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(quad[1], 5.0 * LAM / (1.0 + LAM))


def test_a_vector_of_zeros_has_no_length(rng):
    B = rng.normal(size=(6, 3))
    quad, log_det = quad_and_log_det([Tridiagonal.of(B @ B.T, np.zeros(6))], LAM)
    assert (quad < 1e-300).all()
    np.testing.assert_allclose(log_det[0], by_singular_values(B, np.ones(6))[1], rtol=1e-9)


def test_the_first_coordinate_stays_along_the_vector(rng):
    """The top left entry is the form of that direction, and the reduction keeps the eigenvalues."""
    A = rng.normal(size=(7, 7))
    A, t = A + A.T, rng.normal(size=7)
    form = Tridiagonal.of(A, t)
    np.testing.assert_allclose(form.diagonal[0], t @ A @ t / (t @ t))
    whole = np.diag(form.diagonal) + np.diag(form.beside, 1) + np.diag(form.beside, -1)
    np.testing.assert_allclose(np.linalg.eigvalsh(whole), np.linalg.eigvalsh(A), atol=1e-10)
