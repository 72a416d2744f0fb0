"""Hamiltonian Monte Carlo on arrays: moments of a skewed, correlated target; how it ends where the density is nil.

Guards `bayessel.gp.hamiltonian_draws`.
"""

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from bayessel.gp.hamiltonian_draws import hamiltonian_draws

SHAPES = np.array([0.7, 2.0, 5.0])
MIX = np.array([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [-0.5, 0.3, 2.0]])


def skewed(theta):
    """θ = A log g of independent Gamma variables g: skewed, and correlated by A."""
    u = np.linalg.solve(MIX, theta)
    return float((SHAPES * u - np.exp(u)).sum()), np.linalg.solve(MIX.T, SHAPES - np.exp(u))


def chains(count, density=skewed, **options):
    root = MIX @ np.diag(SHAPES**-0.5)
    start = MIX @ np.log(SHAPES)
    return [
        hamiltonian_draws(density, start, root, rng=np.random.default_rng(seed), **{"draws": 60, "tune": 30} | options)
        for seed in range(count)
    ]


def far(found):
    """Monte Carlo standard errors between the means and squares of chains and the true ones, largest."""
    mean = MIX @ digamma(SHAPES)
    square = MIX**2 @ polygamma(1, SHAPES) + mean**2
    draws = np.array([one.draws for one in found])
    each = np.concatenate([draws.mean(axis=1), (draws**2).mean(axis=1)], axis=1)
    error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return np.abs((each.mean(axis=0) - np.concatenate([mean, square])) / error).max()


def test_moments_of_a_skewed_correlated_target():
    found = chains(60)
    assert far(found) < 4.0
    assert all(0.5 < one.accepted <= 1.0 and one.draws.shape == (60, 3) for one in found)
    assert np.mean([one.n_evaluations for one in found]) < 8 * 90


def test_a_density_of_another_target_is_noticed():
    def wrong(theta):  # the Jacobian of the logarithm forgotten
        u = np.linalg.solve(MIX, theta)
        value, gradient = skewed(theta)
        return value - float(u.sum()), gradient - np.linalg.solve(MIX.T, np.ones(3))

    assert far(chains(60, wrong)) > 4.0


def test_draws_are_nearly_independent():
    draws = np.array([one.draws[:, 0] for one in chains(40)])
    centred = draws - draws.mean()
    assert (centred[:, 1:] * centred[:, :-1]).mean() / centred.var() < 0.5


def test_where_the_density_is_nil_nothing_goes():
    def half(theta):
        value, gradient = skewed(theta)
        return (value, gradient) if theta[0] < 0.0 else (-np.inf, np.zeros(3))

    found = chains(4, half)
    assert all((one.draws[:, 0] < 0.0).all() for one in found)
    assert np.isfinite([one.draws.sum() for one in found]).all()


def test_the_same_seed_makes_the_same_draws():
    one, other = chains(1)[0], chains(1)[0]
    np.testing.assert_array_equal(one.draws, other.draws)


@pytest.mark.parametrize("draws", [0, 1])
def test_few_draws(draws):
    assert chains(1, draws=draws)[0].draws.shape == (draws, 3)
