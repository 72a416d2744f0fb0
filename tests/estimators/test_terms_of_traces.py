"""Traces of estimators with the log density of each row in units of y: `arviz.loo`, `arviz.compare` between families.

Guards `bayessel.estimators._terms_of_trace`.
"""

import pickle

import arviz as az
import numpy as np
import pytest
from scipy.special import log_expit, log_softmax
from scipy.stats import multivariate_normal, norm

import bayessel as bs
from bayessel.diagnostics import compare
from tests.problems.gp import G
from tests.problems.mlp import short_classes, short_run

pytestmark = pytest.mark.filterwarnings(
    "ignore:CHAINS_DISAGREE", "ignore:.*leave-one-out predictions are unsure", "ignore:Estimated shape parameter"
)


@pytest.fixture(scope="module")
def process():
    """A process on the rows of the short run of networks."""
    _, X, y = short_run()
    return G("mc", draws=60, tune=30, cores=1, random_state=0).fit(X, y), X, y


def outputs(trace, Z, chain, draw):
    """Outputs (n, K) of one draw at standardised inputs."""
    at = {name: trace.posterior[name].values[chain, draw] for name in trace.posterior}
    hidden = np.tanh(at["hidden_bias"] + Z @ at["input_hidden"])
    return at["bias"] + hidden @ at["hidden_output"] + Z @ at["input_output"]


def test_terms_of_a_process_are_conditionals_of_its_joint_normal(process):
    model, _, y = process
    trace = model.trace_
    assert trace is model.trace_  # made once
    terms = trace.log_likelihood["t"]
    assert terms.dims == ("chain", "draw", "row") and "conditionals" in terms.attrs["terms"]
    assert "units of the data" in trace.log_likelihood.attrs["units"]
    scale, shift = np.abs(y - np.median(y)).mean(), np.median(y)
    Z, n = model._rows[0], len(y)
    for chain, draw in ((0, 3), (1, 50)):
        theta = trace.posterior["theta"].values[chain, draw]
        Q = model.covariance_.matrix(theta, Z) + model.covariance_.noise(theta, Z.shape[1]) * np.eye(n)
        joint = multivariate_normal(np.full(n, shift), scale**2 * Q)
        for i in (0, 11, n - 1):
            rest = np.arange(n) != i
            marginal = multivariate_normal(np.full(n - 1, shift), scale**2 * Q[np.ix_(rest, rest)])
            assert terms.values[chain, draw, i] == pytest.approx(joint.logpdf(y) - marginal.logpdf(y[rest]), abs=1e-6)


@pytest.mark.parametrize("columns", [1, 2])
def test_terms_of_a_network_are_normal_densities_in_units_of_y(columns):
    model, _, y = short_run(columns)
    trace = model.trace_
    terms, Y = trace.log_likelihood["t"].values, y.reshape(len(y), -1)
    shift, scale = np.median(Y, axis=0), np.abs(Y - np.median(Y, axis=0)).mean(axis=0)
    assert terms.shape == (2, 40, len(y))
    for chain, draw in ((0, 0), (1, 39)):
        f = shift + scale * outputs(trace, model._rows[0], chain, draw)
        sd = scale * trace.posterior["tau_noise"].values[chain, draw] ** -0.5
        np.testing.assert_allclose(terms[chain, draw], norm(f, sd).logpdf(Y).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_terms_of_a_network_are_log_probabilities_of_labels(classes):
    model, _, y = short_classes(classes)
    trace = model.trace_
    codes = np.searchsorted(model.classes_, y)
    assert trace.log_likelihood.attrs["units"] == "log probability of the labels"
    for chain, draw in ((0, 0), (1, 20)):
        f = outputs(trace, model._rows[0], chain, draw)
        if classes == 2:
            expected = log_expit(np.where(codes == 1, 1.0, -1.0) * f[:, 0])
        else:
            expected = log_softmax(f, axis=1)[np.arange(len(y)), codes]
        np.testing.assert_allclose(trace.log_likelihood["t"].values[chain, draw], expected, rtol=1e-9, atol=1e-12)


def test_leave_one_out_is_what_a_row_out_by_hand_weighs_to(process):
    """Draws weigh 1/p(y_i | …): the harmonic mean, where no tail needs smoothing."""
    for model in (process[0], short_run()[0]):
        terms = model.trace_.log_likelihood["t"].values
        harmonic = -np.log(np.mean(np.exp(-terms.reshape(-1, terms.shape[2])), axis=0))
        found = az.loo(model.trace_, pointwise=True)
        light = found.pareto_k.values < 0.5
        assert light.mean() > 0.6
        np.testing.assert_allclose(found.elpd_i.values[light], harmonic[light], atol=0.05)
    model = process[0]
    found = az.loo(model.trace_, pointwise=True)
    np.testing.assert_allclose(found.elpd_i.values, model.leave_one_out().log_densities, atol=1e-8)


def test_families_stand_on_one_table(process):
    model, X, y = process
    network = short_run()[0]
    traces = {"gp": model.trace_, "mlp": network.trace_}
    table = az.compare(traces)
    assert set(table.index) == {"gp", "mlp"}
    assert table.loc["gp", "elpd"] == pytest.approx(az.loo(model.trace_).elpd, rel=0.02)
    ours = compare(traces | {"fit": model}, by="elpd-loo")  # the same target, by name
    assert ours.loc["gp", "elpd-loo"] == pytest.approx(ours.loc["fit", "elpd-loo"], abs=0.01)
    # in other units terms shift by their logarithm, all alike
    other = G(**model.get_params()).fit(X, 16.0 * y)
    np.testing.assert_allclose(
        other.trace_.log_likelihood["t"].values, model.trace_.log_likelihood["t"].values - np.log(16.0), atol=1e-8
    )


def test_terms_follow_the_draws(process):
    model = pickle.loads(pickle.dumps(process[0]))
    before = model.trace_.log_likelihood["t"].values
    model.continue_fit(draws=70)
    assert model.trace_.log_likelihood["t"].shape[1] == 70
    np.testing.assert_allclose(model.trace_.log_likelihood["t"].values[:, :60], before, rtol=1e-10)
    assert not hasattr(bs.GPRegressor(), "trace_") and not hasattr(bs.MLPRegressor(), "trace_")
    assert bs.GPRegressor("map", random_state=0).fit(*process[1:]).trace_ is None
