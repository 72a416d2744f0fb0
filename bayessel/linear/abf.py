r"""All basis functions, their widths fitted by the evidence (ABF): one width per input, chosen by quasi-Newton ascent.

The objective is the profile over the noise level, :math:`L(\lambda, r) = \max_\beta \log p(t|\lambda\beta,\beta,r)`. With
:math:`G = \Phi(\Phi^T\Phi+\lambda I)^{-1}` and :math:`\mu = G^Tt` its gradient is

.. math:: \frac{\partial L}{\partial\log\lambda} = \tfrac12(\gamma - \beta\lambda\|\mu\|^2),\qquad
          \frac{\partial L}{\partial\log r_d} = \sum_{nm} D_{nm}\frac{\partial\phi_{nm}}{\partial\log r_d},\quad
          D = \beta(t-\Phi\mu)\mu^T - G

and since :math:`z` is a sum over inputs, all D width gradients come from two matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.optimize import minimize

from bayessel._check import FloatArray, as_count, as_matrix, as_positive_vector, as_target, one_of
from bayessel.basis import KINDS, RBFDictionary, radial, radial_slope, scaled_distances
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import LinearFit, fit_evidence
from bayessel.result import Status, worst

_EPS = float(np.finfo(float).eps)
#: widths are searched between these multiples of each input's spread
WIDTH_RANGE = (1e-2, 1e3)
#: optima whose evidence differs by more than this many nats are not rivals
RIVAL = 10.0


@dataclass(frozen=True)
class WidthOptimum:
    """A local optimum of the evidence over widths."""

    widths: FloatArray
    lam: float
    log_evidence: float


@dataclass(frozen=True, eq=False)
class WidthFit:
    """Widths fitted by the evidence.

    Attributes
    ----------
    widths : (D,) array
        r of each input; far larger than the spread of the input means that it is irrelevant.
    fit : LinearFit
        The evidence fit at these widths.
    optima : tuple of WidthOptimum
        Every distinct local optimum that the starts found, highest first.
    status, notes
        MULTIPLE_OPTIMA when rivals within 10 nats were found.
    history : tuple of dict
        One entry per start.
    """

    widths: FloatArray
    fit: LinearFit = field(repr=False)
    optima: tuple[WidthOptimum, ...]
    status: Status
    notes: tuple[Status, ...]
    history: tuple[dict[str, float], ...]

    @property
    def log_evidence(self) -> float:
        """Log evidence at the fitted widths, in nats."""
        return self.fit.log_evidence


def profile_gradient(
    log_lam: float, log_widths: FloatArray, X: FloatArray, centers: FloatArray, t: FloatArray, *, kind: str = "gaussian",
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
    n, m = Phi.shape
    free = n - int(centre)
    G, log_det = _ridge_operator(Phi, lam)
    mu = G.T @ t
    residual = t - Phi @ mu
    quad = float(residual @ residual + lam * (mu @ mu))
    floor = (4.0 * _EPS) ** 2 * max(float(t @ t), 1e-300)
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
    """G = Phi (Phi^T Phi + lambda I)^-1 and log|I + Phi Phi^T/lambda|, through the smaller Gram matrix where that is safe."""
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
    X: Any, t: Any, *, centers: Any = None, kind: str = "gaussian", centre: bool = True, shared: bool = False,
    start: Any = None, n_starts: int = 4, max_steps: int = 200, seed: int = 0,
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
        Number of starts: wide, medium and narrow widths in turn, later ones perturbed at random by `seed`.
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
    one_of(kind, "kind", KINDS)
    as_count(n_starts, "n_starts")
    as_count(max_steps, "max_steps")
    n_inputs = inputs.shape[1]
    spread = inputs.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    y = target - target.mean() if centre else target
    scale = np.sqrt(np.mean(y**2)) or 1.0  # the search works on unit targets; the profile only shifts by a constant
    n_widths = 1 if shared else n_inputs
    reference = np.log(spread)
    bounds = [(np.log(1e-13 * len(inputs)), np.log(1e7 * len(inputs)))]
    low, high = np.log(WIDTH_RANGE)
    bounds += [(low, high)] * n_widths

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        log_r = reference + theta[1:]  # in units of each input's spread
        value, d_lam, d_r = profile_gradient(theta[0], log_r, inputs, middle, y / scale, kind=kind, centre=centre)
        gradient = np.append(d_lam, d_r.sum() if shared else d_r)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e300, np.zeros_like(theta)
        return -value, -gradient

    rng = np.random.default_rng(seed)
    runs: list[tuple[float, FloatArray]] = []
    history: list[dict[str, float]] = []
    notes: list[Status] = []
    try:
        for k, theta0 in enumerate(_starts(inputs, middle, y / scale, spread, start, n_widths, n_starts, kind, centre, rng)):
            theta0 = np.clip(theta0, [b[0] for b in bounds], [b[1] for b in bounds])
            result = minimize(objective, theta0, jac=True, method="L-BFGS-B", bounds=bounds,
                              options={"maxiter": max_steps, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-6})
            runs.append((-float(result.fun), np.asarray(result.x)))
            history.append({"start": float(k), "steps": float(result.nit), "value": -float(result.fun),
                            "converged": float(result.nit < max_steps)})
    except KeyboardInterrupt:
        if not runs:
            raise
        notes.append(Status.INTERRUPTED)
    return _conclude(runs, history, notes, inputs, target, middle, reference, kind, centre)


def _starts(X: FloatArray, centers: FloatArray, t: FloatArray, spread: FloatArray, start: Any, n_widths: int, n_starts: int,
            kind: str, centre: bool, rng: np.random.Generator) -> list[FloatArray]:
    """Starting points (log lambda, log widths in units of the spread)."""
    d = X.shape[1]
    base = 0.5 * np.log(2.0 * d)  # a width at which typical distances give z near 1
    offsets = [np.zeros(n_widths), np.full(n_widths, -1.5), np.full(n_widths, 1.5)]
    while len(offsets) < n_starts:
        offsets.append(rng.normal(0.0, 1.0, n_widths))
    points = [base + offset for offset in offsets[:n_starts]]
    if start is not None:
        given = np.log(as_positive_vector(start, "start", d)) - np.log(spread)
        points.insert(0, given if n_widths == d else given[:1])
    out = []
    for point in points:
        r = np.exp(point) * spread
        Phi = radial(kind, scaled_distances(X, centers, r if len(r) == d else np.broadcast_to(r, (d,))))
        lam = fit_evidence(Spectrum.of(Phi, t, centre=centre)).lam
        # neither interpolation nor pure noise is a place to start from: their gradients in the widths vanish
        size = float((Phi**2).sum())
        out.append(np.append(np.log(np.clip(lam, 1e-6 * size / len(Phi), 1e-1 * size / len(Phi))), point))
    return out


def _conclude(runs: list[tuple[float, FloatArray]], history: list[dict[str, float]], notes: list[Status], X: FloatArray,
              t: FloatArray, centers: FloatArray, reference: FloatArray, kind: str, centre: bool) -> WidthFit:
    runs = sorted(runs, key=lambda run: -run[0])
    distinct: list[tuple[float, FloatArray]] = []
    for value, theta in runs:
        # widths so large that the input has dropped out are one and the same
        key = np.minimum(theta[1:], np.log(30.0))
        same = any(abs(value - v) < 1e-2 and np.abs(key - np.minimum(o[1:], np.log(30.0))).max() < 0.2 for v, o in distinct)
        if not same:
            distinct.append((value, theta))
    optima: list[WidthOptimum] = []
    fits: list[LinearFit] = []
    for value, theta in distinct:
        if distinct[0][0] - value > RIVAL and fits:
            break
        widths = np.exp(reference + theta[1:])
        dictionary = RBFDictionary(centers, widths, kind=kind, bias=False)
        fit = fit_evidence(dictionary.design(X), t, centre=centre)
        if fits and Status.PURE_NOISE in fit.notes and any(Status.PURE_NOISE in f.notes for f in fits):
            continue  # without signal every width is the same model
        fits.append(fit)
        optima.append(WidthOptimum(widths, fit.lam, fit.log_evidence))
    order = sorted(range(len(fits)), key=lambda i: -fits[i].log_evidence)
    fits, optima = [fits[i] for i in order], [optima[i] for i in order]
    if len(optima) > 1:
        notes.append(Status.MULTIPLE_OPTIMA)
    if not any(run["converged"] for run in history):
        notes.append(Status.STEP_LIMIT)
    notes += [note for note in fits[0].notes if note not in notes]
    return WidthFit(optima[0].widths, fits[0], tuple(optima), worst(notes), tuple(notes), tuple(history))
