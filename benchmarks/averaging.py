"""Averaging beside picking, over widths and over families: nats a row on rows held out, paired over generated tables.

    python -m benchmarks.averaging [--draws N] [--families] [--first K]

Without ``--families`` each table is fitted at 12 widths under one weight precision, and as Gaussian processes: the
average by evidence beside the width of the largest evidence, and the stacking of leave-one-out densities beside the
width that is best by these. With it, `EvidenceRegressor`, `RVMRegressor` and `GPRegressor` are averaged by stacking of
refitted folds, beside the member that is best by evidence, by leave-one-out, and on the folds. Prints the mean of the
paired differences, its standard error, and in how many tables the average was better.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import bayessel as bs
from bayessel.errors import NumericalWarning
from bayessel.estimators.member_predictions import left_out_of, predictive_of
from bayessel.widths import suggest_widths

N_WIDTHS = 12
#: rows of a table that are held out
HELD_OUT = 300
#: where a density is hopeless, a difference counts for no more than this
MOST = 20.0


def table(draw: int) -> tuple[str, np.ndarray, np.ndarray, int]:
    """(name, inputs, target, rows to fit) of one draw: 30 to 100 rows to fit, the others held out."""
    rng = np.random.default_rng([draw, 20])
    n = int(rng.integers(30, 101))
    rows = n + HELD_OUT
    noise = rng.normal(size=rows)
    kind = draw % 3
    if kind == 0:
        X = rng.uniform(0.0, 1.0, size=(rows, 5))
        y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        return "friedman", X, y + noise, n
    if kind == 1:
        X = rng.uniform(-10.0, 10.0, size=(rows, 1))
        return "sinc", X, np.sinc(X[:, 0] / np.pi) + rng.uniform(0.05, 0.2) * noise, n
    X = rng.uniform(-2.0, 2.0, size=(rows, 2))
    length = np.exp(rng.normal(0.0, 0.5))
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2) / length**2)
    draws = np.linalg.cholesky(K + 1e-8 * np.eye(rows)) @ rng.normal(size=rows)
    return "process", X, draws + rng.uniform(0.1, 0.4) * noise, n


def worth(prediction: Any, y: np.ndarray) -> float:
    """Nats a row."""
    return float(np.mean(prediction.log_density(y)))


def over_widths(draw: int, model: str) -> dict[str, float]:
    """What averages over widths gain on the widths picked."""
    _, X, y, n = table(draw)
    new, t = X[n:], y[n:]
    widths = suggest_widths(X[:n], N_WIDTHS)
    comparison = bs.compare_widths(X[:n], y[:n], widths, model=model, criteria=["evidence"], progressbar=False)
    by_evidence = comparison.average("evidence", progressbar=False)
    stacked = comparison.average("stacking", progressbar=False)
    fits = [member for name, member in stacked.members_.items()]
    alone = [worth(fit.predict(new), t) for fit in fits]
    evidence = alone[int(np.argmax([fit.log_evidence for fit in fits]))]
    left_out = alone[int(np.argmax([fit.leave_one_out().log_density for fit in fits]))]
    return {
        f"{model}: by evidence, beside the best by evidence": worth(by_evidence.predictive(new), t) - evidence,
        f"{model}: stacking, beside the best by leave-one-out": worth(stacked.predictive(new), t) - left_out,
        f"{model}: stacking, beside the best by evidence": worth(stacked.predictive(new), t) - evidence,
    }


def over_families(draw: int) -> dict[str, float]:
    """What an average of three families gains on the one picked."""
    _, X, y, n = table(draw)
    new, t = X[n:], y[n:]
    members = {"radial": bs.EvidenceRegressor(), "rvm": bs.RVMRegressor(), "gp": bs.GPRegressor()}
    model = bs.average(members, random_state=draw, n_jobs=1, progressbar=False).fit(X[:n], y[:n])
    fits = list(model.members_.values())
    alone = [worth(predictive_of(fit, new), t) for fit in fits]
    here = worth(model.predictive(new), t)
    loo = [left_out_of(fit, "a member").log_density for fit in fits]
    folds = model.weights_["gain"].to_numpy()[:-1]
    flattered = bs.average(model.members_, densities="loo", progressbar=False)
    found = {
        "families: stacking of folds, beside the best by evidence": here
        - alone[_largest([f.log_evidence_ for f in fits])],
        "families: stacking of folds, beside the best by leave-one-out": here - alone[_largest(loo)],
        "families: stacking of folds, beside the best on the folds": here - alone[_largest(folds)],
        "families: stacking of folds, beside stacking of leave-one-out": here - worth(flattered.predictive(new), t),
    }
    return found | {
        f"families: stacking of folds, beside {name} alone": here - alone[k] for k, name in enumerate(members)
    }


def _largest(values: Any) -> int:
    return int(np.argmax(values))


def differences(draws: range, families: bool) -> dict[str, np.ndarray]:
    """Paired differences of every comparison, in nats a row."""
    found: list[dict[str, float]] = []
    for draw in draws:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            found.append(over_families(draw) if families else over_widths(draw, "evidence") | over_widths(draw, "gp"))
    return {name: np.clip([one[name] for one in found], -MOST, MOST) for name in found[0]}


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.averaging", description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--families", action="store_true")
    args = parser.parse_args(argv)
    print("nats a row: mean ± standard error, better in")
    for name, one in differences(range(args.first, args.first + args.draws), args.families).items():
        error = one.std(ddof=1) / np.sqrt(len(one)) if len(one) > 1 else np.nan
        print(f"{name:66}{one.mean():+9.4f} ± {error:.4f}  {(one > 0.0).sum()} of {len(one)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
