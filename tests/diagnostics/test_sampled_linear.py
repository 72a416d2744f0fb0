"""Description lengths of draws: traces of linear models, explicit and collapsed, beside fits of engines.

Guards `bayessel.diagnostics.sampled_linear`, `bayessel.diagnostics.sampled_fit`.
"""

import warnings

import arviz as az
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import bayessel as bs
from bayessel.diagnostics import compare, mdl_alpha, mdl_w, nml
from bayessel.errors import SamplingWarning
from bayessel.linear import fit_evidence

pytestmark = pytest.mark.filterwarnings("ignore:Estimated shape parameter", "ignore::bayessel.errors.SamplingWarning")
RUN = {"draws": 300, "tune": 200, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False, "quiet": True}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    x = np.linspace(-1.0, 1.0, 40)
    Phi = x[:, None] ** np.arange(1, 5)
    return Phi, 3.0 + 2.0 * x - 4.0 * x**3 + 0.3 * rng.normal(size=40)


MODELS = {
    "explicit": lambda Phi, t: bs.models.linear(Phi, t, bias=True),
    "collapsed": lambda Phi, t: bs.models.linear(Phi, t, bias=True, collapsed=True),
    "fixed": lambda Phi, t: bs.models.linear(Phi, t, alpha=[0.5, 1.0, 2.0, 0.1], collapsed=True, bias=True),
    "rvm": lambda Phi, t: bs.models.rvm(np.column_stack([np.ones(len(t)), Phi]), t),
    "collapsed rvm": lambda Phi, t: bs.models.rvm(np.column_stack([np.ones(len(t)), Phi]), t, collapsed=True),
}


@pytest.fixture(scope="module")
def traces(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return {name: bs.sample(make(*data), **RUN) for name, make in MODELS.items()}


def written_out(trace, Phi, t, weights, alpha):
    """Both lengths from their definitions, dense."""
    post, n = trace.posterior, len(t)
    beta = np.exp(np.log(post["beta"].values).mean())
    b = post["b"].values.mean() if "b" in post else None
    sent = weights if b is None else np.append(weights, b)
    rest = t - Phi @ weights - (0.0 if b is None else b)
    flags = (len(sent) + 1) * np.log(len(sent))
    first = 0.5 * beta * rest @ rest - 0.5 * n * np.log(beta) + np.sum(np.log(np.abs(sent) / 0.1)) + flags
    C = np.eye(n) / beta + Phi @ np.diag(1.0 / np.broadcast_to(alpha, Phi.shape[1])) @ Phi.T
    joint = multivariate_normal(np.full(n, 0.0 if b is None else b), C)
    return first, -joint.logpdf(t) - 0.5 * n * np.log(2.0 * np.pi) + flags


@pytest.mark.parametrize("name", ["explicit", "rvm"])
def test_lengths_are_those_of_mean_weights_and_geometric_mean_precisions(data, traces, name):
    Phi, t = data
    trace = traces[name]
    design = Phi if name == "explicit" else np.column_stack([np.ones(len(t)), Phi])
    alpha = np.exp(np.log(trace.posterior["alpha"].values).mean(axis=(0, 1)))
    first, second = written_out(trace, design, t, trace.posterior["w"].values.mean(axis=(0, 1)), alpha)
    assert mdl_w(trace) == pytest.approx(first, rel=1e-9)
    assert mdl_alpha(trace) == pytest.approx(second, rel=1e-9)
    row = compare({name: trace}, by="mdl-w").loc[name]
    assert (row["mdl-w"], row["mdl-alpha"]) == (mdl_w(trace), mdl_alpha(trace)) and row["n_basis"] == 5
    assert row["elpd-loo"] == pytest.approx(az.loo(trace).elpd)
    k = 5 if name == "rvm" else 1
    assert mdl_alpha(trace, delta=0.1) - mdl_alpha(trace) == pytest.approx(k * np.log(10.0))


@pytest.mark.parametrize("name", ["collapsed", "collapsed rvm", "fixed"])
def test_weights_that_were_integrated_out_are_those_drawn_exactly(data, traces, name):
    Phi, t = data
    trace = traces[name]
    design = np.column_stack([np.ones(len(t)), Phi]) if "rvm" in name else Phi
    drawn = bs.models.draw_weights(MODELS[name](*data), trace, random_seed=1)
    alpha = [0.5, 1.0, 2.0, 0.1]
    if name != "fixed":
        alpha = np.exp(np.log(trace.posterior["alpha"].values).mean(axis=(0, 1)))
    weights = drawn.values.mean(axis=(0, 1))
    first, second = written_out(trace, design, t, weights, alpha)
    assert mdl_alpha(trace) == pytest.approx(second, rel=1e-8)
    assert mdl_w(trace) == pytest.approx(first, abs=1.0)  # of other draws of the weights
    with_weights = trace.copy()
    with_weights["posterior"] = with_weights["posterior"].assign(w=drawn)
    assert mdl_w(with_weights) == pytest.approx(first, rel=1e-9)


def test_explicit_and_collapsed_models_and_engines_send_about_the_same(data, traces):
    Phi, t = data
    fits = {"explicit": traces["explicit"], "collapsed": traces["collapsed"], "fit": fit_evidence(Phi, t, centre=True)}
    for by in ("mdl-w", "mdl-alpha"):
        table = compare(fits, by=by)
        assert abs(table.loc["explicit", by] - table.loc["collapsed", by]) < 0.5
        assert abs(table.loc["explicit", by] - table.loc["fit", by]) < 5.0
    assert nml(traces["collapsed"]) == pytest.approx(nml(traces["explicit"]), rel=1e-9)  # of the design alone


def test_a_cubic_is_shorter_than_a_line_that_does_not_bend(data, traces):
    Phi, t = data
    line = bs.sample(bs.models.linear(Phi[:, :1], t, bias=True, collapsed=True), **RUN)
    for length in (mdl_w, mdl_alpha):
        assert length(traces["collapsed"]) < length(line) - 10.0


def test_models_are_sampled_for_what_their_evidence_needs_no_draws_for(data):
    Phi, t = data
    table = compare({"one": bs.models.linear(Phi, t, bias=True)})
    assert np.isfinite(table[["model-evidence", "mdl-w", "mdl-alpha", "elpd-loo"]].to_numpy(dtype=float)).all()
    assert (table["model-evidence_kind"] == "sampled").all()


@pytest.mark.parametrize(
    "make",
    [
        lambda Phi, t: bs.models.gp(Phi[:, :1], t),
        pytest.param(lambda Phi, t: bs.models.generalised(Phi, (t > 3.0).astype(int)), marks=pytest.mark.slow),
    ],
    ids=["process", "classes"],
)
def test_other_traces_have_no_weights_to_send(data, make):
    trace = bs.sample(make(*data), **RUN | {"draws": 30, "tune": 30})
    assert np.isnan(compare({"one": trace}, by="elpd-loo").loc["one", "mdl-w"])
    with pytest.raises(TypeError, match="no functions to count and no weights to send"):
        mdl_w(trace)
