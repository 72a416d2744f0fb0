"""Forward selection on dictionaries that are hard: collinear, hardly different, made when looked at, of any unit.

Guards `bayessel.linear.forward._forward_select`, `bayessel.linear.forward.backward`,
`bayessel.linear.columns.growing_model`, `bayessel.linear.columns.removed_directions`.
"""

import numpy as np
import pytest

from bayessel.basis import LazyDesign, RBFDictionary
from bayessel.fit import Status
from bayessel.linear import forward_select
from bayessel.linear.columns.growing_model import GrowingModel
from bayessel.linear.forward import backward
from tests.oracles import linear as oracles

METHODS = ("ols", "rfs", "rols", "backward")


def overlapping(width, n=60):
    """Gaussians on a line that hardly differ, and a target whose first function explains nothing."""
    x = np.linspace(-1, 1, n)
    rng = np.random.default_rng(0)
    return oracles.radial("gaussian", x[:, None], x[:, None], width), np.sin(3 * x) + 0.1 * rng.normal(size=n)


class Counted:
    """A dictionary that counts how often each of its columns is made."""

    def __init__(self, F):
        self.F, self.shape, self.made = F, F.shape, np.zeros(F.shape[1], dtype=int)

    def columns(self, indices):
        self.made[indices] += 1
        return self.F[:, indices]


@pytest.mark.parametrize("method", ["ols", "rols", "rfs"])
def test_lazy_single_precision_and_fortran_dictionaries_give_the_same_choice(rng, method):
    X = rng.uniform(0, 1, (80, 2))
    t = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=80)
    dictionary = RBFDictionary(X, 0.4)
    F = dictionary.design(X)
    first = forward_select(F, t, method)
    for other in (LazyDesign(dictionary, X), np.asfortranarray(F)):
        again = forward_select(other, t, method)
        assert again.order.tolist() == first.order.tolist()
        assert again.log_evidence == pytest.approx(first.log_evidence, rel=1e-9)
    single = forward_select(F.astype(np.float32), t, method)
    assert single.order[:5].tolist() == first.order[:5].tolist()
    assert single.log_evidence == pytest.approx(first.log_evidence, rel=1e-3)


@pytest.mark.parametrize("store", [True, False])
def test_a_dictionary_is_kept_if_it_fits_and_else_made_again_with_all_its_digits(rng, monkeypatch, store):
    x = rng.uniform(0, 1, (60, 1))
    F = oracles.radial("gaussian", x, x, 0.3)
    t = np.sin(6 * x[:, 0]) + 0.1 * rng.normal(size=60)
    first = forward_select(F, t, max_size=10, stop=None)
    lazy = Counted(F)
    if not store:
        monkeypatch.setattr("bayessel.linear.forward._forward_select.STORE_DOUBLE", 0)
    again = forward_select(lazy, t, max_size=10, stop=None)
    assert again.order.tolist() == first.order.tolist()
    np.testing.assert_allclose(again.coef, first.coef, rtol=1e-9)
    assert np.median(lazy.made) <= 2 if store else np.median(lazy.made) >= 10


def test_a_column_in_the_span_of_the_others_is_never_taken(rng):
    F = rng.normal(size=(30, 6))
    F = np.hstack([F, F @ rng.normal(size=(6, 10)), np.zeros((30, 1))])
    for method in ("ols", "rols", "rfs"):
        fit = forward_select(F, rng.normal(size=30), method, None, max_size=17)
        assert fit.n_basis == 6, method
        assert fit.stopped == "candidates"
        assert Status.COLLINEAR_SKIPPED in fit.notes


@pytest.mark.parametrize("method", METHODS)
def test_columns_that_are_constant_but_for_rounding_are_not_offered_beside_a_bias(method):
    F, t = overlapping(1e7)  # exp(-d^2/r^2) is 1 - 4e-14 at the least
    fit = forward_select(F, t, method, centre=True)
    assert fit.n_basis == 0
    assert {Status.PURE_NOISE, Status.COLLINEAR_SKIPPED} <= set(fit.notes)
    np.testing.assert_allclose(fit.predict(F).mean, t.mean())


@pytest.mark.parametrize("width", [5.0, 20.0])
@pytest.mark.parametrize("method", ["rfs", "rols"])
@pytest.mark.parametrize("centre", [False, True])
def test_a_penalty_comes_back_from_a_function_that_explains_nothing(width, method, centre):
    F, t = overlapping(width)
    fit = forward_select(F, t, method, centre=centre)
    powers = np.polynomial.legendre.legvander(np.linspace(-1, 1, 60), 3)  # what so wide functions span
    cubic = t - powers @ np.linalg.lstsq(powers, t)[0]
    assert centre or fit.history[1]["gcv"] > 0.9 * fit.history[0]["gcv"]  # the first function explains nothing
    assert fit.sum_squares < 1.1 * np.sum(cubic**2)
    assert Status.PURE_NOISE not in fit.notes


@pytest.mark.parametrize("width", [1.0, 5.0, 20.0, 100.0, 1000.0])
@pytest.mark.parametrize("centre", [False, True])
def test_backward_elimination_takes_no_penalty_that_loses_the_weights(width, centre):
    F, t = overlapping(width)
    fit = forward_select(F, t, "backward", centre=centre)
    at = next(at for at in fit.history if at["size"] == fit.n_basis)
    assert np.mean((t - fit.mean(F)) ** 2) == pytest.approx(at["error"], rel=1e-3)
    assert Status.ILL_CONDITIONED not in fit.notes or Status.ILL_CONDITIONED in fit.evidence_fit.notes
    risky = forward_select(F, t, "backward", centre=centre, lam=1e-40)
    at = next(at for at in risky.history if at["size"] == risky.n_basis)
    same = np.mean((t - risky.mean(F)) ** 2) == pytest.approx(at["error"], rel=1e-2)
    assert same or risky.status is Status.ILL_CONDITIONED
    assert not same or width != 20.0


def test_a_criterion_that_still_falls_is_followed_beyond_singular_normal_equations(rng):
    """A smooth target without noise: ten functions more, and an error a hundred times smaller."""
    x = np.sort(rng.uniform(-1, 1, 200))[:, None]
    F = oracles.radial("gaussian", x, x, 0.8)
    t = np.exp(x[:, 0]) * np.sin(5 * x[:, 0])
    far, near = forward_select(F, t), forward_select(F, t, max_condition=np.finfo(float).eps ** -0.5)
    assert far.n_basis > near.n_basis
    assert far.history[-1]["condition"] <= 1e12
    assert far.history[-1]["error"] < 1e-2 * near.history[-1]["error"]
    H = F[:, far.basis]
    np.testing.assert_allclose(np.mean((t - far.mean(H)) ** 2), far.history[far.n_basis]["error"], rtol=1e-2)


@pytest.mark.parametrize("method", ["rfs", "rols"])
def test_penalties_follow_the_unit_of_the_columns(rng, method):
    F = rng.normal(size=(60, 20))
    t = F[:, [3, 7]] @ [2.0, -1.0] + 0.3 * rng.normal(size=60)
    plain = forward_select(F, t, method, "bic")
    for power in (-200, 200):
        other = forward_select(F * 2.0**power, t, method, "bic")
        assert other.order.tolist() == plain.order.tolist()
        np.testing.assert_allclose(
            [at["lam"] for at in other.history[1:]],
            [at["lam"] * 2.0 ** (2 * power) for at in plain.history[1:]],
            rtol=1e-9,
        )


@pytest.mark.parametrize("method", METHODS)
def test_a_centred_fit_does_not_see_an_offset(rng, method):
    F = rng.normal(size=(40, 15))
    t = F[:, [2, 9]] @ [1.0, -2.0] + 0.2 * rng.normal(size=40)
    plain = forward_select(F, t, method, centre=True)
    moved = forward_select(F + 1e3, t + 1e6, method, centre=True)
    assert moved.order.tolist() == plain.order.tolist()
    np.testing.assert_allclose(moved.coef, plain.coef, rtol=1e-6)
    assert moved.log_evidence == pytest.approx(plain.log_evidence, abs=1e-5)
    rows = rng.normal(size=(3, 15))
    np.testing.assert_allclose(moved.mean(rows + 1e3) - 1e6, plain.mean(rows), atol=1e-5)


def test_noise_alone_and_constants_are_said_to_be_so(rng):
    sizes = []
    for _ in range(30):
        F, t = rng.normal(size=(50, 20)), rng.normal(size=50)
        sizes.append([forward_select(F, t, stop=stop, centre=True).n_basis for stop in ("bic", "gcv")])
    # of 20 independent columns one passes ln 50 by chance, of the best each time some more; GCV asks for 2 only
    assert np.mean(sizes, axis=0)[0] < 3 < np.mean(sizes, axis=0)[1]
    nothing = forward_select(F, np.full(50, 3.0), centre=True)
    assert nothing.n_basis == 0
    assert nothing.status is Status.CONSTANT_TARGET or Status.PURE_NOISE in nothing.notes
    there = nothing.predict(F[:2])
    mean, std = there.mean, there.std
    np.testing.assert_allclose(mean, 3.0)
    assert np.isfinite(std).all()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("centre", [False, True])
def test_few_rows_have_an_answer(rng, n, method, centre):
    F = rng.normal(size=(n, 4))
    fit = forward_select(F, rng.normal(size=n), method, centre=centre)
    assert np.isfinite(fit.coef).all()
    assert np.isfinite([fit.predict(F).mean, fit.predict(F).std]).all()


@pytest.mark.parametrize("when", [1, 4])
@pytest.mark.parametrize("stop", ["cv", "gcv"])
def test_an_interrupt_leaves_what_there_is(rng, monkeypatch, when, stop):
    F = rng.normal(size=(60, 20))
    t = F[:, [3, 7, 11]] @ [3.0, -2.0, 1.0] + 0.1 * rng.normal(size=60)
    calls, absorb = [], GrowingModel.absorb

    def stops(self, b):
        if self.n_columns == when and not calls:
            calls.append(1)
            raise KeyboardInterrupt
        absorb(self, b)

    monkeypatch.setattr(GrowingModel, "absorb", stops)
    fit = forward_select(F, t, "ols", stop)
    assert fit.stopped == "interrupted" and Status.INTERRUPTED in fit.notes and Status.PURE_NOISE not in fit.notes
    assert fit.n_basis == min(when - 1, 3)
    assert np.isfinite(fit.mean(F)).all()


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"method": "omp"}, ValueError, "method must be one of"),
        ({"stop": "aic"}, ValueError, "stop must be one of"),
        ({"stop": None}, ValueError, "say how many"),
        ({"gain": "much"}, ValueError, "gain must be one of"),
        ({"lam": 1.0}, ValueError, "has no penalty"),
        ({"method": "rfs", "lam": -1.0}, ValueError, "lam must be positive"),
        ({"max_condition": 0.5}, ValueError, "max_condition"),
        ({"stop": "cv", "folds": 100}, ValueError, "folds must be between"),
        ({"max_size": 2.5}, TypeError, "max_size must be an integer"),
        ({"centre": "yes"}, TypeError, "centre must be True or False"),
        ({"random_state": "x"}, TypeError, "random_state must be an integer"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0"),
        ({"t": [1.0, np.nan, 2.0]}, ValueError, "finite"),
        ({"Phi": np.array([[1.0, np.nan], [2.0, 1.0], [0.0, 1.0]])}, ValueError, r"finite, got 1 bad value.*\[0, 1\]"),
        ({"Phi": 1e150 * np.eye(3)}, ValueError, "rescale it"),
        ({"Phi": 1e-150 * np.eye(3)}, ValueError, "rescale it"),
        ({"t": [1.0, 2.0]}, ValueError, "one value per row"),
    ],
)
def test_bad_arguments_are_refused(change, error, said):
    arguments = {"Phi": np.eye(3), "t": [1.0, 2.0, 3.0]} | change
    with pytest.raises(error, match=said):
        forward_select(**arguments)


@pytest.mark.parametrize("centre", [False, True])
def test_columns_that_only_the_held_rows_see_are_no_trouble_to_backward_elimination(rng, centre):
    """Independent over all rows, zero or alike over those of a fold."""
    n = 12
    F = np.column_stack([rng.normal(size=n), np.eye(n)[3], rng.normal(size=n)])
    F = np.column_stack([F, F[:, 2] + np.eye(n)[7]])
    t = 2.0 * F[:, 0] + 0.1 * rng.normal(size=n)
    fit = forward_select(F, t, "backward", "cv", centre=centre, folds=n)
    assert 0 in fit.basis and np.isfinite([entry["value"] for entry in fit.history]).all()
    assert fit.history[0]["value"] < 100.0 * np.var(t)  # the fold's weights of what it cannot tell are moderate
    few = forward_select(rng.normal(size=(n, 8)), t, "backward", "cv", centre=centre, folds=2)  # 6 rows a fold
    assert np.isfinite(few.coef).all() and few.history[0]["value"] < 100.0 * np.var(t)
    bare = forward_select(np.array([[1.0], [0.0]]), [1.0, 2.0], "backward", "cv", folds=2)
    assert np.isfinite(bare.log_evidence)


@pytest.mark.parametrize("method", ["rfs", "rols", "backward"])
def test_an_evidence_that_lost_its_digits_is_said_to_have(rng, method):
    """A target without noise on wide functions: the weights are good, the evidence of the choice is not."""
    x = np.sort(rng.uniform(-8, 8, 24))[:, None]
    F = oracles.radial("gaussian", x, x, 10.0)
    fit = forward_select(F, F @ rng.normal(size=24), method, "bic")
    assert Status.ILL_CONDITIONED in fit.evidence_fit.notes
    assert fit.notes.count(Status.ILL_CONDITIONED) == 1


@pytest.mark.parametrize("when", [1, 3])
def test_an_interrupt_between_folds_leaves_what_those_before_say(rng, monkeypatch, when):
    F = rng.normal(size=(40, 6))
    t = F[:, 2] + 0.3 * rng.normal(size=40)
    calls, descend = [], backward.descend

    def stops(*arguments):
        calls.append(1)
        if len(calls) == when:
            raise KeyboardInterrupt
        return descend(*arguments)

    monkeypatch.setattr(backward, "descend", stops)
    if when == 1:
        with pytest.raises(KeyboardInterrupt):
            forward_select(F, t, "backward", "cv")
        return
    fit = forward_select(F, t, "backward", "cv")
    assert fit.status is Status.INTERRUPTED and fit.stopped == "interrupted"
    assert 2 in fit.basis and 0.05 < fit.value < 0.2


def test_backward_elimination_from_more_columns_than_rows_keeps_weights(rng):
    """The penalty of all columns together must not be the one that sends every weight to zero."""
    F = rng.normal(size=(60, 90))
    t = F[:, :4] @ [2.0, -1.0, 0.5, 1.0] + 0.2 * rng.normal(size=60)
    fit = forward_select(F, t, "backward")
    assert fit.residuals @ fit.residuals < 0.5 * t @ t
