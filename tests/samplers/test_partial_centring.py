"""Coordinates of Normal effects between centred and not: the same density, the share that the data have, its gain.

Guards `bayessel.samplers.partial_centring`.
"""

import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from pymc.model.transform.conditioning import change_value_transforms
from scipy import stats

import bayessel as bs
from bayessel.errors import DataMismatchError, SamplingWarning
from bayessel.samplers import partial_centring
from bayessel.samplers.partial_centring import PartlyCentred, PartlyCentredWalk, partly_centred, recoordinated, shares
from bayessel.samplers.run.fingerprint import fingerprints
from bayessel.samplers.step_choice import in_suited_coordinates

RNG = np.random.default_rng(5)
SIZES = np.array([1, 2, 10, 400])
GROUP = np.repeat(np.arange(4), SIZES)
Y = RNG.normal(np.array([0.3, -0.8, 1.1, 0.2])[GROUP], 1.0)


def effects(y=Y, group=GROUP, noise=1.0):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        tau = pm.LogNormal("tau", -0.2, 0.5)
        x = pm.Normal("x", mu, tau, shape=len(SIZES))
        pm.StudentT("y", nu=1e6, mu=x[group], sigma=noise, observed=y)
    return model


def batches():
    """Counts out of few, in many groups: what the data say of each is little."""
    rng = np.random.default_rng(8)
    n = np.full(24, 4)
    with pm.Model() as model:
        level, tau = pm.Normal("level", 0.0, 2.0), pm.HalfNormal("tau", 1.0)
        b = pm.Normal("b", 0.0, tau, shape=24)
        pm.Binomial("y", n, logit_p=level + b, observed=rng.binomial(n, 1.0 / (1.0 + np.exp(-rng.normal(size=24) / 2))))
    return model


def test_the_density_is_the_same_with_its_jacobian():
    model = effects()
    share = np.array([0.0, 0.3, 0.8, 1.0])
    other = change_value_transforms(model, {model["x"]: PartlyCentred(share)})
    logp, logq = model.compile_logp(), other.compile_logp()
    for _ in range(3):
        mu, log_tau, z = RNG.normal(), RNG.normal(), RNG.normal(size=4)
        unit = np.exp(log_tau * (1.0 - share))
        x = (1.0 - share) * mu + unit * z
        here = {"mu": np.array(mu), "tau_log__": np.array(log_tau)}
        assert_allclose(logq(here | {"x_partly_centred__": z}), logp(here | {"x": x}) + np.log(unit).sum(), rtol=1e-12)
        transform = other.rvs_to_transforms[other["x"]]
        back = transform.forward(transform.backward(z, mu, np.exp(log_tau)), mu, np.exp(log_tau)).eval()
        assert_allclose(back, z, rtol=1e-10)


def walk(steps=6, sigma=pm.HalfNormal):
    with pm.Model() as model:
        s = sigma("s", 1.0)
        x = pm.GaussianRandomWalk("x", mu=0.2, sigma=s, init_dist=pm.Normal.dist(0.0, 2.0), steps=steps)
        pm.StudentT("y", nu=1e6, mu=x, sigma=0.8, observed=np.linspace(0.0, 1.0, steps + 1))
    return model


def test_the_density_of_a_walk_is_the_same_with_its_jacobian():
    model, share = walk(), np.array([0.0, 0.3, 0.8, 1.0, 0.5, 0.1])
    other = change_value_transforms(model, {model["x"]: PartlyCentredWalk(share)})
    logp, logq = model.compile_logp(), other.compile_logp()
    for _ in range(3):
        log_s, z = RNG.normal(), RNG.normal(size=7)
        unit = np.exp(log_s * (1.0 - share))
        x = np.cumsum(np.append(z[0], (1.0 - share) * 0.2 + unit * z[1:]))
        there = logp({"s_log__": np.array(log_s), "x": x}) + np.log(unit).sum()
        here = {"s_log__": np.array(log_s), "x_partly_centred__": z}
        assert_allclose(logq(here), there, rtol=1e-12)
        outputs = other.compile_fn(other.replace_rvs_by_values([other["x"]]), inputs=other.value_vars)
        assert_allclose(outputs(here)[0], x, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::bayessel.errors.SamplingWarning")  # some transitions diverge there, and are told
def test_a_walk_whose_scale_reaches_zero_is_right():
    """P(s < e⁻³), against quadrature: chains of the walk itself do not get there."""
    model = walk(steps=3)
    trace = bs.sample(model, draws=2000, chains=4, random_seed=1, progressbar=False)
    y = np.linspace(0.0, 1.0, 4)
    L = np.tril(np.ones((4, 4)))[:, 1:]
    grid = np.linspace(-9.0, 2.5, 2000)
    mean = 0.2 * np.arange(4)
    log_p = np.array(
        [
            stats.multivariate_normal.logpdf(y, mean, 4.0 + np.exp(2.0 * g) * L @ L.T + 0.64 * np.eye(4))
            + stats.halfnorm.logpdf(np.exp(g))
            + g
            for g in grid
        ]
    )
    p = np.exp(log_p - log_p.max())
    narrow = p[grid < -3.0].sum() / p.sum()
    found = (np.log(trace.posterior["s"]) < -3.0).astype(float)
    assert abs(float(found.mean()) - narrow) < 4.0 * float(az.mcse(found, method="mean"))
    assert narrow > 0.01


def test_the_share_is_that_of_the_data():
    """Of n rows with noise 1: nτ² / (nτ² + 1), over the posterior of τ; squared."""
    model = effects()
    found = shares(model, [model["x"]])[model["x"]]
    tau = bs.sample(model, draws=4000, chains=4, random_seed=1, progressbar=False).posterior["tau"].values.ravel()
    expected = [np.mean(n * tau**2 / (n * tau**2 + 1.0)) for n in SIZES]
    assert found[0] == 0.0 and expected[0] ** 2 < 0.35  # too little to count
    assert_allclose(np.sqrt(found[2:]), expected[2:], atol=0.15)
    assert 0.5 < found[2] <= found[3] == 1.0
    assert np.array_equal(found, shares(model, [model["x"]])[model["x"]])


def test_many_elements_are_looked_at_together(monkeypatch):
    model = batches()
    together = shares(model, [model["b"]])[model["b"]]
    monkeypatch.setattr(partial_centring, "DIRECTIONS", 24)
    assert_allclose(together, shares(model, [model["b"]])[model["b"]], atol=0.11)


def test_models_that_cannot_be_copied_stay_as_they_are():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1.0)
        b = pm.Normal("b", 0.0, tau, shape=2, initval=[0.5, 0.5])
        pm.Poisson("y", pm.math.exp(b), observed=[1, 2])
    assert in_suited_coordinates(model) is model
    with pm.Model() as outer, pm.Model("inner", model=outer) as inner:
        b = pm.Normal("b", 0.0, pm.HalfNormal("tau", 1.0), shape=2)
        pm.Poisson("y", pm.math.exp(b), observed=[1, 2])
    assert in_suited_coordinates(inner) is inner


def test_nothing_is_said_of_a_copy_that_is_only_sampled():
    with pm.Model() as model:
        pm.Normal("f_hsgp_coeffs_", 0.0, pm.HalfNormal("tau", 1.0), shape=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = recoordinated(model, {model["f_hsgp_coeffs_"]: PartlyCentred(np.full(2, 0.5))})
    assert "f_hsgp_coeffs__partly_centred__" in other.initial_point()


def test_effects_that_the_data_determine_stay_as_they_are():
    rows = np.repeat(np.arange(4), 500)
    model = effects(RNG.normal(np.array([3.0, -8.0, 11.0, 2.0])[rows], 0.01), rows, 0.01)
    assert partly_centred(model, [model["x"]]) is model


def test_a_scale_with_little_data_mixes():
    run = {"draws": 1000, "chains": 4, "random_seed": 1, "progressbar": False}
    auto = bs.sample(batches(), **run)
    model = batches()
    with pytest.warns(SamplingWarning, match="tau"):
        plain = bs.sample(model, step=bs.steps(model), **run)
    found = [trace.posterior["tau"] for trace in (auto, plain)]
    least = [float(az.ess(tau)) for tau in found]
    assert least[0] > 400 and least[0] > 2.0 * least[1]
    error = np.hypot(*(float(tau.std()) / ess**0.5 for tau, ess in zip(found, least, strict=True)))
    assert abs(float(found[0].mean() - found[1].mean())) < 4.0 * error
    assert "b_partly_centred__" in auto.unconstrained_posterior
    assert auto.posterior["b"].shape == (4, 1000, 24)


def test_runs_go_on_and_initial_values_are_those_of_the_variables(tmp_path):
    given = {"initvals": {"b": np.full(24, 0.5), "tau": 0.7}, "random_seed": 3, "progressbar": False, "chains": 2}
    whole = bs.sample(batches(), draws=60, tune=60, **given)
    part = bs.sample(batches(), draws=20, tune=60, store=tmp_path / "run", **given)
    assert part.attrs["status"] == "complete"
    assert (whole.attrs["model_fingerprint"], whole.attrs["data_fingerprint"]) == fingerprints(batches())
    again = bs.sample(batches(), draws=60, tune=60, store=tmp_path / "run", **given)
    assert again.attrs["resumed_draws"] == 160
    for name in ("b", "tau"):
        assert np.array_equal(again.posterior[name], whole.posterior[name])


def test_a_store_of_other_data_is_told_as_such(tmp_path):
    run = {"draws": 20, "tune": 60, "chains": 1, "progressbar": False, "store": tmp_path / "run"}
    bs.sample(effects(noise=np.ones(len(Y))), **run)
    with pytest.raises(DataMismatchError):
        # data that determine all effects, which stay as they are then
        bs.sample(effects(noise=np.full(len(Y), 1e-3)), **run)


def test_a_density_that_is_nowhere_finite_is_told_by_sampling_itself():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1.0)
        b = pm.Normal("b", 0.0, tau, shape=2)
        pm.Potential("never", -np.inf + 0.0 * b.sum())
        pm.Poisson("y", pm.math.exp(b), observed=[1, 2])
    with pytest.raises(ValueError, match="no starting point of finite log density"):
        bs.sample(model, draws=10, tune=10, chains=1, progressbar=False)
