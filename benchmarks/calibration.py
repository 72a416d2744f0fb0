"""Calibration of regressors on generated data whose noise is known: the table of docs/calibration.md.

python -m benchmarks.calibration [--sets 5]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

import bayessel as bs
from bayessel._check import FloatArray
from bayessel.diagnostics import predictive_calibration
from bayessel.errors import NumericalWarning

#: noise by name, from inputs and a generator
NOISES: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "normal": lambda X, rng: rng.normal(size=len(X)),
    "heavy tails (t, 2)": lambda X, rng: rng.standard_t(2.0, size=len(X)),
    "uneven": lambda X, rng: np.exp(X[:, 2]) * rng.normal(size=len(X)),
}
MODELS: dict[str, Callable[[], bs.GPRegressor | bs.EvidenceRegressor | bs.RVMRegressor]] = {
    "GPRegressor()": bs.GPRegressor,
    "EvidenceRegressor()": bs.EvidenceRegressor,
    'RVMRegressor(inference="type2")': lambda: bs.RVMRegressor(inference="type2"),
}
FITTED, NEW = 120, 1000


def table(sets: int) -> pd.DataFrame:
    """One row per noise and model: means over the sets."""
    rows = []
    for noise, drawn in NOISES.items():
        for name, make in MODELS.items():
            found = []
            for seed in range(sets):
                rng = np.random.default_rng(seed)
                X = rng.normal(size=(FITTED + NEW, 3))
                y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * drawn(X, rng)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NumericalWarning)
                    model = make().fit(X[:FITTED], y[:FITTED])
                left, new = predictive_calibration(model), predictive_calibration(model, X[FITTED:], y[FITTED:])
                said = [note.name for note in model.notes_ if note.name in ("HEAVY_TAILS", "UNEVEN_NOISE")]
                found.append(
                    {
                        "left out 90 %": left.coverage.loc[0.9, "covered"],
                        "new 90 %": new.coverage.loc[0.9, "covered"],
                        "new 50 %": new.coverage.loc[0.5, "covered"],
                        "miscalibration": new.miscalibration,
                        "variance factor": new.variance_factor,
                        "left out calibrated": float(left.calibrated),
                        "residuals named": float(bool(said)),
                    }
                )
            rows.append({"noise": noise, "model": name, **pd.DataFrame(found).mean()})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=5)
    found = table(parser.parse_args().sets)
    print("| " + " | ".join(found.columns) + " |\n|" + "---|" * len(found.columns))
    for row in found.itertuples(index=False):
        print("| " + " | ".join(one if isinstance(one, str) else f"{one:.2f}" for one in row) + " |")
