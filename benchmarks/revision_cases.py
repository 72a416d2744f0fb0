"""Calls that two revisions of the packages both know, each timed in a process that imports one of them.

A case makes its data and returns the call; the call returns the value that must not change. Names that changed between
revisions are looked up under both.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.rvm_cases import friedman, problem

Call = Callable[[], float]


def either(owner: Any, *names: str) -> Any:
    """Return the first attribute of these names."""
    return next(getattr(owner, name) for name in names if hasattr(owner, name))


def evidence(fit: Any) -> float:
    """Return the log evidence of a fit, under the contract or before it."""
    found = getattr(fit, "evidence", None)
    if found is not None and not callable(found):
        return float(found.value)
    return float(either(fit, "log_evidence", "log_evidence_", "bound"))


@cache
def normal(n: int, m: int) -> tuple[Any, Any]:
    """Independent normal columns, weights of size 0.1, noise 1."""
    rng = np.random.default_rng([1, n, m])
    Phi = rng.normal(size=(n, m))
    return Phi, Phi @ (0.1 * rng.normal(size=m)) + rng.normal(size=n)


def fit_evidence(n: int, m: int) -> Call:
    import bayessel as bs

    data = normal(n, m)
    return lambda: evidence(bs.linear.fit_evidence(*data))


def fit_ridge(n: int, m: int, criterion: str) -> Call:
    import bayessel as bs

    Phi, t = normal(n, m)
    return lambda: float(np.sum(bs.linear.fit_ridge(Phi, t, criterion=criterion).coef))


def stream(n: int, m: int) -> Call:
    import bayessel as bs

    Phi, t = normal(n, m)
    return lambda: evidence(bs.linear.fit_evidence_stream([(Phi[i::10], t[i::10]) for i in range(10)]))


def fit_rvm(name: str) -> Call:
    import bayessel as bs

    data = problem(name)
    Phi = data.design()
    return lambda: evidence(bs.linear.fit_rvm(Phi, data.t))


def search(n: int, strategy: str) -> Call:
    import bayessel as bs

    data = problem(f"friedman {n}")
    Phi = data.design()[:, :-1]
    t = data.t - data.t.mean()
    return lambda: evidence(bs.linear.search(Phi, t, strategy=strategy))


def forward(n: int) -> Call:
    import bayessel as bs

    data = problem(f"friedman {n}")
    Phi = data.design()[:, :-1]
    t = data.t - data.t.mean()
    return lambda: float(bs.linear.forward_select(Phi, t).noise_std)


def loomi(n: int) -> Call:
    import bayessel as bs

    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    labels = np.where(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=n) > 0.8, 1.0, -1.0)
    Phi = bs.RBFDictionary(X, 2.0, bias=False).design(X)
    return lambda: float(bs.linear.fit_loomi(Phi, labels).basis.sum())


def widths_by_evidence(n: int) -> Call:
    import bayessel as bs

    data = friedman(n)
    X = data.X[:, :3].copy()
    return lambda: evidence(bs.linear.fit_abf(X, data.t, n_starts=1))


def fit_map(n: int) -> Call:
    import bayessel as bs

    data = friedman(n)
    X, t = data.X - data.X.mean(0), (data.t - data.t.mean()) / data.t.std()
    return lambda: float(bs.gp.fit_map(X, t, starts=1).log_posterior)


def marginal(n: int) -> Call:
    import bayessel as bs

    data = friedman(n)
    theta = np.r_[0.0, -2.0, np.full(8, -2.0), -1.0, -1.0]
    t = data.t - data.t.mean()
    return lambda: float(bs.gp.log_marginal(theta, data.X, t, return_grad=True)[0])


def inducing(n: int) -> Call:
    import bayessel as bs

    data = friedman(n)
    X, t = data.X - data.X.mean(0), (data.t - data.t.mean()) / data.t.std()
    fit = either(bs.gp, "fit_inducing", "fit_sparse")
    return lambda: evidence(fit(X, t, n_inducing=100, max_evaluations=40))


def estimator(name: str, n: int, **options: Any) -> Call:
    import bayessel as bs

    data = friedman(n)
    made = getattr(bs, name)
    return lambda: float(np.mean(made(**options).fit(data.X, data.t).predict(data.X[:50])))


def sampled(kind: str) -> Call:
    import bayessel as bs

    data = problem("sinc 60")
    Phi, t = data.design(), data.t - data.t.mean()
    if kind == "gp":
        model = bs.models.gp(data.X / 10, t / t.std())
    elif kind == "mlp":
        model = bs.models.mlp(data.X / 10, t / t.std(), hidden=4)
    else:
        model = getattr(bs.models, kind)(Phi, t)
    run = {"draws": 150, "tune": 150, "chains": 1, "cores": 1, "random_seed": 1, "progressbar": False}

    def call() -> float:
        posterior = bs.sample(model, **run).posterior
        return float(sum(posterior[name].mean() for name in posterior.data_vars))

    return call


def compare_widths(model: str, n: int) -> Call:
    import bayessel as bs

    rng = np.random.default_rng(5)
    x = np.linspace(-3, 3, n)
    y = np.cos(x**2) + 0.1 * rng.normal(size=n)
    grid = np.geomspace(0.1, 3, 15)
    return lambda: float(
        bs.compare_widths(x, y, grid, model=model, criteria=["evidence"], progressbar=False).table["evidence"].sum()
    )


CASES: dict[str, Callable[[], Call]] = {
    "evidence 2000 x 500": lambda: fit_evidence(2000, 500),
    "evidence 200 x 50": lambda: fit_evidence(200, 50),
    "evidence 50 x 200": lambda: fit_evidence(50, 200),
    "evidence 20000 x 100": lambda: fit_evidence(20000, 100),
    "ridge 2000 x 300 gcv": lambda: fit_ridge(2000, 300, "gcv"),
    "ridge 300 x 600 loo": lambda: fit_ridge(300, 600, "loo"),
    "stream 20000 x 50": lambda: stream(20000, 50),
    "rvm sinc 200": lambda: fit_rvm("sinc 200"),
    "rvm sinc 1000": lambda: fit_rvm("sinc 1000"),
    "rvm friedman 500": lambda: fit_rvm("friedman 500"),
    "rvm chirp": lambda: fit_rvm("chirp -0.8 3"),
    "search pta(1,0) 500": lambda: search(500, "pta(1,0)"),
    "search sffs 300": lambda: search(300, "sffs"),
    "search oscil(5) 300": lambda: search(300, "oscil(5)"),
    "forward 1000": lambda: forward(1000),
    "loomi 400": lambda: loomi(400),
    "widths by the evidence 150": lambda: widths_by_evidence(150),
    "gp fit_map 256": lambda: fit_map(256),
    "gp log_marginal 1000": lambda: marginal(1000),
    "gp inducing 1500": lambda: inducing(1500),
    "EvidenceRegressor(width=1.5) 400": lambda: estimator("EvidenceRegressor", 400, width=1.5),
    "RVMRegressor(width=1.5) 300": lambda: estimator("RVMRegressor", 300, width=1.5),
    "RVMRegressor(width='fit') 100": lambda: estimator("RVMRegressor", 100, width="fit"),
    "BasisSearchRegressor(width=1.5) 300": lambda: estimator("BasisSearchRegressor", 300, width=1.5),
    "RidgeRBFRegressor(width=1.5) 300": lambda: estimator("RidgeRBFRegressor", 300, width=1.5),
    "MLPRegressor(evidence) 100": lambda: estimator(
        "MLPRegressor", 100, hidden=3, inference="evidence", random_state=0
    ),
    "sample linear": lambda: sampled("linear"),
    "sample rvm": lambda: sampled("rvm"),
    "sample gp": lambda: sampled("gp"),
    "sample mlp": lambda: sampled("mlp"),
    "compare_widths evidence 150": lambda: compare_widths("evidence", 150),
    "compare_widths rvm 150": lambda: compare_widths("rvm", 150),
}


def main(packages: str) -> int:
    """Answer each line on standard input, a case's name, by a line of JSON: seconds of processor, value, trouble."""
    import bayessel

    assert bayessel.__file__ is not None and bayessel.__file__.startswith(packages), bayessel.__file__
    made: dict[str, Call] = {}
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        name = line.strip()
        try:
            call = made.get(name) or made.setdefault(name, CASES[name]())
            start = time.process_time()
            value = call()
            answer: dict[str, Any] = {"seconds": time.process_time() - start, "value": value}
        except Exception as error:  # reported beside the case: a revision may lack what it calls
            answer = {"trouble": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
