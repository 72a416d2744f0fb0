"""Seconds of the default regressors as rows and inputs grow, and the steps between neighbouring sizes.

    python -m benchmarks.growth [--rows N ...] [--inputs D ...] [--turns K] [--only NAME ...]

Prints for every estimator and number of inputs the seconds of processor of a fit (the least of the turns, after one fit
of 64 rows that loads and compiles), the ratio of each to the size before, and the steps above the limit: `STEP` where
the number of rows doubles. Then the ratios between estimators that are promised.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import bayessel as bs

ROWS, INPUTS = (64, 128, 256, 512, 1000, 2000, 4000), (1, 8, 32)
#: largest ratio of the seconds of two sizes of which one is twice the other
STEP = 2.5
#: seconds that are not told apart
LEAST = 0.02

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "EvidenceRegressor": bs.EvidenceRegressor,
    "RVMRegressor": bs.RVMRegressor,
    "BasisSearchRegressor": bs.BasisSearchRegressor,
    "ForwardSelectionRegressor": bs.ForwardSelectionRegressor,
    "RidgeRBFRegressor": bs.RidgeRBFRegressor,
    "GPRegressor": bs.GPRegressor,
    "GPRegressor, map": partial(bs.GPRegressor, inference="map"),
    "average": partial(bs.average, n_jobs=1, progressbar=False),
}


def rows(n: int, D: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A wave in the first input, a slope in the last, noise."""
    rng = np.random.default_rng([seed, n, D])
    X = rng.normal(size=(n, D))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, -1] + 0.3 * rng.normal(size=n)


def seconds(make: Callable[[], Any], n: int, D: int, turns: int) -> float:
    """Least seconds of processor of a fit, over draws of the rows."""
    found = []
    for turn in range(turns):
        X, y = rows(n, D, turn)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.process_time()
            make().fit(X, y)
            found.append(time.process_time() - began)
    return min(found)


def steps(sizes: list[int], took: list[float]) -> list[str]:
    """Neighbouring sizes between which seconds grow by more than `STEP` for each doubling of the rows."""
    found = []
    for n, more, t, longer in zip(sizes, sizes[1:], took, took[1:], strict=False):
        ratio = longer / max(t, LEAST)
        if ratio > STEP ** np.log2(more / n):
            found.append(f"{n} to {more}: {ratio:.1f}")
    return found


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--inputs", nargs="+", type=int, default=list(INPUTS))
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS))
    args = parser.parse_args(argv)
    print(f"{'':28}{'inputs':>6}" + "".join(f"{n:>8}" for n in args.rows) + "   steps")
    took: dict[tuple[str, int], list[float]] = {}
    for name in args.only:
        for D in args.inputs:
            seconds(ESTIMATORS[name], 64, D, 1)
            here = took[name, D] = [seconds(ESTIMATORS[name], n, D, args.turns) for n in args.rows]
            line = f"{name:28}{D:>6}" + "".join(f"{one:>8.2f}" for one in here)
            print(f"{line}   {'; '.join(steps(args.rows, here)) or '-'}", flush=True)
    for D in args.inputs:
        radial, mode = took.get(("EvidenceRegressor", D)), took.get(("GPRegressor, map", D))
        if radial and mode and 1000 in args.rows:
            at = args.rows.index(1000)
            print(f"EvidenceRegressor over the mode of the process, 1000 x {D}: {radial[at] / mode[at]:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
