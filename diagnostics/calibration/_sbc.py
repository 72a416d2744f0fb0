"""Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman 2018).

Draw parameters from the prior and data given them, run the sampler on those data, and note the rank of the true
parameters among the draws. A right sampler makes every rank uniform, whatever the model. The log likelihood is ranked
too, without which a sampler that ignores the data would pass (Modrák et al. 2023).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayessel._check import FloatArray, as_count
from bayessel._types import Seed, SupportsSubmit
from bayessel.diagnostics.calibration._replications import replicated
from bayessel.diagnostics.calibration._uniformity import IntArray, chi_square, ecdf, rank
from bayessel.pages.result_view import ResultView, ShownResult, Standing

if TYPE_CHECKING:
    import pymc as pm

    from bayessel.diagnostics.calibration._joint import JointSetup, MakeSteps
    from bayessel.pages.figures import ShownFigure

#: Autocorrelation of neighbouring draws beyond which ranks pile up at the ends though the sampler is right.
_TOO_SIMILAR = 0.25


@dataclass(frozen=True)
class SBC(ShownResult):
    """Ranks of the truth among the draws, and whether they are uniform.

    Attributes
    ----------
    ranks : array (replications, quantities)
        Rank of the truth, 0 … `draws`.
    names : tuple of str
        The quantities.
    draws : int
        Kept draws of each replication.
    level : float
        Probability that a right sampler fails one of the two tests for some quantity.
    similarity : array (quantities,)
        Mean autocorrelation between neighbouring kept draws.
    seconds : float
        Time it took, without compilation.
    """

    ranks: IntArray
    names: tuple[str, ...]
    draws: int
    level: float
    similarity: FloatArray
    seconds: float

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per quantity, the most suspicious first: p-values of χ² and ECDF, mean rank, autocorrelation."""
        values = self.draws + 1
        frame = pd.DataFrame(
            {
                "chi2_p": [chi_square(column, values) for column in self.ranks.T],
                "ecdf_p": [ecdf(column, values) for column in self.ranks.T],
                "mean_rank": self.ranks.mean(axis=0) / self.draws,
                "rank_sd": self.ranks.std(axis=0) / self.draws * np.sqrt(12.0 * self.draws / (self.draws + 2.0)),
                "autocorrelation": self.similarity,
            },
            index=pd.Index(self.names, name="quantity"),
        )
        return frame.iloc[np.argsort(frame[["chi2_p", "ecdf_p"]].min(axis=1).to_numpy(), kind="stable")]

    @property
    def threshold(self) -> float:
        """The level of a single p-value: that of all, shared out between the quantities (Bonferroni)."""
        return self.level / len(self.names)

    @property
    def failed(self) -> list[str]:
        """Quantities whose ranks are not uniform."""
        smallest = self.table[["chi2_p", "ecdf_p"]].min(axis=1)
        return [str(name) for name in self.table.index[smallest < self.threshold]]

    @property
    def ok(self) -> bool:
        """Whether no quantity failed."""
        return not self.failed

    @property
    def text(self) -> str:
        """The result in sentences."""
        n, smallest = len(self.ranks), self.table[["chi2_p", "ecdf_p"]].min(axis=1)
        tested = f"{n} replications of {self.draws} draws, {len(self.names)} quantities"
        if self.ok:
            said = [
                f"Calibrated as far as {tested} can tell: the smallest p-value is {smallest.iloc[0]:.2g} "
                f"({smallest.index[0]}), {self.threshold:.2g} would be the limit."
            ]
        else:
            said = [f"Not calibrated ({tested}; limit {self.threshold:.2g} for each p-value)."]
            said += [
                f"{name}: {_shape(self.table.loc[name], n)} (p = {smallest[name]:.1g})." for name in self.failed[:5]
            ]
            if len(self.failed) > 5:
                said.append(f"And {len(self.failed) - 5} more; see .table.")
        similar = [str(x) for x in np.asarray(self.names)[self.similarity > _TOO_SIMILAR]]
        if similar:
            said.append(
                f"Neighbouring draws of {', '.join(similar[:4])}{' and others' if len(similar) > 4 else ''} are "
                "similar, which by itself pushes ranks to the ends: raise thin."
            )
        return " ".join(said)

    def _text(self) -> str:
        return self.text

    def _view(self) -> ResultView:
        status = "passed" if self.ok else "failed" if self.failed else "no verdict"
        title = "Simulation-based calibration"
        return ResultView(title, status, Standing.of(self.ok), [self.text], (), self.table, ".plot()")

    def plot(self, names: Sequence[str] | None = None, most: int = 6) -> ShownFigure:
        """Draw rank histograms and ECDF differences with their bands, the most suspicious quantities first."""
        from bayessel.diagnostics.calibration._pictures import plot_ranks
        from bayessel.pages.figures import handed_over

        return handed_over(plot_ranks(self, list(self.table.index[:most]) if names is None else list(names)))


def _shape(row: Any, n: int) -> str:
    """What the ranks look like, and what that usually means: mean and sd against their errors under uniformity."""
    aside = (row["mean_rank"] - 0.5) * np.sqrt(12.0 * n)
    wide = (row["rank_sd"] - 1.0) * np.sqrt(5.0 * n)
    if abs(aside) > max(abs(wide), 2.5):
        side = "too high" if aside < 0.0 else "too low"
        return f"draws are {side} (mean rank {row['mean_rank']:.2f} in place of 0.50)"
    if wide > 2.5:
        return "ranks pile up at the ends: draws too narrow, or too similar to each other"
    if wide < -2.5:
        return "ranks pile up in the middle: draws too wide"
    return "ranks are not uniform"


def sbc(
    model: pm.Model,
    make_steps: MakeSteps,
    replications: int = 500,
    draws: int = 63,
    *,
    thin: int = 5,
    tune: int = 200,
    level: float = 0.01,
    include: Sequence[str] = (),
    random_seed: Seed = None,
    progressbar: bool = True,
    n_jobs: int | None = None,
    executor: SupportsSubmit | None = None,
    compile_kwargs: Mapping[str, object] | None = None,
) -> SBC:
    """Test that a sampler draws from the posterior of a model, for data as the model itself makes them.

    Parameters
    ----------
    model : pymc.Model
        Observed data are ``pm.Data``; priors are proper and their draws stay within double precision. Its data are
        exchanged on the way and put back at the end.
    make_steps : callable
        model -> step methods, for instance ``bs.steps``. Called once in each process.
    replications : int
        Data sets. An interrupted run (Ctrl-C) gives what it has.
    draws, thin, tune : int
        Of each chain: `draws` kept, every `thin`-th, after `tune`. `draws` + 1 with many divisors suits the bins.
        Chains start at an independent draw from the prior, so `tune` must suffice to forget it.
    level : float
        Probability of an alarm by each of the two tests, shared out between the quantities, if all is well.
    include : names
        Deterministic variables to test beside the free ones.
    random_seed : int or numpy.random.Generator
        Same seed, same numbers, whoever computes them.
    progressbar : bool
        Show one on a terminal or in a notebook.
    n_jobs : int, optional
        Processes: None takes more than one where the work is long, -1 every core. Each compiles the model.
    executor : optional
        A Dask client, or anything else that `bayessel.work.run` takes.
    compile_kwargs : dict
        For the functions compiled here; ``{"mode": "FAST_COMPILE"}`` for very small models.

    Returns
    -------
    SBC
        With ``.ok``, ``.text``, ``.table``, ``.ranks`` and ``.plot()``.

    Examples
    --------
    >>> import numpy as np, pymc as pm, bayessel as bs
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu", 0.0, 1.0)
    ...     y = pm.Normal("y", mu, 1.0, observed=pm.Data("y_data", np.zeros(3)))
    >>> result = sbc(model, bs.steps, 40, 15, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"})
    >>> result.ok, result.ranks.shape, result.names
    (True, (40, 3), ('mu', 'log prior', 'log likelihood'))
    """
    from bayessel.diagnostics.calibration._joint import JointSetup

    n, kept = as_count(replications, "replications", 10), as_count(draws, "draws", 3)
    apart, warm = as_count(thin, "thin"), as_count(tune, "tune", 0)
    done = replicated(
        JointSetup(model, make_steps, include, compile_kwargs),
        {("replication", k): (_replicate, (warm, kept, apart)) for k in range(n)},
        lambda found: len(found) >= 10,
        "simulation-based calibration",
        (level, random_seed, progressbar, n_jobs, executor),
    )
    ranks, similarities = zip(*done.found.values(), strict=True)
    return SBC(np.array(ranks), tuple(done.made[0].names), kept, level, sum(similarities) / len(ranks), done.seconds)


def _replicate(
    setup: JointSetup, sequence: np.random.SeedSequence, warm: int, kept: int, apart: int
) -> tuple[IntArray, FloatArray]:
    """Ranks of the truth among the draws given one data set, and the similarity of neighbouring draws."""
    rng = np.random.default_rng(sequence)
    with setup.made(rng) as (joint, kernel):
        truth, data = joint.draw()
        point, _ = joint.draw()
        joint.set_data(data)
        (child,) = rng.spawn(1)
        kernel.start(child, warm, kept * apart)
        point = kernel.move(point, warm)
        kernel.stop_tuning()
        found = np.empty((kept, len(joint.names)))
        for k in range(kept):
            point = kernel.move(point, apart)
            found[k] = joint.look(point)[0]
        return rank(found, joint.look(truth)[0], rng), lag_one(found)


def lag_one(draws: FloatArray) -> FloatArray:
    """Autocorrelation of neighbouring draws, per column, its small-sample bias of −1/n removed; 1 where none moved."""
    away = draws - draws.mean(axis=0)
    total = (away**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (away[1:] * away[:-1]).sum(axis=0) / total
    return np.asarray(np.where(total > 0.0, r + 1.0 / len(draws), 1.0))
