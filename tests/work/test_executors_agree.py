"""Three executors, one of them losing a worker, give identical numbers for whole pieces of work.

Guards `bayessel.work.executors`.
"""

import os
import signal
import threading
from contextlib import contextmanager

import distributed
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import submitit
from numpy.testing import assert_array_equal

import bayessel as bs
from bayessel.diagnostics import delve
from bayessel.diagnostics.calibration import sbc
from tests.problems.delve import Noisy, same, task


@contextmanager
def cluster_losing_a_worker(after):
    """A scheduler and two worker processes, one of which is killed so many seconds after the beginning."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killed = threading.Timer(after, os.kill, (pids[0], signal.SIGKILL))
        killed.start()
        yield client
        killed.join()
        # a worker that dies while it is asked is no worker any more
        assert set(client.run(os.getpid, on_error="ignore").values()) != set(pids)


def three(call, after):
    """The result in this process, in two processes, and on a cluster that loses a worker."""
    alone, two = call(n_jobs=1), call(n_jobs=2)
    with cluster_losing_a_worker(after) as client:
        return alone, two, call(executor=client)


@pytest.mark.slow
def test_comparisons_of_widths_agree():
    x = np.linspace(-3, 3, 150)
    y = np.cos(x**2) + 0.1 * np.random.default_rng(0).standard_normal(150)
    grid = np.geomspace(0.05, 5, 25)
    one, two, three_ = three(
        lambda **who: bs.compare_widths(x, y, grid, model="rvm", holdout=0.2, progressbar=False, **who), 2.0
    )
    for other in (two, three_):
        pd.testing.assert_frame_equal(one.table, other.table, check_exact=True)
        assert one.fits.keys() == other.fits.keys()
        for label, fit in one.fits.items():
            assert_array_equal(fit.grid_mean, other.fits[label].grid_mean)
            assert_array_equal(fit.grid_std, other.fits[label].grid_std)


@pytest.mark.slow
def test_calibrations_agree():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 1.0, shape=2)
        tau = pm.Gamma("tau", 2.0, 2.0)
        pm.Normal("y", w[0] + w[1] * np.arange(4.0), tau=tau, observed=pm.Data("y_data", np.zeros(4)))
    one, two, three_ = three(
        lambda **who: sbc(model, bs.steps, 60, 31, tune=100, random_seed=3, progressbar=False, **who), 3.0
    )
    assert one.ranks.shape == (60, 5)
    for other in (two, three_):
        assert_array_equal(one.ranks, other.ranks)
        assert_array_equal(one.similarity, other.similarity)


@pytest.mark.slow
def test_studies_agree(tmp_path):
    tasks = [task(instances=8), task(name="other", noise=0.1, instances=8)]
    methods = {"a": Noisy(seconds=0.1), "b": Noisy(seconds=0.1, shrink=0.5), "rvm": bs.RVMRegressor(width=1.0)}
    one, two, three_ = three(lambda **who: delve.run(methods, tasks, progressbar=False, **who), 2.0)
    assert len(one.outcomes) == 48 and one.failures().empty
    assert same(one, two) and same(one, three_)
    jobs = submitit.AutoExecutor(tmp_path, cluster="local")  # a fresh interpreter per unit: some of them
    some = delve.run({name: methods[name] for name in ("a", "rvm")}, tasks[:1], executor=jobs, progressbar=False)
    assert len(some.outcomes) == 16 and same(some, one.only(["a", "rvm"], [tasks[0].name]))
