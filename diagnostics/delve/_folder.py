"""Data sets from a folder of tables, divided as DELVE's published tasks were.

A table is ``name.csv`` or ``name.csv.gz`` with a header and the target last. A first column ``part`` of noughts and
ones parts rows for training from rows for testing. ``kin-``, ``pumadyn-`` and ``bank-`` names carry attributes, as in
``kin-8nm``: 8 inputs, non-linear (or f, fairly linear), medium noise (or h, high).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bayessel._check import as_count
from bayessel.diagnostics.delve._task import Attribute, Dataset, Task, delve_attributes

#: training cases of the published tasks
SIZES = (64, 128, 256, 512, 1024)
#: few cases: so many for training, in training sets of these sizes, and one test set (Rasmussen 1996, chapter 5)
_SMALL = {"boston": (256, (32, 64, 128))}


def datasets(folder: str | os.PathLike[str], names: Iterable[str] | None = None) -> dict[str, Dataset]:
    """Read tables; default: all of the folder. Their rows for training come first.

    Examples
    --------
    >>> pd.DataFrame({"a": range(60), "y": range(60)}).to_csv("small.csv", index=False)
    >>> list(datasets(".", ["small"])["small"].table.columns)
    ['a', 'y']
    """
    where = Path(folder)
    if not where.is_dir():
        raise ValueError(f"there is no folder {where}")
    files = {_name(path): path for path in sorted(where.iterdir()) if path.name.endswith((".csv", ".csv.gz"))}
    wanted = list(files) if names is None else list(names)
    unknown = [name for name in wanted if name not in files]
    if unknown or not wanted:
        raise ValueError(
            f"{where} has no table {', '.join(unknown) or 'at all'}; it has {', '.join(files) or 'no .csv or .csv.gz'}"
        )
    return {name: _read(name, files[name]) for name in wanted}


def load(
    folder: str | os.PathLike[str],
    names: Iterable[str] | None = None,
    sizes: Sequence[int] | None = None,
    instances: int | None = None,
    seed: int = 0,
) -> list[Task]:
    """Tasks from a folder of tables, at the published sizes.

    DELVE's families of 8192 cases keep their rows in order, the first half for training: 8 disjoint training sets of 64
    to 512 cases with 512 test cases each, 4 of 1024 with 1024. Rows of other tables are shuffled. ``boston`` has 8, 4
    and 2 training sets of 32, 64 and 128 cases and one test set for all.

    Parameters
    ----------
    folder
        Tables ``name.csv`` or ``name.csv.gz``, the target last.
    names
        Which; default: all.
    sizes
        Of the training sets; default: the published ones. Sizes that leave a table fewer than two training sets are
        left out.
    instances
        At most so many per task; default: as many as there are cases for, up to 8. The test sets stay what they were.
    seed
        Of the shuffle.

    Examples
    --------
    >>> pd.DataFrame({"a": range(400), "y": range(400)}).to_csv("line.csv", index=False)
    >>> [task.name for task in load(".", ["line"], sizes=[32])]
    ['line 32']
    """
    found = datasets(folder, names)
    tasks = [task for data in found.values() for task in divided(data, sizes, instances, seed)]
    if not tasks:
        raise ValueError(f"no table in {folder} has cases for two training sets of {sizes}; take smaller sizes")
    return tasks


def divided(
    data: Dataset, sizes: Sequence[int] | None = None, instances: int | None = None, seed: int = 0
) -> list[Task]:
    """Tasks from a data set, as `load` divides it; sizes with fewer than two training sets are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.diagnostics.delve import Dataset
    >>> rows = pd.DataFrame({"a": np.arange(400.0), "y": np.arange(400.0) ** 2})
    >>> [task.name for task in divided(Dataset("small", rows), sizes=[32, 64])]
    ['small 32', 'small 64']
    """
    prototask = data.prototask()
    small = _SMALL.get(data.name)
    usual = small[1] if small else SIZES
    n = len(prototask.y)
    bound = prototask.n_training or n // 2
    tasks = []
    for size in usual if sizes is None else sizes:
        most = min(8, bound // as_count(size, "sizes"))
        if most < 2:
            continue
        cases = None if small else (n - bound) // most
        count = most if instances is None else min(most, instances)
        design = "two-way" if small else "hierarchical"
        tasks.append(prototask.task(size, count, cases, design, None if delve_attributes(data.name) else seed))
    return tasks


def _name(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".csv").removesuffix("_fann_scaled")


def _read(name: str, path: Path) -> Dataset:
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError, EOFError) as error:  # of pandas, of codecs, of gzip
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    training = _SMALL[name][0] if name in _SMALL else None
    if table.columns[0] == "part":
        part = table.pop("part").to_numpy()
        if not np.isin(part, (0, 1)).all():
            raise ValueError(f"the column part of {path} must be 0 (training) or 1 (testing) in every row")
        table = table.iloc[np.argsort(part, kind="stable")]
        training = int(np.sum(part == 0))
    inputs: dict[str, Attribute] = {"inputs": table.shape[1] - 1}
    return Dataset(name, table, inputs | delve_attributes(name) | inputs, training)
