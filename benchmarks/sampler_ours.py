"""Our contestants: exact Gibbs steps on linear models, persistent momentum on the other densities."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pymc as pm

import bayessel as bs
from benchmarks.sampler_cases import RATE, SHAPE, Regression, Target
from benchmarks.sampler_pymc import QUIET, counted, declare, with_step
from benchmarks.sampler_run import Run, Setting, timed


def plain_model(problem: Regression) -> pm.Model:
    """The linear model as anybody would write it."""
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", SHAPE, RATE, shape=problem.precisions if problem.precisions > 1 else None)
        beta = pm.Gamma("beta", SHAPE, RATE)
        w = pm.Normal("w", 0.0, tau=alpha, shape=problem.Phi.shape[1])
        pm.Normal("t", pm.math.dot(pm.Data("Phi", problem.Phi), w), tau=beta, observed=pm.Data("t_data", problem.t))
    return model


def our_model(problem: Regression) -> pm.Model:
    """The same from `bayessel.models`."""
    priors = {"alpha_shape": SHAPE, "alpha_rate": RATE, "beta_shape": SHAPE, "beta_rate": RATE}
    if problem.precisions == 1:
        return bs.models.linear(problem.Phi, problem.t, **priors)
    return bs.models.rvm(problem.Phi, problem.t, **priors | {"alpha_rate": np.full(problem.precisions, RATE)})


def _draws(trace: Any) -> dict[str, Any]:
    posterior = trace["posterior"]
    alpha, beta, w = (posterior[name].transpose("chain", "draw", ...).values for name in ("alpha", "beta", "w"))
    return {"log_alpha": np.log(alpha), "log_beta": np.log(beta), "w": w}


def gibbs(problem: Regression, setting: Setting, model: str) -> Run:
    """`bayessel.sample(model)`: it finds the conjugate steps itself."""
    before = time.perf_counter()
    declared = our_model(problem) if model == "ours" else plain_model(problem)
    built = time.perf_counter() - before
    trace, seconds, cpu, first = timed(lambda now: _sample(declared, now), setting)
    return Run(_draws(trace), seconds, cpu, built + first, *counted(trace))


def gibbs_in_pymc(problem: Regression, setting: Setting) -> Run:
    """`pm.sample(step=bayessel.steps(model, split="conjugate"))` on the plain model."""
    before = time.perf_counter()
    with plain_model(problem) as model:
        steps = bs.steps(model, split="conjugate")
        built = time.perf_counter() - before

        def sample(now: Setting) -> Any:
            return pm.sample(now.draws, tune=now.tune, chains=now.chains, step=steps, random_seed=now.seed, **QUIET)

        trace, seconds, cpu, first = timed(sample, setting)
    return Run(_draws(trace), seconds, cpu, built + first, *counted(trace))


def persistent(target: Target, setting: Setting, **options: Any) -> Run:
    """`PersistentHMC` in `bayessel.sample`."""
    before = time.perf_counter()
    starts = [{"q": q} for q in setting.starts(target.size)]
    with declare(target) as model:
        step = bs.PersistentHMC(**options)
    built = time.perf_counter() - before

    def sample(now: Setting) -> Any:
        trace = _sample(model, now, step=step, initvals=starts)
        return trace, target.finish(trace["posterior"]["q"].values, np.random.default_rng(now.seed))

    (trace, draws), seconds, cpu, first = timed(sample, setting)
    return Run(draws, seconds, cpu, built + first, *counted(trace))


def persistent_in_pymc(target: Target, setting: Setting, **options: Any) -> Run:
    """`PersistentHMC` in PyMC's own loop."""
    return with_step(target, setting, lambda: bs.PersistentHMC(**options))


def process(target: Target, setting: Setting, mass: Any = "diag", **options: Any) -> Run:
    """`PersistentHMC` on `bayessel.models.gp`; with mass "laplace" it has the Hessian at the mode, and starts there.

    Finding the mode is part of the work and timed.
    """
    before = time.perf_counter()
    X, t = target.data["X"], target.data["t"]
    model = bs.models.gp(X, t)
    starts = [{"theta": theta} for theta in setting.starts(target.size)]
    step = None if mass == "laplace" else bs.PersistentHMC(model=model, mass=mass, **options)
    built = time.perf_counter() - before

    def sample(now: Setting) -> Any:
        moves, begin = step, starts
        if moves is None:
            fit = bs.gp.fit_map(X, t)
            moves = bs.PersistentHMC(model=model, mass=fit.hessian, **options)
            begin = [{"theta": fit.theta}] * now.chains
        return _sample(model, now, step=moves, initvals=begin)

    trace, seconds, cpu, first = timed(sample, setting)
    return Run({"theta": trace["posterior"]["theta"].values}, seconds, cpu, built + first, *counted(trace))


def nuts_on_process(target: Target, setting: Setting) -> Run:
    """PyMC's NUTS on `bayessel.models.gp`: what the fused gradient alone is worth."""
    before = time.perf_counter()
    starts = [{"theta": theta} for theta in setting.starts(target.size)]
    with bs.models.gp(target.data["X"], target.data["t"]):
        step = pm.NUTS()
        built = time.perf_counter() - before

        def sample(now: Setting) -> Any:
            options: dict[str, Any] = {"chains": now.chains, "step": step, "initvals": starts, "random_seed": now.seed}
            return pm.sample(now.draws, tune=now.tune, **options, **QUIET)

        trace, seconds, cpu, first = timed(sample, setting)
    return Run({"theta": trace["posterior"]["theta"].values}, seconds, cpu, built + first, *counted(trace))


def network(target: Target, setting: Setting, nuts: bool = False, **options: Any) -> Run:
    """`bayessel.sample` on `bayessel.models.mlp`; with `nuts` PyMC's NUTS there, which has the fused gradient alone."""
    from benchmarks.network_cases import HIDDEN

    before = time.perf_counter()
    model = bs.models.mlp(target.data["X"], target.data["t"], hidden=HIDDEN)
    with model:
        step = pm.NUTS() if nuts else bs.steps(model, **options)
    built = time.perf_counter() - before

    def sample(now: Setting) -> Any:
        if not nuts:
            return _sample(model, now, step=step)
        with model:
            return pm.sample(now.draws, tune=now.tune, chains=now.chains, step=step, random_seed=now.seed, **QUIET)

    trace, seconds, cpu, first = timed(sample, setting)
    posterior = trace["posterior"]
    lead = (setting.chains, setting.draws)
    names = ("hidden_bias", "input_hidden", "bias", "hidden_output", "input_output")
    weights = np.concatenate([posterior[name].values.reshape((*lead, -1)) for name in names], axis=-1)
    draws = {"weights": weights, "log_noise": np.log(posterior["tau_noise"].values.reshape(lead))}
    return Run(draws, seconds, cpu, built + first, *counted(trace))


def _sample(model: pm.Model, now: Setting, **options: Any) -> Any:
    return bs.sample(
        model,
        now.draws,
        tune=now.tune,
        chains=now.chains,
        random_seed=now.seed,
        cores=1,
        progressbar=False,
        log_likelihood=False,
        **options,
    )
