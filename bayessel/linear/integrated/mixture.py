r"""A linear model with its hyperparameters integrated out: predictions are mixtures over the places of a grid.

At a place (design, ridge) the noise precision has the posterior :math:`\beta\sim\Gamma(n/2, q/2)` with
:math:`q=t^TPt`, so that predictions there are Student distributions of n degrees of freedom; some quantiles of
:math:`\beta` stand for it. A row left out changes the weights of the places,

.. math:: p(t_n|t_{-n}) = 1\Big/\sum_c \frac{p(c|t)}{p(t_n|t_{-n},c)},

which is exact on the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, logsumexp

from bayessel._check import FloatArray, IntArray, as_matrix
from bayessel._formulas import log_normal
from bayessel.fit import LeaveOneOut, worst
from bayessel.linear.design_fit import DesignFit, given_arrays
from bayessel.linear.integrated.hyperparameter_grid import WhitenedDictionary
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.weight_posterior import Posterior, of_single_rows
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class Cells:
    """Places of the grid that hold the posterior, with their weights.

    Attributes
    ----------
    design : (S,) array
        Number of the design.
    lam, beta : (S,) arrays
        Ridge, and noise precision.
    log_weights : (S,) array
        Logarithms of weights that sum to one.
    """

    design: IntArray
    lam: FloatArray
    beta: FloatArray
    log_weights: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class IntegratedFit(DesignFit):
    """A linear model averaged over its hyperparameters.

    What a single fit has (`posterior`, `coef`, `gamma`, …) is that of the most probable place of the grid.

    Attributes
    ----------
    evidence : Evidence
        log p(t) with everything integrated out, under the priors of
        `bayessel.linear.integrated.hyperparameter_grid`.
    designs : tuple of WhitenedDictionary
        The designs that hold weight.
    posteriors : tuple of Posterior
        Of each design, at its most probable ridge.
    cells : Cells
        The places and their weights.
    """

    designs: tuple[WhitenedDictionary, ...]
    posteriors: tuple[Posterior, ...] = field(repr=False)
    cells: Cells = field(repr=False)

    #: its weights are not independent beforehand, which the codes for weights ask: it is none of those that send them
    message = None  # type: ignore[assignment]

    @property
    def mode(self) -> WhitenedDictionary:
        """Design of the most probable place, that of `posterior`."""
        found: WhitenedDictionary = self.optima[0]
        return found

    @property
    def coef(self) -> FloatArray:
        """Weights of the columns of the most probable place's dictionary."""
        return self.mode.weights(self.posterior.coef)

    @property
    def lam(self) -> float:
        """Noise over signal at the most probable place, both as variances."""
        return self.posterior.lam

    @property
    def alpha(self) -> float:
        """Precision of the function at the most probable place, one over its variance."""
        return self.posterior.lam * self.beta

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise, the root of its mean variance."""
        return float(np.sqrt(np.exp(self.cells.log_weights) @ (1.0 / self.cells.beta)))

    def predict(self, rows: npt.ArrayLike) -> Prediction:
        """Predictive distributions at inputs (N, D)."""
        X = as_matrix(rows, "X")
        means, variances, inside = (np.empty((len(self.cells.lam), len(X))) for _ in range(3))
        for k, (design, posterior) in enumerate(zip(self.designs, self.posteriors, strict=True)):
            mine = np.flatnonzero(self.cells.design == k)
            columns = design.columns(X)
            there, spectrum = posterior.coordinates(columns), posterior.spectrum
            lam, back = np.unique(self.cells.lam[mine], return_inverse=True)
            means[mine] = (_bias(spectrum) + there.means(spectrum, lam))[back]
            variance = there.variances(spectrum, lam) + design.missing_variance(columns, lam)
            inside[mine] = variance[back] / self.cells.beta[mine, None]
            variances[mine] = inside[mine] + 1.0 / self.cells.beta[mine, None]
        weights = np.broadcast_to(self.cells.log_weights[:, None], means.shape)
        return Prediction(means, variances, weights, inside)

    def leave_one_out(self, some: IntArray | None = None) -> LeaveOneOut:
        """Each row, or some by number, predicted from all others; places have the weights without the row."""
        rows = slice(None) if some is None else some
        (X, t), of_rows = given_arrays(self), self.posterior.spectrum.row_weights
        X, t, of_rows = X[rows], t[rows], None if of_rows is None else of_rows.part(rows)
        errors, variances = (np.empty((len(self.cells.lam), len(t))) for _ in range(2))
        for k, (design, posterior) in enumerate(zip(self.designs, self.posteriors, strict=True)):
            mine, spectrum = np.flatnonzero(self.cells.design == k), posterior.spectrum
            lam, back = np.unique(self.cells.lam[mine], return_inverse=True)
            if spectrum.U is not None:
                complement, residuals = spectrum.leverage_complement(lam)[:, rows], spectrum.residuals(lam)[:, rows]
            else:
                there = posterior.coordinates(design.columns(X))
                root = 1.0 if of_rows is None else of_rows.root
                complement = 1.0 - root**2 * there.variances(spectrum, lam)
                residuals = root * (t - _bias(spectrum) - there.means(spectrum, lam))
            complement = np.maximum(complement, np.finfo(float).tiny)
            with np.errstate(over="ignore"):  # of rows that nothing but themselves determines
                errors[mine] = (residuals / complement)[back]
                variances[mine] = 1.0 / (complement[back] * self.cells.beta[mine, None])
        if of_rows is not None:
            errors, variances = of_single_rows(errors, variances, 1.0 / self.cells.beta[:, None], of_rows)
        logs = log_normal(errors, variances)
        without = self.cells.log_weights[:, None] - logs
        densities = -logsumexp(without, axis=0)
        if not np.isfinite(densities).all():  # one row alone: nothing predicts it
            unknown = np.full(len(t), np.inf)
            return LeaveOneOut(errors[0], unknown, densities, Prediction.normal(np.zeros(len(t)), unknown))
        weights = without + densities
        shares = np.exp(weights)
        mean = (shares * errors).sum(axis=0)
        variance = (shares * (variances + (errors - mean) ** 2)).sum(axis=0)
        whole = Prediction(t - errors, variances, weights)
        return LeaveOneOut(mean, variance, densities, whole)


def _bias(spectrum: Spectrum) -> float:
    """Weight of the bias where the columns are zero, 0 without one."""
    return float(spectrum.flat_offset[-1]) if spectrum.centred and spectrum.flat_offset is not None else 0.0


def noise_precisions(n_free: float, quad: FloatArray) -> FloatArray:
    """Quantiles of the noise precision at equal steps of probability, (places, quantiles): fewer with more rows."""
    count = 5 if n_free < 50 else 3 if n_free < 500 else 1
    levels = (np.arange(count) + 0.5) / count
    return np.asarray(2.0 * gammaincinv(0.5 * n_free, levels) / quad[:, None])


def joined(fits: Sequence[IntegratedFit], weights: FloatArray, main: int | None = None) -> IntegratedFit:
    """One mixture of several fits to the same rows; what a single fit has is that of `main`, None: of the heaviest."""
    heaviest = fits[int(np.argmax(weights)) if main is None else main]
    starts = np.cumsum([0, *(len(fit.designs) for fit in fits)])
    cells = Cells(
        np.concatenate([fit.cells.design + start for fit, start in zip(fits, starts[:-1], strict=True)]),
        np.concatenate([fit.cells.lam for fit in fits]),
        np.concatenate([fit.cells.beta for fit in fits]),
        np.concatenate([fit.cells.log_weights + np.log(w) for fit, w in zip(fits, weights, strict=True)]),
    )
    notes = tuple(dict.fromkeys(note for fit in fits for note in fit.notes))
    return replace(
        heaviest,
        designs=tuple(design for fit in fits for design in fit.designs),
        posteriors=tuple(posterior for fit in fits for posterior in fit.posteriors),
        cells=cells,
        notes=notes,
        status=worst(notes),
        history=tuple({**step, "part": k} for k, fit in enumerate(fits) for step in fit.history),
        seconds=float(sum(fit.seconds for fit in fits)),
    )
