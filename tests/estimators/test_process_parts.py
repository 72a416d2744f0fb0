"""States that a Gaussian process predicts with by default: against quadrature, simulated ranks, sums written out.

Guards `bayessel.estimators._process_parts`, `bayessel.estimators._mixed_process`, `bayessel.estimators._around_mode`.
"""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import chisquare, gamma, multivariate_normal, norm

import bayessel as bs
from bayessel.covariance import Noise, SquaredExponential, Standard
from bayessel.covariance.prior import UnknownMeanPrior
from bayessel.errors import NumericalWarning
from bayessel.estimators import _process_parts as parts
from bayessel.estimators._mixed_process import MixedProcess, ProcessPart
from bayessel.estimators.held_out import stacking_weights
from bayessel.fit import Status
from bayessel.gp import Marginal, Predictor, fit_map, log_marginal

TWO = SquaredExponential(ard=False, amplitude=False) + Noise()  # log w, log r2


def wave(rng, n=16, m=1, noise=0.3):
    X = rng.uniform(-1.5, 1.5, size=(n, m))
    return X, np.sin(2.0 * X[:, 0]) + noise * rng.normal(size=n)


# --- draws


def quadrature(X, t, new, y, covariance):
    """Mean and density of new observations with both parameters integrated on a grid."""
    prior = UnknownMeanPrior(covariance.prior(X.shape[1]))
    w, r = np.meshgrid(np.linspace(-9.0, 7.0, 44), np.linspace(-9.0, 4.0, 44), indexing="ij")
    thetas = np.column_stack([w.ravel(), r.ravel()])
    logs = np.array([log_marginal(one, X, t, covariance) + prior.log_density(one) for one in thetas])
    thetas, logs = thetas[logs > logs.max() - 12.0], logs[logs > logs.max() - 12.0]
    weights = np.exp(logs - logsumexp(logs))
    there = Predictor(X, t, covariance, thetas)(new)
    return weights @ there.means, weights @ norm.pdf(y, there.means, np.sqrt(there.variances)), weights @ thetas


def test_draws_agree_with_quadrature_over_two_parameters(rng):
    X, t = wave(rng)
    new, y = np.array([[-1.2], [0.3], [2.5]]), np.array([-0.5, 0.2, 0.8])
    fit = fit_map(X, t, TWO)
    mean, density, theta = quadrature(X, t, new, y, fit.covariance)
    found = []
    for seed in range(10):
        there = Predictor(X, t, fit.covariance, draws := parts._drawn(fit, seed, 1.5))(new)
        found.append(np.concatenate([there.mean, np.exp(there.log_density(y)), draws.mean(axis=0)]))
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    away = (np.mean(found, axis=0) - np.concatenate([mean, density, theta])) / error
    assert np.abs(away).max() < 5.0  # Student's t with 9 degrees


def ranks(rng, count, n, draws):
    """Rank of the true log noise among draws, for hyperparameters and targets drawn from their prior."""
    covariance, found = Standard(), []
    for seed in range(count):
        X = rng.normal(size=(n, 2))
        prior = UnknownMeanPrior(covariance.prior(2))
        theta = prior.draw(rng)
        while not np.abs(theta).max() < 9.0:
            theta = prior.draw(rng)
        Q = covariance.matrix(theta, X) + np.exp(theta[1]) * np.eye(n)
        t = np.linalg.cholesky(Q + 1e-10 * np.trace(Q) * np.eye(n)) @ rng.normal(size=n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thetas = parts._drawn(fit_map(X, t, random_state=seed), seed, 1.0)
        found.append(float(np.mean(parts.evenly(thetas, draws)[:, 1] < theta[1])))
    return np.array(found)


def test_ranks_of_the_true_noise_are_about_even(rng):
    found = ranks(rng, 20, 20, 30)
    inside = np.mean((found > 0.1) & (found < 0.9))
    assert abs(inside - 0.8) < 4.0 * np.sqrt(0.8 * 0.2 / 20)
    assert abs(found.mean() - 0.5) < 4.0 * np.sqrt(1.0 / 12.0 / 20)


@pytest.mark.slow
def test_ranks_of_the_true_noise_are_uniform(rng):
    found = ranks(rng, 300, 30, 30)
    assert chisquare(np.histogram(found, bins=6, range=(0.0, 1.0))[0]).pvalue > 1e-4


def test_the_mode_of_a_chain_does_not_depend_on_where_the_search_stopped(rng):
    X, t = wave(rng, 40, 2)
    fit = fit_map(X, t)
    other = replace(fit, theta=fit.theta + 1e-4 * rng.normal(size=len(fit.theta)))
    one, two = (parts._drawn(this, 0, 1.0) for this in (fit, other))
    np.testing.assert_allclose(two, one, atol=1e-5)


# --- states around a mode


def test_states_around_a_mode_have_its_curvature(rng):
    X, t = wave(rng, 60, 2)
    fit = fit_map(X, t)
    states = parts.states_around(fit)
    assert states.shape == (parts.MOST_STATES, len(fit.theta))
    np.testing.assert_allclose(states.mean(axis=0), fit.theta, atol=1e-10)  # pairs of opposite sign
    root = parts._root(fit.hessian, fit.theta, 1e-9)
    np.testing.assert_allclose(root @ root.T @ fit.hessian, np.eye(len(fit.theta)), atol=1e-8)
    assert len(np.unique(parts.states_around(replace(fit, theta=np.full(len(fit.theta), np.nan))), axis=0)) == 1


def test_many_rows_have_states_by_laplace_and_still_more_the_mode_alone(rng, monkeypatch):
    X, t = wave(rng, 50, 2)
    fit = fit_map(X, t)
    monkeypatch.setattr(parts, "FULL_ROWS", 20)
    (part,) = parts.process_parts(fit, 0)
    np.testing.assert_array_equal(part.thetas, parts.states_around(fit))
    monkeypatch.setattr(parts, "MOST_CUBES", 50.0**3)
    (part,) = parts.process_parts(fit, 0)
    np.testing.assert_array_equal(part.thetas, fit.theta[None])


# --- weights


def test_weights_of_parts_are_those_of_rows_left_out(rng):
    X, t = wave(rng, 30, 3)
    fit = fit_map(X, t)
    good, bad = fit.theta + 0.1 * rng.normal(size=(25, len(fit.theta))), fit.theta + np.array([-6.0, 4, 0, 0, 0, 0, 0])
    found = parts.stacked(fit, [ProcessPart(fit.covariance, each, 1.0) for each in (good, np.tile(bad, (25, 1)))])
    densities = []
    for thetas in (good, np.tile(bad, (25, 1))):
        each = []
        for theta in thetas:  # each row from the others, written out
            Q = fit.covariance.matrix(theta, X) + np.exp(theta[1]) * np.eye(30)
            P = np.linalg.inv(Q)
            each.append(norm.logpdf((P @ t) / np.diag(P), 0.0, np.diag(P) ** -0.5))
        densities.append(-np.log(np.mean(np.exp(-np.array(each)), axis=0)))
    grid = np.linspace(0.0, 1.0, 2001)[1:-1, None]
    # a row for each model is the prior of the weights
    score = np.logaddexp(np.log(grid) + densities[0], np.log1p(-grid) + densities[1]).sum(axis=1)
    best = grid[np.argmax(score + np.log(grid[:, 0]) + np.log1p(-grid[:, 0])), 0]
    assert found[0].weight == pytest.approx(best, abs=0.02) and best > 0.9
    assert sum(part.weight for part in found) == pytest.approx(1.0)


def test_evenly_keeps_the_last():
    states = np.arange(10.0)[:, None]
    assert parts.evenly(states, 3)[:, 0].tolist() == [3.0, 6.0, 9.0]
    assert parts.evenly(states, 40).shape == (10, 1)


# --- the mixture


def test_a_mixture_of_parts_and_a_constant_written_out(rng):
    X, t = wave(rng, 25, 2)
    fit = fit_map(X, t)
    chosen = (
        ProcessPart(fit.covariance, fit.theta + np.array([[0.0], [0.3]]), 0.75),
        ProcessPart(fit.covariance, fit.theta[None] - 0.2, 0.25),
    )
    mixed = MixedProcess(fit, chosen, 0.8)
    new, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    density = 0.2 * norm.pdf(y, t.mean(), t.std(ddof=1) * np.sqrt(1.0 + 1.0 / 25.0))
    mean = 0.2 * t.mean()
    for part in chosen:
        for theta in part.thetas:
            Q = fit.covariance.matrix(theta, X) + np.exp(theta[1]) * np.eye(25)
            across = fit.covariance.matrix(theta, X, new)
            m = across.T @ np.linalg.solve(Q, t)
            v = (
                fit.covariance.diagonal(theta, new)
                + np.exp(theta[1])
                - (across * np.linalg.solve(Q, across)).sum(axis=0)
            )
            share = 0.8 * part.weight / len(part.thetas)
            density, mean = density + share * norm.pdf(y, m, np.sqrt(v)), mean + share * m
    there = mixed.predict(new)
    np.testing.assert_allclose(there.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(there.log_density(y), np.log(density), rtol=1e-9)
    assert np.all(there.function.variance < there.variance) and mixed.n_states == 3
    told = []
    mixed.leave_one_out(lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] and [done for done, _ in told] == sorted(done for done, _ in told)
    again = pickle.loads(pickle.dumps(mixed))
    np.testing.assert_array_equal(again.predict(new).means, there.means)


# --- the estimator


def test_one_length_for_all_inputs_has_a_weight_where_rows_are_few(rng):
    X = rng.normal(size=(60, 12))
    y = np.sin(X.sum(axis=1) / np.sqrt(12.0)) + 0.1 * rng.normal(size=60)
    covariances = {type(part.covariance).__name__ for part in bs.GPRegressor(random_state=0).fit(X, y).fit_.inner.parts}
    assert "Sum" in covariances
    own = bs.GPRegressor(covariance=SquaredExponential() + Noise(), random_state=0).fit(X, y)
    assert [part.covariance for part in own.fit_.inner.parts] == [own.covariance_]


@pytest.mark.parametrize("column", [0, 3])
def test_one_huge_value_of_an_input_spoils_nothing(rng, column):
    X = rng.normal(size=(140, 4))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=140)
    dirty = X.copy()
    dirty[3, column] = 1e6
    clean, model = (bs.GPRegressor(random_state=0).fit(A[:90], y[:90]) for A in (X, dirty))
    errors = [np.mean((one.predict(X[90:]) - y[90:]) ** 2) for one in (clean, model)]
    assert errors[1] < 1.5 * errors[0]


def test_ctrl_c_while_drawing_leaves_the_mode(rng, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(parts, "hamiltonian_draws", interrupted)
    X, y = wave(rng, 40, 2)
    model = bs.GPRegressor(random_state=0).fit(X, y)
    assert model.status_ is bs.Status.INTERRUPTED
    assert model.fit_.n_states == 1
    assert np.isfinite(model.predict(X)).all()


def many_noise_inputs(rng, n, count):
    X = rng.normal(size=(n + 400, count))
    return X, X[:, :6].sum(axis=1) * 0.5 + np.sin(X[:, 0] * X[:, 1]) + 1.2 * rng.normal(size=n + 400)


@pytest.mark.slow
def test_lengths_of_many_inputs_cover_and_lose_nothing_to_the_mode():
    """Where the mode's lengths collapse the states gain much, elsewhere they lose next to nothing."""
    gains, inside = [], []
    for seed in range(8):
        X, y = many_noise_inputs(np.random.default_rng(seed), 100, 24)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            model, mode = (bs.GPRegressor(how, random_state=0).fit(X[:100], y[:100]) for how in ("auto", "map"))
        gains.append(
            np.mean(model.log_predictive_density(X[100:], y[100:]) - mode.log_predictive_density(X[100:], y[100:]))
        )
        low, high = model.predict(X[100:], return_quantiles=[0.05, 0.95])[1]
        inside.append(np.mean((y[100:] > low) & (y[100:] < high)))
    assert np.mean(gains) > 0.0 and np.min(gains) > -0.1
    assert 0.85 < np.mean(inside) < 0.95


def test_ctrl_c_in_the_search_for_one_shared_length_leaves_the_mode(rng, monkeypatch):
    """That search ends by itself and says so in its notes; what follows must not go on."""
    X, t = wave(rng, n=30, m=2)
    found = fit_map(X, t, Standard())

    def interrupted(*arguments, **options):
        fit = fit_map(*arguments, **options)
        return replace(fit, notes=(*fit.notes, Status.INTERRUPTED))

    monkeypatch.setattr(parts, "fit_map", interrupted)
    fit = parts.mixed_process(found, 1.0, 0)
    assert fit.status is Status.INTERRUPTED and fit.n_states == 1


def test_parts_are_weighed_by_draws_that_have_not_seen_a_row(rng):
    """Densities of rows left out are harmonic means over the draws; weights then those of the best mixture."""
    X, t = wave(rng, n=25)
    mode = fit_map(X, t, TWO)
    drawn = [(TWO, mode.theta + np.array([[-shift], [0.0], [shift]]) * [1.0, 0.5]) for shift in (0.3, 2.0)]
    densities = []
    for covariance, thetas in drawn:
        left_out = [Predictor(mode.X, mode.t, covariance, theta[None]).leave_one_out() for theta in thetas]
        each = [norm.pdf(mode.t, one.means[0], np.sqrt(one.variances[0])) for one in left_out]
        densities.append(-np.log(np.mean(1.0 / np.array(each), axis=0)))
    expected = stacking_weights(np.array(densities))
    found = parts.stacked(mode, [ProcessPart(*one, 1.0) for one in drawn])
    np.testing.assert_allclose([part.weight for part in found], expected, rtol=1e-6)


# --- the model for other samplers


def written_out(theta, X, t, names):
    """log p(t|θ) + log p(θ) of the default covariance: dense, and the mean of the lengths integrated by quadrature."""
    m = X.shape[1]
    value = dict(zip(names, theta, strict=True))
    logs = np.array([value[name] for name in names if name.startswith("log w")])
    normal = {name: value[name] for name in ("log v0", "log r2", "log a0", "log a1")}
    v0, r2, a0, a1 = np.exp(list(normal.values()))
    apart = (np.exp(logs) * (X[:, None] - X[None]) ** 2).sum(axis=2)  # one weight or one for each
    Q = a0 + a1 * X @ X.T + v0 * np.exp(-0.5 * apart) + r2 * np.eye(len(t))
    total = multivariate_normal(np.zeros(len(t)), Q).logpdf(t)
    total += norm(-1.0, 1.0).logpdf(normal.pop("log v0")) + norm(-3.0, 3.0).logpdf(list(normal.values())).sum()
    tau, spread, a = np.exp(-logs), 2.0 * m**2, UnknownMeanPrior(Standard().prior(m)).a

    def density(u):  # of log rho
        rho = np.exp(u)
        return gamma(a, scale=1.0 / a).pdf(rho) * rho * np.prod(gamma(0.5, scale=spread / rho).pdf(tau) * tau)

    return total + np.log(quad(density, -25.0, 12.0, epsabs=0.0, epsrel=1e-10, limit=400)[0])


def test_the_model_in_pymc_has_the_prior_of_the_draws(rng):
    X, y = wave(rng, n=40, m=2)
    model = bs.GPRegressor(random_state=0).fit(X, y)
    Z, t = model._rows
    logp = model.to_pymc().compile_logp(mode="FAST_COMPILE")
    thetas = model.theta_ + 0.7 * rng.normal(size=(5, len(model.theta_)))
    expected = [written_out(theta, Z, t, model._mode.names) for theta in thetas]
    np.testing.assert_allclose([float(logp({"theta": theta})) for theta in thetas], expected, rtol=1e-7)
    marginal, prior = Marginal(Z, t), UnknownMeanPrior(Standard().prior(2))  # what the chain on arrays has
    np.testing.assert_allclose([marginal.value(one) + prior.log_density(one) for one in thetas], expected, rtol=1e-7)
    plain = bs.GPRegressor("map").fit(X, y).to_pymc().compile_logp(mode="FAST_COMPILE")
    differences = np.array([float(plain({"theta": theta})) for theta in thetas]) - expected
    assert np.ptp(differences) > 0.1
    # the part with one length, declared from what the fit says of it
    shared = next(fit for fit in parts._fits(model._mode, 0) if not isinstance(fit.covariance, Standard))
    one = bs.models.gp(Z, t, shared.covariance, prior=parts.prior_of_draws(shared)).compile_logp(mode="FAST_COMPILE")
    thetas = shared.theta + 0.7 * rng.normal(size=(5, len(shared.theta)))
    found, expected = (
        [float(one({"theta": theta})) for theta in thetas],
        [written_out(x, Z, t, shared.names) for x in thetas],
    )
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    for part in model.fit_.inner.parts:
        assert isinstance(part.prior, UnknownMeanPrior) and part.prior.given.first.shape == part.thetas[0].shape


def test_states_around_the_mode_have_the_prior_of_the_mode(rng, monkeypatch):
    X, y = wave(rng, n=24)
    monkeypatch.setattr(parts, "FULL_ROWS", 5)
    model = bs.GPRegressor().fit(X, y)
    (part,) = model.fit_.inner.parts
    assert part.prior is model._mode.prior and parts.prior_of_draws(model._mode) is None
    logp = model.to_pymc().compile_logp(mode="FAST_COMPILE")
    np.testing.assert_allclose(logp({"theta": model.theta_}), model._mode.log_joint(model.theta_), rtol=1e-9)


# --- seeds


def test_without_a_seed_the_same_rows_have_the_same_fit(rng):
    X, y = wave(rng, n=24, m=3)
    first, second = (bs.GPRegressor().fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X, return_std=True), second.predict(X, return_std=True))
    np.testing.assert_array_equal(first.theta_, bs.GPRegressor(random_state=0).fit(X, y).theta_)
    other = bs.GPRegressor(random_state=1).fit(X, y)
    assert np.abs(other.predict(X) - first.predict(X)).max() > 0.0
    mode, again = (bs.GPRegressor("map").fit(X, y).theta_ for _ in range(2))
    np.testing.assert_array_equal(mode, again)
