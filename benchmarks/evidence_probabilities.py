"""Whether probabilities of models by `bs.evidence` are true: data of models drawn at even odds, two pairs of models.

python -m benchmarks.evidence_probabilities [--simulations 500] [--pairs NAME ...] [--effort 0.2] [--file FILE]

A line of JSON per simulation goes into the file; a later call does what is missing. Lines of other settings or other
sources of `bayessel.marginal_likelihood` are left alone and not counted.

"logistic": a Bernoulli regression with slopes of an unknown scale, without and with one more covariate: 4 and 5
unknowns, none of which can be integrated out. "noise": a regression whose noise is Normal, so that a grid has the
evidence, or Student's t with unknown degrees of freedom, 4 unknowns.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pymc as pm

from bayessel.diagnostics.calibration._evidence_setup import EvidenceSetup
from bayessel.diagnostics.calibration._model_probabilities import (
    ModelProbabilities,
    Simulated,
    of_simulations,
    simulated,
)
from bayessel.work.seeds import seed_sequence
from benchmarks.evidence_coverage import code

FILE = Path(__file__).parent / "results" / "evidence_probabilities.jsonl"
ROUTES = ("quadrature", "laplace", "bridge", "annealing")
LEVEL = 0.01


def logistic() -> dict[str, pm.Model]:
    """A Bernoulli regression without and with a covariate."""
    X = np.random.default_rng(1).normal(size=(30, 3))

    def declared(with_covariate: bool) -> pm.Model:
        with pm.Model() as model:
            bias = pm.Normal("bias", 0.0, 1.5)
            scale = pm.LogNormal("scale", 0.0, 0.5)
            slopes = scale * pm.Normal("slopes", 0.0, 1.0, shape=2)
            total = bias + pm.math.dot(X[:, :2], slopes)
            if with_covariate:
                total = total + pm.Normal("effect", 0.0, 2.0) * X[:, 2]
            pm.Bernoulli("y", logit_p=total, observed=pm.Data("y_data", np.zeros(len(X), dtype=int)))
        return model

    return {"without": declared(False), "with": declared(True)}


def noise() -> dict[str, pm.Model]:
    """A regression with Normal noise, and one with Student's t."""
    x = np.linspace(-1.0, 1.0, 25)

    def declared(heavy: bool) -> pm.Model:
        with pm.Model() as model:
            mean = pm.Normal("bias", 0.0, 1.0) + pm.Normal("slope", 0.0, 1.0) * x
            scale = pm.LogNormal("scale", -0.5, 0.5)
            data = pm.Data("y_data", np.zeros(len(x)))
            if heavy:
                pm.StudentT("y", nu=1.0 + pm.Exponential("freedom", 0.5), mu=mean, sigma=scale, observed=data)
            else:
                pm.Normal("y", mean, scale, observed=data)
        return model

    return {"normal": declared(False), "student": declared(True)}


PAIRS: dict[str, Callable[[], dict[str, pm.Model]]] = {"logistic": logistic, "noise": noise}


def read(path: Path, effort: float) -> list[dict[str, Any]]:
    """What is known of these sources with these settings; a last line that was cut off is none."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row["code"] == code() and row["effort"] == effort:
            rows.append(row)
    return rows


def collect(
    pairs: Mapping[str, Callable[[], dict[str, pm.Model]]], simulations: int, effort: float, path: Path
) -> list[dict[str, Any]]:
    """Simulations 0, 1, … of every pair, until there are so many."""
    rows = read(path, effort)
    done = {(row["pair"], row["simulation"]) for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.read_text().endswith("\n"):
        with path.open("a") as file:  # a run was stopped while it wrote
            file.write("\n")
    for pair, make in pairs.items():
        setup = EvidenceSetup(make(), ROUTES, effort)
        for k in range(simulations):
            if (pair, k) in done:
                continue
            start = process_time()
            found = simulated(setup, seed_sequence(1, pair, k))
            row = {"pair": pair, "simulation": k, "code": code(), "effort": effort, **found._asdict()}
            rows.append(row | {"seconds": process_time() - start})
            with path.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    return rows


def judged(pair: str, rows: list[dict[str, Any]]) -> ModelProbabilities:
    """The simulations of a pair as one result."""
    own = [row for row in rows if row["pair"] == pair]
    found = [Simulated(*(row[name] for name in Simulated._fields)) for row in own]
    return of_simulations(found, list(PAIRS[pair]()), LEVEL, sum(row["seconds"] for row in own))


def report(result: ModelProbabilities) -> str:
    """Tests, and shares by range of the probability of the second model."""
    lines = [str(result), result.table.round(4).to_string()]
    name = result.names[1]
    lines += [
        f"p({name}) about {one.mean:.3f}: it made {one.share:.3f} ± {one.error:.3f} of {one.simulations} simulations"
        for one in result.ranges(name)
    ]
    for what, wrong in controls(result).items():
        score = wrong.table.loc["score"]
        said = f"score {score['seen']:.3f}, expected {score['expected']:.3f} (z {score['z']:.1f})"
        lines.append(f"control, {what}: {said}; fails {', '.join(wrong.failed) or 'nothing'}")
    return "\n".join(lines)


def controls(result: ModelProbabilities) -> dict[str, ModelProbabilities]:
    """The same with what is wrong: each should fail."""
    middle = result.log_evidence.mean(axis=1, keepdims=True)
    shuffled = np.random.default_rng(1).permutation(result.made_by)
    return {
        "makers shuffled": replace(result, made_by=shuffled),
        "log odds doubled": replace(result, log_evidence=2.0 * result.log_evidence - middle),
        "half a nat more for one": replace(result, log_evidence=result.log_evidence + np.array([0.5, 0.0])),
    }


def main(argv: list[str] | None = None) -> int:
    """Run what is missing and print what it says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence_probabilities", description=__doc__)
    parser.add_argument("--simulations", type=int, default=500, help="of each pair")
    parser.add_argument("--pairs", nargs="+", choices=list(PAIRS), default=list(PAIRS), metavar="NAME")
    parser.add_argument("--effort", type=float, default=0.2, help="of bs.evidence")
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--show", action="store_true", help="run nothing: print what is there")
    args = parser.parse_args(argv)
    chosen = {name: PAIRS[name] for name in args.pairs}
    rows = read(args.file, args.effort) if args.show else collect(chosen, args.simulations, args.effort, args.file)
    for name in chosen:
        if any(row["pair"] == name for row in rows):
            print(f"{name}: {report(judged(name, rows))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
