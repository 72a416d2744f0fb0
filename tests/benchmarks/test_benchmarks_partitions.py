"""Guards `benchmarks.partitions`."""

import sys

import pytest

from benchmarks import partitions


@pytest.mark.slow
def test_the_rehearsal_runs(monkeypatch, capsys):
    asked = ["--rows", "40000", "--inputs", "5", "--columns", "7", "--turns", "1"]
    monkeypatch.setattr(sys, "argv", ["partitions", *asked])
    partitions.main()
    said = capsys.readouterr().out
    assert "two workers: " in said and "a worker killed on the way" in said
    assert said.rstrip().endswith("the same bits in all 3: True")
