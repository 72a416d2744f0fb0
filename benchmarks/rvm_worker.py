"""One contestant on one problem in a fresh process, by whatever interpreter has it installed.

``python -m benchmarks.rvm_worker 'friedman 1000' 'fastrvm' out.npz`` fits, writes the columns, their precisions and
the noise's, and prints seconds and memory as JSON. Peers may need an interpreter of their own: environment variable
PEERS_PYTHON names one (``pip install -e '.[bench]'`` puts those of the package index into this one).
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.memory import high_water, reset_high_water, resident
from benchmarks.rvm_cases import Array, Data, friedman, problem

NOT_INSTALLED = 3

Fit = Callable[[Data, "Array | None"], Any]
#: columns of the dictionary in use, their weights' precisions, the noise precision
Reading = tuple[Any, Any, float]


@dataclass(frozen=True)
class Entrant:
    """How a package is called, and how its columns and precisions are read.

    `module` must be importable; `from_inputs`: makes its own dictionary from the inputs, so none is handed to it.
    """

    module: str
    fit: Fit
    read: Callable[[Any, Data, Array | None], Reading]
    from_inputs: bool = False


# --- fastrvm: a compiled core; weights' precisions come out divided by |phi|^2 where they should be multiplied


def fastrvm(data: Data, Phi: Array | None, additions: bool = False, deletions: bool = True) -> Any:
    core = importlib.import_module("fastrvm._sparsebayes_bindings")
    machine = core.SparseBayes(
        core.Likelihood.Gaussian, 10_000, prioritize_addition=additions, prioritize_deletion=deletions
    )
    return machine.inference(Phi, data.t)


def read_fastrvm(found: Any, data: Data, Phi: Array | None) -> Reading:
    basis = found["relevant_idx"].ravel()
    return basis, found["alpha"].ravel() * (data.design(basis) ** 2).sum(axis=0) ** 2, found["beta"]


def fastrvm_class(data: Data, Phi: Array | None) -> Any:
    rvr = importlib.import_module("fastrvm").RVR
    return rvr(kernel="rbf", gamma=data.width**-2, fit_intercept=True).fit(data.X, data.t)


def read_fastrvm_class(found: Any, data: Data, Phi: Array | None) -> Reading:
    alpha = found.alpha_.ravel() * (data.design(found.relevance_) ** 2).sum(axis=0) ** 2
    flat = np.finfo(float).eps * len(data.t)  # the bias is kept for good, at this precision
    return np.append(found.relevance_, len(data.centers)), np.append(alpha, flat), found.beta_


# --- scikit-rvm and sklearn-rvm: re-estimation of all precisions from the full model


def skrvm(data: Data, Phi: Array | None) -> Any:
    assert Phi is not None
    rvr = importlib.import_module("skrvm").RVR
    return rvr(kernel=lambda X, Y: Phi[:, :-1], bias_used=True).fit(data.X, data.t)


def read_skrvm(found: Any, data: Data, Phi: Array | None) -> Reading:
    assert Phi is not None
    place = {column.tobytes(): j for j, column in enumerate(np.ascontiguousarray(Phi.T))}
    basis = [place[column.tobytes()] for column in np.ascontiguousarray(found.phi.T)]
    return basis, found.alpha_, found.beta_


def sklearn_rvm(data: Data, Phi: Array | None) -> Any:
    assert Phi is not None
    machine = importlib.import_module("sklearn_rvm").EMRVR(kernel="precomputed", gamma="scale", bias_used=True)
    machine.fit(Phi[:, :-1], data.t)  # gives back None
    return machine


def read_sklearn_rvm(found: Any, data: Data, Phi: Array | None) -> Reading:
    biased = int(found.bias_used)  # whether the bias, its first column, survived; kernels were divided by _scale
    alpha = found.alpha_[biased:] * found._scale**2
    if not biased:
        return found.relevance_, alpha, found.beta_
    return np.append(found.relevance_, len(data.centers)), np.append(alpha, found.alpha_[0]), found.beta_


def ard(data: Data, Phi: Array | None) -> Any:
    tiny = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 1e-12)
    return importlib.import_module("sklearn.linear_model").ARDRegression(fit_intercept=False, **tiny).fit(Phi, data.t)


def read_ard(found: Any, data: Data, Phi: Array | None) -> Reading:
    basis = np.flatnonzero(found.coef_)
    return basis, found.lambda_[basis], found.alpha_


# --- ours


def fit_rvm(data: Data, Phi: Array | None, **options: Any) -> Any:
    return importlib.import_module("bayessel").linear.fit_rvm(Phi, data.t, **options)


def read_fit(found: Any, data: Data, Phi: Array | None) -> Reading:
    return found.basis, found.alpha, found.beta


def on_the_fly(data: Data, Phi: Array | None) -> Any:
    bs, basis = importlib.import_module("bayessel"), importlib.import_module("bayessel.basis")
    return bs.linear.fit_rvm(basis.LazyDesign(bs.RBFDictionary(data.centers, data.width), data.X), data.t)


def single_precision(data: Data, Phi: Array | None) -> Any:
    stored = np.empty((len(data.X), len(data.centers) + 1), dtype=np.float32, order="F")
    for start in range(0, stored.shape[1], 256):
        stored[:, start : start + 256] = data.design(np.arange(start, min(start + 256, stored.shape[1])))
    return importlib.import_module("bayessel").linear.fit_rvm(stored, data.t)


def regressor(data: Data, Phi: Array | None) -> Any:
    return importlib.import_module("bayessel").RVMRegressor(width=data.width).fit(data.X, data.t)


ENTRANTS = {
    "fit_rvm": Entrant("bayessel", fit_rvm, read_fit),
    "fit_rvm(init='greedy')": Entrant("bayessel", partial(fit_rvm, init="greedy"), read_fit),
    "fit_rvm, columns on the fly": Entrant("bayessel", on_the_fly, read_fit, True),
    "fit_rvm, float32": Entrant("bayessel", single_precision, read_fit, True),
    "RVMRegressor": Entrant("bayessel", regressor, lambda found, *rest: read_fit(found.fit_, *rest), True),
    "fastrvm": Entrant("fastrvm", fastrvm, read_fastrvm),
    "fastrvm, additions first": Entrant("fastrvm", partial(fastrvm, additions=True), read_fastrvm),
    "fastrvm, deletions not first": Entrant("fastrvm", partial(fastrvm, deletions=False), read_fastrvm),
    "fastrvm, both": Entrant("fastrvm", partial(fastrvm, additions=True, deletions=False), read_fastrvm),
    "fastrvm.RVR": Entrant("fastrvm", fastrvm_class, read_fastrvm_class, True),
    "scikit-rvm": Entrant("skrvm", skrvm, read_skrvm),
    "sklearn-rvm": Entrant("sklearn_rvm", sklearn_rvm, read_sklearn_rvm),
    "ARDRegression": Entrant("sklearn", ard, read_ard),
}


def limit(seconds: float) -> None:
    """Have this process ended by SIGXCPU after so many seconds of processor; 0, or a system without: never."""
    if seconds:
        with suppress(ImportError):
            resource = importlib.import_module("resource")
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rvm_worker", description=__doc__)
    parser.add_argument("case", help="such as 'friedman 1000'")
    parser.add_argument("name", choices=ENTRANTS)
    parser.add_argument("out", help="file for the model")
    parser.add_argument("enough", nargs="?", type=float, default=0.5, help="repeat until so many seconds are measured")
    parser.add_argument("most", nargs="?", type=float, default=0.0, help="seconds of processor after which to stop")
    args = parser.parse_args(argv)
    case, name, out = args.case, args.name, args.out
    limit(args.most)
    entrant = ENTRANTS[name]
    warnings.simplefilter("ignore")
    try:
        importlib.import_module(entrant.module)
    except ImportError as problem_:
        print(json.dumps({"missing": f"{entrant.module}: {problem_}"}))
        return NOT_INSTALLED
    small = friedman(60)
    entrant.fit(small, None if entrant.from_inputs else small.design())  # imports, compiles, warms up
    gc.collect()
    imported = resident()
    reset_high_water()
    data = problem(case)
    Phi = None if entrant.from_inputs else data.design()
    ready = resident()
    seconds: list[float] = []
    cpu: list[float] = []
    while not seconds or (sum(seconds) < args.enough and len(seconds) < 20):
        found = None  # its memory is free before the next result is made
        gc.collect()
        cpu_start, start = time.process_time(), time.perf_counter()
        found = entrant.fit(data, Phi)
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    peak = high_water()
    basis, alpha, beta = entrant.read(found, data, Phi)
    inner = getattr(found, "fit_", found)
    said = getattr(inner, "log_evidence", np.nan)
    np.savez(out, basis=np.asarray(basis, dtype=int), alpha=np.asarray(alpha, dtype=float), beta=float(beta), said=said)
    memory = {"added": peak - ready, "over_import": peak - imported}
    status = str(getattr(inner, "status", ""))
    cpu = [sum(cpu) / len(cpu)] * len(cpu)  # some systems count in ticks longer than one small fit: only sums are right
    print(json.dumps({"seconds": seconds, "cpu": cpu, "status": status, "python": sys.executable} | memory))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    raise SystemExit(main(sys.argv[1:]))
