r"""Ridge regression with one penalty per column (Orr 1996, section 6.4 and appendix A.11).

With all other penalties fixed, GCV is a ratio of quadratics in :math:`\Delta = \lambda_j + h_j^TP_jh_j`,
:math:`N(a\Delta^2 - 2b\Delta + c)/(\eta\Delta-\xi)^2`, where :math:`P_j` is P without column j,
:math:`a = t^TP_j^2t`, :math:`b = (t^TP_j^2h_j)(t^TP_jh_j)`, :math:`c = (h_j^TP_j^2h_j)(t^TP_jh_j)^2`,
:math:`\eta = \mathrm{tr}P_j` and :math:`\xi = h_j^TP_j^2h_j`. Its minimiser over :math:`[0,\infty]` is known in closed
form.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_positive_vector
from bayessel._numerics import few_threads
from bayessel._row_weights import RowWeights, counted, mean
from bayessel.criteria.error_estimates import GCV
from bayessel.fit import Status
from bayessel.linear import ridge
from bayessel.linear.spectrum import Spectrum
from bayessel.policy import RIVAL_SHARE
from bayessel.work.interrupts import InterruptGuard

#: ratio of the diagonal of R below which every visit takes a QR of its own ...
FRAGILE = 1e-6
#: ... unless that many columns would make it unbearably slow
MAX_CAREFUL = 300


def best_penalty(a: float, b: float, c: float, eta: float, xi: float, hph: float) -> float:
    r"""Return the :math:`\lambda_j \in [0,\infty]` that minimises GCV, all other penalties fixed.

    Parameters
    ----------
    a, b, c, eta, xi
        Coefficients of the ratio of quadratics (module docstring).
    hph
        :math:`h_j^TP_jh_j`.
    """
    lift, pull = b * eta, a * xi
    if lift > pull:
        return max((c * eta - b * xi) / (lift - pull) - hph, 0.0)
    # the stationary point lies left of the pole (or nowhere): GCV falls all the way to infinity
    return np.inf


class _Sweeper:
    """The ridge system of the active columns, changed one penalty at a time.

    Keeps K = (Phi^T Phi + Lambda)^-1 of the active columns: its diagonal is 1/Delta, its columns hold P_j h_j, and no
    division by a penalty occurs, so that zero penalties need no special case.
    """

    def __init__(self, Phi: FloatArray, t: FloatArray, penalty: FloatArray, n_free: float) -> None:
        self.Phi, self.t, self.penalty = Phi, t, penalty
        self.n_free = n_free  # dimensions left for the fit: N, or N - 1 when a bias was projected out
        self.refresh()

    def refresh(self) -> None:
        """Recompute everything from a QR factorisation; the updates drift."""
        self.active = [int(j) for j in np.flatnonzero(np.isfinite(self.penalty))]
        A = np.vstack([self.Phi[:, self.active], np.diag(np.sqrt(self.penalty[self.active]))])
        Q, R = np.linalg.qr(A)
        diagonal = np.abs(np.diag(R))
        largest = diagonal.max(initial=0.0)
        ratio = diagonal.min() / largest if largest > 0.0 else float(not len(diagonal))
        # K squares the condition number: below this its columns are no longer good enough to choose penalties by
        self.fragile = bool(ratio < FRAGILE)
        inverse = np.linalg.inv(R) if ratio > 1e-14 else np.linalg.pinv(R)
        self.K = inverse @ inverse.T
        top = Q[: len(self.t)]
        self.residual = self.t - top @ (top.T @ self.t)
        self.w = inverse @ (top.T @ self.t)
        self.trace = self.n_free - float((top**2).sum())

    def visit(self, j: int) -> None:
        """Set the penalty of column j to its best value."""
        if self.fragile and len(self.active) <= MAX_CAREFUL:
            self._visit_carefully(j)
            return
        h = self.Phi[:, j]
        if np.isfinite(self.penalty[j]):
            k = self.active.index(j)
            if not self.K[k, k] > 0.0:  # a dependent column in a system without penalty: nothing to choose by
                return
            delta = 1.0 / self.K[k, k]
            p = self.Phi[:, self.active] @ (self.K[:, k] * delta)  # P_j h_j
            without = self.residual + p * self.w[k]  # P_j t
            trace = self.trace + float(p @ p) * self.K[k, k]
            new = self._choose(p, without, h, trace, delta - self.penalty[j])
            self._change(k, j, new, delta)
        else:
            columns = self.Phi[:, self.active]
            v = self.K @ (columns.T @ h)
            p, without, trace = h - columns @ v, self.residual, self.trace
            hph = float(h @ p)
            new = self._choose(p, without, h, trace, hph)
            if np.isfinite(new):
                self._insert(j, new, v, new + hph, float(h @ without))

    def _visit_carefully(self, j: int) -> None:
        """Do the same by a QR of the system without column j: slower, and right where K is not."""
        others = [k for k in self.active if k != j]
        A = np.vstack([self.Phi[:, others], np.diag(np.sqrt(self.penalty[others]))])
        Q = np.linalg.qr(A)[0]
        B = np.zeros((len(A), 2))
        B[: len(self.t)] = np.column_stack([self.Phi[:, j], self.t])
        for _ in range(2):  # twice: what is left of a nearly dependent column must be orthogonal to the others
            B -= Q @ (Q.T @ B)
        p, without = B[: len(self.t)].T
        trace = self.n_free - float((Q[: len(self.t)] ** 2).sum())
        h = self.Phi[:, j]
        # h^T P_j h is the squared length of the whole residual, the ridge rows included: a sum of squares
        self.penalty[j] = self._choose(p, without, h, trace, float(B[:, 0] @ B[:, 0]))
        self.active = [int(k) for k in np.flatnonzero(np.isfinite(self.penalty))]

    def _choose(self, p: FloatArray, without: FloatArray, h: FloatArray, trace: float, hph: float) -> float:
        along, xi = float(h @ without), float(p @ p)
        if xi <= 1e-28 * float(h @ h):  # already in the span of the others: adds nothing
            return np.inf
        return best_penalty(float(without @ without), float(without @ p) * along, xi * along**2, trace, xi, hph)

    def _change(self, k: int, j: int, new: float, delta: float) -> None:
        if not np.isfinite(new):
            self.penalty[j] = np.inf
            column, pivot = np.delete(self.K[:, k], k), self.K[k, k]
            self.w = np.delete(self.w, k) - column / pivot * self.w[k]
            self.K = np.delete(np.delete(self.K, k, 0), k, 1) - np.outer(column, column) / pivot
            del self.active[k]
        else:
            step = new - self.penalty[j]
            self.penalty[j] = new
            column = self.K[:, k].copy()
            if 1.0 + step * column[k] < 1e-10:  # all that held this column apart from the others was its penalty
                self.refresh()
                return
            factor = step / (1.0 + step * column[k])
            self.w = self.w - factor * self.w[k] * column
            self.K = self.K - factor * np.outer(column, column)
        self._residual()

    def _insert(self, j: int, new: float, v: FloatArray, delta: float, along: float) -> None:
        self.penalty[j] = new
        weight = along / delta
        self.K = np.block(
            [[self.K + np.outer(v, v) / delta, -v[:, None] / delta], [-v[None, :] / delta, np.array([[1.0 / delta]])]]
        )
        self.w = np.append(self.w - v * weight, weight)
        self.active.append(j)
        self._residual()

    def _residual(self) -> None:
        columns = self.Phi[:, self.active]
        self.residual = self.t - columns @ self.w
        # tr P = (dimensions) - M + sum lambda_j K_jj
        self.trace = self.n_free - len(self.active) + float(self.penalty[self.active] @ np.diag(self.K))

    def gcv(self) -> float:
        """GCV of the present penalties."""
        return len(self.t) * float(self.residual @ self.residual) / self.trace**2 if self.trace > 0.0 else np.inf


def fit_local(
    Phi: FloatArray,
    t: FloatArray,
    *,
    centre: bool,
    start: npt.ArrayLike | None,
    max_sweeps: int,
    tol: float,
    weights: RowWeights | None = None,
) -> ridge.RidgeFit:
    """Sweep over the columns, each penalty set to its analytic best, until GCV stops falling."""
    overall = ridge.fit_ridge(Spectrum.of(Phi, t, centre=centre, weights=weights), criterion=GCV.name)
    if start is not None:
        penalty = as_positive_vector(start, "start", Phi.shape[1], allow_zero=True, allow_inf=True)
        with few_threads(Phi.size):
            return _descend(Phi, t, penalty, centre, max_sweeps, tol, weights)
    # of minima that GCV can hardly tell apart the smoothest is the safer start: rough fits have nothing left to prune
    smoothest = sorted(
        (pair for pair in overall.optima if pair.value <= (1.0 + RIVAL_SHARE) * overall.value), reverse=True
    )
    others = sorted((pair for pair in overall.optima if pair not in smoothest), reverse=True)
    fits: list[ridge.RidgeFit] = []
    for lam, _ in [*smoothest[:1], *others, *smoothest[1:]]:
        with few_threads(Phi.size):
            fits.append(_descend(Phi, t, np.full(Phi.shape[1], lam), centre, max_sweeps, tol, weights))
        if fits[-1].value < 0.8 * overall.value or Status.INTERRUPTED in fits[-1].notes:
            break  # it got off the ground; another start would only look for a lower value of an optimistic criterion
    best = min(fits, key=lambda fit: fit.value)
    if Status.INTERRUPTED in fits[-1].notes and best is not fits[-1]:
        best = replace(best, notes=(*best.notes, Status.INTERRUPTED), status=Status.INTERRUPTED)
    return best


def _descend(
    Phi: FloatArray,
    t: FloatArray,
    penalty: FloatArray,
    centre: bool,
    max_sweeps: int,
    tol: float,
    weights: RowWeights | None,
) -> ridge.RidgeFit:
    """Sweep from one start until GCV stops falling."""
    body, target = (Phi - mean(Phi, weights), t - mean(t, weights)) if centre else (Phi, t)
    if weights is not None:
        body, target = weights.scale(body), weights.scale(target)
        if centre:
            body, target = weights.without_bias(body), weights.without_bias(target)
    sweeper = _Sweeper(body, target, penalty.copy(), counted(t, weights) - int(centre))
    best, best_value = penalty.copy(), sweeper.gcv()
    before, history, notes = np.inf, [], [Status.STEP_LIMIT]
    interval, visits = 8, 0
    with InterruptGuard() as guard:
        for sweep in range(max_sweeps):
            for j in range(Phi.shape[1]):
                sweeper.visit(j)
                visits += 1
                if visits % interval == 0 and not sweeper.fragile:
                    # near-collinear columns with vanishing penalties make the updates drift: look more often then
                    updated = sweeper.gcv()
                    sweeper.refresh()
                    interval = max(1, interval // 4) if abs(sweeper.gcv() - updated) > 1e-9 * updated else interval + 1
            sweeper.refresh()
            value = sweeper.gcv()
            if value < best_value:
                best, best_value = sweeper.penalty.copy(), value
            elif value > best_value * (1.0 + tol) and not sweeper.fragile:
                # a sweep cannot rise but by rounding: go back, and take every visit with care
                sweeper.penalty = best.copy()
                sweeper.refresh()
                sweeper.fragile = True
            history.append({"step": float(sweep), "value": best_value, "n_basis": float(len(sweeper.active))})
            if not best_value < before * (1.0 - tol):
                notes = []
                break
            before = best_value
    if guard.interrupted:
        notes = [Status.INTERRUPTED]
    spectrum = Spectrum.weighed(Phi, t, best, centre=centre, rows=True, weights=weights)
    return ridge.assemble(spectrum, 1.0, best, GCV.name, (), notes, tuple(history))
