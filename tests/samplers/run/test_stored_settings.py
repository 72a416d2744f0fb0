"""A stored run is of one sampler: the same step class with other settings is another.

Guards `bayessel.samplers.run.identity`.
"""

import pymc as pm
import pytest

import bayessel as bs


@pytest.mark.parametrize(
    "other",
    [{"updates_per_draw": 3}, {"mass": "unit"}, {"persistence": 0.8}, {"delta": 0.2}],
    ids=lambda one: next(iter(one)),
)
def test_a_stored_run_is_not_gone_on_with_by_other_settings(tmp_path, other):
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Potential("skewed", -pm.math.exp(x[0]))

        def step(**changed):
            settings = {"step_size": 0.3, "persistence": 0.9, "delta": 0.1, "updates_per_draw": 2, "mass": "diag"}
            return bs.PersistentHMC(compile_kwargs={"mode": "FAST_COMPILE"}, **(settings | changed))

        first, second, again = step(), step(**other), step()
    run = {"draws": 3, "tune": 3, "chains": 1, "cores": 1, "random_seed": 1, "store": tmp_path / "run", "quiet": True}
    bs.sample(model, step=first, **run)
    with pytest.raises(ValueError, match=r"holds another run.*PersistentHMC.*there and .*here"):
        bs.sample(model, step=second, **run)
    bs.sample(model, step=again, **run)
