"""The evidence as a function of a prior's width, from one run.

Guards `bayessel.marginal_likelihood.prior_sensitivity`.
"""

import numpy as np
import pymc as pm
import pytest

import bayessel as bs
from bayessel.diagnostics import prior_sensitivity

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
S = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(width=5.0):
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", width)
        pm.Normal("y", pm.Normal("theta", mu, tau, shape=8), S, observed=Y)
    return model


def test_the_curve_is_that_of_evidences_computed_one_by_one():
    curve = prior_sensitivity(schools(), None, "tau", random_seed=1)
    assert curve.error[20] == 0.0 and curve.factors[20] == pytest.approx(1.0)
    at = bs.evidence(schools()).value
    for k in (0, 10, 30, 40):
        exact = bs.evidence(schools(5.0 * curve.factors[k])).value - at
        assert abs(curve.change[k] - exact) < 4 * curve.error[k] + 0.01 < 0.2
    assert "prior of tau" in str(curve) and curve.best < 1.0
    axes = curve.plot()
    assert axes.get_xscale() == "log"


def test_a_prior_on_the_line_is_stretched_about_its_mean():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x", 3.0, 1.0), 1.0, observed=5.0)
    curve = prior_sensitivity(model, None, "x", reach=4.0, random_seed=1)
    variance = 1.0 + curve.factors**2
    exact = -0.5 * np.log(variance / 2.0) - 0.5 * 4.0 / variance + 0.5 * 4.0 / 2.0
    assert (np.abs(curve.change - exact) < 5 * curve.error + 1e-9).all()
    # the control: about zero it would be another curve
    other = -0.5 * np.log(variance / 2.0) - 0.5 * (5.0 - 3.0 * curve.factors) ** 2 / variance
    assert np.abs(curve.change - other).max() > 0.5


def test_what_has_no_scale_is_refused():
    with pm.Model() as model:
        pm.Binomial("heads", 10, pm.Beta("p", 2.0, 2.0), observed=7)
    with pytest.raises(ValueError, match="bounded prior"):
        prior_sensitivity(model, None, "p")
    with pytest.raises(ValueError, match=r"free variable of the model \(p\), got 'q'"):
        prior_sensitivity(model, None, "q")
    with pytest.raises(ValueError, match="more than 1"):
        prior_sensitivity(schools(), None, "tau", reach=0.5)
