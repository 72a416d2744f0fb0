"""Our contestants: exact Gibbs steps on linear models, persistent momentum on the other densities."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pymc as pm

import bayessel as bs
from benchmarks.sampler_cases import RATE, SHAPE, Regression, Target
from benchmarks.sampler_pymc import QUIET, declare, with_step
from benchmarks.sampler_run import Run, Setting


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


def _counted(trace: Any) -> tuple[int | None, int]:
    stats = trace["sample_stats"]
    gradients = int(stats["n_steps"].sum()) if "n_steps" in stats else None
    return gradients, int(stats["diverging"].sum()) if "diverging" in stats else 0


def _sample(
    model: pm.Model, setting: Setting, step: Any = None, starts: list[dict[str, Any]] | None = None
) -> tuple[Any, float, float, float]:
    """`bayessel.sample`: (trace, seconds, processor, compiling); all of the call counts except what it compiled."""
    before = time.perf_counter()
    common: dict[str, Any] = {"cores": 1, "progressbar": False, "log_likelihood": False, "step": step}
    bs.sample(model, 2, tune=2, chains=1, random_seed=0, initvals=starts and starts[:1], **common)
    ready, cpu = time.perf_counter(), time.process_time()
    trace = bs.sample(
        model,
        setting.draws,
        tune=setting.tune,
        chains=setting.chains,
        random_seed=setting.seed,
        initvals=starts,
        **common,
    )
    whole, cpu = time.perf_counter() - ready, time.process_time() - cpu
    again = float(trace.attrs["compile_time"])
    return trace, whole - again, cpu * (1.0 - again / whole), ready - before


def gibbs(problem: Regression, setting: Setting, model: str) -> Run:
    """`bayessel.sample(model)`: it finds the conjugate steps itself."""
    trace, *times = _sample(our_model(problem) if model == "ours" else plain_model(problem), setting)
    return Run(_draws(trace), *times, *_counted(trace))


def gibbs_in_pymc(problem: Regression, setting: Setting) -> Run:
    """`pm.sample(step=bayessel.steps(model))` on the plain model."""
    before = time.perf_counter()
    with plain_model(problem) as model:
        steps = bs.steps(model)
        pm.sample(2, tune=2, chains=1, step=steps, random_seed=0, **QUIET)
        ready, cpu = time.perf_counter(), time.process_time()
        trace = pm.sample(
            setting.draws,
            tune=setting.tune,
            chains=setting.chains,
            step=steps,
            random_seed=setting.seed,
            **QUIET,
        )
    whole, cpu = time.perf_counter() - ready, time.process_time() - cpu
    sampling = float(trace["posterior"].attrs["sampling_time"])
    return Run(_draws(trace), sampling, cpu * sampling / whole, ready - before, *_counted(trace))


def persistent(target: Target, setting: Setting, **options: Any) -> Run:
    """`PersistentHMC` in `bayessel.sample`."""
    model = declare(target)
    starts = [{"q": q} for q in setting.starts(target.size)]
    with model:
        step = bs.PersistentHMC(**options)
    trace, *times = _sample(model, setting, step, starts)
    draws = target.finish(trace["posterior"]["q"].values, np.random.default_rng(setting.seed))
    return Run(draws, *times, *_counted(trace))


def persistent_in_pymc(target: Target, setting: Setting, **options: Any) -> Run:
    """`PersistentHMC` in PyMC's own loop."""
    return with_step(target, setting, lambda: bs.PersistentHMC(**options))
