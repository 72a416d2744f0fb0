"""Fit the hyperparameters of a Gaussian process: maximum a posteriori, or maximum likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from time import perf_counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_count, as_float_array, as_generator, as_positive, check_finite
from bayessel._row_weights import RowWeights
from bayessel._types import Seed
from bayessel.covariance import Covariance, Prior
from bayessel.covariance.standard import as_covariance
from bayessel.fit import Evidence, Status, worst
from bayessel.gp.data_remarks import remarks_about
from bayessel.gp.map_problem import MapProblem
from bayessel.gp.map_result import GPFit, MapOptimum
from bayessel.gp.map_search import MapSearch
from bayessel.gp.marginal import Marginal, SearchedProcess
from bayessel.gp.optimise import Minimum
from bayessel.work.interrupts import InterruptGuard

#: odds of 20 to 1: optima that differ by less are of similar worth
_SIMILAR = float(np.log(20.0))
#: what the second start, and the third where there is no linear part, add to every log w: lengths of a seventh and of a
#: third. From rough functions a search finds its way to smooth ones; the other way it often ends in noise (of 12
#: problems the first start found the best optimum of 6, the second of all but pure noise, a start with longer lengths
#: never more than the first)
_ROUGHER = (4.0, 2.0)
#: lengths, shorter still, that are looked at and only become a further start where few rows speak for them
_MUCH_ROUGHER = (6.0, 8.0, 10.0)
#: rows of that look
_LOOK = 384
#: what the third start adds to the log of a linear part, which else may take what a smooth function would do better
_LESS_LINEAR = -6.0
#: how far the starts but the first tell the inputs apart, on log w: two inputs of equal effect (copies, mirror images)
#: would keep equal weights, and the search would end on the saddle between the modes that favour one of them
_APART = 0.5
#: spread of further starts around the covariance's own, on θ
_SPREAD = 1.5


def fit_map(
    X: ArrayLike,
    t: ArrayLike,
    covariance: Covariance | None = None,
    *,
    prior: Prior | str | None = "default",
    starts: int | ArrayLike = 3,
    fixed: Mapping[str, float] | None = None,
    tol: float = 1e-5,
    max_evaluations: int = 200,
    random_state: Seed = 0,
    noise_std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> GPFit:
    r"""Maximise :math:`\log p(t|\theta) + \log p(\theta)` over the hyperparameters.

    Parameters
    ----------
    X : (n, m) array
        Inputs. The default priors and starts are for standardised data (median 0, mean absolute deviation 1).
    t : (n,) array
        Targets, standardised likewise.
    covariance : Covariance, optional
        Default `bayessel.covariance.Standard`. To one without noise `bayessel.covariance.Noise` is added.
    prior : Prior, "default" or None
        "default": those of the covariance. None: maximum likelihood.
    starts : int or (s, k) array
        Number of starts: that of the covariance, one with shorter lengths, one with less of a linear part (where there
        is none, less short lengths), then random ones; or the starts themselves. All but the first tell the inputs a
        little apart, without which copies of an input would end on a saddle; and where a look at few rows speaks for
        much shorter lengths than theirs, these are a start too.
    fixed : mapping, optional
        Name of a parameter -> its θ (a logarithm), held there. Its prior then takes no part.
    tol : float
        Stop when no more than this is to be gained, in nats.
    max_evaluations : int
        Of the likelihood, per search.
    random_state : int, Generator or None
        Chooses the rows of the first searches, and the random starts.
    noise_std
        Standard deviations of the noise of each row (n,), up to a common factor, which is found: the noise of row i has
        the variance s_i² r²/s², s the geometric mean of all s_i, and a new row is predicted with r².
    sample_weight
        How often each row counts (n,), positive: 2 is a row that came twice.

    Returns
    -------
    GPFit

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> fit = fit_map(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60))
    >>> fit.status.name, bool(fit.relevance.length[0] < fit.relevance.length[1])
    ('CONVERGED', True)
    """
    began = perf_counter()
    weights = RowWeights.of(len(as_float_array(t, "t")), noise_std, sample_weight)
    marginal = Marginal(X, t, as_covariance(covariance).with_noise(), weights)
    found = search_modes(marginal, prior, fixed, starts, tol, max_evaluations, random_state)
    first = found.optima[0]
    return GPFit(
        theta=first.theta,
        names=marginal.names,
        covariance=marginal.covariance,
        prior=found.problem.prior,
        free=found.problem.free,
        X=marginal.X,
        t=marginal.t,
        evidence=found.evidence("type2"),
        log_posterior=first.log_posterior,
        optima=found.optima,
        status=worst(found.notes),
        notes=found.notes,
        history=found.history,
        n_evaluations=found.n_evaluations,
        seconds=perf_counter() - began,
        row_weights=marginal.weights,
    )


class FoundOptima(NamedTuple):
    """What a search for the hyperparameters of a process led to.

    Attributes
    ----------
    problem : MapProblem
    minima : sequence of Minimum
        Different ends, best first, in the coordinates of the search.
    optima : tuple of MapOptimum
        The same as θ.
    notes : tuple of Status
    history : tuple of dict
        One entry per evaluation.
    """

    problem: MapProblem
    minima: Sequence[Minimum]
    optima: tuple[MapOptimum, ...]
    notes: tuple[Status, ...]
    history: tuple[dict[str, float], ...]

    @property
    def n_evaluations(self) -> int:
        """Evaluations on all rows."""
        return sum(entry["rows"] == len(self.problem.marginal.t) for entry in self.history)

    def evidence(self, kind: str) -> Evidence:
        """log p(t|θ) at the best optimum."""
        return Evidence(
            self.optima[0].log_evidence,
            kind,
            maximised=tuple(compress(self.problem.marginal.names, self.problem.free)),
        )


def search_modes(
    marginal: SearchedProcess,
    prior: Prior | str | None,
    fixed: Mapping[str, float] | None,
    starts: int | ArrayLike,
    tol: float,
    max_evaluations: int,
    random_state: Seed,
) -> FoundOptima:
    """Maximise log p(t|θ) + log p(θ) of any process; the options are those of `fit_map`."""
    # which rows come first must not depend on how many starts there are
    rng, for_starts = as_generator(random_state).spawn(2)
    problem = MapProblem.of(marginal, prior, fixed)
    points = _starts(starts, problem, for_starts)
    search = MapSearch(problem, as_positive(tol, "tol"), as_count(max_evaluations, "max_evaluations"), rng)
    found: Sequence[Minimum] = ()
    with InterruptGuard(lambda: search.best is not None) as guard:
        found = search.run(points)
    found = found or [search.best_minimum()]
    optima = []
    for one in found:
        known = problem.exact(one.x).value
        optima.append(MapOptimum(problem.full(one.x), -(one.value - known), -one.value))
    notes = (*_remarks(problem, found, optima, guard.interrupted), *remarks_about(marginal.X, marginal.t))
    return FoundOptima(problem, found, tuple(optima), notes, tuple(search.history))


def _remarks(
    problem: MapProblem, found: Sequence[Minimum], optima: Sequence[MapOptimum], interrupted: bool
) -> list[Status]:
    """What the search itself gives cause to say."""
    best, first = found[0], optima[0]
    notes = [Status.INTERRUPTED] if interrupted else []
    if not interrupted and not best.converged:
        notes.append(Status.ILL_CONDITIONED if best.stuck else Status.STEP_LIMIT)
    if len(optima) > 1 and optima[1].log_posterior > first.log_posterior - _SIMILAR:
        notes.append(Status.MULTIPLE_OPTIMA)
    return notes + problem.at_ends(first.theta)


def _starts(starts: int | ArrayLike, problem: MapProblem, rng: np.random.Generator) -> list[FloatArray]:
    """Return the starts asked for, (k,) each."""
    if isinstance(starts, int | np.integer) or np.ndim(starts) == 0:
        count = as_count(starts, "starts")
        weights = np.array(["log w" in name for name in problem.marginal.names]) & problem.free
        linear = np.array(["log a1" in name for name in problem.marginal.names]) & problem.free
        moves = [more * weights for more in _ROUGHER] if weights.any() else []
        if linear.any():
            moves[1:] = [_LESS_LINEAR * linear]
        rough = _much_rougher(problem, weights, rng) if weights.any() and count > 1 else []
        moves = [move + _APART * _tilt(weights) for move in [*moves[: count - 1], *rough]]
        count += len(rough)
        z = rng.standard_normal((max(count - 1 - len(moves), 0), len(problem.template)))
        return [problem.template + move for move in (0.0, *moves, *(_SPREAD * z))][:count]
    points = np.atleast_2d(as_float_array(starts, "starts"))
    if points.ndim != 2 or points.shape[1] != len(problem.template) or not len(points):
        raise ValueError(
            f"starts must be a number, or points of {len(problem.template)} parameters each "
            f"({', '.join(problem.marginal.names)}), got shape {np.shape(starts)}"
        )
    check_finite(points, "starts")
    return list(points)


def _much_rougher(problem: MapProblem, weights: npt.NDArray[np.bool_], rng: np.random.Generator) -> list[FloatArray]:
    """A move to lengths shorter than those of all other starts, if on few rows the targets speak for it.

    Many periods in one input look like noise from everywhere else. A look costs one Cholesky factor of few rows.
    """
    marginal = problem.marginal
    few = marginal.part(rng.permutation(len(marginal.t))[:_LOOK])
    heights = [few.value(problem.template + more * weights) for more in (0.0, _ROUGHER[0], *_MUCH_ROUGHER)]
    best = int(np.argmax(heights))
    return [np.where(weights, _MUCH_ROUGHER[best - 2], 0.0)] if best >= 2 else []


def _tilt(weights: npt.NDArray[np.bool_]) -> FloatArray:
    """Numbers within ±½, all different, for the parameters marked; 0 for the others. The same whoever asks."""
    tilt = np.zeros(len(weights))
    # multiples of the golden ratio, modulo 1, are spread evenly however many there are
    tilt[weights] = np.modf(0.5 * (1.0 + np.sqrt(5.0)) * np.arange(1, weights.sum() + 1))[0] - 0.5
    return tilt
