"""Regression by Bayesian multi-layer perceptrons with scikit-learn's face."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel._numerics import few_threads
from bayessel.estimators import _mixture_predictions
from bayessel.estimators._network_estimator import CHUNK, NetworkEstimator
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators.base import validated_regression
from bayessel.estimators.weighted_rows import without_weights
from bayessel.mlp.network_fit import Networks
from bayessel.prediction import Prediction


class MLPRegressor(RegressorMixin, NetworkEstimator):
    r"""Regression by a network of tanh units with direct connections: mlp-mc of Rasmussen (1996), and rivals.

    :math:`f(x) = \sum_h v_h \tanh(\sum_i x_i u_{ih} + a_h) + \sum_i x_i w_i + b`, with a Gamma precision for each group
    of weights and for the weights of each input. By default weights and precisions are sampled, and predictions are
    mixtures over them and over the model of `EvidenceRegressor`, by the weights under which both, fitted anew to three
    folds, predict the rows left out best. Distrust it where `status_` says that chains disagree, and where the noise
    varies with the input or has heavy tails.

    Parameters
    ----------
    inference : {"auto", "mc", "early-stopping", "evidence"}
        "mc": Hamiltonian Monte Carlo for the weights, Gibbs sampling for the precisions. "auto", of one target: the
        same beside the other model, which predicts alone where the networks do not help (status FELL_BACK); of several
        targets "mc". What is said of "mc" below holds of both.
        "early-stopping": an ensemble without a prior (`bayessel.mlp.fit_early_stopping`), for the hurried with many
        rows. "evidence": the most probable network, precisions of greatest evidence, Laplace's approximation about it
        (`bayessel.mlp.fit_network_evidence`), for rows many times as many as weights.
    hidden : int or "auto"
        Hidden units; "auto": the fewest with as many weights as rows, between 6 and 25; "early-stopping": as many as
        the rows that are trained on, at most 250.
    time_budget : seconds or text such as "2m", or None
        "mc": sampling ends then, a third of the run is discarded, and the rest is used ("auto": four sevenths of the
        time are for all rows, the rest for the folds); "early-stopping": training ends; `continue_fit` goes on with
        both. "evidence": no search is begun after it. Compiling does not count. None: "mc" makes `draws`, the others
        as much as is usual.
    random_state : int, Generator, RandomState or None
        Seed of the chains.
    standardise : bool
        Give every real column, those of y too, median 0 and mean absolute deviation 1 inside, and inputs with two
        values the values 0 and 1: the priors are made for that. False takes the numbers as they are.
    draws, tune : int or None
        "mc": draws per chain after so many of tuning. None: 200 after 100; with a time budget as many as there is time
        for.
    chains : int
        "mc": chains; with less than two nothing says whether they agree.
    n_states : int
        "mc": draws that predictions use, evenly spread over all that are not discarded.
    updates_per_draw : int or None
        "mc": trajectories between draws. None: as many as take about 0.03 s (0.02 s beside folds), less where the time
        budget is short.
    cores : int or None
        "mc": processes; None: one per chain, as many as the machine has, or one in all for short runs.
    progressbar : bool
        Show how far long work is; never in pipes.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).

    Attributes
    ----------
    fit_ : Fit
        The fit in units of the data; ``fit_.inner`` is what was found in standardised units:
        `bayessel.mlp.early_stopping_result.EarlyStoppingEnsemble`, `bayessel.mlp.evidence_result.NetworkEvidenceFit`,
        or of "mc" `SampledNetworks`; of "auto" this with ``fit_.inner.witness``: ``share`` is the weight of the
        networks, ``gains`` what they and the ``reference`` are worth on rows left out.
    hidden_ : int
        Hidden units of the network.
    weights_ : bayessel.mlp.Weights
        Those of the networks in use, standardised units, the networks the first axis.
    relevance_ : pandas.DataFrame
        Per input the root mean square of the slope of the function along it at the training rows, in units of y over
        units of the input (``slope``, with ``lower`` and ``upper``, central 95 % over the networks), the same in
        standardised units (``standardised``: large means relevant), and the standard deviations of its weights into
        hidden units (``hidden``) and of its direct ones (``direct``), medians of the draws; NaN where there is no such
        thing. With several outputs slopes are per unit of standardised outputs, squares summed. Computed when asked
        for.
    noise_std_ : float or (K,) array
        Standard deviation of the noise, in units of y, of all that predicts.
    log_evidence_, kind_ : float, str
        "evidence": log p(y) at the best precisions, in nats and units of y, and "laplace"; "mc", once `evidence` was
        called: with weights and precisions integrated out, and "sampled". NaN and empty where there is none.
    model_evidence_, model_evidence_se_ : float
        That of "mc" and its standard error; NaN before `evidence` was called, and for others.
    trace_ : xarray.DataTree or None
        "mc": all draws after tuning, as ArviZ reads them, in standardised units; see `bayessel.models.mlp` for names.
        Compare predictions, not weights: hidden units exchange their roles.
    discarded_ : int
        "mc": draws at the beginning of each chain, those of tuning included, that predictions do not use.
    pareto_k_ : (N,) array
        "mc": shapes of the tails of their importance weights; above 0.7 they are unsure.
    status_, notes_ : Status, tuple of Status
        How the fit ended, with advice; and all that can be said of it. Chains are compared by their outputs at ten rows
        and by the noise.
    history_ : list of dict
        "mc": per chain draws, acceptance rate, step size, divergences; of others what the engine tells of each network
        or search.
    fingerprint_, target_fingerprint_, version_ : str
        Names of the training data and of its target; version of bayessel that fitted.

    References
    ----------
    Neal (1996), Bayesian Learning for Neural Networks; Rasmussen (1996), Evaluation of Gaussian Processes and other
    Methods for Non-linear Regression, § 3.7.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(60, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> model = MLPRegressor(hidden=6, updates_per_draw=30, random_state=0).fit(X, y)
    >>> bool(model.relevance_["slope"][0] > 5 * model.relevance_["slope"][1])
    True
    >>> mean, std = model.predict([[0.5, 0.0], [6.0, 0.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 0.2), bool(std[1] > 3 * std[0])
    (True, True)
    """

    # ---- fitting

    @without_weights
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and a target (N,), or K targets (N, K)."""
        X, y = validated_regression(self, X, y, reset=True)
        self._begin(X, y, "gaussian", y.ndim == 1)
        return self

    # ---- predicting

    predict = _mixture_predictions.predict
    predict_median = _mixture_predictions.predict_median
    predictive = _mixture_predictions.predictive
    log_predictive_density = _mixture_predictions.log_predictive_density
    _several_outputs = True

    def _networks(self) -> Networks:
        networks: Networks = self.fit_.inner.networks
        return networks

    def _components(self) -> int:
        return len(self._networks())

    def _piece(self) -> int:
        return max(16, CHUNK // (len(self._networks()) * self.hidden_))

    def _operations(self, variance: bool) -> float:
        return 2.0 * self._networks().architecture.size

    def _mixture(self, X: FloatArray, noise: bool = True, variance: bool = True, tell: Any = None) -> Prediction:
        with few_threads(len(X) * self.hidden_):
            found = self.fit_.predict(X)
        if tell is not None:
            tell(len(X) * len(self._networks()), 0)
        assert isinstance(found, Prediction)
        return found if noise else found.function

    def _log_density(self, mixture: Prediction, y: FloatArray) -> FloatArray:
        """Outputs are independent in each network, so the mixture is over products."""
        if self._run.single:
            return mixture.log_density(y)
        joint = log_normal(y - mixture.means, mixture.variances).sum(axis=2)
        return np.asarray(logsumexp(joint, axis=0) - np.log(len(joint)))

    # ---- looking at it

    @property
    def noise_std_(self) -> float | FloatArray:
        """Standard deviation of the noise in units of y, one number or (K,): of draws the root mean square."""
        check_is_fitted(self)
        noise = self.fit_.inner.noise_std * self.fit_.units.target_scale
        return float(noise[0]) if self._run.single else noise

    @property
    def pareto_k_(self) -> FloatArray:
        """Shapes of the tails of the rows' importance weights, (N,)."""
        check_is_fitted(self)
        if not isinstance(self.fit_.inner, SampledNetworks):
            raise AttributeError("pareto_k_ is of draws; this fit has none: use inference='mc'")
        return self.fit_.inner.pareto_k
