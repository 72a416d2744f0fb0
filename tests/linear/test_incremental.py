"""Adding and removing columns and rows against training again from nothing.

Guards `bayessel.linear.incremental`, `bayessel.linear._evidence`.
"""

import time
from collections.abc import Callable

import numpy as np
import pytest

from bayessel.linear.incremental import RidgeState
from tests.oracles import linear as oracles
from tests.problems import linear as problems


class Retrained:
    """The slow twin: keeps the arrays and solves everything afresh when asked."""

    def __init__(self, Phi: np.ndarray, t: np.ndarray, lam: np.ndarray) -> None:
        self.Phi, self.t, self.lam = Phi.copy(), t.copy(), np.broadcast_to(lam, Phi.shape[1]).astype(float)

    def add_row(self, h, y):
        self.Phi, self.t = np.vstack([self.Phi, h]), np.append(self.t, y)

    def remove_row(self, i):
        self.Phi, self.t = np.delete(self.Phi, i, axis=0), np.delete(self.t, i)

    def add_column(self, h, lam):
        self.Phi, self.lam = np.column_stack([self.Phi, h]), np.append(self.lam, lam)

    def remove_column(self, j):
        self.Phi, self.lam = np.delete(self.Phi, j, axis=1), np.delete(self.lam, j)

    def values(self, centre: bool) -> dict[str, np.ndarray]:
        """Weights (and bias), cost, sum of squares, and every criterion."""
        Phi, lam = self.Phi, self.lam
        if centre:
            Phi, lam = np.column_stack([Phi, np.ones(len(Phi))]), np.append(lam, 0.0)
        w = oracles.ridge_weights(Phi, self.t, lam)
        P = oracles.projection(Phi, lam)
        m = self.Phi.shape[1]
        return {
            "coef": w[:m],
            "intercept": w[m] if centre else 0.0,
            "cost": self.t @ P @ self.t,
            "sum_squares": np.sum((P @ self.t) ** 2),
            **oracles.criteria_from_projection(P, self.t),
        }


def values(state: RidgeState) -> dict[str, np.ndarray]:
    found = {key: getattr(state, key) for key in ("coef", "intercept", "cost", "sum_squares", "gamma")}
    return found | {key: value for key, value in state.criteria().items() if key != "gamma"}


def assert_same(state: RidgeState, twin: Retrained, centre: bool, rtol: float = 1e-9) -> None:
    got, want = values(state), twin.values(centre)
    scale = np.abs(want["coef"]).max()
    np.testing.assert_allclose(got.pop("coef") / scale, want.pop("coef") / scale, atol=rtol, err_msg="coef")
    np.testing.assert_allclose(got.pop("intercept"), want.pop("intercept"), rtol=rtol, atol=rtol * scale)
    for key, value in got.items():
        np.testing.assert_allclose(value, want[key], rtol=rtol, err_msg=key)
    np.testing.assert_array_equal(state.rows, twin.Phi)
    np.testing.assert_array_equal(state.target, twin.t)
    np.testing.assert_array_equal(state.lam, twin.lam)


@pytest.mark.parametrize("centre", [False, True])
def test_evidence_and_spread_after_changes(rng, centre):
    """log p(t | alpha = beta lambda, beta) and phi' (Phi'Phi + Lambda)^-1 phi of the changed model, bias included."""
    Phi, t = problems.regression_problem(rng, 20, 6)
    state, twin = RidgeState(Phi, t + 3.0, 0.3, centre=centre), Retrained(Phi, t + 3.0, 0.3)
    for which in (state, twin):
        which.add_column(np.linspace(-1, 1, 20), 0.01)
        which.remove_column(2)
        which.add_row(np.arange(6.0), 2.0)
        which.remove_row(4)
    for beta in (0.1, 7.0):
        want = oracles.exact_log_evidence(twin.Phi, twin.t, beta * twin.lam, beta, centre=centre)
        np.testing.assert_allclose(state.log_evidence(beta), want, rtol=1e-10)
    new = rng.normal(size=(4, 6))
    body, wide, lam = twin.Phi, new, twin.lam
    if centre:
        body, wide = (np.column_stack([A, np.ones(len(A))]) for A in (body, new))
        lam = np.append(lam, 0.0)
    inverse = np.linalg.inv(body.T @ body + np.diag(lam))
    np.testing.assert_allclose(state.variance(new), np.einsum("ij,jk,ik->i", wide, inverse, wide), rtol=1e-9)


OPERATIONS = ("add_row", "remove_row", "add_column", "remove_column")


def change(rng: np.random.Generator, name: str, state: RidgeState, twin: Retrained, column: Callable | None = None):
    """One operation on both."""
    n, m = twin.Phi.shape
    if name == "add_row":
        arguments = (rng.normal(size=m), float(rng.normal()))
    elif name == "remove_row":
        arguments = (int(rng.integers(n)),)
    elif name == "add_column":
        arguments = (rng.normal(size=n) if column is None else column(n), float(10 ** rng.uniform(-2, 1)))
    else:
        arguments = (int(rng.integers(m)),)
    getattr(state, name)(*arguments)
    getattr(twin, name)(*arguments)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("shape", [(20, 6), (9, 9), (6, 15), (30, 2)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_one_operation_is_retraining(rng, name, shape, centre):
    Phi, t = problems.regression_problem(rng, *shape)
    for lam in (0.3, 10 ** rng.uniform(-2, 1, shape[1])):
        state, twin = RidgeState(Phi, t, lam, centre=centre), Retrained(Phi, t, lam)
        assert_same(state, twin, centre)
        change(rng, name, state, twin)
        assert_same(state, twin, centre)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_operations_in_a_row(seed, centre):
    """Errors must not pile up: the last state is as good as the first."""
    rng = np.random.default_rng([77, seed])
    Phi, t = problems.regression_problem(rng, 25, 8)
    state, twin = RidgeState(Phi, t, 0.5, centre=centre), Retrained(Phi, t, 0.5)
    for step in range(200):
        n, m = twin.Phi.shape
        allowed = [o for o in OPERATIONS if not (o == "remove_row" and n < 15) and not (o == "remove_column" and m < 3)]
        allowed = [o for o in allowed if not (o == "add_column" and m > 12)]
        change(rng, str(rng.choice(allowed)), state, twin)
        if step % 20 == 19:
            assert_same(state, twin, centre)
    assert_same(state, twin, centre)


def test_a_sliding_window(rng):
    """Every row replaced several times, oldest first."""
    Phi, t = problems.regression_problem(rng, 30, 5)
    state, twin = RidgeState(Phi, t, 0.1), Retrained(Phi, t, 0.1)
    for _ in range(150):
        change(rng, "add_row", state, twin)
        state.remove_row(0)
        twin.remove_row(0)
    assert_same(state, twin, centre=False)


def test_removing_what_was_added_restores_the_fit(rng):
    Phi, t = problems.regression_problem(rng, 20, 6)
    state = RidgeState(Phi, t, 0.3)
    before = values(state)
    state.add_column(rng.normal(size=20), 0.1)
    state.remove_column(6)
    state.add_row(rng.normal(size=6) * 100, 50.0)
    state.remove_row(20)
    for key, value in values(state).items():
        np.testing.assert_allclose(value, before[key], rtol=1e-9, err_msg=key)


def test_a_duplicate_column_is_taken_in_by_its_penalty(rng):
    Phi, t = problems.regression_problem(rng, 20, 6)
    state, twin = RidgeState(Phi, t, 0.3), Retrained(Phi, t, 0.3)
    for which in (state, twin):
        which.add_column(Phi[:, 2], 0.2)
    assert_same(state, twin, centre=False)
    for which in (state, twin):
        which.remove_column(2)
    assert_same(state, twin, centre=False)


def test_wide_gaussians_within_the_stated_bound():
    """Relative errors at most 50 eps s_max / sqrt(lambda): the condition number, not its square."""
    for seed in range(4):
        rng = np.random.default_rng([78, seed])
        x = np.linspace(0, 1, 24)[:, None]
        Phi = oracles.radial("gaussian", x, np.linspace(0, 1, 12)[:, None], 1.0)
        t = np.sin(6 * x[:, 0]) + 0.1 * rng.normal(size=24)
        for lam in (1e-2, 1e-6, 1e-10, 1e-13):
            state, twin = RidgeState(Phi, t, lam), Retrained(Phi, t, lam)
            for _ in range(40):
                j, i = int(rng.integers(12)), int(rng.integers(24))
                h, y = twin.Phi[:, j], twin.t[i]
                for which in (state, twin):
                    which.remove_column(j)
                    which.add_column(h, lam)
                row = twin.Phi[i]
                for which in (state, twin):
                    which.remove_row(i)
                    which.add_row(row, y)
            exact = oracles.exact(twin.Phi, twin.t, lam, 1.0)
            bound = 50 * problems.EPS * np.linalg.norm(Phi, 2) / np.sqrt(lam)
            c = state.criteria()
            assert oracles.relative(state.cost, exact.cost) < bound
            assert oracles.relative(state.sum_squares, exact.error) < bound
            assert oracles.relative(state.gamma, exact.gamma) < bound
            assert oracles.relative(c["gcv"], exact.gcv) < bound
            assert oracles.relative(c["loo"], exact.loo) < bound


def test_a_forgotten_penalty_would_be_seen(rng):
    """Control: a twin whose new column has another penalty must disagree."""
    Phi, t = problems.regression_problem(rng, 20, 6)
    state, twin = RidgeState(Phi, t, 0.3), Retrained(Phi, t, 0.3)
    h = rng.normal(size=20)
    state.add_column(h, 0.1)
    twin.add_column(h, 0.1001)
    with pytest.raises(AssertionError):
        assert_same(state, twin, centre=False)


def test_without_any_penalty(rng):
    Phi, t = problems.regression_problem(rng, 20, 4)
    state, twin = RidgeState(Phi, t, 0.0), Retrained(Phi, t, 0.0)
    for which in (state, twin):
        which.remove_row(3)
        which.add_column(np.linspace(-1, 1, 19), 0.0)
        which.remove_column(1)
    assert_same(state, twin, centre=False)


@pytest.mark.parametrize("centre", [False, True])
def test_rows_of_high_leverage_can_be_forgotten(centre):
    """The downdate of a row that carries all but 1e-20 of a direction has no digits left: the rows must be asked."""
    for seed in range(40):
        rng = np.random.default_rng([79, seed])
        Phi, t = problems.regression_problem(rng, 20, 6)
        Phi[:, 2] *= 1e-7
        Phi[4] = rng.normal(size=6) * 1e3
        state, twin = RidgeState(Phi, t, 1e-12, centre=centre), Retrained(Phi, t, 1e-12)
        for which in (state, twin):
            which.remove_row(4)
        scale = np.abs(want := twin.values(centre)["coef"])
        np.testing.assert_allclose(state.coef / scale, want / scale, atol=1e-5)


def test_a_bias_takes_up_any_offset_of_the_target(rng):
    """Adding and removing rows around 1e12 is adding and removing them around zero."""
    Phi, t = problems.regression_problem(rng, 30, 5)
    t = np.round(t * 2.0**10)  # whole numbers, so that the offset rounds nothing
    near, far = RidgeState(Phi, t, 0.3, centre=True), RidgeState(Phi, t + 2.0**50, 0.3, centre=True)
    for state, offset in ((near, 0.0), (far, 2.0**50)):
        for k in range(20):
            state.add_row(Phi[k] + 0.1, float(t[k]) + offset)
        for _ in range(20):
            state.remove_row(3)
    moved = np.abs(near.coef).max() * 1e-9
    np.testing.assert_allclose(far.coef, near.coef, atol=moved)
    np.testing.assert_allclose(far.cost, near.cost, rtol=1e-9)
    np.testing.assert_allclose(far.sum_squares, near.sum_squares, rtol=1e-9)
    np.testing.assert_allclose(far.intercept - 2.0**50, near.intercept, atol=0.5)
    np.testing.assert_allclose(far.log_evidence(1e-6), near.log_evidence(1e-6), atol=1e-6)


@pytest.mark.parametrize("centre", [False, True])
def test_fewer_rows_than_free_columns(rng, centre):
    """Without penalty: the shortest weights, gamma = N, and a variance that is infinite but at the rows."""
    Phi, t = problems.regression_problem(rng, 4, 7)
    state = RidgeState(Phi, t, 0.0, centre=centre)
    assert not state.is_determined
    fitted = state.rows @ state.coef + state.intercept
    np.testing.assert_allclose(fitted, t, rtol=1e-9)
    assert state.gamma == pytest.approx(4.0) and np.isnan(state.log_evidence(1.0))
    np.testing.assert_allclose(state.variance(Phi), 1.0, rtol=1e-9)  # leverages of one
    assert np.isinf(state.variance(rng.normal(size=(3, 7)))).all()
    twin = Retrained(Phi, t, 0.0)
    more = rng.normal(size=(12, 8))
    for which in (state, twin):
        which.add_column(np.array([1.0, -1.0, 2.0, 0.5]), 0.0)
        for h in more:
            which.add_row(h, float(h.sum()))
    assert state.is_determined
    assert_same(state, twin, centre, rtol=1e-8)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("remove_row", (20,)),
        ("remove_row", (-1,)),
        ("remove_row", (0.5,)),
        ("remove_column", (6,)),
        ("remove_column", ("a",)),
        ("add_row", ([1.0], 0.0)),
        ("add_row", ([1.0] * 6, np.nan)),
        ("add_row", ([np.inf] * 6, 0.0)),
        ("add_column", ([1.0] * 3, 1.0)),
        ("add_column", ([1.0] * 20, -1.0)),
        ("add_column", ([np.nan] * 20, 1.0)),
    ],
)
def test_bad_operations_are_refused_and_change_nothing(rng, operation, arguments):
    Phi, t = problems.regression_problem(rng, 20, 6)
    state, twin = RidgeState(Phi, t, 0.3), Retrained(Phi, t, 0.3)
    with pytest.raises((ValueError, TypeError)) as refusal:
        getattr(state, operation)(*arguments)
    assert len(str(refusal.value)) > 20
    assert_same(state, twin, centre=False)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_twenty_times_cheaper_than_retraining(rng, operation):
    """N = 5000, M = 200; medians of seven, the same penalty and the weights read at the end of each."""
    Phi, t = problems.regression_problem(rng, 5000, 200)
    row, column = rng.normal(size=200), rng.normal(size=5000)

    def seconds(work: Callable[[], object]) -> float:
        taken = []
        for _ in range(7):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
        return float(np.median(taken))

    def step() -> None:
        if operation == "add_row":
            state.add_row(row, 1.0)
        elif operation == "remove_row":
            state.remove_row(0)
        elif operation == "add_column":
            state.add_column(column, 0.1)
        else:
            state.remove_column(0)
        assert len(state.coef)

    retraining = seconds(lambda: RidgeState(Phi, t, 0.1).coef)
    state = RidgeState(Phi, t, 0.1)
    assert seconds(step) < retraining / 20


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("lam", [1e-3, 1e-5])
def test_a_column_that_explains_nearly_all_leaves_its_penalty_in_the_cost(rng, centre, lam):
    """What is left is the length of the weights, far below the fall of the cost that it is the difference of."""
    Phi, t = rng.normal(size=(12, 3)), rng.normal(size=12)
    column = t + 1e-5 * rng.normal(size=12)
    state, twin = RidgeState(Phi, t, lam, centre=centre), Retrained(Phi, t, lam)
    state.add_column(column, lam)
    twin.add_column(column, lam)
    assert state.cost < 0.01 * (t @ t)
    np.testing.assert_allclose(state.cost, twin.values(centre)["cost"], rtol=1e-7)
