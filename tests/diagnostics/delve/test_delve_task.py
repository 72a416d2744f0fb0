"""Tasks: training sets and test cases are disjoint, fixed by a seed, named by a hash, and the published ones.

Guards `bayessel.diagnostics.delve._task`, `bayessel.diagnostics.delve._folder`.
"""

import gzip

import numpy as np
import pandas as pd
import pytest

from bayessel.diagnostics.delve import Dataset, Task, load
from bayessel.errors import DataMismatchError


def rows(n=600, d=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), np.arange(n, dtype=float)


@pytest.mark.parametrize("design", ["hierarchical", "two-way"])
@pytest.mark.parametrize("seed", [None, 0, 7])
def test_no_case_serves_twice(design, seed):
    X, y = rows()
    task = Task.from_arrays(X, y, 25, 6, 40, design, seed)
    seen = [set(one.y) for one in task]
    tests = [set(one.y_test) for one in task]
    assert all(len(one) == 25 for one in seen) and all(len(one) == 40 for one in tests)
    assert len(set().union(*seen)) == 6 * 25
    assert len(set().union(*tests)) == (40 if design == "two-way" else 6 * 40)
    assert not set().union(*seen) & set().union(*tests)
    for one in task:  # inputs go with their targets
        np.testing.assert_array_equal(one.X, X[one.y.astype(int)])
        np.testing.assert_array_equal(one.X_test, X[one.y_test.astype(int)])
    assert task.design == design and len(task) == 6 and task.n_cases == 40


def test_the_seed_fixes_the_division_and_the_hash_names_it():
    X, y = rows()
    task = Task.from_arrays(X, y, 25)
    again = Task.from_arrays(X, y, 25, hash=task.hash)
    np.testing.assert_array_equal(task.train, again.train)
    others = [
        Task.from_arrays(X, y, 25, seed=1),
        Task.from_arrays(X, y, 25, seed=None),
        Task.from_arrays(X, y, 25, instances=7),
        Task.from_arrays(X, y, 25, design="two-way"),
        Task.from_arrays(X[::-1], y, 25),
        Task.from_arrays(X, np.where(y == 3.0, 3.0000001, y), 25),
    ]
    assert len({task.hash, *(other.hash for other in others)}) == 7
    for other in others:
        with pytest.raises(DataMismatchError, match=f"{other.hash}, needed was {task.hash}"):
            other.check(task.hash)


def test_the_shuffle_is_that_of_the_bits_of_pcg64():
    """NumPy guarantees these bits for all releases: a shuffle by them is for good."""
    X, y = rows(8)
    state = np.random.PCG64(11)
    bits = [int(state.random_raw()) for _ in range(8)]
    task = Task.from_arrays(X, y, 2, 2, 2, seed=11)
    expected = sorted(range(8), key=bits.__getitem__)
    assert [*task.train.ravel(), *task.test.ravel()] == expected


def test_published_divisions(tmp_path):
    """DELVE's: 8 training sets with 512 test cases, 4 with 1024 at 1024; Boston 8, 4, 2 with one test set of 250."""
    rng = np.random.default_rng(0)
    for name, n in {"kin-8nm": 8192, "boston": 506, "other": 1000}.items():
        table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "y"])
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
            table.to_csv(file, index=False)
    tasks = {task.name: task for task in load(tmp_path)}
    found = {name: (len(task), task.n_cases, task.design) for name, task in tasks.items()}
    for size in (64, 128, 256, 512):
        assert found[f"kin-8nm {size}"] == (8, 512, "hierarchical")
    assert found["kin-8nm 1024"] == (4, 1024, "hierarchical")
    assert [found[f"boston {size}"] for size in (32, 64, 128)] == [(k, 250, "two-way") for k in (8, 4, 2)]
    kin = tasks["kin-8nm 128"]
    np.testing.assert_array_equal(kin.train[1], np.arange(128, 256))
    np.testing.assert_array_equal(kin.test[1], np.arange(4096 + 512, 4096 + 1024))
    assert kin.attributes["noise"] == "medium" and kin.attributes["linearity"] == "non-linear"
    assert found["other 64"] == (7, 71, "hierarchical") and "other 512" not in found
    few = load(tmp_path, ["kin-8nm"], [1024], instances=2)[0]
    np.testing.assert_array_equal(few.test, tasks["kin-8nm 1024"].test[:2])


def test_a_column_named_part_divides(tmp_path):
    table = pd.DataFrame({"part": [1, 0] * 50, "a": np.arange(100.0), "y": np.arange(100.0)})
    table.to_csv(tmp_path / "pumadyn-32fm_fann_scaled.csv", index=False)
    (task,) = load(tmp_path, sizes=[20])
    assert task.name == "pumadyn-32fm 20"
    assert (task.train % 1 == 0).all() and len(task) == 2
    assert all((one.y % 2 == 1).all() and (one.y_test % 2 == 0).all() for one in task)


def test_words_become_columns():
    table = pd.DataFrame({"sex": ["M", "F", "I", "M"], "hot": ["no", "yes", "no", "no"], "y": [1.0, 2.0, 3.0, 5.0]})
    prototask = Dataset("shells", table).prototask()
    assert prototask.inputs == ("sex=F", "sex=I", "sex=M", "hot=no")
    np.testing.assert_array_equal(prototask.X, [[0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]])
    assert Dataset("shells", table).prototask(inputs=["hot"]).X.shape == (4, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"size": 301}, "300 of 600 rows for training: not enough for 2 disjoint training sets of 301"),
        ({"size": 100, "instances": 4}, "not enough for 4 disjoint training sets of 100"),
        ({"size": 10, "instances": 1}, "instances must be at least 2"),
        ({"size": 10, "instances": 8, "test_cases": 38}, "not enough for 8 disjoint test sets of 38"),
        ({"size": 10, "design": "latin"}, "'hierarchical', 'two-way'"),
        ({"size": 10, "inputs": ["a"]}, "3 names"),
        ({"size": 10, "losses": ["huber"]}, "'squared', 'absolute', 'log'"),
    ],
)
def test_bad_tasks(arguments, said):
    with pytest.raises(ValueError, match=said):
        Task.from_arrays(*rows(), **arguments)


def test_targets_that_do_not_vary_have_no_unit():
    X, y = rows()
    with pytest.raises(ValueError, match=r"targets of test set \d of data are all 1"):
        Task.from_arrays(X, (y > 0).astype(float), 10, test_cases=30)


def test_a_folder_without_the_table(tmp_path):
    with pytest.raises(ValueError, match="no table"):
        load(tmp_path)
    with pytest.raises(ValueError, match="no folder"):
        load(tmp_path / "nowhere")
