"""Who uses units of work: the same numbers in this process, in two, and on a cluster; nothing asked for twice.

Guards `bayessel.work._run`, `bayessel.work.unit`, `bayessel.work.interrupts`.
"""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_array_equal

import bayessel as bs
from bayessel.baselines import BaggedMARSRegressor
from bayessel.diagnostics import delve
from bayessel.diagnostics.calibration import geweke, sbc
from bayessel.samplers.network.annealing import anneal_network
from bayessel.work import WorkUnit, journal, run
from bayessel.work.interrupts import InterruptCounter
from tests.problems.delve import Noisy, same, task

QUICK = {"compile_kwargs": {"mode": "FAST_COMPILE"}, "progressbar": False}


@pytest.fixture(scope="module")
def normal():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", mu, 1.0, observed=pm.Data("y_data", np.zeros(3)))
    return model


def test_evidence_runs_do_not_depend_on_who_does_them(rng):
    X = rng.normal(size=(12, 1))
    settings = {"hidden": 1, "n_particles": 6, "n_runs": 2, "n_pilots": 2, "updates": 1, "n_leapfrog": 5}
    one, two = (
        anneal_network(X, np.sin(X[:, 0]), random_state=1, bracket=True, n_jobs=jobs, **settings) for jobs in (1, 2)
    )
    assert_array_equal(one.log_weights, two.log_weights)
    assert_array_equal(one.pilots, two.pilots)
    assert (one.upper, one.n_gradients) == (two.upper, two.n_gradients)


def rank_numbers(model, **options):
    return sbc(model, bs.steps, 10, 7, thin=2, tune=20, random_seed=3, **QUICK, **options).ranks


def test_replications_do_not_depend_on_who_does_them(normal):
    """PyMC's steps among them, which keep what they have tuned unless told otherwise."""

    def walk(model):
        return pm.Metropolis([model["mu"]], model=model)

    for make in (bs.steps, walk):
        alone, two = (
            sbc(normal, make, 10, 7, thin=2, tune=20, random_seed=3, n_jobs=jobs, **QUICK).ranks for jobs in (1, 2)
        )
        assert_array_equal(alone, two)
    with ThreadPoolExecutor(2) as threads:
        assert_array_equal(rank_numbers(normal, n_jobs=1), rank_numbers(normal, executor=threads))
    assert_array_equal(normal["y_data"].get_value(), np.zeros(3))


def test_joint_chains_do_not_depend_on_who_does_them(normal):
    alone, two = (
        geweke(normal, bs.steps, 20, chains=2, tune=5, marginal=100, random_seed=1, n_jobs=jobs, **QUICK)
        for jobs in (1, 2)
    )
    assert_array_equal(alone.successive, two.successive)
    assert_array_equal(alone.marginal, two.marginal)


def test_bags_do_not_depend_on_who_makes_them(rng):
    X = rng.uniform(size=(60, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    one, two = (
        BaggedMARSRegressor(n_estimators=6, random_state=0, progressbar=False, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
    )
    assert_array_equal(one.predict(X, return_std=True), two.predict(X, return_std=True))
    assert_array_equal(one.out_of_bag_, two.out_of_bag_)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: bs.compare_widths([0.0, 1.0], [0.0, 1.0], [1.0], n_jobs=n),
        lambda n: delve.run({"a": Noisy()}, task(), n_jobs=n),
        lambda n: sbc(None, None, n_jobs=n),
        lambda n: geweke(None, None, n_jobs=n),
        lambda n: BaggedMARSRegressor(n_jobs=n).fit([[0.0], [1.0]], [0.0, 1.0]),
    ],
    ids=["widths", "delve", "sbc", "geweke", "bagging"],
)
def test_numbers_of_processes_mean_the_same_everywhere(call):
    with pytest.raises(TypeError, match="n_jobs must be None, a number of processes, or -1 for every core; got True"):
        call(True)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        call(0)


def test_a_study_that_fails_lets_go_of_its_store(tmp_path, monkeypatch):
    """One error, not another one in closing; the store can be opened again."""
    study = delve.run({"a": Noisy()}, task(instances=2), store=tmp_path, progressbar=False)

    def full(file):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(journal, "sync", full)
        with pytest.raises(OSError, match="what was stored before is kept") as caught:
            delve.run({"a": Noisy(), "b": Noisy()}, task(instances=2), store=tmp_path, progressbar=False)
    first = caught.value.__context__
    assert first.strerror == "No space left on device" and first.__context__ is None
    assert same(study, delve.run({"a": Noisy()}, task(instances=2), store=tmp_path, progressbar=False))


def inner_run(_):
    return len(run([WorkUnit("a", signal.raise_signal, (signal.SIGINT,)), WorkUnit("b", time.time)], n_jobs=1).values)


def test_ctrl_c_in_a_run_within_a_run_ends_both():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        report = run([WorkUnit(str(k), inner_run, (k,)) for k in range(3)], n_jobs=1, progress=False)
        assert report.interrupted and not report.values
        with InterruptCounter() as outer:
            with InterruptCounter() as inner:
                signal.raise_signal(signal.SIGINT)
            assert outer.count == inner.count == 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
