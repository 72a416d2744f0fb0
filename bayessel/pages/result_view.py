"""How a result looks in a notebook, in print and on a prompt: a title, its status in words, numbers, what to do.

A class of results inherits `ShownResult` and says by `_view()` what is on its card; nothing else draws one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from bayessel._check import FloatArray
from bayessel._text import number
from bayessel.pages.page import Cell, PageTable, render

if TYPE_CHECKING:
    import pandas as pd

#: rows of a table on a card
MOST_ROWS = 12


class Standing(Enum):
    """Whether a result may be used; the value is the class of the style sheet."""

    GOOD = "good"
    REMARK = "remark"
    DOUBT = "doubt"

    @classmethod
    def of(cls, good: bool) -> Standing:
        """GOOD or DOUBT."""
        return cls.GOOD if good else cls.DOUBT


@dataclass(frozen=True)
class ResultView:
    """What a card shows.

    Attributes
    ----------
    title : str
        What it is, and of how much.
    status : str
        How it stands, in a word or two; empty: there is nothing to judge.
    standing : Standing
        The colour of that.
    lines : sequence of str
        What was found, a thought each.
    advice : sequence of (name, text)
        Remarks by name, and what to do about them.
    table : pandas.DataFrame or None
        Its index is shown where it has a name, or words in it.
    then : str
        Where to read on, as code.
    """

    title: str
    status: str = ""
    standing: Standing = Standing.GOOD
    lines: Sequence[str] = ()
    advice: Sequence[tuple[str, str]] = ()
    table: pd.DataFrame | None = None
    then: str = ""

    def html(self) -> str:
        """The card as a piece of HTML that brings its own style and reads without it, too."""
        table = None if self.table is None else _page_table(self.table)
        hidden = 0 if self.table is None else len(self.table) - MOST_ROWS
        return render("result.html", view=self, table=table, hidden=max(hidden, 0))

    def text(self) -> str:
        """The same in lines of text."""
        head = f"{self.title}: {self.status}" if self.status else self.title
        lines = [head, *self.lines, *(f"{name}: {said}" for name, said in self.advice)]
        if self.table is not None:
            lines.append(self.table.head(MOST_ROWS).to_string(float_format=number))
            if len(self.table) > MOST_ROWS:
                lines.append(f"… {len(self.table) - MOST_ROWS} more rows")
        return "\n".join(line for line in lines if line)


class ShownResult:
    """Base of results that a person holds: a card in notebooks, lines of text in print and on a prompt."""

    def __init_subclass__(cls, **options: object) -> None:
        """Keep the decorator of dataclasses from writing a representation with every array in it."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = ShownResult.__repr__  # type: ignore[method-assign]

    def _view(self) -> ResultView:
        raise NotImplementedError(f"{type(self).__name__} says by _view() what is shown of it")

    def _text(self) -> str:
        return self._view().text()

    def __str__(self) -> str:
        return self._text()

    def __repr__(self) -> str:
        return self._text()

    def _repr_html_(self) -> str:
        return self._view().html()


class DistributionOfRows(Protocol):
    """Predictive distributions, one for each row."""

    @property
    def mean(self) -> FloatArray: ...  # noqa: D102
    @property
    def std(self) -> FloatArray: ...  # noqa: D102
    def quantile(self, q: Any) -> FloatArray: ...  # noqa: D102


def distributions_view(what: str, shape: tuple[int, ...], first: DistributionOfRows) -> ResultView:
    """The card of predictive distributions: mean, standard deviation and 90 % interval of the `first` rows."""
    import pandas as pd

    table = None
    if len(shape) == 1 and shape[0]:
        low, high = first.quantile([0.05, 0.95])
        table = pd.DataFrame({"mean": first.mean, "std": first.std, "5 %": low, "95 %": high})
    size = " × ".join(map(str, shape))
    hidden = f"the first {MOST_ROWS} of them" if shape and shape[0] > MOST_ROWS else ""
    return ResultView(f"{what} of {size} row{'' if shape == (1,) else 's'}", lines=[hidden], table=table)


def _page_table(frame: pd.DataFrame) -> PageTable:
    """The first rows as cells: words to the left, numbers with four digits."""
    named = any(frame.index.names) or not all(isinstance(one, int) for one in frame.index)
    first = [" ".join(str(name) for name in frame.index.names if name is not None)] if named else []
    text = {name for name in frame if not all(isinstance(one, int | float) for one in _plain(frame[name]))}
    head = [*(Cell(name, "word") for name in first), *(Cell(str(n), "word" if n in text else "") for n in frame)]
    rows = []
    shown = frame.head(MOST_ROWS)
    columns = [_plain(shown[name]) for name in shown]
    for place, label in enumerate(shown.index):
        label = label if isinstance(label, tuple) else (label,)
        cells = [Cell(" ".join(_written(one) for one in label), "word")] if named else []
        cells += [
            Cell(_written(column[place]), "word" if name in text else "")
            for name, column in zip(shown, columns, strict=True)
        ]
        rows.append(cells)
    return PageTable(head, rows, named)


def _plain(column: pd.Series) -> list[object]:
    """Values as Python's own."""
    return [one.item() if hasattr(one, "item") else one for one in column]


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if value != value else number(value)
    return str(value)
