"""Speed and evidence of the engines in this checkout beside those of an earlier revision, in one run.

    python -m benchmarks.revisions REVISION [--only CASE ...] [--turns N] [--json FILE]

Two processes, one that imports the checkout and one that imports a copy which `git archive` made of the revision, do
the same calls by turns on the same data, and the best of the turns counts, in seconds of processor. A case is a call
that both revisions know, on the problems of the recorded benchmarks or smaller ones of the same kind; its value (a log
evidence, a log likelihood, the mean of draws) must be the same, and the ratio of times at most `SLOWER`.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: the checkout whose revisions are compared
SOURCES = ROOT
#: a case that takes this many times the earlier revision's time is slower
SLOWER = 1.1
#: nats: an evidence lower by more than this is worse
NATS = 1e-3


@dataclass
class Turns:
    """What one revision gave: the best time, and the value of the last turn."""

    seconds: float = math.inf
    value: float = math.nan
    trouble: str = ""


class Worker:
    """A process that imports one revision and answers a line with a case's name by its time and value."""

    def __init__(self, packages: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(packages), str(ROOT)]),
            "PYTENSOR_FLAGS": f"base_compiledir={packages / 'compiled'}",
            **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.revision_cases", str(packages)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=packages,
        )  # fmt: skip

    def turn(self, case: str, found: Turns) -> None:
        """Run a case once."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                answer = json.loads(line)
                found.seconds = min(found.seconds, answer.get("seconds", math.inf))
                found.value, found.trouble = answer.get("value", math.nan), answer.get("trouble", "")
                return
        found.trouble = "the process ended"

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def packages_of(revision: str | None, folder: Path) -> Path:
    """Lay the packages of a revision (None: of the checkout) out in a folder that they are imported from."""
    sources = SOURCES
    if revision is not None:
        sources = folder / "sources"
        archive = subprocess.run(
            ["git", "archive", revision, "bayessel", "models", "diagnostics"],
            cwd=SOURCES,
            check=True,
            capture_output=True,
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(sources, filter="data")
    packages = folder / "packages"
    (packages / "bayessel").mkdir(parents=True)
    for path in (sources / "bayessel").iterdir():
        (packages / "bayessel" / path.name).symlink_to(path)
    for name in ("models", "diagnostics"):
        (packages / "bayessel" / name).symlink_to(sources / name)
    return packages


def compare(revision: str, names: list[str], turns: int) -> list[dict[str, object]]:
    """Race the checkout against a revision, case by case."""
    table = []
    with tempfile.TemporaryDirectory() as scratch:
        sides = [Worker(packages_of(rev, Path(scratch) / side)) for rev, side in ((revision, "then"), (None, "now"))]
        for name in names:
            found = [Turns(), Turns()]
            for k in range(turns + 1):
                order = (0, 1) if k % 2 else (1, 0)
                for side in order:
                    # the first turn compiles and fills caches
                    sides[side].turn(name, Turns() if k == 0 and turns > 1 else found[side])
            then, now = found
            row = {
                "case": name, "then": then.seconds, "now": now.seconds, "ratio": now.seconds / then.seconds,
                "value": now.value, "difference": now.value - then.value, "trouble": then.trouble or now.trouble,
            }  # fmt: skip
            table.append(row)
            verdict = "SLOWER" if now.seconds > SLOWER * then.seconds else ""
            verdict += " LOWER" if row["difference"] < -NATS else " differs" if abs(row["difference"]) > NATS else ""
            print(
                f"{name:34} {then.seconds:9.4f} s {now.seconds:9.4f} s  x{row['ratio']:5.2f}"
                f"  {now.value:16.6f} {row['difference']:+11.2e}  {verdict} {row['trouble']}",
                flush=True,
            )
        for side in sides:
            side.close()
    return table


def main(argv: list[str] | None = None) -> int:
    """Print the table; 1 where something is slower or lower."""
    from benchmarks.revision_cases import CASES

    parser = argparse.ArgumentParser(prog="python -m benchmarks.revisions", description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--only", nargs="+", choices=sorted(CASES), default=list(CASES), metavar="CASE")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    table = compare(args.revision, args.only, args.turns)
    if args.json:
        args.json.write_text(json.dumps(table, indent=1) + "\n")
    good = all(row["ratio"] <= SLOWER and row["difference"] >= -NATS and not row["trouble"] for row in table)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
