"""What is asked at one width, and what comes back: the words the models and the comparison share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import RBFDictionary, design_of
from bayessel.criteria import CRITERIA
from bayessel.errors import NumericalWarning
from bayessel.fit import Fit
from bayessel.prediction import Prediction
from bayessel.widths.curves import DrawnFit

#: points along a single input at which fits are drawn
GRID_POINTS = 400
#: designs with more entries are made column by column (240 MB)
STORED = 30_000_000


class Candidate(NamedTuple):
    """One candidate: a kind of function and its width."""

    kind: str
    width: float


@dataclass(frozen=True, eq=False)
class WidthProblem:
    """The data and everything that is the same at every width.

    ``held`` is a pair (X, y) of rows that were kept from the fit, or None; ``seed`` starts the random orders of the
    prequential code length, the same at every width.
    """

    X: FloatArray
    t: FloatArray
    centres: FloatArray
    bias: bool
    criteria: tuple[str, ...]
    held: tuple[FloatArray, FloatArray] | None = None
    seed: int = 0

    def dictionary(self, place: Candidate, bias: bool | None = None) -> RBFDictionary:
        """Return the functions at one place."""
        return RBFDictionary(self.centres, place.width, kind=place.kind, bias=self.bias if bias is None else bias)

    def design(self, place: Candidate, bias: bool | None = None) -> Any:
        """Return the functions at the rows, made column by column where there are many."""
        return design_of(self.dictionary(place, bias), self.X, STORED)

    def grid(self) -> FloatArray:
        """Inputs along which a fit of a single input is drawn; empty for several inputs."""
        if self.X.shape[1] != 1:
            return np.empty(0)
        lo, hi = float(self.X.min()), float(self.X.max())
        return np.linspace(lo, hi, GRID_POINTS) if hi > lo else np.array([lo])


@dataclass(frozen=True, eq=False)
class WidthOutcome:
    """One width, finished.

    Attributes
    ----------
    row
        A row of the table: every criterion asked for, then what describes the fit.
    losses
        The terms, one per row of data, of the criteria that are means or sums over rows.
    prediction
        The fit at the rows and along the grid.
    start
        Where the fit at a neighbouring width may start from.
    log_evidence
        What such a fit has to beat to replace this one.
    """

    row: dict[str, Any]
    prediction: DrawnFit
    losses: dict[str, FloatArray] = field(default_factory=dict)
    start: Any = None
    log_evidence: float = -np.inf


class WidthModel(NamedTuple):
    """A kind of model that widths can be compared for.

    ``evaluate(problem, place, starts, beaten)`` fits at one place. With ``starts`` (of neighbouring widths) it returns
    None unless one of them leads to a log evidence above ``beaten``; ``warm`` tells whether it can use them.
    ``fit(problem, place)`` is the fit itself, from the engine's own starts, as a `FitAtWidth`. ``refused`` says why it
    lacks a criterion that others have. ``declare(problem, kind, width, prior)`` is the same model for PyMC with its
    width unknown, one or an array of one for each input; None where there is no such model.
    """

    evaluate: Callable[..., WidthOutcome | None]
    fit: Callable[..., Fit]
    criteria: tuple[str, ...]
    default: tuple[str, ...]
    warm: bool
    refused: Mapping[str, str] = MappingProxyType({})
    declare: Callable[..., Any] | None = None


@contextmanager
def silent() -> Iterator[None]:
    """Keep the warnings of a fit: one per width would bury the reader, and table and verdict hold the statuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        yield


def drawn(problem: WidthProblem, predict: Callable[[FloatArray], Prediction]) -> DrawnFit:
    """A fit, given as its predictions at inputs (n, D), at the rows and along a single input."""
    seen = predict(problem.X)
    grid = grid_mean = grid_std = problem.grid()
    if len(grid):
        there = predict(grid[:, None])
        grid_mean, grid_std = there.mean, there.std
    return DrawnFit(seen.mean, seen.std, grid, grid_mean, grid_std)


def put_error(row: dict[str, Any], losses: dict[str, FloatArray], name: str, terms: FloatArray) -> None:
    """Enter a mean over rows (a sum where it is in nats) and keep its terms."""
    row[name] = float(terms.sum() if CRITERIA[name].summed else terms.mean())
    losses[name] = terms
