"""The race of two revisions: each side imports its own packages, and what differs is seen."""

import shutil
import subprocess

import numpy as np
import pytest

from benchmarks import revisions
from tests.paths import ROOT

CASE = "evidence 50 x 200"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A copy of the packages under version control, whose log evidence is one nat lower in the first revision."""
    for name in ("bayessel", "models", "diagnostics"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))

    def git(*arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    cases = tmp_path / "bayessel" / "linear" / "__init__.py"
    text = cases.read_text()
    cases.write_text(
        text
        + """
from types import SimpleNamespace as _Value
_now = fit_evidence
def fit_evidence(*data):
    return _Value(log_evidence=_now(*data).evidence.value - 1.0)
"""
    )
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "lower")
    cases.write_text(text)
    monkeypatch.setattr(revisions, "SOURCES", tmp_path)


def test_a_revision_is_raced_by_its_own_sources(repository, capsys):
    (row,) = revisions.compare("HEAD", [CASE], turns=1)
    assert row["trouble"] == ""
    assert row["difference"] == pytest.approx(1.0)
    assert "differs" in capsys.readouterr().out
    assert row["then"] > 0 and row["now"] > 0 and np.isfinite(row["value"])


def test_a_case_that_fails_is_told(repository):
    (row,) = revisions.compare("HEAD", ["no such case"], turns=1)
    assert "no such case" in row["trouble"]
