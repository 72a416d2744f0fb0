"""Differences of losses on several tasks: the model's density, its sampler, what it says beside older analyses.

Guards `bayessel.samplers.loss_differences`, `bayessel.samplers.loss_differences_step`,
`bayessel.models._loss_differences`, `bayessel.diagnostics.delve._verdict`, `bayessel.samplers.whole_model`.
"""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.diagnostics.calibration import geweke, sbc
from bayessel.diagnostics.delve import hierarchical, verdict
from bayessel.models import _loss_differences
from bayessel.samplers import loss_differences
from bayessel.samplers.loss_differences import log_marginal, pooled
from bayessel.samplers.loss_differences_step import DifferencesGibbs
from tests.diagnostics.delve.test_delve_designs import with_moments

PYTHON = {"mode": "FAST_COMPILE"}


def simulated(rng, means, I=6, J=40, omega=0.05, sigma=0.4, nu=3.0):  # noqa: E741
    return {
        f"task {k}": mu + omega * rng.normal(size=(I, 1)) + sigma * rng.standard_t(nu, size=(I, J))
        for k, mu in enumerate(means)
    }


def sample(model, draws=500, chains=2, **kwargs):
    return bs.sample(model, draws=draws, tune=100, chains=chains, cores=1, random_seed=1, progressbar=False, **kwargs)


# --- the model --------------------------------------------------------------------------------------------------------


def test_the_density_written_out(rng):
    tasks = {"a": rng.normal(size=(2, 5)), "b": rng.normal(size=(3, 4)), "c": rng.normal(size=(2, 3))}
    scale = np.array([0.5, 1.0, 2.0])
    model = bs.models.loss_differences(tasks, scale=scale)
    mu_all, tau, mu, omega, sigma, excess = (
        0.3,
        0.7,
        rng.normal(size=3),
        rng.gamma(2.0, size=3),
        rng.gamma(2.0, size=3),
        1.5,
    )
    effect = rng.normal(size=7)
    s = np.sqrt(np.mean(scale**2))
    expected = stats.norm(0, 10 * s).logpdf(mu_all) + stats.halfcauchy(scale=0.3 * s).logpdf(tau) + np.log(tau)
    expected += stats.norm(mu_all, tau).logpdf(mu).sum() + stats.norm.logpdf(effect).sum()
    expected += np.sum(stats.halfcauchy(scale=0.3 * scale).logpdf(omega) + np.log(omega))
    expected += stats.norm(np.log(scale), 1.0).logpdf(np.log(sigma)).sum()
    expected += stats.gamma(2.0, scale=10.0).logpdf(excess) + np.log(excess)
    of_set = np.array([0, 0, 1, 1, 1, 2, 2])
    rows = [row for y in tasks.values() for row in y]
    for k, z, row in zip(of_set, effect, rows, strict=True):
        expected += stats.t(1.0 + excess, mu[k] + omega[k] * z, sigma[k]).logpdf(row).sum()
    point = {
        "mu_all": mu_all,
        "tau_log__": np.log(tau),
        "mu": mu,
        "omega_log__": np.log(omega),
        "set_effect": effect,
        "sigma_log__": np.log(sigma),
        "nu_minus_one_log__": np.log(excess),
    }
    assert_allclose(model.compile_logp(**PYTHON)(point), expected, rtol=1e-10)
    assert list(model.coords["set"]) == ["a[0]", "a[1]", "b[0]", "b[1]", "b[2]", "c[0]", "c[1]"]


def test_one_table_is_one_task_and_scales_are_those_of_the_data(rng):
    y = rng.normal(size=(4, 400))
    model = bs.models.loss_differences(3.0 * y + 50.0, nu=1e5)
    assert {rv.name for rv in model.free_RVs} == {"mu", "omega", "set_effect", "sigma"}
    said = model["mu"].tag.loss_differences["belief"]
    assert_allclose(np.exp(said["log_sigma"]), 3.0, rtol=0.1)
    # more than half ties: the root mean square instead of a median of nil
    ties = np.where(rng.random((4, 400)) < 0.2, y, 0.0)
    said = bs.models.loss_differences(ties)["mu"].tag.loss_differences["belief"]
    assert_allclose(np.exp(said["log_sigma"]), np.sqrt(0.2), rtol=0.2)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"differences": {}}, ValueError, "at least one task"),
        ({"differences": {"a": np.zeros((1, 5))}}, ValueError, r"differences of a must be \(I, J\)"),
        ({"differences": {"a": np.zeros((3, 5))}}, ValueError, "do not vary within training sets"),
        ({"differences": {"a": [[1.0, np.nan], [0.0, 1.0]]}}, ValueError, "differences of a must be finite"),
        ({"differences": {1: np.eye(3), "1": np.eye(3)}}, ValueError, "different names as text, got 1, '1'"),
        ({"differences": np.eye(3), "nu": 1.0}, ValueError, "nu must be above 1"),
        ({"differences": np.eye(3), "nu": -1.0}, ValueError, "nu must be positive"),
        ({"differences": np.eye(3), "scale": 0.0}, ValueError, "scale must be positive"),
        ({"differences": {"a": np.eye(3), "b": np.eye(3)}, "scale": [1.0, 2.0, 3.0]}, ValueError, "scale"),
    ],
)
def test_bad_input(arguments, error, said):
    with pytest.raises(error, match=said):
        bs.models.loss_differences(**arguments)


# --- its sampler ------------------------------------------------------------------------------------------------------


def test_means_integrated_out(rng):
    values, variances = rng.normal(size=5), rng.gamma(2.0, size=5)
    found, expected = [], []
    for mean, variance in ((0.0, 1e-8), (0.3, 2.0), (-4.0, 50.0)):
        found.append(log_marginal(values, variances, mean, variance))
        law = stats.multivariate_normal(np.full(5, mean), np.diag(variances) + variance)
        expected.append(law.logpdf(values))
    assert_allclose(np.diff(found), np.diff(expected), rtol=1e-7)
    wider = log_marginal(values, 2.0 * variances, 0.3, 2.0) - found[1]
    law = stats.multivariate_normal(np.full(5, 0.3), np.diag(2.0 * variances) + 2.0)
    assert_allclose(wider, law.logpdf(values) - expected[1], rtol=1e-10)
    assert_allclose(pooled(values, variances)[0], np.average(values, weights=1.0 / variances), rtol=1e-12)


def small(nu=None, tasks=2):
    """Little data, and means that are not nearly flat: simulators would take for ever to cross their prior."""
    rng = np.random.default_rng(3)
    y = {str(k): rng.normal(size=(2 + k, 3)) for k in range(tasks)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_loss_differences, "FLAT", 1.0)
        return bs.models.loss_differences(y, scale=1.0, nu=nu)


def test_steps_and_their_words():
    model = small()
    assert [type(step) for step in bs.steps(model)] == [DifferencesGibbs]
    assert all("DifferencesGibbs" in line for line in bs.explain_steps(model).splitlines())
    assert [step.name for step in bs.steps(model, mass="dense")][-1] == "persistent_hmc"
    with model:
        pm.Potential("more", -(model["mu"] ** 2).sum())
    assert DifferencesGibbs not in [type(step) for step in bs.steps(model)]
    with pytest.raises(ValueError, match="loss_differences made"):
        DifferencesGibbs(model=model)


def test_ranks_in_short():
    result = sbc(small(), bs.steps, 40, 15, thin=2, tune=10, random_seed=1, progressbar=False)
    assert result.ok, result.text


def joint(model, draws=1000, thin=5, marginal=8000):
    """In this process, where bugs are planted; fewer draws leave ω, half-Cauchy, open and see wrong weights rarely."""
    sizes = {"thin": thin, "tune": 0, "marginal": marginal, "n_jobs": 1}
    return geweke(model, bs.steps, draws, **sizes, random_seed=2, progressbar=False)


def test_the_joint_distribution_in_short():
    result = joint(small(nu=4.0, tasks=1))
    assert result.ok, result.text


def wrong_weights(monkeypatch):
    """λ ~ Gamma(ν/2, …) as in the prior, instead of Gamma((ν + 1)/2, …)."""
    right = loss_differences.sweep

    class Fewer:
        def __init__(self, rng):
            self.rng = rng

        def __getattr__(self, name):
            return getattr(self.rng, name)

        def standard_gamma(self, shape, size):
            return self.rng.standard_gamma(shape - 0.5, size)

    monkeypatch.setattr("bayessel.samplers.loss_differences_step.sweep", lambda rng, *rest: right(Fewer(rng), *rest))


def stale_centre(monkeypatch):
    """ω drawn with its means integrated out, but about nil instead of μ₀."""
    right = loss_differences._size_of_effects

    def wrong(rng, x, values, variances, mean, sd, scale):
        return right(rng, x, values, variances, 0.0, 0.1 * sd, scale)

    monkeypatch.setattr(loss_differences, "_size_of_effects", wrong)


@pytest.mark.parametrize("bug", [wrong_weights, stale_centre])
def test_the_joint_distribution_sees_bugs(bug, monkeypatch):
    bug(monkeypatch)
    assert joint(small(nu=4.0, tasks=1)).failed


@pytest.mark.slow
def test_ranks():
    result = sbc(small(), bs.steps, 500, 31, thin=3, tune=50, random_seed=1, progressbar=False)
    assert result.ok, result.text


@pytest.mark.slow
@pytest.mark.parametrize(("nu", "tasks"), [(4.0, 1), (None, 2)])
def test_the_joint_distribution(nu, tasks):
    result = joint(small(nu, tasks), 4000, 4, 10_000)
    assert result.ok, result.text


@pytest.mark.slow
def test_nuts_agrees(rng):
    model = bs.models.loss_differences(simulated(rng, [0.1, -0.1, 0.0]))
    ours = sample(model, 3000, 4)
    settings = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
    with model:
        nuts = pm.sample(2000, tune=2000, chains=4, cores=1, target_accept=0.95, random_seed=1, **settings)
    for name in ("mu_all", "tau", "mu", "omega", "sigma", "nu"):
        a, b = (one.posterior[name].values for one in (ours, nuts))
        a, b = (x.reshape(*x.shape[:2], -1) for x in (a, b))
        for k in range(a.shape[2]):
            error = np.hypot(*(float(az.mcse(x[:, :, k])) for x in (a, b)))
            assert abs(a[:, :, k].mean() - b[:, :, k].mean()) < 4.5 * error, (name, k)


def test_new_data_and_restored_states_are_seen(rng):
    model = bs.models.loss_differences({"a": rng.normal(size=(2, 3)), "b": rng.normal(size=(4, 3))}, scale=1.0)
    step, other = DifferencesGibbs(model=model), DifferencesGibbs(model=model)
    for one in (step, other):
        one.setup_chain(np.random.default_rng(0), 0, 1)
    point = model.initial_point()
    for _ in range(3):
        point, _ = step.step(point)
    other.sampling_state = step.sampling_state
    for _ in range(3):
        (mine, _), (theirs, _) = step.step(point), other.step(point)
        assert list(mine) == list(point) and all(np.array_equal(mine[name], theirs[name]) for name in mine)
        point = mine
    with model:
        pm.set_data({"y_data": 12.0 + model["y_data"].get_value()})
    step.data_changed()
    for _ in range(200):
        point, _ = step.step(point)
    assert np.all(point["mu"] > 6.0)


def test_one_core_and_two_give_the_same_draws():
    model = small()
    one, two = (
        bs.sample(model, draws=30, tune=5, chains=2, cores=cores, random_seed=3, progressbar=False) for cores in (1, 2)
    )
    for name in ("mu", "nu", "set_mean", "tau"):
        np.testing.assert_array_equal(one.posterior[name], two.posterior[name])


# --- what it says -----------------------------------------------------------------------------------------------------


def test_what_was_put_in_is_found(rng):
    means = rng.normal(0.1, 0.1, size=5)
    trace = sample(bs.models.loss_differences(simulated(rng, means)), 800)
    assert bs.diagnostics.convergence(trace).ok
    truth = {"mu": means, "omega": 0.05, "sigma": 0.4, "nu": 3.0, "mu_all": 0.1, "tau": 0.1}
    for name, value in truth.items():
        draws = trace.posterior[name].values
        draws = draws.reshape(draws.shape[0] * draws.shape[1], -1)
        share = np.mean(draws < np.reshape(value, (1, -1)), axis=0)
        assert np.all((share > 0.001) & (share < 0.999)), name


def test_normal_differences_are_analysed_as_before(rng):
    y = 0.1 + 0.05 * rng.normal(size=(16, 1)) + 0.4 * rng.normal(size=(16, 100))
    old = hierarchical(y)
    trace = sample(bs.models.loss_differences(y, nu=1e6), 1500)
    mu = trace.posterior["mu"].values[..., 0]
    assert abs(mu.mean() - old.mean) < 0.1 * old.std_error
    low, high = old.posterior.interval(0.9)
    assert_allclose(np.quantile(mu, [0.05, 0.95]), [low, high], atol=0.2 * old.std_error)
    assert_allclose(np.mean(mu < 0.05), old.posterior.probability_below(0.05), atol=0.03)
    assert_allclose(trace.posterior["sigma"].mean(), old.sigma_e, rtol=0.03)


def test_the_worked_example_of_the_thesis():
    # P(wrong sign) 2.3 % by eq. 2.16, with four training sets, where priors matter
    y = with_moments(-39.9114, 15.38834, 271.5414, 4, 256)
    mu = sample(bs.models.loss_differences(y, nu=1e6), 3000).posterior["mu"].values
    error = np.sqrt(0.023 * 0.977 / float(az.ess(mu[..., 0])))
    assert abs(np.mean(mu > 0.0) - 0.0233) < 4.0 * error + 0.003


def test_single_cases_do_not_decide(rng):
    y = 0.1 + 0.02 * rng.normal(size=(6, 1)) + 0.2 * rng.normal(size=(6, 60))
    wild = y.copy()
    wild[2, 7] = -300.0
    assert hierarchical(y).p_value < 1e-3 and hierarchical(wild).p_value > 0.2
    centre, spread = [], []
    for table in (y, wild):
        mu = sample(bs.models.loss_differences(table)).posterior["mu"].values
        centre.append(mu.mean())
        spread.append(mu.std())
    assert abs(centre[1] - centre[0]) < spread[0] and spread[1] < 1.5 * spread[0]


def test_methods_that_are_the_same_are_said_to_be(rng):
    y = simulated(rng, [0.0, 0.0, 0.0], I=8, J=100, omega=1e-3, sigma=0.05)
    found = verdict(sample(bs.models.loss_differences(y)), 0.02, methods=("gp", "mlp"))
    assert set(found.table["decision"].iloc[:4]) == {"equivalent"}
    assert "P(gp better)" in found.text and found.converged.ok and 2.0 < found.nu < 5.0
    # which no p-value says: with a narrower region it is not known
    narrow = verdict(sample(bs.models.loss_differences(y)), 1e-4)
    assert set(narrow.table["decision"]) == {"undecided"}


def made_up(rng):
    mu_all, tau = 0.02 + 0.03 * rng.normal(size=(2, 4000)), 0.05 * np.exp(0.3 * rng.normal(size=(2, 4000)))
    mu = mu_all[..., None] + tau[..., None] * rng.normal(size=(2, 4000, 2))
    posterior = {"mu": mu, "omega": rng.gamma(3.0, size=(2, 4000, 2)), "mu_all": mu_all, "tau": tau}
    posterior["nu"] = 1.0 + rng.gamma(3.0, size=(2, 4000))
    return az.from_dict({"posterior": posterior}, coords={"task": ["x", "y"]}, dims={"mu": ["task"], "omega": ["task"]})


def test_probabilities_are_counts(rng):
    trace = made_up(rng)
    found = verdict(trace, 0.03, methods=("left", "right"), probability=0.9)
    mu = trace.posterior["mu"].values
    for draws, name in ((mu[..., 0], "x"), (mu[..., 1], "y"), (mu.mean(axis=-1), "these tasks")):
        row = found.table.loc[name]
        shares = [np.mean(draws < -0.03), np.mean(np.abs(draws) <= 0.03), np.mean(draws > 0.03)]
        assert_allclose(row[["left better", "equivalent", "right better"]].astype(float), shares, rtol=1e-12)
        assert_allclose([row["low"], row["high"]], np.quantile(draws, [0.05, 0.95]), rtol=1e-12)
        assert 0.5 < row["mc_error"] / np.sqrt(0.25 / draws.size) < 1.5
    # a new task: the same by brute force
    new = trace.posterior["mu_all"].values + trace.posterior["tau"].values * rng.normal(size=(50, 2, 4000))
    row = found.table.loc["a new task"]
    assert_allclose(row["right better"], np.mean(new > 0.03), atol=0.01)
    assert_allclose([row["low"], row["high"]], np.quantile(new, [0.05, 0.95]), atol=0.005)
    assert set(found.table["decision"]) == {"undecided"}
    figure = found.plot()
    assert len(figure.axes[0].get_yticks()) == 4
    plt.close(figure)


def test_the_picture_takes_names_as_they_are(rng, tmp_path):
    verdict(made_up(rng), 0.1, methods=(r"a$\foo$", "b")).plot().savefig(tmp_path / "verdict.png")


def test_verdict_refuses(rng):
    trace = made_up(rng)
    with pytest.raises(ValueError, match="rope must be positive"):
        verdict(trace, 0.0)
    for methods in (("a", "a"), ("a", "b", "c"), "AB"):
        with pytest.raises(ValueError, match="two different names"):
            verdict(trace, 0.1, methods=methods)
    with pytest.raises(ValueError, match="needs a trace of"):
        verdict(az.from_dict({"posterior": {"x": np.zeros((2, 10))}}), 0.1)
    with pytest.raises(TypeError, match="group 'posterior'"):
        verdict(3.0, 0.1)
