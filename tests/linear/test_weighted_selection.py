"""Rows that count differently, or have noise levels of their own, in searches and forward selections.

Guards `bayessel.linear.columns.growing_model`, `bayessel.linear.selection.working_model`.
"""

import numpy as np
import pytest

from bayessel.linear import fit_evidence, forward_select, log_evidence, search

METHODS = ("ols", "rfs", "rols")


def problem(rng, n=30, offset=1.0):
    Phi = rng.normal(size=(n, 12)) + offset
    t = (Phi - offset)[:, [2, 5]] @ [2.0, -1.0] + 3.0 + 0.4 * rng.normal(size=n)
    return Phi, t, rng.integers(1, 4, size=n), rng.uniform(0.5, 2.0, size=n)


def least_squares(Phi, t, root, centre):
    """Weights, bias and squared error of weighted least squares, by numpy."""
    design = np.column_stack([Phi, np.ones(len(t))]) if centre else Phi
    found, *_ = np.linalg.lstsq(root[:, None] * design, root * t, rcond=None)
    return found, float(np.sum((root * (t - design @ found)) ** 2))


@pytest.mark.parametrize("centre", [False, True])
def test_forward_selection_takes_the_column_that_lowers_the_weighted_error_most(rng, centre):
    Phi, t, w, s = problem(rng)
    root = np.sqrt(w) / s * np.exp(w @ np.log(s) / w.sum())
    fit = forward_select(Phi, t, stop=None, max_size=4, centre=centre, noise_std=s, sample_weight=w)
    chosen: list[int] = []
    for k, step in enumerate(fit.history[1:]):
        errors = {j: least_squares(Phi[:, [*chosen, j]], t, root, centre)[1] for j in range(12) if j not in chosen}
        chosen.append(min(errors, key=lambda j: errors[j]))
        assert fit.order[k] == chosen[-1]
        np.testing.assert_allclose(step["error"], errors[chosen[-1]] / w.sum(), rtol=1e-9)
        S, left = errors[chosen[-1]], w.sum() - len(chosen) - int(centre)
        np.testing.assert_allclose(step["gcv"], w.sum() * S / left**2, rtol=1e-9)
    found, _ = least_squares(Phi[:, fit.basis], t, root, centre)
    np.testing.assert_allclose(fit.coef, found[:4], rtol=1e-8)
    if centre:
        np.testing.assert_allclose(fit.intercept, found[-1], rtol=1e-8)
    known = fit_evidence(Phi[:, fit.basis], t, centre=centre, noise_std=s, sample_weight=w)
    np.testing.assert_allclose(fit.log_evidence, known.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(fit.noise_std, known.noise_std, rtol=1e-10)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_weight_is_a_repeated_row_in_forward_selection(rng, method, centre):
    Phi, t, w, s = problem(rng)
    again = np.repeat(np.arange(30), w)
    for stop in ("gcv", "bic", "fpe", "uev", "evidence"):
        one = forward_select(Phi, t, method, stop, centre=centre, noise_std=s, sample_weight=w)
        other = forward_select(Phi[again], t[again], method, stop, centre=centre, noise_std=s[again])
        assert one.order.tolist() == other.order.tolist()
        np.testing.assert_allclose(one.value, other.value, rtol=1e-9)
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose([one.lam, one.gamma], [other.lam, other.gamma], rtol=1e-8)
        mine, theirs = (fit.predict(Phi[:5] + 0.1) for fit in (one, other))
        np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-8)
        np.testing.assert_allclose(mine.variance, theirs.variance, rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_rows_left_out_of_a_weighted_forward_selection_are_refits(rng, method):
    """'loo' counts the squared errors of rows left out whole, in units of their own noise and as often as they come."""
    Phi, t, w, s = problem(rng, 20)
    unit = s / np.exp(w @ np.log(s) / w.sum())
    fit = forward_select(
        Phi, t, method, "loo", max_size=3, lam=None if method == "ols" else 0.7, reestimate=False,
        centre=True, noise_std=s, sample_weight=w,
    )  # fmt: skip
    lam = 0.0 if method == "ols" else 0.7
    step = fit.history[1]
    column = Phi[:, [step["column"]]]
    total = 0.0
    for i in range(20):
        rest = np.delete(np.arange(20), i)
        root = np.sqrt(w[rest]) / unit[rest]
        design = np.column_stack([column[rest], np.ones(19)]) * root[:, None]
        found = np.linalg.solve(design.T @ design + np.diag([lam, 0.0]), design.T @ (root * t[rest]))
        total += w[i] * ((t[i] - column[i] @ found[:1] - found[1]) / unit[i]) ** 2
    np.testing.assert_allclose(step["loo"], total / w.sum(), rtol=1e-8)


@pytest.mark.parametrize("offset", [1.0, 1e5])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("strategy", ["pta(1,0)", "sffs"])
def test_a_weight_is_a_repeated_row_in_searches(rng, strategy, centre, offset):
    Phi, t, w, s = problem(rng, offset=offset)
    again = np.repeat(np.arange(30), w)
    one = search(Phi, t, strategy, centre=centre, noise_std=s, sample_weight=w)
    other = search(Phi[again], t[again], strategy, centre=centre, noise_std=s[again])
    assert one.order.tolist() == other.order.tolist()
    for size, choice in one.path.items():
        np.testing.assert_allclose(choice.value, other.path[size].value, rtol=1e-7)
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-6)
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-8)
    mine, theirs = (fit.predict(Phi[:5] + 0.1) for fit in (one, other))
    np.testing.assert_allclose(mine.variance, theirs.variance, rtol=1e-7)


@pytest.mark.parametrize("centre", [False, True])
def test_evidences_on_a_weighted_path_are_those_of_the_columns(rng, centre):
    Phi, t, w, s = problem(rng)
    fit = search(Phi, t, centre=centre, noise_std=s, sample_weight=w)
    for step in fit.history[:4]:
        basis = list(fit.path[step["n_basis"]].basis)
        at = step["alpha"], step["beta"]
        known = log_evidence(Phi[:, basis], t, *at, centre=centre, noise_std=s, sample_weight=w)
        np.testing.assert_allclose(step["log_evidence"], known, rtol=1e-8)
    forward = forward_select(Phi, t, stop="evidence", centre=centre, noise_std=s, sample_weight=w)
    for step in forward.history[1:4]:
        basis = list(forward.path[step["size"]].basis)
        known = fit_evidence(Phi[:, basis], t, centre=centre, noise_std=s, sample_weight=w).log_evidence
        np.testing.assert_allclose(step["evidence"], known, rtol=1e-8)
    # columns that are made when they are looked at are the same

    class Made:
        shape = Phi.shape

        def columns(self, which):
            return Phi[:, which]

    for run in (search, forward_select):
        plain = run(Phi, t, centre=centre, noise_std=s, sample_weight=w)
        made = run(Made(), t, centre=centre, noise_std=s, sample_weight=w)
        assert made.order.tolist() == plain.order.tolist()
        np.testing.assert_allclose(made.coef, plain.coef, rtol=1e-4, atol=1e-6)


def test_what_takes_no_weights_says_so(rng):
    Phi, t, w, s = problem(rng)
    with pytest.raises(ValueError, match="'ols', 'rfs' or 'rols'"):
        forward_select(Phi, t, "backward", sample_weight=w)
    with pytest.raises(ValueError, match="score='evidence' does"):
        search(Phi, t, score="loo", noise_std=s)
    for run in (search, forward_select):
        with pytest.raises(ValueError, match="one per row"):
            run(Phi, t, noise_std=s[:3])
