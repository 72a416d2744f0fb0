"""Folders that tests read."""

from pathlib import Path

#: the checkout
ROOT = Path(__file__).resolve().parents[1]
#: real data with published results, where it is at hand
SHARED_DATA = ROOT.parent / "shared" / "data"
