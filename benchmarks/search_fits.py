"""Everybody on one training set of DELVE as Barrio, Romero and Belanche (2010) set it up, kept where asked for."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import bayessel as bs
from benchmarks import search_paper as paper
from benchmarks.delve_cases import Split
from benchmarks.peers import Array

#: what `bs.linear.search` takes by itself: nats below the best model within which a smaller one is as good
WITHIN = 1.0


def kept(name: str, make: Any) -> Any:
    """What `make` returns, from the folder that BENCHMARK_PARTS names if an earlier run left it there."""
    folder = os.environ.get("BENCHMARK_PARTS")
    if not folder:
        return make()
    path = Path(folder) / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())
    found = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return found


def problem(split: Split) -> tuple[Array, Array, Array, Array]:
    """Inputs in [-1, 1], targets without their mean (and, which changes nothing, in units of their spread)."""
    low, high = split.X.min(axis=0), split.X.max(axis=0)
    X, X_test = (2.0 * (x - low) / (high - low) - 1.0 for x in (split.X, split.X_test))
    mean, spread = split.y.mean(), split.y.std()
    return X, (split.y - mean) / spread, X_test, (split.y_test - mean) / spread


def widths(split: Split) -> dict[str, Any]:
    """One width per input at the highest evidence of all functions together, and the seconds they took."""
    X, t, _, _ = problem(split)
    start = time.process_time()
    found = bs.linear.fit_abf(X, t, n_starts=1, max_steps=100, centre=False)
    return {"widths": found.widths.tolist(), "seconds": time.process_time() - start}


def fits(split: Split, family: str, known: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Functions, steps, error and seconds of everybody; of the searches also what the path says of other sizes.

    A search stands for its model of the highest evidence, as in the paper, and oscillating search for its best one of
    the size that forward selection found; `smaller` and `smaller, error` are of what it would return by itself, the
    smallest model within `WITHIN` of the best one.
    """
    X, t, X_test, t_test = problem(split)
    dictionary = bs.RBFDictionary(X, np.array(known["widths"]), bias=False)
    F, F_test = dictionary.design(X), dictionary.design(X_test)
    found: dict[str, dict[str, float]] = {}

    def error(prediction: Array) -> float:
        return float(np.mean((prediction - t_test) ** 2) / np.var(t_test))

    def of(basis: Any) -> float:
        columns = list(basis)
        return error(bs.linear.fit_evidence(F[:, columns], t).predict(F_test[:, columns]).mean)

    start = time.process_time()
    whole = bs.linear.fit_evidence(F, t)
    prediction = whole.predict(F_test).mean
    seconds = known["seconds"] + time.process_time() - start
    found["abf"] = {"size": len(t), "error": error(prediction), "seconds": seconds}
    paths = {}
    for name in paper.STRATEGIES:
        start = time.process_time()
        fit = bs.linear.search(F, t, name, within=0.0)
        seconds = time.process_time() - start
        path = paths[name] = fit.path
        top = max(point.value for point in path.values())
        least = min(k for k in path if path[k].value >= top - WITHIN)
        found[name] = {
            "size": fit.n_basis,
            "steps": fit.n_added + fit.n_removed,
            "error": error(fit.mean(F_test)),
            "seconds": seconds,
            "value": path[fit.n_basis].value,
            "smaller": least,
            "smaller, error": of(path[least].basis),
        }
    for name in paper.STRATEGIES:
        if wanted := paper.size(name, family):
            at = max(1, min(round(wanted), len(t) // 2))
            known_there = [path[at].value for path in paths.values() if at in path]
            if not known_there:
                known_there = [forward_to(F, t, at)]
            found[name]["lost"] = found[name]["value"] - max(known_there)
    start = time.process_time()
    sparse = bs.linear.fit_rvm(F, t)
    found["rvm"] = {"size": sparse.n_basis, "error": error(sparse.mean(F_test))}
    found["rvm"]["seconds"] = time.process_time() - start
    start = time.process_time()
    chosen = bs.linear.forward_select(F, t, method="ols", stop="cv")
    found["ols"] = {"size": chosen.n_basis, "error": error(chosen.mean(F_test))}
    found["ols"]["seconds"] = time.process_time() - start
    return found


def forward_to(F: Array, t: Array, size: int) -> float:
    """Evidence of the model of so many functions that forward selection ends at when it does not stop before."""

    def drive(search: Any) -> None:
        while search.size < size and search.add():
            pass

    path = bs.linear.search(F, t, drive).path
    return float(path[max(path)].value)


def narrow(split: Split, known: dict[str, Any], width: float) -> dict[str, float]:
    """Sizes, steps and error with one width for all inputs instead of those that the evidence prefers."""
    X, t, X_test, t_test = problem(split)
    fitted = bs.linear.fit_evidence(bs.RBFDictionary(X, np.array(known["widths"]), bias=False).design(X), t)
    dictionary = bs.RBFDictionary(X, width, bias=False)
    F, F_test = dictionary.design(X), dictionary.design(X_test)
    whole = bs.linear.fit_evidence(F, t)
    row = {"width of all inputs": width, "nats lost by all functions": fitted.log_evidence - whole.log_evidence}
    row["error of all functions"] = float(np.mean((whole.predict(F_test).mean - t_test) ** 2) / np.var(t_test))
    for name in ("pta(1,0)", "pta(2,1)", "sffs"):
        fit = bs.linear.search(F, t, name, within=0.0)
        row |= {name: fit.n_basis, f"{name}, steps": fit.n_added + fit.n_removed}
    return row
