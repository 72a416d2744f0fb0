"""Fit the hyperparameters of a Gaussian process: on few rows first, where evaluations are cheap, then on all.

A search on n/2 rows costs an eighth of one on all, so the chain n/8, n/4, n/2 costs little more than one evaluation and
ends near the mode, with a curvature that fits it: on all rows 6 to 12 evaluations are left of the usual 30 to 80.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_count, as_float_array, as_positive, check_finite
from bayessel.covariance import Covariance, Prior, Standard
from bayessel.gp.laplace import STEP
from bayessel.gp.map_result import GPFit, Optimum
from bayessel.gp.marginal import Marginal
from bayessel.gp.optimise import Minimum, Roots, Terms, minimise
from bayessel.result import Status, worst

#: fewest rows that a search begins with: fewer save little and may miss what is there
_FEWEST = 128
#: so many rows cost so little that a second search needs no excuse
_CHEAP = 512
#: rows per parameter that a search begins with at least
_PER_PARAMETER = 6
#: the curvature of the likelihood grows with the number of rows to about this power: that of the noise in proportion,
#: that of the other parameters more slowly (measured: fewest evaluations between 0.6 and 0.8)
_GROWTH = 0.7
#: curvature per row of the likelihood that a search begins with
_FIRST = 0.005
#: what a search on fewer rows may leave to be gained, in nats
_ROUGH = 0.01
#: optima worse by more, in nats, on fewer rows are not followed further
_HOPELESS = 10.0
#: odds of 20 to 1: optima that differ by less are of similar worth
_SIMILAR = float(np.log(20.0))
#: where the logarithmic coordinate turns into a root, without a prior: this share of the start
_SMALL = 1e-4
#: θ may move this far from the covariance's start: a factor of 10¹³
_RANGE = 30.0
#: least noise variance in units of the mean square of t: below, rounding is what is fitted
_LEAST_NOISE = 1e-10
#: what the second and third start add to every log w: lengths of a seventh and of a third. From rough functions a
#: search finds its way to smooth ones; the other way it often ends in noise (of 12 problems the first start found the
#: best optimum of 6, the second of all but pure noise, a start with longer lengths never more than the first)
_ROUGHER = (4.0, 2.0)
#: spread of further starts around the covariance's own, on θ
_SPREAD = 1.5


def fit_map(
    X: Any,
    t: Any,
    covariance: Covariance | None = None,
    *,
    prior: Prior | str | None = "default",
    starts: int | Any = 3,
    fixed: Mapping[str, float] | None = None,
    tol: float = 1e-5,
    max_evaluations: int = 200,
    random_state: Any = 0,
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
        Number of starts: that of the covariance, two with shorter lengths, then random ones; or the starts themselves.
    fixed : mapping, optional
        Name of a parameter -> its θ (a logarithm), held there. Its prior then takes no part.
    tol : float
        Stop when no more than this is to be gained, in nats.
    max_evaluations : int
        Of the likelihood, per search.
    random_state : int, Generator or None
        Chooses the rows of the first searches, and the random starts.

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
    rng = _generator(random_state)
    marginal = Marginal(X, t, with_noise(Standard() if covariance is None else covariance))
    problem = _Problem.of(marginal, prior, fixed)
    points = _starts(starts, problem, rng)
    search = _Search(problem, as_positive(tol, "tol"), as_count(max_evaluations, "max_evaluations"), rng)
    interrupted = False
    try:
        found = search.run(points)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        found, interrupted = [search.best_minimum()], True
    return _finish(problem, search, found, interrupted)


def with_noise(covariance: Covariance) -> Covariance:
    """The covariance, with noise added to one that has none: without, the targets would have to be exact."""
    if covariance.noisy:
        return covariance
    from bayessel.covariance import Noise

    return covariance + Noise()


@dataclass(frozen=True, eq=False)
class _Problem:
    """The objective over the free parameters, on any of the rows, in the coordinates of the search."""

    marginal: Marginal
    prior: Prior | None
    prior_free: Prior | None
    free: npt.NDArray[np.bool_]
    template: FloatArray
    roots: Roots | None
    noise_index: int | None
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, marginal: Marginal, prior: Prior | str | None, fixed: Mapping[str, float] | None) -> _Problem:
        covariance, m = marginal.covariance, marginal.X.shape[1]
        template = np.array(covariance.start(m), dtype=np.float64)
        free = np.ones(marginal.size, dtype=bool)
        for name, value in _check_fixed(fixed, marginal.names).items():
            at = marginal.names.index(name)
            free[at], template[at] = False, value
        chosen = _check_prior(prior, covariance, marginal)
        part = None if chosen is None else Prior(*(v[free] for v in (chosen.is_normal, chosen.first, chosen.second)))
        start = template[free]
        low, high = start - _RANGE, start + _RANGE
        noise = _noise_index(covariance, template, free, m)
        if noise is not None:
            power = float(np.mean(marginal.t**2))
            low[noise] = np.log(_LEAST_NOISE * power) if power > 0.0 else low[noise]
        roots = Roots(start + np.log(_SMALL)) if part is None else None
        return cls(marginal, chosen, part, free, template, roots, noise, low, high)

    def full(self, x: FloatArray) -> FloatArray:
        """Θ, the given parameters included."""
        theta = self.template.copy()
        theta[self.free] = x if self.roots is None else np.clip(self.roots.theta(x), self.low, self.high)
        return theta

    def coordinates(self, theta: FloatArray) -> FloatArray:
        """Coordinates of the free part of θ."""
        inside = np.clip(theta[self.free], self.low, self.high)
        return inside if self.roots is None else self.roots.of(inside)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the search, in its coordinates."""
        if self.roots is None:
            return self.low, self.high
        far = self.roots.of(self.high)
        near = -far
        if self.noise_index is not None:
            near[self.noise_index] = self.roots.of(self.low)[self.noise_index]
        return near, far

    def dear(self, marginal: Marginal) -> Any:
        """−log p(t|θ) on the rows of `marginal`, with its gradient in the coordinates of the search."""

        def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = marginal.value_and_gradient(self.full(x))
            downhill = -gradient[self.free]
            return -value, downhill if self.roots is None else downhill * self.roots.slope(x)

        return evaluate

    def exact(self, x: FloatArray) -> Terms:
        """−log p(θ) of the free parameters; nothing without a prior."""
        if self.prior_free is None:
            return Terms(0.0, np.zeros(len(x)), np.zeros(len(x)))
        prior = self.prior_free
        return Terms(-prior.log_density(x), -prior.gradient(x), -prior.hessian_diagonal(x))


class _Search:
    """From several starts on few rows to the different optima on all."""

    def __init__(self, problem: _Problem, tol: float, max_evaluations: int, rng: np.random.Generator) -> None:
        self.problem, self.tol, self.max_evaluations = problem, tol, max_evaluations
        n, k = len(problem.marginal.t), int(problem.free.sum())
        self.order = rng.permutation(n)
        fewest = max(_FEWEST, _PER_PARAMETER * k)
        self.sizes = [size for size in (n // 4, n // 2) if size >= fewest and k] + [n]
        self.history: list[dict[str, float]] = []
        self.best: tuple[int, float, FloatArray] | None = None

    def run(self, points: Sequence[FloatArray]) -> list[Minimum]:
        """Return the different minima on all rows, best first."""
        k = int(self.problem.free.sum())
        starts = [(i, self.problem.coordinates(point)) for i, point in enumerate(points)]
        found: list[tuple[int, Minimum]] = []
        for level, size in enumerate(self.sizes):
            states = []
            if level:
                growth = (size / self.sizes[level - 1]) ** _GROWTH
                states = [(i, one.x, one.curvature * growth) for i, one in found]
            # where few rows show no function, more may: they are searched from the starts again, once
            afresh = not level or (
                level == 1 < len(self.sizes) - 1 and all(self._mostly_noise(one.x) for _, one in found)
            )
            if afresh:
                # a parameter's share of the information is a fraction of what the rows have of the noise, n/2
                states += [(i, x, np.eye(k) * (_FIRST * size)) for i, x in starts]
            found = self._level(size, states, afresh)
        return [one for _, one in found]

    def _level(
        self, size: int, states: Sequence[tuple[int, FloatArray, FloatArray]], afresh: bool
    ) -> list[tuple[int, Minimum]]:
        """Search on so many rows from every state; return the different ends that are worth following."""
        problem, last = self.problem, size == self.sizes[-1]
        marginal = problem.marginal
        if not last:
            rows = self.order[:size]
            marginal = Marginal(marginal.X[rows], marginal.t[rows], marginal.covariance)

        def keep(x: FloatArray, value: float) -> None:
            if self.best is None or self.best[0] < size or value < self.best[1]:
                self.best = (size, value, x)

        dear = problem.dear(marginal)

        def search(i: int, x: FloatArray, B: FloatArray, tol: float) -> Minimum:
            end = minimise(
                dear,
                x,
                B,
                problem.exact,
                tol=tol,
                max_evaluations=self.max_evaluations,
                bounds=problem.bounds,
                keep=keep,
            )
            self.history += [{"rows": size, "start": i, **entry} for entry in end.history]
            return end

        ends: list[tuple[int, Minimum]] = []
        for i, x, B in states:
            for point in self._noisier(x):
                # the first is the most promising: only one that comes out higher is followed to the last digit
                end = search(i, point, B, _ROUGH if ends or not last else self.tol)
                if np.isfinite(end.value):
                    break
            if last and ends and _ROUGH >= end.expected > self.tol and end.value < min(one.value for _, one in ends):
                end = search(i, end.x, end.curvature, self.tol)
            ends.append((i, end))
        kept = self._different(ends, np.inf if last else _HOPELESS)
        if afresh and not last:
            kept = [(i, self._with_curvature(size, i, dear, end)) for i, end in kept]
        return kept

    def _different(self, ends: Sequence[tuple[int, Minimum]], hopeless: float) -> list[tuple[int, Minimum]]:
        """Ends that are different optima, best first, without those that are worse than the best by too much."""
        kept: list[tuple[int, Minimum]] = []
        for i, end in sorted(ends, key=lambda pair: pair[1].value):
            if kept and not end.value <= kept[0][1].value + hopeless:
                continue
            if not any(self._same(end, other) for _, other in kept):
                kept.append((i, end))
        return kept

    def _with_curvature(self, size: int, start: int, dear: Any, end: Minimum) -> Minimum:
        """The end with the Hessian by differences, which on few rows costs little, for what updates made up.

        A search leaves a model that is right along the way it took and a guess beside it; with the Hessian the searches
        on more rows need a third of the evaluations.
        """
        H = np.empty((len(end.x), len(end.x)))
        for j in range(len(H)):
            move = np.zeros(len(H))
            move[j] = STEP
            H[j] = (dear(end.x + move)[1] - end.gradient) / STEP
            self.history.append({"rows": size, "start": start, "value": np.nan, "expected": np.nan, "radius": 0.0})
        if not np.isfinite(H).all():
            return end
        values, vectors = np.linalg.eigh(0.5 * (H + H.T))
        return replace(end, curvature=(vectors * np.maximum(np.abs(values), 1e-6)) @ vectors.T)

    def _mostly_noise(self, x: FloatArray) -> bool:
        """Whether the noise explains more than half of the targets' variance."""
        marginal = self.problem.marginal
        noise = marginal.covariance.noise(self.problem.full(x), marginal.X.shape[1])
        return bool(noise > 0.5 * float(np.var(marginal.t)))

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
        return bool(0.5 * apart @ shape @ apart < 0.5 and abs(one.value - other.value) < 0.5)

    def best_minimum(self) -> Minimum:
        """The best place seen on the most rows, as a minimum on all of them."""
        assert self.best is not None
        x = self.best[2]
        value, gradient = self.problem.dear(self.problem.marginal)(x)
        k = len(x)
        entry = {"value": value, "expected": np.inf, "radius": 0.0}
        total = value + self.problem.exact(x).value
        return Minimum(x, total, gradient, np.eye(k), np.inf, False, False, (entry,))


def _finish(problem: _Problem, search: _Search, found: Sequence[Minimum], interrupted: bool) -> GPFit:
    marginal = problem.marginal
    optima = []
    for one in found:
        known = problem.exact(one.x).value
        optima.append(Optimum(problem.full(one.x), -(one.value - known), -one.value))
    best, first = found[0], optima[0]
    notes = [Status.INTERRUPTED] if interrupted else []
    if not interrupted and not best.converged:
        notes.append(Status.ILL_CONDITIONED if best.stuck else Status.STEP_LIMIT)
    if len(optima) > 1 and optima[1].log_posterior > first.log_posterior - _SIMILAR:
        notes.append(Status.MULTIPLE_OPTIMA)
    theta = first.theta[problem.free]
    at_low, at_high = theta <= problem.low + 1e-6, theta >= problem.high - 1e-6
    if problem.noise_index is not None and at_low[problem.noise_index]:
        notes.append(Status.NOISE_AT_FLOOR)
        at_low[problem.noise_index] = False
    if at_high.any() or (problem.roots is None and at_low.any()):
        notes.append(Status.AT_BOUND)
    t = marginal.t
    if len(t) < 3:
        notes.append(Status.TOO_FEW_ROWS)
    elif float(np.ptp(t)) <= 4.0 * np.finfo(float).eps * float(np.abs(t).max()):
        notes.append(Status.CONSTANT_TARGET)
    history = tuple(search.history)
    return GPFit(
        theta=first.theta,
        names=marginal.names,
        covariance=marginal.covariance,
        prior=problem.prior,
        free=problem.free,
        X=marginal.X,
        t=t,
        log_evidence=first.log_evidence,
        log_posterior=first.log_posterior,
        optima=tuple(optima),
        status=worst(notes),
        notes=tuple(notes),
        history=history,
        n_evaluations=sum(entry["rows"] == len(t) for entry in history),
    )


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(None if random_state is None else as_count(random_state, "random_state", minimum=0))


def _check_fixed(fixed: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    if fixed is None:
        return {}
    if not isinstance(fixed, Mapping):
        raise TypeError(f"fixed must be a mapping of a parameter's name to its theta, got {type(fixed).__name__}")
    for name in fixed:
        if name not in names:
            raise ValueError(f"fixed names {name!r}, but the parameters are {', '.join(names)}")
    values = as_float_array([fixed[name] for name in fixed], "fixed")
    check_finite(values, "fixed")
    return dict(zip(fixed, map(float, values), strict=True))


def _check_prior(prior: Prior | str | None, covariance: Covariance, marginal: Marginal) -> Prior | None:
    if prior is None:
        return None
    if isinstance(prior, str):
        if prior != "default":
            raise ValueError(f"prior must be 'default', None (maximum likelihood) or a Prior, got {prior!r}")
        return covariance.prior(marginal.X.shape[1])
    if not isinstance(prior, Prior):
        raise TypeError(f"prior must be 'default', None or a Prior, got {type(prior).__name__}")
    if len(prior.first) != marginal.size:
        raise ValueError(
            f"prior must have {marginal.size} entries ({', '.join(marginal.names)}), got {len(prior.first)}; join the "
            "parts with Prior.join"
        )
    return prior


def _starts(starts: Any, problem: _Problem, rng: np.random.Generator) -> list[FloatArray]:
    """Return the starts asked for, (k,) each."""
    if isinstance(starts, int | np.integer) or np.ndim(starts) == 0:
        count = as_count(starts, "starts")
        weights = np.array(["log w" in name for name in problem.marginal.names]) & problem.free
        rougher = [problem.template + more * weights for more in _ROUGHER] if weights.any() else []
        z = rng.standard_normal((max(count - 1 - len(rougher), 0), len(problem.template)))
        return [problem.template, *rougher, *(problem.template + _SPREAD * z)][:count]
    points = np.atleast_2d(as_float_array(starts, "starts"))
    if points.ndim != 2 or points.shape[1] != len(problem.template) or not len(points):
        raise ValueError(
            f"starts must be a number, or points of {len(problem.template)} parameters each "
            f"({', '.join(problem.marginal.names)}), got shape {np.shape(starts)}"
        )
    check_finite(points, "starts")
    return list(points)


def _noise_index(covariance: Covariance, theta: FloatArray, free: npt.NDArray[np.bool_], m: int) -> int | None:
    """Position, among the free parameters, of the only one that the noise depends on."""
    base = covariance.noise(theta, m)
    moved = []
    for position, i in enumerate(np.flatnonzero(free)):
        other = theta.copy()
        other[i] += 1.0
        if covariance.noise(other, m) != base:
            moved.append(position)
    return moved[0] if len(moved) == 1 else None
