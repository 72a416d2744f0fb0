r"""All basis functions, their widths fitted by the evidence (ABF): one width per input, chosen by quasi-Newton ascent.

The objective is the profile over the noise level, :math:`L(\lambda, r) = \max_\beta \log p(t|\lambda\beta,\beta,r)`.
With :math:`G = \Phi(\Phi^T\Phi+\lambda I)^{-1}` and :math:`\mu = G^Tt` its gradient is

.. math:: \frac{\partial L}{\partial\log\lambda} = \tfrac12(\gamma - \beta\lambda\|\mu\|^2),\qquad
          \frac{\partial L}{\partial\log r_d} = \sum_{nm} D_{nm}\frac{\partial\phi_{nm}}{\partial\log r_d},\quad
          D = \beta(t-\Phi\mu)\mu^T - G

and since :math:`z` is a sum over inputs, all D width gradients come from two matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.optimize import minimize

from bayessel._check import FloatArray, as_count, as_flag, as_matrix, as_positive_vector, as_target, one_of
from bayessel._numerics import few_threads
from bayessel.basis import KINDS, RBFDictionary, radial, radial_slope, scaled_distances
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, fingerprint, worst
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import LinearFit, fit_evidence
from bayessel.policy import IMPROVEMENT_NATS, RIVAL_NATS, SAME_WIDTHS
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

_EPS = float(np.finfo(float).eps)
#: widths are searched between these multiples of each input's spread
WIDTH_RANGE = (1e-2, 1e3)


@dataclass(frozen=True)
class WidthOptimum:
    """A local optimum of the evidence over widths."""

    widths: FloatArray
    lam: float
    log_evidence: float


@dataclass(frozen=True, eq=False)
class WidthFit(Fit):
    """Widths fitted by the evidence.

    Attributes
    ----------
    widths : (D,) array
        r of each input; far larger than the spread of the input means that it is irrelevant.
    fit : LinearFit
        The evidence fit at these widths.
    dictionary : RBFDictionary
        The functions at these widths, without the bias.
    optima : tuple of WidthOptimum
        Every distinct local optimum that the starts found, highest first.
    status, notes
        MULTIPLE_OPTIMA when rivals within 10 nats were found.
    history : tuple of dict
        One entry per start.
    """

    widths: FloatArray
    fit: LinearFit = field(repr=False)
    dictionary: RBFDictionary = field(repr=False)
    optima: tuple[WidthOptimum, ...]
    status: Status
    notes: tuple[Status, ...]
    history: tuple[dict[str, float], ...]
    evidence: Evidence
    n_rows: int
    fingerprint: str
    target_fingerprint: str
    seconds: float

    def predict(self, rows: Any) -> Prediction:
        """Predictive distributions at new inputs (N, D), widths taken as known."""
        return self.fit.predict(self.dictionary.columns(rows))

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others at these widths and precisions."""
        return self.fit.leave_one_out()


def profile_gradient(
    log_lam: float,
    log_widths: FloatArray,
    X: FloatArray,
    centers: FloatArray,
    t: FloatArray,
    *,
    kind: str = "gaussian",
    centre: bool = True,
) -> tuple[float, float, FloatArray]:
    """Profiled log evidence (up to a constant of the data) and its gradient in log lambda and the log widths.

    `t` is centred already when `centre`. Returns value, d/d log lambda, (D,) d/d log r.
    """
    lam, r = float(np.exp(log_lam)), np.exp(log_widths)
    z = scaled_distances(X, centers, r)
    Phi = radial(kind, z)
    if centre:
        Phi = Phi - Phi.mean(axis=0)
    free = len(Phi) - int(centre)
    G, log_det = _ridge_operator(Phi, lam)
    mu = G.T @ t
    residual = t - Phi @ mu
    quad = float(residual @ residual + lam * (mu @ mu))
    floor = max((4.0 * _EPS) ** 2 * float(t @ t), 1e-300)
    beta = free / max(quad, floor)
    value = 0.5 * (free * np.log(beta) - log_det - beta * quad)
    gamma = float(np.einsum("ij,ij->", G, Phi))
    # W = D dphi/dz (-2): what multiplies (x_d - c_d)^2 / r_d^2 in the sum over the design
    W = radial_slope(kind, z)
    W *= -2.0 * (np.multiply.outer(beta * residual, mu) - G)
    origin = centers.mean(axis=0)
    A, B = (X - origin) / r, (centers - origin) / r
    slope = W.sum(axis=1) @ A**2 + W.sum(axis=0) @ B**2 - 2.0 * np.einsum("nd,nd->d", A, W @ B)
    return float(value), 0.5 * (gamma - beta * lam * float(mu @ mu)), slope


def _ridge_operator(Phi: FloatArray, lam: float) -> tuple[FloatArray, float]:
    """G = Phi (Phi^T Phi + lambda I)^-1, log|I + Phi Phi^T/lambda|; by the smaller Gram matrix where that is safe."""
    n, m = Phi.shape
    wide = m >= n
    K = Phi @ Phi.T if wide else Phi.T @ Phi
    size = n if wide else m
    if _EPS * np.trace(K) < 1e-7 * lam:
        K[np.diag_indices(size)] += lam
        factor, info = sl.lapack.dpotrf(K, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            log_det = 2.0 * float(np.log(np.diag(factor)).sum()) - size * np.log(lam)
            inverse, _ = sl.lapack.dpotri(factor, lower=1, overwrite_c=1)
            inverse = np.tril(inverse) + np.tril(inverse, -1).T
            return (inverse @ Phi if wide else Phi @ inverse), log_det
    U, s, Vt = sl.svd(Phi, full_matrices=False, check_finite=False)
    return (U * (s / (s**2 + lam))) @ Vt, float(np.log1p(s**2 / lam).sum())


def fit_abf(
    X: Any,
    t: Any,
    *,
    centers: Any = None,
    kind: str = "gaussian",
    centre: bool = True,
    shared: bool = False,
    start: Any = None,
    n_starts: int = 3,
    max_steps: int = 200,
    seed: int = 0,
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
        ones at random by `seed`. A single width needs none: the scan sees all of its axis.
    max_steps
        Limit of quasi-Newton steps per start.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(60, 2))
    >>> found = fit_abf(X, np.sin(3 * X[:, 0]) + 0.05 * rng.normal(size=60))
    >>> bool(found.widths[1] > 5 * found.widths[0])  # the second input does not matter
    True
    """
    inputs = as_matrix(X, "X", allow_1d=True)
    target = as_target(t, len(inputs))
    middle = inputs if centers is None else as_matrix(centers, "centers", allow_1d=True)
    if middle.shape[1] != inputs.shape[1]:
        raise ValueError(f"centers must have the {inputs.shape[1]} columns of X, got shape {middle.shape}")
    one_of(kind, "kind", KINDS)
    as_count(n_starts, "n_starts")
    as_count(max_steps, "max_steps")
    problem = _Problem(inputs, target, middle, kind, as_flag(centre, "centre"), as_flag(shared, "shared"))
    with few_threads(len(inputs) * len(middle)):
        return _search(problem, start, n_starts, max_steps, np.random.default_rng(as_count(seed, "seed", 0)))


def _search(problem: _Problem, start: Any, n_starts: int, max_steps: int, rng: np.random.Generator) -> WidthFit:
    began = perf_counter()
    runs: list[tuple[float, FloatArray]] = []
    history: list[dict[str, float]] = []
    notes: list[Status] = []
    with InterruptGuard(lambda: problem.best is not None) as guard:
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
    optima, fits = problem.conclude(runs)
    if len(optima) > 1:
        notes.append(Status.MULTIPLE_OPTIMA)
    if history and not any(run["converged"] for run in history):
        notes.append(Status.STEP_LIMIT)
    notes += [note for note in fits[0].notes if note not in notes]
    best, widths = fits[0], optima[0].widths
    return WidthFit(
        widths=widths,
        fit=best,
        dictionary=RBFDictionary(problem.centers, widths if len(widths) > 1 else widths[0], problem.kind, bias=False),
        optima=tuple(optima),
        status=worst(notes),
        notes=tuple(notes),
        history=tuple(history),
        evidence=replace(best.evidence, maximised=(*best.evidence.maximised, "widths")),
        n_rows=best.n_rows,
        fingerprint=fingerprint(problem.X, problem.t),
        target_fingerprint=best.target_fingerprint,
        seconds=perf_counter() - began,
    )


class _Problem:
    """The evidence as a function of theta = (log lambda, log widths in units of each input's spread)."""

    def __init__(
        self, X: FloatArray, t: FloatArray, centers: FloatArray, kind: str, centre: bool, shared: bool
    ) -> None:
        self.X, self.t, self.centers, self.kind, self.centre, self.shared = X, t, centers, kind, centre, shared
        self.best: tuple[float, FloatArray] | None = None
        y = t - t.mean() if centre else t
        self.unit_t = y / (np.sqrt(np.mean(y**2)) or 1.0)  # the profile of a unit target differs by a constant only
        spread = X.std(axis=0)
        self.spread = np.where(spread > 0.0, spread, 1.0)
        self.n_widths = 1 if shared else X.shape[1]
        self.bounds = [(np.log(1e-13 * len(X)), np.log(1e7 * len(X)))]
        self.bounds += [(np.log(WIDTH_RANGE[0]), np.log(WIDTH_RANGE[1]))] * self.n_widths

    def widths(self, theta: FloatArray) -> FloatArray:
        """Widths in the units of the inputs."""
        return np.asarray(np.exp(theta[1:]) * self.spread)

    def design(self, theta: FloatArray) -> FloatArray:
        """Kernel columns at these widths."""
        return radial(self.kind, scaled_distances(self.X, self.centers, self.widths(theta)))

    def objective(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Minus the profiled evidence, and its gradient."""
        log_r = np.log(self.widths(theta))
        value, d_lam, d_r = profile_gradient(
            float(theta[0]), log_r, self.X, self.centers, self.unit_t, kind=self.kind, centre=self.centre
        )
        gradient = np.append(d_lam, d_r.sum() if self.shared else d_r)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e300, np.zeros_like(theta)
        self._see(value, theta)
        return -value, -gradient

    def _see(self, value: float, theta: FloatArray) -> None:
        """Remember the best place that was looked at."""
        if self.best is None or value > self.best[0]:
            self.best = value, np.array(theta)

    def ascend(self, theta0: FloatArray, max_steps: int) -> tuple[float, FloatArray, int]:
        """Quasi-Newton ascent from one start: value, place, steps."""
        theta0 = np.clip(theta0, [b[0] for b in self.bounds], [b[1] for b in self.bounds])
        options = {"maxiter": max_steps, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-6}
        found = minimize(self.objective, theta0, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options)
        return -float(found.fun), np.asarray(found.x), int(found.nit)

    def is_degenerate(self) -> bool:
        """Whether the target does not vary, or no row is left to tell signal from noise."""
        y = self.t - self.t.mean() if self.centre else self.t
        return len(y) - int(self.centre) < 2 or bool(np.abs(y).max() <= 8.0 * _EPS * np.abs(self.t).max())

    def guess(self, offset: FloatArray) -> FloatArray:
        """Widths at which typical distances give z near 1, times exp(offset), and their best lambda."""
        theta = np.append(0.0, 0.5 * np.log(2.0 * self.X.shape[1]) + offset)
        return self.with_best_lambda(theta)[1]

    def with_best_lambda(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Log evidence at the best lambda of these widths, and theta with a lambda to start from."""
        Phi = self.design(theta)
        fit = fit_evidence(Spectrum.of(Phi, self.unit_t, centre=self.centre))
        # neither interpolation nor pure noise is a place to start from: there the gradients in the widths vanish
        size = float((Phi**2).sum()) / len(Phi)
        place = np.append(np.log(np.clip(fit.lam, 1e-10 * size, 1e-1 * size)), theta[1:])
        if self.best is None:  # better than nothing, before an ascent has begun
            self.best = -np.inf, place
        return fit.log_evidence, place

    def scan(self) -> list[FloatArray]:
        """Local maxima of the evidence along one common width."""
        points = 40 if self.n_widths == 1 and self.X.shape[0] * len(self.centers) <= 1_000_000 else 12
        low, high = self.bounds[1] if self.n_widths == 1 else (np.log(0.1), np.log(30.0))
        found = [
            self.with_best_lambda(np.append(0.0, np.full(self.n_widths, u))) for u in np.linspace(low, high, points)
        ]
        values = np.array([-np.inf, *(value for value, _ in found), -np.inf])
        peaks = [i for i in range(points) if values[i + 1] > values[i] and values[i + 1] >= values[i + 2]]
        return [found[i][1] for i in sorted(peaks, key=lambda i: -found[i][0])[:6]]

    def starts(self, given: Any, n_starts: int, rng: np.random.Generator) -> list[FloatArray]:
        """Starts: the user's first, then the peaks of the scan, then medium, narrow, wide and random widths."""
        out = []
        if given is not None:
            own = np.log(as_positive_vector(given, "start", self.X.shape[1])) - np.log(self.spread)
            out.append(self.with_best_lambda(np.append(0.0, own[: self.n_widths]))[1])
        out += self.scan()
        if self.n_widths > 1:
            offsets = [np.zeros(self.n_widths), np.full(self.n_widths, -1.5), np.full(self.n_widths, 1.5)]
            while len(offsets) < n_starts:
                offsets.append(rng.normal(0.0, 1.0, self.n_widths))
            out += [self.guess(offset) for offset in offsets[:n_starts]]
        return out

    def conclude(self, runs: list[tuple[float, FloatArray]]) -> tuple[list[WidthOptimum], list[LinearFit]]:
        """Distinct optima worth reporting, highest first, each with the exact evidence fit at its widths."""
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
        found: list[tuple[WidthOptimum, LinearFit]] = []
        for _, theta in distinct:
            fit = fit_evidence(self.design(theta), self.t, centre=self.centre)
            silent = Status.PURE_NOISE in fit.notes
            if silent and any(Status.PURE_NOISE in other.notes for _, other in found):
                continue  # without signal every width is the same model
            widths = self.widths(theta)
            found.append((WidthOptimum(widths[:1] if self.shared else widths, fit.lam, fit.log_evidence), fit))
        found.sort(key=lambda pair: -pair[1].log_evidence)
        return [optimum for optimum, _ in found], [fit for _, fit in found]
