"""One precision for all functions: the sum over it, predictions, rows left out, weights, odd data.

Guards `bayessel.linear.latent._fit_latent`, `bayessel.linear.latent.shared_precision`,
`bayessel.linear.latent.settings`, `bayessel.linear.latent.result`.
"""

import numpy as np
import pytest
from scipy.special import logsumexp

import bayessel as bs
from bayessel.count_prediction import CountPrediction
from bayessel.fit import Status
from bayessel.likelihoods import LIKELIHOODS
from bayessel.likelihoods.bernoulli import LogitLabels
from bayessel.likelihoods.normal_noise import NormalNoise
from bayessel.linear.latent import fit_latent
from bayessel.linear.latent.laplace import LatentTargets, find_mode
from bayessel.linear.latent.shared_precision import PRIOR_SD, SharedDesign, SharedModel
from bayessel.prediction import Prediction


def labels(rng, n=80, k=6):
    A = rng.normal(size=(n, k))
    return A, (A[:, 0] - 0.5 * A[:, 1] + 0.7 * rng.logistic(size=n) > 0.0).astype(float)


def dense_log_evidence(A, t, alpha, bias_scale=5.0):
    """Laplace's in function space: f from the dual, the determinant of I + W^½ K W^½."""
    K = A @ A.T / alpha + bias_scale**2
    a, model = np.zeros(len(t)), LogitLabels()
    for _ in range(200):
        f = K @ a
        at = model.derivatives(t, f, np.zeros(0))
        a = a + 0.5 * (np.linalg.solve(np.eye(len(t)) + at.curvature[:, None] * K, at.curvature * f + at.slope) - a)
    f = K @ a
    at = model.derivatives(t, f, np.zeros(0))
    root = np.sqrt(at.curvature)
    B = np.eye(len(t)) + root[:, None] * K * root
    return at.value.sum() - 0.5 * a @ f - 0.5 * np.linalg.slogdet(B)[1]


@pytest.mark.parametrize("shape", [(30, 6), (12, 40)], ids=str)
def test_both_shapes_give_the_dense_evidence(rng, shape):
    A, t = labels(rng, *shape)
    fit = fit_latent(A, t, inference="type2")
    np.testing.assert_allclose(fit.log_evidence, dense_log_evidence(A, t, fit.alpha[0]), rtol=1e-8)


def test_with_normal_noise_it_is_the_evidence_of_linear_models(rng):
    A = rng.normal(size=(30, 5))
    t = A[:, 0] + 0.3 * rng.normal(size=30)
    fit = fit_latent(A, t, "gaussian", inference="type2", bias=False)
    alpha, beta = fit.alpha[0], float(np.exp(-fit.phi[0]))
    np.testing.assert_allclose(fit.log_evidence, bs.linear.log_evidence(A, t, alpha, beta), rtol=1e-8)
    exact, there = bs.linear.posterior(A, t, alpha, beta), fit.predict(A)
    np.testing.assert_allclose(there.mean, exact.predict(A).mean, rtol=1e-7)
    np.testing.assert_allclose(there.variance, exact.predict(A).variance, rtol=1e-7)
    out = fit.leave_one_out()
    for i in (0, 7, 29):
        keep = np.arange(30) != i
        other = bs.linear.posterior(A[keep], t[keep], alpha, beta).predict(A[i : i + 1])
        np.testing.assert_allclose(out.errors[i], t[i] - other.mean[0], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(out.variances[i], other.variance[0], rtol=1e-7)
    # the maximum is near that without a prior
    free = bs.linear.fit_evidence(A, t)
    assert fit.log_evidence <= free.log_evidence + 1e-6
    assert fit.log_evidence > free.log_evidence - 1.0


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_maximum_is_one(rng, name):
    likelihood = LIKELIHOODS[name]()
    A = rng.normal(size=(50, 4))
    t = likelihood.draw(A[:, 0], likelihood.start(A[:, 0]), rng)
    model = SharedModel.of(LatentTargets(likelihood, t), SharedDesign.of(A, 5.0))
    log_s, mode, count = model.maximised()
    slopes = model.gradient(mode, log_s)
    assert np.abs(slopes).max() < 1e-3
    assert count < 60
    best = model.objective(mode, log_s)
    for theta in np.eye(1 + len(mode.phi)):
        for step in (-0.2, 0.2):
            assert (
                model.objective(
                    model.mode(log_s + step * theta[0], mode.phi + step * theta[1:]), log_s + step * theta[0]
                )
                < best
            )


def test_the_sum_over_the_precision_is_the_integral(rng):
    A, t = labels(rng)
    model = SharedModel.of(LatentTargets(LogitLabels(), t), SharedDesign.of(A, 5.0))
    fit = fit_latent(A, t)
    assert fit.evidence.integrated == ("w", "alpha")
    grid = model.middle + PRIOR_SD * np.linspace(-4.0, 4.0, 801)
    values = [model.mode(s, np.zeros(0)).log_evidence + model.log_prior(s) for s in grid]
    exact = logsumexp(values) + np.log(grid[1] - grid[0])
    assert abs(fit.log_evidence - exact) < 0.02
    assert abs(sum(np.exp(part.log_weight) for part in fit.parts) - 1.0) < 1e-12
    # probabilities are averages over the same grid
    row = rng.normal(size=(3, 6))
    shares = np.exp(np.array(values) - logsumexp(values))
    expected = np.zeros(3)
    for s, share in zip(grid[::8], shares.reshape(-1)[::8] * 8, strict=True):
        mode = model.mode(s, np.zeros(0))
        G = np.hstack([np.exp(s) * row @ model.design.base, np.full((3, 1), 5.0)])
        expected += share * np.exp(LogitLabels().tilted(np.ones(3), *mode.latent(G), np.zeros(0)).log_z)
    np.testing.assert_allclose(fit.predict(row).probabilities[:, 1], expected, atol=0.003)


def test_rows_left_out_are_predicted_as_by_refits(rng):
    A, t = labels(rng, 60, 4)
    fit, refits = fit_latent(A, t), []
    out = fit.leave_one_out()
    for i in range(0, 60, 4):
        keep = np.arange(60) != i
        refits.append(fit_latent(A[keep], t[keep]).predict(A[i : i + 1]).log_density(t[i : i + 1])[0])
    assert np.abs(out.log_densities[::4] - refits).max() < 0.05
    assert abs(out.log_densities[::4].mean() - np.mean(refits)) < 0.01
    p = t - out.errors
    np.testing.assert_allclose(np.log(np.where(t > 0, p, 1 - p)), out.log_densities)
    np.testing.assert_allclose(out.variances, p * (1 - p))


def test_weights_are_repetitions(rng):
    A, t = labels(rng, 40, 3)
    count = rng.integers(0, 3, 40)
    weighed = fit_latent(A, t, sample_weight=count)
    copied = fit_latent(np.repeat(A, count, axis=0), np.repeat(t, count))
    np.testing.assert_allclose(weighed.log_evidence, copied.log_evidence, rtol=1e-6)
    np.testing.assert_allclose(weighed.predict(A).probabilities, copied.predict(A).probabilities, rtol=1e-5)
    with pytest.raises(ValueError, match="positive for at least one row"):
        fit_latent(A, t, sample_weight=np.zeros(40))


def test_units_and_order_of_columns_and_rows_change_nothing(rng):
    A, t = labels(rng, 50, 5)
    fit, row = fit_latent(A, t), rng.normal(size=(4, 5))
    rows, columns = rng.permutation(50), rng.permutation(5)
    other = fit_latent(1e6 * A[rows][:, columns], t[rows])
    np.testing.assert_allclose(other.log_evidence, fit.log_evidence, rtol=1e-6)
    np.testing.assert_allclose(
        other.predict(1e6 * row[:, columns]).probabilities, fit.predict(row).probabilities, rtol=1e-5
    )
    np.testing.assert_allclose(other.coef * 1e6, fit.coef[columns], rtol=1e-3)


def test_counts_and_heavy_tails(rng):
    A = rng.normal(size=(80, 3))
    t = rng.poisson(np.exp(1.0 + A[:, 0])).astype(float)
    fit = fit_latent(A, t, "poisson")
    there = fit.predict(A)
    assert isinstance(there, CountPrediction)
    assert np.corrcoef(np.log(there.mean), 1.0 + A[:, 0])[0, 1] > 0.95
    assert abs(fit.coef[0] - 1.0) < 0.2
    assert (
        fit.leave_one_out().log_densities.mean()
        > fit_latent(A[:, 1:], t, "poisson").leave_one_out().log_densities.mean()
    )
    y = A[:, 0] + 0.1 * rng.normal(size=80)
    y[::10] += 8.0
    robust, plain = (fit_latent(A, y, name) for name in ("student", "gaussian"))
    assert isinstance(robust.predict(A), Prediction)
    assert (
        np.abs(robust.predict(A[:9]).mean - A[:9, 0]).mean() < 0.3 * np.abs(plain.predict(A[:9]).mean - A[:9, 0]).mean()
    )
    assert robust.log_evidence > plain.log_evidence
    out = robust.leave_one_out()
    np.testing.assert_allclose(out.prediction.log_density(y), out.log_densities, atol=1e-4)


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ("separable", Status.CONVERGED),
        ("noise", Status.DOUBTFUL_SIGNAL),
        ("constant columns", Status.PURE_NOISE),
        ("one class", Status.CONSTANT_TARGET),
        ("three rows", Status.TOO_FEW_ROWS),
        ("one row", Status.CONSTANT_TARGET),
        ("copies of a column", Status.CONVERGED),
    ],
)
def test_odd_data(rng, case, status):
    A, t = labels(rng, 60, 4)
    if case == "separable":
        t = (A[:, 0] > 0.0).astype(float)
    elif case == "noise":
        A, t = rng.normal(size=(60, 30)), np.arange(60) % 2.0
    elif case == "constant columns":
        A = np.full((60, 2), 3.0)
    elif case == "one class":
        t = np.ones(60)
    elif case == "three rows":
        A, t = A[:3], np.array([0.0, 1.0, 1.0])
    elif case == "one row":
        A, t = A[:1], t[:1]
    else:
        A = np.hstack([A, A, np.zeros((60, 1))])
    fit = fit_latent(A, t)
    assert status in fit.notes or fit.status is status
    p = fit.predict(A).probabilities
    assert (
        np.isfinite(p).all() and np.isfinite(fit.log_evidence) and np.isfinite(fit.leave_one_out().log_densities).all()
    )
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    if case == "separable":
        assert (fit.predict(A).mode == t).mean() > 0.95 and np.isfinite(fit.coef).all()
        assert p.min() > 1e-12  # not certain beyond reason
    if case == "one class":
        assert (p[:, 1] > 0.9).all() and p.max() < 1.0
    if case == "noise":
        assert np.abs(p[:, 1] - 0.5).mean() < 0.25


def test_copies_of_columns_share_their_weight(rng):
    A, t = labels(rng, 60, 3)
    one, two = fit_latent(A, t), fit_latent(np.hstack([A, A]), t)
    np.testing.assert_allclose(one.log_evidence, two.log_evidence, rtol=1e-6)
    np.testing.assert_allclose(two.coef[:3], two.coef[3:], rtol=1e-6)
    np.testing.assert_allclose(2.0 * two.coef[:3], one.coef, rtol=1e-3)


def test_arguments_are_checked(rng):
    A, t = labels(rng, 20, 2)
    with pytest.raises(ValueError, match="labels 0 and 1"):
        fit_latent(A, 2.0 * t - 1.0)
    with pytest.raises(ValueError, match="'auto', 'type2'"):
        fit_latent(A, t, inference="mc")
    with pytest.raises(ValueError, match="counts"):
        fit_latent(A, t + 0.5, "poisson")
    with pytest.raises(ValueError, match="one value per row"):
        fit_latent(A, t[:-1])
    with pytest.raises(ValueError, match="bias_scale must be positive"):
        fit_latent(A, t, bias_scale=0.0)
    with pytest.raises(ValueError, match="must have the 2 columns"):
        fit_latent(A, t).predict(A[:, :1])


def test_the_bias_has_its_prior(rng):
    t = np.r_[np.ones(30), np.zeros(10)]
    fit = fit_latent(np.zeros((40, 1)), t, bias_scale=2.0)
    mode = find_mode(LatentTargets(LogitLabels(), t), np.full((40, 1), 2.0), np.zeros(0))
    np.testing.assert_allclose(fit.log_evidence, mode.log_evidence, rtol=1e-12)
    np.testing.assert_allclose(fit.null_log_evidence, mode.log_evidence, rtol=1e-12)
    np.testing.assert_allclose(fit.intercept, 2.0 * mode.z[0], rtol=1e-12)
    without = fit_latent(np.zeros((40, 1)), t, bias=False)
    assert without.intercept == 0.0 and not without.bias
    np.testing.assert_allclose(without.log_evidence, -40 * np.log(2.0))
    assert NormalNoise().name in fit_latent(np.eye(6), np.arange(6.0), "gaussian").describe()
