"""Reading curves over the widths: optima, credible widths and the verdict, on hand-made curves.

Guards `bayessel.widths._verdict`, `bayessel.widths.curves`.
"""

import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel.widths.curves import credible_widths, cut_off, optima
from tests.problems.widths import verdict


def short(found):
    """Width, value and whether at the end of each optimum."""
    return tuple(one[:3] for one in found)


def test_optima_of_a_hand_made_curve():
    r = [1, 2, 3, 4, 5, 6, 7, 8]
    v = [3.0, 1, 2, 5, 4, 4, 6, 7]
    assert short(optima(r, v, True)) == ((8, 7.0, True), (4, 5.0, False), (1, 3.0, True))
    assert short(optima(r, v, False)) == ((2, 1.0, False), (5, 4.0, False))
    # from 5 one goes down to 4 before it rises to 7; from 3 to 1 before it rises to 5; from 4 up to 5 before 1
    assert [one.depth for one in optima(r, v, True)] == [np.inf, 1.0, 2.0]
    assert [one.depth for one in optima(r, v, False)] == [np.inf, 1.0]


def test_optima_of_flat_and_broken_curves():
    assert short(optima([1, 2, 3], [5.0, 5.0, 5.0], True)) == ((1, 5.0, True),)
    assert short(optima([1, 2, 3, 4], [0.0, 2.0, 2.0, 1.0], True)) == ((2, 2.0, False),)
    # rounding noise makes no optima
    noisy = -690.0 + 1e-11 * np.random.default_rng(0).normal(size=20)
    assert len(optima(range(1, 21), noisy, True)) == 1
    # nor when the evidence happens to be near zero, nor errors at the rounding of the largest one
    assert len(optima(range(1, 21), 1e-13 * np.random.default_rng(0).normal(size=20), True)) == 1
    assert short(optima([1, 2, 3, 4, 5], [1.0, 3e-33, 1e-33, 2e-33, 1e-33], False)) == ((3, 1e-33, True),)
    # small is not rounding: the units of an error are the user's
    assert short(optima([1, 2, 3], [2e-60, 1e-60, 3e-60], False)) == ((2, 1e-60, False),)
    assert short(optima([1, 2, 3], [np.nan, 1.0, -np.inf], True)) == ((2, 1.0, False),)
    assert short(optima([1, 2, 3], [np.nan, 1.0, 2.0], True)) == ((3, 2.0, True),)
    assert short(optima([1, 2], [np.nan, np.inf], True)) == ()


def test_credible_widths_are_those_within_odds_of_twenty():
    table = pd.DataFrame({"evidence": [-10.0, -2.99, 0.0, -3.0, -20.0]}, index=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert credible_widths(table) == (2.0, 3.0)  # ln 20 = 2.9957
    assert credible_widths(table, nats=15.0) == (1.0, 2.0, 3.0, 4.0)


def made(status="CONVERGED", notes="", **curves):
    """Build a table from hand-made curves over the widths 1, 2, 3, ..."""
    curves = {name.replace("_", "-"): values for name, values in curves.items()}
    n = len(next(iter(curves.values())))
    table = pd.DataFrame(
        curves | {"status": status, "notes": notes}, index=pd.Index(np.arange(1.0, n + 1), name="width")
    )
    return table.rename(columns={"loo-diff-se": "loo_diff_se"}), tuple(n for n in curves if not n.endswith("se"))


def sparse(n_basis, **curves):
    """Build a table of fits that use so many of 100 functions and a bias."""
    table, names = made(**curves)
    return table.assign(n_basis=n_basis), names


VERDICTS = {
    "agree": (
        made(evidence=[-9, 0, -9, -9, -9], gcv=[2, 1, 2, 3, 4]),
        ["All 2 criteria prefer r = 2.", "No other width of the grid comes within 3 nats"],
        ["disagree", "end of the grid", "status"],
    ),
    "one step": (
        made(evidence=[-9, 0, -1, -9, -9], gcv=[3, 2, 1, 3, 4]),
        ["agree to within one step of the grid: r = 2 by the evidence; r = 3 by GCV",
         "The 2 widths from 2 to 3 have a log evidence within 3 nats",
         "all the preferred ones are among them"],
        ["disagree"],
    ),
    "mild": (
        made(evidence=[-9, 0, -1, -2, -9], gcv=[3, 1.04, 1.02, 1, 4]),
        ["The criteria name different widths, but r = 2 serves them all.",
         "At r = 2 the others come within 4.0 % of their best",
         "among them"],
        ["disagree"],
    ),
    "disagree": (
        made(evidence=[-9, 0, -9, -9, -9], gcv=[3, 2, 1.5, 1, 4], bic=[3, 2.1, 2, 1, 4]),
        ["The evidence prefers r = 2, GCV and BIC r = 4: the criteria disagree.",
         "at r = 2 BIC is 110 % above its", "the evidence asks how probable", "GCV asks how large the error",
         "BIC asks how large the error is at a higher price"],
        ["serves them all", "among them"],
    ),
    "same question": (
        made(gcv=[3, 1, 2, 3, 4], loo=[3, 2, 2, 1, 4]),
        ["GCV prefers r = 2, LOO r = 4: the criteria disagree.", "same question, but punish parameters differently"],
        ["evidence"],
    ),
    "high end": (
        made(evidence=[-9, -8, -7, -6, -5], gcv=[2, 1, 2, 3, 4]),
        ["The optimum of the evidence lies at the end of the grid: widen it above 5."],
        ["below 1"],
    ),
    "low end": (
        made(gcv=[1, 2, 3, 4, 5], loo=[1, 2, 3, 4, 5]),
        ["The optima of GCV and LOO lie at the end of the grid: widen it below 1."],
        ["above"],
    ),
    "second peak": (
        made(evidence=[-9, 0, -2, -1, -9]),
        ["The evidence prefers r = 2.", "with a second peak at r = 4", "The 3 widths from 2 to 4"],
        ["among them"],
    ),
    "gap": (
        made(evidence=[-9, 0, -7, -1, -9]),
        ["2 widths between 2 and 4 have a log evidence within 3 nats"],
        ["The 2 widths"],
    ),
    "status where it matters": (
        made(["CONVERGED", "AT_BOUND", "CONVERGED", "PURE_NOISE"], gcv=[2, 1, 3, 3]),
        ["preferred r = 2 (GCV): AT_BOUND", "1 other width carries a warning status (PURE_NOISE)"],
        [],
    ),
    "no say": (
        made(evidence=[-9, 0, -9, -9], bic=[np.nan, np.nan, 1, 4], notes=["INTERPOLATION(bic)"] * 2 + [""] * 2),
        ["The evidence prefers r = 2.", "BIC has no say here"],
        ["inf", "disagree", "All"],
    ),
    "still heard": (
        made(evidence=[-9, -9, -9, 0, -9], bic=[np.nan, 5, 3, 1, 4], notes=["INTERPOLATION(bic)"] * 2 + [""] * 3),
        ["All 2 criteria prefer r = 4."],
        ["no say"],
    ),
    "what functions cost": (
        sparse([50, 30, 20, 8, 4], evidence=[-9, 0, -9, -9, -20], mdl_w=[290, 180, 100, 40, 70], loo=[1, 2, 3, 4, 5]),
        ["The evidence prefers r = 2, LOO r = 1, MDL-w r = 4: the criteria disagree.",
         "MDL-w asks how short a message",
         "MDL pays 4.6 nats (ln 101) to name each function, and more to send its weight",
         "and stops at 8 of them; LOO takes 50, and pays nothing for having picked them by these very rows",
         "MDL-w hardly depends on the precision delta"],
        ["separate optima"],
    ),
    "two scales": (
        sparse([20, 20, 10, 5, 4, 3], mdl_w=[90, 60, 40, 70, 45, 66], mdl_alpha=[9, 8, 1, 8, 8, 9]),
        ["All 2 criteria prefer r = 3.",
         "MDL-w has separate optima: besides r = 3 also r = 5 (4 functions, 5.0 nats worse, beyond a rise of 25"],
        ["disagree"],
    ),
    "optima of one scale": (
        sparse([9, 9, 8, 7, 6, 5, 4, 4, 4, 4], mdl_w=[90, 90, 90, 90, 90, 90, 50, 60, 49, 90]),
        ["MDL-w prefers r = 9."],
        ["separate optima"],  # 7 and 9 are too close to be two scales
    ),
    "delta matters": (
        sparse([40, 30, 20, 10, 2], mdl_w=[80, 60, 70, 80, 90]),
        ["MDL-w depends on the precision delta of its weights: r = 5 at 0.01, r = 2 at 0.1 and r = 1 at 1."],
        ["hardly"],
    ),
    "many widths": (
        made(evidence=[-99, 0, -99, -99, -99], gcv=[1, 2, 9, 9, 9], loo=[9, 9, 9, 1, 2], bic=[9, 9, 9, 2, 1]),
        ["The evidence prefers r = 2; the 4 criteria name 4 widths and disagree.",
         "Best are r = 2 by the evidence; r = 1 by GCV; r = 4 by LOO; r = 5 by BIC."],
        ["serves"],
    ),
    "within its standard error": (
        made(evidence=[-9, 0, -9, -9, -9], loo=[3, 1.2, 1.1, 1, 4], loo_diff_se=[1, 0.3, 0.1, 0, 1]),
        ["r = 2 serves them all.", "come within 20.0 % of their best, or within one standard error."],
        ["disagree"],
    ),
    "improving": (
        made(evidence=[-9, 0, -9], gcv=[3, 1, 2]), ["All 2 criteria prefer r = 2."], ["interrupted"],
    ),
    "one width": (made(evidence=[-1.0], gcv=[3.0]), ["Only one width was tried, r = 1"], ["end of the grid"]),
    "no number": (made(evidence=[np.nan, np.nan]), ["No criterion has a finite value"], ["prefers"]),
}  # fmt: skip


@pytest.mark.parametrize("case", VERDICTS)
def test_verdict_says_what_the_curves_allow(case):
    (table, criteria), said, unsaid = VERDICTS[case]
    text = verdict(table, criteria, offered=101)
    for sentence in said:
        assert sentence in text
    for sentence in unsaid:
        assert sentence not in text


def test_a_constant_target_has_nothing_to_compare():
    comparison = bs.compare_widths(np.linspace(0, 1, 40), np.full(40, 3.0), [0.1, 0.3, 1.0], progressbar=False)
    assert "nothing to compare" in comparison.verdict()
    assert "disagree" not in comparison.verdict()


def test_optima_of_lists_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="one length"):
        optima([0.1, 0.2, 0.3], [1.0, 2.0], True)
    with pytest.raises(ValueError, match="sorted"):
        optima([0.3, 0.2], [1.0, 2.0], True)


@pytest.mark.parametrize("noted", range(5))
def test_a_best_width_beside_a_refused_one_on_either_side_is_no_choice(noted):
    widths = pd.Index([0.1, 0.2, 0.4, 0.8, 1.6], name="width")
    notes = ["INTERPOLATION(gcv)" if i == noted else "" for i in range(5)]
    table = pd.DataFrame({"gcv": [5.0, 3.0, 1.0, 2.0, 4.0], "bic": [1.0, 2.0, 3.0, 4.0, 5.0], "notes": notes}, widths)
    assert cut_off(table, ("gcv", "bic")) == (("gcv",) if noted in (1, 2, 3) else ())
