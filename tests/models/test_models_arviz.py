"""Every model, whoever samples it, with ArviZ and PyMC's predictive sampling: as written out from dense formulas.

Guards `bayessel.models._joint_normal`, `bayessel.models._row_terms`, `bayessel.models._predict`,
`bayessel.models._predictive`, `bayessel.models._declared`, `bayessel.models._trace_values`, `bayessel.models._weights`,
`bayessel.models._latent_predict`.
"""

import warnings
from functools import cache

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

import bayessel as bs
from tests.problems import pymc_models
from tests.problems.pymc_models import (
    ALPHAS,
    COUNTS,
    HOURS,
    HOURS_NEW,
    JOINT,
    LABELS,
    LATENT,
    MAKERS,
    NEW,
    PHI,
    PHI_NEW,
    SEEN,
    TARGET,
    case_of,
    moments,
)

PYTHON = {"mode": "FAST_COMPILE"}


@cache
def sampled(name, sampler, draws=40):
    """A short trace; its draws need not be good ones to be predicted from."""
    case = case_of(name)
    if sampler == "bs":
        # the network has a sampler of its own, which compiles no graph
        steps = bs.steps(case.model, **({} if name == "mlp" else {"compile_kwargs": PYTHON}))
        return bs.sample(case.model, draws, tune=40, chains=2, cores=1, random_seed=3, step=steps, quiet=True)
    depth = 2 if name == "mlp" else 4  # short trajectories: no chain needs to get anywhere
    python = {"nuts_sampler": "pymc", "compile_kwargs": PYTHON, "nuts": {"max_treedepth": depth}}
    settings = python if sampler == "pm" else {"nuts_sampler": "nutpie"}
    trace = pm.sample(
        draws, tune=40, chains=2, cores=1, random_seed=3, quiet=True, compute_convergence_checks=False,
        model=case.model, **settings,
    )  # fmt: skip
    return pm.compute_log_likelihood(trace, model=case.model, progressbar=False, compile_kwargs=PYTHON)


def quiet(function, *arguments, **named):
    """A result of few draws, about which ArviZ warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **named)


def predictive(trace, model, **named):
    return pm.sample_posterior_predictive(
        trace, model=model, random_seed=1, progressbar=False, compile_kwargs=PYTHON, **named
    )


SAMPLERS = ["pm", "bs", pytest.param("nutpie", marks=pytest.mark.slow)]
#: models whose graphs take plain PyMC long to compile
LONG_GRAPHS = ("mlp", "gp student", "gp counts", "student, varying noise", "counts", "softmax", "width rvm collapsed")
RUNS = [
    pytest.param(name, sampler, marks=[pytest.mark.slow] if sampler == "nutpie" or name in LONG_GRAPHS else [])
    for sampler in ("pm", "nutpie")
    for name in MAKERS
] + [(name, "bs") for name in MAKERS]


@pytest.mark.parametrize(("name", "sampler"), RUNS)
def test_summary_and_leave_one_out(name, sampler):
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    case, trace = case_of(name), sampled(name, sampler)
    table = quiet(az.summary, trace)
    assert {row.partition("[")[0] for row in table.index} == set(trace.posterior.data_vars)
    found = quiet(az.loo, trace, var_name=case.observed)
    assert found.n_data_points == len(TARGET) and np.isfinite(found.elpd)
    if case.joint:
        terms, joint = [], []
        for draw in range(3):
            p = {key: value.values[0, draw] for key, value in trace.posterior.data_vars.items()}
            mean, C, noise = pymc_models.joint(name, p, PHI, SEEN)
            Q = C + noise * np.eye(len(SEEN))
            terms.append(left_out_one_by_one(TARGET - mean, Q))
            joint.append(stats.multivariate_normal(np.zeros(len(Q)), Q).logpdf(TARGET - mean))
        likelihood = trace.log_likelihood
        assert_allclose(likelihood["t"].values[0, :3], terms, rtol=1e-6, atol=1e-6)
        if sampler == "bs":
            assert "leave-one-out conditionals" in likelihood.attrs["terms"] and list(likelihood.data_vars) == ["t"]
            assert_allclose(quiet(az.loo, trace).elpd, found.elpd)
        else:
            total = likelihood["t"].sum("row") + likelihood["t_rest"]
            assert_allclose(total.values[0, :3], joint, rtol=1e-8, atol=1e-8)
            # one number is not taken for one observation
            with pytest.raises(TypeError, match=r"several log likelihood arrays .*t_rest"):
                az.loo(trace)


def left_out_one_by_one(deviation, Q):
    """Each row's density given the others: what is known of them conditioned upon, row after row."""
    found = []
    for i in range(len(Q)):
        rest = np.arange(len(Q)) != i
        gain = np.linalg.solve(Q[np.ix_(rest, rest)], Q[rest, i])
        found.append(stats.norm(gain @ deviation[rest], np.sqrt(Q[i, i] - gain @ Q[rest, i])).logpdf(deviation[i]))
    return found


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_families_on_one_table(sampler):
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    names = ["gp", "linear", "linear collapsed", "rvm collapsed", "mlp"]
    table = quiet(az.compare, {name: sampled(name, sampler) for name in names}, var_name="t", round_to="none")
    assert {*table.index} == {*names} and np.isfinite(table["elpd"]).all()
    alone = quiet(az.loo, sampled("gp", sampler), var_name="t")
    assert_allclose(table.loc["gp", "elpd"], alone.elpd)


@pytest.mark.parametrize(("name", "sampler"), RUNS)
def test_new_rows_are_predicted_by_the_dense_formulas(name, sampler):
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    case, trace = case_of(name), sampled(name, sampler)
    mean, sd = moments(name, trace.posterior)
    found = bs.models.predict(case.model, trace, case.new, exposure=case.exposure, random_seed=1)
    labels, counts = name in LABELS, case.exposure is not None
    assert_allclose(found["mean"], mean, rtol=1e-6, atol=1e-6)
    assert_allclose(found["sd"], np.sqrt(mean * (1.0 - mean)) if labels else sd, rtol=1e-6)
    ahead = bs.models.predictive_model(case.model, case.new, exposure=case.exposure)
    drawn = predictive(trace, ahead, var_names=["f", case.observed], predictions=True).predictions
    if name == "softmax":
        mean, sd = mean @ np.arange(3), np.sqrt(mean @ np.arange(3) ** 2 - (mean @ np.arange(3)) ** 2)
    # 80 draws of equal weight: four standard errors, and the draws of one trace are counted as independent; counts are
    # skewed, and few of them make the most of their variance
    limit = 5.0 if counts else 4.0
    sides = found, drawn
    for draws in (one[case.observed].values.reshape(-1, len(NEW)) for one in sides):
        assert (np.abs(draws.mean(axis=0) - mean) < limit * sd / np.sqrt(len(draws))).all()
        if not labels and not counts:
            assert (np.abs(draws.std(axis=0) / sd - 1.0) < 0.45).all()
    if not labels and not counts:
        for draws in (one["f"].values.reshape(-1, len(NEW)) for one in sides):
            assert (np.abs(draws.mean(axis=0) - mean) < 4.0 * sd / np.sqrt(len(draws))).all()


@pytest.mark.parametrize("sampler", ["pm", "bs"])
@pytest.mark.parametrize("name", JOINT)
def test_predictive_draws_at_the_rows_know_their_targets(name, sampler):
    case, trace = case_of(name), sampled(name, sampler)
    drawn = predictive(trace, case.model).posterior_predictive["t"].values.reshape(-1, len(SEEN))
    seen = bs.models.predict(
        case.model, trace, SEEN[:, None] if name == "gp" or "width" in name else PHI, random_seed=1
    )
    error = seen["sd"].values / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - seen["mean"].values) < 4.5 * error).all()
    # draws from the prior at these parameters have a mean near nought
    assert np.sqrt(np.mean((drawn.mean(axis=0) - TARGET) ** 2)) < 0.5 * np.std(TARGET)


@pytest.mark.parametrize(
    "name", ["linear", "rvm", "width", "logit", "softmax", "student, varying noise", "counts", "mlp"]
)
def test_explicit_models_predict_new_rows_by_set_data(name):
    case, trace = case_of(name), sampled(name, "bs")
    data, target = ("X", "t_data") if name in ("mlp", "width") else ("Phi", f"{case.observed}_data")
    old = case.model[data].get_value(), case.model[target].get_value()
    nothing = np.zeros(len(NEW), dtype=old[1].dtype)
    units, before = ({}, {}) if case.exposure is None else ({"exposure": HOURS_NEW}, {"exposure": HOURS})
    try:
        with case.model:
            pm.set_data({data: case.new, target: nothing, **units}, coords={"row": np.arange(len(NEW))})
            drawn = predictive(trace, case.model, predictions=True).predictions[case.observed]
    finally:
        with case.model:
            pm.set_data({data: old[0], target: old[1], **before}, coords={"row": np.arange(len(SEEN))})
    mean, sd = moments(name, trace.posterior)
    if name == "softmax":
        mean, sd = mean @ np.arange(3), np.sqrt(mean @ np.arange(3) ** 2 - (mean @ np.arange(3)) ** 2)
    assert (np.abs(drawn.mean(("chain", "draw")) - mean) < 4.0 * sd / np.sqrt(80)).all()


@pytest.mark.parametrize("name", ["linear collapsed", "linear, fixed alphas", "rvm collapsed"])
def test_weights_drawn_afterwards_are_those_of_the_posterior(name, rng):
    case = case_of(name)
    posterior = sampled(name, "bs").posterior
    one = {key: value.values[0, 0] for key, value in posterior.data_vars.items()}
    many = {key: np.broadcast_to(value, (1, 4000, *np.shape(value))) for key, value in one.items()}
    trace = az.from_dict({"posterior": many})
    w = bs.models.draw_weights(case.model, trace, random_seed=int(rng.integers(2**31))).values[0]
    alpha, beta = one.get("alpha", ALPHAS), one["beta"]
    Sigma = np.linalg.inv(beta * PHI.T @ PHI + alpha * np.eye(6))
    mu = beta * Sigma @ PHI.T @ (TARGET - one.get("b", 0.0))
    assert (np.abs(w.mean(axis=0) - mu) < 4.0 * np.sqrt(np.diag(Sigma) / len(w))).all()
    error = np.sqrt((Sigma**2 + np.outer(np.diag(Sigma), np.diag(Sigma))) / len(w))
    assert (np.abs(np.cov(w.T) - Sigma) < 4.5 * error).all()


@pytest.mark.parametrize("name", LATENT)
def test_a_latent_function_stands_at_its_rows(name):
    """Predictive draws there are of the function of each draw; at other inputs they would be of another one."""
    case, trace = case_of(name), sampled(name, "bs")
    drawn = predictive(trace, case.model).posterior_predictive["t"].values.reshape(-1, len(SEEN))
    own = trace.posterior["latent"].values.reshape(-1, len(SEEN))
    expected = {"gp student": own, "gp logit": expit(own), "gp counts": HOURS * np.exp(own)}[name].mean(axis=0)
    error = drawn.std(axis=0) / np.sqrt(len(drawn)) + 0.02
    assert (np.abs(drawn.mean(axis=0) - expected) < 4.5 * error).all()
    try:
        with case.model:
            pm.set_data({"X": SEEN[:, None] + 0.1})
        with pytest.raises(ValueError, match="the data in the model are not those of the trace"):
            predictive(trace, case.model)
        with pytest.raises(ValueError, match="the data in the model are not those of the trace"):
            predictive(trace, bs.models.predictive_model(case.model, NEW[:, None]), var_names=["f"])
        with case.model:
            pm.set_data(
                {"X": NEW[:, None], "t_data": case.model["t_data"].get_value()[:5]}, coords={"row": np.arange(5)}
            )
        if case.exposure is None:
            with (
                pytest.warns(UserWarning, match="implicitly frozen"),
                pytest.raises(ValueError, match="the data in the model are not those of the trace"),
            ):
                predictive(trace, case.model)
    finally:
        targets = TARGET > 0.3 if name == "gp logit" else COUNTS if name == "gp counts" else TARGET
        with case.model:
            pm.set_data(
                {"X": SEEN[:, None], "t_data": targets.astype(case.model["t_data"].dtype)},
                coords={"row": np.arange(len(SEEN))},
            )


def test_weights_of_a_model_that_has_them_are_refused():
    with pytest.raises(ValueError, match=r"collapsed=True, got one of bs\.models\.linear that has w"):
        bs.models.draw_weights(case_of("linear").model, sampled("linear", "bs"))


@pytest.mark.parametrize(("n", "m"), [(9, 4), (4, 9), (6, 6), (5, 1)])
@pytest.mark.parametrize("maker", ["linear", "rvm", "gp"])
def test_terms_of_rows_on_designs_of_any_shape(rng, maker, n, m):
    Phi, t = rng.standard_normal((n, m)), rng.standard_normal(n)
    Phi[:, 0] = 1.0
    alpha = rng.gamma(2.0, size=m) + 0.1 if maker == "rvm" else 1.7
    if maker == "gp":
        model = bs.models.gp(Phi, t)
        theta = model.initial_point()["theta"] + 0.3 * rng.standard_normal(m + 4)
        covariance = bs.covariance.Standard()
        Q, point = covariance.matrix(theta, Phi) + covariance.noise(theta, m) * np.eye(n), {"theta": theta}
    else:
        model = getattr(bs.models, maker)(Phi, t, collapsed=True)
        Q = (Phi / alpha) @ Phi.T + np.eye(n) / 2.2
        point = {"alpha_log__": np.log(alpha), "beta_log__": np.log(2.2)}
    terms, rest = model.compile_logp(model.observed_RVs, sum=False, **PYTHON)(point)
    assert_allclose(terms, left_out_one_by_one(t, Q), rtol=1e-8, atol=1e-8)
    assert_allclose(terms.sum() + rest, stats.multivariate_normal(np.zeros(n), Q).logpdf(t), rtol=1e-9)


@pytest.mark.parametrize("name", ["gp", "linear collapsed", "rvm collapsed"])
def test_samplers_do_not_compute_the_terms(name):
    model = case_of(name).model
    for function in (
        model.logp_dlogp_function(ravel_inputs=True, **PYTHON)._pytensor_function,
        model.compile_logp(**PYTHON).f,
    ):
        assert not [node for node in function.maker.fgraph.toposort() if "RowTerms" in str(node.op)]


@pytest.mark.slow
def test_both_forms_have_the_same_leave_one_out():
    explicit, collapsed = (
        bs.models.linear(PHI, TARGET, bias=True, alpha_shape=2.0, alpha_rate=1.0, collapsed=gone)
        for gone in (False, True)
    )
    found = []
    for model in (explicit, collapsed):
        trace = bs.sample(model, 6000, tune=300, chains=2, random_seed=1, quiet=True)
        parts = [trace.sel(draw=slice(k, k + 749)) for k in range(0, 6000, 750)]
        found.append([float(quiet(az.loo, part, var_name="t").elpd) for part in parts])
    means, errors = np.mean(found, axis=1), np.std(found, axis=1, ddof=1) / np.sqrt(8)
    assert abs(means[0] - means[1]) < 4.0 * np.hypot(*errors) + 0.02


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_a_trace_of_other_data_is_not_predicted_from():
    model = bs.models.gp(SEEN[:, None], TARGET)
    trace = sampled("gp", "bs")
    with model:
        pm.set_data({"t_data": TARGET + 1.0})
    with pytest.raises(ValueError, match="t_data in the model is not the t_data that the trace was sampled from"):
        bs.models.predict(model, trace, NEW[:, None])
    with pytest.raises(ValueError, match="the data in the model are not those of the trace"):
        predictive(trace, bs.models.predictive_model(model, NEW[:, None]), var_names=["f"])


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m, t: bs.models.predict(m, t, PHI_NEW), ValueError, "X must have the 1 columns of X"),
        (lambda m, t: bs.models.predictive_model(m, PHI_NEW), ValueError, "X must have the 1 columns of X"),
        (lambda m, t: bs.models.predict(m, 3, NEW[:, None]), TypeError, "needs the trace that pm.sample"),
        (lambda m, t: bs.models.predict(3, t, NEW[:, None]), TypeError, "model must be a pymc.Model, got int"),
        (lambda m, t: bs.models.predict(pm.Model(), t, NEW[:, None]), ValueError, "a function of bayessel.models"),
        (
            lambda m, t: bs.models.predict(m, sampled("linear", "bs"), NEW[:, None]),
            ValueError,
            "the trace has no theta: it is of another model",
        ),
        (
            lambda m, t: bs.models.predict(bs.models.loss_differences(np.eye(4)), t, NEW[:, None]),
            ValueError,
            "loss_differences has no inputs",
        ),
        (
            lambda m, t: bs.models.predict(m, t, NEW[:, None], exposure=2.0),
            ValueError,
            r"exposure is of counts, and bs\.models\.gp declared no model of them",
        ),
        (
            lambda m, t: bs.models.predictive_model(case_of("gp logit").model, NEW[:, None], exposure=2.0),
            ValueError,
            "exposure is of counts .*, and the likelihood is 'logit'",
        ),
    ],
)
def test_bad_arguments(call, error, said):
    with pytest.raises(error, match=said):
        call(case_of("gp").model, sampled("gp", "bs"))


def test_models_of_estimators_name_their_columns(rng):
    X = pd.DataFrame({"depth": rng.uniform(-2.0, 2.0, 30), "age": rng.uniform(-2.0, 2.0, 30)})
    y = np.sin(X["depth"].to_numpy()) + 0.1 * rng.standard_normal(30)
    process = bs.GPRegressor("map").fit(X, y).to_pymc()
    assert list(process.coords["input"]) == ["depth", "age"]
    for estimator in (
        bs.RidgeRBFRegressor(width=1.0),
        bs.RidgeRBFRegressor(width=1.0, penalty="local"),
        bs.EvidenceRegressor(width=1.0),
        bs.ForwardSelectionRegressor(width=1.0),
        bs.BasisSearchRegressor(width=1.0),
        bs.RVMRegressor(width=1.0),
    ):
        model = estimator.fit(X, y).to_pymc()
        design = model["Phi"].get_value()
        names, known = list(model.coords["basis"]), list(estimator.dictionary_.names)
        whole = estimator.dictionary_.design(X.to_numpy())
        assert_allclose(design, whole[:, [known.index(name) for name in names]], atol=1e-12)


def test_a_trace_without_the_parameters_is_an_error():
    ahead = bs.models.predictive_model(case_of("rvm").model, PHI_NEW)
    with pytest.raises(NotImplementedError, match="flat"):
        predictive(sampled("gp", "bs"), ahead, var_names=["t"])


@pytest.mark.parametrize("likelihood", ["student", "logistic", "softmax"])
def test_networks_with_other_likelihoods(likelihood, rng):
    t = TARGET if likelihood == "student" else (TARGET > 0.0).astype(int)
    model = bs.models.mlp(SEEN[:, None], t, 2, likelihood=likelihood)
    trace = bs.sample(model, 60, tune=30, chains=2, random_seed=1, quiet=True)
    found = bs.models.predict(model, trace, NEW[:, None], random_seed=1)
    drawn = predictive(trace, bs.models.predictive_model(model, NEW[:, None]), var_names=["t"]).posterior_predictive[
        "t"
    ]
    both = [one["t"] if isinstance(one, type(found)) else one for one in (found, drawn)]
    assert {one.shape for one in both} == {(2, 60, 5)}
    if likelihood == "softmax":
        assert found["mean"].dims == ("new_row", "output")
        assert_allclose(found["mean"].sum("output"), 1.0)
        expected = found["mean"].values[:, 1]
    else:
        expected = found["mean"].values
    spread = np.sqrt(0.25 / 120) if likelihood != "student" else drawn.std(("chain", "draw")).values / np.sqrt(120)
    for one in both:
        assert (np.abs(one.mean(("chain", "draw")).values - expected) < 4.5 * spread).all()
