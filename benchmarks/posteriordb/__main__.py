"""`bs.sample` beside the samplers of today on the posteriors of posteriordb.

    python -m benchmarks.posteriordb [--models NAME ...] [--samplers NAME ...] [--seeds K] [--page FILE]

Models are those of the folder POSTERIORDB, and shapes that are hard for samplers (`geometries`). Peers are looked for
in the interpreter PEERS_PYTHON (or this one), and those missing are skipped and named. Every run is a process of its
own, and its result is kept in the folder of --store: a race that was broken off goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from bayessel.work.result_store import ResultStore
from benchmarks.field.race import revision
from benchmarks.posteriordb import geometries
from benchmarks.posteriordb.worker import HERE, SAMPLERS, catalogue
from tests.paths import ROOT

OURS, PEERS = HERE[0], ("nutpie", "nutpie, low rank")
#: seconds a run may take
LIMIT = 900.0
#: standard errors from the reference that are still agreement
AGREES = 4.0
#: R-hat up to which chains have mixed
MIXED = 1.01


def run(model: str, sampler: str, seed: int, limit: float) -> dict[str, Any]:
    """What a fresh process says."""
    python = sys.executable if sampler in HERE else os.environ.get("PEERS_PYTHON", sys.executable)
    command = [python, "-m", "benchmarks.posteriordb.worker", model, sampler, "--seed", str(seed)]
    began = time.perf_counter()
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"more than {limit:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip() or f"ended with {done.returncode}").splitlines()[-1]
        return {"error": last[:200]}
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told | {"wall": time.perf_counter() - began}


def key(model: str, sampler: str, seed: int) -> str:
    """Name of a run in the store; ours are those of these sources."""
    return "\0".join((model, sampler, str(seed), revision() if sampler in HERE else ""))


# --- tables ---------------------------------------------------------------------------------------------------------


def middle(runs: Sequence[Mapping[str, Any]], what: str) -> float:
    """Median over seeds; nan without."""
    values = [float(one[what]) for one in runs if one.get(what) is not None]
    return float(np.median(values)) if values else np.nan


def effective(runs: Sequence[Mapping[str, Any]], per: str) -> float:
    """Least of bulk and tail ESS for each gradient or second."""
    values = [min(one["bulk"], one["tail"]) / one[per] for one in runs if one.get(per)]
    return float(np.median(values)) if values else np.nan


def row(model: str, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """One line of the page."""
    ours = [one for one in found.get(OURS, []) if "error" not in one]
    others = {name: [one for one in found.get(name, []) if "error" not in one] for name in PEERS}
    if not ours:
        said = next((str(one["error"]) for one in found.get(OURS, [])), "not run")
        return [model, said, *[""] * 8]

    def best(per: str) -> float:
        known = [effective(runs, per) for runs in others.values()]
        return max((one for one in known if np.isfinite(one)), default=np.nan)

    def ratio(per: str) -> str:
        return f"{effective(ours, per) / best(per):.2f}" if np.isfinite(best(per)) else "–"

    z, peer_z = middle(ours, "z"), np.nanmin([*(middle(runs, "z") for runs in others.values()), np.inf])
    right = "–" if np.isnan(z) else "right" if (z <= AGREES) or not ours[0]["usable"] else "WRONG"
    return [
        model,
        "–" if np.isnan(z) else f"{z:.1f} ({peer_z:.1f})" if np.isfinite(peer_z) else f"{z:.1f}",
        f"{min(middle(ours, 'bulk'), middle(ours, 'tail')):.0f}",
        f"{middle(ours, 'rhat'):.3f}",
        ratio("gradients"),
        ratio("cpu"),
        "yes" if all(one["usable"] for one in ours) else "no",
        right,
        f"{middle(ours, 'compiling'):.1f} + {middle(ours, 'seconds'):.2f}",
        " / ".join(f"{middle(runs, 'compiling'):.1f} + {middle(runs, 'seconds'):.2f}" for runs in others.values()),
    ]


INTRODUCTION = f"""\
`bs.sample` by default beside nutpie (diagonal mass, and of low rank), PyMC's NUTS, NumPyro and BlackJAX: 4 chains
of 1000 draws after 1000 of tuning on one core. Written by `python -m benchmarks.posteriordb --page`. z: the largest
distance from the reference's means and standard deviations, in standard errors; ESS: the least of bulk and tail
over all numbers; ratios: effective draws for each gradient, and for each second of processor while sampling, over
the better of nutpie's two; seconds of compiling (warm caches) and of sampling by the clock. A verdict is right
where draws that are called usable lie within {AGREES:.0f} standard errors. What is integrated out needs fewer
gradients, of another density."""

HEAD = (
    "model",
    "z (nutpie)",
    "ESS",
    "R-hat",
    "per gradient",
    "per second",
    "usable",
    "verdict",
    "compiling + sampling, s",
    "nutpie, low rank",
)


def speeds(results: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> list[str]:
    """Effective draws per second of processor of every sampler, and whether its R-hat is below 1.01."""
    names = [name for name in SAMPLERS if any(found.get(name) for found in results.values())]
    lines = ["| model | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for model, found in results.items():
        cells = []
        for name in names:
            runs = [one for one in found.get(name, []) if "error" not in one]
            mark = "" if middle(runs, "rhat") <= MIXED else " *"
            cells.append(f"{effective(runs, 'cpu'):,.0f}{mark}" if runs else "failed" if found.get(name) else "–")
        lines.append(f"| {model} | " + " | ".join(cells) + " |")
    return lines


def page(results: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> str:
    """The table, and what is asked of it."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    rows = [row(model, found) for model, found in results.items()]
    lines += ["| " + " | ".join(one) + " |" for one in rows]
    for column, what in ((4, "effective draws per gradient"), (5, "effective draws per second of processor")):
        ratios = [float(one[column]) for one in rows if one[column] not in ("", "–")]
        if ratios:
            low = sum(ratio < 0.3 for ratio in ratios)
            lines += ["", f"{what}, ours over the better of nutpie's: median {np.median(ratios):.2f}, {low} below 0.3"]
    lines += ["", f"Effective draws per second of processor (*: R-hat above {MIXED}, a number that says little).", ""]
    return "\n".join([*lines, *speeds(results)])


def main(argv: list[str] | None = None) -> int:
    """Run what is left and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.posteriordb",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", nargs="+", metavar="NAME", help="part of a name is enough")
    parser.add_argument("--samplers", nargs="+", default=[OURS, *PEERS], choices=SAMPLERS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each")
    parser.add_argument("--store", type=Path, default=ROOT / ".cache" / "posteriordb", help="folder of the results")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a run")
    parser.add_argument("--page", type=Path, help="write the table there")
    given = parser.parse_args(argv)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    known = [*(catalogue().CATALOGUE if "POSTERIORDB" in os.environ else []), *geometries.CATALOGUE]
    names = [name for name in known if not given.models or any(part in name for part in given.models)]
    results: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in names}
    with closing(ResultStore[dict[str, Any]](given.store, "posteriordb", {})) as store:
        for name in names:
            for sampler in given.samplers:
                for seed in range(1, given.seeds + 1):
                    found = store.get(key(name, sampler, seed))
                    kept = found[0] if found else run(name, sampler, seed, given.limit)
                    if not found:
                        store.put(key(name, sampler, seed), kept)
                        print(f"{name}, {sampler}, seed {seed}: {json.dumps(kept)}", flush=True)
                    results[name].setdefault(sampler, []).append(kept)
    text = page(results)
    print(text)
    if given.page:
        given.page.write_text(f"# Posteriors of posteriordb\n\n{INTRODUCTION}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
