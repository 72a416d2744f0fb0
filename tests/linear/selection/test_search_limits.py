"""Searches that end where they are told to: a largest size, an interrupt anywhere, a snapshot of one's own.

Guards `bayessel.linear.selection._search`, `bayessel.linear.selection.working_model`,
`bayessel.linear.selection.strategies`.
"""

import numpy as np
import pytest

from bayessel.fit import Status
from bayessel.linear import fit_evidence, search
from bayessel.linear.selection import PTA, Oscil
from bayessel.linear.selection.working_model import WorkingModel
from tests.linear.selection.test_search import STRATEGIES, toy


@pytest.mark.parametrize("within", [0.0, 1.0, 1e6])
def test_a_snapshot_of_ones_own_is_what_is_returned(within, rng):
    F, t, _ = toy(rng, 80)

    def fixed(search):
        while search.size < 12 and search.add():
            pass
        place = search.snapshot()
        for _ in range(8):
            search.add()
        return place

    fit = search(F, t, fixed, within=within)
    assert fit.n_basis == 12
    assert fit.n_added == 20
    assert fit.basis.tolist() == sorted(fit.path[12].basis)
    nothing = search(F, t, PTA(1, 0), within=within)
    assert nothing.n_basis == search(F, t, "pta(1,0)", within=within).n_basis
    named, object_ = search(F, t, "oscil(2)", within=within), search(F, t, Oscil(2), within=within)
    assert named.basis.tolist() == object_.basis.tolist()  # theirs is the smallest near the best, if any nats are given
    assert within < 1e6 or named.n_basis == 1


def test_a_snapshot_does_not_survive_an_interrupt(rng):
    F, t, _ = toy(rng, 80)

    def broken(search):
        for _ in range(5):
            search.add()
        raise KeyboardInterrupt

    fit = search(F, t, broken)
    assert fit.status is Status.INTERRUPTED
    assert 1 <= fit.n_basis <= 5


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_narrow_functions_are_held_by_a_largest_size(strategy):
    """Each explains a row: without the limit the model grows to nearly all of them."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 1, 120))
    F = np.exp(-(((x[:, None] - x) / 1e-3) ** 2))
    t = np.sin(6 * x) + 0.1 * rng.normal(size=120)
    fit = search(F, t, strategy, max_size=10, within=0.0)
    assert fit.n_basis <= 10
    swing = 3 if "oscil" in strategy else 0  # one swing goes past it, and is not counted
    assert max(at["n_basis"] for at in fit.history) <= 10 + swing
    assert fit.n_added < 60
    if strategy == "pta(1,0)":
        free = search(F, t, strategy, within=0.0)
        assert free.n_basis > 100
        assert fit.order.tolist() == free.order[:10].tolist()
        assert Status.STEP_LIMIT in fit.notes and Status.STEP_LIMIT not in free.notes  # it was still getting better
    whole = search(F[:, :10], t, strategy, max_size=10)
    assert Status.STEP_LIMIT not in whole.notes  # there is nothing more


@pytest.mark.parametrize("within", [0.0, 1.0])
@pytest.mark.parametrize("strategy", ["oscil(3)", "beyond"])
def test_a_better_model_beyond_the_largest_size_is_not_returned(strategy, within):
    """A swing may pass the largest size, where the evidence is still rising; what it saw there does not count."""

    def beyond(work):
        while work.add():
            pass
        while work.size < 14:
            assert work.add(beyond=True)
        assert work.path[14].value > work.path[10].value + 1.0
        assert (work.best_size, work.best_value) == (10, work.path[10].value)

    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 1, 120))
    F = np.exp(-(((x[:, None] - x) / 1e-3) ** 2))
    t = np.sin(6 * x) + 0.1 * rng.normal(size=120)
    fit = search(F, t, beyond if strategy == "beyond" else strategy, max_size=10, within=within)
    assert 0 < fit.n_basis <= 10


def test_gains_after_going_back_are_those_of_that_model(rng):
    """To a snapshot, whatever was added and removed since: the gains are those from before, to rounding."""
    F = rng.normal(size=(50, 20))
    t = F[:, [2, 5, 11]] @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=50)
    compared = []

    def there_and_back(work):
        for _ in range(4):
            work.add()
        place, gains = work.snapshot(), work.gains().copy()
        for change in (work.add, work.add, work.remove, work.remove, work.remove, work.add):
            assert change()
            work.gains()
            other = work.gains().copy()
            work.restore(place)
            np.testing.assert_allclose(work.gains(), gains, rtol=1e-8, atol=1e-10)
            compared.append(not np.allclose(other, gains, rtol=1e-3))
        return place

    assert search(F, t, there_and_back, within=0.0).n_basis == 4
    assert len(compared) == 6 and all(compared)


def test_a_strategy_that_adds_nothing_is_told_so(rng):
    """Its empty model would be said to be what the evidence prefers."""
    F, t, _ = toy(rng, 40)
    for idle in (lambda search: None, lambda search: search.remove(), lambda search: search.snapshot()):
        with pytest.raises(ValueError, match=r"search\.add\(\)"):
            search(F, t, idle)
    assert search(F, np.ones(40), lambda search: None, centre=True).status is Status.CONSTANT_TARGET


@pytest.mark.parametrize("where", ["add", "remove", "project", "_products"])
@pytest.mark.parametrize("when", [2, 9])
def test_an_interrupt_anywhere_leaves_the_best_seen(where, when, monkeypatch, rng):
    """It comes half-way through a change, not where a callback would raise it."""
    F, t, _ = toy(rng, 80)
    seen, calls, inner = [], [], getattr(WorkingModel, where)

    def stops(self, *arguments):
        calls.append(1)
        result = inner(self, *arguments)
        if len(calls) == when + 1:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(WorkingModel, where, stops)
    fit = search(F, t, "pta(2,1)", within=0.0, callback=lambda s: seen.append((s.value, tuple(s.model.active))))
    assert fit.status is Status.INTERRUPTED
    value, active = max(seen)
    assert fit.basis.tolist() == sorted(active)
    assert fit.log_evidence == pytest.approx(fit_evidence(F[:, fit.basis], t).log_evidence, rel=1e-10)
    assert value <= fit.path[fit.n_basis].value + 1e-9


def test_an_interrupt_before_the_first_function_leaves_noise(rng):
    F, t, _ = toy(rng, 40)

    def stops(search):
        raise KeyboardInterrupt

    fit = search(F, t, stops)
    assert fit.n_basis == 0
    assert fit.status is Status.INTERRUPTED
    np.testing.assert_array_equal(fit.predict(np.ones((2, 40))).mean, 0.0)


def test_columns_of_very_different_lengths_leave_no_overflow(rng):
    """Ratios down to 1e-70: their powers leave double precision, what is made of them need not."""
    F = rng.normal(size=(12, 6)) * 10.0 ** np.array([60.0, -8.0, 40.0, 0.0, 20.0, -5.0])
    t = F[:, 1] / np.linalg.norm(F[:, 1]) + 0.1 * rng.normal(size=12)
    plain = F / np.linalg.norm(F, axis=0)
    with np.errstate(all="raise", under="ignore"):
        for strategy in ("pta(1,0)", "sffs"):
            for first in range(6):
                fit = search(F[:, [first, 1]], t, strategy)
                assert np.isfinite(fit.log_evidence)
                alone = fit_evidence(plain[:, [first, 1]][:, fit.basis], t)
                if fit.n_basis == 1:
                    assert fit.log_evidence == pytest.approx(alone.log_evidence, rel=1e-8)
