"""May draws of Markov chains be used? A verdict in sentences, from the draws and the sampler's own statistics.

Limits follow Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021): rank-normalised split R-hat at most 1.01, bulk and
tail effective sample size at least 100 per chain; and Betancourt (2016) for the energy: BFMI at least 0.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pandas as pd

from bayessel.chains.findings import Finding
from bayessel.chains.verdict import judged
from bayessel.diagnostics import _findings as findings
from bayessel.diagnostics._trace import posterior_of, statistics, times
from bayessel.pages.result_view import ResultView, ShownResult, Standing

if TYPE_CHECKING:
    from xarray import DataTree


@dataclass(frozen=True)
class Convergence(ShownResult):
    """Verdict on a trace.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per element of each variable, the worst first: ``r_hat``, ``ess_bulk``, ``ess_tail``, ``mcse_over_sd``
        (Monte Carlo error of the mean in posterior standard deviations), ``mean``, ``sd``, ``ess_per_second`` where
        the time is known, and ``note``.
    findings : tuple of Finding
        What was noticed, problems first.
    chains, draws : int
        Size of the trace.
    seconds : float or None
        Sampling time, where the trace says so.
    step_seconds : dict
        Seconds per step method, where the trace says so (`bayessel.sample` does).
    """

    table: pd.DataFrame
    findings: tuple[Finding, ...]
    chains: int
    draws: int
    seconds: float | None = None
    step_seconds: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing stands against using the draws."""
        return not self.problems

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that do."""
        return tuple(one for one in self.findings if one.problem)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, the most urgent first."""
        return tuple(one.advice for one in self.findings if one.advice)

    @property
    def text(self) -> str:
        """Headline, then a line per finding: what, and what to do."""
        lines = [self._headline()]
        lines += [f"- {one.text}{' ' + one.advice if one.advice else ''}" for one in self.findings]
        return "\n".join(lines)

    def _headline(self) -> str:
        size = f"{self.chains} chain{'s' if self.chains != 1 else ''} of {self.draws} draws"
        known = self.table.dropna(subset=["ess_bulk"])
        worst = ""
        if len(known):
            low = known[["ess_bulk", "ess_tail"]].min(axis=1)
            worst = f"; largest R-hat {known['r_hat'].max():.3f}, smallest ESS {low.min():.0f} ({low.idxmin()})"
        if self.ok:
            return f"Converged as far as {size} can tell{worst}."
        count = len(self.problems)
        return f"Do not use these draws yet: {count} problem{'s' if count != 1 else ''} ({size}{worst})."

    def __str__(self) -> str:
        return self.text

    def _text(self) -> str:
        return self.text

    def _view(self) -> ResultView:
        status = "may be used" if self.ok else "do not use yet"
        found = [(one.text, one.advice) for one in self.findings]
        return ResultView(self._headline(), status, Standing.of(self.ok), (), found, self.table)


def convergence(trace: DataTree, var_names: Sequence[str] | None = None) -> Convergence:
    """Say whether the draws of a trace may be used, what is wrong with them and what to do about it.

    Parameters
    ----------
    trace : xarray.DataTree
        What `bayessel.sample`, ``pm.sample`` (also by nutpie) or ArviZ's loaders return: a group ``posterior`` with
        dimensions chain and draw; ``sample_stats`` is used where it is there.
    var_names : names, optional
        Only these variables.

    Returns
    -------
    Convergence
        ``print`` it, or read ``.ok``, ``.table``, ``.findings``.

    Examples
    --------
    >>> import arviz as az, numpy as np, bayessel as bs
    >>> rng = np.random.default_rng(0)
    >>> trace = az.from_dict({"posterior": {"x": rng.normal(size=(4, 500))}})
    >>> bs.diagnostics.convergence(trace).ok
    True
    """
    posterior = posterior_of(trace, var_names)
    found = judged(posterior, statistics(trace))
    seconds, step_seconds = times(trace)
    table, chains, draws = found.table, found.chains, found.draws
    if draws == 0:
        (finding,) = found.findings
        advised = replace(finding, advice=findings.status_advice(trace) or finding.advice)
        return Convergence(table, (advised,), chains, 0, seconds, step_seconds)
    if seconds:
        table.insert(len(table.columns) - 1, "ess_per_second", table["ess_bulk"] / seconds)
    more = [
        *findings.unfinished(trace),
        *findings.time_spent(table, trace, seconds, step_seconds, chains * draws),
    ]
    return Convergence(table, (*found.findings, *more), chains, draws, seconds, step_seconds)
