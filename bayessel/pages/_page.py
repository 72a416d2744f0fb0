"""What the HTML pages share: their style, their colours, and pictures inside the file."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: colours of pictures: text, curves, what is best, what lies behind
INK, LINE, BEST, SOFT = "#222222", "#2f6690", "#c8553d", "#9fb8c9"
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: #222; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p, li, dd { max-width: 46rem; }
.facts { color: #555; margin: 0 0 1rem; max-width: none; }
.verdict { background: #f3f6f9; border-left: 5px solid #2f6690; padding: .8rem 1rem; margin: 1rem 0; }
.verdict p { margin: 0; max-width: none; font-size: 1.06rem; }
.verdict p + p { margin-top: .5rem; font-size: 1rem; }
.verdict p:first-child { font-weight: 600; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: .75rem; }
.panels img { width: 100%; height: auto; display: block; }
.wide { grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
.single { max-width: 42rem; }
.scroll { overflow-x: auto; border: 1px solid #ddd; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #eee; }
thead th { background: #f3f6f9; vertical-align: bottom; }
tbody th { position: sticky; left: 0; background: #fff; }
thead th:first-child { position: sticky; left: 0; }
td.word, th.word { text-align: left; }
td.best { font-weight: 700; background: #fbe9e4; }
td.local { background: #fdf5f2; }
td.warn { background: #fff3cd; }
dt { font-weight: 600; margin-top: .6rem; }
dd { margin: 0; }
footer { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: .5rem; color: #555; font-size: .82rem; }
footer p { max-width: none; overflow-wrap: anywhere; margin: .2rem 0; }
"""


def embedded(figure: Figure, description: str) -> str:
    """Put a figure into the page, with the same margins as every other: pictures below each other line up."""
    figure.set_layout_engine(None)
    figure.subplots_adjust(left=0.16, right=0.96, bottom=0.17, top=0.9)
    return svg(figure, description)


def svg(figure: Figure, description: str) -> str:
    """Put a figure into the page as SVG: sharp at every zoom, small, and part of the file."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "bayessel"}):
        figure.savefig(buffer, format="svg", dpi=160, metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(description)}" src="data:image/svg+xml;base64,{data}">'
