"""Forward selection of basis functions with scikit-learn's face."""

from __future__ import annotations

from typing import Any, override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights, given
from bayessel._types import ForwardGain, ForwardMethod, Missing, ModeInference, RadialKind, Seed
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.criteria.error_estimates import BIC, FPE, GCV, UEV
from bayessel.criteria.evidence import EVIDENCE
from bayessel.criteria.leave_one_out import LOO
from bayessel.estimators._selecting_regressor import SelectingRegressor
from bayessel.linear import forward_select

_LABELS = {
    GCV.name: "GCV (squared error)",
    LOO.name: "leave-one-out squared error",
    FPE.name: "FPE (squared error)",
    UEV.name: "UEV (squared error)",
    BIC.name: "BIC (squared error)",
    EVIDENCE.name: "log evidence",
    "cv": "cross-validated squared error",
}


class ForwardSelectionRegressor(SelectingRegressor):
    r"""A few radial functions, chosen one by one: each time the one that lowers the squared error most.

    Orthogonal least squares and its regularised forms (Chen, Cowan and Grant 1991; Orr 1996, section 7). The weights
    are those of least squares ('ols') or of ridge regression ('rfs', 'rols'); `log_evidence_` and `noise_std_` are what
    the evidence says of the chosen functions. Plain 'ols' looks at the noise only through `stop`: prefer 'rfs', or
    `BasisSearchRegressor`.

    Parameters
    ----------
    width : None, float, (D,) array or 'abf'
        r of exp(-d^2/r^2). None takes one width in units of each input's robust spread, or those of 'abf', whichever
        predicts rows held out of refitted folds best. 'abf' takes the widths, one per input, that a model of all
        functions prefers (of at most 500 rows).
    centers : None or (M, D) array
        Centres of the functions on offer; None puts one at each training input (where the
        width is left to the estimator, at 400 of more rows).
    kind : str
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias : bool
        Include a bias, never penalised.
    method : str
        'ols', 'rfs', 'rols' or 'backward'; see `bayessel.linear.forward_select`.
    stop : str or None
        'gcv', 'loo', 'fpe', 'uev', 'bic', 'evidence' or 'cv'; None takes `max_size` functions.
    gain : str
        'error' or 'cost': what 'rfs' and 'rols' look for.
    max_size : int, optional
        Largest number of functions.
    folds, random_state
        Of cross-validation.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).
    dictionary : None or object
        Columns of your own instead of radial functions: a dictionary of `bayessel.basis` or any object with its
        methods; width, centers and kind are then left alone, and `bias` decides about the bias. By default the columns
        are divided by their standard deviations (``dictionary_.scale``, to which ``coef_`` belongs), and all of them,
        with signal to noise and noise integrated out, are the reference of the fit.

    Attributes
    ----------
    width_ : float or (D,) array
        Width in use, in the units of X; one per input where it was found.
    found_width_ : FoundWidth or None
        With None: the widths compared, and the nats per held-out row that the fit is worth over a constant.
    log_evidence_, model_evidence_ : float
        Of the chosen functions with one weight precision, in nats and in the units of y: both precisions at their best,
        or integrated out.
    basis_, coef_, n_basis_
        Columns of ``dictionary_`` in use (the bias is its last), their weights, their number. By default the weights
        are those that come closest to the model of all functions; the engine's own are ``fit_.inner.coef``.
    alpha_, beta_, noise_std_, gamma_
        Precisions of the evidence, standard deviation of the noise in predictions, well-determined parameters (the bias
        counted).
    path_ : dict
        Size -> the model of that size: ``.value`` of the criterion and ``.basis`` in the order of selection.
    status_ : Status
        How the fit ended, with advice.
    history_ : list of dict
        One record per size with every criterion.
    fit_ : ForwardFit
        Everything the engine returned; `fit_.U` and `fit_.orthogonal_coef` among it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(80, 1))
    >>> y = np.sinc(X[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = ForwardSelectionRegressor(width=1.5, stop="bic").fit(X, y)
    >>> model.n_basis_ < 12, bool(0.05 < model.noise_std_ < 0.15)
    (True, True)
    """

    def __init__(
        self,
        width: ArrayLike | None = None,
        centers: ArrayLike | None = None,
        kind: RadialKind = "gaussian",
        bias: bool = True,
        method: ForwardMethod = "ols",
        stop: str | None = GCV.name,
        gain: ForwardGain = "error",
        max_size: int | None = None,
        folds: int = 5,
        random_state: Seed = 0,
        inference: ModeInference = "auto",
        missing: Missing = "error",
        dictionary: DictionaryLike | None = None,
    ) -> None:
        self.width = width
        self.centers = centers
        self.kind = kind
        self.bias = bias
        self.method = method
        self.stop = stop
        self.gain = gain
        self.max_size = max_size
        self.folds = folds
        self.random_state = random_state
        self.inference = inference
        self.missing = missing
        self.dictionary = dictionary

    @override
    def _select(self, design: Any, y: FloatArray, weights: RowWeights | None = None) -> Any:
        whole = isinstance(self.folds, int | np.integer) and not isinstance(self.folds, bool)
        folds = min(self.folds, len(y)) if whole and len(y) > 1 else self.folds
        return forward_select(
            design,
            y,
            self.method,
            self.stop if len(y) > 1 or self.stop != "cv" else GCV.name,
            centre=bool(self.bias),
            gain=self.gain,
            max_size=self.max_size,
            folds=folds,
            random_state=self.random_state,
            **given(weights),
        )

    @property
    @override
    def _weighs(self) -> bool:
        return bool(self.method != "backward")

    @override
    def _path_label(self) -> str:
        return _LABELS[self.stop] if self.stop is not None else "squared error of the training rows"

    @override
    def _path_values(self) -> dict[int, float]:
        if self.stop is not None:
            return super()._path_values()
        return {entry["size"]: entry["error"] for entry in self.history_}
