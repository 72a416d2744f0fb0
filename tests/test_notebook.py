"""A notebook that fits, compares, samples and shows: every output is a picture, a table or a line of progress.

Guards `bayessel.pages.figures`.
"""

import re

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

SETUP = """
import numpy as np
import bayessel as bs
rng = np.random.default_rng(1)
X = rng.normal(size=(50, 2))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=50)
"""
PICTURES = {
    "comparison": "cmp.plot()",
    "fits": "cmp.plot_fit()",
    "fit": "bs.diagnostics.FitDisplay.from_estimator(model, X, y)",
    "relevance": "bs.diagnostics.RelevanceDisplay.from_estimator(model)",
    "calibration": "bs.diagnostics.PredictiveCalibrationDisplay.from_estimator(model)",
    "result": "bs.diagnostics.predictive_calibration(model).plot()",
    "axes": "bs.BasisSearchRegressor(width=1.0).fit(X, y).plot_path()",
}
CARDS = {
    "comparison's card": "cmp",
    "estimator": "model",
    "engine's fit": "model.fit_",
    "prediction": "model.predictive(X)",
    "left out": "model.leave_one_out()",
    "criteria": "bs.diagnostics.compare({'a': model})",
    "trace": "trace",
    "convergence": "bs.diagnostics.convergence(trace)",
}
SAMPLE = """
trace = bs.sample(bs.models.linear(X, y, bias=True), draws=60, tune=20, chains=2, cores=1, random_seed=1)
"""
BARE_FIGURE = {"bare": "from matplotlib.figure import Figure\nFigure()"}
pytestmark = pytest.mark.filterwarnings("default")
#: what an object without any care looks like
BARE = re.compile(r"^<[\w.]+ (object )?at 0x|^<Figure|^<Axes|^\w+\((\w+=|array\()|Output\(\)")


def executed(cells: dict[str, str]) -> dict[str, list[dict[str, object]]]:
    """Outputs of cells, by name."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells.values()])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return dict(zip(cells, (cell.outputs for cell in notebook.cells), strict=True))


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> dict[str, list[dict[str, object]]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("notebook"))
        patch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        patch.delenv("MPLBACKEND", raising=False)
        compare = "cmp = bs.compare_widths(X, y, [0.3, 1.0, 3.0], criteria=('evidence', 'gcv'))"
        fit = "model = bs.GPRegressor(inference='map').fit(X, y)"
        work = {"setup": SETUP, "fitting": fit, "comparing": compare, "sampling": SAMPLE}
        return executed({**work, **PICTURES, **CARDS, **BARE_FIGURE})


@pytest.mark.parametrize("name", PICTURES)
def test_what_is_drawn_is_a_picture_and_one(outputs, name):
    pictures = [one for one in outputs[name] if "image/png" in one["data"]]
    assert len(pictures) == 1
    assert len(outputs[name]) == 1


@pytest.mark.parametrize("name", CARDS)
def test_what_is_found_is_a_card(outputs, name):
    (one,) = outputs[name]
    assert "<" in one["data"]["text/html"]
    assert not BARE.search(one["data"]["text/plain"]) or name == "estimator"


def test_progress_is_one_line_that_stays(outputs):
    assert outputs["fitting"] == []
    (line,) = outputs["comparing"]
    assert re.search(r"r = .* of ", line["data"]["text/plain"])
    assert line["data"]["text/plain"].count("\n") == 0


def test_sampling_leaves_its_line_and_says_whether_the_draws_may_be_used(outputs):
    line, *said = outputs["sampling"]
    assert "draws" in line["data"]["text/plain"] and line["data"]["text/plain"].count("\n") == 0
    assert said and not [one for one in said if BARE.search(text_of(one))]


def text_of(output: dict[str, object]) -> str:
    return output["text"] if "text" in output else output["data"]["text/plain"]


def test_a_bare_figure_is_seen(outputs):
    (found,) = outputs["bare"]
    assert BARE.search(found["data"]["text/plain"]) and "image/png" not in found["data"]
