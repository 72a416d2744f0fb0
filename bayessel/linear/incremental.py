r"""Exact changes of a ridge fit: add or remove a column, add or remove a row, in O(M^2) or O(NM) instead of O(NM^2).

The state is the triangle R of the augmented matrix :math:`[\Phi\ t;\ \sqrt\Lambda\ 0]`, its last column holding the
target. A new row is one triangular-pentagonal QR, a removed row a downdate in closed form, a removed column a run of
rotations, a new column one projection (Orr 1996, section 4.3 and appendix A.7, done on factors instead of the N x N
matrix P). Columns too close to the span of the others are orthogonalised twice; a removal that would cost more than
half of the digits recomputes the triangle from the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from bayessel._check import (
    FloatArray,
    as_count,
    as_flag,
    as_float_array,
    as_matrix,
    as_positive,
    as_positive_vector,
    as_target,
    check_finite,
    check_magnitude,
)
from bayessel._fingerprint import fingerprint
from bayessel._numerics import rank_one_update
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, worst
from bayessel.linear._evidence import log_density
from bayessel.linear.ridge_criteria import criteria
from bayessel.linear.unpenalised_columns import offsets
from bayessel.linear.weight_posterior import from_complement
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class IncrementalFit(Fit):
    """A ridge fit after changes, at penalties and a noise precision that were chosen before them.

    Attributes
    ----------
    state : RidgeState
        A copy, which later changes leave alone.
    beta : float
        Noise precision.
    evidence : Evidence or None
        None where a penalty is zero.
    """

    state: RidgeState = field(repr=False)
    beta: float
    evidence: Evidence | None
    status: Status
    notes: tuple[Status, ...]
    optima: tuple[Mapping[str, Any], ...]
    history: tuple[Mapping[str, Any], ...]
    seconds: float

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return self.state.n_rows

    @cached_property
    def coef(self) -> FloatArray:
        """Weights of the columns."""
        return self.state.coef

    @cached_property
    def intercept(self) -> float:
        """Weight of the bias; 0 without one."""
        return self.state.intercept

    @property
    def lam(self) -> FloatArray:
        """Penalty of each column."""
        return self.state.lam

    @property
    def alpha(self) -> FloatArray:
        """Weight precisions of the equivalent Gaussian prior."""
        return self.beta * self.lam

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise."""
        return float(self.beta**-0.5)

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters, the bias included."""
        return self.state.gamma

    @cached_property
    def fingerprint(self) -> str:
        """Name of the design and the target."""
        return fingerprint(self.state.rows, self.state.target)

    @cached_property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return fingerprint(self.state.target)

    def predict(self, rows: npt.ArrayLike) -> Prediction:
        """Predictive distributions at new rows of the design."""
        variance = self.state.variance(rows) / self.beta
        mean = as_matrix(rows, "rows") @ self.coef + self.intercept
        return Prediction.normal(mean, variance + 1.0 / self.beta, variance)

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others at these precisions, exactly."""
        rows = self.state.rows
        residuals = self.state.target - rows @ self.coef - self.intercept
        return from_complement(residuals, 1.0 - self.state.variance(rows), self.beta, self.state.target)


class RidgeState:
    """A ridge fit with fixed penalties that can change one column or row at a time.

    Parameters
    ----------
    Phi, t
        Design (N, M) and target (N,).
    lam
        Penalty, one or one per column (zero allowed).
    centre
        Add an unpenalised bias (kept out of `coef`, see `intercept`).

    Examples
    --------
    >>> import numpy as np
    >>> state = RidgeState(np.eye(3), [1.0, 2.0, 3.0], lam=1.0)
    >>> state.coef.round(6).tolist()
    [0.5, 1.0, 1.5]
    >>> state.remove_column(0)
    >>> state.coef.round(6).tolist()
    [1.0, 1.5]
    """

    def __init__(self, Phi: npt.ArrayLike, t: npt.ArrayLike, lam: npt.ArrayLike, *, centre: bool = False) -> None:
        design = as_matrix(Phi, "Phi")
        target = as_target(t, design.shape[0])
        penalty = as_positive_vector(lam, "lam", design.shape[1], allow_zero=True)
        check_magnitude(design, "Phi")
        check_magnitude(target, "t")
        self._bias = int(as_flag(centre, "centre"))
        self._n: int = len(target)
        self._m: int = design.shape[1] + self._bias
        # room to grow, column by column in memory: a new row or column is written in place
        self._store = np.zeros((self._n + self._n // 8 + 8, self._m + self._m // 8 + 8), order="F")
        self._store[: self._n, self._bias : self._m] = design
        self._store[: self._n, : self._bias] = 1.0
        self._target = np.zeros(self._store.shape[0])
        self._target[: self._n] = target
        self._alive = np.zeros(self._store.shape[0], dtype=bool)
        self._alive[: self._n] = True
        self._lam = np.concatenate([np.zeros(self._bias), penalty])
        # a bias takes up any constant: what is taken off here costs no digits later
        self._shift = float(offsets(target[:, None])[0]) if centre else 0.0
        self.refactor()

    # ---- reading

    @property
    def n_rows(self) -> int:
        """Number of rows in the fit."""
        return len(np.flatnonzero(self._alive))

    @property
    def n_columns(self) -> int:
        """Number of columns, the bias not counted."""
        return self._m - self._bias

    @property
    def rows(self) -> FloatArray:
        """The design of the rows in the fit (a copy)."""
        return self._store[: self._n, self._bias : self._m][self._alive[: self._n]]

    @property
    def target(self) -> FloatArray:
        """The target of the rows in the fit (a copy)."""
        return self._target[: self._n][self._alive[: self._n]]

    @property
    def lam(self) -> FloatArray:
        """Penalty of each column."""
        return self._lam[self._bias :].copy()

    @property
    def is_determined(self) -> bool:
        """Whether rows and penalties together determine every weight; without, the shortest weights are reported."""
        diagonal = np.abs(np.diag(self.R)[: self._m])
        return bool(diagonal.min() > diagonal.max() * self._m * np.finfo(float).eps)

    def _weights(self) -> FloatArray:
        """Weights of the bias, for the shifted target, and of the columns."""
        if not self.is_determined:
            return np.asarray(np.linalg.lstsq(self.R[:-1, :-1], self.R[:-1, -1], rcond=None)[0])
        return np.asarray(sl.solve_triangular(self.R[:-1, :-1], self.R[:-1, -1], check_finite=False))

    @property
    def coef(self) -> FloatArray:
        """Weights of the columns."""
        return self._weights()[self._bias :]

    @property
    def intercept(self) -> float:
        """Weight of the bias; 0 without one."""
        return float(self._weights()[0]) + self._shift if self._bias else 0.0

    @property
    def cost(self) -> float:
        """t^T P t, the penalised sum of squares at its minimum."""
        return float(self.R[-1, -1] ** 2)

    @property
    def sum_squares(self) -> float:
        """t^T P^2 t, the sum of squared residuals."""
        w = self._weights()
        residual = self.target - self._shift - self._body()[self._alive[: self._n]] @ w
        return float(residual @ residual)

    @property
    def gamma(self) -> float:
        """Effective number of parameters, the bias included: M - sum lambda_j (A^-1)_jj."""
        if not self.is_determined:
            return self.criteria()["gamma"]
        inverse = sl.solve_triangular(self.R[:-1, :-1], np.eye(self._m), check_finite=False)
        return float(self._m - self._lam @ (inverse**2).sum(axis=1))

    def variance(self, Phi_new: npt.ArrayLike) -> FloatArray:
        r"""Return :math:`\phi^TA^{-1}\phi` of new rows (times 1/beta: the variance of the function).

        Infinite where the rows and the penalties do not determine the function.
        """
        rows = as_matrix(Phi_new, "Phi_new")
        if rows.shape[1] != self.n_columns:
            raise ValueError(f"Phi_new must have {self.n_columns} columns like the fit, got shape {rows.shape}")
        rows = np.hstack([np.ones((len(rows), self._bias)), rows])
        if self.is_determined:
            half = sl.solve_triangular(self.R[:-1, :-1], rows.T, trans="T", check_finite=False)
            return np.asarray((half**2).sum(axis=0))
        _, s, Vt = sl.svd(self.R[:-1, :-1], check_finite=False)
        known = s > s[0] * self._m * np.finfo(float).eps
        along = rows @ Vt.T
        outside = (along[:, ~known] ** 2).sum(axis=1) > 1e-12 * (rows**2).sum(axis=1)
        return np.where(outside, np.inf, ((along[:, known] / s[known]) ** 2).sum(axis=1))

    def log_evidence(self, beta: float) -> float:
        """Log evidence at the present penalties and the noise precision `beta`; NaN where a penalty is zero.

        See `bayessel.linear.log_evidence`.
        """
        beta = as_positive(beta, "beta")
        n, penalties = self.n_rows, self._lam[self._bias :]
        if (penalties == 0.0).any():
            return np.nan
        log_det = 2.0 * float(np.log(np.abs(np.diag(self.R)[:-1])).sum()) - float(np.log(penalties).sum())
        log_beta, misfit = float(np.log(beta)), beta * self.cost
        if not self._bias:
            return float(log_density(n, log_beta, log_det, misfit))
        t = self.target
        spread2 = max(float(((t - t.mean()) ** 2).sum()), 1e-300)
        # the unpenalised column of ones contributed log N to the determinant
        return float(log_density(n, log_beta, log_det - np.log(n), misfit, spread2))

    def criteria(self) -> dict[str, float]:
        """Selection criteria of the present fit: loo, gcv, uev, fpe, bic, and gamma; O(NM^2), from the rows."""
        return criteria(self.rows, self.target, self.lam, centre=bool(self._bias))

    def fit(self, beta: float) -> IncrementalFit:
        """The present fit, at the noise precision `beta`, as one that later changes leave alone."""
        began = perf_counter()
        value = self.log_evidence(beta)
        improper = bool((self.lam == 0.0).any())
        notes = (Status.IMPROPER_PRIOR,) * improper + (Status.TOO_FEW_ROWS,) * (not self.is_determined)
        integrated = ("weights", "bias") if self._bias else ("weights",)
        return IncrementalFit(
            state=deepcopy(self),
            beta=beta,
            evidence=None if improper else Evidence(value, "plug-in", integrated=integrated),
            status=worst(notes),
            notes=notes,
            optima=({"lam": self.lam, "beta": beta, "log_evidence": value},),
            history=(),
            seconds=perf_counter() - began,
        )

    def _body(self) -> FloatArray:
        return self._store[: self._n, : self._m]

    # ---- changing

    def refactor(self) -> None:
        """Recompute the triangle from the rows: the retraining that the updates save."""
        m = self._m
        stack = np.zeros((self._n + m, m + 1), order="F")
        stack[: self._n, :m] = self._body()
        stack[: self._n, m] = np.where(self._alive[: self._n], self._target[: self._n] - self._shift, 0.0)
        stack[self._n + np.arange(m), np.arange(m)] = np.sqrt(self._lam)
        (R,) = sl.qr(stack, mode="r", overwrite_a=True, check_finite=False)
        full = np.zeros((m + 1, m + 1))
        full[: len(R)] = R[: m + 1]
        self.R = np.asfortranarray(np.triu(full))

    def add_row(self, h: npt.ArrayLike, t: float) -> None:
        """Add a row of the design (without the bias) and its target."""
        row = _checked(h, self.n_columns, "column")
        value = float(as_target(np.atleast_1d(as_float_array(t, "t")), 1)[0])
        check_magnitude(np.array([value]), "t")
        x = np.concatenate([np.ones(self._bias), row, [value]])
        if self._n == self._store.shape[0]:
            self._grow(rows=True)
        self._store[self._n, : self._m] = x[:-1]
        self._target[self._n] = value
        self._alive[self._n] = True
        self._n += 1
        x[-1] -= self._shift
        self.R = np.triu(sl.lapack.dtpqrt(0, min(32, self._m + 1), self.R, x[None, :].copy(order="F"))[0])

    def remove_row(self, i: int) -> None:
        """Remove row `i` (counted among the rows in the fit)."""
        as_count(i, "i", 0)
        if i >= self.n_rows:
            raise ValueError(f"i must be less than the number of rows, {self.n_rows}; got {i}")
        if self.n_rows == 1:
            raise ValueError("the last row cannot be removed: a fit needs at least one")
        k = int(np.flatnonzero(self._alive[: self._n])[i])
        x = np.append(self._store[k, : self._m], self._target[k] - self._shift)
        self._alive[k] = False
        self._store[k, : self._m] = 0.0  # rows out of the fit are zero: products over the store need no mask
        self._target[k] = 0.0
        try:
            self.R = np.asfortranarray(rank_one_update(self.R, x, -1.0, keep=1e-8))
        except ArithmeticError:
            self.refactor()

    def add_column(self, h: npt.ArrayLike, lam: float) -> None:
        """Add a column of the design with its penalty; it becomes the last one."""
        column = _checked(h, self.n_rows, "row")
        penalty = float(as_positive_vector(lam, "lam", 1, allow_zero=True)[0])
        if self._m == self._store.shape[1]:
            self._grow(rows=False)
        full = np.zeros(self._n)
        full[self._alive[: self._n]] = column
        if not self.is_determined:
            self._store[: self._n, self._m] = full
            self._lam = np.append(self._lam, penalty)
            self._m += 1
            self.refactor()
            return
        t = np.where(self._alive[: self._n], self._target[: self._n] - self._shift, 0.0)
        z = self.R[:-1, -1]
        r = sl.solve_triangular(self.R[:-1, :-1], self._body().T @ full, trans="T", check_finite=False)
        length2 = float(full @ full - r @ r)
        if length2 > 0.1 * float(full @ full):  # well apart from the others: nothing cancels
            delta = float(np.sqrt(length2 + penalty))
            fresh = float(full @ t - r @ z) / delta
        else:
            r, delta, residual = self._project(full, r, penalty)
            fresh = float(residual @ t) / delta if delta > 0.0 else 0.0
        m = self._m
        R = np.zeros((m + 2, m + 2), order="F")
        R[:m, :m], R[:m, m], R[:m, m + 1] = self.R[:-1, :-1], r, z
        R[m, m], R[m, m + 1] = delta, fresh
        left = self.cost - fresh**2
        self._store[: self._n, m] = full
        self._lam = np.append(self._lam, penalty)
        self._m += 1
        self.R = R
        if delta**2 < 1e-12 * float(full @ full):
            # all but in the span of the others: only an orthogonal method can tell
            self.refactor()
            return
        if left < 0.01 * fresh**2:  # the new column explains nearly all: measure what is left
            w = self._weights()
            rest = t - self._body() @ w
            left = float(rest @ rest + self._lam @ w**2)
        R[-1, -1] = np.sqrt(max(left, 0.0))

    def remove_column(self, j: int) -> None:
        """Remove column `j` (the bias not counted)."""
        as_count(j, "j", 0)
        if j >= self.n_columns:
            raise ValueError(f"j must be less than the number of columns, {self.n_columns}; got {j}")
        if self._m == 1:
            raise ValueError("the last column cannot be removed: a fit needs at least one")
        k = j + self._bias
        _, R = sl.qr_delete(np.eye(self._m + 1), self.R, k, which="col", check_finite=False)
        self.R = np.asfortranarray(np.triu(R[: self._m]))
        self._store[: self._n, k : self._m - 1] = self._store[: self._n, k + 1 : self._m]
        self._lam = np.delete(self._lam, k)
        self._m -= 1

    def _project(self, h: FloatArray, r: FloatArray, penalty: float) -> tuple[FloatArray, float, FloatArray]:
        """Coordinates of a nearly dependent column, the length of what is left, and what is left (data rows).

        The semi-normal equations that gave `r` lose digits here; one corrected step wins them back (Bjorck 1987).
        """
        body, R = self._body(), self.R[:-1, :-1]
        v = sl.solve_triangular(R, r, check_finite=False)
        rest = h - body @ v
        dr = sl.solve_triangular(R, body.T @ rest - self._lam * v, trans="T", check_finite=False)
        v = v + sl.solve_triangular(R, dr, check_finite=False)
        rest = h - body @ v
        length2 = float(rest @ rest + (self._lam * v**2).sum())
        return r + dr, float(np.sqrt(length2 + penalty)), rest

    def _grow(self, *, rows: bool) -> None:
        n, m = self._store.shape
        if rows and self.n_rows <= n - n // 8 - 1:  # a window that slides: put the living rows together instead
            keep = np.flatnonzero(self._alive)
            self._store[: len(keep)] = self._store[keep]
            self._target[: len(keep)] = self._target[keep]
            self._store[len(keep) :] = 0.0
            self._target[len(keep) :] = 0.0
            self._alive[:] = np.arange(n) < len(keep)
            self._n = len(keep)
            return
        bigger = np.zeros((n + n // 4 + 8, m) if rows else (n, m + m // 4 + 8), order="F")
        bigger[:n, :m] = self._store
        self._store = bigger
        if rows:
            extra = bigger.shape[0] - n
            self._target = np.concatenate([self._target, np.zeros(extra)])
            self._alive = np.concatenate([self._alive, np.zeros(extra, dtype=bool)])


def _checked(h: npt.ArrayLike, length: int, unit: str) -> FloatArray:
    values = as_float_array(h, "h")
    if values.shape != (length,):
        raise ValueError(f"h must have one value per {unit}, {length}; got shape {values.shape}")
    check_finite(values, "h")
    check_magnitude(values, "h")
    return values
