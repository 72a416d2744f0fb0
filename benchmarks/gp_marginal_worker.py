"""One package evaluates a marginal likelihood and its gradient in a fresh process, by whatever interpreter has it.

``python -m benchmarks.gp_marginal_worker 'n = 1024, D = 8' 'scikit-learn' 3`` evaluates it again and again for three
seconds at θ = log(v0, w_1 … w_D, r²) = (0, −log D, −2), by turns with LAPACK's dpotrf and dpotri on Q, and prints the
best time of each, the value and the memory as JSON. Environment variable PEERS_PYTHON names an interpreter that has
the peers. Everybody keeps to the same processors, in double precision; compilation comes before the clock starts.
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

from benchmarks.memory import high_water, reset_high_water, resident

Array = np.ndarray[Any, np.dtype[np.float64]]
NOT_INSTALLED = 3
#: seconds by turns on one and on the other
TURN = 0.1


class Data(NamedTuple):
    """Inputs (n, D) and targets (n,)."""

    X: Array
    t: Array


def problem(name: str) -> Data:
    """Normal inputs, a smooth function of three of them and noise; the name is 'n = 1024, D = 8'."""
    n, m = (int(part.split("=")[1]) for part in name.split(","))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, m))
    return Data(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n))


def theta(m: int) -> Array:
    """Where everybody evaluates: log(v0, w_1 … w_m, r²)."""
    return np.concatenate([[0.0], np.full(m, -np.log(m)), [-2.0]])


# --- each function prepares an evaluation, outside the clock; what it returns gives the log likelihood


def ours(data: Data, family: str) -> Callable[[], float]:
    cov, gp = importlib.import_module("bayessel.covariance"), importlib.import_module("bayessel.gp")
    m = data.X.shape[1]
    if family == "Standard":
        covariance, at = cov.Standard(), cov.Standard().start(m)
    else:
        covariance = getattr(cov, family)() + cov.Noise()
        at = covariance.start(m)
    marginal = gp.Marginal(data.X, data.t, covariance)
    return lambda: float(marginal.value_and_gradient(at)[0])


def node(data: Data) -> Callable[[], float]:
    """The node of our PyMC models, called as samplers do: the prior comes with it."""
    cov, models = importlib.import_module("bayessel.covariance"), importlib.import_module("bayessel.models")
    covariance = cov.SquaredExponential() + cov.Noise()
    f = models.gp(data.X, data.t, covariance).logp_dlogp_function(ravel_inputs=True)._pytensor_function
    f.trust_input = True
    at, belief = theta(data.X.shape[1]), covariance.prior(data.X.shape[1]).log_density(theta(data.X.shape[1]))
    return lambda: float(f(at)[0]) - belief


def autodiff(data: Data) -> Callable[[], float]:
    """PyTensor differentiates its own Cholesky factor."""
    pytensor, pt = importlib.import_module("pytensor"), importlib.import_module("pytensor.tensor")
    n, m = data.X.shape
    X, t, at = pytensor.shared(data.X), pytensor.shared(data.t), pt.dvector()
    Z = X * pt.exp(0.5 * at[1:-1])
    squares = (Z**2).sum(axis=1)
    distance = pt.maximum(squares[:, None] + squares - 2.0 * Z @ Z.T, 0.0)
    Q = pt.exp(at[0] - 0.5 * distance) + pt.exp(at[-1]) * pt.eye(X.shape[0])
    L = pt.linalg.cholesky(Q)
    z = pt.linalg.solve_triangular(L, t, lower=True)
    value = -0.5 * (z**2).sum() - pt.log(pt.diag(L)).sum() - 0.5 * n * np.log(2.0 * np.pi)
    f = pytensor.function([at], [value, pytensor.grad(value, at)], mode="NUMBA", trust_input=True)
    begin = theta(m)
    return lambda: float(f(begin)[0])


def scikit_learn(data: Data) -> Callable[[], float]:
    kernels = importlib.import_module("sklearn.gaussian_process.kernels")
    regressor = importlib.import_module("sklearn.gaussian_process").GaussianProcessRegressor
    m = data.X.shape[1]
    kernel = kernels.ConstantKernel(1.0) * kernels.RBF(np.full(m, m**0.5)) + kernels.WhiteKernel(np.exp(-2.0))
    model = regressor(kernel, alpha=0.0, optimizer=None).fit(data.X, data.t)
    at = model.kernel_.theta
    return lambda: float(model.log_marginal_likelihood(at, eval_gradient=True, clone_kernel=False)[0])


def gpy(data: Data) -> Callable[[], float]:
    GPy = importlib.import_module("GPy")
    m = data.X.shape[1]
    kernel = GPy.kern.RBF(m, variance=1.0, lengthscale=np.full(m, m**0.5), ARD=True)
    model = GPy.models.GPRegression(data.X, data.t[:, None], kernel, noise_var=np.exp(-2.0))
    at = model.optimizer_array.copy()
    return lambda: -float(np.squeeze(model._objective_grads(at)[0]))


def gpytorch(data: Data) -> Callable[[], float]:
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

    likelihood = gpt.likelihoods.GaussianLikelihood(noise_constraint=gpt.constraints.GreaterThan(1e-10))
    model = Exact(likelihood)
    model.kernel.outputscale = 1.0
    model.kernel.base_kernel.lengthscale = np.sqrt(m)
    likelihood.noise = float(np.exp(-2.0))
    model.train(), likelihood.train()
    score = gpt.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def evaluate() -> float:
        with gpt.settings.fast_computations(False, False, False), gpt.settings.max_cholesky_size(10**6):
            model.zero_grad()
            loss = -score(model(X), t) * len(t)
            loss.backward()
        return -float(loss)

    return evaluate


def tinygp(data: Data) -> Callable[[], float]:
    jax, tiny = importlib.import_module("jax"), importlib.import_module("tinygp")
    jax.config.update("jax_enable_x64", True)
    X, t = jax.numpy.asarray(data.X), jax.numpy.asarray(data.t)

    def value(at: Any) -> Any:
        squared = tiny.kernels.ExpSquared(distance=tiny.kernels.distance.L2Distance())
        kernel = jax.numpy.exp(at[0]) * tiny.transforms.Linear(jax.numpy.exp(0.5 * at[1:-1]), squared)
        return tiny.GaussianProcess(kernel, X, diag=jax.numpy.exp(at[-1])).log_probability(t)

    both = jax.jit(jax.value_and_grad(value))
    begin = jax.numpy.asarray(theta(data.X.shape[1]))
    return lambda: float(jax.block_until_ready(both(begin))[0])


#: name -> the module it needs, and how it is called
ENTRANTS: dict[str, tuple[str, Callable[[Data], Callable[[], float]]]] = {
    "all terms of the thesis": ("bayessel", lambda data: ours(data, "Standard")),
    "squared exponential": ("bayessel", lambda data: ours(data, "SquaredExponential")),
    "Matérn 5/2": ("bayessel", lambda data: ours(data, "Matern52")),
    "in a PyMC model": ("bayessel", node),
    "PyTensor autodiff, numba": ("pytensor", autodiff),
    "scikit-learn": ("sklearn", scikit_learn),
    "GPy": ("GPy", gpy),
    "GPyTorch": ("gpytorch", gpytorch),
    "tinygp": ("tinygp", tinygp),
}
#: these are of another covariance: their value is not the others'
OF_ITS_OWN = ("all terms of the thesis", "Matérn 5/2")
#: these live in our interpreter
HERE = ("bayessel", "pytensor", "sklearn")


class Bare:
    """dpotrf and dpotri alone on Q, by the upper or the lower triangle; making Q is timed apart and taken off."""

    def __init__(self, data: Data) -> None:
        n, m = data.X.shape
        squares = (data.X**2).sum(axis=1)
        distance = squares[:, None] + squares - 2.0 * data.X @ data.X.T
        self.Q = np.asfortranarray(np.exp(-0.5 * np.maximum(distance, 0.0) / m) + np.exp(-2.0) * np.eye(n))
        self.room = self.Q.copy("F")
        self.lapack = importlib.import_module("scipy.linalg").lapack

    def copy(self) -> None:
        """Make Q."""
        np.copyto(self.room, self.Q)

    def both(self, lower: int) -> None:
        """Make Q, and its inverse."""
        self.copy()
        self.lapack.dpotrf(self.room, lower=lower, overwrite_a=1, clean=0)
        self.lapack.dpotri(self.room, lower=lower, overwrite_c=1)


def best(f: Callable[[], Any], found: float, seconds: float) -> float:
    """The shortest time seen, of `found` and of those measured now."""
    end = time.perf_counter() + seconds
    while True:
        began = time.perf_counter()
        f()
        now = time.perf_counter()
        found = min(found, now - began)
        if now > end:
            return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gp_marginal_worker", description=__doc__)
    parser.add_argument("case", help="such as 'n = 1024, D = 8'")
    parser.add_argument("name", choices=ENTRANTS)
    parser.add_argument("seconds", type=float, help="how long to measure")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):  # JAX and torch bring threads of their own, whatever BLAS is told
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[-int(os.environ.get("OMP_NUM_THREADS", "1")) :])
    module, entrant = ENTRANTS[args.name]
    try:
        importlib.import_module(module)
        entrant(problem("n = 20, D = 3"))()  # imports
    except ImportError as missing:
        print(json.dumps({"missing": f"{module}: {missing}"}))
        return NOT_INSTALLED
    data = problem(args.case)
    gc.collect()
    reset_high_water()
    before = resident()
    evaluate = entrant(data)
    value = evaluate()
    added = high_water() - before
    bare = Bare(data)
    mine, copy, floors = np.inf, np.inf, [np.inf, np.inf]
    end = time.perf_counter() + args.seconds
    while mine == np.inf or time.perf_counter() < end:
        mine = best(evaluate, mine, 2.0 * TURN)
        copy = best(bare.copy, copy, 0.2 * TURN)
        floors = [best(lambda lower=lower: bare.both(lower), floors[lower], TURN) for lower in (0, 1)]  # type: ignore[misc]
    print(json.dumps({"seconds": mine, "limit": min(floors) - copy, "value": value, "added": added}))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    raise SystemExit(main(sys.argv[1:]))
