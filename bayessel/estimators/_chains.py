"""Chains that an estimator carries with it: sampled, stopped on time, continued later, also after a pickle."""

from __future__ import annotations

import io
import tarfile
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray, as_count, as_flag, as_seconds, one_of
from bayessel.errors import SamplingWarning
from bayessel.fit import Status
from bayessel.gp.map_result import GPFit

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

#: chains that differ by more, or tell less, get a status
LARGEST_RHAT, LEAST_ESS = 1.05, 50.0
#: parameters that are numbers, and the least of each
_LEAST = {"draws": 1, "tune": 0, "chains": 1, "n_states": 1, "updates_per_draw": 1, "cores": 1}
#: data of which little can be learned: where they are, chains that disagree are no news
_CAUSES = (Status.CONSTANT_TARGET, Status.TOO_FEW_ROWS, Status.PURE_NOISE)
#: of fewer draws per chain nothing can be said
FEWEST = 4
#: nats: optima that are lower by less may hold a share of the posterior worth seeing
SIMILAR = 3.0
#: rows up to which a draw is a number of updates, whatever the tuning says; these updates, and rows from which they
#: become fewer, so that the costs meet
FEW_ROWS, UPDATES, FEWER_FROM = 100, 20, 60


def check_settings(settings: Mapping[str, Any], inferences: tuple[str, ...], may_be_none: Collection[str]) -> None:
    """Refuse parameters of an estimator with chains that mean nothing."""
    one_of(settings["inference"], "inference", inferences)
    for name in ("standardise", "progressbar"):
        as_flag(settings[name], name)
    for name, least in _LEAST.items():
        if name in settings and not (name in may_be_none and settings[name] is None):
            as_count(settings[name], name, least)
    as_seconds(settings["time_budget"])


def run(archive: bytes | None, model: pm.Model, **options: Any) -> tuple[xr.DataTree, bytes]:
    """`bayessel.sample` in a store that is packed into bytes at the end; the run in `archive` is continued."""
    from bayessel.samplers.run.sampling import advice, sample

    with TemporaryDirectory(prefix="bayessel-") as name:
        folder = Path(name) / "run"
        if archive is not None:
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(folder, filter="data")
        with warnings.catch_warnings():
            # that there is no draw yet is said by the estimator, which knows what stands in for them
            warnings.simplefilter("ignore", SamplingWarning)
            trace = sample(model, store=folder, **options)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
            tar.add(folder, arcname=".")
    if stopped := trace.attrs.get("stopped_by"):
        # the folder was ours; the user goes on with continue_fit, and gave the mode a share of the time
        cause = "it was interrupted" if stopped == "interrupt" else "the time budget was over"
        trace.attrs["advice"] = advice(trace.attrs, cause, "call continue_fit()")
    return trace, packed.getvalue()


class Chains:
    """Chains of one fit: their draws so far, and how they go on."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings  # parameters of the estimator that chains which go on cannot change
        self.trace: Any = None
        self.archive: bytes | None = None

    @property
    def n_draws(self) -> int:
        """Draws per chain so far."""
        return 0 if self.trace is None else int(self.trace["posterior"].sizes["draw"])

    def refuse_other(self, settings: dict[str, Any], draws: int) -> None:
        """Raise where settings have changed, or fewer draws are asked for than there are."""
        for name, then in self.settings.items():
            if (now := settings[name]) != then:
                raise ValueError(
                    f"continue_fit goes on with the settings of fit: {name} was {then!r}, is now {now!r}; set it back, "
                    "or fit again"
                )
        if draws < self.n_draws:
            raise ValueError(
                f"there are {self.n_draws} draws per chain, and draws={draws} counts them in: pass at least "
                f"{self.n_draws}, more to go on"
            )

    def run(self, model: pm.Model, **options: Any) -> None:
        """Draw, from the beginning or from where the chains stand."""
        self.trace, self.archive = run(self.archive, model, **options)

    def notes(self) -> list[Status]:
        """What is to be said of a run that is not complete."""
        cause = self.trace.attrs.get("stopped_by")
        return [Status.INTERRUPTED if cause == "interrupt" else Status.TIME_BUDGET] if cause else []


def step(model: pm.Model, n: int, sampler: str) -> Any:
    """The step method of a Gaussian process's model on n rows."""
    from bayessel.samplers.persistent_hmc import PersistentHMC

    with model:
        if sampler == "1996":
            # Rasmussen (1996), section 4.4; ten updates a draw, neighbours among single updates hardly differ
            return PersistentHMC(
                n_leapfrog=1,
                step_size=0.5 * n**-0.5,
                persistence=0.95,
                accept="metropolis",
                mass="unit",
                tune=False,
                updates_per_draw=10,
            )
        if n <= FEW_ROWS:
            # their posterior is wide and bent, where jumps do not arrive, and gradients cost next to nothing
            return PersistentHMC(mass="dense", updates_per_draw=min(UPDATES, UPDATES * FEWER_FROM // n))
        return PersistentHMC(mass="dense", jumps=True, updates_per_draw="auto")


def starts(fit: GPFit, chains: int) -> list[dict[str, FloatArray]]:
    """Where chains begin: at the mode, or in turn at all optima of similar worth, so that it shows if they stay."""
    good = [one.theta for one in fit.optima if one.log_posterior > fit.optima[0].log_posterior - SIMILAR]
    return [{"theta": good[k % len(good)]} for k in range(chains)]


def kept_draws(draws: int, chains: int, states: int) -> list[int]:
    """Numbers of the draws of each chain that stand for all: evenly spread, the last among them."""
    each = min(draws, -(-states // chains))
    return [draws - 1 - (k * draws) // each for k in range(each)][::-1]


def agreement(theta: FloatArray) -> tuple[float, float]:
    """Largest R-hat and least effective sample size over the parameters, of draws (chains, draws, k)."""
    from arviz_stats.base.array import array_stats

    if theta.shape[1] < FEWEST:
        return np.inf, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never moved
        rhat, size = (measure(theta, chain_axis=0, draw_axis=1) for measure in (array_stats.rhat, array_stats.ess))
    return (float(np.max(rhat)), float(np.min(size))) if np.isfinite(rhat).all() else (np.inf, 0.0)


def disagreement(draws: FloatArray) -> list[Status]:
    """What is to be said of chains (chains, draws, k) that differ, or have moved little."""
    rhat, size = agreement(draws)
    return [Status.CHAINS_DISAGREE] if rhat > LARGEST_RHAT or size < LEAST_ESS else []


def without_what_is_no_news(notes: list[Status]) -> list[Status]:
    """Notes without a disagreement of chains that the data explain."""
    if any(cause in notes for cause in _CAUSES):
        return [note for note in notes if note is not Status.CHAINS_DISAGREE]
    return notes
