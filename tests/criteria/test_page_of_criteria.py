"""The page of criteria says what the registry says.

Guards `bayessel.criteria._criterion`, `bayessel.criteria.capabilities`, `bayessel.criteria.description_length`,
`bayessel.criteria.error_estimates`, `bayessel.criteria.evidence`, `bayessel.criteria.holdout`,
`bayessel.criteria.leave_one_out`, `bayessel.criteria.prequential`.
"""

from bayessel.criteria import CRITERIA
from tests.paths import ROOT


def table() -> str:
    rows = [
        f"| `{one.name}` | {one.better}; {one.unit} | {one.question} | {one.distrust} |" for one in CRITERIA.values()
    ]
    return "\n".join(["| name | direction, unit | what it asks | when to distrust it |", "|---|---|---|---|", *rows])


def test_the_table_is_that_of_the_registry():
    page = (ROOT / "docs" / "criteria.md").read_text()
    assert table() in page, f"docs/criteria.md is to hold this table:\n{table()}"
