"""Defaults of the regressors on tables that maximised evidences collapse on, beside ridge regression and a constant.

    python -m benchmarks.defaults [--seeds N] [--only NAME ...]

Prints for every estimator, as it is by default and with the hyperparameters maximised (``inference="type2"`` or
"map"): in how many fits it is worse than a constant normal distribution by more than 0.05 nats a row, and how many of
these said nothing; the mean gain over the constant; how often its squared error is more than a quarter above
BayesianRidge's; the coverage of nominal 90 % intervals; the same outside the range of the rows, up to 2.5 times as far
away, on functions that do not grow faster than a line; seconds of processor. Then the fits that are worse than the
constant.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge

import bayessel as bs

Table = tuple[str, np.ndarray, np.ndarray, int]
#: rows of a table that are held out
HELD_OUT = 300

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "EvidenceRegressor": bs.EvidenceRegressor,
    "EvidenceRegressor, type2": partial(bs.EvidenceRegressor, inference="type2"),
    "RVMRegressor": bs.RVMRegressor,
    "RVMRegressor, type2": partial(bs.RVMRegressor, inference="type2"),
    "BasisSearchRegressor": bs.BasisSearchRegressor,
    "BasisSearchRegressor, type2": partial(bs.BasisSearchRegressor, inference="type2"),
    "ForwardSelectionRegressor": bs.ForwardSelectionRegressor,
    "ForwardSelectionRegressor, type2": partial(bs.ForwardSelectionRegressor, inference="type2"),
    "GPRegressor": bs.GPRegressor,
    "GPRegressor, map": partial(bs.GPRegressor, inference="map"),
    "MLPRegressor": partial(bs.MLPRegressor, time_budget=3.0, cores=1),
    "MLPRegressor, mc": partial(bs.MLPRegressor, inference="mc", time_budget=3.0, cores=1),
    "RidgeRBFRegressor": bs.RidgeRBFRegressor,
    "RidgeRBFRegressor, plug-in": partial(bs.RidgeRBFRegressor, inference="plug-in"),
}


def smooth(X: np.ndarray) -> np.ndarray:
    """A wave in the first input, a product of two others, a slope."""
    D = X.shape[1]
    return np.asarray(np.sin(2.0 * X[:, 0]) + 0.7 * X[:, 1 % D] * X[:, 2 % D] + 0.5 * X[:, 3 % D])


def tables(rng: np.random.Generator) -> Iterator[Table]:
    """(name, inputs, target, rows to fit); the rows after these are held out."""
    more = HELD_OUT
    X = rng.normal(size=(64 + more, 8))
    yield "eight inputs", X, smooth(X) + 0.3 * rng.normal(size=len(X)), 64
    X = rng.normal(size=(64 + more, 32))
    yield "inputs without effect", X, smooth(X) + 0.3 * rng.normal(size=len(X)), 64
    X = rng.normal(size=(30 + more, 60))
    yield "fewer rows than inputs", X, 2.0 * X[:, :4].sum(axis=1) + rng.normal(size=len(X)), 30
    X = np.vstack([np.repeat(rng.normal(size=(30, 4)), 3, axis=0), rng.normal(size=(more, 4))])
    yield "copies of rows", X, smooth(X) + 0.5 * rng.normal(size=len(X)), 90
    X = rng.integers(0, 4, size=(100 + more, 4)).astype(float)
    yield "integer targets", X, np.round(X[:, 0] + (X[:, 1] > 1) + 0.8 * rng.normal(size=len(X))), 100
    X = rng.normal(size=(100 + more, 5))
    yield "a skewed target", X, np.exp(0.7 * smooth(X) + 0.5 * rng.normal(size=len(X))), 100
    X = rng.normal(size=(100 + more, 5))
    yield "many zeros", X, np.where(rng.random(len(X)) < 0.5, 0.0, np.exp(0.5 * smooth(X))), 100
    X = rng.normal(size=(120 + more, 102))
    yield "a hundred noise inputs", X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=len(X)), 120
    X = rng.normal(size=(100 + more, 4))
    yield "heavy tails", X, smooth(X) + 0.3 * rng.standard_t(1.5, size=len(X)), 100
    X = rng.normal(size=(100 + more, 4)) * np.array([1e4, 1.0, 1e-3, 1.0])
    yield "units", X, np.sin(2e-4 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=len(X)), 100
    X = rng.normal(size=(60 + more, 3))
    yield "noise alone", X, rng.normal(size=len(X)), 60


def judged(make: Callable[[], Any], X: np.ndarray, y: np.ndarray, n: int) -> dict[str, Any]:
    """What a fit to the first n rows says of the others."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = make().fit(X[:n], y[:n])
        mean, std = model.predict(X[n:], return_std=True)
        worth = float(np.mean(model.log_predictive_density(X[n:], y[n:])))
    seconds, t = time.process_time() - began, y[n:]
    ridge = BayesianRidge().fit(X[:n], y[:n]).predict(X[n:])
    return {
        "gain": worth - float(norm.logpdf(t, y[:n].mean(), y[:n].std()).mean()),
        "error": float(np.mean((mean - t) ** 2) / np.mean((ridge - t) ** 2)),
        "coverage": float(np.mean(np.abs(t - mean) < norm.ppf(0.95) * std)),
        "silent": not said,
        "seconds": seconds,
    }


def bounded(X: np.ndarray) -> np.ndarray:
    """A wave in every second input and a slope in the others: nothing that grows faster than a line."""
    return np.asarray(np.sin(2.0 * X[:, 0::2]).sum(axis=1) + 0.5 * X[:, 1::2].sum(axis=1))


def coverage_outside(make: Callable[[], Any], rng: np.random.Generator) -> list[float]:
    """Coverage of nominal 90 % intervals 1.2 to 2.5 times as far from the middle as the rows, of four functions."""
    found = []
    for D, n in ((1, 60), (2, 80), (4, 120), (8, 160)):
        X = rng.normal(size=(n, D)) if D > 1 else rng.uniform(-3.0, 3.0, (n, 1))
        far = rng.normal(size=(200, D))
        far *= np.linalg.norm(X, axis=1).max() * rng.uniform(1.2, 2.5, (200, 1)) / np.linalg.norm(far, axis=1)[:, None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(X, bounded(X) + 0.3 * rng.normal(size=n))
            mean, std = model.predict(far, return_std=True)
        seen = bounded(far) + 0.3 * rng.normal(size=200)
        found.append(float(np.mean(np.abs(seen - mean) < norm.ppf(0.95) * std)))
    return found


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=19)
    parser.add_argument("--only", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS))
    args = parser.parse_args(argv)
    rows = [table for seed in range(args.seeds) for table in tables(np.random.default_rng(seed))]
    print(
        f"{len(rows)} tables; worse than the constant (silent), mean gain, error > 1.25 ridge, coverage, the same "
        "outside the range (least of D = 1, 2, 4, 8), seconds"
    )
    worst = []
    for name in args.only:
        make = ESTIMATORS[name]
        found = [judged(make, X, y, n) for _, X, y, n in rows]
        outside = [coverage_outside(make, np.random.default_rng(seed)) for seed in range(args.seeds)]
        bad = [one for one in found if not one["gain"] > -0.05]
        mean = float(np.mean([max(one["gain"], -100.0) for one in found]))
        print(
            f"{name:34}{len(bad):4} ({sum(one['silent'] for one in bad)}){mean:9.2f}"
            f"{sum(one['error'] > 1.25 for one in found):5}{np.mean([one['coverage'] for one in found]):7.2f}"
            f"{np.mean(outside):7.2f} ({np.mean(outside, axis=0).min():.2f})"
            f"{np.mean([one['seconds'] for one in found]):7.2f}",
            flush=True,
        )
        worst += [
            (one["gain"], name, row[0], one["silent"]) for one, row in zip(found, rows, strict=True) if one in bad
        ]
    for gain, name, table, silent in sorted(worst):
        print(f"  {name} on {table}: {gain:+.2f} nats{', nothing said' if silent else ''}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
