"""Command line: ``python -m benchmarks [--only NAME ...] [--quick] [--threads K] [--out DIR] [--page FILE]``."""

from __future__ import annotations

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import report
from benchmarks.memory import ROOT, in_fresh_process
from benchmarks.workloads import NAMES, load


def main(argv: list[str] | None = None) -> int:
    """Run the workloads asked for; 0 even where a promise is missed, for the page says so."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="tiny problems, to see that everything runs")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="BLAS threads for everybody")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the JSON records")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md", help="the page to write")
    args = parser.parse_args(argv)
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
        print(f"  -> {report.save(entry, args.out)}")
        for head, body in found.tables:
            print(*([head] if head else []), report.markdown_table(body), sep="\n")
        report.print_verdicts(found.verdicts)
    if not args.quick:
        write_page(args.out, args.page)
    return 0


def write_page(records: Path, page: Path) -> None:
    """Renew the sections of all workloads that there is a record of; it names those that never had a full run."""
    known = [json.loads(path.read_text()) for name in NAMES if (path := records / f"{name}.json").exists()]
    page.parent.mkdir(parents=True, exist_ok=True)
    before = page.read_text() if page.exists() else ""
    page.write_text(report.page(known, NAMES, before))
    print(f"-> {page}: {', '.join(one['workload'] for one in known)}")


if __name__ == "__main__":
    raise SystemExit(main())
