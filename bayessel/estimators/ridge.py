"""Ridge regression on radial functions with scikit-learn's face."""

from __future__ import annotations

from typing import Any, Literal, override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, one_of
from bayessel._row_weights import given
from bayessel._types import Missing, RadialKind
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.criteria.error_estimates import GCV
from bayessel.criteria.leave_one_out import LOO
from bayessel.criteria.registry import OF_RIDGE
from bayessel.estimators._changing_rows import TrainingRows
from bayessel.estimators._radial_dictionary import find_widths
from bayessel.estimators._rbf_regressor import RBFRegressor
from bayessel.estimators._sparse_attributes import SLOPE_SPREADS, mixtures, referenced
from bayessel.linear import RidgeFit, Spectrum, fit_ridge

INFERENCES = ("auto", "plug-in")


class RidgeRBFRegressor(RBFRegressor):
    r"""Ridge regression on radial functions; the penalty chosen by a criterion, one for all or one per function.

    Local penalties prune: a function whose best penalty is infinite leaves the model (Orr 1996). Distrust them on small
    noisy samples: GCV is then minimised over as many parameters as there are rows, and its minimum is optimistic.

    Parameters
    ----------
    width : None, float or (D,) array
        r of exp(-d^2/r^2). None leaves it to the estimator, see `inference`.
    centers : None or (M, D) array
        Centres of the functions; None puts one at each training input (where the
        width is left to the estimator, at 400 of more rows).
    kind : str
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias : bool
        Include an unpenalised bias.
    penalty : str
        'global' or 'local'.
    criterion : str
        'gcv', 'loo', 'uev', 'fpe' or 'bic'; 'local' needs 'gcv'.
    inference : str
        Where the width is left to the estimator and there is one target: 'auto' takes the widths of the model that
        integrates over them (`EvidenceRegressor`), has a linear trend beside the functions and the error bars of that
        model, which predicts itself where ridge regression says less than it; 'plug-in' finds one width in units of
        each input's robust spread, at which rows held out of refitted folds are predicted best, and is plain ridge
        regression otherwise.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).
    dictionary : None or object
        Columns of your own instead of radial functions: a dictionary of `bayessel.basis` or any object with its
        methods; width, centers and kind are then left alone, and `bias` decides about the bias. By default the columns
        are divided by their standard deviations (``dictionary_.scale``, to which ``coef_`` belongs), and all of them,
        with signal to noise and noise integrated out, are the reference of the fit.
        With 'plug-in' one penalty serves for all columns as they are.

    Attributes
    ----------
    lam_ : float or (M,) array
        The penalty (infinite for pruned functions).
    criteria_ : dict
        Every criterion at the fitted penalty (of the first output).
    log_evidence_ : float
        Log evidence of the equivalent Gaussian prior, precision ``alpha_ = lam_ * beta_``, in nats; NaN where a
        local penalty is zero, for then that prior is improper (status IMPROPER_PRIOR).
    width_, found_width_, alpha_, beta_, noise_std_, gamma_, basis_, coef_, n_basis_, status_, history_
        As in `EvidenceRegressor`; the noise level is the unbiased estimate S/(N - gamma), with 'auto' that of the model
        of all functions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(50, 1))
    >>> y = np.sin(12 * X[:, 0]) + 0.1 * rng.normal(size=50)
    >>> smooth = RidgeRBFRegressor(width=0.1).fit(X, y)
    >>> pruned = RidgeRBFRegressor(width=0.1, penalty="local").fit(X, y)
    >>> pruned.criteria_["gcv"] < smooth.criteria_["gcv"], pruned.n_basis_ < smooth.n_basis_
    (True, True)
    """

    def __init__(
        self,
        width: ArrayLike | None = None,
        centers: ArrayLike | None = None,
        kind: RadialKind = "gaussian",
        bias: bool = True,
        penalty: Literal["global", "local"] = "global",
        criterion: str = GCV.name,
        missing: Missing = "error",
        inference: Literal["auto", "plug-in"] = "auto",
        dictionary: DictionaryLike | None = None,
    ) -> None:
        self.width = width
        self.centers = centers
        self.kind = kind
        self.bias = bias
        self.penalty = penalty
        self.criterion = criterion
        self.missing = missing
        self.inference = inference
        self.dictionary = dictionary

    @override
    def _fit_data(self, X: FloatArray, y: FloatArray) -> None:
        one_of(self.penalty, "penalty", ("global", "local"))
        one_of(self.criterion, "criterion", OF_RIDGE)
        one_of(self.inference, "inference", INFERENCES)
        if self.width is None and self.inference == "auto":
            self._fit_referenced(X, y)
        else:
            super()._fit_data(X, y)

    def _fit_referenced(self, X: FloatArray, y: FloatArray) -> None:
        """Ridge regression beside the model that integrates the hyperparameters out."""

        def engine(design: Any) -> RidgeFit:
            self._fit_rows(X, y)
            found: RidgeFit = self._engine
            return found

        self._engine, self._rows = referenced(self, X, y, SLOPE_SPREADS, engine), TrainingRows(X, y)
        self.notes_, self.status_, self.noise_std_ = self._engine.notes, self._engine.status, self._engine.noise_std

    _mixtures = mixtures

    def _choose_width(self, X: FloatArray, y: FloatArray, centers: FloatArray) -> Any:
        if isinstance(self.width, str):
            raise TypeError(f"width must be None, a positive number or one per input, got {self.width!r}")
        if self.width is None:
            return find_widths(
                self,
                X,
                y,
                lambda Phi, t, w: fit_ridge(Phi, t, criterion=self.criterion, centre=bool(self.bias), **given(w)),
            )
        return self.width

    def _needs_rows(self) -> bool:
        return bool(self.criterion == LOO.name)

    def _fit_one(self, spectrum: Spectrum, design: FloatArray, t: FloatArray) -> RidgeFit:
        if self.penalty == "local":
            known = given(self._records.weights)
            return fit_ridge(design, t, criterion=self.criterion, penalty="local", centre=self.bias, **known)
        return fit_ridge(spectrum, criterion=self.criterion)

    def _show(self, fits: list[Any], many: bool) -> None:
        super()._show(fits, many)
        self.lam_ = np.array([f.lam for f in fits]) if many else fits[0].lam
        self.criteria_ = dict(fits[0].criteria)
