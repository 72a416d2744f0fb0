"""The page of criteria says what the registry says.

Guards `bayessel.criteria._criterion`, `bayessel.criteria.capabilities`, `bayessel.criteria.description_length`,
`bayessel.criteria.error_estimates`, `bayessel.criteria.evidence`, `bayessel.criteria.holdout`,
`bayessel.criteria.leave_one_out`, `bayessel.criteria.prequential`.
"""

import re

from bayessel.criteria import CRITERIA
from tests.paths import ROOT


def row(*cells: str) -> str:
    """A row of a table in Markdown, where a bar inside a cell has a backslash before it."""
    return f"| {' | '.join(cell.replace('|', r'\|') for cell in cells)} |"


def table() -> str:
    rows = [row(f"`{one.name}`", f"{one.better}; {one.unit}", one.question, one.distrust) for one in CRITERIA.values()]
    heading = row("name", "direction, unit", "what it asks", "when to distrust it")
    return "\n".join([heading, "|---|---|---|---|", *rows])


def test_the_table_is_that_of_the_registry():
    page = (ROOT / "docs" / "criteria.md").read_text()
    assert table() in page, f"docs/criteria.md is to hold this table:\n{table()}"


def test_every_row_has_as_many_cells_as_the_heading():
    cells = [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in table().splitlines()]
    assert cells == [4] * (len(CRITERIA) + 2)
    assert any(r"\|" in line for line in table().splitlines())  # else the count above says nothing
