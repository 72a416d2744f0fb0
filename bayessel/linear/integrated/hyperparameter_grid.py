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

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.linalg as sl
from scipy.spatial.distance import cdist

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights, mean, rows_of_the_fit
from bayessel.basis import Dictionary, RBFDictionary
from bayessel.basis.bound_dictionary import mean_squares
from bayessel.linear.integrated.tridiagonal import Tridiagonal
from bayessel.linear.spectrum import Spectrum

#: kinds that are covariances: their functions get weights whose sum varies alike everywhere
COVARIANCES = ("gaussian", "inverse_multiquadric", "cauchy")
#: directions of the radial functions with less than this part of the largest variance are left to the missing variance
NEGLIGIBLE = 1e-9
#: a covariance of the rows whose mean variance is less, with 1 at each place, does not vary but for rounding
FLAT = 1e-14
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
    dictionary : Dictionary
        Radial functions, then the inputs where there is a trend; or columns that are given. No bias.
    whitening : (M, k) array
        Makes columns with independent weights of the radial functions.
    precisions : (k + D,) array
        Prior precisions of the weights where the whole function has variance one.
    radial_variance : float
        Prior variance of the radial part at any place, in the same units; 0 where far from the centres nothing is.
    width, share : float
        r in units of the inputs' spread (nan of a linear model), and the trend's share of the variance.
    log_prior : float
        Log of the probability of this share and of the density over log r.
    missing_level : float
        Mean over the rows of the fit of the prior variance that the functions around the centres do not hold, which
        the noise level found at these rows has inside.
    """

    dictionary: Dictionary
    whitening: FloatArray
    precisions: FloatArray
    radial_variance: float
    width: float
    share: float
    log_prior: float
    missing_level: float = 0.0

    def columns(self, X: FloatArray) -> FloatArray:
        """The design at inputs (N, D), without the bias."""
        made = self.dictionary.columns(X)
        m = len(self.whitening)
        return np.hstack([made[:, :m] @ self.whitening, made[:, m:]])

    def missing_variance(self, columns: FloatArray, lam: FloatArray) -> FloatArray:
        """Variance that neither the functions around the centres nor the noise level hold, in units of the noise's.

        The noise level found at the rows has inside what the functions left there. A missing level above it is more
        than the prior's part can have been, so that this part counts for less, (ridges, N).
        """
        beyond = np.maximum(self.not_held(columns) - self.missing_level, 0.0)
        return np.asarray(beyond / np.maximum(lam, self.missing_level)[:, None])

    def not_held(self, columns: FloatArray) -> FloatArray:
        """Prior variance at each row that the functions around the centres do not hold, (N,)."""
        k = self.whitening.shape[1]
        if not self.radial_variance or not k:
            return np.zeros(len(columns))
        held = (columns[:, :k] ** 2).sum(axis=1) / self.precisions[0]
        return np.asarray(np.maximum(self.radial_variance - held, 0.0))

    def weights(self, coef: FloatArray) -> FloatArray:
        """Weights of the dictionary's columns from those of the whitened ones."""
        k = self.whitening.shape[1]
        return np.concatenate([self.whitening @ coef[:k], coef[k:]])

    def spectrum(
        self, X: FloatArray, t: FloatArray, centre: bool, rows: bool, weights: RowWeights | None = None
    ) -> Spectrum:
        """Factorisation at which a ridge of 1/ρ is the prior with signal-to-noise ratio ρ.

        Without `rows` it is made of products of the columns, whose rounding is far below the least ridge of the grid.
        """
        return Spectrum.weighed(
            self.columns(X), t, self.precisions, centre=centre, rows=rows, weights=weights, products=not rows
        )


@dataclass(frozen=True, eq=False)
class HyperparameterGrid:
    """Where the designs of a data set are looked for.

    Attributes
    ----------
    X, t : (N, D), (N,) arrays
        Inputs of the rows, and their targets.
    centers : (M, D) array
        Centres of the radial functions; `X` itself where they are at the rows.
    kind : str
        Kind of the radial functions.
    spread : (D,) array
        Spread of each input: a width r means r·spread.
    centre : bool
        Whether a bias takes the means off.
    row_weights : RowWeights or None
        Counts and noise levels of the rows, where they differ.
    """

    X: FloatArray
    t: FloatArray
    centers: FloatArray
    kind: str
    spread: FloatArray
    centre: bool
    row_weights: RowWeights | None = None
    _whitened: dict[float, FloatArray] = field(default_factory=dict, repr=False)
    _products: dict[float, tuple[FloatArray, FloatArray | None, float]] = field(default_factory=dict, repr=False)

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
        radial = share < 1.0
        dictionary = self._dictionary(width if radial else typical, trend=share > 0.0)
        m = len(self.centers)
        whitening = self._whitening(width) if radial else np.zeros((m, 0))
        made = dictionary.columns(self.X)
        columns = np.hstack([made[:, :m] @ whitening, made[:, m:]])
        sizes = self._sizes(columns)
        k = whitening.shape[1]
        precisions, everywhere = np.full(len(sizes), np.inf), 0.0
        if sizes[:k].any():
            precisions[:k] = sizes[:k].sum() / (1.0 - share)
            everywhere = 1.0 / precisions[0] if self.kind in COVARIANCES else 0.0
        if sizes[k:].any():
            precisions[k:] = (sizes[k:] / self.spread**2).sum() / share * self.spread**2
        if not np.isfinite(precisions).any():
            return None
        log_prior = self.log_prior(width, share, typical)
        found = WhitenedDictionary(
            dictionary, whitening, precisions, everywhere, width if radial else np.nan, share, log_prior
        )
        return replace(found, missing_level=float(mean(found.not_held(columns), self.row_weights)))

    def log_prior(self, width: float, share: float, typical: float) -> float:
        """Log of the probability of a share and of the density of a place over log r, which the linear model lacks."""
        if share == 1.0:
            return -float(np.log(len(SHARES)))
        away = np.log(width / typical) / WIDTH_SPREAD
        return float(-0.5 * (away**2 + np.log(2.0 * np.pi)) - np.log(WIDTH_SPREAD) - np.log(len(SHARES)))

    def nothing(self) -> WhitenedDictionary:
        """The design of which every column has an infinite precision: the bias alone."""
        D = self.X.shape[1]
        dictionary = RBFDictionary(self.centers, self.spread, kind=self.kind, bias=False, linear=True)
        none = np.zeros((len(self.centers), 0))
        return WhitenedDictionary(dictionary, none, np.full(D, np.inf), 0.0, np.nan, 1.0, 0.0)

    def tridiagonal(self, width: float, share: float) -> Tridiagonal | None:
        """What the evidence of a place needs, without its factorisation; None where its columns do not vary.

        Of :math:`G=(1-q)K/v_K+qZZ^T/v_Z`, the covariances of the radial part and of the trend at the rows, each divided
        by its mean variance, or of the columns whose products these are, where there are fewer of them.
        """
        D, total = self.X.shape[1], float(self._target @ self._target)
        n, size = len(self.X), self._size_of_slopes
        of_trend = share / size if share > 0.0 and size > 0.0 else 0.0
        if share == 1.0:
            if not of_trend:
                return None
            root = np.sqrt(of_trend) * self._slopes
            along = root.T @ self._target
            return (
                Tridiagonal.of(root @ root.T, self._target) if D >= n else Tridiagonal.of(root.T @ root, along, total)
            )
        products, along_columns, size = self._radial_products(width)
        of_radial = (1.0 - share) / size if size > FLAT else 0.0
        if not of_trend + of_radial:
            return None
        if along_columns is None:
            matrix = of_radial * products
            if of_trend:
                matrix += of_trend * (self._slopes @ self._slopes.T)
            return Tridiagonal.of(matrix, self._target)
        root = np.sqrt(np.repeat([of_radial, of_trend], [len(products) - D, D]))
        return Tridiagonal.of(root[:, None] * products * root, root * along_columns, total)

    @cached_property
    def _target(self) -> FloatArray:
        """Target, about its mean where there is a bias."""
        return self._without_bias(self.t)

    @cached_property
    def _slopes(self) -> FloatArray:
        """Inputs in units of their spread, about their means where there is a bias; zero where they do not vary."""
        Z = self.X / self.spread
        return np.where(self._sizes(Z) > 0.0, self._without_bias(Z), 0.0)

    @cached_property
    def _size_of_slopes(self) -> float:
        """Their mean square over the rows, all together."""
        if self.row_weights is None:
            return float((self._slopes**2).sum()) / len(self.X)
        return float(self._sizes(self.X / self.spread).sum())

    def _without_bias(self, rows: FloatArray) -> FloatArray:
        """Rows (N,) or (N, k), multiplied where they have weights, without what a bias explains of them."""
        return rows_of_the_fit(rows, self.centre, self.row_weights)

    def _radial_products(self, width: float) -> tuple[FloatArray, FloatArray | None, float]:
        """Products of the rows of the radial part (N, N), or of its columns and the slopes, and theirs with the target.

        Then the mean variance over the rows.

        Centres at the rows need no columns: their whitened products are the functions themselves.
        """
        if width not in self._products:
            own = self.centers is self.X and self.kind in COVARIANCES
            columns = self._dictionary(width).columns(self.X) if own else self._columns(width)
            size = self._mean_variance(columns, own)
            columns = self._without_bias(columns)
            if own:
                self._products[width] = self._without_bias(columns.T), None, size
            elif columns.shape[1] + self.X.shape[1] >= len(self.X):
                self._products[width] = columns @ columns.T, None, size
            else:
                both = np.hstack([columns, self._slopes])
                self._products[width] = both.T @ both, both.T @ self._target, size
        return self._products[width]

    def _mean_variance(self, columns: FloatArray, own: bool) -> float:
        """Mean over the rows of the variance that columns give them, or that they are the covariances of."""
        if not own:
            rest = columns - mean(columns, self.row_weights) if self.centre else columns
            return float(mean((rest**2).sum(axis=1), self.row_weights))
        size = float(mean(np.diagonal(columns), self.row_weights))
        return size - float(mean(mean(columns, self.row_weights), self.row_weights)) if self.centre else size

    def _dictionary(self, width: float, trend: bool = False) -> RBFDictionary:
        return RBFDictionary(self.centers, width * self.spread, kind=self.kind, bias=False, linear=trend)

    def _columns(self, width: float) -> FloatArray:
        """Whitened radial columns at the rows."""
        return np.asarray(self._dictionary(width).columns(self.X) @ self._whitening(width))

    def _whitening(self, width: float) -> FloatArray:
        """A root of the inverse of the functions at their own centres; of a kind that is no covariance the identity."""
        if width not in self._whitened:
            m = len(self.centers)
            whitening = np.eye(m)
            if self.centers is self.X and self.row_weights is not None:  # a row that counts twice is two centres
                whitening = np.diag(np.sqrt(self.row_weights.count))
            if self.kind in COVARIANCES:
                values, vectors = sl.eigh(self._dictionary(width).columns(self.centers), check_finite=False)
                kept = values > NEGLIGIBLE * values[-1]
                whitening = np.asarray(vectors[:, kept] * values[kept] ** -0.5)
            self._whitened[width] = whitening
        return self._whitened[width]

    def _sizes(self, columns: FloatArray) -> FloatArray:
        """Mean square of each column over the rows, after a bias has taken its mean; zero where that is rounding."""
        return mean_squares(columns, self.centre, self.row_weights)
