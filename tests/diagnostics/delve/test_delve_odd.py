"""Studies and odd things: methods that misbehave, unusual names, tables and attributes, a disk that is full.

Guards `bayessel.diagnostics.delve._study`, `bayessel.diagnostics.delve._task`, `bayessel.diagnostics.delve._losses`.
"""

import os
import signal
import sys
import threading
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from scipy import stats
from sklearn.linear_model import LinearRegression

from bayessel.diagnostics import delve
from bayessel.diagnostics.delve._losses import standardised_losses
from bayessel.errors import StoreWarning
from tests.problems.delve import Noisy, Silent, child, same, task

run = partial(delve.run, progressbar=False)

# --- methods ----------------------------------------------------------------------------------------------------------


class Exits(Silent):
    def fit(self, X, y):
        sys.exit(3)


class Says(Silent):
    """Predicts what it was told to."""

    def __init__(self, what=None, std=None):
        self.what, self.std = what, std

    def predict(self, X, return_std=False):
        mean = np.zeros(len(X)) if self.what is None else self.what
        return (mean, self.std) if return_std else mean


class Spread(Silent):
    """Predicts zero, with a standard deviation that it was told."""

    def __init__(self, std=1.0):
        self.std = std

    def predict(self, X, return_std=False):
        return (np.zeros(len(X)), np.full(len(X), self.std)) if return_std else np.zeros(len(X))


class Named(Silent):
    """What it calls its status is no status."""

    def fit(self, X, y):
        self.status_ = pd.Series([1.0], name=np.int64(3))
        return super().fit(X, y)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_method_that_exits_does_not_take_the_study_along(jobs):
    study = run({"out": Exits(), "mean": Silent()}, task(instances=2), n_jobs=jobs)
    assert study.failures()["error"].str.startswith("SystemExit: 3\nin fit").tolist() == [True, True]
    assert len(study.outcomes) == 4


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (np.zeros((10, 2)), r"predictions must be one number for each of 20 test cases, got shape \(10, 2\)"),
        (np.zeros(20) + 1j, "predictions must be real"),
        (np.array(["1.0"] * 20), "predictions must be numeric"),
        (np.full(20, 1e200), "so far off in 20 of 20 cases that squared loss overflows"),
    ],
)
def test_predictions_that_are_none(what, said, tmp_path):
    """Squared losses that overflow would spoil every table: they are failures, the absolute ones are not."""
    study = run({"odd": Says(what), "mean": Silent()}, task(), store=tmp_path / "s")
    failures = study.failures()
    assert set(failures["method"]) == {"odd"} and failures["error"].str.contains(said).any()
    assert np.isnan(study.table().loc["line 16", ("odd", "loss")])
    delve.Study.load(tmp_path / "s").to_html(tmp_path / "report.html")


def test_a_column_is_what_it_holds():
    study = run({"column": Says(np.ones((20, 1))), "flat": Says(np.ones(20))}, task(), losses="squared")
    assert np.array_equal(*(study.losses("squared", name, "line 16") for name in study.methods))


@pytest.mark.parametrize(("std", "said"), [(np.nan, "must be finite"), (-1.0, "must not be negative, got -1")])
def test_a_spread_that_is_none_is_a_failure_and_not_an_infinite_loss(std, said):
    study = run({"odd": Spread(std), "sound": Spread(2.0)}, task())
    failures = study.failures()
    assert set(zip(failures["method"], failures["loss"], strict=True)) == {("odd", "log")}
    assert failures["error"].str.contains(said).all()
    y = task()[0].y_test
    expected = standardised_losses(y, stats.norm.logpdf(y, 0.0, 2.0), "log")
    np.testing.assert_allclose(study.losses("log", "sound", "line 16")[0], expected, rtol=1e-12)


def test_a_status_that_is_none_is_not_kept(tmp_path):
    study = run({"named": Named()}, task(), store=tmp_path)
    assert {one.status for one in study.outcomes.values()} == {""} and study.failures().empty


def test_a_factory_that_fails_is_a_failure():
    """For these sizes: factories are also asked for sizes that no task has, to tell what they make."""
    methods = {"known": lambda size: {16: Silent}[size](), "never": lambda: 1 / 0}
    study = run(methods, task())
    assert set(study.failures()["method"]) == {"never"}
    assert study.failures()["error"].str.contains("ZeroDivisionError").all()
    assert study.methods["known"].count("which raises KeyError") == 2


class Locked:
    """Cannot be copied."""

    def __init__(self):
        self.lock = threading.Lock()

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_method_that_cannot_be_copied_is_a_failure(jobs):
    study = run({"locked": Locked(), "mean": Silent()}, task(instances=2), n_jobs=jobs)
    assert study.failures()["method"].tolist() == ["locked", "locked"] and len(study.outcomes) == 4


# --- names and attributes ---------------------------------------------------------------------------------------------


def test_names_are_no_formulas(tmp_path):
    methods = {r"a$\foo$b": Silent(), "x_{$": LinearRegression(), "<b>": Noisy()}
    study = run(methods, [task(name=r"t$\oops$"), task(name="u")], store=tmp_path / "s")
    page = study.to_html(tmp_path / "report.html").read_text()
    assert "<b>" not in page and "&lt;b&gt;" in page
    for figure in (study.plot(r"t$\oops$"), study.plot_winners(), study.plot_time()):
        figure.savefig(tmp_path / "picture.png")


@pytest.mark.parametrize("count", [1, 2, 4, 20])
def test_the_picture_of_winners_holds_its_labels(count):
    study = run({f"m{k}": Silent() for k in range(count)}, task(instances=2), losses="squared")
    figure = study.plot_winners()
    box = figure.axes[0].get_tightbbox(FigureCanvasAgg(figure).get_renderer())
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


def test_attributes_are_words_and_numbers(tmp_path):
    one = task(attributes={"inputs": np.int64(3), "noise": np.float32(0.5)})
    assert run({"mean": Silent()}, one, store=tmp_path).averages("inputs").index.tolist() == [3]
    assert delve.Study.load(tmp_path).tasks["line 16"].attributes["inputs"] == 3
    for wrong in ({"noise": [1]}, {"noise": None}, {3: "x"}, "hard"):
        with pytest.raises(TypeError, match="attributes must be"):
            task(attributes=wrong)


def test_a_single_loss_may_go_by_its_name():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    assert delve.Task.from_arrays(X, X[:, 0], 10, losses="squared").losses == ("squared",)
    with pytest.raises(ValueError, match="losses is empty"):
        delve.Task.from_arrays(X, X[:, 0], 10, losses=())


def test_a_part_without_methods_or_tasks_is_refused():
    study = run({"mean": Silent()}, task())
    for nothing in ({"methods": []}, {"tasks": []}):
        with pytest.raises(ValueError, match="a method and a task at least"):
            study.only(**nothing)


# --- tables -----------------------------------------------------------------------------------------------------------

COLUMN = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pd.DataFrame({"a": ["u", None, "v"], "y": COLUMN}), "column 'a' has 1 missing values"),
        (pd.DataFrame({"a": [1.0, np.nan, np.nan], "y": COLUMN}), "column 'a' has 2 missing values"),
        (pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "a", "y"]), "different names, got a more than once"),
        (pd.DataFrame({"y": COLUMN}), "no inputs for the target 'y'"),
        (pd.DataFrame({"a": [1j, 2j, 3j], "y": COLUMN}), "a must be real"),
        (pd.DataFrame({"a": COLUMN, "y": ["u", "v", "w"]}), "y must be numeric"),
        (np.ones((3, 2)), "must be a pandas.DataFrame, got ndarray"),
    ],
)
def test_tables_that_say_nothing(table, said):
    with pytest.raises((ValueError, TypeError), match=said):
        delve.Dataset("odd", table).prototask()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "empty.csv cannot be read as a table"),
        ("binary.csv", b"\xff\xfe\x00\n1,2\n", "binary.csv cannot be read as a table"),
        ("plain.csv.gz", b"a,y\n1,2\n", "plain.csv.gz cannot be read as a table"),
        ("parts.csv", b"part,a,y\n0,1,2\n2,1,3\n", "must be 0 .training. or 1 .testing."),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said):
        delve.load(tmp_path)


# --- the disk ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a limit on the size of files, in a forked process")
def test_a_full_disk_ends_the_study_and_spoils_nothing(tmp_path):
    import resource

    methods = {"a": Noisy(), "b": Noisy(shrink=0.5)}
    run({"a": Noisy()}, task(), store=tmp_path / "s")
    most = (tmp_path / "s" / "results.log").stat().st_size + 2000

    def filled():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        for _ in range(2):  # the second time: the first has let go of the store
            try:
                run(methods, task(), store=tmp_path / "s")
            except OSError as error:
                (tmp_path / "said").open("a").write(f"{error}\n")

    with child(filled) as pid:
        os.waitpid(pid, 0)
    said = (tmp_path / "said").read_text().splitlines()
    assert len(said) == 2 and all("what was stored before is kept" in line for line in said)
    assert 4 < len(delve.Study.load(tmp_path / "s").outcomes) < 8
    with warnings.catch_warnings():
        warnings.simplefilter("error", StoreWarning)  # nothing was torn
        assert same(run(methods, task(), store=tmp_path / "s"), run(methods, task()))


def test_an_interrupt_while_the_disk_is_waited_for_takes_nothing_back(tmp_path, monkeypatch):
    """What readers have seen stays."""
    from bayessel.work import journal

    waits = []

    def interrupted(file):
        begun = (tmp_path / "s" / "header.json").exists()
        waits.append(len(delve.Study.load(tmp_path / "s").outcomes) if begun else 0)
        if waits.count(2) == 1 and waits[-1] == 2:
            raise KeyboardInterrupt

    methods = {"mean": Silent(), "noisy": Noisy()}
    whole = run(methods, task(), store=tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(journal, "sync", interrupted)
        study = run(methods, task(), store=tmp_path / "s")
    assert study.interrupted and waits[-1] == 2
    assert len(delve.Study.load(tmp_path / "s").outcomes) == 2
    assert same(run(methods, task(), store=tmp_path / "s"), whole)
