"""The sets of the field and how each is divided: training sets of one size, test cases that are in none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from bayessel.diagnostics.delve import Dataset, Task
from benchmarks import delve_cases

SIZES = (64, 256, 1024)
#: test cases of a split: as many as there are, between these (a thousand says hardly more than five hundred)
FEWEST, MOST = 300, 500
#: splits; of sets of few rows fewer
SPLITS, FEW_SPLITS = 8, 5
SEED = 1996


@dataclass(frozen=True)
class Table:
    """Where a set lies below the folder of the data, columns that are no inputs, and the target (None: the last)."""

    path: str
    leave_out: tuple[str, ...] = ()
    target: str | None = None


TABLES: dict[str, Table] = {
    **{
        name: Table(f"delve/{name}.csv.gz")
        for name in (
            *(f"kin-8{kind}" for kind in ("fh", "fm", "nm")),
            *(f"pumadyn-8{kind}" for kind in ("fh", "nh", "nm")),
            *(f"bank-8{kind}" for kind in ("fh", "fm", "nh")),
            "pumadyn-32nm",
            "boston",
            "abalone",
            "cpusmall",
        )
    },
    **{
        f"{family}-32fm": Table(f"delve/{family}-32fm_fann_scaled.csv.gz", ("part",))
        for family in ("kin", "bank", "pumadyn")
    },
    **{name: Table(f"uci/{name}.csv.gz") for name in ("energy", "power", "wine_red", "airfoil")},
    "diabetes": Table("small/diabetes_efron.csv.gz"),
    "kin40k": Table("sparsegp/kin40k.npz"),
    **{f"hwang-{name}": Table("delve/hwang_draw1.npz", target=name) for name in ("radial", "complicated")},
}


def names() -> tuple[str, ...]:
    """Sets that can be read here."""
    where = delve_cases.folder()
    return () if where is None else tuple(name for name, table in TABLES.items() if (where / table.path).exists())


@cache
def read(name: str) -> Dataset:
    """A set as a table, the target last."""
    where = delve_cases.folder()
    if where is None:
        raise FileNotFoundError("BENCHMARK_DATA names no folder; set it to the folder of the data")
    if name not in TABLES:
        raise ValueError(f"there is no set {name!r}; there are {', '.join(TABLES)}")
    table = TABLES[name]
    return Dataset(name, _arrays(where / table.path, table) if table.path.endswith(".npz") else _frame(where, table))


def _frame(where: Path, table: Table) -> pd.DataFrame:
    return pd.read_csv(where / table.path).drop(columns=list(table.leave_out))


def _arrays(path: Path, table: Table) -> pd.DataFrame:
    with np.load(path) as there:
        if "x_train" in there:
            X, y = there["x_train"], there["y_train"]
        else:
            column = [str(one).rpartition("-")[2].split()[0].lower() for one in there["names"]].index(str(table.target))
            X, y = there["X"][:8192], there["noisy"][:8192, column]
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64).reshape(-1)
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(y=y)


def divided(data: Dataset, size: int) -> Task | None:
    """Splits of a set; None where there are too few rows for training sets of this size.

    Training sets and test sets are disjoint where there are rows for five such splits at least. Else all splits have
    one test set in common, and the training sets are disjoint, or, if need be, five drawn from the other rows, which
    then share some.
    """
    proto = data.prototask()
    n = len(proto.y)
    for splits in (SPLITS, FEW_SPLITS):
        cases = min(MOST, n // splits - size)
        if cases >= FEWEST:
            return replace(proto, n_training=splits * size).task(size, splits, cases, seed=SEED)
    cases = int(np.clip(n - FEW_SPLITS * size, FEWEST, MOST))
    for splits in (SPLITS, FEW_SPLITS):
        if n - cases >= splits * size:
            return replace(proto, n_training=None).task(size, splits, cases, "two-way", SEED)
    rest = n - cases
    if rest < 1.5 * size:
        return None
    rng = np.random.default_rng(SEED)
    order = rng.permutation(n)
    train = np.array([rng.permutation(rest)[:size] for _ in range(FEW_SPLITS)])
    return Task(proto, size, order[train], order[rest:], SEED)


def tasks(
    chosen: tuple[str, ...], sizes: tuple[int, ...] = SIZES, reader: Callable[[str], Dataset] = read
) -> Iterator[Task]:
    """Tasks of these sets at these sizes, small sizes first."""
    for size in sizes:
        for name in chosen:
            task = divided(reader(name), size)
            if task is not None:
                yield task
