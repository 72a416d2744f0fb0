"""The wheel holds every package, the pins fit the floors, and no file knows the machine it was written on."""

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import ROOT
from tests.test_layers import FOLDERS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def built_wheel(tree: Path, out: Path) -> Path:
    """Build a wheel from the tree with the setuptools of this environment: nothing is fetched."""
    code = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(out)], cwd=tree, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("bayessel-*.whl")
    return wheel


def copied_tree(to: Path) -> Path:
    """Copy what a build needs, so that building leaves nothing behind in the checkout."""
    to.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, to)
    for name in ("bayessel", "models", "diagnostics"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    return to


def missing(wheel: Path) -> set[str]:
    """Files of the packages that the wheel lacks."""
    wanted = {
        f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"
        for package, folder in FOLDERS.items()
        for path in folder.rglob("*")
        if path.suffix in (".py", ".html", ".css") or path.name == "py.typed"
    }
    assert {"bayessel/py.typed", "bayessel/pages/templates/page.html", "bayessel/models/__init__.py"} <= wanted
    with zipfile.ZipFile(wheel) as archive:
        return wanted - set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    return built_wheel(copied_tree(place / "tree"), place)


def test_wheel_holds_every_module(wheel):
    assert missing(wheel) == set()


def test_wheel_holds_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert tops == {"bayessel", f"bayessel-{PROJECT['version']}.dist-info"}


def test_wheel_imports_and_has_its_command(wheel):
    code = (
        f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
        "import importlib, importlib.metadata as metadata\n"
        "for name in ('', '.linear', '.estimators', '.models', '.diagnostics'):\n"
        "    print(importlib.import_module('bayessel' + name).__file__)\n"
        "(entry,) = metadata.distribution('bayessel').entry_points\n"
        "print(entry.name, entry.value)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *files, command = done.stdout.splitlines()
    assert all(file.startswith(str(wheel)) for file in files), files
    assert command == "bayessel bayessel.cli:main"


def test_a_forgotten_package_is_seen(tmp_path):
    tree = copied_tree(tmp_path / "tree")
    settings = tree / "pyproject.toml"
    settings.write_text(settings.read_text().replace('    "bayessel.models",\n', ""))
    assert "bayessel/models/__init__.py" in missing(built_wheel(tree, tmp_path))


def test_the_command_exists():
    name, _, function = PROJECT["scripts"]["bayessel"].partition(":")
    assert callable(getattr(importlib.import_module(name), function))


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line) for line in lines)
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_every_requirement_is_pinned_above_its_floor():
    pinned = pins()
    extras = PROJECT["optional-dependencies"]
    assert {"cluster", "parquet", "examples", "test", "bench"} <= set(extras)
    for text in PROJECT["dependencies"] + [text for extra in extras.values() for text in extra]:
        requirement = Requirement(text)
        if requirement.name == "bayessel":
            assert requirement.extras <= set(extras)
            continue
        assert len(requirement.specifier) > 0, f"{text} has no floor"
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), text


def project_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


# Written in pieces, so that this file does not find itself. A path starts where no name of a folder stands before it.
START = r"(?<![\w.-])/"
PIECES = [
    (START, "work/"),
    (START, r"root\b"),
    (START, "home/"),
    ("py", r"pi\.org"),
    ("python", "hosted"),
    ("find-", "links"),
]
MACHINE = re.compile("|".join("".join(pieces) for pieces in PIECES))


def test_no_file_knows_a_machine_or_a_registry():
    faults = []
    for path in project_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        faults += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(text.splitlines(), start=1)
            if MACHINE.search(line)
        ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("line", ["cd /" + "work/main", "open('/" + "root/x')", "--find-" + "links here"])
def test_a_machine_path_is_seen(line):
    assert MACHINE.search(line)


@pytest.mark.parametrize("line", ["bayessel/" + "work/", "a test in tests/" + "work/test_units.py", "../" + "home/x"])
def test_a_folder_of_the_checkout_is_no_machine_path(line):
    assert not MACHINE.search(line)
