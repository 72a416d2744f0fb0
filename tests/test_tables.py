"""Tables on disk: what is read is what was written, blocks equal the whole, and bad files are refused with advice.

Guards `bayessel._csv_files`, `bayessel._npz`, `bayessel._parquet_files`, `bayessel._table_blocks`,
`bayessel._table_columns`, `bayessel._tables`.
"""

import builtins
import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from bayessel._table_blocks import iter_blocks
from bayessel._tables import read_inputs, read_table

FORMS = ["csv", "csv.gz", "parquet", "npz", "npz-compressed", "npz-columns"]


def whole(*arguments, **named):
    """The table as arrays, and the names of its inputs."""
    X, y = read_table(*arguments, **named)
    assert X.index.tolist() == list(range(1, len(X) + 1))
    return X.to_numpy(float), y, tuple(X.columns)


def written(frame, form, folder):
    """Write the frame in one of the forms; the inputs of an .npz file are one 2-D array ``x``."""
    path = folder / f"table.{form.partition('-')[0]}"
    if form.startswith("csv"):
        frame.to_csv(path, index=False)
    elif form == "parquet":
        frame.to_parquet(path)
    else:
        order = "F" if form == "npz-columns" else "C"
        arrays = {"x": np.array(frame[["a", "b"]], order=order), "y": frame["y"].to_numpy()}
        (np.savez_compressed if form == "npz-compressed" else np.savez)(path, **arrays)
    return path


@pytest.fixture
def frame(rng):
    return pd.DataFrame({"a": rng.normal(size=57), "y": rng.normal(size=57), "b": rng.integers(0, 9, size=57)})


@pytest.mark.parametrize("form", FORMS)
def test_values_survive_exactly(form, frame, tmp_path):
    X, y, names = whole(written(frame, form, tmp_path), "y")
    assert names == (("x[0]", "x[1]") if form.startswith("npz") else ("a", "b"))
    assert X.dtype == y.dtype == np.float64
    np.testing.assert_array_equal(X, frame[["a", "b"]].to_numpy(float))
    np.testing.assert_array_equal(y, frame["y"].to_numpy())


@pytest.mark.parametrize("rows", [1, 10, 57, 1000])
@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_the_table(form, rows, frame, tmp_path):
    path = written(frame, form, tmp_path)
    blocks = list(iter_blocks(path, "y", rows=rows))
    assert [len(y) for _, y in blocks] == [min(rows, 57 - start) for start in range(0, 57, rows)]
    X, y, _ = whole(path, "y")
    np.testing.assert_array_equal(np.concatenate([block[0] for block in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([block[1] for block in blocks]), y)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_inputs_come_in_the_order_asked_for(form, frame, tmp_path):
    path = written(frame, form, tmp_path)
    X, _, names = whole(path, "y", inputs=["b", "a"])
    assert names == ("b", "a")
    np.testing.assert_array_equal(X, frame[["b", "a"]].to_numpy(float))
    np.testing.assert_array_equal(next(iter_blocks(path, "y", inputs=["b", "a"]))[0], X)
    assert read_table(path, "b", inputs=["y"])[0].shape == (57, 1)


def test_long_columns_stored_one_after_the_other(rng, tmp_path):
    X = np.asfortranarray(rng.normal(size=(400_000, 3)))  # columns of 3 MB, longer than any buffer
    np.savez(tmp_path / "t.npz", x=X, y=X[:, 0])
    blocks = list(iter_blocks(tmp_path / "t.npz", "y", rows=30_000))
    np.testing.assert_array_equal(np.concatenate([block[0] for block in blocks]), X)


def test_arrays_of_another_length_are_not_inputs(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.ones((5, 2)), z=np.arange(5), train=np.zeros((100, 4)), t=np.arange(5.0))
    X, y, names = whole(tmp_path / "t.npz", "t")
    assert names == ("x[0]", "x[1]", "z")
    np.testing.assert_array_equal(X[:, 2], y)
    with pytest.raises(ValueError, match=r"'train' has shape \(100, 4\).*5 rows"):
        read_table(tmp_path / "t.npz", "t", inputs=["train"])


@pytest.mark.parametrize("form", ["csv", "parquet", "npz", "npz-compressed", "npz-columns"])
def test_blocks_take_the_same_memory_for_a_longer_file(form, tmp_path):
    peaks = []
    for n in (20_000, 200_000):
        frame = pd.DataFrame({"a": np.arange(n) * 0.5, "b": np.arange(n) * 2.0, "y": np.arange(n) % 7})
        path = written(frame, form, tmp_path)
        sum(len(y) for _, y in iter_blocks(path, "y", rows=1000))  # whatever is loaded once is loaded now
        tracemalloc.start()
        assert sum(len(y) for _, y in iter_blocks(path, "y", rows=1000)) == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 100_000  # the longer file holds 4.8 MB of numbers


BAD_CSV = {
    "missing value": ("a,y\n1,2\n,3\n4,nan\n", ValueError, r"2 row\(s\) \(2, 3; the first row.*a, y.*drop"),
    "infinity": ("a,y\n1,2\ninf,3\n", ValueError, r"missing or infinite values in 1 row\(s\) \(2;"),
    "column of nothing": ("a,b,y\n1,,2\n2,,3\n", ValueError, r"missing values in 2 row\(s\).*b"),
    "one stray word": ("a,y\n1,2\n2,n/k\n", TypeError, r"y \(row 2 has 'n/k'\)"),
    "empty": ("", ValueError, "empty"),
    "no rows": ("a,y\n", ValueError, "no rows"),
    "target only": ("y\n1\n", ValueError, "no column beside the target"),
    "no target": ("a,Yield,b\n1,2,3\n", ValueError, r"no target 'y'.*it has: a, Yield, b"),
    "near miss": ("a,Y\n1,2\n", ValueError, "did you mean Y"),
    "semicolons": ("a;y\n1;2\n", ValueError, "save the file with commas"),
    "one line too long": ("a,y\n1,2\n1,2,3,4\n", ValueError, "cannot be read as CSV.*line 3"),
    "every line too long": ("a,y\n1,2,3\n4,5,6\n", ValueError, "more values than names"),
    "not text": ("a,y\n1,2\n2,\x00\xff\xfe\n", TypeError, "row 2"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv(case, tmp_path):
    text, error, message = BAD_CSV[case]
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(error, match=message):
        read_table(tmp_path / "t.csv", "y")
    with pytest.raises(error):
        list(iter_blocks(tmp_path / "t.csv", "y", rows=1))


def test_text_is_for_whole_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,colour,y\n1,red,2\n2,3,3\n")
    X, y = read_table(path, "y")
    assert X.to_dict("list") == {"a": [1, 2], "colour": ["red", "3"]} and y.tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match=r"colour \(row 1 has 'red'\)"):
        list(iter_blocks(path, "y", rows=1))
    new = tmp_path / "new.csv"
    new.write_text(" colour , a\n3,7\n3,8\n")  # what was text is text, also where it looks like numbers
    assert read_inputs(new, X).to_dict("list") == {"a": [7, 8], "colour": ["3", "3"]}
    with pytest.raises(TypeError, match=r"colour \(row 1 has 'red'\)"):
        read_table(path, "colour")


@pytest.mark.parametrize("form", ["csv", "parquet", "npz"])
def test_missing_values_are_kept_where_they_are_wanted(form, frame, tmp_path):
    frame["a"] = frame["a"].where(frame["a"] > 0)
    path = written(frame, form, tmp_path)
    X, _ = read_table(path, "y", gaps=True)
    np.testing.assert_array_equal(X.to_numpy(float), frame[["a", "b"]].to_numpy(float))
    np.testing.assert_array_equal(read_inputs(path, X, gaps=True).to_numpy(float), X.to_numpy(float))
    for read in (lambda: read_table(path, "y"), lambda: read_inputs(path, X)):
        with pytest.raises(ValueError, match=r"missing values in \d+ row\(s\).*column\(s\) (a|x\[0\]): drop"):
            read()
    frame.loc[[3, 5], ["a", "y"]] = np.inf, np.nan
    path = written(frame, form, tmp_path)
    with pytest.raises(ValueError, match=r"missing or infinite values in 2 row\(s\) \(4, 6;"):
        read_table(path, "y", gaps=True)


def test_rows_are_counted_through_blocks(tmp_path):
    lines = ["a,y", *(f"{i},1" for i in range(1, 30)), ",1", "x,1"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"\(30; the first row"):
        list(iter_blocks(tmp_path / "t.csv", "y", rows=5 * 6))
    (tmp_path / "t.csv").write_text("\n".join([*lines[:30], *lines[31:]]))
    with pytest.raises(TypeError, match="row 30 has 'x'"):
        list(iter_blocks(tmp_path / "t.csv", "y", rows=7))


def test_bad_arguments(frame, tmp_path):
    path = written(frame, "csv", tmp_path)
    cases = [
        (dict(path=tmp_path / "tabel.csv", target="y"), ValueError, r"no file .*did you mean table.csv"),
        (dict(path=tmp_path / "tabel.csv", target="y"), FileNotFoundError, "no file"),
        (dict(path=tmp_path, target="y"), ValueError, "folder"),
        (dict(path=tmp_path / "table.csv", target="a", inputs=["a", "b"]), ValueError, "predict itself"),
        (dict(path=path, target="y", inputs=["a", "a"]), ValueError, "more than once: a"),
        (dict(path=path, target="y", inputs=["a", "q"]), ValueError, "no input 'q'"),
        (dict(path=path, target="y", inputs=[]), ValueError, "no column beside"),
        (dict(path=path, target="y", inputs="a"), TypeError, r"write \['a'\]"),
        (dict(path=path, target=3), TypeError, "name of a column"),
        (dict(path=7, target="y"), TypeError, "string or a pathlib.Path"),
    ]
    for arguments, error, message in cases:
        with pytest.raises(error, match=message):
            read_table(**arguments)
        with pytest.raises(error, match=message):
            iter_blocks(**arguments)  # refused at once, not at the first block
    for rows, error in [(0, ValueError), (-3, ValueError), (2.5, TypeError), (True, TypeError)]:
        with pytest.raises(error, match="rows"):
            iter_blocks(path, "y", rows=rows)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"\.csv, \.csv\.gz, \.parquet"):
        read_table(tmp_path / "t.xlsx", "y")


@pytest.mark.parametrize("suffix", ["csv.gz", "parquet", "npz"])
def test_broken_files(suffix, tmp_path):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"this is no such file" * 10)
    with pytest.raises(ValueError, match="cannot be read as"):
        read_table(path, "y")


def test_gzip_cut_short(tmp_path):
    data = gzip.compress(b"a,y\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000)))
    (tmp_path / "t.csv.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="cannot be read as CSV"):
        read_table(tmp_path / "t.csv.gz", "y")


def test_npz_of_words_or_of_a_matrix_target(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.array(["p", "q"]), y=np.arange(2.0), Y=np.ones((2, 3)))
    with pytest.raises(TypeError, match="'x' is not numeric"):
        read_table(tmp_path / "t.npz", "y")
    with pytest.raises(ValueError, match=r"one value per row, its shape is \(2, 3\)"):
        read_table(tmp_path / "t.npz", "Y")


def test_missing_pyarrow_names_the_extra(frame, tmp_path, monkeypatch):
    path = written(frame, "parquet", tmp_path)
    real = builtins.__import__

    def without_pyarrow(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(ImportError, match=r"pip install 'bayessel\[parquet\]'"):
        read_table(path, "y")


def test_a_name_used_twice_is_refused(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("x,x,y\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match="more than one column called 'x'"):
        read_table(path, "y")


@pytest.mark.parametrize("rows", [1, 10])
def test_blanks_around_names_are_not_part_of_them(rows, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"time", y , "b" \n1, 2, 3\n4,5,6\n')
    X, y, names = whole(path, "y")
    assert names == ("time", "b")
    np.testing.assert_array_equal(X, [[1, 3], [4, 6]])
    np.testing.assert_array_equal(y, [2, 5])
    np.testing.assert_array_equal(next(iter_blocks(path, "y", inputs=["b", "time"], rows=rows))[0][0], [3, 1])


@pytest.mark.parametrize("header", ["x,x,y", "x, x,y", "x,y,y", "x,x,x,y"])
def test_a_name_used_twice_is_refused_at_the_door(header, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(header + "\n" + ",".join("1234"[: header.count(",") + 1]) + "\n")
    twice = "y" if header == "x,y,y" else "x"
    for read in (read_table, iter_blocks):
        with pytest.raises(ValueError, match=f"more than one column called '{twice}'"):
            read(path, "y")


@pytest.mark.parametrize(("header", "names"), [(",a,y", ("Unnamed: 0", "a")), (",,y", ("Unnamed: 0", "Unnamed: 1")),
                                               ("NA,nan,y", ("NA", "nan")), ("x.1,x,y", ("x.1", "x")),
                                               ("\ufeffx,a,y", ("x", "a")), ("1,01,y", ("1", "01"))])  # fmt: skip
def test_odd_names_are_kept(header, names, tmp_path):
    (tmp_path / "t.csv").write_text(f"{header}\n1,2,3\n", encoding="utf-8")
    X, y, found = whole(tmp_path / "t.csv", "y", names)
    assert found == names
    np.testing.assert_array_equal(np.column_stack([X, y]), [[1, 2, 3]])


def test_numbers_of_rows_saved_along_are_no_input(tmp_path):
    """As `DataFrame.to_csv` writes them: a first column without a name. Asked for by name it is read."""
    pd.DataFrame({"a": [5.0, 6.0], "y": [1.0, 2.0]}).to_csv(tmp_path / "t.csv")
    X, _, names = whole(tmp_path / "t.csv", "y")
    assert names == ("a",)
    np.testing.assert_array_equal(X, [[5.0], [6.0]])
    assert whole(tmp_path / "t.csv", "y", ["Unnamed: 0", "a"])[0].tolist() == [[0.0, 5.0], [1.0, 6.0]]
