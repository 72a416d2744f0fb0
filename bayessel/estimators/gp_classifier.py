"""Gaussian-process classification with scikit-learn's face."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, chosen_seed, one_of
from bayessel._fingerprint import fingerprint
from bayessel._numerics import few_threads
from bayessel._types import Missing, Seed
from bayessel.covariance import Covariance
from bayessel.estimators import _class_predictions, _description
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._latent_mixture import latent_mixture
from bayessel.estimators._process_estimator import ProcessEstimator
from bayessel.estimators._process_method import check_rows
from bayessel.estimators.base import validated_classification
from bayessel.estimators.standardise import Standardisation
from bayessel.estimators.weighted_rows import without_weights
from bayessel.fit import LeaveOneOut
from bayessel.prediction import ClassPrediction

#: rows worked on at a time
CHUNK = 4096
#: classes; more are most likely numbers taken for classes
MOST_CLASSES = 100


class GPClassifier(ClassifierMixin, ProcessEstimator):
    r"""Gaussian-process classification: a smooth function of the inputs that says how probable each class is.

    The latent function has the covariance :math:`C(x,x') = a_0 + a_1 x\cdot x' + v_0 \exp(-\frac12 \sum_i w_i
    (x_i-x_i')^2)`; of two classes the second has probability :math:`\Phi(f)`, of more each has a function and
    probabilities are their softmax, with one evidence for all. The posterior of the function is approximated by
    expectation propagation (two classes) or by Laplace's method. By default predictions are mixtures: over processes
    with a length per input and with one for all, a linear function, and the frequencies of the classes, weighed by what
    they predict of rows held out of folds fitted anew; and over states of the hyperparameters around the mode of each.
    Distrust it where a few labels are wrong far from where their class lies: one such row can bend the function.

    Parameters
    ----------
    inference : {"auto", "map"}
        The mixture, or the process with a length per input at the mode of its hyperparameters.
    covariance : bayessel.covariance.Covariance or None
        Of the latent function, without noise. None: the one above.
    likelihood : {"probit", "logit"}
        Of two classes: :math:`\Phi(f)` or :math:`1/(1+e^{-f})`.
    approximation : {"auto", "laplace", "ep"}
        "auto": expectation propagation for two classes of up to 1500 rows, else Laplace's method.
    random_state : int, Generator, RandomState or None
        Seed of starts and states. None: the same fit for the same rows.
    standardise : bool
        Give every real input median 0 and the mean absolute deviation 1 of its central two thirds inside, and those
        with two values 0 and 1.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).

    Attributes
    ----------
    classes_ : array
        Labels, sorted.
    fit_ : bayessel.fit.Fit
        The fit in units of the data; ``fit_.inner`` is the mixture, with its ``parts`` and ``weights``.
    log_evidence_ : float
        log p(y | mode) of the part of most weight, in nats.
    model_evidence_ : float
        With its hyperparameters integrated out by Laplace's method; computed when first asked for.
    kind_ : str
        What ``log_evidence_`` is: "type2-ep" or "type2-laplace".
    relevance_ : pandas.DataFrame or None
        Lengths of the inputs of that part, as of `GPRegressor`.
    width_ : (m,) array or None
        The same lengths as r of exp(-d²/r²).
    status_, notes_ : Status, tuple of Status
        How the fit ended, with advice, and all remarks.
    history_ : list of dict
        Evaluations of the searches.
    fingerprint_, target_fingerprint_, version_ : str
        Names of the training data and of its labels, counted from 0; version of bayessel that fitted.

    References
    ----------
    Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, ch. 3; Minka (2001), UAI 17.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "in", "out")
    >>> model = GPClassifier().fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    ['in', 'out']
    >>> bool(model.predict_proba([[0.0, 0.0]])[0, 0] > 0.9)
    True
    """

    classes_: npt.NDArray[Any]

    def __init__(
        self,
        inference: Literal["auto", "map"] = "auto",
        covariance: Covariance | None = None,
        likelihood: Literal["probit", "logit"] = "probit",
        approximation: Literal["auto", "laplace", "ep"] = "auto",
        random_state: Seed = None,
        standardise: bool = True,
        missing: Missing = "error",
    ) -> None:
        self.inference = inference
        self.covariance = covariance
        self.likelihood = likelihood
        self.approximation = approximation
        self.random_state = random_state
        self.standardise = standardise
        self.missing = missing

    @without_weights
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and labels (N,) of any sort."""
        X, self.classes_, codes = validated_classification(self, X, y)
        many = self._check_parameters(len(X))
        t = codes.astype(np.float64)
        self.fingerprint_, self.target_fingerprint_ = fingerprint(X, t), fingerprint(t)
        units = Standardisation.of(X, t, robust=True) if self.standardise else Standardisation.none(X.shape[1])
        self._units = replace(units, target_shift=0.0, target_scale=1.0)
        with few_threads(len(X) ** 2):
            inner = latent_mixture(
                self._units.inputs(X),
                t,
                "softmax" if many else self.likelihood,
                self.covariance,
                approximation="laplace" if many else self.approximation,
                offset=None,
                seed=0 if self.random_state is None else chosen_seed(self.random_state),
                mode_alone=self.inference == "map",
            )
        self.fit_ = FitInDataUnits(inner, self._units, self.fingerprint_, self.target_fingerprint_, self.classes_)
        self._mode = inner.mode
        self.history_ = [dict(step) for step in inner.history]
        self.notes_, self.status_ = inner.notes, inner.status
        self._warn()
        return self

    def _check_parameters(self, n: int) -> bool:
        """Whether there are more than two classes."""
        one_of(self.inference, "inference", ("auto", "map"))
        one_of(self.likelihood, "likelihood", ("probit", "logit"))
        one_of(self.approximation, "approximation", ("auto", "laplace", "ep"))
        if self.covariance is not None and not isinstance(self.covariance, Covariance):
            raise TypeError(
                "covariance must be a bayessel.covariance.Covariance, such as bayessel.covariance.Matern52(), or "
                f"None, got {self.covariance!r}"
            )
        check_rows(n)
        many = len(self.classes_)
        if many > MOST_CLASSES:
            raise ValueError(f"y must have at most {MOST_CLASSES} classes, got {many}; try GPRegressor")
        if many > 2 and self.approximation == "ep":
            raise ValueError(f"approximation='ep' is for two classes, got {many}; use 'laplace' or 'auto'")
        return many > 2

    # ---- predicting

    predict = _class_predictions.predict
    predict_proba = _class_predictions.predict_proba
    predict_log_proba = _class_predictions.predict_log_proba
    decision_function = _class_predictions.decision_function
    log_predictive_density = _class_predictions.log_predictive_density
    describe = _description.describe

    def _rows_at_a_time(self) -> int:
        return CHUNK

    def _log_p(self, X: FloatArray) -> FloatArray:
        with few_threads(self.fit_.n_rows**2):
            found = self.fit_.predict(X)
        assert isinstance(found, ClassPrediction)
        return np.log(np.maximum(found.probabilities, np.finfo(float).tiny))

    def leave_one_out(self) -> LeaveOneOut:
        """Each training row predicted from all others; hyperparameters and weights of the parts stay."""
        check_is_fitted(self)
        return self.fit_.leave_one_out()

    # ---- looking at it

    @property
    def model_evidence_(self) -> float:
        """log p(y) of the part of most weight, its hyperparameters integrated out by Laplace's method."""
        check_is_fitted(self)
        return float(self.fit_.inner.model_evidence.value)
