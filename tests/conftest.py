"""What every test shares: a seeded generator, single-threaded BLAS, matplotlib without a screen, one PyTensor cache."""

import gc
import os
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Before NumPy, PyTensor and matplotlib are imported, and only where the caller has not decided otherwise.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("PYTENSOR_FLAGS", f"base_compiledir={ROOT / '.cache' / 'pytensor'}")

import numpy as np  # noqa: E402
import pytest  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="added to the seed of every test's rng")
    parser.addoption("--fuzz-calls", type=int, default=6000, help="calls of the slow part of tests/test_fuzz.py")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded from the test's name: each test has its own draws, the same in every run and order."""
    name = request.node.nodeid.rpartition("/")[2]
    return np.random.default_rng([zlib.crc32(name.encode()), request.config.getoption("--seed")])


@pytest.fixture(autouse=True, scope="module")
def _freeze_caches():
    """Take what outlives a module, compiled code and graphs, out of later collections: each would look at all of it."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _close_figures():
    """Leave no figure open for the next test, without importing matplotlib for those that draw none."""
    yield
    import sys

    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
