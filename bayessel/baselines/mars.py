"""Multivariate adaptive regression splines, alone and bagged, with scikit-learn's face."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from bayessel._check import FloatArray, as_count, as_flag, as_generator, one_of
from bayessel._numerics import few_threads
from bayessel._types import Seed
from bayessel.baselines.engines.bagged import fit_bagged
from bayessel.baselines.engines.hinges import written
from bayessel.baselines.engines.mars import MARSFit, default_functions, fit_mars
from bayessel.estimators import normal_predictions
from bayessel.estimators.base import Versioned, new_rows, validated_regression
from bayessel.estimators.normal_predictions import MeanAndStd, predicts_mean_and_std
from bayessel.work.jobs import check_jobs
from bayessel.work.progress import progress_of

#: what the corners of the splines may be
PIECES = ("linear", "cubic")


def _options(estimator: Any) -> dict[str, Any]:
    """Arguments of `fit_mars` from the parameters of an estimator, looked at."""
    most, penalty = estimator.max_functions, estimator.penalty
    if penalty is not None and (
        isinstance(penalty, bool | np.bool_) or not isinstance(penalty, int | float | np.number)
    ):
        raise TypeError(f"penalty must be a number of at least 0, or None, got {penalty!r}")
    if penalty is not None and not (0.0 <= penalty < math.inf):
        raise ValueError(f"penalty must be at least 0 and finite, got {penalty!r}")
    return {
        "max_functions": None if most is None else as_count(most, "max_functions"),
        "max_degree": as_count(estimator.max_degree, "max_degree"),
        "penalty": None if penalty is None else float(penalty),
        "min_span": None if estimator.min_span is None else as_count(estimator.min_span, "min_span"),
        "end": None if estimator.end_span is None else as_count(estimator.end_span, "end_span", minimum=0),
        "pieces": one_of(estimator.pieces, "pieces", PIECES),
    }


def _operations(estimator: Any, X: FloatArray) -> float:
    """About how many operations one fit takes: every row, input and parent times columns, over all steps."""
    N, D = X.shape
    most = min(estimator.max_functions or default_functions(D), N)
    return float(N) * D * most**3 * (1.0 if estimator.max_degree > 1 else 3.0 / most)


def _relevance(fit: MARSFit, X: FloatArray) -> FloatArray:
    """Standard deviation (D,) over rows of all that depends on each input."""
    parts = fit.design(X)[:, 1:] * fit.coef[1:]
    uses = np.array([[any(h.variable == v for h in f) for f in fit.functions] for v in range(X.shape[1])], dtype=float)
    return np.asarray((parts @ uses.T).std(axis=0)) if fit.functions else np.zeros(X.shape[1])


class MARSRegressor(RegressorMixin, Versioned):
    r"""Multivariate adaptive regression splines (Friedman 1991).

    A sum of products of hinges :math:`(x - t)_+`, :math:`(t - x)_+`. Pairs of them join one after the other, each the
    pair, multiplied with a function already there, that lowers the residual sum of squares most out of all inputs and
    knots; then functions leave one by one, and the size with the least generalised cross-validation (GCV) stays. It
    picks inputs and reads easily. Distrust its error bars, which take the functions as known, and extrapolation;
    predictions have a large variance on small sets, which `BaggedMARSRegressor` lowers.

    Parameters
    ----------
    max_functions : int, optional
        Most functions of the first pass, the constant not counted; by default twice the inputs, 20 to 200.
    max_degree : int
        Most inputs in one product; 1 is an additive model.
    penalty : float, optional
        What a knot costs, in parameters; by default 3, or 2 for an additive model.
    min_span, end_span : int, optional
        Rows from one possible knot to the next, and before the first one; by default Friedman's eqs. (43) and (45).
    pieces : str
        'linear', or 'cubic': corners rounded off after pruning, so that slopes are continuous.
    progressbar : bool
        Show progress where fitting takes more than some seconds.

    Attributes
    ----------
    functions_ : list of str
        The functions in use, readable; the constant is not among them. Knots of rounded corners are where these were.
    coef_ : (M + 1,) array
        Their weights for inputs in units of their ranges, the constant's first.
    n_basis_ : int
        Functions in use, the constant included.
    gcv_ : float
        Generalised cross-validation score of the functions in use with linear pieces, in squared units of y.
    effective_ : float
        Effective number of parameters that it charges.
    noise_std_ : float
        Residual standard deviation with N - `effective_` degrees of freedom.
    relevance_ : (D,) array
        Standard deviation over the training rows of all that depends on each input, in units of y; 0: not in use.
    history_, path_ : list
        Steps of the first pass; (functions, residual sum of squares, GCV) of the second.
    status_ : Status
        INTERRUPTED: the functions that had joined until then were pruned.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 3))
    >>> y = np.abs(X[:, 0] - 0.4) + 0.05 * rng.normal(size=200)
    >>> model = MARSRegressor().fit(X, y)
    >>> model.functions_
    ['max(0, x0 - 0.3...)', 'max(0, 0.3... - x0)']
    """

    def __init__(
        self,
        max_functions: int | None = None,
        max_degree: int = 1,
        penalty: float | None = None,
        min_span: int | None = None,
        end_span: int | None = None,
        pieces: str = "linear",
        progressbar: bool = True,
    ) -> None:
        self.max_functions = max_functions
        self.max_degree = max_degree
        self.penalty = penalty
        self.min_span = min_span
        self.end_span = end_span
        self.pieces = pieces
        self.progressbar = progressbar

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and a target (N,)."""
        options, wanted = _options(self), as_flag(self.progressbar, "progressbar")
        X, y = validated_regression(self, X, y, reset=True)
        most = min(options["max_functions"] or default_functions(X.shape[1]), len(X) - 1)
        with progress_of(wanted, most, _operations(self, X), "adding functions") as step, few_threads(X.size):
            self._fit = fit_mars(X, y, step=step, **options)
        fit = self._fit
        names = list(self.input_encoding_.names or [f"x{i}" for i in range(X.shape[1])])
        self.functions_ = [written(function, fit.low, fit.scale, names) for function in fit.functions]
        self.coef_ = fit.coef
        self.n_basis_ = len(fit.coef)
        self.gcv_ = fit.gcv
        self.effective_ = fit.effective
        self.noise_std_ = math.sqrt(fit.noise_variance)
        self.relevance_ = _relevance(fit, X)
        self.history_, self.path_ = fit.history, fit.path
        self.status_ = fit.status
        self._warn()
        return self

    log_predictive_density = normal_predictions.log_predictive_density

    @predicts_mean_and_std
    def predict(self, X: ArrayLike, return_std: bool = False) -> MeanAndStd:
        """Mean at new inputs; with `return_std` also the standard deviation of a new y, functions taken as known."""
        as_flag(return_std, "return_std")
        rows = new_rows(self, X)
        mean = self._fit.predict(rows)
        return (mean, np.sqrt(self._fit.variance(rows))) if return_std else mean


class BaggedMARSRegressor(RegressorMixin, Versioned):
    """The mean of splines fitted to bootstrap samples: ``mars3.6-bag-1`` of Rasmussen (1996, section 3.5).

    The settings are the thesis': 50 samples of the size of the training set, at most 15 functions, products of up to 8
    inputs. Distrust it on large sets of little noise, where more functions say more than many fits.

    Parameters
    ----------
    n_estimators : int
        Bootstrap samples.
    max_functions, max_degree, penalty, min_span, end_span, pieces, progressbar
        As in `MARSRegressor`.
    random_state : int, Generator or None
        Of the samples.
    n_jobs : int, optional
        Processes: None takes more than one where the work is long, -1 every core. The numbers are the same.

    Attributes
    ----------
    members_ : list of MARSFit
        One fit per sample.
    out_of_bag_ : (N,) array
        Prediction of each training row by the members that did not see it; NaN where all did.
    oob_score_ : float
        Their coefficient of determination.
    noise_std_ : float
        From the errors out of the bag, the variance of members taken off (at most nine tenths of them).
    relevance_ : (D,) array
        Mean of the members' relevances.
    status_ : Status
        INTERRUPTED: the members made until then predict.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 3))
    >>> y = 3 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=100)
    >>> model = BaggedMARSRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> bool(model.oob_score_ > 0.9)
    True
    """

    def __init__(
        self,
        n_estimators: int = 50,
        max_functions: int | None = 15,
        max_degree: int = 8,
        penalty: float | None = None,
        min_span: int | None = None,
        end_span: int | None = None,
        pieces: str = "linear",
        random_state: Seed = None,
        progressbar: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.n_jobs = n_jobs
        self.n_estimators = n_estimators
        self.max_functions = max_functions
        self.max_degree = max_degree
        self.penalty = penalty
        self.min_span = min_span
        self.end_span = end_span
        self.pieces = pieces
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and a target (N,)."""
        options, wanted = _options(self), as_flag(self.progressbar, "progressbar")
        bags, rng = as_count(self.n_estimators, "n_estimators"), as_generator(self.random_state)
        jobs = check_jobs(self.n_jobs)
        X, y = validated_regression(self, X, y, reset=True)
        with progress_of(wanted, bags, bags * _operations(self, X), "bagging") as step, few_threads(X.size):
            self._fit = fit_bagged(X, y, rng, n_bags=bags, n_jobs=jobs, step=step, **options)
        self.members_ = self._fit.members
        self.out_of_bag_ = self._fit.out_of_bag
        seen = np.isfinite(self.out_of_bag_)
        total = float(np.sum((y[seen] - y[seen].mean()) ** 2)) if seen.any() else 0.0
        left = float(np.sum((y - self.out_of_bag_)[seen] ** 2))
        self.oob_score_ = 1.0 - left / total if total > 0.0 else math.nan
        self.noise_std_ = math.sqrt(self._fit.noise_variance)
        self.relevance_ = np.mean([_relevance(member, X) for member in self.members_], axis=0)
        self.status_ = self._fit.status
        self._warn()
        return self

    log_predictive_density = normal_predictions.log_predictive_density

    @predicts_mean_and_std
    def predict(self, X: ArrayLike, return_std: bool = False) -> MeanAndStd:
        """Mean of the members at new inputs; with `return_std` also the standard deviation of a new y.

        Its square is the noise, from errors out of the bag, plus the variance of the members there.
        """
        as_flag(return_std, "return_std")
        rows = new_rows(self, X)
        mean, variance = self._fit.moments(rows)
        return (mean, np.sqrt(variance)) if return_std else mean
