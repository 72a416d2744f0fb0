"""The verdict on draws: what it looks at, and when there is none.

Guards `bayessel.chains.verdict`.
"""

import arviz as az
import numpy as np
import pytest

from bayessel.chains.verdict import NOT_YET, TOO_FEW, USABLE, judged


def dataset(values, **kwargs):
    return az.from_dict({"posterior": values}, **kwargs)["posterior"].to_dataset()


@pytest.mark.parametrize(
    ("shape", "verdict"),
    [((4, 1000), USABLE), ((4, 100), USABLE), ((4, 99), TOO_FEW), ((2, 150), TOO_FEW), ((1, 5000), TOO_FEW)],
)
def test_few_draws_and_single_chains_are_not_judged(rng, shape, verdict):
    assert judged(dataset({"x": rng.standard_normal(shape)}), {}).verdict == verdict
    nan = np.full(shape, np.nan)
    assert judged(dataset({"x": nan}), {}).verdict == (NOT_YET if verdict == USABLE else TOO_FEW)


def test_of_many_elements_the_worst_are_looked_at(rng):
    w = rng.standard_normal((4, 500, 20, 30))
    w[2, :, 3, 17] += 1.0
    posterior = dataset({"w": w, "x": rng.standard_normal((4, 500))}, coords={"row": np.arange(100, 120)},
                        dims={"w": ["row", "column"]})  # fmt: skip
    some, all_of_them = judged(posterior, {}, most=25), judged(posterior, {})
    assert (len(some.table), some.elements, len(all_of_them.table)) == (25, 601, 601)
    assert some.table.index[0] == all_of_them.table.index[0] == "w[103, 17]"
    assert some.verdict == all_of_them.verdict == NOT_YET
    assert some.worst.startswith("largest R-hat 1.") and "(w[103, 17])" in some.worst
    # that chance lifts the largest of many R-hats is known, though only some of them are computed
    w[2, :, 3, 17] -= 1.0
    assert judged(dataset({"w": w}), {}, most=25).verdict == judged(dataset({"w": w}), {}).verdict == USABLE


@pytest.mark.filterwarnings("ignore:Found chain dimension")
def test_without_draws_there_is_a_reason(rng):
    found = judged(dataset({"x": np.empty((4, 0))}), {})
    assert found.verdict == TOO_FEW and found.worst == "" and len(found.table) == 0
