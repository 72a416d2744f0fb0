"""Files are written whole or not at all; a sealed file proves that it is what was written.

Guards `bayessel._files`.
"""

import errno
import os
import shutil
import subprocess

import pytest

from bayessel import _files
from bayessel._files import sealed, unsealed, write_whole
from bayessel.errors import DamagedFileError


def test_a_file_holds_what_was_written(tmp_path):
    place = tmp_path / "a.bin"
    assert write_whole(place, b"first") == place
    write_whole(str(place), b"second" * 100_000)
    assert place.read_bytes() == b"second" * 100_000
    assert [one.name for one in tmp_path.iterdir()] == ["a.bin"]


def test_permissions_are_those_of_any_new_file_and_stay(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    write_whole(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "ours").chmod(0o640)
    write_whole(tmp_path / "ours", b"again")
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    place = tmp_path / "kept.bin"
    place.write_bytes(b"old")

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_files.os, call, full)
    with pytest.raises(OSError, match=r"kept\.bin was not written \(No space left on device\).*as it was") as found:
        write_whole(place, b"new")
    monkeypatch.undo()
    assert found.value.errno == errno.ENOSPC
    assert place.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["kept.bin"]


def test_short_writes_are_gone_on_with(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(_files.os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    write_whole(tmp_path / "a.bin", bytes(range(256)))
    assert (tmp_path / "a.bin").read_bytes() == bytes(range(256))


def test_ctrl_c_leaves_the_old_file(tmp_path, monkeypatch):
    place = tmp_path / "kept.bin"
    place.write_bytes(b"old")

    def stop(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(_files.os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_whole(place, b"new")
    assert place.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_a_link_is_replaced_and_its_target_left_alone(tmp_path):
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", b"ours")
    assert (tmp_path / "target").read_bytes() == b"precious"
    assert (tmp_path / "link").read_bytes() == b"ours" and not (tmp_path / "link").is_symlink()


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="was not written"):
        write_whole(tmp_path / "no" / "a.bin", b"")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("mount"), reason="needs root")
def test_a_disk_that_is_really_full(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        write_whole(small / "a.bin", b"old")
        with pytest.raises(OSError, match="No space left"):
            write_whole(small / "a.bin", bytes(1_000_000))
        assert (small / "a.bin").read_bytes() == b"old" and len(list(small.iterdir())) == 1
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_seal_fits_its_content_and_no_other(tmp_path, rng):
    content = rng.bytes(300)
    place = write_whole(tmp_path / "a.bin", sealed(content))
    assert unsealed(place, "thing") == content
    whole = place.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        place.write_bytes(damaged)
        with pytest.raises(DamagedFileError):
            unsealed(place, "thing")
    for length in range(len(whole)):
        place.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError, match="no thing that can be trusted"):
            unsealed(place, "thing")
