"""The sampler of networks: density and gradient, trajectories, invariance, and runs that go on where they stopped.

Guards `bayessel.samplers.network.step`, `bayessel.samplers.network.trajectory`, `bayessel.samplers.whole_model`.
"""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayessel as bs
from bayessel.diagnostics.calibration import geweke, sbc
from bayessel.errors import SamplingWarning
from bayessel.samplers.network.step import NetworkSampler
from bayessel.samplers.network.trajectory import density_here, leap, log_joint, scales, sweep, trajectory
from tests.oracles.monte_carlo import z_scores
from tests.problems.network import LIKELIHOODS, gentle_prior, problem, settings, small_model
from tests.problems.runs import same

PYTHON = {"mode": "FAST_COMPILE"}


def walker(model, **chosen):
    """A step with its vectors filled from a point of the model."""
    step = NetworkSampler(model=model, rng=1, **chosen)
    step._read()
    return step


def vectors(step, point):
    q, s = np.empty(step.prior.architecture.size), np.zeros(step._n_logs)
    for vector, layout in ((q, step._weights), (s, step._logs)):
        for name, place, _ in layout:
            vector[place] = np.ravel(point[name])
    return q, s


# --- density and gradient


@pytest.mark.parametrize(
    ("likelihood", "D", "H", "K"),
    [("gaussian", 5, 3, 3), ("student", 1, 1, 2), ("logistic", 9, 2, 1), ("softmax", 4, 3, 3)],
)
def test_density_and_gradient_are_those_of_the_model(rng, likelihood, D, H, K):
    model = small_model(rng, likelihood, n=7, D=D, H=H, K=K)
    step = walker(model)
    density = model.compile_logp(**PYTHON)
    gradient = model.compile_dlogp([model[name] for name, *_ in step._weights], **PYTHON)
    for _ in range(3):
        point = {v.name: rng.standard_normal(model.initial_point()[v.name].shape) for v in model.value_vars}
        q, s = vectors(step, point)
        assert_allclose(log_joint(step._problem, q, s, step._work), density(point), rtol=1e-11)
        g = np.empty_like(q)
        scales(step._problem, s, step._work)
        _forward(step, q)
        density_here(step._problem, q, s, step._work, g)
        assert_allclose(g, gradient(point), rtol=1e-9, atol=1e-10)


def _forward(step, q):
    from bayessel.mlp.compiled_passes import forward

    forward(q, step._problem.X, step._work.Z, step._work.f)


# --- trajectories


def state(rng, D=2, H=2, K=1, n=6):
    prior = gentle_prior(D, H, K)
    p, work = problem(rng.standard_normal((n, D)), rng.standard_normal((n, K)), prior)
    q = rng.standard_normal(prior.architecture.size)
    s = 0.5 * rng.standard_normal(len(p.prior))
    scales(p, s, work)
    return p, work, q, rng.standard_normal(len(q)), s


def gradient_at(p, work, q, s):
    from bayessel.mlp.compiled_passes import forward

    g = np.empty_like(q)
    forward(q, p.X, work.Z, work.f)
    value = density_here(p, q, s, work, g)
    return value, g


def walk(p, work, q, momentum, s, steps, size=0.3):
    q, momentum = q.copy(), momentum.copy()
    value, g = gradient_at(p, work, q, s)
    energies = [value - 0.5 * np.sum(momentum**2)]
    for _ in range(steps):
        energies.append(leap(p, q, momentum, g, s, work, size))
    assert_allclose(g, gradient_at(p, work, q, s)[1], rtol=1e-10, atol=1e-12)
    return q, momentum, np.array(energies)


def test_trajectories_can_be_walked_back(rng):
    p, work, q, momentum, s = state(rng)
    end, there, _ = walk(p, work, q, momentum, s, 40)
    back, turned, _ = walk(p, work, end, -there, s, 40)
    assert np.abs(end - q).max() > 0.1
    assert_allclose(back, q, atol=1e-10)
    assert_allclose(-turned, momentum, atol=1e-10)


def test_trajectories_keep_volume(rng):
    p, work, q, momentum, s = state(rng, D=1, H=1)
    at, h = np.concatenate([q, momentum]), 1e-6

    def end(x):
        return np.concatenate(walk(p, work, *np.split(x, 2), s, 7)[:2])

    columns = [(end(at + h * e) - end(at - h * e)) / (2.0 * h) for e in np.eye(len(at))]
    jacobian = np.array(columns).T
    assert np.abs(jacobian - np.eye(len(at))).max() > 0.5
    assert_allclose(np.linalg.det(jacobian), 1.0, atol=1e-6)


def test_the_energy_error_falls_with_the_square_of_the_step(rng):
    p, work, q, momentum, s = state(rng)
    errors = [abs(np.diff(walk(p, work, q, momentum, s, k, 1.0 / k)[2][[0, -1]])[0]) for k in (40, 80, 160)]
    assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.1)


def test_a_rejection_turns_the_momentum_and_stays(rng):
    p, work, q, momentum, s = state(rng)
    value, g = gradient_at(p, work, q, s)
    space = np.empty((7, len(q)))
    for W in (1, 5):
        far = settings(step_size=50.0, n_leapfrog=20, window=W)
        new, turned = q.copy(), momentum.copy()
        rate, accepted, diverging, _ = trajectory(rng, p, new, turned, g.copy(), value, s, work, far, space)
        assert rate < 1e-6 and not accepted and diverging
        assert_array_equal(new, q)  # of the window at the start, all but one state are far away
        assert_array_equal(turned, -momentum)


def skewed_means(rng, chains=40, draws=400, right=True, **chosen):
    """Features of weights under the prior alone, moved by trajectories without momenta drawn anew.

    Rows without inputs to the hidden layer leave the output bias b with log density −½ Σ (t − b)² e^{s} − ½ b²; the
    test is the mean of the whole state, started from exact draws.
    """
    prior = gentle_prior(1, 1)
    p, work = problem(np.array([[0.7], [-1.2]]), np.array([[1.5], [-0.3]]), prior)
    s = np.zeros(len(p.prior))
    scales(p, s, work)
    q = np.zeros((chains, 5))
    found = np.empty((chains, draws, 10))
    how = settings(draw_precisions=False, **chosen)
    for c in range(chains):
        momentum = rng.standard_normal(5)
        sweep(
            rng, p, q[c], momentum, s, work, settings(0.2, 10, 1, 0.0, 0.2, False), 300, np.ones((len(s), 2)), 1.0
        )  # to the target
        momentum = rng.standard_normal(5)
        for row in found[c]:
            before = momentum.copy()
            rejected = sweep(rng, p, q[c], momentum, s, work, how, 1, np.ones((len(s), 2)), 1.0)[1]
            if rejected and not right:
                momentum += 2.0 * how.persistence * before
            row[:5], row[5:] = q[c], q[c] ** 2
    return found, p, s


def quadrature_means(p, s, points=24):
    """The same by Gauss and Hermite's rule under the prior of (a, u, v); b and w are Gaussian given these."""
    from itertools import product

    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    X, t, beta = p.X[0], p.T[0], np.exp(s[0])
    total, mass = np.zeros(10), 0.0
    for (a, ca), (u, cu), (v, cv) in product(zip(nodes, weights, strict=True), repeat=3):
        r = t - v * np.tanh(u * X + a)
        design = np.column_stack([np.ones(2), X])
        precision = np.eye(2) + beta * design.T @ design
        covariance = np.linalg.inv(precision)
        mean = beta * covariance @ design.T @ r
        spread = np.eye(2) / beta + design @ design.T
        part = ca * cu * cv * np.exp(-0.5 * r @ np.linalg.solve(spread, r))
        b, w = mean
        squares = mean**2 + np.diag(covariance)
        total += part * np.array([a, u, b, v, w, a**2, u**2, squares[0], v**2, squares[1]])
        mass += part
    return total / mass


@pytest.mark.parametrize("chosen", [{"window": 1}, {"window": 4, "jitter": 0.2}])
def test_trajectories_sample_the_weights(rng, chosen):
    # step sizes so large that one trajectory in three is rejected
    found, p, s = skewed_means(rng, step_size=0.9, n_leapfrog=5, persistence=0.9, **chosen)
    assert np.abs(z_scores(found, quadrature_means(p, s))).max() < 4.0


def test_momentum_that_is_not_turned_would_be_seen(rng):
    found, p, s = skewed_means(rng, right=False, step_size=0.9, n_leapfrog=5, persistence=0.9)
    assert np.abs(z_scores(found, quadrature_means(p, s))).max() > 4.0


# --- the whole model


class WrongShape(NetworkSampler):
    """The precision of hidden biases with half a degree of freedom too many."""

    def step(self, point):
        point, stats = super().step(point)
        new, place = dict(point), self.prior.hidden_bias
        a = new["hidden_bias"]
        tau = self.rng.gamma(place.alpha + 0.5 * a.size + 0.5) / (place.beta + 0.5 * a @ a)
        new["tau_hidden_bias_log__"] = np.asarray(np.log(tau))
        return new, stats


class StaleData(NetworkSampler):
    """Never reads new data."""

    def data_changed(self):
        if not hasattr(self, "_problem"):
            super().data_changed()


def moves(kind=NetworkSampler, **chosen):
    return lambda model: [kind(model=model, **{"n_leapfrog": 8, "window": 3, "persistence": 0.7} | chosen)]


def test_a_short_joint_test_and_its_controls(rng):
    model = small_model(rng, n=4, D=1, H=2)
    quick = {"thin": 3, "tune": 100, "marginal": 2000, "random_seed": 1, "progressbar": False}
    result = geweke(model, moves(), 500, **quick)
    assert result.ok, result.text
    assert not geweke(model, moves(StaleData), 200, **quick).ok
    assert not geweke(model, moves(WrongShape), 800, **quick | {"thin": 1}).ok


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_the_joint_distribution_is_left_invariant(rng, likelihood):
    K = 3 if likelihood == "softmax" else 2 if likelihood == "gaussian" else 1
    model = small_model(rng, likelihood, n=5, D=2, H=2, K=K)
    for chosen in ({}, {"window": 1, "n_leapfrog": 5, "step_size": 0.6}):
        result = geweke(model, moves(**chosen), 3000, thin=4, tune=300, random_seed=3, progressbar=False)
        assert result.ok, result.text


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_ranks_are_uniform(rng, likelihood):
    K = 3 if likelihood == "softmax" else 1
    model = small_model(rng, likelihood, n=5, D=2, H=2, K=K)
    result = sbc(model, moves(), 500, 31, thin=20, tune=300, random_seed=4, progressbar=False)
    assert result.ok, result.text


# --- runs


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(5)
    return small_model(rng, n=20, D=2, H=3)


def run(model, draws=60, tune=30, chains=2, seed=7, cores=1, **keywords):
    step = NetworkSampler(model=model, n_leapfrog=10, window=3, persistence=0.9, updates_per_draw=2)
    return bs.sample(
        model,
        draws,
        tune=tune,
        chains=chains,
        cores=cores,
        random_seed=seed,
        step=step,
        progressbar=False,
        log_likelihood=False,
        **keywords,
    )


def test_same_seed_same_draws_whatever_the_cores(model):
    one = run(model)
    assert same(one, run(model)) and same(one, run(model, cores=2))
    assert not same(one, run(model, seed=8))
    assert_array_equal(one.posterior["chain"], [0, 1])
    assert not np.array_equal(one.posterior["bias"][0], one.posterior["bias"][1])


def test_a_run_on_time_goes_on_bit_by_bit(model, tmp_path):
    whole = run(model, draws=3000)
    rounds = 0
    while True:
        rounds += 1
        try:
            part = run(model, draws=3000, store=tmp_path / "run", time_budget=0.1)
        except SamplingWarning:
            continue
        if part.attrs["status"] == "complete":
            break
    assert rounds > 1 and part.attrs["resumed_draws"] > 0
    assert same(whole, part)


def test_the_sampler_is_chosen_and_explained(model):
    (step,) = bs.steps(model, window=2)
    assert isinstance(step, NetworkSampler) and step.window == 2
    assert bs.explain_steps(model).count("NetworkSampler") == len(model.free_RVs)
    with pm.Model() as other:
        pm.Normal("x")
    with pytest.raises(ValueError, match=r"needs a model that bayessel\.models\.mlp made"):
        NetworkSampler(model=other)
    with pytest.raises(ValueError, match="window must be at most n_leapfrog"):
        NetworkSampler(model=model, n_leapfrog=3, window=5)
    with model.copy() as added:
        pm.Potential("more", -(added["bias"] ** 2).sum())
    assert not any(isinstance(one, NetworkSampler) for one in bs.steps(added))


def test_a_new_chain_reads_the_data_that_are_there_now(rng):
    """Its density at the draw is that of the model with the new data."""
    model = small_model(rng, "gaussian", n=7, D=2, H=2, K=1)
    step = NetworkSampler(model=model, rng=1, n_leapfrog=3, step_size=0.05)
    density = model.compile_logp(**PYTHON)
    for _ in range(2):
        step.setup_chain(np.random.default_rng(2), 0, 1)
        point, (said,) = step.step(model.initial_point())
        assert_allclose(said["model_logp"], density(point), rtol=1e-11)
        with model:
            pm.set_data({"t_data": 3.0 + rng.standard_normal(model["t_data"].get_value().shape)})


def test_the_step_size_after_tuning_is_the_average_and_not_the_last(rng):
    """Nesterov's average of log ε with weights k^−0.75 (Hoffman and Gelman 2014, eq. 6) of the steps tried."""
    model = small_model(rng, "gaussian", n=7, D=2, H=2, K=1)
    step = NetworkSampler(model=model, rng=1, n_leapfrog=3)
    step.setup_chain(np.random.default_rng(2), 40, 1)
    point, average = model.initial_point(), 0.0
    for k in range(1, 41):
        point, _ = step.step(point)
        average += k**-0.75 * (np.log(step.step_size) - average)
    last = step.step_size
    step.stop_tuning()
    assert_allclose(step.step_size, np.exp(average), rtol=1e-10)
    assert abs(np.log(step.step_size / last)) > 1e-3
