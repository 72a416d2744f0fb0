"""The relevance vector machine with scikit-learn's face."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from bayessel._check import FloatArray, as_positive, one_of
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights, given
from bayessel._types import Missing, ModeInference, RadialKind, SparseStart
from bayessel.basis import Dictionary, RBFDictionary, design_of, radial, scaled_distances
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.estimators import _description, normal_predictions
from bayessel.estimators._radial_dictionary import centres_of, find_widths, set_dictionary
from bayessel.estimators._sparse_attributes import (
    distributions,
    functions_in_use,
    mixtures,
    predicted,
    referenced,
    remember,
)
from bayessel.estimators.base import Versioned, new_rows, validated_regression
from bayessel.estimators.evidence import INFERENCES
from bayessel.estimators.found_width import FoundWidth
from bayessel.estimators.given_dictionary import bound_dictionary
from bayessel.estimators.listed_records import Records, records_of
from bayessel.estimators.normal_predictions import MeanAndStd, predicts_mean_and_std
from bayessel.estimators.referenced_fit import columns_in_use, engine_fit
from bayessel.estimators.several_targets import as_columns, fit_targets, outputs, refuse_several
from bayessel.estimators.weighted_rows import noise_ratio, refuse_weights, weighted_rows
from bayessel.fit import Status
from bayessel.linear import fit_evidence, fit_rvm
from bayessel.linear.healing import Healing, KernelFeatures
from bayessel.linear.rvm import RVMFit
from bayessel.linear.widths.rvm_width import STORED, fit_rvm_width
from bayessel.prediction import Prediction

if TYPE_CHECKING:
    import pymc as pm


AUGMENTS = ("function", "process")
PRECISIONS = ("var", "mean", "evidence")
#: most directions of the Gaussian process that join the model
PROCESS_RANK = 300


class RVMRegressor(RegressorMixin, Versioned):
    r"""Relevance vector machine: sparse Bayesian regression on radial functions.

    The model is :math:`t = \Phi w + \epsilon`, :math:`w_i \sim N(0, 1/\alpha_i)`, :math:`\epsilon \sim N(0, 1/\beta)`;
    the evidence chooses every :math:`\alpha_i` and :math:`\beta`, and most :math:`\alpha_i` become infinite, which
    removes their function. The bias is one of the functions. Distrust it where the noise varies with the input or has
    heavy tails; and far from the data, where the plain error bars shrink back to the noise: ask for ``augment=True``.

    Parameters
    ----------
    width : None, float, (D,) array, 'fit' or 'ard'
        r of exp(-d^2/r^2). None leaves it to the estimator, see `inference`. 'fit' chooses one width under the
        evidence, 'ard' one per input.
    centers : None or (M, D) array
        Centres of the functions; None puts one at each training input (where the
        width is left to the estimator, at 400 of more rows).
    kind : str
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias : bool
        Offer a constant as one more function.
    init : str
        Starts of the fit: 'auto' (several, the best evidence wins; 'quick' where a reference judges the fit, see
        `inference`), 'greedy', 'full', 'backward' or 'quick'.
    augment : bool or str
        Heal the predictive distribution away from the data. 'function' adds one function centred at the test input
        (Rasmussen and Quinonero-Candela 2005); 'process' adds a Gaussian process of the same kernel. True is
        'process', or 'function' for the multiquadric kind, which is no covariance. Among the data the error bars stay
        within 5 % of the plain ones on average where the width suits the data or is wide; narrow functions and single
        rows may differ by a fifth. `docs/healing.md` has the numbers.
    inference : str
        Where the width is left to the estimator: 'auto' takes the widths of the model that integrates over them
        (`EvidenceRegressor`), offers a linear trend beside the functions and has the error bars of that model, which
        predicts itself where the machine says less than it; its bias has a flat prior, a precision of 0 in `alpha_`.
        'type2' finds one width in units of each input's robust spread, at which all functions together predict rows
        held out best, and is otherwise the machine of the papers.
    dictionary : None or object
        Columns of your own instead of radial functions: a dictionary of `bayessel.basis` or any object with its
        methods; width, centers and kind are then left alone, and `bias` decides about the bias. By default the columns
        are divided by their standard deviations (``dictionary_.scale``, to which ``coef_`` belongs), and all of them,
        with signal to noise and noise integrated out, are the reference of the fit.
    augment_precision : None, float or str
        Prior precision of what is added: a number, 'evidence' (1 / the variance of the Gaussian process that explains
        the training data best, at least that of y without the noise), 'var' (1 / variance of y), 'mean' (1 / the mean
        of 1/alpha_i). None is 'evidence' for a process and 'var' for a function.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).

    Attributes
    ----------
    width_ : float or (D,) array
        Width in use, in the units of X; one per input where it was found.
    found_width_ : FoundWidth or None
        With None: the widths compared, and the nats per held-out row that the fit is worth over a constant.
    log_evidence_, model_evidence_ : float
        ``log p(y | alpha_, beta_)`` in nats and in the units of y; the same with the precisions integrated out.
    basis_, coef_, alpha_, n_basis_
        Columns of ``dictionary_`` in use (the bias is its last), their weights and precisions, their number. By default
        the weights are those that come closest to the model of all functions; the posterior means are
        ``fit_.inner.coef``.
    beta_, noise_std_, gamma_
        Noise precision of the functions in use, the standard deviation of the noise (by default that of the model of
        all functions), the number of well-determined parameters.
    status_ : Status
        How the fit ended, with advice.
    history_ : list of dict
        The steps of the winning start.
    fit_ : RVMFit
        Everything the engine returned; `fit_.leave_one_out()` and `fit_.covariance` among it.
    optima_ : tuple
        With 'fit' or 'ard': the widths that competed.
    outputs_ : tuple of RVMRegressor or None
        Of several targets the estimator of each; other attributes are then tuples, sums or arrays of theirs.
    fingerprint_, version_ : str
        Name of the training data; version of bayessel that fitted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(80, 1))
    >>> y = np.sinc(X[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = RVMRegressor(width=1.5).fit(X, y)
    >>> model.status_.name, model.n_basis_ < 12
    ('CONVERGED', True)
    >>> _, plain = model.predict([[8.0]], return_std=True)
    >>> _, healed = model.predict([[8.0]], return_std=True, augment=True)
    >>> bool(plain[0] < 1.5 * model.noise_std_), bool(healed[0] > 2 * plain[0])
    (True, True)
    """

    _several_outputs = True
    dictionary_: Dictionary
    width_: float | FloatArray | None
    fit_: Any
    _records: Records

    def __init__(
        self,
        width: ArrayLike | None = None,
        centers: ArrayLike | None = None,
        kind: RadialKind = "gaussian",
        bias: bool = True,
        init: SparseStart = "auto",
        augment: bool | str = False,
        augment_precision: float | str | None = None,
        inference: ModeInference = "auto",
        missing: Missing = "error",
        dictionary: DictionaryLike | None = None,
    ) -> None:
        self.width = width
        self.centers = centers
        self.kind = kind
        self.bias = bias
        self.init = init
        self.augment = augment
        self.augment_precision = augment_precision
        self.inference = inference
        self.missing = missing
        self.dictionary = dictionary

    # ---- fitting

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, noise_std: ArrayLike | None = None
    ) -> Self:
        """Fit to inputs (N, D) and a target (N,), or K targets (N, K), each with a machine of its own.

        Parameters
        ----------
        X, y
            Inputs and targets.
        sample_weight
            How often each row counts, (N,): 2 is a row that came twice, 0 one that did not come.
        noise_std
            Standard deviations of the noise of each row (N,), up to a common factor, which is found
            (`docs/weights.md`).
        """
        rows, (X, y) = X, validated_regression(self, X, y, reset=True)
        if y.ndim == 2:
            fit_targets(self, rows, X, y, sample_weight=sample_weight, noise_std=noise_std)
            return self
        X, y, self._row_weights = weighted_rows(X, y, sample_weight, noise_std)
        self._records, self.fingerprint_ = records_of(self, X, y), fingerprint(X, y)
        X, y, known = self._records.X, self._records.y, given(self._records.weights)
        centers = centres_of(self, X) if self.dictionary is None else X
        self._augment(self.augment)
        self._check_precision()
        self.optima_: tuple[Any, ...] = ()
        self._width_notes: tuple[Status, ...] = ()
        self.found_width_: FoundWidth | None = None
        one_of(self.inference, "inference", INFERENCES)
        if self.width is None and self.inference == "auto":
            # the last nats of the evidence change nothing that its reference would let stand
            init, bias = "quick" if self.init == "auto" else self.init, bool(self.bias)
            fit: Any = referenced(self, X, y, 0.0, lambda design: fit_rvm(design, y, init=init, centre=bias, **known))
        elif self.dictionary is not None:
            self.dictionary_, self.width_ = bound_dictionary(self, X), None
            fit = fit_rvm(self.dictionary_.design(X), y, init=self.init, **known)
        elif isinstance(self.width, str):
            one_of(self.width, "width", ("fit", "ard"))
            found = fit_rvm_width(
                X,
                y,
                centers=centers,
                kind=self.kind,
                bias=bool(self.bias),
                shared=self.width == "fit",
                init=self.init,
                **known,
            )
            self.optima_, self._width_notes = found.optima, found.notes
            fit = found.fit
            set_dictionary(self, float(found.widths[0]) if self.width == "fit" else found.widths, centers)
        else:
            chosen = self.width
            if chosen is None:
                chosen = find_widths(
                    self,
                    X,
                    y,
                    lambda Phi, t, w: fit_evidence(Phi, t, centre=bool(self.bias), **given(w)),
                    judge=self._fit_fold,
                )
            set_dictionary(self, chosen, centers)
            fit = fit_rvm(design_of(self.dictionary_, X, STORED), y, init=self.init, **known)
        remember(self, fit, X, y)
        kind = self._augment(self.augment)
        self._healing = None if kind is None else (kind, self._healed(kind))
        self._warn()
        return self

    def _fit_fold(self, Phi: FloatArray, t: FloatArray, weights: RowWeights | None) -> Any:
        """A fit to some of the rows, from one start."""
        offered = np.hstack([Phi, np.ones((len(Phi), 1))]) if self.bias else Phi
        init = "full" if self.init == "auto" else self.init
        return _WithConstant(fit_rvm(offered, t, init=init, **given(weights)), bool(self.bias))

    # ---- predicting

    @predicts_mean_and_std
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        augment: bool | str | None = None,
        noise_std: ArrayLike | None = None,
    ) -> MeanAndStd:
        """Mean at new inputs; with `return_std` also the standard deviation of a new observation there.

        `augment` overrides the estimator's own. What is added moves the mean too, towards the data it still agrees
        with. `noise_std` are noise levels of the new rows, in the units of those given to `fit`; without, they are
        those of a typical row, the geometric mean.
        """
        if (each := outputs(self)) is not None:
            return as_columns([one.predict(X, return_std, augment, noise_std) for one in each])
        X = new_rows(self, X)
        ratio = None if noise_std is None else noise_ratio(self, noise_std, len(X))
        kind = self._augment(self.augment if augment is None else augment)
        if kind is None:
            return predicted(self, X, return_std, ratio)
        ready = self._healing if self._healing is not None and self._healing[0] == kind else (kind, self._healed(kind))
        mean, variance = ready[1].predict(X, functions_in_use(self, X))
        noise = (1.0 if ratio is None else ratio**2) / self.beta_
        return (mean, np.sqrt(variance + noise)) if return_std else mean

    predictive = normal_predictions.predictive
    log_predictive_density = normal_predictions.log_predictive_density
    leave_one_out = _description.leave_one_out
    describe = _description.describe
    outputs_ = property(outputs)
    _distributions = distributions

    def _mixtures(self) -> Callable[[FloatArray], Prediction] | None:
        return mixtures(self) if self._augment(self.augment) is None else None

    def to_pymc(self, columns: str = "used", prior: str = "gamma", collapsed: bool = False) -> pm.Model:
        """Declare the model as a `pymc.Model` on the training rows, every precision with a hyperprior.

        Parameters
        ----------
        columns
            'used': the functions the fit kept; 'all': the whole dictionary.
        prior, collapsed
            As in `bayessel.models.rvm`.
        """
        from bayessel.models import rvm

        refuse_several(self, "to_pymc")
        refuse_weights(self, "to_pymc")
        one_of(columns, "columns", ("used", "all"))
        if columns == "used" and not self.n_basis_:
            raise ValueError("the fit kept no function; declare the whole dictionary with columns='all'")
        names, fit = self.dictionary_.names, engine_fit(self.fit_)
        if columns == "all":
            return rvm(self.dictionary_.design(self._inputs), fit.target, prior, collapsed, names=names)
        used = columns_in_use(self.basis_, self.dictionary_, self._inputs)
        return rvm(used, fit.target, prior, collapsed, names=[names[i] for i in self.basis_])

    # ---- healing

    def _augment(self, value: bool | str) -> str | None:
        """None, 'function' or 'process'."""
        if self.dictionary is not None and not (isinstance(value, bool | np.bool_) and not value):
            raise ValueError(f"augment={value!r} adds radial functions, and works with dictionary=None alone")
        if isinstance(value, bool | np.bool_):
            return None if not value else "function" if self.kind == "multiquadric" else "process"
        if not isinstance(value, str) or value not in AUGMENTS:
            raise ValueError(f"augment must be True, False, 'function' or 'process', got {value!r}")
        if value == "process" and self.kind == "multiquadric":
            raise ValueError("augment='process' needs a kernel that is a covariance, and the multiquadric is none")
        return value

    def _check_precision(self) -> None:
        value = self.augment_precision
        if isinstance(value, str):
            one_of(value, "augment_precision", PRECISIONS)
        elif value is not None:
            as_positive(value, "augment_precision")

    def _kernel(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Functions of the fitted width centred at the rows of B, at the rows of A."""
        d = self.dictionary_
        assert isinstance(d, RBFDictionary)
        return radial(d.kind, scaled_distances(A, B, d._r, d.centers.mean(axis=0)))

    def _healed(self, kind: str) -> Healing:
        refuse_weights(self, "augment")
        fit = engine_fit(self.fit_)
        X, t = self._inputs, fit.target
        features = KernelFeatures(self._kernel, X, PROCESS_RANK) if kind == "process" else None
        precision = self._precision_of(kind, features)
        bias = None
        if self.bias and self.dictionary_.n_columns - 1 not in fit.basis:
            # a constant that the sparse model could do without is uncertain all the same; one with a flat prior stays
            wanted = fit.posterior.spectrum.centred or (kind == "process" and np.isfinite(precision))
            variance = 1.0 / precision + float(t.mean()) ** 2
            bias = 1.0 / variance if wanted and variance > 0.0 else None
        return Healing(
            fit.design, t, fit.alpha, fit.beta, X, self._kernel, precision, features=features, bias_precision=bias
        )

    def _precision_of(self, kind: str, features: KernelFeatures | None) -> float:
        """Prior precision of what is added; infinity where the target shows nothing to be uncertain about."""
        t, value = engine_fit(self.fit_).target, self.augment_precision
        self._check_precision()
        if value is None:
            value = "evidence" if kind == "process" else "var"
        if not isinstance(value, str):
            return as_positive(value, "augment_precision")
        if value == "mean":
            assert isinstance(self.dictionary_, RBFDictionary)
            kernels = self.basis_ < len(self.dictionary_.centers)  # the bias has a scale of its own
            if kernels.any():
                return float(1.0 / np.mean(1.0 / self.alpha_[kernels]))
        if value == "evidence" and len(t) > 2 and self.status_ is not Status.CONSTANT_TARGET:
            if features is None:
                features = KernelFeatures(self._kernel, self._inputs, PROCESS_RANK)
            explained = 1.0 / float(fit_evidence(features.on_rows, t, centre=bool(self.bias)).alpha)
            # a stretch of a process varies less than the process: its own spread is a lower bound
            variance = max(explained, float(t.var()) - 1.0 / self.beta_)
        else:
            variance = float(t.var())
        return 1.0 / variance if variance > 0.0 else np.inf


class _WithConstant:
    """A sparse fit whose constant is a column of its design, asked at rows of the kernels alone."""

    def __init__(self, fit: RVMFit, bias: bool) -> None:
        self.fit, self.bias = fit, bias

    def predict(self, Phi: FloatArray) -> Prediction:
        """Distributions of new observations."""
        return self.fit.predict(np.hstack([Phi, np.ones((len(Phi), 1))]) if self.bias else Phi)
