"""Comparing kernel widths: numbers against dense twins, choices against hand-made curves, the file against itself."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar

import bayessel as bs
from bayessel.diagnostics import WidthComparison, credible_widths, optima, verdict
from bayessel.result import Status, fingerprint
from bayessel.widths import _evidence, _ledger, spread_rows, suggest_widths
from bayessel.widths._grids import coarse_to_fine
from tests import oracles

HIGHER = ("evidence", "model-evidence")
LOWER = ("gcv", "loo", "uev", "fpe", "bic")
WIDTHS = (0.15, 0.4, 0.8)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    x = np.sort(rng.uniform(-2, 2, 26))
    return x, np.sin(3 * x) + 5.0 + 0.2 * rng.normal(size=26)


@pytest.fixture(scope="module")
def comparison(data):
    return bs.compare_widths(*data, WIDTHS, progressbar=False)


@pytest.fixture(scope="module")
def wide(data):
    """Many widths, so that the optima lie inside."""
    return bs.compare_widths(*data, np.geomspace(0.05, 20, 24), progressbar=False)


def design(x, r, kind="gaussian"):
    return oracles.radial(kind, x[:, None], x[:, None], r)


def dense_evidence(Phi, t):
    """Highest log evidence by a general optimiser on the dense covariance, a bias with a flat prior integrated out."""
    Phi, t = Phi - Phi.mean(axis=0), t - t.mean()

    def negative(logs):
        return -oracles.log_evidence(Phi, t, *np.exp(logs)) + 0.5 * (logs[1] + np.log(t @ t))

    starts = [(a, b) for a in (-3.0, 0.0, 3.0) for b in (0.0, 3.0)]
    found = [minimize(negative, s, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11}) for s in starts]
    best = min(found, key=lambda result: result.fun)
    return -best.fun, np.exp(best.x)


def dense_minimum(name, Phi, t, bias=True):
    """Smallest value of a criterion over lambda: fine grid, then a bounded search around its best point."""
    if bias:
        Phi = np.column_stack([Phi, np.ones(len(t))])

    def value(log_lam):
        lam = np.full(Phi.shape[1], np.exp(log_lam))
        if bias:
            lam[-1] = 0.0
        return oracles.criteria(Phi, t, lam)[name]

    grid = np.linspace(-12, 8, 161)
    k = int(np.argmin([value(g) for g in grid]))
    return minimize_scalar(value, bounds=(grid[k] - 0.2, grid[k] + 0.2), method="bounded", options={"xatol": 1e-9}).fun


@pytest.mark.parametrize("r", WIDTHS)
def test_evidence_is_the_dense_maximum(r, data, comparison):
    value, (alpha, beta) = dense_evidence(design(data[0], r), data[1])
    row = comparison.table.loc[r]
    assert_allclose(row["evidence"], value, rtol=1e-8)
    assert_allclose(row["lam"], alpha / beta, rtol=1e-3)
    assert_allclose(row["noise_std"], beta**-0.5, rtol=1e-3)
    Phi = design(data[0], r)
    _, Sigma = oracles.posterior(Phi - Phi.mean(axis=0), data[1], alpha, beta)
    gamma = len(Sigma) - alpha * np.trace(Sigma)
    assert_allclose(row["gamma"], gamma, rtol=1e-3)
    third = value + 0.5 * np.log(2 / gamma) + 0.5 * np.log(2 / (len(data[1]) - 1 - gamma))
    assert_allclose(row["model-evidence"], third, rtol=1e-5)


def test_third_level_is_integrated_where_the_approximation_is_poor(data):
    """Wide functions leave fewer than 3 well-determined parameters: against a sum over (log alpha, log beta)."""
    x, y = data[0], data[0] + data[1] - np.sin(3 * data[0])  # a straight line with noise
    r = 6.0
    row = bs.compare_widths(x, y, [r], criteria=["evidence", "model-evidence"], progressbar=False).table.loc[r]
    assert row["gamma"] < 3
    assert "QUADRATURE(model-evidence)" in row["notes"]
    Phi = design(x, r)
    Phi, t = Phi - Phi.mean(axis=0), y - y.mean()
    log_beta = -2 * np.log(row["noise_std"]) + np.linspace(-4, 3, 36)
    log_alpha = np.log(row["lam"]) - 2 * np.log(row["noise_std"]) + np.linspace(-12, 25, 186)
    logs = [
        [oracles.log_evidence(Phi, t, *np.exp([a, b])) - 0.5 * (b + np.log(t @ t)) for b in log_beta] for a in log_alpha
    ]
    total = np.log(np.exp(np.array(logs) - np.max(logs)).sum() * 0.2 * 0.2) + np.max(logs)
    assert_allclose(row["model-evidence"], total - np.log(2 * np.pi), atol=0.02)


def test_third_level_is_missing_where_it_has_no_answer(rng):
    """Narrow functions, one per row, pass through noise: the approximation would be infinite there."""
    x, y = np.arange(60.0), rng.normal(size=60)
    table = bs.compare_widths(x, y, [0.3, 3.0], progressbar=False).table
    assert not np.isinf(table["model-evidence"]).any()
    missing = table["model-evidence"].isna()
    assert missing.any()
    assert (table["notes"].str.contains("UNDETERMINED(model-evidence)", regex=False) == missing).all()


@pytest.mark.parametrize("r", WIDTHS)
@pytest.mark.parametrize("name", LOWER)
def test_criteria_are_the_dense_minima(name, r, data):
    x, y = data
    centers = np.linspace(-2, 2, 8)
    got = bs.compare_widths(x, y, [r], centers=centers, criteria=[name], progressbar=False)
    Phi = oracles.radial("gaussian", x[:, None], centers[:, None], r)
    assert_allclose(got.table.loc[r, name], dense_minimum(name, Phi, y), rtol=1e-7)
    assert got.table.loc[r, "notes"] == "" or "AT_BOUND" not in got.table.loc[r, "notes"]


@pytest.mark.parametrize("r", WIDTHS[:2])
@pytest.mark.parametrize("name", ["gcv", "loo"])
def test_criteria_are_the_dense_minima_with_one_function_per_row(name, r, data, comparison):
    assert_allclose(comparison.table.loc[r, name], dense_minimum(name, design(data[0], r), data[1]), rtol=1e-7)


@pytest.mark.parametrize("name", ["uev", "fpe", "bic"])
def test_the_interpolating_end_is_no_minimum(name, data):
    """One function per row: the criterion vanishes at lambda = 0, where the fit passes through every row."""
    x, y = data
    grid = [0.03, 0.06, 0.1, 0.15]
    got = bs.compare_widths(x, y, grid, criteria=[name], progressbar=False)
    lams = np.exp(np.linspace(-16, 16, 1601))
    for r in grid:
        Phi = np.column_stack([design(x, r), np.ones(len(x))])
        curve = [oracles.criteria(Phi, y, np.append(np.full(len(x), lam), 0.0)) for lam in lams]
        values, rows_left = (np.array([one[key] for one in curve]) for key in (name, "gamma"))
        rows_left = len(x) - rows_left
        inner = [
            values[k]
            for k in range(1, len(lams) - 1)
            if values[k] < min(values[k - 1], values[k + 1]) and rows_left[k] >= len(x) / 4
        ]
        assert values[rows_left < 2].min() < 0.7 * min(inner, default=np.inf)  # what must not be returned
        found = got.table.loc[r, name]
        if np.isfinite(found):
            # the scan may also find the flat far end, where the weights are nothing: var(y), no inner minimum
            assert_allclose(found, min(inner, default=values[-1]), rtol=2e-3)
        else:
            assert not inner
        assert f"INTERPOLATION({name})" in got.table.loc[r, "notes"]
    if np.isfinite(got.table[name]).any():
        assert "has little to say here" in got.verdict()


@pytest.mark.parametrize("kind", ["multiquadric", "inverse_multiquadric", "cauchy"])
def test_other_kinds_and_no_bias(kind, data):
    x, y = data
    got = bs.compare_widths(x, y - 5, [0.4], criteria=["gcv"], kind=kind, bias=False, progressbar=False)
    assert_allclose(got.table.loc[0.4, "gcv"], dense_minimum("gcv", design(x, 0.4, kind), y - 5, bias=False), rtol=1e-7)


def test_stored_fit_is_the_dense_prediction(data, comparison):
    x, y = data
    r = comparison.best("evidence")
    _, (alpha, beta) = dense_evidence(design(x, r), y)
    Phi = np.column_stack([design(x, r), np.ones(len(x))])
    precision = beta * Phi.T @ Phi + np.diag([alpha] * len(x) + [0.0])
    Sigma = np.linalg.inv(precision)
    fit = comparison.fits[r]
    assert_allclose(fit.mean, Phi @ (beta * Sigma @ Phi.T @ y), atol=1e-4)
    assert_allclose(fit.std, np.sqrt(1 / beta + np.einsum("ij,jk,ik->i", Phi, Sigma, Phi)), rtol=1e-3)
    on_grid = oracles.radial("gaussian", fit.grid[:, None], x[:, None], r)
    assert_allclose(
        fit.grid_mean, np.column_stack([on_grid, np.ones(len(fit.grid))]) @ (beta * Sigma @ Phi.T @ y), atol=1e-4
    )
    assert fit.grid[0] == x.min() and fit.grid[-1] == x.max()


def test_best_reads_the_table_the_right_way_round(wide):
    for name in HIGHER:
        assert wide.best(name) == wide.table[name].idxmax()
    for name in LOWER:
        assert wide.best(name) == wide.table[name].idxmin()
    assert set(wide.fits) == {wide.best(name) for name in HIGHER + LOWER}


def test_memory_is_bounded_by_keeping_the_leaders_only(data, monkeypatch):
    seen = []
    enter = _ledger.Ledger.enter

    def watched(self, place, outcome):
        enter(self, place, outcome)
        seen.append((place.width, outcome.row, {kept.width for kept in self._predictions}))

    monkeypatch.setattr(_ledger.Ledger, "enter", watched)
    monkeypatch.setattr(_ledger, "KEPT", 0)
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


def test_offset_changes_nothing_and_scale_shifts_the_evidence(data, comparison):
    x, y = data
    moved = bs.compare_widths(x, 10.0 * y + 1e6, WIDTHS, progressbar=False).table
    assert_allclose(moved["evidence"], comparison.table["evidence"] - len(y) * np.log(10.0), rtol=1e-7)
    for name in LOWER:
        assert_allclose(moved[name], 100.0 * comparison.table[name], rtol=1e-6)
    assert_allclose(moved["lam"], comparison.table["lam"], rtol=1e-4)


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


def test_suggested_widths_span_the_distances(data):
    grid = suggest_widths(np.array([0.0, 1.0, 2.0, 3.0, 10.0]), 9)
    assert_allclose([grid[0], grid[-1]], [0.5, 20.0])
    assert_allclose(np.diff(np.log(grid)), np.log(40) / 8, rtol=0.03)
    with pytest.raises(ValueError, match="all rows of X are equal"):
        suggest_widths(np.ones((4, 2)))
    curve = bs.compare_widths(*data, suggest_widths(data[0]), criteria=["evidence"], progressbar=False)
    assert not curve.optima("evidence")[0].at_end


# interruption


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


# the file


def test_file_gives_back_the_comparison(wide, tmp_path):
    path = wide.to_netcdf(tmp_path / "result.nc")
    back = WidthComparison.from_netcdf(path)
    pd.testing.assert_frame_equal(back.table, wide.table)
    for name in ("criteria", "names", "target", "model", "kinds", "bias", "held", "planned", "searched", "interrupted",
                 "fingerprint", "created", "versions"):  # fmt: skip
        assert getattr(back, name) == getattr(wide, name), name
    assert_array_equal(back.X, wide.X)
    assert_array_equal(back.y, wide.y)
    assert_array_equal(back.centers, wide.centers)
    assert fingerprint(back.X, back.y) == back.fingerprint
    assert list(back.fits) == list(wide.fits)
    for r, fit in wide.fits.items():
        for part in ("mean", "std", "grid", "grid_mean", "grid_std"):
            assert_array_equal(getattr(back.fits[r], part), getattr(fit, part))
    assert [back.best(name) for name in back.criteria] == [wide.best(name) for name in wide.criteria]
    assert back.optima("uev") == wide.optima("uev")
    assert back.verdict() == wide.verdict()
    assert len(back.plot().axes) == len(wide.plot().axes)
    back.plot_fit(back.best("loo"))
    assert back.to_html(tmp_path / "back.html").read_text() == wide.to_html(tmp_path / "wide.html").read_text()


def test_file_is_a_data_tree_for_arviz(wide, tmp_path):
    import arviz

    tree = arviz.from_netcdf(wide.to_netcdf(tmp_path / "result.nc"))
    assert {"/comparison", "/observed_data", "/predictions"} <= set(tree.groups)
    assert tree["comparison"]["evidence"].dims == ("width",)
    assert_array_equal(tree["comparison"]["gcv"], wide.table["gcv"])
    assert float(tree["comparison"]["evidence"].idxmax("width")) == wide.best("evidence")
    assert tree.attrs["creation_library"] == "bayessel"


def test_several_inputs_and_no_finite_fit_survive_the_file(rng, tmp_path):
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    found = bs.compare_widths(X, y, [0.5, 2.0], names=["a", "b", "ü"], criteria="loo", progressbar=False)
    back = WidthComparison.from_netcdf(found.to_netcdf(tmp_path / "r.nc"))
    assert back.names == ("a", "b", "ü")
    assert len(back.fits[back.best("loo")].grid) == 0
    pd.testing.assert_frame_equal(back.table, found.table)


def test_other_files_are_refused(tmp_path):
    import xarray as xr

    with pytest.raises(ValueError, match="no file"):
        WidthComparison.from_netcdf(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("no NetCDF")
    with pytest.raises(ValueError, match="cannot be read as NetCDF"):
        WidthComparison.from_netcdf(tmp_path / "text.nc")
    xr.DataTree.from_dict({"/posterior": xr.Dataset({"w": ("k", [1.0])})}).to_netcdf(
        tmp_path / "o.nc", engine="h5netcdf"
    )
    with pytest.raises(ValueError, match="no width comparison"):
        WidthComparison.from_netcdf(tmp_path / "o.nc")


# the door

BAD = [
    (dict(widths=[]), ValueError, "widths is empty"),
    (dict(widths=[1.0, 0.0]), ValueError, "every width must be positive"),
    (dict(widths=[-1.0]), ValueError, "positive"),
    (dict(widths=[np.nan]), ValueError, "positive and finite"),
    (dict(widths=[np.inf]), ValueError, "positive and finite"),
    (dict(widths="0.1"), TypeError, "widths must be numbers"),
    (dict(widths=["a"]), TypeError, "every width"),
    (dict(widths=[True]), TypeError, "every width"),
    (dict(widths=None), TypeError, "every width"),
    (dict(model="search", criteria=["uev"]), ValueError, "not for model='search'"),
    (dict(model="gp", kind="cauchy"), ValueError, "kind='gaussian' only, got 'cauchy'"),
    (dict(model="gp", centers=10), ValueError, "no centres"),
    (dict(model="gp", criteria=["mdl-w"]), ValueError, "no functions to count"),
    (dict(model="gp", criteria=["bic"]), ValueError, "not for model='gp'"),
    (dict(model="svm"), ValueError, "model must be one of 'evidence', 'rvm', 'gp', 'search'"),
    (dict(criteria=["aic"]), ValueError, "criterion must be one of 'mdl-w', 'mdl-alpha', 'evidence'"),
    (dict(criteria=["mdl-w"]), ValueError, "not for model='evidence': it counts.* or model='rvm'"),
    (dict(criteria=["uev"], model="rvm"), ValueError, "not for model='rvm': it is the square of the column noise_std"),
    (dict(criteria=["gcv", "holdout"]), ValueError, "needs rows to hold out: holdout=0.2"),
    (dict(holdout=1.0), ValueError, "holdout must be a share of the rows between 0 and 1"),
    (dict(holdout=-0.1), ValueError, "holdout must be positive"),
    (dict(holdout="some"), TypeError, "holdout must be a share of the rows"),
    (dict(holdout=(np.ones((3, 2)), np.ones(3))), ValueError, "holdout's X must have the 1 columns of X"),
    (dict(holdout=(np.ones(3), np.ones(2))), ValueError, "3 rows and 2 values of holdout's y"),
    (dict(X=[1.0, 2.0], y=[1.0, 2.0], holdout=0.9), ValueError, "leaves no row of 2 to fit"),
    (dict(n_jobs=0), ValueError, "n_jobs must not be 0"),
    (dict(n_jobs="all"), TypeError, "n_jobs must be None, a number"),
    (dict(search="loo", criteria="gcv"), ValueError, "search must be one of 'gcv', got 'loo'"),
    (dict(search=3), TypeError, "search must be True or names of criteria"),
    (dict(search=True), ValueError, "two widths to search between"),
    (dict(widths=(1, 2), search=True, tol=0), ValueError, "tol must be positive"),
    (dict(widths=(1, 2), search=True, budget=0), ValueError, "budget must be at least 1"),
    (dict(random_state="x"), TypeError, "random_state must be an integer"),
    (dict(kind=[]), ValueError, "kind is empty"),
    (dict(kind=["gaussian", "box"]), ValueError, "kind must be one of"),
    (dict(kind=3), ValueError, "kind must be one of"),
    (dict(criteria=[]), ValueError, "criteria is empty"),
    (dict(kind="square"), ValueError, "kind must be one of"),
    (dict(centers=0), ValueError, "centers must be at least 1"),
    (dict(centers=2.5), TypeError, "centers must be an integer"),
    (dict(centers=[[1.0, 2.0]]), ValueError, "centers must have the 1 columns of X"),
    (dict(names=["a", "b"]), ValueError, "names must be one per input"),
    (dict(X=[[1.0], [np.nan]], y=[1.0, 2.0]), ValueError, "NaN"),
    (dict(X=[["a"], ["b"]], y=[1.0, 2.0]), TypeError, "numeric"),
    (dict(y=[1.0, 2.0]), ValueError, "one value per row"),
    (dict(y=np.ones((26, 2))), ValueError, "1-D"),
    (dict(X=np.empty((0, 1)), y=[]), ValueError, "at least one row"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_input(change, error, message, data):
    arguments = {"X": data[0], "y": data[1], "widths": [1.0], "progressbar": False} | change
    with pytest.raises(error, match=message):
        bs.compare_widths(**arguments)


def test_asking_for_what_was_not_computed(data):
    found = bs.compare_widths(*data, [0.3, 1.0], criteria=["gcv"], progressbar=False)
    with pytest.raises(ValueError, match="criterion must be one of 'gcv', got 'loo'"):
        found.best("loo")
    with pytest.raises(ValueError, match="criterion must be one of 'gcv'"):
        found.plot(["evidence"])
    other = 0.3 if found.best("gcv") == 1.0 else 1.0
    with pytest.raises(ValueError, match="kept at the preferred widths only"):
        found.plot_fit(other)


@pytest.mark.parametrize(
    ("x", "y"),
    [([1.0, 2.0], [0.0, 1.0]), ([1.0], [3.0]), (np.arange(9.0), np.full(9, 2.0)), (np.ones(8), np.arange(8.0))],
    ids=["two rows", "one row", "constant target", "constant input"],
)
def test_poor_data_give_a_status_not_a_crash(x, y, tmp_path):
    found = bs.compare_widths(x, y, [0.5, 1.0, 2.0], progressbar=False)
    assert len(found.table) == 3
    assert set(found.table["status"]) != {"CONVERGED"}
    assert found.verdict()
    found.to_html(tmp_path / "r.html")
    found.plot()
    WidthComparison.from_netcdf(found.to_netcdf(tmp_path / "r.nc"))


def test_nothing_heavy_is_loaded_for_a_comparison():
    script = (
        "import sys, bayessel as bs; bs.compare_widths([0., 1, 2, 3], [0., 1, 0, 1], [1., 2.]).verdict(); "
        "print([m for m in ('pymc', 'pytensor', 'arviz', 'matplotlib', 'xarray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]" and done.stderr == ""  # nor does a pipe get a progress bar


# reading curves


def short(found):
    """Width, value and whether at the end of each optimum."""
    return tuple(one[:3] for one in found)


def test_optima_of_a_hand_made_curve():
    r = [1, 2, 3, 4, 5, 6, 7, 8]
    v = [3.0, 1, 2, 5, 4, 4, 6, 7]
    assert short(optima(r, v, True)) == ((8, 7.0, True), (4, 5.0, False), (1, 3.0, True))
    assert short(optima(r, v, False)) == ((2, 1.0, False), (5, 4.0, False))
    # from 5 one goes down to 4 before it rises to 7; from 3 to 1 before it rises to 5; from 4 up to 5 before 1
    assert [one.depth for one in optima(r, v, True)] == [np.inf, 1.0, 2.0]
    assert [one.depth for one in optima(r, v, False)] == [np.inf, 1.0]


def test_optima_of_flat_and_broken_curves():
    assert short(optima([1, 2, 3], [5.0, 5.0, 5.0], True)) == ((1, 5.0, True),)
    assert short(optima([1, 2, 3, 4], [0.0, 2.0, 2.0, 1.0], True)) == ((2, 2.0, False),)
    # rounding noise makes no optima
    noisy = -690.0 + 1e-11 * np.random.default_rng(0).normal(size=20)
    assert len(optima(range(1, 21), noisy, True)) == 1
    # nor when the evidence happens to be near zero, nor errors at the rounding of the largest one
    assert len(optima(range(1, 21), 1e-13 * np.random.default_rng(0).normal(size=20), True)) == 1
    assert short(optima([1, 2, 3, 4, 5], [1.0, 3e-33, 1e-33, 2e-33, 1e-33], False)) == ((3, 1e-33, True),)
    # small is not rounding: the units of an error are the user's
    assert short(optima([1, 2, 3], [2e-60, 1e-60, 3e-60], False)) == ((2, 1e-60, False),)
    assert short(optima([1, 2, 3], [np.nan, 1.0, -np.inf], True)) == ((2, 1.0, False),)
    assert short(optima([1, 2, 3], [np.nan, 1.0, 2.0], True)) == ((3, 2.0, True),)
    assert short(optima([1, 2], [np.nan, np.inf], True)) == ()


def test_credible_widths_are_those_within_odds_of_twenty():
    table = pd.DataFrame({"evidence": [-10.0, -2.99, 0.0, -3.0, -20.0]}, index=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert credible_widths(table) == (2.0, 3.0)  # ln 20 = 2.9957
    assert credible_widths(table, nats=15.0) == (1.0, 2.0, 3.0, 4.0)


def made(status="CONVERGED", notes="", **curves):
    """Build a table from hand-made curves over the widths 1, 2, 3, ..."""
    curves = {name.replace("_", "-"): values for name, values in curves.items()}
    n = len(next(iter(curves.values())))
    table = pd.DataFrame(
        curves | {"status": status, "notes": notes}, index=pd.Index(np.arange(1.0, n + 1), name="width")
    )
    return table.rename(columns={"loo-diff-se": "loo_diff_se"}), tuple(n for n in curves if not n.endswith("se"))


def sparse(n_basis, **curves):
    """Build a table of fits that use so many of 100 functions and a bias."""
    table, names = made(**curves)
    return table.assign(n_basis=n_basis), names


VERDICTS = {
    "agree": (
        made(evidence=[-9, 0, -9, -9, -9], gcv=[2, 1, 2, 3, 4]),
        ["All 2 criteria prefer r = 2.", "No other width of the grid comes within 3 nats"],
        ["disagree", "end of the grid", "status"],
    ),
    "one step": (
        made(evidence=[-9, 0, -1, -9, -9], gcv=[3, 2, 1, 3, 4]),
        ["agree to within one step of the grid: r = 2 by the evidence; r = 3 by GCV",
         "The 2 widths from 2 to 3 have a log evidence within 3 nats",
         "all the preferred ones are among them"],
        ["disagree"],
    ),
    "mild": (
        made(evidence=[-9, 0, -1, -2, -9], gcv=[3, 1.04, 1.02, 1, 4]),
        ["The criteria name different widths, but r = 2 serves them all.",
         "At r = 2 the others come within 4.0 % of their best",
         "among them"],
        ["disagree"],
    ),
    "disagree": (
        made(evidence=[-9, 0, -9, -9, -9], gcv=[3, 2, 1.5, 1, 4], bic=[3, 2.1, 2, 1, 4]),
        ["The evidence prefers r = 2, GCV and BIC r = 4: the criteria disagree.",
         "at r = 2 BIC is 110 % above its", "the evidence asks how probable", "GCV asks how large the error",
         "BIC asks how large the error is at a higher price"],
        ["serves them all", "among them"],
    ),
    "same question": (
        made(gcv=[3, 1, 2, 3, 4], loo=[3, 2, 2, 1, 4]),
        ["GCV prefers r = 2, LOO r = 4: the criteria disagree.", "same question, but punish parameters differently"],
        ["evidence"],
    ),
    "high end": (
        made(evidence=[-9, -8, -7, -6, -5], gcv=[2, 1, 2, 3, 4]),
        ["The optimum of the evidence lies at the end of the grid: widen it above 5."],
        ["below 1"],
    ),
    "low end": (
        made(gcv=[1, 2, 3, 4, 5], loo=[1, 2, 3, 4, 5]),
        ["The optima of GCV and LOO lie at the end of the grid: widen it below 1."],
        ["above"],
    ),
    "second peak": (
        made(evidence=[-9, 0, -2, -1, -9]),
        ["The evidence prefers r = 2.", "with a second peak at r = 4", "The 3 widths from 2 to 4"],
        ["among them"],
    ),
    "gap": (
        made(evidence=[-9, 0, -7, -1, -9]),
        ["2 widths between 2 and 4 have a log evidence within 3 nats"],
        ["The 2 widths"],
    ),
    "status where it matters": (
        made(["CONVERGED", "AT_BOUND", "CONVERGED", "PURE_NOISE"], gcv=[2, 1, 3, 3]),
        ["preferred r = 2 (GCV): AT_BOUND", "1 other width carries a warning status (PURE_NOISE)"],
        [],
    ),
    "no say": (
        made(evidence=[-9, 0, -9, -9], bic=[np.nan, np.nan, 1, 4], notes=["INTERPOLATION(bic)"] * 2 + [""] * 2),
        ["The evidence prefers r = 2.", "BIC has no say here"],
        ["inf", "disagree", "All"],
    ),
    "still heard": (
        made(evidence=[-9, -9, -9, 0, -9], bic=[np.nan, 5, 3, 1, 4], notes=["INTERPOLATION(bic)"] * 2 + [""] * 3),
        ["All 2 criteria prefer r = 4."],
        ["no say"],
    ),
    "what functions cost": (
        sparse([50, 30, 20, 8, 4], evidence=[-9, 0, -9, -9, -20], mdl_w=[290, 180, 100, 40, 70], loo=[1, 2, 3, 4, 5]),
        ["The evidence prefers r = 2, LOO r = 1, MDL-w r = 4: the criteria disagree.",
         "MDL-w asks how short a message",
         "MDL pays 4.6 nats (ln 101) to name each function, and more to send its weight",
         "and stops at 8 of them; LOO takes 50, and pays nothing for having picked them by these very rows",
         "MDL-w hardly depends on the precision delta"],
        ["separate optima"],
    ),
    "two scales": (
        sparse([20, 20, 10, 5, 4, 3], mdl_w=[90, 60, 40, 70, 45, 66], mdl_alpha=[9, 8, 1, 8, 8, 9]),
        ["All 2 criteria prefer r = 3.",
         "MDL-w has separate optima: besides r = 3 also r = 5 (4 functions, 5.0 nats worse, beyond a rise of 25"],
        ["disagree"],
    ),
    "optima of one scale": (
        sparse([9, 9, 8, 7, 6, 5, 4, 4, 4, 4], mdl_w=[90, 90, 90, 90, 90, 90, 50, 60, 49, 90]),
        ["MDL-w prefers r = 9."],
        ["separate optima"],  # 7 and 9 are too close to be two scales
    ),
    "delta matters": (
        sparse([40, 30, 20, 10, 2], mdl_w=[80, 60, 70, 80, 90]),
        ["MDL-w depends on the precision delta of its weights: r = 5 at 0.01, r = 2 at 0.1 and r = 1 at 1."],
        ["hardly"],
    ),
    "many widths": (
        made(evidence=[-99, 0, -99, -99, -99], gcv=[1, 2, 9, 9, 9], loo=[9, 9, 9, 1, 2], bic=[9, 9, 9, 2, 1]),
        ["The evidence prefers r = 2; the 4 criteria name 4 widths and disagree.",
         "Best are r = 2 by the evidence; r = 1 by GCV; r = 4 by LOO; r = 5 by BIC."],
        ["serves"],
    ),
    "within its standard error": (
        made(evidence=[-9, 0, -9, -9, -9], loo=[3, 1.2, 1.1, 1, 4], loo_diff_se=[1, 0.3, 0.1, 0, 1]),
        ["r = 2 serves them all.", "come within 20.0 % of their best, or within one standard error."],
        ["disagree"],
    ),
    "improving": (
        made(evidence=[-9, 0, -9], gcv=[3, 1, 2]), ["All 2 criteria prefer r = 2."], ["interrupted"],
    ),
    "one width": (made(evidence=[-1.0], gcv=[3.0]), ["Only one width was tried, r = 1"], ["end of the grid"]),
    "no number": (made(evidence=[np.nan, np.nan]), ["No criterion has a finite value"], ["prefers"]),
}  # fmt: skip


@pytest.mark.parametrize("case", VERDICTS)
def test_verdict_says_what_the_curves_allow(case):
    (table, criteria), said, unsaid = VERDICTS[case]
    text = verdict(table, criteria, offered=101)
    for sentence in said:
        assert sentence in text
    for sentence in unsaid:
        assert sentence not in text


def test_a_constant_target_has_nothing_to_compare():
    comparison = bs.compare_widths(np.linspace(0, 1, 40), np.full(40, 3.0), [0.1, 0.3, 1.0], progressbar=False)
    assert "nothing to compare" in comparison.verdict()
    assert "disagree" not in comparison.verdict()


def test_a_cluster_is_refused_until_there_is_one():
    x = np.linspace(0, 1, 20)
    bs.compare_widths(x, x**2, [0.3], progressbar=False, client=None)
    with pytest.raises(ValueError, match="client must be None"):
        bs.compare_widths(x, x**2, [0.3], progressbar=False, client="tcp://somewhere")


def test_a_million_widths_are_a_slip():
    with pytest.raises(ValueError, match="at most 10000"):
        bs.compare_widths(np.linspace(0, 1, 20), np.linspace(0, 1, 20), np.linspace(0.1, 1, 10_001), progressbar=False)
