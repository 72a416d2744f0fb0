"""The wheel holds every package, the pins fit the floors, and no file knows the machine it was written on."""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import ROOT
from tests.test_layers import FOLDERS, imports

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
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
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


def test_the_description_has_no_link_that_dies_outside_the_repository(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        said = archive.read(name).decode()
    head, _, text = said.partition("\n\n")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://")] == []
    assert f"]({PROJECT['urls']['Source']}/docs/images/overview.png)" in text
    assert "Author: bayessel developers" in head and "Project-URL: Source, " in head


def imported(folder: Path) -> set[str]:
    """Packages of others that the sources import anywhere."""
    found = {
        name.partition(".")[0] for path in folder.rglob("*.py") for _, name in imports(path.read_text(encoding="utf-8"))
    }
    return found - set(sys.stdlib_module_names) - {"bayessel"}


#: imported only where the user has it already: in a notebook
GIVEN = {"ipython"}
#: name of the import -> name of the distribution, where they differ
DISTRIBUTIONS = {"sklearn": "scikit-learn", "distributed": "dask", "nautilus": "nautilus-sampler"}


def undeclared(folders: list[Path]) -> set[str]:
    extras = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *(text for extra in ("cluster", "parquet", "nested") for text in extras[extra])]
    declared = {canonicalize_name(Requirement(text).name) for text in texts}
    tops = {name for folder in folders for name in imported(folder)}
    return {canonicalize_name(DISTRIBUTIONS.get(name, name)) for name in tops} - declared - GIVEN


def test_every_import_is_declared(tmp_path):
    assert undeclared(list(FOLDERS.values())) == set()
    (tmp_path / "one.py").write_text("def f():\n    import seaborn.palettes\n")
    assert undeclared([tmp_path]) == {"seaborn"}


def test_the_recipe_needs_what_the_project_needs():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["version"]
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    # what conda calls otherwise, and what an extra of a requirement brings
    conda = {"matplotlib-base": "matplotlib"}
    pairs = (one.partition(" ") for one in recipe["requirements"]["run"])
    given = {conda.get(name, name): floor for name, _, floor in pairs}
    wanted = {Requirement(text).name: str(Requirement(text).specifier) for text in PROJECT["dependencies"]}
    assert {name: given.get(name) for name in wanted} == wanted
    assert set(given) - set(wanted) == {"python", "h5netcdf"}
    assert recipe["about"]["homepage"] == PROJECT["urls"]["Homepage"]


def test_the_citation_is_of_this_version():
    yaml = pytest.importorskip("yaml")
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert said["version"] == PROJECT["version"] and said["url"] == PROJECT["urls"]["Homepage"]
    assert [one["name"] for one in said["authors"]] == [one["name"] for one in PROJECT["authors"]]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    """The source distribution, unpacked."""
    place = tmp_path_factory.mktemp("sdist")
    tree = place / "tree"
    tree.mkdir()
    for path in project_files():
        to = tree / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(place)], cwd=tree, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = place.glob("bayessel-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    return place / archive.name.removesuffix(".tar.gz")


def test_the_sdist_is_the_project(sdist):
    lacks = [str(path.relative_to(ROOT)) for path in project_files() if not (sdist / path.relative_to(ROOT)).exists()]
    assert lacks == []


@pytest.mark.slow
def test_what_is_built_from_the_sdist_passes_its_own_tests(sdist, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", tmp_path], check=True, timeout=300)
    python = tmp_path / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    # the packages of this environment, but for the project: named by a file, which isolated interpreters read too
    site = subprocess.run(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    ).stdout.strip()
    (next(tmp_path.glob("**/site-packages")) / "others.pth").write_text(f"{site}\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed", "."]
    subprocess.run(pip, cwd=sdist, check=True, env=environment, timeout=600)
    chosen = ["tests/basis", "tests/pages", "tests/test_public_api.py", "tests/test_packaging.py"]
    run = [python, "-m", "pytest", "-q", *chosen]
    done = subprocess.run(run, cwd=sdist, capture_output=True, text=True, env=environment, timeout=1800)
    assert done.returncode == 0, done.stdout[-4000:]


# hosted workflows


def workflows() -> dict[str, dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}


def commands(workflow: dict[str, Any]) -> list[str]:
    """Every line that a workflow runs."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [line for step in steps for line in str(step.get("run", "")).splitlines() if line.strip()]


def faults_of(command: str) -> list[str]:
    """What a line names that the project does not have."""
    faults = []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)) | {"test", "test-slow"}
    first, *words = shlex.split(command)
    if first == "make":
        faults += [f"no target {word}" for word in words if word not in targets]
    for word in words:
        if extras := re.fullmatch(r"\.\[([\w,]+)\]", word):
            faults += [f"no extra {one}" for one in extras[1].split(",") if one not in PROJECT["optional-dependencies"]]
        if word.endswith(".txt") and not (ROOT / word).exists():
            faults.append(f"no file {word}")
    return faults


def test_workflows_run_what_there_is_on_every_system_and_python():
    found = workflows()
    assert not [fault for one in found.values() for line in commands(one) for fault in faults_of(line)]
    matrix = found["tests"]["jobs"]["tests"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["system"]} == {"ubuntu", "macos", "windows"}
    listed = [name.rpartition(" :: ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert matrix["python"] == listed and f">={listed[0]}" == PROJECT["requires-python"]


@pytest.mark.parametrize("line", ["make nothing", "pip install .[colour]", "pip install -c pins.txt ."])
def test_a_wrong_step_is_seen(line):
    assert faults_of(line)


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
