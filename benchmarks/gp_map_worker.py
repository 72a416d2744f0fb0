"""One package fits the hyperparameters of a Gaussian process in a fresh process, by whatever interpreter has it.

``python -m benchmarks.gp_map_worker 'friedman 1024' 'scikit-learn' out.npz`` maximises the likelihood of v0 exp(−½ Σ
w_i (x_i − x'_i)²) + r² δ from v0 = 1, w_i = 1/D, r² = e^−2, and writes θ = log(v0, w_1 … w_D, r²). Environment variable
PEERS_PYTHON names an interpreter that has the peers. Everybody keeps to the same processors, in double precision; what
is compiled for a number of rows is compiled before the clock starts.
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
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
NOT_INSTALLED = 3


class Data(NamedTuple):
    """Standardised inputs (n, D) and targets (n,)."""

    X: Array
    t: Array


class Found(NamedTuple):
    """Where a package ended: θ, and how often it evaluated the likelihood."""

    theta: Array
    evaluations: int


def friedman(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Friedman's first function of eight uniform inputs, of which five matter, noise 1."""
    X = rng.uniform(size=(n, 8))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + rng.standard_normal(n)


def drawn(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A function drawn from the model itself: lengths between 1 and 20, noise a fifth of its spread."""
    X = rng.standard_normal((n, 8))
    Z = X * np.exp(-rng.uniform(0.0, 3.0, 8))
    squares = (Z**2).sum(axis=1)
    K = np.exp(-0.5 * np.maximum(squares[:, None] + squares - 2.0 * Z @ Z.T, 0.0)) + 0.04 * np.eye(n)
    return X, np.linalg.cholesky(K) @ rng.standard_normal(n)


def problem(name: str) -> Data:
    """Data by name and number of rows, such as 'friedman 1024'."""
    kind, n = name.split()
    X, t = {"friedman": friedman, "drawn": drawn}[kind](int(n), np.random.default_rng(0))
    return Data((X - X.mean(axis=0)) / X.std(axis=0), (t - t.mean()) / t.std())


def start(m: int) -> Array:
    """The start of everybody: log(v0, w_1 … w_m, r²)."""
    return np.concatenate([[0.0], np.full(m, -np.log(m)), [-2.0]])


def by_scipy(value_and_gradient: Callable[[Array], tuple[float, Array]], begin: Array) -> Found:
    """SciPy's L-BFGS-B as it comes, for packages that leave the choice."""
    minimise = importlib.import_module("scipy.optimize").minimize
    found = minimise(value_and_gradient, begin, jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return Found(np.asarray(found.x), int(found.nfev))


# --- each function prepares a fit, outside the clock, and returns what is timed


def ours(data: Data, starts: int = 1) -> Callable[[], Found]:
    covariance, gp = importlib.import_module("bayessel.covariance"), importlib.import_module("bayessel.gp")
    kernel = covariance.SquaredExponential() + covariance.Noise()

    def fit() -> Found:
        found = gp.fit_map(data.X, data.t, kernel, prior=None, starts=starts)
        return Found(found.theta, found.n_evaluations)

    return fit


def ours_by_scipy(data: Data) -> Callable[[], Found]:
    covariance, gp = importlib.import_module("bayessel.covariance"), importlib.import_module("bayessel.gp")
    kernel = covariance.SquaredExponential() + covariance.Noise()

    def fit() -> Found:
        marginal = gp.Marginal(data.X, data.t, kernel)

        def uphill(theta: Array) -> tuple[float, Array]:
            value, gradient = marginal.value_and_gradient(theta)
            return -value, -gradient

        return by_scipy(uphill, start(data.X.shape[1]))

    return fit


def scikit_learn(data: Data) -> Callable[[], Found]:
    kernels = importlib.import_module("sklearn.gaussian_process.kernels")
    regressor = importlib.import_module("sklearn.gaussian_process").GaussianProcessRegressor
    optimise = importlib.import_module("scipy.optimize").minimize
    m = data.X.shape[1]
    wide = (1e-10, 1e10)
    kernel = kernels.ConstantKernel(1.0, wide) * kernels.RBF(np.full(m, m**0.5), wide)
    kernel = kernel + kernels.WhiteKernel(np.exp(-2.0), wide)
    evaluations = [0]

    def default(objective: Any, begin: Array, bounds: Any) -> tuple[Array, float]:
        # its own default, with the evaluations counted
        found = optimise(objective, begin, jac=True, method="L-BFGS-B", bounds=bounds)
        evaluations[0] = int(found.nfev)
        return found.x, found.fun

    def fit() -> Found:
        theta = regressor(kernel, alpha=0.0, optimizer=default).fit(data.X, data.t).kernel_.theta
        return Found(np.concatenate([theta[:1], -2.0 * theta[1:-1], theta[-1:]]), evaluations[0])

    return fit


def gpy(data: Data) -> Callable[[], Found]:
    GPy = importlib.import_module("GPy")
    m = data.X.shape[1]

    def fit() -> Found:
        kernel = GPy.kern.RBF(m, variance=1.0, lengthscale=np.full(m, m**0.5), ARD=True)
        model = GPy.models.GPRegression(data.X, data.t[:, None], kernel, noise_var=np.exp(-2.0))
        found = model.optimize("lbfgsb", max_iters=1000)
        found = found if found is not None else model.optimization_runs[-1]
        lengths, noise = np.asarray(model.rbf.lengthscale), float(model.likelihood.variance[0])
        theta = np.concatenate([[np.log(float(model.rbf.variance[0]))], -2.0 * np.log(lengths), [np.log(noise)]])
        return Found(theta, int(getattr(found, "funct_eval", -1) or -1))

    return fit


def gpytorch(data: Data) -> Callable[[], Found]:
    torch, gpt = importlib.import_module("torch"), importlib.import_module("gpytorch")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.set_default_dtype(torch.float64)
    X, t, m = torch.from_numpy(data.X), torch.from_numpy(data.t), data.X.shape[1]

    class Exact(gpt.models.ExactGP):  # type: ignore[misc, name-defined]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(X, t, likelihood)
            self.mean = gpt.means.ZeroMean()
            self.kernel = gpt.kernels.ScaleKernel(gpt.kernels.RBFKernel(ard_num_dims=m))

        def forward(self, x: Any) -> Any:
            return gpt.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    def fit() -> Found:
        noise = gpt.constraints.GreaterThan(1e-10)
        likelihood = gpt.likelihoods.GaussianLikelihood(noise_constraint=noise)
        model = Exact(likelihood)
        model.kernel.outputscale = 1.0
        model.kernel.base_kernel.lengthscale = np.sqrt(m)
        likelihood.noise = float(np.exp(-2.0))
        model.train(), likelihood.train()
        score = gpt.mlls.ExactMarginalLogLikelihood(likelihood, model)
        parts = list(model.parameters())
        exact = (
            gpt.settings.fast_computations(False, False, False),
            gpt.settings.max_cholesky_size(10**6),
        )

        def downhill(z: Array) -> tuple[float, Array]:
            at = 0
            with torch.no_grad():
                for part in parts:
                    part.copy_(torch.from_numpy(z[at : at + part.numel()]).reshape(part.shape))
                    at += part.numel()
            model.zero_grad()
            loss = -score(model(X), t) * len(t)
            loss.backward()
            return float(loss), np.concatenate([part.grad.numpy().ravel() for part in parts])

        begin = np.concatenate([part.detach().numpy().ravel() for part in parts])
        with exact[0], exact[1]:
            found = by_scipy(downhill, begin)
            downhill(found.theta)
        lengths = model.kernel.base_kernel.lengthscale.detach().numpy().ravel()
        v0, r2 = float(model.kernel.outputscale), float(likelihood.noise)
        return Found(np.concatenate([[np.log(v0)], -2.0 * np.log(lengths), [np.log(r2)]]), found.evaluations)

    return fit


def tinygp(data: Data) -> Callable[[], Found]:
    jax, tiny = importlib.import_module("jax"), importlib.import_module("tinygp")
    jax.config.update("jax_enable_x64", True)
    X, t = jax.numpy.asarray(data.X), jax.numpy.asarray(data.t)

    def downhill(theta: Any) -> Any:
        scales = jax.numpy.exp(-0.5 * theta[1:-1])
        squared = tiny.kernels.ExpSquared(distance=tiny.kernels.distance.L2Distance())
        kernel = jax.numpy.exp(theta[0]) * tiny.transforms.Linear(1.0 / scales, squared)
        return -tiny.GaussianProcess(kernel, X, diag=jax.numpy.exp(theta[-1])).log_probability(t)

    both = jax.jit(jax.value_and_grad(downhill))
    jax.block_until_ready(both(start(data.X.shape[1])))

    def evaluate(theta: Array) -> tuple[float, Array]:
        value, gradient = both(theta)
        return float(value), np.asarray(gradient, dtype=np.float64)

    return lambda: by_scipy(evaluate, start(data.X.shape[1]))


#: name -> the module it needs, and how it is called
ENTRANTS: dict[str, tuple[str, Callable[[Data], Callable[[], Found]]]] = {
    "fit_map": ("bayessel", ours),
    "fit_map, 3 starts": ("bayessel", lambda data: ours(data, 3)),
    "our likelihood, L-BFGS-B": ("bayessel", ours_by_scipy),
    "scikit-learn": ("sklearn", scikit_learn),
    "GPy": ("GPy", gpy),
    "GPyTorch": ("gpytorch", gpytorch),
    "tinygp": ("tinygp", tinygp),
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gp_map_worker", description=__doc__)
    parser.add_argument("case", help="such as 'friedman 1024'")
    parser.add_argument("name", choices=ENTRANTS)
    parser.add_argument("out", help="file for the result")
    parser.add_argument("enough", nargs="?", type=float, default=0.5, help="repeat until so many seconds are measured")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):  # JAX and torch bring threads of their own, whatever BLAS is told
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[-int(os.environ.get("OMP_NUM_THREADS", "1")) :])
    module, entrant = ENTRANTS[args.name]
    try:
        importlib.import_module(module)
        entrant(problem("friedman 40"))()  # imports, warms up
    except ImportError as missing:
        print(json.dumps({"missing": f"{module}: {missing}"}))
        return NOT_INSTALLED
    fit = entrant(problem(args.case))
    seconds: list[float] = []
    cpu: list[float] = []
    while not seconds or (sum(seconds) < args.enough and len(seconds) < 20):
        gc.collect()
        cpu_start, began = time.process_time(), time.perf_counter()
        found = fit()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_start)
    np.savez(args.out, theta=found.theta, evaluations=found.evaluations)
    cpu = [sum(cpu) / len(cpu)] * len(cpu)
    print(json.dumps({"seconds": seconds, "cpu": cpu, "python": sys.executable}))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    raise SystemExit(main(sys.argv[1:]))
