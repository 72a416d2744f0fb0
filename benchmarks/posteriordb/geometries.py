# pyright: reportMissingImports=false
"""Posteriors of known shape that are hard for samplers: scales apart, rotations, funnels, bends, many coordinates.

Their moments are known; densities that a library could recognise and draw from exactly stand in potentials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt


@dataclass(frozen=True)
class Geometry:
    """A model, and (mean, sd) of some of its numbers by name, ``x[1]`` the first."""

    make: Callable[[], Any]
    moments: dict[str, tuple[float, float]]


def gaussian(covariance: np.ndarray) -> Callable[[], Any]:
    """A Gaussian as a potential."""

    def make() -> Any:
        precision = np.linalg.inv(covariance)
        with pm.Model() as model:
            x = pm.Flat("x", shape=len(covariance))
            pm.Potential("density", -0.5 * pt.dot(x, pt.dot(precision, x)))
        return model

    return make


def of(covariance: np.ndarray) -> Geometry:
    """A Gaussian with its moments at the first, the middle and the last coordinate."""
    places = (0, len(covariance) // 2, len(covariance) - 1)
    return Geometry(gaussian(covariance), {f"x[{k + 1}]": (0.0, float(covariance[k, k]) ** 0.5) for k in places})


def funnel() -> Any:
    """Neal's funnel of ten dimensions."""
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 3.0)
        pm.Normal("x", 0.0, pt.exp(0.5 * v), shape=9)
    return model


def rosenbrock() -> Any:
    """Five bent ridges, y | x ~ Normal(x², 0.1)."""
    with pm.Model() as model:
        x, y = pm.Flat("x", shape=5), pm.Flat("y", shape=5)
        pm.Potential("density", pt.sum(-0.5 * ((x - 1.0) / 0.7) ** 2 - 0.5 * ((y - x**2) / 0.1) ** 2))
    return model


def volatility() -> Any:
    """Stochastic volatility of 200 days, by its innovations."""
    rng = np.random.default_rng(4)
    h = np.zeros(200)
    for t in range(1, 200):
        h[t] = 0.95 * h[t - 1] + 0.25 * rng.normal()
    y = np.exp(0.5 * (h - 1.0)) * rng.normal(size=200)
    with pm.Model() as model:
        mu, phi = pm.Normal("mu", 0.0, 2.0), pm.Beta("phi", 20.0, 1.5)
        sigma = pm.HalfNormal("sigma", 0.5)
        z = pm.Normal("z", 0.0, 1.0, shape=200)
        lags = np.subtract.outer(np.arange(200), np.arange(200))
        weights = pt.switch(lags >= 0, phi ** np.maximum(lags, 0), 0.0)
        pm.Normal("y", 0.0, pt.exp(0.5 * (mu + sigma * pt.dot(weights, z))), observed=y)
    return model


def columns(kind: str) -> Callable[[], Any]:
    """A regression on a thousand columns."""

    def make() -> Any:
        rng = np.random.default_rng(5)
        X = rng.normal(size=(600, 1000))
        f = X[:, :10].sum(axis=1) * 0.5
        with pm.Model() as model:
            w = pm.Normal("w", 0.0, 0.1, shape=1000)
            if kind == "linear":
                sigma = pm.HalfNormal("sigma", 1.0)
                pm.Normal("y", pt.dot(X, w), sigma, observed=f + rng.normal(size=600))
            else:
                pm.Bernoulli("y", logit_p=pt.dot(X, w), observed=(f + rng.logistic(size=600) > 0).astype(int))
        return model

    return make


def rotated(size: int = 100) -> np.ndarray:
    """Standard deviations from 0.01 to 1 along random axes."""
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(size, size)))[0]
    return (axes * np.logspace(-4.0, 0.0, size)) @ axes.T


CATALOGUE: dict[str, Geometry] = {
    "geometry: Gaussian along axes": of(np.diag(np.logspace(-4.0, 4.0, 100))),
    "geometry: Gaussian rotated": of(rotated()),
    "geometry: Gaussian, correlations of .999": of(0.001 * np.eye(100) + 0.999),
    "geometry: funnel": Geometry(funnel, {"v": (0.0, 3.0)}),
    "geometry: Rosenbrock": Geometry(
        rosenbrock, {"x[1]": (1.0, 0.7), "y[1]": (1.49, (4 * 0.49 + 2 * 0.49**2 + 0.01) ** 0.5)}
    ),
    "geometry: stochastic volatility": Geometry(volatility, {}),
    "geometry: linear, 1000 columns": Geometry(columns("linear"), {}),
    "geometry: logistic, 1000 columns": Geometry(columns("logistic"), {}),
}
