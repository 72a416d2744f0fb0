"""Markdown pages as notebooks: fenced python blocks become cells, so that the site shows what they print and draw."""

import re

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FENCE = re.compile(r"^```python[ ]*\n(.*?)^```[ ]*$\n?", re.MULTILINE | re.DOTALL)
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def notebook(text: str) -> NotebookNode:
    """Notebook of a page: the text between the blocks in Markdown cells, the blocks in code cells."""
    cells, end = [], 0
    for block in FENCE.finditer(text):
        cells += [new_markdown_cell(text[end : block.start()]), new_code_cell(block[1].rstrip("\n"))]
        end = block.end()
    cells.append(new_markdown_cell(text[end:]))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same at every build, so that the cache finds the page again
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    if end == 0:
        metadata["mystnb"] = {"execution_mode": "off"}
    return new_notebook(cells=[cell for cell in cells if cell.source.strip()], metadata=metadata)
