"""Small numerical tools against exact arithmetic, and the thread limit they work under.

Guards `bayessel._numerics`.
"""

import threading
from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bayessel import _numerics
from bayessel._numerics import accurate_residual, few_threads, local_minima, rank_one_update


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_overlapping_limits_give_the_threads_back():
    """The process is not left with one BLAS thread for good, whatever the order of coming and going."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        inside, leave = threading.Barrier(2), threading.Event()

        def other():
            with few_threads(1):
                inside.wait()
                leave.wait()

        worker = threading.Thread(target=other)
        worker.start()
        with few_threads(1):
            inside.wait()
            leave.set()
            worker.join()
        assert blas_threads() == before


def test_a_number_kept_for_the_whole_process_is_given_back_too(monkeypatch):
    """Some builds of BLAS have one number for all Python threads: who enters second must not take 1 for what was."""

    class Library:
        num_threads = 4

        def set_num_threads(self, number: int) -> None:
            self.num_threads = number

    library = Library()
    monkeypatch.setattr(_numerics, "_blas", lambda: [library])
    first, second = threading.Event(), threading.Event()

    def other():
        with few_threads(1):
            first.set()
            second.wait(60.0)

    worker = threading.Thread(target=other)
    worker.start()
    assert first.wait(60.0)
    with few_threads(1):
        second.set()
        worker.join(60.0)
    assert library.num_threads == 4


def test_nested_limits_hold_until_the_outer_ends():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with few_threads(1):
            with few_threads(1):
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_large_arrays_keep_their_threads():
    with threadpool_limits(2, user_api="blas"):
        with few_threads(10**9):
            assert blas_threads() == {2}


def test_residuals_keep_the_digits_that_cancel(rng):
    """C - A B where all but rounding cancels, against fractions; plain arithmetic is wrong in the first digit."""
    A, B = rng.normal(size=(6, 9)) * 10.0 ** rng.integers(-3, 4, size=(6, 9)), rng.normal(size=(9, 5))
    less = rng.normal(size=(6, 5))
    C = A @ B + less
    F = np.vectorize(Fraction, otypes=[object])
    exact = (F(C) - F(less) - F(A) @ F(B)).astype(np.float64)
    np.testing.assert_allclose(accurate_residual(C, A, B, less=less), exact, rtol=1e-6, atol=1e-25)
    assert not np.allclose(C - less - A @ B, exact, rtol=1e-2, atol=0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rank_one_update_is_the_factor_of_the_changed_matrix(rng, sign):
    R = np.linalg.qr(rng.normal(size=(20, 6)))[1]
    x = 0.3 * rng.normal(size=6) @ R / 3.0
    new = rank_one_update(R, x, sign)
    np.testing.assert_allclose(new.T @ new, R.T @ R + sign * np.outer(x, x), rtol=1e-12, atol=1e-13)
    assert np.allclose(new, np.triu(new))


def test_a_removal_that_leaves_nothing_is_refused(rng):
    R = np.linalg.qr(rng.normal(size=(20, 3)))[1]
    with pytest.raises(ArithmeticError):
        rank_one_update(R, 2.0 * R[0], -1.0)


def test_minima_of_a_curve_with_a_plateau_and_two_ends():
    """cos x + 0.1 x has minima at arcsin(0.1) + pi (2k + 1) - ...: the roots of sin x = 0.1 with cos x < 0."""
    grid = np.arange(0.0, 20.0, 0.05)
    found = local_minima(lambda x: np.cos(x) + 0.1 * x, grid)
    inner = sorted(x for x, _ in found if 0.0 < x < grid[-1])
    expected = [np.pi - np.arcsin(0.1) + 2.0 * np.pi * k for k in range(3)]
    np.testing.assert_allclose(inner, expected, atol=1e-6)
    assert [v for _, v in found] == sorted(v for _, v in found)
    flat = local_minima(lambda x: np.maximum(np.abs(x - 10.0), 1.0), grid)
    assert len(flat) == 1
    assert flat[0][1] == pytest.approx(1.0)
