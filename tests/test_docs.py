"""What the documentation shows runs: README and CONTRIBUTING blocks, docstring examples, example scripts."""

import doctest
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.test_layers import MAY_IMPORT, sources

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if not path.stem.startswith("_"))


def blocks(text: str) -> list[tuple[int, str]]:
    """(line, code) of the fenced python blocks; `text` and shell blocks are for reading."""
    fence = re.compile(r"^```python[ ]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)) + 1, match[1]) for match in fence.finditer(text)]


def run_blocks(path: Path, text: str) -> None:
    """Execute the blocks in order in one namespace; a failure names the file and its line."""
    namespace = {"__name__": "__main__"}
    for line, code in blocks(text):
        exec(compile("\n" * (line - 1) + code, str(path), "exec"), namespace)


#: pages whose models take long to compile and to sample
LONG_PAGES = ("docs/evidence.md", "docs/network-evidence.md")
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


# how far short chains have come depends on the last bits of compiled code, which differ between machines
SHORT_CHAINS = pytest.mark.filterwarnings("ignore:CHAINS_DISAGREE")


@SHORT_CHAINS
@pytest.mark.parametrize(
    "name", [pytest.param(page, marks=[pytest.mark.slow] if page in LONG_PAGES else []) for page in PAGES]
)
def test_documented_code_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / name
    text = path.read_text()
    assert "```py\n" not in text, "write ```python, or the block is never run"
    assert blocks(text) or name.startswith("docs/")  # a page of tables shows no code
    run_blocks(path, text)


def drawn_map(text: str) -> set[str]:
    """Packages and top-level modules on the map of CONTRIBUTING.md, as dotted names."""
    lines = text.split("## Layout")[1].split("```text\n")[1].split("```")[0].splitlines()
    found: set[str] = set()
    above: list[tuple[int, str]] = []
    for line in lines:
        depth, names = len(line) - len(line.lstrip()), re.split(r"\s{2,}", line.strip())[0].split()
        above = [one for one in above if one[0] < depth]
        parts = [part for _, part in above]
        found |= {".".join([*parts, name.rstrip("/")]) for name in names}
        if names[0].endswith("/"):
            above.append((depth, names[0].rstrip("/")))
    return {re.sub(r"^(models|diagnostics)\b", r"bayessel.\1", name) for name in found}


def wrong_on_the_map(text: str) -> tuple[set[str], set[str]]:
    """What the map lacks, and what it names that is not there."""
    modules, drawn = sources(), drawn_map(text)
    packages = {name for name in modules if any(other.startswith(f"{name}.") for other in modules)}
    there = packages | {name for name in modules if name.count(".") == 1}
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    return there - drawn, drawn - there - folders


def test_the_map_of_packages_is_whole_and_true():
    assert wrong_on_the_map((ROOT / "CONTRIBUTING.md").read_text()) == (set(), set())


@pytest.mark.parametrize(
    ("line", "instead", "lacks", "names"),
    [
        ("    rvm/ ", "    rv/ ", {"bayessel.linear.rvm"}, {"bayessel.linear.rv"}),
        ("diagnostics/ ", "diagnosis/ ", None, {"diagnosis"}),
        ("errors _check ", "errors ", {"bayessel._check"}, set()),
    ],
)
def test_a_wrong_map_is_seen(line, instead, lacks, names):
    missing, strange = wrong_on_the_map((ROOT / "CONTRIBUTING.md").read_text().replace(line, instead, 1))
    assert (missing == lacks if lacks else missing) and names <= strange


def test_the_order_of_imports_is_the_table_of_layers():
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Layout")[1]
    rows = [line.split() for line in text.split("```text\n")[2].split("```")[0].splitlines()]
    place = {name: number for number, row in enumerate(rows) for name in row}
    assert set(place) == set(MAY_IMPORT)
    for layer, others in MAY_IMPORT.items():
        later = {other for other in others - {layer} if place[other] >= place[layer]}
        assert not later or place[layer] == 0, f"{layer} imports {later}, which stand no higher"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files(name):
    path = ROOT / name
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL))
    lost = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not lost


def test_a_wrong_block_is_seen():
    text = "Words.\n\n```python\nx = 1\n```\n\n```text\nnot code\n```\n\n```python\nassert x == 2\n```\n"
    assert [line for line, _ in blocks(text)] == [4, 12]
    with pytest.raises(AssertionError) as caught:
        run_blocks(Path("made_up.md"), text)
    assert caught.traceback[-1].lineno == 11  # counted from zero


@SHORT_CHAINS
@pytest.mark.parametrize("module", sorted(sources()))
def test_docstring_examples_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(
        importlib.import_module(module), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False
    )
    assert outcome.failed == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # whatever an example writes by a relative path lands here
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "quick" in inspect.signature(module.main).parameters, f"{path.name}: main needs an argument `quick`"
    module.main(quick=True)


def test_there_are_examples():
    assert EXAMPLES
