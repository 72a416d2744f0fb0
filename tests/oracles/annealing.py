"""Evidences of small networks that know nothing of annealing: closed forms, grids, averages over draws of the prior."""

import numpy as np
from scipy.special import gammaln, log_softmax, logsumexp


def log_normal(t, covariance):
    """log N(t | 0, covariance)."""
    return -0.5 * (t @ np.linalg.solve(covariance, t) + np.linalg.slogdet(2.0 * np.pi * covariance)[1])


def linear_log_evidence(X, T, noise, direct, bias_sd):
    """Of direct connections and biases alone: T (n, K) with noise precisions (K,), direct precisions (D,)."""
    shared = bias_sd**2 + (X / direct) @ X.T
    return sum(log_normal(t, shared + np.eye(len(X)) / beta) for t, beta in zip(T.T, noise, strict=True))


def integrated_line_log_evidence(x, t, prior, points=140):
    """The same of one input with the precisions of noise and slope, and the mean of the latter, integrated on grids."""
    beta, tau, mu = (np.linspace(low, high, points) for low, high in ((-9.0, 5.0), (-14.0, 9.0), (-9.0, 5.0)))
    shape = 0.5 * prior.input_output_shape
    of_tau = logsumexp(
        log_gamma(tau[:, None], shape, shape * np.exp(-mu)) + log_gamma(mu, *usual(prior.input_output)), axis=1
    ) + np.log(mu[1] - mu[0])
    n, ones = len(t), np.ones(len(t))
    logs = np.empty((points, points))
    for j in range(points):
        signal = prior.bias_sd**2 * np.outer(ones, ones) + np.outer(x, x) * np.exp(-tau[j])
        values, vectors = np.linalg.eigh(signal)
        spread = np.maximum(values, 0.0) + np.exp(-beta)[:, None]
        logs[:, j] = -0.5 * ((vectors.T @ t) ** 2 / spread + np.log(2.0 * np.pi * spread)).sum(axis=1)
    assert logs.shape == (points, points) and n > 1
    logs += log_gamma(beta, *usual(prior.noise))[:, None] + of_tau
    return float(logsumexp(logs) + np.log((beta[1] - beta[0]) * (tau[1] - tau[0])))


def log_gamma(logs, shape, rate):
    """Log density of the logarithm of a Gamma variable."""
    return shape * (np.log(rate) + logs) - rate * np.exp(logs) - gammaln(shape)


def usual(gamma):
    """(shape, rate) of Gamma(mean, α): α/2 and α/(2 mean)."""
    return 0.5 * gamma.shape, 0.5 * gamma.shape / gamma.mean


def prior_average(rng, X, T, kind, prior, draws=400_000):
    """Log of the mean likelihood over draws of the prior, and its standard error; every layer written out."""

    def drawn(gamma, *size):
        shape, rate = usual(gamma)
        return rng.gamma(shape, 1.0 / rate, size)

    def normal(precision, *size):
        return rng.standard_normal((draws, *size)) / np.sqrt(precision.reshape(draws, *[1] * len(size)))

    D, H, K = prior.architecture.inputs, prior.architecture.hidden, prior.architecture.outputs
    layers = []
    for top, alpha, m in (
        (prior.input_hidden, prior.input_hidden_shape, H),
        (prior.input_output, prior.input_output_shape, K),
    ):
        mean = drawn(top, draws)
        tau = rng.gamma(0.5 * alpha, 1.0, (draws, D)) / (0.5 * alpha / mean[:, None])
        layers.append(rng.standard_normal((draws, D, m)) / np.sqrt(tau)[:, :, None])
    a, v = normal(drawn(prior.hidden_bias, draws), H), normal(drawn(prior.hidden_output, draws), H, K)
    b = prior.bias_sd * rng.standard_normal((draws, K))
    beta = drawn(prior.noise, draws, K)
    logs = np.zeros(draws)
    for x, target in zip(X, T, strict=True):
        z = np.tanh(np.einsum("i,sih->sh", x, layers[0]) + a)
        f = b + np.einsum("sh,shk->sk", z, v) + np.einsum("i,sik->sk", x, layers[1])
        if kind == "gaussian":
            logs += 0.5 * (np.log(beta / (2.0 * np.pi)) - beta * (target - f) ** 2).sum(axis=1)
        elif kind == "logistic":
            logs -= np.logaddexp(0.0, np.where(target > 0.5, -f, f)).sum(axis=1)
        else:
            logs += log_softmax(f, axis=1) @ target
    w = np.exp(logs - logs.max())
    return float(np.log(w.mean()) + logs.max()), float(w.std() / (w.mean() * np.sqrt(draws)))
