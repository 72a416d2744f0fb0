"""Comparing widths of the relevance vector machine: numbers against dense algebra, choices against made-up series.

Guards `bayessel.widths._rvm`, `bayessel.widths._sparse`, `bayessel.widths._problem`, `bayessel.widths._search`.
"""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayessel as bs
from bayessel.linear import fit_rvm
from bayessel.widths import WidthComparison, _problem, _rvm, arguments
from tests.oracles import linear as oracles
from tests.paths import SHARED_DATA

EVERY = ("mdl-w", "mdl-alpha", "evidence", "model-evidence", "loo", "elpd-loo", "gcv", "bic")
WIDTHS = np.geomspace(0.15, 4.0, 7)


def compare(x, y, widths=WIDTHS, **options):
    return bs.compare_widths(x, y, widths, progressbar=False, **({"model": "rvm"} | options))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(-2, 2, 40))
    return x, 2.0 + np.sin(3 * x) + 0.15 * rng.normal(size=40)


@pytest.fixture(scope="module")
def comparison(data):
    return compare(*data, criteria=EVERY)


@pytest.fixture(scope="module")
def waves():
    """A slow wave of large and a fast one of small amplitude: two scales."""
    rng = np.random.default_rng(1)
    x = np.linspace(0, 10, 90)
    return x, 3 * np.sin(0.9 * x) + 0.6 * np.sin(9 * x) + 0.15 * rng.normal(size=90)


@pytest.fixture(scope="module")
def two(waves):
    return compare(*waves, np.geomspace(0.12, 12, 11), kind="gaussian")


def dense(found, r, x, y):
    """Columns in use at the stored fit of a width, its weights, precisions, and the noise precision of its row."""
    fit = found.fits[r]
    K = oracles.radial("gaussian", x[:, None], x[:, None], r)
    Phi = np.column_stack([K, np.ones(len(x))])[:, fit.basis]
    return Phi, fit, found.table.loc[r, "noise_std"] ** -2.0


def test_row_is_what_dense_algebra_says(data, comparison):
    x, y = data
    n, k0 = len(y), len(y) + 1
    assert len(comparison.fits) >= 2
    for r in comparison.fits:
        row = comparison.table.loc[r]
        Phi, fit, beta = dense(comparison, r, x, y)
        k = Phi.shape[1]
        C = np.eye(n) / beta + (Phi / fit.alpha) @ Phi.T
        quad, (_, logdet) = y @ np.linalg.solve(C, y), np.linalg.slogdet(C)
        assert_allclose(row["evidence"], -0.5 * (quad + logdet + n * np.log(2 * np.pi)), rtol=1e-8)
        Sigma = np.linalg.inv(np.diag(fit.alpha) + beta * Phi.T @ Phi)
        mean = beta * Sigma @ Phi.T @ y
        assert_allclose(fit.coef, mean, rtol=1e-4)
        S = ((y - Phi @ mean) ** 2).sum()
        flags = (k + 1) * np.log(k0)
        length = -0.5 * n * np.log(beta) + 0.5 * beta * S + np.log(np.abs(mean)).sum() - k * np.log(0.1) + flags
        assert_allclose(row["mdl-w"], length, rtol=1e-6)
        assert_allclose(row["mdl-alpha"], 0.5 * (quad + logdet) + flags, rtol=1e-6)
        again = fit_rvm(bs.RBFDictionary(x, r).design(x), y, init=(fit.basis, fit.alpha, beta))
        assert_allclose(row["model-evidence"], again.model_evidence, atol=0.02)
        gamma = k - fit.alpha @ np.diag(Sigma)
        assert_allclose([row["gamma"], row["n_basis"]], [gamma, k], rtol=1e-5)
        assert_allclose(row["gcv"], n * S / (n - gamma) ** 2, rtol=1e-5)
        assert_allclose(row["bic"], (n + (np.log(n) - 1) * gamma) / (n - gamma) * S / n, rtol=1e-5)
        errors, densities = [], []
        for i in range(n):  # one row out, precisions kept
            keep = np.arange(n) != i
            V = np.linalg.inv(np.diag(fit.alpha) + beta * Phi[keep].T @ Phi[keep])
            error = y[i] - Phi[i] @ V @ (beta * Phi[keep].T @ y[keep])
            variance = 1 / beta + Phi[i] @ V @ Phi[i]
            errors.append(error**2)
            densities.append(-0.5 * np.log(2 * np.pi * variance) - 0.5 * error**2 / variance)
        assert_allclose(row["loo"], np.mean(errors), rtol=1e-5)
        assert_allclose(row["elpd-loo"], np.sum(densities), rtol=1e-5)
        assert_allclose(row["loo_se"], np.std(errors, ddof=1) / np.sqrt(n), rtol=1e-4)
        assert_allclose(row["elpd-loo_se"], np.std(densities, ddof=1) * np.sqrt(n), rtol=1e-4)
        assert_allclose(fit.mean, Phi @ mean, atol=1e-5)
        assert_allclose(fit.std, np.sqrt(1 / beta + np.einsum("ij,jk,ik->i", Phi, Sigma, Phi)), rtol=1e-5)
        on_grid = np.column_stack([oracles.radial("gaussian", fit.grid[:, None], x[:, None], r), np.ones(400)])
        assert_allclose(fit.grid_mean, on_grid[:, fit.basis] @ mean, atol=1e-5)


def test_standard_errors_of_differences_are_paired(data, comparison):
    x, y = data
    best = comparison.best("loo")
    squares = {}
    for r in comparison.fits:
        Phi, fit, beta = dense(comparison, r, x, y)
        H = Phi @ np.linalg.inv(np.diag(fit.alpha) + beta * Phi.T @ Phi) @ Phi.T * beta
        squares[r] = ((y - H @ y) / (1 - np.diag(H))) ** 2
    for r, terms in squares.items():
        expected = np.std(terms - squares[best], ddof=1) / np.sqrt(len(y))
        assert_allclose(comparison.table.loc[r, "loo_diff_se"], expected, rtol=1e-3, atol=1e-9)
    assert comparison.table.loc[best, "loo_diff_se"] == 0


def test_the_usual_criteria_and_columns(data):
    found = compare(*data, [0.5])
    assert found.criteria == ("mdl-w", "mdl-alpha", "evidence", "loo")
    assert list(found.table.columns) == [
        *("mdl-w", "mdl-alpha", "evidence", "loo", "loo_se", "loo_diff_se", "gamma", "noise_std", "n_basis", "status"),
        "notes",
    ]
    assert found.model == "rvm" and found.best() == 0.5


def test_other_delta_needs_no_fit(data, comparison):
    x, y = data
    rows = comparison.deltas("mdl-w", [0.01, 0.1, 1.0])
    r = comparison.best("evidence")
    fit = fit_rvm(np.column_stack([oracles.radial("gaussian", x[:, None], x[:, None], r), np.ones(40)]), y)
    from bayessel.widths.curves import with_delta

    assert_allclose(
        with_delta(comparison.table, "mdl-w", 0.01).loc[r, "mdl-w"], bs.diagnostics.mdl_w(fit, delta=0.01), rtol=1e-6
    )
    assert rows.loc[0.1, "width"] == comparison.best("mdl-w")
    assert list(rows.index) == [0.01, 0.1, 1.0]
    # the dearer a function, the fewer of them
    assert rows["n_basis"].is_monotonic_increasing
    with pytest.raises(ValueError, match="criterion must be one of 'mdl-w', 'mdl-alpha'"):
        comparison.deltas("evidence")


def test_both_scales_of_a_series_are_found(two):
    """The lengths have a minimum where both waves are followed and one where the slow wave alone is."""
    found = two.scales("mdl-w")
    assert len(found) >= 2
    fine, coarse = sorted(found[:2])
    # half a period of the waves is 0.35 and 3.5
    assert 0.1 < fine.width < 1.0 < coarse.width < 7.0
    noise = two.table["noise_std"]
    assert noise[fine.width] < 0.25 and 0.35 < noise[coarse.width] < 0.6  # 0.6 / sqrt(2) is the fast wave's
    assert set(two.fits) >= {fine.width, coarse.width}
    said = two.verdict()
    assert "has separate optima" in said and "more than one scale" in said


def test_fits_of_neighbours_rescue_a_width_that_went_wrong(data, monkeypatch):
    """The engine's own starts fail at one width: the dent this leaves is filled from there, and nothing is lost."""
    sound = compare(*data)
    x = data[0]
    bad = float(WIDTHS[3])
    spoiled = bs.RBFDictionary(x, bad).design(x)

    def failing(design, t, init="auto", **options):
        noise = {"beta": 2.0} if isinstance(init, str) and np.array_equal(design, spoiled) else {}
        return fit_rvm(design, t, init=init, **options, **noise)

    monkeypatch.setattr(_rvm, "fit_rvm", failing)
    alone = compare(*data, [bad])
    assert alone.table["evidence"].iloc[0] < sound.table.loc[bad, "evidence"] - 5
    rescued = compare(*data)
    assert_allclose(rescued.table.loc[bad, "evidence"], sound.table.loc[bad, "evidence"], atol=1.0)
    assert (rescued.table["evidence"] >= sound.table["evidence"] - 1.0).all()


def test_a_fit_through_every_row_has_no_length(rng):
    """White noise, functions narrower than the rows' distance: MDL-w would fall without end."""
    x, y = np.arange(60.0), rng.normal(size=60)
    design = np.column_stack([oracles.radial("gaussian", x[:, None], x[:, None], 0.1), np.ones(60)])
    fit = fit_rvm(design, y)
    found = compare(x, y, [0.1, 5.0, 20.0], criteria=["mdl-w", "bic", "evidence"])
    through = 60 - fit.gamma < 6
    assert np.isnan(found.table.loc[0.1, "mdl-w"]) == through == np.isnan(found.table.loc[0.1, "bic"])
    assert ("INTERPOLATION(mdl-w,bic)" in found.table.loc[0.1, "notes"]) == through
    assert "INTERPOLATION" not in found.table.loc[5.0, "notes"] and np.isfinite(found.table.loc[5.0, "mdl-w"])


def test_prequential_length_is_averaged_over_the_same_orders(data):
    x, y = (part[::2] for part in data)
    found = compare(x, y, [0.4, 0.8], criteria=["prequential"], random_state=3)
    table = found.table
    assert list(table.columns[:3]) == ["prequential", "prequential_se", "prequential_diff_se"]
    seed = int(np.random.default_rng(3).integers(2**31))
    lengths = {}
    for r in (0.4, 0.8):
        design = bs.RBFDictionary(x, r).design(x)
        lengths[r] = bs.diagnostics.prequential(design, y, fit_rvm, orders=5, random_state=seed).per_order
    best = min(lengths, key=lambda r: lengths[r].mean())
    for r, each in lengths.items():
        assert_allclose(table.loc[r, "prequential"], each.mean(), rtol=1e-6)
        assert_allclose(table.loc[r, "prequential_se"], each.std(ddof=1) / np.sqrt(5), rtol=1e-4)
        gap = (each - lengths[best]).std(ddof=1) / np.sqrt(5)
        assert_allclose(table.loc[r, "prequential_diff_se"], gap, rtol=1e-3, atol=1e-9)


# several kinds


def test_kinds_are_compared_with_each_other(data):
    kinds = ("cauchy", "gaussian")
    both = compare(*data, WIDTHS[1:6:2], kind=kinds)
    assert both.table.index.names == ["kind", "width"]
    assert list(dict.fromkeys(both.table.index.get_level_values("kind"))) == list(kinds)
    for kind in kinds:
        alone = compare(*data, WIDTHS[1:6:2], kind=kind).table.drop(columns="loo_diff_se")
        pd.testing.assert_frame_equal(both.table.xs(kind).drop(columns="loo_diff_se"), alone)
    kind, r = both.best("evidence")
    assert both.table.loc[(kind, r), "evidence"] == both.table["evidence"].max()
    assert both.optima("loo")[0].label == both.best("loo")
    assert set(both.fits) >= {both.best(name) for name in both.criteria}
    assert "By the evidence the best" in both.verdict()
    # a pair goes into an estimator as it is
    bs.EvidenceRegressor(width=r, kind=kind)
    assert len(both.plot().axes) and len(both.plot_fit(kind=kind, width=r).axes) == 1


def test_several_kinds_survive_the_file_and_the_report(data, tmp_path):
    both = compare(*data, WIDTHS[1:6:2], kind=["gaussian", "inverse_multiquadric"], holdout=0.2)
    back = WidthComparison.from_netcdf(both.to_netcdf(tmp_path / "r.nc"))
    pd.testing.assert_frame_equal(back.table, both.table)
    assert list(back.fits) == list(both.fits)
    assert (back.kinds, back.searched, back.model) == (("gaussian", "inverse_multiquadric"), (), "rvm")
    for mine, theirs in zip(both.held, back.held, strict=True):
        assert_array_equal(mine, theirs)
    for label, fit in both.fits.items():
        for name in ("mean", "std", "grid", "grid_mean", "grid_std", "basis", "coef", "alpha"):
            assert_array_equal(getattr(back.fits[label], name), getattr(fit, name), err_msg=name)
    page = both.to_html(tmp_path / "a.html").read_text()
    assert back.to_html(tmp_path / "b.html").read_text() == page
    assert "inverse multiquadric" in page


def test_a_file_holds_the_whole_model(data, comparison, tmp_path):
    """Centres, columns in use and weights: the predictions can be made again from the file alone."""
    back = WidthComparison.from_netcdf(comparison.to_netcdf(tmp_path / "r.nc"))
    r = back.best("mdl-w")
    fit = back.fits[r]
    design = bs.RBFDictionary(back.centers, r, kind=back.kinds[0], bias=back.bias).design(back.X)
    assert_allclose(design[:, fit.basis] @ fit.coef, fit.mean, atol=1e-10)


# rows held out


def test_held_out_rows_take_no_part(data):
    x, y = data
    found = compare(x, y, WIDTHS[2:4], holdout=0.25, criteria=["evidence"], random_state=5)
    assert found.criteria == ("evidence", "holdout")
    (x_out, y_out) = found.held
    assert (len(found.y), len(y_out)) == (30, 10)
    rows = sorted([*zip(found.X[:, 0], found.y, strict=True), *zip(x_out[:, 0], y_out, strict=True)])
    assert rows == sorted(zip(x, y, strict=True))
    alone = compare(found.X, found.y, WIDTHS[2:4], criteria=["evidence"])
    assert_array_equal(alone.table["evidence"], found.table["evidence"])
    r = found.best("holdout")
    fit = found.fits[r]
    new = np.column_stack([oracles.radial("gaussian", x_out, found.X, r), np.ones(10)])[:, fit.basis]
    squares = (y_out - new @ fit.coef) ** 2
    assert_allclose(found.table.loc[r, "holdout"], squares.mean(), rtol=1e-9)
    assert_allclose(found.table.loc[r, "holdout_se"], squares.std(ddof=1) / np.sqrt(10), rtol=1e-9)
    given = compare(found.X, found.y, WIDTHS[2:4], criteria=["evidence"], holdout=found.held)
    assert_array_equal(given.table["holdout"], found.table["holdout"])
    assert not np.array_equal(compare(x, y, [0.5], holdout=0.25, random_state=6).y, found.y)
    assert "30 rows fitted and 10 held out" in found.facts()


def test_the_model_with_one_precision_holds_rows_out_too(data):
    x, y = data
    found = compare(x, y, [0.5], model="evidence", holdout=(x[::4], y[::4]), criteria=["evidence"])
    model = bs.EvidenceRegressor(width=0.5).fit(x[:, None], y)
    assert_allclose(found.table["holdout"].iloc[0], np.mean((y[::4] - model.predict(x[::4, None])) ** 2), rtol=1e-6)


# the same numbers however the work is shared, and what an interruption leaves


@pytest.mark.parametrize("model", ["rvm", "evidence"])
def test_numbers_do_not_depend_on_the_workers(model, data):
    options = {
        "model": model,
        "kind": ["gaussian", "cauchy"][: 1 if model == "rvm" else 2],
        "search": "evidence",
        "budget": 6,
        "holdout": 0.2,
    }
    one, two = (compare(*data, (0.3, 0.5, 1.0, 3.0), n_jobs=jobs, **options) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one.table, two.table, check_exact=True)
    for label, fit in one.fits.items():
        assert_array_equal(fit.grid_mean, two.fits[label].grid_mean)


@pytest.mark.parametrize("after", [3, 8])
def test_interruption_gives_back_what_is_done(data, monkeypatch, after):
    """Among the fits of the widths themselves, and among those that start from neighbours."""
    calls = []

    def stopping(problem, place, starts=(), beaten=-np.inf):
        calls.append(place)
        if len(calls) > after:
            raise KeyboardInterrupt
        return _rvm.evaluate(problem, place, starts, beaten)

    monkeypatch.setitem(arguments.MODELS, "rvm", _rvm.MODEL._replace(evaluate=stopping))
    monkeypatch.setattr("bayessel.widths._finished_widths.FinishedWidths.dented", lambda self, place: True)
    found = compare(*data)
    assert found.interrupted and len(found.table) == min(after, 7)
    said = "3 of 7 widths were finished" if after == 3 else "while fits were being improved from their neighbours"
    assert said in found.verdict()
    assert found.fits


# search


def test_a_search_closes_in_on_the_optimum(data):
    x, y = data
    found = compare(x, y, (0.1, 5.0), model="evidence", search="evidence", criteria=["evidence"], tol=0.01)
    fine = compare(x, y, np.geomspace(0.1, 5.0, 600), model="evidence", criteria=["evidence"])
    assert_allclose(found.best(), fine.best(), rtol=0.012)
    assert found.table["evidence"].max() >= fine.table["evidence"].max() - 1e-3
    assert len(found.table) < 40
    grid = found.table.index.to_numpy()
    at = int(np.flatnonzero(grid == found.best())[0])
    assert grid[at + 1] / grid[at] <= 1.01 + 1e-9 and grid[at] / grid[at - 1] <= 1.01 + 1e-9
    assert found.searched == ("evidence",) and "widths searched from 0.1 to 5" in found.facts()


def test_a_search_keeps_to_its_budget_and_its_bounds(data):
    few = [part[::2] for part in data]
    found = compare(*few, (0.1, 5.0), search=True, budget=16, criteria=["loo"], model="evidence")
    assert 13 < len(found.table) <= 16
    assert (found.table.index.min(), found.table.index.max()) == (0.1, 5.0)
    short = compare(*few, (0.1, 5.0), search=True, budget=5)
    assert len(short.table) == 5


@pytest.mark.slow
def test_a_search_follows_both_scales(waves, two):
    found = compare(*waves, (0.12, 12.0), search="evidence", criteria=["evidence"], tol=0.1)
    fine, coarse = sorted(found.scales("evidence")[:2])
    assert 0.1 < fine.width < 1.0 < coarse.width < 7.0
    grid = found.table.index.to_numpy()
    for one in (fine, coarse):
        at = int(np.flatnonzero(grid == one.width)[0])
        assert grid[at + 1] / grid[at] <= 1.1 + 1e-9 and grid[at] / grid[at - 1] <= 1.1 + 1e-9
    assert found.table["evidence"].max() >= two.table["evidence"].max() - 3.0


def test_large_designs_are_made_column_by_column(data, monkeypatch):
    stored = compare(*data, [0.4, 0.8])
    monkeypatch.setattr(_problem, "STORED", 10)
    pd.testing.assert_frame_equal(compare(*data, [0.4, 0.8]).table, stored.table, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "y"),
    [([1.0, 2.0], [0.0, 1.0]), ([1.0], [3.0]), (np.arange(9.0), np.full(9, 2.0)), (np.ones(8), np.arange(8.0)),
     (np.arange(12.0), np.zeros(12))],
    ids=["two rows", "one row", "constant target", "constant input", "zeros"],
)  # fmt: skip
def test_poor_data_give_a_status_not_a_crash(x, y, tmp_path):
    found = compare(x, y, [0.5, 1.0, 2.0], criteria=EVERY)
    assert len(found.table) == 3 and found.verdict()
    found.to_html(tmp_path / "r.html")
    pd.testing.assert_frame_equal(WidthComparison.from_netcdf(found.to_netcdf(tmp_path / "r.nc")).table, found.table)


@pytest.mark.slow
def test_an_interrupt_reaches_the_workers():
    """A real Ctrl-C goes to the whole group of processes; what is done comes back, and soon."""
    script = (
        "import numpy as np, bayessel as bs\n"
        "x = np.linspace(0, 20, 400); y = np.sin(x) + np.sin(9 * x) + 0.2 * np.random.default_rng(0).normal(size=400)\n"
        "found = bs.compare_widths(x, y, np.geomspace(0.05, 20, 400), model='rvm', n_jobs=2)\n"
        "print(found.interrupted, len(found.table))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(15)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    interrupted, count = out.split()
    assert interrupted == "True" and 0 < int(count) < 400 and "Traceback" not in err


@pytest.mark.slow
def test_a_stretch_of_road_traffic():
    """720 consecutive counts, 25 widths: two optima, in a few times what factorising all designs takes."""
    path = SHARED_DATA / "small" / "traffic_pems_5min_train.csv.gz"
    if not path.exists():
        pytest.skip("the traffic series is not beside this checkout: it may not be passed on")
    flow = pd.read_csv(path)["flow"].to_numpy(float)[:720]
    compare(np.arange(30.0), flow[:30], [3.0])  # imports
    widths, spent = np.geomspace(2, 2000, 25), {"rvm": [], "evidence": []}
    for _ in range(3):
        for model, times in spent.items():
            begin = time.process_time()
            found = bs.compare_widths(np.arange(720.0), flow, widths, model=model, n_jobs=1, progressbar=False)
            times.append(time.process_time() - begin)
            if model == "rvm":
                assert len(found.scales("mdl-w")) >= 2
    # 2.2 here, with searches from many starts: dense fits take a singular value decomposition each
    assert min(spent["rvm"]) < 3.0 * min(spent["evidence"]), spent
