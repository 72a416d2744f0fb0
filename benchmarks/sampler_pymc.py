# pyright: reportMissingImports=false
"""Contestants on PyTensor: PyMC's NUTS and nutpie. Imported where they are installed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_funcify, numba_njit

from benchmarks.sampler_cases import Algebra, Target
from benchmarks.sampler_run import Run, Setting, timed

PYTENSOR = Algebra(pt, pt.linalg.solve_triangular)
QUIET: dict[str, Any] = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1}


class ByHand(Op):
    """A target's hand-written value and gradient as one node: (q) -> (log density, gradient)."""

    __props__ = ()

    def __init__(self, target: Target) -> None:
        assert target.value_and_gradient is not None
        self.call = target.value_and_gradient

    def make_node(self, q: Any) -> Apply:
        """One node for both, so that the gradient costs nothing more."""
        return Apply(self, [pt.as_tensor_variable(q)], [pt.dscalar(), pt.dvector()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        value, gradient = self.call(inputs[0])
        outputs[0][0], outputs[1][0] = np.asarray(value), gradient

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """The gradient is there already."""
        if not isinstance(cotangents[1].type, DisconnectedType):
            raise NotImplementedError("first derivatives only")
        return [cotangents[0] * outputs[1]]


@numba_funcify.register(ByHand)
def _numba_by_hand(op: ByHand, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node."""
    call = op.call

    @numba_njit
    def by_hand(q: Any) -> Any:
        with numba.objmode(value="float64", gradient="float64[::1]"):
            value, gradient = call(q)
        return np.asarray(value), gradient

    return by_hand


def declare(target: Target, automatic: bool = False) -> pm.Model:
    """A flat vector q with the target's log density as a potential; its gradient by hand if there is one."""
    with pm.Model() as model:
        q = pm.Flat("q", shape=target.size)
        if target.value_and_gradient is not None and not automatic:
            density = ByHand(target)(q)[0]
        else:
            # data and not constants, or every data set would be compiled anew
            data = {name: pm.Data(name, values) for name, values in target.data.items()}
            density = target.density(q, data, PYTENSOR)
        pm.Potential("density", density)
    return model


def with_step(target: Target, setting: Setting, make: Callable[[], Any], automatic: bool = False) -> Run:
    """PyMC's own loop with one step method, compiled once."""
    before = time.perf_counter()
    starts = [{"q": q} for q in setting.starts(target.size)]
    with declare(target, automatic):
        step = make()
        built = time.perf_counter() - before

        def sample(now: Setting) -> Any:
            trace = pm.sample(
                now.draws,
                tune=now.tune,
                chains=now.chains,
                step=step,
                initvals=starts,
                random_seed=now.seed,
                **QUIET,
            )
            return trace, target.finish(trace["posterior"]["q"].values, np.random.default_rng(now.seed))

        (trace, draws), seconds, cpu, first = timed(sample, setting)
    return Run(draws, seconds, cpu, built + first, *counted(trace))


def counted(trace: Any) -> tuple[int | None, int]:
    """Gradients and divergences of the kept draws, where there are any to count."""
    stats = trace["sample_stats"]
    gradients = int(stats["n_steps"].sum()) if "n_steps" in stats else None
    return gradients, int(stats["diverging"].sum()) if "diverging" in stats else 0


def pymc_nuts(target: Target, setting: Setting, automatic: bool = False) -> Run:
    """PyMC's NUTS with its own defaults: diagonal mass, acceptance 0.8."""
    return with_step(target, setting, pm.NUTS, automatic)


def nutpie(
    target: Target, setting: Setting, adaptation: str = "diag", automatic: bool = False, backend: str = "numba"
) -> Run:
    """Nutpie with its own defaults, or with a mass of low rank on top of the diagonal; compiled by Numba or by JAX."""
    import nutpie as package

    before = time.perf_counter()
    options = {"backend": "jax", "gradient_backend": "jax"} if backend == "jax" else {}
    compiled = package.compile_pymc_model(declare(target, automatic), **options)
    built = time.perf_counter() - before

    def sample(now: Setting) -> Any:
        trace = package.sample(
            compiled,
            draws=now.draws,
            tune=now.tune,
            chains=now.chains,
            seed=now.seed,
            cores=1,
            progress_bar=False,
            adaptation=adaptation,
            save_warmup=False,
        )
        return trace, target.finish(trace["posterior"]["q"].values, np.random.default_rng(now.seed))

    (trace, draws), seconds, cpu, first = timed(sample, setting)
    return Run(draws, seconds, cpu, built + first, *counted(trace))
