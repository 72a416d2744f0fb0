"""A run that is cut anywhere and continued is the run that was never cut.

Guards `bayessel.samplers.run.sampling`, `bayessel.samplers.run.kernel`, `bayessel.samplers.run.step_states`.
"""

import os
import signal
import time
import warnings

import numpy as np
import pytest

from bayessel.errors import StoreWarning
from tests.problems.runs import Leaky, model, plain_python, process, same, sample, wait_for, walk


@pytest.fixture(scope="module")
def made():
    with plain_python():
        yield model()


@pytest.fixture(scope="module")
def whole(made):
    """The run that was never cut."""
    return sample(made, walk(made), draws=200, tune=100)


def killed_until_done(made, folder, kills, rng, cores=1, seconds=0.0015, **lengths):
    """Run in processes that are killed at random moments; the last one finishes."""
    lengths = {"draws": 200, "tune": 100} | lengths

    def job():
        sample(made, walk(made, seconds=seconds), store=folder, cores=cores, **lengths)

    for _ in range(kills):
        before = written(folder)
        with process(job) as child:
            wait_for(lambda before=before: written(folder) > before)
            time.sleep(rng.uniform(0.0, 0.15))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def written(folder):
    return sum(path.stat().st_size for path in folder.glob("chain-*.log"))


@pytest.mark.parametrize("cores", [1, 2])
def test_kill_9_changes_nothing(made, whole, tmp_path, rng, cores):
    store = tmp_path / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        killed_until_done(made, store, 2, rng, cores=cores)
        again = sample(made, walk(made, seconds=0.0015), store=store, draws=200, tune=100, cores=cores)
    assert 0 < again.attrs["resumed_draws"] < 3 * 300
    assert same(whole, again)
    assert again.attrs["n_gradient_evaluations"] == whole.attrs["n_gradient_evaluations"]
    assert again.attrs["status"] == "complete"


def test_a_finished_run_is_extended(made, whole, tmp_path):
    short = sample(made, walk(made), draws=50, tune=100, store=tmp_path)
    assert short.sizes == {} and short.posterior.sizes["draw"] == 50
    longer = sample(made, walk(made), draws=200, tune=100, store=tmp_path, cores=2)
    assert same(whole, longer)
    assert longer.attrs["resumed_draws"] == 3 * 150
    work = longer.attrs["n_gradient_evaluations_now"] / longer.attrs["n_gradient_evaluations"]
    assert work == pytest.approx(0.5, abs=0.01)
    # fewer draws than there are: the first of them, and nothing is sampled
    fewer = sample(made, walk(made), draws=50, tune=100, store=tmp_path)
    assert same(short, fewer)
    assert fewer.attrs["n_gradient_evaluations_now"] == 0


def test_no_seed_goes_on_with_the_stored_one(made, tmp_path):
    first = sample(made, walk(made), draws=20, store=tmp_path, random_seed=None)
    second = sample(made, walk(made), draws=40, store=tmp_path, random_seed=None)
    assert first.attrs["random_seed"] == second.attrs["random_seed"]
    assert np.array_equal(first.posterior.x, second.posterior.x[:, :20])
    other = sample(made, walk(made), draws=20, random_seed=None)
    assert not np.array_equal(first.posterior.x, other.posterior.x)
    named = sample(made, walk(made), draws=20, random_seed=first.attrs["random_seed"])
    assert same(first, named)


def test_an_incomplete_state_is_seen(made, tmp_path):
    """The control: with the momentum outside the state, a cut run is another run."""
    with made:
        leaky = Leaky(made.free_RVs)
    uncut = sample(made, leaky, chains=1)
    sample(made, leaky, chains=1, draws=20, store=tmp_path)
    assert not same(uncut, sample(made, leaky, chains=1, store=tmp_path))


def test_what_follows_a_resume_is_only_what_was_missing(made, tmp_path):
    """After a kill nothing is sampled twice but the block that had not been flushed."""
    store = tmp_path / "run"
    lengths = {"draws": 250, "tune": 50}

    def job():
        sample(made, walk(made, seconds=0.002), store=store, **lengths)

    with process(job) as child:
        wait_for(lambda: written(store) > 20_000)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        steps = walk(made)
        result = sample(made, steps, store=store, **lengths)
    kept = result.attrs["resumed_draws"]
    assert kept > 0
    # the toy counts 1 + k % 3 gradients in its k-th draw
    missing = result.attrs["n_gradient_evaluations_now"]
    assert missing <= 2 * (3 * 300 - kept) + 3
    # one block per chain at most was under way; blocks are about 0.3 s of 2 ms draws
    assert result.attrs["n_gradient_evaluations"] - missing >= 2 * kept - 3


@pytest.mark.parametrize(("cores", "signal_to_group"), [(1, False), (2, False), (2, True)])
def test_ctrl_c_gives_back_what_there_is(made, whole, tmp_path, cores, signal_to_group):
    """A real SIGINT, to the process alone or, as a terminal does, to its workers too."""
    out = tmp_path / "result.nc"
    store = tmp_path / "run"

    def job():
        trace = sample(made, walk(made, seconds=0.001), draws=100_000, tune=100, cores=cores, store=store)
        trace.to_netcdf(out)

    with process(job) as child:
        wait_for(lambda: written(store) > 60_000)
        (os.killpg if signal_to_group else os.kill)(child, signal.SIGINT)
        began = time.monotonic()
        _, code = os.waitpid(child, 0)
        assert code == 0
        assert time.monotonic() - began < 5.0
    import arviz as az

    trace = az.from_netcdf(out)
    n = trace.attrs["draws"]
    assert trace.attrs["status"] == "interrupted"
    assert "same store" in trace.attrs["advice"]
    assert trace.posterior.sizes == {"chain": 3, "draw": n, "part": 3}
    shared = min(n, 200)
    assert shared > 20
    assert np.array_equal(trace.posterior.x[:, :shared], whole.posterior.x[:, :shared])
    # and it can be continued
    more = sample(made, walk(made), draws=n + 50, tune=100, store=store)
    assert np.array_equal(more.posterior.x[:, :n], trace.posterior.x)
    assert same(more, sample(made, walk(made), draws=n + 50, tune=100))


def test_workers_die_with_their_parent(made, tmp_path):
    pids = tmp_path / "pids"

    steps = walk(made, seconds=0.001)
    original = type(steps).step

    def step(self, point):
        path = pids / str(os.getpid())
        if not path.exists():
            path.touch()
        return original(self, point)

    pids.mkdir()
    type(steps).step = step
    try:
        with process(lambda: sample(made, steps, draws=100_000, cores=2)) as child:
            wait_for(lambda: len(list(pids.iterdir())) >= 3)  # the parent's rehearsal and two workers
            workers = [int(path.name) for path in pids.iterdir() if int(path.name) != child]
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            wait_for(lambda: not any(alive(pid) for pid in workers), 5.0)
    finally:
        type(steps).step = original


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


SCRIPT = """
import sys
import bayessel as bs
from tests.samplers.run.test_resume import hierarchical
if __name__ == "__main__":
    store, cores, out, draws = sys.argv[1] or None, int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    model, split = hierarchical(), sys.argv[5]
    steps = bs.steps(model, split=split, updates_per_draw=300 if split == "auto" else "auto")
    trace = bs.sample(
        model, draws, tune=500, chains=3, cores=cores, random_seed=5, step=steps, store=store, log_likelihood=False
    )
    trace.to_netcdf(out)
"""


def hierarchical():
    """Persistent-momentum HMC for all variables, or exact Gibbs blocks for some."""
    import pymc as pm

    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(5), 6)
    y = rng.standard_t(4, size=30) + rng.normal(size=5)[group]
    with pm.Model(coords={"group": range(5)}) as made:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.Gamma("tau", 2.0, 2.0)
        u = pm.Normal("u", mu, 1.0 / pm.math.sqrt(tau), dims="group")
        s = pm.HalfNormal("s", 2.0)
        pm.StudentT("y", nu=4.0, mu=u[group], sigma=s, observed=pm.Data("y_data", y))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("split", ["auto", "conjugate"])
def test_twenty_kills_of_a_real_process(tmp_path, rng, split):
    """Ours and compiled code, a fresh interpreter each time: killed 20 times at random moments of its sampling."""
    import subprocess
    import sys

    import arviz as az

    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.getcwd(), "PYTHONWARNINGS": "ignore"}

    def start(store, cores, out, draws=60_000):
        command = [sys.executable, str(script), str(store), str(cores), str(out), str(draws), split]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    assert start("", 2, tmp_path / "cold", 10).wait() == 0  # compiles: a cold cache and a warm one differ in rounding
    assert start("", 2, tmp_path / "whole").wait() == 0
    whole = az.from_netcdf(tmp_path / "whole")
    store, kills = tmp_path / "store", 0
    while kills < 20:
        before = written(store)
        running = start(store, 1 + kills % 2, tmp_path / "part")
        wait_for(lambda before=before, running=running: written(store) > before or running.poll() is not None, 120.0)
        assert running.poll() is None, "the run ended before it was killed often enough"
        time.sleep(rng.uniform(0.0, 0.2))
        running.kill()
        running.wait()
        kills += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        assert start(store, 2, tmp_path / "end").wait() == 0
    end = az.from_netcdf(tmp_path / "end")
    assert same(whole, end)
    total = whole.attrs["n_gradient_evaluations"]
    assert end.attrs["n_gradient_evaluations"] == total
    # what the last run computed is what was missing: its share of the draws, give or take unequal costs of draws
    missing = 1.0 - end.attrs["resumed_draws"] / (3 * 60_500)
    assert 0.0 < missing < 1.0
    assert end.attrs["n_gradient_evaluations_now"] == pytest.approx(missing * total, rel=0.1)
