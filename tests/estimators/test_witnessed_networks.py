"""MLPRegressor by default: networks beside their reference, by the weights that refitted folds give.

Guards `bayessel.estimators._witnessed_networks`, `bayessel.estimators._network`.
"""

import pickle
import warnings

import numpy as np
import pytest
import scipy.stats
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from bayessel.errors import NumericalWarning
from bayessel.estimators import _network
from bayessel.estimators import _witnessed_networks as witnessed
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators.stacked_widths import RadialModel, fit_stacked
from bayessel.fit import Status
from bayessel.prediction import Prediction
from tests.problems.mlp import NEW, SHORT, M, wave

pytestmark = pytest.mark.filterwarnings(
    "ignore:(CHAINS_DISAGREE|FELL_BACK|NO_BETTER_THAN|TOO_FEW_ROWS|CONSTANT_TARGET)",
    "ignore:.*leave-one-out predictions are unsure",
)

AUTO = SHORT | {"inference": "auto", "draws": 24, "tune": 6}


def plain(X, t):
    """The reference of an estimator's rows."""
    return fit_stacked(X, t, RadialModel(None, "gaussian", True))[0]


class Stand:
    """A stand-in for networks of a fold: normal predictions about a function."""

    def __init__(self, function, std):
        self.function, self.std = function, std

    def predict(self, X):
        return Prediction.normal(self.function(X), self.std**2)


def looked_at(rng, std, shift=0.0, n=60):
    """Folds of a wave by networks that know it to `std`, but for a shift."""
    X = rng.normal(size=(n, 2))
    truth = lambda X: np.sin(3.0 * X[:, 0])  # noqa: E731
    t = truth(X) + 0.3 * rng.normal(size=n)
    return witnessed.witness_of(X, t, lambda *_: Stand(lambda X: truth(X) + shift, std))


def test_the_share_maximises_the_density_of_rows_left_out(rng):
    found = looked_at(rng, 0.4, shift=0.15)
    assert 0.1 < found.share < 0.9

    def loss(share):  # a row for each beforehand, half of it for each
        rows = logsumexp(found.gains + np.log([[share], [1.0 - share]]), axis=0).sum()
        return -(rows + np.log(share) + np.log(1.0 - share))

    best = minimize_scalar(loss, bounds=(1e-6, 1.0 - 1e-6), method="bounded", options={"xatol": 1e-9}).x
    assert abs(found.share - best) < 1e-3
    np.testing.assert_allclose(found.mixed, logsumexp(found.gains.T, b=[found.share, 1 - found.share], axis=1))


def test_networks_that_collapse_have_no_share_and_those_that_know_the_function_have_most(rng):
    bad, good = looked_at(rng, 0.01), looked_at(rng, 0.3)
    assert bad.share == 0.0 and bad.notes == (Status.FELL_BACK,)
    np.testing.assert_array_equal(bad.mixed, bad.gains[1])
    assert good.share > 0.5 and good.notes == ()
    noise = witnessed.witness_of(
        rng.normal(size=(60, 2)), rng.normal(size=60), lambda *_: Stand(lambda X: X[:, 0], 0.2)
    )
    assert noise.notes == (Status.FELL_BACK, Status.NO_BETTER_THAN_CONSTANT)


def test_gains_are_of_folds_that_were_fitted_without_the_rows(rng):
    X, seen = rng.normal(size=(30, 2)), []
    t = X[:, 0] + 0.1 * rng.normal(size=30)

    def sample(Z, s):
        seen.append((Z, s))
        return Stand(lambda X: X[:, 0], 0.1)

    found = witnessed.witness_of(X, t, sample)
    order = np.argsort(t)  # folds follow the order of the targets
    for k, (Z, s) in enumerate(seen):
        held = np.arange(30) % 3 == k
        np.testing.assert_array_equal(Z, X[order][~held])
        constant = scipy.stats.norm(s.mean(), s.std(ddof=1) * np.sqrt(1.0 + 1.0 / len(s)))
        left = t[order][held]
        here = scipy.stats.norm.logpdf(left, X[order][held][:, 0], 0.1) - constant.logpdf(left)
        np.testing.assert_allclose(found.gains[0, held], here, rtol=1e-10)
        there = plain(Z, s).predict(X[order][held]).log_density(left) - constant.logpdf(left)
        np.testing.assert_allclose(found.gains[1, held], there, rtol=1e-8)


def test_predictions_are_mixtures_of_draws_and_reference(rng, monkeypatch):
    monkeypatch.setattr(witnessed.held_out, "stacking_weights", lambda *_: np.array([0.3, 0.7]))
    X, y = wave(rng, 24)
    model = M(**AUTO).fit(X, y)
    drawn = M(**AUTO | {"inference": "mc", "updates_per_draw": 1}).fit(X, y)
    inner = model.fit_.inner
    assert inner.witness.share == 0.3 and isinstance(inner, SampledNetworks)
    shift, scale = np.median(y), np.abs(y - np.median(y)).mean()
    Z = model.fit_.units.inputs(NEW)
    there = plain(model._rows[0], model._rows[1][:, 0]).predict(Z).scaled(shift, scale)
    here = drawn.predictive(NEW)
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, 0.3 * here.mean + 0.7 * there.mean, rtol=1e-9)
    spread = 0.3 * (here.variance + here.mean**2) + 0.7 * (there.variance + there.mean**2) - mean**2
    np.testing.assert_allclose(std, np.sqrt(spread), rtol=1e-7)
    new = mean + 0.5 * std
    expected = np.logaddexp(np.log(0.3) + here.log_density(new), np.log(0.7) + there.log_density(new))
    np.testing.assert_allclose(model.log_predictive_density(NEW, new), expected, rtol=1e-9)
    function = model.predictive(NEW, noise=False)
    spread = 0.3 * (here.function.variance + here.mean**2) + 0.7 * (there.function.variance + there.mean**2) - mean**2
    np.testing.assert_allclose(function.variance, spread, rtol=1e-6)
    left = model.leave_one_out()
    alone, other = drawn.leave_one_out(), inner.witness.reference.leave_one_out()
    expected = np.logaddexp(np.log(0.3) + alone.log_densities, np.log(0.7) + other.log_densities - np.log(scale))
    np.testing.assert_allclose(left.log_densities, expected, rtol=1e-8)
    noise = 0.3 * drawn.noise_std_**2 + 0.7 * (scale * inner.witness.reference.noise_std) ** 2
    np.testing.assert_allclose(model.noise_std_, np.sqrt(noise), rtol=1e-10)
    assert "networks have 30 % of the predictions" in model.describe()


@pytest.fixture
def quick(monkeypatch):
    """Folds without chains of their own."""
    stand = Stand(lambda Z: 0.3 * Z[:, 0], 1.0)
    monkeypatch.setattr(_network, "witness_of", lambda X, t, _: witnessed.witness_of(X, t, lambda *_: stand))


def test_chains_that_go_on_keep_what_the_folds_said(rng, quick):
    X, y = wave(rng, 24)
    whole = M(**AUTO).fit(X, y)
    part = pickle.loads(pickle.dumps(M(**AUTO | {"draws": 10}).fit(X, y)))
    witness = part._run.witness
    part.continue_fit(draws=24)
    assert part.fit_.inner.witness is witness and witness.share == whole.fit_.inner.witness.share
    np.testing.assert_allclose(
        np.array(part.predict(NEW, return_std=True)), np.array(whole.predict(NEW, return_std=True)), rtol=1e-9
    )
    assert part.notes_ == whole.notes_


@pytest.mark.filterwarnings("default::bayessel.errors.NumericalWarning")
def test_where_the_reference_predicts_alone_a_warning_says_so(rng, monkeypatch, quick):
    X, y = wave(rng, 24)
    monkeypatch.setattr(witnessed.held_out, "stacking_weights", lambda *_: np.array([0.05, 0.95]))
    with pytest.warns(NumericalWarning, match=r"FELL_BACK: .*networks: rows held out"):
        model = M(**AUTO).fit(X, y)
    assert model.status_ is Status.FELL_BACK and Status.CHAINS_DISAGREE not in model.notes_
    there = plain(model._rows[0], model._rows[1][:, 0]).predict(model.fit_.units.inputs(NEW))
    np.testing.assert_allclose(
        model.predict(NEW), model.fit_.units.target_shift + model.fit_.units.target_scale * there.mean
    )


def test_without_folds_there_is_no_witness(rng):
    X, y = wave(rng, 24, outputs=2)
    both = M(**AUTO | {"tune": 3, "draws": 6}).fit(X, y)
    assert type(both.fit_.inner) is SampledNetworks  # several targets
    few = M(**AUTO).fit(X[:5], y[:5, 0])
    assert type(few.fit_.inner) is SampledNetworks and few.status_ is Status.TOO_FEW_ROWS
    constant = M(**AUTO).fit(X, np.full(24, 2.0))
    assert type(constant.fit_.inner) is SampledNetworks and constant.status_ is Status.CONSTANT_TARGET


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_skewed_and_heavy_tailed_targets_are_no_worse_than_a_constant(seed):
    from benchmarks.defaults import tables

    for name, X, y, n in tables(np.random.default_rng(200 + seed)):
        if name in ("a skewed target", "many zeros", "heavy tails"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = M(time_budget=6.0, random_state=0, cores=1).fit(X[:n], y[:n])
            constant = scipy.stats.norm.logpdf(y[n:], y[:n].mean(), y[:n].std())
            assert np.mean(model.log_predictive_density(X[n:], y[n:]) - constant) > -0.05, name
