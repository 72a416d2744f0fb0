"""Sums over partitions of rows: the fit in memory, whoever sums, in whatever order, whatever died on the way.

Guards `bayessel.linear.row_partitions`, `bayessel.linear.partitioned_sums`.
"""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
import submitit

from bayessel import linear
from bayessel._table_blocks import iter_blocks, table_partitions
from bayessel.basis import RBFDictionary
from bayessel.linear import fit_evidence_stream
from bayessel.linear.moments import Moments
from bayessel.linear.row_partitions import block_source

COLUMNS = ["a", "b", "c", "d"]


def problem(rows=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal([0, 3, -40, 1], size=(rows, 4))
    return X, X @ [1.0, -2.0, 0.5, 0.0] + 7 + 0.3 * rng.normal(size=rows)


def folder_of(path, X, y, files=3, group=500):
    """A folder as Dask writes it, a note of Spark's in it."""
    path.mkdir()
    frame = pd.DataFrame(X, columns=COLUMNS).assign(y=y)
    for k, part in enumerate(np.array_split(np.arange(len(y)), files)):
        frame.iloc[part].to_parquet(path / f"part.{k}.parquet", row_group_size=group, index=False)
    (path / "_SUCCESS").write_text("")
    return path


def close(streamed, fit, tolerance=1e-10):
    for name in ("log_evidence", "alpha", "beta", "gamma"):
        np.testing.assert_allclose(getattr(streamed, name), getattr(fit, name), rtol=tolerance, err_msg=name)
    np.testing.assert_allclose(streamed.coef, fit.coef, rtol=max(1e-8, tolerance), atol=tolerance)
    assert streamed.n_rows == fit.n_rows


def same_bits(one, other):
    assert one.log_evidence == other.log_evidence and one.n_rows == other.n_rows
    np.testing.assert_array_equal(one.coef, other.coef)


@pytest.mark.parametrize("arithmetic", ["gram", "qr"])
@pytest.mark.parametrize("centre", [False, True])
def test_a_folder_is_the_whole_table(tmp_path, arithmetic, centre):
    X, y = problem()
    folder = folder_of(tmp_path / "rows", X, y)
    assert len(table_partitions(folder, "y", rows=125)) == 12  # four files' groups of 500, each for itself
    how = {"target": "y", "centre": centre, "arithmetic": arithmetic, "block_rows": 125}
    fit = fit_evidence_stream(folder, **how)
    close(fit, linear.fit_evidence(X, y, centre=centre))
    with ThreadPoolExecutor(2) as pool:
        same_bits(fit, fit_evidence_stream(str(folder), executor=pool, **how))


def test_the_sums_of_parts_are_those_of_the_whole():
    """Both kinds, with and without means, in any order; statistics with another shift are refused."""
    X, y = problem(900)
    for centre in (False, True):
        for exact in (False, True):
            start = Moments.of((X[:100], y[:100]), centre=centre, exact=exact).empty()
            parts = [start.empty() for _ in range(3)]
            for part, rows in zip(parts, np.array_split(np.arange(900), 3), strict=True):
                part.update(X[rows], y[rows])
            total = start.empty()
            for part in reversed(parts):
                total.add(part)
            centred = [z - z.mean(axis=0) if centre else z for z in (X, y)]
            G = np.column_stack(centred).T @ np.column_stack(centred)
            np.testing.assert_allclose(total.gram(), G, rtol=1e-9, atol=1e-9 * np.abs(G).max())
            assert total.n_rows == 900 and total.t_scale == np.abs(y).max()
    with pytest.raises(ValueError, match="differ in shift or kind"):
        total.add(Moments.of((X + 5, y), centre=True, exact=True))


def test_one_file_and_a_dictionary(tmp_path):
    X, y = problem(3000)
    folder = folder_of(tmp_path / "rows", X, y, files=1, group=400)
    dictionary = RBFDictionary(X[:12], 3.0)
    fit = fit_evidence_stream(folder / "part.0.parquet", target="y", dictionary=dictionary, block_rows=100)
    Phi = dictionary.design(X)[:, :-1]
    close(fit, linear.fit_evidence(Phi, y, centre=True), 1e-8)


def test_bad_columns_of_a_later_partition_need_a_second_pass(tmp_path):
    """The first rows look harmless; at the end two columns are nearly equal, so that squares lose digits."""
    X, y = problem(80_000)
    X[:, 1] = np.where(np.arange(80_000) < 40_000, X[:, 1], X[:, 0] * (1 + 1e-7 * X[:, 2]))
    X[:40_000, :2] *= 1e-7
    folder = folder_of(tmp_path / "rows", X, y, files=2, group=20_000)
    fit = fit_evidence_stream(folder, target="y", block_rows=5000)
    assert fit.spectrum.route == "stream-qr"
    close(fit, linear.fit_evidence(X, y), 1e-7)


def test_dask_arrays_and_frames():
    X, y = problem(2000)
    expected = linear.fit_evidence(X, y, centre=True)
    arrays = (da.from_array(X, chunks=(300, 2)), da.from_array(y, chunks=700))
    fit = fit_evidence_stream(arrays, centre=True)
    close(fit, expected)
    with ThreadPoolExecutor(2) as pool:
        same_bits(fit, fit_evidence_stream(arrays, centre=True, executor=pool))
    column = (arrays[0], arrays[1][:, None])
    close(fit_evidence_stream(column, centre=True), expected)
    frame = dd.from_pandas(pd.DataFrame(X, columns=COLUMNS).assign(y=y), npartitions=5)
    close(fit_evidence_stream(frame, target="y", centre=True), expected)
    close(
        fit_evidence_stream(frame, target="y", inputs=["d", "a"], centre=True),
        linear.fit_evidence(X[:, [3, 0]], y, centre=True),
    )
    # a filter makes lengths unknown: chunks are paired
    kept = (arrays[0].rechunk({0: 300, 1: 4}), arrays[1].rechunk(300))
    keep = kept[1] > y.mean()
    unknown = (kept[0][keep], kept[1][keep])
    close(fit_evidence_stream(unknown, centre=True), linear.fit_evidence(X[y > y.mean()], y[y > y.mean()], centre=True))


def test_a_partition_of_dask_takes_its_own_rows_along():
    X, y = da.random.default_rng(0).normal(size=(200_000, 4), chunks=(1000, 4)), da.zeros(200_000, chunks=1000)
    first = block_source((X, y), None, None, 1).partitions[0]
    assert len(cloudpickle.dumps(first)) < 20_000  # the whole graph has 400 chunks


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker(tmp_path):
    """Two worker processes, one killed amid the work, and submitit's local jobs: the bits of one process."""
    X, y = problem(8000, seed=3)
    folder = folder_of(tmp_path / "rows", X, y, files=8, group=1000)
    how = {"target": "y", "block_rows": 1000, "centre": True}
    alone = fit_evidence_stream(folder, n_jobs=1, **how)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killed = threading.Timer(0.3, os.kill, (pids[0], signal.SIGKILL))
        killed.start()
        same_bits(alone, fit_evidence_stream(folder, executor=client, **how))
        killed.join()
        arrays = (da.from_array(X, chunks=(1000, 4)), da.from_array(y, chunks=1000))
        close(fit_evidence_stream(arrays, centre=True, executor=client), alone)
    two = tmp_path / "two"
    two.mkdir()
    for k in range(2):
        (folder / f"part.{k}.parquet").rename(two / f"part.{k}.parquet")
    jobs = submitit.AutoExecutor(tmp_path / "jobs", cluster="local")
    same_bits(fit_evidence_stream(two, n_jobs=1, **how), fit_evidence_stream(two, executor=jobs, **how))


def _bad(tmp_path, change):
    X, y = problem(900)
    folder = folder_of(tmp_path / "rows", X, y)
    change(folder)
    return folder


def _with(folder, **columns):
    frame = pd.read_parquet(folder / "part.1.parquet")
    frame.assign(**columns).to_parquet(folder / "part.1.parquet", index=False)


BAD = {
    "a NaN": (lambda f: _with(f, a=np.r_[np.nan, np.zeros(299)]), r"part.1.parquet: missing values in 1 row\(s\) \(1;"),
    "words": (lambda f: _with(f, a="x"), "not numeric: a"),
    "a column less": (
        lambda f: pd.read_parquet(f / "part.1.parquet").drop(columns="b").to_parquet(f / "part.1.parquet"),
        "part.1.parquet has no input 'b'",
    ),
    "no Parquet": (lambda f: (f / "part.1.parquet").write_text("abc"), "part.1.parquet cannot be read as Parquet"),
    "no rows": (
        lambda f: pd.read_parquet(f / "part.1.parquet").iloc[:0].to_parquet(f / "part.1.parquet"),
        "has column names but no rows",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_folders_are_refused(tmp_path, case):
    change, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        fit_evidence_stream(_bad(tmp_path, change), target="y", block_rows=100)


def test_bad_sources_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no Parquet files; give a file"):
        fit_evidence_stream(tmp_path / "empty", target="y")
    (tmp_path / "deep" / "year=1").mkdir(parents=True)
    (tmp_path / "deep" / "year=1" / "a.parquet").write_text("")
    with pytest.raises(ValueError, match="give one of the folders inside it"):
        fit_evidence_stream(tmp_path / "deep", target="y")
    X, y = problem(100)
    dX, dy = da.from_array(X, chunks=30), da.from_array(y, chunks=30)
    with pytest.raises(ValueError, match="equally many rows, got 100 and 99"):
        fit_evidence_stream((dX, dy[:99]))
    with pytest.raises(ValueError, match=r"X \(rows, columns\) and y \(rows,\)"):
        fit_evidence_stream((dX, dX))
    with pytest.raises(TypeError, match="as the pair"):
        fit_evidence_stream(dX)
    frame = dd.from_pandas(pd.DataFrame(X, columns=COLUMNS), npartitions=2)
    with pytest.raises(ValueError, match="name the target column of the data frame"):
        fit_evidence_stream(frame)
    with pytest.raises(ValueError, match="the target must be one of them and the inputs others"):
        fit_evidence_stream(frame, target="a", inputs=["a"])
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="executor can sum partitions only"):
        fit_evidence_stream([(X, y)], executor=pool)


def test_blocks_of_a_folder_are_those_of_its_files(tmp_path):
    X, y = problem(700)
    folder = folder_of(tmp_path / "rows", X, y)
    blocks = list(iter_blocks(folder, "y", rows=90))
    assert max(len(t) for _, t in blocks) <= 90
    np.testing.assert_array_equal(np.concatenate([Z for Z, _ in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([t for _, t in blocks]), y)
