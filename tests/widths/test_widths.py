"""Comparing kernel widths: the table, the widths and centres that are taken, interruption.

Guards `bayessel.widths._compare`, `bayessel.widths._evidence`, `bayessel.widths._finished_widths`,
`bayessel.widths.grids`.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel.fit import Status
from bayessel.widths import _evidence, _finished_widths, suggest_widths
from bayessel.widths.grids import coarse_to_fine, spread_rows
from tests.problems.widths import HIGHER, LOWER, WIDTHS, many_widths, noisy_sine, three_widths


@pytest.fixture(scope="module")
def data():
    return noisy_sine()


@pytest.fixture(scope="module")
def comparison():
    return three_widths()


@pytest.fixture(scope="module")
def wide():
    return many_widths()


def test_best_reads_the_table_the_right_way_round(wide):
    for name in HIGHER:
        assert wide.best(name) == wide.table[name].idxmax()
    for name in LOWER:
        assert wide.best(name) == wide.table[name].idxmin()
    assert set(wide.fits) == {wide.best(name) for name in HIGHER + LOWER}


def test_memory_is_bounded_by_keeping_the_leaders_only(data, monkeypatch):
    seen = []
    enter = _finished_widths.FinishedWidths.enter

    def watched(self, place, outcome):
        enter(self, place, outcome)
        seen.append((place.width, outcome.row, {kept.width for kept in self._predictions}))

    monkeypatch.setattr(_finished_widths.FinishedWidths, "enter", watched)
    monkeypatch.setattr(_finished_widths, "KEPT", 0)
    found = bs.compare_widths(*data, np.geomspace(0.05, 20, 13), progressbar=False)
    assert len(seen) == 13
    for k, (_, _, kept) in enumerate(seen):
        table = pd.DataFrame({r: row for r, row, _ in seen[: k + 1]}).T.sort_index()
        leaders = {table[name].astype(float).idxmax() for name in HIGHER}
        leaders |= {table[name].astype(float).idxmin() for name in LOWER if table[name].notna().any()}
        assert kept == leaders
    assert set(found.fits) == {found.best(name) for name in found.criteria if found.optima(name)}


def test_table_has_what_a_person_needs(comparison):
    columns = list(comparison.table.columns)
    assert columns[:9] == [*HIGHER, "gcv", "loo", "loo_se", "loo_diff_se", "uev", "fpe", "bic"]
    assert set(columns[9:]) == {"gamma", "noise_std", "lam", "n_basis", "status", "notes", *(f"lam_{n}" for n in LOWER)}
    assert comparison.table.index.name == "width"
    assert tuple(comparison.table.index) == WIDTHS
    assert (comparison.table["n_basis"] == 26).all()
    assert set(comparison.table["status"]) <= set(Status.__members__)
    some = bs.compare_widths(comparison.X, comparison.y, WIDTHS, criteria=("bic", "evidence"), progressbar=False)
    assert list(some.table.columns) == [
        "evidence",
        "bic",
        "gamma",
        "noise_std",
        "lam",
        "lam_bic",
        "n_basis",
        "status",
        "notes",
    ]
    pd.testing.assert_series_equal(some.table["bic"], comparison.table["bic"])


def test_widths_are_sorted_once_each_and_may_come_as_anything(data):
    for given in ([0.8, 0.4, 0.4], (w for w in (0.8, 0.4)), np.array([0.8, 0.4]), pd.Series([0.4, 0.8]), {0.4, 0.8}):
        table = bs.compare_widths(*data, given, criteria=["gcv"], progressbar=False).table
        assert_array_equal(table.index, [0.4, 0.8])
    assert list(bs.compare_widths(*data, 0.4, criteria=["gcv"], progressbar=False).table.index) == [0.4]


def test_names_come_from_frames(data):
    frame = pd.DataFrame({"time": data[0], "dose": data[0] ** 2})
    found = bs.compare_widths(frame, pd.Series(data[1], name="effect"), [1.0], criteria=["gcv"], progressbar=False)
    assert (found.names, found.target) == (("time", "dose"), "effect")
    assert found.fingerprint == fingerprint(frame.to_numpy(), data[1])


def test_fewer_centres_are_spread_rows(data):
    x, y = data
    found = bs.compare_widths(x, y, [0.5], centers=7, criteria=["gcv"], progressbar=False)
    assert found.n_centers == 7 and (found.table["n_basis"] == 7).all()
    same = bs.compare_widths(x, y, [0.5], centers=spread_rows(x[:, None], 7), criteria=["gcv"], progressbar=False)
    assert same.table.loc[0.5, "gcv"] == found.table.loc[0.5, "gcv"]


def test_spread_rows_cover_and_repeat_nothing(rng):
    X = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)
    rows = spread_rows(X, 100)
    assert len(rows) == 30 and len(np.unique(rows, axis=0)) == 30
    line = np.arange(101.0)[:, None]
    # the middle, both ends, then the middles of the halves
    assert_array_equal(np.sort(spread_rows(line, 5).ravel()), [0, 25, 50, 75, 100])


def test_spread_rows_do_not_depend_on_the_units_of_the_inputs(rng):
    X, units = rng.normal(size=(60, 2)), np.array([2.0**-10, 2.0**10])
    assert_array_equal(spread_rows(X * units, 9), spread_rows(X, 9) * units)


def test_suggested_widths_span_the_distances(data):
    grid = suggest_widths(np.array([0.0, 1.0, 2.0, 3.0, 10.0]), 9)
    assert_allclose([grid[0], grid[-1]], [0.5, 20.0])
    assert_allclose(np.diff(np.log(grid)), np.log(40) / 8, rtol=0.03)
    with pytest.raises(ValueError, match="all rows of X are equal"):
        suggest_widths(np.ones((4, 2)))
    curve = bs.compare_widths(*data, suggest_widths(data[0]), criteria=["evidence"], progressbar=False)
    assert not curve.optima("evidence")[0].at_end


def test_interrupted_run_gives_what_is_done(data, monkeypatch):
    grid = np.geomspace(0.05, 20, 17)
    whole = bs.compare_widths(*data, grid, progressbar=False)
    real, calls = _evidence.fit_evidence, []

    def stopping(spectrum):
        calls.append(spectrum)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(spectrum)

    monkeypatch.setattr(_evidence, "fit_evidence", stopping)
    part = bs.compare_widths(*data, grid, progressbar=False)
    assert part.interrupted and not whole.interrupted
    assert "interrupted: 5 of 17 widths" in part.verdict()
    # coarse to fine: the five finished ones are evenly spread over all of the grid
    assert_allclose(part.table.index, grid[[0, 4, 8, 12, 16]])
    ours = part.table.drop(columns="loo_diff_se")  # relative to the best so far
    pd.testing.assert_frame_equal(ours, whole.table.loc[ours.index, ours.columns])
    assert set(part.fits) == {part.best(name) for name in part.criteria}
    assert_array_equal(part.fits[part.best("gcv")].mean.shape, data[1].shape)


def test_interruption_before_anything_is_done_is_passed_on(data, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_evidence, "fit_evidence", stop)
    with pytest.raises(KeyboardInterrupt):
        bs.compare_widths(*data, [0.1, 1.0], progressbar=False)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 25, 64])
def test_order_visits_every_width_once_and_halves_the_gaps(n):
    order = coarse_to_fine(range(n))
    assert sorted(order) == list(range(n))
    for done in range(2, n):
        gaps = np.diff(sorted(order[:done]))
        assert gaps.max() <= 4 * (n - 1) / (done - 1) + 1
