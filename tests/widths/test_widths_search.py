"""Comparing widths under a search guided by the evidence: numbers against dense algebra, choices against signals.

Guards `bayessel.widths._selection`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayessel as bs
from bayessel.linear import fit_evidence, search
from bayessel.widths import _selection
from tests.oracles import linear as oracles

EVERY = ("mdl-w", "mdl-alpha", "evidence", "model-evidence", "loo", "elpd-loo", "gcv", "bic")


def compare(x, y, widths, **options):
    return bs.compare_widths(x, y, widths, model="search", progressbar=False, n_jobs=1, **options)


def wave(rng, n=60):
    x = np.sort(rng.uniform(-3, 3, n))
    return x, 20.0 + np.sin(2 * x) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("bias", [True, False])
def test_a_row_is_what_dense_algebra_says(rng, bias):
    x, y = wave(rng)
    r = 1.2
    row = compare(x, y, [r], criteria=EVERY, bias=bias).table.loc[r]
    H = oracles.radial("gaussian", x[:, None], x[:, None], r)
    fits = [search(H, y, strategy, centre=bias, within=0.0) for strategy in ("pta(2,1)", "sffs")]
    best = max(one.model_evidence for one in fits)
    sizes = [size for one in fits for size, point in one.path.items() if size and point.value >= best - 1.0]
    basis = max((one.path[min(sizes)] for one in fits if min(sizes) in one.path), key=lambda point: point.value).basis
    fit = fit_evidence(H[:, sorted(basis)], y, centre=bias)
    assert_allclose(row["model-evidence"], fit.model_evidence, rtol=1e-9)
    assert best - 1.1 < row["model-evidence"] < best + 0.1
    exact = oracles.exact(H[:, sorted(basis)], y, fit.alpha, fit.beta, centre=bias)
    assert_allclose(row["evidence"], float(exact.log_evidence), rtol=1e-8)
    assert_allclose(row["loo"], float(exact.loo), rtol=1e-6)
    assert_allclose(row["gcv"], float(exact.gcv), rtol=1e-6)
    assert_allclose(row["gamma"], float(exact.gamma), rtol=1e-6)
    assert row["n_basis"] == len(basis) + bias


def test_an_interrupt_ends_the_comparison_and_leaves_no_half_row(rng, monkeypatch):
    """A search keeps what it has when Ctrl-C comes; a row of the table made of that would look like any other."""
    x, y = wave(rng, 40)
    calls, inner = [], _selection.search

    def stops(*arguments, **options):
        calls.append(1)
        if len(calls) == 5:  # the second search at the second width
            options["callback"] = lambda search: (_ for _ in ()).throw(KeyboardInterrupt)
        return inner(*arguments, **options)

    monkeypatch.setattr(_selection, "search", stops)
    found = compare(x, y, [0.5, 1.0, 1.5, 2.0, 2.5], criteria=("evidence",))
    assert len(calls) == 5 and 0 < len(found.table) < 5
    assert found.interrupted


def test_it_prefers_the_width_that_made_the_data():
    """Targets made of ten functions of width 0.8: every criterion that judges the model lands within a factor 1.6."""
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(-5, 5, 100))
    y = oracles.radial("gaussian", x[:, None], x[::10, None], 0.8) @ (2 * rng.normal(size=10)) + 0.1 * rng.normal(
        size=100
    )
    found = compare(x, y, np.geomspace(0.2, 3.2, 7), criteria=EVERY)
    for name in ("mdl-w", "evidence", "model-evidence", "loo"):
        assert 0.8 / 1.6 < found.best(name) < 0.8 * 1.6, name
    assert "search by the evidence" in found.facts()
    assert len(found.verdict()) > 50
    assert found.fits


def test_noise_is_said_to_be_noise_and_signal_is_not():
    rng = np.random.default_rng(6)
    x = np.sort(rng.uniform(-3, 3, 60))
    noise = compare(x, rng.normal(size=60), [0.5, 1.0])
    assert "find no signal" in noise.verdict()
    assert all("NO_SIGNAL" in note for note in noise.table["notes"])
    signal = compare(x, np.sin(2 * x) + 0.1 * rng.normal(size=60), [0.5, 1.0])
    assert not any("NO_SIGNAL" in note for note in signal.table["notes"])


def test_rows_held_out_and_prequential_lengths_are_there(rng):
    x, y = wave(rng, 40)
    found = compare(x, y, [0.6, 1.2], criteria=["evidence", "prequential"], holdout=0.25)
    assert np.isfinite(found.table[["holdout", "holdout_se", "prequential", "prequential_se"]].to_numpy(float)).all()
