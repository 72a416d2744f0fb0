"""Parquet files through pyarrow: names, row groups, and frames of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def parquet_header(file: Path) -> dict[str, tuple[int, ...]]:
    """Names of the columns as keys; the index that pandas saved along is none."""
    with _opened(file) as table:
        return {str(name): () for name in table.schema_arrow.names if not str(name).startswith("__index_level_")}


def parquet_groups(file: Path) -> list[int]:
    """Numbers of rows of the row groups, the pieces in which a file can be read."""
    with _opened(file) as table:
        return [table.metadata.row_group(k).num_rows for k in range(table.metadata.num_row_groups)]


def parquet_frames(
    path: Path, wanted: list[str], rows: int | None, groups: Sequence[int] | None = None
) -> Iterator[pd.DataFrame]:
    """Frames of at most so many rows, or one of all, with the wanted columns in order; of some row groups or of all."""
    with _opened(path) as table:
        if rows is None:
            yield table.read(columns=wanted).to_pandas()[wanted]
            return
        # group by group: all that are asked for at once would be read ahead
        for group in range(table.metadata.num_row_groups) if groups is None else groups:
            for batch in table.iter_batches(batch_size=rows, row_groups=[group], columns=wanted, use_threads=False):
                yield batch.to_pandas()[wanted]


def parquet_folder(folder: Path) -> list[Path]:
    """Files of a folder as Dask, Spark and pandas write them, by name; names with _ or . in front are notes."""
    files = [file for file in folder.iterdir() if file.name.lower().endswith((".parquet", ".pq")) and file.is_file()]
    files = sorted(file for file in files if not file.name.startswith(("_", ".")))
    if not files:
        deeper = any(folder.glob("*/*.parquet"))
        advice = "give one of the folders inside it" if deeper else "give a file, or a folder that has some"
        raise ValueError(f"{folder} has no Parquet files; {advice}")
    return files


def _opened(file: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ModuleNotFoundError("reading Parquet needs pyarrow: pip install 'bayessel[parquet]'") from None
    try:
        return pyarrow.parquet.ParquetFile(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{file.name} cannot be read as Parquet: {error}") from error
