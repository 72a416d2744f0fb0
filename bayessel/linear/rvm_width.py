r"""Widths of a relevance vector machine, one or one per input, by its evidence.

With the columns in use held fixed, :math:`L = \log N(t|0, I/\beta + \Phi A^{-1}\Phi^T)` is smooth in the log widths,
in :math:`\log\alpha` and in :math:`\log\beta`; with :math:`r = t-\Phi\mu`

.. math:: \frac{\partial L}{\partial\log r_d} = \sum_{nm} D_{nm}\frac{\partial\phi_{nm}}{\partial\log r_d},\quad
          D = \beta(r\mu^T - \Phi\Sigma),\qquad
          \frac{\partial L}{\partial\log\alpha_i} = \tfrac12(1-\alpha_i\Sigma_{ii}-\alpha_i\mu_i^2),\quad
          \frac{\partial L}{\partial\log\beta} = \tfrac12(N-\gamma-\beta\|r\|^2)

so a quasi-Newton ascent moves all of them together, and `fit_rvm`, started from where it ends, renews the columns. The
two alternate until neither gains; no step loses evidence. The starts are the peaks of a scan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from scipy.linalg import svd
from scipy.optimize import minimize
from scipy.spatial import KDTree

from bayessel._check import FloatArray, as_count, as_flag, as_matrix, as_target, check_magnitude, one_of
from bayessel._numerics import few_threads
from bayessel.basis import KINDS, LazyDesign, RBFDictionary, radial, radial_slope, scaled_distances
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, fingerprint, worst
from bayessel.linear.rvm import RVMFit, fit_rvm
from bayessel.policy import NOISE_SHARE_OF_EVIDENCES, RIVAL_NATS, SAME_WIDTHS, leaves_noise
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: widths of an input are searched up to this multiple of its range; there it has dropped out
WIDEST = 1e3
#: dictionaries of more entries are made column by column
STORED = 30_000_000
#: rounds of moving widths and renewing columns
_ROUNDS = 30
_GAIN = 1e-5


@dataclass(frozen=True)
class RVMOptimum:
    """A local optimum of the evidence over widths."""

    widths: FloatArray
    n_basis: int
    log_evidence: float


@dataclass(frozen=True, eq=False)
class RVMWidthFit(Fit):
    """Widths of a relevance vector machine chosen by its evidence.

    Attributes
    ----------
    widths : (1,) or (D,) array
        r of all inputs, or of each; far larger than the range of an input means that it is irrelevant.
    fit : RVMFit
        The fit at these widths.
    dictionary : RBFDictionary
        The functions at these widths.
    optima : tuple of RVMOptimum
        Distinct local optima that the starts led to, highest first.
    history : tuple of dict
        The coarse scan: width (in units of each input's spread for one width per input) and log_evidence.
    status, notes
        MULTIPLE_OPTIMA when rivals within 10 nats were found, AT_BOUND when the width lies at an end of its range.
    """

    widths: FloatArray
    fit: RVMFit = field(repr=False)
    dictionary: RBFDictionary = field(repr=False)
    optima: tuple[RVMOptimum, ...]
    history: tuple[dict[str, float], ...] = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    evidence: Evidence
    n_rows: int
    fingerprint: str
    target_fingerprint: str
    seconds: float

    def predict(self, rows: Any) -> Prediction:
        """Predictive distributions at new inputs (N, D), widths taken as known."""
        return self.fit.predict(self.dictionary.design(rows))

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others at these widths, columns and precisions."""
        return self.fit.leave_one_out()


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
) -> tuple[float, FloatArray, FloatArray, float]:
    """Log evidence of given columns and its gradient in the (D,) log widths, the log alphas and log beta.

    The columns are a kernel around each of `centers`, then a constant if `bias`.
    """
    r = np.exp(log_widths)
    z = scaled_distances(X, centers, r, origin)
    kernels = radial(kind, z)
    Phi = np.hstack([kernels, np.ones((len(X), 1))]) if bias else kernels
    beta, scale = float(np.exp(log_beta)), np.exp(-0.5 * log_alpha)
    U, s, Vt = svd(Phi * (np.sqrt(beta) * scale), full_matrices=False, check_finite=False)
    kept = s**2 / (1.0 + s**2)
    along = U.T @ t
    residual = t - U @ (kept * along)
    m = (s / (1.0 + s**2) * along * np.sqrt(beta)) @ Vt  # posterior means times sqrt(alpha)
    error = beta * float(residual @ residual)
    log_det = float(np.log1p(s**2).sum())
    value = -0.5 * (len(t) * (np.log(2.0 * np.pi) - log_beta) + log_det + error + float(m @ m))
    by_alpha = 0.5 * (kept @ Vt**2 - m**2)
    by_beta = 0.5 * (len(t) - float(kept.sum()) - error)
    D = np.multiply.outer(beta * residual, m * scale) - np.sqrt(beta) * ((U * (s / (1.0 + s**2))) @ Vt) * scale
    # the sum over the design of W (x_d - c_d)^2 / r_d^2, from two products
    W = radial_slope(kind, z) * (-2.0 * D[:, : len(centers)])
    middle = centers.mean(axis=0) if len(centers) else np.zeros(X.shape[1])
    A, B = (X - middle) / r, (centers - middle) / r
    slope = W.sum(axis=1) @ A**2 + W.sum(axis=0) @ B**2 - 2.0 * np.einsum("nd,nd->d", A, W @ B)
    return value, np.asarray(slope), np.asarray(by_alpha), by_beta


def fit_rvm_width(
    X: Any,
    t: Any,
    *,
    centers: Any = None,
    kind: str = "gaussian",
    bias: bool = True,
    shared: bool = True,
    init: str = "auto",
    n_scan: int = 17,
    n_starts: int = 4,
) -> RVMWidthFit:
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

    Notes
    -----
    The type-II evidence charges nothing for a function. With few rows, a rough target and several inputs, narrow
    widths with many functions can be worth more than wide ones with few: compare `optima`, their `n_basis`, and the
    `model_evidence` of fits at those widths. Fits that leave less than a tenth of the rows to the noise come last.
    The search costs `n_scan` greedy fits, `n_starts` + 12 sparse fits from scratch (24 with one width per input) and a
    few ascents.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(60, 2))
    >>> found = fit_rvm_width(X, np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=60), shared=False)
    >>> bool(found.widths[1] > 5 * found.widths[0])  # the second input does not matter
    True
    """
    inputs = as_matrix(X, "X", allow_1d=True)
    target = as_target(t, len(inputs))
    check_magnitude(inputs, "X")
    middle = inputs if centers is None else as_matrix(centers, "centers", allow_1d=True)
    if middle.shape[1] != inputs.shape[1]:
        raise ValueError(f"centers must have the {inputs.shape[1]} columns of X, got shape {middle.shape}")
    one_of(kind, "kind", KINDS)
    as_count(n_scan, "n_scan", 3)
    as_count(n_starts, "n_starts")
    problem = _Problem(inputs, target, middle, kind, as_flag(bias, "bias"), as_flag(shared, "shared"), init)
    with few_threads(len(inputs) * len(middle)):
        return _search(problem, n_scan, n_starts)


def _search(problem: _Problem, n_scan: int, n_starts: int) -> RVMWidthFit:
    began = perf_counter()
    notes: list[Status] = []
    scan: list[_End] = []
    ends: list[_End] = []
    with InterruptGuard(lambda: scan) as guard:
        lone = problem.is_degenerate()
        offsets = problem.offsets(1 if lone else n_scan)
        for offset in offsets:
            scan.append(problem.fit(np.full(problem.n_widths, offset), coarse=not lone))
        if not lone:
            for one in _peaks(scan)[:n_starts]:
                ends.append(problem.climb(problem.fit(one.u)))
            # other columns may do better at nearly the same width, and the ascent cannot see them: look around
            for step in (offsets[1] - offsets[0]) * np.array([0.9, 0.25, 0.06]):
                centre = max(ends, key=_End.rank).u
                around = [problem.fit(problem.clip(centre + step * k)) for k in problem.around()]
                for one in sorted(around, key=_End.rank, reverse=True)[:2]:
                    ends.append(problem.climb(one))
    if guard.interrupted:
        notes.append(Status.INTERRUPTED)
    found = sorted(ends or scan, key=_End.rank, reverse=True)
    rivals = found[:1]
    for one in found[1:]:
        apart = all(np.abs(problem.seen(one.u) - problem.seen(o.u)).max() > np.log(SAME_WIDTHS) for o in rivals)
        if ends and apart and one.sound == found[0].sound and found[0].value - one.value <= RIVAL_NATS:
            rivals.append(one)
    if len(rivals) > 1:
        notes.append(Status.MULTIPLE_OPTIMA)
    if ends and problem.at_bound(found[0].u):
        notes.append(Status.AT_BOUND)
    notes += [note for note in found[0].fit.notes if note not in notes]
    optima = tuple(RVMOptimum(problem.reported(one.u), one.fit.n_basis, one.value) for one in rivals)
    curve = tuple({"width": float(np.exp(one.u[0]) * problem.unit), "log_evidence": one.value} for one in scan)
    best, widths = found[0].fit, optima[0].widths
    return RVMWidthFit(
        widths=widths,
        fit=best,
        dictionary=problem.dictionary(found[0].u),
        optima=optima,
        history=curve,
        status=worst(notes),
        notes=tuple(notes),
        evidence=Evidence(best.log_evidence, "type2", maximised=("alpha", "beta", "widths"), integrated=("weights",)),
        n_rows=best.n_rows,
        fingerprint=fingerprint(problem.X, problem.t),
        target_fingerprint=fingerprint(problem.t),
        seconds=perf_counter() - began,
    )


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
        self.sound = leaves_noise(fit.n_rows, fit.gamma, NOISE_SHARE_OF_EVIDENCES)

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


class _Problem:
    """The evidence as a function of u, log widths in the unit of the search."""

    def __init__(
        self, X: FloatArray, t: FloatArray, centers: FloatArray, kind: str, bias: bool, shared: bool, init: str
    ) -> None:
        self.X, self.t, self.centers, self.kind, self.bias, self.init = X, t, centers, kind, bias, init
        spread = X.std(axis=0)
        spread = np.where(spread > 0.0, spread, 1.0)
        self.shared = shared
        self.n_widths = 1 if shared else X.shape[1]
        # one width is in the units of the inputs; several are in units of their spreads
        self.unit = float(np.sqrt(np.mean(spread**2))) if shared else 1.0
        self.scale = np.full(X.shape[1], self.unit) if shared else spread
        Z = (X - X.mean(axis=0)) / self.scale
        reach = float(np.ptp(Z, axis=0).max()) or 1.0
        self.low, self.high = np.log(_nearest(Z, reach) / 2.0), np.log(10.0 * reach)
        self.bounds = [(self.low, self.high)] if shared else [(self.low, np.log(WIDEST * reach))] * self.n_widths

    def offsets(self, n: int) -> FloatArray:
        """Points of the scan; the middle when there is only one."""
        return np.linspace(self.low, self.high, n) if n > 1 else np.array([0.5 * (self.low + self.high)])

    def widths(self, u: FloatArray) -> FloatArray:
        """Widths of all inputs."""
        return np.asarray(np.exp(u) * self.scale)

    def reported(self, u: FloatArray) -> FloatArray:
        """One width, or one per input."""
        return self.widths(u)[: self.n_widths]

    def seen(self, u: FloatArray) -> FloatArray:
        """Where two optima differ: widths beyond the range of the inputs are all the same."""
        return np.minimum(u, self.high)

    def dictionary(self, u: FloatArray) -> RBFDictionary:
        """The functions at these widths."""
        return RBFDictionary(self.centers, self.widths(u), kind=self.kind, bias=self.bias)

    def design(self, u: FloatArray) -> Any:
        """Columns of the dictionary at these widths; made as they are needed when they are many."""
        dictionary = self.dictionary(u)
        large = len(self.X) * dictionary.n_columns > STORED
        return LazyDesign(dictionary, self.X) if large else dictionary.design(self.X)

    def is_degenerate(self) -> bool:
        """Whether there is nothing to learn a width from."""
        return len(self.t) < 3 or bool(np.ptp(self.t) == 0.0) or bool((np.ptp(self.X, axis=0) == 0.0).all())

    def around(self) -> tuple[float, ...]:
        """Where to look around an optimum, in steps; several widths have more ways to hide a better one."""
        return (-1, -0.5, 0.5, 1) if self.shared else (-1, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1)

    def at_bound(self, u: FloatArray) -> bool:
        """Whether a width lies at an end; several may be wide, which says that those inputs do not matter."""
        near = u < self.low + 1e-6
        return bool(near.any() or (self.shared and u[0] > self.high - 1e-6))

    def fit(self, u: FloatArray, coarse: bool = False) -> _End:
        """The sparse fit at these widths, from its own starts; `coarse`: from one of them, to see where to look."""
        init = "greedy" if coarse and self.init == "auto" else self.init
        return _End(u, _whole(fit_rvm(self.design(u), self.t, init=init)))

    def clip(self, u: FloatArray) -> FloatArray:
        """The nearest widths within the range."""
        return np.clip(u, [b[0] for b in self.bounds], [b[1] for b in self.bounds])

    def climb(self, start: _End) -> _End:
        """Widths and precisions together uphill, then new columns, until neither gains."""
        u, fit = start.u, start.fit
        for _ in range(_ROUNDS):
            before = fit.log_evidence
            moved, alpha, beta = self._ascend(u, fit)
            if moved is None:
                break
            new = _whole(fit_rvm(self.design(moved), self.t, init=(fit.basis, alpha, beta)))
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

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
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
            )
            slope = np.concatenate([[by_width.sum()] if self.shared else by_width, by_alpha, [by_beta]])
            if not (np.isfinite(value) and np.isfinite(slope).all()):
                return 1e300, np.zeros_like(theta)
            return -value, -slope

        options = {"maxiter": 200, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-6}
        end = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        return np.asarray(end[:d]), np.exp(end[d:-1]), float(np.exp(end[-1]))


def _nearest(Z: FloatArray, reach: float) -> float:
    """Median distance of nearest neighbours that are apart, of at most 2000 rows."""
    some = Z if len(Z) <= 2000 else Z[np.random.default_rng(0).choice(len(Z), 2000, replace=False)]
    some = np.unique(some, axis=0)
    if len(some) < 2:
        return 0.02 * reach
    return max(float(np.median(KDTree(some).query(some, k=2)[0][:, 1])), 1e-3 * reach)
