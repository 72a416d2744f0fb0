"""`bayessel delve`: it keeps and writes what Python computes; bad input is one line and code 2.

Guards `bayessel.cli._delve`, `bayessel.cli._methods`.
"""

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bayessel.cli import main
from bayessel.cli._methods import MAKERS, NAMES, methods, split_names
from bayessel.diagnostics import delve
from tests.paths import ROOT
from tests.problems.delve import same, wait_for


@pytest.fixture
def data(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name, noise in {"calm": 0.1, "rough": 2.0}.items():
        X = rng.normal(size=(300, 2))
        table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] + noise * rng.normal(size=300)})
        table.to_csv(tmp_path / "data" / f"{name}.csv", index=False)
    return tmp_path


def run(*words):
    return main(["delve", *(str(word) for word in words)])


OWN = "linear=sklearn.linear_model:BayesianRidge,mean=sklearn.dummy:DummyRegressor"


def test_run_and_report(data, capsys):
    words = ("run", "--data", "data", "--sizes", "16,32", "--instances", 3, "--methods", OWN, "--store", "s")
    assert run(*words, "--tasks", "calm") == 0
    assert run(*words, "--jobs", 1) == 0  # goes on, with one table more
    said = " ".join(capsys.readouterr().out.split())
    assert "Lowest squared loss, averaged over 4 tasks: linear" in said and "bayessel delve report --store s" in said
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import BayesianRidge

    tasks = delve.load("data", sizes=[16, 32], instances=3)
    expected = delve.run({"linear": BayesianRidge(), "mean": DummyRegressor()}, tasks, progressbar=False)
    assert same(expected, delve.Study.load("s"))
    assert run("report", "--store", "s", "--out", "deep/r", "--png") == 0
    folder = data / "deep" / "r"
    assert {"report.html", "units.csv", "winners-squared.csv", "calm-log.png", "winners-log.png"} <= {
        file.name for file in folder.iterdir()
    }
    table = pd.read_csv(folder / "losses-squared.csv", index_col=0)
    np.testing.assert_allclose(table["linear loss"], expected.table().loc[table.index, ("linear", "loss")])
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    some = ("--losses", "absolute", "--methods", "linear", "--tasks", "calm")
    assert run("report", "--store", "s", *some, "--out", "r2", "--quiet") == 0
    assert set(pd.read_csv("r2/units.csv")["task"]) == {"calm 16", "calm 32"}
    assert [file.name for file in (data / "r2").glob("losses-*")] == ["losses-absolute.csv"]


def test_generated_tasks(data, capsys):
    words = ("--generated", "friedman-1", "--sizes", "64", "--instances", 2, "--methods", OWN, "--losses", "squared")
    assert run("run", *words, "--store", "s", "--quiet") == 0
    study = delve.Study.load("s")
    assert list(study.tasks) == ["friedman-1 64"] and study.losses_kept == ("squared",)
    assert 0.1 < study.table().loc["friedman-1 64", ("linear", "loss")] < 0.6


def test_names_of_methods():
    assert split_names("lin-1, pta(1,0),oscil(5) ,sffs") == ["lin-1", "pta(1,0)", "oscil(5)", "sffs"]
    found = methods("pta(2,1),oscil(3),gp-mc,gp-map", "30s")
    assert [type(one).__name__ for one in found.values()] == ["BasisSearchRegressor"] * 2 + ["GPRegressor"] * 2
    assert found["pta(2,1)"].strategy == "pta(2,1)" and found["gp-mc"].time_budget == "30s"
    assert found["gp-map"].time_budget is None and found["gp-mc"].inference == "mc"
    assert set(NAMES) == {*MAKERS, "pta(1,0)", "pta(2,1)", "oscil(5)"}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_makes_a_regressor(name):
    from sklearn.base import is_regressor

    (model,) = methods(name).values()
    assert is_regressor(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("gp-mc", "mlp-mc", "rvm")])
def test_every_method_beats_the_mean(name, rng):
    """On Friedman's first function and 64 cases."""
    from bayessel.diagnostics.delve import families

    data = families.family("friedman-1").dataset()
    tasks = delve.divided(data, sizes=[64], instances=2)
    study = delve.run(methods(name, 20), tasks, progressbar=False)
    assert study.failures().empty
    assert study.table().loc["friedman-1 64", (name, "loss")] < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_on_the_command_line(data, jobs):
    words = ["--data", "data", "--sizes", "16", "--instances", "8", "--store", "s", "--jobs", jobs]
    words += ["--methods", "a=tests.problems.delve:Slow,b=tests.problems.delve:Slow,c=tests.problems.delve:Silent"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bayessel.cli", "delve", "run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    wait_for(lambda: (data / "s" / "header.json").exists() and len(delve.Study.load("s").outcomes) >= 3, 120)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers hear it, too
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err and "units are left" in out
    study = delve.Study.load("s")
    assert 3 <= len(study.outcomes) < 48 and study.failures().empty
    assert run("run", *words) == 0
    assert delve.Study.load("s").remaining == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--store", "s"), "nothing to learn from"),
        (("run", "--store", "s", "--generated", "friedman-1", "--tasks", "calm"), "--tasks chooses among the tables"),
        (("run", "--store", "s", "--data", "data", "--methods", "magic"), "--methods knows lin-1"),
        (("run", "--store", "s", "--data", "data", "--methods", "a=nowhere:Model"), "cannot be imported"),
        (("run", "--store", "s", "--data", "data", "--methods", "a=here"), "name=package.module:Class"),
        (("run", "--store", "s", "--data", "data", "--methods", ","), "names none"),
        (("run", "--store", "s", "--data", "data", "--sizes", "many"), "--sizes needs a whole number"),
        (("run", "--store", "s", "--data", "data", "--sizes", "1000"), "cases for two training sets"),
        (("run", "--store", "s", "--data", "data", "--fit-budget", "soon"), "time_budget must be seconds"),
        (("run", "--store", "s", "--generated", "kin-9"), "'kin-8nm'"),
        (("report", "--store", "nowhere"), "no study in nowhere"),
    ],
)
def test_bad_input_is_one_line(data, capsys, words, said):
    assert run(*words) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert not (data / "s").exists()
