"""The network as a PyMC model: its density and gradient are those of the model written in PyTensor's own operations.

Guards `bayessel.models._mlp`, `bayessel.models._mlp_op`.
"""

import time

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

import bayessel as bs
from bayessel.mlp import Architecture, Gamma, NetworkPrior, Weights, forward
from bayessel.mlp.architecture import pack
from bayessel.mlp.prior import PRECISION_NAMES, Precisions
from bayessel.models._mlp_op import BackwardPass, Network, network_outputs

PYTHON = {"mode": "FAST_COMPILE"}
CASES = [  # likelihood, n, D, H, K
    ("gaussian", 7, 3, 4, 2),
    ("gaussian", 1, 1, 1, 1),
    ("student", 5, 1, 2, 3),
    ("logistic", 6, 2, 1, 1),
    ("softmax", 1, 1, 2, 3),
]


def problem(rng, likelihood, n, D, K):
    X, f = rng.standard_normal((n, D)), rng.standard_normal((n, K))
    if likelihood == "softmax":
        return X, np.arange(K - 1, K - 1 - n, -1) % K
    t = (f > 0).astype(int) if likelihood == "logistic" else f
    return X, t if K > 1 else t[:, 0]


def number(value):
    """In double precision: PyTensor keeps a plain 0.25 as a float32, and the logarithm of Γ(0.25) too."""
    return pt.constant(np.asarray(value, dtype=np.float64))


def plain_model(X, t, likelihood, H, K):
    """The same model with nothing of the package in it."""
    D, quarter = X.shape[1], number(0.25)
    with pm.Model() as model:
        values = {}
        for name in ("input_hidden", "input_output"):
            top = pm.Gamma(f"mean_tau_{name}", quarter, number(0.25 / (25.0 * D**2)))
            values[name] = pm.Gamma(f"tau_{name}", number(0.5), 0.5 / top, shape=D)
        tau_a = pm.Gamma("tau_hidden_bias", quarter, number(0.25 / 100.0))
        tau_v = pm.Gamma("tau_hidden_output", quarter, number(0.25 / (100.0 * H)))
        a = pm.Normal("hidden_bias", 0.0, 1.0 / pt.sqrt(tau_a), shape=H)
        u = pm.Normal("input_hidden", 0.0, 1.0 / pt.sqrt(values["input_hidden"][:, None]), shape=(D, H))
        b = pm.Normal("bias", 0.0, 1.0, shape=K)
        v = pm.Normal("hidden_output", 0.0, 1.0 / pt.sqrt(tau_v), shape=(H, K))
        w = pm.Normal("input_output", 0.0, 1.0 / pt.sqrt(values["input_output"][:, None]), shape=(D, K))
        f = pt.dot(pt.tanh(pt.dot(X, u) + a), v) + pt.dot(X, w) + b
        f = f if t.ndim == 2 or likelihood == "softmax" else f[:, 0]
        if likelihood == "logistic":
            pm.Bernoulli("t", p=pt.sigmoid(f), observed=t)
        elif likelihood == "softmax":
            pm.Categorical("t", p=pt.special.softmax(f, axis=1), observed=t)
        else:
            tau = pm.Gamma("tau_noise", quarter, number(0.25 / 400.0), shape=K)
            sd = 1.0 / pt.sqrt(tau if t.ndim == 2 else tau[0])
            if likelihood == "gaussian":
                pm.Normal("t", f, sd, observed=t)
            else:
                pm.StudentT("t", pm.Gamma("nu", number(2.0), number(0.1)), f, sigma=sd, observed=t)
    return model


def value_and_gradient(model, **kwargs):
    """Compiled function of a packed point, with variables in alphabetical order."""
    values = sorted(model.value_vars, key=lambda value: value.name)
    return model.logp_dlogp_function(values, ravel_inputs=True, **kwargs)._pytensor_function


@pytest.mark.parametrize(("likelihood", "n", "D", "H", "K"), CASES)
def test_density_and_gradient_of_the_plain_graph(rng, likelihood, n, D, H, K):
    X, t = problem(rng, likelihood, n, D, K)
    model = bs.models.mlp(X, t, H, likelihood=likelihood)
    ours, plain = (value_and_gradient(m, **PYTHON) for m in (model, plain_model(X, t, likelihood, H, K)))
    size = sum(value.size for value in model.initial_point().values())
    for _ in range(3):
        q = 0.7 * rng.standard_normal(size)
        value, gradient = ours(q)
        expected, by_autodiff = plain(q)
        assert_allclose(value, expected, rtol=1e-10)
        assert_allclose(gradient, by_autodiff, rtol=1e-8, atol=1e-8)
        assert value.dtype == gradient.dtype == np.float64


@pytest.mark.slow
def test_the_same_numbers_by_numba(rng):
    X, t = problem(rng, "gaussian", 30, 3, 2)
    compiled, interpreted = (value_and_gradient(bs.models.mlp(X, t, 4), **mode) for mode in ({}, PYTHON))
    nodes = [node.op for node in compiled.maker.fgraph.toposort()]
    assert sum(isinstance(op, Network) for op in nodes) == sum(isinstance(op, BackwardPass) for op in nodes) == 1
    q = 0.5 * rng.standard_normal(2 * (3 + 1) + 2 + 2 + 4 * 6 + 2 + 6)
    for got, expected in zip(compiled(q), interpreted(q), strict=True):
        assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("likelihood", ["gaussian", "student", "logistic", "softmax"])
def test_the_density_written_out(rng, likelihood):
    K = 3 if likelihood == "softmax" else 2
    X, t = problem(rng, likelihood, 8, 2, K)
    prior = NetworkPrior(Architecture(2, 3, K), noise=Gamma(2.0, 3.0), bias_sd=2.0, input_hidden_shape=1.5)
    model = bs.models.mlp(X, t, 3, likelihood=likelihood, prior=prior)
    weights, tau = prior.draw(rng)
    f = forward(weights, X)[0]
    point = dict(zip(Weights._fields, weights, strict=True))
    expected = prior.weights_log_density(pack(weights), tau) + prior.precisions_log_density(tau)
    used = dict(zip(PRECISION_NAMES, tau, strict=True))
    if likelihood in ("logistic", "softmax"):
        expected -= prior.noise.log_density(tau.noise)
        del used["tau_noise"]
    if likelihood == "gaussian":
        expected += stats.norm(f, tau.noise**-0.5).logpdf(t).sum()
    elif likelihood == "student":
        expected += stats.t(6.0, f, tau.noise**-0.5).logpdf(t).sum() + stats.gamma(2.0, scale=10.0).logpdf(6.0)
        used["nu"] = 6.0
    elif likelihood == "logistic":
        expected += np.sum(special.log_expit(np.where(t == 1, f, -f)))
    else:
        expected += np.sum(special.log_softmax(f, axis=1)[np.arange(8), t])
    for name, value in used.items():
        point[f"{name}_log__"] = np.log(value)
        expected += np.sum(np.log(value))  # a density of the logarithm
    assert_allclose(model.compile_logp(**PYTHON)(point), expected, rtol=1e-10)


def test_names_shapes_and_tags(rng):
    X, t = problem(rng, "gaussian", 9, 3, 2)
    model = bs.models.mlp(X, t, "auto")
    assert {v.name for v in model.free_RVs} == {*Weights._fields, *PRECISION_NAMES}
    assert [v.name for v in model.observed_RVs] == ["t"] and set(model.coords) == {"row", "input", "hidden", "output"}
    prior = NetworkPrior(Architecture(3, 6, 2))
    weights, tau = prior.draw(rng)
    drawn = pm.draw(model.free_RVs, random_seed=1, **PYTHON)
    shapes = {v.name: np.shape(one) for v, one in zip(model.free_RVs, drawn, strict=True)}
    expected = dict(zip((*Weights._fields, *PRECISION_NAMES), (*weights, *tau), strict=True))
    assert shapes == {name: np.shape(value) for name, value in expected.items()}
    assert all(v.tag.mlp == {"prior": prior, "likelihood": "gaussian"} for v in model.free_RVs)
    assert "nu" in {v.name for v in bs.models.mlp(X, t, 2, likelihood="student").free_RVs}
    assert "tau_noise" not in {v.name for v in bs.models.mlp(X, t > 0, 2, likelihood="logistic").free_RVs}


def test_draws_of_the_model_are_those_of_the_prior(rng):
    X = np.array([[0.5, -1.0]])
    model = bs.models.mlp(X, [0.0], 5)
    names = ["tau_noise", "tau_hidden_bias", "tau_hidden_output", "mean_tau_input_hidden", "tau_input_output", "t"]
    values = pm.draw([model[name] for name in names], 1000, random_seed=rng, **PYTHON)
    prior = NetworkPrior(Architecture(2, 5))
    drawn = []
    for _ in range(1000):
        weights, tau = prior.draw(rng)
        noisy = forward(weights, X)[0][0, 0] + rng.standard_normal() / np.sqrt(tau.noise[0])
        by_name = dict(zip(PRECISION_NAMES, tau, strict=True), t=noisy)
        drawn.append([np.ravel(by_name[name])[0] for name in names])
    for name, ours, theirs in zip(names, values, np.transpose(drawn), strict=True):
        assert stats.ks_2samp(ours.reshape(1000, -1)[:, 0], theirs).pvalue > 1e-4, name


def test_second_derivatives(rng):
    n, D, H, K = 5, 2, 3, 2
    network = Architecture(D, H, K)
    X, c = rng.standard_normal((n, D)), rng.standard_normal((n, K))
    q = pt.vector("q", shape=(network.size,))
    parts = Weights(*(q[network.slices[name]].reshape(shape) for name, shape in network.shapes.items()))
    # the output bias depends on the hidden one, as no derivative may forget
    parts = parts._replace(bias=parts.bias + parts.hidden_bias.sum())

    def losses(f, Z):
        return pt.sum(c * f**2) + pt.sum(Z**3)

    ours = losses(*network_outputs(*parts, pt.constant(X)))
    Z = pt.tanh(pt.dot(X, parts.input_hidden) + parts.hidden_bias)
    plain = losses(pt.dot(Z, parts.hidden_output) + pt.dot(X, parts.input_output) + parts.bias, Z)
    point, direction = rng.standard_normal((2, network.size))
    found = []
    for loss in (ours, plain):
        gradient = pytensor.grad(loss, q)
        along = pytensor.grad(pt.sum(direction * gradient), q)
        found.append(pytensor.function([q], [loss, gradient, along], **PYTHON)(point))
    for got, expected in zip(*found, strict=True):
        assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_many_draws_in_one_graph(rng):
    network, X = Architecture(2, 3, 2), rng.standard_normal((4, 2))
    draws = network.split(rng.standard_normal((5, network.size)))
    inputs = [pt.tensor(shape=part.shape[1:]) for part in draws]
    f = network_outputs(*inputs, pt.constant(X))[0]
    batched = [pt.tensor(shape=(None, *part.shape[1:])) for part in draws]
    both = pytensor.graph.replace.vectorize_graph(f, dict(zip(inputs, batched, strict=True)))
    assert_allclose(pytensor.function(batched, both, **PYTHON)(*draws), forward(draws, X)[0], rtol=1e-13)


def test_nuts_runs_and_new_data_need_no_new_model(rng):
    X = rng.standard_normal((40, 2))
    t = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(40)
    model = bs.models.mlp(X, t, 3)
    with model:
        settings = {"compute_convergence_checks": False, "progressbar": False, "quiet": True}
        trace = pm.sample(60, tune=60, chains=1, cores=1, nuts_sampler="pymc", random_seed=rng, **settings)
        pm.compute_log_likelihood(trace, progressbar=False)
        assert trace.log_likelihood["t"].shape == (1, 60, 40)
        posterior = {name: trace.posterior[name].values[0] for name in (*Weights._fields, "tau_noise")}
        f = forward(Weights(*(posterior[name] for name in Weights._fields)), X)[0][..., 0]
        expected = stats.norm(f, posterior["tau_noise"] ** -0.5).logpdf(t)
        assert_allclose(trace.log_likelihood["t"].values[0], expected, rtol=1e-8, atol=1e-8)
        assert np.mean((f.mean(axis=0) - t) ** 2) < 0.5 * np.var(t)
        pm.set_data({"X": X[:7] + 1.0, "t_data": np.zeros(7)}, coords={"row": np.arange(7)})
        predicted = pm.sample_posterior_predictive(trace, predictions=True, progressbar=False, random_seed=rng)
    f = forward(Weights(*(posterior[name] for name in Weights._fields)), X[:7] + 1.0)[0][..., 0]
    residuals = (predicted.predictions["t"].values[0] - f) * np.sqrt(posterior["tau_noise"])
    assert stats.kstest(residuals.ravel(), "norm").pvalue > 1e-4


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"X": [[np.nan, 1.0]] * 3}, ValueError, "X must be finite"),
        ({"X": np.zeros((0, 2))}, ValueError, "at least one row"),
        ({"t": [0.0, 1.0]}, ValueError, "one value per row"),
        ({"t": np.zeros((2, 2))}, ValueError, "there are 3 rows and 2 of t"),
        ({"t": [[0.0, 1.0], [np.inf, 0.0], [0.0, 0.0]]}, ValueError, "t must be finite"),
        ({"t": np.zeros((3, 2, 2))}, ValueError, "must be 1-D"),
        ({"t": ["a", "b", "c"]}, TypeError, "must be numeric"),
        ({"hidden": 0}, ValueError, "at least 1"),
        ({"hidden": 2.0}, TypeError, "an integer"),
        ({"hidden": "some"}, ValueError, "hidden must be 'auto'"),
        ({"likelihood": "poisson"}, ValueError, "likelihood must be one of 'gaussian'"),
        ({"likelihood": "logistic"}, ValueError, "must be 0 and 1 for the logistic"),
        ({"likelihood": "softmax"}, ValueError, r"classes 0, 1, 2, … for the softmax likelihood, got 0.5"),
        ({"likelihood": "softmax", "t": [[0, 1], [1, 0], [0, 1]]}, ValueError, "must be 1-D"),
        ({"prior": 3.0}, TypeError, r"must be a bayessel.mlp.NetworkPrior, got float"),
        ({"prior": NetworkPrior(Architecture(2, 3))}, ValueError, r"must be for Architecture\(inputs=2, hidden=8"),
    ],
)
def test_bad_input(change, error, said):
    arguments = {"X": np.arange(6.0).reshape(3, 2), "t": [0.5, 0.0, 1.0], **change}
    with pytest.raises(error, match=said):
        bs.models.mlp(**arguments)


def test_a_column_is_ravelled_with_the_usual_warning(rng):
    from sklearn.exceptions import DataConversionWarning

    X, t = problem(rng, "gaussian", 5, 2, 1)
    with pytest.warns(DataConversionWarning, match="column-vector t"):
        model = bs.models.mlp(X, t[:, None], 2)
    assert model["t"].ndim == 1


def test_precisions_and_names_go_together():
    assert tuple(name.replace("tau_", "") for name in PRECISION_NAMES) == Precisions._fields


@pytest.mark.slow
def test_value_and_gradient_take_less_time_than_the_plain_graph(rng):
    X, t = problem(rng, "gaussian", 256, 8, 1)
    functions = [value_and_gradient(m) for m in (bs.models.mlp(X, t, 8), plain_model(X, t, "gaussian", 8, 1))]
    size = sum(value.size for value in bs.models.mlp(X, t, 8).initial_point().values())
    q = 0.3 * rng.standard_normal(size)
    best = [np.inf, np.inf]
    for function in functions:
        function.trust_input = True
        function(q)
    for _ in range(20):  # in turns, so that a busy machine slows down both
        for k, function in enumerate(functions):
            for _ in range(100):
                start = time.perf_counter()
                function(q)
                best[k] = min(best[k], time.perf_counter() - start)
    assert best[0] < 0.7 * best[1], f"{best[0] * 1e6:.1f} µs, the plain graph {best[1] * 1e6:.1f} µs"
