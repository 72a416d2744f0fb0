"""The race of the field: our defaults beside the peers of today on real sets of few rows.

    python -m benchmarks.field [--methods NAME ...] [--sets NAME ...] [--sizes N ...] [--splits K] [--page FILE]

Data are those of the folder BENCHMARK_DATA; peers are looked for in the interpreter PEERS_PYTHON (or this one), and
those that are missing are skipped and named. Every result is kept in the folder of --store: a run that was broken off
goes on where it was. `ours` and `peers` stand for all of a kind.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bayessel.diagnostics.delve import Task
from benchmarks import report
from benchmarks.field import page, race, sets
from benchmarks.field.own import OURS
from benchmarks.field.peers import PEERS
from benchmarks.field.verdicts import CONSTANT, Field
from tests.paths import ROOT


def chosen(names: list[str]) -> list[str]:
    """Methods by name, `ours` and `peers` for all of a kind; the constant, which all are compared with, always."""
    groups = {"ours": list(OURS), "peers": list(PEERS)}
    found = [CONSTANT] + [one for name in names for one in groups.get(name, [name])]
    for name in found:
        if name not in OURS and name not in PEERS:
            raise SystemExit(f"there is no method {name!r}; there are ours, peers, {', '.join([*OURS, *PEERS])}")
    return list(dict.fromkeys(found))


def told(outcome: race.Outcome, left: int) -> None:
    """One line about a fit."""
    said = outcome.error or f"{outcome.seconds:.1f} s {outcome.status}"
    print(
        f"{left:5} left  {outcome.unit.method} on {outcome.unit.task}, split {outcome.unit.split}: {said}", flush=True
    )


def main(argv: list[str] | None = None) -> int:
    """Run what is left and write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.field", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", default=["ours", "peers"], metavar="NAME")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help=", ".join(sets.TABLES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(sets.SIZES), metavar="N", help="64 256 1024")
    parser.add_argument("--splits", type=int, default=5, help="at most so many splits of each set")
    parser.add_argument("--store", type=Path, default=race.STORE, help="folder of the results")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--seconds", type=float, help="begin no fit after so many seconds")
    parser.add_argument("--limit", type=float, default=race.LIMIT, help="seconds of processor of a fit")
    parser.add_argument("--fresh", action="store_true", help="results of ours count only if they are of these sources")
    parser.add_argument("--show", action="store_true", help="run nothing: write what the store has")
    parser.add_argument("--troubles", action="store_true", help="list where ours are below the constant or ridge")
    parser.add_argument("--page", type=Path, help="write the page there, and the record to benchmarks/records")
    parser.add_argument("--records", type=Path, default=ROOT / "benchmarks" / "records", help="folder of the record")
    args = parser.parse_args(argv)
    there = sets.names()
    if not there:
        raise SystemExit("set BENCHMARK_DATA to the folder of the data: no set can be read")
    wanted = tuple(args.sets or there)
    tasks = list(sets.tasks(wanted, tuple(args.sizes)))
    return _raced(args, tasks)


def _raced(args: argparse.Namespace, tasks: list[Task]) -> int:
    began, load = time.perf_counter(), report.load()
    able, lacking = race.able(chosen(args.methods))
    if args.show:
        outcomes = race.read(args.store)
    else:
        for name, what in lacking.items():
            print(f"{name} is skipped: {what} is missing")
        store = race.opened(args.store)
        try:
            left = race.run(
                tasks, able, store, args.splits,
                jobs=args.jobs, fresh=args.fresh, seconds=args.seconds, limit=args.limit, show=told,
            )  # fmt: skip
        finally:
            store.close()
        outcomes = list(store.values.values())
        if left:
            print(f"{left} fits are left; the same command goes on with them")
    if args.fresh:
        now = race.revision()
        outcomes = [one for one in outcomes if race.is_done(one, now)]
    field = Field.of(tasks, outcomes, args.splits)
    found = page.reported(field, lacking)
    if args.troubles:
        print(page.troubles(field))
    if args.page is None:
        print(page.text(found, field))
        return 0
    args.page.write_text(page.text(found, field))
    entry = report.record(
        "field", page.TITLE, page.TEXT, found,
        quick=False, threads=1, loads=(load, report.load()), took=time.perf_counter() - began,
    )  # fmt: skip
    print(report.save(entry, args.records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
