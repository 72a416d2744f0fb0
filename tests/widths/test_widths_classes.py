"""Widths of classifiers: the numbers of the engines, labels of any sort, refusals, files and reports.

Guards `bayessel.widths._classes`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.linear.latent import fit_latent, fit_latent_rvm
from bayessel.widths import WidthComparison

WIDTHS = [0.4, 1.0, 2.5]


def disc(rng, n=60):
    X = rng.normal(size=(n, 2))
    return X, np.where((X**2).sum(axis=1) + 0.3 * rng.normal(size=n) < 1.2, "in", "out")


@pytest.mark.parametrize(("model", "engine"), [("evidence", fit_latent), ("rvm", fit_latent_rvm)])
def test_rows_are_those_of_the_engine(model, engine, rng):
    X, y = disc(rng)
    found = bs.compare_widths(X, y, WIDTHS, model, task="classification", progressbar=False, n_jobs=1)
    for r in WIDTHS:
        fit = engine(bs.RBFDictionary(X, r, bias=False).design(X), (y == "out") * 1.0)
        row = found.table.loc[r]
        np.testing.assert_allclose(row["evidence"], fit.log_evidence)
        left_out = fit.leave_one_out()
        np.testing.assert_allclose(row["elpd-loo"], left_out.log_density)
        np.testing.assert_allclose(row["loo"], left_out.mean_square)
        assert row["n_basis"] == fit.n_basis
    assert found.model == f"class-{model}"
    assert found.best("evidence") == found.table["evidence"].idxmax()
    assert "is out" in found.facts()
    assert found.verdict()


def test_labels_of_any_sort_give_the_same_numbers(rng):
    X, y = disc(rng, 40)
    options = {"task": "classification", "progressbar": False, "n_jobs": 1}
    one = bs.compare_widths(X, y, WIDTHS, **options).table
    for other in (y == "out", (y == "out").astype(int), np.where(y == "out", 1.0, -1.0), y.astype(object)):
        np.testing.assert_array_equal(bs.compare_widths(X, other, WIDTHS, **options).table["evidence"], one["evidence"])


def test_rows_held_out_files_and_reports(rng, tmp_path):
    X, y = disc(rng)
    options = {"model": "rvm", "task": "classification", "progressbar": False, "n_jobs": 1}
    found = bs.compare_widths(X, y, WIDTHS, holdout=0.25, store=tmp_path / "store", **options)
    assert (found.table["holdout"] < 0.3).all()
    again = bs.compare_widths(X, y, WIDTHS, holdout=0.25, store=tmp_path / "store", **options)
    assert again.table.equals(found.table)
    found.to_netcdf(tmp_path / "found.nc")
    read = WidthComparison.from_netcdf(tmp_path / "found.nc")
    np.testing.assert_allclose(read.table["evidence"], found.table["evidence"])
    assert read.model == "class-rvm"
    found.to_html(tmp_path / "found.html")
    assert "relevance vector machine of labels" in (tmp_path / "found.html").read_text()
    found.plot()


def test_refusals(rng):
    X, y = disc(rng, 30)
    options = {"progressbar": False, "n_jobs": 1}
    with pytest.raises(ValueError, match="task must be"):
        bs.compare_widths(X, y, WIDTHS, task="ranking", **options)
    with pytest.raises(ValueError, match=r"compares widths of model='evidence' or 'rvm', got 'gp'"):
        bs.compare_widths(X, y, WIDTHS, "gp", task="classification", **options)
    with pytest.raises(ValueError, match="two classes, got 3"):
        bs.compare_widths(X, np.arange(30) % 3, WIDTHS, task="classification", **options)
    with pytest.raises(ValueError, match="two classes, got 1"):
        bs.compare_widths(X, np.zeros(30), WIDTHS, task="classification", **options)
    with pytest.raises(ValueError, match="these are labels"):
        bs.compare_widths(X, y, WIDTHS, task="classification", criteria=["gcv"], **options)
    with pytest.raises(ValueError, match="a label in every row"):
        bs.compare_widths(X, np.full(30, np.nan), WIDTHS, task="classification", **options)
    with pytest.raises(ValueError, match=r"labels \(N,\)"):
        bs.compare_widths(X, np.c_[y, y], WIDTHS, task="classification", **options)
    with pytest.raises(ValueError, match="samples the width"):
        bs.compare_widths(X, y, "posterior", task="classification", **options)
