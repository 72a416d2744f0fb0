"""Scores of candidates and of functions in use against the evidence of the changed model, worked out from scratch.

Guards `bayessel.linear.selection.candidate_scores`, `bayessel.linear.selection.precisions`,
`bayessel.linear.selection.working_model`, `bayessel.linear.columns.orthonormal`, `bayessel.linear.columns.remainders`.
"""

from typing import NamedTuple

import mpmath
import numpy as np
import pytest

from bayessel.linear.columns.dictionary import as_columns
from bayessel.linear.selection.candidate_scores import (
    after_adding,
    after_removing,
    candidate_sums,
    gains_of_adding,
    gains_of_removing,
)
from bayessel.linear.selection.precisions import best_level, level_at, settled
from bayessel.linear.selection.working_model import WorkingModel
from tests.oracles import linear as oracles

PROBLEMS = range(200)


class Case(NamedTuple):
    """A model in the middle of a search, and what it was made of (in the units of the search)."""

    model: WorkingModel
    F: np.ndarray
    t: np.ndarray
    lam: float
    beta: float
    centre: bool


def model_evidence(Phi, t, lam, beta, centre=False):
    """Third level, dense: log N(t | 0, C) + log(2/gamma)/2 + log(2/(n - gamma))/2."""
    n = len(t) - centre
    if centre:
        flat = -0.5 * (np.log(np.sum((t - t.mean()) ** 2)) + np.log(2 * np.pi))  # spec of the bias' flat prior
        H = np.linalg.qr(np.column_stack([np.ones(len(t)), np.eye(len(t))[:, 1:]]))[0][:, 1:]
        Phi, t = H.T @ Phi, H.T @ t
    gamma = 0.0
    if Phi.shape[1]:
        gamma = float(np.trace(np.linalg.solve(Phi.T @ Phi + lam * np.eye(Phi.shape[1]), Phi.T @ Phi)))
    value = oracles.log_evidence(Phi, t, lam * beta, beta) + (flat if centre else 0.0)
    return value + 0.5 * np.log(2 / max(gamma, 0.1)) + 0.5 * np.log(2 / max(n - gamma, 0.1))


def random_case(seed):
    rng = np.random.default_rng([31, seed])
    n, p = int(rng.integers(8, 25)), int(rng.integers(6, 20))
    centre = bool(seed % 3 == 0)
    F = rng.normal(size=(n, p)) * np.exp(rng.normal(size=p))
    if seed % 4 == 1:
        F = oracles.radial("gaussian", np.sort(rng.uniform(0, 1, n))[:, None], rng.uniform(0, 1, (p, 1)), 0.15)
    t = F[:, 0] - F[:, 1] + 0.3 * rng.normal(size=n)
    model = WorkingModel(as_columns(F), t, centre)
    for j in rng.permutation(p)[: rng.integers(2, 6)]:
        model.add(int(j), *model.extended(int(j)))
    lam, beta = float(np.exp(rng.uniform(-4, 2))), float(np.exp(rng.uniform(-1, 4)))
    return Case(model, F / model.unit, t / model.t_unit, lam, beta, centre)


def held(case):
    return level_at(case.model.small(), case.lam, case.beta)


def brute(case, columns):
    return model_evidence(case.F[:, columns], case.t, case.lam, case.beta, case.centre)


def scores(case):
    model, small = case.model, case.model.small()
    return candidate_sums(small, case.lam, model.B, model.perp2, model.perpt), small


@pytest.mark.parametrize("seed", PROBLEMS)
def test_every_score_is_the_evidence_of_the_changed_model(seed):
    case = random_case(seed)
    model, active = case.model, case.model.active
    here = brute(case, active)
    assert held(case).value == pytest.approx(here, rel=1e-9)
    sums, small = scores(case)
    gains = gains_of_adding(sums, held(case))
    for j in np.flatnonzero(model.usable):
        expected = brute(case, [*active, int(j)])
        assert abs(here + gains[j] - expected) <= 1e-8 * max(1.0, abs(expected))
    for k, gain in enumerate(gains_of_removing(small, held(case))):
        expected = brute(case, active[:k] + active[k + 1 :])
        assert abs(here + gain - expected) <= 1e-8 * max(1.0, abs(expected))


@pytest.mark.parametrize("seed", PROBLEMS)
def test_scores_after_unchanged_precisions_are_those_made_anew(seed):
    """Eqs 32-34 and 44-46: a chain of additions and removals at the same alpha and beta, sums carried along."""
    case = random_case(seed)
    model = case.model
    rng = np.random.default_rng(seed)
    sums, small = scores(case)
    for action in rng.permutation(["add", "add", "remove", "remove"]):
        candidates = np.flatnonzero(model.usable)
        if action == "add" and len(candidates) and model.room:
            j = int(rng.choice(candidates))
            q, h, rho = model.extended(j)
            B = model.B
            row = model.add(j, q, h, rho)
            sums = after_adding(sums, small, case.lam, B, row, rho, j, h)
        elif model.size > 1:
            k = int(rng.integers(model.size))
            sums = after_removing(sums, small, case.lam, model.B, k)
            model.remove(k)
        small = model.small()
    here, gains = brute(case, model.active), gains_of_adding(sums, held(case))
    for j in np.flatnonzero(model.usable):
        expected = brute(case, [*model.active, int(j)])
        assert abs(here + gains[j] - expected) <= 1e-8 * max(1.0, abs(expected))


@pytest.mark.parametrize("seed", range(0, 200, 5))
def test_scores_at_re_estimated_precisions(seed):
    """After additions and removals alpha and beta are estimated anew; the scores there are exact too."""
    case = random_case(seed)
    at = best_level(case.model.small())
    case = case._replace(lam=at.lam, beta=at.beta)
    here = brute(case, case.model.active)
    sums, _ = scores(case)
    gains = gains_of_adding(sums, at)
    for j in np.flatnonzero(case.model.usable):
        expected = brute(case, [*case.model.active, int(j)])
        assert abs(here + gains[j] - expected) <= 1e-8 * max(1.0, abs(expected))


def test_precisions_are_at_the_maximum():
    for seed in range(0, 60, 3):
        case = random_case(seed)
        if case.centre:
            continue
        small = case.model.small()
        at = best_level(small)
        Phi = case.F[:, case.model.active]
        grid = np.exp(np.linspace(-30, 20, 400))
        assert at.log_evidence >= oracles.profile(Phi, case.t, grid).max() - 1e-9
        assert at.log_evidence == pytest.approx(oracles.log_evidence(Phi, case.t, at.lam * at.beta, at.beta), rel=1e-9)
        assert settled(small, at.lam, at.beta, 1e-6) or at.gamma < 1e-6
        assert not settled(small, 9.0 * at.lam, at.beta, 0.1) or at.gamma < 0.1


def test_when_the_precisions_are_left_alone():
    """Eq. 47: each logarithm may be off by a tenth of its own standard deviation."""
    rng = np.random.default_rng(2)
    F = rng.normal(size=(2000, 200))
    t = F @ rng.normal(size=200) + 0.1 * rng.normal(size=2000)
    model = WorkingModel(as_columns(F), t, False)
    for j in range(200):
        model.add(j, *model.extended(j))
    small = model.small()
    at = best_level(small)
    for width, turn in ((np.sqrt(2 / at.left), lambda f: (1 / f, f)), (np.sqrt(2 / at.gamma), lambda f: (f, 1.0))):
        for share, expected in ((0.05, True), (0.2, False)):
            lam, beta = turn(np.exp(share * width))  # alpha held, and beta held
            assert settled(small, at.lam * lam, at.beta * beta, 0.1) is expected


@pytest.mark.parametrize("width", [0.5, 2.0, 8.0])
def test_wide_gaussians_keep_their_digits(width, rng):
    """Condition numbers to 1e16 and more: S and Q beside 60 digits, where a Gram matrix has none left."""
    n, p = 40, 30
    x = np.sort(rng.uniform(0, 1, n))
    F = oracles.radial("gaussian", x[:, None], np.linspace(0, 1, p)[:, None], width)
    t = np.sin(6 * x) + 0.01 * rng.normal(size=n)
    model = WorkingModel(as_columns(F), t, False)
    for j in (0, 15, 29, 7, 22):
        q, h, rho = model.extended(j)
        if rho > 1e-10:
            model.add(j, q, h, rho)
    at = best_level(model.small())
    some = np.flatnonzero(model.usable)
    sums = candidate_sums(model.small(), at.lam, model.B, model.perp2, model.perpt)
    poor = model.doubtful(at.lam, sums.S)
    if len(poor):
        model.measure(poor)
        sums = candidate_sums(model.small(), at.lam, model.B, model.perp2, model.perpt)
    gains = gains_of_adding(sums, at)
    alpha, beta = at.lam * at.beta * (model.unit / model.t_unit) ** 2, at.beta / model.t_unit**2

    def exact(columns):
        height, gamma, _ = oracles.exact_tall(F[:, columns], t, alpha / beta, beta)
        with mpmath.workdps(60):
            return height + mpmath.log(2 / gamma) / 2 + mpmath.log(2 / (n - gamma)) / 2

    here = exact(model.active)
    for j in some[::5]:
        with mpmath.workdps(60):
            expected = float(exact([*model.active, int(j)]) - here)
        promised = max(1e-8, 10 * np.finfo(float).eps * np.sqrt(beta / alpha))
        assert abs(gains[j] - expected) <= promised * abs(float(here))


def test_what_lies_outside_is_measured_again_where_it_has_lost_its_digits(rng):
    """A target almost without noise: f'(t - QQ't) is tiny beside f't, and still has to be right."""
    F = rng.normal(size=(60, 20))
    t = F[:, [2, 5, 9]] @ [1.0, -2.0, 0.5] + 1e-10 * rng.normal(size=60)
    model = WorkingModel(as_columns(F), t, False)
    for j in (2, 5, 9):
        model.add(j, *model.extended(j))
    Q = np.linalg.qr(F[:, model.active])[0]
    outside = F / model.unit
    outside = outside - Q @ (Q.T @ outside)
    exact = outside.T @ model.residual
    assert np.abs(model.perpt - exact)[model.usable].max() < 1e-9 * np.abs(exact).max()
    x = np.sort(rng.uniform(0, 1, 60))
    F = oracles.radial("gaussian", x[:, None], x[:, None], 3.0)
    model = WorkingModel(as_columns(F), np.sin(6 * x), False)
    for j in (0, 30, 59, 15, 45):
        model.add(j, *model.extended(j))
    model.measure(np.arange(60))
    model.remove(2)
    assert (model.remainders.reference >= model.perp2).all()  # or the next loss of digits would go unseen


def test_the_gram_matrix_would_not_do(rng):
    """Negative control: the paper's formulas on inner products are wrong where ours are right."""
    x = np.sort(rng.uniform(0, 1, 40))
    F = oracles.radial("gaussian", x[:, None], np.linspace(0, 1, 30)[:, None], 8.0)
    lam, beta = 1e-14, 1.0
    Phi, phi = F[:, [0, 15, 29, 7]], F[:, 22]
    Sigma = np.linalg.inv(beta * Phi.T @ Phi + lam * beta * np.eye(4))
    naive = beta * phi @ phi - beta**2 * phi @ Phi @ Sigma @ Phi.T @ phi
    with mpmath.workdps(60):
        X = mpmath.matrix(Phi.tolist())
        C = mpmath.eye(40) / beta + X * X.T / (mpmath.mpf(lam) * beta)
        exact = (mpmath.matrix([phi.tolist()]) * mpmath.lu_solve(C, mpmath.matrix(phi.tolist())))[0]
    assert abs(naive / float(exact) - 1.0) > 1e-3
