"""Benchmarks of evidence: runs that go on where they were left, tables, and peers that fail or take too long."""

import pickle
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import evidence_coverage as coverage
from benchmarks import evidence_peers as peers
from benchmarks import evidence_probabilities as probabilities
from benchmarks import evidence_worker as worker
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


# --- probabilities of models ------------------------------------------------------------------------------------------


@pytest.fixture
def simulations(monkeypatch):
    """Simulations of models with even odds, that take no time."""
    made = []

    def simulated(setup, sequence):
        made.append(setup)
        rng = np.random.default_rng(sequence)
        return probabilities.Simulated(int(rng.integers(2)), [-3.0, -3.0], [0.01, 0.01], [True, True])

    monkeypatch.setattr(probabilities, "simulated", simulated)
    monkeypatch.setattr(probabilities, "EvidenceSetup", lambda models, routes, effort: (sorted(models), effort))
    return made


def test_simulations_go_on_where_they_were_left(tmp_path, simulations):
    path = tmp_path / "runs.jsonl"
    one = {"noise": probabilities.PAIRS["noise"]}
    first = probabilities.collect(one, 3, 0.5, path)
    with path.open("a") as file:
        file.write('{"pair": "cut o')
    rows = probabilities.collect(one, 5, 0.5, path)
    assert len(simulations) == 5 and rows[:3] == first and [row["simulation"] for row in rows] == [0, 1, 2, 3, 4]
    assert simulations[0] == (["normal", "student"], 0.5)
    assert probabilities.read(path, 0.25) == []  # another effort
    probabilities.collect(one, 5, 0.5, path)
    assert len(simulations) == 5


def test_the_command_says_what_the_simulations_say(tmp_path, simulations, capsys):
    arguments = ["--file", str(tmp_path / "runs.jsonl"), "--pairs", "noise", "--simulations", "200"]
    assert probabilities.main(arguments) == 0
    said = capsys.readouterr().out
    assert "noise: Calibrated as far as 200 simulations" in said and "p(student) about 0.500" in said
    assert "control, half a nat more for one: score" in said
    assert probabilities.main([*arguments, "--show"]) == 0
    assert capsys.readouterr().out == said and len(simulations) == 200


# --- other packages ---------------------------------------------------------------------------------------------------


def test_functions_of_a_model_for_other_packages():
    """The evidence is the mean of the likelihood over the prior, whether drawn or by its quantiles."""
    case = conjugate.gamma_poisson()
    drawn = worker.prior_draws(case.model, 4_000, 1)
    transform, log_likelihood, size = worker.unit_cube(case.model)
    mapped = np.array([transform(u) for u in np.random.default_rng(2).random((4_000, size))])
    assert drawn.shape == mapped.shape
    for rows in (drawn, mapped):
        weights = np.exp(np.array([log_likelihood(row) for row in rows]) - case.truth)
        assert abs(weights.mean() - 1.0) < 4.0 * weights.std() / np.sqrt(len(weights))
    assert log_likelihood(np.full(size, np.inf)) == -1e100


def test_a_worker_answers_with_a_number_or_with_what_went_wrong(monkeypatch):
    monkeypatch.setattr(worker.resource, "setrlimit", lambda what, limits: None)
    monkeypatch.setitem(worker.PACKAGES, "fine", "math")
    monkeypatch.setitem(worker.METHODS, "fine", lambda model, seed: worker.Found(-1.0 * seed, 0.1, True))
    monkeypatch.setitem(worker.PACKAGES, "broken", "math")
    monkeypatch.setitem(worker.METHODS, "broken", lambda model, seed: 1 / 0)
    job = {"model": pickle.dumps((dict, None)), "seed": 3, "seconds": 10.0}
    found = worker.answer({"method": "fine", **job})
    assert (found["value"], found["error"], found["complete"]) == (-3.0, 0.1, True) and found["seconds"] >= 0.0
    assert worker.answer({"method": "broken", **job})["failed"] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("code", "out", "expected"),
    [
        (0, '{"value": -2.0, "error": 0.5, "complete": true, "seconds": 4.0}', {"off": -1.0, "reliable": True}),
        (0, '{"failed": "no quantiles", "seconds": 1.0}', {"failed": "no quantiles"}),
        (-signal.SIGXCPU, "", {"failed": "not done in 7 s of processor", "seconds": 7.0}),
        (1, "", {"failed": "ModuleNotFoundError: no such thing"}),
    ],
)
def test_what_a_process_of_a_peer_ends_with_is_a_row(monkeypatch, code, out, expected):
    asked = {}

    def ran(command, **given):
        asked.update(given, command=command)
        return SimpleNamespace(
            returncode=code, stdout=out.encode(), stderr=b"a line\nModuleNotFoundError: no such thing"
        )

    monkeypatch.setattr(peers.subprocess, "run", ran)
    monkeypatch.setenv("PEERS_PYTHON", "there/python")
    row = peers.run("dynesty", "some", SimpleNamespace(model=conjugate.beta_binomial().model, truth=-1.0), 5, 7.0)
    assert row | expected == row and (row["entrant"], row["case"], row["seed"]) == ("dynesty", "some", 5)
    assert asked["command"][0] == "there/python" and pickle.loads(asked["input"])["seed"] == 5


def test_methods_of_this_process_are_stopped_in_time(monkeypatch):
    def forever(case, seed):
        while True:
            pass

    monkeypatch.setitem(peers.HERE, "nautilus", forever)
    row = peers.run("nautilus", "some", SimpleNamespace(truth=-1.0), 1, 0.05)
    assert row["failed"] == "TimeoutError: not done in 0 s of processor" and row["seconds"] < 5.0
    monkeypatch.setitem(peers.HERE, "nautilus", lambda case, seed: (-1.5, 0.1, False))
    row = peers.run("nautilus", "some", SimpleNamespace(truth=-1.0), 1, 5.0)
    assert (row["off"], row["reliable"]) == (-0.5, False)


def test_the_table_of_peers_has_a_column_for_each(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(peers, "ALL", (conjugate.beta_binomial, conjugate.gamma_poisson))
    monkeypatch.setattr(peers, "MODELS", ("beta_binomial",))
    monkeypatch.setitem(peers.HERE, "bs.evidence", lambda case, seed: (case.truth + 0.25, 0.5, True))
    path = tmp_path / "runs.jsonl"
    arguments = ["--only", "beta_binomial", "--entrants", "bs.evidence", "--file", str(path)]
    assert peers.main(arguments) == 0 and peers.main(arguments) == 0
    assert "0.25" in capsys.readouterr().out and len(path.read_text().splitlines()) == 1
