"""A model, steps without compiled code, and processes that can be killed, for the tests of runs."""

import os
import signal
import time
import traceback
import warnings
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import pymc as pm
import pytensor
import pytest
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator, get_value_vars_from_user_vars

import bayessel as bs
from bayessel.errors import SamplingWarning


def plain_python():
    """Compile nothing to machine code: a few calls are sooner done in Python."""
    return pytensor.config.change_flags(mode="FAST_COMPILE")


def model(n=4, y=None, scale=1.0):
    """Two normal vectors (one of them through a transform), a count, a derived number, an observed vector."""
    y = np.linspace(-1.0, 1.0, n) if y is None else y
    with pm.Model(coords={"row": np.arange(len(y)), "part": ["a", "b", "c"]}) as made:
        x = pm.Normal("x", 0.0, scale, dims="part")
        s = pm.HalfNormal("s", 1.0)
        pm.Deterministic("total", x.sum() + s)
        pm.Normal("y", x[0], s, observed=pm.Data("y_data", y, dims="row"), dims="row")
    return made


@dataclass_state
class WalkState(StepMethodState):
    size: float
    accepted: int
    momentum: np.ndarray
    past: list
    pair: tuple
    tune: bool


class Walk(BlockedStep):
    """A random walk with drift on N(0, 1) values: its future depends on numbers, arrays, lists and a generator.

    It samples nothing of interest, but every field of its state changes what comes next.
    """

    name = "walk"
    _state_class = WalkState
    stats_dtypes_shapes: ClassVar = {
        "n_steps": (np.int64, []),
        "walk_size": (np.float64, []),
        "diverging": (bool, []),
        "model_logp": (np.float64, []),
        "vector": (object, None),
        "warning": (object, None),
    }

    def __init__(self, vars, *, size=0.5, seconds=0.0, busy=0.0, model=None, rng=None):
        self.vars = get_value_vars_from_user_vars(vars, pm.modelcontext(model))
        self.rng = get_random_generator(rng)
        self.first_size = self.size = size
        self._seconds, self._busy = seconds, busy  # private: no settings, a resumed run may have others
        self._reset()

    def _reset(self):
        self.size, self.accepted, self.past, self.pair = self.first_size, 0, [], (0.5, None)
        self.momentum, self.tune = np.zeros(sum(1 for _ in self.vars)), True
        self.count = 0

    def setup_chain(self, rng, tune, draws):
        super().setup_chain(rng, tune, draws)
        self._reset()

    def step(self, point):
        if self._seconds:
            time.sleep(self._seconds)
        if self._busy:
            end = time.perf_counter() + self._busy
            while time.perf_counter() < end:
                pass
        point = dict(point)
        for i, one in enumerate(self.vars):
            self.momentum[i] = 0.9 * self.momentum[i] + 0.1 * self.rng.standard_normal()
            drift = self.size * self.momentum[i] + 0.01 * sum(self.past) + 0.1 * self.pair[0]
            value = 0.8 * point[one.name] + drift + 0.3 * self.rng.standard_normal(np.shape(point[one.name]))
            point[one.name] = np.asarray(value, dtype=np.float64)
        self.accepted += 1
        self.past = [*self.past[-2:], float(self.rng.random())]
        self.pair = (self.pair[0] * 0.9 + 0.1 * float(self.rng.random()), self.past[-1])
        if self.tune:
            self.size *= float(np.exp(0.05 * self.rng.standard_normal()))
        return point, [
            {
                "n_steps": 1 + self.accepted % 3,
                "walk_size": self.size,
                "diverging": bool(self.rng.random() < 0.1),
                "model_logp": -float(self.accepted),
                "vector": np.array([self.size, 1.0]),
                "warning": None,
            }
        ]


@dataclass_state
class LeakyState(StepMethodState):
    size: float
    tune: bool


class Leaky(Walk):
    """A step that forgets to put its momentum into its state: what the tests must see."""

    name = "leaky"
    _state_class = LeakyState


def same(a, b, stats=True):
    """Whether two results hold the same draws, bit by bit."""
    groups = ["posterior", "unconstrained_posterior"] + ["sample_stats"] * stats
    return all(
        set(a[group].data_vars) == set(b[group].data_vars)
        and all(np.array_equal(a[group][v].values, b[group][v].values, equal_nan=True) for v in a[group].data_vars)
        for group in groups
    )


def walk(made, **settings):
    """The toy step on all variables of the model."""
    with made:
        return Walk(made.free_RVs, **settings)


def many_kinds():
    """A model with counts and numbers of all kinds, and PyMC's own steps on it beside the toy."""
    with pm.Model(coords={"row": range(5)}) as made:
        x = pm.Normal("x", 0.0, 1.0, shape=2)
        s = pm.HalfNormal("s", 2.0)
        k = pm.Poisson("k", 3.0)
        b = pm.Bernoulli("b", 0.4, shape=2)
        z = pm.Normal("z", 0.0, 1.0)
        mean = x[0] + 0.1 * k + b[0] * x[1] + 0.0 * z
        pm.Normal("y", mean, s, observed=np.linspace(0.0, 1.0, 5), dims="row")
        nuts = pm.NUTS([x], compile_kwargs={"mode": "FAST_COMPILE"})
        steps = [nuts, pm.Slice([s]), pm.Metropolis([k]), pm.BinaryGibbsMetropolis([b]), Walk([z])]
    return made, steps


def sample(made, step, **kwargs):
    """`bs.sample` without a bar, with a seed and short chains unless told otherwise; the draws need not be good."""
    defaults = {"draws": 60, "tune": 30, "chains": 3, "cores": 1, "random_seed": 7, "log_likelihood": False}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Do not use these draws", SamplingWarning)
        return bs.sample(made, step=step, progressbar=False, **(defaults | kwargs))


@contextmanager
def process(function):
    """Run a function in a forked process of its own group; yields its id. It is gone afterwards."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    try:
        yield child
    finally:
        try:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def wait_for(condition, seconds=20.0):
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
