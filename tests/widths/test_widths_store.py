"""A comparison of widths and its file: the same again.

Guards `bayessel.widths._comparison`, `bayessel.widths._store`.
"""

import errno
import os

import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import bayessel as bs
from bayessel._files import netcdf, sealed, write_whole
from bayessel._fingerprint import fingerprint
from bayessel.errors import DamagedFileError
from bayessel.widths import WidthComparison
from tests.problems.widths import many_widths


@pytest.fixture(scope="module")
def wide():
    return many_widths()


def test_file_gives_back_the_comparison(wide, tmp_path):
    path = wide.to_netcdf(tmp_path / "result.nc")
    back = WidthComparison.from_netcdf(path)
    pd.testing.assert_frame_equal(back.table, wide.table)
    for name in ("criteria", "names", "target", "model", "kinds", "bias", "held", "planned", "searched", "interrupted",
                 "fingerprint", "created", "versions"):  # fmt: skip
        assert getattr(back, name) == getattr(wide, name), name
    assert_array_equal(back.X, wide.X)
    assert_array_equal(back.y, wide.y)
    assert_array_equal(back.centers, wide.centers)
    assert fingerprint(back.X, back.y) == back.fingerprint
    assert list(back.fits) == list(wide.fits)
    for r, fit in wide.fits.items():
        for part in ("mean", "std", "grid", "grid_mean", "grid_std"):
            assert_array_equal(getattr(back.fits[r], part), getattr(fit, part))
    assert [back.best(name) for name in back.criteria] == [wide.best(name) for name in wide.criteria]
    assert back.optima("uev") == wide.optima("uev")
    assert back.verdict() == wide.verdict()
    assert len(back.plot().axes) == len(wide.plot().axes)
    back.plot_fit(back.best("loo"))
    assert back.to_html(tmp_path / "back.html").read_text() == wide.to_html(tmp_path / "wide.html").read_text()


def test_file_is_a_data_tree_for_arviz(wide, tmp_path):
    import arviz

    tree = arviz.from_netcdf(wide.to_netcdf(tmp_path / "result.nc"))
    assert {"/comparison", "/observed_data", "/predictions"} <= set(tree.groups)
    assert tree["comparison"]["evidence"].dims == ("width",)
    assert_array_equal(tree["comparison"]["gcv"], wide.table["gcv"])
    assert float(tree["comparison"]["evidence"].idxmax("width")) == wide.best("evidence")
    assert tree.attrs["creation_library"] == "bayessel"


def test_several_inputs_and_no_finite_fit_survive_the_file(rng, tmp_path):
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    found = bs.compare_widths(X, y, [0.5, 2.0], names=["a", "b", "ü"], criteria="loo", progressbar=False)
    back = WidthComparison.from_netcdf(found.to_netcdf(tmp_path / "r.nc"))
    assert back.names == ("a", "b", "ü")
    assert len(back.fits[back.best("loo")].grid) == 0
    pd.testing.assert_frame_equal(back.table, found.table)


def test_other_files_are_refused(tmp_path):
    import xarray as xr

    with pytest.raises(ValueError, match="no file"):
        WidthComparison.from_netcdf(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("no NetCDF")
    with pytest.raises(ValueError, match="cannot be read as NetCDF"):
        WidthComparison.from_netcdf(tmp_path / "text.nc")
    xr.DataTree.from_dict({"/posterior": xr.Dataset({"w": ("k", [1.0])})}).to_netcdf(
        tmp_path / "o.nc", engine="h5netcdf"
    )
    with pytest.raises(ValueError, match="no width comparison"):
        WidthComparison.from_netcdf(tmp_path / "o.nc")


def test_every_kind_of_damage_is_refused(wide, tmp_path, rng):
    """One bit turned at many places, and files cut short at many lengths: none is believed, none stops the process."""
    whole = wide.to_netcdf(tmp_path / "result.nc").read_bytes()
    path = tmp_path / "damaged.nc"
    for bit in rng.integers(8 * len(whole), size=300):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << int(bit) % 8
        path.write_bytes(damaged)
        with pytest.raises(DamagedFileError):
            WidthComparison.from_netcdf(path)
    for length in rng.integers(len(whole), size=60):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError):
            WidthComparison.from_netcdf(path)


def test_other_data_under_the_old_fingerprint_are_refused(wide, tmp_path):
    """Rewritten by another program, with a seal that fits: the fingerprint is computed again."""
    tree = wide.to_datatree()
    tree["observed_data"]["y"] = tree["observed_data"]["y"] + 1.0
    path = write_whole(tmp_path / "other.nc", sealed(netcdf(tree)))
    with pytest.raises(DamagedFileError, match="fingerprint"):
        WidthComparison.from_netcdf(path)
    del tree["observed_data"]["y"]
    write_whole(path, sealed(netcdf(tree)))
    with pytest.raises(DamagedFileError, match="another release, or is damaged"):
        WidthComparison.from_netcdf(path)


@pytest.mark.parametrize("write", ["to_netcdf", "to_html"])
def test_a_full_disk_keeps_the_file_before(wide, tmp_path, monkeypatch, write):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = getattr(wide, write)(tmp_path / "artefact")
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        getattr(wide, write)(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1
