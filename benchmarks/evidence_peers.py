"""Evidences of twelve models with a known truth, beside those of other packages: error, and processor time.

python -m benchmarks.evidence_peers [--only NAME ...] [--entrants NAME ...] [--seeds 1 2] [--seconds 300] [--file FILE]

A line of JSON per run goes into the file; a later call does what is missing. PyMC's SMC runs in this process, and so
does nautilus, on our compiled density: Normal blocks are integrated out for it, and its seconds are those of the method
and not of PyMC's functions. BlackJAX and dynesty are looked for in the interpreter PEERS_PYTHON (or this one), which
needs the same releases of PyMC and Python, and get the model as it is declared.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm

import bayessel as bs
import tests
from bayessel import _pymc
from benchmarks.evidence_worker import METHODS
from tests.marginal_likelihood.zoo import ALL
from tests.marginal_likelihood.zoo.case import Case

ROOT = Path(__file__).parents[1]
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


#: those that run in this process
HERE: dict[str, Callable[[Case, int], tuple[float, float, bool]]] = {
    "bs.evidence": ours,
    "pm.sample_smc": smc,
    "nautilus": nested,
}
ENTRANTS = (*HERE, *METHODS)
#: seconds of processor that a run may take, and as many times more by the clock of a machine that is shared
SECONDS, PATIENCE = 300.0, 10.0


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` when the block has taken so many seconds of processor."""

    def over(*unused: object) -> None:
        raise TimeoutError(f"not done in {seconds:.0f} s of processor")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def here(entrant: str, case: Case, seed: int, seconds: float) -> dict[str, Any]:
    """One evidence by a method of this process."""
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with limited(seconds):
                value, error, sure = HERE[entrant](case, seed)
        except Exception as failure:  # whatever it is, it is a result
            return {"failed": f"{type(failure).__name__}: {failure}"[:200], "seconds": process_time() - start}
    return {"value": value, "error": error, "reliable": sure, "seconds": process_time() - start}


def elsewhere(entrant: str, case: Case, seed: int, seconds: float) -> dict[str, Any]:
    """One evidence by a process of the peers' interpreter."""
    job = {"method": entrant, "model": _packed(case.model), "seed": seed, "seconds": seconds}
    python = os.environ.get("PEERS_PYTHON", sys.executable)
    flags = f"base_compiledir={ROOT / '.cache' / 'pytensor'}-peers"
    xla = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    once = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
    environment = os.environ | once | {"PYTENSOR_FLAGS": flags, "XLA_FLAGS": xla, "PYTHONPATH": str(ROOT)}
    failed = {"failed": f"not done in {seconds:.0f} s of processor", "seconds": seconds}
    try:
        done = subprocess.run(
            [python, "-W", "ignore", "-m", "benchmarks.evidence_worker"],
            input=pickle.dumps(job),
            capture_output=True,
            cwd=ROOT,
            env=environment,
            timeout=PATIENCE * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return failed
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return failed
    if done.returncode:
        said = (done.stderr.decode().strip().splitlines() or ["nothing said"])[-1]
        return {"failed": said[:200], "seconds": math.nan}
    found = json.loads(done.stdout)
    return {"reliable": found.pop("complete"), **found} if "value" in found else found


def _packed(model: pm.Model) -> bytes:
    """A model as bytes, and before it a function that registers what PyMC looks up for its `CustomDist`."""
    with ExitStack() as stack:
        for module in (_pymc, tests):  # the peers' interpreter has no bayessel, which the zoo imports
            cloudpickle.register_pickle_by_value(module)
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        return cloudpickle.dumps((partial(_pymc.register_custom_methods, _pymc.custom_methods(model)), model))


def run(entrant: str, name: str, case: Case, seed: int, seconds: float = SECONDS) -> dict[str, Any]:
    """One evidence by one entrant."""
    found = (here if entrant in HERE else elsewhere)(entrant, case, seed, seconds)
    if "value" in found:
        found["off"] = found.pop("value") - case.truth
    return {"entrant": entrant, "case": name, "seed": seed, **found}


def main(argv: list[str] | None = None) -> int:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence_peers", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--entrants", nargs="+", choices=ENTRANTS, default=ENTRANTS, metavar="NAME")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of processor that a run may take")
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
                row = run(entrant, name, makers[name](), seed, args.seconds)
                rows.append(row)
                with args.file.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
    table = pd.DataFrame(rows)
    print(table.pivot_table(index="case", columns="entrant", values=["off", "error", "seconds"]).round(3).to_string())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
