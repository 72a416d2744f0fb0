"""GPRegressor on odd data, on noise, and on data of its own model.

Guards `bayessel.estimators.gp`.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from sklearn.base import clone

import bayessel as bs
from bayessel.covariance import Standard
from bayessel.errors import NumericalWarning
from tests.problems.gp import NEW, SHORT, G, wave


@pytest.mark.filterwarnings("ignore:CHAINS_DISAGREE")
@pytest.mark.parametrize("inference", ["map", "mc"])
def test_units_and_offsets_of_inputs_and_target_scale_the_answer(rng, inference):
    X, y = wave(rng)
    model = G(inference, draws=5, tune=5, chains=1, cores=1, random_state=0)
    # powers of two: the standardised numbers are the same to the last bit, and every draw with them
    plain, scaled = clone(model).fit(X, y), clone(model).fit(X * [4.0, 0.5], 8.0 * y)
    assert scaled.log_evidence_ == pytest.approx(plain.log_evidence_ - 30 * np.log(8.0), abs=1e-9)
    assert scaled.model_evidence_ == pytest.approx(plain.model_evidence_ - 30 * np.log(8.0), abs=1e-6)
    np.testing.assert_array_equal(scaled.theta_, plain.theta_)
    asked = {"return_std": True, "return_quantiles": [0.2]}
    found, expected = scaled.predict(NEW * [4.0, 0.5], **asked), plain.predict(NEW, **asked)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, 8.0 * other, rtol=1e-9)
    moved = clone(model).fit(1000 * X + 12345.0, y - 1e4)
    np.testing.assert_allclose(moved.predict(1000 * NEW + 12345.0) + 1e4, plain.predict(NEW), rtol=1e-3)


ODD = {
    "one row": ([[0.3]], [2.0]),
    "two rows": ([[0.3], [0.9]], [2.0, 2.5]),
    "equal rows": ([[0.3], [0.3]], [2.0, 2.5]),
    "constant": (np.linspace(0, 1, 8)[:, None], np.full(8, 3.0)),
    "zero": (np.linspace(0, 1, 8)[:, None], np.zeros(8)),
    "duplicates": (np.repeat(np.linspace(0, 1, 5), 2)[:, None], [0, 0.1, 1, 1.1, 0, 0.1, -1, -0.9, 0, 0.1]),
    "one input value": (np.ones((6, 1)), np.arange(6.0)),
    "no noise": (np.linspace(0, 1, 25)[:, None], np.sin(6 * np.linspace(0, 1, 25))),
    "a line": (np.linspace(0, 1, 25)[:, None], 3 * np.linspace(0, 1, 25)),
    "far away": (1e8 + np.linspace(0, 1, 25)[:, None], 1e8 + np.cos(40 * np.arange(25))),
    "tiny numbers": (1e-90 * np.linspace(0, 1, 25)[:, None], 1e-90 * np.sin(6 * np.linspace(0, 1, 25))),
    "huge inputs": (1e200 * np.linspace(0, 1, 25)[:, None], np.sin(6 * np.linspace(0, 1, 25))),
    "more inputs than rows": (np.cos(np.arange(80.0).reshape(8, 10) ** 2), np.sin(np.arange(8.0) ** 2)),
}


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("inference", ["map", pytest.param("mc", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ODD)
def test_odd_data_get_a_sensible_answer(name, inference):
    X, y = (np.asarray(part, dtype=float) for part in ODD[name])
    model = G(inference, draws=20, tune=20, cores=1, random_state=0).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.abs(mean).max() <= 1.5 * np.abs(y).max() + 1e-9
    far_mean, far_std = model.predict(np.full((1, X.shape[1]), 50.0), return_std=True)
    assert np.isfinite(far_mean).all() and np.isfinite(far_std).all()
    assert isinstance(model.status_, bs.Status) and np.isfinite(model.log_evidence_)
    out = model.leave_one_out()
    assert np.isfinite(out.errors).all() and (out.variances > 0).all() and np.isfinite(out.log_densities).all()
    assert len(model.relevance_) == X.shape[1] and np.isfinite(model.noise_std_) and not np.isinf(model.model_evidence_)
    if inference == "map":
        expected = {"constant": "CONSTANT_TARGET", "zero": "CONSTANT_TARGET", "no noise": "NOISE_AT_FLOOR"}
        few = "TOO_FEW_ROWS" if len(y) < 3 else expected.get(name)
        assert few is None or model.status_.name == few
    if np.ptp(y) == 0.0:
        np.testing.assert_allclose(mean, y, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "cause"), [("constant", "CONSTANT_TARGET"), ("one row", "TOO_FEW_ROWS")])
@pytest.mark.filterwarnings("ignore:(CONSTANT_TARGET|TOO_FEW_ROWS):bayessel.errors.NumericalWarning")
def test_the_status_of_a_run_is_the_cause_of_its_trouble(name, cause):
    X, y = (np.asarray(part, dtype=float) for part in ODD[name])
    model = G(**SHORT | {"draws": 3, "tune": 3}).fit(X, y)  # so short that chains cannot agree
    assert model.status_.name == cause and {bs.Status[cause], bs.Status.CHAINS_DISAGREE} <= set(model.notes_)
    assert "notes_" in G.__doc__


def test_numerical_trouble_is_a_status_and_a_warning():
    X, y = ODD["no noise"]
    with pytest.warns(NumericalWarning, match="NOISE_AT_FLOOR"):
        model = G(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-4)


def test_pure_noise_gives_an_honest_answer(rng):
    X, y = rng.uniform(0, 1, (60, 2)), rng.normal(size=60)
    with pytest.warns(NumericalWarning, match="NO_BETTER_THAN_CONSTANT"):
        model = G(random_state=0).fit(X, y)
    inside = rng.uniform(0, 1, (200, 2))
    mean, std = model.predict(inside, return_std=True)
    assert (std > 0.6).all() and np.abs(mean).max() < 1.0


def test_an_irrelevant_input_has_a_long_length(rng):
    X, y = wave(rng, 60, noise=0.05)
    table = G(random_state=0).fit(X, y).relevance_
    assert table["upper"][0] < table["lower"][1]


@pytest.mark.filterwarnings("ignore:NO_BETTER_THAN_CONSTANT")
def test_error_bars_cover_what_the_model_draws(rng):
    """Of data drawn from the model 68 % within one standard deviation; with bars three quarters as long too few."""
    theta = np.array([0.0, -2.0, 1.0, -2.0, -2.0])
    inside, narrow = [], []
    for _ in range(60):
        X = rng.normal(size=(40, 1))
        Q = Standard().matrix(theta, X) + np.exp(-2.0) * np.eye(40)
        y = np.linalg.cholesky(Q) @ rng.normal(size=40)
        mean, std = G(random_state=0).fit(X[:30], y[:30]).predict(X[30:], return_std=True)
        z = np.abs(y[30:] - mean) / std
        inside.append((z < 1.0).mean())
        narrow.append((z < 0.75).mean())
    expected = 2 * scipy.stats.norm.cdf(1.0) - 1
    assert abs(np.mean(inside) - expected) < 4 * scipy.stats.sem(inside)
    assert abs(np.mean(narrow) - expected) > 4 * scipy.stats.sem(narrow)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_predictions_of_a_run_are_calibrated_over_the_prior(rng):
    """With θ from its prior and data from θ, the distribution function of a new target at the target is uniform."""
    found, narrow = [], []
    prior = Standard().prior(1)
    for seed in range(40):
        theta, X = prior.draw(rng), rng.normal(size=(9, 1))
        values, vectors = np.linalg.eigh(Standard().matrix(theta, X))
        root = np.sqrt(values.clip(0.0))
        y = vectors @ (root * rng.normal(size=9)) + np.exp(0.5 * theta[1]) * rng.normal(size=9)
        model = G("mc", standardise=False, draws=60, tune=100, chains=1, cores=1, random_state=seed).fit(X[:8], y[:8])
        mixture = model.predictive(X[8:])
        found.append(np.exp(mixture.log_cdf(y[8:])[0]))
        narrow.append(np.exp(replace(mixture, variances=mixture.variances / 16).log_cdf(y[8:])[0]))
    assert scipy.stats.kstest(found, "uniform").pvalue > 1e-3
    assert np.mean(np.abs(np.array(found) - 0.5) > 0.475) < 0.2 < np.mean(np.abs(np.array(narrow) - 0.5) > 0.475)


# --- numbers of absurd size ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "named"),
    [
        (None, [10**400] * 20, "beyond; rescale"),
        ([[10**400]] * 20, None, "beyond; rescale"),
        (1.7e308 * np.linspace(-1, 1, 20)[:, None], None, "X has values of size 2e.308"),
        (None, 1.7e308 * np.linspace(-1, 1, 20), "y has values of size 2e.308"),
        (None, 1e101 * np.linspace(-1, 1, 20), "y has values of size 1e.101"),
    ],
)
def test_numbers_that_no_arithmetic_bears_are_refused(rng, X, y, named):
    X = rng.normal(size=(20, 1)) if X is None else X
    with pytest.raises(ValueError, match=named):
        G(random_state=0).fit(X, rng.normal(size=20) if y is None else y)


@pytest.mark.parametrize("inducing", [None, 5])
def test_places_that_no_arithmetic_bears_are_refused(rng, inducing):
    X, y = wave(rng)
    model = G(random_state=0, inducing=inducing).fit(X, y)
    with pytest.raises(ValueError, match="has values of size"):
        model.predict([[1e300, 0.5]])
    with pytest.raises(ValueError, match="beyond; rescale"):
        model.predict([[10**400, 0.5]])
    small = G(random_state=0, inducing=inducing).fit(1e-200 * X, y)
    with pytest.raises(ValueError, match="infinity"):
        small.predict([[1e200, 0.5]])
    np.testing.assert_allclose(model.predict([[1e-300, 0.5]]), model.predict([[0.0, 0.5]]), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("scale", [1e40, 1e75])
def test_huge_targets_as_they_are_get_a_fit_that_knows_their_size(rng, scale):
    """The priors are for standardised numbers: the fit is poor, and its noise says so."""
    X, y = wave(rng)
    model = G(standardise=False, random_state=0).fit(X, scale * (y - 30.0))
    mean, std = model.predict(NEW, return_std=True)
    assert np.isfinite(mean).all() and (std > 0.1 * scale).all() and model.noise_std_ < 20.0 * scale
