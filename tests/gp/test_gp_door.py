"""What every entrance to Gaussian processes says of a covariance that is none, of seeds and of data with nothing in.

Guards `bayessel.gp.map_fit`, `bayessel.gp.marginal`, `bayessel.gp.inducing.inducing_fit`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.covariance import Standard
from bayessel.fit import Status

ENTRANCES = {
    "Marginal": bs.gp.Marginal,
    "fit_map": bs.gp.fit_map,
    "fit_inducing": bs.gp.fit_inducing,
    "models.gp": bs.models.gp,
}


@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
@pytest.mark.parametrize(("wrong", "said"), [(3, "got int"), ("a", "got str"), (Standard, r"write Standard\(\)")])
def test_a_covariance_that_is_none(entrance, wrong, said, rng):
    with pytest.raises(TypeError, match=said):
        entrance(rng.normal(size=(5, 2)), rng.normal(size=5), covariance=wrong)


def test_a_prior_that_is_none(rng):
    with pytest.raises(TypeError, match="prior must be"):
        bs.models.gp(rng.normal(size=(5, 2)), rng.normal(size=5), prior=3)


@pytest.mark.parametrize("fit", [bs.gp.fit_map, bs.gp.fit_inducing], ids=["fit_map", "fit_inducing"])
@pytest.mark.parametrize(("seed", "error"), [("x", TypeError), (-3, ValueError), (True, TypeError)])
def test_a_seed_that_is_none(fit, seed, error, rng):
    with pytest.raises(error, match="random_state"):
        fit(rng.normal(size=(5, 2)), rng.normal(size=5), random_state=seed)


@pytest.mark.parametrize("n", [1, 2])
def test_few_rows_are_said_to_be_few_also_with_inducing_inputs(n, rng):
    fit = bs.gp.fit_inducing(rng.normal(size=(n, 2)), rng.normal(size=n), n_inducing=5)
    assert fit.status is Status.TOO_FEW_ROWS


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["copy", "mirror"])
def test_inputs_of_equal_effect_do_not_hold_the_search_on_a_saddle(sign):
    # equal weights are a stationary point that starts with equal weights never leave
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(2, 40))
    t = np.sin(2 * x) + 0.1 * rng.normal(size=40)
    fit = bs.gp.fit_map(np.column_stack([x, sign * x, other]), t)
    assert np.linalg.eigvalsh(fit.hessian).min() > 0.0
    assert np.isfinite(fit.model_evidence.value)
    assert abs(fit.theta[2] - fit.theta[3]) > 1.0


def waves(n, periods_per_unit, rng):
    x = rng.uniform(-2.0, 2.0, size=(n, 1))
    return x, np.sin(2.0 * np.pi * periods_per_unit * x[:, 0]) + 0.1 * rng.normal(size=n)


def test_many_periods_are_no_noise():
    x, t = waves(400, 6.0, np.random.default_rng(0))
    fit = bs.gp.fit_map(x, t)
    assert fit.noise_std < 0.12
    # the control: from the covariance's start alone they are
    assert bs.gp.fit_map(x, t, starts=1).log_posterior < fit.log_posterior - 500.0


def test_many_periods_are_no_noise_with_inducing_inputs_either():
    x, t = waves(1500, 3.0, np.random.default_rng(0))
    fit = bs.gp.fit_inducing(x, t, n_inducing=100)
    assert fit.noise_std < 0.12
    assert fit.upper - fit.log_evidence < 10.0


@pytest.mark.parametrize("fit", [bs.gp.fit_map, bs.gp.fit_inducing], ids=["fit_map", "fit_inducing"])
def test_a_fit_keeps_its_data_when_the_caller_changes_his(fit, rng):
    X, t = rng.normal(size=(20, 2)), rng.normal(size=20)
    found = fit(X, t)
    before = found.predict(X[:3]).mean
    new = X[:3].copy()
    X *= 7.0
    t += 3.0
    np.testing.assert_array_equal(found.predict(new).mean, before)
    assert np.abs(found.X).max() < 7.0


@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
@pytest.mark.parametrize(("scale_X", "scale_t", "name"), [(1e200, 1.0, "X"), (1.0, 1e120, "t")])
def test_numbers_whose_squares_overflow_are_refused(entrance, scale_X, scale_t, name, rng):
    with pytest.raises(ValueError, match=f"{name} has values of size"):
        entrance(scale_X * rng.normal(size=(5, 2)), scale_t * rng.normal(size=5))
