"""Compiled loops of the relevance vector machine against the arrays they replace.

Guards `bayessel.linear.rvm.compiled_ascent`, `bayessel.linear.rvm.compiled_exchanges`, `bayessel.linear.rvm.newton`,
`bayessel.linear.rvm.recombine`.
"""

import numpy as np
import pytest

from bayessel.linear.columns.dictionary import as_columns
from bayessel.linear.rvm import starts
from bayessel.linear.rvm.compiled_exchanges import best_exchanges
from bayessel.linear.rvm.gram_form import GramForm
from bayessel.linear.rvm.moves import add_gains, delete_gains, exchange_couplings, swap_gains
from bayessel.linear.rvm.newton import ascend, ascend_step_by_step
from bayessel.linear.rvm.orthogonal_form import WELL_CONDITIONED, OrthogonalForm
from bayessel.linear.rvm.problem import RVMProblem
from bayessel.linear.rvm.recombine import CONTESTS, recombined
from tests.problems.rvm import kernels


def curve(rng, n, width, noise=0.1):
    x, H = kernels(rng, n, width)
    return H, np.sin(7.0 * x) + noise * rng.normal(size=n)


def forms(rng):
    """Coordinates that are few, coordinates as many as rows, and inner products."""
    wide, t = curve(rng, 60, 0.5)
    yield RVMProblem.of(as_columns(wide), t, None).form
    loose = rng.normal(size=(90, 120))
    u = loose[:, :4] @ [2.0, -1.0, 1.0, 0.5] + 0.3 * rng.normal(size=90)
    yield RVMProblem.of(as_columns(loose), u, None).form
    yield GramForm(as_columns(loose), u / u.std())


def model(form, rng, k, spread, b):
    active = np.sort(rng.choice(form.candidates, k, replace=False))
    return form.solve(active, spread * rng.normal(size=k), b)


@pytest.mark.parametrize("learn_noise", [True, False])
@pytest.mark.parametrize("steps", [3, 40])
def test_compiled_ascents_end_where_arrays_do(rng, learn_noise, steps):
    for form in forms(rng):
        for k, spread, b in [(1, 1.0, 3.0), (4, 3.0, 5.0), (12, 1.0, 2.0)]:
            start = model(form, rng, k, spread, b)
            options = {"learn_noise": learn_noise, "steps": steps, "tol": 1e-9, "b_max": 60.0}
            fast, slow = ascend(form, start, **options), ascend_step_by_step(form, start, **options)
            np.testing.assert_array_equal(fast.active, slow.active)
            np.testing.assert_allclose(fast.log_evidence, slow.log_evidence, rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(fast.a, slow.a, atol=1e-3)
            assert fast.log_evidence >= start.log_evidence


def test_compiled_ascents_of_columns_that_cancel(rng):
    """Precisions so low that I + X^T X must not be formed: it is factored from the stacked columns."""
    H, t = curve(rng, 40, 2.0, 1e-4)
    form = RVMProblem.of(as_columns(H), t, None).form
    assert isinstance(form, OrthogonalForm)
    start = form.solve(np.arange(0, 40, 6), np.full(7, -12.0), 12.0)
    assert start.scale @ start.scale > 100.0 * WELL_CONDITIONED
    options = {"learn_noise": True, "steps": 2, "tol": 1e-9, "b_max": 60.0}
    fast, slow = ascend(form, start, **options), ascend_step_by_step(form, start, **options)
    np.testing.assert_array_equal(fast.active, slow.active)
    assert fast.log_evidence > start.log_evidence + 1.0
    np.testing.assert_allclose(fast.log_evidence, slow.log_evidence, rtol=1e-6)


def test_best_exchanges_are_the_largest_of_all_exchanges(rng):
    for form in forms(rng):
        state = model(form, rng, 6, 0.5, 2.0)
        scores = form.score(state)
        swap, S, ratio = swap_gains(state, scores)
        swap[ratio <= 1.0] = -np.inf  # nothing comes in
        couplings, pull = exchange_couplings(state, scores)
        closed = scores.collinear.copy()
        closed[state.active] = True
        floor = np.maximum(add_gains(state, scores), 1e-3)
        best, leaver, a = best_exchanges(couplings, scores.S, scores.Q, pull, delete_gains(state), closed, floor)
        everyone = np.arange(form.n_columns)
        j = np.argmax(swap, axis=0)
        np.testing.assert_array_equal(leaver, np.where(swap[j, everyone] > floor, j, -1))
        better = leaver >= 0
        assert better.any()
        np.testing.assert_allclose(best[better], swap[leaver, everyone][better], rtol=1e-9)
        at = leaver[better], everyone[better]
        np.testing.assert_allclose(a[better], np.log(S[at] / (ratio[at] - 1.0)), rtol=1e-9, atol=1e-9)


def test_exchanges_out_of_question_are_not_offered(rng):
    form = next(forms(rng))
    state = model(form, rng, 6, 0.5, 2.0)
    scores = form.score(state)
    couplings, pull = exchange_couplings(state, scores)
    nobody, low = np.ones(form.n_columns, dtype=bool), np.zeros(form.n_columns)
    arguments = scores.S, scores.Q, pull, delete_gains(state)
    assert (best_exchanges(couplings, *arguments, nobody, low)[1] == -1).all()
    assert (best_exchanges(np.full_like(couplings, np.nan), *arguments, ~nobody, low)[1] == -1).all()


def test_combined_starts_take_columns_of_the_models_alone(rng):
    Phi = rng.normal(size=(150, 200))
    t = Phi[:, :40] @ rng.normal(size=40) + 0.5 * rng.normal(size=150)
    problem = RVMProblem.of(as_columns(Phi), t, None)
    models = [starts.greedy(problem.form, problem.level(noise)) for noise in (0.1, 0.01)]
    found = dict(recombined(problem, models))
    assert len(found) == len(CONTESTS)
    for state in found.values():
        assert set(state.active) <= set(models[0].active) | set(models[1].active)
    few = [problem.form.solve(np.arange(3), np.zeros(3), 0.0)]
    assert not list(recombined(problem, few))
