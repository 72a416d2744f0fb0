"""Pyright sees the packages of a checkout under the names they are imported by; skipped where it is not installed.

Guards `bayessel._types`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any, get_args

import pytest

from bayessel import _types as types
from bayessel.basis import KINDS
from bayessel.estimators import _network, evidence, input_encoding
from bayessel.estimators._latent_regression import LATENT
from bayessel.linear.forward._forward_select import GAINS
from bayessel.linear.forward._forward_select import METHODS as FORWARD
from bayessel.linear.rvm._fit_rvm import INITS
from bayessel.linear.type2 import METHODS
from bayessel.widths.arguments import REGRESSIONS, TASKS
from tests.paths import ROOT
from tests.test_packaging import built_wheel, copied_tree

PROBE = """
import bayessel as bs
from bayessel.diagnostics import compare
from bayessel.models import linear

reveal_type(bs.compare_widths([[0.0], [1.0]], [0.0, 1.0], [1.0, 2.0]))
reveal_type(bs.EvidenceRegressor().fit([[0.0]], [0.0]))
"""


#: what a user may misspell, a line each, and what is written rightly
USER_CODE = """
import bayessel as bs

bs.GPRegressor(inference="mapp")
bs.MLPRegressor(inference="map")
bs.RVMRegressor(kind="gausian")
bs.EvidenceRegressor(missing="indicate")
bs.compare_widths([[0.0], [1.0]], [0.0, 1.0], [1.0], model="rmv")
bs.GPRegressor(inference="map", likelihood="student")
bs.compare_widths([[0.0], [1.0]], [0.0, 1.0], [1.0], model="rvm")
reveal_type(bs.GPRegressor().fit([[0.0]], [0.0]).predict([[0.0]]))
reveal_type(bs.EvidenceRegressor().fit([[0.0]], [0.0]).predict([[0.0]], return_std=True))
"""


def pyright(*paths: str, where: Path = ROOT, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What it says of files of the checkout, or of a folder."""
    command = shutil.which("pyright") or shutil.which("pyright", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("pyright is not on the PATH")
    words = [command, "--outputjson", *options, *paths]
    done = subprocess.run(words, cwd=where, capture_output=True, text=True, timeout=900)
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


@pytest.mark.slow
def test_slips_in_user_code_are_found_from_the_wheel(tmp_path):
    (tmp_path / "code.py").write_text(USER_CODE)
    with zipfile.ZipFile(built_wheel(copied_tree(tmp_path / "tree"), tmp_path)) as wheel:
        wheel.extractall(tmp_path / "site")
    shutil.rmtree(tmp_path / "tree")
    paths = [str(tmp_path / "site"), sysconfig.get_path("purelib")]
    settings = {"extraPaths": paths, "include": ["code.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    said = pyright(where=tmp_path)
    errors = sorted(one["range"]["start"]["line"] for one in said if one["severity"] == "error")
    assert errors == [3, 4, 5, 6, 7]
    mean, pair = (one["message"] for one in said if one["severity"] == "information")
    assert "float64" in mean and "tuple[ndarray" not in mean.split(" is ")[1]
    assert pair.split(" is ")[1].count("float64") == 2


@pytest.mark.parametrize(
    ("written", "checked"),
    [
        (types.Missing, input_encoding.MISSING),
        (types.RadialKind, KINDS),
        (types.ModeInference, evidence.INFERENCES),
        (types.NetworkInference, _network.INFERENCES),
        (types.ProcessLikelihood, ("gaussian", *LATENT)),
        (types.SparseStart, INITS),
        (types.PrecisionSteps, METHODS),
        (types.ForwardMethod, FORWARD),
        (types.ForwardGain, GAINS),
        (types.WidthModelName, tuple(REGRESSIONS)),
        (types.Task, TASKS),
    ],
    ids=str,
)
def test_types_of_options_are_the_choices_at_run_time(written, checked):
    assert get_args(written.__value__) == tuple(checked)
