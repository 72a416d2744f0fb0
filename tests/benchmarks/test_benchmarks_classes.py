"""The benchmark of classifiers: its scores, its splits, and that it goes on where it stopped."""

import json

import numpy as np
import pytest

from benchmarks import classes


def test_scores_are_those_written_out():
    p, labels = np.array([0.9, 0.2, 0.6, 0.5]), np.array([1, 0, 0, 1])
    found = classes.scores(p, labels)
    assert found["error"] == 50.0
    assert found["log loss"] == pytest.approx(-np.log([0.9, 0.8, 0.4, 0.5]).mean())
    assert found["Brier"] == pytest.approx(np.mean([0.01, 0.04, 0.36, 0.25]))
    assert np.isfinite(classes.scores(np.array([0.0, 1.0]), np.array([1, 0]))["log loss"])


def test_what_is_there_is_not_made_again(rng, tmp_path, monkeypatch, capsys):
    (tmp_path / "raetsch").mkdir()
    x = rng.normal(size=(80, 2))
    t = np.where(x[:, 0] + 0.3 * rng.normal(size=80) > 0.0, 1, -1)
    train = np.array([rng.permutation(80)[:40] for _ in range(3)])
    np.savez(tmp_path / "raetsch" / "banana.npz", x=x, t=t, train=train)
    monkeypatch.setenv("BENCHMARK_DATA", str(tmp_path))
    asked = ["--sets", "banana", "--partitions", "2", "--file", str(tmp_path / "found.jsonl"), "--entrants"]
    assert classes.main([*asked, "logistic"]) == 0
    assert classes.main([*asked, "logistic", "evidence"]) == 0
    records = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert [(one["partition"], one["entrant"]) for one in records] == [
        (0, "logistic"), (1, "logistic"), (0, "evidence"), (1, "evidence"),
    ]  # fmt: skip
    assert all(0.0 <= one["error"] < 40.0 for one in records)
    assert records[2]["functions"] == 40 + 2 and records[0]["functions"] is None
    assert "evidence" in capsys.readouterr().out
    (_, split), _ = classes.splits("banana", 2)
    assert not {tuple(row) for row in split.X} & {tuple(row) for row in split.new}


def test_without_data_it_says_what_it_needs(monkeypatch):
    monkeypatch.delenv("BENCHMARK_DATA", raising=False)
    with pytest.raises(SystemExit, match="BENCHMARK_DATA"):
        classes.main(["--sets", "ripley"])
