"""The benchmark of averaging: its tables, its pairs, and averaging beside picking on a few draws."""

import numpy as np
import pytest

from benchmarks import averaging


def test_tables_are_the_same_for_the_same_draw():
    for draw in range(3):
        name, X, y, n = averaging.table(draw)
        again = averaging.table(draw)
        assert name == again[0] == ("friedman", "sinc", "process")[draw]
        assert 30 <= n <= 100 and len(X) == len(y) == n + averaging.HELD_OUT
        assert (X == again[1]).all() and (y == again[2]).all()


def test_an_average_by_evidence_loses_no_more_than_the_weight_of_the_best(monkeypatch):
    """log Σ w p ≥ log w_best + log p_best in every row; the best of 6 has at least its prior, a tenth at an end."""
    monkeypatch.setattr(averaging, "N_WIDTHS", 6)
    monkeypatch.setattr(averaging, "HELD_OUT", 60)
    found = averaging.over_widths(1, "evidence")
    assert found["evidence: by evidence, beside the best by evidence"] > -np.log(10.0)
    assert len(found) == 3 and np.isfinite(list(found.values())).all()


def test_the_command_prints_every_comparison(capsys, monkeypatch):
    monkeypatch.setattr(averaging, "N_WIDTHS", 3)
    monkeypatch.setattr(averaging, "HELD_OUT", 30)
    assert averaging.main(["--draws", "1", "--first", "1"]) == 0
    said = capsys.readouterr().out
    assert said.count("±") == 7 and "gp: stacking" in said


@pytest.mark.slow
def test_averaging_over_widths_beats_picking_one():
    """In standard errors of the paired differences, none counting for more than half a nat, over sixty tables."""
    for name, one in averaging.differences(range(60), False).items():
        one = np.clip(one, -0.5, 0.5)
        error = one.std(ddof=1) / np.sqrt(len(one))
        assert one.mean() > -4.0 * error, name
        if name.startswith("evidence"):
            assert one.mean() > 2.0 * error, name
