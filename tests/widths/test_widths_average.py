"""Averages over the widths of a comparison: fits, priors and weights against formulas by hand, for every model.

Guards `bayessel.widths._average`, `bayessel.widths._fit_at_width`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from scipy.stats import norm

import bayessel as bs
from bayessel.errors import NumericalWarning
from bayessel.fit import Status
from bayessel.linear import fit_evidence
from bayessel.widths import WidthComparison
from bayessel.widths._average import log_volumes

WIDTHS = (0.3, 0.6, 1.5, 4.0)
MODELS = ("evidence", "rvm", "search", "gp")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(-2, 2, 40))
    return x, 20.0 + 3.0 * np.sin(3 * x) + 0.4 * rng.normal(size=40)


@pytest.fixture(scope="module", params=MODELS)
def comparison(request, data):
    return bs.compare_widths(*data, WIDTHS, model=request.param, criteria=["evidence"], progressbar=False)


def test_the_prior_is_uniform_in_the_logarithm_of_the_width():
    """A grid that is twice as fine on one side leaves the prior of a stretch of widths as it is."""
    assert_allclose(log_volumes([1.0, 10.0, 100.0]), [0.25, 0.5, 0.25])
    fine = log_volumes([1.0, 10.0**0.5, 10.0, 100.0])
    assert_allclose(fine, [0.125, 0.25, 0.375, 0.25])
    assert_allclose(log_volumes([("a", 1.0), ("a", 2.0), ("b", 5.0)]), [0.25, 0.25, 0.5])
    assert_allclose(log_volumes([3.0]), [1.0])


def test_weights_by_evidence_are_those_of_the_table(comparison):
    model = comparison.average("evidence")
    prior = log_volumes(list(comparison.table.index))
    expected = softmax(comparison.table["evidence"].to_numpy() + np.log(prior))
    assert_allclose(model.weights_["weight"].to_numpy()[:-1], expected, rtol=1e-6, atol=1e-9)
    assert model.weights_.index[-1] == "constant" and model.weights_["weight"]["constant"] == 0.0
    assert model.fingerprint_ == comparison.fingerprint


def test_predictions_are_mixtures_over_widths_in_units_of_the_target(comparison, data):
    x, _ = data
    new = np.array([[-1.0], [0.3]])
    model = comparison.average({0.6: 1.0, 1.5: 3.0})
    parts = [model.members_[name].predict(new) for name in ("0.6", "1.5")]
    t = np.array([20.0, 22.0])
    expected = np.log(0.25 * np.exp(parts[0].log_density(t)) + 0.75 * np.exp(parts[1].log_density(t)))
    assert_allclose(model.log_predictive_density(new, t), expected)
    # the stored picture of the best width is that of its fit
    label = comparison.best()
    drawn = comparison.fits[label]
    again = model.members_[repr(label)].predict(x[:, None])
    assert_allclose(again.mean, drawn.mean, rtol=1e-5)
    assert_allclose(again.std, drawn.std, rtol=1e-4)
    assert_allclose(model.members_[repr(label)].log_evidence, comparison.table.loc[label, "evidence"], rtol=1e-8)


def test_stacking_uses_rows_left_out(comparison, data):
    _, y = data
    model = comparison.average()
    found = model.weights_
    constant = [np.delete(y, i) for i in range(40)]
    alone = np.array(
        [norm.logpdf(t, r.mean(), r.std(ddof=1) * np.sqrt(1 + 1 / 39)) for t, r in zip(y, constant, strict=True)]
    )
    for name, member in model.members_.items():
        gain = (member.leave_one_out().log_densities - alone).mean()
        assert_allclose(found.loc[name, "gain"], gain, rtol=1e-8)
    assert_allclose(found["weight"].sum(), 1.0)
    left_out = model.leave_one_out()
    assert_allclose(left_out.target, y)
    assert_allclose(left_out.prediction.log_density(y), left_out.log_densities, rtol=1e-8, atol=1e-10)
    assert model.gain_ >= found["gain"].max() - 0.05


def test_left_out_rows_of_a_process_are_in_units_of_the_target(data):
    """Refits without the row at the same hyperparameters, by dense algebra."""
    x, y = data
    comparison = bs.compare_widths(x, y, [0.8], model="gp", criteria=["elpd-loo"], progressbar=False)
    fit = comparison.average().members_["0.8"]
    assert_allclose(fit.leave_one_out().log_density, comparison.table["elpd-loo"].iloc[0], rtol=1e-8)


def test_kinds_and_files_and_processes(data, tmp_path):
    x, y = data
    comparison = bs.compare_widths(x, y, WIDTHS, kind=["gaussian", "cauchy"], progressbar=False)
    model = comparison.average("model-evidence")
    assert list(model.weights_.index) == [f"{k} {r}" for k in ("gaussian", "cauchy") for r in WIDTHS] + ["constant"]
    assert_allclose(
        model.weights_["weight"].to_numpy()[:-1],
        softmax(comparison.table["model-evidence"].to_numpy() + np.log(log_volumes(list(comparison.table.index)))),
        rtol=1e-5,
        atol=1e-9,
    )
    back = WidthComparison.from_netcdf(comparison.to_netcdf(tmp_path / "widths.nc"))
    assert_allclose(back.average("evidence").predict(x), comparison.average("evidence").predict(x), rtol=1e-10)
    given = comparison.average({("cauchy", 0.6): 2.0})
    assert_allclose(given.predict(x[:, None]), given.members_["cauchy 0.6"].predict(x[:, None]).mean)
    Phi = np.exp(-((x[:, None] - x) ** 2) / 0.6**2)
    assert_allclose(
        comparison.average({("gaussian", 0.6): 1.0}).predict(x), fit_evidence(Phi, y, centre=True).predict(Phi).mean
    )


def test_noise_is_averaged_with_the_constant(rng):
    x, y = rng.uniform(-2, 2, 40), rng.normal(size=40)
    comparison = bs.compare_widths(x, y, WIDTHS, progressbar=False)
    with pytest.warns(NumericalWarning):
        model = comparison.average()
    assert model.status_.distrusted
    assert Status.NO_BETTER_THAN_CONSTANT in model.fit_.notes or Status.PURE_NOISE in model.fit_.notes


def test_bad_weights_are_refused(data):
    comparison = bs.compare_widths(*data, WIDTHS, progressbar=False)
    with pytest.raises(ValueError, match="weights must be"):
        comparison.average("loo")
    with pytest.raises(ValueError, match=r"'0\.7', which is no member; members are 0\.3"):
        comparison.average({0.7: 1.0})
    with pytest.raises(TypeError, match="cannot be fitted anew"):
        comparison.average("evidence").fit(*data)
