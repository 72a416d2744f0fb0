"""Regression by Bayesian multi-layer perceptrons with scikit-learn's face."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self, override

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel._numerics import few_threads
from bayessel.errors import NumericalWarning
from bayessel.estimators import _left_out
from bayessel.estimators._door import HERE
from bayessel.estimators._mixture_predictions import MixturePredictions
from bayessel.estimators._network import NetworkEstimator
from bayessel.estimators._network_states import NetworkStates
from bayessel.estimators.standardise import Standardisation
from bayessel.gp import Mixture
from bayessel.result import fingerprint

if TYPE_CHECKING:
    import pandas as pd

#: numbers of all hidden units of all networks that are held at a time
CHUNK = 2_000_000


class MLPRegressor(NetworkEstimator, MixturePredictions):
    r"""Regression by a network of tanh units with direct connections: mlp-mc of Rasmussen (1996).

    :math:`f(x) = \sum_h v_h \tanh(\sum_i x_i u_{ih} + a_h) + \sum_i x_i w_i + b`, with a Gamma precision for each group
    of weights and for the weights of each input. Weights and precisions are sampled, and predictions are mixtures over
    them. Distrust it where `status_` says that chains disagree, and where the noise varies with the input or has heavy
    tails.

    Parameters
    ----------
    inference : {"mc"}
        Hamiltonian Monte Carlo for the weights, Gibbs sampling for the precisions.
    hidden : int or "auto"
        Hidden units; "auto": the fewest with as many weights as rows, between 6 and 25.
    time_budget : seconds or text such as "2m", or None
        Sampling ends then, a third of the run is discarded, and the rest is used; `continue_fit` goes on. Compiling
        does not count. None: `draws` are made.
    random_state : int, Generator, RandomState or None
        Seed of the chains.
    standardise : bool
        Give every real column, those of y too, median 0 and mean absolute deviation 1 inside, and inputs with two
        values the values 0 and 1: the priors are made for that. False takes the numbers as they are.
    draws, tune : int or None
        Draws per chain after so many of tuning. None: 200 after 100; with a time budget as many as there is time for.
    chains : int
        Chains; with less than two nothing says whether they agree.
    n_states : int
        Draws that predictions use, evenly spread over all that are not discarded.
    updates_per_draw : int or None
        Trajectories between draws. None: as many as take about 0.03 s, less where the time budget is short.
    cores : int or None
        Processes; None: one per chain, as many as the machine has, or one in all for short runs.
    progressbar : bool
        Show how far long work is; never in pipes.

    Attributes
    ----------
    hidden_ : int
        Hidden units in use.
    weights_ : bayessel.mlp.Weights
        Those of the networks in use, standardised units, the networks the first axis.
    relevance_ : pandas.DataFrame
        Per input the root mean square of the slope of the function along it at the training rows, in units of y over
        units of the input (``slope``, with ``lower`` and ``upper``, central 95 % over the networks), the same in
        standardised units (``standardised``: large means relevant), and the standard deviations of its weights into
        hidden units (``hidden``) and of its direct ones (``direct``), medians of the draws. With several outputs slopes
        are per unit of standardised outputs, squares summed. Computed when asked for.
    noise_std_ : float or (K,) array
        Standard deviation of the noise, in units of y.
    log_evidence_, kind_ : float, str
        NaN and empty for "mc".
    trace_ : xarray.DataTree
        All draws after tuning, as ArviZ reads them, in standardised units; see `bayessel.models.mlp` for names. Compare
        predictions, not weights: hidden units exchange their roles.
    discarded_ : int
        Draws at the beginning of each chain, those of tuning included, that predictions do not use.
    pareto_k_ : (N,) array
        Once rows were left out: shapes of the tails of their importance weights; above 0.7 they are unsure.
    status_, notes_ : Status, tuple of Status
        How the fit ended, with advice; and all that can be said of it. Chains are compared by their outputs at ten rows
        and by the noise.
    history_ : list of dict
        Per chain: draws, acceptance rate, step size, divergences.
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
    >>> model = MLPRegressor(draws=60, tune=30, updates_per_draw=10, random_state=0).fit(X, y)
    >>> bool(model.relevance_["slope"][0] > 5 * model.relevance_["slope"][1])
    True
    >>> mean, std = model.predict([[0.5, 0.0], [6.0, 0.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 0.2), bool(std[1] > 3 * std[0])
    (True, True)
    """

    # ---- fitting

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to inputs (N, D) and a target (N,), or K targets (N, K)."""
        X, y = self._validate(X, y, reset=True)
        self._check_parameters()
        self._units = Standardisation.of(X, y) if self.standardise else Standardisation.none(X.shape[1])
        self._several = y.ndim == 2
        self.fingerprint_, self.target_fingerprint_ = fingerprint(X, y), fingerprint(y)
        targets = self._units.targets(y)
        targets = targets if self._several else targets[:, None]
        self._fit_network(self._units.inputs(X), targets, targets.shape[1], "gaussian")
        return self

    @override
    def _finish(self) -> None:
        super()._finish()
        self.__dict__.pop("pareto_k_", None)  # of the draws there were before
        noise = np.sqrt(self._states.noise.mean(axis=0)) * self._units.target_scale
        self.noise_std_ = noise if self._several else float(noise[0])

    @override
    def _without_draws(self) -> NetworkStates:
        t = self._rows[1]
        return NetworkStates.constant(self._architecture, t.mean(axis=0), np.maximum(t.var(axis=0), 1e-12))

    # ---- predicting

    @override
    def _components(self) -> int:
        return len(self._states)

    @override
    def _piece(self) -> int:
        return max(16, CHUNK // (len(self._states) * self.hidden_))

    @override
    def _operations(self, variance: bool) -> float:
        return 2.0 * self._architecture.size

    @override
    def _mixture(self, X: FloatArray, noise: bool = True, variance: bool = True, tell: Any = None) -> Mixture:
        with few_threads(len(X) * self.hidden_):
            found = self._states.mixture(self._units.inputs(X), noise)
        if tell is not None:
            tell(len(X) * len(self._states), 0)
        return self._shown(found)

    def _shown(self, mixture: Mixture) -> Mixture:
        """In units of the data; without the axis of outputs where there is one that is none."""
        found = mixture.scaled(self._units.target_shift, self._units.target_scale)
        if self._several:
            return found
        log_weights = None if found.log_weights is None else found.log_weights[..., 0]
        return Mixture(found.means[..., 0], found.variances[..., 0], log_weights)

    @override
    def _log_density(self, mixture: Mixture, y: FloatArray) -> FloatArray:
        """Outputs are independent in each network, so the mixture is over products."""
        if not self._several:
            return mixture.log_density(y)
        joint = log_normal(y - mixture.means, mixture.variances).sum(axis=2)
        return np.asarray(logsumexp(joint, axis=0) - np.log(len(joint)))

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Errors of each training row predicted from all others, and the variances of those predictions.

        Noise included, in units of y, of the shape of y: by importance weights of the draws, Pareto-smoothed.
        """
        mixture = self._shown(self._left_out()[0])
        y = self._units.target_shift + self._units.target_scale * self._rows[1]
        return (y if self._several else y[:, 0]) - mixture.mean, mixture.variance

    def log_leave_one_out(self) -> FloatArray:
        """log p(y_n | x_n, all other rows) of each training row, in nats and in units of y."""
        return self._left_out()[1] - self._units.log_scale

    def _left_out(self) -> tuple[Mixture, FloatArray]:
        """Predictions of each row from the others and their log densities (N,), standardised units."""
        check_is_fitted(self)
        states = self._every() if self._has_draws() else self._states
        X, t = self._rows
        mixture = states.mixture(X)
        densities = log_normal(t - mixture.means, mixture.variances).sum(axis=2)
        if len(states) < _left_out.FEW_DRAWS:
            return mixture, np.asarray(logsumexp(densities, axis=0) - np.log(len(states)))
        log_weights, self.pareto_k_ = _left_out.weights(densities)
        if said := _left_out.doubts(self.pareto_k_, len(states)):
            warnings.warn(said, NumericalWarning, skip_file_prefixes=HERE)
        every = np.broadcast_to(log_weights[:, :, None], mixture.means.shape)
        return Mixture(mixture.means, mixture.variances, every), logsumexp(densities + log_weights, axis=0)

    @override
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def relevance_(self) -> pd.DataFrame:
        """Slopes along the inputs with central 95 % intervals over the networks."""
        check_is_fitted(self)
        table = self._relevance(classes=False)
        scale = (1.0 if self._several else self._units.target_scale) / self._units.input_scale
        for name in ("slope", "lower", "upper"):
            table[name] *= scale
        return table
