"""Hyperparameters integrated out: against dense Gaussian processes, quadrature, and fits without a row.

Guards `bayessel.linear.integrated._fit_integrated`, `bayessel.linear.integrated.hyperparameter_grid`,
`bayessel.linear.integrated.mixture`, `bayessel.linear.integrated.plain_models`.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student

from bayessel.fit import Status
from bayessel.linear.integrated import fit_integrated
from bayessel.linear.integrated._fit_integrated import LAM, MOST_CENTRES, _volumes, look
from bayessel.linear.integrated.hyperparameter_grid import SHARES, HyperparameterGrid
from bayessel.linear.integrated.mixture import joined, noise_precisions
from bayessel.linear.integrated.plain_models import fit_constant, fit_trend
from bayessel.linear.weight_posterior import Posterior

SPREAD = np.array([1.0, 2.0])


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(14, 2)) * SPREAD
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=14)


def covariance(A, B, X, width, share):
    """Prior covariance of the function between rows, of variance one in the mean over the rows X, written out."""
    A, B, X = A / SPREAD, B / SPREAD, X / SPREAD

    def gaussian(U, V):
        return np.exp(-((U[:, None] - V[None]) ** 2).sum(axis=2) / width**2)

    radial = gaussian(A, B) / np.diag(gaussian(X, X)).mean()
    return (1.0 - share) * radial + share * (A @ B.T) / (X**2).sum(axis=1).mean()


def grid_of(X, t):
    """A grid without a bias."""
    return HyperparameterGrid(X, t, X, "gaussian", SPREAD, False)


@pytest.mark.parametrize(("width", "share"), [(1.3, 0.0), (1.3, 0.5), (np.inf, 1.0)])
def test_evidence_of_a_place_is_the_integral_over_the_noise(rows, width, share):
    X, t = rows
    found = look(grid_of(X, t), [(width, share)], 2.5)[width, share]
    for k in (20, 40):
        lam = LAM[k]
        C = np.eye(len(t)) + covariance(X, X, X, width, share) / lam

        def density(log_beta, C=C):
            return multivariate_normal(np.zeros(len(t)), C * np.exp(-log_beta)).pdf(t)

        integral = np.log(quad(density, -8.0, 12.0, epsabs=0.0, epsrel=1e-10, limit=400)[0])
        prior = norm(np.log(5.0), 2.5).logpdf(-np.log(lam)) + np.log(0.3) - np.log(5.0)
        if share < 1.0:
            prior += norm(np.log(2.5), 1.0).logpdf(np.log(width))
        np.testing.assert_allclose(found[k], integral + prior, rtol=1e-7)


def test_typical_distances_are_medians_in_units_of_the_spread():
    """Of 0, 1 and 3 the distances are 1, 2 and 3, to the nearest 1, 1 and 2; copies of rows count once."""
    X = np.array([[0.0], [2.0], [6.0], [6.0], [0.0]])
    assert HyperparameterGrid(X, X[:, 0], X, "gaussian", np.array([2.0]), False).typical() == (1.0, 2.0)
    near = np.array([[0.0], [1e-5], [1.0], [1.0 + 1e-5]])  # four of six distances are about 1
    nearest, typical = HyperparameterGrid(near, near[:, 0], near, "gaussian", np.ones(1), False).typical()
    np.testing.assert_allclose((nearest, typical), (0.02, 1.0), rtol=1e-4)


def test_places_stand_for_equal_stretches_of_an_even_grid():
    looked = {(float(r), q): np.zeros(3) for q in (0.0, 0.5) for r in np.exp([0.0, 0.2, 0.4, 0.6])}
    volumes = _volumes({**looked, (np.inf, 1.0): np.zeros(3)})
    assert volumes.pop((np.inf, 1.0)) == 0.0
    np.testing.assert_allclose(list(volumes.values()), np.log(0.2))


def test_weights_of_cells_are_the_posterior_of_their_places(rows):
    """Cells of one design: its posterior over the ridges, which the quantiles of the noise share evenly."""
    X, t = rows
    fit = fit_integrated(X, t, spread=SPREAD, centre=False)
    cells, grid = fit.cells, grid_of(X, t)
    for k in range(len(fit.designs)):
        design, mine = fit.designs[k], cells.design == k
        key = (design.width if design.share < 1.0 else np.inf, design.share)
        expected = dict(zip(LAM, look(grid, [key], 1.0)[key], strict=True))
        each = np.array([cells.log_weights[mine] - [expected[lam] for lam in cells.lam[mine]]])
        np.testing.assert_allclose(each, each[0, 0], rtol=0.0, atol=1e-6)


def test_the_evidence_of_many_rows_is_that_of_an_even_grid(rng):
    """The low targets of a parabola lie together: what a first look at some rows leaves must hold the posterior."""
    X = rng.uniform(-3.0, 3.0, size=(200, 1))
    t = X[:, 0] ** 2 + 0.1 * rng.normal(size=200)
    fit = fit_integrated(X, t, spread=[1.0])
    grid = HyperparameterGrid(X, t, X, "gaussian", np.ones(1), True)
    typical = grid.typical()[1]
    places = [(float(r), q) for r in np.geomspace(0.3, 20.0, 25) * typical for q in SHARES[:-1]]
    weights = [logsumexp(line) for line in look(grid, [*places, (np.inf, 1.0)], typical).values()]
    even = logsumexp(weights) + np.log(np.log(20.0 / 0.3) / 24.0)
    assert abs(fit.evidence.value - even) < 0.2


def test_predictions_are_the_mixture_of_gaussian_processes(rows, rng):
    X, t = rows
    new = rng.normal(size=(5, 2)) * SPREAD * 3.0  # some of them far away
    fit = fit_integrated(X, t, spread=SPREAD, centre=False)
    found, cells = fit.predict(new), fit.cells
    for c in range(0, len(cells.lam), 7):
        design = fit.designs[cells.design[c]]
        width, share = (design.width, design.share) if design.share < 1.0 else (1.0, 1.0)
        among, across, there = (
            covariance(A, B, X, width, share) / cells.lam[c] for A, B in ((X, X), (new, X), (new, new))
        )
        gain = np.linalg.solve(among + np.eye(len(t)), across.T).T
        np.testing.assert_allclose(found.means[c], gain @ t, atol=1e-4)
        expected = np.diag(there - gain @ across.T + np.eye(5)) / cells.beta[c]
        np.testing.assert_allclose(found.variances[c], expected, rtol=1e-4)


@pytest.mark.parametrize("rows_kept", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_predictions_at_a_place_are_those_of_a_gaussian_process(rows, rng, share, rows_kept):
    X, t = rows
    new = rng.normal(size=(5, 2)) * SPREAD * 3.0  # some of them far away
    design = grid_of(X, t).place(1.3, share, 1.0)
    spectrum = design.spectrum(X, t, False, rows=rows_kept)
    lam, beta = float(LAM[30]), 4.0
    posterior = Posterior.of(spectrum, lam, beta)
    columns = design.columns(new)
    there = posterior.coordinates(columns)
    mean = there.means(spectrum, np.array([lam]))[0]
    variance = there.variances(spectrum, np.array([lam]))[0] + design.missing_variance(columns, np.array([lam]))[0]
    K, k = covariance(X, X, X, 1.3, share) / lam, covariance(new, X, X, 1.3, share) / lam
    solved = np.linalg.solve(K + np.eye(len(t)), np.column_stack([t, k.T]))
    np.testing.assert_allclose(mean, k @ solved[:, 0], atol=1e-7)
    dense = np.diag(covariance(new, new, X, 1.3, share)) / lam - (k * solved[:, 1:].T).sum(axis=1)
    np.testing.assert_allclose(variance, dense, rtol=1e-6)
    np.testing.assert_allclose(posterior.predict(columns).mean, mean, atol=1e-9)


def test_weights_of_the_dictionary_give_the_mean_of_the_most_probable_place(rows):
    X, t = rows
    fit = fit_integrated(X, t, spread=SPREAD)
    by_weights = fit.mode.dictionary.columns(X) @ fit.coef + fit.intercept
    np.testing.assert_allclose(by_weights, fit.posterior.predict(fit.mode.columns(X)).mean, atol=1e-6)


def test_a_row_left_out_changes_the_weights_of_the_cells(rows):
    X, t = rows
    fit = fit_integrated(X, t, spread=SPREAD, centre=False)
    found = fit.leave_one_out()
    cells = fit.cells
    for n in (0, 5, 13):
        rest = np.delete(np.arange(len(t)), n)
        means, variances = np.empty(len(cells.lam)), np.empty(len(cells.lam))
        for s, (number, lam, beta) in enumerate(zip(cells.design, cells.lam, cells.beta, strict=True)):
            design = fit.designs[number]
            width = design.width if np.isfinite(design.width) else 1.0
            K = covariance(X, X, X, width, design.share) / lam + np.eye(len(t))
            k = K[n, rest]
            solved = np.linalg.solve(K[np.ix_(rest, rest)], np.column_stack([t[rest], k]))
            means[s], variances[s] = k @ solved[:, 0], (K[n, n] - k @ solved[:, 1]) / beta
        logs = norm.logpdf(t[n], means, np.sqrt(variances))
        weights = np.exp(cells.log_weights - logs - logsumexp(cells.log_weights - logs))
        np.testing.assert_allclose(found.log_densities[n], -logsumexp(cells.log_weights - logs), rtol=1e-5)
        np.testing.assert_allclose(t[n] - found.errors[n], weights @ means, rtol=1e-4, atol=1e-5)


def test_of_many_rows_some_are_centres(rng):
    X = rng.uniform(-3.0, 3.0, size=(1700, 1))
    t = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=1700)
    fit = fit_integrated(X, t, spread=np.ones(1), fine=False)
    assert len(fit.mode.dictionary.centers) == MOST_CENTRES
    new = np.linspace(-2.8, 2.8, 50)[:, None]
    assert np.abs(fit.predict(new).mean - np.sin(2.0 * new[:, 0])).max() < 0.1
    left_out = fit.leave_one_out()  # from the rows of the design: factorisations of so many keep none
    np.testing.assert_allclose(np.sqrt(left_out.mean_square), fit.noise_std, rtol=0.05)


def test_leave_one_out_needs_no_rows_of_the_factorisation(rows):
    X, t = rows
    fit = fit_integrated(X, t, spread=SPREAD)
    spectra = [design.spectrum(X, t, True, rows=False) for design in fit.designs]
    spectra = [replace(new, given=old.spectrum.given) for new, old in zip(spectra, fit.posteriors, strict=True)]
    assert all(spectrum.U is None for spectrum in spectra)
    again = [Posterior.of(spectrum, one.lam, one.beta) for spectrum, one in zip(spectra, fit.posteriors, strict=True)]
    found, known = replace(fit, posteriors=tuple(again)).leave_one_out(), fit.leave_one_out()
    np.testing.assert_allclose(found.errors, known.errors, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.log_densities, known.log_densities, rtol=1e-5, atol=1e-6)


def test_the_trend_alone_is_a_linear_process(rows):
    X, t = rows
    fit = fit_trend(X, t, spread=SPREAD, centre=False)
    assert len(fit.designs) == 1 and fit.mode.share == 1.0
    cells, new = fit.cells, X[:3] + 0.5
    means = []
    for lam in cells.lam:
        K = covariance(X, X, X, 1.0, 1.0) / lam + np.eye(len(t))
        means.append(covariance(new, X, X, 1.0, 1.0) / lam @ np.linalg.solve(K, t))
    np.testing.assert_allclose(fit.predict(new).mean, np.exp(cells.log_weights) @ np.array(means), atol=1e-8)


def test_the_constant_alone_has_student_tails(rows):
    X, t = rows
    there = fit_constant(X, t).predict(X[:1] + 100.0)
    n, s = len(t), t.std(ddof=1)
    values = t.mean() + s * np.linspace(-1.5, 1.5, 7)
    expected = student(n - 1, t.mean(), s * np.sqrt(1.0 + 1.0 / n)).logpdf(values)
    np.testing.assert_allclose([there.log_density(np.array([v]))[0] for v in values], expected, atol=0.1)


def test_quantiles_of_the_noise_stand_for_a_student_distribution():
    n = 12
    betas = noise_precisions(n, np.array([3.0]))[0]
    values = np.linspace(-1.5, 1.5, 7)
    mixture = logsumexp(norm.logpdf(values[:, None], 0.0, betas**-0.5), axis=1) - np.log(len(betas))
    np.testing.assert_allclose(mixture, student(n, scale=np.sqrt(3.0 / n)).logpdf(values), atol=0.1)


def test_units_change_nothing(rows):
    X, t = rows
    fit = fit_integrated(X, t, spread=SPREAD)
    scales = np.array([1e4, 1e-3])
    other = fit_integrated(X * scales + 7.0, 50.0 * t - 3.0, spread=SPREAD * scales)
    np.testing.assert_allclose(other.evidence.value, fit.evidence.value - len(t) * np.log(50.0), atol=1e-5)
    near, far = fit.predict(X + 0.5), other.predict((X + 0.5) * scales + 7.0)
    np.testing.assert_allclose((far.mean + 3.0) / 50.0, near.mean, atol=1e-5)
    np.testing.assert_allclose(far.std / 50.0, near.std, rtol=1e-5)


def test_the_order_of_rows_changes_nothing(rows, rng):
    X, t = rows
    order = rng.permutation(len(t))
    one, other = (fit_integrated(X[i], t[i], spread=SPREAD) for i in (np.arange(len(t)), order))
    np.testing.assert_allclose(other.predict(X).mean, one.predict(X).mean, atol=1e-6)


def test_far_from_the_data_the_prior_returns(rows):
    X, t = rows
    fit = fit_integrated(X, t, spread=SPREAD)
    far = fit.predict(np.array([[1e3, 1e3]]))
    assert far.std[0] > 3.0 * fit.predict(X).std.max()


def test_more_rows_than_the_first_look(rng):
    X = rng.uniform(-3.0, 3.0, size=(500, 1))
    t = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=500)
    fit = fit_integrated(X, t, spread=np.ones(1))
    new = np.linspace(-2.8, 2.8, 50)[:, None]
    found = fit.predict(new)
    assert np.abs(found.mean - np.sin(2.0 * new[:, 0])).max() < 0.15
    assert 0.27 < fit.noise_std < 0.33


@pytest.mark.parametrize(
    ("what", "status", "mean", "std"),
    [
        ("one row", "TOO_FEW_ROWS", 3.0, None),
        ("constant target", "CONSTANT_TARGET", 1.0, 0.0),
        ("constant inputs", "PURE_NOISE", 55.0 / 6.0, np.std([0, 1, 4, 9, 16, 25], ddof=1)),
    ],
)
def test_where_nothing_varies_the_constant_is_left(what, status, mean, std):
    X, t = np.arange(6.0)[:, None], np.arange(6.0) ** 2
    if what == "one row":
        X, t = X[:1], np.array([3.0])
    elif what == "constant target":
        t = np.ones(6)
    else:
        X = np.ones((6, 1))
    fit = fit_integrated(X, t, spread=np.ones(1))
    assert fit.status.name == status
    there = fit.predict(np.array([[2.0]]))
    np.testing.assert_allclose(there.mean, mean)
    if std is not None:
        np.testing.assert_allclose(there.std, std, rtol=0.35, atol=1e-10)


def test_a_noise_free_target_is_interpolated():
    X = np.linspace(0.0, 6.0, 25)[:, None]
    fit = fit_integrated(X, np.sin(X[:, 0]), spread=np.ones(1))
    new = np.linspace(0.5, 5.5, 40)[:, None]
    assert np.abs(fit.predict(new).mean - np.sin(new[:, 0])).max() < 1e-3
    assert fit.status is Status.NOISE_AT_FLOOR


def test_noise_alone_is_not_said_to_be_noise_free(rng):
    fit = fit_integrated(rng.normal(size=(40, 2)), rng.normal(size=40), spread=np.ones(2))
    assert Status.NOISE_AT_FLOOR not in fit.notes


def test_mixtures_are_joined_by_their_weights(rows):
    X, t = rows
    parts = [fit_integrated(X, t, spread=SPREAD * scale) for scale in (np.array([1.0, 1.0]), np.array([0.5, 2.0]))]
    both = joined(parts, np.array([0.3, 0.7]))
    values = [part.predict(X).log_density(t) for part in parts]
    expected = np.logaddexp(values[0] + np.log(0.3), values[1] + np.log(0.7))
    np.testing.assert_allclose(both.predict(X).log_density(t), expected, atol=1e-9)
    assert both.evidence == parts[1].evidence


def test_intervals_cover_what_the_prior_draws(rng):
    """Functions and noise drawn from the model, hyperparameters too: central intervals must hold their share."""
    inside, draws = [], 40
    for _ in range(draws):
        X = rng.normal(size=(45, 2))
        width, share, signal = np.exp(rng.normal(0.5, 0.5)), rng.uniform(), np.exp(rng.normal(np.log(5.0), 1.0))
        K = (1.0 - share) * np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / width**2) + share * (X @ X.T) / 2.0
        f = np.linalg.cholesky(signal * K + 1e-9 * np.eye(45)) @ rng.normal(size=45)
        t = f + rng.normal(size=45)
        there = fit_integrated(X[:30], t[:30], spread=np.ones(2)).predict(X[30:])
        low, high = there.quantile([0.05, 0.95])
        inside.append(np.mean((t[30:] > low) & (t[30:] < high)))
    error = np.std(inside, ddof=1) / np.sqrt(draws)
    assert abs(np.mean(inside) - 0.9) < 4.0 * error, (np.mean(inside), error)


def test_the_noise_level_has_the_variance_that_centres_leave_at_the_rows_inside(rng):
    """Of fewer centres than rows: written out, the part of the prior that is neither held nor in the noise is added."""
    X, new = rng.normal(size=(30, 2)) * SPREAD, rng.normal(size=(6, 2)) * SPREAD * 2.0
    t = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=30)
    centers = X[:7]
    new[0] = centers[0] + 0.01
    design = HyperparameterGrid(X, t, centers, "gaussian", SPREAD, False).place(0.6, 0.0, 1.0)

    def kernel(A, B):
        return np.exp(-(((A[:, None] - B[None]) / SPREAD / 0.6) ** 2).sum(axis=2))

    def held(A):
        return (kernel(A, centers) @ np.linalg.inv(kernel(centers, centers)) * kernel(A, centers)).sum(axis=1)

    variance = 1.0 / held(X).mean()  # the function has variance one in the mean over the rows
    level = variance * (1.0 - held(X)).mean()
    expected = np.maximum(variance * (1.0 - held(new)) - level, 0.0)
    assert expected.min() == 0.0 < expected.max()
    found = design.missing_variance(design.columns(new), np.array([10.0 * level, 0.1 * level]))
    np.testing.assert_allclose(found, [expected / (10.0 * level), expected / level], atol=1e-8)
    whole = grid_of(X, t).place(0.6, 0.0, 1.0)
    assert whole.missing_level < 1e-6  # centres at all rows leave nothing there


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [60, MOST_CENTRES + 50])
def test_some_rows_left_out_are_those_of_all(rng, size, weighted):
    X = rng.normal(size=(size, 2)) * SPREAD
    t = np.sin(X[:, 0]) + 0.2 * rng.normal(size=size)
    weights = rng.integers(1, 4, size) * 1.0 if weighted else None
    fit, some = fit_integrated(X, t, spread=SPREAD, fine=False, sample_weight=weights), np.array([3, 17, 5])
    every, few = fit.leave_one_out(), fit.leave_one_out(some)
    np.testing.assert_allclose(few.log_densities, every.log_densities[some], rtol=1e-9)
    np.testing.assert_allclose(few.errors, every.errors[some], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(few.prediction.mean, every.prediction.mean[some], rtol=1e-9)
