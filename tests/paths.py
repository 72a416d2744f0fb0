"""Folders that tests read."""

import os
from pathlib import Path

#: the checkout
ROOT = Path(__file__).resolve().parents[1]
#: real data with published results, where it is at hand: the folder BENCHMARK_DATA names, or one beside the checkout
SHARED_DATA = Path(os.environ.get("BENCHMARK_DATA") or ROOT.parent / "shared" / "data")
