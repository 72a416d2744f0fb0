"""Which width to take for which purpose: curves made by hand, and what a reader must be told of each.

Guards `bayessel.widths._recommendation`.
"""

import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel.criteria import CRITERIA
from bayessel.widths._recommendation import PURPOSES, recommendations

WIDTHS = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])


def table(**columns):
    """A comparison of made-up curves; what they lack is as it is of a fit without remarks."""
    frame = pd.DataFrame(columns, index=pd.Index(WIDTHS, name="width"))
    frame.columns = [name.replace("_w", "-w") if name == "mdl_w" else name for name in frame]
    return frame.assign(**{"gamma": 3.0, "noise_std": 0.1, "status": "CONVERGED", "notes": ""})


def peak(at, steepness):
    return -steepness * (np.log(WIDTHS / at) ** 2)


def test_each_purpose_has_its_own_answer():
    found = recommendations(table(evidence=peak(0.8, 50), loo=0.01 - 0.01 * peak(1.6, 3)), ["evidence", "loo"])
    assert [one.purpose for one in found] == ["To predict new rows", "To say what is probable"]
    assert all(one.decided for one in found)
    assert found[0].advice == "take r = 1.6, by LOO."
    assert found[1].advice == "take r = 0.8, by the evidence."


def test_a_flat_optimum_is_decided_and_says_how_far_it_reaches():
    # 1.5 log² is below log 20 within a factor of exp(√2) = 4.1 either way
    (one,) = recommendations(table(evidence=peak(0.8, 1.5)), ["evidence"])
    assert one.decided and "any width from 0.2 to 3.2 does about as well" in one.advice


def test_an_end_of_the_grid_is_no_answer():
    (low,) = recommendations(table(evidence=peak(0.05, 50)), ["evidence"])
    assert not low.decided and "widen the grid below 0.1" in low.advice
    (high,) = recommendations(table(evidence=peak(20.0, 50)), ["evidence"])
    assert not high.decided and "widen the grid above 6.4" in high.advice


def test_two_peaks_alike_are_undecided():
    curve = np.maximum(peak(0.2, 50), peak(3.2, 50) - 1.0)
    (one,) = recommendations(table(evidence=curve), ["evidence"])
    assert not one.decided and one.advice.startswith("undecided between r = 0.2 or r = 3.2")
    (sure,) = recommendations(table(evidence=np.maximum(peak(0.2, 50), peak(3.2, 50) - 30.0)), ["evidence"])
    assert sure.decided and "take r = 0.2" in sure.advice


def test_a_doubtful_fit_is_to_be_looked_at():
    frame = table(evidence=peak(0.8, 50))
    frame.loc[0.8, "status"] = "NOISE_AT_FLOOR"
    (one,) = recommendations(frame, ["evidence"])
    assert "Look at the fit first: noise at floor." in one.advice


def test_every_criterion_serves_one_purpose():
    named = [one.name for able in PURPOSES.values() for one in able]
    assert sorted(named) == sorted(CRITERIA)


@pytest.mark.filterwarnings("ignore")
def test_noise_is_nothing_to_choose_by(rng, tmp_path):
    X, y = rng.uniform(size=(40, 1)), rng.normal(size=40)
    cmp = bs.compare_widths(X, y, [0.1, 0.3, 1.0], criteria=("evidence", "model-evidence"), progressbar=False)
    assert not any(one.decided for one in cmp.recommendations())
    page = cmp.to_html(tmp_path / "report.html").read_text()
    # first what to do, then why, then the contents and all the rest
    places = [
        page.index(text) for text in ("To say what is probable", "The reasons", 'class="verdict"', "<nav>", "section-2")
    ]
    assert places == sorted(places)
    assert "prefers-color-scheme: dark" in page
