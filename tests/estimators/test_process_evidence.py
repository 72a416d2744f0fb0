"""Evidences of sampled Gaussian processes: the routes of any PyMC model, in units of y; and what `bs.evidence` refuses.

Guards `bayessel.estimators._process_evidence`, `bayessel.marginal_likelihood.fitted_evidence`.
"""

import copy
import pickle

import numpy as np
import pytest
from scipy.special import logsumexp

import bayessel as bs
from bayessel.covariance import Bias, Noise, SquaredExponential
from bayessel.diagnostics import compare
from bayessel.errors import SamplingWarning
from bayessel.fit import Status
from tests.problems.gp import G, wave
from tests.problems.mlp import short_run

pytestmark = pytest.mark.filterwarnings(
    "ignore:CHAINS_DISAGREE", "ignore:.*leave-one-out predictions are unsure", "ignore:Estimated shape parameter"
)
QUICK = {"draws": 150, "tune": 60, "cores": 1, "random_state": 0, "progressbar": False}


@pytest.fixture(scope="module")
def three():
    """A process with three hyperparameters, in units of y that are not standardised."""
    X, y = wave(np.random.default_rng(2), 20)
    model = G("mc", covariance=SquaredExponential(ard=False) + Noise(), **QUICK).fit(X[:, :1], 7.0 * y)
    return model, X[:, :1], 7.0 * y


def on_a_grid(model, X, y):
    """Log p(y) by a grid over the logarithms of three hyperparameters, dense covariances written out."""
    shift, scale = np.median(y), np.abs(y - np.median(y)).mean()
    middle = np.median(X[:, 0])
    x, t = (X[:, 0] - middle) / np.abs(X[:, 0] - middle).mean(), (y - shift) / scale
    prior = model.fit_.mode.prior
    assert list(model.fit_.mode.names) == ["log v0", "log w", "log r2"]
    axes = [np.linspace(-7.0, 7.0, 36), np.linspace(-7.0, 7.0, 36), np.linspace(-12.0, 3.0, 50)]
    # the prior is a product: along each axis, the others at nought
    along = [np.array([prior.log_density(np.eye(3)[k] * one) for one in axis]) for k, axis in enumerate(axes)]
    nought, logs = prior.log_density(np.zeros(3)), []
    for i, v in enumerate(axes[0]):
        for j, w in enumerate(axes[1]):
            K = np.exp(v - 0.5 * np.exp(w) * (x[:, None] - x) ** 2)
            values, vectors = np.linalg.eigh(K)
            spectrum = np.maximum(values, 0.0) + np.exp(axes[2])[:, None]
            like = -0.5 * (np.log(2.0 * np.pi * spectrum) + (vectors.T @ t) ** 2 / spectrum).sum(axis=1)
            logs.append(like + along[0][i] + along[1][j] + along[2] - 2.0 * nought)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    return float(logsumexp(logs) + np.log(cell) - len(y) * np.log(scale))


def test_random_routes_agree_with_a_grid(three):
    model, X, y = three
    truth = on_a_grid(model, X, y)
    before = model.model_evidence_, model.model_evidence_se_
    assert abs(before[0] - truth) < 0.05 + 4.0 * before[1]  # by bridge sampling
    found = bs.evidence(model, random_seed=1)
    assert {one.name for one in found.routes} == {"laplace", "bridge", "bridge, mirrored"}
    assert found.reliable and abs(found.value - truth) < 0.01 + 4.0 * found.error
    # what the routes say of themselves is in these units too
    assert all(abs(one.value - found.value) < 1.0 for one in found.routes)
    assert (found.data_fingerprint, found.target_fingerprint) == (model.fingerprint_, model.target_fingerprint_)
    assert found.status is Status.CONVERGED and found.notes == () and found.n_rows == len(y)
    assert model.model_evidence_ == pytest.approx(found.value) and model.model_evidence_se_ == found.error
    row = compare({"gp": model}, by="model-evidence").loc["gp"]
    assert row["model-evidence"] == pytest.approx(found.value) and row["model-evidence_kind"] == "sampled"
    back = pickle.loads(pickle.dumps(model))
    assert back.model_evidence_ == model.model_evidence_
    back.continue_fit(draws=160)  # the data and the model are the same
    assert back.model_evidence_ == model.model_evidence_
    assert back.fit(X, y).model_evidence_ != model.model_evidence_


def test_two_hyperparameters_go_onto_a_grid():
    """A constant and noise: the determinant and the form of a matrix of ones are known."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 1)), 50.0 + 4.0 * rng.normal(size=12)
    model = G("mc", covariance=Bias() + Noise(), **QUICK).fit(X, y)
    found = model.evidence()
    assert found.used == ("quadrature",) and found.reliable
    scale = np.abs(y - np.median(y)).mean()
    t, prior, n = (y - np.median(y)) / scale, model.fit_.mode.prior, len(y)
    assert list(model.fit_.mode.names) == ["log a0", "log r2"]
    axes = np.linspace(-14.0, 8.0, 441), np.linspace(-6.0, 6.0, 481)
    a, r = np.exp(axes[0])[:, None], np.exp(axes[1])
    form = (t @ t - a * t.sum() ** 2 / (r + n * a)) / r
    logs = -0.5 * (n * np.log(2.0 * np.pi) + (n - 1) * np.log(r) + np.log(r + n * a) + form)
    logs += np.array([[prior.log_density(np.array([one, other])) for other in axes[1]] for one in axes[0]])
    cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    assert found.value == pytest.approx(logsumexp(logs) + np.log(cell) - n * np.log(scale), abs=2e-3)


def test_units_shift_every_route(three):
    model, X, y = three
    other = G(**model.get_params()).fit(X, 8.0 * y)
    one, two = (each.evidence(random_state=2) for each in (model, other))
    for a, b in zip(one.routes, two.routes, strict=True):
        assert a.value - b.value == pytest.approx(len(y) * np.log(8.0), abs=1e-6)
    assert one.verdict == two.verdict


def test_processes_and_networks_have_odds():
    sampled, X, y = short_run()
    network = copy.copy(sampled)  # others use it without an evidence
    process = G("mc", **QUICK).fit(X, y)
    quick = {"n_particles": 10, "n_runs": 3, "updates": 1, "n_leapfrog": 5, "n_pilots": 1}
    with pytest.warns(SamplingWarning, match="UNSURE_EVIDENCE"):
        rough = network.evidence(**quick)
    assert Status.UNSURE_EVIDENCE in rough.notes and rough.status is Status.UNSURE_EVIDENCE
    factor = bs.bayes_factor(process.evidence(), rough)
    assert abs(float(factor)) < 40.0 and not factor.reliable
    # attached to the traces, they stand beside the estimators
    traces = {"gp": process.evidence().attach(process.trace_), "mlp": rough.attach(network.trace_.copy())}
    table = compare(traces | {"fit": process}, by="model-evidence")
    assert table.loc["gp", "model-evidence"] == pytest.approx(table.loc["fit", "model-evidence"])
    assert table.loc["mlp", "model-evidence"] == pytest.approx(rough.value)
    assert table.loc["mlp", "status"] in ("UNSURE_EVIDENCE", "CHAINS_DISAGREE")


def test_what_has_no_draws_is_refused(three, rng):
    model, X, y = three
    with pytest.raises(ValueError, match="use inference='mc'"):
        bs.evidence(bs.GPRegressor("map", random_state=0).fit(X, y))
    with pytest.raises(TypeError, match=r"needs a model or an estimator that has draws.*got RVMRegressor"):
        bs.evidence(bs.RVMRegressor(width=1.0).fit(X, y))
    with pytest.raises(ValueError, match="draws and routes of its own"):
        bs.evidence(model, model.trace_)
    with pytest.raises(ValueError, match="draws and routes of its own"):
        bs.evidence(model, routes=("laplace",))
    with pytest.raises(TypeError, match=r"model must be a pymc\.Model, got int"):
        bs.evidence(3)
    assert np.isnan(bs.GPRegressor("map", random_state=0).fit(X, y).model_evidence_se_)
