"""`bayessel fit` and `bayessel widths` with labels: what is written equals the Python call; bad input is code 2.

Guards `bayessel.cli._fit_classes`.
"""

from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel.cli import main


@pytest.fixture
def table(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(60, 2))
    kind = np.where((X**2).sum(axis=1) + 0.3 * rng.normal(size=60) < 1.2, "in", "out")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": kind})
    frame.to_csv("data.csv", index=False)
    frame[["a", "b"]].head(4).to_csv("new.csv", index=False)
    return frame


def run(command, *words):
    return main([command, "data.csv", "--target", "kind", "--task", "classification", *map(str, words)])


def test_fit_writes_what_python_says(table, capsys):
    assert run("fit", "--model", "evidence", "--predict", "new.csv", "--out", "r") == 0
    expected = bs.EvidenceClassifier().fit(table[["a", "b"]], table["kind"])
    said = pd.read_csv("r/predictions.csv")
    np.testing.assert_allclose(said["p(out)"], expected.predict_proba(table[["a", "b"]].head(4))[:, 1])
    assert said["label"].tolist() == expected.predict(table[["a", "b"]].head(4)).tolist()
    assert (joblib.load("r/model.joblib").classes_ == ["in", "out"]).all()
    told = capsys.readouterr().out
    assert "wrong labels" in told and "2 classes" in told
    assert "probabilities" in told
    page = Path("r/report.html").read_text()
    assert "A model of kind" in page and "<img" in page


@pytest.mark.parametrize("model", ["gp", "rvm"])
def test_other_models(model, table, capsys):
    options = ["--inference", "map"] if model == "gp" else ["--width", "1.5"]
    assert run("fit", "--model", model, *options, "--out", "r", "--quiet") == 0
    assert np.isfinite(joblib.load("r/model.joblib").log_evidence_)


def test_widths_of_labels(table, capsys):
    assert run("widths", "--widths", "0.5,1.5", "--model", "rvm", "--out", "w") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "target kind is out" in told and "relevance vector machine of labels" in told


def test_slips_are_one_line_and_code_two(table, capsys):
    assert run("fit", "--model", "gp", "--covariance", "se") == 2
    assert "--covariance is not an option of --model gp with --task classification" in capsys.readouterr().err
    assert run("widths", "--model", "gp") == 2
    assert "compares widths of model=" in capsys.readouterr().err
    assert main(["fit", "data.csv", "--target", "kind", "--task", "ranking"]) == 2
    assert "--task must be" in capsys.readouterr().err
    table.loc[3, "kind"] = None
    table.to_csv("data.csv", index=False)
    assert run("fit", "--model", "evidence") == 2
    assert "kind" in capsys.readouterr().err
