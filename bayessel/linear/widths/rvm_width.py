r"""Widths of a relevance vector machine, one or one per input, by its evidence.

With the columns in use held fixed, :math:`L = \log N(t|0, I/\beta + \Phi A^{-1}\Phi^T)` is smooth in the log widths,
in :math:`\log\alpha` and in :math:`\log\beta` (see `bayessel.linear.widths.gradient`), so a quasi-Newton ascent moves
all of them together, and `fit_rvm`, started from where it ends, renews the columns. The two alternate until neither
gains; no step loses evidence. The starts are the peaks of a scan.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from bayessel._check import FloatArray, IntArray, as_count, as_flag
from bayessel._numerics import few_threads
from bayessel._row_weights import RowWeights, given
from bayessel.basis import LazyDesign, design_of, radial, scaled_distances
from bayessel.fit import Status
from bayessel.linear.rvm import RVMFit, fit_rvm
from bayessel.linear.widths.gradient import evidence_slopes, uphill, width_slopes
from bayessel.linear.widths.result import WidthFit
from bayessel.linear.widths.search import WidthSearch
from bayessel.policy import NOISE_SHARE_OF_EVIDENCES, RIVAL_NATS, SAME_WIDTHS, leaves_noise
from bayessel.work.interrupts import InterruptGuard

#: widths of an input are searched up to this multiple of its range; there it has dropped out
WIDEST = 1e3
#: dictionaries of more entries are made column by column
STORED = 30_000_000
#: rounds of moving widths and renewing columns
_ROUNDS = 30
_GAIN = 1e-5


def width_gradient(
    log_widths: FloatArray,
    log_alpha: FloatArray,
    log_beta: float,
    X: FloatArray,
    centers: FloatArray,
    t: FloatArray,
    *,
    kind: str = "gaussian",
    bias: bool = False,
    origin: FloatArray | None = None,
    weights: RowWeights | None = None,
) -> tuple[float, FloatArray, FloatArray, float]:
    """Log evidence of given columns and its gradient in the (D,) log widths, the log alphas and log beta.

    The columns are a kernel around each of `centers`, then a constant if `bias`.
    """
    r = np.exp(log_widths)
    z = scaled_distances(X, centers, r, origin)
    kernels = radial(kind, z)
    Phi = np.hstack([kernels, np.ones((len(X), 1))]) if bias else kernels
    beta = float(np.exp(log_beta))
    scale = np.exp(0.5 * (log_beta - log_alpha))
    if weights is None:
        at = evidence_slopes(Phi * scale, t, 1.0, beta)
        D = (at.by_columns * scale)[:, : len(centers)]
    else:
        at = evidence_slopes(weights.scale(Phi * scale), weights.scale(t), 1.0, beta, weights.total)
        D = weights.scale(at.by_columns * scale)[:, : len(centers)]
    return at.value, width_slopes(D, kind, z, X, centers, r), at.by_alpha, at.by_beta


def fit_rvm_width(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    centers: npt.ArrayLike | None = None,
    kind: str = "gaussian",
    bias: bool = True,
    shared: bool = True,
    init: str = "auto",
    n_scan: int = 17,
    n_starts: int = 4,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> WidthFit:
    """Fit one width for all inputs, or one per input, under the evidence of a relevance vector machine.

    Parameters
    ----------
    X, t
        Inputs (N, D) and target (N,).
    centers
        Centres of the functions, default the inputs themselves.
    kind
        Kind of radial function.
    bias
        Offer a constant as one more function.
    shared
        One width for all inputs, in their own units; otherwise one per input.
    init
        Starts of the sparse fits, as in `fit_rvm`; with 'auto' the scan makes do with the greedy one.
    n_scan
        Widths of the scan, from half the distance of nearest neighbours to ten times the range of the inputs.
    n_starts
        Peaks of the scan that are followed uphill.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`.

    Notes
    -----
    The type-II evidence charges nothing for a function. With few rows, a rough target and several inputs, narrow
    widths with many functions can be worth more than wide ones with few: compare `optima`, their `n_basis`, and the
    `model_evidence` of fits at those widths. Fits that leave less than a tenth of the rows to the noise come last.
    The search costs `n_scan` greedy fits, `n_starts` + 1 sparse fits from scratch, 12 from a neighbour's (24 with one
    width per input) and a few ascents.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(60, 2))
    >>> found = fit_rvm_width(X, np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=60), shared=False)
    >>> bool(found.widths[1] > 5 * found.widths[0])  # the second input does not matter
    True
    """
    began = perf_counter()
    problem = RVMWidthSearch(X, t, centers, kind, as_flag(bias, "bias"), shared, init, noise_std, sample_weight)
    as_count(n_scan, "n_scan", 3)
    as_count(n_starts, "n_starts")
    notes: list[Status] = []
    scan: list[_End] = []
    ends: list[_End] = []
    with few_threads(len(problem.X) * len(problem.centers)), InterruptGuard(lambda: scan) as guard:
        lone = problem.is_degenerate()
        offsets = np.linspace(problem.low, problem.high, n_scan)
        if lone:
            offsets = np.array([0.5 * (problem.low + problem.high)])
        for offset in offsets:
            scan.append(problem.fit(np.full(problem.n_widths, offset), coarse=not lone))
        if not lone:
            for one in _peaks(scan)[:n_starts]:
                ends.append(problem.climb(problem.fit(one.u)))
            # other columns may do better at nearly the same width, and the ascent cannot see them: look around, and the
            # closer the more widths there are, which have more ways to hide a better one
            around = (-1, -0.5, 0.5, 1) if problem.shared else (-1, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1)
            for step in (offsets[1] - offsets[0]) * np.array([0.9, 0.25, 0.06]):
                best = max(ends, key=_End.rank)
                beside = [problem.near(best, np.clip(best.u + step * k, *np.transpose(problem.bounds))) for k in around]
                for one in sorted(beside, key=_End.rank, reverse=True)[:2]:
                    ends.append(problem.climb(one))
            # all starts once more, where it counts
            ends.append(problem.climb(problem.fit(max(ends, key=_End.rank).u)))
    if guard.interrupted:
        notes.append(Status.INTERRUPTED)
    found = sorted(ends or scan, key=_End.rank, reverse=True)
    rivals = found[:1]
    for one in found[1:]:
        seen = np.minimum([one.u, *(other.u for other in rivals)], problem.high)  # beyond the inputs all are the same
        apart = np.abs(seen[1:] - seen[0]).max(axis=1).min() > np.log(SAME_WIDTHS)
        if ends and apart and one.sound == found[0].sound and found[0].value - one.value <= RIVAL_NATS:
            rivals.append(one)
    if len(rivals) > 1:
        notes.append(Status.MULTIPLE_OPTIMA)
    u = found[0].u  # several widths may be wide, which says that those inputs do not matter
    if ends and ((u < problem.low + 1e-6).any() or (problem.shared and u[0] > problem.high - 1e-6)):
        notes.append(Status.AT_BOUND)
    curve = tuple({"width": float(np.exp(one.u[0]) * problem.unit), "log_evidence": one.value} for one in scan)
    return problem.result([(one.u, one.fit) for one in rivals], notes, curve, perf_counter() - began)


def _whole(fit: RVMFit) -> RVMFit:
    """A fit that Ctrl-C has not cut short; one that it has ends the search."""
    if Status.INTERRUPTED in fit.notes:
        raise KeyboardInterrupt
    return fit


class _End:
    """A place in the search and the fit there."""

    def __init__(self, u: FloatArray, fit: RVMFit) -> None:
        self.u, self.fit, self.value = u, fit, fit.log_evidence
        # a function for almost every row explains anything, and its evidence is that of the rows one by one
        self.sound = leaves_noise(fit.n_counted, fit.gamma, NOISE_SHARE_OF_EVIDENCES)

    def rank(self) -> tuple[bool, float]:
        """Interpolation comes last, whatever its evidence."""
        return self.sound, self.value


def _peaks(scan: list[_End]) -> list[_End]:
    """Local maxima of the scan first, then the rest, each group by height: a narrow peak may hide beside a point."""
    v = np.array([-np.inf, *(one.value if one.sound else -np.inf for one in scan), -np.inf])
    peak = [v[i + 1] >= v[i] and v[i + 1] >= v[i + 2] for i in range(len(scan))]
    near = v.max() - 5.0 * RIVAL_NATS
    order = sorted(range(len(scan)), key=lambda i: (not (peak[i] and v[i + 1] >= near), -v[i + 1], -scan[i].value))
    return [scan[i] for i in order]


class RVMWidthSearch(WidthSearch):
    """The evidence as a function of u, log widths in the unit of the search."""

    def __init__(
        self,
        X: npt.ArrayLike,
        t: npt.ArrayLike,
        centers: npt.ArrayLike | None,
        kind: str,
        bias: bool,
        shared: bool,
        init: str,
        noise_std: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(X, t, centers, kind, bias, shared, noise_std, sample_weight)
        self.init = init
        self.unit = float(self.scale[0]) if self.shared else 1.0
        Z = (self.X - self.X.mean(axis=0)) / self.scale
        reach = float(np.ptp(Z, axis=0).max()) or 1.0
        self.low, self.high = np.log(_nearest(Z, reach) / 2.0), np.log(10.0 * reach)
        self.bounds = [(self.low, self.high)] if self.shared else [(self.low, np.log(WIDEST * reach))] * self.n_widths

    def design(self, u: FloatArray) -> FloatArray | LazyDesign:
        """Columns of the dictionary at these widths; made as they are needed when they are many."""
        return design_of(self.dictionary(u), self.X, STORED)

    def is_degenerate(self) -> bool:
        """Whether there is nothing to learn a width from."""
        return len(self.t) < 3 or bool(np.ptp(self.t) == 0.0) or bool((np.ptp(self.X, axis=0) == 0.0).all())

    def fit(self, u: FloatArray, coarse: bool = False) -> _End:
        """The sparse fit at these widths, from its own starts; `coarse`: from one of them, to see where to look."""
        init = "greedy" if coarse and self.init == "auto" else self.init
        return _End(u, _whole(self._sparse(u, init)))

    def near(self, best: _End, u: FloatArray) -> _End:
        """The sparse fit at widths beside the best: from the fit there, or from two starts of its own."""
        fresh = "quick" if self.init == "auto" else self.init
        warm = best.fit.basis, best.fit.alpha, best.fit.beta
        return max((_End(u, _whole(self._sparse(u, init))) for init in (warm, fresh)), key=_End.rank)

    def _sparse(self, u: FloatArray, init: str | tuple[IntArray, FloatArray, float]) -> RVMFit:
        """The sparse fit at these widths from given starts."""
        return fit_rvm(self.design(u), self.t, init=init, **given(self.weights))

    def climb(self, start: _End) -> _End:
        """Widths and precisions together uphill, then new columns, until neither gains."""
        u, fit = start.u, start.fit
        for _ in range(_ROUNDS):
            before = fit.log_evidence
            moved, alpha, beta = self._ascend(u, fit)
            if moved is None:
                break
            new = _whole(self._sparse(moved, (fit.basis, alpha, beta)))
            if not new.log_evidence > before or (start.sound and not _End(moved, new).sound):
                break
            u, fit = moved, new
            if fit.log_evidence - before < _GAIN:
                break
        return _End(u, fit)

    def _ascend(self, u: FloatArray, fit: RVMFit) -> tuple[FloatArray | None, FloatArray, float]:
        """Quasi-Newton ascent with the columns of `fit` held; None when there is no kernel to widen."""
        kernels = fit.basis[fit.basis < len(self.centers)]
        if not len(kernels):
            return None, fit.alpha, fit.beta
        centers, k, d = self.centers[kernels], fit.n_basis, self.n_widths
        start = np.concatenate([u, np.log(fit.alpha), [np.log(fit.beta)]])
        b = float(start[-1])
        # below the floor of the noise the engine would not follow
        top = b if Status.NOISE_AT_FLOOR in fit.notes else b + 5.0
        bounds = [*self.bounds, *((a - 15.0, a + 15.0) for a in start[d:-1]), (b - 15.0, top)]
        log_scale, origin = np.log(self.scale), self.centers.mean(axis=0)

        def gradient(theta: FloatArray) -> tuple[float, FloatArray]:
            value, by_width, by_alpha, by_beta = width_gradient(
                theta[:d] + log_scale,
                theta[d:-1],
                float(theta[-1]),
                self.X,
                centers,
                self.t,
                kind=self.kind,
                bias=k > len(kernels),
                origin=origin,
                weights=self.weights,
            )
            return value, np.concatenate([[by_width.sum()] if self.shared else by_width, by_alpha, [by_beta]])

        end = uphill(gradient, start, bounds, 200, 1e-13).x
        return np.asarray(end[:d]), np.exp(end[d:-1]), float(np.exp(end[-1]))


def _nearest(Z: FloatArray, reach: float) -> float:
    """Median distance of nearest neighbours that are apart, of at most 2000 rows."""
    some = Z if len(Z) <= 2000 else Z[np.random.default_rng(0).choice(len(Z), 2000, replace=False)]
    some = np.unique(some, axis=0)
    if len(some) < 2:
        return 0.02 * reach
    return max(float(np.median(KDTree(some).query(some, k=2)[0][:, 1])), 1e-3 * reach)
