"""Samplers by turns, each in a process of its own, and what their draws are worth: effective draws per second.

Seconds are those of processor, all threads together: on a machine to itself they are the seconds of the clock, for
everybody runs on one core, and where others run beside them they still compare.

A fast wrong sampler is not fast: means are compared between contestants in Monte Carlo standard errors, and whoever
has not converged, or converged elsewhere, has no time in the table.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np

from benchmarks.memory import ROOT
from benchmarks.rvm_cases import Array
from benchmarks.rvm_worker import NOT_INSTALLED
from benchmarks.sampler_cases import quantities
from benchmarks.sampler_run import Setting
from benchmarks.sampler_worker import ENTRANTS

STOPPED = 24  # SIGXCPU
LIMIT = float(os.environ.get("PEERS_TIME_LIMIT", "900"))  # seconds of processor, after which a worker is stopped
#: one thread for every library there is
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "NPROC": "1",
    "PJRT_NPROC": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
SLOW = 20.0  # seconds: beyond, one turn is enough
LARGEST_RHAT = 1.1
LARGEST_DIFFERENCE = 4.0  # Monte Carlo standard errors


@dataclass
class Outcome:
    """All turns of one contestant; `why` says what is missing."""

    setting: Setting
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    compiling: list[float] = field(default_factory=list)
    gradients: list[int] = field(default_factory=list)
    diverging: int = 0
    draws: list[dict[str, Array]] = field(default_factory=list)
    version: str = ""
    why: str | None = None


@dataclass(frozen=True)
class Worth:
    """Bulk and tail effective size, R-hat, mean and its standard error, by quantity."""

    ess: dict[str, float]
    rhat: float
    mean: dict[str, float]
    mcse: dict[str, float]

    @property
    def least(self) -> str:
        """The quantity with the fewest effective draws."""
        return min(self.ess, key=lambda name: self.ess[name])


def worth(found: Mapping[str, Array]) -> Worth:
    """Rank-normalised bulk and tail effective sizes (the smaller of both) by ArviZ, of draws (chain, draw)."""
    import arviz as az

    def least_size(x: Array) -> float:
        size = min(float(az.ess(x, method="bulk")), float(az.ess(x, method="tail", prob=(0.05, 0.95))))
        # draws that are not finite have no effective size that ArviZ could tell
        return size if math.isfinite(size) else 0.0

    def rhat(x: Array) -> float:
        ratio = float(az.rhat(x))
        return ratio if math.isfinite(ratio) else math.inf  # nothing moved

    with np.errstate(all="ignore"):
        return Worth(
            {name: least_size(x) for name, x in found.items()},
            max(rhat(x) for x in found.values()),
            {name: float(np.mean(x)) for name, x in found.items()},
            {name: float(az.mcse(x, method="mean")) for name, x in found.items()},
        )


def difference(one: Worth, other: Worth) -> float:
    """Largest difference of two means in its standard errors."""
    gaps = [abs(one.mean[k] - other.mean[k]) / (math.hypot(one.mcse[k], other.mcse[k]) or 1e-300) for k in one.mean]
    return max((gap if math.isfinite(gap) else math.inf) for gap in gaps)


def python_for(name: str) -> str:
    """Return the interpreter of a contestant: this one, or that of PEERS_PYTHON."""
    return sys.executable if ENTRANTS[name].here else os.environ.get("PEERS_PYTHON", sys.executable)


def one_turn(case: str, name: str, setting: Setting, found: Outcome) -> None:
    """Let a contestant sample in a fresh process; what it says is added to `found`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "draws.npz"
        command = [python_for(name), "-m", "benchmarks.sampler_worker", case, name, str(out)]
        for key in ("chains", "tune", "draws", "seed"):
            command += [f"--{key}", str(getattr(setting, key))]
        command += ["--most", str(LIMIT)]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=os.environ | ONE_THREAD,
                capture_output=True,
                text=True,
                check=False,
                timeout=10 * LIMIT,
            )
        except subprocess.TimeoutExpired:
            found.why = f"stopped after {10 * LIMIT:g} s"
            return
        if done.returncode == -STOPPED:
            found.why = f"stopped after {LIMIT:g} s of processor"
            return
        if done.returncode == NOT_INSTALLED:
            found.why = f"not installed ({json.loads(done.stdout.splitlines()[-1])['missing']})"
            return
        if done.returncode:
            found.why = f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
            return
        said = json.loads(done.stdout.splitlines()[-1])
        found.seconds.append(said["seconds"])
        found.cpu.append(said["cpu"])
        found.compiling.append(said["compiling"])
        if said["gradients"] is not None:
            found.gradients.append(said["gradients"])
        found.diverging += said["diverging"]
        found.version = f"{ENTRANTS[name].package} {said['version']}"
        with np.load(out) as draws:
            found.draws.append(dict(draws))


def turns(case: str, settings: Mapping[str, Setting], rounds: int) -> dict[str, Outcome]:
    """Everybody once, then again those who are not slow, with other seeds; the starting place moves."""
    found = {name: Outcome(setting) for name, setting in settings.items()}
    names = list(found)
    for k in range(rounds):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            one = found[name]
            if k == 0 or (one.why is None and min(one.cpu) < SLOW):
                setting = one.setting
                again = Setting(setting.chains, setting.tune, setting.draws, setting.seed + 1000 * k)
                one_turn(case, name, again, one)
                print(f"    {case}, {name}: {one.why or f'{one.cpu[-1]:.2f} s'}", flush=True)
    return found


def table(case: str, found: Mapping[str, Outcome], ours: str, per_gradient: bool = False) -> list[dict[str, Any]]:
    """One row per contestant that ran. Chains of all turns are pooled; the best turn's time counts for each of them."""
    worths = {name: worth(quantities(case, pooled(one.draws))) for name, one in found.items() if one.draws}
    if ours not in worths:
        raise RuntimeError(f"{ours} on {case}: {found[ours].why}")
    rows = []
    speed: dict[str, float] = {}
    for name, one in worths.items():
        run = found[name]
        speed[name] = one.ess[one.least] / (min(run.cpu) * len(run.cpu))
        gap = apart(name, worths)
        sound = one.rhat <= LARGEST_RHAT and not gap > LARGEST_DIFFERENCE
        kept = run.setting.chains * run.setting.draws * len(run.seconds)
        row: dict[str, Any] = {"case": case, "contestant": name, "role": role(name)}
        row["time / ours"] = speed[ours] / speed[name] if sound else None
        row["ESS / s"] = speed[name]
        if per_gradient:
            total = sum(run.gradients)
            row["ESS / 1000 gradients"] = 1000.0 * one.ess[one.least] / total if total else None
            row["gradients / draw"] = total / kept
        row |= {
            "ESS / 1000 draws": 1000.0 * one.ess[one.least] / kept,
            "slowest": one.least,
            "draws": kept,
            "seconds": min(run.cpu),
            "clock / cpu": sum(run.seconds) / max(sum(run.cpu), 1e-9),
            "compiling (s)": min(run.compiling),
            "R-hat": one.rhat,
            "divergent": run.diverging,
            "MCSE apart": gap,
            "sound": "yes" if sound else "**no**",
        }
        rows.append(row)
    return rows


def role(name: str) -> str:
    """'ours' or 'peer'."""
    return "ours" if ENTRANTS[name].package == "bayessel" else "peer"


def pooled(draws: Iterable[Mapping[str, Array]]) -> dict[str, Array]:
    """The chains of several runs side by side."""
    draws = list(draws)
    return {key: np.concatenate([one[key] for one in draws]) for key in draws[0]}


def apart(name: str, worths: Mapping[str, Worth]) -> float:
    """Typical difference from those who converged, MCSE: the lower median, so that one who is wrong convicts nobody.

    Ours are compared with peers alone: what they have in common could be wrong in common.
    """
    others = [
        one
        for other, one in worths.items()
        if other != name and one.rhat <= LARGEST_RHAT and "peer" in (role(name), role(other))
    ]
    return median_low([difference(worths[name], one) for one in others]) if others else math.nan


def best_peer(rows: Iterable[Mapping[str, Any]], by: str = "ESS / s") -> Mapping[str, Any] | None:
    """Return the sound peer with the most effective draws per second."""
    sound = [row for row in rows if row["role"] == "peer" and row["sound"] == "yes"]
    return max(sound, key=lambda row: row[by], default=None)


def footnotes(found: Mapping[str, Mapping[str, Outcome]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Titled tables: the packages' versions, and who is missing where, and why."""
    outcomes = [(case, name, one) for case, group in found.items() for name, one in group.items()]
    versions = sorted({one.version for *_, one in outcomes if one.version})
    tables = [("", [{"versions": ", ".join(versions)}])]
    missing: dict[tuple[str, str], list[str]] = {}
    for case, name, one in outcomes:
        if one.why is not None:
            missing.setdefault((name, one.why), []).append(case)
    if missing:
        rows = [{"contestant": name, "why": why, "cases": ", ".join(where)} for (name, why), where in missing.items()]
        tables.append(("Not in the tables:", rows))
    return tables
