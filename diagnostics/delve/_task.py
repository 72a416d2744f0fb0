"""What is to be learnt from what: data set, prototask, task, and the instances on which methods are compared.

A *data set* is a table. A *prototask* says which columns are inputs, which is the target and which losses matter. A
*task* adds the size of the training sets and how cases are divided. Its *instances* are the training sets, each with
its test cases (Rasmussen 1996, section 2.2). The division is fixed by a seed, and named by a hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayessel._check import FloatArray, as_count, as_float_array, as_matrix, as_target, one_of
from bayessel._fingerprint import fingerprint
from bayessel.diagnostics.delve._losses import LOSSES, chosen_losses
from bayessel.errors import DataMismatchError

DESIGNS = ("hierarchical", "two-way")
#: more training sets than this say little more, and cost as much each
MOST_INSTANCES = 8

Rows = npt.NDArray[np.intp]
Attribute = str | int | float
_FAMILY = re.compile(r"(kin|pumadyn|bank)-(\d+)([fn])([mh])")


def delve_attributes(name: str) -> dict[str, Attribute]:
    """What the name of a task of one of DELVE's families says of it, such as "kin-8fm"; nothing for other names."""
    if (match := _FAMILY.match(name)) is None:
        return {}
    family, inputs, linearity, noise = match.groups()
    return {
        "family": family,
        "inputs": int(inputs),
        "linearity": {"f": "fairly linear", "n": "non-linear"}[linearity],
        "noise": {"m": "medium", "h": "high"}[noise],
    }


class Instance(NamedTuple):
    """A training set and its test cases."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray


@dataclass(frozen=True, eq=False)
class Prototask:
    """Inputs (N, D), target (N,), and the losses that matter.

    Attributes
    ----------
    name : str
    X, y : array
    inputs : tuple of str
        Names of the columns of X.
    target : str
    losses : tuple of str
        Of "squared", "absolute", "log".
    attributes : mapping
        What is known of the data, such as ``{"noise": "high"}``: results are averaged by them.
    n_training : int or None
        So many rows are for training, the others for testing; None: half of them, or, in the two-way design, all but
        the test cases.
    """

    name: str
    X: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    inputs: tuple[str, ...]
    target: str = "y"
    losses: tuple[str, ...] = LOSSES
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    n_training: int | None = None

    def task(
        self,
        size: int,
        instances: int | None = None,
        test_cases: int | None = None,
        design: str = "hierarchical",
        seed: int | None = 0,
        hash: str | None = None,
    ) -> Task:
        """Divide the rows into instances; the arguments are those of `Task.from_arrays`."""
        n = len(self.y)
        size, common = as_count(size, "size"), one_of(design, "design", DESIGNS) == "two-way"
        if self.n_training is not None:
            bound = as_count(self.n_training, "n_training")
        elif common and test_cases is not None:
            bound = n - as_count(test_cases, "test_cases", 2)
        else:
            bound = n // 2
        count = min(MOST_INSTANCES, bound // size) if instances is None else as_count(instances, "instances", 2)
        if count < 2 or count * size > bound or bound >= n:
            raise ValueError(
                f"{self.name} has {max(bound, 0)} of {n} rows for training: not enough for "
                f"{max(count, 2)} disjoint training sets of {size}; take a smaller size or fewer instances"
            )
        sets = 1 if common else count
        cases = (n - bound) // sets if test_cases is None else as_count(test_cases, "test_cases", 2)
        if cases < 2 or cases * sets > n - bound:
            raise ValueError(
                f"{self.name} has {n - bound} of {n} rows for testing: not enough for {sets} "
                f"disjoint test sets of {max(cases, 2)}; take fewer test cases or instances, or design='two-way'"
            )
        order = _order(n, seed)
        train = order[: count * size].reshape(count, size)
        test = order[bound : bound + sets * cases].reshape(sets, cases)
        if (same := np.ptp(self.y[test], axis=1) == 0.0).any():
            first = int(np.argmax(same))
            raise ValueError(
                f"the targets of test set {first} of {self.name} are all {self.y[test[first]][0]:g}: "
                "there is no unit for losses; take more test cases, or another seed"
            )
        task = Task(self, size, train, test[0] if common else test, seed)
        if hash is not None:
            task.check(hash)
        return task


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with named columns; words among them become columns of 0 and 1, one per word, one for two words.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "kind": ["u", "v", "w"], "y": [1.0, 2.0, 4.0]})
    >>> Dataset("small", frame).prototask("y").inputs
    ('a', 'kind=u', 'kind=v', 'kind=w')
    """

    name: str
    table: pd.DataFrame = field(repr=False)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    n_training: int | None = None

    def prototask(
        self,
        target: str | None = None,
        inputs: Sequence[str] | None = None,
        losses: Sequence[str] = LOSSES,
        name: str | None = None,
    ) -> Prototask:
        """Say what is to be predicted (default: the last column) from what (default: all other columns)."""
        if not isinstance(self.table, pd.DataFrame):
            raise TypeError(f"the table of {self.name} must be a pandas.DataFrame, got {type(self.table).__name__}")
        columns = [str(column) for column in self.table.columns]
        if twice := sorted({column for column in columns if columns.count(column) > 1}):
            raise ValueError(f"columns of {self.name} must have different names, got {', '.join(twice)} more than once")
        table = self.table.set_axis(columns, axis=1)
        target = columns[-1] if target is None else one_of(target, "target", tuple(columns))
        chosen = [column for column in columns if column != target] if inputs is None else list(inputs)
        for column in chosen:
            one_of(column, "inputs", tuple(column for column in columns if column != target))
        if not chosen:
            raise ValueError(f"{self.name} has no inputs for the target {target!r}: give one column at least")
        parts, names = [], []
        for column in chosen:
            part, said = _coded(table[column])
            parts.append(part)
            names += said
        X = as_matrix(np.column_stack(parts), f"inputs of {self.name}")
        y = as_target(table[target].to_numpy(), len(X), target)
        wanted, attributes = chosen_losses(losses), _plain(self.attributes)
        return Prototask(name or self.name, X, y, tuple(names), target, wanted, attributes, self.n_training)


def _coded(column: pd.Series) -> tuple[npt.NDArray[Any], list[str]]:
    name = str(column.name)
    if column.isna().any():
        raise ValueError(f"column {name!r} has {int(column.isna().sum())} missing values; drop or impute those rows")
    if pd.api.types.is_numeric_dtype(column.dtype):
        return as_float_array(column.to_numpy(), name)[:, None], [name]
    words = sorted(set(column.astype(str)))
    said = words[:1] if len(words) == 2 else words  # two words are one column
    coded = np.column_stack([(column.astype(str) == word).to_numpy(dtype=float) for word in said])
    return coded, [f"{name}={word}" for word in said]


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Attribute]:
    """Attributes as a store can keep them and results can be grouped by them: numbers of NumPy as Python's own."""
    found: dict[str, Attribute] = {}
    if attributes is not None and not isinstance(attributes, Mapping):
        raise TypeError(f'attributes must be a dict such as {{"noise": "high"}}, got {attributes!r}')
    for key, value in (attributes or {}).items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(key, str) or not isinstance(plain, str | int | float):
            raise TypeError(f"attributes must be words or numbers by name, got {key!r}: {value!r}")
        found[key] = plain
    return found


@dataclass(frozen=True, eq=False)
class Task:
    """A prototask at one size of training sets, divided into instances.

    Use `from_arrays`, or `Prototask.task`.

    Attributes
    ----------
    prototask : Prototask
    size : int
        Cases in each training set, n.
    train : array (I, n)
        Rows of the training sets.
    test : array (I, J), or (J,)
        Rows of the test cases: each training set its own, or the same for all of them.
    seed : int or None
        Of the division; None: rows were taken in their order.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> task = Task.from_arrays(X, X[:, 0], size=10, instances=2, name="plane")
    >>> task.name, task.train.shape
    ('plane 10', (2, 10))
    """

    prototask: Prototask
    size: int
    train: Rows = field(repr=False)
    test: Rows = field(repr=False)
    seed: int | None = 0

    @staticmethod
    def from_arrays(
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        size: int,
        instances: int | None = None,
        test_cases: int | None = None,
        design: str = "hierarchical",
        seed: int | None = 0,
        name: str = "data",
        attributes: Mapping[str, Attribute] | None = None,
        *,
        inputs: Sequence[str] | None = None,
        losses: Sequence[str] = LOSSES,
        n_training: int | None = None,
        hash: str | None = None,
    ) -> Task:
        """Divide rows into disjoint training sets and test cases that are in none of them.

        Parameters
        ----------
        X, y
            Inputs (N, D) and target (N,).
        size
            Cases in each training set.
        instances
            Training sets, I; default: as many as there are cases for, at most 8. Two at least: with one nothing can be
            said about others.
        test_cases
            Cases in each test set, J; default: as many as there are.
        design
            ``"hierarchical"``: disjoint test sets; for many cases. ``"two-way"``: one test set for all; for few.
        seed
            Of the shuffle; None takes the rows in their order.
        name, attributes, inputs, losses
            Of the prototask; ``task.name`` adds the size.
        n_training
            So many rows (after the shuffle) are for training; default: half, or all but the test cases.
        hash
            What `Task.hash` has to be: the task is refused if data or division are others.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 3))
        >>> task = Task.from_arrays(X, X[:, 0], size=32, name="line", attributes={"noise": "none"})
        >>> task.name, len(task), task.n_cases, task[0].X.shape
        ('line 32', 8, 37, (32, 3))
        """
        matrix = as_matrix(X, "X", allow_1d=True)
        target = as_target(y, len(matrix), "y")
        names = tuple(f"x{k}" for k in range(matrix.shape[1])) if inputs is None else tuple(map(str, inputs))
        if len(names) != matrix.shape[1]:
            raise ValueError(f"inputs must be {matrix.shape[1]} names, one per column of X; got {len(names)}")
        wanted, plain = chosen_losses(losses), _plain(attributes)
        prototask = Prototask(name, matrix, target, names, "y", wanted, plain, n_training)
        return prototask.task(size, instances, test_cases, design, seed, hash)

    @property
    def name(self) -> str:
        """Name of the prototask, and the size."""
        return f"{self.prototask.name} {self.size}"

    @property
    def design(self) -> str:
        """Either "hierarchical" or "two-way"."""
        return "two-way" if self.test.ndim == 1 else "hierarchical"

    @property
    def n_cases(self) -> int:
        """Test cases of each instance, J."""
        return self.test.shape[-1]

    @property
    def losses(self) -> tuple[str, ...]:
        """Losses that matter."""
        return self.prototask.losses

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Those of the prototask, with its name and the size."""
        return {**self.prototask.attributes, "prototask": self.prototask.name, "size": self.size}

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits that name the data and the division into instances."""
        X, y = self.prototask.X, self.prototask.y
        return fingerprint(X, y, self.train, self.test)

    def check(self, hash: str) -> None:
        """Refuse to be another task than the one of this hash."""
        if hash != self.hash:
            raise DataMismatchError(
                f"task {self.name} has other data or another division into instances than was asked for: its hash is "
                f"{self.hash}, needed was {hash}; compare the data, their order, the seed and the numbers of cases"
            )

    def __len__(self) -> int:
        return len(self.train)

    def __getitem__(self, i: int) -> Instance:
        X, y = self.prototask.X, self.prototask.y
        train, test = self.train[i], self.test if self.test.ndim == 1 else self.test[i]
        return Instance(X[train], y[train], X[test], y[test])

    def __iter__(self) -> Iterator[Instance]:
        return (self[i] for i in range(len(self)))


def _order(n: int, seed: int | None) -> Rows:
    """A permutation of n rows that no release of NumPy changes: the bits of PCG64 are guaranteed, shuffles are not."""
    if seed is None:
        return np.arange(n)
    bits = np.random.PCG64(as_count(seed, "seed", 0)).random_raw(n)
    return np.argsort(bits, kind="stable")
