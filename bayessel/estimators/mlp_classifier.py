"""Classification by Bayesian multi-layer perceptrons with scikit-learn's face."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from bayessel._check import FloatArray
from bayessel._numerics import few_threads
from bayessel._types import Seed
from bayessel.estimators._annealed import annealed, sampled_evidence
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._network import NetworkRun, check_parameters, show
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators.base import Versioned, new_rows, validated_classification
from bayessel.estimators.mlp_regressor import CHUNK
from bayessel.estimators.standardise import Standardisation
from bayessel.fit import LeaveOneOut, fingerprint
from bayessel.mlp import Weights
from bayessel.mlp.targets import MOST_CLASSES
from bayessel.prediction import ClassPrediction

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm

    from bayessel.samplers.annealing import AnnealedEvidence


class MLPClassifier(ClassifierMixin, Versioned):
    r"""Classification by a network of tanh units with direct connections.

    The network of `MLPRegressor`; its output is the log odds of the second of two classes, or with more classes each
    has an output, and probabilities are their softmax. Probabilities of new rows are means over the networks. Distrust
    it where `status_` says that chains disagree.

    Parameters
    ----------
    inference, hidden, time_budget, random_state, draws, tune, chains, n_states, updates_per_draw, cores, progressbar
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

    _run: NetworkRun
    _rows: tuple[FloatArray, npt.NDArray[Any]]
    fit_: FitInDataUnits

    def __init__(
        self,
        inference: str = "mc",
        hidden: int | str = "auto",
        time_budget: float | str | None = None,
        random_state: Seed = None,
        standardise: bool = True,
        draws: int | None = None,
        tune: int | None = None,
        chains: int = 2,
        n_states: int = 100,
        updates_per_draw: int | None = None,
        cores: int | None = None,
        progressbar: bool = True,
    ) -> None:
        self.inference = inference
        self.hidden = hidden
        self.time_budget = time_budget
        self.random_state = random_state
        self.standardise = standardise
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.n_states = n_states
        self.updates_per_draw = updates_per_draw
        self.cores = cores
        self.progressbar = progressbar

    # ---- fitting

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and labels (N,) of any sort."""
        X, self.classes_, codes = validated_classification(self, X, y)
        many = len(self.classes_)
        if many > MOST_CLASSES:
            raise ValueError(f"y must have at most {MOST_CLASSES} classes, got {many}; try MLPRegressor")
        settings = self.get_params(deep=False)
        check_parameters(settings)
        units = Standardisation.of(X, codes.astype(float)) if self.standardise else Standardisation.none(X.shape[1])
        self.fingerprint_, self.target_fingerprint_ = names = fingerprint(X, codes), fingerprint(codes)
        self._remember_version()
        kind = "logistic" if many == 2 else "softmax"
        run = NetworkRun(settings, units.inputs(X), codes, kind, True, units, names, self.classes_)
        show(self, run, run.begin())
        return self

    def continue_fit(self, draws: int | None = None, time_budget: float | str | None = None) -> Self:
        """Go on with the chains of ``inference="mc"`` or the networks of "early-stopping"; as `MLPRegressor` does."""
        check_is_fitted(self)
        show(self, self._run, self._run.go_on(self.get_params(deep=False), self.fit_, draws, time_budget))
        return self

    def evidence(
        self,
        n_particles: int = 100,
        n_runs: int = 4,
        n_pilots: int = 4,
        updates: int = 2,
        n_leapfrog: int = 20,
        time_budget: float | str | None = None,
        random_state: Seed = None,
    ) -> AnnealedEvidence:
        """Estimate log p(labels) with weights and all precisions integrated out; as `MLPRegressor.evidence`."""
        check_is_fitted(self)
        options = {"n_particles": n_particles, "n_runs": n_runs, "n_pilots": n_pilots}
        found, self.fit_ = annealed(
            self._run, self.fit_, time_budget, random_state, updates=updates, n_leapfrog=n_leapfrog, **options
        )
        return found

    # ---- predicting

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Logarithms of `predict_proba`."""
        X = new_rows(self, X)
        piece = max(16, CHUNK // (len(self.fit_.engine.networks) * max(self.hidden_, len(self.classes_))))
        with few_threads(min(piece, len(X)) * self.hidden_):
            return np.concatenate([self._log_p(X[begin : begin + piece]) for begin in range(0, len(X), piece)])

    def _log_p(self, X: FloatArray) -> FloatArray:
        if isinstance(self.fit_.engine, SampledNetworks):  # also where a probability is rounded to one
            return self.fit_.engine.log_probabilities(self.fit_.units.inputs(X))
        found = self.fit_.predict(X)
        assert isinstance(found, ClassPrediction)
        return np.log(np.maximum(found.probabilities, np.finfo(float).tiny))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities (N, C) of the classes, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Log odds of the second of two classes (N,); of each class against the rest (N, C) where there are more."""
        log_p = self.predict_log_proba(X)
        if log_p.shape[1] == 2:
            return np.asarray(log_p[:, 1] - log_p[:, 0])
        rest = np.array([logsumexp(np.delete(log_p, k, axis=1), axis=1) for k in range(log_p.shape[1])]).T
        return np.asarray(log_p - rest)

    def predict(self, X: ArrayLike) -> npt.NDArray[np.generic]:
        """The likeliest label."""
        log_p = self.predict_log_proba(X)
        # as the sign of the log odds has it, also where rounding makes both equal
        codes = (log_p[:, 1] > log_p[:, 0]).astype(int) if log_p.shape[1] == 2 else log_p.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """log p(y_n | x_n, training data) of each new label, in nats; −inf for one that was not there in training."""
        log_p = self.predict_log_proba(X)
        labels = _check_y(y, multi_output=False, y_numeric=False, estimator=self)
        check_consistent_length(log_p, labels)
        place = np.clip(np.searchsorted(self.classes_, labels), 0, len(self.classes_) - 1)
        return np.where(self.classes_[place] == labels, log_p[np.arange(len(log_p)), place], -np.inf)

    def leave_one_out(self) -> LeaveOneOut:
        """Each training row predicted from all others; the error of a class is its indicator less its probability.

        "mc": by importance weights of the draws, Pareto-smoothed. "early-stopping": by the networks that held the row
        out, NaN where there is none. "evidence": by a Newton step without the row.
        """
        check_is_fitted(self)
        return self.fit_.leave_one_out()

    # ---- looking at it

    @property
    def weights_(self) -> Weights:
        """Weights of the networks in use by name, in standardised units; the networks are the first axis."""
        check_is_fitted(self)
        weights: Weights = self.fit_.engine.networks.weights
        return weights

    @property
    def log_evidence_(self) -> float:
        """Log evidence of the fit in nats and units of the data; NaN where there is none."""
        check_is_fitted(self)
        return self.fit_.log_evidence

    @property
    def kind_(self) -> str:
        """What sort of evidence that is; empty where there is none."""
        check_is_fitted(self)
        return "" if self.fit_.evidence is None else self.fit_.evidence.kind

    @property
    def model_evidence_(self) -> float:
        """What `evidence` found, in nats and units of the data; NaN before."""
        check_is_fitted(self)
        return sampled_evidence(self.fit_)[0]

    @property
    def model_evidence_se_(self) -> float:
        """Its standard error in nats."""
        check_is_fitted(self)
        return sampled_evidence(self.fit_)[1]

    @property
    def relevance_(self) -> pd.DataFrame:
        """Slopes of the log odds along the inputs with central 95 % intervals over the networks."""
        check_is_fitted(self)
        return self._run.relevance(self.fit_, getattr(self, "feature_names_in_", None))

    def to_pymc(self) -> pm.Model:
        """The model in standardised units as a `pymc.Model`, for samplers of your own."""
        check_is_fitted(self, "_run")
        return self._run.model()
