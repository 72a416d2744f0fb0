"""Gaussian processes on the table of comparisons, beside linear models.

Guards `bayessel.diagnostics._compare`.
"""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayessel as bs
from bayessel.covariance import Noise, SquaredExponential
from bayessel.diagnostics import bridge_sampling, compare
from bayessel.errors import DataMismatchError
from bayessel.estimators._sampled_process import ProcessInDataUnits, SampledProcess
from bayessel.estimators.standardise import Standardisation
from bayessel.gp import fit_inducing, fit_map
from bayessel.linear import fit_rvm
from tests.oracles import linear as oracles


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = np.sort(rng.uniform(-3, 3, 50))[:, None]
    return X, 5.0 + 2.0 * np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=50)


@pytest.fixture(scope="module")
def fit(data):
    X, y = data
    return fit_map(X, y, starts=1)


@pytest.fixture(scope="module")
def regressor(data):
    return bs.GPRegressor("map", random_state=0).fit(*data)


def test_every_number_of_a_process(data, fit):
    (X, y), row = data, compare({"gp": fit}).loc["gp"]
    n, r2 = len(y), fit.noise_std**2
    Q = fit.covariance.matrix(fit.theta, X) + r2 * np.eye(n)
    expected = oracles.criteria_from_projection(r2 * np.linalg.inv(Q), y)
    for name in ("gcv", "bic", "gamma"):
        assert row[name] == pytest.approx(expected[name], rel=1e-6), name
    errors, densities = [], []
    for i in range(n):
        rest = np.arange(n) != i
        weights = np.linalg.solve(Q[np.ix_(rest, rest)], Q[rest, i])
        variance = Q[i, i] - weights @ Q[rest, i]
        errors.append(y[i] - weights @ y[rest])
        densities.append(-0.5 * (np.log(2 * np.pi * variance) + errors[-1] ** 2 / variance))
    assert row["loo"] == pytest.approx(np.mean(np.square(errors)), rel=1e-6)
    assert row["elpd-loo"] == pytest.approx(sum(densities), rel=1e-6)
    assert row["evidence"] == fit.log_evidence
    assert row["model-evidence"] == fit.model_evidence.value and row["model-evidence_se"] == 0.0
    assert row["noise_std"] == fit.noise_std
    assert (row["kind"], row["model-evidence_kind"], row["status"]) == ("type2", "laplace", fit.status.name)
    assert np.isnan([row["mdl-w"], row["mdl-alpha"], row["n_basis"]]).all()


def test_an_estimator_is_read_in_the_units_of_the_user(data, regressor):
    """The same numbers from the covariance matrix that its standardised hyperparameters mean for y itself."""
    row = compare({"gp": regressor}).loc["gp"]
    n, inner = len(data[1]), regressor.fit_.mode
    scale = np.exp((inner.log_evidence - regressor.log_evidence_) / n)
    assert scale > 1.2  # else nothing is shown
    r2 = inner.noise_std**2
    Q = inner.covariance.matrix(inner.theta, inner.X) + r2 * np.eye(n)
    expected = oracles.criteria_from_projection(r2 * np.linalg.inv(Q), scale * inner.t)
    for name in ("gcv", "bic", "gamma"):
        assert row[name] == pytest.approx(expected[name], rel=1e-6), name
    errors = inner.leave_one_out().errors
    assert row["loo"] == pytest.approx(np.mean((scale * errors) ** 2), rel=1e-6)
    assert row["evidence"] == regressor.log_evidence_
    assert row["model-evidence"] == pytest.approx(regressor.model_evidence_)
    assert row["elpd-loo"] == pytest.approx(regressor.leave_one_out().log_densities.sum())
    assert row["noise_std"] == regressor.noise_std_


def test_processes_and_linear_models_share_a_table(data, regressor):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.errors.NumericalWarning)
        fits = {
            "gp": regressor,
            "evidence": bs.EvidenceRegressor(width=1.0).fit(X, y),
            "rvm": bs.RVMRegressor(width=1.0).fit(X, y),
        }
    for by in ("evidence", "elpd-loo", "loo", "gcv", "gamma"):
        table = compare(fits, by=by)
        assert set(table.index) == set(fits)
        assert table["difference"].iloc[0] == 0.0 and (table["difference"] >= 0.0).all()
    # all three explain the same data: their densities of left-out rows are not worlds apart
    assert np.ptp(compare(fits)["elpd-loo"]) < 15.0
    alone = compare({"rvm": fits["rvm"]}).loc["rvm"]
    beside = compare(fits).loc["rvm"]
    assert all(beside[name] == alone[name] for name in ("evidence", "model-evidence", "mdl-w", "loo", "status"))
    assert "model-evidence_se" not in compare({"rvm": fits["rvm"]})


def test_model_evidences_of_different_kinds_are_not_ranked(data, fit):
    X, y = data
    fits = {"gp": fit, "rvm": fit_rvm(bs.RBFDictionary(X, 1.0).design(X), y)}
    with pytest.raises(ValueError, match="different kinds"):
        compare(fits, by="model-evidence")
    assert len(compare(fits, by="model-evidence", allow_mixed=True)) == 2


def test_a_bound_has_a_model_evidence_of_its_kind_and_maximum_likelihood_has_none(data, fit):
    X, y = data
    fits = {"gp": fit, "ml": fit_map(X, y, prior=None, starts=1)}
    table = compare(fits, by="model-evidence")  # what has no number is not in the way of those that have one
    assert list(table.index) == ["gp", "ml"] and list(table["model-evidence_kind"]) == ["laplace", ""]
    assert np.isnan(table.loc["ml", "model-evidence"])
    fits["sparse"] = fit_inducing(X, y, n_inducing=5, max_evaluations=3)
    assert compare(fits, allow_mixed=True).loc["sparse", "model-evidence_kind"] == "laplace-bound"
    with pytest.raises(ValueError, match="'gp' has laplace, 'sparse' has laplace-bound"):
        compare(fits, by="model-evidence")


def sampled(fit, draws, scale=1.0):
    """The fit of `GPRegressor(inference="mc")`."""
    units = Standardisation(np.zeros(2), np.ones(2), 5.0, scale)
    engine = SampledProcess(fit, draws, draws[:, -1], fit.status, fit.notes, 0.0)
    return ProcessInDataUnits(engine, units, fit.fingerprint, fit.target_fingerprint)


@pytest.fixture(scope="module")
def draws(data):
    """A fit of three parameters, and random walks over its posterior."""
    X, y = data
    fit = fit_map(X, (y - 5.0) / 2.0, SquaredExponential() + Noise(), starts=1)
    rng = np.random.default_rng(5)
    root = np.linalg.cholesky(np.linalg.inv(fit.hessian))
    chains = []
    for _ in range(2):
        chain = [fit.theta]
        here = fit.log_joint(fit.theta)
        for _ in range(600):
            there = chain[-1] + 1.4 * root @ rng.normal(size=3)
            value = fit.log_joint(there)
            accept = np.log(rng.uniform()) < value - here
            here = value if accept else here
            chain.append(there if accept else chain[-1])
        chains.append(chain[100:])
    return fit, np.array(chains)


def test_draws_give_a_sampled_evidence_with_its_error(draws):
    fit, theta = draws
    row = compare({"mc": sampled(fit, theta, scale=2.0)}).loc["mc"]
    found = bridge_sampling(fit.log_joint, theta)
    assert row["model-evidence_kind"] == "sampled"
    assert row["model-evidence"] == pytest.approx(found.log_evidence - fit.n_rows * np.log(2.0))
    assert row["model-evidence_se"] == found.error
    assert 0.0 < found.error < 0.1
    assert abs(found.log_evidence - fit.model_evidence.value) < 0.2 + 4 * found.error
    with pytest.raises(ValueError, match="different kinds"):
        compare({"mc": sampled(fit, theta), "map": fit}, by="model-evidence")


@pytest.mark.filterwarnings("ignore:.*leave-one-out predictions are unsure")
def test_chains_that_stand_still_have_no_evidence(draws):
    fit, theta = draws
    row = compare({"mc": sampled(fit, np.repeat(theta[:, :1], 20, axis=1))}).loc["mc"]
    assert np.isnan([row["model-evidence"], row["model-evidence_se"]]).all()


@pytest.mark.filterwarnings("ignore:.*leave-one-out predictions are unsure")
def test_a_few_draws_are_not_enough_for_an_evidence(draws):
    fit, theta = draws
    assert compare({"mc": sampled(fit, theta[:, :10])}).loc["mc", "model-evidence_kind"] == "laplace"


def test_different_data_are_refused(data, fit, regressor):
    X, y = data
    with pytest.raises(DataMismatchError, match="targets"):
        compare({"one": fit, "other": fit_map(X, y + 1.0, starts=1)})
    with pytest.raises(DataMismatchError, match="data"):
        compare({"one": fit, "other": fit_map(X + 1.0, y, starts=1)})
    with pytest.raises(DataMismatchError):
        compare({"one": fit, "other": fit_rvm(np.ones((50, 1)), y + 1.0)})
    with pytest.raises(DataMismatchError):
        compare({"one": regressor, "other": bs.EvidenceRegressor().fit(X + 1.0, y)})


def test_a_process_in_a_pipeline_is_found(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), bs.GPRegressor(random_state=0)).fit(X, y)
    assert compare({"pipe": pipe}).loc["pipe", "kind"] == "type2"
