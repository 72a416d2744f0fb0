"""May draws be used? One policy, for a trace that is looked at and for a run that has just ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayessel._check import FloatArray
from bayessel.chains import findings, mixing_numbers
from bayessel.chains.findings import MAX_RHAT, MIN_ESS_PER_CHAIN, Finding

#: A chain that repeats one value this often in a row, and for a tenth of its length, is stuck.
_LONG_STAY = 50
_NUMBERS = ("r_hat", "ess_bulk", "ess_tail", "mcse_over_sd")

#: what may be said of draws in a word
USABLE, NOT_YET, TOO_FEW = "usable", "do not use", "too few draws to judge"


@dataclass(frozen=True)
class Judgement:
    """What was found in draws.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per element that was looked at, the worst first.
    findings : tuple of Finding
        Problems first.
    chains, draws : int
        Size of the run.
    elements : int
        How many there are.
    """

    table: pd.DataFrame
    findings: tuple[Finding, ...]
    chains: int
    draws: int
    elements: int

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that stand against using the draws."""
        return tuple(one for one in self.findings if one.problem)

    @property
    def verdict(self) -> str:
        """`USABLE`, `NOT_YET` or `TOO_FEW`: of one chain, or of very few draws, nothing can be said."""
        if self.draws == 0 or {one.kind for one in self.problems} & {"chains", "draws"}:
            return TOO_FEW
        return NOT_YET if self.problems else USABLE

    @property
    def worst(self) -> str:
        """Largest R-hat and smallest effective sample sizes, each with its variable; empty where there are none."""
        said = []
        if len(far := self.table["r_hat"].dropna()):
            said.append(f"largest R-hat {far.max():.3f} ({far.idxmax()})")
        for kind in ("bulk", "tail"):
            if len(size := self.table[f"ess_{kind}"].dropna()):
                said.append(f"smallest {kind} ESS {size.min():.0f} ({size.idxmin()})")
        return ", ".join(said)


def judged(posterior: Any, statistics: Mapping[str, FloatArray], most: int | None = None) -> Judgement:
    """Judge the draws of a dataset with dimensions chain and draw.

    `statistics` are the sampler's, by name. Of more than `most` elements the slowest are looked at, as the means of
    batches show them, and all that are not finite.
    """
    chains, draws = int(posterior.sizes["chain"]), int(posterior.sizes["draw"])
    arrays = {str(name): flat(posterior[name]) for name in posterior.data_vars}
    total = sum(array.shape[2] for array in arrays.values())
    if draws == 0:
        return Judgement(_table([]), (Finding("draws", "There are no draws.", "Sample longer."),), chains, 0, total)
    chosen = _slowest(arrays, total if most is None else most)
    x = np.concatenate([arrays[name][:, :, chosen[name]] for name in arrays], axis=2)
    names = [label for name in arrays for label in labels(posterior[name], chosen[name])]
    table, notes = numbers(names, x)
    found = [
        *findings.broken(names, x, notes),
        *findings.size(chains, draws),
        *findings.mixing(table, x, total),
        *findings.sampler(statistics, names, x),
    ]
    found.sort(key=lambda one: not one.problem)
    return Judgement(worst_first(table), tuple(found), chains, draws, total)


def flat(array: Any) -> FloatArray:
    """Draws of a variable as (chain, draw, element)."""
    ordered = array.transpose("chain", "draw", ...).values
    return np.asarray(ordered.reshape(*ordered.shape[:2], int(np.prod(ordered.shape[2:]))), dtype=np.float64)


def labels(array: Any, chosen: Sequence[int] | None = None) -> list[str]:
    """Names of the elements of a variable, or of the chosen ones, by its coordinates."""
    dims = [d for d in array.dims if d not in ("chain", "draw")]
    if not dims:
        return [str(array.name)] if chosen is None else [str(array.name)] * len(chosen)
    ticks = [array[d].values if d in array.coords else np.arange(array.sizes[d]) for d in dims]
    shape = tuple(len(t) for t in ticks)
    every = range(int(np.prod(shape))) if chosen is None else chosen
    return [
        f"{array.name}[{', '.join(str(t[i]) for t, i in zip(ticks, np.unravel_index(k, shape), strict=True))}]"
        for k in every
    ]


def _slowest(arrays: Mapping[str, FloatArray], most: int) -> dict[str, list[int]]:
    """Which elements of each variable to look at: all, or the slowest of all together."""
    every = {name: list(range(array.shape[2])) for name, array in arrays.items()}
    if sum(map(len, every.values())) <= most:
        return every
    slow = np.concatenate([mixing_numbers.slowness(array) for array in arrays.values()])
    keep = np.zeros(len(slow), dtype=bool)
    keep[np.argsort(-slow, kind="stable")[:most]] = True
    ends = np.cumsum([array.shape[2] for array in arrays.values()])[:-1]
    parts = np.split(keep, ends)
    return {name: [int(k) for k in np.flatnonzero(part)] for name, part in zip(arrays, parts, strict=True)}


def numbers(names: Sequence[str], x: FloatArray) -> tuple[pd.DataFrame, dict[str, str]]:
    """A row of numbers for every column of `x` (chain, draw, column), and notes on those that have none."""
    finite = np.isfinite(x).all(axis=(0, 1))
    constant = finite & (np.ptp(np.where(finite, x, 0.0), axis=(0, 1)) == 0.0)
    known = finite & ~constant
    notes = {name: "not finite" for name, is_finite in zip(names, finite, strict=True) if not is_finite}
    notes |= {name: "constant" for name, is_constant in zip(names, constant, strict=True) if is_constant}
    table = _table(names)
    table.loc[constant, "mean"], table.loc[constant, "sd"] = x[0, 0, constant], 0.0
    good = x[:, :, known]
    if good.shape[2]:
        table.loc[known, "r_hat"] = mixing_numbers.r_hat(good)
        table.loc[known, "ess_bulk"] = mixing_numbers.ess_bulk(good)
        table.loc[known, "ess_tail"] = mixing_numbers.ess_tail(good)
        table.loc[known, "mean"] = good.mean(axis=(0, 1))
        table.loc[known, "sd"] = good.std(axis=(0, 1), ddof=1)
        table.loc[known, "mcse_over_sd"] = mixing_numbers.ess_mean(good) ** -0.5
    for j in np.flatnonzero(known & (np.diff(x, axis=1) == 0.0).any(axis=(0, 1))):
        if still := stuck_chains(x[:, :, j]):
            notes[names[j]] = f"stuck in chain {', '.join(map(str, still))}"
    table["note"] = [notes.get(name, "") for name in names]
    return table, notes


def stuck_chains(x: FloatArray) -> list[int]:
    """Chains (chain, draw) that repeat a value for long.

    Whole numbers may well repeat, and so may a value that is also found elsewhere, as where a variable is switched by
    an indicator: these are atoms of the distribution. Where they mix badly, R-hat says so.
    """
    if (x == np.round(x)).all():
        return []
    long = max(2, min(x.shape[1], max(_LONG_STAY, x.shape[1] // 10)))
    stays = []
    for chain, row in enumerate(x):
        changes = np.flatnonzero(np.diff(row) != 0.0)
        lengths = np.diff(np.concatenate([[-1], changes, [len(row) - 1]]))
        last = np.concatenate([changes, [len(row) - 1]])
        stays += [(chain, row[end], n) for end, n in zip(last[lengths >= long], lengths[lengths >= long], strict=True)]
    still = set()
    for chain, value, _ in stays:
        if (x == value).sum() == sum(n for _, other, n in stays if other == value):
            still.add(chain)
    return sorted(still)


def worst_first(table: pd.DataFrame) -> pd.DataFrame:
    """Broken columns first, then by R-hat over its limit or ESS below its own, constants last."""
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1)
    badness = np.maximum((table["r_hat"].to_numpy() - 1.0) / (MAX_RHAT - 1.0), MIN_ESS_PER_CHAIN / ess.to_numpy())
    badness = np.where(np.isnan(badness), np.inf, badness)
    badness = np.where(table["note"].to_numpy() == "constant", -1.0, badness)
    return table.iloc[np.argsort(-badness, kind="stable")]


def _table(names: Sequence[str]) -> pd.DataFrame:
    frame = pd.DataFrame(np.nan, index=pd.Index(names, name="variable"), columns=[*_NUMBERS, "mean", "sd"])
    frame["note"] = ""
    return frame
