"""Plain English in what people read: pages, docstrings and messages."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.paths import ROOT
from tests.test_docs import PAGES
from tests.test_layers import sources

#: turns that a reader who learnt English at school stumbles over
HARD = re.compile(
    r"gone on with|\bdear(?:er|est|ly)?\b|\bat the door\b|\bwhat there is\b|\b(?:is|are) told\b"
    r"|\bwhilst\b|\bthereof\b|\blest\b",
    re.IGNORECASE,
)


def hard_turns(text: str) -> list[str]:
    """The turns of the list, each with the words around it, also where a line ends within."""
    plain = re.sub(r"\s+", " ", text)
    return [plain[max(match.start() - 30, 0) : match.end() + 30] for match in HARD.finditer(plain)]


def strings(source: str) -> Iterator[str]:
    """Docstrings and messages: all string constants of a module with a space in them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_plain(name):
    assert hard_turns((ROOT / name).read_text()) == []


def test_docstrings_and_messages_are_plain():
    gallery = {path.name: path.read_text() for path in (ROOT / "examples" / "gallery").rglob("*.py")}
    found = {
        module: turns
        for module, source in (sources() | gallery).items()
        if (turns := [turn for text in strings(source) for turn in hard_turns(text)])
    }
    assert found == {}


def test_hard_turns_are_seen():
    assert len(hard_turns("It is\ntold at the door that this is dear. Dearth, untold and toldness are not meant.")) == 3
