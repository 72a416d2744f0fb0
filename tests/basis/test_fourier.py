"""Sines and cosines against their formula.

Guards `bayessel.basis.fourier`.
"""

import mpmath
import numpy as np
import pytest

from bayessel.basis import FourierDictionary


def test_columns_are_their_formula(rng):
    X, P = rng.uniform(-9.0, 9.0, size=(12, 2)), (3.0, 7.0)
    D = FourierDictionary(2, period=P).bind(X)
    H = D.design(X)
    place = iter(range(8))
    for d in range(2):
        for k in (1, 2):
            for what in (np.sin, np.cos):
                j = next(place)
                np.testing.assert_allclose(H[:, j], what(2 * np.pi * k * X[:, d] / P[d]), atol=1e-12)
                assert D.names[j] == f"{what.__name__}{k}(x[{d}])"


def test_large_inputs_keep_their_digits():
    x = 1.7e9 + np.arange(5.0)  # seconds since 1970, a period of a year
    H = FourierDictionary(3, period=31_556_952.0).bind(x[:, None]).design(x)
    with mpmath.workdps(40):
        exact = [float(mpmath.sin(6 * mpmath.pi * mpmath.mpf(one) / 31_556_952)) for one in x]
    np.testing.assert_allclose(H[:, 4], exact, atol=1e-14)


def test_without_a_period_twice_the_range_is_taken(rng):
    x = rng.uniform(10.0, 16.0, size=30)
    got = FourierDictionary(2).bind(x[:, None]).design(x)
    want = FourierDictionary(2, period=2.0 * np.ptp(x)).bind(x[:, None]).design(x)
    np.testing.assert_allclose(got, want, atol=1e-12)
    ends = FourierDictionary(1).bind(x[:, None]).design([x.min(), x.max()])
    assert np.abs(ends[0] - ends[1]).max() > 1.0  # the ends of the data are not forced together


def test_inputs_can_be_chosen_and_constant_ones_have_no_columns(rng):
    X = np.column_stack([rng.normal(size=10), np.full(10, 3.0), rng.normal(size=10)])
    assert FourierDictionary(1).bind(X).names == ["sin1(x[0])", "cos1(x[0])", "sin1(x[2])", "cos1(x[2])"]
    some = FourierDictionary(1, period=2.0, inputs=[2], bias=True).bind(X)
    np.testing.assert_allclose(
        some.design(X), np.column_stack([np.sin(np.pi * X[:, 2]), np.cos(np.pi * X[:, 2]), np.ones(10)]), atol=1e-12
    )
    assert repr(some) == "FourierDictionary(1, period=2.0, inputs=[2])"


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"order": 0}, ValueError, "order must be at least 1"),
        ({"order": 1, "period": 0.0}, ValueError, "period must be positive"),
        ({"order": 1, "period": np.nan}, ValueError, "period must be positive"),
        ({"order": 1, "period": "year"}, TypeError, "period must be a number"),
        ({"order": 1, "period": [1.0, 2.0, 3.0]}, ValueError, "one number or 2"),
        ({"order": 1, "inputs": [5]}, ValueError, "X has 2 columns"),
    ],
)
def test_bad_recipes_are_refused(rng, options, error, says):
    with pytest.raises(error, match=says):
        FourierDictionary(**options).bind(rng.normal(size=(8, 2)))


def test_unbound_ones_say_what_to_do():
    with pytest.raises(ValueError, match=r"dictionary.bind\(X\)"):
        FourierDictionary(1).design([[1.0]])
    bound = FourierDictionary(1).bind(np.eye(3))
    with pytest.raises(ValueError, match="3 columns that were bound"):
        bound.design(np.eye(2))
