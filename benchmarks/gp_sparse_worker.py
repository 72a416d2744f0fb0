"""One package and the variational bound with inducing inputs, in a fresh process, by whatever interpreter has it.

``python -m benchmarks.gp_sparse_worker 'friedman 10000 300' 'GPyTorch' evaluate out.npz`` times the bound with its
gradient by all hyperparameters and all inducing inputs; ``fit`` lets the package search as its tutorial does. θ is
log(v0, w_1 … w_D, r²) of v0 exp(−½ Σ w_i (x_i − x'_i)²) + r² δ. PEERS_PYTHON names an interpreter that has the peers,
BENCHMARK_DATA a folder with sparsegp/kin40k.npz.
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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gp_map_worker import Array, friedman, start
from benchmarks.memory import high_water, reset_high_water, resident

NOT_INSTALLED = 3
#: steps of a peer's search
STEPS = 100


class Data(NamedTuple):
    """Standardised training and test cases, and the number of inducing inputs."""

    X: Array
    t: Array
    X_test: Array
    t_test: Array
    M: int


class Found(NamedTuple):
    """A value of the bound, and where it was had."""

    value: float
    theta: Array
    Z: Array


class Entrant(NamedTuple):
    """How a package evaluates and how it fits: functions that prepare, and return what is timed."""

    module: str
    evaluate: Callable[[Data], Callable[[], Found]]
    fit: Callable[[Data], Callable[[], Found]]


def problem(name: str) -> Data:
    """Data by name, rows and inducing inputs, such as 'kin40k 10000 500'."""
    kind, n, M = name.split()
    rows = int(n)
    if kind == "kin40k":
        with np.load(Path(os.environ["BENCHMARK_DATA"]) / "sparsegp" / "kin40k.npz") as file:
            X, t = file["x_train"][:rows].astype(float), file["y_train"][:rows].astype(float)
            X_test, t_test = file["x_test"][:5000].astype(float), file["y_test"][:5000].astype(float)
    else:
        X, t = friedman(rows + 5000, np.random.default_rng(0))
        X, X_test, t, t_test = X[:rows], X[rows:], t[:rows], t[rows:]
    shift, scale, mean, std = X.mean(axis=0), X.std(axis=0), t.mean(), t.std()
    return Data((X - shift) / scale, (t - mean) / std, (X_test - shift) / scale, (t_test - mean) / std, int(M))


# --- each function prepares, outside the clock, and returns what is timed


def ours(data: Data) -> Callable[[], Found]:
    covariance = importlib.import_module("bayessel.covariance")
    sparse = importlib.import_module("bayessel.gp.inducing.bound")
    bound = sparse.InducingMarginal(data.X, data.t, covariance.SquaredExponential() + covariance.Noise())
    theta, Z = start(data.X.shape[1]), data.X[: data.M]
    return lambda: Found(bound.value_and_gradient(theta, Z)[0], theta, Z)


def ours_fit(data: Data) -> Callable[[], Found]:
    covariance, sparse = importlib.import_module("bayessel.covariance"), importlib.import_module("bayessel.gp.inducing")
    kernel = covariance.SquaredExponential() + covariance.Noise()

    def fit() -> Found:
        found = sparse.fit_inducing(
            data.X, data.t, kernel, n_inducing=data.M, prior=None, max_evaluations=STEPS, random_state=0
        )
        return Found(found.log_evidence, found.theta, found.inducing)

    return fit


def gpy_model(data: Data) -> Any:
    GPy = importlib.import_module("GPy")
    m = data.X.shape[1]
    kernel = GPy.kern.RBF(m, variance=1.0, lengthscale=np.full(m, m**0.5), ARD=True)
    model = GPy.models.SparseGPRegression(data.X, data.t[:, None], kernel, Z=data.X[: data.M].copy())
    model.likelihood.variance = np.exp(-2.0)
    return model


def read_gpy(model: Any) -> Found:
    lengths, noise = np.asarray(model.rbf.lengthscale), float(model.likelihood.variance[0])
    theta = np.concatenate([[np.log(float(model.rbf.variance[0]))], -2.0 * np.log(lengths), [np.log(noise)]])
    return Found(float(np.squeeze(model.log_likelihood())), theta, np.asarray(model.Z))


def gpy(data: Data) -> Callable[[], Found]:
    model = gpy_model(data)
    at, moved = model.optimizer_array.copy(), [0]

    def evaluate() -> Found:
        moved[0] += 1  # what it has seen before it does not compute again
        value, _ = model._objective_grads(at + 1e-12 * moved[0])
        return Found(-float(value), start(data.X.shape[1]), data.X[: data.M])

    return evaluate


def gpy_fit(data: Data) -> Callable[[], Found]:
    def fit() -> Found:
        model = gpy_model(data)
        model.optimize("lbfgsb", max_iters=STEPS)
        return read_gpy(model)

    return fit


class _Torch:
    """GPyTorch's SGPR, with Cholesky factors throughout."""

    def __init__(self, data: Data) -> None:
        torch, gpt = importlib.import_module("torch"), importlib.import_module("gpytorch")
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        torch.set_default_dtype(torch.float64)
        self.torch, self.gpt = torch, gpt
        self.X, self.t, m = torch.from_numpy(data.X), torch.from_numpy(data.t), data.X.shape[1]
        X, t, Z = self.X, self.t, torch.from_numpy(data.X[: data.M].copy())

        class Sparse(gpt.models.ExactGP):  # type: ignore[misc, name-defined]
            def __init__(self, likelihood: Any) -> None:
                super().__init__(X, t, likelihood)
                self.mean = gpt.means.ZeroMean()
                self.base = gpt.kernels.ScaleKernel(gpt.kernels.RBFKernel(ard_num_dims=m))
                self.kernel = gpt.kernels.InducingPointKernel(self.base, inducing_points=Z, likelihood=likelihood)

            def forward(self, x: Any) -> Any:
                return gpt.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

        self.likelihood = gpt.likelihoods.GaussianLikelihood(noise_constraint=gpt.constraints.GreaterThan(1e-10))
        self.model = Sparse(self.likelihood)
        self.model.base.outputscale = 1.0
        self.model.base.base_kernel.lengthscale = np.sqrt(m)
        self.likelihood.noise = float(np.exp(-2.0))
        self.model.train(), self.likelihood.train()
        self.score = gpt.mlls.ExactMarginalLogLikelihood(self.likelihood, self.model)

    def __call__(self) -> float:
        self.model.zero_grad()
        with self.gpt.settings.max_cholesky_size(10**6):
            loss = -self.score(self.model(self.X), self.t)
            loss.backward()
        return -float(loss) * len(self.t)

    def read(self, value: float) -> Found:
        lengths = self.model.base.base_kernel.lengthscale.detach().numpy().ravel()
        v0, r2 = float(self.model.base.outputscale), float(self.likelihood.noise)
        theta = np.concatenate([[np.log(v0)], -2.0 * np.log(lengths), [np.log(r2)]])
        return Found(value, theta, self.model.kernel.inducing_points.detach().numpy())


def gpytorch(data: Data) -> Callable[[], Found]:
    model = _Torch(data)
    return lambda: model.read(model())


def gpytorch_fit(data: Data) -> Callable[[], Found]:
    def fit() -> Found:
        model = _Torch(data)
        steps = model.torch.optim.Adam(model.model.parameters(), lr=0.1)
        value = np.nan
        for _ in range(STEPS):
            value = model()
            steps.step()
        return model.read(value)

    return fit


ENTRANTS = {
    "fit_inducing": Entrant("bayessel", ours, ours_fit),
    "GPy": Entrant("GPy", gpy, gpy_fit),
    "GPyTorch": Entrant("gpytorch", gpytorch, gpytorch_fit),
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gp_sparse_worker", description=__doc__)
    parser.add_argument("case", help="such as 'kin40k 10000 500'")
    parser.add_argument("name", choices=ENTRANTS)
    parser.add_argument("what", choices=("evaluate", "fit"))
    parser.add_argument("out", help="file for the result")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):  # torch brings threads of its own, whatever BLAS is told
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[-int(os.environ.get("OMP_NUM_THREADS", "1")) :])
    entrant = ENTRANTS[args.name]
    try:
        importlib.import_module(entrant.module)
        entrant.evaluate(problem("friedman 100 10"))()  # imports, warms up
    except ImportError as missing:
        print(json.dumps({"missing": f"{entrant.module}: {missing}"}))
        return NOT_INSTALLED
    run = (entrant.evaluate if args.what == "evaluate" else entrant.fit)(problem(args.case))
    gc.collect()
    reset_high_water()
    ready = resident()
    seconds: list[float] = []
    cpu: list[float] = []
    while not seconds or (args.what == "evaluate" and sum(seconds) < 2.0 and len(seconds) < 20):
        cpu_start, began = time.process_time(), time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_start)
    np.savez(args.out, value=found.value, theta=found.theta, Z=found.Z)
    print(json.dumps({"seconds": seconds, "cpu": cpu, "added": high_water() - ready, "python": sys.executable}))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    raise SystemExit(main(sys.argv[1:]))
