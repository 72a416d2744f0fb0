"""One table for several fits: its numbers by definition, its order, and what it refuses.

Guards `bayessel.diagnostics._compare`, `bayessel.diagnostics.comparable_fits`,
`bayessel.diagnostics.fit_reader`.
"""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel.diagnostics import compare
from bayessel.errors import DataMismatchError
from bayessel.fit import Evidence
from bayessel.linear import fit_evidence, fit_evidence_stream, fit_ridge, fit_rvm
from tests.oracles import linear as oracles
from tests.problems import linear as problems
from tests.problems.fits import StatedFit


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    X = np.linspace(-3, 3, 70)[:, None]
    return X, np.cos(X[:, 0] ** 2) + 0.1 * rng.normal(size=70)


@pytest.fixture(scope="module")
def fits(data):
    X, y = data
    F = bs.RBFDictionary(X, 0.5).design(X)
    return {
        "rvm": fit_rvm(F, y),
        "dense": bs.EvidenceRegressor(width=0.5).fit(X, y),
        "engine": fit_evidence(F[:, :-1], y, centre=True),
        "wide": bs.EvidenceRegressor(width=3.0).fit(X, y),
    }


def refitted_without_each_row(Phi, t, alpha, beta):
    """Residual and variance of every row predicted by the dense posterior of the others."""
    found = []
    for i in range(len(t)):
        rest = np.arange(len(t)) != i
        w, covariance = oracles.posterior(Phi[rest], t[rest], alpha, beta)
        found.append((t[i] - Phi[i] @ w, Phi[i] @ covariance @ Phi[i] + 1 / beta))
    return np.array(found).T


def test_every_number_of_a_sparse_fit(data, fits):
    (X, y), fit = data, fits["rvm"]
    row = compare(fits).loc["rvm"]
    F = bs.RBFDictionary(X, 0.5).design(X)
    Phi = F[:, fit.basis]
    e, v = refitted_without_each_row(Phi, y, fit.alpha, fit.beta)
    P = oracles.projection(Phi, fit.alpha / fit.beta)
    expected = oracles.criteria_from_projection(P, y)
    assert row["evidence"] == pytest.approx(oracles.log_evidence(Phi, y, fit.alpha, fit.beta), rel=1e-8)
    assert row["loo"] == pytest.approx(np.mean(e**2), rel=1e-6)
    assert row["elpd-loo"] == pytest.approx(stats.norm.logpdf(e, scale=np.sqrt(v)).sum(), rel=1e-6)
    for name in ("gcv", "bic", "gamma"):
        assert row[name] == pytest.approx(expected[name], rel=1e-6), name
    assert row["mdl-w"] == pytest.approx(bs.diagnostics.mdl_w(fit), rel=1e-12)
    assert row["mdl-alpha"] == pytest.approx(bs.diagnostics.mdl_alpha(fit), rel=1e-12)
    assert row["noise_std"] == pytest.approx(fit.noise_std)
    assert (row["n_basis"], row["kind"], row["status"]) == (len(fit.basis), "type2", fit.status.name)


@pytest.mark.parametrize("bias", [False, True])
def test_every_number_of_a_dense_fit(data, bias):
    X, y = data
    model = bs.EvidenceRegressor(width=0.5, bias=bias).fit(X, y)
    row = compare({"model": model}).loc["model"]
    kernels = oracles.radial("gaussian", X, X, 0.5)
    Phi = np.column_stack([kernels, np.ones(70)]) if bias else kernels
    alpha = np.full(Phi.shape[1], model.alpha_)
    alpha[70:] = 1e-12 * model.alpha_  # a flat prior, nearly
    e, v = refitted_without_each_row(Phi, y, alpha, model.beta_)
    expected = oracles.criteria_from_projection(oracles.projection(Phi, alpha / model.beta_), y)
    assert row["loo"] == pytest.approx(np.mean(e**2), rel=1e-6)
    assert row["elpd-loo"] == pytest.approx(stats.norm.logpdf(e, scale=np.sqrt(v)).sum(), rel=1e-6)
    for name in ("gcv", "bic", "gamma"):
        assert row[name] == pytest.approx(expected[name], rel=1e-6), name
    assert row["evidence"] == pytest.approx(model.log_evidence_)
    assert row["model-evidence"] == pytest.approx(model.fit_.model_evidence)
    assert row["n_basis"] == model.n_basis_ == 70 + bias


def test_an_estimator_and_its_engine_agree(fits):
    table = compare(fits)
    left, right = table.loc["dense"], table.loc["engine"]
    numbers = [name for name in table.columns if name not in ("kind", "status", "seconds")]
    np.testing.assert_allclose(left[numbers].astype(float), right[numbers].astype(float), rtol=1e-7)


def test_a_relevance_vector_machine_beside_its_engine_and_a_dense_fit(data, fits):
    X, y = data
    model = bs.RVMRegressor(width=0.5).fit(X, y)
    table = compare(fits | {"model": model})
    assert model.fingerprint_ == fits["dense"].fingerprint_
    assert table.loc["model", "evidence"] == pytest.approx(model.log_evidence_)
    assert table.loc["model", "n_basis"] == model.n_basis_
    alone = compare({"model": model, "engine": model.fit_})
    numbers = [name for name in table.columns if name not in ("kind", "status", "seconds")]
    np.testing.assert_array_equal(*alone[numbers].to_numpy(dtype=float))
    with pytest.raises(DataMismatchError, match="different data"):
        compare(fits | {"model": bs.RVMRegressor(width=0.5).fit(X + 1e-9, y)})


def test_a_design_too_large_to_keep_its_rows(rng):
    """Leave-one-out from the predictions, of the estimator and of the engine; a stream has no rows to leave out."""
    X = rng.uniform(0, 1, size=(900, 1))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=900)
    centers = np.linspace(0, 1, 60)[:, None]
    model = bs.EvidenceRegressor(width=0.1, centers=centers).fit(X, y)
    assert model.fit_.spectrum.U is None
    body = bs.RBFDictionary(centers, 0.1, bias=False).design(X)
    streamed = bs.linear.fit_evidence_stream([(body, y)], centre=True)
    table = compare({"model": model, "engine": fit_evidence(body, y, centre=True), "stream": streamed})
    kept = fit_evidence(bs.linear.Spectrum.of(body, y, centre=True, rows=True))
    e, v = kept.leave_one_out().errors, kept.leave_one_out().variances
    for name in ("model", "engine"):
        assert table.loc[name, "loo"] == pytest.approx(np.mean(e**2), rel=1e-8)
        assert table.loc[name, "elpd-loo"] == pytest.approx(stats.norm.logpdf(e, scale=np.sqrt(v)).sum(), rel=1e-8)
    assert table.loc["stream", ["loo", "elpd-loo"]].isna().all()
    assert np.isfinite(table.loc["stream", "gcv"])
    assert list(compare({"stream": streamed, "model": model}, by="loo").index) == ["model", "stream"]
    with pytest.raises(ValueError, match="no fit has a value of 'loo'"):
        compare({"stream": streamed}, by="loo")


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["evidence", "model-evidence", "elpd-loo"])
def test_higher_is_better(fits, by):
    fits = {name: fit for name, fit in fits.items() if name != "rvm"}
    table = compare(fits, by=by)
    assert (table[by].diff().dropna() <= 0).all()
    np.testing.assert_allclose(table["difference"], table[by].max() - table[by])


@pytest.mark.parametrize("by", ["mdl-w", "mdl-alpha", "loo", "gcv", "bic", "gamma", "n_basis", "noise_std"])
def test_lower_is_better(fits, by):
    table = compare(fits, by=by)
    assert (table[by].diff().dropna() >= 0).all()
    np.testing.assert_allclose(table["difference"], table[by] - table[by].min())


def test_the_order_of_equals_is_that_of_the_dict(fits):
    same = {"b": fits["rvm"], "a": fits["rvm"]}
    assert list(compare(same).index) == ["b", "a"]
    assert list(compare(same, by="loo").index) == ["b", "a"]


def test_underscores_are_understood(fits):
    pd.testing.assert_frame_equal(compare(fits, by="mdl_w"), compare(fits, by="mdl-w"))


def test_settings_of_the_description_lengths(fits):
    table = compare(fits, by="mdl-w", delta_w=0.01, delta_alpha=0.5, flags="bernoulli")
    for name, fit in fits.items():
        assert table.loc[name, "mdl-w"] == pytest.approx(bs.diagnostics.mdl_w(fit, 0.01, "bernoulli"))
        assert table.loc[name, "mdl-alpha"] == pytest.approx(bs.diagnostics.mdl_alpha(fit, 0.5, "bernoulli"))


# --- what may be compared ---------------------------------------------------------------------------------------------


def test_other_targets_are_refused_with_both_names(data, fits):
    X, y = data
    other = bs.EvidenceRegressor(width=0.5).fit(X, y + 1e-9)
    with pytest.raises(DataMismatchError, match="different targets") as caught:
        compare(fits | {"other": other})
    for text in ("'rvm'", "'other'", fingerprint(y), fingerprint(y + 1e-9)):
        assert text in str(caught.value)
    for engine in (fit_evidence(X, 2 * y), fit_ridge(X, 2 * y), fit_rvm(X, 2 * y)):
        with pytest.raises(ValueError, match="different targets"):
            compare({"a": fits["rvm"], "b": engine}, allow_mixed=True, by="loo")


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_rows_that_count_differently_are_refused(rng, data):
    """Noise levels make other models of the same rows, weights other rows."""
    X, y = data
    s, w = rng.uniform(0.5, 2.0, len(y)), rng.integers(1, 4, len(y))
    models = [
        bs.EvidenceRegressor(width=0.5),
        bs.RVMRegressor(width=0.5),
        bs.BasisSearchRegressor(width=0.5),
        bs.RidgeRBFRegressor(width=0.5),
    ]
    plain = bs.EvidenceRegressor(width=0.5).fit(X, y)
    for model in models:
        weighted = model.fit(X, y, sample_weight=w)
        for one, other in ((plain, weighted), (weighted.fit_, plain.fit_)):
            with pytest.raises(DataMismatchError, match="'a' and 'b' count the rows differently") as caught:
                compare({"a": one, "b": other}, by="loo")
        assert "same weights" in str(caught.value)
        with pytest.raises(DataMismatchError, match="differently"):
            compare({"a": weighted, "b": bs.EvidenceRegressor(width=0.5).fit(X, y, sample_weight=w + 1)}, by="loo")
        compare({"a": weighted, "b": bs.EvidenceRegressor(width=0.4).fit(X, y, sample_weight=w)}, by="loo")
    known = bs.EvidenceRegressor(width=0.5).fit(X, y, noise_std=s)
    ones = bs.RVMRegressor(width=0.5).fit(X, y, sample_weight=np.ones(len(y)))
    assert set(compare({"plain": plain, "known": known, "ones": ones}).index) == {"plain", "known", "ones"}
    default = bs.RVMRegressor().fit(X, y, noise_std=s, sample_weight=0.5 + w / w.max())
    compare({"estimator": default, "fit": default.fit_})


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_copies_that_count_once_beside_copies_that_count_are_refused(data):
    X, y = data
    X, y = np.tile(X, (2, 1)), np.tile(y, 2)
    once, each = bs.EvidenceRegressor().fit(X, y), bs.EvidenceRegressor(width=0.5).fit(X, y)
    with pytest.raises(DataMismatchError, match=r"'once' counts rows .*COPIES_COUNT_ONCE.* and 'each' counts each"):
        compare({"each": each, "once": once}, by="loo")
    compare({"once": once, "again": bs.BasisSearchRegressor().fit(X, y)}, by="loo")
    drawn = np.arange(len(y)) // 3  # uneven copies are nobody's weights
    models = (bs.EvidenceRegressor(), bs.RVMRegressor(), bs.GPRegressor(random_state=0))
    fitted = {type(model).__name__: model.fit(X[drawn], y[drawn]) for model in models}
    assert fitted["RVMRegressor"]._records.weights is not None
    assert len(compare(fitted, by="loo", allow_mixed=True)) == 3
    average = bs.average(fitted, densities="loo", data=(X[drawn], y[drawn]))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        bs.average(fitted, densities="loo", data=(X[drawn], y[1:]))
    assert average.leave_one_out().errors.shape == y.shape


def test_other_inputs_are_refused_where_they_are_known(data, fits):
    X, y = data
    other = bs.EvidenceRegressor(width=0.5).fit(X[::-1], y)
    with pytest.raises(DataMismatchError, match="different data") as caught:
        compare(fits | {"other": other})
    for text in ("'dense'", "'other'", fingerprint(X, y), fingerprint(X[::-1].copy(), y)):
        assert text in str(caught.value)


def test_estimators_carry_the_fingerprint_of_their_rows(data):
    X, y = data
    for model in (bs.EvidenceRegressor(width=0.5), bs.RidgeRBFRegressor(width=0.5)):
        model.fit(X[:60], y[:60])
        assert model.fingerprint_ == fingerprint(X[:60], y[:60])
        assert model.partial_fit(X[60:], y[60:]).fingerprint_ == fingerprint(X, y)
        assert model.forget(X[60:], y[60:]).fingerprint_ == fingerprint(X[:60], y[:60])
    several = bs.EvidenceRegressor(width=0.5).fit(X, np.column_stack([y, -y]))
    assert several.fingerprint_ == fingerprint(X, np.column_stack([y, -y]))


def test_pipelines_and_searches_are_looked_into(data, fits):
    """A pipeline changes the inputs on purpose: the target has to be the same, the inputs need not be."""
    X, y = data
    piped = make_pipeline(StandardScaler(), bs.EvidenceRegressor(width=0.3)).fit(X, y)
    search = GridSearchCV(bs.EvidenceRegressor(), {"width": [0.5, 3.0]}).fit(X, y)
    table = compare(fits | {"piped": piped, "search": search})
    assert table.loc["piped", "evidence"] == pytest.approx(piped[-1].log_evidence_)
    assert table.loc["search", "evidence"] == pytest.approx(search.best_estimator_.log_evidence_)


def test_a_stream_has_no_fingerprint_but_a_number_of_rows(rng):
    Phi, t = problems.regression_problem(rng, 200, 3)
    whole, stream = fit_evidence(Phi, t), fit_evidence_stream([(Phi[:120], t[:120]), (Phi[120:], t[120:])])
    table = compare({"whole": whole, "stream": stream})
    assert table.loc["whole", "evidence"] == pytest.approx(table.loc["stream", "evidence"], rel=1e-8)
    with pytest.raises(DataMismatchError, match=re.escape("[200, 201]")):
        short = fit_evidence_stream([(Phi[:120], t[:120]), (Phi[119:], t[119:])])
        compare({"whole": whole, "stream": short})


def test_mixed_kinds_of_evidence_are_ranked_on_demand_only(data, fits):
    X, y = data
    mixed = fits | {"ridge": bs.RidgeRBFRegressor(width=0.5).fit(X, y)}
    for by in ("evidence", "mdl-alpha"):
        with pytest.raises(ValueError, match=r"'rvm' has type2, 'ridge' has plug-in.*allow_mixed=True"):
            compare(mixed, by=by)
    table = compare(mixed, allow_mixed=True)
    assert table.loc["ridge", "kind"] == "plug-in"
    assert table.loc["ridge", "evidence"] == pytest.approx(mixed["ridge"].log_evidence_)
    # hyperparameters that another criterion chose can only have less evidence
    assert table.loc["ridge", "evidence"] <= table.loc["dense", "evidence"]
    by_loo = compare(mixed, by="loo")
    assert by_loo.index[0] == by_loo["loo"].idxmin()


def test_a_foreign_result_with_the_same_attributes(fits):
    """Nothing is asked of a result but the contract and its message."""
    rvm = fits["rvm"]
    names = "coef alpha beta n_rows n_candidates status sum_squares effective_parameters target_fingerprint"
    foreign = StatedFit(
        **{name: getattr(rvm, name) for name in names.split()},
        evidence=Evidence(rvm.log_evidence, "plug-in"),
        left_out=rvm.leave_one_out(),
    )
    table = compare({"rvm": rvm, "foreign": foreign}, by="loo")
    assert table.loc["foreign", "mdl-w"] == pytest.approx(table.loc["rvm", "mdl-w"])
    with pytest.raises(ValueError, match="'foreign' has plug-in"):
        compare({"rvm": rvm, "foreign": foreign})


@pytest.mark.parametrize(
    ("given", "options", "error", "said"),
    [
        ([1, 2], {}, TypeError, "dict of name -> fit"),
        ({}, {}, ValueError, "at least one fit"),
        ({"a": 3}, {}, TypeError, "'a' must be a fitted bayessel estimator"),
        ({"a": bs.EvidenceRegressor()}, {}, ValueError, "'a' is a EvidenceRegressor that has not been fitted"),
    ],
)
def test_compare_refuses(given, options, error, said):
    with pytest.raises(error, match=said):
        compare(given, **options)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"by": "charm"}, ValueError, "by must be one of 'evidence'"),
        ({"by": 3}, ValueError, "by must be one of"),
        ({"allow_mixed": "yes"}, TypeError, "allow_mixed must be True or False"),
        ({"delta_w": 0.0}, ValueError, "delta_w must be positive"),
        ({"delta_alpha": -1}, ValueError, "delta_alpha must be positive"),
        ({"flags": "x"}, ValueError, "flags must be one of"),
    ],
)
def test_compare_refuses_settings(fits, options, error, said):
    with pytest.raises(error, match=said):
        compare(fits, **options)


def test_fits_on_data_frames_are_compared_without_a_word(data):
    """No warning about names of features: rows are left out from what the fit keeps."""
    X, y = data
    frame = pd.DataFrame({"hour": X[:, 0]})
    models = {
        "dense": bs.EvidenceRegressor(width=0.5),
        "ridge": bs.RidgeRBFRegressor(width=0.5),
        "rvm": bs.RVMRegressor(width=0.5),
        "few": bs.ForwardSelectionRegressor(width=0.5),
        "gp": bs.GPRegressor(random_state=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on_frames = compare({name: model.fit(frame, y) for name, model in models.items()}, by="loo")
        on_arrays = compare({name: model.fit(X, y) for name, model in models.items()}, by="loo")
    numbers = [name for name in on_frames if pd.api.types.is_numeric_dtype(on_frames[name]) and name != "seconds"]
    pd.testing.assert_frame_equal(on_frames[numbers], on_arrays[numbers])
