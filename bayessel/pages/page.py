"""What the HTML pages share: one set of templates, their tables and pictures, and the colours of all pictures."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: colours of pictures: text, curves, what is best, what lies behind
INK, LINE, BEST, SOFT = "#222222", "#2f6690", "#c8553d", "#9fb8c9"


#: inches for the words below a picture
_BELOW = 0.49
#: sections up to which a page needs no list of them
_FEWEST_SECTIONS = 2


class Picture(NamedTuple):
    """A picture inside the file: its data as an address, and what it shows in words."""

    source: str
    description: str


class Cell(NamedTuple):
    """A cell of a table: its text, and classes of the style sheet."""

    text: str
    mark: str = ""


class PageTable(NamedTuple):
    """A table of a page; in a `named` one the first cell of each row is its name."""

    head: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    named: bool = True


def words(texts: Iterable[str]) -> list[Cell]:
    """Cells of text, which are aligned to the left."""
    return [Cell(text, "word") for text in texts]


def render(template: str, **context: Any) -> str:
    """Return a page as one string of HTML that needs no other file and no network."""
    return _with_contents(_environment().get_template(template).render(**context))


def _with_contents(page: str) -> str:
    """The page with a list of its sections where the template has a place for it; short pages have none."""
    titles: list[str] = []

    def anchored(found: re.Match[str]) -> str:
        titles.append(found[1])
        return f'<h2 id="section-{len(titles)}">{found[1]}</h2>'

    place = "<!-- contents -->"
    if place not in page:
        return page
    page = re.sub(r"<h2>(.*?)</h2>", anchored, page)
    entries = "".join(f'<li><a href="#section-{k}">{title}</a></li>' for k, title in enumerate(titles, start=1))
    return page.replace(place, f"<nav><ul>{entries}</ul></nav>" if len(titles) > _FEWEST_SECTIONS else "", 1)


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )


def embedded(figure: Figure, description: str) -> Picture:
    """Put a figure into the page, with the same margins as every other: pictures below each other line up."""
    figure.set_layout_engine(None)
    # a low picture needs a larger share for the words below it, which are as high in every one
    bottom = max(0.17, _BELOW / figure.get_figheight())
    figure.subplots_adjust(left=0.16, right=0.96, bottom=bottom, top=0.9)
    return svg(figure, description)


def svg(figure: Figure, description: str) -> Picture:
    """Put a figure into the page as SVG: sharp at every zoom, small, and part of the file."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "bayessel"}):
        figure.savefig(buffer, format="svg", dpi=160, metadata={"Date": None})
    return Picture(f"data:image/svg+xml;base64,{base64.b64encode(buffer.getvalue()).decode()}", description)


def plain(text: str) -> str:
    """Return a user's name for a label, dollar signs as they are: matplotlib would read mathematics between them."""
    return text.replace("$", r"\$")


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file in memory."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()
