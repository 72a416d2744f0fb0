"""Directions that left the model: what is carried along instead of a pass is what a pass would say.

Guards `bayessel.linear.columns.removed_directions`, `bayessel.linear.columns.remainders`.
"""

import numpy as np
import pytest

from bayessel.linear import search
from bayessel.linear.columns import removed_directions
from bayessel.linear.columns.removed_directions import RemovedDirections
from tests.linear.selection.test_search import gaussians, toy


@pytest.fixture
def plenty(monkeypatch):
    """Small problems keep next to nothing: here they keep all."""
    monkeypatch.setattr(removed_directions, "SHARE", 1.0)


def orthonormal(rng, n, k):
    return np.linalg.qr(rng.normal(size=(n, k)))[0].T


@pytest.mark.parametrize("further", [False, True])
def test_a_direction_leaves_and_the_others_span_what_is_left(further, plenty, rng):
    F, rows = rng.normal(size=(40, 25)), orthonormal(rng, 40, 7)
    kept = RemovedDirections(40, 25)
    for row in rows[:6]:
        kept.keep(row, row @ F)
    a = rng.normal(size=7 if further else 6)
    a /= np.linalg.norm(a)
    q = a @ rows[: len(a)]
    c, rest = kept.coordinates(q)
    np.testing.assert_allclose(c, a[:6], atol=1e-15)
    np.testing.assert_allclose(rest, (q - a[:6] @ rows[:6]), atol=1e-15)
    kept.take(a, *((rows[6], rows[6] @ F) if further else ()))
    assert len(kept) == len(a) - 1
    every = np.vstack([kept.rows, q])
    np.testing.assert_allclose(every @ every.T, np.eye(len(a)), atol=1e-14)
    np.testing.assert_allclose(every.T @ every, rows[: len(a)].T @ rows[: len(a)], atol=1e-14)  # the same space
    np.testing.assert_allclose(kept.products, kept.rows @ F, atol=1e-13)


def test_the_oldest_makes_room(rng):
    kept = RemovedDirections(10, 10)
    kept.most = 3
    rows = orthonormal(rng, 10, 5)
    for row in rows:
        kept.keep(row, row)
    np.testing.assert_array_equal(kept.rows, rows[[3, 4, 2]])
    assert len(RemovedDirections(4, 4)) == RemovedDirections(4, 4).most == 0


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("width", [0.05, 0.5])
def test_what_is_carried_along_is_what_passes_say(width, centre, plenty, rng):
    """Through hundreds of changes and returns to earlier models, wide gaussians included."""
    F, t = gaussians(rng, 80, 80, width)
    unit = np.linalg.norm(F, axis=0).max()
    Fc = (F - F.mean(axis=0) if centre else F) / unit
    passes = []

    def there_and_back(search):
        model = search.model
        for _ in range(8):
            for _ in range(6):
                search.add()
            place = search.snapshot()
            for _ in range(4):
                search.remove()
            for _ in range(2):
                search.add()
            search.restore(place)
            for _ in range(4):
                search.remove()
            passes.append(model.passes)
            rows = np.vstack([model.Qt, model.removed.rows])
            np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-12)
            np.testing.assert_allclose(np.vstack([model.B, model.removed.products]), rows @ Fc, atol=1e-12)
            np.testing.assert_allclose(model.Qt.T @ model.R, Fc[:, model.active], atol=1e-13)

    fit = search(F, t, there_and_back, centre=centre)
    assert passes[-1] < 0.8 * fit.n_added


@pytest.mark.parametrize("strategy", ["pta(2,1)", "sffs", "oscil(3)"])
def test_fewer_passes_and_the_same_models(strategy, monkeypatch):
    for seed in range(3):
        F, t, _ = toy(np.random.default_rng([11, seed]), 100)
        found = []
        for share in (0.0, 1.0):
            monkeypatch.setattr(removed_directions, "SHARE", share)
            passes = []
            fit = search(F, t, strategy, within=0.0, callback=lambda s, p=passes: p.append(s.model.passes))
            found.append((fit, passes[-1]))
        (plain, many), (kept, few) = found
        assert few <= many - 5
        assert kept.basis.tolist() == plain.basis.tolist()
        assert kept.model_evidence == pytest.approx(plain.model_evidence, abs=1e-6)


@pytest.mark.parametrize("width", [0.5, 2.0])
def test_a_function_that_comes_back_is_as_exact_as_one_that_is_new(width, plenty, monkeypatch):
    """QR against the columns themselves, nearly collinear ones, in roundings of their lengths; the worst of a model."""
    typical = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(removed_directions, "SHARE", share)
        found = []
        for seed in range(6):
            F, t = gaussians(np.random.default_rng([5, seed]), 60, 60, width)
            lengths = np.linalg.norm(F, axis=0)

            def compare(search, F=F, lengths=lengths, found=found):
                model = search.model
                off = np.linalg.norm(model.Qt.T @ model.R * lengths.max() - F[:, model.active], axis=0)
                found.append((off / lengths[model.active]).max() / np.finfo(float).eps)

            search(F, t, "sffs", callback=compare)
        typical.append(np.median(found))
    assert typical[1] < 1.2 * typical[0]


def test_another_model_leaves_orthonormal_directions_outside_it(plenty, rng):
    """What the old model and those beside it span at more than 45 degrees from the new model, and nothing else."""
    F, rows = rng.normal(size=(40, 25)), orthonormal(rng, 40, 9)
    old, beside = rows[:6], rows[6:]
    new = np.linalg.qr(np.vstack([old[:3], rng.normal(size=(3, 40)) + 4.0 * old[3:]]).T)[0].T
    kept = RemovedDirections(40, 25)
    for row in beside:
        kept.keep(row, row @ F)
    kept.renew(old, old @ F, new, new @ F)
    sines2 = np.linalg.eigvalsh(np.eye(9) - rows @ new.T @ new @ rows.T)
    assert len(kept) == np.sum(sines2 > 0.5) > 0 and sines2[-len(kept)] < 0.999
    np.testing.assert_allclose(kept.rows @ kept.rows.T, np.eye(len(kept)), atol=1e-13)
    np.testing.assert_allclose(kept.rows @ new.T, 0.0, atol=1e-13)
    np.testing.assert_allclose(kept.products, kept.rows @ F, atol=1e-13)
    both = np.linalg.qr(np.vstack([rows, new]).T)[0]
    np.testing.assert_allclose(kept.rows @ both @ both.T, kept.rows, atol=1e-13)
