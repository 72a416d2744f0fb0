"""fit_loomi: leave-one-out by leaving out, every choice by a slow search, the paper's example, weights, odd data.

Guards `bayessel.linear.loomi._fit_loomi`, `bayessel.linear.loomi.information`, `bayessel.linear.loomi.loomi_selection`,
`bayessel.linear.loomi.penalty`, `bayessel.linear.loomi.result`.
"""

import math

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import mutual_info_score

from bayessel.basis import LazyDesign, RBFDictionary
from bayessel.fit import Status
from bayessel.linear.loomi import fit_loomi, loomi_selection
from bayessel.linear.loomi.information import mutual_information
from bayessel.linear.loomi.penalty import fitted_penalty

EPS = float(np.finfo(float).eps)


def moons(rng, n=60, noise=0.25):
    """Two crescents, ±1, of unequal number."""
    y = np.where(rng.uniform(size=n) < 0.6, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    angle = rng.uniform(0, np.pi, n)
    X = np.c_[np.cos(angle) + (y > 0), y * (0.5 - np.sin(angle))] + noise * rng.normal(size=(n, 2))
    return X, y


def problem(rng, n=60, width=1.0, **options):
    X, y = moons(rng, n, **options)
    return RBFDictionary(X, width, bias=False).design(X), y


def root(fit):
    """R of the penalty RᵀR: Λ^{1/2} A."""
    R = np.sqrt(fit.penalties)[:, None] * fit.A
    np.testing.assert_allclose(R.T @ R, fit.penalty_matrix, rtol=1e-9, atol=1e-12)
    return R


def left_out(Phi, y, R, omega=None):
    """Output for each row of the fit without it, with the penalty ‖Rθ‖²: N least-squares problems, nothing squared."""
    omega = np.ones(len(y)) if omega is None else omega
    found = np.empty(len(y))
    for k in range(len(y)):
        rows = np.arange(len(y)) != k
        stacked = np.vstack([Phi[rows] * np.sqrt(omega[rows])[:, None], R])
        found[k] = Phi[k] @ np.linalg.lstsq(stacked, np.r_[y[rows] * np.sqrt(omega[rows]), np.zeros(len(R))])[0]
    return found


def bits(y, labels, omega=None):
    """Mutual information from a 2×2 table of weights, by scikit-learn (base e) where weights are whole numbers."""
    omega = np.ones(len(y)) if omega is None else omega
    J = 0.0
    for a in (-1, 1):
        for b in (-1, 1):
            joint = omega[(y == a) & (labels == b)].sum() / omega.sum()
            if joint:
                pair = omega[y == a].sum() / omega.sum() * omega[labels == b].sum() / omega.sum()
                J += joint * math.log2(joint / pair)
    return J


def signed(y, labels, omega=None):
    omega = np.ones(len(y)) if omega is None else omega
    hit = omega[(y > 0) & (labels > 0)].sum() / omega[y > 0].sum()
    miss = omega[(y < 0) & (labels > 0)].sum() / omega[y < 0].sum()
    return math.copysign(bits(y, labels, omega), 1.0 if hit >= miss else -1.0)


def term_evidence(w, e, ratio, precision):
    """log N(e | 0, I/ε + wwᵀ/h), h = ratio · ε."""
    cov = np.eye(len(e)) / precision + np.outer(w, w) / (ratio * precision)
    return scipy.stats.multivariate_normal(np.zeros(len(e)), cov).logpdf(e)


def slow_selection(F, y, size, lam0=1e-6, omega=None):
    """The paper's section 5 with a dense solve for every candidate: columns and penalties.

    Weights multiply rows by their roots; a leave-one-out output is then in units of the root.
    """
    chosen, penalties, W, g = [], [], [], []
    omega = np.ones(len(y)) if omega is None else omega * (len(y) / omega.sum())
    F, signs, y = F * np.sqrt(omega)[:, None], y, y * np.sqrt(omega)
    for stage in range(size):
        e = y - sum((gi * w for gi, w in zip(g, W, strict=True)), np.zeros(len(y)))
        best = None
        for j in set(range(F.shape[1])) - set(chosen):
            w = F[:, j].copy()
            if W:
                Q = np.array(W).T
                w = w - Q @ np.linalg.lstsq(Q, w, rcond=None)[0]
            trial = [*W, w]
            lam = np.array([*penalties, lam0])
            M = np.array(trial).T
            hat = M @ np.diag(1.0 / ((M**2).sum(0) + lam)) @ M.T
            own = np.diag(hat).copy()
            np.fill_diagonal(hat, 0.0)
            out = hat @ y
            out = np.where(abs(out) > 1e-14, out / (1.0 - own), 0.0)
            mse = np.mean((y - out) ** 2)
            score = -mse if stage == 0 else round(signed(signs, np.where(out * signs > 0, signs, -signs), omega), 12)
            if best is None or score > best[0] or (score == best[0] and j < best[1]):
                best = (score, j, w)
        chosen.append(best[1])
        W.append(best[2])
        kappa, lam = W[-1] @ W[-1], lam0
        for _ in range(10):
            gl = W[-1] @ e / (kappa + lam)
            eps = (len(y) - kappa / (kappa + lam)) / (e @ e - gl**2 * (kappa + 2 * lam))
            lam = kappa / (gl**2 * (kappa + lam)) / eps
        lam = lam if 0 < lam <= 1e6 else lam0
        penalties.append(lam)
        g.append(W[-1] @ e / (kappa + lam))
    return chosen, penalties


# --- leaving out -----------------------------------------------------------------------------------------------


def test_leave_one_out_is_leaving_out_with_the_same_penalty(rng):
    share = []
    for _ in range(50):
        F, y = problem(rng, int(rng.integers(12, 60)), float(rng.uniform(0.5, 1.5)))
        fit = fit_loomi(F, y, min_size=int(rng.integers(1, 6)))
        truth = left_out(fit.design, y, root(fit))
        scale = np.linalg.cond(fit.design) * EPS * 1e3 + 1e-9
        np.testing.assert_allclose(fit.loo_output, truth, atol=scale)
        labels = np.where(truth * y > 0, y, -y)
        clear = abs(truth) > scale
        np.testing.assert_array_equal(fit.loo_labels[clear], labels[clear])
        share.append(clear.mean())
        assert fit.mutual_information == pytest.approx(signed(y, fit.loo_labels), abs=1e-12)
        assert fit.loo_error == pytest.approx(np.mean(fit.loo_labels != y), abs=1e-12)
        assert fit.loo_mse == pytest.approx(np.mean((y - fit.loo_output) ** 2), rel=1e-9)
        whole = np.linalg.lstsq(np.vstack([fit.design, root(fit)]), np.r_[y, np.zeros(fit.n_basis)])[0]
        np.testing.assert_allclose(fit.design @ fit.coef, fit.design @ whole, atol=scale)
    assert np.mean(share) > 0.97


def test_another_penalty_gives_other_outputs(rng):
    F, y = problem(rng)
    fit = fit_loomi(F, y, min_size=4)
    other = left_out(fit.design, y, root(fit) * np.sqrt(1.1))
    assert abs(other - fit.loo_output).max() > 1e-4


@pytest.mark.parametrize("kind", ["classes", "rows"])
def test_weighted_leave_one_out_is_leaving_out(rng, kind):
    F, y = problem(rng, 50)
    omega = np.where(y > 0, 1.0, 4.0) if kind == "classes" else rng.uniform(0.2, 3.0, 50)
    fit = fit_loomi(F, y, weights=omega, min_size=4)
    assert fit.weights.sum() == pytest.approx(50)
    np.testing.assert_allclose(left_out(fit.design, y, root(fit), fit.weights), fit.loo_output, atol=1e-8)
    assert fit.mutual_information == pytest.approx(signed(y, fit.loo_labels, omega), abs=1e-12)
    assert fit.loo_error == pytest.approx(omega[fit.loo_labels != y].sum() / omega.sum(), abs=1e-12)
    np.testing.assert_allclose(fit_loomi(F, y, weights=7 * omega, min_size=4).coef, fit.coef, rtol=1e-9)


# --- the choices -----------------------------------------------------------------------------------------------


def test_every_choice_is_that_of_a_slow_search(rng):
    for k in range(21):
        F, y = problem(rng, int(rng.integers(12, 36)), float(rng.uniform(0.2, 0.9)))
        omega = (None, np.where(y > 0, 1.0, 6.0), rng.uniform(0.05, 3.0, len(y)))[k % 3]
        fit = fit_loomi(F, y, min_size=5, max_size=5, weights=omega)
        chosen, penalties = slow_selection(F, y, 5, omega=omega)
        assert fit.basis.tolist() == chosen
        np.testing.assert_allclose(fit.penalties, penalties, rtol=1e-5)
        assert fit.history[4]["mutual_information"] == pytest.approx(signed(y, fit.loo_labels, omega), abs=1e-9)


def test_the_first_term_has_the_smallest_leave_one_out_error_not_the_smallest_error():
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    alone = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])  # fits its own row and says nothing of the others
    wide = np.array([0.6, 0.5, 0.6, 0.9, 0.6, 0.7]) * [1, 1, 1, 0.05, 0.05, 0.05]
    narrow = np.array([0.0, 1.0, 0.02, -1e-3, -0.9, 0.0])
    F = np.c_[alone, narrow, wide]
    truth = [np.mean((y - left_out(c[:, None], y, np.array([[1e-3]]))) ** 2) for c in F.T]
    plain = [np.mean((y - c * (c @ y) / (c @ c)) ** 2) for c in F.T]
    assert fit_loomi(F, y, max_size=1).basis.tolist() == [int(np.argmin(truth))]
    F2 = np.c_[narrow, wide * 0.2]
    assert np.argmin(truth) == 2 and np.argsort(plain)[0] != 0 and fit_loomi(F2, y, max_size=1).basis.tolist() == [1]


def test_blocks_of_candidates_change_nothing(rng, monkeypatch):
    F, y = problem(rng, 50)
    whole = fit_loomi(F, y, min_size=6)
    monkeypatch.setattr(loomi_selection, "_BLOCK", 150)
    parts = fit_loomi(F, y, min_size=6)
    assert whole.basis.tolist() == parts.basis.tolist()
    np.testing.assert_allclose(whole.coef, parts.coef, rtol=1e-9)


def test_mutual_information_is_scikit_learns_with_a_sign(rng):
    for _ in range(50):
        positive, negative = rng.integers(1, 40, 2)
        a, b = rng.integers(0, positive + 1), rng.integers(0, negative + 1)
        y = np.r_[np.ones(positive), -np.ones(negative)]
        called = np.r_[np.ones(a), -np.ones(positive - a), np.ones(b), -np.ones(negative - b)]
        J = float(mutual_information(a, b, positive, negative))
        assert abs(J) == pytest.approx(mutual_info_score(y, called) / math.log(2), abs=1e-12)
        assert J * (a / positive - b / negative) >= 0.0


def test_the_penalty_of_a_term_maximises_its_evidence(rng):
    for _ in range(20):
        n = 40
        w = rng.normal(size=n)
        e = rng.uniform(0.5, 2.0) * w + rng.normal(size=n)
        lam = fitted_penalty(w, e, 1e-6)
        eps = (n - w @ w / (w @ w + lam)) / np.sum((e - w * (w @ e) / (w @ w + lam)) ** 2)

        here = term_evidence(w, e, lam, eps)
        for factor in (0.9, 1.1):
            assert term_evidence(w, e, lam * factor, eps) < here + 1e-6
            assert term_evidence(w, e, lam, eps * factor) < here + 1e-6


def test_a_penalty_that_diverges_starts_again():
    w, e = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 1.0, -1.0, -1.0])
    assert fitted_penalty(w, e, 1e-6) == 1e-6  # orthogonal
    assert 0.0 < fitted_penalty(w, 2.0 * w, 1e-6) <= 1e-6  # exact
    rng = np.random.default_rng(3)
    w, e = rng.normal(size=(2, 200))
    e -= 0.98 * (w @ e) / (w @ w) * w
    assert fitted_penalty(w, e, 1e-6) == 1e-6
    assert fitted_penalty(np.array([1e-170, 0.0]), np.array([1e-20, 1.0]), 1e-6) == 1e-6  # g² is less than any number


# --- where it ends ---------------------------------------------------------------------------------------------


def test_the_model_is_that_of_the_largest_mutual_information(rng):
    F, y = problem(rng, 60, 0.6)
    for patience in (1, 3, 6):
        fit = fit_loomi(F, y, patience=patience)
        J = [entry["mutual_information"] for entry in fit.history]
        assert fit.n_basis == 1 + int(np.argmax(np.round(J, 12)))
        assert len(J) == fit.n_basis + patience or fit.status is not Status.CONVERGED
        assert [entry["column"] for entry in fit.history][: fit.n_basis] == fit.basis.tolist()


def test_sizes_asked_for_are_sizes_returned(rng):
    F, y = problem(rng, 60, 0.6)
    assert fit_loomi(F, y, min_size=9).n_basis >= 9
    few = fit_loomi(F, y, max_size=2, patience=9)
    assert few.n_basis <= 2
    assert fit_loomi(F, y, min_size=60, max_size=60).n_basis <= 60


def test_balanced_classes_and_a_constant_are_not_a_classifier():
    """Without its own row the mean of balanced classes has the wrong sign: all labels wrong, and worth nothing."""
    rng = np.random.default_rng(5)
    X, y = moons(rng, 40)
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    X[:, 0] += 3.0 * y
    F = np.c_[np.ones(40), RBFDictionary(X, 2.0, bias=False).design(X)]
    F[:, 1:] += 30.0  # so nearly constant that the first term is one
    fit = fit_loomi(F, y)
    assert fit.history[0]["mutual_information"] == -1.0 and fit.history[0]["loo_error"] == 1.0
    assert fit.n_basis > 1 and fit.loo_error < 0.1


def test_waiting_begins_with_the_first_information():
    """Wide functions: the first two terms call every row by the larger class, and the third parts them."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(90, 2))
    y = np.where((X**2).sum(1) > 2.5, 1.0, -1.0)
    F = RBFDictionary(X, 30.0, bias=False).design(X)
    fit = fit_loomi(F, y)
    J = [entry["mutual_information"] for entry in fit.history]
    assert max(J[:2]) <= 0.0 and fit.mutual_information > 0.3


def test_ties_may_be_broken_by_the_squared_error(rng):
    first, best = 0, 0
    for _ in range(10):
        F, y = problem(rng, 30, 0.5, noise=0.05)
        order = rng.permutation(30)
        a, b = fit_loomi(F, y, ties="loo-mse"), fit_loomi(F[:, order], y, ties="loo-mse")
        best += order[b.basis].tolist() == a.basis.tolist()
        a, b = fit_loomi(F, y), fit_loomi(F[:, order], y)
        first += order[b.basis].tolist() == a.basis.tolist()
    assert best == 10 > first


# --- numerics and odd data -------------------------------------------------------------------------------------


def test_wide_functions_stay_orthogonal_and_exact(rng):
    X, y = moons(rng, 50)
    F = RBFDictionary(X, 40.0, bias=False).design(X)
    fit = fit_loomi(F, y, min_size=12)
    assert np.linalg.cond(fit.design) > 1e8
    # the outputs of the orthogonal form and of θ agree although θ is large
    W = np.linalg.solve(fit.A.T, fit.design.T).T
    assert np.isfinite(fit.coef).all() and np.isfinite(W).all()
    out = fit.design @ fit.coef
    hat = (y - out) / (y - fit.loo_output)
    assert ((hat > 0) & (hat < 1 + 1e-6)).all()


def test_copies_and_zeros_are_skipped(rng):
    F, y = problem(rng, 30, 0.7)
    plain = fit_loomi(F, y, min_size=5)
    doubled = fit_loomi(np.c_[F, F, np.zeros(30)], y, min_size=5)
    assert doubled.basis.tolist() == plain.basis.tolist()
    assert Status.COLLINEAR_SKIPPED in doubled.notes
    # copies alone are said too, though the selection ends long before the candidates do
    short = fit_loomi(np.c_[F, F], y, min_size=2, max_size=6)
    assert Status.COLLINEAR_SKIPPED in short.notes and short.n_basis < F.shape[1]
    assert Status.COLLINEAR_SKIPPED not in fit_loomi(F, y, min_size=2, max_size=6).notes
    one = fit_loomi(np.ones((4, 3)), np.array([1.0, 1.0, 1.0, -1.0]), min_size=3)
    assert one.n_basis == 1 and {Status.COLLINEAR_SKIPPED, Status.NO_INFORMATION} == set(one.notes)


def test_two_rows_and_one_column():
    fit = fit_loomi(np.eye(2), np.array([-1.0, 1.0]))
    assert np.isfinite(fit.coef).all() and np.isfinite(fit.loo_output).all()
    assert fit_loomi(np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 1.0, -1.0])).n_basis == 1


def test_lazy_and_single_precision_designs_give_the_same_model(rng):
    X, y = moons(rng, 50)
    D = RBFDictionary(X, 0.8)
    F = D.design(X)
    whole = fit_loomi(F, y, min_size=5)
    lazy = fit_loomi(LazyDesign(D, X), y, min_size=5)
    assert lazy.basis.tolist() == whole.basis.tolist()
    np.testing.assert_allclose(lazy.coef, whole.coef, rtol=1e-8)
    np.testing.assert_allclose(fit_loomi(F.astype(np.float32), y, max_size=3).loo_output, 0, atol=5)
    kept = F.copy()
    fit_loomi(F, y)
    np.testing.assert_array_equal(F, kept)


def test_outputs_at_new_rows_take_columns_in_use_or_all(rng):
    F, y = problem(rng, 40)
    fit = fit_loomi(F, y, min_size=3)
    np.testing.assert_allclose(fit.decision(F), fit.decision(F[:, fit.basis]), rtol=1e-12)
    with pytest.raises(ValueError, match="columns of the dictionary"):
        fit.decision(F[:, : fit.basis.max()] if fit.basis.max() != fit.n_basis else F[:, :1])


def test_an_interrupt_gives_back_what_there_is(rng):
    F, y = problem(rng, 40)

    def stop(entry):
        if entry["size"] == 3:
            raise KeyboardInterrupt

    fit = fit_loomi(F, y, min_size=10, callback=stop)
    assert fit.n_basis == 3 and fit.status is Status.INTERRUPTED


def test_an_interrupt_while_a_term_joins_leaves_those_before_it(rng, monkeypatch):
    F, y = problem(rng, 40)
    judge = loomi_selection.LOOMISelection._judge

    def stops(self):
        if self.size == 3:
            raise KeyboardInterrupt
        return judge(self)

    monkeypatch.setattr(loomi_selection.LOOMISelection, "_judge", stops)
    fit = fit_loomi(F, y, min_size=10)
    assert fit.n_basis == 2 == len(fit.history) and fit.status is Status.INTERRUPTED
    monkeypatch.setattr(loomi_selection.LOOMISelection, "_judge", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fit_loomi(F, y)


def test_all_columns_are_the_dictionary_though_all_are_in_use(rng):
    G = rng.normal(size=(50, 3))
    fit = fit_loomi(G, np.where(G @ [1.0, 2.0, 3.0] > 0, 1.0, -1.0), min_size=3)
    assert fit.basis.tolist() != [0, 1, 2] and fit.n_candidates == 3
    new = rng.normal(size=(9, 3))
    np.testing.assert_allclose(fit.decision(new), new[:, fit.basis] @ fit.coef, rtol=1e-12)
    few = fit_loomi(G, fit.target, max_size=2, min_size=2)
    np.testing.assert_array_equal(few.decision(new), few.decision(new[:, few.basis]))
    with pytest.raises(ValueError, match="3 columns"):
        few.decision(np.ones((2, 4)))


def test_labels_worse_than_chance_are_said_to_be(rng):
    X, y = rng.normal(size=(80, 2)), np.where(np.arange(80) % 2, 1.0, -1.0)
    F = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 1e-6)
    fit = fit_loomi(F, y)
    assert fit.mutual_information <= 0.0 and fit.status is Status.NO_INFORMATION
    far = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    told = fit_loomi(far, np.where(X[:, 0] > 0, 1.0, -1.0))
    assert told.mutual_information > 0.3 and Status.NO_INFORMATION not in told.notes


def test_what_comes_in_is_kept(rng):
    """Labels are copied; anything with shape and columns will do, and gives what an array gives."""
    F, y = np.exp(-(rng.normal(size=(30, 12)) ** 2)), np.where(np.arange(30) % 3, 1.0, -1.0)

    class Lazy:
        shape = (30, 12)

        def columns(self, which):
            return F[:, which]

    plain, lazy = fit_loomi(F, y, min_size=4), fit_loomi(Lazy(), y, min_size=4)
    np.testing.assert_array_equal(lazy.basis, plain.basis)
    np.testing.assert_array_equal(lazy.loo_output, plain.loo_output)
    before = plain.fingerprint
    y[:] = 1.0
    assert plain.fingerprint == before


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"F": np.zeros((4, 3))}, ValueError, "longest column"),
        ({"F": 1e-5 * np.eye(4)}, ValueError, "longest column"),
        ({"F": 1e160 * np.eye(4)}, ValueError, "rescale"),
        ({"y": np.zeros(4)}, ValueError, "labels -1 and 1"),
        ({"y": np.ones(4)}, ValueError, "both classes"),
        ({"y": np.ones(3)}, ValueError, "one value per row"),
        ({"F": np.full((4, 2), np.nan)}, ValueError, "finite"),
        ({"patience": 0}, ValueError, "patience"),
        ({"min_size": 1.5}, TypeError, "min_size"),
        ({"min_size": 3, "max_size": 2}, ValueError, "max_size must be at least"),
        ({"weights": [1, 1, 0, 1]}, ValueError, "weights"),
        ({"penalty": 0.0}, ValueError, "penalty"),
        ({"callback": 3}, TypeError, "callback"),
        ({"ties": "coin"}, ValueError, "ties"),
    ],
)
def test_bad_input_is_named(options, error, said):
    given = {"F": np.eye(4), "y": np.array([1.0, -1.0, 1.0, -1.0])} | options
    with pytest.raises(error, match=said):
        fit_loomi(given.pop("F"), given.pop("y"), **given)


def test_a_row_that_no_function_reaches_gets_no_label():
    """Its output is 1e-27 of the right sign: nothing was learned there, and it counts as wrong."""
    x = np.array([-1.2, -1.0, -0.8, 0.8, 1.0, 1.2, 9.0])
    fit = fit_loomi(np.exp(-((x[:, None] - x[:6]) ** 2)), np.sign(x), max_size=2)
    assert fit.loo_output[-1] == 0.0 and fit.loo_labels[-1] == -1.0
    assert (fit.loo_labels[:-1] == np.sign(x[:-1])).all() and fit.loo_error == pytest.approx(1 / 7)
