"""Classification by Bayesian multi-layer perceptrons with scikit-learn's face."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from bayessel._check import FloatArray
from bayessel._numerics import few_threads
from bayessel.estimators import _class_predictions
from bayessel.estimators._network_estimator import CHUNK, NetworkEstimator
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators.base import validated_classification
from bayessel.estimators.weighted_rows import without_weights
from bayessel.mlp.targets import MOST_CLASSES
from bayessel.prediction import ClassPrediction


class MLPClassifier(ClassifierMixin, NetworkEstimator):
    r"""Classification by a network of tanh units with direct connections.

    The network of `MLPRegressor`; its output is the log odds of the second of two classes, or with more classes each
    has an output, and probabilities are their softmax. Probabilities of new rows are means over the networks. Distrust
    it where `status_` says that chains disagree.

    Parameters
    ----------
    inference, hidden, time_budget, random_state, draws, tune, chains, n_states, updates_per_draw, cores
        As for `MLPRegressor`; "auto" is "mc", since folds are fitted anew for real targets alone.
    progressbar, missing
        As for `MLPRegressor`.
    standardise : bool
        Give every real input median 0 and mean absolute deviation 1 inside, and those with two values 0 and 1.

    Attributes
    ----------
    classes_ : array
        Labels, sorted.
    fit_, hidden_, weights_, trace_, discarded_, log_evidence_, kind_, status_, notes_, history_, version_
        As of `MLPRegressor`.
    model_evidence_, model_evidence_se_ : float
        As of `MLPRegressor`: log p(labels) after `evidence`, and its standard error.
    relevance_ : pandas.DataFrame
        As of `MLPRegressor`, of the log odds; with more than two classes of all outputs less their mean.
    fingerprint_, target_fingerprint_ : str
        Names of the training data and of its labels, counted from 0.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "in", "out")
    >>> model = MLPClassifier(hidden=6, updates_per_draw=60, random_state=0).fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    ['in', 'out']
    >>> bool(model.predict_proba([[0.0, 0.0]])[0, 0] > 0.8)
    True
    """

    # ---- fitting

    @without_weights
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and labels (N,) of any sort."""
        X, self.classes_, codes = validated_classification(self, X, y)
        many = len(self.classes_)
        if many > MOST_CLASSES:
            raise ValueError(f"y must have at most {MOST_CLASSES} classes, got {many}; try MLPRegressor")
        self._begin(X, codes, "logistic" if many == 2 else "softmax", True, self.classes_)
        return self

    # ---- predicting

    predict = _class_predictions.predict
    predict_proba = _class_predictions.predict_proba
    predict_log_proba = _class_predictions.predict_log_proba
    decision_function = _class_predictions.decision_function
    log_predictive_density = _class_predictions.log_predictive_density

    def _rows_at_a_time(self) -> int:
        return max(16, CHUNK // (len(self.fit_.inner.networks) * max(self.hidden_, len(self.classes_))))

    def _log_p(self, X: FloatArray) -> FloatArray:
        with few_threads(len(X) * self.hidden_):
            if isinstance(self.fit_.inner, SampledNetworks):  # also where a probability is rounded to one
                return self.fit_.inner.log_probabilities(self.fit_.units.inputs(X))
            found = self.fit_.predict(X)
        assert isinstance(found, ClassPrediction)
        return np.log(np.maximum(found.probabilities, np.finfo(float).tiny))
