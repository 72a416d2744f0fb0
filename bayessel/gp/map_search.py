"""The search of a fit of hyperparameters: on few rows first, where evaluations are cheap, then on all.

A search on n/2 rows costs an eighth of one on all, so what comes before the last costs little more than a few
evaluations on all rows, and it ends near the mode with a curvature that fits there: 5 to 10 evaluations are left of the
usual 30 to 80.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayessel._check import FloatArray
from bayessel._row_weights import counted, deviation
from bayessel.gp.laplace import STEP
from bayessel.gp.map_problem import MapProblem
from bayessel.gp.optimise import Minimum, minimise

#: fewest rows that a search begins with: fewer save little and may miss what is there
_FEWEST = 128
#: rows per parameter that a search begins with at least
_PER_PARAMETER = 6
#: rows per parameter below which inputs that matter may have been switched off, for good: where a weight is nil so is
#: its slope. Of 8 sets of 32 inputs two lost theirs at 7 rows per parameter, none at 14
_SURE = 12
#: the curvature of the likelihood grows with the number of rows to about this power: that of the noise in proportion,
#: that of the other parameters more slowly (measured: fewest evaluations between 0.5 and 1)
_GROWTH = 0.7
#: curvature per row of the likelihood that a search from a start begins with: a fraction of that of the noise, ½
_FIRST = 0.005
#: what a search on fewer rows may leave to be gained, in nats
_ROUGH = 0.01
#: optima worse by more, in nats, on fewer rows are not followed further
_HOPELESS = 10.0
#: ends that are closer in height, in nats, and in units of the posterior's width are one
_CLOSE = 0.5


@dataclass(frozen=True, eq=False)
class SearchEnd:
    """Where a search ended: which start it came from, and whether its curvature is more than a guess."""

    start: int
    minimum: Minimum
    known: bool


class MapSearch:
    """From several starts on few rows to the different optima on all.

    Attributes
    ----------
    history
        One entry per evaluation so far.
    best
        Rows, value and place of the best seen on the most rows so far; what is left after an interruption.
    """

    def __init__(self, problem: MapProblem, tol: float, max_evaluations: int, rng: np.random.Generator) -> None:
        self.problem, self.tol, self.max_evaluations = problem, tol, max_evaluations
        n, k = len(problem.marginal.t), int(problem.free.sum())
        self.order = rng.permutation(n)
        fewest = max(_FEWEST, _PER_PARAMETER * k)
        self.sizes = [size for size in (n // 4, n // 2) if size >= fewest and k] + [n]
        self.history: list[dict[str, float]] = []
        self.best: tuple[int, float, FloatArray] | None = None

    def run(self, points: Sequence[FloatArray]) -> list[Minimum]:
        """Return the different minima on all rows, best first."""
        starts = [(i, self.problem.coordinates(point)) for i, point in enumerate(points)]
        found: list[SearchEnd] = []
        for level, size in enumerate(self.sizes):
            fresh = starts
            if level:
                growth = (size / self.sizes[level - 1]) ** _GROWTH
                found = [
                    replace(end, minimum=replace(end.minimum, curvature=growth * end.minimum.curvature))
                    for end in found
                ]
                fresh = self._again(level, found, starts)
            found = self._level(size, found, fresh)
        return [end.minimum for end in found]

    def _again(
        self, level: int, found: Sequence[SearchEnd], starts: list[tuple[int, FloatArray]]
    ) -> list[tuple[int, FloatArray]]:
        """Starts from which to search anew after the first level: a quarter of the rows may not show what more do."""
        before, k = self.sizes[level - 1], int(self.problem.free.sum())
        noise = all(self._mostly_noise(end.minimum.x) for end in found)
        halfway = level == 1 < len(self.sizes) - 1
        if before < _SURE * k or (halfway and noise):
            return starts
        # parameters matter in pairs, too: many of them need more rows than in proportion
        return starts[:1] if halfway or before < k**2 else []

    def _level(
        self, size: int, carried: Sequence[SearchEnd], fresh: Sequence[tuple[int, FloatArray]]
    ) -> list[SearchEnd]:
        """Search on so many rows from where others ended and from starts; return the ends worth following."""
        problem, last = self.problem, size == self.sizes[-1]
        marginal = problem.marginal
        if not last:
            marginal = marginal.part(self.order[:size])
        expensive = problem.expensive(marginal)
        first = np.eye(int(problem.free.sum())) * (_FIRST * counted(marginal.t, marginal.weights))
        states = [(end.start, end.minimum.x, end.minimum.curvature, end.known) for end in carried]
        states += [(start, x, first, False) for start, x in fresh]
        ends: list[SearchEnd] = []
        for start, x, B, known in states:
            # the first is the most promising: only one that comes out higher is followed to the last digit
            tol = _ROUGH if ends or not last else self.tol
            for point in self._noisier(x):
                found = self._minimise(size, expensive, start, point, B, tol)
                if np.isfinite(found.value):
                    break
            if tol > self.tol and last and found.expected <= tol and all(found.value < e.minimum.value for e in ends):
                found = self._minimise(size, expensive, start, found.x, found.curvature, self.tol)
            ends.append(SearchEnd(start, found, known))
        kept = different(ends, np.inf if last else _HOPELESS, self._same)
        return kept if last else [end if end.known else self._with_curvature(size, expensive, end) for end in kept]

    def _minimise(
        self,
        size: int,
        expensive: Callable[[FloatArray], tuple[float, FloatArray]],
        start: int,
        x: FloatArray,
        B: FloatArray,
        tol: float,
    ) -> Minimum:
        def keep(x: FloatArray, value: float) -> None:
            if self.best is None or self.best[0] < size or value < self.best[1]:
                self.best = (size, value, x)

        found = minimise(
            expensive,
            x,
            B,
            self.problem.exact,
            tol=tol,
            max_evaluations=self.max_evaluations,
            bounds=self.problem.bounds,
            keep=keep,
        )
        self.history += [{"rows": size, "start": start, **entry} for entry in found.history]
        return found

    def _with_curvature(
        self, size: int, expensive: Callable[[FloatArray], tuple[float, FloatArray]], end: SearchEnd
    ) -> SearchEnd:
        """The end with the Hessian by differences, which on few rows costs little, for what updates made up.

        A search leaves a model that is right along the way it took and a guess beside it; with the Hessian the searches
        on more rows need a third of the evaluations.
        """
        at = end.minimum
        H = np.empty((len(at.x), len(at.x)))
        for j in range(len(H)):
            move = np.zeros(len(H))
            move[j] = STEP
            H[j] = (expensive(at.x + move)[1] - at.gradient) / STEP
            self.history.append({"rows": size, "start": end.start, "value": np.nan, "expected": np.nan, "radius": 0.0})
        if not np.isfinite(H).all():
            return end
        values, vectors = np.linalg.eigh(0.5 * (H + H.T))
        curvature = (vectors * np.maximum(np.abs(values), 1e-6)) @ vectors.T
        return SearchEnd(end.start, replace(at, curvature=curvature), True)

    def _mostly_noise(self, x: FloatArray) -> bool:
        """Whether the noise explains more than half of the targets' variance."""
        marginal = self.problem.marginal
        return bool(marginal.noise(self.problem.full(x)) > 0.5 * deviation(marginal.t, marginal.weights) ** 2)

    def _noisier(self, x: FloatArray) -> Iterator[FloatArray]:
        """The point, then with ever more noise: few rows may leave less of it than many need for a Cholesky factor."""
        yield x
        if self.problem.noise_index is not None:
            at = np.flatnonzero(self.problem.free)[self.problem.noise_index]
            for more in (2.0, 4.0, 8.0, 16.0, 32.0):
                theta = self.problem.full(x)
                theta[at] += more
                yield self.problem.coordinates(theta)

    def _same(self, one: Minimum, other: Minimum) -> bool:
        """Whether two ends are one optimum: close in units of the posterior's width, and in height."""
        apart = np.abs(one.x) - np.abs(other.x) if self.problem.roots is not None else one.x - other.x
        shape = other.curvature + np.diag(np.maximum(self.problem.exact(other.x).curvature, 0.0))
        return bool(0.5 * apart @ shape @ apart < _CLOSE and abs(one.value - other.value) < _CLOSE)

    def best_minimum(self) -> Minimum:
        """The best place seen on the most rows, as a minimum on all of them."""
        assert self.best is not None
        x = self.best[2]
        value, gradient = self.problem.expensive(self.problem.marginal)(x)
        entry = {"value": value, "expected": np.inf, "radius": 0.0}
        total = value + self.problem.exact(x).value
        return Minimum(x, total, gradient, np.eye(len(x)), np.inf, False, False, (entry,))


def different(ends: Sequence[SearchEnd], hopeless: float, same: Callable[[Minimum, Minimum], bool]) -> list[SearchEnd]:
    """Ends that are different optima, best first, without those that are worse than the best by too much."""
    kept: list[SearchEnd] = []
    for end in sorted(ends, key=lambda one: one.minimum.value):
        if kept and not end.minimum.value <= kept[0].minimum.value + hopeless:
            continue
        twin = next((k for k, other in enumerate(kept) if same(end.minimum, other.minimum)), None)
        if twin is None:
            kept.append(end)
        elif end.known and not kept[twin].known and hopeless < np.inf:
            kept[twin] = end  # as good to go on from, and it knows its curvature
    return kept
