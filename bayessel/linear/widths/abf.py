r"""All basis functions, their widths fitted by the evidence (ABF): one width per input, chosen by quasi-Newton ascent.

The objective is the profile over the noise level, :math:`L(\lambda, r) = \max_\beta \log p(t|\lambda\beta,\beta,r)`; at
the best :math:`\beta` its slope in :math:`\log\lambda` is the sum of those in all :math:`\log\alpha_i`
(see `bayessel.linear.widths.gradient`).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray, as_count, as_flag, as_positive_vector
from bayessel._numerics import few_threads
from bayessel._row_weights import RowWeights, counted, mean, rows_of_the_fit, some
from bayessel.basis import RBFDictionary, radial, scaled_distances
from bayessel.fit import Status
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import LinearFit, fit_evidence
from bayessel.linear.widths.gradient import evidence_slopes, uphill, width_slopes
from bayessel.linear.widths.result import WidthFit
from bayessel.linear.widths.search import WidthSearch
from bayessel.policy import IMPROVEMENT_NATS, RIVAL_NATS, SAME_WIDTHS
from bayessel.work.interrupts import InterruptGuard

#: entries of a design that is scanned as it is; of larger ones rows and centres at most, and maxima that are followed
SCANNED_WHOLE, SCANNED_ROWS, SCANNED_CENTRES, FEWER_PEAKS = 160_000, 1600, 300, 4
_EPS = float(np.finfo(float).eps)
#: widths are searched between these multiples of each input's spread
WIDTH_RANGE = (1e-2, 1e3)


def profile_gradient(
    log_lam: float,
    log_widths: FloatArray,
    X: FloatArray,
    centers: FloatArray,
    t: FloatArray,
    *,
    kind: str = "gaussian",
    centre: bool = True,
    weights: RowWeights | None = None,
) -> tuple[float, float, FloatArray]:
    """Profiled log evidence and its gradient in log lambda and the log widths.

    `t` is multiplied and centred already where there are `weights` or `centre`. Returns value, d/d log lambda,
    (D,) d/d log r.
    """
    r = np.exp(log_widths)
    z = scaled_distances(X, centers, r)
    Phi = radial(kind, z)
    by_columns = rows_of_the_fit(Phi, centre, weights)
    at = evidence_slopes(by_columns, t, float(np.exp(log_lam)), n_free=counted(t, weights) - int(centre))
    slopes = at.by_columns if weights is None else weights.scale(at.by_columns)
    return at.value, float(at.by_alpha.sum()), width_slopes(slopes, kind, z, X, centers, r)


def fit_abf(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    centers: npt.ArrayLike | None = None,
    kind: str = "gaussian",
    centre: bool = True,
    shared: bool = False,
    start: npt.ArrayLike | None = None,
    n_starts: int = 8,
    max_steps: int = 200,
    seed: int = 0,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> WidthFit:
    """Fit one width per input (or one for all) by the evidence.

    Parameters
    ----------
    X, t
        Inputs (N, D) and target (N,).
    centers
        Centres of the functions, default the inputs themselves.
    kind
        Kind of radial function.
    centre
        Include a bias with a flat prior.
    shared
        One width for all inputs.
    start
        A further start: widths, one or one per input.
    n_starts
        Starts beside those that a scan over one common width suggests: medium, narrow and wide widths in turn, later
        ones at random by `seed`. A single width needs none: the scan sees all of its axis. With four inputs three
        of them miss the best optimum in one problem of four.
    max_steps
        Limit of quasi-Newton steps per start.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(60, 2))
    >>> found = fit_abf(X, np.sin(3 * X[:, 0]) + 0.05 * rng.normal(size=60))
    >>> bool(found.widths[1] > 5 * found.widths[0])  # the second input does not matter
    True
    """
    began = perf_counter()
    problem = ABFSearch(X, t, centers, kind, as_flag(centre, "centre"), shared, noise_std, sample_weight)
    as_count(n_starts, "n_starts")
    as_count(max_steps, "max_steps")
    rng = np.random.default_rng(as_count(seed, "seed", 0))
    runs: list[tuple[float, FloatArray]] = []
    history: list[dict[str, float]] = []
    notes: list[Status] = []
    entries = len(problem.X) * len(problem.centers)
    with few_threads(entries), InterruptGuard(lambda: problem.best is not None) as guard:
        if problem.is_degenerate():  # nothing to learn widths from; the fit's own status says why
            runs.append((0.0, problem.guess(np.zeros(problem.n_widths))))
        for k, theta0 in enumerate([] if runs else problem.starts(start, n_starts, rng)):
            value, theta, steps = problem.ascend(theta0, max_steps)
            runs.append((value, theta))
            history.append(
                {"start": float(k), "steps": float(steps), "value": value, "converged": float(steps < max_steps)}
            )
    if guard.interrupted and problem.best is not None:
        # an ascent that was cut short may have come further than those that ended
        if not runs or problem.best[0] > max(value for value, _ in runs):
            runs.append(problem.best)
        notes.append(Status.INTERRUPTED)
    found = problem.conclude(runs)
    if len(found) > 1:
        notes.append(Status.MULTIPLE_OPTIMA)
    if history and not any(run["converged"] for run in history):
        notes.append(Status.STEP_LIMIT)
    return problem.result(found, notes, tuple(history), perf_counter() - began)


class ABFSearch(WidthSearch):
    """The evidence as a function of theta = (log lambda, log widths in the unit of the search)."""

    def __init__(
        self,
        X: npt.ArrayLike,
        t: npt.ArrayLike,
        centers: npt.ArrayLike | None,
        kind: str,
        centre: bool,
        shared: bool,
        noise_std: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(X, t, centers, kind, False, shared, noise_std, sample_weight)
        self.centre, weights = centre, self.weights
        self.best: tuple[float, FloatArray] | None = None
        self.centred_t = y = self.t - mean(self.t, weights) if centre else self.t
        #: the profile of a unit target differs by a constant only
        self.unit = float(np.sqrt(mean(y**2, weights))) or 1.0
        self.unit_t = rows_of_the_fit(y, centre, weights) / self.unit if weights is not None else y / self.unit
        n = counted(y, weights)
        self.bounds = [(np.log(1e-13 * n), np.log(1e7 * n))]
        self.bounds += [(np.log(WIDTH_RANGE[0]), np.log(WIDTH_RANGE[1]))] * self.n_widths

    def gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """The profiled evidence, and its gradient."""
        log_r = np.log(self.widths(theta[1:]))
        value, d_lam, d_r = profile_gradient(
            float(theta[0]),
            log_r,
            self.X,
            self.centers,
            self.unit_t,
            kind=self.kind,
            centre=self.centre,
            weights=self.weights,
        )
        gradient = np.append(d_lam, d_r.sum() if self.shared else d_r)
        if np.isfinite(gradient).all() and np.isfinite(value) and (self.best is None or value > self.best[0]):
            self.best = value, np.array(theta)
        return value, gradient

    def ascend(self, theta0: FloatArray, max_steps: int) -> tuple[float, FloatArray, int]:
        """Quasi-Newton ascent from one start: value, place, steps."""
        found = uphill(self.gradient, np.clip(theta0, *np.transpose(self.bounds)), self.bounds, max_steps, 1e-12)
        return -float(found.fun), np.asarray(found.x), int(found.nit)

    def is_degenerate(self) -> bool:
        """Whether the target does not vary, or no row is left to tell signal from noise."""
        return counted(self.t, self.weights) - int(self.centre) < 2 or bool(
            np.abs(self.centred_t).max() <= 8.0 * _EPS * np.abs(self.t).max()
        )

    def guess(self, offset: FloatArray) -> FloatArray:
        """Widths at which typical distances give z near 1, times exp(offset), and their best lambda."""
        theta = np.append(0.0, 0.5 * np.log(2.0 * self.X.shape[1]) + offset)
        return self.with_best_lambda(theta)[1]

    def with_best_lambda(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Log evidence at the best lambda of these widths, and theta with a lambda to start from."""
        fit, place = self._at(theta, slice(None), self.centers)
        if self.best is None or fit.log_evidence > self.best[0]:  # what an interruption before any ascent gives back
            self.best = fit.log_evidence, place
        return fit.log_evidence, place

    def _at(self, theta: FloatArray, rows: Any, centers: FloatArray) -> tuple[LinearFit, FloatArray]:
        """The fit of some rows by functions at some centres, at these widths, and where to start from."""
        d = RBFDictionary(centers, self.widths(theta[1:]), kind=self.kind, bias=False)
        Phi, weights = d.design(self.X[rows]), some(self.weights, rows)
        y = (self.unit_t if self.weights is None else self.centred_t / self.unit)[rows]
        fit = fit_evidence(Spectrum.of(Phi, y, centre=self.centre, weights=weights))
        # neither interpolation nor pure noise is a place to start from: there the gradients in the widths vanish
        size = float(mean((Phi**2).sum(axis=1), weights)) if weights else float((Phi**2).sum()) / len(Phi)
        return fit, np.append(np.log(np.clip(fit.lam, 1e-10 * size, 1e-1 * size)), theta[1:])

    def scan(self) -> list[FloatArray]:
        """Local maxima of the evidence along one common width.

        Of many rows and functions some are looked at, and all of them at the maxima: a factor of all costs the cube.
        """
        n, m = len(self.X), len(self.centers)
        few = n * m > SCANNED_WHOLE
        points = 40 if self.n_widths == 1 else 12
        low, high = self.bounds[1] if self.n_widths == 1 else (np.log(0.1), np.log(30.0))
        rows = _spread(self.X, SCANNED_ROWS) if few else np.arange(n)
        centers = self.centers[_spread(self.centers, SCANNED_CENTRES)] if few else self.centers
        found: list[tuple[float, FloatArray]] = []
        for u in np.linspace(low, high, points):
            theta = np.append(0.0, np.full(self.n_widths, u))
            if few:
                fit, place = self._at(theta, rows, centers)
                found.append((fit.log_evidence, place))
            else:
                found.append(self.with_best_lambda(theta))
        values = np.array([-np.inf, *(value for value, _ in found), -np.inf])
        peaks = [i for i in range(points) if values[i + 1] > values[i] and values[i + 1] >= values[i + 2]]
        best = [found[i][1] for i in sorted(peaks, key=lambda i: -found[i][0])[: FEWER_PEAKS if few else 6]]
        return [self.with_best_lambda(theta)[1] for theta in best] if few else best

    def starts(self, given: npt.ArrayLike | None, n_starts: int, rng: np.random.Generator) -> list[FloatArray]:
        """Starts: the user's first, then the peaks of the scan, then medium, narrow, wide and random widths."""
        out = []
        if given is not None:
            own = np.log(as_positive_vector(given, "start", self.X.shape[1])) - np.log(self.scale)
            out.append(self.with_best_lambda(np.append(0.0, own[: self.n_widths]))[1])
        out += self.scan()
        if self.n_widths > 1:
            offsets = [np.zeros(self.n_widths), np.full(self.n_widths, -1.5), np.full(self.n_widths, 1.5)]
            while len(offsets) < n_starts:
                offsets.append(rng.normal(0.0, 1.0, self.n_widths))
            out += [self.guess(offset) for offset in offsets[:n_starts]]
        return out

    def conclude(self, runs: list[tuple[float, FloatArray]]) -> list[tuple[FloatArray, LinearFit]]:
        """Log widths of distinct optima worth reporting, highest first, each with the exact evidence fit there."""
        distinct: list[tuple[float, FloatArray]] = []
        for value, theta in sorted(runs, key=lambda run: -run[0]):
            # widths so large that the input has dropped out are one and the same
            key = np.minimum(theta[1:], np.log(30.0))
            near = [
                np.abs(key - np.minimum(o[1:], np.log(30.0))).max() < np.log(SAME_WIDTHS)
                and abs(value - v) < IMPROVEMENT_NATS
                for v, o in distinct
            ]
            if not any(near) and (not distinct or distinct[0][0] - value <= RIVAL_NATS):
                distinct.append((value, theta))
        found: list[tuple[FloatArray, LinearFit]] = []
        for _, theta in distinct:
            Phi = self.dictionary(theta[1:]).design(self.X)
            fit = fit_evidence(Spectrum.of(Phi, self.t, centre=self.centre, weights=self.weights))
            silent = Status.PURE_NOISE in fit.notes
            if silent and any(Status.PURE_NOISE in other.notes for _, other in found):
                continue  # without signal every width is the same model
            found.append((theta[1:], fit))
        return sorted(found, key=lambda pair: -pair[1].log_evidence)


def _spread(X: FloatArray, most: int) -> IntArray:
    """Numbers of at most so many rows, evenly spread over their order by the first inputs."""
    if len(X) <= most:
        return np.arange(len(X))
    return np.lexsort(X.T[::-1])[np.linspace(0, len(X) - 1, most).round().astype(np.intp)]
