"""The posteriors of the samplers' benchmarks are the ones they are said to be, and a wrong sampler wins nothing."""

import json
import sys

import numpy as np
import pytest
from scipy.stats import gamma, multivariate_normal, norm

from benchmarks import sampler_cases, sampler_race, sampler_run, sampler_worker
from benchmarks.__main__ import main
from benchmarks.reference import sparse_exact
from benchmarks.sampler_cases import FORMS, NUMPY, RATE, SHAPE, Target, quantities, reduced, regression, target
from benchmarks.sampler_run import Run, Setting
from benchmarks.workloads import samplers, samplers_gradient, samplers_overhead

POSTERIORS = [
    *(("rvm 12", form) for form in ("centred", "non-centred", "collapsed")),
    *(("linear 20 4", form) for form in FORMS),
    ("gaussian 5", ""),
    ("rotated 5", ""),
    ("gp 9", ""),
]


def log_hyperprior(log_x):
    return np.sum(gamma.logpdf(np.exp(log_x), SHAPE, scale=1 / RATE) + log_x)


def oracle(case, form, q):
    """The log density from SciPy's distributions, constants included."""
    kind, *sizes = case.split()
    if kind in ("gaussian", "rotated"):
        d = int(sizes[0])
        axes = np.eye(d)
        if kind == "rotated":
            axes, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))
        return multivariate_normal(np.zeros(d), (axes * np.geomspace(1e-4, 1.0, d)) @ axes.T).logpdf(q)
    if kind == "gp":
        X, t = target(case).data["X"], target(case).data["t"]
        v0, r2, *w, a0, a1 = np.exp(q)
        distances = (((X[:, None] - X[None]) ** 2) * w).sum(axis=-1)
        Q = a0 + a1 * X @ X.T + v0 * np.exp(-0.5 * distances) + r2 * np.eye(len(t))
        prior = norm(-1, 1).logpdf(q[0]) + norm(-3, 3).logpdf(q[[1, -2, -1]]).sum()
        inverse = 1 / np.array(w)  # Gamma of mean m² and shape 1/2
        prior += (gamma.logpdf(inverse, 0.5, scale=2 * X.shape[1] ** 2) + np.log(inverse)).sum()
        return multivariate_normal(np.zeros(len(t)), Q).logpdf(t) + prior
    problem = regression(case)
    n, m = problem.Phi.shape
    log_alpha, log_beta, v = q[: problem.precisions], q[problem.precisions], q[problem.precisions + 1 :]
    alpha, beta = np.exp(log_alpha) * np.ones(m), np.exp(log_beta)
    hyper = log_hyperprior(log_alpha) + log_hyperprior(log_beta)
    if form in ("collapsed", "spectral"):
        cov = np.eye(n) / beta + (problem.Phi / alpha) @ problem.Phi.T
        return hyper + multivariate_normal(np.zeros(n), cov).logpdf(problem.t)
    w = v if form == "centred" else v / np.sqrt(alpha)
    weights = norm(0, alpha**-0.5).logpdf(v) if form == "centred" else norm.logpdf(v)
    return hyper + weights.sum() + norm(problem.Phi @ w, beta**-0.5).logpdf(problem.t).sum()


@pytest.mark.parametrize(("case", "form"), POSTERIORS)
def test_every_form_is_the_posterior_up_to_a_constant(case, form, rng):
    density = target(case, form)
    points = 0.5 * rng.standard_normal((4, density.size))
    ours = [density.density(q, density.data, NUMPY) for q in points]
    np.testing.assert_allclose(np.diff(ours), np.diff([oracle(case, form, q) for q in points]), rtol=1e-8)


@pytest.mark.parametrize(("case", "form"), POSTERIORS)
def test_pytensor_samples_the_same_density(case, form, rng):
    from benchmarks.sampler_pymc import declare

    density = target(case, form)
    q = 0.5 * rng.standard_normal(density.size)
    compiled = declare(density).compile_logp(mode="FAST_COMPILE")
    np.testing.assert_allclose(compiled({"q": q}), density.density(q, density.data, NUMPY), rtol=1e-9)


@pytest.mark.parametrize("case", ["gp 30", "rvm 12", "linear 20 4", "linear 20 4, nothing squared"])
def test_gradients_by_hand(case, rng, monkeypatch):
    if case.endswith("squared"):
        monkeypatch.setattr(sampler_cases, "SAFE_TRACE", 0.0)
        case = case.split(",")[0]
    density = target(case, "collapsed")
    for _ in range(3):
        q = 0.5 * rng.standard_normal(density.size)
        value, gradient = density.value_and_gradient(q)
        np.testing.assert_allclose(value, density.density(q, density.data, NUMPY), rtol=1e-10)
        step = 1e-5 * np.eye(density.size)
        there, back = ([density.density(q + s * e, density.data, NUMPY) for e in step] for s in (1, -1))
        np.testing.assert_allclose(gradient, (np.array(there) - back) / 2e-5, rtol=1e-5, atol=1e-6)


def test_a_covariance_that_is_not_positive_definite_has_no_density():
    density = target("gp 30")
    value, gradient = density.value_and_gradient(np.full(density.size, 800.0))
    assert value == -np.inf and np.isfinite(gradient).all()


def test_the_evidence_of_a_draw_keeps_its_digits(rng):
    problem = regression("rvm 40")
    log_alpha = rng.uniform(-28.0, 6.0, 41)  # as far as the posterior goes
    R, z, rest = reduced(problem)
    found = sampler_cases.log_evidence(R, z, rest, 40, log_alpha, 4.5)
    np.testing.assert_allclose(found, float(sparse_exact(problem.Phi, problem.t, np.exp(log_alpha), np.exp(4.5))))


def exact_weights(problem, alpha, beta):
    precision = beta * problem.Phi.T @ problem.Phi + alpha * np.eye(problem.Phi.shape[1])
    return beta * np.linalg.solve(precision, problem.Phi.T @ problem.t), precision


@pytest.mark.parametrize("form", ["collapsed", "spectral"])
def test_weights_drawn_afterwards_have_their_posterior(form, rng):
    problem, n = regression("linear 20 4"), 4000
    q = np.tile(np.log([3.0, 0.5]), (1, n, 1))
    w = target("linear 20 4", form).finish(q, rng)["w"][0]

    def z_scores(alpha, beta):
        mean, precision = exact_weights(problem, alpha, beta)
        white = (w - mean) @ np.linalg.cholesky(precision)
        return np.abs(np.append(white.mean(axis=0) * n**0.5, (np.cov(white.T).diagonal() - 1) * (n / 2) ** 0.5))

    assert z_scores(3.0, 0.5).max() < 4.5
    assert z_scores(3.0, 0.7).max() > 10  # a wrong noise is seen


def test_quantities_are_named_and_shaped(rng):
    draws = target("rvm 12", "non-centred").finish(rng.standard_normal((2, 3, 27)), rng)
    found = quantities("rvm 12", draws)
    assert list(found) == ["log beta", "log evidence", *(f"prediction {j}" for j in range(10))]
    assert {x.shape for x in found.values()} == {(2, 3)}
    problem = regression("rvm 12")
    np.testing.assert_allclose(found["prediction 3"], draws["w"] @ problem.Phi_new[3])


# --- the table


def outcome(values, cpu, gradients=1000, version=""):
    """One turn of four chains whose only quantity is given."""
    one = sampler_race.Outcome(Setting(4, 100, values.shape[1], 1), version=version)
    one.seconds, one.cpu, one.compiling, one.gradients = [2 * cpu], [cpu], [1.0], [gradients]
    one.draws = [{"x": values[..., None]}]
    return one


@pytest.fixture
def found(rng):
    good = rng.standard_normal((3, 4, 500))
    return {
        "PersistentHMC": outcome(good[0], 1.0),
        "PyMC NUTS": outcome(good[1], 2.0, 4000),
        "nutpie": outcome(good[2] + 0.5, 0.01, version="nutpie 1"),  # fast, and elsewhere
        "NumPyro NUTS": outcome(good[2] + np.arange(4)[:, None], 0.01),  # fast, and each chain elsewhere
        "BlackJAX NUTS": sampler_race.Outcome(Setting(4, 100, 500, 1), why="not installed (blackjax)"),
    }


def test_a_fast_wrong_sampler_is_not_fast(found):
    rows = {row["contestant"]: row for row in sampler_race.table("gaussian 1", found, "PersistentHMC", True)}
    assert rows["PersistentHMC"]["time / ours"] == 1.0
    assert 1.5 < rows["PyMC NUTS"]["time / ours"] < 3.0
    assert rows["PyMC NUTS"]["sound"] == "yes" and rows["PyMC NUTS"]["MCSE apart"] < 4
    ratio = rows["PersistentHMC"]["ESS / 1000 gradients"] / rows["PyMC NUTS"]["ESS / 1000 gradients"]
    assert 3.0 < ratio < 5.5
    for name in ("nutpie", "NumPyro NUTS"):
        assert rows[name]["time / ours"] is None and rows[name]["sound"] != "yes"
    assert rows["nutpie"]["MCSE apart"] > 4 and rows["NumPyro NUTS"]["R-hat"] > 1.1
    assert "BlackJAX NUTS" not in rows
    assert sampler_race.best_peer(rows.values())["contestant"] == "PyMC NUTS"
    (_, versions), (_, missing) = sampler_race.footnotes({"gaussian 1": found})
    assert versions == [{"versions": "nutpie 1"}]
    assert missing == [{"contestant": "BlackJAX NUTS", "why": "not installed (blackjax)", "cases": "gaussian 1"}]


def test_a_chain_that_stands_still_is_worth_nothing(found, rng):
    found["PyMC NUTS"] = outcome(np.zeros((4, 500)), 1.0)
    rows = sampler_race.table("gaussian 1", found, "PersistentHMC")
    assert next(row for row in rows if row["contestant"] == "PyMC NUTS")["sound"] != "yes"


def test_turns_are_pooled_and_the_best_time_counts(found, rng):
    more = outcome(rng.standard_normal((4, 500)), 3.0)
    one = found["PersistentHMC"]
    alone = sampler_race.table("gaussian 1", found, "PersistentHMC")[0]
    for name in ("seconds", "cpu", "compiling", "gradients", "draws"):
        getattr(one, name).extend(getattr(more, name))
    both = sampler_race.table("gaussian 1", found, "PersistentHMC")[0]
    assert both["draws"] == 2 * alone["draws"]
    np.testing.assert_allclose(both["ESS / s"], alone["ESS / s"], rtol=0.25)  # twice the draws, twice the best time


def row(name, speed, sound="yes"):
    return {
        "contestant": name,
        "role": sampler_race.role(name),
        "ESS / s": speed,
        "ESS / 1000 gradients": speed,
        "sound": sound,
        "MCSE apart": 1.0,
    }


def test_promises_are_against_the_best_sound_peer():
    spectral = "nutpie, collapsed in singular vectors"
    rows = [
        row("bs.sample", 10.0),
        row("PyMC NUTS, centred", 2.0),
        row(spectral, 5.0),
        row("nutpie, centred", 99.0, "**no**"),
    ]
    values = [v.value for v in samplers.verdicts("linear 60 5", rows)]
    assert values == [2.0, 5.0, 1.0]
    rows = [row("PersistentHMC", 10.0), row("Horowitz, ε = 0.05", 1.0), row("nutpie", 5.0)]
    assert [v.value for v in samplers_gradient.verdicts("gp 20", rows)] == [2.0, 2.0, 10.0, 1.0]


def test_what_a_call_costs_once_is_taken_off(monkeypatch):
    now, calls = [0.0], []
    for clock in ("perf_counter", "process_time"):
        monkeypatch.setattr(sampler_run.time, clock, lambda: now[0])

    def sample(setting):
        calls.append(setting.draws)
        now[0] += (50.0 if len(calls) == 1 else 0.0) + 0.25 + 0.001 * setting.chains * (setting.tune + setting.draws)
        return setting.draws

    found, seconds, cpu, compiling = sampler_run.timed(sample, Setting(4, 100, 100, 1))
    assert found == 100 and calls == [4, 4, 100, 4, 100, 4, 100]  # short enough to be repeated
    np.testing.assert_allclose([seconds, cpu, compiling], [0.78, 0.78, 50.27])
    assert sampler_run.timed(sample, Setting(4, 10_000, 10_000, 1))[1] == pytest.approx(79.98)
    assert calls[7:] == [4, 4, 10_000]


def test_overhead_is_a_long_run_less_a_short_one(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(samplers_overhead.time, "process_time", lambda: now[0])

    def sample(draws):
        now[0] += 100.0 + 0.5 * draws

    assert samplers_overhead.extra(sample, 40) == 20.0


# --- workers


def test_a_worker_hands_back_draws_and_times(monkeypatch, tmp_path, capsys):
    def stand_in(posterior: Target, setting: Setting) -> Run:
        q = setting.starts(posterior.size)[:, None] * np.ones((setting.draws, 1))
        return Run(posterior.finish(q, np.random.default_rng(0)), 1.0, 2.0, 3.0, 4)

    module = sys.modules[__name__]
    monkeypatch.setattr(module, "stand_in", stand_in, raising=False)
    monkeypatch.setitem(sys.modules, "benchmarks.stand_in", module)
    entrant = sampler_worker.Entrant("numpy", "stand_in:stand_in", "centred")
    monkeypatch.setitem(sampler_worker.ENTRANTS, "nutpie, centred", entrant)
    out = tmp_path / "out.npz"
    assert sampler_worker.main(["linear 20 4", "nutpie, centred", str(out), "--draws", "3", "--chains", "2"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {
        "seconds": 1.0,
        "cpu": 2.0,
        "compiling": 3.0,
        "gradients": 4,
        "diverging": 0,
        "version": np.__version__,
    }
    with np.load(out) as draws:
        assert draws["w"].shape == (2, 3, 4) and draws["log_beta"].shape == (2, 3)


def test_a_peer_that_is_not_installed_is_named(monkeypatch, capsys):
    entrant = sampler_worker.Entrant("a_package_that_nobody_has", "nowhere:nothing")
    monkeypatch.setitem(sampler_worker.ENTRANTS, "nutpie", entrant)
    assert sampler_worker.main(["gp 9", "nutpie", "nowhere.npz"]) == sampler_worker.NOT_INSTALLED
    assert "a_package_that_nobody_has" in json.loads(capsys.readouterr().out)["missing"]


def test_our_models_are_the_posterior_of_the_peers(rng):
    from benchmarks.sampler_ours import our_model, plain_model

    problem = regression("linear 20 4")
    q = rng.standard_normal((2, 6))
    expected = np.diff([oracle("linear 20 4", "centred", one) for one in q])
    for model in (our_model(problem), plain_model(problem)):
        logp = model.compile_logp(mode="FAST_COMPILE")
        values = [
            logp({"alpha_log__": np.asarray(one[0]), "beta_log__": np.asarray(one[1]), "w": one[2:]}) for one in q
        ]
        np.testing.assert_allclose(np.diff(values), expected, rtol=1e-8)


def test_our_gaussian_process_is_the_posterior_of_the_peers(rng):
    import bayessel as bs

    case = target("gp 15")
    logp = bs.models.gp(case.data["X"], case.data["t"]).compile_logp(mode="FAST_COMPILE")
    q = rng.standard_normal((2, 12)) - 1.0
    expected = np.diff([case.density(one, case.data, NUMPY) for one in q])
    np.testing.assert_allclose(np.diff([logp({"theta": one}) for one in q]), expected, rtol=1e-8)


@pytest.mark.slow
def test_our_gibbs_contestants_find_the_posterior():
    from benchmarks.sampler_ours import gibbs, gibbs_in_pymc

    problem, setting = regression("linear 20 4"), Setting(2, 20, 200, 1)
    runs = [gibbs(problem, setting, "plain"), gibbs_in_pymc(problem, setting)]
    one, other = (sampler_race.worth(quantities("linear 20 4", run.draws)) for run in runs)
    assert sampler_race.difference(one, other) < 4.5 and max(one.rhat, other.rhat) < 1.1
    assert all(run.seconds > 0 and run.cpu > 0 for run in runs)
    assert runs[0].gradients and runs[1].gradients is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["samplers", "samplers_gradient", "samplers_overhead", "samplers_gp"])
def test_rehearsals_of_the_samplers_run(name, tmp_path):
    assert main(["--only", name, "--quick", "--threads", "1", "--out", str(tmp_path)]) == 0
    entry = json.loads((tmp_path / f"{name}.quick.json").read_text())
    assert entry["tables"][0]["rows"]
    assert all(v["met"] for v in entry["verdicts"] if "MCSE" in v["label"])
