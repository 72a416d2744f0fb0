"""Networks behind the estimators: one run of sampling, training or searching, and how it goes on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_count, as_seconds, chosen_seed
from bayessel._numerics import few_threads
from bayessel.errors import SamplingWarning
from bayessel.estimators import _chains
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._sampled_networks import SampledNetworks, constant_network, networks_of
from bayessel.estimators._witnessed_networks import NetworkWitness, WitnessedNetworks, notes_beside, witness_of
from bayessel.estimators.base import HERE
from bayessel.estimators.held_out import N_FOLDS
from bayessel.estimators.standardise import Standardisation
from bayessel.fit import Status, worst
from bayessel.mlp import fit_early_stopping, fit_network_evidence
from bayessel.mlp.architecture import Architecture, hidden_units
from bayessel.mlp.evidence_result import NetworkEvidenceFit
from bayessel.mlp.network_fit import Networks
from bayessel.work.interrupts import InterruptGuard
from bayessel.work.progress import LONG, progress_of

if TYPE_CHECKING:
    import pandas as pd

INFERENCES = ("auto", "mc", "early-stopping", "evidence")
#: parameters that have a value of their own for None
MAY_BE_NONE = ("draws", "tune", "updates_per_draw", "cores")
#: parameters that chains which go on cannot change
OF_CHAINS = ("tune", "chains", "updates_per_draw")
#: draws of tuning and after it, when nothing else is said: a third of the run is discarded (Rasmussen 1996, § 3.7)
TUNE, DRAWS = 100, 200
#: seconds that a draw takes about, then
SECONDS_PER_DRAW = 0.03
#: seconds of an update of two hundred steps, and those for each row and weight: about, and no matter if not
SECONDS_PER_UPDATE, SECONDS_PER_ROW = 4e-4, 7e-8
#: fewest draws of tuning, however short the time
LEAST_TUNE = 10
#: seconds that the folds get when the chains have taken all
AT_LEAST = 1e-3
#: updates that a stored draw has at most
MOST_UPDATES = 1000
#: draws that a run on time ends with, if time does not end it
MOST_DRAWS = 1_000_000
#: seconds of work below which other processes are not worth starting
SHORT = 30.0
#: share of the time that the chains have where folds are sampled anew, each of which has a third of the rest
OF_ALL_ROWS = 4.0 / 7.0
#: draws of tuning and after it in a fold
FOLD_TUNE, FOLD_DRAWS = 50, 100
#: training rows at which chains are asked whether they agree
PROBES = 10


class SamplingPlan(NamedTuple):
    """How the chains run: updates between stored draws, draws of tuning, draws after it, nominal seconds of it all."""

    updates: int
    tune: int
    draws: int
    seconds: float


def planned(settings: dict[str, Any], n: int, size: int, share: float = 1.0) -> SamplingPlan:
    """Updates and draws for n rows, `size` weights and this share of the time there is, never from a clock."""
    chains, given = as_count(settings["chains"], "chains"), as_seconds(settings["time_budget"])
    seconds = None if given is None else share * given
    update = SECONDS_PER_UPDATE + SECONDS_PER_ROW * n * size
    each = np.inf if seconds is None else seconds / chains  # of one chain, when one works at a time
    updates = settings["updates_per_draw"]
    if updates is None:
        wanted = min(share * SECONDS_PER_DRAW, each / (TUNE + DRAWS))
        updates = int(np.clip(round(wanted / update), 1, MOST_UPDATES))
    tune = TUNE if settings["tune"] is None else settings["tune"]
    if settings["tune"] is None and seconds is not None:
        # half of what will be discarded, so that there are draws on a slower machine, too
        tune = int(np.clip(each / 6.0 / (updates * update), LEAST_TUNE, TUNE))
    draws = settings["draws"]
    if draws is None:
        draws = DRAWS if seconds is None else MOST_DRAWS
    nominal = chains * (tune + draws) * updates * update
    return SamplingPlan(updates, tune, draws, nominal if seconds is None else min(nominal, seconds))


class NetworkRun:
    """One run on standardised data.

    Attributes
    ----------
    settings : dict
        Parameters of the estimator.
    rows : (n, D) array, (n, K) array
        Standardised inputs and targets; classes as their numbers (n,).
    kind : str
        "gaussian", "logistic" or "softmax".
    single : bool
        The user's target has one axis.
    units, names, classes
        For `FitInDataUnits`; the names are the fingerprints of all data and of the target.
    chains : Chains or None
        Of sampling, with `plan` and `architecture`.
    witness : NetworkWitness or None
        Of "auto": what refitted folds say.
    seconds_of_folds : float
        What that took.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        X: FloatArray,
        t: npt.NDArray[Any],
        kind: str,
        single: bool,
        units: Standardisation,
        names: tuple[str, str],
        classes: npt.NDArray[Any] | None = None,
    ) -> None:
        self.settings = settings
        # the order in memory is in the last bits of sums, and so in the draws
        self.rows = np.ascontiguousarray(X), np.ascontiguousarray(t)
        self.kind, self.single, self.units, self.names, self.classes = kind, single, units, names, classes
        self.seed = chosen_seed(settings["random_state"])
        self.chains: _chains.Chains | None = None
        self.witness: NetworkWitness | None = None
        self.seconds_of_folds = 0.0

    @property
    def data(self) -> tuple[FloatArray, npt.NDArray[Any]]:
        """Standardised inputs and targets in the shape in which the user gave them."""
        X, t = self.rows
        return X, t[:, 0] if self.single and t.ndim == 2 else t

    def begin(self) -> FitInDataUnits:
        """Sample, train or search."""
        settings, seconds = self.settings, as_seconds(self.settings["time_budget"])
        if settings["inference"] == "early-stopping":
            return self._train(seconds)
        if settings["inference"] == "evidence":
            return self._search(fit_network_evidence, "searching", seconds)
        X, t = self.rows
        outputs = t.shape[1] if t.ndim == 2 else 1 if self.kind == "logistic" else int(t.max()) + 1
        hidden = hidden_units(settings["hidden"], len(X), X.shape[1], outputs)
        self.architecture = Architecture(X.shape[1], hidden, outputs)
        self.plan = planned(settings, len(X), self.architecture.size, self._share)
        self.chains = _chains.Chains({name: settings[name] for name in OF_CHAINS})
        return self._sample(self.chains, self.plan.draws, seconds, None)

    @property
    def _witnessed(self) -> bool:
        """Whether folds are fitted anew: of one real target."""
        return self.settings["inference"] == "auto" and self.kind == "gaussian" and self.single

    @property
    def _share(self) -> float:
        """Share of the time for the chains on all rows."""
        return OF_ALL_ROWS if self._witnessed and self.witness is None else 1.0

    def go_on(
        self, settings: dict[str, Any], fit: FitInDataUnits, draws: int | None, time_budget: Any
    ) -> FitInDataUnits:
        """Go on from a fit with the present settings; see `MLPRegressor.continue_fit`."""
        if draws is None and time_budget is None and settings["draws"] is None:
            time_budget = settings["time_budget"]
        seconds = as_seconds(time_budget)
        if self.chains is None:
            if isinstance(fit.inner, NetworkEvidenceFit):
                raise ValueError("continue_fit goes on with chains; this fit has none: use inference='mc'")
            if draws is not None:
                raise ValueError("draws are of chains, and this fit has networks: pass time_budget alone")
            self.settings = settings
            return self._train(seconds, fit.inner.state)
        if draws is None:
            draws = max(self.plan.draws, self.chains.n_draws) if settings["draws"] is None else settings["draws"]
        draws = as_count(draws, "draws")
        self.chains.refuse_other(settings, draws)
        self.settings = settings
        # the evidence is of the data and the model, which are the same
        return self._sample(self.chains, draws, seconds, fit.inner.evidence)

    def model(self) -> Any:
        """The model in standardised units."""
        from bayessel.models import mlp

        kinds = self.hidden if self.chains is None else self.architecture.hidden
        return mlp(*self.data, kinds, likelihood=self.kind)

    # ---- the three ways

    def _hold(self, inner: Any) -> FitInDataUnits:
        self.hidden = inner.networks.architecture.hidden
        return FitInDataUnits(inner, self.units, *self.names, self.classes)

    def _search(self, fit: Callable[..., Any], said: str, seconds: float | None, **options: Any) -> FitInDataUnits:
        """What an engine without chains finds, with a bar that says what it does."""
        with progress_of(self.settings["progressbar"], 1000, LONG, said) as tell:
            found = fit(
                *self.data,
                hidden=self.settings["hidden"],
                kind=self.kind,
                time_budget=seconds,
                random_state=self.seed,
                progress=None if tell is None else lambda done, most: tell(1000 * done // max(most, 1), 1000),
                **options,
            )
        return self._hold(found)

    def _train(self, seconds: float | None, state: Any = None) -> FitInDataUnits:
        """An ensemble, from the beginning or from where one stands."""
        with few_threads(0):
            return self._search(fit_early_stopping, "training", seconds, state=state)

    def _sample(self, chains: _chains.Chains, draws: int, seconds: float | None, evidence: Any) -> FitInDataUnits:
        """Run the chains, or go on with them; states of the last two thirds of the run, evenly spread."""
        from bayessel.samplers.step_choice import steps

        model, settings = self.model(), self.settings
        with model:
            step = steps(model, updates_per_draw=self.plan.updates)
        cores = settings["cores"]
        if cores is None and self.plan.seconds < SHORT:
            cores = 1  # starting processes takes seconds
        chains.run(
            model,
            step=step,
            draws=draws,
            tune=self.plan.tune,
            chains=settings["chains"],
            cores=cores,
            random_seed=self.seed,
            time_budget=None if seconds is None else self._share * seconds,
            log_likelihood=False,
            progressbar=settings["progressbar"],
        )
        made, posterior = chains.n_draws, chains.trace["posterior"]
        # time that ends a run without a number of draws ends it as planned
        planned_end = settings["draws"] is None and made > 0
        notes = self._about_the_data()
        notes += [note for note in chains.notes() if not (planned_end and note is Status.TIME_BUDGET)]
        burnt = max(0, -(-(self.plan.tune + made) // 3) - self.plan.tune)
        networks, noise = self._without_draws()
        if made:
            every = networks_of(posterior, slice(burnt, None), self.architecture, networks)
            notes += _chains.disagreement(self._probed(*every, made - burnt))
            kept = _chains.kept_draws(made - burnt, settings["chains"], settings["n_states"])
            networks, noise = networks_of(posterior, [burnt + k for k in kept], self.architecture, networks)
        else:
            said = f"{chains.trace.attrs['advice']}; until then predictions are those of no input at all"
            warnings.warn(said, SamplingWarning, skip_file_prefixes=HERE)
        X, t = self.rows
        if made and self._witnessed and self.witness is None and Status.INTERRUPTED not in notes:
            spent = float(chains.trace.attrs["sampling_time"])
            notes += self._look_at_folds(None if seconds is None else max(seconds - spent, AT_LEAST))
        if made and self.witness is not None:
            notes = notes_beside(self.witness, notes)
        kind = SampledNetworks if self.witness is None else partial(WitnessedNetworks, witness=self.witness)
        return self._hold(
            kind(
                networks=networks,
                noise=noise,
                rows=X,
                target=t,
                posterior=posterior if made else None,
                discarded=burnt,
                status=worst(_chains.without_what_is_no_news(notes)),
                notes=tuple(notes),
                history=tuple(self._history(chains.trace["sample_stats"])) if made else (),
                n_rows=len(X),
                fingerprint=self.names[0],
                target_fingerprint=self.names[1],
                seconds=float(chains.trace.attrs["sampling_time"]) + self.seconds_of_folds,
                evidence=evidence,
            )
        )

    def _look_at_folds(self, seconds: float | None) -> list[Status]:
        """Fit folds anew beside the reference; what is to be said of that."""
        changed = {"inference": "mc", "hidden": self.architecture.hidden, "chains": 1, "cores": 1}
        changed |= {"random_state": self.seed, "progressbar": False}
        if seconds is None:
            changed |= {"tune": FOLD_TUNE, "draws": FOLD_DRAWS, "updates_per_draw": self.plan.updates}
            changed["time_budget"] = None
        else:
            changed |= {"tune": None, "draws": None, "updates_per_draw": None}
        began = perf_counter()

        def sample(X: FloatArray, t: FloatArray) -> SampledNetworks:
            units = Standardisation.none(X.shape[1])
            if seconds is not None:  # all that the reference left, in equal parts
                left = max(seconds - (perf_counter() - began), AT_LEAST)
                changed.setdefault("time_budget", left / N_FOLDS)
            found = NetworkRun(self.settings | changed, X, t[:, None], self.kind, True, units, ("", "")).begin().inner
            if Status.INTERRUPTED in found.notes:
                raise KeyboardInterrupt
            return found

        X, t = self.data
        with warnings.catch_warnings(), InterruptGuard() as guard:
            warnings.simplefilter("ignore", SamplingWarning)  # networks without a draw are a constant
            self.witness = witness_of(X, t, sample)
        self.seconds_of_folds = perf_counter() - began
        if guard.interrupted:
            return [Status.INTERRUPTED]
        return [Status.TOO_FEW_ROWS] if self.witness is None and np.ptp(t) > 0.0 else []

    def _about_the_data(self) -> list[Status]:
        X, t = self.rows
        if len(X) <= 2:
            return [Status.TOO_FEW_ROWS]
        if not np.ptp(t, axis=0).any():
            return [Status.CONSTANT_TARGET]
        return [] if np.ptp(X, axis=0).any() else [Status.PURE_NOISE]

    def _without_draws(self) -> tuple[Networks, FloatArray]:
        """What stands in for draws where there is none yet, a constant, and the variance of its noise."""
        t = self.rows[1]
        if self.kind == "gaussian":
            bias, noise = t.mean(axis=0), np.maximum(t.var(axis=0), 1e-12)
        else:
            shares = np.bincount(t)
            bias = np.log(shares / shares.sum())
            bias = bias[1:] - bias[:1] if self.kind == "logistic" else bias
            noise = np.zeros(len(bias))
        return constant_network(self.architecture, self.kind, self.single, bias), noise[None]

    def _probed(self, networks: Networks, noise: FloatArray, draws: int) -> FloatArray:
        """What chains are compared by, (chains, draws, k): outputs at some rows, and log variances of the noise.

        Weights would not do: hidden units exchange their roles.
        """
        X = self.rows[0]
        f = networks.outputs(X[np.unique(np.linspace(0, len(X) - 1, PROBES).astype(int))])
        parts = [f.reshape(len(f), -1)]
        if self.kind == "gaussian":
            parts.append(np.log(noise))
        return np.concatenate(parts, axis=1).reshape(-1, draws, sum(part.shape[1] for part in parts))

    def _history(self, stats: Any) -> list[dict[str, Any]]:
        """What the sampler says of each chain."""
        rate, size, diverging = (stats[name].values for name in ("acceptance_rate", "step_size", "diverging"))
        return [
            {
                "chain": chain,
                "draws": rate.shape[1],
                "updates_per_draw": self.plan.updates,
                "acceptance_rate": float(rate[chain].mean()),
                "step_size": float(size[chain].mean()),
                "diverging": int(diverging[chain].sum()),
            }
            for chain in range(len(rate))
        ]

    # ---- looking at it

    def relevance(self, fit: FitInDataUnits, names: Any) -> pd.DataFrame:
        """Slopes along the inputs over networks, standardised and in units of the data; scales of their weights.

        With several outputs slopes are per unit of standardised outputs.
        """
        import pandas as pd

        inner = fit.inner
        slopes = inner.networks.rms_slopes(self.rows[0])
        low, middle, high = np.quantile(slopes, [0.025, 0.5, 0.975], axis=0)
        if len(slopes) == 1:
            low, high = np.full((2, slopes.shape[1]), np.nan)
        scale = (self.units.target_scale if self.single and self.kind == "gaussian" else 1.0) / self.units.input_scale
        table = pd.DataFrame({"slope": middle * scale, "lower": low * scale, "upper": high * scale})
        table["standardised"] = middle
        table.index = pd.Index(range(len(table)) if names is None else names, name="input")
        for column, tau in (("hidden", "tau_input_hidden"), ("direct", "tau_input_output")):
            table[column] = np.nan
            if isinstance(inner, SampledNetworks) and inner.posterior is not None:
                draws = inner.posterior[tau].values[:, inner.discarded :]
                table[column] = np.median(draws, axis=(0, 1)) ** -0.5
            elif isinstance(inner, NetworkEvidenceFit):
                table[column] = [inner.alpha[f"{tau[4:]}[{i}]"] ** -0.5 for i in range(len(table))]
        return table
