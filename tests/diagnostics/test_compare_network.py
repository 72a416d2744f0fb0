"""Networks on the table of `compare`, beside Gaussian processes and relevance vector machines.

Guards `bayessel.diagnostics._compare`.
"""

import warnings

import numpy as np
import pytest

import bayessel as bs
from bayessel.diagnostics import compare, mdl_w
from bayessel.errors import DataMismatchError
from bayessel.mlp import fit_network_evidence
from tests.problems.mlp import SHORT, rings, short_classes, short_run

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*leave-one-out predictions are unsure", "ignore:Estimated shape parameter", "ignore:CHAINS_DISAGREE"
)


@pytest.fixture(scope="module")
def fits():
    sampled, X, y = short_run()
    found = {"sampled": sampled}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for hidden in (1, 2, 4):
            found[f"H = {hidden}"] = bs.MLPRegressor("evidence", hidden=hidden, random_state=0).fit(X, y)
        found["ensemble"] = bs.MLPRegressor("early-stopping", hidden=2, time_budget=0.5, random_state=0).fit(X, y)
        found["gp"] = bs.GPRegressor(random_state=0).fit(X, y)
        found["rvm"] = bs.RVMRegressor(width=0.5).fit(X, y)
    return found


def test_networks_of_several_sizes_by_evidence(fits):
    sizes = {name: fit for name, fit in fits.items() if name.startswith("H")}
    table = compare(sizes)
    values = {name: fit.log_evidence_ for name, fit in sizes.items()}
    assert list(table.index) == sorted(values, key=values.get, reverse=True)
    for name, fit in sizes.items():
        assert table.loc[name, "evidence"] == fit.log_evidence_ and table.loc[name, "kind"] == "laplace"
        assert table.loc[name, "gamma"] == pytest.approx(sum(fit.fit_.inner.gamma.values()))
        assert table.loc[name, "noise_std"] == pytest.approx(fit.noise_std_)
        assert table.loc[name, "loo"] == pytest.approx(np.mean(fit.leave_one_out().errors ** 2))
        assert table.loc[name, "elpd-loo"] == pytest.approx(fit.leave_one_out().log_density)
    assert table["difference"].iloc[0] == 0.0 and table["mdl-w"].isna().all()


def test_other_kinds_are_refused_unless_mixing_is_allowed(fits):
    with pytest.raises(ValueError, match=r"different kinds of evidence \('H = 1' has laplace, 'gp' has type2\)"):
        compare({name: fit for name, fit in fits.items() if name != "rvm"})
    table = compare(fits, allow_mixed=True)
    assert set(table.index) == set(fits) and table.loc["gp", "kind"] == "type2"
    # a sampled network and an ensemble have none: they come last, and nothing is made up for them
    assert set(table.index[-2:]) == {"sampled", "ensemble"} and table["difference"].iloc[-2:].isna().all()
    assert table.loc["sampled", "kind"] == ""


def test_by_rows_left_out_all_stand_together(fits):
    some = {name: fit for name, fit in fits.items() if name != "ensemble"}
    table = compare(some, by="elpd-loo")
    assert table["elpd-loo"].notna().all() and list(table["elpd-loo"]) == sorted(table["elpd-loo"], reverse=True)
    assert table.loc["sampled", "elpd-loo"] == pytest.approx(fits["sampled"].leave_one_out().log_density)


def test_other_data_and_description_lengths_are_refused(fits):
    _, X, y = short_run()
    other = bs.MLPRegressor(**SHORT).fit(X, y + 1.0)
    with pytest.raises(DataMismatchError, match="different targets"):
        compare({"one": fits["sampled"], "other": other}, by="elpd-loo")
    with pytest.raises(TypeError, match="which has no functions to count"):
        mdl_w(fits["sampled"])


def test_an_engines_result_and_classifiers():
    model, X, y = short_classes(2)
    table = compare({"sampled": model, "short": bs.MLPClassifier(**SHORT).fit(X, y)}, by="elpd-loo")
    assert table.loc["sampled", "elpd-loo"] == pytest.approx(model.leave_one_out().log_density)
    assert table["loo"].isna().all() and table["noise_std"].isna().all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = fit_network_evidence(X, X[:, 0] ** 2, hidden=2, random_state=0)
    assert compare({"engine": fit}).loc["engine", "evidence"] == fit.log_evidence


def test_labels_left_out(rng):
    X, y = rings(rng, 30)
    for how in ("mc", "early-stopping", "evidence"):
        model = bs.MLPClassifier(**SHORT | {"inference": how, "draws": 30, "tune": 5}, time_budget=20.0).fit(X, y)
        out = model.leave_one_out().log_densities
        assert out.shape == (30,) and np.isfinite(out).mean() > 0.7
        assert how == "early-stopping" or np.isfinite(out).all()
        if how == "mc":
            networks = model.fit_.inner.every[0]
            densities = networks.log_probabilities(model._rows[0])[:, np.arange(30), model._rows[1]]
            # every draw weighs one over its probability of the label
            plain = -np.log(np.mean(np.exp(-densities), axis=0))
            np.testing.assert_allclose(out, plain, atol=0.5)
            assert (out < model.log_predictive_density(X, y)).mean() > 0.8
