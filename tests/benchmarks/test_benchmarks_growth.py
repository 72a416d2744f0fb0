"""Seconds of the defaults as rows grow: steps between neighbouring sizes.

Guards `benchmarks.growth`.
"""

from benchmarks.growth import ESTIMATORS, rows, steps


def test_steps_are_counted_for_each_doubling():
    assert steps([64, 128, 256], [1.0, 2.4, 6.1]) == ["128 to 256: 2.5"]
    assert steps([100, 400], [1.0, 6.0]) == []  # two doublings: up to 6.25
    assert steps([64, 128], [0.001, 0.04]) == []  # a few hundredths of a second are not told apart


def test_rows_are_those_of_their_seed_and_size():
    (X, y), (again, _) = rows(64, 8, 0), rows(64, 8, 0)
    assert X.shape == (64, 8) and y.shape == (64,) and (X == again).all()
    assert len(ESTIMATORS) == 8
