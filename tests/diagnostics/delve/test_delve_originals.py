"""Data sets of OpenML: what is asked for, what is made of what comes, and what is said when nothing does.

Guards `bayessel.diagnostics.delve.originals`.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from bayessel.diagnostics import delve
from bayessel.diagnostics.delve import originals


def served(monkeypatch, frame):
    asked = {}

    def fetch_openml(name, **options):
        asked.update(options, name=name)
        if isinstance(frame, Exception):
            raise frame
        return SimpleNamespace(frame=frame)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    return asked


def boston(rng, rows=506):
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["medv", "CRIM", "RM"])
    return frame.assign(CHAS=pd.Categorical(rng.integers(0, 2, rows).astype(str)))


def test_the_target_comes_last_and_numbers_that_came_as_words_are_numbers(monkeypatch, rng):
    frame = boston(rng)
    asked = served(monkeypatch, frame)
    data = originals.fetch("boston", data_home="somewhere")
    assert (asked["name"], asked["version"], asked["data_home"]) == ("boston", 1, "somewhere")
    prototask = data.prototask()
    assert prototask.target == "medv" and prototask.inputs == ("CRIM", "RM", "CHAS")
    np.testing.assert_allclose(prototask.X[:, 2], frame["CHAS"].astype(float))
    np.testing.assert_allclose(prototask.y, frame["medv"])
    task = prototask.task(32, 4, 250, design="two-way")
    assert task.attributes["family"] == "boston" and task.design == "two-way"


def test_words_become_columns(monkeypatch, rng):
    rows = 4177
    sex = pd.Categorical(rng.choice(["F", "I", "M"], rows))
    served(monkeypatch, pd.DataFrame({"Sex": sex, "Length": rng.normal(size=rows), "Class_number_of_rings": 1.0}))
    assert originals.fetch("abalone").prototask().inputs == ("Sex=F", "Sex=I", "Sex=M", "Length")


@pytest.mark.parametrize("change", [lambda f: f.iloc[:-1], lambda f: f.drop(columns="medv")])
def test_other_data_under_the_same_name_are_refused(monkeypatch, rng, change):
    served(monkeypatch, change(boston(rng)))
    with pytest.raises(ValueError, match="needed were 506 rows and a target 'MEDV'"):
        originals.fetch("boston")


def test_without_a_network_there_is_advice(monkeypatch):
    served(monkeypatch, OSError("no route"))
    with pytest.raises(OSError, match=r"openml\.org cannot be reached \(no route\); read local files with delve\.load"):
        originals.fetch("kin-8nm")
    with pytest.raises(ValueError, match="name must be one of"):
        originals.fetch("kin-9nm")
    assert callable(delve.load)
