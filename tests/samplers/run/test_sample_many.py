"""`bs.sample_many`: one compilation for many data sets, the draws of each as if it were alone.

Guards `bayessel.samplers.run.many`, `bayessel.samplers.run.fit_of_data`, `bayessel.samplers.run.data_sets`.
"""

import signal
import warnings
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayessel as bs
from bayessel.errors import SamplingWarning
from bayessel.samplers.run import many
from bayessel.samplers.run.fit_of_data import DataFits
from tests.problems.runs import walk

SHORT = {"draws": 60, "tune": 60, "chains": 2, "random_seed": 3, "progressbar": False}


def bent(y, x=None, container=False):
    """A line with noise of heavy tails: all of it is for HMC. The covariate is a container, the outcome may be one."""
    with pm.Model(coords={"row": range(len(y))}) as made:
        y = pm.Data("y_data", y, dims="row") if container else y
        x = pm.Data("x", np.linspace(-1.0, 1.0, 12) if x is None else x, dims="row")
        level, slope = pm.Normal("level", 0.0, 3.0), pm.Normal("slope")
        noise = pm.HalfNormal("noise", 1.0)
        pm.Deterministic("end", level + slope)
        pm.StudentT("y", nu=4.0, mu=level + slope * x, sigma=noise, observed=y, dims="row")
    return made


@pytest.fixture(scope="module")
def model():
    return bent(np.zeros(12))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    return [{"y": k + rng.normal(size=12)} for k in range(5)]


@pytest.fixture(scope="module")
def whole(model, data):
    return bs.sample_many(model, data, cores=1, **SHORT)


def equal(one, other):
    return all(np.array_equal(one[name].values, other[name].values) for name in one.data_vars)


# --- the same draws -------------------------------------------------------------------------------------------------


def test_neither_cores_nor_company_matter(model, data, whole):
    assert equal(whole.posterior, bs.sample_many(model, data, cores=2, **SHORT).posterior)
    some = bs.sample_many(model, data[:2], cores=1, **SHORT)
    assert equal(some.posterior, whole.posterior.isel(dataset=slice(2)))
    assert not np.isclose(whole.posterior["level"][0], whole.posterior["level"][1]).any()


def test_the_draws_are_those_of_sample(data):
    whole = bs.sample_many(bent(np.zeros(12), container=True), data, cores=1, **SHORT)
    lengths = {name: SHORT[name] for name in ("draws", "tune", "chains")}
    for k in (0, 4):
        alone = bs.sample(
            bent(data[k]["y"], container=True),
            **lengths,
            cores=1,
            random_seed=int(whole.fits["seed"][k]),
            progressbar=False,
        )
        for name in ("level", "slope", "noise"):
            np.testing.assert_array_equal(alone.posterior[name], whole.posterior[name][k])
        np.testing.assert_array_equal(alone.sample_stats["lp"], whole.sample_stats["lp"][k])
        assert alone.attrs["n_gradient_evaluations"] == whole.fits["n_gradient_evaluations"][k]


def test_gibbs_blocks_read_each_data_set_anew():
    """Known noise: the posterior of a mean is a Normal of known moments, given other outcomes and other covariates."""
    rng = np.random.default_rng(1)
    with pm.Model() as made:
        x = pm.Data("x", np.ones(20))
        w = pm.Normal("w", 0.0, 2.0)
        pm.Normal("y", w * x, 0.5, observed=np.zeros(20))
    data = [{"x": rng.normal(size=20), "y": 3.0 + rng.normal(size=20)} for _ in range(3)]
    trace = bs.sample_many(made, data, draws=2000, tune=1, cores=1, random_seed=1, progressbar=False)
    for k, one in enumerate(data):
        precision = 0.25 + (one["x"] ** 2).sum() / 0.25
        mean = (one["x"] * one["y"]).sum() / 0.25 / precision
        draws = trace.posterior["w"].values[k]
        assert abs(draws.mean() - mean) < 4 * (precision * draws.size) ** -0.5
        assert abs(draws.std() * precision**0.5 - 1.0) < 4 * (2 * draws.size) ** -0.5


def test_what_a_data_set_leaves_out_is_as_the_model_has_it(model, data):
    other = {**data[0], "x": np.linspace(2.0, 3.0, 12)}
    mixed = bs.sample_many(model, [other, data[1]], cores=1, **SHORT)
    plain = bs.sample_many(model, data[:2], cores=1, **SHORT)
    assert equal(mixed.posterior.isel(dataset=1), plain.posterior.isel(dataset=1))
    assert not equal(mixed.posterior.isel(dataset=0), plain.posterior.isel(dataset=0))


def test_the_model_is_left_as_it_was(model, data):
    before = model["x"].get_value()
    values = dict(model.rvs_to_values)
    bs.sample_many(model, [{"x": np.linspace(2.0, 3.0, 12), **data[0]}], cores=1, **SHORT)
    assert np.array_equal(model["x"].get_value(), before) and dict(model.rvs_to_values) == values


def test_the_number_of_rows_may_change_where_data_are_containers():
    with pm.Model() as made:
        y = pm.Data("y_data", np.zeros(4))
        mu, s = pm.Normal("mu"), pm.HalfNormal("s", 1.0)
        pm.Deterministic("residuals", y - mu)
        pm.StudentT("y", nu=5.0, mu=mu, sigma=s, observed=y)
    data = {n: {"y": np.linspace(0.0, 1.0, n)} for n in (6, 9)}  # by the variable's own name
    run = SHORT | {"var_names": ["mu", "residuals"], "cores": 1}
    trace = bs.sample_many(made, data, **run)
    assert list(trace.posterior["dataset"].values) == [6, 9] and trace.attrs["variables_dropped"] == "residuals"
    alone = bs.sample_many(made, {9: data[9]}, **(run | {"random_seed": 4}))
    assert alone.posterior["residuals"].shape == (1, 2, 60, 9)
    np.testing.assert_allclose(
        alone.posterior["residuals"].values[..., 3], 0.375 - alone.posterior["mu"].values, atol=1e-12
    )


# --- what comes back ------------------------------------------------------------------------------------------------


def test_the_result_is_by_data_set(whole, model, data, tmp_path):
    assert whole.posterior["level"].dims == ("dataset", "chain", "draw") and "end" not in whole.posterior
    assert whole.attrs["status"] == "complete"
    assert (whole.attrs["datasets"], whole.attrs["datasets_asked"], whole.attrs["failed"]) == (5, 5, 0)
    assert len(set(whole.fits["seed"].values)) == 5
    assert set(whole.fits["verdict"].values) == {"too few draws to judge"}
    labelled = bs.sample_many(
        model, {"a": data[0], "b": data[1]}, var_names=["end", "level"], cores=1, **(SHORT | {"draws": 200})
    )
    assert list(labelled.posterior) == ["end", "level"]
    np.testing.assert_array_equal(labelled.posterior["level"].sel(dataset="b")[:, :60], whole.posterior["level"][1])
    known = bs.diagnostics.convergence(
        xr.DataTree.from_dict({"posterior": labelled.posterior.sel(dataset="a").to_dataset()})
    )
    assert labelled.fits["largest_r_hat"].sel(dataset="a") == pytest.approx(known.table["r_hat"].max())
    labelled.to_netcdf(tmp_path / "fits.nc")
    again = xr.open_datatree(tmp_path / "fits.nc")
    assert equal(again["posterior"].to_dataset(), labelled.posterior) and again["fits"]["seed"].dtype == np.int64


def test_a_data_set_that_fails_does_not_take_the_others_along(data):
    with pm.Model() as made:
        pm.Exponential("y", pm.HalfNormal("rate", 1.0), observed=np.ones(12))
    good = {"y": np.abs(data[0]["y"])}
    with pytest.warns(SamplingWarning, match=r"2 of 3 data sets sampled, 1 failed: .*no starting point of finite"):
        trace = bs.sample_many(made, [good, {"y": -good["y"]}, good], cores=1, **SHORT)
    assert list(trace.posterior["dataset"].values) == [0, 2]
    assert list(trace.fits["status"].values) == ["complete", "failed", "complete"]
    assert "no starting point" in str(trace.fits["reason"].values[1])
    with pytest.raises(ValueError, match="none of the first data sets can be sampled: no starting point"):
        bs.sample_many(made, [{"y": -good["y"]}], cores=1, **SHORT)


def test_doubtful_draws_are_counted(model, data):
    with pytest.warns(SamplingWarning, match=r"of 5 of 5 data sets the draws should not be used: .*fits\.verdict"):
        trace = bs.sample_many(
            model, data, make_steps=lambda m: walk(m), cores=1, **(SHORT | {"draws": 200, "tune": 1})
        )
    assert set(trace.fits["verdict"].values) == {"do not use"} and trace.attrs["not_usable"] == 5


# --- ends that come early -------------------------------------------------------------------------------------------


def test_a_time_budget_gives_back_what_is_done(model, data, whole, monkeypatch):
    clock = iter([0.0, 0.0, 0.0, *[100.0] * 50])
    monkeypatch.setattr("bayessel.work.clock.monotonic", lambda: next(clock))
    trace = bs.sample_many(model, data, cores=1, time_budget=50.0, **SHORT)
    done = trace.attrs["datasets"]
    assert trace.attrs["status"] == "time budget" and 0 < done < 5 and trace.sizes == {}
    assert equal(trace.posterior, whole.posterior.isel(dataset=slice(done)))


def test_ctrl_c_gives_back_what_is_done(model, data, whole, monkeypatch):
    call, seen = DataFits.__call__, []

    def interrupted(self, *arguments):
        seen.append(1)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)
        return call(self, *arguments)

    monkeypatch.setattr(DataFits, "__call__", interrupted)
    trace = bs.sample_many(model, data, cores=1, **SHORT)
    assert trace.attrs["status"] == "interrupted" and list(trace.posterior["dataset"].values) == [0, 1]
    assert equal(trace.posterior, whole.posterior.isel(dataset=slice(2)))


def test_nothing_done_is_no_error(model, data, monkeypatch):
    clock = iter([0.0, *[100.0] * 50])
    monkeypatch.setattr("bayessel.work.clock.monotonic", lambda: next(clock))
    trace = bs.sample_many(model, data, cores=1, time_budget=50.0, **SHORT)
    assert trace.attrs["datasets"] == 0 and len(trace.posterior) == 0


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("datasets", "error", "said"),
    [
        (3, TypeError, "datasets must be a list of mappings"),
        ([], ValueError, "datasets is empty"),
        ([{}], ValueError, "no data set names any data; .* are x, y"),
        ([np.zeros(12)], TypeError, "data set 0 must be a mapping"),
        ([{"y": np.zeros(12)}, {"z": 1.0}], ValueError, "data set 1 names z; .* are x, y"),
        ([{"y": np.zeros(11)}], ValueError, r"y of data set 0 has shape \(11,\), and the model has \(12,\)"),
        ([{"x": np.zeros((12, 2))}], ValueError, r"x of data set 0 has shape \(12, 2\), .*\(any,\)"),
        ({"a": {"y": np.full(12, np.nan)}}, ValueError, "y of data set 'a' must be finite"),
        ([{"y": np.ma.masked_array(np.zeros(12), np.arange(12) == 3)}], ValueError, "has missing values"),
        ([{"y": ["a"] * 12}], TypeError, "must be numbers"),
    ],
)
def test_bad_data(model, datasets, error, said):
    with pytest.raises(error, match=said):
        bs.sample_many(model, datasets)


def test_bad_arguments(model, data):
    with pytest.raises(TypeError, match="make_steps must be a function of a model"):
        bs.sample_many(model, data, make_steps=walk(model))
    with pytest.raises(ValueError, match="var_names names zeta; the model has level"):
        bs.sample_many(model, data, var_names=["zeta"])
    with pm.Model() as counts:
        pm.Poisson("n", pm.HalfNormal("rate"), observed=[1, 2])
    with pytest.raises(ValueError, match="n of data set 0 must be whole numbers"):
        bs.sample_many(counts, [{"n": [0.5, 1.0]}])


def test_a_line_on_a_terminal(model, data, monkeypatch, capfd):
    from rich.console import Console

    monkeypatch.setattr(Console, "is_terminal", True)
    run = SHORT | {"cores": 1, "progressbar": True}
    bs.sample_many(model, data[:2], **run)
    assert "2 of 2 data sets sampled, 0 failed" in capfd.readouterr().err
    bs.sample_many(model, data[:2], quiet=True, **run)
    assert capfd.readouterr().err == ""


# --- how long it takes ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousand_fits_take_less_than_a_minute():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3))
    with pm.Model() as made:
        a, b, s = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 1.0, shape=3), pm.HalfNormal("s", 1.0)
        pm.StudentT("y", nu=4.0, mu=a + X @ b, sigma=s, observed=np.zeros(40))
    data = [{"y": X @ rng.normal(size=3) + rng.standard_t(4, size=40)} for _ in range(1000)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        trace = bs.sample_many(made, data, cores=2, random_seed=1, progressbar=False)
    assert trace.attrs["datasets"] == 1000 and trace.attrs["not_usable"] < 50
    assert trace.attrs["compile_time"] + trace.attrs["sampling_time"] < 60.0


def test_every_name_of_the_fits_is_documented(whole):
    assert all(str(name) in Path(many.__file__).read_text() for name in whole.fits.data_vars)
