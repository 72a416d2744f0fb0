"""Cards of results: one mechanism, words for a status, nothing that breaks a page; figures that show themselves.

Guards `bayessel.pages.result_view`, `bayessel.pages.figures`.
"""

import ast
from dataclasses import dataclass

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from bayessel.fit import Status
from bayessel.linear import fit_evidence
from bayessel.pages import figures
from bayessel.pages.result_view import MOST_ROWS, ResultView, ShownResult, Standing
from bayessel.prediction import ClassPrediction, Prediction
from tests.test_layers import sources


@dataclass(frozen=True)
class Held(ShownResult):
    values: np.ndarray

    def _view(self):
        frame = pd.DataFrame({"a <b>": self.values, "word": ["x"] * len(self.values)})
        return ResultView("Held & kept", "fine", Standing.GOOD, ["a line"], [("note", "do <this>")], frame, ".plot()")


def test_text_and_card_say_the_same():
    held = Held(np.arange(3) / 7)
    assert repr(held) == str(held) == held._view().text()
    card = held._repr_html_()
    for word in ("Held &amp; kept", "fine", "a line", "do &lt;this&gt;", "0.1429", ".plot()"):
        assert word in card
    for word in ("Held & kept", "fine", "a line", "do <this>", "0.1429"):
        assert word in str(held)
    assert "<b>" in card and "a <b>" not in card


def test_long_tables_are_cut_and_say_so():
    held = Held(np.arange(MOST_ROWS + 3) / 7)
    assert "3 more rows" in held._repr_html_() and "3 more rows" in str(held)
    assert held._repr_html_().count("<tr>") == MOST_ROWS + 1


def test_arrays_are_not_dumped(rng):
    x = rng.normal(size=(2000, 3))
    fit = fit_evidence(x, x[:, 0])
    assert len(repr(fit)) < 2000 and "array(" not in repr(fit)
    assert "2000 rows" in repr(fit) and "2000 rows" in fit._repr_html_()
    assert "rows left out" in str(fit) and "rows left out" not in repr(fit)


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_words_and_a_colour(status):
    assert status.words == status.words.lower() and "_" not in status.words
    assert (status.standing is Standing.DOUBT) == status.distrusted
    assert (status.standing is Standing.GOOD) == (status is Status.CONVERGED)


def test_predictions_show_their_first_rows():
    there = Prediction.normal(np.arange(100.0), np.ones(100))
    assert "100 rows" in str(there) and "1.645" in str(there) and "99" not in str(there).split("\n", 2)[2]
    labels = ClassPrediction(np.array(["no", "yes"]), np.array([[0.25, 0.75]]))
    assert "p(yes)" in labels._repr_html_() and "0.75" in labels._repr_html_()
    assert "3 × 2" in str(Prediction.normal(np.ones((3, 2)), np.ones((3, 2))))


def hand_made(source: str) -> list[str]:
    """Classes that write their own card in place of the one mechanism."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            found += [node.name for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "_repr_html_"]
    return found


def test_nobody_else_writes_html():
    allowed = {"ShownResult", "ShownFigure", "ShownAxes", "ShownDisplay", "Versioned"}
    assert {name for text in sources().values() for name in hand_made(text)} == allowed
    assert hand_made("class A:\n    def _repr_html_(self): return ''") == ["A"]


# pictures


def test_axes_are_those_given_or_new_ones_that_pyplot_knows():
    given = pyplot.subplots()[1]
    assert figures.axes_for(given, 3, 2) is given
    new = figures.axes_for(None, 3, 2)
    assert new.figure.number in pyplot.get_fignums()


def test_in_a_notebook_axes_are_not_left_to_pyplot(monkeypatch):
    before = pyplot.get_fignums()
    monkeypatch.setattr(figures, "in_notebook", lambda: True)
    new = figures.axes_for(None, 3, 2)
    panels = figures.panels_for(None, 1, 2, 3, 2)
    assert pyplot.get_fignums() == before and len(panels) == 2
    assert new._repr_png_().startswith(b"\x89PNG") and new._repr_html_() is None


def test_the_inline_backend_is_a_notebook(monkeypatch):
    assert not figures.in_notebook()
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    assert figures.in_notebook()


def test_figures_are_handed_to_pyplot_where_it_opens_windows(monkeypatch):
    figure = figures.new_figure(3, 2)
    assert figures.handed_over(figure) is figure and not pyplot.get_fignums()
    monkeypatch.setattr(figures, "_opens_windows", lambda: True)
    assert figures.handed_over(figure) is figure
    assert pyplot.gcf() is figure


def test_panels_take_the_place_of_axes():
    first, second = pyplot.subplots(1, 2)[1]
    panels = figures.panels_for(first, 1, 3, 3, 2)
    assert len(panels) == 3 and all(panel.figure is second.figure for panel in panels)
    assert max(panel.get_position().x1 for panel in panels) < second.get_position().x0
    with pytest.raises(ValueError, match="grid"):
        figures.panels_for(pyplot.figure().add_axes((0.1, 0.1, 0.5, 0.5)), 1, 2, 3, 2)
