r"""Prequential code length of a PyMC model: every row coded by its prediction from the rows before it, in nats.

.. math:: L = -\sum_i\log p(y_i|y_1,\dots,y_{i-1}) = -\log p(y)

From particles θ given the first n rows, the density of the next ones is the mean of
:math:`\prod_{n<j\le m} p(y_j|\theta)`, and the terms are differences of its logarithm (iterated batch importance
sampling, Chopin 2002). When these products have become too unequal, which the index k of their tail and the number of
particles that they are worth tell, particles are drawn anew by them and moved given the rows before. A row that is too
much of a surprise alone is taken in by degrees: its likelihood to a power first. The first particles are of the prior.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import logsumexp

from bayessel._check import FloatArray, IntArray, as_positive, chosen_seed
from bayessel._types import Seed
from bayessel.errors import SamplingWarning
from bayessel.marginal_likelihood.annealing_route import LARGEST_ERROR
from bayessel.marginal_likelihood.elpd import ELPDDataPrequential, prequential_elpd
from bayessel.marginal_likelihood.pareto import tail_index
from bayessel.marginal_likelihood.weighted_rows import Moves, WeightedRows
from bayessel.pages.result_view import ResultView, ShownResult, Standing
from bayessel.samplers.annealing import draw_anew, effective, log_mean, relative_error
from bayessel.samplers.run.arguments import as_model
from bayessel.work.threads import one_blas_thread

#: index of the tail of the weights from which on particles are made anew
LARGEST_K = 0.7
#: share of the particles that the weights are worth, below which they are made anew
LEAST_SHARE = 0.3
#: share below which a row is doubtful that cannot be taken in by degrees
_DOUBTFUL_SHARE = 0.01
#: of a row's likelihood, relative to what is left of it, and halvings of the interval in which a power is looked for
_LEAST_POWER, _HALVINGS = 1e-12, 20
#: independent groups, whose spread is the error; particles of each with effort 1, more per coordinate, and at least
GROUPS, PARTICLES, MORE_PARTICLES, FEWEST = 8, 500, 20, 100
#: correlation of particles with where they were, and share that is there still, beyond which moves were not enough
LARGEST_CORRELATION, MOST_STAYED = 0.7, 0.1
#: names this module's stream of random numbers
_STREAM = 2002


@dataclass(frozen=True, eq=False)
class PrequentialLength(ShownResult):
    """Prequential code length of the data under a model.

    Attributes
    ----------
    nats : float
        The code length; minus the log evidence, in any order of the rows.
    std_error : float
        Monte Carlo standard error of it. That of a difference is no larger than both together.
    rows : (N,) array
        Nats of each row, in the order in which it was coded.
    order : (N,) array
        Row coded at each place.
    pareto_k : (N,) array
        Index of the tail of the weights by which each row was coded; below 0.7 they can be relied on.
    refits : tuple of dict
        For the prior and each time that particles were made anew: n (rows they had seen; a fraction is a row taken in
        by degrees), until (rows coded by them), pareto_k and share (of their weights there), acceptance (of their
        moves), correlation (with where they were before), stayed (share that is there still).
    reliable : bool
        Whether all weights and moves may be used.
    verdict : str
        Why not, or that they may.
    n_draws : int
        Particles.
    random_seed : int
    """

    nats: float
    std_error: float
    rows: FloatArray = field(repr=False)
    order: IntArray = field(repr=False)
    pareto_k: FloatArray = field(repr=False)
    refits: tuple[dict[str, float], ...] = field(repr=False)
    reliable: bool
    verdict: str
    n_draws: int
    random_seed: int

    def _view(self) -> ResultView:
        status = "reliable" if self.reliable else "not reliable"
        title = f"Prequential code length {self.nats:.3f} ± {self.std_error:.2g} nats of {len(self.rows)} rows"
        return ResultView(title, status, Standing.of(self.reliable), [self.verdict])

    def elpd(self) -> ELPDDataPrequential:
        """The terms as ArviZ's container, by row of the data, for ``az.compare({"a": a.elpd(), "b": b.elpd()})``.

        Models are compared in the same order of the same rows. Its kind is "prequential": beside results of `az.loo`
        ArviZ refuses it, but of a trace it takes the leave-one-out without being asked; pass results alone.

        Returns
        -------
        ELPDDataPrequential
        """
        terms, k = np.empty_like(self.rows), np.empty_like(self.rows)
        terms[self.order], k[self.order] = -self.rows, self.pareto_k
        return prequential_elpd(terms, k, LARGEST_K, self.n_draws, not self.reliable)


def prequential_of(
    model: pm.Model | None = None,
    *,
    order: ArrayLike | None = None,
    effort: float = 1.0,
    random_seed: Seed = None,
) -> PrequentialLength:
    """Code every row of a PyMC model's data by its prediction from the rows before it.

    For models with one observed variable whose rows are independent given the parameters. `prequential` is for linear
    fits, whose hyperparameters are maximised.

    Parameters
    ----------
    model : pymc.Model, optional
        By default the model of the context. It is left as it was.
    order : (N,) array of int, optional
        Permutation of the rows; by default as they are.
    effort : float
        How many times the usual particles; 4 times as many halve the error.
    random_seed : int or Generator, optional
        None takes a random one; it is in the result.

    Returns
    -------
    PrequentialLength

    Raises
    ------
    TypeError
        Free variables are discrete.
    ValueError
        The model has several observed variables, potentials or flat priors, or one joint density for all rows; or a row
        has no probability.

    Warns
    -----
    SamplingWarning
        The length is not reliable.

    Notes
    -----
    The sum is minus the log evidence, for which `bayessel.evidence` is the better tool; the terms say where models gain
    and lose. It depends on priors as the evidence does, the terms of the first rows most of all.

    Examples
    --------
    >>> import pymc as pm, bayessel as bs
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=[1, 1, 0, 1])
    >>> found = bs.diagnostics.prequential_of(model, random_seed=1)
    >>> exact = np.log([2, 3 / 2, 4, 5 / 3])  # by the rule of succession
    >>> bool(np.abs(found.rows - exact).max() < 0.1)
    True
    """
    model, effort = as_model(model), as_positive(effort, "effort")
    seed = chosen_seed(random_seed, "random_seed")
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", RuntimeWarning)
        rows = WeightedRows(model)
        rows.order = _as_order(order, rows.count)
        particles = max(FEWEST, int(effort * rows.share * (PARTICLES + MORE_PARTICLES * rows.size)))
        walk = _Walk(rows, particles, np.random.default_rng([seed, _STREAM]))
        walk.go()
    # two errors shall cover what they would cover of a normal distribution, though few groups tell the spread
    error = relative_error(walk.reached) * float(stats.t.ppf(0.977, GROUPS - 1) / 2.0)
    doubts = list(walk.doubts)
    if not error < LARGEST_ERROR:
        doubts.append(f"the standard error is {error:.2g} nats")
    verdict = "; ".join(doubts) or "all weights and moves may be used"
    if doubts:
        warnings.warn(
            f"the prequential length is not reliable: {verdict}. More particles help (effort={4 * effort:g})",
            SamplingWarning,
            stacklevel=2,
        )
    return PrequentialLength(
        nats=float(-walk.terms.sum()),
        std_error=error,
        rows=-walk.terms,
        order=rows.order,
        pareto_k=walk.k,
        refits=tuple(walk.refits),
        reliable=not doubts,
        verdict=verdict,
        n_draws=GROUPS * particles,
        random_seed=seed,
    )


class _Walk:
    """Independent groups of particles, led from the prior through the rows, from the first to the last.

    Attributes
    ----------
    reached : (groups,) array
        Log density of the rows so far, as each group has it.
    """

    def __init__(self, rows: WeightedRows, particles: int, rng: np.random.Generator) -> None:
        self._rows, self._rng, self._each = rows, rng, particles
        self.terms, self.k = np.empty(rows.count), np.empty(rows.count)
        self.refits: list[dict[str, float]] = []
        self.doubts: list[str] = []
        self.reached = np.zeros(GROUPS)
        self._particles = rows.prior(rng, GROUPS * particles)
        self._begin(0.0, Moves(np.nan, np.nan, np.nan)._asdict())

    def go(self) -> None:
        """Code every row."""
        before = 0.0
        for place in range(self._rows.count):
            self.k[place] = self._take_in(place)
            now = log_mean(self.reached)
            self.terms[place], before = now - before, now
        self._end()

    def _begin(self, at: float, said: dict[str, float]) -> None:
        """Go on from particles given `at` rows."""
        self._now = self._until = at
        self._base = self.reached
        self._terms = self._rows.terms(self._particles).reshape(GROUPS, self._each, -1)
        self._logs = np.zeros((GROUPS, self._each))
        self.refits.append({"n": at, **said})

    def _end(self) -> None:
        found = _Weights.of(self._logs)
        self.refits[-1] |= {"until": self._until, "pareto_k": found.k, "share": found.share}

    def _step(self, logs: FloatArray, until: float) -> None:
        self._logs, self._until = logs, until
        self.reached = self._base + logsumexp(logs, axis=1) - np.log(self._each)

    def _refit(self) -> None:
        """Choose particles by their weights, and move them given the rows that were taken in."""
        self._end()
        at, size, chosen = self._until, self._particles.shape[1], []
        for group, logs in zip(self._particles.reshape(GROUPS, self._each, size), self._logs, strict=True):
            if np.isfinite(logs.max()):
                chosen.append(group[draw_anew(logs, self._rng)])
            else:  # a lost group counts as nought, and goes on for its size alone
                every = np.exp(self._logs - self._logs.max()).ravel()
                chosen.append(self._particles[self._rng.choice(len(every), self._each, p=every / every.sum())])
        self._particles = np.concatenate(chosen)
        seen = np.clip(at - np.arange(self._rows.count), 0.0, 1.0)
        found = self._rows.move(self._particles, seen, self._rng)
        if found.correlation > LARGEST_CORRELATION or found.stayed > MOST_STAYED:
            self.doubts.append(
                f"of the particles given {at:.3g} rows {100.0 * found.stayed:.0f} % have not moved, the others have a "
                f"correlation of {found.correlation:.2f} with where they were"
            )
        self._begin(at, found._asdict())

    def _take_in(self, place: int) -> float:
        """Weights up to the end of a row, usable if there is a way to have such; the index of their tail."""
        while True:
            left = place + 1.0 - max(self._until, place)
            row = self._terms[..., place]
            logs = self._logs + left * row
            found = _Weights.of(logs)
            if not found.usable:
                if self._until > self._now:
                    self._refit()
                    continue
                power = _power(row, left)
                if power is not None:
                    self._step(power * row, self._now + power)
                    self._refit()
                    continue
                self._doubt(place, found)
            self._step(logs, place + 1.0)
            return found.k

    def _doubt(self, place: int, found: _Weights) -> None:
        row = self._rows.order[place]
        if not found.share:
            raise ValueError(
                f"row {row} has no probability: no particle given the rows before it allows its value; correct it, or "
                "widen what the model allows"
            )
        if found.k > LARGEST_K or found.share < _DOUBTFUL_SHARE:
            self.doubts.append(f"row {row} is coded by {100.0 * found.share:.2g} % of the particles (k {found.k:.2f})")


class _Weights(NamedTuple):
    """What log weights come to: index of the tail, and the share of the particles that they are worth."""

    k: float
    share: float

    @classmethod
    def of(cls, logs: FloatArray) -> _Weights:
        """Of weights of any shape."""
        if not np.isfinite(logs.max()):
            return cls(np.inf, 0.0)
        return cls(_tail(logs), effective(logs) / logs.size)

    @property
    def usable(self) -> bool:
        """Whether particles weighed by them are as good as particles made anew."""
        return self.k <= LARGEST_K and self.share >= LEAST_SHARE


def _tail(logs: FloatArray) -> float:
    """Index of the tail; of different weights alone where equal ones, of particles that stayed, are all of it."""
    for kept in (logs, np.unique(logs)):
        try:
            k = tail_index(kept)
        except ValueError:  # the largest are all equal
            continue
        if k < np.inf:
            return k
    return float("inf")


def _power(row: FloatArray, left: float) -> float | None:
    """The largest power of a row's likelihood, below `left`, whose weights are usable; None if there is none."""
    low, high = np.log(left) + np.log(_LEAST_POWER), np.log(left)
    if not _Weights.of(np.exp(low) * row).usable:
        return None
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _Weights.of(np.exp(middle) * row).usable else (low, middle)
    return float(np.exp(low))


def _as_order(order: ArrayLike | None, count: int) -> IntArray:
    if order is None:
        return np.arange(count)
    given = np.asarray(order)
    if given.dtype.kind not in "iu" or given.shape != (count,) or not np.array_equal(np.sort(given), np.arange(count)):
        raise ValueError(
            f"order must be a permutation of 0..{count - 1}, such as np.random.default_rng(0).permutation({count}); "
            f"got an array of shape {given.shape}"
        )
    return given.astype(np.intp)
