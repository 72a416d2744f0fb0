"""Bridge sampling against integrals that are known.

Guards `bayessel.diagnostics._bridge`.
"""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_normal, norm

from bayessel.covariance import Noise, SquaredExponential
from bayessel.diagnostics import bridge_sampling
from bayessel.gp import Marginal, fit_map
from bayessel.marginal_likelihood.bridge import Bridge, effective_draws

SHAPES = np.array([0.7, 2.0, 5.0])


def log_gammas(x):
    """Logarithms of three Gamma variables: skewed, and their integral is Σ log Γ(a)."""
    return float(SHAPES @ x - np.exp(x).sum())


def autocorrelated(rng, shape, rho, target):
    """Draws whose normal scores are an AR(1) chain, each mapped by `target`: exact marginals, known memory."""
    z = np.empty(shape)
    z[:, 0] = rng.normal(size=z[:, 0].shape)
    for i in range(1, shape[1]):
        z[:, i] = rho * z[:, i - 1] + np.sqrt(1 - rho**2) * rng.normal(size=z[:, 0].shape)
    return target(z)


def test_a_gaussian_is_integrated_almost_exactly(rng):
    A = rng.normal(size=(4, 4))
    S = A @ A.T + np.eye(4)
    density = multivariate_normal(np.arange(4.0), S)
    draws = rng.multivariate_normal(np.arange(4.0), S, size=2000)
    found = bridge_sampling(lambda x: float(density.logpdf(x)) + 3.0, draws)
    assert abs(found.log_evidence - 3.0) < 4 * found.error
    assert found.error < 0.02 and found.reliable


def test_a_skewed_density_is_integrated_within_its_error(rng):
    draws = np.log(rng.standard_gamma(SHAPES, size=(2, 1500, 3)))
    found = bridge_sampling(log_gammas, draws)
    assert abs(found.log_evidence - gammaln(SHAPES).sum()) < 4 * found.error
    assert 0.003 < found.error < 0.05


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_the_error_is_what_repetitions_show(rho):
    """z = (answer − truth)/error over repetitions has standard deviation 1, also where chains have a long memory."""
    from scipy.stats import gamma

    z = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        draws = autocorrelated(rng, (2, 500, 3), rho, lambda u: np.log(gamma.ppf(norm.cdf(u), SHAPES)))
        found = bridge_sampling(log_gammas, draws, random_state=seed)  # the seed of the draws, as people do
        z.append((found.log_evidence - gammaln(SHAPES).sum()) / found.error)
    assert abs(np.mean(z)) < 4 * np.std(z) / np.sqrt(60)
    assert 0.7 < np.std(z) < 1.35  # ± 4 of its standard errors 1/√120


def test_what_halves_of_chains_differ_by_is_error(rng):
    """Chains that find the second mode half way: the halves disagree by more than the error of either."""
    late = np.where(
        rng.uniform(size=(2, 500, 1)) < 0.6, rng.normal(5.0, 1.0, (2, 500, 1)), rng.normal(size=(2, 500, 1))
    )
    draws = np.concatenate([rng.normal(size=(2, 500, 1)), late], axis=1)
    found = bridge_sampling(
        lambda x: float(np.logaddexp(np.log(0.7) + norm.logpdf(x[0]), np.log(0.3) + norm.logpdf(x[0], 5.0))), draws
    )
    assert 2.0 * found.error < abs(found.log_evidence) < 6.0 * found.error  # 17 errors without the difference


def test_draws_of_something_else_are_refused(rng):
    with pytest.raises(ValueError, match="draws of something else"):
        bridge_sampling(lambda x: -np.inf, rng.normal(size=(100, 1)))


def test_a_density_that_the_proposals_hardly_meet_is_told(rng):
    """Two needles far apart: the normal density around both lies between them."""
    draws = np.concatenate([rng.normal(at, 1e-4, size=(200, 2)) for at in (-1.0, 1.0)])[rng.permutation(400)]

    def needles(x):
        return float(logsumexp([-0.5e8 * ((x - at) ** 2).sum() for at in (-1.0, 1.0)]))

    assert not bridge_sampling(needles, draws).reliable


def still(draws):
    """No chain moves, though each stands elsewhere."""
    return np.repeat(draws[:, :1], draws.shape[1], axis=1)


def still_in_one(draws):
    """One parameter stays where each chain began."""
    return np.concatenate([draws[..., :-1], still(draws[..., -1:])], axis=-1)


def hardly_moved(draws):
    """Two places in each half of a run: fewer than are needed to span the parameters."""
    return np.repeat(draws[:1, :4], draws.shape[1] // 4, axis=1)


@pytest.mark.parametrize("stuck", [np.zeros_like, still, still_in_one, hardly_moved])
def test_chains_that_stand_still_know_no_evidence(stuck, rng):
    found = bridge_sampling(lambda x: float(-0.5 * x @ x), stuck(rng.normal(size=(2, 100, 2))))
    assert np.isnan(found.log_evidence) and found.error == np.inf and not found.reliable


def test_a_chain_that_stands_still_counts_as_one_draw(rng):
    moving = rng.normal(size=(1, 100))
    assert effective_draws(np.ones((3, 100))) == 1.0
    assert effective_draws(moving) > 50.0
    assert effective_draws(np.concatenate([moving, np.full((1, 100), moving.mean())])) <= 101.0


def test_the_evidence_of_a_gaussian_process_is_that_of_quadrature_and_near_laplaces(rng):
    X = rng.normal(size=(25, 1))
    t = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=25)
    covariance = SquaredExponential(ard=False) + Noise()
    fit = fit_map(X, t, covariance, fixed={"log w": 0.0})
    free = np.flatnonzero(fit.free)

    def log_joint(part):
        theta = fit.theta.copy()
        theta[free] = part
        return fit.log_joint(theta)

    root = np.linalg.cholesky(np.linalg.inv(fit.hessian[np.ix_(free, free)]))
    z = np.linspace(-7, 7, 41)
    nodes = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2) @ root.T + fit.theta[free]
    logs = np.array([log_joint(node) for node in nodes])
    integral = logsumexp(logs) + 2 * np.log(z[1] - z[0]) + np.linalg.slogdet(root)[1]
    draws, here = [fit.theta[free]], log_joint(fit.theta[free])
    for _ in range(4000):  # a random walk
        there = draws[-1] + 1.7 * root @ rng.normal(size=2)
        value = log_joint(there)
        accept = np.log(rng.uniform()) < value - here
        here = value if accept else here
        draws.append(there if accept else draws[-1])
    found = bridge_sampling(log_joint, np.array(draws[1:]))
    assert abs(found.log_evidence - integral) < 4 * found.error
    assert found.error < 0.03
    assert abs(fit.model_evidence.value - integral) < 0.15


def test_the_log_joint_is_likelihood_times_prior(rng):
    X, t = rng.normal(size=(12, 1)), rng.normal(size=12)
    fit = fit_map(X, t, starts=1)
    theta = fit.theta + 0.3
    expected = Marginal(X, t).value(theta) + fit.covariance.prior(1).log_density(theta)
    np.testing.assert_allclose(fit.log_joint(theta), expected, rtol=1e-12)
    np.testing.assert_allclose(fit.log_joint(fit.theta), fit.log_posterior, rtol=1e-12)


@pytest.mark.parametrize(
    ("draws", "said"),
    [
        (np.zeros(5), "must be"),
        (np.zeros((3, 2)), "needs 24 draws"),
        (np.full((100, 1), np.nan), "finite"),
    ],
)
def test_bad_draws_are_refused(draws, said):
    with pytest.raises(ValueError, match=said):
        bridge_sampling(lambda x: 0.0, draws)


def test_an_error_of_nothing_is_not_believed(rng):
    """Draws of exactly the normal that is fitted to them agree in everything, and still are only so many."""
    draws = np.tile(np.array([[-1.0], [1.0]]), (4, 50, 1))
    found = bridge_sampling(lambda x: float(-0.5 * (x @ x) / draws.var(ddof=1)), draws)
    assert found.error >= 0.5 / draws.size
    assert not Bridge(0.0, 0.0, 10, 10).reliable and Bridge(0.0, 1e-3, 10, 10).reliable
