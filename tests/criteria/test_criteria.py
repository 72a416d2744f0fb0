"""The registry: what each criterion says of a fit, against dense twins written from the definitions.

Guards `bayessel.criteria._criterion`, `bayessel.criteria.capabilities`, `bayessel.criteria.description_length`,
`bayessel.criteria.error_estimates`, `bayessel.criteria.evidence`, `bayessel.criteria.holdout`,
`bayessel.criteria.leave_one_out`, `bayessel.criteria.prequential`, `bayessel.criteria.registry`,
`bayessel.linear.coded_weights`.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import bayessel as bs
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import DELTAS
from bayessel.criteria.holdout import HOLDOUT
from bayessel.criteria.leave_one_out import LOO
from bayessel.criteria.prequential import PREQUENTIAL
from bayessel.criteria.registry import CHARGING, OF_RIDGE, OF_SUMS, from_sums
from bayessel.fit import Evidence, LeaveOneOut
from bayessel.gp import fit_map
from bayessel.linear import fit_evidence, fit_evidence_stream, fit_ridge, fit_rvm, forward_select, search
from bayessel.mlp import fit_network_evidence
from tests.oracles import linear as oracles
from tests.problems.fits import StatedFit

SHAPES = {"fewer rows than columns": (12, 20), "as many": (15, 15), "more rows": (30, 6)}


def problem(shape, seed=1, columns=""):
    """Noise looks like signal with some seeds; the fits of this one do not interpolate, so no digits are lost."""
    n, m = shape
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m))
    if columns == "constant":
        Phi[:, 0] = 1.0
    if columns == "zero":
        Phi[:, 0] = 0.0
    return Phi, Phi[:, : min(m, 3)].sum(axis=1) + 0.5 * rng.normal(size=n)


def values(fit):
    return {name: one.value(fit) for name, one in CRITERIA.items() if one.applies(fit)}


def lengths(Phi, t, w, alpha, beta, n_precisions, n_candidates):
    """Both description lengths from their definitions: densities, cells of weights or precisions, numbers of columns.

    A weight whose column moves the fit by less than a millionth of the noise is not sent.
    """
    sent = np.sqrt(beta) * np.abs(w) * np.linalg.norm(Phi, axis=0) >= 1e-6
    k, constant = int(sent.sum()), 0.5 * len(t) * np.log(2 * np.pi)
    flags = (k + 1) * np.log(n_candidates)
    residuals = stats.norm.logpdf(t, Phi @ w, beta**-0.5).sum() + constant
    C = oracles.evidence_covariance(Phi, alpha, beta)
    evidence = stats.multivariate_normal.logpdf(t, np.zeros(len(t)), C) + constant
    return {
        "mdl-w": -residuals + np.log(np.abs(w[sent])).sum() - k * np.log(0.1) + flags,
        "mdl-alpha": -evidence - n_precisions * np.log(1.0) + flags,
    }


@pytest.mark.parametrize("columns", ["", "constant", "zero"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("engine", [fit_evidence, fit_ridge])
def test_criteria_of_dense_fits(engine, shape, columns):
    Phi, t = problem(shape, columns=columns)
    fit = engine(Phi, t)
    found = values(fit)
    expected = oracles.criteria(Phi, t, fit.alpha / fit.beta)
    for name in OF_RIDGE:
        assert found[name] == pytest.approx(expected[name], rel=1e-6), name
    assert found["evidence"] == pytest.approx(oracles.log_evidence(Phi, t, fit.alpha, fit.beta), rel=1e-8)
    P = oracles.projection(Phi, fit.alpha / fit.beta)
    left = P @ t / np.diag(P)
    density = stats.norm.logpdf(left, scale=(fit.beta * np.diag(P)) ** -0.5).sum()
    assert found["elpd-loo"] == pytest.approx(density, rel=1e-6)
    both = lengths(Phi, t, fit.coef, fit.alpha, fit.beta, 1, Phi.shape[1])
    for name, value in both.items():
        assert found[name] == pytest.approx(value, rel=1e-6), name


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_criteria_of_a_pruned_fit(shape):
    Phi, t = problem(shape)
    fit = fit_rvm(Phi, t)
    found, used = values(fit), Phi[:, fit.basis]
    expected = oracles.criteria(used, t, fit.alpha / fit.beta)
    for name in OF_RIDGE:
        assert found[name] == pytest.approx(expected[name], rel=1e-5), name
    both = lengths(used, t, fit.coef, fit.alpha, fit.beta, len(fit.basis), Phi.shape[1])
    for name, value in both.items():
        assert found[name] == pytest.approx(value, rel=1e-6), name
    assert found["model-evidence"] == fit.model_evidence


def test_criteria_of_a_process_are_those_of_its_smoother(rng):
    """The mean is (I − r²Q⁻¹)t, so with P = r²Q⁻¹ every error estimate is that of a linear model."""
    X = np.sort(rng.uniform(0, 6, 30))[:, None]
    t = np.sin(X[:, 0]) + 0.2 * rng.normal(size=30)
    fit = fit_map(X, t, starts=1)
    # the columns of I − P are the means for unit vectors, at the same hyperparameters
    P = np.eye(30) - np.column_stack([replace(fit, t=one).predict(X).mean for one in np.eye(30)])
    expected, found = oracles.criteria_from_projection(P, t), values(fit)
    for name in OF_RIDGE:
        assert found[name] == pytest.approx(expected[name], rel=1e-6), name
    assert "mdl-w" not in found and "mdl-alpha" not in found
    assert found["model-evidence"] == fit.model_evidence.value


def fits():
    Phi, t = problem((40, 5))
    yield fit_evidence(Phi, t, centre=True)
    yield fit_ridge(Phi, t, criterion="bic")
    yield fit_rvm(Phi, t)
    yield search(Phi, t)
    yield forward_select(Phi, t)
    yield fit_map(Phi[:, :2], t, starts=1)
    yield fit_network_evidence(Phi[:, :1], t, hidden=1, random_state=0)
    yield bs.GPRegressor().fit(Phi[:, :2], t).fit_


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_values_are_the_means_or_sums_of_their_terms():
    for fit in fits():
        for name, one in CRITERIA.items():
            if not one.applies(fit):
                continue
            value = one.value(fit)
            assert isinstance(value, float) and not np.isinf(value), (type(fit).__name__, name)
            if one.terms is not None:
                terms = one.terms(fit)
                assert terms.shape == (fit.n_rows,)
                assert value == pytest.approx(terms.sum() if one.summed else terms.mean(), rel=1e-12)


def test_an_unpenalised_bias_counts_as_a_parameter():
    Phi, t = problem((30, 4))
    fit = fit_evidence(Phi, t + 5.0, centre=True)
    wide = np.column_stack([Phi, np.ones(30)])
    lam = np.append(np.full(4, fit.alpha / fit.beta), 0.0)
    expected = oracles.criteria(wide, t + 5.0, lam)
    for name in OF_RIDGE:
        assert CRITERIA[name].value(fit) == pytest.approx(expected[name], rel=1e-6), name
    assert fit.effective_parameters == pytest.approx(expected["gamma"], rel=1e-6)


def test_a_stream_has_no_rows_to_leave_out():
    Phi, t = problem((30, 4))
    fit = fit_evidence_stream([(Phi, t)])
    assert not LOO.applies(fit) and set(OF_SUMS) <= set(values(fit))


def test_labels_have_log_densities_and_no_squared_errors(rng):
    X = rng.normal(size=(30, 2))
    fit = fit_network_evidence(X, (X[:, 0] > 0).astype(int), kind="logistic", hidden=1, random_state=0)
    assert fit.predicts_labels and not LOO.applies(fit)
    assert CRITERIA["elpd-loo"].value(fit) == pytest.approx(fit.leave_one_out().log_densities.sum())


def test_a_sampled_evidence_is_a_model_evidence():
    fit = StatedFit(evidence=Evidence(-3.0, "sampled", 0.1), left_out=LeaveOneOut.normal(np.ones(4), np.ones(4)))
    found = values(fit)
    assert "evidence" not in found and found["model-evidence"] == -3.0


def test_what_needs_more_than_a_fit_says_so():
    fit = StatedFit()
    for one in (HOLDOUT, PREQUENTIAL):
        assert not one.applies(fit)
        with pytest.raises(ValueError, match="rows held out, or many fits"):
            one.value(fit)
    with pytest.raises(ValueError, match="loo does not follow from"):
        from_sums("loo", 10, 1.0, 5.0)


@pytest.mark.parametrize("name", OF_SUMS)
def test_nothing_left_for_the_noise_is_infinitely_bad(name):
    assert from_sums(name, 10, 1.0, np.array([0.0, -1e-12, 5.0]))[:2].tolist() == [np.inf, np.inf]


def test_entries_are_complete_and_told_apart():
    for name, one in CRITERIA.items():
        assert name == one.name and one.question.endswith(".") and one.distrust.endswith("."), name
        assert one.phrase and one.label and one.unit and one.family, name
        assert one.in_nats == one.unit.startswith("nats")
        assert one.better == ("higher is better" if one.higher_is_better else "lower is better")
        assert one.sign == (1.0 if one.higher_is_better else -1.0)
    for attribute in ("label", "phrase", "question"):
        assert len({getattr(one, attribute) for one in CRITERIA.values()}) == len(CRITERIA)
    assert set(DELTAS) == {"mdl-w", "mdl-alpha"} and set(DELTAS) < set(CHARGING)


@pytest.mark.parametrize(("name", "share"), [("gcv", 0.1), ("loo", 0.1), ("uev", 0.25), ("fpe", 0.25), ("bic", 0.25)])
def test_a_share_of_the_rows_must_be_left_to_the_noise(name, share):
    """A tenth for a ratio of what is left, a quarter for expansions in gamma over N: the advice on interpolation."""
    assert CRITERIA[name].has_meaning(1000, 1000 * (1.0 - share) - 1.0)
    assert not CRITERIA[name].has_meaning(1000, 1000 * (1.0 - share) + 1.0)
