"""Geweke's joint distribution test (Geweke 2004).

The joint distribution of parameters and data can be drawn in two ways: parameters from the prior and data given them
(marginal-conditional), or by turns a transition of the sampler given the data and new data given the parameters
(successive-conditional). Both have the same moments if, and practically only if, the sampler leaves the posterior of
every data set invariant.

Quantities are compared on the scale of their own distribution function, u = F(x), estimated from marginal draws that
are not used otherwise: precisions and weights may have no variance, u always has. Moments are the location, E[2u − 1],
and the spread, E[(2u − 1)²]. The successive draws are looked at after the sampler moved and before the data are new:
only there does a sampler that ignores the data show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from bayessel._check import FloatArray, as_count
from bayessel._types import Seed, SupportsSubmit
from bayessel.diagnostics.calibration._replications import replicated
from bayessel.pages.result_view import ResultView, ShownResult, Standing

if TYPE_CHECKING:
    import pymc as pm

    from bayessel.diagnostics.calibration._joint import CalibrationKernel, JointModel, JointSetup, MakeSteps
    from bayessel.pages.figures import ShownFigure

#: Fewer effective draws than this, and their own number is not known well enough for a z-score.
_FEWEST = 100.0
MOMENTS = ("location", "spread")


@dataclass(frozen=True)
class Geweke(ShownResult):
    """Moments of the joint distribution by two simulators.

    Attributes
    ----------
    reference : array (n, quantities)
        Marginal draws that define the scale of each quantity, sorted by column.
    marginal : array (n, quantities)
        The other marginal draws, which are compared.
    successive : array (chains, draws, quantities)
        Draws of the successive-conditional simulator.
    names : tuple of str
        The quantities.
    level : float
        Probability that a right sampler fails for some moment.
    seconds : float
        Time it took, without compilation.
    """

    reference: FloatArray
    marginal: FloatArray
    successive: FloatArray
    names: tuple[str, ...]
    level: float
    seconds: float

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per quantity and moment, the largest |z| first."""
        rows = []
        for j, name in enumerate(self.names):
            marginal, successive = (
                2.0 * _scale(self.reference[:, j], x) - 1.0 for x in (self.marginal[:, j], self.successive[:, :, j])
            )
            for moment, power in zip(MOMENTS, (1, 2), strict=True):
                rows.append((name, moment, *compare_means(marginal**power, successive**power)))
        frame = pd.DataFrame(rows, columns=["quantity", "moment", "marginal", "successive", "mcse", "ess", "z", "p"])
        return frame.iloc[np.argsort(-frame["z"].abs().to_numpy(), kind="stable")].reset_index(drop=True)

    @property
    def threshold(self) -> float:
        """The level of a single p-value: that of all, shared out between the moments (Bonferroni)."""
        return self.level / (len(MOMENTS) * len(self.names))

    @property
    def failed(self) -> list[str]:
        """Moments that differ."""
        return [f"{row.quantity} ({row.moment})" for row in self.table[self.table["p"] < self.threshold].itertuples()]

    @property
    def unresolved(self) -> list[str]:
        """Quantities with too few effective draws for a verdict."""
        few = self.table[~(self.table["ess"] >= _FEWEST)]
        return list(dict.fromkeys(few["quantity"]))

    @property
    def ok(self) -> bool:
        """Whether every moment agrees and none is left open."""
        return not self.failed and not self.unresolved

    @property
    def text(self) -> str:
        """The result in sentences."""
        worst = self.table.iloc[0]
        size = f"{len(self.names)} quantities, {self.successive.shape[0] * self.successive.shape[1]} draws"
        said = []
        if self.failed:
            more = f" and {len(self.failed) - 5} more" if len(self.failed) > 5 else ""
            said.append(
                f"The sampler does not leave the posterior invariant ({size}): the simulators differ in "
                f"{', '.join(self.failed[:5])}{more}; largest |z| {abs(worst['z']):.1f} ({worst['quantity']})."
            )
        elif not self.unresolved:
            said.append(
                f"The two simulators agree ({size}): largest |z| {abs(worst['z']):.1f} "
                f"({worst['quantity']}), smallest p {worst['p']:.2g}, limit {self.threshold:.2g}."
            )
        if self.unresolved:
            said.append(
                f"No verdict on {', '.join(self.unresolved[:5])}: fewer than {_FEWEST:.0f} effective draws "
                f"(fewest {self.table['ess'].min():.0f}); raise draws or thin."
            )
        return " ".join(said)

    def _text(self) -> str:
        return self.text

    def _view(self) -> ResultView:
        status = "passed" if self.ok else "failed" if self.failed else "no verdict"
        title = "Geweke's test of the sampler"
        return ResultView(title, status, Standing.of(self.ok), [self.text], (), self.table, ".plot()")

    def plot(self, names: Sequence[str] | None = None, most: int = 6) -> ShownFigure:
        """Draw the distribution functions of both simulators against each other, the largest |z| first."""
        from bayessel.diagnostics.calibration._pictures import plot_joint
        from bayessel.pages.figures import handed_over

        return handed_over(
            plot_joint(self, list(dict.fromkeys(self.table["quantity"]))[:most] if names is None else list(names))
        )


def geweke(
    model: pm.Model,
    make_steps: MakeSteps,
    draws: int = 2000,
    *,
    chains: int = 4,
    thin: int = 1,
    tune: int = 500,
    marginal: int = 10_000,
    level: float = 0.01,
    include: Sequence[str] = (),
    random_seed: Seed = None,
    progressbar: bool = True,
    n_jobs: int | None = None,
    executor: SupportsSubmit | None = None,
    compile_kwargs: Mapping[str, object] | None = None,
) -> Geweke:
    """Test that a sampler leaves the posterior invariant, averaged over the data a model makes.

    Parameters
    ----------
    model : pymc.Model
        Observed data are ``pm.Data``; priors are proper and their draws stay within double precision. Few data mix
        best. Its data are exchanged on the way and put back at the end.
    make_steps : callable
        model -> step methods, for instance ``bs.steps``. Called once in each process. Steps with a method
        ``data_changed`` keep what they have tuned; others are set up anew for each data set, without tuning.
    draws, chains, thin : int
        Of the successive-conditional simulator: `draws` of each chain, `thin` transitions and new data sets apart.
        Chains start at exact draws and so need no burn-in. Interrupted (Ctrl-C), the finished ones count.
    tune : int
        Transitions, with changing data, in which steps may adapt; they start afterwards from new exact draws.
    marginal : int
        Draws of the marginal-conditional simulator; half of them set the scale.
    level : float
        Probability of an alarm, shared out between the moments, if all is well.
    include, random_seed, progressbar, n_jobs, executor, compile_kwargs
        As in `sbc`.

    Returns
    -------
    Geweke
        With ``.ok``, ``.text``, ``.table`` and ``.plot()``.

    Examples
    --------
    >>> import pymc as pm, bayessel as bs
    >>> with pm.Model() as model:
    ...     y = pm.Data("y", [0.3, -0.2])
    ...     mu = pm.Normal("mu")
    ...     pm.Normal("seen", mu, 1.0, observed=y)
    seen
    >>> found = geweke(model, bs.steps, draws=500, chains=2, marginal=2000, random_seed=1, progressbar=False)
    >>> found.ok
    True
    """
    from bayessel.diagnostics.calibration._joint import JointSetup

    n, n_chains, apart = as_count(draws, "draws", 10), as_count(chains, "chains", 2), as_count(thin, "thin")
    warm, n_marginal = as_count(tune, "tune", 0), as_count(marginal, "marginal", 100)
    first: tuple[str] = ("marginal",)
    done = replicated(
        JointSetup(model, make_steps, include, compile_kwargs),
        {first: (_marginal, (n_marginal,)), **{("chain", c): (_chain, (n, warm, apart)) for c in range(n_chains)}},
        lambda found: first in found and len(found) > 2,
        "Geweke's test",
        (level, random_seed, progressbar, n_jobs, executor),
    )
    exact = done.found.pop(first)
    half, names = len(exact) // 2, (*done.made[0].names, *_data_names(model))
    successive = np.array(list(done.found.values()))
    return Geweke(np.sort(exact[:half], axis=0), exact[half:], successive, names, level, done.seconds)


def _marginal(setup: JointSetup, sequence: np.random.SeedSequence, n: int) -> FloatArray:
    """Draws of the marginal-conditional simulator, (n, quantities)."""
    with setup.made(np.random.default_rng(sequence)) as (joint, _):
        return np.array([_pair(joint) for _ in range(n)])


def _chain(setup: JointSetup, sequence: np.random.SeedSequence, n: int, warm: int, apart: int) -> FloatArray:
    """Draws of a chain of the successive-conditional simulator, (n, quantities)."""
    rng = np.random.default_rng(sequence)
    with setup.made(rng) as (joint, kernel):
        point, data = joint.draw()
        joint.set_data(data)
        kernel.start(rng.spawn(1)[0], warm, n * apart)
        for _ in range(warm):
            point, _ = _turn(joint, kernel, point, tuning=True)
        if warm:
            kernel.stop_tuning()
            point, data = joint.draw()  # what was tuned depends on the draws: begin at an independent one
            joint.set_data(data)
            kernel.data_changed(tuning=False)
        rows = []
        for _ in range(n):
            for _ in range(apart):
                point, row = _turn(joint, kernel, point, tuning=False)
            rows.append(row)
        return np.array(rows)


def _turn(joint: JointModel, kernel: CalibrationKernel, point: Any, tuning: bool) -> tuple[Any, FloatArray]:
    """Move the parameters given the data, look, and make new data given the parameters."""
    point = kernel.move(point)
    seen, free = joint.look(point)
    row = np.concatenate([seen, _data_summary(joint.get_data())])
    joint.set_data(joint.new_data(free))
    kernel.data_changed(tuning)
    return point, row


def _pair(joint: JointModel) -> FloatArray:
    point, data = joint.draw()
    joint.set_data(data)
    return np.concatenate([joint.look(point)[0], _data_summary(data)])


def _data_summary(data: Sequence[Any]) -> FloatArray:
    return np.array([x for y in data for x in (np.mean(y), np.mean(np.square(np.asarray(y, dtype=np.float64))))])


def _data_names(model: pm.Model) -> list[str]:
    return [f"{what} of {rv.name}" for rv in model.observed_RVs for what in ("mean", "mean square")]


def _scale(reference: FloatArray, x: FloatArray) -> FloatArray:
    """Fraction of the sorted reference below x; ties count half."""
    below, upto = np.searchsorted(reference, x, side="left"), np.searchsorted(reference, x, side="right")
    return np.asarray(0.5 * (below + upto) / len(reference))


def compare_means(independent: FloatArray, chains: FloatArray) -> tuple[float, float, float, float, float, float]:
    """(mean, mean, MCSE of their difference, effective draws, z, p) of independent draws and (chain, draw) ones."""
    import arviz as az

    exact, found = float(independent.mean()), float(chains.mean())
    if np.ptp(chains) == 0.0:
        same = np.ptp(independent) == 0.0 and exact == found  # a quantity that is constant under both is no evidence
        return (exact, found, 0.0, float(chains.size), 0.0, 1.0) if same else (exact, found, 0.0, 0.0, np.inf, 0.0)
    ess = float(az.ess(chains, method="mean"))
    error = float(np.hypot(independent.std(ddof=1) / np.sqrt(len(independent)), chains.std(ddof=1) / np.sqrt(ess)))
    z = (found - exact) / error
    return exact, found, error, ess, z, float(2.0 * stats.norm.sf(abs(z)))
