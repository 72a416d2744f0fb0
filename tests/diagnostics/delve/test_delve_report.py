"""What a person reads of a study: counts and averages against loops, p-values as printed, pictures, the page.

Guards `bayessel.diagnostics.delve._html`, `bayessel.diagnostics.delve._plots`, `bayessel.diagnostics.delve._describe`.
"""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import BayesianRidge

from bayessel.diagnostics import delve
from bayessel.diagnostics.delve._plots import percent
from tests.problems.delve import Failing, Noisy, Silent, task


@pytest.fixture(scope="module")
def study():
    tasks = [
        task(size=size, instances=4, name=name, noise=noise, attributes={"noise": said})
        for name, noise, said in [("calm", 0.1, "low"), ("rough", 1.0, "high")]
        for size in (16, 32)
    ]
    tasks.append(task(size=32, instances=2, test_cases=60, name="few", design="two-way", attributes={"noise": "low"}))
    bound = np.median([instance.X[0, 0] for one in tasks for instance in one])
    methods = {
        "ridge": BayesianRidge(),
        "shrunk": Noisy(shrink=0.8),
        "mean": DummyRegressor(),
        "silent": Silent(),
        "ship": Failing(bound),
    }
    return delve.run(methods, tasks, progressbar=False)


def test_winners_count_paired_tests(study):
    able = ["ridge", "shrunk", "mean"]
    part = study.only(able)
    for alpha in (0.05, 0.001):
        found = part.winners("squared", alpha)
        for beaten in able:
            for beats in able:
                expected = 0
                for name, facts in study.tasks.items():
                    if beaten == beats:
                        continue
                    design = delve.two_way if facts.design == "two-way" else delve.hierarchical
                    worse, better = (part.losses("squared", one, name) for one in (beaten, beats))
                    expected += worse.mean() > better.mean() and design(worse, better).p_value < alpha
                assert found.loc[beaten, beats] == expected
    assert part.winners("squared").loc["mean", "ridge"] == 5
    assert part.winners("squared", tasks=["calm"]).loc["mean", "ridge"] == 2


def test_averages_are_geometric_and_fair(study):
    able = ["ridge", "shrunk"]
    part = study.only(able)
    table = part.averages("noise", "squared")
    for value in ("low", "high"):
        names = [name for name, facts in study.tasks.items() if facts.attributes["noise"] == value]
        assert table.loc[value, "tasks"] == len(names)
        for method in able:
            means = [part.losses("squared", method, name).mean() for name in names]
            assert table.loc[value, method] == pytest.approx(np.prod(means) ** (1 / len(names)), rel=1e-12)
    log = part.averages(None, "log").iloc[0]
    assert log["ridge"] == pytest.approx(np.mean([part.losses("log", "ridge", name).mean() for name in study.tasks]))
    # where one fails, the others are averaged over what it has done, too
    fair = study.only(["ridge", "ship"]).averages(None, "squared").iloc[0]
    done = {}
    for unit, one in study.outcomes.items():
        if unit.method == "ship" and not one.error:
            done.setdefault(unit.task, []).append(unit.instance)
    assert 0 < sum(map(len, done.values())) < 18
    means = [study.losses("squared", "ridge", name)[rows].mean() for name, rows in done.items()]
    assert fair["tasks"] == len(done)
    assert fair["ridge"] == pytest.approx(np.exp(np.mean(np.log(means))), rel=1e-12)
    # a method without any density does not empty the averages of the others
    assert np.isnan(study.only(["ridge", "silent"]).averages(None, "log").iloc[0]["silent"])
    assert study.only(["ridge", "silent"]).averages(None, "log").iloc[0]["tasks"] == 5
    # one that was not tried on some sizes does not empty the averages of the others there
    outcomes = {unit: one for unit, one in study.outcomes.items() if unit.method == "ridge" or "32" in unit.task}
    partly = delve.Study(study.tasks, study.methods, outcomes).only(["ridge", "shrunk"]).averages("size")
    assert np.isnan(partly.loc[16, "shrunk"]) and partly.loc[16, "tasks"] == 2
    assert partly.loc[32].tolist() == part.averages("size").loc[32].tolist()
    with pytest.raises(ValueError, match="no task has the attribute 'colour'"):
        study.averages("colour")


@pytest.mark.parametrize(
    ("p", "printed"), [(1e-9, 1), (0.01, 1), (0.0101, 2), (0.0399302, 4), (0.09, 9), (0.0901, None), (1.0, None)]
)
def test_p_values_are_printed_as_in_the_thesis(p, printed):
    """Rasmussen (1996, section 5.3): in per cent, rounded up, 1 to 9."""
    from types import SimpleNamespace

    assert percent(SimpleNamespace(p_value=p)) == printed


def test_two_training_sets_say_five_per_cent_at_best(study):
    found = study.compare("mean", "ridge", "squared", "few 32")
    assert found.p_value < 0.04 and percent(found) == 5


def test_exchanged_methods_are_compared_the_other_way_round(study):
    for name, design in [("calm 16", delve.hierarchical), ("few 32", delve.two_way)]:
        a, b = (study.losses("squared", one, name) for one in ("mean", "ridge"))
        there, back = study.compare("mean", "ridge", "squared", name), study.compare("ridge", "mean", "squared", name)
        assert (there.mean, there.p_value) == (design(a, b).mean, design(a, b).p_value)
        assert (back.mean, back.p_value) == pytest.approx((design(b, a).mean, design(b, a).p_value), rel=1e-12)
    back = study.compare("ridge", "mean", "squared", "calm 16").posterior
    a, b = (study.losses("squared", one, "calm 16") for one in ("mean", "ridge"))
    assert back.probability_below(0.0) == pytest.approx(delve.hierarchical(b, a).posterior.probability_below(0.0))


def test_differences_are_those_of_instances_in_common(study):
    found = study.differences("ridge", "ship", "squared")
    assert set(found) <= {name for name in study.tasks if study.tasks[name].design == "hierarchical"}
    ridge, ship = study._losses("squared", "ridge", "rough 32"), study._losses("squared", "ship", "rough 32")
    if len(ship[0]) > 1:
        rows = [ridge[0].index(i) for i in ship[0]]
        assert (found["rough 32"] == ridge[1][rows] - ship[1]).all()
    for name, table in found.items():
        compared = study.compare("ridge", "ship", "squared", name)
        assert table.shape[0] == compared.n_sets and table.mean() == pytest.approx(compared.mean, rel=1e-12)
    assert set(study.differences("ridge", "mean", tasks=["calm"])) == {"calm 16", "calm 32"}
    with pytest.raises(ValueError, match="no hierarchical task"):
        study.differences("ridge", "mean", tasks=["few"])


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_pictures_show_the_numbers(study):
    figure = study.plot("calm")
    assert [axes.get_title() for axes in figure.axes] == ["16", "", "32", ""]
    lines = [line.get_ydata() for line in figure.axes[0].lines]
    table = study.table().loc["calm 16"]
    assert any(np.allclose(y, table["ridge", "loss"]) for y in lines)
    low, high = (table["ridge", "loss"] + sign * table["ridge", "std_error"] for sign in (-1, 1))
    assert any(np.allclose(y, (low, high)) for y in lines)
    p = study.p_values("calm 16")
    said = sorted(text for text in texts(figure) if text)
    expected = sum(int((np.ceil(100 * study.p_values(name).to_numpy()) <= 9).sum()) for name in ("calm 16", "calm 32"))
    assert len([text for text in said if text != "∅"]) == expected > 0
    assert p.notna().to_numpy().sum() + p.T.notna().to_numpy().sum() <= 20
    assert "∅" in texts(study.plot("calm 16", "log"))  # no density
    assert texts(study.plot_winners()).count("5") >= 1
    names = texts(study.only(["ridge", "mean"]).plot_time())
    assert names == ["ridge", "mean"]


def test_the_page(study, tmp_path):
    page = study.to_html(tmp_path / "r.html", title="Calm <or> rough").read_text()
    assert page.startswith("<!doctype html>") and "Calm &lt;or&gt; rough" in page
    assert page.count("data:image/svg+xml") >= 3 * 4
    assert "the ship sank" in page and "No method" not in page
    assert 'src="http' not in page and 'href="http' not in page
    best = study.verdict()
    assert best[0].startswith("Lowest squared loss, averaged over") and "Failures: ship" in best[2]
    # a study that has hardly begun has a page, too
    empty = delve.Study(study.tasks, study.methods, {}, ("squared", "log"), study.asked)
    assert "90 units are not done yet" in empty.to_html(tmp_path / "e.html").read_text()


def test_unknown_names(study):
    with pytest.raises(ValueError, match="method must be one of 'ridge'"):
        study.compare("ridge", "gp", "squared", "calm 16")
    with pytest.raises(ValueError, match="task must be one of 'calm 16'"):
        study.plot("storm")
    with pytest.raises(ValueError, match="loss must be one of"):
        study.table("huber")
