"""Weighted rows where hyperparameters are integrated on a grid: refits, and the grid beside factorisations.

Guards `bayessel.linear.integrated._fit_integrated`, `bayessel.linear.integrated.mixture`.
"""

import numpy as np
import pytest
from scipy.stats import norm

from bayessel._row_weights import RowWeights
from bayessel.linear.integrated import fit_integrated


def two_instruments(rng, n=60):
    """Inputs, targets and noise levels: of the rows half are read from a much worse instrument."""
    X = rng.uniform(-2, 2, size=(n, 1))
    s = np.where(rng.uniform(size=n) < 0.5, 0.05, 0.8)
    return X, np.sin(2 * X[:, 0]) + s * rng.normal(size=n), s


@pytest.mark.parametrize("n", [12, 450])
def test_rows_left_out_of_the_integrated_model_are_refits(rng, n):
    X, y, s = two_instruments(rng, n)
    w = rng.integers(1, 4, size=n).astype(float)
    fit = fit_integrated(X, y, spread=[1.0], centers=[[-1.0], [0.0], [1.0]], noise_std=s, sample_weight=w)
    found, weights = fit.leave_one_out(), RowWeights.of(n, s, w)
    assert weights is not None
    for i in (0, n // 2):
        others = np.delete(np.arange(n), i)
        rest = weights.part(others)
        cells, parts = fit.cells, []
        for k, (design, posterior) in enumerate(zip(fit.designs, fit.posteriors, strict=True)):
            spectrum = design.spectrum(X[others], y[others], True, True, rest)
            for c in np.flatnonzero(cells.design == k):
                there = type(posterior).of(spectrum, cells.lam[c], cells.beta[c]).predict(design.columns(X[[i]]))
                variance = there.function.variance + weights.std[i] ** 2 / cells.beta[c]
                parts.append((c, norm(there.mean[0], np.sqrt(variance[0])).logpdf(y[i])))
        order = np.array([density for _, density in sorted(parts)])
        expected = -np.log(np.sum(np.exp(cells.log_weights - order)))
        np.testing.assert_allclose(found.log_densities[i], expected, rtol=1e-6)


def test_evidence_grid_of_weighted_rows_is_that_of_factorisations(rng):
    X, y, s = two_instruments(rng, 20)
    for centers in (None, [[-1.0], [0.0], [1.0]]):
        fit = fit_integrated(X, y, spread=[1.0], centers=centers, noise_std=s, sample_weight=rng.uniform(1, 3, size=20))
        weight = {step["width"]: [] for step in fit.history}
        for k, design in enumerate(fit.designs):
            spectrum = fit.posteriors[k].spectrum
            mine = fit.cells.design == k
            lam = np.unique(fit.cells.lam[mine])
            logs = -0.5 * spectrum.log_det(lam) - 0.5 * spectrum.n_free * np.log(spectrum.quad(lam))
            prior = -0.5 * ((-np.log(lam) - np.log(5.0)) / 2.5) ** 2
            share = [np.exp(fit.cells.log_weights[mine & (fit.cells.lam == one)]).sum() for one in lam]
            difference = np.log(share) - logs - prior
            np.testing.assert_allclose(difference, difference[0], atol=1e-6)
            weight[design.width if np.isfinite(design.width) else np.inf].append(k)


def test_a_weight_is_a_repeated_row(rng):
    X, y, s = two_instruments(rng, 20)
    w = rng.integers(1, 4, size=20)
    one = fit_integrated(X, y, spread=[1.0], noise_std=s, sample_weight=w)
    other = fit_integrated(np.repeat(X, w, axis=0), np.repeat(y, w), spread=[1.0], noise_std=np.repeat(s, w))
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, atol=1e-4)
    np.testing.assert_allclose(one.predict(X).std, other.predict(X).std, rtol=1e-5)
