"""Comparing widths: bad input, poor data, what is loaded.

Guards `bayessel.widths.arguments`.
"""

import subprocess
import sys

import numpy as np
import pytest

import bayessel as bs
from bayessel.widths import WidthComparison
from tests.problems.widths import noisy_sine


@pytest.fixture(scope="module")
def data():
    return noisy_sine()


# --- the door ---------------------------------------------------------------------------------------------------

BAD = [
    (dict(widths=[]), ValueError, "widths is empty"),
    (dict(widths=[1.0, 0.0]), ValueError, "every width must be positive"),
    (dict(widths=[-1.0]), ValueError, "positive"),
    (dict(widths=[np.nan]), ValueError, "positive and finite"),
    (dict(widths=[np.inf]), ValueError, "positive and finite"),
    (dict(widths="0.1"), TypeError, "widths must be numbers"),
    (dict(widths=["a"]), TypeError, "every width"),
    (dict(widths=[True]), TypeError, "every width"),
    (dict(model="search", criteria=["uev"]), ValueError, "not for model='search'"),
    (dict(model="gp", kind="cauchy"), ValueError, "kind='gaussian' only, got 'cauchy'"),
    (dict(model="gp", centers=10), ValueError, "no centres"),
    (dict(model="gp", criteria=["mdl-w"]), ValueError, "no functions to count"),
    (dict(model="gp", criteria=["bic"]), ValueError, "not for model='gp'"),
    (dict(model="svm"), ValueError, "model must be one of 'evidence', 'rvm', 'gp', 'search'"),
    (dict(criteria=["aic"]), ValueError, "criterion must be one of 'mdl-w', 'mdl-alpha', 'evidence'"),
    (dict(criteria=["mdl-w"]), ValueError, "not for model='evidence': it counts.* or model='rvm'"),
    (dict(criteria=["uev"], model="rvm"), ValueError, "not for model='rvm': it is the square of the column noise_std"),
    (dict(criteria=["gcv", "holdout"]), ValueError, "needs rows to hold out: holdout=0.2"),
    (dict(holdout=1.0), ValueError, "holdout must be a share of the rows between 0 and 1"),
    (dict(holdout=-0.1), ValueError, "holdout must be positive"),
    (dict(holdout="some"), TypeError, "holdout must be a share of the rows"),
    (dict(holdout=(np.ones((3, 2)), np.ones(3))), ValueError, "holdout's X must have the 1 columns of X"),
    (dict(holdout=(np.ones(3), np.ones(2))), ValueError, "3 rows and 2 values of holdout's y"),
    (dict(X=[1.0, 2.0], y=[1.0, 2.0], holdout=0.9), ValueError, "leaves no row of 2 to fit"),
    (dict(n_jobs=0), ValueError, "n_jobs must not be 0"),
    (dict(n_jobs="all"), TypeError, "n_jobs must be None, a number"),
    (dict(search="loo", criteria="gcv"), ValueError, "search must be one of 'gcv', got 'loo'"),
    (dict(search=3), TypeError, "search must be True or names of criteria"),
    (dict(search=True), ValueError, "two widths to search between"),
    (dict(widths=(1, 2), search=True, tol=0), ValueError, "tol must be positive"),
    (dict(widths=(1, 2), search=True, budget=0), ValueError, "budget must be at least 1"),
    (dict(random_state="x"), TypeError, "random_state must be an integer"),
    (dict(kind=[]), ValueError, "kind is empty"),
    (dict(kind=["gaussian", "box"]), ValueError, "kind must be one of"),
    (dict(kind=3), ValueError, "kind must be one of"),
    (dict(criteria=[]), ValueError, "criteria is empty"),
    (dict(kind="square"), ValueError, "kind must be one of"),
    (dict(centers=0), ValueError, "centers must be at least 1"),
    (dict(centers=2.5), TypeError, "centers must be an integer"),
    (dict(centers=[[1.0, 2.0]]), ValueError, "centers must have the 1 columns of X"),
    (dict(names=["a", "b"]), ValueError, "names must be one per input"),
    (dict(X=[[1.0], [np.nan]], y=[1.0, 2.0]), ValueError, "NaN"),
    (dict(X=[["a"], ["b"]], y=[1.0, 2.0]), TypeError, "numeric"),
    (dict(y=[1.0, 2.0]), ValueError, "one value per row"),
    (dict(y=np.ones((26, 2))), ValueError, "1-D"),
    (dict(X=np.empty((0, 1)), y=[]), ValueError, "at least one row"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_input(change, error, message, data):
    arguments = {"X": data[0], "y": data[1], "widths": [1.0], "progressbar": False} | change
    with pytest.raises(error, match=message):
        bs.compare_widths(**arguments)


def test_asking_for_what_was_not_computed(data):
    found = bs.compare_widths(*data, [0.3, 1.0], criteria=["gcv"], progressbar=False)
    with pytest.raises(ValueError, match="criterion must be one of 'gcv', got 'loo'"):
        found.best("loo")
    with pytest.raises(ValueError, match="criterion must be one of 'gcv'"):
        found.plot(["evidence"])
    other = 0.3 if found.best("gcv") == 1.0 else 1.0
    with pytest.raises(ValueError, match="kept at the preferred widths only"):
        found.plot_fit(other)


@pytest.mark.parametrize(
    ("x", "y"),
    [([1.0, 2.0], [0.0, 1.0]), ([1.0], [3.0]), (np.arange(9.0), np.full(9, 2.0)), (np.ones(8), np.arange(8.0))],
    ids=["two rows", "one row", "constant target", "constant input"],
)
def test_poor_data_give_a_status_not_a_crash(x, y, tmp_path):
    found = bs.compare_widths(x, y, [0.5, 1.0, 2.0], progressbar=False)
    assert len(found.table) == 3
    assert set(found.table["status"]) != {"CONVERGED"}
    assert found.verdict()
    found.to_html(tmp_path / "r.html")
    found.plot()
    WidthComparison.from_netcdf(found.to_netcdf(tmp_path / "r.nc"))


def test_nothing_heavy_is_loaded_for_a_comparison():
    script = (
        "import sys, bayessel as bs; bs.compare_widths([0., 1, 2, 3], [0., 1, 0, 1], [1., 2.]).verdict(); "
        "print([m for m in ('pymc', 'pytensor', 'arviz', 'matplotlib', 'xarray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]" and done.stderr == ""  # nor does a pipe get a progress bar


# --- reading curves ---------------------------------------------------------------------------------------------------


def test_what_is_no_executor_is_refused():
    x = np.linspace(0, 1, 20)
    bs.compare_widths(x, x**2, [0.3], progressbar=False, executor=None)
    with pytest.raises(TypeError, match=r"executor must have submit\(function, \*arguments\).*'tcp://somewhere'"):
        bs.compare_widths(x, x**2, [0.3], progressbar=False, executor="tcp://somewhere")


def test_a_million_widths_are_a_slip():
    with pytest.raises(ValueError, match="at most 10000"):
        bs.compare_widths(np.linspace(0, 1, 20), np.linspace(0, 1, 20), np.linspace(0.1, 1, 10_001), progressbar=False)
