"""The arithmetic of the benchmark of regression splines, and a rehearsal."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchmarks.__main__ import main
from benchmarks.mars_paper import REDUCTION
from benchmarks.workloads import mars


def test_the_figure_is_read_in_its_order():
    assert len(REDUCTION) == 80
    assert REDUCTION["kin-8nm", 64] == 31.3
    assert REDUCTION["pumadyn-32nm", 128] == -23.9
    assert REDUCTION["pumadyn-8fh", 1024] == 3.6
    for n, average in ((64, 25.1), (128, 18.9), (256, 14.3), (512, 8.7), (1024, 4.3)):  # the figure's last column
        row = [value for (_, size), value in REDUCTION.items() if size == n]
        assert np.mean(row) == pytest.approx(average, abs=0.1)


def test_reduction_its_error_and_its_p_value(rng):
    alone = rng.uniform(0.5, 0.7, 8)
    bag = alone * rng.uniform(0.8, 1.0, 8)
    r, error, p = mars.reduction([[a, b, 1.0] for a, b in zip(alone, bag, strict=True)])
    assert r == pytest.approx(100 * (1 - bag.mean() / alone.mean()))
    assert p == pytest.approx(ttest_rel(alone, bag).pvalue)
    without = [100 * (1 - np.delete(bag, i).mean() / np.delete(alone, i).mean()) for i in range(8)]
    jackknife = np.sqrt(7 / 8 * np.sum((without - np.mean(without)) ** 2))
    assert error == pytest.approx(jackknife, rel=0.1)


def test_the_functions_are_friedmans():
    X = np.array([[0.5, 1.0, 0.5, 0.2, 0.4, 0, 0, 0, 0, 0]])
    assert mars.first(X)[0] == pytest.approx(10 + 0 + 2 + 2)
    X = np.array([[1.0, 0.0, 1.0, 1.0]])  # R = 100, ω = 40π, L = 1, C = 11
    assert mars.impedance(X)[0] == pytest.approx(np.hypot(100, 40 * np.pi - 1 / (440 * np.pi)))
    assert mars.phase(X)[0] == pytest.approx(np.arctan((40 * np.pi - 1 / (440 * np.pi)) / 100))


@pytest.mark.filterwarnings("ignore")
def test_a_rehearsal_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("BENCHMARK_DATA", raising=False)
    monkeypatch.delenv("MARS_PYTHON", raising=False)
    monkeypatch.setenv("BENCHMARK_PARTS", str(tmp_path / "parts"))
    assert main(["--only", "mars", "--quick", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "fit_mars" in said and "friedman" in said
    assert list((tmp_path / "parts").glob("bagged-friedman-64.json"))
