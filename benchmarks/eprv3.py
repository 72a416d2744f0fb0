"""Planets of a star by their evidence: the contest of the exoplanet hunters (EPRV3, arXiv 1806.04683).

200 radial velocities, correlated noise, and up to two planets whose periods are known only to lie somewhere: posteriors
with hundreds of narrow modes. With no planet the truth is an integral over two numbers.

    EPRV3=<folder of the data> python -m benchmarks.eprv3 --sets 1 2 3 --planets 0 1 --record eprv3.jsonl
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import bayessel as bs

#: iterations of Halley's method on Kepler's equation; with this start enough for eccentricities of the prior
HALLEY = 5
BROAD = (1.25, 10_000.0)


def folder() -> Path:
    """Where the data are."""
    return Path(os.environ.get("EPRV3", "../shared/eprv3"))


def velocities(number: int) -> np.ndarray:
    """Day, velocity and error of a data set, (200, 3)."""
    return np.loadtxt(folder() / f"rvs_{number:04d}.txt")


def bounds(number: int, prior: str, planets: int) -> list[tuple[float, float]]:
    """Interval of each planet's period in days."""
    if prior == "broad":
        return [BROAD] * planets
    rows = list(csv.reader((folder() / f"prior_bounds_{number:04d}.txt").read_text().splitlines()))
    return [(float(row[2]), float(row[3])) for row in rows[:planets]]


def covariance(days: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Of the noise, without the jitter."""
    apart = days[:, None] - days[None, :]
    return 3.0 * np.exp(-0.5 * (np.sin(np.pi * apart / 20.0) ** 2 / 0.25 + apart**2 / 2500.0)) + np.diag(errors**2)


def keplerian(
    days: np.ndarray,
    period: pt.TensorVariable,
    e: pt.TensorVariable,
    omega: pt.TensorVariable,
    phase: pt.TensorVariable,
):
    """Velocity of a planet of unit semi-amplitude."""
    mean = phase + 2.0 * np.pi * days / period
    mean = mean - 2.0 * np.pi * pt.floor(mean / (2.0 * np.pi))
    E = mean + 0.85 * e * pt.sign(pt.sin(mean))
    for _ in range(HALLEY):
        f, slope = E - e * pt.sin(E) - mean, 1.0 - e * pt.cos(E)
        E = E - f / (slope - 0.5 * f * e * pt.sin(E) / slope)
    cosine = (pt.cos(E) - e) / (1.0 - e * pt.cos(E))
    sine = pt.sqrt(1.0 - e**2) * pt.sin(E) / (1.0 - e * pt.cos(E))
    return pt.cos(omega) * (cosine + e) - pt.sin(omega) * sine


def model_of(number: int, prior: str, planets: int) -> pm.Model:
    """n planets and correlated noise; every unknown is the quantile of its prior, uniform on (0, 1)."""
    day, velocity, error = velocities(number).T
    roots, basis = np.linalg.eigh(covariance(day, error))
    with pm.Model() as model:
        jitter = 100.0 ** pm.Uniform("jitter_quantile", 0.0, 1.0) - 1.0
        offset = pm.Uniform("offset", -1000.0, 1000.0)
        mean = offset * np.ones(len(day))
        for k, (low, high) in enumerate(bounds(number, prior, planets), 1):
            unit = pm.Uniform(f"planet_{k}", 0.0, 1.0, shape=5)  # period, amplitude, eccentricity, argument, anomaly
            period = low * (high / low) ** unit[0]
            e = 0.2 * pt.sqrt(-2.0 * pt.log1p(-unit[2] * (1.0 - np.exp(-0.5 / 0.04))))
            wave = keplerian(day, period, e, 2.0 * np.pi * unit[3], 2.0 * np.pi * unit[4])
            mean = mean + (1000.0 ** unit[1] - 1.0) * wave
        spread = pt.sqrt(roots + jitter**2)
        pm.Normal("rotated", pt.dot(basis.T, mean), spread, observed=basis.T @ velocity)
    return model


def without_planets(number: int) -> float:
    """Truth with no planet: the offset in closed form, the jitter on a grid."""
    day, velocity, error = velocities(number).T
    roots, basis = np.linalg.eigh(covariance(day, error))
    one, v = basis.T @ np.ones(len(day)), basis.T @ velocity
    u = np.linspace(0.0, 1.0, 20_001)
    variances = roots + (100.0 ** u[:, None] - 1.0) ** 2
    a, b, c = ((one * one / variances).sum(1), (one * v / variances).sum(1), (v * v / variances).sum(1))
    logs = -0.5 * (np.log(2 * np.pi * variances).sum(1) + c - b * b / a) + 0.5 * np.log(2 * np.pi / a) - np.log(2000.0)
    weights = np.full(len(u), u[1])
    weights[[0, -1]] *= 0.5
    return float(np.log(np.sum(np.exp(logs - logs.max()) * weights)) + logs.max())


def published(number: int, prior: str, planets: int) -> np.ndarray:
    """log10 evidences of the contest's entries."""
    with open(folder() / "published.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    key = (str(number), prior, str(planets))
    return np.array(
        [float(row["log10_evidence"]) for row in rows if (row["dataset"], row["period_prior"], row["planets"]) == key]
    )


def main() -> None:
    """Run what is asked for, append to the record, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--planets", type=int, nargs="+", default=[0])
    parser.add_argument("--priors", nargs="+", default=["broad", "narrow"])
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--routes", nargs="+", default=["quadrature", "laplace", "bridge", "annealing"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, default=None)
    given = parser.parse_args()
    for number in given.sets:
        for planets in given.planets:
            for prior in given.priors if planets else ["broad"]:
                clock = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = bs.evidence(
                        model_of(number, prior, planets),
                        routes=given.routes,
                        effort=given.effort,
                        random_seed=given.seed,
                        quiet=True,
                    )
                seconds = time.process_time() - clock
                entries = published(number, prior, planets)
                row = {
                    "set": number,
                    "planets": planets,
                    "prior": prior,
                    "log10": found.log10,
                    "error10": found.error / np.log(10.0),
                    "reliable": found.reliable,
                    "seconds": seconds,
                    "effort": given.effort,
                    "entries": len(entries),
                    "median_entry": float(np.median(entries)) if len(entries) else None,
                    "routes": [[one.name, one.value, one.error, one.reliable, one.reason] for one in found.routes],
                }
                if not planets:
                    row["truth10"] = without_planets(number) / np.log(10.0)
                print(json.dumps(row), flush=True)
                print(found, flush=True)
                if given.record:
                    with open(given.record, "a") as file:
                        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
