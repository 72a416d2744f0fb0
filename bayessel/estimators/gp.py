"""Gaussian-process regression with scikit-learn's face: hyperparameters at their mode, or sampled."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, as_count, as_seconds, chosen_seed, one_of
from bayessel._fingerprint import fingerprint
from bayessel._numerics import few_threads_of_cholesky
from bayessel._types import Missing, ProcessInference, ProcessLikelihood, Seed
from bayessel.covariance import Covariance
from bayessel.estimators import (
    _chains,
    _description,
    _mixture_predictions,
    _process_evidence,
    _process_predictions,
    several_targets,
)
from bayessel.estimators._latent_regression import LATENT, LatentInDataUnits, fitted_latent
from bayessel.estimators._mixed_process import MixedProcess
from bayessel.estimators._process_estimator import ProcessEstimator
from bayessel.estimators._process_method import ChosenMethod, check_rows, chosen_method, declared_method, found_mode
from bayessel.estimators._process_parts import mixed_process, prior_of_draws
from bayessel.estimators._sampled_process import ProcessInDataUnits, SampledProcess, sampled_process
from bayessel.estimators._several_processes import SeveralProcesses, fit_processes
from bayessel.estimators._terms_of_trace import trace_with_terms
from bayessel.estimators._witnessed_mode import witnessed
from bayessel.estimators.base import validated_regression
from bayessel.estimators.listed_records import Records, records_of
from bayessel.estimators.standardise import Standardisation
from bayessel.estimators.weighted_rows import without_weights
from bayessel.fit import Evidence, LeaveOneOut, Status, worst
from bayessel.gp.map_result import GPFit
from bayessel.work.progress import progress_of

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

#: parameters that chains which go on cannot change
OF_CHAINS = ("tune", "chains", "sampler")
#: seconds that sampling gets when finding the mode has taken all
_AT_LEAST = 1e-3


class GPRegressor(RegressorMixin, ProcessEstimator):
    r"""Gaussian-process regression: gp-map and gp-mc of Rasmussen (1996).

    The function has the covariance :math:`C(x,x') = a_0 + a_1 x\cdot x' + v_0 \exp(-\frac12 \sum_i w_i (x_i-x_i')^2)`,
    the noise the variance r². By default predictions are mixtures over forty states of these hyperparameters, drawn
    from their posterior with a length per input and with one for all, by the weights under which rows left out are
    predicted best (beyond 450 rows by Laplace's approximation, beyond 2700 the mode alone); and over a constant, where
    refitted folds doubt the process. Distrust it where the noise varies with the input or has heavy tails.

    Parameters
    ----------
    inference : {"auto", "map", "mc"}
        Mixture over states drawn in a second or two, the mode alone, or Hamiltonian Monte Carlo until chains agree.
    covariance : bayessel.covariance.Covariance or None
        None: `bayessel.covariance.Standard`, the one above. To one without a noise term `Noise()` is added.
    time_budget : seconds or text such as "2m", or None
        "mc": sampling ends then, and the draws made so far are used; `continue_fit` goes on. Finding the mode, where
        the chains begin, counts but is not cut short; compiling does not count.
    random_state : int, Generator, RandomState or None
        Seed of starts and chains. None: "auto" and "map" give the same fit for the same rows, "mc" draws anew.
    standardise : bool
        Give every real column, y too, median 0 and mean absolute deviation 1 inside, and inputs with two values the
        values 0 and 1: the priors are made for that. "auto" takes the deviation of an input from its central two
        thirds, which a few huge values do not change. False takes the numbers as they are.
    draws, tune, chains : int
        "mc": draws per chain after so many of tuning.
    n_states : int
        "mc": draws that predictions use, evenly spread over all; a test point costs O(n²) for each.
    sampler : {"tuned", "1996"}
        "mc": `bayessel.PersistentHMC` with everything tuned, or with the settings of the thesis (one leapfrog step of
        0.5 n^-1/2, persistence 0.95).
    inducing : int or None
        "auto", "map": number of inducing inputs. None: as many as the method wants.
    cores : int or None
        "mc": processes; None: one per chain, as many as the machine has.
    progressbar : bool
        Show how far long work is; never in pipes.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).
    likelihood : {"gaussian", "student", "heteroscedastic", "poisson", "negative-binomial"}
        Normal noise; heavy tails, for targets with outliers; normal noise whose variance depends on the inputs; counts.
        Without chains but for the first: "auto" mixes as `GPClassifier` does. `predictive` of counts is for exposure 1.
    method : {"auto", "dense", "vecchia", "inducing"}
        All rows at once (n³ operations); Vecchia's approximation, each row given few rows near it and some inducing
        inputs (``docs/many-rows.md``); inducing inputs alone, by a lower bound of the evidence (Titsias 2009). But for
        "dense" predictions are those of the mode. "auto": dense up to 3000 rows, then vecchia (inducing for covariances
        that it does not take, and where `inducing` is given).
    neighbours : int
        "vecchia": rows near it that each row is given.

    Attributes
    ----------
    fit_ : bayessel.fit.Fit
        The fit in units of the data. ``fit_.mode`` is the mode in standardised units (`GPFit` of
        `bayessel.gp.map_result`, with inducing inputs `InducingFit`): ``theta``, ``hessian``, ``optima`` and the rest.
    outputs_ : tuple of GPRegressor or None
        Of several targets: the fit of each, with what is of one process (``covariance_``, ``relevance_``, `to_pymc` …).
    theta_ : (k,) or (S, k) array
        Logarithms of the hyperparameters in use, standardised units: the mode, or the states kept.
    relevance_ : pandas.DataFrame or None
        Per input the length :math:`w_i^{-1/2}` with a 95 % interval (``length``, ``lower``, ``upper``) in units of the
        input, the length without units (``standardised``: short means relevant), w_i (``weight``), and the standard
        deviation of the log length (``std``). Computed when asked for. None where the covariance has no such weights.
    width_ : (m,) array or None
        The same lengths as r of exp(-d²/r²), r = √2 length.
    noise_std_ : float
        Standard deviation of the noise, in units of y.
    log_evidence_, model_evidence_, model_evidence_se_ : float
        log p(y | mode), and with the hyperparameters integrated out by Laplace's approximation at the mode, in nats, in
        units of y; of "mc" by bridge sampling from the draws, or what `evidence` found, with its Monte Carlo error.
    kind_ : str
        What ``log_evidence_`` is: "type2" (exact), "type2-vecchia", or "bound" with inducing inputs (from above:
        ``fit_.mode.upper``).
    method_ : "dense", "vecchia" or "inducing"; `describe` says why, and what the approximation costs.
    trace_ : xarray.DataTree
        "mc": all draws, as ArviZ reads them, in standardised units; else None. Its ``log_likelihood`` has for each row
        log p(y_i | y_−i, θ), a density in units of y: made when it is first read, for `arviz.loo` and `arviz.compare`.
    pareto_k_ : (N,) array
        "mc", once rows were left out: shapes of the tails of their importance weights; above 0.7 they are unsure.
    status_, notes_ : Status, tuple of Status
        How the fit ended, with advice, and all remarks. Of chains, CONVERGED asks what predictions need (R-hat at most
        1.05, 50 effective draws); `bayessel.diagnostics.convergence` asks more, for single hyperparameters.
    history_ : list of dict
        The steps of the optimiser.
    fingerprint_, target_fingerprint_, version_ : str
        Names of the training data and of its target; version of bayessel that fitted.

    References
    ----------
    Rasmussen (1996), Evaluation of Gaussian Processes and other Methods for Non-linear Regression, ch. 4.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(60, 2))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> model = GPRegressor().fit(X, y)
    >>> bool(model.relevance_["length"][0] < model.relevance_["length"][1])
    True
    >>> mean, std = model.predict([[0.5, 0.0], [9.0, 0.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(0.5)) < 0.1), bool(std[1] > 3 * std[0])
    (True, True)
    """

    _several_outputs = True
    _rows: tuple[FloatArray, FloatArray]
    _run: _chains.Chains | None
    _mixed: MixedProcess | None
    _records: Records
    _mode: Any
    _chosen: ChosenMethod
    fit_: ProcessInDataUnits | LatentInDataUnits | SeveralProcesses

    def __init__(
        self,
        inference: ProcessInference = "auto",
        covariance: Covariance | None = None,
        time_budget: float | str | None = None,
        random_state: Seed = None,
        standardise: bool = True,
        draws: int = 250,
        tune: int = 250,
        chains: int = 2,
        n_states: int = 100,
        sampler: Literal["tuned", "1996"] = "tuned",
        inducing: int | None = None,
        cores: int | None = None,
        progressbar: bool = True,
        missing: Missing = "error",
        likelihood: ProcessLikelihood = "gaussian",
        method: str = "auto",
        neighbours: int = 30,
    ) -> None:
        self.likelihood = likelihood
        self.method = method
        self.neighbours = neighbours
        self.inference = inference
        self.covariance = covariance
        self.time_budget = time_budget
        self.random_state = random_state
        self.standardise = standardise
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.n_states = n_states
        self.sampler = sampler
        self.inducing = inducing
        self.cores = cores
        self.progressbar = progressbar
        self.missing = missing

    # ---- fitting

    @without_weights
    def fit(self, X: ArrayLike, y: ArrayLike, exposure: ArrayLike | None = None) -> Self:
        """Fit to inputs (N, D) and a target (N,), or K targets (N, K), each with a process of its own.

        Parameters
        ----------
        X, y
        exposure : (N,) array, optional
            Of counts: what each was counted in (hours, persons, areas). Predictions are for an exposure of one.
        """
        given, (X, y) = X, validated_regression(self, X, y, reset=True)
        self._check_parameters(*X.shape)
        if y.ndim == 2:
            fit_processes(self, given, X, y, exposure)
            return self
        if self.likelihood != "gaussian" or exposure is not None:
            return self._fit_latent(X, y, exposure)
        self.fingerprint_, self.target_fingerprint_ = fingerprint(X, y), fingerprint(y)
        self._records = records_of(self, X, y)
        X, y = self._records.X, self._records.y
        self._units = Standardisation.none(X.shape[1])
        if self.standardise:
            self._units = Standardisation.of(X, y, robust=self.inference == "auto")
        self._rows = self._units.inputs(X), self._units.targets(y)
        fresh = self.random_state is not None or self.inference == "mc"
        self._seed, began = chosen_seed(self.random_state) if fresh else 0, perf_counter()
        with few_threads_of_cholesky(len(X)):
            self._mode = found_mode(
                *self._rows, self.covariance, self.method_, self.inducing, self.neighbours, self._seed
            )
            self._mixed, share = None, 1.0
            if self.inference != "mc":
                self._mode, share = witnessed(self._mode, self.covariance, self._seed)
            if self.inference == "auto" and self.method_ == "dense":
                self._mixed = mixed_process(self._mode, share, self._seed)
                self._mode = self._mixed.mode
        self._run = _chains.Chains(self._settings()) if self.inference == "mc" else None
        # who interrupts the search for the mode does not want the chains after it
        if self._run is not None and self._mode.status is not Status.INTERRUPTED:
            seconds = as_seconds(self.time_budget)
            if seconds is not None:
                seconds = max(seconds - (perf_counter() - began), _AT_LEAST)
            self._sample(self._run, self.draws, seconds)
        self._finish()
        return self

    def _fit_latent(self, X: FloatArray, y: FloatArray, exposure: ArrayLike | None) -> Self:
        """Fit with another noise than normal."""
        self.fit_ = fitted_latent(self, X, y, exposure)
        self.fingerprint_, self.target_fingerprint_ = self.fit_.fingerprint, self.fit_.target_fingerprint
        self._records, self._units, self._mode = Records(X, y, None), self.fit_.units, self.fit_.inner.mode
        self._rows = self._mode.marginal.X, self._mode.marginal.t
        self._run, self._mixed, self.theta_ = None, None, self._mode.theta
        self._show()
        return self

    def _check_parameters(self, n: int, inputs: int) -> None:
        _chains.check_settings(self.get_params(deep=False), ("auto", "map", "mc"), ("cores",))
        one_of(self.sampler, "sampler", ("tuned", "1996"))
        one_of(self.likelihood, "likelihood", ("gaussian", *LATENT))
        as_count(self.neighbours, "neighbours")
        self._chosen = chosen_method(
            self.method, n, inputs, self.covariance, self.inducing, self.inference, self.likelihood
        )
        self.method_ = self._chosen.name
        if self.method_ == "dense":
            check_rows(n)

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in OF_CHAINS}

    def continue_fit(self, draws: int | None = None, time_budget: float | str | None = None) -> Self:
        """Go on with the chains of a fit with ``inference="mc"``, also one that was pickled.

        Parameters
        ----------
        draws
            Draws per chain in the end, those there are included; never fewer than these. None: as many as the
            estimator was made for.
        time_budget
            For this call. None: until all are drawn.

        Notes
        -----
        However often it was stopped, a run has the draws of one that never was. So the settings of the chains must be
        those of the fit.
        """
        check_is_fitted(self)
        if self._run is None:
            raise ValueError("continue_fit goes on with chains; this fit has none: use inference='mc'")
        seconds = as_seconds(time_budget)
        draws = as_count(self.draws if draws is None else draws, "draws")
        self._run.refuse_other(self._settings(), draws)
        self._sample(self._run, draws, seconds)
        # that of the data and the model, which are the same
        self._finish(getattr(self.fit_.inner, "audited", None))
        return self

    def _sample(self, run: _chains.Chains, draws: int, seconds: float | None) -> None:
        """Run the chains, or go on with them."""
        model = self.to_pymc()
        run.run(
            model,
            step=_chains.step(model, len(self._rows[1]), self.sampler),
            draws=draws,
            tune=self.tune,
            chains=self.chains,
            cores=self.cores,
            random_seed=self._seed,
            time_budget=seconds,
            initvals=_chains.starts(self._mode, self.chains),
            log_likelihood=False,
            progressbar=self.progressbar,
        )

    def _finish(self, audited: Evidence | None = None) -> None:
        """Choose the states that predict, and say how it went."""
        inner: GPFit | MixedProcess | SampledProcess = self._mixed or self._mode
        self.theta_ = self._mode.theta
        if self._run is not None and self._run.trace is not None:
            inner = sampled_process(self._mode, self._run, self.n_states, audited)
            self.theta_ = inner.thetas if isinstance(inner, SampledProcess) else self._mode.theta[None]
        why = f"computed by method='{self.method_}' ({self._chosen.why})"
        self.fit_ = ProcessInDataUnits(inner, self._units, *self._records.names, method=why)
        self._show()

    def _show(self) -> None:
        """Attributes of the fit, and a warning where it deserves one."""
        self.history_ = [dict(step) for step in self.fit_.history]
        self.notes_ = (*self.fit_.notes, *self._records.notes)
        self.status_ = worst([self.fit_.status, *self._records.notes])
        self.noise_std_ = self.fit_.noise_std
        self._warn()

    # ---- predicting

    predict = _mixture_predictions.predict
    predict_median = _mixture_predictions.predict_median
    predictive = _mixture_predictions.predictive
    log_predictive_density = _mixture_predictions.log_predictive_density
    describe = _description.describe

    _components = _process_predictions.components
    _piece = _process_predictions.piece
    _operations = _process_predictions.operations
    _mixture = _process_predictions.mixture
    _log_density = _process_predictions.log_density

    def leave_one_out(self) -> LeaveOneOut:
        """Each training row predicted from all others, in units of y.

        Exact for the mode (its hyperparameters stay). "mc": the hyperparameters too are those without the row, by
        importance weights, Pareto-smoothed, as `arviz.loo` finds them from `trace_`.
        """
        check_is_fitted(self)
        inner, n = self.fit_.inner, len(self._rows[1])
        states = len(inner.every) if isinstance(inner, SampledProcess) else 1
        with few_threads_of_cholesky(n), progress_of(self.progressbar, states, states * n**3.0, "leaving out") as tell:
            return self._records.of_rows_given(self.fit_.leave_one_out(tell))

    # ---- looking at it

    evidence = _process_evidence.process_evidence
    outputs_ = property(several_targets.outputs)

    @property
    def trace_(self) -> xr.DataTree | None:
        """All draws, with the log density of each row; of several targets see ``outputs_``."""
        check_is_fitted(self)
        return None if isinstance(self.fit_, SeveralProcesses) else trace_with_terms(self._run, self.fit_)

    @property
    def model_evidence_(self) -> float:
        """log p(y), the hyperparameters integrated out; computed when first asked for."""
        check_is_fitted(self)
        return self.fit_.model_evidence.value

    model_evidence_se_ = property(_process_evidence.error)

    @property
    def pareto_k_(self) -> FloatArray:
        """Shapes of the tails of the rows' importance weights, (N,)."""
        check_is_fitted(self)
        if not isinstance(self.fit_.inner, SampledProcess):
            raise AttributeError("pareto_k_ is of draws, and this fit has none")
        return self.fit_.inner.pareto_k

    def to_pymc(self) -> pm.Model:
        """The model in standardised units as a `pymc.Model`, RV ``theta``, with the prior of the draws of "auto"."""
        self._one_output("to_pymc")
        from bayessel.models import gp

        options = {"prior": prior_of_draws(self._mode) if self._mixed else None, **declared_method(self._mode)}
        return gp(*self._rows, self._mode.covariance, names=self.input_encoding_.names, **options)
