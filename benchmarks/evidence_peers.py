"""Evidences of twelve models with a known truth, beside PyMC's SMC and nested sampling: error, and processor time.

python -m benchmarks.evidence_peers [--only NAME ...] [--seeds 1 2] [--file FILE]

A line of JSON per run goes into the file; a later call does what is missing. Nested sampling is that of nautilus on our
compiled density, so its seconds are those of the method and not of PyMC's functions.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

import bayessel as bs
from tests.marginal_likelihood.zoo import ALL
from tests.marginal_likelihood.zoo.case import Case

FILE = Path(__file__).parent / "results" / "evidence_peers.jsonl"
MODELS = (
    "ten_rates",
    "five_classes",
    "eight_schools_non_centred",
    "eight_schools_student",
    "counts",
    "trials",
    "funnel_student",
    "logistic_3",
    "cancer_8",
    "two_modes_5",
    "shells_5",
    "three_components",
)


def ours(case: Case, seed: int) -> tuple[float, float, bool]:
    """`bs.evidence` at its defaults."""
    found = bs.evidence(case.model, random_seed=seed, quiet=True)
    return found.value, found.error, found.reliable


def smc(case: Case, seed: int) -> tuple[float, float, bool]:
    """`pm.sample_smc` at its defaults, four chains; their mean with its standard error."""
    with case.model:
        trace = pm.sample_smc(chains=4, cores=1, random_seed=seed, progressbar=False, compute_convergence_checks=False)
    logs = [float(np.ravel(one)[-1]) for one in trace["sample_stats"]["log_marginal_likelihood"].values]
    return float(np.mean(logs)), float(np.std(logs, ddof=1) / np.sqrt(len(logs))), True


def nested(case: Case, seed: int) -> tuple[float, float, bool]:
    """Nested sampling by nautilus."""
    found = bs.evidence(case.model, random_seed=seed, quiet=True, routes=["nested"])
    return found.routes[-1].value, found.routes[-1].error, found.routes[-1].reliable


ENTRANTS: dict[str, Callable[[Case, int], tuple[float, float, bool]]] = {
    "bs.evidence": ours,
    "pm.sample_smc": smc,
    "nautilus": nested,
}


def run(entrant: str, name: str, case: Case, seed: int) -> dict[str, Any]:
    """One evidence by one entrant."""
    row: dict[str, Any] = {"entrant": entrant, "case": name, "seed": seed}
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value, error, sure = ENTRANTS[entrant](case, seed)
        except Exception as failure:  # whatever it is, it is a result
            return row | {"failed": f"{type(failure).__name__}: {failure}"[:200], "seconds": process_time() - start}
    return row | {"off": value - case.truth, "error": error, "reliable": sure, "seconds": process_time() - start}


def main(argv: list[str] | None = None) -> int:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence_peers", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--entrants", nargs="+", choices=list(ENTRANTS), default=list(ENTRANTS))
    parser.add_argument("--file", type=Path, default=FILE)
    args = parser.parse_args(argv)
    makers = {make.__name__: make for make in ALL}
    args.file.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in args.file.read_text().splitlines()] if args.file.exists() else []
    done = {(row["entrant"], row["case"], row["seed"]) for row in rows}
    for name in args.only:
        for seed in args.seeds:
            for entrant in args.entrants:
                if (entrant, name, seed) in done:
                    continue
                row = run(entrant, name, makers[name](), seed)
                rows.append(row)
                with args.file.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
    table = pd.DataFrame(rows)
    print(table.pivot_table(index="case", columns="entrant", values=["off", "error", "seconds"]).round(3).to_string())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
