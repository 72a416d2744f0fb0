"""What the estimators of networks share: parameters, how a fit goes on, its evidence, and what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel._types import Missing, NetworkInference, Seed
from bayessel.estimators import _description
from bayessel.estimators._annealed import annealed, sampled_evidence
from bayessel.estimators._chains import check_settings
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._network import INFERENCES, MAY_BE_NONE, NetworkRun
from bayessel.estimators._terms_of_trace import trace_with_terms
from bayessel.estimators.base import Versioned
from bayessel.estimators.standardise import Standardisation
from bayessel.fit import LeaveOneOut
from bayessel.mlp import Weights

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr

    from bayessel.marginal_likelihood.model_evidence import ModelEvidence

#: numbers of all hidden units of all networks that are held at a time
CHUNK = 2_000_000


class NetworkEstimator(Versioned):
    """Base of `MLPRegressor` and `MLPClassifier`; not for direct use."""

    _run: NetworkRun
    _rows: tuple[FloatArray, npt.NDArray[Any]]
    fit_: FitInDataUnits
    hidden_: int

    def __init__(
        self,
        inference: NetworkInference = "auto",
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
        missing: Missing = "error",
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
        self.missing = missing

    # ---- fitting

    def _begin(
        self, X: FloatArray, y: npt.NDArray[Any], kind: str, single: bool, classes: npt.NDArray[Any] | None = None
    ) -> None:
        """Sample, train or search: inputs and targets in the user's units, classes by their numbers."""
        settings = self.get_params(deep=False)
        check_settings(settings, INFERENCES, MAY_BE_NONE)
        outputs = y if classes is None else y.astype(float)
        units = Standardisation.of(X, outputs) if self.standardise else Standardisation.none(X.shape[1])
        self.fingerprint_, self.target_fingerprint_ = names = fingerprint(X, y), fingerprint(y)
        targets = units.targets(y).reshape(len(y), -1) if classes is None else y
        run = NetworkRun(settings, units.inputs(X), targets, kind, single, units, names, classes)
        self._show(run, run.begin())

    def _show(self, run: NetworkRun, fit: FitInDataUnits) -> None:
        """Set what users of scikit-learn look for, and warn where the status deserves it."""
        self._run, self._rows, self.fit_ = run, run.rows, fit
        self.hidden_ = run.hidden
        if run.chains is not None:
            self.discarded_ = run.plan.tune + fit.inner.discarded
        self.notes_, self.status_ = fit.notes, fit.status
        self.history_ = [dict(one) for one in fit.history]
        self._warn()

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
        be those of the fit. With "auto" the weights that refitted folds gave stay.
        """
        check_is_fitted(self)
        self._show(self._run, self._run.go_on(self.get_params(deep=False), self.fit_, draws, time_budget))
        return self

    def evidence(
        self,
        n_particles: int = 100,
        n_runs: int = 8,
        n_pilots: int = 4,
        updates: int = 2,
        n_leapfrog: int = 20,
        time_budget: float | str | None = None,
        random_state: Seed = None,
        effort: float = 1.0,
    ) -> ModelEvidence:
        r"""Estimate log p(y) with weights and all precisions integrated out, and keep it for comparisons.

        .. math:: p(y) = \int p(y|w, s)\, p(w|s)\, p(s)\, dw\, ds

        By annealing from the prior up, with a reference about the draws of the chains, and from these draws down, which
        errs to the other side; the two judge each other as the routes of `bayessel.evidence` do. It becomes the
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
        effort : float
            How many times `n_particles`.

        Returns
        -------
        bayessel.marginal_likelihood.model_evidence.ModelEvidence
            In nats and in units of y, with the routes "annealing" and "annealing, down" (of runs with ten draws of the
            chains for each); `print` it. Its ``engine`` has pilot runs, temperatures and moves. Stopped with Ctrl-C it
            is of the runs there are.

        Warns
        -----
        SamplingWarning
            The number is not reliable, or the chains have missed what annealing has found.

        Notes
        -----
        The prior is that of `bayessel.models.mlp` in standardised units, which were read off the data: so do all models
        here that standardise. Distrust an error above 0.3 nats (`status` UNSURE_EVIDENCE): the runs then found
        different things, and the true value is rather above than below.

        References
        ----------
        Neal (2001), Statistics and Computing 11, 125; Del Moral, Doucet and Jasra (2006), JRSS B 68, 411.
        """
        check_is_fitted(self)
        options = {"n_pilots": n_pilots, "updates": updates, "n_leapfrog": n_leapfrog}
        found, self.fit_ = annealed(
            self._run, self.fit_, time_budget, random_state, n_particles, n_runs, effort, **options
        )
        return found

    # ---- predicting

    def leave_one_out(self) -> LeaveOneOut:
        """Each training row predicted from all others, noise included, in units of y; of a class, its indicator.

        "mc": by importance weights of the draws, Pareto-smoothed. "early-stopping": by the networks that held the row
        out; NaN where there is none. "evidence": as if outputs were linear in the weights about the best ones, at the
        precisions of all rows.
        """
        check_is_fitted(self)
        return self.fit_.leave_one_out()

    describe = _description.describe

    # ---- looking at it

    @property
    def trace_(self) -> xr.DataTree | None:
        """All draws after tuning as ArviZ reads them, with the log density of each row; None where there are none."""
        check_is_fitted(self)
        return trace_with_terms(self._run.chains, self.fit_)

    @property
    def weights_(self) -> Weights:
        """Weights of the networks in use by name, in standardised units; the networks are the first axis."""
        check_is_fitted(self)
        weights: Weights = self.fit_.inner.networks.weights
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
        """Slopes along the inputs with central 95 % intervals over the networks."""
        check_is_fitted(self)
        return self._run.relevance(self.fit_, self.input_encoding_.names)

    def to_pymc(self) -> pm.Model:
        """The model in standardised units as a `pymc.Model`, for samplers of your own."""
        check_is_fitted(self, "_run")
        return self._run.model()
