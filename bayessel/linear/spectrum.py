r"""One factorisation of the design, after which every ridge :math:`\lambda = \alpha/\beta` costs O(min(N, M)).

With the thin SVD :math:`\Phi = U S V^T`, :math:`z = U^T t` and :math:`g_j = \lambda/(s_j^2+\lambda)`, the quantities
of the linear model are sums over the singular values:

* effective parameters :math:`\gamma = \sum (1 - g_j)`,
* :math:`\log|I + \Phi\Phi^T/\lambda| = \sum \log(1 + s_j^2/\lambda)`,
* :math:`q = t^T(I + \Phi\Phi^T/\lambda)^{-1}t = \rho^2 + \sum g_j z_j^2` and
  :math:`S = t^TP^2t = \rho^2 + \sum g_j^2 z_j^2`, with :math:`\rho^2 = \|t - UU^Tt\|^2`.

Each is a sum of positive terms, so nothing cancels even where the condition number of the design passes 1e16.
Unpenalised columns (a bias, or columns with :math:`\lambda_j = 0`) are removed first by an orthogonal projection onto
their complement: a flat prior on their weights. Rows that count differently or have noise levels of their own
(`bayessel._row_weights`) are multiplied by :math:`u_i` before anything else, the bias among them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from bayessel._check import (
    FOURTH_POWERS,
    FloatArray,
    IntArray,
    as_flag,
    as_matrix,
    as_target,
    check_finite,
    check_magnitude,
)
from bayessel._fingerprint import fingerprint
from bayessel._numerics import few_threads
from bayessel._row_weights import RowWeights
from bayessel.linear._evidence import log_density
from bayessel.linear.moments import Moments
from bayessel.linear.thin_svd import coordinates, svd_of_triangle, thin_svd
from bayessel.linear.unpenalised_columns import TargetParts, UnpenalisedColumns, offsets

#: a Gram matrix squares the condition number; it is used only while eps * cond(Phi)^2 stays below this
GRAM_TOLERANCE = 1e-10
#: below this many entries a full SVD costs next to nothing
_SMALL = 50_000


@dataclass(frozen=True, eq=False)
class ColumnPenalties:
    """Which columns of a design were factored, and what they were multiplied by so that one ridge serves for all.

    Attributes
    ----------
    n_columns : int
        Columns of the design.
    active, scale : (k,) arrays
        The columns that are penalised, and the inverse roots of their penalties.
    flat : (q,) array
        The columns that are not penalised.
    """

    n_columns: int
    active: IntArray
    scale: FloatArray
    flat: IntArray


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of a design, the target in their coordinates, and what was projected out before.

    Build it with :meth:`of`; pass it to `fit_evidence` and `fit_ridge` in place of ``(Phi, t)`` to share the work.

    Attributes
    ----------
    n_rows, n_columns : int
        N and M of the design.
    s, z : (k,) arrays
        Singular values and the target's coordinates.
    rss, tss : float
        Squared length of the target outside the span of the design, and altogether.
    Vt : (k, M) array
        Right singular vectors.
    n_flat : int
        Number of unpenalised directions (1 when centred).
    flat_offset, flat_slope : (q,), (q, M) arrays
        Unpenalised weights are ``flat_offset - flat_slope @ w``.
    route : str
        'svd', 'qr', 'gram' or 'stream-qr', 'stream-gram': how it was computed.
    fingerprint : str or None
        Names the target (`bayessel._fingerprint.fingerprint`), so that results of different data are not compared.
    given : (design, target) or None
        The arrays as they were given, not copied; None of a stream.
    penalties : ColumnPenalties or None
        None where every column was factored as it is.
    row_weights : RowWeights or None
        None where all rows are alike. Otherwise `s`, `z`, `rss` and what follows from them are those of the multiplied
        rows.

    Examples
    --------
    >>> from bayessel.linear import fit_evidence, fit_ridge
    >>> x = np.linspace(-1.0, 1.0, 30)
    >>> shared = Spectrum.of(x[:, None] ** np.arange(6), np.sin(3.0 * x) + 0.1 * np.cos(40.0 * x))
    >>> shared.n_rows, shared.n_columns, shared.route
    (30, 6, 'svd')
    >>> fit_evidence(shared).fingerprint == fit_ridge(shared).fingerprint
    True
    """

    n_rows: int
    n_columns: int
    s: FloatArray
    z: FloatArray
    rss: float
    tss: float
    Vt: FloatArray
    t_scale: float
    n_flat: int = 0
    flat_offset: FloatArray | None = None
    flat_slope: FloatArray | None = None
    flat_root: FloatArray | None = None  # inverse of R with R^T R = F^T F: the flat weights' covariance root
    route: str = "svd"
    centred: bool = False
    U: FloatArray | None = None
    off_span: FloatArray | None = None  # t - U U^T t, in the original rows
    slack: FloatArray | None = None  # squared length of each unit vector outside the span: diag of P at lambda -> 0
    flat: UnpenalisedColumns | None = None
    design: FloatArray | None = None  # Phi and t themselves, kept for the refinement of nearly singular cases
    target: FloatArray | None = None
    fingerprint: str | None = None  # None where the target was never seen whole (a stream)
    given: tuple[Any, FloatArray] | None = field(default=None, repr=False)
    penalties: ColumnPenalties | None = None
    row_weights: RowWeights | None = None
    spread2: float | None = None  # what the density of the bias is measured by, where it is not tss

    @classmethod
    def of(
        cls,
        Phi: npt.ArrayLike,
        t: npt.ArrayLike,
        *,
        centre: bool = False,
        rows: bool = False,
        flat: npt.ArrayLike | None = None,
        weights: RowWeights | None = None,
    ) -> Spectrum:
        """Factor a design.

        Parameters
        ----------
        Phi
            (N, M) design. With ``centre=True`` leave the bias column out.
        t
            (N,) target.
        centre
            Remove the means of the target and of every column: a flat prior on the bias.
        rows
            Keep the left singular vectors too; needed for leave-one-out and for other targets.
        flat
            Columns that are not penalised, (N, q).
        weights
            Counts and noise levels of the rows, where they differ.
        """
        as_flag(centre, "centre")
        A = as_matrix(Phi, "Phi", finite=False)
        y = as_target(t, A.shape[0])
        rows = rows or A.size <= _SMALL  # they cost nothing here, and let results be refined
        with few_threads(A.size):
            return replace(cls._factor(A, y, centre, rows, flat, weights), fingerprint=fingerprint(y), given=(A, y))

    @classmethod
    def weighed(
        cls,
        Phi: FloatArray,
        t: FloatArray,
        penalty: FloatArray,
        *,
        centre: bool,
        rows: bool,
        weights: RowWeights | None = None,
        products: bool = False,
    ) -> Spectrum:
        """Factor a design whose columns have penalties of their own, in units of the ridge: zero to infinity.

        `products` asks for the products of the columns whatever their condition (without `weights`): half of the digits
        of small singular values are lost, which ridges far above rounding do not see.
        """
        flat = np.flatnonzero(penalty == 0.0)
        active = np.flatnonzero((penalty > 0.0) & np.isfinite(penalty))
        scale = penalty[active] ** -0.5
        shift = offsets(Phi[:, active]) if centre else np.zeros(len(active))  # before the scaling rounds it in
        # a column of zeros stands for an empty design
        body = (Phi[:, active] - shift) * scale if len(active) else np.zeros((len(t), 1))
        if products and weights is None:
            with few_threads(body.size):
                moments = Moments.of((body, t), centre=centre)
                spectrum = replace(cls.from_moments(moments, "gram"), fingerprint=fingerprint(t))
        else:
            free = Phi[:, flat] if len(flat) else None
            spectrum = cls.of(body, t, centre=centre, rows=rows, flat=free, weights=weights)
        if len(active) and spectrum.flat_slope is not None and centre:
            slope = spectrum.flat_slope.copy()
            slope[-1] += shift * scale
            spectrum = replace(spectrum, flat_slope=slope)
        return replace(spectrum, given=(Phi, t), penalties=ColumnPenalties(Phi.shape[1], active, scale, flat))

    @classmethod
    def _factor(
        cls,
        A: FloatArray,
        y: FloatArray,
        centre: bool,
        rows: bool,
        flat: npt.ArrayLike | None,
        weights: RowWeights | None,
    ) -> Spectrum:
        n_rows, n_columns = A.shape
        check_magnitude(y, "t", FOURTH_POWERS)
        if not rows and flat is None and weights is None and n_rows >= 2 * n_columns:
            # bad values spread to the sums: looking at those saves three passes over a large design
            some = slice(None, None, max(1, n_rows // (n_columns + n_columns // 4 + 8)))
            sample = Moments.of((A[some], y[some]), centre=centre)  # a few rows tell most ill-conditioned designs apart
            hopeless = n_rows >= 3 * n_columns and not suits_gram(sample.condition_bound())
            moments = sample if hopeless else Moments.of((A, y), centre=centre)
            if not hopeless and moments.is_finite() and moments.is_sizeable() and suits_gram(moments.condition_bound()):
                factors = moments.spectrum()
                if suits_gram(moments.condition(factors[0])):
                    return cls.from_moments(moments, "gram", A, y, factors)
        check_finite(A, "Phi")
        check_magnitude(A, "Phi", FOURTH_POWERS)
        shift = offsets(A) if centre else np.zeros(n_columns)
        A = A - shift if centre else A
        columns = [] if flat is None else [as_matrix(flat, "flat", allow_1d=True)]
        if columns and len(columns[0]) != n_rows:
            raise ValueError(f"flat must have the {n_rows} rows of Phi, got shape {columns[0].shape}")
        if centre:
            columns.append(np.ones((n_rows, 1)))
        if weights is not None:
            A, columns = weights.scale(A), [weights.scale(column) for column in columns]
        space = UnpenalisedColumns.of(np.hstack(columns)) if columns else UnpenalisedColumns.empty()
        q = space.rank
        rotated = space.rotate(A)
        aim = TargetParts.of(y, space, centre, weights)
        common: dict[str, Any] = {"n_rows": n_rows, "n_columns": n_columns, "n_flat": q, "centred": centre}
        common |= {
            "tss": aim.tss,
            "t_scale": aim.t_scale,
            "flat": space,
            "row_weights": weights,
            "spread2": aim.spread2,
        }
        if space.n_columns:
            common |= {"flat_root": space.root, "flat_offset": aim.flat_offset}
            common["flat_slope"] = np.zeros((space.n_columns, n_columns))
            common["flat_slope"][space.pivots] = space.root @ rotated[:q]
            if centre:
                common["flat_slope"][-1] += shift
        if not rows and n_rows - q > 1.2 * n_columns:
            # R of [Phi t] holds all that the singular values need; Q is never formed
            stack = np.empty((n_rows - q, n_columns + 1), order="F")  # LAPACK's order: nothing is copied again
            stack[:, :n_columns], stack[:, n_columns] = rotated[q:], aim.rest
            (R,) = sl.qr(stack, mode="r", overwrite_a=True, check_finite=False)
            m = n_columns
            s, z, Vt, beyond = svd_of_triangle(R[:m, :m], R[:m, m])
            return cls(s=s, z=z, Vt=Vt, rss=float(R[m, m] ** 2) + beyond, route="qr", **common)
        U, s, Vt = thin_svd(rotated[q:])
        z, off = coordinates(U, aim.rest)
        spectrum = cls(s=s, z=z, Vt=Vt, rss=float(off @ off), **common)
        if not rows:
            return spectrum
        U = space.embed(U)
        slack = space.slack(U)
        off = space.embed(off[:, None])[:, 0]
        return replace(spectrum, U=U, off_span=off, slack=slack, design=A, target=aim.shifted)

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        route: str,
        Phi: FloatArray | None = None,
        t: FloatArray | None = None,
        factors: tuple[FloatArray, FloatArray, FloatArray, float, float] | None = None,
    ) -> Spectrum:
        """Build from the sufficient statistics of a (possibly streamed) data set."""
        s, z, Vt, rss, tss = moments.spectrum() if factors is None else factors
        if Phi is not None and t is not None and rss < 1e-5 * tss and not moments.exact:
            # tss - sum z^2 has cancelled: measure the residual itself, and polish z with it
            inverse = Vt.T / s
            for step in range(3):
                residual = t - Phi @ (inverse @ z)
                if moments.centre:
                    residual -= residual.mean()
                if step < 2:
                    z = z + inverse.T @ (Phi.T @ residual)
            rss = float(residual @ residual)
        spectrum = cls(
            n_rows=moments.n_rows,
            n_columns=moments.n_columns,
            s=s,
            z=z,
            Vt=Vt,
            rss=rss,
            tss=tss,
            t_scale=moments.t_scale,
            route=route,
            centred=moments.centre,
        )
        if moments.centre:
            spectrum = replace(
                spectrum,
                n_flat=1,
                flat_offset=np.array([moments.t_mean]),
                flat_slope=moments.mean[None, :],
                flat_root=np.array([[moments.n_rows**-0.5]]),
            )
        return spectrum

    def retarget(self, t: npt.ArrayLike) -> Spectrum:
        """Return the same factorisation for another target (needs ``rows=True``)."""
        if self.U is None or self.flat is None:
            raise ValueError(
                "this Spectrum keeps no rows; build it with Spectrum.of(..., rows=True) to change the target"
            )
        y = as_target(t, self.n_rows)
        aim = TargetParts.of(y, self.flat, self.centred, self.row_weights)
        z, off = coordinates(self.U, self.flat.embed(aim.rest[:, None])[:, 0], self.n_flat)
        return replace(
            self,
            z=z,
            off_span=off,
            rss=float(off @ off),
            tss=aim.tss,
            t_scale=aim.t_scale,
            spread2=aim.spread2,
            flat_offset=aim.flat_offset if self.flat.n_columns else None,
            target=aim.shifted,
            fingerprint=fingerprint(y),
            given=None if self.given is None else (self.given[0], y),
        )

    @property
    def n_counted(self) -> float:
        """Rows that the noise counts: N, or the sum of their weights."""
        return self.n_rows if self.row_weights is None else self.row_weights.total

    @property
    def n_free(self) -> float:
        """Rows left after the unpenalised directions: N, or N - 1 when centred."""
        return self.n_counted - self.n_flat

    def assemble_evidence[L: (float, FloatArray)](self, quad: L, log_det: L, beta: L) -> L:
        """Return log p(t | alpha, beta) from its parts."""
        log_beta: L = np.log(beta)
        return self.log_density(log_beta, log_det, beta * quad)

    def log_density[L: (float, FloatArray)](self, log_beta: L, log_det: L, misfit: L) -> L:
        """The same from log beta, the log determinant, and beta times the quadratic form."""
        spread2 = None
        if self.centred:
            floor = (4.0 * np.finfo(float).eps * (self.t_scale or 1.0)) ** 2 * self.n_counted
            spread2 = max(self.tss if self.spread2 is None else self.spread2, floor)
        return log_density(self.n_counted, log_beta, log_det, misfit, spread2)

    def profile_sums(self, lam: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Gamma, t^T P t and the squared length of w at many positive lambdas at once, from one array of quotients."""
        s2, z2 = self.s**2, self.z**2
        inverse = np.add.outer(lam, s2)
        np.reciprocal(inverse, out=inverse)
        gamma, quad = inverse @ s2, self.rss + lam * (inverse @ z2)
        inverse *= self.s  # before it is squared: the square of the quotient is of the size of squared weights
        np.multiply(inverse, inverse, out=inverse)
        return gamma, quad, inverse @ z2

    # ---- functions of lambda; `lam` is a number or an array, the result has its shape

    def _g(self, lam: FloatArray | float) -> Any:
        """lambda / (s^2 + lambda), one row per lambda; at lambda = 0 the numerical null space keeps g = 1."""
        value = _column(lam)
        s2 = self.s**2
        if np.all(value > 0.0):
            return value / (s2 + value)
        largest = self.s[0] if len(self.s) else 0.0
        null = self.s <= largest * max(self.n_rows, self.n_columns) * np.finfo(float).eps
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(value > 0.0, value / (s2 + value), np.where(null, 1.0, 0.0))

    def gamma[L: (float, FloatArray)](self, lam: L) -> L:
        """Well-determined parameters: sum s^2/(s^2+lambda), the unpenalised directions not counted."""
        value = _column(lam)
        shares = self.s**2 / (self.s**2 + value) if np.all(value > 0.0) else 1.0 - self._g(lam)
        gamma: L = shares.sum(axis=-1)
        return gamma

    def trace_p[L: (float, FloatArray)](self, lam: L) -> L:
        """Trace of P = N - gamma - (unpenalised directions), as a sum of positive terms."""
        trace: L = (self.n_free - len(self.s)) + self._g(lam).sum(axis=-1)
        return trace

    def quad[L: (float, FloatArray)](self, lam: L) -> L:
        """t^T (I + Phi Phi^T/lambda)^-1 t = t^T P t: the ridge cost, and what sets the noise level."""
        quad: L = self.rss + self._g(lam) @ self.z**2
        return quad

    def sum_squares[L: (float, FloatArray)](self, lam: L) -> L:
        """t^T P^2 t: the sum of squared residuals."""
        misfit: L = self.rss + self._g(lam) ** 2 @ self.z**2
        return misfit

    def log_det[L: (float, FloatArray)](self, lam: L) -> L:
        """Log determinant of I + Phi Phi^T / lambda."""
        log_det: L = np.log1p(self.s**2 / _column(lam)).sum(axis=-1)
        return log_det

    def log_evidence[L: (float, FloatArray)](self, lam: L, beta: L) -> L:
        """log p(t | alpha = lambda beta, beta); see `assemble_evidence`."""
        return self.assemble_evidence(self.quad(lam), self.log_det(lam), beta)

    def weights(self, lam: float) -> FloatArray:
        """Posterior mean (ridge solution) of the penalised weights."""
        if lam > 0.0:
            shrunk = self.s / (self.s**2 + lam) * self.z
        else:
            keep = self._g(0.0) < 1.0
            shrunk = np.where(keep, self.z / np.where(keep, self.s, 1.0), 0.0)
        return self.Vt.T @ shrunk

    def weight_norm2[L: (float, FloatArray)](self, lam: L) -> L:
        """Squared length of the weights."""
        value = _column(lam)
        norm2: L = ((self.s / (self.s**2 + value)) ** 2) @ self.z**2
        return norm2

    def flat_weights(self, w: FloatArray) -> FloatArray:
        """Weights of the unpenalised columns (the bias last), given the penalised ones."""
        if self.flat_offset is None or self.flat_slope is None:
            return np.zeros(0)
        return np.asarray(self.flat_offset - self.flat_slope @ w)

    def leverage_complement(self, lam: FloatArray) -> FloatArray:
        """diag(P), one row per lambda: 1 - leverage of each data row."""
        if self.U is None or self.slack is None:
            raise ValueError("leave-one-out needs the rows; build the Spectrum with rows=True")
        return np.asarray(self.slack + self._g(lam) @ (self.U**2).T)

    def residuals(self, lam: FloatArray) -> FloatArray:
        """P t, one row per lambda."""
        if self.U is None or self.off_span is None:
            raise ValueError("residuals need the rows; build the Spectrum with rows=True")
        return np.asarray(self.off_span + (self._g(lam) * self.z) @ self.U.T)


def _column(lam: FloatArray | float) -> Any:
    """Lambda with one axis more, for the singular values."""
    return np.asarray(lam, dtype=np.float64)[..., None]


def suits_gram(condition: float) -> bool:
    """Whether sums of squares keep enough digits of a design with this condition number."""
    return condition < float(np.sqrt(GRAM_TOLERANCE / np.finfo(float).eps))


def as_spectrum(
    Phi: npt.ArrayLike | Spectrum,
    t: npt.ArrayLike | None,
    centre: bool,
    caller: str,
    *,
    rows: bool = False,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Spectrum:
    """Factor a design and a target, or take the `Spectrum` given instead: then nothing may contradict it."""
    if not isinstance(Phi, Spectrum):
        if t is None:
            raise TypeError(f"{caller} needs a design and a target, or a Spectrum alone; got no target")
        design = as_matrix(Phi, "Phi", finite=False)
        weights = RowWeights.of(len(design), noise_std, sample_weight)
        return Spectrum.of(design, t, centre=centre, rows=rows, weights=weights)
    if noise_std is not None or sample_weight is not None:
        raise TypeError(f"{caller} takes a Spectrum without noise_std or sample_weight, which it holds already")
    if t is not None:
        raise TypeError(
            f"{caller} takes a Spectrum without a target, which it holds already; for another: spectrum.retarget(t)"
        )
    if as_flag(centre, "centre") and not Phi.centred:
        raise ValueError("centre=True came with a Spectrum that is not centred; build it with Spectrum.of(centre=True)")
    return Phi
