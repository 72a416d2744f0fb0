"""The search for hyperparameters under Vecchia's approximation: few rows first, neighbours renewed on the way.

It begins where the exact process on a sample of the rows ends. A prefix of the order is a problem of fewer rows with
neighbours and inducing inputs of its own; what it leads to is near the end on all rows, where evaluations cost more.
The curvature is the expected information, which costs what a few thousand rows cost; with inducing inputs the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance import Prior
from bayessel.fit import Status
from bayessel.gp.inducing.covariance_parts import parts_of
from bayessel.gp.inducing.select import greedy_variance
from bayessel.gp.map_fit import fit_map
from bayessel.gp.map_problem import MapProblem
from bayessel.gp.optimise import Minimum, minimise
from bayessel.gp.vecchia.vecchia_marginal import VecchiaMarginal
from bayessel.work.interrupts import InterruptGuard

#: rows on which the exact process is fitted first
EXACT_ROWS = 1024
#: fewest rows of a search on some of the rows, and how many times as many the next one takes
_FEWEST, _MORE = 5000, 10
#: what a search on some of the rows may leave to be gained, in nats
_ROUGH = 0.1
#: inducing inputs that are tried, up to how many rows, and the gain a row by more neighbours that needs no more of them
INDUCING, INDUCING_ROWS, _ENOUGH = (64, 128, 256), 200_000, 5e-4
#: ratios of lengths that move by less, as logarithms, leave the neighbours as they are
_MOVED = 0.1
#: how often neighbours are renewed
_RENEWALS = 3


class SearchResult(NamedTuple):
    """Where the search on all rows ended."""

    marginal: VecchiaMarginal
    theta: FloatArray
    log_evidence: float
    log_posterior: float
    notes: list[Status]


class VecchiaSearch:
    """From the exact process on a sample, by way of some of the rows, to all rows.

    Attributes
    ----------
    problem : MapProblem
        Priors and what is given; its process is that of all rows.
    history
        One entry per evaluation.
    """

    def __init__(
        self,
        marginal: VecchiaMarginal,
        prior: Prior | str | None,
        fixed: Mapping[str, float] | None,
        tol: float,
        max_evaluations: int,
        rng: np.random.Generator,
    ) -> None:
        self.marginal, self.tol, self.most, self.rng = marginal, tol, max_evaluations, rng
        self.given, self.fixed = prior, fixed
        self.problem = MapProblem.of(marginal, prior, fixed)
        self.history: list[dict[str, float]] = []
        self.best: tuple[float, FloatArray] | None = None

    def run(self, start: FloatArray | None, n_inducing: int | None) -> SearchResult:
        """Search from a start, or from where the exact process on few rows ends."""
        theta = self._exact() if start is None else start
        x = self.problem.coordinates(theta)
        marginal, n = self.marginal, len(self.marginal.t)
        interrupted, end = False, None
        with InterruptGuard(lambda: self.best is not None) as guard:
            few = _FEWEST
            while 2 * few < n:
                part = self._with_inducing(marginal.first(few), self.problem.full(x), n_inducing)
                x = self._minimise(part, x, _ROUGH).x
                few *= _MORE
            for _ in range(_RENEWALS):
                theta = self.problem.full(x)
                if end is None or marginal.moved(theta) > _MOVED:
                    self.best = None
                    marginal = self._with_inducing(marginal, theta, n_inducing)
                elif end.converged:
                    break
                end = self._minimise(marginal, x, self.tol)
                x = end.x
        interrupted = guard.interrupted
        if self.best is not None and interrupted:
            x = self.best[1]
        theta = self.problem.full(x)
        value = marginal.value(theta)
        if not np.isfinite(value):
            raise ValueError(
                "the likelihood cannot be computed in double precision where the search begins; give another start, "
                f"and look for huge values in X: the largest is {np.abs(marginal.X).max():.1e}"
            )
        notes = self._notes(end, interrupted, theta)
        return SearchResult(marginal, theta, value, value - self.problem.exact(x).value, notes)

    def _exact(self) -> FloatArray:
        """θ of the exact process on a sample of the rows."""
        rows = self.marginal.order[:EXACT_ROWS]
        found = fit_map(
            self.marginal.X[rows],
            self.marginal.t[rows],
            self.marginal.covariance,
            prior=self.given,
            fixed=self.fixed,
            tol=_ROUGH,
            random_state=self.rng,
        )
        return found.theta

    def _with_inducing(self, marginal: VecchiaMarginal, theta: FloatArray, count: int | None) -> VecchiaMarginal:
        """The process with neighbours and inducing inputs for the lengths at θ."""
        rows = marginal.rows
        if count == 0 or len(rows) <= marginal.m + 1 or (count is None and len(self.marginal.t) > INDUCING_ROWS):
            marginal.renew(theta)
            return marginal
        parts = parts_of(marginal.covariance, rows.shape[1])
        for many in INDUCING if count is None else (count,):
            Z, _ = greedy_variance(parts, theta, rows, many, np.random.default_rng(0))
            marginal = marginal.changed(inducing=Z, renewed_at=theta)
            if len(Z) < many or many == INDUCING[-1] or marginal.gain_of_neighbours(theta) < _ENOUGH:
                break
        return marginal

    def _minimise(self, marginal: VecchiaMarginal, x: FloatArray, tol: float) -> Minimum:
        """Search on the rows of a process from here."""
        size, whole = len(marginal.t), len(marginal.t) == len(self.marginal.t)

        def keep(x: FloatArray, value: float) -> None:
            if whole and (self.best is None or value < self.best[0]):
                self.best = (value, x)

        # with inducing inputs the information of the neighbours alone is not that of the whole
        plain = marginal.inducing is None
        found = minimise(
            self.problem.expensive(marginal),
            x,
            self._curvature(marginal, x),
            self.problem.exact,
            tol=tol,
            max_evaluations=self.most,
            bounds=self.problem.bounds,
            keep=keep,
            curvature_at=(lambda x: self._curvature(marginal, x)) if plain else None,
        )
        self.history += [{"rows": size, **entry} for entry in found.history]
        return found

    def _curvature(self, marginal: VecchiaMarginal, x: FloatArray) -> FloatArray:
        """Expected information in the coordinates of the search."""
        problem = self.problem
        H = marginal.information(problem.full(x))[np.ix_(problem.free, problem.free)]
        if not np.isfinite(H).all():
            return np.eye(len(x)) * 0.005 * len(marginal.t)
        if problem.roots is not None:
            slope = problem.roots.slope(x)
            H = H * slope[:, None] * slope
        values, vectors = np.linalg.eigh(0.5 * (H + H.T))
        return np.asarray((vectors * np.maximum(values, 1e-3)) @ vectors.T)

    def _notes(self, end: Minimum | None, interrupted: bool, theta: FloatArray) -> list[Status]:
        """What the search gives cause to say."""
        notes = [Status.INTERRUPTED] if interrupted else []
        if end is not None and not interrupted and not end.converged:
            notes.append(Status.ILL_CONDITIONED if end.stuck else Status.STEP_LIMIT)
        return notes + self.problem.at_ends(theta)
