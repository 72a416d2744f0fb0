"""May draws be used? One policy, for a trace that is looked at and for a run that has just ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Judge the draws of a dataset with dimensions chain and draw, as `judged_arrays` does."""
    arrays = {str(name): _flat(posterior[name]) for name in posterior.data_vars}
    size = int(posterior.sizes["chain"]), int(posterior.sizes["draw"])
    return judged_arrays(arrays, size, lambda name, k: _label(posterior[name], k), statistics, most)


def judged_arrays(
    arrays: Mapping[str, FloatArray],
    size: tuple[int, int],
    label: Callable[[str, int], str],
    statistics: Mapping[str, FloatArray],
    most: int | None = None,
) -> Judgement:
    """Judge draws by variable, (chain, draw, element).

    `size` is the number of chains and of draws, `label` names an element of a variable, `statistics` are the sampler's,
    by name. Of more than `most` elements the slowest are looked at, as the means of batches show them, and those that
    are not finite before all.
    """
    (chains, draws), total = size, sum(array.shape[2] for array in arrays.values())
    if draws == 0:
        return Judgement(
            _table([], {}, {}, []), (Finding("draws", "There are no draws.", "Sample longer."),), chains, 0, total
        )
    chosen = _slowest(arrays, total if most is None else most)
    x = np.concatenate([arrays[name][:, :, chosen[name]] for name in arrays], axis=2)
    names = [label(name, k) for name in arrays for k in chosen[name]]
    columns, notes = numbers(names, x)
    found = [
        *findings.broken(names, x, notes),
        *findings.size(chains, draws),
        *findings.mixing(names, columns, x, total),
        *findings.sampler(statistics, names, x),
    ]
    found.sort(key=lambda one: not one.problem)
    order = _worst_first(columns, np.array([notes.get(name) == "constant" for name in names]))
    return Judgement(_table(names, columns, notes, order), tuple(found), chains, draws, total)


def _flat(array: Any) -> FloatArray:
    """Draws of a variable as (chain, draw, element)."""
    ordered = array.transpose("chain", "draw", ...).values
    return np.asarray(ordered.reshape(*ordered.shape[:2], int(np.prod(ordered.shape[2:]))), dtype=np.float64)


def _label(array: Any, k: int) -> str:
    """The name of an element of a variable, by its coordinates."""
    dims = [d for d in array.dims if d not in ("chain", "draw")]
    if not dims:
        return str(array.name)
    index = np.unravel_index(k, tuple(array.sizes[d] for d in dims))
    at = [array[d].values[i] if d in array.coords else i for d, i in zip(dims, index, strict=True)]
    return f"{array.name}[{', '.join(map(str, at))}]"


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


def numbers(names: Sequence[str], x: FloatArray) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """Numbers of every column of `x` (chain, draw, column), and notes on those that have none."""
    finite = np.isfinite(x).all(axis=(0, 1))
    with np.errstate(invalid="ignore"):
        constant = finite & (x == x[0, 0]).all(axis=(0, 1))
    known = finite & ~constant
    good = x if known.all() else x[:, :, known]
    columns = {column: np.full(len(names), np.nan) for column in (*_NUMBERS, "mean", "sd")}
    columns["mean"][constant], columns["sd"][constant] = x[0, 0, constant], 0.0
    columns["mean"][known], columns["sd"][known] = good.mean(axis=(0, 1)), good.std(axis=(0, 1), ddof=1)
    for name in ("r_hat", "ess_bulk", "ess_tail"):
        columns[name][known] = getattr(mixing_numbers, name)(good)
    columns["mcse_over_sd"][known] = mixing_numbers.ess_mean(good) ** -0.5
    notes = {names[int(j)]: "constant" if finite[j] else "not finite" for j in np.flatnonzero(~known)}
    for j in map(int, np.flatnonzero(known & (np.diff(x, axis=1) == 0.0).any(axis=(0, 1)))):
        if still := stuck_chains(x[:, :, j]):
            notes[names[j]] = f"stuck in chain {', '.join(map(str, still))}"
    return columns, notes


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


def _worst_first(columns: Mapping[str, FloatArray], constant: FloatArray) -> list[int]:
    """Broken columns first, then by R-hat over its limit or ESS below its own, constants last."""
    ess = np.fmin(columns["ess_bulk"], columns["ess_tail"])
    with np.errstate(divide="ignore"):
        badness = np.maximum((columns["r_hat"] - 1.0) / (MAX_RHAT - 1.0), MIN_ESS_PER_CHAIN / ess)
    badness = np.where(constant, -1.0, np.where(np.isnan(badness), np.inf, badness))
    return [int(k) for k in np.argsort(-badness, kind="stable")]


def _table(
    names: Sequence[str], columns: Mapping[str, FloatArray], notes: Mapping[str, str], order: Sequence[int]
) -> pd.DataFrame:
    ordered = [names[k] for k in order]
    rows: dict[str, Any] = {key: columns[key][order] if columns else np.empty(0) for key in (*_NUMBERS, "mean", "sd")}
    rows["note"] = [notes.get(name, "") for name in ordered]
    return pd.DataFrame(rows, index=pd.Index(ordered, name="variable"))
