"""Fits of a Gaussian process: the right optimum, few evaluations, and what is said when it is not one.

Guards `bayessel.gp.map_fit`, `bayessel.gp.map_problem`, `bayessel.gp.map_search`, `bayessel.gp.map_result`,
`bayessel.gp.optimise`, `bayessel.gp.data_remarks`.
"""

import pickle

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from bayessel.covariance import Linear, Noise, Prior, SquaredExponential, Standard
from bayessel.fit import Status
from bayessel.gp import Marginal, fit_map, map_search, optimise
from bayessel.gp.map_problem import MapProblem
from bayessel.gp.optimise import KnownTerms, Roots, updated

EVERYWHERE = (np.full(2, -np.inf), np.full(2, np.inf))


def waves(rng, n, m=3, noise=0.2):
    X = rng.normal(size=(n, m))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + noise * rng.normal(size=n)


def wiggles(rng, n, frequency=10.0):
    x = rng.uniform(-1.7, 1.7, n)[:, None]
    return x, np.sin(frequency * x[:, 0]) + 0.3 * x[:, 0] + 0.2 * rng.normal(size=n)


def nothing(x):
    return KnownTerms(0.0, np.zeros(len(x)), np.zeros(len(x)))


def scipys(marginal, prior, start):
    """The optimum by SciPy's L-BFGS-B, and how many evaluations that took."""

    def objective(theta):
        value, gradient = marginal.value_and_gradient(theta)
        if prior is None:
            return -value, -gradient
        return -value - prior.log_density(theta), -gradient - prior.gradient(theta)

    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-7})
    return found.x, -found.fun, found.nfev


# --- the search


def test_a_quadratic_with_its_own_curvature_takes_one_step():
    A = np.array([[4.0, 1.0], [1.0, 0.5]])
    end = optimise.minimise(
        lambda x: (0.5 * float(x @ A @ x), A @ x),
        np.array([0.3, -0.2]),
        A,
        nothing,
        tol=1e-12,
        max_evaluations=10,
        bounds=EVERYWHERE,
    )
    assert end.converged and end.n_evaluations == 2
    np.testing.assert_allclose(end.x, 0.0, atol=1e-12)


def test_a_curved_valley_is_followed_to_its_end():
    def rosenbrock(x):
        a, b = 1.0 - x[0], x[1] - x[0] ** 2
        return 100.0 * b**2 + a**2, np.array([-400.0 * x[0] * b - 2.0 * a, 200.0 * b])

    start = np.array([-1.2, 1.0])
    end = optimise.minimise(rosenbrock, start, np.eye(2), nothing, tol=1e-12, max_evaluations=200, bounds=EVERYWHERE)
    assert end.converged and not end.stuck
    np.testing.assert_allclose(end.x, 1.0, atol=1e-5)
    values = [entry["value"] for entry in end.history]
    assert end.value == min(values)


def test_the_closed_form_term_is_in_the_step_with_its_own_curvature():
    """x²/2 known in closed form beside an expensive part that is flat: one step instead of several."""
    end = optimise.minimise(
        lambda x: (0.0, np.zeros(2)),
        np.array([0.5, -0.5]),
        np.zeros((2, 2)),
        lambda x: KnownTerms(0.5 * float(x @ x), x, np.ones(2)),
        tol=1e-12,
        max_evaluations=10,
        bounds=EVERYWHERE,
    )
    assert end.n_evaluations == 2
    np.testing.assert_allclose(end.x, 0.0, atol=1e-12)


def test_bounds_hold_and_the_others_go_on():
    def bowl(x):
        return float((x[0] - 3.0) ** 2 + (x[1] + x[0] - 1.0) ** 2), np.array(
            [2.0 * (x[0] - 3.0) + 2.0 * (x[1] + x[0] - 1.0), 2.0 * (x[1] + x[0] - 1.0)]
        )

    bounds = (np.array([-1.0, -5.0]), np.array([1.0, 5.0]))
    end = optimise.minimise(bowl, np.zeros(2), np.eye(2), nothing, tol=1e-12, max_evaluations=50, bounds=bounds)
    assert end.converged
    np.testing.assert_allclose(end.x, [1.0, 0.0], atol=1e-6)


def test_where_the_function_ends_the_search_stops_and_says_so():
    def cliff(x):
        return (-float(x.sum()), -np.ones(2)) if x.sum() < 1.0 else (np.inf, np.zeros(2))

    end = optimise.minimise(cliff, np.zeros(2), np.eye(2), nothing, tol=1e-9, max_evaluations=200, bounds=EVERYWHERE)
    assert end.stuck and not end.converged
    assert 0.99 < end.x.sum() < 1.0


def test_updates_meet_the_secant_and_stay_positive_definite(rng):
    A = rng.normal(size=(4, 4))
    B, step = A @ A.T + np.eye(4), rng.normal(size=4)
    new = updated(B, step, 3.0 * step)
    np.testing.assert_allclose(new @ step, 3.0 * step, rtol=1e-10)
    damped = updated(B, step, -5.0 * step)  # the function bends the other way
    assert np.linalg.eigvalsh(damped).min() > 0.0


def test_roots_go_there_and_back_with_the_right_slope():
    roots = Roots(np.array([-4.0, -4.0, -4.0]))
    theta = np.array([-30.0, -4.0, 60.0])
    u = roots.of(theta)
    np.testing.assert_allclose(roots.theta(u), theta, rtol=1e-10)
    for sign in (1.0, -1.0):
        h = 1e-6 * np.maximum(u, 1e-3)
        slope = (roots.theta(sign * u + h) - roots.theta(sign * u - h)) / (2.0 * h)
        np.testing.assert_allclose(roots.slope(sign * u)[1:], slope[1:], rtol=1e-6)


@pytest.mark.parametrize("prior", ["default", None])
def test_the_gradient_in_the_coordinates_of_the_search(rng, prior):
    X, t = waves(rng, 25)
    problem = MapProblem.of(Marginal(X, t), prior, {"log a0": -1.0})
    expensive = problem.expensive(problem.marginal)
    x = problem.coordinates(problem.template + 0.3 * rng.normal(size=7))
    error = check_grad(lambda x: expensive(x)[0], lambda x: expensive(x)[1], x)
    assert error < 1e-4 * max(1.0, float(np.abs(expensive(x)[1]).max()))


# --- the fit


@pytest.mark.parametrize("prior", ["default", None])
def test_the_optimum_is_that_of_scipy_or_better(rng, prior):
    X, t = waves(rng, 90)
    marginal = Marginal(X, t)
    theirs, value, _ = scipys(marginal, Standard().prior(3) if prior else None, Standard().start(3))
    fit = fit_map(X, t, prior=prior, starts=1)
    assert fit.status is Status.CONVERGED
    assert fit.log_posterior > value - 2e-5
    if prior:
        np.testing.assert_allclose(fit.theta, theirs, atol=0.03)
    np.testing.assert_allclose(fit.log_evidence, marginal.value(fit.theta), rtol=1e-12)


def test_a_quarter_of_the_rows_first_saves_most_of_the_evaluations(rng):
    X, t = waves(rng, 520, m=5)
    fit = fit_map(X, t, starts=1)
    _, value, evaluations = scipys(Marginal(X, t), Standard().prior(5), Standard().start(5))
    cost = sum((entry["rows"] / 520) ** 3 for entry in fit.history)
    assert abs(fit.log_posterior - value) < 1e-3
    assert fit.n_evaluations == sum(entry["rows"] == 520 for entry in fit.history)
    assert 3 * cost < evaluations
    assert 3 * fit.n_evaluations < evaluations


@pytest.mark.parametrize("prior", ["default", None])
def test_noise_and_relevant_inputs_are_found(rng, prior):
    X, t = waves(rng, 300)
    fit = fit_map(X, t, prior=prior)
    assert abs(np.log(fit.noise_std / 0.2)) < 0.15
    table = fit.relevance
    assert table.length.idxmin() == 0
    assert table.length[2] > 3 * table.length[0]
    assert (table.lower <= table.length).all() and (table.length <= table.upper).all()
    if prior:
        assert table["std"].idxmin() == 0  # that of an input that does nothing is hardly known


def test_short_lengths_are_found_where_the_usual_start_sees_noise(rng):
    X, t = wiggles(rng, 150)
    alone, several = fit_map(X, t, starts=1), fit_map(X, t)
    assert alone.noise_std > 0.5  # the control: otherwise this shows nothing
    assert several.noise_std < 0.3
    assert several.log_posterior > alone.log_posterior + 20
    assert len(several.optima) > 1
    assert several.optima[0].log_posterior == several.log_posterior
    assert several.status is Status.CONVERGED  # the others are far worse


def product_of_two_among_32(seed, n):
    """Three inputs of 32 matter, two of them only together: few rows see nothing of those."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(n, 32))
    y = np.sin(2.5 * X[:, 3]) * X[:, 14] + 1.5 * X[:, 15] + 0.3 * rng.normal(size=n)
    y -= np.median(y)
    return X, y / np.mean(np.abs(y))


def test_inputs_that_few_rows_switch_off_come_back(monkeypatch):
    X, t = product_of_two_among_32(6, 512)
    _, value, _ = scipys(Marginal(X, t), Standard().prior(32), Standard().start(32))
    fit = fit_map(X, t)
    assert fit.log_posterior > value - 0.01
    assert {3, 14} == set(fit.relevance.length.nsmallest(2).index)
    # the control: to trust the few rows costs 300 nats
    monkeypatch.setattr(map_search.MapSearch, "_again", lambda self, level, found, starts: [])
    assert fit_map(X, t).log_posterior < fit.log_posterior - 100.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [512, 1024])
def test_many_inputs_end_as_high_as_a_search_on_all_rows(seed, n, monkeypatch):
    X, t = product_of_two_among_32(seed, n)
    fit = fit_map(X, t)
    monkeypatch.setattr(map_search, "_FEWEST", n)
    assert fit.log_posterior > fit_map(X, t, starts=1).log_posterior - 0.01


def test_optima_of_similar_worth_are_told(rng):
    """A wave with few points: what is signal and what is noise is not settled."""
    x = np.linspace(0.0, 1.0, 14)[:, None]
    for seed in range(20):
        local = np.random.default_rng(seed)
        t = 0.7 * np.sin(14.0 * x[:, 0]) + 0.5 * local.normal(size=14)
        fit = fit_map(x, t, SquaredExponential() + Noise())
        if Status.MULTIPLE_OPTIMA in fit.notes:
            break
    else:
        pytest.fail("no case with two optima of similar worth among twenty")
    first, second = fit.optima[:2]
    assert 0.0 <= first.log_posterior - second.log_posterior < np.log(20.0)
    assert np.abs(first.theta - second.theta).max() > 0.5
    marginal, prior = Marginal(x, t, fit.covariance), fit.prior
    for optimum in (first, second):  # both are optima indeed
        slope = marginal.value_and_gradient(optimum.theta)[1] + prior.gradient(optimum.theta)
        assert np.abs(slope).max() < 0.2


def test_parameters_that_are_given_stay_and_their_prior_takes_no_part(rng):
    X, t = waves(rng, 60)
    covariance = SquaredExponential(ard=False) + Noise()
    fit = fit_map(X, t, covariance, fixed={"log w": -1.0})
    i = fit.names.index("log w")
    assert fit.theta[i] == -1.0 and not fit.free[i] and fit.theta_std[i] == 0.0
    free, prior = fit.free, covariance.prior(3)
    part = Prior(prior.is_normal[free], prior.first[free], prior.second[free])
    np.testing.assert_allclose(fit.log_posterior, fit.log_evidence + part.log_density(fit.theta[free]), rtol=1e-12)
    whole = fit_map(X, t, covariance, fixed=dict(zip(fit.names, fit.theta, strict=True)))
    assert whole.log_posterior == whole.log_evidence == whole.model_evidence.value
    np.testing.assert_allclose(whole.log_evidence, fit.log_evidence)


def test_noise_is_added_to_a_covariance_without(rng):
    X, t = waves(rng, 40)
    fit = fit_map(X, t, SquaredExponential() + Linear(), starts=1)
    assert fit.covariance.noisy and "log r2" in fit.names


def test_predictions_and_left_out_rows_are_those_of_plain_formulas(rng):
    X, t = waves(rng, 30)
    fit = fit_map(X, t, starts=1)
    new = rng.normal(size=(4, 3))
    K, k = fit.covariance.matrix(fit.theta, X), fit.covariance.matrix(fit.theta, X, new)
    Q = K + fit.noise_std**2 * np.eye(30)
    function = fit.predict(new).function
    mean, variance = function.mean, function.variance
    np.testing.assert_allclose(mean, k.T @ np.linalg.solve(Q, t), rtol=1e-8)
    prior = fit.covariance.diagonal(fit.theta, new)
    np.testing.assert_allclose(variance, prior - np.einsum("ij,ij->j", k, np.linalg.solve(Q, k)), rtol=1e-6, atol=1e-9)
    out = fit.leave_one_out()
    errors, variances = out.errors, out.variances
    rest = np.arange(30) != 7
    weights = np.linalg.solve(Q[np.ix_(rest, rest)], Q[rest, 7])
    np.testing.assert_allclose(errors[7], t[7] - weights @ t[rest], rtol=1e-8)
    np.testing.assert_allclose(variances[7], Q[7, 7] - weights @ Q[rest, 7], rtol=1e-8)


def test_the_same_seed_gives_the_same_fit_and_it_pickles(rng):
    X, t = waves(rng, 300)
    one, other = (fit_map(X, t, starts=4, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.theta, other.theta)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.theta, one.theta)
    np.testing.assert_array_equal(again.predict(X[:3]).mean, one.predict(X[:3]).mean)


# --- when there is little to fit, or nothing


@pytest.mark.parametrize("prior", ["default", None])
@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_rows_get_a_sensible_answer_and_a_status(n, prior):
    fit = fit_map(np.arange(2.0 * n).reshape(n, 2), np.ones(n), prior=prior)
    assert Status.TOO_FEW_ROWS in fit.notes
    assert np.isfinite(fit.theta).all() and np.isfinite(fit.log_evidence)
    assert np.isfinite(fit.predict(np.zeros((1, 2))).mean).all()


@pytest.mark.parametrize(("level", "status"), [(0.0, Status.CONSTANT_TARGET), (3.0, Status.CONSTANT_TARGET)])
def test_a_constant_target_gets_a_status(rng, level, status):
    fit = fit_map(rng.normal(size=(20, 2)), np.full(20, level), starts=1)
    assert status in fit.notes
    np.testing.assert_allclose(fit.predict(np.zeros((1, 2))).mean, level, atol=0.05)


def test_targets_without_noise_end_at_the_floor_or_where_digits_are_lost(rng):
    X = rng.normal(size=(60, 1))
    fit = fit_map(X, np.sin(X[:, 0]), starts=1)
    assert set(fit.notes) & {Status.NOISE_AT_FLOOR, Status.ILL_CONDITIONED}
    assert fit.noise_std < 1e-3
    np.testing.assert_allclose(fit.predict([[0.3]]).mean, np.sin(0.3), atol=1e-4)


def test_duplicate_rows_and_a_constant_input_do_no_harm(rng):
    X, t = waves(rng, 40)
    X = np.column_stack([np.repeat(X[::2], 2, axis=0), np.ones(40)])
    fit = fit_map(X, t, starts=1)
    assert fit.status is Status.CONVERGED


def test_the_limit_of_evaluations_is_kept_and_told(rng):
    X, t = waves(rng, 50)
    fit = fit_map(X, t, starts=1, max_evaluations=4)
    assert fit.status is Status.STEP_LIMIT and fit.n_evaluations == 4


def test_an_interrupted_fit_gives_the_best_until_then(rng, monkeypatch):
    X, t = waves(rng, 300)
    original, calls = Marginal.value_and_gradient, []

    def interrupted(self, theta):
        calls.append(len(self.t))
        if len(calls) == 12:
            raise KeyboardInterrupt
        return original(self, theta)

    monkeypatch.setattr(Marginal, "value_and_gradient", interrupted)
    fit = fit_map(X, t, starts=1)
    assert set(calls[:12]) == {150}  # it had not yet come to all rows
    assert fit.status is Status.INTERRUPTED
    start = Marginal(X, t).value(Standard().start(3))
    assert fit.log_evidence > start


def test_an_interruption_on_all_rows_gives_the_best_on_all_rows(rng, monkeypatch):
    """Fewer rows have a larger log density, which is no reason to prefer what was found on them."""
    X, t = waves(rng, 300, noise=1.0)
    original, seen = Marginal.value_and_gradient, []

    def interrupted(self, theta):
        found = original(self, theta)
        if len(self.t) == 300:
            seen.append(found[0] + Standard().prior(3).log_density(theta))
            if len(seen) == 4:
                raise KeyboardInterrupt
        return found

    monkeypatch.setattr(Marginal, "value_and_gradient", interrupted)
    fit = fit_map(X, t, starts=1)
    assert Status.INTERRUPTED in fit.notes
    assert max(seen[:3]) > seen[0]
    np.testing.assert_allclose(fit.log_posterior, max(seen[:3]), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"fixed": {"log q": 1.0}}, "the parameters are log v0"),
        ({"fixed": {"log v0": np.nan}}, "finite"),
        ({"fixed": [1.0]}, "mapping"),
        ({"prior": "flat"}, "'default'"),
        ({"prior": Prior.normal(0.0, 1.0)}, "must have 7 entries"),
        ({"prior": 3.0}, "Prior"),
        ({"starts": 0}, "at least 1"),
        ({"starts": np.zeros((2, 3))}, "7 parameters"),
        ({"starts": np.full((1, 7), np.nan)}, "finite"),
        ({"tol": 0.0}, "positive"),
        ({"max_evaluations": 0}, "at least 1"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_arguments_are_refused_at_the_door(rng, arguments, said):
    X, t = waves(rng, 8)
    with pytest.raises((ValueError, TypeError), match=said):
        fit_map(X, t, **arguments)


# --- targets in any units --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 1e9, 1e40, 1e75])
def test_without_priors_the_units_of_the_targets_scale_the_answer(rng, scale):
    """Variances far from where searches begin are found, and the evidence is that of the same process."""
    X = rng.normal(size=(40, 1))
    t = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)
    covariance = SquaredExponential() + Noise()
    near = fit_map(X, t, covariance, prior=None, starts=1)
    start = near.theta + 2.0 * np.log(scale) * np.array([1.0, 0.0, 1.0])
    far = fit_map(X, scale * t, covariance, prior=None, starts=[start + 0.3])
    np.testing.assert_allclose(far.log_evidence, near.log_evidence - 40 * np.log(scale), atol=1e-3)
    np.testing.assert_allclose(far.theta, start, atol=0.05)
    assert far.noise_std == pytest.approx(scale * near.noise_std, rel=0.05)


def test_a_damped_step_has_its_length_however_steep_the_slope():
    along, values = np.array([3e160, -4e160]), np.array([1e150, 2e150])
    mu = optimise._damping(along, values, 1.0)
    assert np.linalg.norm(along / (values + mu)) == pytest.approx(1.0, rel=0.03)
    steep = optimise._damping(1e-160 * along, 1e-160 * values, 1.0)
    assert mu == pytest.approx(1e160 * steep, rel=1e-9)


def test_noise_at_its_floor_is_no_other_parameter_at_a_bound():
    """A prior that holds the noise below all that numbers can tell: that is said once, and as what it is."""
    x = np.linspace(-2.0, 2.0, 9)[:, None]
    prior = Prior.join(Prior.normal(0.0, 1.0, 2), Prior.normal(-60.0, 1.0, 1))
    fit = fit_map(x, np.sin(2.0 * x[:, 0]), SquaredExponential() + Noise(), prior=prior, starts=1)
    assert fit.notes == (Status.NOISE_AT_FLOOR,)
    assert np.abs(fit.theta[:2]).max() < 2.0  # far from their bounds
