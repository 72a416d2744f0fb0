"""Peak memory of one contestant in a fresh process: nothing that ran before can have left its mark.

The process imports everything, builds the data, resets the kernel's high-water mark of its resident memory, runs the
contestant once and reads the mark. ``python -m benchmarks.memory workload case contestant`` prints it as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

from bayessel._memory import high_water, reset_high_water, resident
from tests.paths import ROOT


class Peak(NamedTuple):
    """Megabytes (1e6 bytes): the whole process at its peak, and what the run added to the process with its data."""

    total: float
    added: float


def measure(case: Any, name: str) -> Peak:
    """Run one contestant of a case in this process and return its peak."""
    runner = next(c for c in case.contestants if c.name == name)
    data = case.data()
    state = data if runner.prepare is None else runner.prepare(data)
    reset_high_water()
    before = resident()
    runner.run(state)
    peak = high_water()
    return Peak(peak, peak - before)


def in_fresh_process(workload: str, case: str, contestant: str, *, quick: bool, threads: int) -> Peak:
    """Start an interpreter for one contestant."""
    command = [sys.executable, "-m", "benchmarks.memory", workload, case, contestant, "quick" if quick else "full"]
    env = os.environ | {f"{name}_NUM_THREADS": str(threads) for name in ("OPENBLAS", "OMP", "MKL")}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {contestant} on {case} failed:\n{done.stderr}")
    return Peak(*json.loads(done.stdout.splitlines()[-1]))


def main(argv: list[str]) -> None:
    from benchmarks.workloads import load

    workload, case, contestant, size = argv
    found = next(c for c in load(workload).cases(size == "quick") if c.name == case)
    print(json.dumps(list(measure(found, contestant))))


if __name__ == "__main__":
    main(sys.argv[1:])
