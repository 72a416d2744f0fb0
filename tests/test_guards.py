"""Every test file says in its docstring which modules it guards, and every module of the sources is named by one."""

import ast
import re

import pytest

from tests.paths import ROOT
from tests.test_layers import FOLDERS

LINE = re.compile(r"^Guards ((?:`bayessel[\w.]*`,?\s+)*`bayessel[\w.]*`)\.$", re.MULTILINE)


def modules() -> set[str]:
    """Dotted names of the source files; those that only gather names, or start a program, hold nothing to guard."""
    return {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts))
        for package, folder in FOLDERS.items()
        for path in folder.rglob("*.py")
        if path.stem not in ("__init__", "__main__")
    }


def guarded(text: str) -> list[str]:
    """Modules named on the last lines of a test file's docstring."""
    found = LINE.search(ast.get_docstring(ast.parse(text)) or "")
    return re.findall(r"`([\w.]+)`", found[1]) if found else []


def claims() -> dict[str, list[str]]:
    """Path of a test file -> modules that it guards."""
    return {str(path.relative_to(ROOT)): guarded(path.read_text()) for path in sorted(ROOT.glob("tests/**/test_*.py"))}


def test_every_module_has_a_test_that_guards_it():
    named = {module for found in claims().values() for module in found}
    assert not modules() - named, "name these in the last lines of a test file's docstring: Guards `bayessel.x.y`."


def test_what_is_guarded_exists():
    wrong = {path: gone for path, found in claims().items() if (gone := set(found) - modules())}
    assert not wrong


def test_a_folder_of_tests_guards_the_package_of_its_name():
    strangers = {}
    for path, found in claims().items():
        room = path.split("/")[1]
        if found and path.count("/") > 1 and not any(name.startswith(f"bayessel.{room}.") for name in found):
            strangers[path] = found
    assert not strangers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""What is.\n\nGuards `bayessel.a`.\n"""', ["bayessel.a"]),
        ('"""What is.\n\nGuards `bayessel.a`,\n`bayessel.b.c`.\n"""\nx = 1', ["bayessel.a", "bayessel.b.c"]),
        ('"""It guards `bayessel.a`."""', []),
        ("x = 1", []),
    ],
)
def test_the_line_is_read(text, found):
    assert guarded(text) == found
