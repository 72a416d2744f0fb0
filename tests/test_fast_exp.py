"""The exponential that runs in vectors, against many digits.

Guards `bayessel._fast_exp`.
"""

import mpmath
import numpy as np
from numpy.testing import assert_array_equal

from bayessel._fast_exp import exp_of_negative, parts


def test_against_many_digits(rng):
    x = -np.concatenate([rng.exponential(5.0, 2000), rng.uniform(0.0, 708.0, 2000), 10.0 ** rng.uniform(-300, 0, 500)])
    with mpmath.workdps(40):
        exact = [mpmath.exp(mpmath.mpf(float(v))) for v in x]
        got = [exp_of_negative(v) for v in x]
        error = [abs((mpmath.mpf(float(a)) - b) / b) for a, b in zip(got, exact, strict=True)]
    assert max(error) < 4.5e-16


def test_both_parts_of_positive_numbers(rng):
    for y in rng.uniform(0.0, 709.0, 500):
        two, grown = parts(y)
        assert np.log2(two) == np.rint(np.log2(two))
        with mpmath.workdps(40):
            assert abs((mpmath.mpf(two) + mpmath.mpf(grown)) / mpmath.exp(mpmath.mpf(float(y))) - 1) < 4.5e-16


def test_ends():
    assert_array_equal([exp_of_negative(v) for v in (0.0, -0.0, -709.0, -1e300, -np.inf)], [1.0, 1.0, 0.0, 0.0, 0.0])
    assert np.isnan(exp_of_negative(np.nan))
