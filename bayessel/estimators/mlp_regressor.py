"""Regression by Bayesian multi-layer perceptrons with scikit-learn's face."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, override

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel._numerics import few_threads
from bayessel.estimators._annealed import annealed, sampled_evidence
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._mixture_predictions import MixturePredictions
from bayessel.estimators._network import NetworkRun, check_parameters, show
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators.standardise import Standardisation
from bayessel.fit import LeaveOneOut, fingerprint
from bayessel.mlp import Weights
from bayessel.mlp.network_fit import Networks
from bayessel.prediction import Prediction

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm

#: numbers of all hidden units of all networks that are held at a time
CHUNK = 2_000_000


class MLPRegressor(MixturePredictions):
    r"""Regression by a network of tanh units with direct connections: mlp-mc of Rasmussen (1996), and rivals.

    :math:`f(x) = \sum_h v_h \tanh(\sum_i x_i u_{ih} + a_h) + \sum_i x_i w_i + b`, with a Gamma precision for each group
    of weights and for the weights of each input. With ``inference="mc"`` weights and precisions are sampled, and
    predictions are mixtures over them. Distrust it where `status_` says that chains disagree, and where the noise
    varies with the input or has heavy tails.

    Parameters
    ----------
    inference : {"mc", "early-stopping", "evidence"}
        "mc": Hamiltonian Monte Carlo for the weights, Gibbs sampling for the precisions; the one to trust.
        "early-stopping": an ensemble without a prior (`bayessel.mlp.fit_early_stopping`), for the hurried with many
        rows. "evidence": the most probable network, precisions of greatest evidence, Laplace's approximation about it
        (`bayessel.mlp.fit_network_evidence`), for rows many times as many as weights.
    hidden : int or "auto"
        Hidden units; "auto": the fewest with as many weights as rows, between 6 and 25; "early-stopping": as many as
        the rows that are trained on, at most 250.
    time_budget : seconds or text such as "2m", or None
        "mc": sampling ends then, a third of the run is discarded, and the rest is used; "early-stopping": training
        ends; `continue_fit` goes on with both. "evidence": no search is begun after it. Compiling does not count.
        None: "mc" makes `draws`, the others as much as is usual.
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
        "mc": trajectories between draws. None: as many as take about 0.03 s, less where the time budget is short.
    cores : int or None
        "mc": processes; None: one per chain, as many as the machine has, or one in all for short runs.
    progressbar : bool
        Show how far long work is; never in pipes.

    Attributes
    ----------
    fit_ : Fit
        The fit in units of the data; ``fit_.engine`` is what was found in standardised units:
        `bayessel.mlp.early_stopping_result.EarlyStoppingEnsemble`, `bayessel.mlp.evidence_result.NetworkEvidenceFit`,
        or of "mc" `SampledNetworks`.
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
        Standard deviation of the noise, in units of y.
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

    _run: NetworkRun
    _rows: tuple[FloatArray, FloatArray]
    fit_: FitInDataUnits

    def __init__(
        self,
        inference: str = "mc",
        hidden: int | str = "auto",
        time_budget: float | str | None = None,
        random_state: Any = None,
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

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to inputs (N, D) and a target (N,), or K targets (N, K)."""
        X, y = self._validate(X, y, reset=True)
        settings = self.get_params(deep=False)
        check_parameters(settings)
        units = self._units = Standardisation.of(X, y) if self.standardise else Standardisation.none(X.shape[1])
        self.fingerprint_, self.target_fingerprint_ = names = fingerprint(X, y), fingerprint(y)
        self._remember_version()
        targets = units.targets(y).reshape(len(y), -1)
        run = NetworkRun(settings, units.inputs(X), targets, "gaussian", y.ndim == 1, units, names)
        show(self, run, run.begin())
        return self

    def continue_fit(self, draws: int | None = None, time_budget: float | str | None = None) -> Self:
        """Go on with the chains of ``inference="mc"`` or the networks of "early-stopping", also after a pickle.

        Parameters
        ----------
        draws
            "mc": draws per chain in the end, those there are included; never fewer than these. None: as many as the
            estimator was made for.
        time_budget
            For this call. None: that of the fit, if neither it nor this call has a number of draws.

        Notes
        -----
        However often it was stopped, a run has the draws, or the networks, of one that never was. So the settings must
        be those of the fit.
        """
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
        random_state: Any = None,
    ) -> Any:
        r"""Estimate log p(y) with weights and all precisions integrated out, and keep it for comparisons.

        .. math:: p(y) = \int p(y|w, s)\, p(w|s)\, p(s)\, dw\, ds

        By annealing from the prior, with a reference about the draws of the chains (`AnnealedEvidence`). It becomes the
        evidence of `fit_`; `model_evidence_` and `model_evidence_se_` show it, and
        ``bs.diagnostics.compare(…, by="model-evidence")`` ranks by it.

        Parameters
        ----------
        n_particles, n_runs : int
            Particles of a run, and independent runs after the pilot runs; the error falls as 1/√(both).
        n_pilots : int
            Beginnings that are tried: the draws of the chains, and most probable networks of other searches. Where one
            of these leads to much more than the chains do, a warning says so, and `continue_fit` or more hidden units
            may help.
        updates, n_leapfrog : int
            Updates of each particle at each temperature, and leapfrog steps of each.
        time_budget : seconds or text such as "2m", optional
            No further run is begun after it; the pilots and one run are always made.
        random_state : int, Generator, RandomState or None
            Seed; None: made from that of the fit.

        Returns
        -------
        bayessel.samplers.annealing.AnnealedEvidence
            In nats and in units of y. Stopped with Ctrl-C it is of the runs there are.

        Notes
        -----
        The prior is that of `bayessel.models.mlp` in standardised units, which were read off the data: so do all models
        here that standardise. Distrust an error above half a nat (`status` UNSURE_EVIDENCE): the runs then found
        different things, and the true value is rather above than below.

        References
        ----------
        Neal (2001), Statistics and Computing 11, 125; Del Moral, Doucet and Jasra (2006), JRSS B 68, 411.
        """
        check_is_fitted(self)
        options = {"n_particles": n_particles, "n_runs": n_runs, "n_pilots": n_pilots}
        found, self.fit_ = annealed(
            self._run, self.fit_, time_budget, random_state, updates=updates, n_leapfrog=n_leapfrog, **options
        )
        return found

    # ---- predicting

    def _networks(self) -> Networks:
        networks: Networks = self.fit_.engine.networks
        return networks

    @override
    def _components(self) -> int:
        return len(self._networks())

    @override
    def _piece(self) -> int:
        return max(16, CHUNK // (len(self._networks()) * self.hidden_))

    @override
    def _operations(self, variance: bool) -> float:
        return 2.0 * self._networks().architecture.size

    @override
    def _mixture(self, X: FloatArray, noise: bool = True, variance: bool = True, tell: Any = None) -> Prediction:
        with few_threads(len(X) * self.hidden_):
            found = self.fit_.predict(X)
        if tell is not None:
            tell(len(X) * len(self._networks()), 0)
        assert isinstance(found, Prediction)
        return found if noise else found.function

    @override
    def _log_density(self, mixture: Prediction, y: FloatArray) -> FloatArray:
        """Outputs are independent in each network, so the mixture is over products."""
        if self._run.single:
            return mixture.log_density(y)
        joint = log_normal(y - mixture.means, mixture.variances).sum(axis=2)
        return np.asarray(logsumexp(joint, axis=0) - np.log(len(joint)))

    def leave_one_out(self) -> LeaveOneOut:
        """Each training row predicted from all others, noise included, in units of y.

        "mc": by importance weights of the draws, Pareto-smoothed. "early-stopping": by the networks that held the row
        out; NaN where there is none. "evidence": as if outputs were linear in the weights about the best ones, at the
        precisions of all rows.
        """
        check_is_fitted(self)
        return self.fit_.leave_one_out()

    @override
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

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
    def noise_std_(self) -> Any:
        """Standard deviation of the noise in units of y, one number or (K,): of draws the root mean square."""
        check_is_fitted(self)
        noise = self.fit_.engine.noise_std * self._units.target_scale
        return float(noise[0]) if self._run.single else noise

    @property
    def pareto_k_(self) -> FloatArray:
        """Shapes of the tails of the rows' importance weights, (N,)."""
        check_is_fitted(self)
        if not isinstance(self.fit_.engine, SampledNetworks):
            raise AttributeError("pareto_k_ is of draws; this fit has none: use inference='mc'")
        return self.fit_.engine.pareto_k

    @property
    def relevance_(self) -> pd.DataFrame:
        """Slopes along the inputs with central 95 % intervals over the networks."""
        check_is_fitted(self)
        return self._run.relevance(self.fit_, getattr(self, "feature_names_in_", None))

    def to_pymc(self) -> pm.Model:
        """The model in standardised units as a `pymc.Model`, for samplers of your own."""
        check_is_fitted(self, "_run")
        return self._run.model()
