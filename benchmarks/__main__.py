"""Command line: ``python -m benchmarks [--only NAME ...] [--quick] [--show] [--threads K] [--out DIR]``."""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import report
from benchmarks.memory import ROOT, in_fresh_process
from benchmarks.workloads import NAMES, load


def main(argv: list[str] | None = None) -> int:
    """Run the workloads asked for; 0 even where a promise is missed, for the record says so."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="tiny problems, to see that everything runs")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="BLAS threads for everybody")
    parser.add_argument(
        "--out", type=Path, help="folder of the JSON records (benchmarks/records; of quick runs results)"
    )
    parser.add_argument("--show", action="store_true", help="run nothing: print the records, and where we do not win")
    args = parser.parse_args(argv)
    out = args.out or ROOT / "benchmarks" / ("results" if args.quick else "records")
    if args.show:
        known = report.read(out, args.only)
        print(*map(report.section, known), "## Where we do not win", "\n".join(report.losses(known)), sep="\n\n")
        return 0
    for name in args.only:
        workload = load(name)  # imported before the limit is set: the limit must reach every BLAS that is loaded
        with threadpool_limits(limits=args.threads):
            pools = sorted({f"{p['user_api']} ({p['internal_api']}): {p['num_threads']}" for p in threadpool_info()})
            print(f"{name}: {workload.TITLE}; threads {', '.join(pools)}; load {report.load():.2f}", flush=True)
            before, start = report.load(), time.perf_counter()
            memory = partial(in_fresh_process, name, quick=args.quick, threads=args.threads)
            found = workload.run(args.quick, memory)
        entry = report.record(
            name,
            workload.TITLE,
            workload.TEXT,
            found,
            quick=args.quick,
            threads=args.threads,
            loads=(before, report.load()),
            took=time.perf_counter() - start,
        )
        print(f"  -> {report.save(entry, out)}")
        for head, body in found.tables:
            print(*([head] if head else []), report.markdown_table(body), sep="\n")
        report.print_verdicts(found.verdicts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
