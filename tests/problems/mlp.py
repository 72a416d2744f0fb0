"""Data, short runs and predictions term by term for the tests of MLPRegressor and MLPClassifier."""

import functools

import numpy as np

import bayessel as bs

M, C = bs.MLPRegressor, bs.MLPClassifier
SHORT = {
    "inference": "mc",
    "draws": 6,
    "tune": 3,
    "updates_per_draw": 1,
    "cores": 1,
    "n_states": 8,
    "random_state": 0,
    "hidden": 3,
}
NEW = np.array([[-2.0, 0.5], [0.0, 0.0], [0.31, 0.9], [0.9, 0.2], [8.0, 0.5]])


def wave(rng, n=30, noise=0.2, outputs=1):
    X = rng.uniform(0, 1, (n, 2))
    f = np.sin(6 * X[:, :1] + np.arange(outputs))
    y = 30.0 + 5.0 * (f + noise * rng.normal(size=f.shape)) * np.arange(1, outputs + 1)
    return X, y if outputs > 1 else y[:, 0]


def rings(rng, n=40, classes=2):
    X = rng.normal(size=(n, 2))
    edges = np.quantile((X**2).sum(axis=1), np.arange(1, classes) / classes)
    return X, np.array(["inner", "middle", "outer"])[np.searchsorted(edges, (X**2).sum(axis=1))]


@functools.cache
def short_run(outputs=1):
    """One short run with data, for whatever needs draws and not how many; not to be changed."""
    X, y = wave(np.random.default_rng(5), 24, outputs=outputs)
    options = SHORT | {"draws": 40, "tune": 14, "n_states": 26, "random_state": 3}
    return M(**options).fit(X, y), X, y


@functools.cache
def short_classes(classes):
    """The same of classes."""
    X, y = rings(np.random.default_rng(7), 30, classes)
    return C(**SHORT | {"draws": 24, "tune": 6, "n_states": 20}).fit(X, y), X, y


def outputs_written_out(trace, chain, draw, Z):
    """Outputs (n, K) of one draw of a trace at standardised inputs, from the named variables."""
    at = {name: trace.posterior[name].values[chain, draw] for name in trace.posterior}
    n, (H, K) = len(Z), at["hidden_output"].shape
    f = np.zeros((n, K))
    for row, x in enumerate(Z):
        for k in range(K):
            f[row, k] = at["bias"][k] + sum(x[i] * at["input_output"][i, k] for i in range(len(x)))
            for h in range(H):
                inside = at["hidden_bias"][h] + sum(x[i] * at["input_hidden"][i, h] for i in range(len(x)))
                f[row, k] += at["hidden_output"][h, k] * np.tanh(inside)
    return f
