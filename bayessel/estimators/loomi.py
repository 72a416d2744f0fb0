"""The classifier chosen by leave-one-out mutual information with scikit-learn's face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, as_count, one_of
from bayessel._fingerprint import fingerprint
from bayessel._types import Missing, RadialKind
from bayessel.basis import LazyDesign
from bayessel.estimators._radial_dictionary import centres_of, set_dictionary
from bayessel.estimators.base import Versioned, new_rows, validated_classification
from bayessel.estimators.found_width import robust_spread
from bayessel.estimators.weighted_rows import without_weights
from bayessel.fit import Status, worst
from bayessel.linear.loomi import fit_loomi
from bayessel.linear.loomi.result import LOOMIFit
from bayessel.work.interrupts import InterruptGuard

if TYPE_CHECKING:
    import pymc as pm
    from matplotlib.axes import Axes

#: widths that 'auto' compares
N_WIDTHS = 20
#: standard errors by which a width's leave-one-out squared error may exceed the smallest
WITHIN = 0.1

#: an output below this part of the sum of the weights counts as 0: no function in use reaches that far
REACH = 1e-14
#: digits of the probability of one class against the rest
DIGITS = 6


class LOOMIClassifier(ClassifierMixin, Versioned):
    r"""Sparse classifier on radial functions, chosen by leave-one-out mutual information (Hong et al. 2014).

    Functions join one by one, each the one after which the labels that rows get from the model fitted without them say
    most about the true labels, in bits; every one has its own penalty, fitted by its evidence; the selection ends when
    those bits no longer rise. Models are very small (a handful of functions on noisy data) and cost little. Distrust it
    where J, a step function of counts, has few rows to count: other `patience`, another order of the rows or another
    width may end at another model about as good.

    Parameters
    ----------
    width : None, float, (D,) array or 'auto'
        r of exp(-d^2/r^2). None is 'auto' on inputs in units of their robust spreads; 'auto' compares 20 widths between
        the distances of neighbours and four times the diameter of the data: of those whose leave-one-out squared error
        is within a tenth of a standard error of the smallest, the one of the largest mutual information is used.
        (Mutual information alone prefers narrow functions, by which labels are counted right one at a time: on diabetes
        data a test error of 25.8 % instead of 23.8.)
    patience : int
        Stages without a rise of the mutual information after which the selection ends. 1 gives the smallest models,
        the paper's, but now and then ends before the boundary is found; 3 costs two or three functions more.
    min_size, max_size : int
        Least and largest number of functions. Intricate boundaries between classes that hardly overlap need a least one
        (the paper's: 40 for banana, 50 for waveform, 100 for thyroid).
    centers : None or (M, D) array
        Centres of the functions; None puts one at each training row.
    kind : str
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias : bool
        Offer a constant as one more function. The paper does not.
    class_weight : None, 'balanced' or dict
        Weights of the classes in the squared error, in the mutual information and in the probabilities.
    ties : str
        Among functions that give the same bits: 'first', the one of the first row, as in the paper; 'loo-mse', that of
        the smallest leave-one-out squared error, whatever the order of the rows.
    missing : {"error", "indicator"}
        Missing values of X are refused, or filled and marked, see `RVMRegressor`.

    Attributes
    ----------
    classes_ : array
        Labels, sorted. With more than two, one model parts each from the rest.
    width_, dictionary_
        Width in use, functions on offer.
    basis_, n_basis_ : columns of ``dictionary_`` in use by any model (ascending), and their number.
    coef_ : array, a weight for each of these columns; with several classes (n_classes, n_basis)
        Weights; the output is ``dictionary_.design(X)[:, basis_] @ coef_``.
    mutual_information_, loo_error_ : float
        Bits between labels and leave-one-out labels (two classes; with more the sum of the models'), share of wrong
        leave-one-out labels. Both were used to choose the model and are optimistic.
    calibration_ : list of ClassProbability
        From outputs and functions to probabilities, one for two classes, else one per class.
    fits_ : list of LOOMIFit
        What the engine returned, one for two classes, else one per class.
    width_path_ : list of dict
        With None or 'auto': width (with None in units of the spread), mutual_information, loo_mse, n_basis of every
        width compared.
    status_, history_, fingerprint_, version_
        How the fit ended, with advice; the stages (of the first model); names of data and version.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "in", "out")
    >>> model = LOOMIClassifier(width=1.5).fit(X, y)
    >>> bool(model.n_basis_ < 15), model.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    (True, ['in', 'out'])
    >>> model.predict_proba([[0.0, 0.0]]).round(1).tolist()
    [[1.0, 0.0]]
    """

    def __init__(
        self,
        width: ArrayLike | None = None,
        patience: int = 1,
        min_size: int = 1,
        max_size: int | None = None,
        centers: ArrayLike | None = None,
        kind: RadialKind = "gaussian",
        bias: bool = False,
        class_weight: str | Mapping[int, float] | Mapping[str, float] | None = None,
        ties: str = "first",
        missing: Missing = "error",
    ) -> None:
        self.width = width
        self.patience = patience
        self.min_size = min_size
        self.max_size = max_size
        self.centers = centers
        self.kind = kind
        self.bias = bias
        self.class_weight = class_weight
        self.ties = ties
        self.missing = missing

    # ---- fitting

    @without_weights
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and labels (N,) of any sort."""
        X, self.classes_, codes = validated_classification(self, X, y)
        as_count(self.patience, "patience")
        as_count(self.min_size, "min_size")
        centers, weights = centres_of(self, X, stored=True), self._weights(codes)
        targets = [
            np.where(codes == k, 1.0, -1.0) for k in ([1] if len(self.classes_) == 2 else range(len(self.classes_)))
        ]
        self.width_path_: list[dict[str, Any]] = []
        if self.width is None or isinstance(self.width, str):
            spread = None
            if self.width is None:
                spread = robust_spread(X)
            else:
                one_of(self.width, "width", ("auto",))
            fits, notes = self._choose_width(X, centers, targets, weights, spread)
        else:
            set_dictionary(self, self.width, centers)
            fits, notes = self._fit_all(X, targets, weights), ()
        self._store(X, codes, fits, notes)
        self._warn()
        return self

    def _weights(self, codes: npt.NDArray[np.intp]) -> FloatArray | None:
        if self.class_weight is None:
            return None
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        return np.asarray(by_class[codes], dtype=np.float64)

    def _fit_all(self, X: FloatArray, targets: list[FloatArray], weights: FloatArray | None) -> list[LOOMIFit]:
        design = LazyDesign(self.dictionary_, X)
        return [
            fit_loomi(
                design,
                target,
                patience=self.patience,
                min_size=self.min_size,
                max_size=self.max_size,
                weights=weights,
                ties=self.ties,
            )
            for target in targets
        ]

    def _choose_width(
        self,
        X: FloatArray,
        centers: FloatArray,
        targets: list[FloatArray],
        weights: FloatArray | None,
        spread: FloatArray | None,
    ) -> tuple[list[LOOMIFit], tuple[Status, ...]]:
        """Fit at every width of a grid, in units of `spread`; keep the best and set the dictionary to it.

        Ctrl-C ends the grid.
        """
        found: list[tuple[float, list[LOOMIFit], FloatArray, float]] = []
        trouble: ValueError
        with InterruptGuard(lambda: found) as guard:
            for width in width_grid(X if spread is None else X / spread):
                set_dictionary(self, float(width) if spread is None else width * spread, centers)
                try:
                    fits = self._fit_all(X, targets, weights)
                except ValueError as error:  # centres from outside may all be out of reach of narrow functions
                    trouble = error
                    continue
                squares = np.mean([fit.weights * (fit.target - fit.loo_output) ** 2 for fit in fits], axis=0)
                bits = sum(fit.mutual_information for fit in fits)
                found.append((float(width), fits, squares, bits))
                self.width_path_.append(
                    {
                        "width": float(width),
                        "mutual_information": bits,
                        "loo_mse": float(squares.mean()),
                        "n_basis": max(fit.n_basis for fit in fits),
                    }
                )
                if any(Status.INTERRUPTED in fit.notes for fit in fits):
                    raise KeyboardInterrupt
        if not found:
            raise trouble
        best = min((squares for _, _, squares, _ in found), key=np.mean)
        limit = best.mean() + WITHIN * best.std() / np.sqrt(len(best))
        width, fits, _, _ = max((one for one in found if one[2].mean() <= limit), key=lambda one: one[3])
        set_dictionary(self, width if spread is None else width * spread, centers)
        return fits, (Status.INTERRUPTED,) if guard.interrupted else ()

    def _store(
        self, X: FloatArray, codes: npt.NDArray[np.intp], fits: list[LOOMIFit], notes: tuple[Status, ...]
    ) -> None:
        self.fits_ = fits
        self.basis_ = np.unique(np.concatenate([fit.basis for fit in fits]))
        self.n_basis_ = len(self.basis_)
        coef = np.zeros((len(fits), self.n_basis_))
        for row, fit in zip(coef, fits, strict=True):
            row[np.searchsorted(self.basis_, fit.basis)] = fit.coef
        self.coef_ = coef[0] if len(fits) == 1 else coef
        self.calibration_ = [fit.calibration for fit in fits]
        self.mutual_information_ = float(sum(fit.mutual_information for fit in fits))
        if len(fits) == 1:
            self.loo_error_ = fits[0].loo_error
        else:
            left_out = _rounded(np.column_stack([one.loo_probability for one in self.calibration_]))
            wrong = left_out.argmax(axis=1) != codes
            self.loo_error_ = float(np.average(wrong, weights=fits[0].weights))
        self.status_ = worst([*(fit.status for fit in fits), *notes])
        self.history_ = [dict(entry) for entry in fits[0].history]
        self.n_rows_ = len(X)
        self.fingerprint_ = fingerprint(X, codes)
        self._inputs, self._codes = X, codes

    # ---- predicting

    def _functions(self, X: ArrayLike) -> FloatArray:
        """Functions in use at rows from outside."""
        return self._functions_at(new_rows(self, X))

    def _functions_at(self, X: FloatArray) -> FloatArray:
        return np.asarray(LazyDesign(self.dictionary_, X).columns(self.basis_))

    def _outputs(self, functions: FloatArray) -> FloatArray:
        outputs = functions @ self.coef_.T
        # what is left of functions that do not reach a row is no reason for a label
        return np.where(abs(outputs) > REACH * abs(self.coef_).sum(axis=-1), outputs, 0.0)

    def _probabilities(self, functions: FloatArray) -> FloatArray:
        """One column per class, rows adding up to 1."""
        if len(self.fits_) == 1:
            p = self._of_model(0, functions)
            return np.column_stack([1.0 - p, p])
        p = self._against_rest(functions)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _of_model(self, k: int, functions: FloatArray, log_odds: bool = False) -> FloatArray:
        """Probability of the label 1 of model k, or its log odds."""
        used = np.searchsorted(self.basis_, self.fits_[k].basis)
        outputs = self._outputs(functions)
        calibration = self.calibration_[k]
        way = calibration.log_odds if log_odds else calibration.probability
        return way(outputs if outputs.ndim == 1 else outputs[:, k], functions[:, used])

    def _against_rest(self, functions: FloatArray) -> FloatArray:
        """Probability of each class against all others."""
        return _rounded(np.column_stack([self._of_model(k, functions) for k in range(len(self.fits_))]))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Log odds of the second class (N,), 0 where the output is 0; of each class against the rest (N, K)."""
        functions = self._functions(X)
        if len(self.fits_) == 1:
            return self._of_model(0, functions, log_odds=True)
        p = self._against_rest(functions)
        return np.asarray(np.log(p) - np.log1p(-p))

    def predict(self, X: ArrayLike) -> npt.NDArray[np.generic]:
        """Labels; where no function in use reaches, an output of 0, the first class or the likeliest of many."""
        functions = self._functions(X)
        if len(self.fits_) == 1:
            codes = (self._outputs(functions) > 0.0).astype(int)
        else:
            codes = self._probabilities(functions).argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities (N, K); the largest is that of the label predicted.

        The mean of two ways, `bayessel.linear.class_probability`. With `class_weight` they are those of a population
        in which the classes have these weights.
        """
        return self._probabilities(self._functions(X))

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), 1e-300)))

    # ---- showing and handing over

    def plot_boundary(self, ax: Axes | None = None, *, probability: bool = True, resolution: int = 200) -> Axes:
        """Draw the boundary between the classes, the training rows and the centres in use; two inputs only.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        probability : bool
            Shade by the probability (two classes) of the second class.
        resolution : int
            Points of the picture along each axis.

        Returns
        -------
        matplotlib Axes
        """
        check_is_fitted(self)
        as_count(resolution, "resolution", 2)
        if self._inputs.shape[1] != 2:
            raise ValueError(f"plot_boundary draws two inputs, and this model has {self._inputs.shape[1]}")
        from bayessel.pages.figures import axes_for

        ax = axes_for(ax, 5.5, 4.6)
        X = self._inputs
        low, high = X.min(axis=0), X.max(axis=0)
        margin = 0.06 * np.where(high > low, high - low, 1.0)
        axes = [np.linspace(a - m, b + m, resolution) for a, b, m in zip(low, high, margin, strict=True)]
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        functions = self._functions_at(grid)
        if len(self.classes_) == 2:
            outputs = self._outputs(functions).reshape(resolution, resolution)
            if probability:
                p = self._of_model(0, functions).reshape(resolution, resolution)
                shade = ax.contourf(*axes, p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.35)
                ax.figure.colorbar(shade, ax=ax, label=f"probability of {self.classes_[1]}")
            ax.contour(*axes, outputs, levels=[0.0], colors="black", linewidths=1.6)
        else:
            winner = self._probabilities(functions).argmax(axis=1).reshape(resolution, resolution)
            for k in range(len(self.classes_)):
                ax.contour(*axes, (winner == k).astype(float), levels=[0.5], colors="black", linewidths=1.2)
        colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999"]
        for k, label in enumerate(self.classes_):
            rows = self._codes == k
            ax.plot(*X[rows].T, "o*s^vDP"[k % 7], ms=3.5, mew=0, color=colours[k % 7], label=str(label), zorder=2)
        kernels = self.basis_[self.basis_ < len(self.dictionary_.centers)]
        centres = self.dictionary_.centers[kernels]
        ax.plot(*centres.T, "o", ms=10, mfc="none", mec="black", mew=1.4, label="centres in use", zorder=3)
        across, up = self.input_encoding_.names or ("x[0]", "x[1]")
        ax.set(title=f"{self.n_basis_} functions, leave-one-out error {100 * self.loo_error_:.1f} %")
        ax.set(xlabel=across, ylabel=up)
        ax.legend(fontsize=8, framealpha=0.7)
        return ax

    def to_pymc(self, **priors: Any) -> pm.Model:
        """Declare the logistic model on the functions in use as a `pymc.Model`; two classes only.

        `priors` go to `bayessel.models.generalised`.
        """
        from bayessel.models import generalised

        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise ValueError(f"to_pymc declares a model of two classes, and there are {len(self.classes_)}")
        names = self.dictionary_.names
        design = LazyDesign(self.dictionary_, self._inputs).columns(self.basis_)
        return generalised(design, self._codes, names=[names[i] for i in self.basis_], **priors)


def _rounded(p: FloatArray) -> FloatArray:
    """A little from 0 and 1; equal to some digits is equal."""
    return np.clip(p.round(DIGITS), 10.0**-DIGITS, 1.0 - 10.0**-DIGITS)


def width_grid(X: FloatArray) -> FloatArray:
    """Widths from half the typical distance of neighbours to four times the diameter of the data, log-spaced."""
    rows = X if len(X) <= 1000 else X[:: -(-len(X) // 1000)]
    positive = (distances := pdist(rows))[distances > 0.0]
    if not positive.size:
        return np.ones(1)  # all rows are equal: no width is better than another
    low, high = 0.5 * float(np.quantile(positive, 0.05)), 4.0 * float(positive.max())
    return np.geomspace(low, high, N_WIDTHS)
