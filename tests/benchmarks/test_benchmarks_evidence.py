"""The benchmark of evidence: runs that go on where they were left, and a table that tells misses from flags."""

from types import SimpleNamespace

import pytest

from benchmarks import evidence_coverage as coverage
from tests.marginal_likelihood.zoo import conjugate

MAKERS = {make.__name__: make for make in (conjugate.beta_binomial, conjugate.gamma_poisson)}


@pytest.fixture
def calls(monkeypatch):
    """Evidence of models by a function that is right for odd seeds, and 0.2 nats off and not reliable, or fails."""
    made = []

    def evidence(model, *, random_seed, quiet):
        made.append(random_seed)
        if random_seed == 4:
            raise FloatingPointError("nothing came of it")
        truth = conjugate.beta_binomial().truth if "p" in model.named_vars else conjugate.gamma_poisson().truth
        is_sure = random_seed % 2 == 1
        return SimpleNamespace(
            value=truth + (0.01 if is_sure else 0.2),
            error=0.01,
            reliable=is_sure,
            comparable="",
            verdict="",
            routes=(),
        )

    monkeypatch.setattr(coverage.bs, "evidence", evidence)
    return made


def test_a_later_call_does_what_is_missing(tmp_path, calls):
    path = tmp_path / "some" / "runs.jsonl"
    coverage.collect(MAKERS, 3, path)
    assert calls == [1, 1, 2]
    with path.open("a") as file:
        file.write('{"case": "cut o')
    assert len(coverage.read(path)) == 3
    rows = coverage.collect(MAKERS, 6, path)
    assert calls == [1, 1, 2, 2, 3, 3] and len(rows) == len(coverage.read(path)) == 6


def test_lines_of_other_sources_do_not_count(tmp_path, calls, monkeypatch):
    path = tmp_path / "runs.jsonl"
    coverage.collect(MAKERS, 2, path)
    monkeypatch.setattr(coverage, "code", lambda: "another")
    assert coverage.read(path) == []
    coverage.collect(MAKERS, 2, path)
    assert calls == [1, 1, 1, 1] and len(coverage.read(path)) == 2


def test_the_table_tells_misses_flags_and_failures_apart(tmp_path, calls):
    rows = coverage.collect(MAKERS, 8, tmp_path / "runs.jsonl")
    found = coverage.table(rows).set_index("case")
    assert list(found.index) == list(MAKERS)
    assert (found["runs"] == 4).all() and (found["failed"] == 1).all() and (found["missed"] == 0).all()
    assert found["flagged"].to_list() == pytest.approx([1 / 3, 1 / 3])
    assert found["bias"].to_list() == pytest.approx([0.01, 0.01]) and (found["covered"] == 1.0).all()
    assert "reliable: 4 runs, 100.0% within two errors, 0 further off" in coverage.overall(rows)
    rows[0]["value"] += 0.1
    assert coverage.table(rows).set_index("case")["missed"].to_list() == [1, 0]
    assert "75.0% within two errors, 1 further off" in coverage.overall(rows)


def test_the_command_prints_the_table(tmp_path, calls, capsys):
    arguments = ["--file", str(tmp_path / "runs.jsonl"), "--only", "beta_binomial"]
    assert coverage.main([*arguments, "--runs", "2"]) == 0
    assert coverage.main([*arguments, "--show"]) == 0
    assert capsys.readouterr().out.count("| beta_binomial | 2 |") == 2 and calls == [1, 2]
