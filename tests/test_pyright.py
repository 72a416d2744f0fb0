"""Pyright sees the packages of a checkout under the names they are imported by; skipped where it is not installed.

Guards `bayessel._types`.
"""

import json
import shutil
import subprocess

import pytest

from tests.paths import ROOT

PROBE = """
import bayessel as bs
from bayessel.diagnostics import compare
from bayessel.models import linear

reveal_type(bs.compare_widths([[0.0], [1.0]], [0.0, 1.0], [1.0, 2.0]))
reveal_type(bs.EvidenceRegressor().fit([[0.0]], [0.0]))
"""


def pyright(*paths: str) -> list[dict[str, str]]:
    """What it says of files of the checkout."""
    command = shutil.which("pyright")
    if command is None:
        pytest.skip("pyright is not on the PATH")
    done = subprocess.run([command, "--outputjson", *paths], cwd=ROOT, capture_output=True, text=True, timeout=900)
    return json.loads(done.stdout)["generalDiagnostics"]


@pytest.mark.slow
def test_every_import_is_resolved():
    said = pyright("bayessel", "models", "diagnostics", "examples")
    assert not [one["message"] for one in said if one.get("rule") == "reportMissingImports"]


@pytest.mark.slow
def test_what_users_call_has_a_type():
    probe = ROOT / "probe_of_types.py"
    try:
        probe.write_text(PROBE)
        said = pyright(probe.name)
    finally:
        probe.unlink()
    assert not [one["message"] for one in said if one["severity"] == "error"]
    types = [one["message"] for one in said if one["severity"] == "information"]
    assert "WidthComparison" in types[0] and "EvidenceRegressor" in types[1]
