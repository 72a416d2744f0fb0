"""DELVE's regression tasks in the form that Rasmussen (1996, ch. 5) used them, and their three standardised losses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.rvm_cases import Array

#: half of the 8192 cases of a family are for training
TRAINING = 4096


class Split(NamedTuple):
    """One training set and its test set."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    names: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A data set and a size of its training sets: 'kin-8nm' at 64, 128, ..., or the generated 'friedman'."""

    family: str
    n: int

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.family} {self.n}"

    def splits(self, count: int) -> Iterator[Split]:
        """Disjoint training sets with disjoint test sets: 8 with 512 test cases, 4 with 1024 for n = 1024."""
        table = read(self.family)
        X, y = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy(float)
        tests, most = (1024, 4) if self.n >= 1024 else (512, 8)
        for i in range(min(count, most)):
            rows, test = slice(i * self.n, (i + 1) * self.n), slice(TRAINING + i * tests, TRAINING + (i + 1) * tests)
            yield Split(X[rows], y[rows], X[test], y[test], tuple(map(str, table.columns[:-1])))


def folder() -> Path | None:
    """Folder of the data, named by the environment variable BENCHMARK_DATA; None where there is none."""
    named = os.environ.get("BENCHMARK_DATA")
    return Path(named) if named and Path(named).is_dir() else None


def there(family: str) -> bool:
    """Whether a data set can be read."""
    return family == "friedman" or ((where := folder()) is not None and (where / "delve" / f"{family}.csv.gz").exists())


def read(family: str) -> pd.DataFrame:
    """8192 rows, the target last."""
    if family == "friedman":
        rng = np.random.default_rng(1991)
        X = rng.uniform(size=(2 * TRAINING, 8))
        f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        table = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
        return table.assign(y=f + rng.normal(size=len(X)))
    where = folder()
    if where is None:
        raise FileNotFoundError("BENCHMARK_DATA names no folder")
    return pd.read_csv(where / "delve" / f"{family}.csv.gz")


class Guess(NamedTuple):
    """What a method says of the test cases: for squared, for absolute and for log loss."""

    mean: Array
    median: Array
    log_density: Array
    extra: Any = None


def losses(guess: Guess, y: Array) -> Array:
    """Mean standardised losses (squared, absolute, log).

    Squared and absolute errors over those of the best constant, the mean and the median of the test targets; minus log
    density less that of the normal with the test targets' mean and variance.
    """
    squared = np.mean((guess.mean - y) ** 2) / y.var()
    absolute = np.mean(np.abs(guess.median - y)) / np.mean(np.abs(y - np.median(y)))
    return np.array([squared, absolute, -np.mean(guess.log_density) - 0.5 * (np.log(2 * np.pi * y.var()) + 1.0)])
