"""What routes come to together, odds of two models, and how both are shown.

Guards `bayessel.marginal_likelihood.verdict`, `bayessel.marginal_likelihood.model_evidence`,
`bayessel.marginal_likelihood.bayes_factor`.
"""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import bayessel as bs
from bayessel.errors import DataMismatchError
from bayessel.fit import Status
from bayessel.marginal_likelihood.model_evidence import ModelEvidence
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.verdict import judge_routes


def route(name, value, error, reliable=True, **more):
    return Route(name, value, error, reliable, "said", 10, **more)


def test_independent_routes_that_agree_are_weighed_by_their_errors():
    found = judge_routes([route("bridge", 1.0, 0.02), route("laplace", 1.03, 0.02), route("annealing", 1.2, 0.2)])
    assert found.reliable and set(found.used) == {"bridge", "laplace"}
    assert found.value == pytest.approx(1.015)
    assert found.error == pytest.approx(0.02 / np.sqrt(2.0) * (0.03**2 / (2 * 0.02**2)) ** 0.5)


def test_both_bridges_rest_on_the_same_draws_and_count_once():
    both = [route("bridge", 1.0, 0.02), route("bridge, mirrored", 1.0, 0.01)]
    alone = judge_routes(both)
    assert not alone.reliable and "alone" in alone.sentence
    found = judge_routes([*both, route("annealing", 1.0, 0.02)])
    assert found.reliable and found.used == ("bridge, mirrored", "annealing")


def test_annealing_up_and_down_confirm_each_other_within_half_of_what_is_between_them():
    up = route("annealing", 1.0, 0.1)
    assert not judge_routes([up]).reliable
    found = judge_routes([up, route("annealing, down", 1.4, 0.3)])
    assert found.reliable and found.value == 1.0 and found.error == pytest.approx(0.2)
    assert found.used == ("annealing",) and "up and down" in found.sentence
    assert not judge_routes([up, route("annealing, down", 1.4, 0.3, False)]).reliable
    assert not judge_routes([up, route("annealing, down", 1.8, 0.3)]).reliable  # too far apart for an error
    assert "contradict" in judge_routes([up, route("annealing, down", 4.0, 0.3)]).sentence
    # a bound is never the guess where there is another
    guess = judge_routes([route("annealing", 1.0, 0.5, False), route("annealing, down", 2.0, 0.1, False)])
    assert guess.value == 1.0 and guess.error == 0.5 and not guess.reliable


def test_an_exact_route_settles_it():
    found = judge_routes([route("quadrature", 2.0, 1e-9, is_exact=True), route("bridge", 9.0, 0.01)])
    assert found.reliable and found.value == 2.0


def test_routes_that_contradict_each_other_raise_an_alarm():
    found = judge_routes([route("bridge", 1.0, 0.01), route("annealing", 1.7, 0.05)])
    assert not found.reliable and "contradict" in found.sentence and found.error >= 0.35
    bound = judge_routes(
        [route("bridge", 1.0, 0.01), route("annealing", 1.0, 0.05), route("annealing, down", 3.0, 0.1)]
    )
    assert not bound.reliable and "contradict" in bound.sentence


def test_a_doubtful_route_that_has_found_more_raises_an_alarm_and_one_that_has_found_less_does_not():
    agreed = [route("bridge", 1.0, 0.01), route("annealing", 1.0, 0.02)]
    assert not judge_routes([*agreed, route("laplace", 5.0, 0.5, False)]).reliable
    assert judge_routes([*agreed, route("laplace", -5.0, 0.5, False)]).reliable


def test_without_a_route_that_believes_itself():
    found = judge_routes([route("bridge", 1.0, 0.1, False), route("laplace", 3.0, 0.2, False)])
    assert not found.reliable and found.error >= 1.0
    nothing = judge_routes([Route.missing("bridge", "no draws")])
    assert np.isnan(nothing.value) and not nothing.reliable and "no draws" in nothing.sentence


def evidence_of(value=-10.0, error=0.1, **more):
    routes = (
        route("bridge", value, error),
        Route.missing("laplace", "no maximum"),
        route("annealing", value, 0.2, False),
    )
    made = ModelEvidence(
        value, error, True, "bridge and annealing agree", routes, ("bridge",), "", 12, 3, ("w",), "m", "d", "t", 1
    )
    return replace(made, **more)


def test_an_evidence_is_shown_route_by_route():
    found = evidence_of()
    lines = str(found).splitlines()
    assert lines[0].startswith("log evidence -10.000 ± 0.1 nats, reliable")
    assert [line.split()[0] for line in lines[1:]] == ["+", "-", "-"]
    assert list(found.table.index) == ["bridge", "laplace", "annealing"] and float(found) == -10.0
    assert found.log10 == pytest.approx(-10.0 / np.log(10.0))
    assert "<table" in found._repr_html_() and "bridge" in found._repr_html_()
    assert "NOT RELIABLE" in str(replace(found, reliable=False))
    assert "flat" in str(replace(found, comparable="the prior is flat"))


def test_in_other_units_all_is_judged_anew():
    plain = evidence_of(routes=(route("bridge", -10.0, 0.01), route("annealing", -9.0, 0.05)))
    found = plain.in_units(-5.0, "of data", "of target")
    assert [one.value for one in found.routes] == [-15.0, -14.0] and -15.0 < found.value < -14.9
    assert "contradict" in found.verdict and "-15" in found.verdict and not found.reliable
    assert (found.data_fingerprint, found.target_fingerprint) == ("of data", "of target")
    assert found.status is Status.UNSURE_EVIDENCE and found.doubt.startswith("the evidence is not reliable")
    stopped = replace(found, reliable=True, remarks=(Status.TIME_BUDGET,))
    assert stopped.notes == (Status.TIME_BUDGET,) and stopped.status is Status.TIME_BUDGET and not stopped.doubt


def test_an_evidence_is_attached_to_a_trace_and_survives_a_file(tmp_path):
    trace = xr.DataTree.from_dict({"posterior": xr.Dataset({"x": (("chain", "draw"), np.zeros((1, 3)))})})
    evidence_of().attach(trace).to_netcdf(tmp_path / "trace.nc")
    with xr.open_datatree(tmp_path / "trace.nc") as again:
        group = again["evidence"]
        assert group.attrs["value"] == -10.0 and bool(group.attrs["reliable"])
        assert float(group["error"].sel(route="bridge")) == 0.1


def test_the_picture_has_a_bar_for_each_route_with_a_number():
    axes = evidence_of().plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["annealing (doubtful)", "bridge"]


def test_a_bayes_factor_has_an_error_and_a_sentence():
    found = bs.bayes_factor(evidence_of(-10.0, 0.3), evidence_of(-15.0, 0.4))
    assert float(found) == 5.0 and found.error == pytest.approx(0.5) and found.reliable
    assert found.probability == pytest.approx(1.0 / (1.0 + np.exp(-5.0)))
    assert "strongly prefer the first" in str(found) and "148.4 to 1" in str(found)
    assert "cannot be told apart" in str(bs.bayes_factor(evidence_of(-10.0, 3.0), evidence_of(-12.0)))
    assert "not reliable" in str(bs.bayes_factor(evidence_of(reliable=False), evidence_of(-12.0)))


def test_models_that_must_not_be_compared():
    with pytest.raises(DataMismatchError, match="different data"):
        bs.bayes_factor(evidence_of(), evidence_of(target_fingerprint="other"))
    with pytest.raises(ValueError, match="flat"):
        bs.bayes_factor(evidence_of(), evidence_of(comparable="the prior is flat"))
    with pytest.raises(ValueError, match="no value"):
        bs.bayes_factor(evidence_of(np.nan), evidence_of())
    with pytest.raises(TypeError, match=r"bayessel\.evidence returns, got float"):
        bs.bayes_factor(1.0, evidence_of())
