"""What `bs.sample` says when it has ended: a verdict, two lines on a terminal, a warning of draws not to be used.

Guards `bayessel.samplers.run.closing`.
"""

import warnings

import pymc as pm
import pytest

import bayessel as bs
from bayessel.errors import SamplingWarning
from bayessel.samplers.run import closing
from tests.problems.runs import model, plain_python, sample, walk


@pytest.fixture(scope="module")
def made():
    with plain_python():
        yield model()


@pytest.fixture(scope="module")
def normal():
    with pm.Model() as made:
        x = pm.Normal("x", shape=2)
        pm.Normal("y", x.sum(), 1.0, observed=[0.5])
    return made


def test_good_draws_are_usable_and_nothing_warns(normal):
    trace = bs.sample(normal, 400, tune=100, chains=4, cores=1, random_seed=1, progressbar=False)
    said, verdict = trace.attrs, bs.diagnostics.convergence(trace)
    assert said["verdict"] == "usable" and verdict.ok and said["verdict_elements"] == "2 of 2"
    assert said["largest_r_hat"] == verdict.table["r_hat"].max() < 1.01
    assert said["smallest_ess_bulk"] == verdict.table["ess_bulk"].min() > 400
    assert said["divergences"] == 0 and 0.0 < said["verdict_time"] < 5.0 and 0.0 < said["finishing_time"] < 5.0


def test_draws_not_to_be_used_are_warned_of(made):
    steps = walk(made)
    with pytest.warns(SamplingWarning, match=r"Do not use these draws yet\. .*convergence\(trace\) says more"):
        trace = bs.sample(made, 200, tune=5, chains=2, cores=1, step=steps, random_seed=7, progressbar=False)
    assert trace.attrs["verdict"] == "do not use" and "transitions diverged" in trace.attrs["verdict_reasons"]
    assert trace.attrs["divergences"] == int(trace.sample_stats.diverging.sum()) > 20
    assert not bs.diagnostics.convergence(trace).ok


@pytest.mark.parametrize(
    "size", [{"draws": 10, "chains": 4}, {"draws": 150, "chains": 2}, {"draws": 2000, "chains": 1}]
)
def test_of_short_runs_nothing_is_said(made, size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = bs.sample(made, tune=5, cores=1, step=walk(made), random_seed=7, progressbar=False, **size)
    assert trace.attrs["verdict"] == "too few draws to judge"


def test_two_lines_on_a_terminal(made, monkeypatch, capfd):
    from rich.console import Console

    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setenv("COLUMNS", "400")
    run = {"draws": 120, "tune": 5, "chains": 4, "cores": 1, "step": walk(made), "random_seed": 7}
    with pytest.warns(SamplingWarning, match="Do not use"):
        bs.sample(made, **run)
    first, second = capfd.readouterr().err.rstrip().split("\n")[-2:]
    assert "4 chains of 120 draws: largest R-hat " in first and "smallest tail ESS" in first and "divergences" in first
    assert second.startswith("Do not use these draws yet.")
    for off in ({"progressbar": False}, {"quiet": True}):
        with pytest.warns(SamplingWarning, match="Do not use"):
            bs.sample(made, **run, **off)
        assert capfd.readouterr().err == ""


def test_of_many_numbers_the_slowest_are_looked_at(made, monkeypatch):
    monkeypatch.setattr(closing, "MOST", 2)
    trace = sample(made, walk(made), draws=100, chains=4)
    assert trace.attrs["verdict_elements"] == "2 of 5"
    found = closing.judge(trace)
    assert "slowest 2 of 5 numbers" in closing.closing_lines(found, 0)


# --- target_accept ----------------------------------------------------------------------------------------------------


def bent():
    with pm.Model() as made:
        x = pm.Normal("x", shape=2)
        pm.Potential("skewed", -pm.math.exp(x[0]))
    return made


def test_target_accept_reaches_the_hamiltonian_steps():
    run = {"draws": 200, "tune": 400, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}
    rates = [
        float(bs.sample(bent(), target_accept=rate, **run).sample_stats.acceptance_rate.mean()) for rate in (0.7, 0.98)
    ]
    assert rates[0] < 0.85 and rates[1] > 0.95


def test_target_accept_that_nothing_takes_is_refused():
    with pm.Model() as exact:
        pm.Exponential("gaps", pm.Gamma("rate", 1.0, 1.0), observed=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"target_accept=0\.9 is for Hamiltonian .*GammaPrecisionGibbs.*leave it out"):
        bs.sample(exact, 10, target_accept=0.9, progressbar=False)
    made = bent()
    with plain_python(), made:
        own = pm.Slice(made.free_RVs)
    with pytest.raises(ValueError, match=r"moved by Slice; give it to your own step"):
        bs.sample(made, 10, step=own, target_accept=0.9, progressbar=False)
    with pytest.raises(ValueError, match="target_accept must be"):
        bs.sample(made, 10, target_accept=1.5, progressbar=False)


def test_a_store_of_another_target_accept_is_refused(tmp_path):
    run = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "random_seed": 1, "store": tmp_path, "progressbar": False}
    bs.sample(bent(), target_accept=0.8, **run)
    for other in ({"target_accept": 0.85}, {}):
        with pytest.raises(ValueError, match=r"holds another run.*target_accept"):
            bs.sample(bent(), **run, **other)
    bs.sample(bent(), target_accept=0.8, **run)
