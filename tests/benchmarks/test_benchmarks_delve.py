"""The arithmetic of the DELVE benchmark: losses with known values, disjoint sets; rehearsals run."""

import json

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.delve_cases import Guess, Task, losses, read
from benchmarks.gp_sparse_worker import problem, start
from benchmarks.harness import Race
from benchmarks.workloads import gp_delve, gp_sparse


def test_the_best_constants_have_unit_losses(rng):
    y = rng.gamma(2.0, size=500)
    density = -0.5 * (np.log(2 * np.pi * y.var()) + (y - y.mean()) ** 2 / y.var())
    guess = Guess(np.full(500, y.mean()), np.full(500, np.median(y)), density)
    np.testing.assert_allclose(losses(guess, y), [1.0, 1.0, 0.0], atol=1e-12)


def test_a_perfect_guess_loses_nothing(rng):
    y = rng.normal(size=50)
    squared, absolute, log = losses(Guess(y, y, np.full(50, 3.0)), y)
    assert (squared, absolute) == (0.0, 0.0)
    np.testing.assert_allclose(log, -3.0 - 0.5 * (np.log(2 * np.pi * y.var()) + 1))


def test_training_and_test_sets_share_no_row():
    table = read("friedman").to_numpy()
    splits = list(Task("friedman", 128).splits(99))
    assert len(splits) == 8 and len(list(Task("friedman", 1024).splits(99))) == 4
    rows = np.concatenate([np.column_stack([s.X, s.y]) for s in splits])
    tests = np.concatenate([np.column_stack([s.X_test, s.y_test]) for s in splits])
    together = np.concatenate([rows, tests])
    assert len(np.unique(together, axis=0)) == len(together) == 8 * (128 + 512)
    np.testing.assert_array_equal(tests[:512], table[4096:4608])


def made_up(mc, map_):
    return {"gp-mc": {"losses": np.array(mc)}, "gp-map": {"losses": np.array(map_)}}


def test_promises_are_about_paired_differences():
    worse = made_up([[0.6, 1, 1], [0.5, 1, 1], [0.41, 1, 1]], [[0.5, 1.1, 1], [0.4, 1.2, 1.1], [0.3, 1.1, 1]])
    squared, absolute, log = gp_delve.verdicts({Task("kin-8nm", 64): worse})
    assert not squared.met and absolute.met and log.met
    np.testing.assert_allclose(squared.value, 0.31 / 3 / (np.std([0.1, 0.1, 0.11], ddof=1) / np.sqrt(3)))


def test_promises_about_the_relevant_inputs():
    order = ["theta5", "tau4", "tau3", "theta4", "tau1"]
    seen = {"losses": np.array([[0.05, 0, 0]]), "order": [order, order]}
    blind = {"losses": np.array([[0.05, 0, 0], [0.11, 0, 0]]), "order": [order, ["tau1", *order]]}
    for one, met in ((seen, True), (blind, False)):
        for n in (512, 1024):
            (verdict,) = gp_delve.verdicts({Task("pumadyn-32nm", n): {"gp-map": one}})
            assert verdict.met is met


def test_the_judge_of_bounds_is_the_bound_itself():
    data = problem("friedman 120 10")
    assert data.X.shape == (120, 8) and data.X_test.shape == (5000, 8)
    found = gp_sparse.Found(np.nan, start(8), data.X[:10])
    judged = gp_sparse.judged(data, found)
    values = {"a": judged, "b": judged | {"bound (nats)": judged["bound (nats)"] + 1.0}}
    times = Race({"a": [1.0], "b": [3.0]}, {"a": [1.0], "b": [3.0]})
    values["fit_inducing"], times.seconds["fit_inducing"] = judged, [2.0]
    higher, slower = gp_sparse.verdicts("friedman 120 10", "fit", times, values, ["a", "b"])
    assert (higher.value, slower.value) == (1.0, 1.5)
    faster, _ = gp_sparse.verdicts("friedman 120 10", "evaluate", times, values, ["a", "b"])
    assert faster.value == 2.0 and not faster.met


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gp_sparse", "gp_delve"])
def test_rehearsals_run(name, tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHMARK_DATA", raising=False)
    where = ["--out", str(tmp_path)]
    assert main(["--only", name, "--quick", "--threads", "1", *where]) == 0
    assert json.loads((tmp_path / f"{name}.quick.json").read_text())["tables"][0]["rows"]
