"""Simulation-based calibration of the probabilities of models.

Draw a model, each as probable as the others, parameters from its prior and data given them; then compute the
probability of every model given the data, from their evidences. Whatever the models, given the probabilities p of all
simulations the models that made the data are independent draws with these probabilities. So the share of simulations
that a model made is the mean of its p, in all simulations and in those of any range of p; and log p of the model that
made the data is on average what Σ p log p says. P-values are exact but for their own simulation: models are drawn
again and again with the probabilities that were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import logsumexp

from bayessel._check import FloatArray, as_count
from bayessel._types import Seed, SupportsSubmit
from bayessel.diagnostics.calibration._replications import replicated
from bayessel.diagnostics.calibration._uniformity import IntArray
from bayessel.pages.result_view import ResultView, ShownResult, Standing

if TYPE_CHECKING:
    import pymc as pm

    from bayessel.diagnostics.calibration._evidence_setup import EvidenceSetup
    from bayessel.pages.figures import ShownFigure

#: draws of the models by which p-values are found; smaller ones are not told apart
DRAWS = 20_000
#: ranges of p: most, and the variance of the number of hits that one should have
_MOST_BINS, _PER_BIN = 10, 3.0
#: variance of the number of hits below which the simulations say next to nothing
_LEAST_DOUBT = 5.0


class Bin(NamedTuple):
    """Simulations in a range of p: how many, mean p, the share that the model made, and its standard error."""

    simulations: int
    mean: float
    share: float
    error: float


@dataclass(frozen=True)
class ModelProbabilities(ShownResult):
    """Probabilities of models given data that one of them made, and whether they are true.

    Attributes
    ----------
    log_evidence, error : array (simulations, models)
        Log probability of the data under each model, and its standard error, in nats.
    reliable : boolean array (simulations, models)
        Whether the evidence calls itself reliable; those that do not are counted all the same.
    made_by : array (simulations,)
        Number of the model that made the data.
    names : tuple of str
        The models.
    level : float
        Probability that right probabilities fail some test.
    seconds : float
        Time it took, without compilation.
    """

    log_evidence: FloatArray
    error: FloatArray
    reliable: npt.NDArray[np.bool_]
    made_by: IntArray
    names: tuple[str, ...]
    level: float
    seconds: float

    @cached_property
    def probabilities(self) -> FloatArray:
        """Of each model given the data, all as probable before, (simulations, models)."""
        return np.exp(self._log_probabilities)

    @cached_property
    def _log_probabilities(self) -> FloatArray:
        return np.asarray(self.log_evidence - logsumexp(self.log_evidence, axis=1, keepdims=True))

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per test, the smallest p first: what was seen, what the probabilities expect, z, and p.

        "score" is the mean of log p of the model that made the data: too low where p is too sure, too high where it is
        not sure enough. "share" is the share of simulations that a model made; "ranges" is the sum of z² over ranges of
        its p. Of two models the second would repeat the first.
        """
        p, hits = self.probabilities, np.eye(len(self.names))[self.made_by]
        rng, n = np.random.default_rng(20_261_120), len(self.made_by)
        looked_at = range(1 if len(self.names) == 2 else len(self.names))
        ranges = {k: _ranges(p[:, k]) for k in looked_at}
        seen = self._statistics(hits[None], ranges)
        drawn = []
        edges = np.cumsum(p, axis=1)
        for _ in range(DRAWS // 500):
            which = (rng.random((500, n, 1)) > edges[None, :, :-1]).sum(axis=2)
            drawn.append(self._statistics(np.eye(len(self.names))[which], ranges))
        null = {name: np.concatenate([one[name] for one in drawn]) for name in seen}
        rows = []
        for name, [value] in seen.items():
            mean, sd = float(null[name].mean()), float(null[name].std())
            above, below = np.sum(null[name] >= value - 1e-12), np.sum(null[name] <= value + 1e-12)
            extreme = above if name.startswith("ranges") else 2 * min(above, below)
            z = (float(value) - mean) / sd if sd > 0.0 else 0.0
            rows.append((name, float(value), mean, z, float(min(1.0, (1 + extreme) / (1 + len(null[name]))))))
        frame = pd.DataFrame(rows, columns=["test", "seen", "expected", "z", "p"]).set_index("test")
        return frame.iloc[np.argsort(frame["p"].to_numpy(), kind="stable")]

    def _statistics(self, hits: FloatArray, ranges: Mapping[int, IntArray]) -> dict[str, FloatArray]:
        """Statistics of sets of hits (sets, simulations, models)."""
        n, p = len(self.made_by), self.probabilities
        logs = np.maximum(self._log_probabilities, -1e3)
        found = {"score": np.einsum("snk,nk->s", hits, logs) / n}
        for k, bins in ranges.items():
            off, variance = hits[:, :, k] - p[:, k], p[:, k] * (1.0 - p[:, k])
            found[f"share of {self.names[k]}"] = hits[:, :, k].mean(axis=1)
            sums = np.stack([off[:, bins == b].sum(axis=1) for b in range(bins.max() + 1)], axis=1)
            spread = np.bincount(bins, variance)
            found[f"ranges of {self.names[k]}"] = (sums**2 / np.maximum(spread, 1e-12)).sum(axis=1)
        return found

    @property
    def threshold(self) -> float:
        """The level of a single p-value: that of all, shared out between the tests (Bonferroni)."""
        return self.level / len(self.table)

    @property
    def failed(self) -> list[str]:
        """Tests that fail."""
        return [str(name) for name in self.table.index[self.table["p"] < self.threshold]]

    @property
    def in_doubt(self) -> float:
        """Variance of the number of simulations that the first model made, given the probabilities: what they tell."""
        p = self.probabilities[:, 0]
        return float(np.sum(p * (1.0 - p)))

    @property
    def ok(self) -> bool:
        """Whether no test fails, of models that the data do not always tell apart."""
        return not self.failed and self.in_doubt >= _LEAST_DOUBT

    @property
    def text(self) -> str:
        """The result in sentences."""
        flagged = int(np.sum(~self.reliable.all(axis=1)))
        tested = (
            f"{len(self.made_by)} simulations of {len(self.names)} models, {flagged} with an evidence that is flagged"
        )
        worst = self.table.iloc[0]
        said = []
        if self.failed:
            said.append(f"The probabilities are not those of the models ({tested}; limit {self.threshold:.2g}).")
            for name in self.failed[:5]:
                row = self.table.loc[name]
                said.append(f"{name}: {row['seen']:.3g}, expected {row['expected']:.3g} (p = {row['p']:.1g}).")
        elif self.ok:
            said.append(
                f"Calibrated as far as {tested} can tell: the smallest p-value is {worst['p']:.2g} ({worst.name}), "
                f"{self.threshold:.2g} would be the limit."
            )
        if self.in_doubt < _LEAST_DOUBT:
            said.append(
                f"The data tell the models apart almost always ({tested}): that says little of probabilities; simulate "
                "more, or fewer rows."
            )
        return " ".join(said)

    def _text(self) -> str:
        return self.text

    def _view(self) -> ResultView:
        status = "passed" if self.ok else "failed" if self.failed else "no verdict"
        title = "Calibration of model probabilities"
        return ResultView(title, status, Standing.of(self.ok), [self.text], (), self.table, ".plot()")

    def ranges(self, name: str) -> list[Bin]:
        """Simulations by the probability of a model, from low to high."""
        if name not in self.names:
            raise ValueError(f"no model is called {name!r}; there are {', '.join(self.names)}")
        k = self.names.index(name)
        p, bins = self.probabilities[:, k], _ranges(self.probabilities[:, k])
        found = []
        for b in range(bins.max() + 1):
            own = p[bins == b]
            error = float(np.sqrt(np.sum(own * (1.0 - own))) / len(own))
            share = float((self.made_by[bins == b] == k).mean())
            found.append(Bin(len(own), float(own.mean()), share, error))
        return found

    def plot(self) -> ShownFigure:
        """Draw the share of simulations that a model made over its probability, with two standard errors."""
        from bayessel.diagnostics.calibration._pictures import plot_shares
        from bayessel.pages.figures import handed_over

        return handed_over(plot_shares(self))


def _ranges(p: FloatArray) -> IntArray:
    """Number of the range of each p; all ranges have about the same variance of the number of hits."""
    order = np.argsort(p, kind="stable")
    variance = np.cumsum((p * (1.0 - p))[order])
    count = int(np.clip(variance[-1] // _PER_BIN, 1, _MOST_BINS))
    bins = np.empty(len(p), dtype=np.int64)
    bins[order] = np.minimum((variance / max(variance[-1], 1e-300) * count).astype(np.int64), count - 1)
    return np.unique(bins, return_inverse=True)[1]


def model_probabilities(
    models: Mapping[str, pm.Model],
    simulations: int = 500,
    *,
    routes: Sequence[str] = ("quadrature", "laplace", "bridge", "annealing"),
    effort: float = 1.0,
    level: float = 0.01,
    random_seed: Seed = None,
    progressbar: bool = True,
    n_jobs: int | None = None,
    executor: SupportsSubmit | None = None,
) -> ModelProbabilities:
    """Test that probabilities of models, by `bayessel.evidence`, are true for data that one of the models makes.

    Parameters
    ----------
    models : mapping of names to pymc.Model
        Two or more, of the same observed variables, which are ``pm.Data``; priors are proper. Data are exchanged on
        the way and put back at the end.
    simulations : int
        Data sets. An interrupted run (Ctrl-C) gives what it has.
    routes, effort
        As in `bayessel.evidence`. Each model is compiled once in each process.
    level : float
        Probability of an alarm, shared out between the tests, if all is well.
    random_seed, progressbar, n_jobs, executor
        As in `sbc`.

    Returns
    -------
    ModelProbabilities
        With ``.ok``, ``.text``, ``.table``, ``.probabilities`` and ``.plot()``.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> def declared(sd):
    ...     with pm.Model() as model:
    ...         mu = pm.Normal("mu", 0.0, sd)
    ...         pm.Normal("y", mu, 1.0, observed=pm.Data("y_data", np.zeros(3)))
    ...     return model
    >>> models = {"near": declared(0.5), "far": declared(2.0)}
    >>> found = model_probabilities(models, 60, random_seed=1)
    >>> found.ok, found.probabilities.shape
    (True, (60, 2))
    """
    from bayessel.diagnostics.calibration._evidence_setup import EvidenceSetup

    n = as_count(simulations, "simulations", 10)
    setup = EvidenceSetup(models, routes, effort)
    done = replicated(
        setup,
        {("simulation", k): (simulated, ()) for k in range(n)},
        lambda found: len(found) >= 10,
        "calibration of model probabilities",
        (level, random_seed, progressbar, n_jobs, executor),
    )
    return of_simulations(list(done.found.values()), setup.names, level, done.seconds)


class Simulated(NamedTuple):
    """One simulation: who made the data, and of each model the log evidence, its error, and whether it is reliable."""

    made_by: int
    log_evidence: list[float]
    error: list[float]
    reliable: list[bool]


def simulated(setup: EvidenceSetup, sequence: np.random.SeedSequence) -> Simulated:
    """Draw a model and data, and compute the evidence of each model."""
    rng = np.random.default_rng(sequence)
    made_by = int(rng.integers(len(setup.names)))
    with setup.used() as compiled:
        compiled.draw_data(made_by, rng)
        found = [one(int(rng.integers(2**31))) for one in compiled.evidences]
    return Simulated(
        made_by, [one.value for one in found], [one.error for one in found], [bool(one.reliable) for one in found]
    )


def of_simulations(
    found: Sequence[Simulated], names: Sequence[str], level: float, seconds: float
) -> ModelProbabilities:
    """Simulations as one result."""
    made_by, values, errors, reliable = zip(*found, strict=True)
    return ModelProbabilities(
        np.array(values), np.array(errors), np.array(reliable), np.array(made_by), tuple(names), level, seconds
    )
