"""Models whose weights have precisions of their own: the choice of steps, simulated ranks, runs.

Guards `bayessel.samplers.conjugacy.sparse_block`, `bayessel.samplers.conjugacy.sparse_marginal`,
`bayessel.samplers.normal_groups`.
"""

import os
import signal
import warnings
from functools import partial

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayessel as bs
from bayessel.diagnostics.calibration import geweke, sbc
from bayessel.errors import StoreWarning
from bayessel.samplers.conjugacy import sparse_block
from bayessel.samplers.gibbs import SparseWeightsGibbs
from tests.problems.runs import process, same, wait_for


def problem(n=30, m=6, seed=0, twins=True):
    """A design, two of whose columns are nearly the same, and targets."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m))
    if twins:
        Phi[:, 1] = Phi[:, 0] + 1e-2 * rng.normal(size=n)
    return Phi, Phi[:, 0] - 0.5 * Phi[:, -1] + 0.3 * rng.normal(size=n)


# --- whole models ----------------------------------------------------------------------------------------------------


def sparse_model(family="gamma"):
    """Weights whose priors are of any family, one of a known prior, a known offset, and a noise."""
    Phi = np.array([[1.0, 0.9, -0.3], [0.2, 0.4, 1.0], [-1.0, -0.8, 0.5], [0.5, 0.7, -1.2]])
    with pm.Model() as model:
        if family == "gamma":
            scale = {"tau": pm.Gamma("alpha", 2.0, 2.0, shape=3)}
            noise = {"tau": pm.Gamma("beta", 3.0, 2.0)}
        else:
            scale = {"sigma": pm.HalfNormal("alpha", 1.5, shape=3)}
            noise = {"sigma": pm.InverseGamma("beta", 4.0, 3.0)}
        w = pm.Normal("w", np.array([0.0, 0.5, 0.0]), **scale, shape=3)
        bias = pm.Normal("bias", 0.3, 0.7)
        pm.Normal("t", Phi @ w + bias + 0.2, **noise, observed=pm.Data("data", np.array([0.3, -1.2, 0.8, 0.1])))
    return model


def ranks(model, replications, **more):
    quick = {"thin": 2, "tune": 15, "random_seed": 4, "progressbar": False, "n_jobs": 1}
    return sbc(model, bs.steps, replications, 31, **quick | more)


def wrong_count(monkeypatch):
    right = sparse_block.collapsed_sweep
    wrong = lambda rng, data, *rest: right(rng, data._replace(rows=data.rows + 3), *rest)  # noqa: E731
    monkeypatch.setattr(sparse_block, "collapsed_sweep", wrong)


@pytest.mark.parametrize("family", ["gamma", "others"])
def test_ranks_in_short(family):
    model = sparse_model(family)
    assert [step.name for step in bs.steps(model)] == ["sparse_weights_gibbs"]
    result = ranks(model, 60)
    assert result.ok, result.text


def test_a_wrong_number_of_rows_is_seen(monkeypatch):
    wrong_count(monkeypatch)
    assert not ranks(sparse_model(), 80).ok


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gamma", "others"])
def test_ranks(family):
    result = ranks(sparse_model(family), 500)
    assert result.ok, result.text


def joint(draws, thin, marginal):
    sizes = {"thin": thin, "tune": 0, "marginal": marginal, "n_jobs": 1}
    return geweke(sparse_model(), bs.steps, draws, **sizes, random_seed=2, progressbar=False)


def test_the_joint_distribution_in_short(monkeypatch):
    result = joint(400, 2, 2000)
    assert result.ok, result.text
    wrong_count(monkeypatch)
    assert not joint(400, 2, 2000).ok


@pytest.mark.slow
def test_the_joint_distribution():
    result = joint(5000, 3, 10_000)
    assert result.ok, result.text


def test_a_rate_above_the_precisions_is_drawn_given_them():
    """HMC of all where the weights can be integrated out; this step where it costs too much."""
    rng = np.random.default_rng(0)
    said = []
    for m in (4, 90):
        with pm.Model() as model:
            rate = pm.Gamma("rate", 2.0, 2.0)
            alpha = pm.Gamma("alpha", 1.0, rate, shape=m)
            w = pm.Normal("w", 0.0, tau=alpha, shape=m)
            pm.Normal("t", rng.normal(size=(20, m)) @ w, 0.3, observed=rng.normal(size=20))
        said.append([step.name for step in bs.steps(model)])
    assert said == [["marginal_hmc"], ["sparse_weights_gibbs", "gamma_precision_gibbs"]]


def test_the_choice_is_told():
    Phi, t = problem()
    lines = bs.explain_steps(bs.models.rvm(Phi, t)).splitlines()
    assert lines == [
        "beta   SparseWeightsGibbs  Gamma prior of a precision; Normal in t; drawn without the weights",
        "alpha  SparseWeightsGibbs  Gamma prior of a precision; Normal in w; drawn without the weights",
        "w      SparseWeightsGibbs  the mean of t is linear in the weights, which have precisions of their own",
    ]
    gone = bs.explain_steps(bs.models.rvm(Phi, t, collapsed=True))
    assert gone.count("SparseWeightsGibbs  Gamma prior of precisions of separate weights") == 2
    for other in (
        bs.models.linear(Phi, t),
        bs.models.rvm(Phi, t, prior="horseshoe"),
        bs.models.rvm(Phi, t, prior="horseshoe", collapsed=True),
    ):
        assert "SparseWeightsGibbs" not in bs.explain_steps(other)
    assert "SparseWeightsGibbs" not in bs.explain_steps(bs.models.rvm(Phi, t), split="conjugate")


def shared_precision(Phi, t):
    alpha = pm.Gamma("alpha", 1.0, 1.0, shape=2)
    w = pm.Normal("w", 0.0, tau=alpha[np.array([0, 0, 0, 1, 1, 1])], shape=6)
    pm.Normal("t", Phi @ w, 1.0, observed=t)


def common_scale(Phi, t):
    w = pm.Normal("w", 0.0, pm.HalfCauchy("lam", 1.0, shape=6) * pm.HalfCauchy("tau", 1.0), shape=6)
    pm.Normal("t", Phi @ w, 1.0, observed=t)


def noise_in_the_prior(Phi, t):
    sigma = pm.HalfNormal("sigma", 1.0)
    w = pm.Normal("w", 0.0, pm.HalfNormal("lam", 1.0, shape=6) * sigma, shape=6)
    pm.Normal("t", Phi @ w, sigma, observed=t)


def random_design(Phi, t):
    width = pm.HalfNormal("width", 1.0)
    w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=6), shape=6)
    pm.Normal("t", pt.dot(pt.exp(-(Phi**2) / width), w), 1.0, observed=t)


def two_targets(Phi, t):
    w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=6), shape=6)
    pm.Normal("t", Phi @ w, 1.0, observed=t)
    pm.Normal("s", Phi[:3] @ w, 2.0, observed=t[:3])


@pytest.mark.parametrize("declare", [shared_precision, common_scale, noise_in_the_prior, random_design, two_targets])
def test_other_structures_are_left_to_other_steps(declare):
    with pm.Model() as model:
        declare(*problem())
    assert "SparseWeightsGibbs" not in bs.explain_steps(model)
    with pytest.raises(ValueError, match="SparseWeightsGibbs needs a conjugate conditional"):
        SparseWeightsGibbs(model.free_RVs, model=model)


def test_known_noises_flat_priors_and_new_data():
    """Rows of known, different precision; a flat bias; and a target that is exchanged."""
    Phi, t = problem()
    sd = np.linspace(0.2, 0.6, len(t))
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfCauchy("lam", 1.0, shape=6), shape=6)
        bias = pm.Flat("bias")
        pm.Normal("t", Phi @ w + bias, sd, observed=pm.Data("data", t))
    assert [step.name for step in bs.steps(model)] == ["sparse_weights_gibbs"]
    quick = {"draws": 400, "tune": 50, "chains": 2, "cores": 1, "random_seed": 1, "quiet": True}
    before = bs.sample(model, **quick).posterior
    pm.set_data({"data": t + 5.0}, model=model)
    after = bs.sample(model, **quick).posterior
    assert float(after["bias"].mean() - before["bias"].mean()) == pytest.approx(5.0, abs=0.05)
    np.testing.assert_allclose(after["w"].mean(("chain", "draw")), before["w"].mean(("chain", "draw")), atol=0.2)


# --- runs ----------------------------------------------------------------------------------------------------


def run(model, **more):
    quick = {"draws": 150, "tune": 50, "chains": 2, "cores": 1, "random_seed": 7, "quiet": True}
    return bs.sample(model, **quick | more)


@pytest.mark.parametrize("gone", [False, True])
def test_cores_and_kills_change_nothing(gone, tmp_path):
    model = bs.models.rvm(*problem(60, 40), collapsed=gone)
    whole = run(model)
    assert whole.attrs["step_seconds"].startswith('{"sparse_weights_gibbs')
    assert same(whole, run(model, cores=2))

    def written():
        return sum(path.stat().st_size for path in tmp_path.glob("chain-*.log"))

    with process(partial(run, model, store=tmp_path)) as child:
        wait_for(lambda: written() > 0)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        assert same(whole, run(model, store=tmp_path))


def sinc(n):
    rng = np.random.default_rng(0)
    x = rng.uniform(-10.0, 10.0, n)
    design = np.column_stack([np.exp(-(np.subtract.outer(x, x) ** 2) / 4.0), np.ones(n)])
    return design, np.sinc(x / np.pi) + 0.1 * rng.standard_normal(n)


def worst_rhat(found):
    return max(
        float(az.rhat(found[name].values.reshape(*found[name].shape[:2], -1)[..., k]))
        for name in ("alpha", "beta", "w")
        for k in range(found[name][0, 0].size)
    )


@pytest.mark.slow
@pytest.mark.parametrize("prior", [{}, {"alpha_shape": 0.01, "alpha_rate": 0.01}])
def test_the_relevance_vector_machine_of_200_rows_by_default(prior):
    """Every precision and weight of 201 with R̂ below 1.01 in 4 × 1000 draws; plain Gibbs has 1.04 under the second."""
    model = bs.models.rvm(*sinc(200), **prior)
    assert worst_rhat(bs.sample(model, cores=1, random_seed=1, quiet=True).posterior) < 1.01
