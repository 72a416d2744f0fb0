r"""The grid that hyperparameters are integrated on: widths, the trend's share of the function, signal to noise.

A function is a sum of radial functions and of a linear trend, with weights that are normal beforehand,

.. math:: f(x) = b + \sum_j w_j \phi_j(x) + \sum_d v_d x_d/s_d,

of variance :math:`\sigma^2\rho` in the mean over the rows; the w_j have the covariance :math:`K^{-1}`, K the functions
at their own centres, so that the radial part varies alike everywhere (a Gaussian process seen through its centres); the
trend has a share q of it. The prior over the grid is normal in :math:`\log r` around the typical distance of two rows
(in units of each input's spread s), normal in :math:`\log\rho`, and gives the shares equal weight. The noise level
:math:`\sigma` has the flat prior of a scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.linalg as sl
from scipy.spatial.distance import cdist

from bayessel._check import FloatArray
from bayessel.basis import RBFDictionary
from bayessel.linear.spectrum import Spectrum

#: kinds that are covariances: their functions get weights whose sum varies alike everywhere
COVARIANCES = ("gaussian", "inverse_multiquadric", "cauchy")
#: directions of the radial functions with less than this part of the largest variance are left to the missing variance
NEGLIGIBLE = 1e-9
#: share of the variance that the trend has; 1 is a linear model
SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)
#: the same, and the widths, where only comparing matters
FEW_SHARES, FEW_WIDTHS = (0.0, 0.4, 1.0), 5
#: widths of the first grid, from the distance of nearest neighbours to a multiple of a typical one
N_WIDTHS = 8
WIDEST = 6.0
#: nearest neighbours closer than this part of a typical distance are taken for copies
NARROWEST = 0.02
#: standard deviation of log r beforehand: a factor of e either way
WIDTH_SPREAD = 1.0
#: log of the signal-to-noise ratio of variances beforehand: mean and standard deviation
SIGNAL, SIGNAL_SPREAD = float(np.log(5.0)), 2.5
#: its grid: variances of the function from 1/1000 to 10⁸ times the noise's
SIGNALS = np.arange(np.log(1e-3), np.log(1e8), 0.3)


@dataclass(frozen=True, eq=False)
class WhitenedDictionary:
    """Columns of one place of the grid whose weights are independent beforehand.

    Attributes
    ----------
    dictionary : RBFDictionary
        Radial functions, then the inputs where there is a trend; no bias.
    whitening : (M, k) array
        Makes columns with independent weights of the radial functions.
    precisions : (k + D,) array
        Prior precisions of the weights where the whole function has variance one.
    radial_variance : float
        Prior variance of the radial part at any place, in the same units; 0 where far from the centres nothing is.
    width, share : float
        r in units of the inputs' spread (nan of a linear model), and the trend's share of the variance.
    log_prior : float
        Log density of this place over log r.
    """

    dictionary: RBFDictionary
    whitening: FloatArray
    precisions: FloatArray
    radial_variance: float
    width: float
    share: float
    log_prior: float

    def columns(self, X: FloatArray) -> FloatArray:
        """The design at inputs (N, D), without the bias."""
        made = self.dictionary.columns(X)
        m = len(self.whitening)
        return np.hstack([made[:, :m] @ self.whitening, made[:, m:]])

    def missing_variance(self, columns: FloatArray) -> FloatArray:
        """Prior variance at each row of `columns` that the functions around the centres do not hold, (N,)."""
        k = self.whitening.shape[1]
        if not self.radial_variance or not k:
            return np.zeros(len(columns))
        held = (columns[:, :k] ** 2).sum(axis=1) / self.precisions[0]
        return np.asarray(np.maximum(self.radial_variance - held, 0.0))

    def weights(self, coef: FloatArray) -> FloatArray:
        """Weights of the dictionary's columns from those of the whitened ones."""
        k = self.whitening.shape[1]
        return np.concatenate([self.whitening @ coef[:k], coef[k:]])

    def spectrum(self, X: FloatArray, t: FloatArray, centre: bool, rows: bool) -> Spectrum:
        """Factorisation at which a ridge of 1/ρ is the prior with signal-to-noise ratio ρ."""
        return Spectrum.weighed(self.columns(X), t, self.precisions, centre=centre, rows=rows)


@dataclass(frozen=True, eq=False)
class HyperparameterGrid:
    """Where the designs of a data set are looked for.

    Attributes
    ----------
    X : (N, D) array
        Inputs of the rows.
    centers : (M, D) array
        Centres of the radial functions.
    kind : str
        Kind of the radial functions.
    spread : (D,) array
        Spread of each input: a width r means r·spread.
    centre : bool
        Whether a bias takes the means off.
    """

    X: FloatArray
    centers: FloatArray
    kind: str
    spread: FloatArray
    centre: bool
    _made: dict[float, tuple[FloatArray, FloatArray]] = field(default_factory=dict, repr=False)

    def typical(self) -> tuple[float, float]:
        """Distances of nearest neighbours and of two rows, medians, in units of the spread."""
        Z = np.unique(self.X / self.spread, axis=0)
        if len(Z) < 2:
            return 1.0, 1.0
        distances = cdist(Z, Z)
        typical = float(np.median(distances[np.triu_indices(len(Z), 1)]))
        np.fill_diagonal(distances, np.inf)
        return max(float(np.median(distances.min(axis=1))), NARROWEST * typical), typical

    def widths(self, count: int) -> FloatArray:
        """The first grid of widths."""
        nearest, typical = self.typical()
        return np.geomspace(nearest, WIDEST * typical, count)

    def place(self, width: float, share: float, typical: float) -> WhitenedDictionary | None:
        """The design of a width and a share of the trend; None where its columns do not vary."""
        radial, trend = share < 1.0, share > 0.0
        r = (width if radial else typical) * self.spread
        dictionary = RBFDictionary(self.centers, r, kind=self.kind, bias=False, linear=trend)
        m = len(self.centers)
        whitening, columns = (
            self._radial(width, dictionary) if radial else (np.zeros((m, 0)), np.zeros((len(self.X), 0)))
        )
        sizes = self._sizes(np.hstack([columns, self.X]) if trend else columns)
        k = whitening.shape[1]
        precisions, everywhere = np.full(len(sizes), np.inf), 0.0
        if sizes[:k].any():
            precisions[:k] = sizes[:k].sum() / (1.0 - share)
            everywhere = 1.0 / precisions[0] if self.kind in COVARIANCES else 0.0
        if sizes[k:].any():
            precisions[k:] = (sizes[k:] / self.spread**2).sum() / share * self.spread**2
        if not np.isfinite(precisions).any():
            return None
        away = np.log(width / typical) / WIDTH_SPREAD
        log_prior = -0.5 * (away**2 + np.log(2.0 * np.pi)) - np.log(WIDTH_SPREAD) if radial else 0.0
        return WhitenedDictionary(
            dictionary, whitening, precisions, everywhere, width if radial else np.nan, share, float(log_prior)
        )

    def nothing(self) -> WhitenedDictionary:
        """The design of which every column has an infinite precision: the bias alone."""
        D = self.X.shape[1]
        dictionary = RBFDictionary(self.centers, self.spread, kind=self.kind, bias=False, linear=True)
        none = np.zeros((len(self.centers), 0))
        return WhitenedDictionary(dictionary, none, np.full(D, np.inf), 0.0, np.nan, 1.0, 0.0)

    def _radial(self, width: float, dictionary: RBFDictionary) -> tuple[FloatArray, FloatArray]:
        """The whitening of a width, and its columns at the rows; computed once for all shares.

        The whitening is a root of the inverse of the functions at their own centres; of a kind that is no covariance it
        is the identity.
        """
        if width not in self._made:
            m = len(self.centers)
            whitening = np.eye(m)
            if self.kind in COVARIANCES:
                values, vectors = sl.eigh(dictionary.columns(self.centers)[:, :m], check_finite=False)
                kept = values > NEGLIGIBLE * values[-1]
                whitening = np.asarray(vectors[:, kept] * values[kept] ** -0.5)
            self._made[width] = whitening, dictionary.columns(self.X)[:, :m] @ whitening
        return self._made[width]

    def _sizes(self, columns: FloatArray) -> FloatArray:
        """Mean square of each column over the rows, after a bias has taken its mean; zero where that is rounding."""
        whole = (columns**2).mean(axis=0)
        if not self.centre:
            return np.asarray(whole)
        rest = columns.var(axis=0)
        return np.where(rest > (16.0 * np.finfo(float).eps) ** 2 * whole, rest, 0.0)
