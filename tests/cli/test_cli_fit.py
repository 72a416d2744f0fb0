"""`bayessel fit`: what it writes equals the Python call; bad input is one line and code 2.

Guards `bayessel.cli._fit`, `bayessel.cli._fit_models`, `bayessel.pages.fit_page`, `bayessel.pages.page`.
"""

import joblib
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayessel as bs
from bayessel import covariance
from bayessel._tables import read_inputs, read_table
from bayessel.cli import _fit, _fit_models, _parser, main
from bayessel.fit import Status
from bayessel.pages.fit_page import plot_left_out, plot_relevance
from tests.test_contract_of_fits import KINDS


@pytest.fixture
def table(rng, tmp_path, monkeypatch):
    X = rng.uniform(0, 6, (30, 2))
    frame = pd.DataFrame({"x": X[:, 0], "junk": X[:, 1], "y": 40 + np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=30)})
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.drop(columns="y").head(4).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return frame


def like(*names):
    """A table with columns of numbers that are called so."""
    return pd.DataFrame(columns=list(names), dtype=float)


def run(*words):
    return main(["fit", "data.csv", "--target", "y", *(str(word) for word in words)])


def test_it_writes_what_python_computes(table, tmp_path, capsys):
    assert run("--predict", "new.csv", "--seed", "3", "--out", "deep/r") == 0
    folder = tmp_path / "deep" / "r"
    written = sorted(file.name for file in folder.iterdir())
    assert written == ["model.joblib", "predictions.csv", "report.html", "result.nc"]
    expected = bs.GPRegressor(random_state=3).fit(table[["x", "junk"]], table["y"])
    found = joblib.load(folder / "model.joblib")
    np.testing.assert_array_equal(found.theta_, expected.theta_)
    assert found.random_state == 3 and found.inference == "auto"
    mean, std, (low, median, high) = expected.predict(
        table[["x", "junk"]].head(4), return_std=True, return_quantiles=[0.05, 0.5, 0.95]
    )
    predicted = pd.read_csv(folder / "predictions.csv")
    assert list(predicted) == ["x", "junk", "mean", "std", "median", "q05", "q95"]
    np.testing.assert_allclose(predicted[["mean", "std", "q05", "median", "q95"]].T, (mean, std, low, median, high))
    result = xr.open_datatree(folder / "result.nc")
    assert result.attrs["log_evidence"] == pytest.approx(expected.log_evidence_)
    assert result.attrs["data"] == expected.fingerprint_ and result.attrs["status_of_fit"] == "CONVERGED"
    np.testing.assert_allclose(result["leave_one_out"]["error"], expected.leave_one_out().errors)
    np.testing.assert_allclose(result["mode"]["theta"], expected.theta_)
    assert list(result["relevance"]["input"].values) == ["x", "junk"]
    result.close()
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "y from 2 inputs (x, junk), 30 rows; Gaussian process, a mixture over 40 states of the hyperparameters." in said
    )
    error, spread = expected.leave_one_out().errors, float(table["y"].std(ddof=0))
    explained = f"so {100 * (1 - (error**2).mean() / spread**2):.0f} % of its variance is explained."
    assert "The fit converged. Rows left out are predicted to within" in said and explained in said
    assert "The function changes fastest along x." in said and "deep/r/report.html" in said
    page = (folder / "report.html").read_text()
    assert page.startswith("<!doctype html>") and page.count("data:image/svg+xml") == 2 and "fastest along x" in page


def test_every_kind_of_evidence_has_words_of_its_own():
    assert set(_fit.EVIDENCES) == KINDS and len(set(_fit.EVIDENCES.values())) == len(KINDS)


def test_a_sampled_fit_keeps_its_draws_and_can_be_gone_on_with(table, tmp_path, capsys):
    words = ("--inference", "mc", "--draws", "6", "--tune", "6", "--chains", "1", "--inputs", "x", "--quiet")
    assert run(*words, "--covariance", "se + noise", "--time-budget", "1h") == 0
    model = joblib.load(tmp_path / "report" / "model.joblib")
    assert model.covariance_ == covariance.SquaredExponential() + covariance.Noise()
    trace = xr.open_datatree(tmp_path / "report" / "result.nc")
    np.testing.assert_array_equal(trace["posterior"]["theta"], model.trace_["posterior"]["theta"])
    assert trace["posterior"].sizes["draw"] == 6 and "leave_one_out" in trace
    trace.close()
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("CHAINS_DISAGREE") and "log evidence" not in said and said.count("CHAINS_DISAGREE") == 1
    with pytest.warns(bs.errors.NumericalWarning):
        model.continue_fit(draws=8)
    assert model.trace_["posterior"].sizes["draw"] == 8


def test_a_target_that_does_not_vary_tells_nothing_of_the_inputs(table, capsys):
    table.assign(y=3.0).to_csv("data.csv", index=False)
    assert run("--quiet") == 0
    said = capsys.readouterr().out
    assert said.startswith("CONSTANT_TARGET") and "fastest" not in said


def test_before_the_first_draw_it_is_the_mode_that_is_told_of(table, capsys):
    words = ("--inference", "mc", "--tune", "100000", "--chains", "1", "--inputs", "x", "--time-budget", "0.01")
    assert run(*words, "--covariance", "se") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "y from 1 input (x), 30 rows; Gaussian process, hyperparameters at their mode; noise was added" in said
    assert "0.001 s" not in said and "the time budget was over" in said


def test_many_rows_through_inducing_inputs(table, tmp_path, capsys):
    assert run("--inducing", "6", "--inputs", "x", "--seed", "1") == 0
    model = joblib.load(tmp_path / "report" / "model.joblib")
    assert model.kind_ == "bound" and len(model.fit_.mode.inducing) <= 6
    said = " ".join(capsys.readouterr().out.split())
    assert (
        f"Gaussian process through {len(model.fit_.mode.inducing)} inducing inputs" in said and "(lower bound)" in said
    )


@pytest.mark.parametrize(("model", "make"), [("rvm", bs.RVMRegressor), ("evidence", bs.EvidenceRegressor)])
def test_other_models(table, tmp_path, capsys, model, make):
    assert run("--model", model, "--width", "1.5", "--predict", "new.csv") == 0
    expected = make(width=1.5).fit(table[["x", "junk"]], table["y"])
    predicted = pd.read_csv(tmp_path / "report" / "predictions.csv")
    np.testing.assert_allclose(predicted["mean"], expected.predict(table[["x", "junk"]].head(4)), rtol=1e-9)
    said = capsys.readouterr().out
    assert f"{expected.n_basis_}" in said and "functions in use" in said
    assert (tmp_path / "report" / "report.html").read_text().count("data:image/svg+xml") == 1


NETWORKS = {
    "auto": (("--draws", 30, "--tune", 10, "--chains", 2), "a mixture over 52 networks of 3 hidden units"),
    "mc": (("--draws", 30, "--tune", 10, "--chains", 2), "a mixture over 52 networks of 3 hidden units"),
    "early-stopping": (("--time-budget", "0.3"), "networks of 3 hidden units, stopped early"),
    "evidence": ((), "the most probable network of 3 hidden units"),
}


@pytest.mark.parametrize("how", NETWORKS)
def test_networks(table, tmp_path, capsys, how):
    words, kind = NETWORKS[how]
    assert run("--model", "mlp", "--inference", how, "--hidden", 3, "--predict", "new.csv", *words) == 0
    model = joblib.load(tmp_path / "report" / "model.joblib")
    assert isinstance(model, bs.MLPRegressor) and model.inference == how and model.random_state == 0
    predicted = pd.read_csv(tmp_path / "report" / "predictions.csv")
    mean, std = model.predict(table[["x", "junk"]].head(4), return_std=True)
    np.testing.assert_allclose(predicted[["mean", "std"]].T, (mean, std))
    said = " ".join(capsys.readouterr().out.split())
    assert kind in said and "Slopes: large means relevant." in said and "hidden units 3" in said
    assert "changes fastest along x" in said
    assert ("log evidence (Laplace's approximation)" in said) == (how == "evidence") and "type II" not in said
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 2 and "The slope is how fast" in page
    assert ("interval" in page) == (how != "evidence") and "nan" not in page.lower().split("<h2>")[-1]
    result = xr.open_datatree(tmp_path / "report" / "result.nc")
    assert ("posterior" in result) == (how in ("auto", "mc")) and list(result["relevance"]["input"].values) == [
        "x",
        "junk",
    ]
    result.close()


def test_what_is_predicted_gets_other_names_where_the_inputs_have_them(table, tmp_path):
    table.rename(columns={"x": "mean"}).to_csv("data.csv", index=False)
    table.rename(columns={"x": "mean"}).to_csv("new.csv", index=False)
    assert run("--predict", "new.csv") == 0
    predicted = pd.read_csv(tmp_path / "report" / "predictions.csv")
    assert list(predicted) == ["mean", "junk", "predicted mean", "std", "median", "q05", "q95"]


BAD = {
    "no file": (["--inputs", "q"], "no input 'q'"),
    "model": (["--model", "svm"], "--model must be one of 'gp', 'mlp', 'rvm', 'evidence'"),
    "inference": (["--inference", "vi"], "--inference must be one of 'auto', 'map', 'mc'"),
    "covariance": (["--covariance", "rbf+linear"], "--covariance knows standard, se, .*got 'rbf'"),
    "empty covariance": (["--covariance", "se+"], "--covariance knows .*got ''"),
    "draws of a mode": (["--draws", "5"], "--draws is for --inference mc"),
    "draws in words": (["--inference", "mc", "--draws", "many"], "--draws needs a whole number, got 'many'"),
    "budget": (["--inference", "mc", "--time-budget", "soon"], "time_budget must be seconds, or text"),
    "of another model": (["--width", "1"], "--width is not an option of --model gp"),
    "of another model too": (["--model", "rvm", "--chains", "2"], "--chains is not an option of --model rvm"),
    "hidden of another model": (["--hidden", "3"], "--hidden is not an option of --model gp"),
    "hidden in words": (["--model", "mlp", "--hidden", "some"], "--hidden needs a whole number, got 'some'"),
    "draws of an ensemble": (["--model", "mlp", "--inference", "evidence", "--draws", "5"], "--draws is for --infer"),
    "inference of a network": (["--model", "mlp", "--inference", "map"], "must be one of 'auto', 'mc'"),
    "covariance of a network": (["--model", "mlp", "--covariance", "se"], "--covariance is not an option of --model"),
    "width in words": (["--model", "rvm", "--width", "wide"], "--width needs a number, got 'wide'"),
    "inducing of a run": (["--inference", "mc", "--inducing", "5"], "inducing is for inference='auto' or 'map'"),
    "inducing in words": (["--inducing", "few"], "--inducing needs a whole number, got 'few'"),
    "seed": (["--seed", "one"], "--seed needs a whole number, got 'one'"),
    "nothing to predict": (["--predict", "none.csv"], "there is no file none.csv"),
    "out is a file": (["--out", "data.csv"], "is a file: give a folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_code_two(case, table, tmp_path, capsys):
    import re

    words, message = BAD[case]
    assert run(*words) == 2
    said = capsys.readouterr()
    assert re.search(message, said.err) and said.err.startswith("bayessel: ") and said.err.count("\n") == 1
    assert not (tmp_path / "report" / "report.html").exists()


def test_a_table_without_an_input_is_refused_before_the_fit(table, monkeypatch, capsys):
    table[["x"]].to_csv("new.csv", index=False)
    monkeypatch.setattr(bs.GPRegressor, "fit", lambda *_: pytest.fail("fitted"))
    assert run("--predict", "new.csv") == 2
    assert "new.csv has no input 'junk'" in capsys.readouterr().err


def test_covariances_are_read_products_first():
    S, L, P = covariance.SquaredExponential(), covariance.Linear(), covariance.Periodic()
    assert _fit_models.parse_covariance("linear + SE*periodic") == L + S * P
    assert _fit_models.parse_covariance("standard") == covariance.Standard()
    for name in _fit_models.COVARIANCES:
        assert isinstance(_fit_models.parse_covariance(name), covariance.Covariance)


def test_inputs_alone_are_read_from_every_kind_of_table(rng, tmp_path):
    X = rng.normal(size=(5, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "d.csv", index=False)
    np.testing.assert_allclose(read_inputs(tmp_path / "d.csv", like("c", "a")), X[:, [2, 0]])
    np.testing.assert_allclose(read_inputs(tmp_path / "d.csv", like("b")), X[:, [1]])
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "d.parquet")
    np.testing.assert_allclose(read_inputs(tmp_path / "d.parquet", like("c", "a", "b")), X[:, [2, 0, 1]])
    np.savez(tmp_path / "d.npz", X=X, z=X[:, 0], y=X[:, 1])
    table = read_table(tmp_path / "d.npz", "y")[0]
    assert tuple(table.columns) == ("X[0]", "X[1]", "X[2]", "z")
    np.testing.assert_allclose(read_inputs(tmp_path / "d.npz", table), np.c_[X, X[:, 0]])


@pytest.mark.parametrize(
    ("arrays", "names", "text"),
    [
        ({"X": np.ones((2, 2))}, ("X[0]", "X[1]", "z"), "no input 'z'"),
        ({"X": np.ones((2, 3))}, ("X[0]", "X[1]"), "must have the columns"),
        ({"X": np.ones((2, 2)), "z": np.ones(3)}, ("X[0]", "X[1]", "z"), "equally many rows"),
        ({"z": np.array([1.0, np.nan])}, ("z",), r"missing values in 1 row\(s\) \(2;"),
        ({"z": np.empty(0)}, ("z",), "no rows"),
    ],
)
def test_bad_tables_of_inputs(tmp_path, arrays, names, text):
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(ValueError, match=text):
        read_inputs(tmp_path / "d.npz", like(*names))


def test_a_table_of_inputs_without_rows(tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="no rows"):
        read_inputs(tmp_path / "d.csv", like("a", "b"))


@pytest.mark.parametrize("model", ["gp", "evidence"])
def test_text_and_missing_values_of_a_table(model, rng, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    n = 40
    frame = pd.DataFrame({"a": rng.normal(size=n), "kind": ["1A", "3B", "2", "4C"] * 10, "sold": rng.random(n) < 0.5})
    frame["y"] = frame["a"] + (frame["kind"] == "2") + frame["sold"] + 0.1 * rng.normal(size=n)
    frame.loc[3, "a"] = np.nan
    frame.loc[[4, 5], "kind"] = None
    frame.to_csv("data.csv", index=False)
    new = frame[frame["kind"] == "2"].drop(columns="y")
    new.to_csv("new.csv", index=False)
    words = ("--model", model, "--predict", "new.csv", *(("--width", "2") if model == "evidence" else ()))
    assert run(*words) == 2
    assert "missing values in 3 row(s) (4, 5, 6;" in capsys.readouterr().err
    assert run(*words, "--missing", "indicator") == 0
    make = bs.GPRegressor(random_state=0) if model == "gp" else bs.EvidenceRegressor(width=2.0)
    there = make.set_params(missing="indicator").fit(frame.drop(columns="y"), frame["y"])
    found = pd.read_csv("report/predictions.csv")
    np.testing.assert_allclose(found["mean"], there.predict(new), rtol=1e-6)
    assert found["kind"].tolist() == [2] * len(new)
    said = "'kind' of X has the value 'C' (row 2), which is none of its categories in training ('1A', '2', '3B', '4C')"
    new.iloc[:2].assign(kind=["2", "C"]).to_csv("new.csv", index=False)
    assert run(*words, "--missing", "indicator") == 2 and said in capsys.readouterr().err
    assert run(*words, "--missing", "mean") == 2
    assert "--missing must be one of 'error', 'indicator', got 'mean'" in capsys.readouterr().err


def test_pictures_show_every_row_and_every_length(rng):
    y, errors = rng.normal(size=12), rng.normal(size=12)
    axes = plot_left_out(y, errors, np.full(12, 0.25), "height").axes[0]
    seen = axes.containers[0].lines[0]
    np.testing.assert_allclose(seen.get_xdata(), y - errors)
    np.testing.assert_allclose(seen.get_ydata(), y)
    table = pd.DataFrame(
        {"length": [20.0, 3.0], "lower": [10.0, 2.0], "upper": [40.0, 6.0], "standardised": [2.0, 0.5]},
        index=["a", "b"],
    )
    axes = plot_relevance(table).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [0.5, 2.0]
    assert [text.get_text() for text in axes.texts] == ["a", "b"]
    ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(ends, [[0.25, 1.0], [1.0, 3.0]])
    slopes = table.rename(columns={"length": "slope"})
    axes = plot_relevance(slopes).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [0.5, 2.0]
    assert [text.get_text() for text in axes.texts] == ["b", "a"]
    ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(ends, [[1.0 / 3.0, 1.0], [1.0, 4.0]])
    assert not plot_relevance(slopes.assign(lower=np.nan)).axes[0].collections[0].get_segments()


def test_an_interrupted_fit_that_found_something_writes_it_and_ends_with_its_code(table, tmp_path, monkeypatch):
    fit = bs.GPRegressor.fit

    def stopped(self, X, y):
        fit(self, X, y).status_ = Status.INTERRUPTED
        return self

    monkeypatch.setattr(bs.GPRegressor, "fit", stopped)
    assert run("--quiet") == 130
    assert "INTERRUPTED" in (tmp_path / "report" / "report.html").read_text()


@pytest.mark.parametrize("words", [["gp"], ["mlp"], ["mlp", "--inference", "evidence"]])
def test_the_seed_is_that_of_the_estimator(words):
    arguments = _parser().parse_args(["fit", "data.csv", "--target", "y", "--seed", "7", "--model", *words])
    assert _fit_models.estimator(arguments).random_state == 7


def test_an_interrupted_fit_writes_nothing(table, tmp_path, monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bs.GPRegressor, "fit", stop)
    assert run() == 130
    assert "nothing was written" in capsys.readouterr().err and not (tmp_path / "report" / "report.html").exists()
