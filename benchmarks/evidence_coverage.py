"""Whether the errors of `bs.evidence` mean something: many runs over the zoo of models whose evidence is known.

python -m benchmarks.evidence_coverage [--runs 1000] [--only NAME ...] [--file FILE] [--show]

A line of JSON per run goes into the file; a later call does what is missing. Lines of other sources of
`bayessel.marginal_likelihood` are left alone and not counted.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

import bayessel as bs
from bayessel import marginal_likelihood
from tests.marginal_likelihood.zoo import ALL
from tests.marginal_likelihood.zoo.case import Case

FILE = Path(__file__).parent / "results" / "evidence_coverage.jsonl"
#: nats within which a number is as good as the truth, whatever its error
NEAR = 0.05


@cache
def code() -> str:
    """A name of the sources that are judged."""
    paths = sorted(Path(next(iter(marginal_likelihood.__path__))).glob("*.py"))
    return f"{zlib.crc32(b''.join(path.read_bytes() for path in paths)):08x}"


def run(name: str, case: Case, seed: int) -> dict[str, Any]:
    """One evidence of one model, and what it cost."""
    row: dict[str, Any] = {"case": name, "seed": seed, "code": code(), "truth": case.truth}
    row["truth error"] = case.truth_error
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = bs.evidence(case.model, random_seed=seed, quiet=True)
        except Exception as failure:  # whatever it is, it is a result
            return {**row, "failed": f"{type(failure).__name__}: {failure}"[:500], "seconds": process_time() - start}
    routes = {one.name: [one.value, one.error, one.reliable, one.reason] for one in found.routes}
    return {
        **row,
        "value": found.value,
        "error": found.error,
        "reliable": bool(found.reliable),
        "exact": any(one.is_exact and one.reliable for one in found.routes),
        "comparable": found.comparable,
        "verdict": found.verdict,
        "routes": routes,
        "seconds": process_time() - start,
    }


def read(path: Path) -> list[dict[str, Any]]:
    """What is known of these sources; a last line that was cut off is none."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row["code"] == code():
            rows.append(row)
    return rows


def collect(makers: Mapping[str, Callable[[], Case]], runs: int, path: Path) -> list[dict[str, Any]]:
    """Every case with seeds 1, 2, ... until there are so many runs."""
    rows = read(path)
    done = {(row["case"], row["seed"]) for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.read_text().endswith("\n"):
        with path.open("a") as file:  # a run was stopped while it wrote
            file.write("\n")
    cases: dict[str, Case] = {}
    for count in range(runs):
        seed, name = 1 + count // len(makers), list(makers)[count % len(makers)]
        if (name, seed) in done:
            continue
        if name not in cases:
            cases[name] = makers[name]()
        row = run(name, cases[name], seed)
        rows.append(row)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        said = row.get("failed") or f"{row['value'] - row['truth']:+.4f} ± {row['error']:.4f}, {row['reliable']}"
        print(f"{count + 1:5d} {name:28} seed {seed:3d}  {said}  {row['seconds']:.1f} s", flush=True)
    return rows


def off(row: Mapping[str, Any]) -> float:
    """Value less truth."""
    return float(row["value"]) - float(row["truth"])


def allowed(row: Mapping[str, Any]) -> float:
    """Two errors, that of the truth among them, and rounding."""
    return 2.0 * math.hypot(row["error"], row["truth error"]) + 1e-4


def table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per case, in the order of the zoo."""
    order = {make.__name__: place for place, make in enumerate(ALL)}
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: order.get(row["case"], len(order))):
        groups.setdefault(row["case"], []).append(row)
    return pd.DataFrame([_summary(name, group) for name, group in groups.items()])


def _summary(name: str, group: list[Mapping[str, Any]]) -> dict[str, Any]:
    ended = [row for row in group if "value" in row]
    sure = [row for row in ended if row["reliable"]]
    d = np.array([off(row) for row in sure])
    return {
        "case": name,
        "runs": len(group),
        "truth": group[0]["truth"],
        "bias": d.mean() if len(d) else math.nan,
        "sd": d.std(ddof=1) if len(d) > 1 else math.nan,
        "error": np.mean([row["error"] for row in sure]) if sure else math.nan,
        "covered": np.mean([abs(off(row)) <= allowed(row) for row in sure]) if sure else math.nan,
        "missed": sum(abs(off(row)) > NEAR + 2.0 * row["truth error"] for row in sure),
        "flagged": 1.0 - len(sure) / max(len(ended), 1),
        "failed": len(group) - len(ended),
        "seconds": float(np.median([row["seconds"] for row in group])),
    }


def overall(rows: Iterable[Mapping[str, Any]]) -> str:
    """How often two errors hold the truth, with and without the runs in which nothing is random."""
    sure = [row for row in rows if row.get("reliable")]
    random = [row for row in sure if not row["exact"]]
    lines = []
    for name, some in (("reliable", sure), ("reliable and random", random)):
        share = np.mean([abs(off(row)) <= allowed(row) for row in some]) if some else math.nan
        misses = sum(abs(off(row)) > NEAR + 2.0 * row["truth error"] for row in some)
        lines.append(f"{name}: {len(some)} runs, {share:.1%} within two errors, {misses} further off than {NEAR} nat")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence_coverage", description=__doc__)
    makers = {make.__name__: make for make in ALL}
    parser.add_argument("--runs", type=int, default=1000, help="of all cases together")
    parser.add_argument("--only", nargs="+", choices=list(makers), metavar="NAME", help="of these cases alone")
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--show", action="store_true", help="run nothing: print the table of what is there")
    args = parser.parse_args(argv)
    chosen = {name: makers[name] for name in args.only or makers}
    rows = read(args.file) if args.show else collect(chosen, args.runs, args.file)
    found = table([row for row in rows if row["case"] in chosen])
    if len(found):
        print("| " + " | ".join(found.columns) + " |\n|" + "---|" * len(found.columns))
        for one in found.itertuples(index=False):
            print("| " + " | ".join(x if isinstance(x, str) else f"{x:.4g}" for x in one) + " |")
        print(overall(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
