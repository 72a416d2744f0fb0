"""Data and fits for the tests of GPRegressor, and its predictions from matrices written out."""

import functools

import numpy as np
import scipy.stats

import bayessel as bs

G = bs.GPRegressor
SHORT = {"inference": "mc", "draws": 12, "tune": 12, "cores": 1, "n_states": 10, "random_state": 0}
NEW = np.array([[-2.0, 0.5], [0.0, 0.0], [0.31, 0.9], [0.9, 0.2], [8.0, 0.5]])


def wave(rng, n=30, noise=0.2, d=2):
    X = rng.uniform(0, 1, (n, d))
    return X, 30.0 + 5.0 * (np.sin(6 * X[:, 0]) + noise * rng.normal(size=n))


@functools.cache
def short_run():
    """One short run with data, for whatever needs draws and not how many."""
    X, y = wave(np.random.default_rng(5), 24)
    model = G(inference="mc", draws=60, tune=60, cores=1, n_states=26, random_state=3)
    return model.fit(X, y), X, y


def robust(column):
    """Median 0 and mean absolute deviation 1, by hand."""
    centre = (
        np.sort(column)[len(column) // 2] if len(column) % 2 else np.sort(column)[len(column) // 2 - 1 :][:2].mean()
    )
    return centre, np.abs(column - centre).mean()


def dense(model, X, y, theta):
    """Log evidence in the user's units, and a function for predictions, from matrices written out."""
    shift, scale = np.array([robust(column) for column in X.T]).T
    centre, spread = robust(y)
    Z, t, m = (X - shift) / scale, (y - centre) / spread, X.shape[1]
    v0, r2, w, a0, a1 = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2 : 2 + m]), *np.exp(theta[-2:])

    def kernel(A, B):
        return a0 + a1 * A @ B.T + v0 * np.exp(-0.5 * (((A[:, None] - B) ** 2) * w).sum(axis=2))

    Q = kernel(Z, Z) + r2 * np.eye(len(Z))
    evidence = scipy.stats.multivariate_normal(np.full(len(y), centre), spread**2 * Q).logpdf(y)

    def predict(new):
        k = kernel(Z, (new - shift) / scale)
        prior = np.diag(kernel((new - shift) / scale, (new - shift) / scale))
        mean = centre + spread * (k.T @ np.linalg.solve(Q, t))
        return mean, spread * np.sqrt(prior + r2 - (k * np.linalg.solve(Q, k)).sum(axis=0))

    return evidence, predict
