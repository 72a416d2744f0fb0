"""What a comparison of widths does not say: criteria without a meaning, signals that are none, searches cut short.

Guards `bayessel.widths._verdict`, `bayessel.widths._notes`.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import minimize

import bayessel as bs
from bayessel.widths import WidthComparison
from bayessel.widths._notes import notes_of
from bayessel.widths._verdict import verdict_sentences
from tests.problems.widths import verdict

JUDGES = ("mdl-w", "gcv", "loo", "elpd-loo", "bic")


def compare(x, y, widths, **options):
    return bs.compare_widths(x, y, widths, progressbar=False, n_jobs=1, **({"model": "rvm"} | options))


def notes(found):
    return [notes_of(text) for text in found.table["notes"]]


def test_a_fit_through_every_row_wins_by_no_criterion():
    """Cauchy functions of one spacing: as many of them as rows, and errors that are ratios of vanishing numbers."""
    x = np.linspace(-3, 3, 80)
    y = np.cos(x**2) + np.random.default_rng(0).uniform(-0.1, 0.1, 80)
    found = compare(x, y, [0.083, 0.4, 0.65], kind="cauchy", criteria=("evidence", *JUDGES))
    left = 80 - found.table["gamma"].to_numpy()
    assert (left[:1] < 8).all() and (left[1:] > 40).all()
    for name in JUDGES:
        values = found.table[name].to_numpy()
        assert_array_equal(np.isnan(values[left < 8]), True, err_msg=name)
        assert np.isfinite(values[1:]).all()
        for has_none, noted in zip(np.isnan(values), notes(found), strict=True):
            assert has_none == (name in noted.get("INTERPOLATION", []))
        assert found.best(name) >= 0.4 or found.table.loc[found.best(name), "gamma"] < 72
    assert "inf" not in found.verdict()


@pytest.mark.parametrize("make", [lambda i: i * i % 7, lambda i: i % 2 == 0], ids=["squares", "even"])
def test_leave_one_out_without_a_value_warns_nobody(make):
    """Infinite terms have no mean and no scatter: no number, a note, and no warning of the array library."""
    i = np.arange(30.0)
    found = compare(i, make(i).astype(float), [0.5, 0.61, 0.9], criteria=("loo", "elpd-loo", "gcv"))
    for name in ("loo", "elpd-loo", "gcv"):
        assert not np.isinf(found.table[name]).any()
        for value, noted in zip(found.table[name], notes(found), strict=True):
            assert np.isnan(value) == (name in noted.get("INTERPOLATION", []))
    assert np.isnan(found.table["loo"]).any()


def constant_alone(y, k0):
    """Least MDL-alpha, and the log evidence, of a constant with its own precision, or of nothing, by dense algebra."""
    n = len(y)

    def minus_evidence(p):
        C = np.exp(-p[1]) * np.eye(n) + np.exp(-p[0])
        return 0.5 * (n * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + y @ np.linalg.solve(C, y))

    best = minimize(minus_evidence, [-np.log(y.mean() ** 2 + 1e-3), -np.log(y.var())], method="Nelder-Mead", tol=1e-9)
    return best.fun - 0.5 * n * np.log(2 * np.pi) + 2 * np.log(k0), -best.fun


@pytest.mark.parametrize("signal", [0.0, 3.0])
def test_functions_that_do_not_pay_are_noted(signal):
    rng = np.random.default_rng(3)
    x = np.linspace(-3, 3, 50)
    y = 5 + signal * np.sin(2 * x) + rng.normal(size=50)
    found = compare(x, y, [0.1, 0.8, 1.6], criteria=("mdl-alpha",))
    without, _ = constant_alone(y, 51)
    expected = (found.table["mdl-alpha"] >= without - 1e-5).tolist()
    assert ["mdl-alpha" in noted.get("NO_SIGNAL", []) for noted in notes(found)] == expected
    assert all(expected) == (signal == 0.0) and any(expected)
    assert ("finds a signal" in found.verdict()) == all(expected)


def test_pure_noise_is_called_by_its_name(tmp_path):
    """The evidence has a favourite all the same, at one spacing of the rows: nobody has to follow it."""
    found = compare(np.linspace(-3, 3, 100), np.random.default_rng(0).normal(size=100), [0.05, 0.3, 1.8, 3.0])
    first = found.verdict_sentences()[0]
    assert first.startswith("No criterion that charges for the functions in use (MDL-w and MDL-alpha) finds a signal")
    assert found.table["evidence"].iloc[0] > found.table["evidence"].iloc[-1] + 30
    assert " inf" not in found.verdict()
    assert "does not pay for the functions in use" in found.to_html(tmp_path / "r.html").read_text()
    assert WidthComparison.from_netcdf(found.to_netcdf(tmp_path / "r.nc")).verdict() == found.verdict()


def made(notes="", **curves):
    """Build a table from hand-made curves over the widths 1, 2, 3, ..."""
    curves = {name.replace("_", "-"): values for name, values in curves.items()}
    index = pd.Index(np.arange(1.0, len(next(iter(curves.values()))) + 1), name="width")
    table = pd.DataFrame(curves | {"status": "CONVERGED", "notes": notes}, index=index)
    return table.assign(n_basis=3), tuple(curves)


def test_one_width_is_one_width():
    x = np.linspace(0, 1, 12)
    assert compare(x, x**2, [0.5], model="evidence").facts().endswith("; 1 width, 0.5")


def test_no_value_is_no_infinite_loss():
    text = verdict(*made(evidence=[9, 0, -9, -9, -9], mdl_w=[np.nan, 50, 40, 30, 35]))
    assert "at r = 1 MDL-w has no value that means anything." in text and "inf" not in text


def test_absurd_per_cents_are_not_spelled_out():
    text = verdict(*made(evidence=[9, 0, -9, -9], loo=[40000.0, 5, 1, 2]))
    assert "at r = 1 LOO is over 1000 % above its best." in text
    text = verdict(*made(evidence=[9, 0, -9, -9], loo=[4.0, 5, 1, 2]))
    assert "at r = 1 LOO is 300 % above its best." in text


def test_one_criterion_alone_may_see_no_signal():
    noted = ["NO_SIGNAL(mdl-w)"] * 3
    text = verdict(*made(noted, mdl_w=[3, 2, 1], mdl_alpha=[3, 1, 2]))
    assert "By MDL-w the functions find no signal" in text and "No criterion" not in text
    some = verdict(*made([*noted[:2], ""], mdl_w=[3, 2, 1], mdl_alpha=[3, 1, 2]))
    assert "no signal" not in some
    unasked = verdict_sentences(*made(["NO_SIGNAL(model-evidence)"] * 3, evidence=[3, 1, 2]))
    assert "(the model evidence) finds a signal" in unasked[0]


def test_a_search_says_that_its_budget_ended_it(tmp_path):
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(-2, 2, 30))
    y = np.sin(3 * x) + 0.15 * rng.normal(size=30)
    options = {"model": "evidence", "criteria": ("evidence", "loo"), "search": "evidence"}
    short = compare(x, y, (0.1, 5.0), budget=15, **options)
    assert short.unsettled == ("evidence",) and len(short.table) == 15
    assert "(budget spent)" in short.facts()
    assert "after 15 widths, before every optimum of the evidence was known to tol" in short.verdict()
    back = WidthComparison.from_netcdf(short.to_netcdf(tmp_path / "r.nc"))
    assert back.unsettled == ("evidence",) and back.verdict() == short.verdict()
    for done in (compare(x, y, (0.1, 5.0), budget=60, tol=0.1, **options), compare(x, y, [0.1, 5.0], model="evidence")):
        assert done.unsettled == () and "budget" not in done.verdict() + done.facts()
