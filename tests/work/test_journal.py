"""Journals: torn ends are cut, damage and links are refused, what cannot be written leaves nothing.

Guards `bayessel.work.journal`, `bayessel.work.result_store`.
"""

import errno
import os
import uuid

import pytest

import bayessel as bs
from bayessel.diagnostics import delve
from bayessel.errors import DamagedFileError, DataMismatchError, StoreWarning
from bayessel.work.journal import Journal
from bayessel.work.result_store import ResultStore
from tests.problems.delve import Noisy, same, task

MARK = b"test0001" + uuid.UUID(int=5).bytes


def journal(path):
    return Journal(path, MARK, b"tst1")


def written(path, count=3):
    one = journal(path)
    one.create()
    one.open()
    for k in range(count):
        one.append(k, 1, bytes([65 + k]) * 10)
    one.close()
    return path


def payloads(path, **how):
    return [bytes(record.payload) for record in journal(path).load(lambda data: "is another file", **how)]


@pytest.mark.parametrize("cut", [1, 9, 20, 40])
def test_a_torn_end_is_cut_before_anything_follows(tmp_path, cut):
    """Else the first record after a crash would stand behind the torn one, and all that follow would be lost."""
    path = written(tmp_path / "a.log")
    path.write_bytes(path.read_bytes()[:-cut])
    one = journal(path)
    with pytest.warns(StoreWarning, match="the third is lost; everything before is kept"):
        kept = one.load(lambda data: "", lambda tear: "the third is lost")
    assert len(kept) == 2
    one.open()
    one.append(2, 1, b"anew")
    one.close()
    assert payloads(path) == [b"A" * 10, b"B" * 10, b"anew"]
    assert path.stat().st_size == one.end  # or the next call would take what is left of the torn record for a crash


def test_a_study_goes_on_behind_a_torn_end(tmp_path):
    """And is read whole the next time."""
    whole = delve.run({"a": Noisy()}, task(), store=tmp_path, progressbar=False)
    log = tmp_path / "results.log"
    log.write_bytes(log.read_bytes()[:-7])
    with pytest.warns(StoreWarning, match="that unit will be done again"):
        delve.run({"a": Noisy()}, task(), store=tmp_path, progressbar=False)
    assert same(whole, delve.Study.load(tmp_path))


def test_what_a_crash_leaves_beside_the_header_is_no_stranger(tmp_path):
    """A header is written beside its place and renamed; a process may be killed in between."""
    (tmp_path / ".header.json.0123456789ab").write_bytes(b"{")
    delve.run({"a": Noisy()}, task(), store=tmp_path, progressbar=False)
    with pytest.raises(ValueError, match="holds a study, not a comparison of widths"):
        bs.compare_widths([0.0, 1.0, 2.0], [0.0, 1.0, 0.0], [1.0], progressbar=False, store=tmp_path)
    ResultStore(tmp_path / "other", "sweep", {}).close()
    with pytest.raises(ValueError, match="holds a sweep, not a study"):
        delve.Study.load(tmp_path / "other")


def test_damage_is_refused(tmp_path):
    path = written(tmp_path / "a.log")
    data = bytearray(path.read_bytes())
    data[len(MARK) + 45] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match=rf"damaged at byte {len(MARK)}, in the middle of its records"):
        payloads(path)
    path.write_bytes(b"other" + bytes(data[5:]))
    with pytest.raises(DamagedFileError, match="is another file: restore the file"):
        payloads(path)
    path.unlink()
    with pytest.raises(DamagedFileError, match="is missing"):
        payloads(path)


@pytest.mark.parametrize("name", ["results.log", "lock", "header.json"])
def test_a_link_in_the_folder_of_a_store_is_not_followed(tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "store"
    folder.mkdir()
    os.symlink(victim, folder / name)
    with pytest.raises(ValueError, match=f"{name} is a symbolic link"):
        delve.run({"a": Noisy()}, task(), store=folder, progressbar=False)
    assert victim.read_text() == "precious"


def test_a_full_disk_names_the_file_of_a_store_that_cannot_begin(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match=r"\.(log|json) was not written \(No space left on device\)"):
        delve.run({"a": Noisy()}, task(), store=tmp_path / "store", progressbar=False)
    monkeypatch.undo()
    assert not delve.run({"a": Noisy()}, task(), store=tmp_path / "store", progressbar=False).remaining


def test_a_link_in_the_folder_of_a_run_or_a_sweep_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for folder, name in ((tmp_path / "run", "chain-0.log"), (tmp_path / "sweep", "results.log")):
        folder.mkdir()
        os.symlink(victim, folder / name)
    with pytest.raises(ValueError, match=r"chain-0.log is a symbolic link"):
        bs.sample(bs.models.linear([[1.0], [2.0]], [1.0, 2.0]), 5, tune=5, chains=1, store=tmp_path / "run")
    with pytest.raises(ValueError, match=r"results.log is a symbolic link"):
        bs.compare_widths([0.0, 1.0, 2.0], [0.0, 1.0, 0.0], [1.0], progressbar=False, store=tmp_path / "sweep")
    assert victim.read_text() == "precious"


def test_results_are_found_again(tmp_path):
    store = ResultStore(tmp_path, "test", {"a": 1}, "data")
    store.put("one", {"x": (1.5, None)})
    store.put("two", None)
    store.close()
    again = ResultStore(tmp_path, "test", {"a": 1}, "data")
    assert again.get("one") == ({"x": (1.5, None)},) and again.get("two") == (None,) and again.get("three") is None
    with pytest.raises(ValueError, match="in use by another run"):
        ResultStore(tmp_path, "test", {"a": 1}, "data")
    again.close()
    with pytest.raises(ValueError, match="a is 1 there and 2 here"):
        ResultStore(tmp_path, "test", {"a": 2}, "data")
    with pytest.raises(DataMismatchError, match="other data"):
        ResultStore(tmp_path, "test", {"a": 1}, "more data")
    with pytest.raises(ValueError, match="holds a test, not a sweep"):
        ResultStore(tmp_path, "sweep", {"a": 1}, "data")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_record_that_stopped_half_way_leaves_its_place_to_the_next(tmp_path, error):
    one = journal(tmp_path / "a.log")
    one.create()
    one.open()
    one.append(0, 1, b"first")
    whole = one._file

    class Stopping:
        written = 0

        def __getattr__(self, name):
            return getattr(whole, name)

        def write(self, data):
            if self.written:
                raise error
            self.written = whole.write(data[:9])
            return self.written

    one._file = Stopping()
    with pytest.raises(type(error)):
        one.append(1, 1, b"second")
    assert (tmp_path / "a.log").stat().st_size == one.end
    one._file = whole
    one.append(1, 1, b"again")
    one.close()
    assert payloads(tmp_path / "a.log") == [b"first", b"again"]


def test_a_result_that_was_not_written_does_not_count(tmp_path, monkeypatch):
    store = ResultStore(tmp_path / "s", "test", {})
    store.put("a", 1.0)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(OSError, match="No space left"):
            store.put("b", 2.0)
    store.put("c", 3.0)
    store.close()
    again = ResultStore(tmp_path / "s", "test", {})
    assert again.values == {"a": 1.0, "c": 3.0}
    again.close()
