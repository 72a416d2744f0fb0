"""The evidence of a linear model of rows that lie in a folder of Parquet files: one process beside a cluster of two.

    python -m benchmarks.partitions [--rows N] [--inputs D] [--columns M] [--folder FOLDER] [--turns K]

Writes the folder (8 bytes for each number), then sums it with one process and on two Dask workers in turns, one BLAS
thread each, and once more with a worker killed on the way. Prints seconds, their ratio, the peak memory of each
process, bytes read a second, and whether the evidences are the same bits. Without ``--columns`` the inputs are the
columns of the design, so reading is most of the work; with it M radial functions are computed from them.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bayessel._memory import high_water, reset_high_water
from bayessel.basis import RBFDictionary
from bayessel.linear import LinearFit, fit_evidence_stream

FILES, GROUP = 8, 65_536


def write(folder: Path, rows: int, inputs: int) -> int:
    """Rows of normal inputs and a linear target in several files; their bytes."""
    weights = np.random.default_rng(0).normal(size=inputs)
    names = [*(f"x{d}" for d in range(inputs)), "y"]
    folder.mkdir(parents=True, exist_ok=True)
    for k, part in enumerate(np.array_split(np.arange(rows), FILES)):
        path = folder / f"part-{k:02d}.parquet"
        with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names]), compression="none") as writer:
            rng = np.random.default_rng([1, k])
            for start in range(0, len(part), GROUP):
                n = min(GROUP, len(part) - start)
                X = rng.normal(size=(n, inputs))
                y = X @ weights + rng.normal(size=n)
                writer.write_table(pa.table([*X.T, y], names=names), row_group_size=GROUP)
    return sum(path.stat().st_size for path in folder.iterdir())


def summed(folder: Path, dictionary: RBFDictionary | None, executor: object) -> tuple[float, LinearFit]:
    """Seconds on the clock, and the fit."""
    began = time.perf_counter()
    how = {"n_jobs": 1} if executor is None else {"executor": executor}
    fit = fit_evidence_stream(folder, target="y", dictionary=dictionary, progressbar=False, **how)
    return time.perf_counter() - began, fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--inputs", type=int, default=100)
    parser.add_argument("--columns", type=int, help="radial functions of the inputs; default: the inputs themselves")
    parser.add_argument("--folder", type=Path, help="where the rows are written, and left; default: a temporary folder")
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch) / "rows"
        size = write(folder, asked.rows, asked.inputs)
        print(f"{asked.rows} rows, {asked.inputs} inputs, {size / 1e9:.2f} GB in {FILES} files")
        centres = np.random.default_rng(2).normal(size=(asked.columns or 1, asked.inputs))
        dictionary = RBFDictionary(centres, 2.0 * np.sqrt(asked.inputs)) if asked.columns else None
        race(folder, size, dictionary, asked.turns)


def race(folder: Path, size: int, dictionary: RBFDictionary | None, turns: int) -> None:
    """One process and two workers in turns, then a cluster that loses a worker."""
    seconds: dict[str, list[float]] = {"one process": [], "two workers": []}
    for name in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(reset_high_water)
        reset_high_water()
        fits = []
        for _ in range(turns):
            for name, executor in (("one process", None), ("two workers", client)):
                spent, fit = summed(folder, dictionary, executor)
                seconds[name].append(spent)
                fits.append(fit)
        peaks = [high_water(), *client.run(high_water).values()]
        best = {name: min(found) for name, found in seconds.items()}
        for name, found in best.items():
            print(f"{name}: {found:.1f} s, {size / found / 1e6:.0f} MB/s")
        print(f"ratio {best['one process'] / best['two workers']:.2f}")
        print("peak memory in MB, this process and the workers:", ", ".join(f"{peak:.0f}" for peak in peaks))
        killed = threading.Timer(
            best["two workers"] / 3, os.kill, (next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        )
        killed.start()
        spent, fit = summed(folder, dictionary, client)
        killed.join()
        print(f"a worker killed on the way: {spent:.1f} s")
        fits.append(fit)
    same = all(one.log_evidence == fits[0].log_evidence for one in fits)
    print(f"log evidence {fits[0].log_evidence:.6f}, the same bits in all {len(fits)}: {same}")


if __name__ == "__main__":
    main()
