"""The models of the evidence contest: velocities of a planet, and the truth without one."""

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy.optimize import brentq

import bayessel as bs
from benchmarks import eprv3


def test_velocities_of_a_planet_solve_keplers_equation():
    day = np.linspace(0.0, 200.0, 60)
    for e in (0.0, 0.3, 0.85):
        period, omega, phase = 17.3, 1.1, 4.0
        found = eprv3.keplerian(day, *(pt.constant(x) for x in (period, e, omega, phase))).eval()
        mean = phase + 2.0 * np.pi * day / period
        E = np.array([brentq(lambda x, m=m, e=e: x - e * np.sin(x) - m, m - 1.0, m + 1.0, xtol=1e-14) for m in mean])
        true = 2.0 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
        np.testing.assert_allclose(found, np.cos(true + omega) + e * np.cos(omega), atol=1e-8)


@pytest.mark.skipif(not (eprv3.folder() / "rvs_0001.txt").exists(), reason="needs EPRV3=<folder of the data>")
@pytest.mark.parametrize(("number", "log10"), [(1, -211.9774), (2, -197.1098), (3, -169.6445)])
def test_without_a_planet_the_evidence_is_the_integral(number, log10):
    assert eprv3.without_planets(number) / np.log(10.0) == pytest.approx(log10, abs=5e-5)
    found = bs.evidence(eprv3.model_of(number, "broad", 0), random_seed=1, quiet=True)
    assert found.reliable and found.log10 == pytest.approx(log10, abs=1e-4)
