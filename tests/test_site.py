"""The site: every page has its place, every public name its entry, pages of the guide are short."""

import re

import pytest

import bayessel as bs
from tests.paths import ROOT
from tests.test_public_api import MODULES

DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md"))
MOST_LINES = 150
#: submodules whose names are public too
INSIDE = {"bayessel.diagnostics.calibration", "bayessel.diagnostics.delve"}


def entries(page: str) -> set[str]:
    """Indented words of a page of the table of contents, or of names."""
    return set(re.findall(r"^   ([\w./-]+)$", (DOCS / f"{page}.rst").read_text(), re.MULTILINE))


def test_every_page_has_its_place():
    placed = {name: entries(name) & set(PAGES) for name in ("start", "guide", "record")}
    listed = [page for pages in placed.values() for page in pages]
    assert sorted(listed) == PAGES  # each once


def test_every_public_name_has_an_entry():
    names = set(bs.__all__) - MODULES - {"__version__"}
    modules = {f"bayessel.{name}" for name in MODULES} | INSIDE
    assert entries("reference") == names | modules


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith(("papers/", "measured/"))])
def test_pages_are_short(page):
    """Claims of papers and measurements are tables, as long as they are; all else is for reading."""
    assert len((DOCS / f"{page}.md").read_text().splitlines()) <= MOST_LINES


def test_benchmarks_are_one_page():
    assert len((DOCS / "benchmarks.md").read_text().splitlines()) <= 80
