"""What networks that regress and networks that classify share: fitting, going on, relevance of the inputs."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Self, override

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, as_count, as_flag, chosen_seed, one_of
from bayessel._numerics import few_threads
from bayessel.errors import SamplingWarning
from bayessel.estimators import _chains
from bayessel.estimators._annealed import Annealed
from bayessel.estimators._arguments import HERE, Versioned
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._sampled import Sampled
from bayessel.estimators._sampled_networks import SampledNetworks, constant_network, networks_of
from bayessel.estimators.standardise import Standardisation
from bayessel.fit import Status, worst
from bayessel.mlp import NetworkEvidenceFit, fit_early_stopping, fit_network_evidence
from bayessel.mlp.network import Architecture, Weights, hidden_units
from bayessel.mlp.networks import Networks
from bayessel.work.progress import LONG, progress_of

if TYPE_CHECKING:
    import pandas as pd

INFERENCES = ("mc", "early-stopping", "evidence")
#: draws of tuning and after it, when nothing else is said: a third of the run is discarded (Rasmussen 1996, § 3.7)
TUNE, DRAWS = 100, 200
#: seconds that a draw takes about, then
SECONDS_PER_DRAW = 0.03
#: seconds of an update of a hundred steps, and those for each row and weight: about, and no matter if not
SECONDS_PER_UPDATE, SECONDS_PER_ROW = 2e-4, 3.5e-8
#: fewest draws of tuning, however short the time
LEAST_TUNE = 10
#: updates that a stored draw has at most
MOST_UPDATES = 1000
#: draws that a run on time ends with, if time does not end it
MOST_DRAWS = 1_000_000
#: seconds of work below which other processes are not worth starting
SHORT = 30.0
#: training rows at which chains are asked whether they agree
PROBES = 10


class Plan(NamedTuple):
    """How the chains run: updates between stored draws, draws of tuning, draws after it, nominal seconds of it all."""

    updates: int
    tune: int
    draws: int
    seconds: float


class NetworkEstimator(Annealed, Sampled, Versioned):
    """Base of `MLPRegressor` and `MLPClassifier`; not for direct use."""

    _of_chains = ("tune", "chains", "updates_per_draw")
    _units: Standardisation
    _rows: tuple[FloatArray, npt.NDArray[Any]]
    _kind: str
    _single: bool
    fit_: FitInDataUnits
    n_features_in_: int
    history_: list[dict[str, Any]]

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

    def _check_parameters(self) -> None:
        one_of(self.inference, "inference", INFERENCES)
        as_flag(self.standardise, "standardise")
        as_flag(self.progressbar, "progressbar")
        for name in ("chains", "n_states"):
            as_count(getattr(self, name), name)
        for name in ("draws", "updates_per_draw", "cores"):
            if getattr(self, name) is not None:
                as_count(getattr(self, name), name)
        if self.tune is not None:
            as_count(self.tune, "tune", 0)
        if self.time_budget is not None:
            _chains.as_seconds(self.time_budget)

    def _fit_network(self, X: FloatArray, t: npt.NDArray[Any], outputs: int, kind: str) -> None:
        """Fit to standardised inputs and targets (n, K), or classes (n,); `_single` says whether they have one axis."""
        # the order in memory is in the last bits of sums, and so in the draws
        self._rows, self._kind = (np.ascontiguousarray(X), np.ascontiguousarray(t)), kind
        self._seed = chosen_seed(self.random_state)
        self._remember_version()
        self.__dict__.pop("fit_", None)
        self._no_chains_yet(self.inference == "mc")
        seconds = None if self.time_budget is None else _chains.as_seconds(self.time_budget)
        if self._samples:
            self.hidden_ = hidden_units(self.hidden, len(X), X.shape[1], outputs)
            self._architecture = Architecture(X.shape[1], self.hidden_, outputs)
            self._plan = self._planned(seconds)
            self._sample(self._plan.draws, seconds)
        elif self.inference == "early-stopping":
            self._train(seconds)
        else:
            self._climb(seconds)
        self._finish()

    def _data(self) -> tuple[FloatArray, npt.NDArray[Any]]:
        """Standardised inputs and targets in the shape in which the user gave them."""
        X, t = self._rows
        return X, t[:, 0] if self._single and t.ndim == 2 else t

    def _hold(self, engine: Any) -> None:
        """Keep a fit in standardised units."""
        classes = getattr(self, "classes_", None)
        self.fit_ = FitInDataUnits(engine, self._units, self.fingerprint_, self.target_fingerprint_, classes)

    def _train(self, seconds: float | None, state: Any = None) -> None:
        """An ensemble, from the beginning or from where one stands."""
        with few_threads(0), progress_of(self.progressbar, 1000, LONG, "training") as tell:
            found = fit_early_stopping(
                *self._data(),
                hidden=self.hidden,
                kind=self._kind,
                time_budget=seconds,
                random_state=self._seed,
                progress=None if tell is None else lambda used, budget: tell(1000 * used // max(budget, 1), 1000),
                state=state,
            )
        self._hold(found)

    def _climb(self, seconds: float | None) -> None:
        """The most probable network."""
        with progress_of(self.progressbar, 1000, LONG, "searching") as tell:
            found = fit_network_evidence(
                *self._data(),
                hidden=self.hidden,
                kind=self._kind,
                time_budget=seconds,
                random_state=self._seed,
                progress=None if tell is None else lambda done, starts: tell(1000 * done // max(starts, 1), 1000),
            )
        self._hold(found)

    @override
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
        if draws is None and time_budget is None and self.draws is None:
            time_budget = self.time_budget
        if self._samples or isinstance(self.fit_.engine, NetworkEvidenceFit):
            return super().continue_fit(draws, time_budget)
        if draws is not None:
            raise ValueError("draws are of chains, and this fit has networks: pass time_budget alone")
        self._train(None if time_budget is None else _chains.as_seconds(time_budget), self.fit_.engine.state)
        self._finish()
        return self

    def _planned(self, seconds: float | None) -> Plan:
        """Updates and draws from the size of the problem and the time there is, never from a clock."""
        chains = as_count(self.chains, "chains")
        update = SECONDS_PER_UPDATE + SECONDS_PER_ROW * len(self._rows[0]) * self._architecture.size
        share = np.inf if seconds is None else seconds / chains  # of one chain, when one works at a time
        if self.updates_per_draw is not None:
            updates = self.updates_per_draw
        else:
            wanted = min(SECONDS_PER_DRAW, share / (TUNE + DRAWS))
            updates = int(np.clip(round(wanted / update), 1, MOST_UPDATES))
        tune = TUNE if self.tune is None else self.tune
        if self.tune is None and seconds is not None:
            # half of what will be discarded, so that there are draws on a slower machine, too
            tune = int(np.clip(share / 6.0 / (updates * update), LEAST_TUNE, TUNE))
        if self.draws is not None:
            draws = self.draws
        else:
            draws = DRAWS if seconds is None else MOST_DRAWS
        nominal = chains * (tune + draws) * updates * update
        return Plan(updates, tune, draws, nominal if seconds is None else min(nominal, seconds))

    @override
    def _draws_in_the_end(self) -> int:
        there = 0 if self.trace_ is None else self.trace_["posterior"].sizes["draw"]
        return max(
            self._plan.draws if self.draws is None else as_count(self.draws, "draws"), there * (self.draws is None)
        )

    @override
    def _sample(self, draws: int, seconds: float | None) -> None:
        from bayessel.samplers._steps import steps

        model = self.to_pymc()
        with model:
            step = steps(model, updates_per_draw=self._plan.updates)
        cores = self.cores
        if cores is None and self._plan.seconds < SHORT:
            cores = 1  # starting processes takes seconds
        self.trace_, self._archive = _chains.run(
            self._archive,
            model,
            step=step,
            draws=draws,
            tune=self._plan.tune,
            chains=self.chains,
            cores=cores,
            random_seed=self._seed,
            time_budget=seconds,
            log_likelihood=False,
            progressbar=self.progressbar,
        )

    @override
    def _how_it_ended(self) -> list[Status]:
        """Time that ends a run without a number of draws ends it as planned."""
        found = super()._how_it_ended()
        planned = self.draws is None and self.trace_["posterior"].sizes["draw"] > 0
        return [note for note in found if not (planned and note is Status.TIME_BUDGET)]

    @override
    def _finish(self) -> None:
        if self._samples:
            self._finish_chains()
        else:
            engine = self.fit_.engine
            self._architecture = engine.networks.architecture
            self.hidden_ = self._architecture.hidden
        self.notes_, self.history_ = self.fit_.notes, [dict(one) for one in self.fit_.history]
        self.status_ = self.fit_.status
        self._warn()

    def _finish_chains(self) -> None:
        """States of the last two thirds of the run, evenly spread."""
        notes, posterior = self._about_the_data() + self._how_it_ended(), self.trace_["posterior"]
        made = posterior.sizes["draw"]
        burnt = max(0, -(-(self._plan.tune + made) // 3) - self._plan.tune)
        self.discarded_ = self._plan.tune + burnt
        networks, noise = self._without_draws()
        if made:
            every = networks_of(posterior, slice(burnt, None), self._architecture, networks)
            notes += _chains.disagreement(self._probed(*every, made - burnt))
            kept = _chains.kept_draws(made - burnt, self.chains, self.n_states)
            networks, noise = networks_of(posterior, [burnt + k for k in kept], self._architecture, networks)
        else:
            said = f"{self.trace_.attrs['advice']}; until then predictions are those of no input at all"
            warnings.warn(said, SamplingWarning, skip_file_prefixes=HERE)
        X, t = self._rows
        engine = SampledNetworks(
            networks=networks,
            noise=noise,
            rows=X,
            target=t,
            posterior=posterior if made else None,
            discarded=burnt,
            status=worst(_chains.without_what_is_no_news(notes)),
            notes=tuple(notes),
            history=tuple(self._told()),
            n_rows=len(X),
            fingerprint=self.fingerprint_,
            target_fingerprint=self.target_fingerprint_,
            seconds=float(self.trace_.attrs["sampling_time"]),
            # of the data and the model, which are the same
            evidence=self.fit_.engine.evidence if hasattr(self, "fit_") else None,
        )
        self._hold(engine)

    def _has_draws(self) -> bool:
        return self.trace_ is not None and self.trace_["posterior"].sizes["draw"] > 0

    def _probed(self, networks: Networks, noise: FloatArray, draws: int) -> FloatArray:
        """What chains are compared by, (chains, draws, k): outputs at some rows, and log variances of the noise.

        Weights would not do: hidden units exchange their roles.
        """
        X = self._rows[0]
        rows = X[np.unique(np.linspace(0, len(X) - 1, PROBES).astype(int))]
        f = networks.outputs(rows)
        parts = [f.reshape(len(f), -1)]
        if self._kind == "gaussian":
            parts.append(np.log(noise))
        return np.concatenate(parts, axis=1).reshape(-1, draws, sum(part.shape[1] for part in parts))

    def _told(self) -> list[dict[str, Any]]:
        """What the sampler says of each chain."""
        stats = self.trace_["sample_stats"]
        if not self.trace_["posterior"].sizes["draw"]:
            return []
        rate, size, diverging = (stats[name].values for name in ("acceptance_rate", "step_size", "diverging"))
        return [
            {
                "chain": chain,
                "draws": rate.shape[1],
                "updates_per_draw": self._plan.updates,
                "acceptance_rate": float(rate[chain].mean()),
                "step_size": float(size[chain].mean()),
                "diverging": int(diverging[chain].sum()),
            }
            for chain in range(len(rate))
        ]

    def _about_the_data(self) -> list[Status]:
        X, t = self._rows
        if len(X) <= 2:
            return [Status.TOO_FEW_ROWS]
        return [Status.CONSTANT_TARGET] if not np.ptp(t, axis=0).any() else []

    def _constant(self, bias: FloatArray) -> Networks:
        """One network whose outputs are its biases."""
        return constant_network(self._architecture, self._kind, self._single, bias)

    def _without_draws(self) -> tuple[Networks, FloatArray]:
        """What stands in for draws where there is none yet, and the variance of its noise."""
        raise NotImplementedError

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

    def _relevance(self) -> pd.DataFrame:
        """Slopes along the inputs over networks, standardised, and scales of the weights of each input."""
        import pandas as pd

        slopes = self.fit_.engine.networks.rms_slopes(self._rows[0])
        low, middle, high = np.quantile(slopes, [0.025, 0.5, 0.975], axis=0)
        if len(slopes) == 1:
            low, high = np.full((2, slopes.shape[1]), np.nan)
        table = pd.DataFrame({"slope": middle, "lower": low, "upper": high, "standardised": middle})
        names = getattr(self, "feature_names_in_", None)
        table.index = pd.Index(range(len(table)) if names is None else names, name="input")
        for column, tau in (("hidden", "tau_input_hidden"), ("direct", "tau_input_output")):
            table[column] = np.nan
            if self._has_draws():
                draws = self.trace_["posterior"][tau].values[:, self.discarded_ - self._plan.tune :]
                table[column] = np.median(draws, axis=(0, 1)) ** -0.5
            elif isinstance(self.fit_.engine, NetworkEvidenceFit):
                table[column] = [self.fit_.engine.alpha[f"{tau[4:]}[{i}]"] ** -0.5 for i in range(len(table))]
        return table

    def to_pymc(self) -> Any:
        """The model in standardised units as a `pymc.Model`, for samplers of your own."""
        from bayessel.models import mlp

        check_is_fitted(self, "hidden_")
        return mlp(*self._data(), self.hidden_, likelihood=self._kind)
