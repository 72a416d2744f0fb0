r"""What the methods differ in: the gain of a candidate, the penalty, and the sums the criteria are made of.

* 'ols', orthogonal least squares: :math:`(t^T\tilde f)^2/\tilde f^T\tilde f` (Orr 1996, equation 7.4).
* 'rfs', regularised forward selection: with :math:`P = (I + HH^T/\lambda)^{-1}` the fall of the squared error,
  :math:`\frac{2\,t^TP^2f\;t^TPf}{\lambda+f^TPf} - \frac{(t^TPf)^2f^TP^2f}{(\lambda+f^TPf)^2}` (7.6), or of the cost,
  :math:`\frac{(t^TPf)^2}{\lambda+f^TPf}` (7.7). With :math:`R = U s V^T` and :math:`g = \lambda/(s^2+\lambda)`,
  :math:`f^TP^kf = |\tilde f|^2 + \sum g_i^k(u_i^Tb)^2`: sums of positive terms.
* 'rols', regularised orthogonal least squares: the penalty is on the orthogonalised weights,
  :math:`\lambda w^TU^TUw`, so that everything stays diagonal:
  :math:`\frac{(2\lambda+\tilde f^T\tilde f)(t^T\tilde f)^2}{(\lambda+\tilde f^T\tilde f)^2}` (7.9) or
  :math:`\frac{(t^T\tilde f)^2}{\lambda+\tilde f^T\tilde f}` (7.10).
"""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel._row_weights import deviation
from bayessel.criteria import CRITERIA
from bayessel.linear.columns.growing_model import GrowingModel
from bayessel.linear.ridge import reestimate_lambda, search_range
from bayessel.linear.ridge_criteria import curve
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.thin_svd import thin_svd

#: the penalty starts at this share of a typical squared length of a column
START = 0.01
#: distance on the log axis of the penalties that are tried: a criterion is made of steps about 2 wide
APART = 0.5
#: share by which the criterion must be lower at another penalty than near the present one to go there
CLEARLY = 0.25


class LeastSquaresSteps:
    """Least squares without a penalty."""

    def __init__(self, growth: GrowingModel) -> None:
        self.growth = growth
        self.lam = 0.0
        self._spectrum: Spectrum | None = None

    def gains(self) -> FloatArray:
        """Fall of the squared error by each candidate."""
        g = self.growth
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(g.d**2 / g.c)

    def settle(self) -> None:
        """Bring what follows from the chosen columns up to date."""
        self._spectrum = None

    @property
    def spectrum(self) -> Spectrum:
        """Singular values of the chosen columns and the target in their coordinates."""
        if self._spectrum is None:
            g = self.growth
            self._U, s, Vt = thin_svd(g.body)
            self._spectrum = self._of(s, self._U.T @ g.coordinates, Vt)
        return self._spectrum

    def _of(self, s: FloatArray, z: FloatArray, Vt: FloatArray) -> Spectrum:
        g, weights = self.growth, self.growth.row_weights
        spread2 = None  # what the density of the bias is measured by, where it is not the squared length of the target
        if weights is not None and g.n_flat:
            spread2 = deviation(g.t / weights.root, weights) ** 2 * float(weights.root @ weights.root)
        return Spectrum(
            n_rows=g.n_train,
            n_columns=g.n_columns,
            s=s,
            z=z,
            rss=g.rss,
            tss=g.tss,
            Vt=Vt,
            t_scale=float(np.abs(g.t).max()),
            n_flat=g.n_flat,
            centred=bool(g.n_flat),
            flat_offset=np.zeros(g.n_flat),  # of what is left of the target, which has no mean
            flat_slope=np.zeros((g.n_flat, g.n_columns)),
            row_weights=weights,
            spread2=spread2,
        )

    def shrinkage(self) -> FloatArray:
        """How much of each orthogonal coordinate of the target the fit keeps: of Q^T t itself, (k,)."""
        return self.growth.coordinates

    def sums(self) -> tuple[float, float]:
        """t^T P^2 t and tr P."""
        g = self.growth
        return g.rss, g.n_counted - g.size

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """P t and the diagonal of P."""
        g = self.growth
        return g.residual, g.slack

    def held_errors(self) -> FloatArray:
        """Errors on the rows that are not fitted."""
        g = self.growth
        return g.held_errors(np.concatenate([g.basis.coordinates[: g.n_flat], self.shrinkage()]))


class PenalisedSteps(LeastSquaresSteps):
    """One penalty for all weights, re-estimated by one step of its formula after each addition."""

    def __init__(self, growth: GrowingModel, gain: str, lam: float | None, reestimate: str | None) -> None:
        super().__init__(growth)
        self.gain, self.reestimate = gain, reestimate
        if lam is None:
            squares = (growth.c * growth.lengths**2)[growth.alive]  # without their means where there is a bias
            lam = START * float(np.median(squares)) if len(squares) else 1.0
        self.lam = lam
        with np.errstate(divide="ignore"):
            self.relative = growth.lengths**-2.0  # unit columns see the penalty lambda / length^2

    def settle(self) -> None:
        """Factor the chosen columns; re-estimate the penalty.

        One step of the re-estimation formula, from the present penalty or, where that is clearly better, from the best
        of many: a first function that explains nothing sends the penalty to infinity, and the formula alone would not
        come back. To go to the best in any case would be worse: the criterion has minima at small penalties by chance.
        """
        self._spectrum = None
        if self.reestimate is None or not self.growth.n_columns:
            return
        spectrum = self.spectrum
        lo, hi = search_range(spectrum)
        tried = np.append(np.clip(self.lam, np.exp(lo), np.exp(hi)), np.exp(np.arange(lo, hi, APART)))
        values = curve(spectrum, self.reestimate, tried)
        values[1:][spectrum.trace_p(tried[1:]) < CRITERIA[self.reestimate].noise_share * spectrum.n_counted] = np.inf
        best = int(np.argmin(values))
        start = float(tried[best if values[best] < (1.0 - CLEARLY) * values[0] else 0])
        new, *_ = reestimate_lambda(spectrum, criterion=self.reestimate, start=start, max_steps=1)
        self.lam = float(np.exp(np.clip(np.log(max(new, 1e-300)), lo, hi)))

    def _gain(self, along: FloatArray, again: FloatArray, length: FloatArray, short: FloatArray) -> FloatArray:
        """From t'Pf, t'P^2 f, lambda + f'Pf and f'P^2 f."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.gain == "cost":
                return np.asarray(along**2 / length)
            step = along / length
            return np.asarray(2.0 * again * step - step**2 * short)

    def sums(self) -> tuple[float, float]:
        """t^T P^2 t and tr P."""
        g, spectrum = self.growth, self.spectrum
        if not g.n_columns:
            return g.rss, g.n_counted - g.size
        return float(spectrum.sum_squares(self.lam)), float(spectrum.trace_p(self.lam))


class RidgeSteps(PenalisedSteps):
    """Regularised forward selection: the penalty of ridge regression, on the weights themselves."""

    def gains(self) -> FloatArray:
        """Fall of the squared error, or of the cost, by each candidate."""
        g = self.growth
        penalty = self.lam * self.relative
        if not g.n_columns:
            return self._gain(g.d, g.d, penalty + g.c, g.c)
        spectrum = self.spectrum
        W = self._U.T @ g.basis.products[g.n_flat :]
        share = spectrum._g(self.lam)
        rest = share * spectrum.z
        along, again = g.d + rest @ W, g.d + (share * rest) @ W
        np.square(W, out=W)
        return self._gain(along, again, penalty + g.c + share @ W, g.c + share**2 @ W)

    def shrinkage(self) -> FloatArray:
        """Q^T of the fit."""
        spectrum = self.spectrum
        return np.asarray(self._U @ ((1.0 - spectrum._g(self.lam)) * spectrum.z))

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """P t and the diagonal of P."""
        g = self.growth
        if not g.n_columns:
            return super().left_out()
        share = self.spectrum._g(self.lam)
        V = self._U.T @ g.rows
        return g.residual + (share * self.spectrum.z) @ V, g.slack + share @ V**2


class OrthogonalRidgeSteps(PenalisedSteps):
    """Regularised orthogonal least squares: the penalty on the weights of the orthogonalised columns."""

    def gains(self) -> FloatArray:
        """Fall of the squared error, or of the modified cost, by each candidate."""
        g = self.growth
        return self._gain(g.d, g.d, self.lam * self.relative + g.c, g.c)

    @property
    def spectrum(self) -> Spectrum:
        """The orthogonalised columns are their own singular vectors."""
        if self._spectrum is None:
            s = np.abs(np.diag(self.growth.body))
            self._order = np.argsort(-s, kind="stable")
            self._spectrum = self._of(s[self._order], self.growth.coordinates[self._order], np.eye(len(s))[self._order])
        return self._spectrum

    def _shares(self) -> FloatArray:
        s2 = np.diag(self.growth.body) ** 2
        return np.asarray(self.lam / (s2 + self.lam))

    def shrinkage(self) -> FloatArray:
        """Q^T of the fit."""
        return np.asarray((1.0 - self._shares()) * self.growth.coordinates)

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """P t and the diagonal of P."""
        g = self.growth
        share = self._shares()
        return g.residual + (share * g.coordinates) @ g.rows, g.slack + share @ g.rows**2
