"""Who runs against whom, and how the clock is read. No input or output, no knowledge of the engines.

Contestants take turns (A B C, B C A, ...), so a disturbance of the machine hits all of them alike, and the best of all
rounds counts: noise only ever adds time. What is reported are ratios.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

Role = Literal["ours", "peer", "limit"]


@dataclass(frozen=True)
class Contestant:
    """Something that does the work of a case.

    Attributes
    ----------
    name
        As in the table.
    role
        'ours'; a 'peer' that solves the same problem; or a 'limit': bare BLAS or LAPACK doing the arithmetic that no
        method of this kind can avoid.
    run
        From the data (or from what `prepare` made of them) to a result.
    prepare
        Called before every timed run, outside the clock; for work that changes its input.
    every
        Take part in every `every`-th round only (the first included): for the very slow.
    """

    name: str
    role: Role
    run: Callable[[Any], Any]
    prepare: Callable[[Any], Any] | None = None
    every: int = 1


@dataclass(frozen=True)
class Case:
    """One problem and those who solve it.

    `data` builds the problem (the same one on every call); the first limit in the list is the one distances refer to.
    """

    name: str
    data: Callable[[], Any]
    contestants: Sequence[Contestant]
    rounds: int = 5
    memory: bool = False


@dataclass
class Race:
    """Times of all rounds, in seconds by the clock and of processor, and each contestant's last result."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)

    def best(self, name: str) -> float:
        """Shortest time of a contestant."""
        return min(self.seconds[name])

    def ratio(self, name: str, to: str) -> float:
        """Best time of one over best time of the other."""
        return self.best(name) / self.best(to)

    def cpu_ratio(self, name: str, to: str) -> float:
        """Least processor time of one over that of the other: all threads together, waiting for a core left out."""
        return min(self.cpu[name]) / max(min(self.cpu[to]), 1e-9)

    def typical_ratio(self, name: str, to: str) -> float:
        """Median over the rounds that both took part in: agrees with `ratio` when the machine was quiet."""
        a, b = self.seconds[name], self.seconds[to]
        step = max(1, round(max(len(a), len(b)) / min(len(a), len(b))))
        a, b = (a[::step], b) if len(a) > len(b) else (a, b[::step] if len(b) > len(a) else b)
        return median(x / y for x, y in zip(a, b, strict=False))


def race(
    case: Case,
    data: Any,
    clock: Callable[[], float] = time.perf_counter,
    cpu_clock: Callable[[], float] = time.process_time,
) -> Race:
    """Let the contestants take turns; the starting place moves on every round. One untimed lap comes first."""
    found = Race()
    runners = list(case.contestants)
    for k in range(-1, case.rounds):
        shift = max(k, 0) % len(runners)
        for runner in runners[shift:] + runners[:shift]:
            if (k == -1 and runner.every > 1) or (k >= 0 and k % runner.every):
                continue
            state = data if runner.prepare is None else runner.prepare(data)
            found.results.pop(runner.name, None)  # its memory is free before the next result is made
            gc.collect()
            cpu_start, start = cpu_clock(), clock()
            result = runner.run(state)
            elapsed, cpu = clock() - start, cpu_clock() - cpu_start
            found.results[runner.name] = result
            if k >= 0:
                found.seconds.setdefault(runner.name, []).append(elapsed)
                found.cpu.setdefault(runner.name, []).append(cpu)
    return found


def rows(case: Case, outcome: Race, extra: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """One table row per contestant: time relative to ours and to the limit, then whatever `extra` has for it."""
    ours = next((c.name for c in case.contestants if c.role == "ours"), None)
    limit = next((c.name for c in case.contestants if c.role == "limit"), None)
    table = []
    for c in case.contestants:
        row: dict[str, Any] = {"case": case.name, "contestant": c.name, "role": c.role}
        row["time / ours"] = outcome.ratio(c.name, ours) if ours else None
        row["time / limit"] = outcome.ratio(c.name, limit) if limit else None
        row["cpu / ours"] = outcome.cpu_ratio(c.name, ours) if ours else None
        table.append(row | dict((extra or {}).get(c.name, {})))
    return table


@dataclass(frozen=True)
class Verdict:
    """A promise and what was measured; met when ``value <= bound`` (or ``>=``)."""

    label: str
    value: float
    bound: float
    sense: Literal["<=", ">="] = "<="

    @property
    def met(self) -> bool:
        """Whether the promise was kept (NaN never keeps one)."""
        return self.value <= self.bound if self.sense == "<=" else self.value >= self.bound


@dataclass
class Report:
    """What a workload returns: titled tables (lists of rows), promises, and times for the record."""

    tables: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, case: Case, outcome: Race, extra: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Append the rows of a race to the table of its first word ("N = ...") and keep its times."""
        self.seconds[case.name] = outcome.seconds
        if not self.tables:
            self.tables.append(("", []))
        self.tables[0][1].extend(rows(case, outcome, extra))
