"""The network that the samplers' benchmark hands to peers is the model that ours sample."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayessel as bs
from benchmarks.network_cases import COMPARED, log_loss, network, outputs, predictions, sizes, split
from benchmarks.sampler_cases import NUMPY, quantities, target
from benchmarks.sampler_race import Outcome
from benchmarks.sampler_run import Setting
from benchmarks.sampler_worker import NETWORK, OWN
from benchmarks.workloads import mlp_race

CASE = "mlp friedman 12"
WEIGHTS = ("hidden_bias", "input_hidden", "bias", "hidden_output", "input_output")
LOGS = (
    "tau_noise",
    "tau_hidden_bias",
    "tau_hidden_output",
    "tau_input_hidden",
    "mean_tau_input_hidden",
    "tau_input_output",
    "mean_tau_input_output",
)


@pytest.fixture(scope="module")
def density():
    known = split(CASE)
    model = bs.models.mlp(known.X, known.t, hidden=8)
    compiled, start = model.compile_logp(mode="FAST_COMPILE"), model.initial_point()
    names = [*WEIGHTS, *(f"{name}_log__" for name in LOGS)]

    def call(q):
        point, at = {}, 0
        for name in names:
            size = start[name].size
            point[name] = q[at : at + size].reshape(start[name].shape)
            at += size
        assert at == len(q)
        return compiled(point)

    return call


def test_the_posterior_of_the_peers_is_that_of_the_model(rng, density):
    centred, other = target(CASE, "centred"), network(CASE, "non-centred")
    P, S = sizes(8)
    points = 0.5 * rng.standard_normal((5, P + S))
    peers = [centred.density(q, centred.data, NUMPY) for q in points]
    assert_allclose(np.diff(peers), np.diff([density(q) for q in points]), rtol=1e-9)
    # the other coordinates: the density of the same point times the Jacobian, which is in the precisions alone
    found = other.finish(points, rng)
    same, jacobian = np.empty_like(points), np.empty(len(points))
    for k, (q, weights) in enumerate(zip(points, found["weights"], strict=True)):
        s = q[P:].copy()
        s[3:11] += s[11]
        s[12:20] += s[20]
        same[k] = np.concatenate([weights, s])
        with np.errstate(divide="ignore", invalid="ignore"):
            jacobian[k] = np.sum(np.log(np.abs(weights / q[:P])))
    expected = [centred.density(x, centred.data, NUMPY) + j for x, j in zip(same, jacobian, strict=True)]
    assert_allclose(np.diff([other.density(q, other.data, NUMPY) for q in points]), np.diff(expected), rtol=1e-9)
    assert_allclose(found["log_noise"], points[:, P])


def test_predictions_and_losses_term_by_term(rng):
    P, _ = sizes(8)
    known = split(CASE)
    draws = {"weights": rng.standard_normal((2, 3, P)), "log_noise": rng.standard_normal((2, 3))}
    f = np.empty((6, len(known.t_test)))
    for one, q in zip(f, draws["weights"].reshape(6, P), strict=True):
        a, u, b, v, w = np.split(q, [8, 72, 73, 81])
        for j, x in enumerate(known.X_test):
            one[j] = b[0] + x @ w + sum(v[h] * np.tanh(x @ u.reshape(8, 8)[:, h] + a[h]) for h in range(8))
    assert_allclose(outputs(draws["weights"], known.X_test).reshape(6, -1), f, rtol=1e-10, atol=1e-12)
    named = quantities(CASE, draws)
    assert list(named) == list(predictions(CASE, draws)) and len(named) == COMPARED
    assert_allclose(named["prediction 3"].ravel(), f[:, 3])
    tau = np.exp(draws["log_noise"].ravel())[:, None]
    mixture = np.mean(np.sqrt(tau / (2 * np.pi)) * np.exp(-0.5 * tau * (known.t_test - f) ** 2), axis=0)
    assert_allclose(log_loss(CASE, draws), -np.mean(np.log(mixture)), rtol=1e-10)


def test_turns_that_were_kept_are_not_run_again_and_seeds_make_medians(rng, monkeypatch, tmp_path):
    P, _ = sizes(8)
    ran = []

    def one_turn(case, name, setting, found):
        ran.append((name, setting.seed))
        if name not in (OWN, mlp_race.PEERS[0]):
            found.why = "not installed"
            return
        fast = name == OWN
        weights = 0.1 * np.random.default_rng(len(ran)).standard_normal((2, 200, P))
        found.draws.append({"weights": weights, "log_noise": np.zeros((2, 200))})
        found.cpu, found.seconds, found.compiling = [0.01 if fast else 1.0 + len(ran)], [1.0], [0.5]
        found.gradients, found.version, found.diverging = [1000], "package 1", 0 if fast else 2

    monkeypatch.setattr(mlp_race, "one_turn", one_turn)
    monkeypatch.setenv(mlp_race.KEEP, str(tmp_path / "turns"))
    monkeypatch.setattr(mlp_race.delve_cases, "there", lambda family: family == "friedman")
    monkeypatch.setattr(mlp_race, "CASES", 12)
    first = mlp_race.run(False, lambda *a: None)
    # five seeds each of those that run, one of the others
    assert len(ran) == 5 * 2 + len(NETWORK) + len(mlp_race.PEERS) - 2
    rows = {row["contestant"]: row for row in first.tables[0][1]}
    assert set(rows) == {OWN, mlp_race.PEERS[0]} and rows[OWN]["seeds"] == 5
    assert rows[mlp_race.PEERS[0]]["divergent"] == 10
    assert rows[OWN]["least"] <= rows[OWN]["ESS / s"] <= rows[OWN]["most"]
    assert all(verdict.met for verdict in first.verdicts if "log loss" not in verdict.label)
    before = len(ran)
    again = mlp_race.run(False, lambda *a: None)
    assert len(ran) == before + len(NETWORK) + len(mlp_race.PEERS) - 2
    assert again.tables[0] == first.tables[0]


def test_ours_hands_back_what_is_compared():
    from benchmarks.sampler_ours import network as ours

    found = ours(target(CASE, ""), Setting(2, 20, 30, 1), n_leapfrog=5)
    P, _ = sizes(8)
    assert found.draws["weights"].shape == (2, 30, P) and found.draws["log_noise"].shape == (2, 30)
    assert found.gradients == 2 * 30 * 6 and Outcome(Setting(2, 20, 30, 1)).why is None
