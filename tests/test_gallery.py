"""The gallery of the site: every script is a question with one picture, on data of its own."""

import ast
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.paths import ROOT

GALLERY = ROOT / "examples" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*/plot_*.py"))
#: scripts that the fast test runs, a quick one of each kind
QUICK = ["small_models/plot_few_functions.py", "widths/plot_which_width.py"]
MOST_SECONDS = 30  # of processor, imports and compiling among them
RUN = """
import sys, time
start = time.process_time()
import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot
from warnings import filterwarnings
from bayessel.errors import SamplingWarning
pyplot.show = lambda *arguments, **named: None
filterwarnings("error", category=SamplingWarning)  # a page shows draws that may be used, or says why not
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), {"__name__": "__main__"})
print("pictures", len(pyplot.get_fignums()), "seconds", time.process_time() - start)
"""


def run(script: Path, folder: Path) -> tuple[int, float]:
    """Pictures that a script leaves and seconds of processor; in a fresh interpreter a SamplingWarning is an error."""
    command = [sys.executable, "-c", RUN, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder)
    assert done.returncode == 0, done.stderr
    _, pictures, _, seconds = done.stdout.splitlines()[-1].split()
    return int(pictures), float(seconds)


def faults(text: str) -> list[str]:
    """What a script lacks of the form of the gallery."""
    tree = ast.parse(text)
    title, line, *rest = (ast.get_docstring(tree) or "\n").splitlines()
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    private = re.findall(r"\bbayessel(?:\.\w+)*\._\w+|\bbs(?:\.\w+)*\._\w+", text)
    return [
        fault
        for fault, found in {
            "the title is no question": not title.endswith("?"),
            "the line under the title is as long as it": line != "=" * len(title),
            "a paragraph stands under the title": len(" ".join(rest).split()) < 15,
            "the code is in cells": "# %%" not in text,
            "the last call shows the picture": not text.rstrip().endswith("plt.show()"),
            "there is one picture": text.count("plt.subplots(") + text.count("plot()\n") > 2,
            "bayessel is used": "bayessel" not in imported,
            "private names are not used": bool(private),
            "no file is read": "shared" in text or "read_csv" in text or "BENCHMARK" in text,
        }.items()
        if found
    ]


def test_there_are_enough_questions():
    assert len(SCRIPTS) >= 30
    titles = [ast.get_docstring(ast.parse(script.read_text())).splitlines()[0] for script in SCRIPTS]
    assert len(set(titles)) == len(titles)


def test_every_section_has_a_title_and_is_in_the_order():
    settings = (ROOT / "docs" / "conf.py").read_text()
    for folder in {script.parent for script in SCRIPTS}:
        assert (folder / "GALLERY_HEADER.rst").exists()
        assert f'"{folder.name}"' in settings


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_form(script):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(script.read_text(), str(script), "exec")
    assert faults(script.read_text()) == []


def test_faults_of_form_are_seen():
    good = (GALLERY / QUICK[0]).read_text()
    assert faults(good.replace("enough?", "enough.")) == ["the title is no question"]
    assert faults(good.replace("plt.show()", "")) == ["the last call shows the picture"]
    assert "private names are not used" in faults(good + "\nbs.linear._x\nplt.show()\n")


@pytest.mark.parametrize("name", QUICK)
def test_quick_ones_run(name, tmp_path):
    assert run(GALLERY / name, tmp_path)[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_all_run(script, tmp_path):
    pictures, seconds = run(script, tmp_path)
    assert pictures == 1 and seconds < MOST_SECONDS
