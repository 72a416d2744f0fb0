"""The evidence of networks by annealing against closed forms, grids and averages over the prior.

Guards `bayessel.samplers.network.annealing`, `bayessel.samplers.annealing`.
"""

import functools

import numpy as np
import pytest

from bayessel.fit import Status
from bayessel.mlp import Architecture, Gamma, NetworkPrior
from bayessel.mlp.prior import Precisions
from bayessel.samplers import annealing
from bayessel.samplers.annealing import forwards
from bayessel.samplers.network import annealing as network_annealing
from bayessel.samplers.network.annealing import (
    NetworkPath,
    anneal_network,
    gammas_of,
    log_gamma_draws,
    logs_of,
    precisions_of,
)
from tests.oracles.annealing import (
    integrated_line_log_evidence,
    linear_log_evidence,
    log_gamma,
    prior_average,
    usual,
)
from tests.oracles.network_quadrature import log_evidence_of_one_unit
from tests.problems.network import gentle_prior, problem

QUICK = {"n_particles": 20, "n_runs": 40, "updates": 2, "n_leapfrog": 6, "n_pilots": 1}


def z_score(result, truth, error=0.0):
    """How many standard errors the mean of the runs' estimates, over the truth, is away from one."""
    w = np.exp(result.log_weights - truth)
    return (w.mean() - 1.0) / np.hypot(w.std(ddof=1) / np.sqrt(len(w)), error)


def agrees(result, truth, error=0.0, sure=0.15):
    """The estimate is the truth, and sure enough to say so."""
    assert result.standard_error < sure
    return abs(z_score(result, truth, error)) < 4.0


# --- closed forms and quadrature


def silent(D, H, K=1, **chosen):
    """A prior under which hidden units say nothing: what is left is linear."""
    return NetworkPrior(Architecture(D, H, K), hidden_output=Gamma(1e14, 1e3), **chosen)


def test_a_network_of_direct_connections_is_a_linear_model(rng):
    X, T = rng.standard_normal((9, 3)), rng.standard_normal((9, 2))
    one = np.asarray(1.0)
    held = Precisions(np.array([2.0, 5.0]), one, np.asarray(1e14), np.ones(3), one, np.array([0.5, 1.0, 4.0]), one)
    prior = silent(3, 2, 2, bias_sd=0.7)
    truth = linear_log_evidence(X, T, held.noise, held.input_output, 0.7)
    result = anneal_network(X, T, prior=prior, precisions=held, random_state=1, **QUICK)
    assert agrees(result, truth)
    assert result.evidence.kind == "sampled" and result.reliable and result.status is Status.CONVERGED
    assert abs(z_score(result, truth + 0.5)) > 4.0  # half a nat would be seen


def test_precisions_of_a_line_are_integrated_out(rng):
    x = rng.standard_normal(8)
    t = 1.5 * x + 0.5 * rng.standard_normal(8)
    chosen = {"noise": Gamma(2.0, 4.0), "input_output": Gamma(1.0, 4.0), "input_output_shape": 3.0}
    prior = silent(1, 2, hidden_bias=Gamma(1.0, 8.0), input_hidden=Gamma(1.0, 8.0), input_hidden_shape=8.0, **chosen)
    truth = integrated_line_log_evidence(x, t, prior)
    assert truth == pytest.approx(integrated_line_log_evidence(x, t, prior, 100), abs=1e-5)
    result = anneal_network(x[:, None], t, prior=prior, random_state=2, **QUICK)
    assert agrees(result, truth)


def test_one_hidden_unit_with_precisions_held(rng):
    x = rng.uniform(-2.0, 2.0, 12)
    t = np.tanh(3.0 * x) + 0.3 * rng.standard_normal(12)
    alpha, beta = np.array([0.5, 0.3, 1.0, 0.7, 2.0]), 8.0
    truth = log_evidence_of_one_unit(x, t, alpha, beta)
    a, u, b, v, w = alpha
    one = np.asarray(1.0)
    held = Precisions(np.array([beta]), np.asarray(a), np.asarray(v), np.array([u]), one, np.array([w]), one)
    prior = NetworkPrior(Architecture(1, 1), bias_sd=b**-0.5)
    result = anneal_network(x[:, None], t, prior=prior, precisions=held, random_state=3, **QUICK | {"n_particles": 40})
    assert agrees(result, truth)


# --- averages over the prior


def small(rng, kind, n=5, D=2, H=2):
    X = rng.standard_normal((n, D))
    if kind == "softmax":
        return X, np.arange(n) % 3, np.eye(3)[np.arange(n) % 3], gentle_prior(D, H, 3)
    if kind == "logistic":
        t = (X[:, 0] > 0.0).astype(float)
        return X, t, t[:, None], gentle_prior(D, H)
    t = np.tanh(2.0 * X[:, 0]) + 0.5 * rng.standard_normal(n)
    return X, t, t[:, None], gentle_prior(D, H)


@functools.cache
def small_numbers():
    """A small problem with Gaussian noise, its evidence and the error of that."""
    rng = np.random.default_rng(11)
    X, t, T, prior = small(rng, "gaussian")
    return X, t, prior, *prior_average(rng, X, T, "gaussian", prior)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_everything_of_classes_is_integrated_out(rng, kind):
    X, t, T, prior = small(rng, kind)
    truth, error = prior_average(rng, X, T, kind, prior)
    assert error < 0.02
    result = anneal_network(X, t, kind=kind, prior=prior, random_state=4, **QUICK)
    assert agrees(result, truth, error)


def test_everything_is_integrated_out():
    X, t, prior, truth, error = small_numbers()
    assert error < 0.02
    assert agrees(anneal_network(X, t, prior=prior, random_state=4, **QUICK), truth, error)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "logistic", "softmax"])
def test_many_runs_are_unbiased_and_their_error_bars_cover(rng, kind):
    X, t, T, prior = small(rng, kind, n=8, D=3, H=3)
    truth, error = prior_average(rng, X, T, kind, prior, 2_000_000)
    result = anneal_network(X, t, kind=kind, prior=prior, random_state=5, **QUICK | {"n_runs": 400, "n_particles": 10})
    assert error < 0.02 and agrees(result, truth, error)
    assert result.log_weights.mean() < truth
    # Student's t with 4 degrees of freedom is within 2 in 88 of a hundred
    groups = np.exp(result.log_weights - truth).reshape(80, 5)
    covered = np.abs(groups.mean(axis=1) - 1.0) < 2.0 * groups.std(axis=1, ddof=1) / np.sqrt(5)
    assert covered.mean() > 0.88 - 4.0 * np.sqrt(0.88 * 0.12 / 80)


def test_runs_back_from_the_posterior_meet_those_that_lead_there():
    X, t, prior, truth, _ = small_numbers()
    few = QUICK | {"n_runs": 15}
    plain, result = (anneal_network(X, t, prior=prior, random_state=4, bracket=way, **few) for way in (False, True))
    assert np.isnan(plain.upper)
    # the logarithm of one estimate is too low on average, that of one over it too high
    assert truth - 0.3 < result.log_weights.mean() < truth + 0.1
    assert truth - 0.1 < result.upper < truth + 0.3
    assert len(result.log_downs) == 15 and len(plain.log_downs) == 0


def test_runs_back_may_begin_at_draws_of_the_posterior(rng):
    """Drawn anew by their weights from a reference about the posterior, known to no run."""
    X, t, prior, truth, _ = small_numbers()
    few = {"n_runs": 10, "n_particles": 40, "n_pilots": 1, "updates": 4, "random_state": 4}
    m = len(logs_of(prior.at_mean()))
    path = NetworkPath(*problem(X, t[:, None], prior, "gaussian"), prior, "gaussian", None, np.ones((m, 2)), 1, 5)
    for _ in range(3):  # each time from about where the last has led
        particles = path.first(rng, 100_000)
        gains = path.gains(particles)
        weights = np.exp(gains - gains.max())
        places = rng.choice(len(gains), size=400, p=weights / weights.sum())
        path.reference = gammas_of(particles[1][places])
    assert abs(annealing.log_mean(gains) - truth) < 0.1  # the last one covers the posterior
    drawn = tuple(part[places] for part in particles)
    own, known = (anneal_network(X, t, prior=prior, bracket=True, ends=ends, **few) for ends in (None, drawn))
    np.testing.assert_array_equal(own.log_weights, known.log_weights)  # the way up knows nothing of them
    error = known.log_downs.std(ddof=1) / np.sqrt(10)
    assert truth - 4.0 * error < known.upper < truth + 0.3 + 4.0 * error
    assert known.upper != own.upper
    with pytest.raises(ValueError, match="10 runs back need 20 draws"):
        anneal_network(X, t, prior=prior, bracket=True, ends=(drawn[0][:9], drawn[1][:9]), **few)
    with pytest.raises(ValueError, match="ends must be packed weights"):
        anneal_network(X, t, prior=prior, bracket=True, ends=(drawn[0][:, :-1], drawn[1]), **few)


def test_the_reference_decides_how_sure_not_what(rng):
    X, t, prior, truth, error = small_numbers()
    strange = rng.normal(1.0, 0.7, size=(50, len(logs_of(prior.at_mean()))))
    result = anneal_network(X, t, prior=prior, draws=strange, random_state=4, **QUICK)
    assert agrees(result, truth, error, sure=0.5)


def test_the_best_of_several_references_is_kept(monkeypatch):
    X, t, prior, truth, error = small_numbers()
    seen, used, plain = [], [], annealing.pilot

    def pilot(path, n, rng):
        estimate, schedule = plain(path, n, rng)
        seen.append((path.reference, schedule))
        return estimate + (0.0, 30.0, 10.0)[len(seen) - 1], schedule

    def run(path, schedule, n, rng):
        used.append((path.reference, schedule))
        return forwards(path, schedule, n, rng)

    monkeypatch.setattr(annealing, "pilot", pilot)
    monkeypatch.setattr(annealing, "forwards", run)
    draws = np.random.default_rng(0).normal(1.0, 0.5, size=(50, len(logs_of(prior.at_mean()))))
    result = anneal_network(X, t, prior=prior, draws=draws, random_state=4, **QUICK | {"n_pilots": 3})
    assert (seen[0][0] == gammas_of(draws)).all() and len(seen) == 3
    assert all((reference == seen[1][0]).all() and schedule is seen[1][1] for reference, schedule in used)
    assert agrees(result, truth, error, sure=0.3)  # whichever it is
    assert np.abs(result.pilots - [0.0, 30.0, 10.0] - truth).max() < 2.0


@pytest.mark.slow
def test_several_searches_find_what_one_may_miss(rng):
    """Two steep steps and two units: where both lie on one step half the data are noise, 40 nats away."""
    X = rng.uniform(-1.7, 1.7, (60, 1))
    t = np.tanh(7.0 * (X[:, 0] - 0.8)) + np.tanh(7.0 * (X[:, 0] + 0.8)) + 0.1 * rng.standard_normal(60)
    found = [anneal_network(X, t, hidden=2, random_state=seed) for seed in range(4)]
    sure = [one for one in found if one.reliable]  # where every pilot run misses it (one time in eight), it is said
    assert len(sure) >= 2
    assert np.ptp([one.log_evidence for one in sure]) < 4.0 * max(one.standard_error for one in sure)
    assert sure[0].log_evidence > anneal_network(X, t, hidden=1, random_state=0, n_pilots=1).log_evidence + 20.0


# --- mistakes that these tests must see


class ForgetsTheReference(NetworkPath):
    """As if particles had been drawn from the prior."""

    def gains(self, particles):
        return super().gains(particles) + self.log_reference(particles[1])


class ForgetsTheMean(NetworkPath):
    """Second layers about the prior mean of their mean, not about the mean itself."""

    def log_prior(self, S):
        s = S.copy()
        D = self.prior.architecture.inputs
        s[:, [-1, -2 - D]] = 0.0
        return super().log_prior(s)


class TooHot(NetworkPath):
    """Moves that leave another temperature's density as it is."""

    def walk(self, rng, particles, step_size, t, updates, n_leapfrog):
        return super().walk(rng, particles, step_size, t**0.3, updates, n_leapfrog)


@pytest.mark.parametrize("wrong", [ForgetsTheReference, ForgetsTheMean, TooHot])
def test_mistakes_would_be_seen(wrong, monkeypatch):
    X, t, prior, truth, error = small_numbers()
    monkeypatch.setattr(network_annealing, "NetworkPath", wrong)
    result = anneal_network(X, t, prior=prior, random_state=4, **QUICK)
    assert abs(z_score(result, truth, error)) > 4.0


# --- densities and draws of the path


def path_of(prior, kind="gaussian", n=4, rng=None):
    rng = np.random.default_rng(0) if rng is None else rng
    a = prior.architecture
    X, T = rng.standard_normal((n, a.inputs)), (rng.standard_normal((n, a.outputs)) > 0).astype(float)
    m = len(logs_of(prior.at_mean()))
    return NetworkPath(*problem(X, T, prior, kind), prior, kind, None, np.tile([2.0, 1.5], (m, 1)), 1, 5)


def test_densities_of_hyperparameters_are_those_of_the_prior(rng):
    prior = gentle_prior(3, 2, 2)
    path = path_of(prior)
    S = rng.standard_normal((5, len(path.reference)))
    for s, found in zip(S, path.log_prior(S), strict=True):
        # of logarithms: the density of the precisions times the precisions
        assert found == pytest.approx(prior.precisions_log_density(precisions_of(s, prior)) + s.sum(), rel=1e-12)
    assert path.log_reference(S) == pytest.approx(log_gamma(S, 2.0, 1.5).sum(axis=1), rel=1e-12)
    classes = path_of(gentle_prior(3, 2, 2), "logistic")
    noise = log_gamma(S[:, :2], *usual(prior.noise)).sum(axis=1)
    assert classes.log_prior(S) == pytest.approx(path.log_prior(S) - noise, rel=1e-12)


def test_the_reference_has_the_means_of_the_draws_and_wider_spreads(rng):
    S = rng.normal([3.0, -20.0, 0.0], [0.5, 4.0, 1e-9], size=(400, 3))
    shape, rate = gammas_of(S).T
    drawn = log_gamma_draws(rng, np.tile(shape, (20_000, 1))) - np.log(rate)
    error = drawn.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(drawn.mean(axis=0) - S.mean(axis=0)) < 4.0 * error).all()
    assert drawn[:, :2].var(axis=0) == pytest.approx(2.0 * S[:, :2].var(axis=0), rel=0.1)
    assert np.isfinite(log_gamma_draws(rng, np.full(1000, 1e-3))).all()


# --- how runs behave


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((12, 2))
    return X, np.sin(2.0 * X[:, 0])


FEW = {"hidden": 2, "n_particles": 10, "n_runs": 3, "updates": 1, "n_leapfrog": 5, "n_pilots": 1}


def test_same_seed_same_estimate(rows):
    one, two, other = (anneal_network(*rows, random_state=seed, **FEW) for seed in (1, 1, 2))
    assert (one.log_weights == two.log_weights).all() and (one.temperatures == two.temperatures).all()
    assert (one.log_weights != other.log_weights).any()
    assert one.fingerprint == other.fingerprint and one.n_rows == 12 and one.n_gradients > 0
    # more runs are more of the same
    more = anneal_network(*rows, random_state=1, **FEW | {"n_runs": 5})
    assert (more.log_weights[:3] == one.log_weights).all()


def test_time_ends_it_after_the_first_run(rows):
    result = anneal_network(*rows, random_state=1, time_budget=1e-9, **FEW)
    assert len(result.log_weights) == 1 and np.isnan(result.standard_error) and not result.reliable
    assert set(result.notes) == {Status.TIME_BUDGET, Status.UNSURE_EVIDENCE}
    assert result.log_evidence == result.log_weights[0] and result.effective_runs == pytest.approx(1.0)


def test_an_interrupt_gives_back_what_there_is(rows):
    told = []

    def stop(done, total, when):
        told.append((done, total))
        if done == when:
            raise KeyboardInterrupt

    result = anneal_network(*rows, random_state=1, progress=lambda a, b: stop(a, b, 3), **FEW)
    assert told == [(1, 4), (2, 4), (3, 4)]
    whole = anneal_network(*rows, random_state=1, **FEW)
    assert (result.log_weights == whole.log_weights[:2]).all() and Status.INTERRUPTED in result.notes
    with pytest.raises(KeyboardInterrupt):
        anneal_network(*rows, random_state=1, progress=lambda a, b: stop(a, b, 1), **FEW)


def test_an_error_that_is_large_is_said(rows):
    few = FEW | {"n_particles": 2, "n_runs": 2}
    results = [anneal_network(*rows, random_state=seed, **few) for seed in range(6)]
    assert any(Status.UNSURE_EVIDENCE in one.notes for one in results)
    for one in results:
        assert (Status.UNSURE_EVIDENCE in one.notes) == (not one.reliable)


def test_other_units(rows):
    one = anneal_network(*rows, random_state=1, **FEW)
    other = one.in_units(-7.0, "name")
    assert other.log_evidence == one.log_evidence - 7.0 and (other.log_weights == one.log_weights - 7.0).all()
    assert other.standard_error == one.standard_error and other.fingerprint == "name"


def test_what_is_wrong_is_said_at_the_door(rows):
    X, t = rows
    for options, error, said in (
        ({"kind": "student"}, ValueError, "kind"),
        ({"prior": 3}, TypeError, "prior must be a NetworkPrior"),
        ({"prior": gentle_prior(3, 2)}, ValueError, "the prior is of a network with 3 inputs and 1 outputs"),
        ({"precisions": 2.0}, TypeError, "precisions must be bayessel.mlp.prior.Precisions"),
        (
            {"precisions": gentle_prior(3, 2).at_mean()},
            ValueError,
            r"precisions.input_hidden must have the shape \(2,\)",
        ),
        ({"precisions": gentle_prior(2, 2).at_mean()._replace(hidden_bias=-1.0)}, ValueError, "must be positive"),
        ({"draws": np.zeros((5, 3))}, ValueError, "draws must be at least 2 rows of 9 logarithms"),
        ({"draws": np.full((5, 9), np.nan)}, ValueError, "draws"),
        ({"n_particles": 1}, ValueError, "n_particles"),
        ({"n_runs": 0}, ValueError, "n_runs"),
        ({"n_pilots": 0}, ValueError, "n_pilots"),
        ({"time_budget": -1.0}, ValueError, "time_budget"),
        ({"hidden": "many"}, ValueError, "hidden must be 'auto'"),
        ({"bracket": 3}, TypeError, "bracket"),
    ):
        with pytest.raises(error, match=said):
            anneal_network(X, t, **options)
    with pytest.raises(ValueError, match="t must have one row per row of X"):
        anneal_network(X, t[:5])
    with pytest.raises(ValueError, match="NaN"):
        anneal_network(X, np.where(t == t[0], np.nan, t))


def test_many_weights_and_few_rows(rng):
    X = rng.standard_normal((1, 40))
    result = anneal_network(X, [0.3], hidden=26, n_particles=4, n_runs=2, updates=1, n_leapfrog=3, random_state=0)
    assert np.isfinite(result.log_evidence)
    assert np.isfinite(forwards(path_of(gentle_prior(2, 2)), _one_step(), 5, rng)[0])


def _one_step():
    from bayessel.samplers.annealing import Schedule

    return Schedule([0.0, 1.0], [0.1], [1.0])
