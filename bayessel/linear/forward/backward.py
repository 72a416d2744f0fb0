r"""Backward elimination: from all columns, each time without the one that is missed least (Orr 1996, section 7).

With :math:`G = (H^TH+\lambda I)^{-1}` and the weights w, leaving column j out raises the cost
:math:`C = |t-Hw|^2 + \lambda|w|^2` by :math:`w_j^2/G_{jj}`, and G and w follow by rank-one updates. They are computed
afresh from a QR factorisation once in a while, and whenever G has shrunk so much that digits are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sl

from bayessel._check import FloatArray, IntArray
from bayessel.criteria.error_estimates import GCV
from bayessel.criteria.evidence import EVIDENCE
from bayessel.criteria.leave_one_out import LOO
from bayessel.criteria.registry import OF_SUMS, from_sums
from bayessel.fit import Status, worst
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.columns.greedy import INTERRUPTED, BestSize, until_stopped
from bayessel.linear.forward import stopping
from bayessel.linear.forward.assemble import finish
from bayessel.linear.forward.result import ForwardFit
from bayessel.linear.forward.settings import ForwardSettings
from bayessel.linear.reported_sums import left_out
from bayessel.linear.ridge import fit_ridge
from bayessel.linear.ridge_criteria import curve
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import fit_evidence
from bayessel.linear.unpenalised_columns import offsets
from bayessel.work.interrupts import InterruptGuard

#: columns whose inverse is still kept
MAX_COLUMNS = 5000
#: removals between two factorisations, and the fall of the largest variance that calls for one
EVERY, FALL = 64, 1e4
#: condition number beyond which all columns together are not fitted without a penalty, ...
INDEPENDENT = 1e7
#: ... and beyond which no penalty is trusted to keep the digits of the weights
LARGEST_CONDITION = 1e12
#: condition number at which columns are held apart in a fold that cannot tell them: rounding of the target grows in the
#: weights by its square, and the penalty is still nothing to columns that are independent
MODERATE = 1e6
#: well-determined parameters below which all weights are as good as zero
SHRUNK = 0.01
#: length, as a share of the column with its mean, below which what the bias leaves of a column is rounding
CONSTANT = 1e-13
#: relative difference of the squared error to that of the weights computed afresh that is worth a remark
DIFFERS = 0.01


@dataclass(frozen=True, eq=False)
class EliminationStep:
    """The columns left, and their ridge fit."""

    left: IntArray
    G: FloatArray
    w: FloatArray
    cost: float
    lam: float
    removed: int

    @property
    def sum_squares(self) -> float:
        """Squared residuals."""
        return max(self.cost - self.lam * float(self.w @ self.w), 0.0)

    @property
    def gamma(self) -> float:
        """Well-determined parameters, the bias not counted."""
        return len(self.left) - self.lam * float(np.trace(self.G))


def descend(H: FloatArray, t: FloatArray, lam: float, gain: str, left: IntArray) -> Iterator[EliminationStep]:
    """All sizes from the columns `left` to none; each time the column goes whose absence costs least."""
    G, w, cost = _solve(H[:, left], t, lam)
    top, since, removed = float(G.diagonal().max(initial=0.0)), 0, -1
    while True:
        yield EliminationStep(left, G, w, cost, lam, removed)
        if not len(left):
            return
        diagonal = G.diagonal()
        rise = w**2 / diagonal
        if gain == "error" and lam > 0.0:
            w2 = w @ w - 2.0 * w * (G @ w) / diagonal + w**2 * np.einsum("ij,ij->j", G, G) / diagonal**2
            rise = rise - lam * w2
        j = int(np.argmin(rise))
        removed, keep = int(left[j]), np.arange(len(left)) != j
        column = G[keep, j]
        cost = cost + float(w[j] ** 2 / G[j, j])
        w = w[keep] - column * (w[j] / G[j, j])
        G = G[np.ix_(keep, keep)] - np.outer(column, column / G[j, j])
        left, since = left[keep], since + 1
        if len(left) and (since == EVERY or float(G.diagonal().max()) < top / FALL):
            G, w, cost = _solve(H[:, left], t, lam)
            top, since = float(G.diagonal().max()), 0


def _solve(H: FloatArray, t: FloatArray, lam: float) -> tuple[FloatArray, FloatArray, float]:
    k = H.shape[1]
    if lam > 0.0:
        H, t = np.vstack([H, np.sqrt(lam) * np.eye(k)]), np.append(t, np.zeros(k))
    Q, R = sl.qr(H, mode="economic", check_finite=False)
    inverse = sl.solve_triangular(R, np.eye(k), check_finite=False)
    z = Q.T @ t
    rest = t - Q @ z
    return inverse @ inverse.T, inverse @ z, float(rest @ rest)


def _centred(H: FloatArray, t: FloatArray, centre: bool) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Design and target without their means, and the means."""
    if not centre:
        return H, t, np.zeros(H.shape[1]), 0.0
    shift, t_shift = offsets(H), float(offsets(t[:, None])[0])
    body, target = H - shift, t - t_shift
    mean, t_mean = body.mean(axis=0), float(target.mean())
    return body - mean, target - t_mean, shift + mean, t_shift + t_mean


def eliminate(
    columns: Columns, t: FloatArray, settings: ForwardSettings, folds: int, rng: np.random.Generator, name: str
) -> ForwardFit:
    """Backward elimination with a stopping criterion, or down to the largest number of columns asked for."""
    n, p = columns.shape
    stop, centre, gain, lam = settings.stop, settings.centre, settings.gain, settings.lam
    if p > MAX_COLUMNS:
        raise ValueError(f"method='backward' keeps the inverse of all {p} columns; offer at most {MAX_COLUMNS}")
    design = columns.raw(np.arange(p))
    H, y, _, _ = _centred(design, t, centre)
    whole = np.linalg.norm(design, axis=0)
    offered = np.flatnonzero(np.linalg.norm(H, axis=0) > CONSTANT * whole)
    if lam is None:
        lam = _penalty(H[:, offered], y, n - int(centre), float(np.linalg.norm(whole))) if len(offered) else 0.0
    curve: dict[int, float] | None = None
    interrupted = False
    if stop == "cv":
        curve, interrupted = _cross_validated(design, t, centre, lam, gain, offered, folds, rng)
    watch = BestSize()
    path: list[dict[str, Any]] = []
    lefts: list[IntArray] = []
    steps = descend(H, y, lam, gain, offered)

    def step() -> str | None:
        at = next(steps, None)
        if at is None:
            return "candidates"
        k = len(at.left)
        entry = _record(at, H, y, stop, n, int(centre))
        if stop == EVIDENCE.name:
            known = Spectrum.of(design[:, at.left], t, centre=centre) if k else None
            entry[EVIDENCE.name] = np.nan if known is None else fit_evidence(known).log_evidence
            entry["value"] = stopping.judged(entry, stop, n)
        if curve is not None:
            entry["value"] = curve[k]
        path.append(entry)
        lefts.append(at.left)
        if k > settings.max_size:
            return None
        if stop is None:
            watch.best = k
            return "max_size"
        return "criterion" if watch.far_enough(k, entry["value"]) and np.isfinite(watch.value) else None

    stopped = until_stopped(step, lambda: path)
    if interrupted:
        stopped = INTERRUPTED
    chosen = next((left for left in lefts if len(left) == watch.best), lefts[-1])
    best = next(entry for entry in path if entry["size"] == len(chosen))
    notes = [Status.PURE_NOISE] if not len(chosen) else []
    if len(offered) < p:
        notes.append(Status.COLLINEAR_SKIPPED)
    if stopped == INTERRUPTED:
        notes.append(Status.INTERRUPTED)
    # in the order of a forward selection: those that would have gone first come last
    gone = [entry["column"] for entry in path if entry["column"] in set(chosen.tolist())]
    order = np.array([j for j in chosen.tolist() if j not in gone] + gone[::-1], dtype=np.intp)
    fit = finish(
        columns,
        t,
        settings,
        order,
        lam,
        value=float(best["value"]),
        history=tuple(path),
        models=[tuple(sorted(left.tolist())) for left in lefts],
        stopped=stopped,
        notes=notes,
        name=name,
    )
    error, expected = float(np.mean(fit.residuals**2)), float(best["error"])
    if abs(error - expected) > DIFFERS * expected + (4.0 * np.finfo(float).eps * float(np.abs(t).max())) ** 2:
        said = dict.fromkeys((*fit.notes, Status.ILL_CONDITIONED))  # the weights have lost their digits
        fit = replace(fit, notes=tuple(said), status=worst(said))
    return fit


def _penalty(H: FloatArray, t: FloatArray, free: int, size: float) -> float:
    """No penalty for fewer columns than rows that are clearly independent; else the best by GCV that keeps digits.

    `size` is the length of all columns together, their means included: rounding is relative to that.
    """
    spectrum = Spectrum.of(H, t)
    if H.shape[1] < free and _independent(spectrum.s):
        return 0.0
    least = (size / LARGEST_CONDITION) ** 2
    found = fit_ridge(spectrum)
    if found.lam >= least and found.gamma >= SHRUNK:
        return float(found.lam)
    # where GCV leaves the constant alone, whichever is lowest: the elimination will leave rows to the noise
    tried = np.array([max(optimum.lam, least) for optimum in found.optima])
    return float(tried[np.argmin(curve(spectrum, GCV.name, tried))])


def _independent(s: FloatArray) -> bool:
    """Whether columns with these singular values are clearly independent."""
    return not len(s) or bool(s[-1] > s[0] / INDEPENDENT)


def _record(at: EliminationStep, H: FloatArray, t: FloatArray, stop: str | None, n: int, flat: int) -> dict[str, Any]:
    S, trace = at.sum_squares, n - flat - at.gamma
    out: dict[str, Any] = {"size": len(at.left), "column": at.removed, "error": S / n, "gamma": n - trace}
    out["lam"] = at.lam
    out |= {name: float(from_sums(name, n, S, trace)) for name in OF_SUMS}
    body = H[:, at.left]
    if stop == LOO.name:
        leverage = np.einsum("ij,ij->i", body @ at.G, body) + flat / n
        out[LOO.name] = float(np.mean(left_out(t - body @ at.w, 1.0 - leverage) ** 2))
    if stop != EVIDENCE.name:
        out["value"] = stopping.judged(out, stop, n)
    return out


def _cross_validated(
    H: FloatArray,
    t: FloatArray,
    centre: bool,
    lam: float,
    gain: str,
    offered: IntArray,
    folds: int,
    rng: np.random.Generator,
) -> tuple[dict[int, float], bool]:
    """Mean squared error of held rows at each size, and whether Ctrl-C left only some folds for it."""
    n, p = H.shape
    number = rng.permutation(n) % folds
    total, seen = np.zeros(p + 1), 0
    with InterruptGuard(lambda: seen) as guard:
        for k in range(folds):
            held = number == k
            total += _held_errors(H, t, held, centre, lam, gain, offered)
            seen += int(held.sum())
    return dict(enumerate((total / seen).tolist())), guard.interrupted


def _held_errors(
    H: FloatArray, t: FloatArray, held: Any, centre: bool, lam: float, gain: str, offered: IntArray
) -> FloatArray:
    """Sum of squared errors on the rows of one fold at each size."""
    total = np.zeros(H.shape[1] + 1)
    body, target, mean, level = _centred(H[~held], t[~held], centre)
    few = len(body) < len(offered)
    if lam == 0.0 and (few or not _independent(sl.svdvals(body[:, offered], check_finite=False))):
        # columns that only the held rows tell apart, or that are zero without them, need a little
        lam = (float(np.linalg.norm(H)) / MODERATE) ** 2
    for at in descend(body, target, lam, gain, offered):
        guess = level + (H[held][:, at.left] - mean[at.left]) @ at.w
        total[len(at.left)] = float(np.sum((t[held] - guess) ** 2))
    return total
