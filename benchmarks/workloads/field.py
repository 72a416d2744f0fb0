"""The race of the field as a workload: it goes on with the store that ``python -m benchmarks.field`` keeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bayessel.diagnostics import delve
from bayessel.diagnostics.delve import families
from benchmarks.field import page, race, sets
from benchmarks.field.own import OURS
from benchmarks.field.peers import PEERS
from benchmarks.field.verdicts import CONSTANT, RIDGE, Field
from benchmarks.harness import Case, Contestant, Report

TITLE, TEXT = page.TITLE, page.TEXT
SPLITS = 5


def rehearsal() -> delve.Task:
    """Two splits of a generated set."""
    return families.family("friedman-1").dataset(1000).prototask().task(64, instances=2, test_cases=64)


def cases(quick: bool) -> list[Case]:
    """The methods, for the list; nobody is timed against anybody."""
    racers = [Contestant(name, "ours" if name in OURS else "peer", lambda data: None) for name in race.EVERYONE]
    return [Case("field", lambda: None, racers)]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    if quick:
        with TemporaryDirectory() as folder:
            return raced([rehearsal()], [CONSTANT, RIDGE], Path(folder) / "field", 2)
    seconds = os.environ.get("BENCHMARK_SECONDS")
    tasks = list(sets.tasks(sets.names()))
    return raced(tasks, [*PEERS, *OURS], race.STORE, SPLITS, seconds=float(seconds) if seconds else None)


def raced(tasks: list[delve.Task], methods: Iterable[str], store: Path, splits: int, **options: Any) -> Report:
    """What is left of a race, and its report."""
    able, lacking = race.able(methods)
    results = race.opened(store)
    try:
        race.run(tasks, able, results, splits, **options)
    finally:
        results.close()
    return page.reported(Field.of(tasks, results.values.values(), splits), lacking)
