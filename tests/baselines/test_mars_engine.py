"""The engine of MARS: search, pruning and rounded corners against slow twins.

Guards `bayessel.baselines.engines.mars`, `bayessel.baselines.engines.hinges`,
`bayessel.baselines.engines.mars_forward`, `bayessel.baselines.engines.mars_backward`,
`bayessel.baselines.engines.knots_compiled`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.baselines.engines.hinges import Hinge, rounded_off, values
from bayessel.baselines.engines.mars import fit_mars
from bayessel.baselines.engines.mars_backward import prune
from bayessel.baselines.engines.mars_forward import grow, knot_span
from tests.oracles import mars as twins


def surface(rng, n=80, d=4, noise=0.3):
    """Scaled inputs, a target of mean 0 with an interaction."""
    X = rng.uniform(size=(n, d))
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    y = 4 * np.abs(X[:, 0] - 0.4) + 6 * X[:, 1] * np.maximum(X[:, 0] - 0.5, 0) + X[:, 2] + noise * rng.normal(size=n)
    return X, y - y.mean()


SETTINGS = {
    "additive": {"max_degree": 1},
    "interactions": {"max_degree": 3},
    "every knot": {"max_degree": 2, "min_span": 1, "end": 1},
    "many functions": {"max_degree": 2, "max_functions": 20, "min_span": 2, "end": 3},
}


def grid(rng):
    """A few values of each input, many rows of each: ties in every sort."""
    X = rng.integers(0, 9, size=(90, 3)) / 8.0
    X[:2] = [[0.0] * 3, [1.0] * 3]
    y = np.abs(X[:, 0] - 0.5) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=90)
    return X, y - y.mean()


def shifted(rng):
    """Inputs crowded at one end, with a target that varies there: cancellation, if there is any."""
    X, y = surface(rng)
    X = np.exp(12 * (X - 1))
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, y


@pytest.mark.parametrize("problem", [surface, grid, shifted])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_step_is_the_best_of_all_candidates(rng, name, problem):
    options = {"max_functions": 10} | SETTINGS[name]
    X, y = problem(rng)
    grown = grow(X, y, **options)
    steps, _ = twins.grow(
        X, y, options["max_functions"], options["max_degree"], options.get("min_span"), options.get("end")
    )
    total = y @ y
    assert len(grown.history) >= len(steps) > 2
    for ours, (left, m, v, t) in zip(grown.history, steps, strict=False):
        np.testing.assert_allclose(ours["left"] * total, left, rtol=1e-8)
        assert (ours["parent"], ours["input"]) == (m, v)
        np.testing.assert_equal(ours["knot"], t)  # NaN: there was no room for one


@pytest.mark.parametrize("end", [8, 9, 10, 11, 30])
def test_few_rows_leave_few_knots_or_none(rng, end):
    X, y = surface(rng, n=20)
    grown = grow(X, y, max_functions=4, max_degree=1, min_span=1, end=end)
    steps, _ = twins.grow(X, y, 4, 1, 1, end)
    assert np.isnan(grown.history[0]["knot"]) == (end >= 10)
    for ours, (left, m, v, t) in zip(grown.history, steps, strict=False):
        np.testing.assert_allclose(ours["left"] * (y @ y), left, rtol=1e-9)
        np.testing.assert_equal([ours["parent"], ours["input"], ours["knot"]], [m, v, t])


def test_the_twin_sees_a_knot_beside_the_best(rng):
    X, y = surface(rng)
    (left, _, v, t), *_ = twins.grow(X, y, 2, 1, 1, 1)[0]
    beside = sorted(X[:, v])[sorted(X[:, v]).index(t) + 1]
    one = np.ones(80)
    other = twins.squares([one, np.maximum(X[:, v] - beside, 0), np.maximum(beside - X[:, v], 0)], y)
    assert other > left * (1 + 1e-6)


@pytest.mark.parametrize("penalty", [0.0, 2.0, 3.0])
def test_pruning_removes_what_costs_least(rng, penalty):
    X, y = surface(rng)
    grown = grow(X, y, max_functions=16, max_degree=3)
    columns = values(grown.functions, X)
    path, kept = twins.prune(list(columns.T), y, grown.knots, penalty)
    pruned = prune(columns, y, grown.knots, penalty)
    assert [row[0] for row in pruned.path] == [row[0] for row in path]
    np.testing.assert_allclose([row[1] for row in pruned.path], [row[1] for row in path], rtol=1e-9)
    np.testing.assert_allclose([row[2] for row in pruned.path], [row[2] for row in path], rtol=1e-9)
    assert pruned.kept == kept
    assert pruned.gcv == pytest.approx(min(row[2] for row in path))


def test_copies_of_a_column_leave_at_no_cost(rng):
    X, y = surface(rng)
    grown = grow(X, y, max_functions=6, max_degree=1)
    columns = values(grown.functions, X)
    plain = prune(columns, y, grown.knots, 2.0)
    double = prune(np.column_stack([columns, columns[:, 1:] * 3]), y, [*grown.knots, *grown.knots], 2.0)
    assert double.gcv == pytest.approx(plain.gcv, rel=1e-9)
    assert len(double.kept) == len(plain.kept)


def test_the_span_between_knots_is_the_papers(rng):
    # eq. (43) says that a run of noise as long as L comes with probability α somewhere: n N 2^(-2.5 L) ~ -ln(1 - α)
    for D, N in ((1, 100), (8, 64), (32, 1024)):
        L = -np.log2(-np.log(0.95) / (D * N)) / 2.5
        assert D * N * 2 ** (-2.5 * L) == pytest.approx(-np.log(0.95))
        assert knot_span(D, N) == int(L)


@pytest.mark.parametrize("sign", [1, -1])
def test_rounded_corners_are_those_of_the_paper(sign):
    hinge = Hinge(0, 0.45, sign, 0.2, 0.6)
    x = np.linspace(0, 1, 101)
    np.testing.assert_allclose(hinge(x), [twins.cubic(v, sign, 0.2, 0.45, 0.6) for v in x], atol=1e-14)
    slope = np.diff(hinge(np.linspace(0, 1, 100_001))) * 1e5
    assert np.abs(np.diff(slope)).max() < 1e-3  # a hinge's slope jumps by one


def test_corners_end_half_way_to_the_next_knot():
    f = [(Hinge(0, 0.3, 1),), (Hinge(0, 0.7, -1),), (Hinge(0, 0.4, 1), Hinge(1, 0.5, 1)), (Hinge(1, 0.0, 1),)]
    (a,), (b,), (c, d), (e,) = rounded_off(f, np.zeros(2), np.ones(2))
    np.testing.assert_allclose([a.lower, a.upper, b.lower, b.upper], [0.15, 0.5, 0.5, 0.85])
    np.testing.assert_allclose([c.lower, c.upper, d.lower, d.upper], [0.2, 0.7, 0.25, 0.75])
    assert np.isnan(e.lower)  # at the end of the data


def test_two_valued_inputs_enter_linearly(rng):
    X = rng.integers(0, 2, size=(60, 2)).astype(float)
    y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=60)
    fit = fit_mars(X, y)
    assert all(h.sign == 0 for f in fit.functions for h in f)
    assert fit.effective == 3.0
    np.testing.assert_allclose(fit.predict(np.array([[2.0, 0.0]]) - [[1.0, 0.0]]), fit.predict(np.array([[1.0, 0.0]])))


def test_the_variance_is_that_of_least_squares(rng):
    X, y = surface(rng)
    fit = fit_mars(X, y, max_degree=2)
    H = fit.design(X)
    beta = np.linalg.lstsq(H, y, rcond=None)[0]
    np.testing.assert_allclose(fit.coef, beta, rtol=1e-6, atol=1e-9)
    noise = np.sum((y - H @ beta) ** 2) / (80 - fit.effective)
    new = fit.design(X[:5])
    expected = [noise * (1 + h @ np.linalg.inv(H.T @ H) @ h) for h in new]
    np.testing.assert_allclose(fit.variance(X[:5]), expected, rtol=1e-6)


def test_an_interruption_leaves_a_smaller_model(rng):
    X, y = surface(rng)

    def stop(done, of):
        if done >= 4:
            raise KeyboardInterrupt

    fit = fit_mars(X, y, max_degree=2, step=stop)
    assert fit.status is bs.Status.INTERRUPTED
    assert len(fit.history) == 2
    assert np.isfinite(fit.predict(X)).all()
