"""`bs.sample`: arguments, models, seeds, the bar.

Guards `bayessel.samplers.run.arguments`.
"""

import io

import numpy as np
import pymc as pm
import pytest

import bayessel as bs
from bayessel._check import check_seed
from tests.problems.runs import Walk, model, plain_python, same, sample, walk


@pytest.fixture(scope="module")
def made():
    with plain_python():
        yield model()


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"draws": 10.0}, TypeError, "draws must be an integer"),
        ({"tune": -1}, ValueError, "tune must be at least 0"),
        ({"chains": 0}, ValueError, "chains must be at least 1"),
        ({"cores": 0}, ValueError, "cores must be at least 1"),
        ({"random_seed": -1}, ValueError, "random_seed must be at least 0"),
        ({"random_seed": "a"}, TypeError, "random_seed must be an integer"),
        ({"random_seed": True}, TypeError, "random_seed must be an integer"),
        ({"time_budget": 0}, ValueError, "time_budget must be positive"),
        ({"time_budget": "soon"}, ValueError, "time_budget must be seconds, or text"),
        ({"time_budget": "3 weeks"}, ValueError, "units are s, sec, m, min, h, d"),
        ({"time_budget": True}, TypeError, "time_budget must be a positive number"),
        ({"store": 3}, TypeError, "store must be the name of a folder"),
        ({"store": ""}, TypeError, "store must be the name of a folder"),
        ({"resume": "no"}, TypeError, "resume must be True or False"),
        ({"log_likelihood": 1}, TypeError, "log_likelihood must be True or False"),
        ({"quiet": None}, TypeError, "quiet must be True or False"),
    ],
)
def test_bad_arguments(made, change, error, said):
    with pytest.raises(error, match=said):
        sample(made, walk(made), **change)


def test_bad_models_and_steps(made):
    with pytest.raises(TypeError, match=r"there is no model: pass one, sample\(model\)"):
        bs.sample()
    with pytest.raises(TypeError, match=r"must be a pymc\.Model, got int"):
        bs.sample(3)
    with pm.Model() as empty, pytest.raises(ValueError, match="no free variables"):
        bs.sample(empty)
    with pytest.raises(TypeError, match=r"the class Walk; make an instance"):
        sample(made, Walk)
    with pytest.raises(TypeError, match=r"must be a PyMC step method .* got str"):
        sample(made, ["slice"])
    with plain_python():
        other = model()
    with pytest.raises(ValueError, match=r"the steps move x, s_log__, which are no value variables of this model"):
        sample(made, walk(other))
    with plain_python(), made, pytest.raises(ValueError, match=r"DEMetropolis moves all chains together"):
        sample(made, pm.DEMetropolis(made.free_RVs))


def test_random_parts_of_the_data_are_refused():
    y, x = np.arange(20.0), np.linspace(-1.0, 1.0, 20)
    with pm.Model() as parts:
        some_y, some_x = pm.Minibatch(y, x, batch_size=5)
        w = pm.Normal("w")
        pm.Normal("y", w * some_x, 1.0, observed=some_y, total_size=20)
    with pytest.raises(ValueError, match=r"y sees a random part of the data .*pm\.fit.*on all data"):
        bs.sample(parts, 10)
    with pm.Model() as scaled:
        pm.Normal("z", pm.Normal("w"), 1.0, observed=y, total_size=100)
    with pytest.raises(ValueError, match="scaled by total_size"):
        bs.sample(scaled, 10)
    with pm.Model() as potential:
        pm.Potential("p", -(pm.Minibatch(x, batch_size=5) * pm.Normal("w")).sum())
    with pytest.raises(ValueError, match="p sees a random part"):
        bs.sample(potential, 10)


def test_seeds(made):
    assert check_seed(np.array(5)) == 5
    assert same(sample(made, walk(made), random_seed=[1, 2]), sample(made, walk(made), random_seed=(1, 2)))
    a, b = (sample(made, walk(made), random_seed=np.random.default_rng(4)) for _ in range(2))
    assert same(a, b)
    assert not same(a, sample(made, walk(made), random_seed=None))


def test_the_model_of_the_context(made):
    with made:
        assert same(sample(None, walk(made)), sample(made, walk(made)))


def test_no_bar_in_a_pipe(made, capfd):
    bs.sample(made, 5, tune=5, chains=1, cores=1, step=walk(made), random_seed=1)
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminal(made, monkeypatch):
    import rich.console

    screen = io.StringIO()
    plain = rich.console.Console
    monkeypatch.setattr(rich.console, "Console", lambda **_: plain(file=screen, force_terminal=True, width=100))
    bs.sample(made, 30, tune=5, chains=2, cores=1, step=walk(made), random_seed=1)
    assert "sampling 2 chains, 35 of 35 draws" in screen.getvalue() and "divergences" in screen.getvalue()
    screen.truncate(0)
    bs.sample(made, 30, tune=5, chains=2, cores=1, step=walk(made), random_seed=1, quiet=True)
    assert "sampling" not in screen.getvalue()
