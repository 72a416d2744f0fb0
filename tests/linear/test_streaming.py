"""Streamed fits against the same fit in memory.

Guards `bayessel.linear.streaming`, `bayessel.linear.moments`, `bayessel.linear.block_sums`.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel import linear
from bayessel.errors import NumericalWarning
from bayessel.linear import streaming
from bayessel.linear.streaming import fit_evidence_stream
from tests.oracles import linear as oracles
from tests.problems import linear as problems


def blocks(Phi: np.ndarray, t: np.ndarray, sizes: list[int]):
    """Cut the rows into blocks of the given sizes, the last one taking what is left; empty blocks allowed."""
    start = 0
    for size in sizes:
        yield Phi[start : start + size], t[start : start + size]
        start += size
    if start < len(t):
        yield Phi[start:], t[start:]


CUTS = {
    "one block": [],
    "odd sizes": [1, 7, 0, 333, 1, 64, 0],
    "one row at a time": [1] * 150,
    "empty ones at the ends": [0, 0, 100, 10_000, 0],
}


def same(streamed, fit, tolerance: float) -> None:
    for name in ("log_evidence", "alpha", "beta", "gamma"):
        np.testing.assert_allclose(getattr(streamed, name), getattr(fit, name), rtol=tolerance, err_msg=name)
    scale = np.abs(fit.coef).max()
    np.testing.assert_allclose(streamed.coef / scale, fit.coef / scale, atol=tolerance, err_msg="coef")
    np.testing.assert_allclose(streamed.intercept, fit.intercept, atol=tolerance * max(1, abs(fit.intercept)))
    assert streamed.n_rows == fit.n_rows


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("condition", [3.0, 1e3, 1e6])
def test_streamed_is_in_memory(rng, cut, centre, condition):
    """To 1e-10 up to a condition number of 1e6, however the rows are cut."""
    Phi = problems.conditioned(rng, 1500, 12, condition) * 40 + (3.0 if centre else 0.0)
    t = Phi @ rng.normal(size=12) + 0.1 * rng.normal(size=1500) + (100.0 if centre else 0.0)
    fit = linear.fit_evidence(Phi, t, centre=centre)
    same(fit_evidence_stream(list(blocks(Phi, t, CUTS[cut])), centre=centre), fit, 1e-10)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("width", [0.3, 2.0])
def test_streamed_gaussians_of_any_width(rng, centre, width):
    """A dictionary whose condition number passes 1e8 or 1e16: to 1e-8, by a QR, and the route says so."""
    Phi = problems.gaussian_dictionary(rng, 2000, 15, width)
    t = np.sin(6 * np.linspace(0, 1, 2000)) + 0.1 * rng.normal(size=2000)
    fit = linear.fit_evidence(Phi, t, centre=centre)
    streamed = fit_evidence_stream(list(blocks(Phi, t, [700, 1, 900])), centre=centre)
    assert streamed.spectrum.route == "stream-qr"
    np.testing.assert_allclose(streamed.log_evidence, fit.log_evidence, rtol=1e-8)
    tolerance = max(1e-8, 10 * problems.EPS * (fit.beta / fit.alpha) ** 0.5)
    for name in ("alpha", "beta", "gamma"):
        np.testing.assert_allclose(getattr(streamed, name), getattr(fit, name), rtol=tolerance, err_msg=name)
    rounding = 10 * problems.EPS * np.abs(fit.coef).sum()  # weights of 1e8 and opposite signs cancel in a prediction
    np.testing.assert_allclose(streamed.predict(Phi[::50]).mean, fit.predict(Phi[::50]).mean, atol=max(1e-8, rounding))


@pytest.mark.parametrize("centre", [False, True])
def test_streamed_against_sixty_digits(rng, centre):
    """The evidence of the streamed alpha and beta, from the stacked rows (the bias, if any, as a very wide column)."""
    Phi = problems.gaussian_dictionary(rng, 400, 6, 0.7)
    t = np.sin(6 * np.linspace(0, 1, 400)) + 0.1 * rng.normal(size=400) + 5.0 * centre
    fit = fit_evidence_stream(list(blocks(Phi, t, [100, 150])), centre=centre)
    if not centre:
        exact, *_ = oracles.exact_tall(Phi, t, fit.alpha / fit.beta, fit.beta)
        assert oracles.relative(fit.log_evidence, exact) < 1e-10
    else:
        Phi_c, t_c = Phi - Phi.mean(axis=0), t - t.mean()
        exact, *_ = oracles.exact_tall(Phi_c, t_c, fit.alpha / fit.beta, fit.beta)
        assert oracles.relative(fit.log_evidence, exact - 0.5 * np.log(fit.beta * t_c @ t_c)) < 1e-10


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9])
def test_a_small_residual_survives_the_stream(rng, noise):
    """t't - sum z^2 cancels when nearly everything is explained: the noise level must not be its rounding."""
    Phi = rng.normal(size=(3000, 8))
    t = Phi @ rng.normal(size=8) + noise * rng.normal(size=3000)
    streamed = fit_evidence_stream(list(blocks(Phi, t, [500, 1, 2000])))
    rounding = 10 * problems.EPS * np.abs(t).max() / noise
    np.testing.assert_allclose(streamed.noise_std, linear.fit_evidence(Phi, t).noise_std, rtol=max(1e-9, rounding))
    np.testing.assert_allclose(streamed.noise_std, noise, rtol=0.05)


def test_large_offsets_cost_no_digits(rng):
    Phi = rng.normal(size=(3000, 5)) + 1e5
    t = (Phi - 1e5) @ rng.normal(size=5) + 0.1 * rng.normal(size=3000) + 1e6
    streamed = fit_evidence_stream(list(blocks(Phi, t, [10, 500])), centre=True)
    same(streamed, linear.fit_evidence(Phi, t, centre=True), 1e-9)


def test_a_generator_a_list_and_a_callable_are_one(rng):
    Phi, t = problems.regression_problem(rng, 900, 6)
    sizes = [100, 0, 300]
    from_list = fit_evidence_stream(list(blocks(Phi, t, sizes)))
    from_generator = fit_evidence_stream(blocks(Phi, t, sizes))
    from_callable = fit_evidence_stream(lambda: blocks(Phi, t, sizes))
    for other in (from_generator, from_callable):
        assert other.log_evidence == from_list.log_evidence
        np.testing.assert_array_equal(other.coef, from_list.coef)


@pytest.mark.parametrize(("arithmetic", "route"), [("gram", "stream-gram"), ("qr", "stream-qr")])
def test_the_arithmetic_can_be_chosen_and_is_reported(rng, arithmetic, route):
    Phi, t = problems.regression_problem(rng, 900, 6)
    streamed = fit_evidence_stream(list(blocks(Phi, t, [200])), arithmetic=arithmetic)
    assert streamed.spectrum.route == route
    same(streamed, linear.fit_evidence(Phi, t), 1e-10)


def test_a_stream_that_turns_bad_late(rng):
    """Harmless first blocks, then two columns nearly equal: a second pass, or a remark when there is none."""
    Phi = rng.normal(size=(400, 6))
    late = rng.normal(size=(40_000, 6)) * 1e6
    late[:, 1] = late[:, 0]
    Phi = np.vstack([Phi, late])
    t = Phi @ np.array([1.0, 1.0, -1.0, 0.5, 0.0, 2.0]) + 0.1 * rng.normal(size=len(Phi))
    cut = [400, 10_000]
    fit = linear.fit_evidence(Phi, t)
    twice = fit_evidence_stream(list(blocks(Phi, t, cut)))
    assert twice.spectrum.route == "stream-qr"
    np.testing.assert_allclose(twice.log_evidence, fit.log_evidence, rtol=1e-8)
    with pytest.warns(NumericalWarning, match="LOST_DIGITS"):
        once = fit_evidence_stream(blocks(Phi, t, cut))
    assert once.status is bs.Status.LOST_DIGITS
    with pytest.warns(NumericalWarning, match="arithmetic='qr'"):
        fit_evidence_stream(list(blocks(Phi, t, cut)), arithmetic="gram")


def test_a_mean_that_drifts_far_is_seen(rng):
    """Twenty blocks, each a thousand standard deviations further: one pass says so, two passes are right."""
    Phi = rng.normal(size=(2000, 3)) + 1e3 * np.repeat(np.arange(20.0), 100)[:, None]
    t = Phi @ np.array([1.0, -1.0, 0.5]) + 0.1 * rng.normal(size=2000)
    cut = [100] * 19
    fit = linear.fit_evidence(Phi, t, centre=True)
    twice = fit_evidence_stream(list(blocks(Phi, t, cut)), centre=True)
    np.testing.assert_allclose(twice.log_evidence, fit.log_evidence, rtol=1e-8)
    with pytest.warns(NumericalWarning, match="LOST_DIGITS"):
        fit_evidence_stream(blocks(Phi, t, cut), centre=True)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("noise", [0.1, 1e-6, 0.0])
def test_large_numbers_and_little_noise_are_right_or_said(offset, noise):
    """Columns around 1e9, targets with their offset or without: an evidence off by 0.002 nats is called so."""
    rng = np.random.default_rng([5, int(offset), int(1e6 * noise)])
    seen = []
    for n, m in [(3, 6), (20, 3), (30, 1), (9, 7)]:
        Z, w = rng.normal(size=(n, m)), rng.normal(size=m)
        Phi, e = Z + offset, noise * rng.normal(size=n)
        for t in (Z @ w + e, Phi @ w + e):
            for centre in (False, True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NumericalWarning)
                    fit = fit_evidence_stream(list(blocks(Phi, t, [n // 3, n // 3])), centre=centre)
                exact = oracles.exact_log_evidence(Phi, t, fit.alpha, fit.beta, centre=centre)
                seen.append(bs.Status.LOST_DIGITS in fit.notes)
                assert seen[-1] or abs(fit.log_evidence - exact) < 2e-3, (n, m, centre)
    if offset < 1e9 and noise == 0.1:
        assert not any(seen)


@pytest.mark.parametrize("arithmetic", ["gram", "qr"])
def test_what_rounding_may_cost_counts_weights_that_cancel(rng, arithmetic):
    """The bound is of the sizes of the columns times their weights, whatever the signs: from the data themselves."""
    base = rng.normal(size=800)
    Phi = np.column_stack([base, base + 0.01 * rng.normal(size=800), rng.normal(size=800)])
    t = Phi @ [50.0, -50.0, 1.0] + 0.1 * rng.normal(size=800)
    fit = fit_evidence_stream(list(blocks(Phi, t, [300])), arithmetic=arithmetic)
    moved = np.finfo(float).eps * (np.linalg.norm(t) + np.linalg.norm(Phi, axis=0) @ np.abs(fit.coef))
    quad = np.sum((t - Phi @ fit.coef) ** 2) + fit.lam * np.sum(fit.coef**2)
    assert np.abs(fit.coef[:2]).min() > 20.0
    assert streaming._rounding(fit.spectrum, fit) == pytest.approx(fit.beta * np.sqrt(quad) * moved, rel=1e-6)


def test_a_dictionary_turns_blocks_of_inputs_into_columns(rng):
    X = rng.uniform(0, 1, size=(800, 2))
    t = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=800)
    D = bs.RBFDictionary(rng.uniform(0, 1, size=(9, 2)), 0.4, bias=True)
    fit = linear.fit_evidence(D.design(X)[:, :-1], t, centre=True)
    streamed = fit_evidence_stream(list(blocks(X, t, [13, 200])), dictionary=D)
    same(streamed, fit, 1e-9)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_is_read_in_blocks(rng, tmp_path, kind):
    X = rng.normal(size=(700, 3))
    t = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=700)
    frame = pd.DataFrame({"a": X[:, 0], "y": t, "b": X[:, 1], "c": X[:, 2]})
    path = tmp_path / f"rows.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    streamed = fit_evidence_stream(path, target="y", block_rows=97)
    same(streamed, linear.fit_evidence(X, t), 1e-10)
    two = fit_evidence_stream(str(path), target="y", inputs=["c", "a"], block_rows=97, centre=True)
    same(two, linear.fit_evidence(X[:, [2, 0]], t, centre=True), 1e-10)


def test_few_rows_and_many_columns(rng):
    Phi, t = problems.regression_problem(rng, 10, 25)
    same(fit_evidence_stream(list(blocks(Phi, t, [3, 1, 2]))), linear.fit_evidence(Phi, t), 1e-8)


def test_a_lost_block_would_be_seen(rng):
    """Control: drop one row in a thousand and the comparison fails."""
    Phi, t = problems.regression_problem(rng, 1000, 6)
    with pytest.raises(AssertionError):
        same(fit_evidence_stream(list(blocks(Phi[:-1], t[:-1], [100]))), linear.fit_evidence(Phi, t), 1e-10)


@pytest.mark.parametrize(
    "source",
    [
        [],
        [(np.zeros((0, 3)), np.zeros(0))],
        [(np.ones((4, 2)), np.ones(3))],
        [(np.ones((4, 2)), np.ones(4)), (np.ones((4, 3)), np.ones(4))],
        [(np.ones((4, 2)), np.array([1.0, np.nan, 0.0, 0.0]))],
        [(np.array([[np.inf, 0.0]] * 20), np.ones(20))],
        [np.ones((4, 2))],
        3.0,
        "there_is_no_such_file.csv",
    ],
    ids=["nothing", "no rows", "rows differ", "columns differ", "NaN", "infinity", "no target", "a number", "no file"],
)
def test_bad_streams_are_refused_with_advice(source):
    with pytest.raises((ValueError, TypeError, OSError)) as refusal:
        fit_evidence_stream(source, target="y" if isinstance(source, str) else None)
    assert len(str(refusal.value)) > 20


def test_a_callable_that_hands_out_a_spent_iterator_is_told(rng):
    """The second pass finds nothing: the advice is about the callable."""
    Phi = rng.normal(size=(3000, 3))
    Phi[2000:, 1] = Phi[2000:, 0] + 1e-9 * Phi[2000:, 1]
    Phi[2000:] *= 1e6
    once = blocks(Phi, Phi.sum(axis=1), [1000])
    with pytest.raises(ValueError, match="must return a fresh iterator"):
        fit_evidence_stream(lambda: once)


@pytest.mark.parametrize("arithmetic", ["gram", "qr"])
@pytest.mark.parametrize("first", [False, True])
def test_the_floor_of_the_noise_is_that_of_the_largest_target_of_all_blocks(rng, arithmetic, first):
    Phi = rng.normal(size=(60, 2))
    t = Phi @ [1.0, 2.0] + rng.normal(size=60)
    t[3 if first else 57] = 1e3
    fit = fit_evidence_stream(list(blocks(Phi, t, [20, 20])), arithmetic=arithmetic)
    assert fit.spectrum.t_scale == 1e3 == linear.fit_evidence(Phi, t).spectrum.t_scale
