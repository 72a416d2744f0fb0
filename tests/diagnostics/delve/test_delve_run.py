"""Studies: losses are what the methods say, seeds belong to units, failures are results, stores resume.

Guards `bayessel.diagnostics.delve._run`, `bayessel.diagnostics.delve._study`, `bayessel.diagnostics.delve._store`,
`bayessel.diagnostics.delve._unit`.
"""

import os
import random
import signal
import time
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayessel.diagnostics import delve
from bayessel.diagnostics.delve._losses import standardised_losses
from bayessel.errors import DataMismatchError, SamplingWarning, StoreWarning
from tests.problems.delve import Failing, Fatal, Noisy, Silent, child, diary, same, task, wait_for

run = partial(delve.run, progressbar=False)


def test_losses_are_those_of_the_methods():
    one = task()
    study = run({"ridge": BayesianRidge(), "mean": DummyRegressor()}, one)
    for i, (X, y, X_test, y_test) in enumerate(one):
        mean, std = BayesianRidge().fit(X, y).predict(X_test, return_std=True)
        squared = (mean - y_test) ** 2 / y_test.var()
        absolute = np.abs(mean - y_test) / np.abs(y_test - np.median(y_test)).mean()
        log = stats.norm.logpdf(y_test, y_test.mean(), y_test.std()) - stats.norm.logpdf(y_test, mean, std)
        for loss, expected in {"squared": squared, "absolute": absolute, "log": log}.items():
            np.testing.assert_allclose(study.losses(loss, "ridge", "line 16")[i], expected, rtol=1e-10, atol=1e-12)
    direct = delve.hierarchical(study.losses("squared", "ridge", "line 16"), study.losses("squared", "mean", "line 16"))
    assert study.compare("ridge", "mean", "squared", "line 16").p_value == direct.p_value
    row = study.table().loc["line 16", "ridge"]
    alone = delve.hierarchical(study.losses("squared", "ridge", "line 16"))
    assert (row["loss"], row["std_error"], row["instances"]) == (alone.mean, alone.std_error, 4)


def test_the_two_way_design_is_used():
    one = task(design="two-way", test_cases=40)
    study = run({"a": LinearRegression(), "b": DummyRegressor()}, one, losses="squared")
    expected = delve.two_way(*(study.losses("squared", name, "line 16") for name in "ab"))
    assert study.compare("a", "b", "squared", "line 16") == expected
    p = study.p_values("line 16")
    assert p.loc["b", "a"] == expected.p_value and np.isnan(p.loc["a", "b"])


class Median(Noisy):
    """Another median than mean, and a density of its own."""

    def predict_median(self, X):
        return np.zeros(len(X))

    def log_predictive_density(self, X, y):
        return stats.t.logpdf(y, 4)


def test_a_median_and_a_density_are_used_where_there_are_some():
    one = task()
    study = run({"t": Median()}, one)
    y = one[2].y_test
    np.testing.assert_allclose(study.losses("absolute", "t", "line 16")[2], standardised_losses(y, 0 * y, "absolute"))
    expected = standardised_losses(y, stats.t.logpdf(y, 4), "log")
    np.testing.assert_allclose(study.losses("log", "t", "line 16")[2], expected)


def test_what_is_wrapped_is_found():
    """Through pipelines and searches, density and all, on the inputs that the last step sees."""
    one, scaled = task(), make_pipeline(StandardScaler(), BayesianRidge())
    methods = {
        "plain": BayesianRidge(),
        "scaled": scaled,
        "searched": GridSearchCV(
            make_pipeline(StandardScaler(), BayesianRidge()), {"bayesianridge__tol": [1e-3]}, cv=2
        ),
        "made": BayesianRidge,
        "by size": lambda size: BayesianRidge(tol=1e-3 if size == 16 else 10.0),
    }
    study = run(methods, one)
    assert study.failures().empty
    log = {name: study.losses("log", name, "line 16") for name in methods}
    for name in ("made", "by size"):
        np.testing.assert_array_equal(log[name], log["plain"])
    np.testing.assert_array_equal(log["searched"], log["scaled"])
    X, y, X_test, y_test = one[0]
    scaler = StandardScaler().fit(X)
    mean, std = BayesianRidge().fit(scaler.transform(X), y).predict(scaler.transform(X_test), return_std=True)
    expected = standardised_losses(y_test, stats.norm.logpdf(y_test, mean, std), "log")
    np.testing.assert_allclose(log["scaled"][0], expected, rtol=1e-9, atol=1e-12)


def test_seeds_belong_to_units():
    """Not to the order of methods and tasks, to their company, or to the number of processes."""
    tasks = [task(), task(name="other", noise=0.1)]
    methods = {"a": Noisy(), "b": Noisy(shrink=0.9), "c": make_pipeline(StandardScaler(), Noisy())}
    study = run(methods, tasks)
    turned = run(dict(reversed(methods.items())), tasks[::-1], n_jobs=2)
    assert same(study, turned)
    alone = run({"b": methods["b"]}, tasks[1])
    assert same(alone, study.only(["b"], ["other"]))
    seeds = {one.seed for one in study.outcomes.values()}
    assert len(seeds) == 3 * 2 * 4
    jitters = {study.outcomes["a", "line 16", i].losses["squared"][0] for i in range(4)}
    assert len(jitters) == 4
    assert not same(study, run(methods, tasks, random_state=1))


class Careless:
    """Draws from generators that belong to everybody."""

    def fit(self, X, y):
        self.offset = random.gauss(0.0, 1.0) + np.random.standard_normal()  # noqa: NPY002
        return self

    def predict(self, X):
        return np.full(len(X), self.offset)


def test_draws_from_the_global_generators_belong_to_the_unit():
    studies = []
    for state in (1, 2):
        random.seed(state)
        np.random.seed(state)  # noqa: NPY002
        studies.append(run({"careless": Careless()}, [task()]))
    assert same(*studies)
    assert len({one.losses["squared"][0] for one in studies[0].outcomes.values()}) == 4


def test_a_failure_is_a_result(tmp_path):
    one = task()
    firsts = sorted(instance.X[0, 0] for instance in one)
    methods = {"mean": Silent(), "ship": Failing(bound=firsts[1]), "wreck": Failing()}
    study = run(methods, one, store=tmp_path / "s")
    failures = study.failures()
    assert len(failures) == 2 + 4 and set(failures["method"]) == {"ship", "wreck"}
    assert failures["error"].str.startswith("ValueError: the ship sank\nin fit (delve.py:").all()
    row = study.table().loc["line 16"]
    assert (row["mean", "instances"], row["ship", "instances"], row["wreck", "instances"]) == (4, 2, 0)
    assert np.isnan(row["wreck", "loss"])
    assert study.compare("mean", "ship", "squared", "line 16").n_sets == 2  # where both succeeded
    with pytest.raises(ValueError, match="fewer than two instances"):
        study.compare("mean", "wreck", "squared", "line 16")
    assert study.remaining == 0
    # stored failures stay, unless told otherwise
    again = run(methods, one, store=tmp_path / "s")
    assert again.failures().equals(failures)
    assert run(methods, one, store=tmp_path / "s", retry_failures=True).failures().equals(failures)


def test_no_density_is_said_and_not_a_failure():
    study = run({"mean": Silent(), "ridge": BayesianRidge()}, task())
    assert study.failures().empty
    assert np.isnan(study.table("log").loc["line 16", ("mean", "loss")])
    assert study.to_pandas()["missing"].str.contains("predicts no density").sum() == 4
    assert study.winners("log").to_numpy().sum() == 0


class Sure(Silent):
    def predict(self, X, return_std=False):
        mean = super().predict(X)
        return (mean, np.zeros(len(X))) if return_std else mean


class Nan(Silent):
    def predict(self, X):
        return np.full(len(X), np.nan)


class NoDensity(Silent):
    def log_predictive_density(self, X, y):
        raise ValueError("the well is dry")


def test_useless_predictions():
    study = run({"sure": Sure(), "nan": Nan(), "dry": NoDensity()}, task())
    table = study.to_pandas().set_index("method")
    assert table.loc["sure", "missing"].str.contains("density of 20 of 20 test cases is nil").all()
    assert table.loc["nan", "error"].str.contains("predictions must be finite").all()
    assert np.isfinite(table.loc[["sure", "dry"], "squared"]).all()
    failures = study.failures()
    assert sorted(set(zip(failures["method"], failures["loss"], strict=True))) == [("dry", "log"), ("nan", "all")]


def test_a_process_that_dies_takes_its_unit_only():
    study = run({"mean": Silent(), "fatal": Fatal(), "noisy": Noisy()}, task(instances=2), n_jobs=2)
    failures = study.failures()
    assert len(failures) == 2 and set(failures["method"]) == {"fatal"}
    assert failures["error"].str.contains("ended by itself").all()
    assert len(study.outcomes) == 6 and study.remaining == 0


# --- the store --------------------------------------------------------------------------------------------------------


def stored(folder):
    """Units in a store, which may not have begun."""
    return len(delve.Study.load(folder).outcomes) if (folder / "header.json").exists() else 0


def killed_and_resumed(folder, kills, rng, seconds=0.01):
    """A study in processes that are killed at random moments; the last one finishes."""
    tasks = [task(instances=8), task(name="other", noise=0.1, instances=8)]
    methods = {"a": Noisy(seconds=seconds), "b": Noisy(shrink=0.5, seconds=seconds), "ship": Failing(bound=0.0)}
    for _ in range(kills):
        enough = stored(folder) + rng.integers(1, 4)
        with child(lambda: run(methods, tasks, store=folder)) as pid:
            wait_for(lambda enough=enough: stored(folder) >= enough)
            time.sleep(rng.uniform(0.0, seconds))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    left = stored(folder)
    return run(methods, tasks), run(methods, tasks, store=folder), left


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes that are killed are forked")
@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_kill_9_changes_nothing(tmp_path, rng, kills):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        whole, resumed, left = killed_and_resumed(tmp_path / "s", kills, rng)
    assert 0 < left < len(whole.outcomes) == 48  # kills came in the middle
    assert same(whole, resumed)
    assert len(whole.failures()) == len(resumed.failures()) > 0
    assert same(whole, delve.Study.load(tmp_path / "s"))


def test_what_is_stored_is_not_done_again(tmp_path):
    book = tmp_path / "diary"
    one, other = task(), task(name="other")
    methods = {"a": Noisy(diary=str(book))}
    first = run(methods, one, store=tmp_path / "s")
    assert len(diary(book)) == 4
    assert same(first, run(methods, one, store=tmp_path / "s"))
    assert len(diary(book)) == 4
    # more tasks, more methods, another order
    more = run({"b": Silent(), **methods}, [other, one], store=tmp_path / "s")
    assert len(diary(book)) == 8
    assert same(first, more.only(["a"], ["line 16"]))
    assert list(delve.Study.load(tmp_path / "s").methods) == ["a", "b"]


def test_what_was_never_asked_for_is_not_left(tmp_path):
    """An expensive method may be meant for small sets only."""
    small, large = task(), task(size=32)
    run({"cheap": Silent()}, [small, large], store=tmp_path)
    with pytest.warns(SamplingWarning):
        run({"dear": Noisy(seconds=0.2)}, small, store=tmp_path, time_budget=0.1)
    loaded = delve.Study.load(tmp_path)
    assert loaded.remaining == 3 and loaded.only(["cheap"]).remaining == 0
    run({"dear": Noisy(seconds=0.2)}, small, store=tmp_path)
    assert delve.Study.load(tmp_path).remaining == 0


def test_processes_are_taken_where_they_pay(monkeypatch):
    from bayessel.work import _run, executors
    from bayessel.work.interrupts import InterruptCounter

    monkeypatch.setattr(_run, "WORTH_PROCESSES", 0.0)
    monkeypatch.setattr(_run, "core_count", lambda: 2)
    processes = []
    alone = executors.InProcess(InterruptCounter())
    monkeypatch.setattr(_run, "LocalProcesses", lambda jobs: processes.append(jobs) or alone)
    study = run({"a": Noisy()}, task())
    assert processes == [2] and study.remaining == 0


def test_a_loss_that_is_missing_is_made_up_for(tmp_path):
    book = tmp_path / "diary"
    methods = {"a": Noisy(diary=str(book))}
    run(methods, task(), losses="squared", store=tmp_path / "s")
    study = run(methods, task(), store=tmp_path / "s")
    assert len(diary(book)) == 8
    assert same(study, run(methods, task()))


class FunctionTransformerModel(Silent):
    """Has a function among its settings."""

    def __init__(self, function=None):
        self.function = function


def test_another_study_is_refused(tmp_path):
    run({"a": Noisy()}, task(), store=tmp_path)
    size = (tmp_path / "results.log").stat().st_size
    with pytest.raises(DataMismatchError, match=r"other data.*'line 16'.* there and .* here"):
        run({"a": Noisy()}, task(seed=3), store=tmp_path)
    with pytest.raises(ValueError, match=r"another method under the name 'a': 'shrink=1.0.*there, 'shrink=0.5"):
        run({"a": Noisy(shrink=0.5)}, task(), store=tmp_path)
    with pytest.raises(ValueError, match=r"another method under the name 'a'"):
        run({"a": lambda: Silent()}, task(), store=tmp_path)
    run({"f": lambda: Noisy(shrink=1.0), "g": FunctionTransformerModel(lambda x: x + 1.0)}, task(), store=tmp_path)
    size = (tmp_path / "results.log").stat().st_size
    for other in ({"f": lambda: Noisy(shrink=2.0)}, {"g": FunctionTransformerModel(lambda x: x + 2.0)}):
        with pytest.raises(ValueError, match="another method under the name"):
            run(other, task(), store=tmp_path)
    with pytest.raises(ValueError, match=r"random_state is 0 there and 1 here"):
        run({"a": Noisy()}, task(), store=tmp_path, random_state=1)
    assert (tmp_path / "results.log").stat().st_size == size
    # a seed or a progress bar of the method is no other method: the study sets them
    run({"a": Noisy(random_state=9)}, task(), store=tmp_path)
    assert (tmp_path / "results.log").stat().st_size == size


def test_one_writer_at_a_time(tmp_path):
    from bayessel.diagnostics.delve._store import StudyStore

    held = StudyStore(tmp_path, 0)
    with pytest.raises(ValueError, match="in use by another run"):
        run({"a": Noisy()}, task(), store=tmp_path)
    held.close()
    run({"a": Noisy()}, task(), store=tmp_path)


def test_a_torn_end_is_done_again_and_damage_is_refused(tmp_path):
    whole = run({"a": Noisy()}, task(), store=tmp_path)
    log = tmp_path / "results.log"
    data = log.read_bytes()
    log.write_bytes(data[:-7])
    assert len(delve.Study.load(tmp_path).outcomes) == 3
    with pytest.warns(StoreWarning, match="that unit will be done again"):
        assert same(whole, run({"a": Noisy()}, task(), store=tmp_path))
    middle = bytearray(log.read_bytes())
    middle[len(middle) // 2] ^= 1
    log.write_bytes(middle)
    with pytest.raises(ValueError, match="damaged at byte"):
        run({"a": Noisy()}, task(), store=tmp_path)
    with pytest.raises(ValueError, match="damaged at byte"):
        delve.Study.load(tmp_path)


def test_a_folder_of_somebody_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("words")
    with pytest.raises(ValueError, match=r"other files \(thesis.tex\)"):
        run({"a": Noisy()}, task(), store=tmp_path)
    with pytest.raises(ValueError, match="no study in"):
        delve.Study.load(tmp_path)


def test_save_and_go_on(tmp_path):
    study = run({"a": Noisy(), "wreck": Failing()}, [task(), task(size=32)])
    study.save(tmp_path / "s")
    loaded = delve.Study.load(tmp_path / "s")
    assert same(study, loaded) and loaded.failures().equals(study.failures())
    assert loaded.to_pandas().equals(study.to_pandas())
    assert loaded.table("log").equals(study.table("log"))
    assert run({"a": Noisy(), "wreck": Failing()}, [task(), task(size=32)], store=tmp_path / "s").remaining == 0


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_a_time_budget(tmp_path):
    methods = {"a": Noisy(seconds=0.1)}
    with pytest.warns(SamplingWarning, match="of 4 units to do"):
        study = run(methods, task(), store=tmp_path, time_budget=0.15)
    assert 1 <= len(study.outcomes) <= 2 and study.remaining == 4 - len(study.outcomes)
    assert run(methods, task(), store=tmp_path).remaining == 0


class Interrupted(Noisy):
    """Ctrl-C comes in its third fit; some methods take it as a hint to finish early."""

    swallow = False
    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        if type(self).fits == 3:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if not self.swallow:
                    raise
        return super().fit(X, y)


@pytest.fixture
def heard():
    """Processes in the background of a shell are born deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("swallow", [False, True])
def test_ctrl_c_gives_back_what_there_is(tmp_path, swallow):
    Interrupted.fits, Interrupted.swallow = 0, swallow
    study = run({"a": Interrupted()}, task(), store=tmp_path, n_jobs=1)
    assert study.interrupted and study.remaining == 2 and len(study.outcomes) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    rest = run({"a": Interrupted()}, task(), store=tmp_path, n_jobs=1)
    assert rest.remaining == 0 and not rest.interrupted
    # nothing yet: nothing to give back
    Interrupted.fits = 2
    with pytest.raises(KeyboardInterrupt):
        run({"a": Interrupted(swallow)}, task())


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"methods": {}}, TypeError, "dict of estimators"),
        ({"methods": {"a": 3}}, TypeError, "must have fit and predict"),
        ({"tasks": []}, ValueError, "tasks is empty"),
        ({"tasks": [1]}, TypeError, "must be Task objects"),
        ({"tasks": [task(), task()]}, ValueError, "two tasks are called 'line 16'"),
        ({"losses": ["huber"]}, ValueError, "'squared', 'absolute', 'log'"),
        ({"losses": []}, ValueError, "losses is empty"),
        ({"executor": 3}, TypeError, "dask.distributed.Client.* got 3"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"n_jobs": True}, TypeError, "n_jobs must be"),
        ({"time_budget": "soon"}, ValueError, "time_budget must be"),
        ({"random_state": -1}, ValueError, "random_state must be"),
    ],
)
def test_bad_arguments(arguments, kind, said):
    with pytest.raises(kind, match=said):
        run(**{"methods": {"a": Noisy()}, "tasks": task()} | arguments)
