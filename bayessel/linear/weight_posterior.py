r"""The Gaussian posterior of linear models with fixed precisions, and the evidence.

:math:`H = \beta\Phi^T\Phi + A`, :math:`\Sigma = H^{-1}`, :math:`\mu = \beta\Sigma\Phi^Tt`, with :math:`A` the diagonal
of the weight precisions :math:`\alpha` and :math:`\beta` the noise precision. Columns are scaled by
:math:`1/\sqrt{\alpha_j}` (or :math:`1/\sqrt{\lambda_j}`), after which one ridge serves for all of them; infinite
precisions drop their column, zero precisions leave it unpenalised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray, as_matrix, as_positive, as_positive_vector, as_target, check_magnitude
from bayessel._row_weights import RowWeights
from bayessel.fit import Fit, LeaveOneOut
from bayessel.linear.reported_sums import Sums, left_out, sums
from bayessel.linear.spectrum import ColumnPenalties, Spectrum
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class RowCoordinates:
    """Rows of a design in the coordinates of its factorisation, where every ridge costs one product.

    Attributes
    ----------
    along : (N, k) array
        Along the right singular vectors.
    across : (N,) array or None
        Squared length outside their span, where they do not span everything.
    flat : (N,) array
        Variance that the unpenalised weights add, in units of the noise's.
    """

    along: FloatArray
    across: FloatArray | None
    flat: FloatArray

    def variances(self, spectrum: Spectrum, lam: FloatArray) -> FloatArray:
        """Variances of the function in units of the noise's, one row per lambda."""
        inside = (1.0 / (spectrum.s**2 + lam[:, None])) @ (self.along**2).T + self.flat
        return inside if self.across is None else np.asarray(inside + self.across / lam[:, None])

    def means(self, spectrum: Spectrum, lam: FloatArray) -> FloatArray:
        """Posterior means of the penalised part about the bias of a centred fit, one row per lambda."""
        return np.asarray((spectrum.s * spectrum.z / (spectrum.s**2 + lam[:, None])) @ self.along.T)


@dataclass(frozen=True, eq=False)
class Posterior:
    r"""Posterior of the weights of a linear model.

    Attributes
    ----------
    coef : (M,) array
        Posterior means; zero for dropped columns.
    intercept : float
        Weight of the bias when the data were centred, else 0.
    gamma : float
        Well-determined parameters :math:`\sum(1-\alpha_i\Sigma_{ii})`; an unpenalised column counts one, the bias too.
    beta : float
        Noise precision.
    """

    spectrum: Spectrum
    lam: float
    beta: float
    columns: ColumnPenalties
    coef: FloatArray
    intercept: float

    @classmethod
    def of(cls, spectrum: Spectrum, lam: float, beta: float) -> Posterior:
        """Assemble from a factorisation."""
        columns = spectrum.penalties
        if columns is None:
            m = spectrum.n_columns
            columns = ColumnPenalties(m, np.arange(m), np.ones(m), np.zeros(0, dtype=np.intp))
        w = spectrum.weights(lam)
        free = spectrum.flat_weights(w)
        coef = np.zeros(columns.n_columns)
        coef[columns.active] = w[: len(columns.active)] * columns.scale
        coef[columns.flat] = free[: len(columns.flat)]
        return cls(spectrum, lam, beta, columns, coef, float(free[-1]) if spectrum.centred else 0.0)

    @property
    def gamma(self) -> float:
        """Well-determined parameters, the unpenalised directions included."""
        return float(self.spectrum.gamma(self.lam)) + self.spectrum.n_flat

    @property
    def integrated(self) -> tuple[str, ...]:
        """What the evidence integrates out."""
        return ("weights", "bias") if self.spectrum.centred else ("weights",)

    @property
    def sum_squares(self) -> float:
        """Sum of squared residuals of the posterior mean."""
        return sums(self.spectrum, self.lam).sum_squares

    @property
    def log_evidence(self) -> float:
        """log p(t | alpha, beta) in nats; NaN when columns other than the bias are unpenalised."""
        return self.assemble_evidence(sums(self.spectrum, self.lam))

    def assemble_evidence(self, at: Sums) -> float:
        """The log evidence from the sums at `lam`."""
        if len(self.columns.flat):
            return np.nan
        return float(self.spectrum.assemble_evidence(at.quad, at.log_det, self.beta))

    def leave_one_out(self, target: FloatArray | None = None) -> LeaveOneOut:
        r"""Each row predicted from all others at these precisions.

        Errors :math:`(Pt)_i/P_{ii}` and variances :math:`1/(\beta P_{ii})`, the noise included: exact, without
        refitting. A large design must have kept its rows: ``Spectrum.of(..., rows=True)``. Whole distributions need
        `target`, what was fitted.
        """
        at = sums(self.spectrum, self.lam, rows=True)
        assert at.diag_p is not None and at.residuals is not None
        return from_complement(at.residuals, at.diag_p, self.beta, target, self.spectrum.row_weights)

    def variance(self, Phi_new: FloatArray) -> FloatArray:
        r"""Variance of the function, :math:`\phi^T\Sigma\phi`, at new rows of the design (the noise not included)."""
        return np.asarray(self.coordinates(Phi_new).variances(self.spectrum, np.array([self.lam]))[0] / self.beta)

    def coordinates(self, Phi_new: FloatArray) -> RowCoordinates:
        """New rows of the design in the coordinates of the factorisation."""
        spec = self.spectrum
        Phi_new = self._rows(Phi_new)
        active = self.columns.active
        rows = Phi_new[:, active] * self.columns.scale if len(active) else np.zeros((len(Phi_new), spec.n_columns))
        flat = np.zeros(len(Phi_new))
        if spec.n_flat and spec.flat_slope is not None and spec.flat_root is not None:
            free = Phi_new[:, self.columns.flat]
            if spec.centred:
                free = np.hstack([free, np.ones((len(Phi_new), 1))])
            rows = rows - free @ spec.flat_slope
            kept = spec.flat.pivots if spec.flat is not None else list(range(spec.n_flat))
            flat = ((free[:, kept] @ spec.flat_root) ** 2).sum(axis=1)
        along = rows @ spec.Vt.T
        # the complement of the row space is added as it is measured: 1 - sum of squares would cancel
        across = rows - along @ spec.Vt if spec.Vt.shape[0] < spec.Vt.shape[1] else None
        return RowCoordinates(along, None if across is None else (across**2).sum(axis=1), flat)

    def predict(self, Phi_new: npt.ArrayLike) -> Prediction:
        """Predictive distributions at new rows of the design, with the noise of a typical row."""
        rows = self._rows(Phi_new)
        variance = self.variance(rows)
        return Prediction.normal(rows @ self.coef + self.intercept, variance + 1.0 / self.beta, variance)

    def _rows(self, Phi_new: npt.ArrayLike) -> FloatArray:
        rows = as_matrix(Phi_new, "Phi")
        if rows.shape[1] != len(self.coef):
            raise ValueError(f"Phi must have the {len(self.coef)} columns of the fit, got shape {rows.shape}")
        return rows


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorFit(Fit):
    """Base of the results on columns whose noise is normal.

    Attributes
    ----------
    posterior : Posterior
        Of the weights of the columns in use.
    """

    posterior: Posterior = field(repr=False)

    if TYPE_CHECKING:

        @property
        def alpha(self) -> Any: ...  # noqa: D102
        @property
        def basis(self) -> IntArray: ...  # noqa: D102

    @property
    def intercept(self) -> float:
        """The bias of a centred fit, else 0."""
        return self.posterior.intercept

    @property
    def beta(self) -> float:
        """Noise precision; of a typical row where noise levels were given."""
        return self.posterior.beta

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise; where noise levels were given that of a row of their geometric mean."""
        return float(self.beta**-0.5)

    @property
    def n_counted(self) -> float:
        """Rows that the noise counts: their number, or the sum of their weights."""
        return self.posterior.spectrum.n_counted

    @property
    def n_basis(self) -> int:
        """Number of columns in use, the bias of a centred fit not counted."""
        return len(self.basis)

    @property
    def sum_squares(self) -> float:
        """Sum of squared residuals; of rows with weights of the multiplied ones."""
        return self.posterior.sum_squares

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters, the unpenalised directions and the bias included."""
        return self.posterior.gamma


def from_complement(
    residuals: FloatArray,
    complement: FloatArray,
    beta: float,
    target: FloatArray | None = None,
    weights: RowWeights | None = None,
) -> LeaveOneOut:
    r"""Leave-one-out predictions from residuals Pt and diag P: errors :math:`(Pt)_i/P_{ii}`, variances 1/(βPᵢᵢ).

    Rows that nothing but themselves determine have infinite errors and variances. A row with a weight is left out as a
    whole, and predicted once, with its own noise.
    """
    errors = left_out(residuals, complement)
    variances = left_out(np.full(len(complement), 1.0 / beta), complement)
    if weights is not None:
        errors, variances = of_single_rows(errors, variances, 1.0 / beta, weights)
    return LeaveOneOut.normal(errors, variances, target)


def of_single_rows(
    errors: FloatArray, variances: FloatArray, noise: float | FloatArray, weights: RowWeights
) -> tuple[FloatArray, FloatArray]:
    """Errors and variances of rows as they came, from those of rows that were multiplied."""
    return errors / weights.root, (variances - noise) / weights.root**2 + noise * weights.std**2


def check_ratio(alpha: FloatArray, beta: float, what: str = "alpha / beta") -> None:
    """Refuse penalties alpha / beta (infinity and zero apart) that would overflow when multiplied with squares."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        size = np.abs(np.log10(alpha[(alpha > 0.0) & np.isfinite(alpha)]) - np.log10(beta))
    if size.size and size.max() > 150.0:
        raise ValueError(f"{what} must lie between 1e-150 and 1e150, got 1e+-{size.max():.0f}; rescale Phi or t")


def posterior(
    Phi: npt.ArrayLike,
    t: npt.ArrayLike,
    alpha: npt.ArrayLike,
    beta: float,
    *,
    centre: bool = False,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Posterior:
    r"""Posterior of the weights for given precisions.

    Parameters
    ----------
    Phi, t
        Design (N, M) and target (N,).
    alpha
        Weight precision, one or one per column; infinity drops a column, zero leaves it unpenalised.
    beta
        Noise precision :math:`1/\sigma^2`.
    centre
        Give a bias (which is not a column of `Phi`) a flat prior.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`.

    Examples
    --------
    >>> at = posterior([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0], alpha=1.0, beta=1.0)
    >>> at.coef.round(6).tolist(), at.variance(np.eye(2)).round(6).tolist()
    ([0.5, 0.4], [0.5, 0.2])
    """
    design, target, precisions, noise = _checked(Phi, t, alpha, beta, allow_zero=True)
    weights = RowWeights.of(len(design), noise_std, sample_weight)
    spectrum = Spectrum.weighed(design, target, precisions, centre=centre, rows=False, weights=weights)
    return Posterior.of(spectrum, 1.0 / noise, noise)


def log_evidence(
    Phi: npt.ArrayLike,
    t: npt.ArrayLike,
    alpha: npt.ArrayLike,
    beta: float,
    *,
    centre: bool = False,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Evidence :math:`\log p(t|\alpha,\beta)` in nats, every constant included.

    .. math:: -\tfrac12[N\log 2\pi + \log|C| + t^TC^{-1}t],\quad C = I/\beta + \Phi A^{-1}\Phi^T

    Parameters
    ----------
    Phi, t
        Design (N, M) and target (N,).
    alpha
        Weight precision, one or one per column; infinity drops a column.
    beta
        Noise precision.
    centre
        Add a bias with a flat prior (not a column of `Phi`), integrated out. With :math:`t_c, \Phi_c` centred this is
        :math:`\log N(t_c|0,C_c) - \tfrac12\log(\beta\|t_c\|^2)`: the flat density is :math:`1/(\sqrt{2\pi}s_t)`, s_t
        the standard deviation of `t`. An offset in `t` changes nothing; rescaling `t` by s adds -N log s.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`; :math:`\beta` is the precision of a row of the geometric mean of
        `noise_std`.

    Examples
    --------
    >>> import numpy as np
    >>> round(log_evidence(np.ones((1, 1)), np.zeros(1), alpha=1.0, beta=1.0), 6)  # log N(0 | 0, 2)
    -1.265512
    """
    design, target, precisions, noise = _checked(Phi, t, alpha, beta, allow_zero=False)
    weights = RowWeights.of(len(design), noise_std, sample_weight)
    if (precisions == precisions[0]).all() and np.isfinite(precisions[0]):
        spectrum, ridge = Spectrum.of(design, target, centre=centre, weights=weights), float(precisions[0]) / noise
    else:
        spectrum = Spectrum.weighed(design, target, precisions, centre=centre, rows=False, weights=weights)
        ridge = 1.0 / noise
    at = sums(spectrum, ridge)
    return float(spectrum.assemble_evidence(at.quad, at.log_det, noise))


def _checked(
    Phi: npt.ArrayLike, t: npt.ArrayLike, alpha: npt.ArrayLike, beta: float, *, allow_zero: bool
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Design, target, one precision per column, and the noise precision."""
    design = as_matrix(Phi, "Phi")
    target = as_target(t, design.shape[0])
    precisions = as_positive_vector(alpha, "alpha", design.shape[1], allow_zero=allow_zero, allow_inf=True)
    noise = as_positive(beta, "beta")
    check_ratio(precisions, noise)
    check_magnitude(design, "Phi")
    return design, target, precisions, noise
