"""The verdict on a trace: processes of known effective sample size, planted troubles, and real samplers.

Guards `bayessel.diagnostics._convergence`, `bayessel.diagnostics._findings`, `bayessel.diagnostics._trace`,
`bayessel.chains.findings`.
"""

import json

import arviz as az
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import bayessel as bs
from bayessel.chains import findings
from bayessel.chains.findings import _rhat_by_chance
from bayessel.diagnostics import convergence


def ar1(rng, phi, chains=4, draws=1000, size=()):
    """Stationary autoregressive chains with standard normal marginals: ESS of the mean is n (1 − φ)/(1 + φ)."""
    x = rng.standard_normal((draws, chains, *size))
    for k in range(1, draws):
        x[k] = phi * x[k - 1] + np.sqrt(1 - phi**2) * x[k]
    return np.moveaxis(x, 0, 1)


def tree(posterior, sample_stats=None, attrs=None, **kwargs):
    groups = {"posterior": posterior} | ({"sample_stats": sample_stats} if sample_stats else {})
    trace = az.from_dict(groups, **kwargs)
    trace.attrs.update(attrs or {})
    return trace


def kinds(verdict, problems=True):
    return {one.kind for one in (verdict.problems if problems else verdict.findings)}


# --- good draws -----------------------------------------------------------------------------------------------------


def test_independent_draws_pass(rng):
    verdict = convergence(tree({"x": rng.standard_normal((4, 1000)), "w": rng.standard_normal((4, 1000, 3))}))
    assert verdict.ok and not verdict.findings and verdict.advice == ()
    assert set(verdict.table.index) == {"x", "w[0]", "w[1]", "w[2]"}
    assert str(verdict).startswith("Converged as far as 4 chains of 1000 draws can tell; largest R-hat 1.0")


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_effective_sample_size_is_that_of_the_process(rng, phi):
    table = convergence(tree({"x": ar1(rng, phi, draws=4000)})).table
    assert_allclose(table.loc["x", "ess_bulk"], 16_000 * (1 - phi) / (1 + phi), rtol=0.2)
    assert_allclose(table.loc["x", "mcse_over_sd"], np.sqrt((1 + phi) / (1 - phi) / 16_000), rtol=0.15)
    assert abs(table.loc["x", "mean"]) < 5 * table.loc["x", "mcse_over_sd"] and abs(table.loc["x", "sd"] - 1) < 0.1


def test_the_numbers_are_arviz_s(rng):
    trace = tree({"x": ar1(rng, 0.7)})
    row = convergence(trace).table.loc["x"]
    for column, value in [
        ("r_hat", az.rhat(trace)),
        ("ess_bulk", az.ess(trace, method="bulk")),
        ("ess_tail", az.ess(trace, method="tail", prob=(0.05, 0.95))),
    ]:
        assert_allclose(row[column], float(value["x"]), rtol=1e-12)


# --- planted troubles -------------------------------------------------------------------------------------------------


def test_too_few_effective_draws_say_how_many_more(rng):
    verdict = convergence(tree({"slow": ar1(rng, 0.97), "fast": rng.standard_normal((4, 1000))}))
    assert not verdict.ok and "ess_bulk" in kinds(verdict)
    assert verdict.table.index[0] == "slow"
    assert "draws per chain would do at this pace" in str(verdict) and "fast" not in str(verdict).split("Too few")[1]
    # 4000 draws are worth about 61; 400 are needed
    asked = int(str(verdict).split("About ")[1].split()[0])
    assert 4_000 < asked < 20_000
    assert convergence(tree({"slow": ar1(rng, 0.97, draws=asked)})).table.loc["slow", "ess_bulk"] > 250


def test_a_shifted_chain_is_named(rng):
    x = rng.standard_normal((4, 500))
    x[2] += 4.0
    verdict = convergence(tree({"x": x, "y": rng.standard_normal((4, 500))}))
    assert not verdict.ok and "rhat" in kinds(verdict)
    assert "chain 2 is elsewhere" in str(verdict) and "x (" in str(verdict) and "y (" not in str(verdict)
    assert verdict.table.index[0] == "x" and verdict.table.loc["x", "r_hat"] > 1.2
    assert any("another mode" in one for one in verdict.advice)


def test_chains_that_drift_have_not_mixed(rng):
    x = rng.standard_normal((4, 500)) + np.linspace(0, 1.5, 500)
    verdict = convergence(tree({"x": x}))
    assert "rhat" in kinds(verdict) and "have not mixed" in str(verdict)


def test_what_chance_does_to_many_variables_is_no_problem(rng):
    # the largest of 50 R-hats of short chains is nearly always above the limit
    verdicts = [convergence(tree({"w": rng.standard_normal((2, 200, 50))})) for _ in range(3)]
    assert all(one.ok for one in verdicts)
    assert any("rhat-chance" in kinds(one, problems=False) for one in verdicts)
    shifted = rng.standard_normal((2, 200, 50))
    shifted[1, :, 7] += 0.8
    assert not convergence(tree({"w": shifted})).ok


def test_chance_excuses_what_it_does_and_no_more(rng):
    """Means of eight half-chains at 1600 effective draws: the excess of their R-hat that one in a hundred passes."""
    means = rng.standard_normal((100_000, 8)) * np.sqrt(8 / 1600)
    limit = np.quantile(np.sqrt(1.0 + means.var(axis=1, ddof=1)), 0.99)

    def excused(r_hat):
        return bool(r_hat <= _rhat_by_chance(np.array([1600.0]), 4, 1)[0])

    assert excused(1.0 + 0.95 * (limit - 1.0))
    assert not excused(1.0 + 1.05 * (limit - 1.0))


def test_stuck_chains_are_named(rng):
    x, y = rng.standard_normal((2, 4, 500))
    x[1] = 0.3
    y[3, 200:320] = y[3, 200]
    counts = rng.poisson(0.01, size=(4, 500)).astype(float)  # whole numbers may repeat
    verdict = convergence(tree({"x": x, "y": y, "k": counts}))
    assert "stuck" in kinds(verdict)
    assert verdict.table.loc["x", "note"] == "stuck in chain 1" and verdict.table.loc["y", "note"] == "stuck in chain 3"
    assert verdict.table.loc["k", "note"] == ""


def test_ordinary_rejections_are_not_called_stuck(rng):
    stays = rng.random((4, 2000)) < 0.77
    x = rng.standard_normal((4, 2000))
    for k in range(1, 2000):
        x[:, k] = np.where(stays[:, k], x[:, k - 1], x[:, k])
    assert "stuck" not in kinds(convergence(tree({"x": x})), problems=False)


def test_constants_are_mentioned_and_no_more(rng):
    verdict = convergence(tree({"x": rng.standard_normal((4, 500)), "c": np.full((4, 500), 2.5)}))
    assert verdict.ok and kinds(verdict, problems=False) == {"constant"}
    assert verdict.table.index[-1] == "c" and verdict.table.loc["c", "mean"] == 2.5
    nothing = convergence(tree({"c": np.full((4, 500), 2.5)}))
    assert not nothing.ok and "stands still" in str(nothing)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_a_problem(rng, bad):
    w = rng.standard_normal((4, 500, 2))
    w[1, 7, 1] = bad
    verdict = convergence(tree({"w": w}))
    assert not verdict.ok and "finite" in kinds(verdict)
    assert verdict.table.index[0] == "w[1]" and "w[1] has draws that are infinite or not a number" in str(verdict)
    assert np.isfinite(verdict.table.loc["w[0]", "r_hat"])


def test_one_chain_and_few_draws(rng):
    verdict = convergence(tree({"x": rng.standard_normal((1, 2000))}))
    assert kinds(verdict) == {"chains"} and "1 chain of 2000 draws" in str(verdict)
    short = convergence(tree({"x": rng.standard_normal((4, 30))}))
    assert "draws" in kinds(short) and "30 draws per chain" in str(short)
    assert not convergence(tree({"x": rng.standard_normal((2, 3))})).ok


def test_divergences_energy_and_trees(rng):
    good = {"x": rng.standard_normal((4, 500))}
    diverging = np.zeros((4, 500), dtype=bool)
    diverging[0, :6] = True
    verdict = convergence(tree(good, {"diverging": diverging}))
    assert kinds(verdict) == {"divergences"} and "6 of 2000 transitions diverged (0.3%)" in str(verdict)
    energy = rng.standard_normal((4, 500))
    energy[2] = ar1(rng, 0.95, 1, 500)[0]  # BFMI 2 (1 − 0.95) = 0.1
    trace = tree(good, {"energy": energy})
    verdict = convergence(trace)
    assert kinds(verdict) == {"bfmi"} and "in chain 2" in str(verdict)
    assert f"BFMI {float(az.bfmi(trace)['energy'][2]):.2f}" in str(verdict)
    for name in ("reached_max_treedepth", "maxdepth_reached"):
        verdict = convergence(tree(good, {name: np.arange(2000).reshape(4, 500) % 10 == 0}))
        assert kinds(verdict) == {"treedepth"} and "200 of 2000 trajectories" in str(verdict)
        assert convergence(tree(good, {name: np.arange(2000).reshape(4, 500) == 7})).ok


def test_isolated_divergences_are_a_note(rng):
    x, diverging = rng.standard_normal((4, 1000)), np.zeros((4, 1000), dtype=bool)
    diverging.flat[rng.choice(4000, size=8, replace=False)] = True
    verdict = convergence(tree({"x": x}, {"diverging": diverging}))
    assert verdict.ok and "8 of 4000 transitions diverged (0.2%), here and there" in str(verdict)
    # as many in the neck of a funnel are none
    diverging[:] = False
    diverging.flat[np.argsort(x, axis=None)[:8]] = True
    verdict = convergence(tree({"x": x, "y": rng.standard_normal((4, 1000))}, {"diverging": diverging}))
    assert kinds(verdict) == {"divergences"} and "they lie together, at low values of x" in str(verdict)
    # one place that a chain did not leave for some draws is one place
    diverging[:] = False
    diverging[2, 100:108] = True
    assert convergence(tree({"x": x}, {"diverging": diverging})).ok


def test_divergences_lie_together_by_chance_no_more_often_than_said(rng):
    alarms = 0
    for _ in range(300):
        x, diverging = rng.standard_normal((4, 500, 5)), np.zeros((4, 500), dtype=bool)
        diverging.flat[rng.choice(2000, size=4, replace=False)] = True
        alarms += bool(findings.sampler({"diverging": diverging}, list("abcde"), x)[0].problem)
    assert alarms <= 10  # three are expected at most


def test_an_indicator_that_rests_is_not_stuck(rng):
    """It is constant in one chain because it is rare, or switches another variable on and off."""
    seldom = (rng.random((4, 1000)) < 0.004).astype(float)
    seldom[1] = 0.0
    switched = np.where(rng.random((4, 1000)) < 0.01, 0.7, 0.3)
    switched[2] = 0.3
    verdict = convergence(tree({"z": seldom, "s": switched, "x": rng.standard_normal((4, 1000))}))
    assert "stuck" not in kinds(verdict, problems=False), verdict.text
    # but one that is 1 in some chains and 0 in others has not mixed, though none of its chains moved
    apart = np.repeat([[0.0], [1.0], [1.0], [0.0]], 1000, axis=1)
    verdict = convergence(tree({"z": apart, "x": rng.standard_normal((4, 1000))}))
    assert "rhat" in kinds(verdict) and "z (inf)" in str(verdict)


def test_two_chains_that_stay_at_one_start_are_stuck(rng):
    x = rng.standard_normal((4, 500))
    x[1], x[3] = 0.3, 0.3
    assert convergence(tree({"x": x})).table.loc["x", "note"] == "stuck in chain 1, 3"


def test_time_and_what_it_went_to(rng):
    attrs = {"sampling_time": 8.0, "step_seconds": json.dumps({"gibbs": 1.0, "persistent_hmc": 3.0})}
    n_steps = np.full((4, 1000), 10)
    verdict = convergence(tree({"x": ar1(rng, 0.9), "y": rng.standard_normal((4, 1000))}, {"n_steps": n_steps}, attrs))
    (time,) = [one for one in verdict.findings if one.kind == "time"]
    assert verdict.ok == (verdict.table["ess_bulk"].min() >= 400) and not time.problem
    assert "persistent_hmc (75%), gibbs (25%)" in time.text and "of x, the slowest" in time.text
    assert "10 gradient evaluations per draw" in time.text
    assert_allclose(verdict.table["ess_per_second"], verdict.table["ess_bulk"] / 8.0)
    assert verdict.seconds == 8.0 and verdict.step_seconds["gibbs"] == 1.0
    # the time of the last call says nothing about draws that earlier calls made
    assert convergence(tree({"x": ar1(rng, 0.9)}, None, {**attrs, "resumed_draws": 5})).seconds is None


def test_a_run_that_ended_early_is_mentioned(rng):
    attrs = {"status": "time budget", "advice": "Give it 20 s more."}
    verdict = convergence(tree({"x": rng.standard_normal((4, 500))}, None, attrs))
    assert verdict.ok and "ended early: time budget. Give it 20 s more." in str(verdict)


def test_labels_are_those_of_the_coordinates(rng):
    trace = tree(
        {"w": rng.standard_normal((4, 500, 2, 2))},
        coords={"row": ["a", "b"], "col": [10, 20]},
        dims={"w": ["row", "col"]},
    )
    assert set(convergence(trace).table.index) == {"w[a, 10]", "w[a, 20]", "w[b, 10]", "w[b, 20]"}
    assert list(convergence(tree({"x": rng.standard_normal((4, 500)), "y": np.ones((4, 500))}), ["x"]).table.index) == [
        "x"
    ]


def test_html_escapes_and_shows_the_table(rng):
    page = convergence(tree({"x<y": ar1(rng, 0.99)}))._repr_html_()
    assert "x&lt;y" in page and "<table" in page and "Do not use these draws yet" in page


def test_bad_input_is_refused(rng):
    with pytest.raises(TypeError, match="a group 'posterior'"):
        convergence(np.zeros((4, 100)))
    with pytest.raises(ValueError, match="no variable is called z; the posterior has x"):
        convergence(tree({"x": rng.standard_normal((4, 100))}), ["z"])


# --- real samplers ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def funnel():
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 3.0)
        pm.Normal("x", 0.0, pm.math.exp(v / 2), shape=4)
    return model


def test_nuts_on_a_funnel_is_not_let_through(funnel):
    trace = pm.sample(
        300,
        tune=200,
        chains=2,
        cores=1,
        model=funnel,
        nuts_sampler="pymc",
        random_seed=1,
        progressbar=False,
        quiet=True,
    )
    verdict = convergence(trace)
    assert not verdict.ok and kinds(verdict) & {"divergences", "rhat", "ess_bulk", "ess_tail"}
    assert verdict.seconds == pytest.approx(trace.posterior.attrs["sampling_time"])
    assert "gradient evaluations per draw" in str(verdict)


def test_our_own_runs_and_nutpie_s_are_understood():
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0, shape=2)
        pm.Deterministic("total", x.sum())
    ours = bs.sample(
        model, draws=300, tune=50, chains=4, cores=1, random_seed=1, step=pm.Slice([x], model=model), progressbar=False
    )
    theirs = pm.sample(300, tune=200, chains=4, cores=1, model=model, random_seed=1, progressbar=False, quiet=True)
    for trace in (ours, theirs):
        verdict = convergence(trace)
        assert verdict.ok, verdict.text
        assert set(verdict.table.index) == {"x[0]", "x[1]", "total"} and verdict.seconds > 0
    assert convergence(ours).step_seconds
