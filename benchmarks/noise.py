"""Regression under noise that is not normal: outliers, uneven noise, counts. Error, log density, coverage, seconds.

python -m benchmarks.noise [--seeds 5] [--rows 150]

Targets are drawn from known functions of two inputs. The error is the root mean square distance from the function (of
counts, from the logarithm of the rate); log density and the coverage of 90 % intervals are of new clean observations.
Peers that predict no distribution get a normal one with the root mean square of five-fold residuals (quantiles of
these residuals would do no better under outliers).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import HuberRegressor, PoissonRegressor
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

import bayessel as bs

#: share of the targets that are outliers
SHARES = (0.0, 0.05, 0.1, 0.2)


def function(X: np.ndarray) -> np.ndarray:
    """What is to be found."""
    return np.asarray(np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1])


def _svr() -> Any:
    grid = {"svr__C": [1.0, 10.0, 100.0], "svr__gamma": [0.1, 0.3, 1.0], "svr__epsilon": [0.03, 0.1]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVR()), grid, cv=5)


def _process() -> Any:
    kernel = ConstantKernel(1.0) * RBF(np.ones(2)) + WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)


#: name -> () -> regressor
OF_NUMBERS: dict[str, Callable[[], Any]] = {
    "GPRegressor()": bs.GPRegressor,
    "student": lambda: bs.GPRegressor(likelihood="student"),
    "heteroscedastic": lambda: bs.GPRegressor(likelihood="heteroscedastic"),
    "SVR": _svr,
    "Huber, cubic": lambda: make_pipeline(StandardScaler(), PolynomialFeatures(3), HuberRegressor(max_iter=2000)),
    "boosting": lambda: HistGradientBoostingRegressor(loss="absolute_error", random_state=0),
    "sklearn GP": _process,
}
OF_COUNTS: dict[str, Callable[[], Any]] = {
    "poisson": lambda: bs.GPRegressor(likelihood="poisson"),
    "negative-binomial": lambda: bs.GPRegressor(likelihood="negative-binomial"),
    "Poisson regression": lambda: make_pipeline(StandardScaler(), PolynomialFeatures(3), PoissonRegressor(alpha=0.01)),
    "Poisson boosting": lambda: HistGradientBoostingRegressor(loss="poisson", random_state=0),
}


def drawn(scenario: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets."""
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    f = function(X)
    if scenario.startswith("outliers"):
        y = f + 0.1 * rng.normal(size=n)
        wrong = rng.permutation(n)[: round(float(scenario.split()[1]) * n)]
        y[wrong] += 5.0 * rng.normal(size=len(wrong))
        return X, y
    if scenario == "uneven":
        return X, f + np.exp(0.8 * X[:, 0] - 2.0) * rng.normal(size=n)
    rate = np.exp(1.0 + f)
    return X, rng.poisson(rate if scenario == "counts" else rng.gamma(1.5, rate / 1.5)).astype(float)


def judged(model: Any, X: np.ndarray, y: np.ndarray, new: np.ndarray, seen: np.ndarray, counts: bool) -> dict[str, Any]:
    """Fit, and what it is worth on new observations."""
    begun = process_time()
    model.fit(X, y)
    if hasattr(model, "predictive"):
        there = model.predictive(new)
        mean, density = there.mean, there.log_density(seen)
        low, high = there.quantile([0.05, 0.95])
    elif counts:
        mean = np.maximum(model.predict(new), 1e-9)
        density = stats.poisson(mean).logpmf(seen)
        low, high = (stats.poisson(mean).ppf(q) for q in (0.05, 0.95))
    else:
        spread = np.sqrt(np.mean((y - cross_val_predict(model, X, y, cv=5)) ** 2))
        mean, std = model.predict(new), spread
        if isinstance(model, GaussianProcessRegressor):
            mean, std = model.predict(new, return_std=True)
        there = stats.norm(mean, std)
        density, low, high = there.logpdf(seen), there.ppf(0.05), there.ppf(0.95)
    truth = function(new)
    off = np.log(np.maximum(mean, 1e-9)) - 1.0 - truth if counts else mean - truth
    inside = np.mean((seen >= low) & (seen <= high))
    found = {"error": np.sqrt(np.mean(off**2)), "log density": density.mean(), "cover 90 %": inside}
    return found | {"seconds": process_time() - begun}


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=150)
    asked = parser.parse_args()
    rows = []
    for scenario in (*(f"outliers {share}" for share in SHARES), "uneven", "counts", "overdispersed"):
        counts = scenario in ("counts", "overdispersed")
        for seed in range(asked.seeds):
            rng = np.random.default_rng([seed, len(scenario)])
            X, y = drawn(scenario, asked.rows, rng)
            new, seen = drawn("outliers 0" if scenario.startswith("outliers") else scenario, 500, rng)
            for name, make in (OF_COUNTS if counts else OF_NUMBERS).items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows.append({"scenario": scenario, "entrant": name} | judged(make(), X, y, new, seen, counts))
    table = pd.DataFrame(rows).groupby(["scenario", "entrant"], sort=False).mean()
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
