# pyright: reportMissingImports=false
"""Contestants on JAX: NumPyro's and BlackJAX's NUTS. Imported where they are installed.

Both run as one compiled loop over tuning and draws, compiled ahead of time, one chain after the other on one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from benchmarks.sampler_cases import Algebra, Target
from benchmarks.sampler_run import Run, Setting, timed

jax.config.update("jax_enable_x64", True)
JAX = Algebra(jnp, solve_triangular)

#: one chain, from a key and a start: draws (draw, size), gradients of each draw, whether it diverged
Chain = Callable[[Any, Any], tuple[Any, Any, Any]]


def _timed(target: Target, setting: Setting, chain_of: Callable[[Any, Setting], Chain]) -> Run:
    before = time.perf_counter()
    data = {name: jnp.asarray(values) for name, values in target.data.items()}
    chain = chain_of(lambda q: target.density(q, data, JAX), setting)
    starts = jnp.asarray(setting.starts(target.size))
    keys = jax.random.split(jax.random.key(setting.seed), setting.chains)
    compiled = jax.jit(chain).lower(keys[0], starts[0]).compile()
    compiling = time.perf_counter() - before

    def sample(now: Setting) -> Any:
        # compiled for one length, so that the short calls before a long one are none
        if now != setting:
            return None
        found = [jax.block_until_ready(compiled(key, start)) for key, start in zip(keys, starts, strict=True)]
        q, steps, diverging = (np.stack([np.asarray(one[j]) for one in found]) for j in range(3))
        return target.finish(q, np.random.default_rng(setting.seed)), int(steps.sum()), int(diverging.sum())

    (draws, gradients, divergent), seconds, cpu, _ = timed(sample, setting)
    return Run(draws, seconds, cpu, compiling, gradients, divergent)


def numpyro_nuts(target: Target, setting: Setting) -> Run:
    """NumPyro's NUTS with its own defaults: diagonal mass, 0.8."""
    from numpyro.infer.hmc import hmc

    def chain_of(density: Any, setting: Setting) -> Chain:
        begin, sample = hmc(lambda q: -density(q), algo="NUTS")

        def chain(key: Any, start: Any) -> tuple[Any, Any, Any]:
            state = begin(start, setting.tune, rng_key=key)
            state, _ = jax.lax.scan(lambda s, _: (sample(s), None), state, None, setting.tune)

            def keep(state: Any, _: Any) -> tuple[Any, tuple[Any, Any, Any]]:
                state = sample(state)
                return state, (state.z, state.num_steps, state.diverging)

            return jax.lax.scan(keep, state, None, setting.draws)[1]

        return chain

    return _timed(target, setting, chain_of)


def blackjax_nuts(target: Target, setting: Setting) -> Run:
    """BlackJAX's NUTS after its window adaptation, with its own defaults: diagonal mass, 0.8."""
    import blackjax

    def chain_of(density: Any, setting: Setting) -> Chain:
        def chain(key: Any, start: Any) -> tuple[Any, Any, Any]:
            tuning, sampling = jax.random.split(key)
            adapt = blackjax.window_adaptation(blackjax.nuts, density)
            (state, tuned), _ = adapt.run(tuning, start, num_steps=setting.tune)
            kernel = blackjax.nuts(density, **tuned).step

            def keep(state: Any, key: Any) -> tuple[Any, tuple[Any, Any, Any]]:
                state, info = kernel(key, state)
                return state, (state.position, info.num_integration_steps, info.is_divergent)

            return jax.lax.scan(keep, state, jax.random.split(sampling, setting.draws))[1]

        return chain

    return _timed(target, setting, chain_of)
