"""The parts of the sparse search, each against dense linear algebra or differences.

Guards `bayessel.linear.rvm.moves`, `bayessel.linear.rvm.newton`, `bayessel.linear.rvm.local_search`,
`bayessel.linear.rvm.starts`, `bayessel.linear.rvm.subsample_start`, `bayessel.linear.rvm.orthogonal_form`,
`bayessel.linear.rvm.gram_form`, `bayessel.linear.rvm.form_choice`, `bayessel.linear.rvm.duplicate_columns`,
`bayessel.linear.rvm.reestimation`, `bayessel.linear.rvm.third_level`, `bayessel.linear.rvm.perturb`,
`bayessel.linear.rvm.multistart`, `bayessel.linear.rvm.state`, `bayessel.linear.columns.dictionary`,
`bayessel.linear.columns.numerical_range`, `bayessel.linear.columns.interpolative`.
"""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal

import bayessel as bs
from bayessel.basis import LazyDesign
from bayessel.fit import Status
from bayessel.linear.columns.dictionary import Columns, as_columns
from bayessel.linear.columns.interpolative import skeleton
from bayessel.linear.columns.numerical_range import compress
from bayessel.linear.rvm import local_search, starts, subsample_start
from bayessel.linear.rvm.duplicate_columns import merged
from bayessel.linear.rvm.form_choice import choose_form, thin
from bayessel.linear.rvm.gram_form import GramForm
from bayessel.linear.rvm.local_search import RVMSearch, climb
from bayessel.linear.rvm.moves import add_gains, delete_gains, swap_gains
from bayessel.linear.rvm.newton import ascend, curvature, slopes
from bayessel.linear.rvm.orthogonal_form import OrthogonalForm
from bayessel.linear.rvm.perturb import perturb
from bayessel.linear.rvm.problem import RVMProblem
from bayessel.linear.rvm.reestimation import Reestimation
from bayessel.linear.rvm.third_level import RANGE
from tests.oracles.rvm_reference import exact_evidence


def unit(F):
    return F / np.linalg.norm(F, axis=0)


def dense(F, t, active, a, b):
    """log N(t | 0, I/beta + Phi A^-1 Phi^T) as SciPy sees it."""
    Phi = F[:, active]
    return multivariate_normal(np.zeros(len(t)), np.eye(len(t)) / np.exp(b) + (Phi / np.exp(a)) @ Phi.T).logpdf(t)


@pytest.fixture
def small(rng):
    F, t = unit(rng.normal(size=(25, 12))), rng.normal(size=25)
    return F, t, np.array([1, 4, 7, 10]), rng.normal(size=4), 0.7


def forms(F, t):
    Q, W = np.linalg.qr(F)
    z = Q.T @ t
    outside = float(np.sum((t - Q @ z) ** 2))  # of the target, where rows were rotated away
    return {
        "orthogonal": OrthogonalForm(F, t, 0.0, len(t)),
        "gram": GramForm(Columns(F), t),
        "thin": thin(F, t),
        "orthogonal, fewer rows": OrthogonalForm(W, z, outside, len(t)),
        "gram, fewer rows": GramForm(Columns(W), z, outside, len(t)),
    }


@pytest.mark.parametrize("name", ["orthogonal", "gram", "thin", "orthogonal, fewer rows", "gram, fewer rows"])
def test_every_form_has_the_dense_evidence_and_the_dense_scores(small, name):
    F, t, active, a, b = small
    form = forms(F, t)[name]
    state = form.solve(active, a, b)
    assert state.log_evidence == pytest.approx(dense(F, t, active, a, b), rel=1e-11)
    C = np.eye(25) / np.exp(b) + (F[:, active] / np.exp(a)) @ F[:, active].T
    scores = form.score(state)
    np.testing.assert_allclose(scores.S, np.einsum("ij,ij->j", F, np.linalg.solve(C, F)), rtol=1e-10)
    np.testing.assert_allclose(scores.Q, F.T @ np.linalg.solve(C, t), rtol=1e-9, atol=1e-12)
    mu = np.linalg.solve(np.diag(np.exp(a)) + np.exp(b) * F[:, active].T @ F[:, active], np.exp(b) * F[:, active].T @ t)
    np.testing.assert_allclose(state.v, np.exp(0.5 * a) * mu, rtol=1e-10)
    assert state.sum_squares == pytest.approx(np.sum((t - F[:, active] @ mu) ** 2), rel=1e-10)


def test_slopes_and_curvature_are_those_of_central_differences(small):
    F, t, active, a, b = small
    form = OrthogonalForm(F, t, 0.0, len(t))
    theta, h = np.append(a, b), 1e-4

    def value(x):
        return dense(F, t, active, x[:-1], x[-1])

    def gradient(x):
        return slopes(form.solve(active, x[:-1], x[-1]), len(t), True)

    step = h * np.eye(len(theta))
    difference = [(value(theta + e) - value(theta - e)) / (2 * h) for e in step]
    np.testing.assert_allclose(gradient(theta), difference, atol=1e-7)
    second = np.array([(gradient(theta + e) - gradient(theta - e)) / (2 * h) for e in step])
    np.testing.assert_allclose(-curvature(form.solve(active, a, b), len(t), True), second, atol=1e-6)


def test_gains_are_differences_of_dense_evidences(small):
    F, t, active, a, b = small
    t = t + F[:, 1::2] @ np.full(6, 3.0)
    form = OrthogonalForm(F, t, 0.0, len(t))
    state = form.solve(active, a, b)
    scores = form.score(state)
    now = dense(F, t, state.active, state.a, state.b)
    for j, gain in enumerate(delete_gains(state)):
        rest = np.delete(np.arange(state.size), j)
        assert gain == pytest.approx(dense(F, t, state.active[rest], state.a[rest], state.b) - now, abs=1e-9)
    swap, S, ratio = swap_gains(state, scores)
    checked = 0
    for m, gain in enumerate(add_gains(state, scores)):
        if np.isfinite(gain):
            best = 2 * np.log(scores.S[m]) - np.log(scores.Q[m] ** 2 - scores.S[m])
            new = dense(F, t, np.append(state.active, m), np.append(state.a, best), state.b)
            assert gain == pytest.approx(new - now, abs=1e-9)
        if m in state.active:
            continue
        for j in range(state.size):
            rest = np.delete(np.arange(state.size), j)
            if ratio[j, m] > 1.0:
                best = np.log(S[j, m]) - np.log(ratio[j, m] - 1.0)
                new = dense(F, t, np.append(state.active[rest], m), np.append(state.a[rest], best), state.b)
                assert swap[j, m] == pytest.approx(new - now, abs=1e-9)
                checked += 1
    assert checked > 5


def test_an_ascent_ends_where_the_slopes_vanish_and_never_goes_down(rng):
    F = unit(rng.normal(size=(40, 15)))
    t = F[:, :4] @ [4.0, -5.0, 6.0, 3.0] + 0.3 * rng.normal(size=40)
    form = OrthogonalForm(F, t, 0.0, 40)
    start = form.solve(np.arange(15), rng.normal(size=15), 0.0)
    end = ascend(form, start, steps=200, tol=1e-12)
    assert end.log_evidence > start.log_evidence
    assert np.abs(slopes(end, 40, True)).max() < 1e-5
    assert set(range(4)) <= set(end.active.tolist()) and end.size < 15


def test_kicks_never_lose(rng):
    F = unit(rng.normal(size=(50, 60)))
    t = F[:, :6] @ np.full(6, 3.0) + 0.3 * rng.normal(size=50)
    form = OrthogonalForm(F, t, 0.0, 50)
    search = RVMSearch(True, 40.0, 100)
    state = climb(form, starts.full(form, Reestimation(0.1)), search, tol=1e-3)
    assert perturb(form, state, search, 8, 1e-3).log_evidence >= state.log_evidence
    heights = [step["log_evidence"] for step in search.history if step["action"] != "start"]
    assert np.all(np.diff(heights) >= -1e-9)


@pytest.mark.parametrize("start", ["sequential", "greedy"])
def test_greedy_starts_find_what_is_beyond_doubt(rng, start):
    F = unit(rng.normal(size=(60, 30)))
    t = F[:, [2, 9]] @ [9.0, -7.0] + 0.1 * rng.normal(size=60)
    form = OrthogonalForm(F, t / t.std(), 0.0, 60)
    if start == "sequential":
        state = starts.sequential(form, -np.log(0.1), True)
    else:
        state = starts.greedy(form, -np.log(0.01))
    assert {2, 9} <= set(state.active.tolist())


def test_a_contest_in_heats_keeps_the_winners(rng):
    F = unit(rng.normal(size=(100, 300)))
    t = F[:, [5, 105, 205]] @ [9.0, 8.0, -7.0] + 0.05 * rng.normal(size=100)
    form = GramForm(Columns(F), t / t.std())
    form.heat = 100
    assert {5, 105, 205} <= set(starts.full(form, Reestimation(0.1)).active.tolist())


def test_a_smooth_dictionary_is_compressed_to_its_rank_and_a_stray_column_is_not_lost(rng):
    x = np.sort(rng.uniform(-10, 10, 500))
    F = np.column_stack([bs.RBFDictionary(x, 2.0).design(x), np.eye(500)[:, 123]])
    found = compress(as_columns(F), 400)
    assert found is not None
    U, W = found
    assert 20 < U.shape[1] < 80
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
    units = unit(F)
    assert np.linalg.norm(units - U @ (U.T @ units), axis=0).max() < 1e-11
    np.testing.assert_allclose(W, units.T @ U, atol=1e-12)
    assert compress(as_columns(rng.normal(size=(500, 500))), 400) is None


def test_a_skeleton_is_the_dictionary_it_stands_for(rng):
    x = rng.uniform(-10, 10, 2000)
    lazy = LazyDesign(bs.RBFDictionary(x, 2.0), x)
    U, W = skeleton(as_columns(lazy), 400)
    F = lazy.columns(np.arange(2001))
    assert np.abs(U @ W - F).max() < 1e-10
    assert (
        skeleton(
            as_columns(LazyDesign(bs.RBFDictionary(rng.uniform(size=(900, 8)), 0.5), rng.uniform(size=(900, 8)))), 100
        )
        is None
    )


@pytest.mark.parametrize("kind", ["float32", "lazy", "columns only", "fortran"])
def test_columns_are_the_same_wherever_they_are(rng, kind):
    x = rng.uniform(size=(70, 2))
    D = bs.RBFDictionary(x[:30], 0.4)
    F = D.design(x)

    class ColumnsOnly:
        shape = F.shape

        def columns(self, indices):
            return F[:, indices]

    given = {
        "float32": F.astype(np.float32),
        "lazy": LazyDesign(D, x),
        "columns only": ColumnsOnly(),
        "fortran": np.asfortranarray(F),
    }[kind]
    columns, tol = as_columns(given), 1e-6 if kind == "float32" else 1e-13
    V = rng.normal(size=(70, 3))
    np.testing.assert_allclose(columns.lengths, np.linalg.norm(F, axis=0), rtol=tol)
    np.testing.assert_allclose(columns.cross(V), unit(F).T @ V, atol=10 * tol)
    np.testing.assert_allclose(
        columns.gram(np.array([3, 5, 30])), (unit(F).T @ unit(F))[np.ix_([3, 5, 30], [3, 5, 30])], atol=tol
    )
    np.testing.assert_allclose(columns.store().raw(np.array([4, 30])), F[:, [4, 30]], atol=tol)
    assert columns.constant() == 30


def test_a_tall_problem_ends_as_if_all_rows_had_been_there_from_the_start(rng, monkeypatch):
    monkeypatch.setattr(subsample_start, "TALL", 500)
    monkeypatch.setattr(subsample_start, "ROWS", 400)
    F = rng.normal(size=(1500, 500))
    t = F[:, [7, 70, 300]] @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=1500)
    problem = RVMProblem.of(as_columns(F), t, None)
    assert subsample_start.wanted(problem)
    fit = bs.linear.fit_rvm(F, t)
    assert list(fit.starts) == ["some rows"] and {7, 70, 300} <= set(fit.basis.tolist())
    monkeypatch.setattr(subsample_start, "TALL", 10**9)
    whole = bs.linear.fit_rvm(F, t)
    assert fit.log_evidence == pytest.approx(whole.log_evidence, abs=5.0)


def test_third_level_evidence_is_close_to_its_integral(rng):
    """One column: the double integral over both log precisions, by quadrature."""
    phi = rng.normal(size=(40, 1))
    t = 1.5 * phi[:, 0] + 0.5 * rng.normal(size=40)
    fit = bs.linear.fit_rvm(phi, t)
    g, q, s = phi[:, 0] @ phi[:, 0], phi[:, 0] @ t, t @ t

    def density(a, b):
        beta, alpha = np.exp(b), np.exp(a)
        log_det = np.log1p(beta * g / alpha)
        quad = beta * (s - beta * q * q / (alpha + beta * g))
        return np.exp(-0.5 * (40 * np.log(2 * np.pi) - 40 * b + log_det + quad) - fit.log_evidence)

    a, b = np.log(fit.alpha[0]), np.log(fit.beta)
    mass, _ = dblquad(density, b - 3, b + 3, a - 12, a + 6)
    # two log precisions with the constants of two hyperparameters left out, see the module
    exact = fit.log_evidence + np.log(mass) - np.log(2 * np.pi)
    assert fit.model_evidence == pytest.approx(exact, abs=0.5)
    assert RANGE == pytest.approx(12 * np.log(10))


def test_the_form_suits_the_dictionary(rng):
    x = np.sort(rng.uniform(-10, 10, 600))
    _, smooth = choose_form(as_columns(bs.RBFDictionary(x, 2.0).design(x)), rng.normal(size=600))
    assert isinstance(smooth, OrthogonalForm) and smooth.rank < 80
    _, rough = choose_form(as_columns(rng.normal(size=(700, 650))), rng.normal(size=700))
    assert isinstance(rough, GramForm)


@pytest.mark.parametrize("restarts", [0, 3])
def test_restarts_only_help(rng, restarts):
    x = rng.uniform(size=(150, 4))
    F = bs.RBFDictionary(x, 0.8).design(x)
    t = np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=150)
    plain = bs.linear.fit_rvm(F, t, restarts=0)
    assert bs.linear.fit_rvm(F, t, restarts=restarts).log_evidence >= plain.log_evidence - 1e-6


def test_columns_of_which_the_length_is_nearly_one_are_not_copies(rng):
    # lengths measured in compressed coordinates are right to 1e-10 only
    F = unit(rng.normal(size=(50, 6))) * (1.0 - np.array([0.0, 1e-10, 1e-11, 3e-10, 0.0, 1e-12]))
    a = rng.normal(size=6)
    kept, together = merged(F, a, 1.0 - 1e-13)
    np.testing.assert_array_equal(np.sort(kept), np.arange(6))
    np.testing.assert_allclose(together, a[kept], rtol=1e-12)
    # and copies are, whatever their lengths
    kept, together = merged(np.column_stack([F, F[:, 0] * (1.0 - 1e-10)]), np.append(a, 9.0), 1.0 - 1e-13)
    np.testing.assert_array_equal(np.sort(kept), np.arange(6))
    np.testing.assert_allclose(together[kept == 0], -np.log(np.exp(-a[0]) + np.exp(-9.0)), rtol=1e-12)
    # and so is a column of the other sign: its weight has the other sign, and the prior is even
    kept, together = merged(np.column_stack([F, -F[:, 0]]), np.append(a, 9.0), 1.0 - 1e-13)
    np.testing.assert_array_equal(np.sort(kept), np.arange(6))
    np.testing.assert_allclose(together[kept == 0], -np.log(np.exp(-a[0]) + np.exp(-9.0)), rtol=1e-12)


def test_neighbours_whose_difference_is_needed_stay_two(rng):
    x = np.linspace(-3.0, 3.0, 200)
    bump = np.exp(-((x[:, None] - [0.0, 1e-7]) ** 2))
    t = -2.0 * x * bump[:, 0] + 0.05 * rng.normal(size=200)
    fit = bs.linear.fit_rvm(bump, t)
    # a derivative fits, one bump does not; the number is that of the model returned
    assert fit.n_basis == 2
    np.testing.assert_allclose(fit.log_evidence, float(exact_evidence(fit.design, t, fit.alpha, fit.beta)), rtol=1e-8)
    assert fit.log_evidence > bs.linear.fit_rvm(bump[:, :1], t).log_evidence + 100.0
    assert fit.status is bs.Status.ILL_CONDITIONED


@pytest.mark.parametrize("seed", [1, 2])
def test_several_starts_never_end_below_the_greedy_ones(seed):
    """Four thousand rows of a sinc, where the starts of all columns alone end two nats below."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-10, 10, 4000))[:, None]
    t = np.sinc(x[:, 0] / np.pi) + 0.1 * rng.normal(size=4000)
    design = bs.basis.LazyDesign(bs.RBFDictionary(x, 3.0, bias=True), x)
    auto, greedy = (bs.linear.fit_rvm(design, t, init=init) for init in ("auto", "greedy"))
    assert auto.log_evidence >= greedy.log_evidence - 1e-6
    assert set(greedy.starts) <= set(auto.starts)


def test_an_interrupt_leaves_the_best_that_was_found(rng, monkeypatch):
    F = rng.normal(size=(60, 30))
    t = F[:, [3, 7, 11]] @ [3.0, -2.0, 1.0] + 0.1 * rng.normal(size=60)
    whole = bs.linear.fit_rvm(F, t)
    calls, try_moves = [], local_search._try
    limit = 0

    def stops(*args):
        calls.append(1)
        if len(calls) == limit:
            raise KeyboardInterrupt
        return try_moves(*args)

    monkeypatch.setattr(local_search, "_try", stops)
    for limit in (1, 2, 5):  # in the first climb, and later
        calls.clear()
        cut = bs.linear.fit_rvm(F, t)
        assert len(calls) == limit
        assert cut.status is Status.INTERRUPTED and cut.notes[-1] is Status.INTERRUPTED
        assert {3, 7, 11} <= set(cut.basis.tolist()) and cut.log_evidence <= whole.log_evidence + 1e-9
        assert dense(F, t, cut.basis, np.log(cut.alpha), np.log(cut.beta)) == pytest.approx(cut.log_evidence)
    monkeypatch.setattr(starts, "full", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):  # nothing had been found
        bs.linear.fit_rvm(F, t)


def test_a_candidate_in_the_span_of_the_model_is_said_where_others_are_outside_it(rng):
    """At a noise so low that nothing but rounding of the sum of two columns is left; of the columns in use nothing."""
    F = unit(rng.normal(size=(25, 4)))
    F = np.column_stack([F, unit(F[:, 0] + F[:, 1])])
    t = 2.0 * F[:, 0] - F[:, 1]
    for last, said in ((4, False), (5, True)):
        form, search = GramForm(Columns(F[:, :last]), t), RVMSearch(False, 60.0, 5)
        state = form.solve(np.array([0, 1]), np.zeros(2), 2.0 * np.log(1e7))
        assert set(climb(form, state, search, tol=1e-3).active) >= {0, 1}
        assert search.collinear is said
