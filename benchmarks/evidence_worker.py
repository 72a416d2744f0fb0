# pyright: reportMissingImports=false
"""An evidence by another package: a model comes pickled on standard input, what became of it goes back as JSON.

``python -m benchmarks.evidence_worker`` is started by `benchmarks.evidence_peers` with the interpreter that
PEERS_PYTHON names, which has no bayessel but the same releases of PyMC and Python. A run that takes more than its
seconds of processor is ended by the operating system. Seconds are of processor, compiling included, importing not.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import compile as compile_pymc
from pymc.pytensorf import join_nonshared_inputs
from pytensor.graph.replace import clone_replace

#: independent runs of a method whose error is the spread of these, as those of `pm.sample_smc`
RUNS = 4
#: particles, as those of `pm.sample_smc`; their effective number when the temperature is chosen; updates at each
PARTICLES, TARGET_ESS, UPDATES = 2_000, 0.5, 10
#: leapfrog steps of an update, and their first size
LEAPFROG, STEP = 10, 0.5
#: acceptance that the size is tuned to
ACCEPTANCE = 0.8


class Found(NamedTuple):
    """Log evidence, its error, and whether the method came to its end."""

    value: float
    error: float
    complete: bool


# --- a model as functions ---------------------------------------------------------------------------------------------


def _forward(model: pm.Model, rv: Any) -> Any:
    """A random variable in the coordinates that PyMC samples it in."""
    transform = model.rvs_to_transforms[rv]
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


def _joined(model: pm.Model) -> tuple[Any, Any, Any]:
    """Log prior and log likelihood, graphs of one vector of all coordinates."""
    prior = model.logp(vars=model.free_RVs)
    likelihood = model.logp(vars=[*model.observed_RVs, *model.potentials])
    [first, second], vector = join_nonshared_inputs(model.initial_point(), [prior, likelihood], model.value_vars, {})
    return first, second, vector


def prior_draws(model: pm.Model, n: int, seed: int) -> np.ndarray:
    """Draws of the prior in the coordinates, (n, size)."""
    outs = [_forward(model, rv) for rv in model.free_RVs]
    drawn = pm.draw(outs, draws=n, random_seed=seed)
    return np.concatenate([np.reshape(one, (n, -1)) for one in drawn], axis=1)


def unit_cube(model: pm.Model) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], float], int]:
    """The prior's quantiles, from the unit cube to the coordinates; the log likelihood; how many coordinates."""
    point = model.initial_point()
    shapes = [point[model.rvs_to_values[rv].name].shape for rv in model.free_RVs]
    sizes = [int(np.prod(shape)) for shape in shapes]
    u, made, outs, place = pt.vector("u", shape=(sum(sizes),)), dict[Any, Any](), [], 0
    for rv, shape, size in zip(model.free_RVs, shapes, sizes, strict=True):
        [own] = clone_replace([rv], made, rebuild_strict=False) if made else [rv]
        made[rv] = pm.icdf(own, u[place : place + size].reshape(shape))
        out: Any = clone_replace([_forward(model, rv)], made, rebuild_strict=False)[0]
        outs.append(out.ravel())
        place += size
    _, likelihood, vector = _joined(model)
    transform, log_likelihood = compile_pymc([u], pt.concatenate(outs)), compile_pymc([vector], likelihood)
    transform.trust_input = log_likelihood.trust_input = True

    def finite(x: np.ndarray) -> float:
        value = float(log_likelihood(np.ascontiguousarray(x)))
        return value if np.isfinite(value) else -1e100

    return lambda one: transform(np.ascontiguousarray(one)), finite, place


# --- methods ----------------------------------------------------------------------------------------------------------


def blackjax_smc(model: pm.Model, seed: int) -> Found:
    """BlackJAX's adaptive tempered SMC, HMC with the mass of the particles inside; the mean of four runs.

    The size of the leapfrog steps follows the acceptance, which BlackJAX leaves to its user.
    """
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc import resampling
    from blackjax.smc.tuning.from_particles import mass_matrix_from_particles
    from pymc.sampling.jax import get_jaxified_graph

    jax.config.update("jax_enable_x64", True)
    prior, likelihood, vector = _joined(model)
    function = get_jaxified_graph([vector], [prior, likelihood])

    def safe(value: Any) -> Any:
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def parameters(particles: Any, step: Any) -> dict[str, Any]:
        # BlackJAX has the precisions on the diagonal here: HMC wants their inverse
        variances = 1.0 / jnp.diagonal(mass_matrix_from_particles(particles))
        return {"inverse_mass_matrix": variances[None], "step_size": jnp.reshape(step, (1,))}

    kernel = blackjax.hmc.build_kernel()

    def move(key: Any, state: Any, density: Any, **given: Any) -> Any:
        return kernel(key, state, density, num_integration_steps=LEAPFROG, **given)

    @jax.jit
    def turn(key: Any, state: Any, step: Any) -> Any:
        algorithm = blackjax.adaptive_tempered_smc(
            lambda q: safe(function(q)[0]),
            lambda q: safe(function(q)[1]),
            move,
            blackjax.hmc.init,
            parameters(state.particles, step),
            resampling.systematic,
            TARGET_ESS,
            num_mcmc_steps=UPDATES,
        )
        state, info = algorithm.step(key, state)
        accepted = jnp.mean(info.update_info.acceptance_rate)
        return state, info.log_likelihood_increment, step * jnp.exp(accepted - ACCEPTANCE)

    values = []
    for run in range(RUNS):
        key = jax.random.key(1_000 * seed + run)
        state = blackjax.smc.tempered.init(jnp.asarray(prior_draws(model, PARTICLES, 1_000 * seed + run)))
        total, step = 0.0, jnp.asarray(STEP)
        while float(state.lmbda) < 1.0:
            key, own = jax.random.split(key)
            state, gain, step = turn(own, state, step)
            total += float(gain)
            if not np.isfinite(total):
                raise FloatingPointError("the weights of the particles are not finite")
        values.append(total)
    return Found(float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(RUNS)), True)


def dynesty(model: pm.Model, seed: int) -> Found:
    """Nested sampling by dynesty at its defaults."""
    import dynesty as package

    transform, log_likelihood, size = unit_cube(model)
    sampler = package.NestedSampler(log_likelihood, transform, size, rstate=np.random.default_rng(seed))
    sampler.run_nested(print_progress=False)
    return Found(float(sampler.results.logz[-1]), float(sampler.results.logzerr[-1]), True)


METHODS: dict[str, Callable[[pm.Model, int], Found]] = {"BlackJAX SMC": blackjax_smc, "dynesty": dynesty}
#: what a method is imported from
PACKAGES = {"BlackJAX SMC": "blackjax", "dynesty": "dynesty"}


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """What became of a job: method, what registers a model's own densities with the model, as bytes, seed, seconds."""
    __import__(PACKAGES[job["method"]])
    limit = int(time.process_time() + job["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    register, model = pickle.loads(job["model"])
    register()
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = METHODS[job["method"]](model, job["seed"])
        except Exception as failure:  # whatever it is, it is a result
            said = f"{type(failure).__name__}: {failure}"[:200]
            return {"failed": said, "seconds": time.process_time() - start}
    return {**found._asdict(), "seconds": time.process_time() - start}


if __name__ == "__main__":
    given = pickle.load(sys.stdin.buffer)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print is none of the answer
    out.write(json.dumps(answer(given)))
    out.close()
