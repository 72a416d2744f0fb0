"""`bs.evidence` as a user calls it: with and without a trace, what it refuses, what it warns of.

Guards `bayessel.marginal_likelihood.audit`, `bayessel.marginal_likelihood.trace_check`,
`bayessel.diagnostics.sampled_fit`.
"""

import warnings

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

import bayessel as bs
from bayessel.errors import DataMismatchError, SamplingWarning

X = np.linspace(-1.0, 1.0, 12)
Y = 1.0 + 2.0 * X + 0.3 * np.random.default_rng(0).normal(size=12)


def counts(n=5):
    """Gamma-Poisson, one rate for each count: n coordinates, closed form."""
    y = np.arange(n) + 1
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2.0, 1.0, shape=n), observed=y)
    return model, float(stats.nbinom.logpmf(y, 2, 0.5).sum())


def polynomial(degree, y=Y):
    with pm.Model() as model:
        b, s = pm.Normal("b", 0.0, 3.0, shape=degree + 1), pm.HalfNormal("s", 1.0)
        pm.Normal("y", np.vander(X, degree + 1, increasing=True) @ b, s, observed=y)
    return model


@pytest.fixture(scope="module")
def counted():
    model, exact = counts()
    trace = bs.sample(model, 1_000, random_seed=1, quiet=True)
    return model, exact, trace, bs.evidence(model, trace, random_seed=2)


def test_one_coordinate_is_integrated_on_a_grid_and_nothing_is_sampled():
    with pm.Model() as model:
        pm.Binomial("heads", 10, pm.Beta("p", 2.0, 2.0), observed=7)
    found = bs.evidence(model)
    exact = gammaln(11) - gammaln(8) - gammaln(4) + betaln(9, 5) - betaln(2, 2)
    assert found.reliable and abs(found.value - exact) < 1e-6 and found.trace is None
    assert [one.name for one in found.routes] == ["quadrature"]


def test_a_normal_model_is_integrated_in_closed_form():
    with pm.Model() as model:
        b = pm.Normal("b", 0.0, 2.0, shape=2)
        pm.Normal("y", b[0] + b[1] * X, 0.5, observed=Y)
    design = np.column_stack([np.ones(12), X])
    exact = stats.multivariate_normal.logpdf(Y, np.zeros(12), 4.0 * design @ design.T + 0.25 * np.eye(12))
    found = bs.evidence(model)
    assert found.routes[0].name == "closed form" and found.value == pytest.approx(exact, abs=1e-6)


def test_random_routes_agree_with_the_truth_and_with_each_other(counted):
    _, exact, _, found = counted
    assert found.reliable and abs(found.value - exact) < 4 * found.error < 0.1
    by_name = {one.name: one for one in found.routes}
    assert {"laplace", "bridge", "bridge, mirrored", "annealing", "annealing, down"} == set(by_name)
    for one in by_name.values():
        assert one.error > 0.0 and one.calls > 0
        if one.reliable:
            assert abs(one.value - exact) < 5 * one.error
    assert found.trace is None and np.isfinite(found.sandwich).all()


def test_the_same_seed_gives_the_same_number(counted):
    model, _, trace, found = counted
    again = bs.evidence(model, trace, random_seed=2)
    assert again.value == found.value and again.error == found.error
    assert bs.evidence(model, trace, random_seed=3).value != found.value


def test_routes_can_be_chosen(counted):
    model, exact, trace, _ = counted
    with pytest.warns(SamplingWarning, match="alone"):
        found = bs.evidence(model, trace, routes=["bridge"], random_seed=1)
    assert {one.name for one in found.routes} == {"bridge", "bridge, mirrored"} and abs(found.value - exact) < 0.1


def test_without_a_trace_the_model_is_sampled_and_the_draws_are_kept():
    model, exact = counts(4)
    found = bs.evidence(model, random_seed=1, quiet=True)
    assert found.reliable and abs(found.value - exact) < 4 * found.error
    assert found.trace is not None and "posterior" in found.trace
    assert found.without_trace().trace is None


def test_a_flat_prior_has_a_number_that_is_not_compared():
    with pm.Model() as model:
        pm.Normal("y", pm.Flat("x"), 1.0, observed=Y)
    found = bs.evidence(model, random_seed=1, quiet=True)
    exact = -0.5 * 11 * np.log(2 * np.pi) - 0.5 * np.log(12) - 0.5 * ((Y - Y.mean()) ** 2).sum()
    assert "flat" in found.comparable and found.value == pytest.approx(exact, abs=1e-5)


def test_what_is_no_model_and_what_cannot_be_integrated_is_refused():
    with pytest.raises(TypeError, match=r"pymc\.Model, got int"):
        bs.evidence(3)
    with pm.Model() as discrete:
        pm.Normal("y", pm.Bernoulli("z", 0.5), 1.0, observed=Y)
    with pytest.raises(TypeError, match=r"z is discrete.*pymc_extras"):
        bs.evidence(discrete)
    with pm.Model() as empty:
        pm.Normal("y", 0.0, 1.0, observed=Y)
    with pytest.raises(ValueError, match="no free variable"):
        bs.evidence(empty)
    with pm.Model() as without_data:
        pm.Normal("x")
    with pytest.raises(ValueError, match="no observed variable"):
        bs.evidence(without_data)
    for wrong, words in ({"routes": ["magic"]}, "routes"), ({"routes": []}, "at least one"), ({"effort": 0}, "effort"):
        with pytest.raises((ValueError, TypeError), match=words):
            bs.evidence(polynomial(1), **wrong)


def test_traces_of_something_else_are_refused(counted):
    model, _, trace, _ = counted
    with pytest.raises(TypeError, match="group 'posterior'"):
        bs.evidence(model, 5)
    with pytest.raises(ValueError, match="no draws of b, s"):
        bs.evidence(polynomial(1), trace)
    line = bs.sample(polynomial(1), 400, tune=400, random_seed=1, quiet=True)
    with pytest.raises(ValueError, match=r"shape \(2,\) in the trace and \(3,\)"):
        bs.evidence(polynomial(2), line)
    with pytest.raises(DataMismatchError, match="other data"):
        bs.evidence(polynomial(1, Y + 1.0), line)
    with pm.Model() as wider:
        b, s = pm.Normal("b", 0.0, 30.0, shape=2), pm.HalfNormal("s", 1.0)
        pm.Normal("y", np.vander(X, 2, increasing=True) @ b, s, observed=Y)
    with pytest.raises(ValueError, match="another model with variables of these names"):
        bs.evidence(wider, line)
    del line.attrs["model_fingerprint"]  # as of another sampler
    with pytest.raises(DataMismatchError, match="other values of y"):
        bs.evidence(polynomial(1, Y + 1.0), line)


def test_chains_that_stand_still_are_no_evidence(counted):
    model, _, trace, _ = counted
    stuck = trace.copy(deep=True)
    stuck["posterior"]["rate"][:] = stuck["posterior"]["rate"].values[:, :1]
    with pytest.warns(SamplingWarning, match="not reliable"):
        found = bs.evidence(model, stuck, routes=["bridge"], random_seed=1)
    assert not found.reliable and not any(one.reliable for one in found.routes)


def test_a_trace_without_a_verdict_is_judged_by_its_draws(counted):
    """Draws that stay for a while: too few for intervals, while R-hat and number are such as a bridge takes."""
    model, _, trace, _ = counted
    slow = trace.copy(deep=True)
    for name in ("verdict", "model_fingerprint"):
        del slow.attrs[name]
    rate = slow["posterior"]["rate"]
    fine = bs.evidence(model, slow, routes=["bridge", "laplace"], random_seed=1)
    assert any(one.reliable and one.name == "bridge" for one in fine.routes)
    values = np.random.default_rng(0).permutation(rate.values.reshape(4_000, 5)).reshape(rate.shape)
    rate[:] = values[:, ::8].repeat(8, axis=1)[:, :1_000]
    with pytest.warns(SamplingWarning, match="not reliable"):
        found = bs.evidence(model, slow, routes=["bridge"], random_seed=1)
    assert all("verdict" in one.reason and not one.reliable for one in found.routes)


def test_models_traces_and_evidences_stand_in_one_table_with_estimators(counted):
    line = bs.sample(polynomial(1), 400, tune=400, random_seed=1, quiet=True)
    bs.evidence(polynomial(1), line).attach(line)
    parabola = bs.evidence(polynomial(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = bs.diagnostics.compare({"line": line, "parabola": parabola, "cubic": polynomial(3)})
    assert list(table.index) == ["line", "parabola", "cubic"]
    gap = float(bs.bayes_factor(bs.evidence(polynomial(1)), parabola))
    assert table.loc["parabola", "difference"] == pytest.approx(gap)
    beside = bs.diagnostics.compare({"line": line, "rvm": bs.RVMRegressor().fit(X[:, None], Y)}, by="elpd-loo")
    assert np.isfinite(beside["elpd-loo"]).all()
    with pytest.raises(DataMismatchError):
        bs.diagnostics.compare({"line": line, "counts": counted[2]}, by="elpd-loo")
