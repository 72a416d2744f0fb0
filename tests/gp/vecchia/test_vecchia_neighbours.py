"""Neighbours against sorted distances, by trees and by blocks.

Guards `bayessel.gp.vecchia.neighbours`, `bayessel.gp.vecchia.compiled_neighbours`.
"""

import numpy as np
import pytest

from bayessel.gp.vecchia import neighbours as module
from tests.oracles import vecchia as twin


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("inputs", [1, 3, 7])
def test_earlier_rows_that_are_nearest(rng, monkeypatch, inputs, blocks):
    monkeypatch.setattr(module, "_FIRST", 40)
    monkeypatch.setattr(module, "_by_blocks", lambda n, inputs: blocks)
    places = rng.normal(size=(300, inputs))
    found = module.earlier_neighbours(places, 6)
    for i, expected in enumerate(twin.neighbours(places, 6)):
        assert found[i, : min(i, 6)].tolist() == expected


def test_copies_are_neighbours_like_others(rng, monkeypatch):
    monkeypatch.setattr(module, "_FIRST", 40)
    places = np.repeat(rng.normal(size=(30, 2)), 8, axis=0)
    found = module.earlier_neighbours(places, 10)
    for i, expected in enumerate(twin.neighbours(places, 10)):
        near = found[i, : min(i, 10)]
        assert (near < i).all() and len(set(near.tolist())) == len(near)
        away, least = (np.sum((places[at] - places[i]) ** 2, axis=1) for at in (near, expected))
        np.testing.assert_allclose(np.sort(away), np.sort(least), atol=1e-12)


@pytest.mark.parametrize("inputs", [2, 9])
def test_rows_nearest_to_new_places(rng, inputs):
    places, new = rng.normal(size=(200, inputs)), rng.normal(size=(20, inputs))
    found = module.NearestRows(places)(new, 7)
    for one, row in zip(found, new, strict=True):
        assert one.tolist() == np.argsort(((places - row) ** 2).sum(axis=1))[:7].tolist()
    assert module.NearestRows(places[:3])(new, 7).shape == (20, 3)


@pytest.mark.parametrize(("n", "m"), [(1, 5), (2, 5), (4, 0)])
def test_few_rows(rng, n, m):
    assert module.earlier_neighbours(rng.normal(size=(n, 2)), m).shape == (n, min(m, n - 1))
