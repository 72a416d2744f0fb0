"""`bs.sample`: runs that end on time, and where chains start.

Guards `bayessel.samplers.run.schedule`, `bayessel.work.clock`.
"""

import json
import time

import arviz as az
import numpy as np
import pymc as pm
import pytest

import bayessel as bs
from bayessel._check import as_seconds
from bayessel.errors import SamplingWarning
from tests.problems.runs import Walk, model, plain_python, same, sample, walk


@pytest.fixture(scope="module")
def made():
    with plain_python():
        yield model()


# --- time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 2])
def test_a_run_ends_on_time_with_equal_chains(made, cores):
    budget = 1.0  # no multiple of a block
    began = time.monotonic()
    trace = sample(made, walk(made, seconds=0.002), draws=100_000, tune=20, chains=4, cores=cores, time_budget=budget)
    outside = time.monotonic() - began
    assert trace.attrs["status"] == "time budget"
    assert trace.attrs["sampling_time"] == pytest.approx(budget, rel=0.1)
    assert trace.attrs["sampling_time"] < outside
    n = trace.attrs["draws"]
    assert trace.posterior.x.shape == (4, n, 3)
    # sleeping for 2 ms lets as many draws be made as cores allow, however busy the machine is
    spent = json.loads(trace.attrs["step_seconds"])["walk[x, s_log__]"]
    made_in_all = trace.attrs["n_gradient_evaluations"] / 2
    assert 4 * (n + 20) > 0.9 * made_in_all  # little is cut off to make the chains equal
    assert spent > 0.8 * cores * budget  # and little is lost between the draws
    assert np.array_equal(trace.posterior.x, sample(made, walk(made), draws=n, tune=20, chains=4).posterior.x)


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_half_a_minute(cores):
    """30 s end within 10 %, with equal chains, and with nine tenths of what a run without a budget does meanwhile."""
    from tests.samplers.run.test_resume import hierarchical

    made = hierarchical()
    steps = bs.steps(made, updates_per_draw=50)
    keywords = {"tune": 500, "chains": 4, "cores": cores, "step": steps, "progressbar": False, "random_seed": 2}
    trace = bs.sample(made, 10**6, time_budget="30s", log_likelihood=False, **keywords)
    n = trace.attrs["draws"]
    assert trace.attrs["status"] == "time budget"
    assert trace.attrs["sampling_time"] == pytest.approx(30.0, rel=0.1)
    assert trace.posterior.mu.shape == (4, n)
    free = bs.sample(made, n, log_likelihood=False, **keywords)
    assert np.array_equal(free.posterior.mu, trace.posterior.mu)
    # the same draws in the time t: in 30 s the free run makes 30/t of them
    assert n >= 0.9 * n * 30.0 / free.attrs["sampling_time"]
    assert sum(json.loads(trace.attrs["step_seconds"]).values()) > 0.8 * 30.0 * cores


def test_a_budget_that_is_not_needed(made):
    trace = sample(made, walk(made), time_budget="1h")
    assert trace.attrs["status"] == "complete"
    assert same(trace, sample(made, walk(made)))


@pytest.mark.parametrize("with_store", [False, True])
def test_tuning_that_does_not_finish(made, tmp_path, with_store):
    """There are no draws of the posterior then: an empty result that says so, and what to do."""
    where = {"store": tmp_path / "run"} if with_store else {}
    with pytest.warns(SamplingWarning, match=r"the time budget of 0.1 s was over after \d+ of 3000 draws of tuning"):
        trace = sample(made, walk(made, seconds=0.001), tune=3000, time_budget=0.1, log_likelihood=True, **where)
    assert (trace.attrs["status"], trace.attrs["stopped_by"]) == ("tuning unfinished", "time budget")
    assert ("with the same store" if with_store else "give it a store") in trace.attrs["advice"]
    assert trace.posterior.x.shape == (3, 0, 3) and trace.posterior.total.shape == (3, 0)
    assert trace.sample_stats.n_steps.shape == (3, 0) and trace.log_likelihood.y.shape == (3, 0, 4)
    trace.to_netcdf(tmp_path / "t.nc")
    assert az.from_netcdf(tmp_path / "t.nc").attrs["tuning_steps"] < 3000


def test_no_draw_in_time(made):
    """Without tuning nothing is unfinished; the result is as empty."""
    with pytest.warns(SamplingWarning, match=r"after 0 of 60 draws per chain; to have the others give it a store"):
        trace = sample(made, walk(made, seconds=0.1), tune=0, time_budget=0.05)
    assert trace.attrs["status"] == "time budget" and trace.posterior.x.shape == (3, 0, 3)


def test_a_run_can_go_on_for_another_while(made, tmp_path):
    """Time budgets with a store add up to the run that was never cut."""
    for _ in range(2):
        part = sample(made, walk(made, seconds=0.001), draws=5000, time_budget=0.3, store=tmp_path, cores=2)
        assert part.attrs["status"] == "time budget"
    n = part.attrs["draws"]
    assert part.attrs["resumed_draws"] > 100
    assert np.array_equal(part.posterior.x, sample(made, walk(made), draws=n).posterior.x)


def test_a_long_draw_is_not_begun_at_the_last_moment(made):
    trace = sample(made, walk(made, seconds=0.09), draws=100, tune=0, chains=1, time_budget=0.4)
    assert 3 <= trace.attrs["draws"] <= 4
    assert trace.attrs["sampling_time"] < 0.46


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("2m", 120.0),
        ("1.5 h", 5400.0),
        ("7", 7.0),
        (".5min", 30.0),
        (3, 3.0),
        (None, None),
        ("1D", 86400),
    ],
)
def test_times_are_read(text, seconds):
    assert as_seconds(text) == seconds


# --- where chains start ---------------------------------------------------------------------------------------------


class Still(Walk):
    """Does not move: its first draw is the starting point."""

    def step(self, point):
        _, stats = super().step(dict(point))
        return dict(point), stats


def starts(made, **kwargs):
    with made:
        step = Still(made.value_vars)
    return sample(made, step, draws=1, tune=0, **kwargs).posterior.isel(draw=0)


def test_chains_start_apart(made):
    x = starts(made).x.values
    assert len(np.unique(x)) == 9 and (np.abs(x) <= 1.0).all()
    assert np.array_equal(x, starts(made).x.values)
    assert not np.array_equal(x, starts(made, random_seed=8).x.values)


def test_initvals(made):
    given = starts(made, initvals={"x": [0.1, 0.2, 0.3], "s": 2.0})
    assert np.allclose(given.x, [0.1, 0.2, 0.3]) and np.allclose(given.s, 2.0)
    given = starts(made, initvals=[{"s": 1.0}, None, {"s": 3.0}])
    assert given.s.values[[0, 2]] == pytest.approx([1.0, 3.0])
    given = starts(made, initvals={"s_log__": 0.5})
    assert np.allclose(given.s, np.exp(0.5))
    with pytest.raises(ValueError, match=r"initvals names w, which the model does not sample; it samples x, s"):
        starts(made, initvals={"w": 1.0})
    with pytest.raises(ValueError, match="there are 3 chains and 2 dictionaries"):
        starts(made, initvals=[{}, {}])
    for short in (1.0, [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"x of shape \(2?,?\), and the model \(3,\)"):
            starts(made, initvals={"x": short})
    with pytest.raises(TypeError, match="initvals must be a dictionary"):
        starts(made, initvals=3.0)


def test_starting_points_of_zero_density_are_tried_again():
    with plain_python(), pm.Model() as narrow:
        x = pm.Normal("x")
        pm.Potential("half", pm.math.switch(x > 0.2, 0.0, -np.inf))
        assert (starts(narrow, chains=8).x > 0.2).all()
    with plain_python(), pm.Model() as impossible:
        x = pm.Normal("x")
        pm.Potential("nowhere", pm.math.switch(x > 5.0, 0.0, -np.inf))
        with pytest.raises(ValueError, match=r"no starting point .* chain 0 in 40 tries.*nowhere.*give initvals="):
            starts(impossible)
        assert np.allclose(starts(impossible, initvals={"x": 6.0}).x, 6.0)
