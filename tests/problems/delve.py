"""Methods for the tests of studies: quick, slow, failing, fatal; and a task that they are tried on."""

import os
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from bayessel.diagnostics.delve import Task


def task(size=16, instances=4, test_cases=20, name="line", seed=0, noise=0.5, **more):
    """y = x0 and noise."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + noise * rng.normal(size=400)
    return Task.from_arrays(X, y, size, instances, test_cases, seed=seed, name=name, **more)


class Noisy(RegressorMixin, BaseEstimator):
    """Least squares, and something random that its seed says; it may take its time and leave a trace."""

    def __init__(self, shrink=1.0, seconds=0.0, work=0, diary=None, random_state=None):
        self.shrink, self.seconds, self.work, self.diary = shrink, seconds, work, diary
        self.random_state = random_state

    def fit(self, X, y):
        if self.diary is not None:
            with open(self.diary, "a") as file:
                file.write(f"{os.getpid()} {self.random_state}\n")
        time.sleep(self.seconds)
        for _ in range(self.work):
            np.linalg.svd(X[:16] @ X[:16].T)
        self.coef_ = self.shrink * np.linalg.lstsq(X, y)[0]
        self.jitter_ = 0.01 * np.random.default_rng(self.random_state).normal()
        return self

    def predict(self, X, return_std=False):
        mean = X @ self.coef_ + self.jitter_
        return (mean, np.full(len(X), 0.5)) if return_std else mean


class Slow(Noisy):
    """Takes a fifth of a second."""

    def fit(self, X, y):
        time.sleep(0.2)
        return super().fit(X, y)


class Silent(RegressorMixin, BaseEstimator):
    """The mean of the target: no density."""

    def fit(self, X, y):
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Failing(Silent):
    """Fails on training sets whose first input is above a bound."""

    def __init__(self, bound=-np.inf):
        self.bound = bound

    def fit(self, X, y):
        if X[0, 0] > self.bound:
            raise ValueError("the ship sank")
        return super().fit(X, y)


class Fatal(Silent):
    """Ends its process."""

    def fit(self, X, y):
        os._exit(3)


def same(a, b):
    """Whether two studies have the same losses, bit by bit."""
    if set(a.outcomes) != set(b.outcomes):
        return False
    return all(
        set(one.losses) == set(b.outcomes[unit].losses)
        and all(np.array_equal(values, b.outcomes[unit].losses[loss]) for loss, values in one.losses.items())
        for unit, one in a.outcomes.items()
    )


def diary(path):
    """(process, seed) of every unit that was begun."""
    if not Path(path).exists():
        return []
    return [tuple(map(int, line.split())) for line in Path(path).read_text().splitlines()]


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)


@contextmanager
def child(job):
    """A forked process that does the job and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            job()
        finally:
            os._exit(0)
    yield pid
