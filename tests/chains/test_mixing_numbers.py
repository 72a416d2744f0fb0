"""R-hat and effective sample sizes of many variables at once: ArviZ's numbers, one variable at a time.

Guards `bayessel.chains.mixing_numbers`.
"""

import arviz as az
import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayessel.chains import mixing_numbers

THEIRS = {
    "r_hat": az.rhat,
    "ess_bulk": lambda x: az.ess(x, method="bulk"),
    "ess_tail": lambda x: az.ess(x, method="tail", prob=mixing_numbers.TAILS),
    "ess_mean": lambda x: az.ess(x, method="mean"),
}


def autoregressive(rng, phi, chains, draws, variables=4):
    x = rng.standard_normal((draws, chains, variables))
    for k in range(1, draws):
        x[k] = phi * x[k - 1] + np.sqrt(1 - phi**2) * x[k]
    x = np.moveaxis(x, 0, 1)
    x[..., 2], x[..., 3] = np.round(x[..., 2]), x[..., 3] > 1.5
    return x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize(
    ("phi", "chains", "draws"),
    [(0.0, 4, 1000), (0.9, 4, 400), (-0.5, 4, 400), (0.99, 2, 301), (0.3, 1, 57), (-0.9, 3, 8), (0.5, 4, 5), (0, 4, 4)],
)
def test_they_are_arviz_s(rng, monkeypatch, name, phi, chains, draws):
    monkeypatch.setattr(mixing_numbers, "_AT_A_TIME", 2 * chains * draws)  # in parts
    x = autoregressive(rng, phi, chains, draws)
    theirs = [float(THEIRS[name](x[:, :, j])) for j in range(x.shape[2])]
    assert_allclose(getattr(mixing_numbers, name)(x), theirs, rtol=1e-9)


def test_chains_at_different_places_that_stand_still():
    x = np.repeat(np.array([0.0, 1.0, 0.0, 1.0])[:, None, None], 50, axis=1)
    assert mixing_numbers.r_hat(x)[0] == np.inf


def test_too_short_chains_have_no_numbers():
    x = np.arange(6.0).reshape(2, 3, 1)
    assert all(np.isnan(getattr(mixing_numbers, name)(x)[0]) for name in THEIRS)


def test_the_slow_the_shifted_and_the_infinite_are_seen_first(rng):
    x = rng.standard_normal((4, 500, 30))
    x[..., 7] = autoregressive(rng, 0.95, 4, 500)[..., 0]
    x[1, :, 11] += 1.0
    x[2, 3, 19] = np.nan
    x[..., 23] = 2.5
    slow = mixing_numbers.slowness(x)
    assert set(np.argsort(-slow)[:3]) == {7, 11, 19} and slow[19] == np.inf and slow[23] == 0.0
    # of independent draws the means of batches scatter by one over their length
    assert_allclose(np.delete(slow, [7, 11, 19, 23]).mean(), 1.0, atol=0.15)
