"""The search for basis functions: what it returns, and what its strategies promise.

Guards `bayessel.linear.selection._search`, `bayessel.linear.selection.candidate_scores`,
`bayessel.linear.selection.objective`, `bayessel.linear.selection.precisions`, `bayessel.linear.selection.result`,
`bayessel.linear.selection.selection_search`, `bayessel.linear.selection.strategies`,
`bayessel.linear.selection.working_model`, `bayessel.linear.columns.centring`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.basis import LazyDesign, RBFDictionary
from bayessel.fit import Status
from bayessel.linear import search
from bayessel.linear.columns.dictionary import as_columns
from bayessel.linear.selection import PTA, SFFS, Oscil
from bayessel.linear.selection.candidate_scores import candidate_sums
from bayessel.linear.selection.objective import SelectionObjective
from bayessel.linear.selection.selection_search import SelectionSearch
from bayessel.linear.selection.strategies import parse
from bayessel.linear.selection.working_model import WorkingModel
from tests.linear.selection.test_search_scores import model_evidence
from tests.oracles import linear as oracles

STRATEGIES = ("pta(1,0)", "pta(2,1)", "sffs", "oscil(3)")


def toy(rng, n=200):
    """Twenty gaussians among two hundred candidates, as in Barrio, Romero and Belanche (2010), section 6.1."""
    x = rng.uniform(-10, 10, n)
    F = np.exp(-0.5 * (x[:, None] - x) ** 2)
    truth = F[:, rng.choice(n, n // 10, replace=False)] @ (rng.normal(size=n // 10) / np.sqrt(0.4))
    return F, truth + np.sqrt(0.05) * rng.normal(size=n), truth


def gaussians(rng, n, p, width):
    x = np.sort(rng.uniform(0, 1, n))
    F = oracles.radial("gaussian", x[:, None], np.linspace(0, 1, p)[:, None], width)
    return F, np.sin(8 * x) + 0.05 * rng.normal(size=n)


def naive_forward(F, t, sizes):
    """Forward selection from the equations: dense evidences, precisions on a grid, scores at the old precisions."""

    def estimated(columns):
        grid = np.exp(np.linspace(-20, 12, 321))
        for _ in range(5):
            values = oracles.profile(F[:, columns], t, grid)
            k = int(np.argmax(values))
            grid = np.exp(np.linspace(np.log(grid[max(k - 1, 0)]), np.log(grid[min(k + 1, len(grid) - 1)]), 21))
        lam = grid[k]
        quad = t @ oracles.projection(F[:, columns], lam) @ t
        return float(lam), len(t) / quad

    chosen = [int(np.argmax((F.T @ t) ** 2 / (F**2).sum(axis=0)))]
    values = []
    while True:
        lam, beta = estimated(chosen)
        values.append(model_evidence(F[:, chosen], t, lam, beta))
        if len(chosen) == sizes:
            return chosen, values
        rest = [j for j in range(F.shape[1]) if j not in chosen]
        chosen.append(max(rest, key=lambda j: model_evidence(F[:, [*chosen, j]], t, lam, beta)))


@pytest.mark.parametrize("seed", range(5))
def test_forward_selection_is_that_of_the_equations(seed):
    rng = np.random.default_rng([5, seed])
    n, p = 30, 12
    F = rng.normal(size=(n, p)) + 0.7 * rng.normal(size=(n, 1))
    t = F[:, :3] @ rng.normal(size=3) + 0.3 * rng.normal(size=n)
    chosen, values = naive_forward(F, t, 6)
    fit = search(F, t, "pta(1,0)", tol=0.0, max_size=6)
    assert [step["column"] for step in fit.history] == chosen
    np.testing.assert_allclose([step["value"] for step in fit.history], values, rtol=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("width", [0.05, 0.3, 1.5, 8.0])
def test_the_evidence_of_what_is_returned_is_exact(width, strategy, rng):
    F, t = gaussians(rng, 40, 40, width)
    fit = search(F, t, strategy)
    exact = oracles.exact_tall(F[:, fit.basis], t, fit.alpha / fit.beta, fit.beta)[0]
    assert oracles.relative(fit.log_evidence, exact) <= 1e-8
    full = bs.linear.fit_evidence(F, t)
    assert fit.log_evidence > full.log_evidence - 5.0  # and the fit is of use: not the numbers of a lost Gram matrix
    assert fit.noise_std == pytest.approx(full.noise_std, rel=0.4)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("centre", [False, True])
def test_the_path_holds_what_its_models_are_worth(strategy, centre, rng):
    F, t, _ = toy(rng, 100)
    fit = search(F, t, strategy, centre=centre, within=0.0)
    for size, point in list(fit.path.items())[::4]:
        assert len(point.basis) == len(set(point.basis)) == size
        columns = list(point.basis)
        again = bs.linear.fit_evidence(F[:, columns], t, centre=centre)
        n = len(t) - centre
        worth = again.log_evidence + 0.5 * np.log(2 / again.gamma) + 0.5 * np.log(2 / (n - again.gamma))
        assert point.value == pytest.approx(worth, abs=1e-6)
    last = fit.path[fit.n_basis]
    assert sorted(last.basis) == fit.basis.tolist() == sorted(fit.order.tolist())
    assert fit.model_evidence == pytest.approx(last.value, abs=1e-6)
    assert fit.n_added == sum(step["action"] == "add" for step in fit.history)
    assert fit.n_removed == sum(step["action"] == "remove" for step in fit.history)
    best = max(fit.path.values(), key=lambda point: point.value)
    if not strategy.startswith("oscil"):
        assert last.value == best.value
        end = fit.history[-1]["n_basis"] if strategy != "pta(2,1)" else max(fit.path)
        assert end > fit.n_basis + max(15, round(0.3 * fit.n_basis)) or Status.COLLINEAR_SKIPPED in fit.notes


def test_floating_removes_only_what_makes_the_best_of_its_size(rng):
    F, t, _ = toy(rng)
    fit = search(F, t, "sffs", within=0.0)
    best = {}
    for step in fit.history:
        size = step["n_basis"]
        if step["action"] == "remove":
            assert step["value"] > best.get(size, -np.inf)
        best[size] = max(step["value"], best.get(size, -np.inf))
    assert fit.n_removed > 0
    assert best == pytest.approx({size: point.value for size, point in fit.path.items()})
    assert fit.model_evidence >= search(F, t, "pta(1,0)", within=0.0).model_evidence


def test_oscillation_keeps_the_size_and_never_loses(rng):
    F, t, _ = toy(rng)
    forward, fit = (search(F, t, name, within=0.0) for name in ("pta(1,0)", "oscil(5)"))
    assert fit.n_basis == forward.n_basis
    assert fit.model_evidence > forward.model_evidence
    # the last swings, those of 1, 2, 3, 4 and 5, all failed: 15 added twice, 30 removed
    assert [step["action"] for step in fit.history[-20:]] == ["add"] * 5 + ["remove"] * 10 + ["add"] * 5
    assert fit.n_added - fit.n_removed == forward.n_added


@pytest.mark.parametrize("centre", [False, True])
def test_rotations_leave_the_working_model_right(centre, rng):
    """After many additions and removals Q, R, B and what lies outside are those of a fresh start."""
    F, t, _ = toy(rng, 80)
    seen = []

    def shuffle(search):
        for _ in range(6):
            for _ in range(7):
                search.add()
            for _ in range(5):
                search.remove()
        seen.append(search.model)
        model, Fc, tc = search.model, F / search.model.unit, t / search.model.t_unit
        if centre:
            Fc, tc = Fc - Fc.mean(axis=0), tc - tc.mean()
        Q = model.Qt.T
        np.testing.assert_allclose(Q.T @ Q, np.eye(model.size), atol=1e-13)
        np.testing.assert_allclose(Q @ model.R, Fc[:, model.active], atol=1e-13)
        np.testing.assert_allclose(model.B, Q.T @ Fc, atol=1e-12)
        outside = Fc - Q @ (Q.T @ Fc)
        np.testing.assert_allclose(model.perp2, (outside**2).sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(model.perpt, outside.T @ tc, atol=1e-11)
        np.testing.assert_allclose(model.z, Q.T @ tc, atol=1e-12)
        np.testing.assert_allclose(model.rss, ((tc - Q @ (Q.T @ tc)) ** 2).sum(), rtol=1e-12)

    search(F, t, shuffle, centre=centre)
    assert seen


def test_scores_carried_along_are_those_made_anew(rng):
    """Inside a search: while alpha and beta stay, sums are updated, and must not drift from what B says."""
    F, t, _ = toy(rng, 80)
    compared = []

    def watch(search):
        carried = search._sums
        if carried is None:
            return
        model = search.model
        fresh = candidate_sums(search.small, search.held.lam, model.B, model.perp2, model.perpt)
        for a, b in zip((carried.S, carried.Q, carried.D), (fresh.S, fresh.Q, fresh.D), strict=True):
            np.testing.assert_allclose(a[model.usable], b[model.usable], rtol=1e-6, atol=1e-6)
        compared.append(search.history[-1]["action"])

    search(F, t, "pta(3,2)", callback=watch)
    assert compared.count("add") > 5
    assert compared.count("remove") > 1


@pytest.mark.parametrize("centre", [False, True])
def test_candidates_that_have_lost_digits_are_measured_before_they_are_scored(centre):
    """Wide functions: what subtraction leaves of a candidate is rounding, and so would be its score."""
    x = np.linspace(-1.0, 1.0, 60)
    F = np.exp(-(((x[:, None] - x) / 0.3) ** 2))
    worst = []

    def watch(search):
        model, given = search.model, search.sums().S
        every = np.flatnonzero(model.usable)
        left = F[:, every] / model.unit
        left = left - left.mean(axis=0) if centre else left
        for _ in range(2):
            left = left - model.Qt.T @ (model.Qt @ left)
        squares = (left**2).sum(axis=0)
        exact = candidate_sums(search.small, search.held.lam, model.B[:, every], squares, model.perpt[every]).S
        worst.append(np.abs(given[every] / exact - 1.0).max(initial=0.0))

    search(F, np.sin(3.0 * x), callback=watch, max_size=25, centre=centre)
    assert len(worst) > 15 and max(worst) < 1e-4


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("within", [0.3, 1.0, 4.0])
def test_the_smallest_model_near_the_best_is_returned(within, strategy, rng):
    F, t, _ = toy(rng)
    best, fit = search(F, t, strategy, within=0.0), search(F, t, strategy, within=within)
    assert [step["column"] for step in fit.history] == [step["column"] for step in best.history]
    top = max(point.value for point in best.path.values())
    near = [size for size, point in best.path.items() if top - point.value <= within]
    assert fit.n_basis == min(near)
    assert fit.n_basis < best.n_basis or within < 1.0
    assert fit.order.tolist() == list(fit.path[fit.n_basis].basis)
    assert fit.model_evidence >= top - within - 1e-6


def test_nats_of_a_mean_squared_error(rng):
    F, t, _ = toy(rng, 100)
    fit = search(F, t, score="loo", within=0.5)
    lowest = min(-point.value for point in fit.path.values())
    near = [size for size, point in fit.path.items() if -point.value <= lowest * np.exp(2 * 0.5 / 100)]
    assert fit.n_basis == min(near) < len(search(F, t, score="loo", within=0.0).basis)
    assert np.mean(fit.leave_one_out().errors ** 2) == pytest.approx(-fit.path[fit.n_basis].value, rel=1e-6)
    exact = SelectionObjective("loo")
    assert exact.behind(0.0, 0.0, 100) == 0.0  # targets met exactly
    assert exact.behind(-1e-9, 0.0, 100) == np.inf


def test_how_long_a_search_goes_on(rng):
    F, t, _ = toy(rng, 40)
    work = SelectionSearch(WorkingModel(as_columns(F), t, False), SelectionObjective())
    for best, last in ((0, 15), (10, 25), (50, 65), (55, 71), (100, 130), (115, 149)):
        work.best_size = best
        work.model.basis.size = last
        assert work.going
        work.model.basis.size = last + 1
        assert not work.going


class Swings:
    """Stands in for a search of 20 functions; the swings whose numbers are given end in a better model."""

    def __init__(self, good):
        self.size, self.value, self.good, self.log, self.swing = 20, 0.0, good, "", 0

    going = False

    def add(self, beyond=False):
        self.size, self.log = self.size + 1, self.log + "+"
        return True

    def remove(self):
        self.size, self.log = self.size - 1, self.log + "-"
        return True

    def better(self, than):
        if not self.log.endswith("+"):
            return False
        self.swing += 1
        self.value = self.value + 1.0 if self.swing in self.good else self.value - 1.0
        return self.value > than

    def snapshot(self):
        return (self.size, self.value)

    def restore(self, place):
        self.size, self.value = place
        self.log += "|"

    def go_to_best(self):
        pass


def test_swings_grow_after_failures_and_start_small_after_improvements():
    one, two, three = "+--+|", "++----++|", "+++------+++|"
    search = Swings({3})
    assert Oscil(3)(search) == (20, 1.0)
    assert search.log == one + two + three + one + two + three
    search = Swings({1, 3})
    assert Oscil(2)(search) == (20, 2.0)
    assert search.log == one + one + two + one + two


def test_a_strategy_of_your_own(rng):
    F, t, _ = toy(rng, 80)

    def two_steps_back(search):
        while search.going and search.add():
            if search.size % 10 == 0:
                search.remove()
                search.remove()
                if search.size >= 30 or search.n_added > 60:
                    break

    fit = search(F, t, two_steps_back)
    assert fit.strategy == "two_steps_back"
    assert fit.n_removed > 0
    assert fit.log_evidence > search(F, t, max_size=3).log_evidence


def test_named_strategies():
    assert parse("pta(2, 1)") == PTA(2, 1)
    assert parse("PTA(3,1)") == PTA(3, 1)
    assert parse("sffs") == SFFS()
    assert parse("oscil(7)") == Oscil(7)
    assert [str(parse(name)) for name in STRATEGIES] == list(STRATEGIES)
    for wrong in ("pta(1,1)", "pta(1,2)", "pta", "pta(1)", "oscil(0)", "best"):
        with pytest.raises(ValueError, match=r"pta|strategy|c must"):
            parse(wrong)
    with pytest.raises(TypeError, match="strategy"):
        parse(3)


@pytest.mark.parametrize("score", ["loo", "elpd-loo", "mdl-w", "mdl-alpha"])
@pytest.mark.parametrize("centre", [False, True])
def test_other_criteria_are_those_of_the_comparison(score, centre, rng):
    F, t, _ = toy(rng, 60)
    F, t = 2.0 * F, 3.0 * t + 1.0
    fit = search(F, t, "pta(2,1)", score=score, centre=centre, within=0.0)
    row = bs.diagnostics.compare({"fit": fit}).iloc[0]
    sign = 1.0 if score == "elpd-loo" else -1.0
    assert fit.path[fit.n_basis].value == pytest.approx(sign * row[score], rel=1e-6)
    other = bs.diagnostics.compare({"fit": search(F, t, "pta(2,1)", centre=centre, within=0.0)}).iloc[0]
    assert sign * row[score] >= sign * other[score] - 0.02 * abs(other[score])


def test_trying_the_best_few_is_no_worse_at_one_step(rng):
    F, t, _ = toy(rng, 100)
    plain, tried = search(F, t, max_size=2), search(F, t, max_size=2, top=100)  # the paths, whatever is returned
    assert tried.path[2].value >= plain.path[2].value - 1e-9
    first = tried.history[0]["column"]
    pairs = [bs.linear.fit_evidence(F[:, [first, j]], t) for j in range(100) if j != first]
    best = max(f.log_evidence - 0.5 * np.log(0.25 * f.gamma * (100 - f.gamma)) for f in pairs if min(f.gamma, 9) > 0.1)
    assert tried.path[2].value == pytest.approx(best, abs=1e-6)


def test_units_do_not_matter(rng):
    F, t, _ = toy(rng, 100)
    one, other = search(F, t, "sffs"), search(1e-3 * F, 1e5 * t, "sffs")
    assert one.basis.tolist() == other.basis.tolist()
    assert other.log_evidence == pytest.approx(one.log_evidence - 100 * np.log(1e5), rel=1e-9)
    np.testing.assert_allclose(other.coef, one.coef * 1e8, rtol=1e-6)
    np.testing.assert_allclose(other.noise_std, one.noise_std * 1e5, rtol=1e-6)


def test_an_offset_does_not_matter_with_a_bias(rng):
    F, t, truth = toy(rng, 100)
    one, other = search(F, t, centre=True), search(F, t + 1e6, centre=True)
    assert one.basis.tolist() == other.basis.tolist()
    assert other.log_evidence == pytest.approx(one.log_evidence, rel=1e-6)
    assert other.intercept == pytest.approx(one.intercept + 1e6, rel=1e-9)
    assert np.sqrt(np.mean((other.fitted - 1e6 - truth) ** 2)) < 0.2


@pytest.mark.parametrize("offset", [1e3, 1e7, 1e10])
@pytest.mark.parametrize("how", ["all", "one", "made when needed"])
def test_offsets_of_the_columns_do_not_matter_with_a_bias(how, offset, rng):
    """Means that hide the spread of the columns, a constant among them."""
    G = rng.normal(size=(120, 20))
    t = G[:, [0, 7, 11]] @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=120)
    F = G.copy()
    F[:, slice(None) if how != "one" else slice(0, 1)] += offset
    F[:, 5] = offset + 0.1

    class Made:
        shape = F.shape

        def columns(self, which):
            return F[:, which]

    G[:, 5] = 0.0
    plain, fit = search(G, t, "sffs", centre=True), search(Made() if "made" in how else F, t, "sffs", centre=True)
    digits = 1e-15 * offset  # those the columns have lost
    assert fit.basis.tolist() == plain.basis.tolist()
    assert [step["column"] for step in fit.history[:6]] == [step["column"] for step in plain.history[:6]]
    assert fit.log_evidence == pytest.approx(plain.log_evidence, abs=1e-6 + 1e4 * digits)
    assert not any(5 in point.basis for point in fit.path.values())
    np.testing.assert_allclose(fit.fitted, plain.fitted, atol=1e-6 + 1e3 * digits)
    short = search(F, t, score="mdl-w", centre=True, within=0.0)  # the bias is a large weight here
    length = bs.diagnostics.compare({"fit": short}).iloc[0]["mdl-w"]
    assert short.path[short.n_basis].value == pytest.approx(-length, abs=1e-4)


def test_single_precision_and_columns_made_when_needed(rng):
    x = np.sort(rng.uniform(-5, 5, 300))
    dictionary = RBFDictionary(x, 1.0, bias=True)
    t = np.sin(x) * x + 0.1 * rng.normal(size=300)
    F = dictionary.design(x)
    stored = search(F, t, "pta(2,1)")
    lazy = search(LazyDesign(dictionary, x), t, "pta(2,1)")
    single = search(F.astype(np.float32), t, "pta(2,1)")

    class Columns:
        shape = F.shape

        def columns(self, which):
            return F[:, which]

    made = search(Columns(), t, "pta(2,1)")
    assert lazy.basis.tolist() == made.basis.tolist() == stored.basis.tolist()
    assert lazy.log_evidence == pytest.approx(stored.log_evidence, rel=1e-9)
    assert single.log_evidence == pytest.approx(stored.log_evidence, rel=0.05)
    exact = oracles.exact_tall(
        F.astype(np.float32)[:, single.basis].astype(float), t, single.alpha / single.beta, single.beta
    )[0]
    assert oracles.relative(single.log_evidence, exact) <= 1e-8


def test_predictions_and_the_comparison(rng):
    F, t, truth = toy(rng)
    fits = {name: search(F, t, name) for name in STRATEGIES}
    table = bs.diagnostics.compare({**fits, "all": bs.linear.fit_evidence(F, t)}, by="model-evidence")
    assert len(table) == 5
    fit = fits["sffs"]
    there = fit.predict(F)
    mean, std = there.mean, there.std
    np.testing.assert_allclose(mean, fit.fitted)
    np.testing.assert_allclose(fit.mean(F[:, fit.basis]), mean)
    mu, Sigma = oracles.posterior(F[:, fit.basis], t, fit.alpha, fit.beta)
    np.testing.assert_allclose(fit.coef, mu, rtol=1e-6)
    Phi = F[:, fit.basis]
    np.testing.assert_allclose(std**2, 1 / fit.beta + np.einsum("ij,jk,ik->i", Phi, Sigma, Phi), rtol=1e-6)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.12
    with pytest.raises(ValueError, match="200 columns of the dictionary"):
        fit.predict(F[:, :3])


def test_copies_are_skipped_and_said(rng):
    F, t, _ = toy(rng, 60)
    fit = search(np.hstack([F, F, np.zeros((60, 2))]), t)
    assert Status.COLLINEAR_SKIPPED in fit.notes
    assert len({j % 60 for j in fit.basis.tolist()}) == fit.n_basis
    assert fit.basis.max() < 120


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("centre", [False, True])
def test_hardly_any_data(strategy, centre, rng):
    for n, p in ((1, 1), (1, 4), (2, 1), (2, 5), (3, 3), (6, 1), (6, 40)):
        F, t = rng.normal(size=(n, p)), rng.normal(size=n)
        fit = search(F, t, strategy, centre=centre)
        assert np.isfinite(fit.log_evidence)
        assert fit.n_basis <= max(n - 1, 0)
        assert fit.mean(F).shape == (n,)
        assert isinstance(fit.status, Status)
    for t in (np.zeros(6), np.ones(6), np.full(6, 1e-30), np.full(6, 3e20)):
        for F in (rng.normal(size=(6, 4)), np.ones((6, 3)), np.zeros((6, 2)), np.full((6, 2), 1e30)):
            fit = search(F, t, strategy, centre=centre)
            assert np.isfinite(fit.log_evidence)
            assert np.isfinite(fit.mean(F)).all()


def test_noise_alone_is_not_explained(rng):
    F = rng.normal(size=(100, 50))
    fit = search(F, rng.normal(size=100), "sffs")
    assert fit.n_basis <= 20
    assert fit.noise_std == pytest.approx(1.0, abs=0.4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_flat_evidence_is_no_reason_for_functions(strategy):
    """Noise alone and functions that overlap: the evidence of many functions of weight about zero is that of one."""
    sizes = []
    for seed in range(12):
        rng = np.random.default_rng([7, seed])
        F, _, _ = toy(rng, 100)
        fit = search(F, rng.normal(size=100), strategy)
        sizes.append(fit.n_basis)
    assert np.median(sizes) == 1
    assert max(sizes) <= 4


def test_a_skipped_copy_is_the_least_remark(rng):
    F = rng.normal(size=(80, 20))
    fit = search(np.hstack([F, F[:, :5]]), F[:, 2] + 0.1 * rng.normal(size=80))
    assert Status.COLLINEAR_SKIPPED in fit.notes
    assert fit.status is Status.FEW_WELL_DETERMINED


def test_exact_targets(rng):
    F = rng.normal(size=(50, 30))
    t = F[:, [3, 17, 20]] @ [1.0, -2.0, 0.5]
    for strategy in STRATEGIES:
        fit = search(F, t, strategy)
        assert {3, 17, 20} <= set(fit.basis.tolist())
        assert np.abs(fit.residuals).max() < 1e-9


def test_bad_input():
    F, t = np.ones((5, 3)), np.arange(5.0)
    for F_bad, t_bad, match in (
        (np.full((5, 3), np.nan), t, "finite"),
        (F, t[:4], "one value per row"),
        (F[:, :0], t, "at least one"),
        (F, np.array(["a"] * 5), "numeric"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            search(F_bad, t_bad)
    for name, value in (
        ("score", "aic"),
        ("centre", 1),
        ("top", -1),
        ("max_size", 0),
        ("tol", -1.0),
        ("tol", "a"),
        ("tol", True),
        ("within", -1),
        ("within", np.inf),
        ("callback", 3),
        ("strategy", SFFS),
    ):
        with pytest.raises((ValueError, TypeError), match=rf"^{name} must be"):
            search(F, t, **{name: value})
    assert search(F, t, tol=np.float32(0.1), within=np.int64(0)).n_basis == 1  # as grids of numpy's have them


def test_what_is_there_survives_an_interrupt(rng):
    F, t, _ = toy(rng, 80)

    def enough(search):
        if search.n_added == 7:
            raise KeyboardInterrupt

    fit = search(F, t, callback=enough)
    assert fit.status is Status.INTERRUPTED
    assert fit.n_added == 7
    assert 1 <= fit.n_basis <= 7


@pytest.mark.slow
def test_the_toy_problem_of_the_paper():
    """Sizes fall and evidence rises from PTA(1,0) over PTA(2,1) to SFFS (section 6.1), counted in standard errors.

    Their errors to the truth are comparable with that of the relevance vector machine.
    """
    names = ("pta(1,0)", "pta(2,1)", "sffs")
    sizes, worth, error = ([[], [], []] for _ in range(3))
    relevance = []
    for seed in range(50):
        F, t, truth = toy(np.random.default_rng([9, seed]))
        for k, name in enumerate(names):
            fit = search(F, t, name, within=0.0)
            sizes[k].append(fit.n_basis)
            worth[k].append(fit.model_evidence)
            error[k].append(np.mean((fit.fitted - truth) ** 2))
        relevance.append(np.mean((bs.linear.fit_rvm(F, t).mean(F) - truth) ** 2))
    for a, b in ((0, 1), (1, 2)):
        for values, sign in ((sizes, 1.0), (worth, -1.0)):
            gap = sign * (np.array(values[a]) - np.array(values[b]))
            assert gap.mean() > 2.0 * gap.std(ddof=1) / np.sqrt(len(gap))
    assert all(0.8 < np.mean(one) / np.mean(relevance) < 1.25 for one in error)
