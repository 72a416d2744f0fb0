"""Pictures and reports: complete, self-contained, drawn from finished numbers only.

Guards `bayessel.widths._report`, `bayessel.widths._plots`, `bayessel.widths._comparison`, `bayessel._text`.
"""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel._text import number
from bayessel.criteria import CRITERIA
from bayessel.fit import Status
from bayessel.widths._plots import plot_fit, plot_widths
from bayessel.widths._report import width_report
from bayessel.widths.curves import DrawnFit, entry


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 6, 60))
    y = np.sin(2 * x) + 0.3 * rng.normal(size=60)
    return bs.compare_widths(
        x, y, np.geomspace(0.05, 30, 16), names=["hour & more"], target="dose <mg>", progressbar=False
    )


@pytest.fixture
def table():
    r = np.geomspace(0.1, 10, 9)
    u = np.log10(r)
    curves = {"evidence": -50 * (u - 0.25) ** 2, "gcv": 1 + (u + 0.25) ** 2, "bic": 3 - u}
    return pd.DataFrame(curves | {"status": "CONVERGED", "notes": ""}, index=pd.Index(r, name="width"))


class Page(HTMLParser):
    """What a browser would see: text, images, links, table cells, and unbalanced tags."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.text, self.images, self.links, self.tables, self.open, self.metas = "", [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "img":
            self.images.append(attrs)
        if tag == "meta":
            self.metas.append(attrs)
        if tag == "table":
            self.tables.append([])
        if tag in ("td", "th"):
            self.tables[-1].append(["", attrs.get("class", "")])
        self.links += [attrs[key] for key in ("href", "src", "srcset", "action") if key in attrs]
        assert tag not in ("script", "link", "iframe", "object")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            assert "url(" not in data and "@import" not in data
            return
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][0] += data


@pytest.fixture(scope="module")
def page(comparison, tmp_path_factory):
    return Page(comparison.to_html(tmp_path_factory.mktemp("report") / "report.html").read_text(encoding="utf-8"))


def test_a_single_width_has_room_on_both_sides():
    ax = plot_widths(pd.DataFrame({"gcv": [0.3]}, index=pd.Index([0.5], name="width"))).axes[0]
    low, high = ax.get_xlim()
    assert low < 0.5 < high and np.isclose(low * high, 0.25)


def test_page_is_whole_and_needs_nothing_from_outside(page):
    assert page.open == []
    outside = [link for link in page.links if not link.startswith("#section-")]
    assert outside and all(link.startswith("data:image/svg+xml;base64,") for link in outside)
    assert not re.search(r"https?://|//[a-z]", page.text)
    assert any(meta.get("name") == "viewport" and "width=device-width" in meta["content"] for meta in page.metas)


def test_pictures_are_all_there_and_described(page, comparison):
    assert len(page.images) == len(comparison.criteria) + len(comparison.fits)
    for image, name in zip(page.images, comparison.criteria, strict=False):
        assert image["alt"].startswith(CRITERIA[name].label)
        assert f"r = {number(comparison.best(name))}" in image["alt"]
    for image in page.images:
        svg = base64.b64decode(image["src"].partition(",")[2]).decode()
        assert svg.rstrip().endswith("</svg>") and len(svg) > 3000
        # whatever is drawn is in the file: the only addresses are names of XML vocabularies and references inside
        assert not re.search(r'(href|src)="(?!#|data:image)', svg)


def test_verdict_comes_first_and_everything_is_said(page, comparison):
    text = page.text
    for sentence in comparison.verdict_sentences():
        assert sentence in text
    assert text.index(comparison.verdict_sentences()[0]) < text.index("The criteria over the width")
    for name in comparison.criteria:
        assert CRITERIA[name].meaning in text
    assert comparison.fingerprint in text
    for name, version in comparison.versions.items():
        assert f"{name} {version}" in text
    assert comparison.created in text
    assert "dose <mg>" in text and "hour & more" in text  # escaped in the source, whole on the screen
    for status in set(comparison.table["status"]) - {"CONVERGED"}:
        assert Status[status].value in text


def test_every_number_of_the_table_is_on_the_page(page, comparison):
    cells = [re.sub("[★○] ", "", text) for text, _ in page.tables[-1]]
    columns = len(comparison.table.columns) + 1
    order = cells[1:columns]
    assert cells[0] == "r" and sorted(order) == sorted(comparison.table.columns)
    assert order.index("status") < order.index("lam")  # seen without scrolling far
    rows = [cells[k : k + columns] for k in range(columns, len(cells), columns)]
    assert len(rows) == len(comparison.table)
    for row, (r, values) in zip(rows, comparison.table.iterrows(), strict=True):
        expected = [values[n] if isinstance(values[n], str) else entry(n, values[n]) for n in order]
        assert row == [number(r, strip=False), *expected]


def test_best_cells_are_marked(page, comparison):
    columns = [text for text, _ in page.tables[-1][: len(comparison.table.columns) + 1]]
    for name in comparison.criteria:
        k = columns.index(name)
        marked = [i for i, cell in enumerate(page.tables[-1][len(columns) + k :: len(columns)]) if cell[1] == "best"]
        assert list(comparison.table.index[marked]) == [comparison.best(name)]
        local = [i for i, cell in enumerate(page.tables[-1][len(columns) + k :: len(columns)]) if cell[1] == "local"]
        assert sorted(comparison.table.index[local]) == sorted(one.width for one in comparison.optima(name)[1:])


@pytest.fixture(scope="module")
def sparse():
    rng = np.random.default_rng(5)
    x = np.linspace(0, 6, 40)
    y = np.sin(2 * x) + 0.2 * rng.normal(size=40)
    return bs.compare_widths(
        x, y, np.geomspace(0.1, 10, 7), model="rvm", kind=["gaussian", "cauchy"], progressbar=False
    )


def test_a_sparse_model_is_told_in_full(sparse, tmp_path):
    page = Page(sparse.to_html(tmp_path / "r.html").read_text(encoding="utf-8"))
    # a picture per criterion, one of the precision delta, and the fits
    assert len(page.images) == 4 + 1 + len(sparse.fits)
    assert "three precisions delta" in page.images[4]["alt"]
    for kind, r in sparse.fits:
        assert any(f"Fit at {kind} r = {number(r)}" in image["alt"] for image in page.images)
    assert "Rings: centres of the functions in use" in page.text and "Standard errors" in page.text
    numbers = page.tables[-1]
    columns = [text for text, _ in numbers[: len(sparse.table.columns) + 2]]
    assert columns[:2] == ["r", "kind"]
    cells = [text for text, _ in numbers]
    assert cells.count("gaussian") == cells.count("cauchy") == 7


def test_what_it_costs_to_differ(sparse, table, tmp_path):
    """Each preferred width, and what every criterion loses there: nats, or a share of the error."""
    table["n_basis"] = 5
    table["gcv_diff_se"] = 0.2
    page = Page(width_report(table, ["evidence", "gcv", "bic"], ["v"], [[0.0]], [0.0], {}, ["x"], "y"))
    cells = [text for text, _ in page.tables[0]]
    assert cells[:6] == ["width", "best by", "functions", "Log evidence", "GCV", "BIC"]
    rows = {cells[k]: cells[k + 1 : k + 6] for k in range(6, len(cells), 6)}
    u = np.log10(table.index.to_numpy())
    best = {name: getattr(table[name], how)() for name, how in (("evidence", "idxmax"), ("gcv", "idxmin"))}
    here = rows[f"r = {number(best['evidence'])}"]
    assert here[:3] == ["Log evidence", "5", "★"]
    expected = 1 + (np.log10(best["evidence"]) + 0.25) ** 2
    assert here[3] == f"{100 * (expected / table['gcv'].min() - 1):.1f} ± {20 / table['gcv'].min():.1f} %"
    none = np.empty(0)
    kept = DrawnFit(np.zeros(1), np.ones(1), none, none, none)
    more = Page(width_report(table, ["gcv"], ["v"], [[0.0]], [0.0], {table.index[0]: kept}, ["x"], "y"))
    assert [text for text, _ in more.tables[0]][4:6] == ["r = 0.1", "(separate optimum)"]
    loss = 50 * ((np.log10(best["gcv"]) - 0.25) ** 2 - (u - 0.25).__abs__().min() ** 2)
    assert rows[f"r = {number(best['gcv'])}"][2] == f"{loss:.1f} nats"


def test_functions_in_use_are_ringed_where_they_are(sparse):
    from bayessel.widths._plots import plot_deltas

    kind, r = sparse.best("mdl-w")
    (ax,) = sparse.plot_fit(kind=kind, width=r).axes
    fit = sparse.fits[kind, r]
    (rings,) = [c for c in ax.collections if c.get_label() == "functions in use"]
    used = sparse.centers[fit.basis[fit.basis < 40], 0]
    np.testing.assert_array_equal(rings.get_offsets()[:, 0], used)
    assert f"{len(fit.basis)} functions" in ax.get_title(loc="left")
    curves = plot_deltas(sparse.table).axes[0].lines
    assert [line.get_linestyle() for line in curves if len(line.get_xdata()) > 1] == [":", "-", "--"]


def test_several_kinds_are_several_curves(sparse):
    (ax,) = sparse.plot(["evidence"]).axes
    drawn = {line.get_label(): line for line in ax.lines if line.get_label() in ("gaussian", "cauchy")}
    for kind, line in drawn.items():
        np.testing.assert_array_equal(line.get_ydata(), sparse.table.xs(kind)["evidence"])
    assert len(drawn) == 2
    assert len(sparse.plot(["loo"]).axes[0].collections) >= 2  # bands of standard errors


def test_deep_optima_stay_in_the_panel():
    """The room is chosen for the middle of the curve, but a separate optimum far up must be seen."""
    r = np.geomspace(0.1, 10, 15)
    v = np.array([900, 500, 60, 20, 0, 20, 30, 40, 50, 60, 70, 400, 300, 450, 500.0])
    ax = plot_widths(pd.DataFrame({"mdl-w": v}, index=pd.Index(r, name="width"))).axes[0]
    assert ax.get_ylim()[0] < 0 and 400 > ax.get_ylim()[1] > 300
    assert sorted(text.get_text() for text in ax.texts) == sorted([f"r = {number(r[4])}", number(r[12])])


def test_statuses_come_with_advice_and_place(table):
    table["status"] = ["CONVERGED"] * 7 + ["PURE_NOISE", "AT_BOUND"]
    table["notes"] = ["INTERPOLATION(bic)"] * 4 + ["MULTIPLE_OPTIMA(gcv,bic)"] + [""] * 4
    text = Page(width_report(table, ["evidence", "gcv", "bic"], ["v"], [[0.0]], [0.0], {}, ["x"], "y")).text
    for name in ("PURE_NOISE", "AT_BOUND", "MULTIPLE_OPTIMA"):
        assert f"{name}{Status[name].value}." in text
    assert "Here: fit at r = 5.623." in text
    assert "Here: GCV at r = 1; BIC at r = 1." in text
    assert "Here: BIC at 4 widths from 0.1 to 0.5623." in text
    assert "converged without anything" not in text


def test_widths_has_a_panel_per_criterion_with_its_best(table):
    figure = plot_widths(table)
    panels = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title(loc="left").split("  ")[0] for ax in panels] == ["Log evidence", "GCV", "BIC"]
    assert all(ax.get_xscale() == "log" for ax in panels)
    assert len({ax.get_xlim() for ax in panels}) == 1
    assert [ax.get_yscale() for ax in panels] == ["linear", "log", "log"]
    for ax, name, shape in zip(panels, ("evidence", "gcv", "bic"), ("o", "o", ">"), strict=True):
        best = table.index[table[name].argmax() if name == "evidence" else table[name].argmin()]
        assert [text.get_text() for text in ax.texts] == [f"r = {number(best)}"]
        filled = [line for line in ax.lines if line.get_markersize() == 7 and len(line.get_xdata()) == 1]
        assert [(line.get_xdata()[0], line.get_marker()) for line in filled] == [(best, shape)]
        curve = ax.lines[0]
        np.testing.assert_array_equal(curve.get_ydata(), table[name])
    assert not panels[1].patches  # the shade of 3 nats is the evidence's
    (shade,) = panels[0].patches
    near = [10**u for u in np.linspace(-1, 1, 9) if 50 * (u - 0.25) ** 2 < np.log(20)]
    half = 10**0.125  # half a step of the grid
    np.testing.assert_allclose([shade.get_x(), shade.get_x() + shade.get_width()], [near[0] / half, near[-1] * half])


def test_local_optima_are_open_marks(table):
    table.loc[table.index[1], "gcv"] = 0.9 * table["gcv"].iloc[0]
    table.loc[table.index[2], "gcv"] = 3.0
    ax = plot_widths(table, ["gcv"]).axes[0]
    open_marks = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert len(open_marks) == 1


def test_one_input_is_drawn_over_it_with_its_band(comparison):
    figure = comparison.plot_fit(comparison.best("evidence"))
    (ax,) = figure.axes
    fit = comparison.fits[comparison.best("evidence")]
    (mean,) = [line for line in ax.lines if line.get_label() == "mean"]
    np.testing.assert_array_equal(mean.get_xydata(), np.column_stack([fit.grid, fit.grid_mean]))
    band, data = ax.collections
    top = band.get_paths()[0].vertices[:, 1].max()
    np.testing.assert_allclose(top, (fit.grid_mean + 2 * fit.grid_std).max())
    np.testing.assert_array_equal(data.get_offsets(), np.column_stack([comparison.X[:, 0], comparison.y]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour & more", "dose <mg>")
    assert "Log evidence" in ax.get_title(loc="left")


def test_several_inputs_are_drawn_fitted_against_observed(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    mean = y + 0.1
    none = np.empty(0)
    figure = plot_fit(X, y, {1.0: DrawnFit(mean, np.ones(30), none, none, none)}, ["a", "b"], "t")
    (ax,) = figure.axes
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), np.column_stack([y, mean]))
    line = ax.lines[0].get_xydata()
    np.testing.assert_array_equal(line[:, 0], line[:, 1])


def test_nothing_to_draw_is_said(table):
    with pytest.raises(ValueError, match="no criterion to draw"):
        plot_widths(table[["status"]])
    with pytest.raises(ValueError, match="no fit is stored"):
        plot_fit([[1.0]], [1.0], {})


def test_pictures_of_broken_curves_do_not_break(table):
    table["gcv"] = [np.nan, np.inf, 1.0, np.nan, 0.5, np.nan, 2.0, 0.0, np.nan]
    table["evidence"] = np.nan
    plot_widths(table).savefig("/dev/null", format="png")
    text = width_report(table, ["evidence", "gcv"], ["v"], [[0.0]], [0.0], {}, ["x"], "y")
    assert "no finite value" in text


def test_page_is_the_same_every_time(comparison, tmp_path):
    assert comparison.to_html(tmp_path / "a.html").read_bytes() == comparison.to_html(tmp_path / "b.html").read_bytes()


def test_drawing_leaves_no_figure_behind(comparison):
    from matplotlib import pyplot

    comparison.plot()
    comparison.plot_fit()
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (10.5, "10.5"),
        (123456.0, "123456"),
        (1e7, "1.000e+07"),
        (-0.012345, "-0.01235"),
        (3e-7, "3.000e-07"),
    ],
)
def test_numbers_are_written_as_people_do(value, text):
    assert number(value) == text


def test_entries_of_the_table():
    assert entry("evidence", -617.2649) == "-617.26"
    assert entry("gcv", 10.0) == "10.00"
    assert entry("n_basis", 133) == "133"
    assert entry("fpe", np.nan) == "–"


def test_names_with_dollar_signs_stay_text(tmp_path):
    """Between dollar signs matplotlib reads mathematics, and stops at what it does not know."""
    x = np.linspace(0, 1, 30)
    comparison = bs.compare_widths(x, x**2, [0.3, 1.0], progressbar=False, names=[r"$\bar$"], target=r"$\foo$")
    comparison.to_html(tmp_path / "report.html")
    assert r"$\foo$" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_widths_whose_products_leave_double_precision_are_drawn(table, scale):
    table.index = pd.Index(table.index.to_numpy() * scale, name="width")
    figure = plot_widths(table)
    assert len([ax for ax in figure.axes if ax.axison]) == 3
