"""Widths by evidence: the gradient, irrelevant inputs, and data with two answers.

Guards `bayessel.linear.widths.abf`, `bayessel.linear.widths.gradient`, `bayessel.linear.widths.search`,
`bayessel.linear.widths.result`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.fit import Status
from bayessel.linear.widths import abf, rvm_width
from tests.oracles import linear as oracles
from tests.problems import linear as problems

KINDS = ("gaussian", "multiquadric", "inverse_multiquadric", "cauchy")


def dense_profile(log_lam: float, log_widths: np.ndarray, X, centers, t, kind: str, centre: bool) -> float:
    """max over beta of the dense evidence at one lambda; a free mean leaves the N - 1 directions orthogonal to it."""
    Phi = oracles.radial(kind, X, centers, np.exp(log_widths))
    if centre:
        complement = np.linalg.svd(np.ones((1, len(t))))[2][1:]
        Phi, t = complement @ Phi, complement @ t
    return float(oracles.profile(Phi, t, np.exp(log_lam))[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("own_centers", [True, False], ids=["centres at the inputs", "six other centres"])
def test_the_gradient_is_that_of_the_dense_evidence(rng, kind, centre, own_centers):
    X = rng.uniform(-1, 1, size=(18, 3))
    t = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=18)
    t = t - t.mean() if centre else t
    centers = X if own_centers else rng.uniform(-1, 1, size=(6, 3))
    for log_lam in np.log([1e-4, 0.05, 3.0]):
        theta = np.array([log_lam, *np.log([0.7, 1.2, 3.0])])

        def f(x):
            return dense_profile(x[0], x[1:], X, centers, t, kind, centre)

        value, d_lam, d_r = abf.profile_gradient(theta[0], theta[1:], X, centers, t, kind=kind, centre=centre)
        numeric = oracles.central_difference(f, theta, step=2e-3)
        scale = np.maximum(1.0, np.abs(numeric))
        np.testing.assert_allclose(np.array([d_lam, *d_r]) / scale, numeric / scale, atol=1e-6)
        elsewhere = theta + 0.1
        other, *_ = abf.profile_gradient(elsewhere[0], elsewhere[1:], X, centers, t, kind=kind, centre=centre)
        np.testing.assert_allclose(other - value, f(elsewhere) - f(theta), rtol=1e-7, atol=1e-8)


def test_inputs_far_from_zero_keep_the_digits_of_the_gradient(rng):
    X = np.round(rng.uniform(-1, 1, size=(18, 2)) * 2**20) / 2**20  # so that moving them is exact
    t = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=18)
    near = abf.profile_gradient(np.log(0.05), np.log([0.7, 1.2]), X, X[:7], t)
    far = abf.profile_gradient(np.log(0.05), np.log([0.7, 1.2]), X + 2.0**30, X[:7] + 2.0**30, t)
    np.testing.assert_allclose(far[2], near[2], rtol=1e-5)


def test_a_missing_term_of_the_gradient_would_be_seen(rng):
    """Control: without Phi Sigma in D the width gradient is off by far more than the tolerance."""
    X = rng.uniform(-1, 1, size=(18, 2))
    t = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=18)
    log_lam, log_r = np.log(0.05), np.log([0.7, 1.2])
    numeric = oracles.central_difference(
        lambda x: dense_profile(log_lam, x, X, X, t, "gaussian", False), log_r, step=2e-3
    )
    Phi = oracles.radial("gaussian", X, X, np.exp(log_r))
    mu = oracles.ridge_weights(Phi, t, np.exp(log_lam))
    beta = len(t) / (t @ np.linalg.solve(np.eye(18) + Phi @ Phi.T / np.exp(log_lam), t))
    D = beta * np.outer(t - Phi @ mu, mu)
    half = [np.sum(D * Phi * 2 * (X[:, None, d] - X[None, :, d]) ** 2 / np.exp(2 * log_r[d])) for d in range(2)]
    assert np.abs(np.array(half) - numeric).max() > 1e-2


def separation(seed: int) -> float:
    """Smallest irrelevant width over the largest relevant one."""
    X, t = problems.sum_of_sines(seed)
    widths = abf.fit_abf(X, t).widths
    return float(widths[4:].min() / widths[:4].max())


@pytest.mark.parametrize("seed", range(3))
def test_irrelevant_inputs_get_wide(seed):
    assert separation(seed) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 20))
def test_irrelevant_inputs_get_wide_every_time(seed):
    assert separation(seed) >= 5


def test_without_a_relevance_there_is_no_separation():
    """Control: when all eight inputs matter alike, no width stands out."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(200, 8))
    t = np.sin(3 * X).sum(axis=1) + 0.1 * rng.normal(size=200)
    widths = abf.fit_abf(X, t, n_starts=1).widths
    assert widths[4:].min() / widths[:4].max() < 2


def test_the_fit_is_the_evidence_fit_at_its_widths(rng):
    X = rng.uniform(-1, 1, size=(40, 2))
    t = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=40) + 3.0
    for centre in (False, True):
        found = abf.fit_abf(X, t, centre=centre)
        Phi = oracles.radial("gaussian", X, X, found.widths)
        exact = oracles.exact_log_evidence(Phi, t, found.fit.alpha, found.fit.beta, centre=centre)
        assert oracles.relative(found.log_evidence, exact, floor=1.0) < 1e-7  # two ways of rounding the design
        base = np.log([found.fit.lam, *found.widths])
        here = dense_profile(base[0], base[1:], X, X, t - t.mean() * centre, "gaussian", centre)
        for k in range(2):  # no neighbour is better (the second input is irrelevant, its curve is flat)
            for step in (-0.05, 0.05):
                moved = base.copy()
                moved[k] += step
                there = dense_profile(moved[0], moved[1:], X, X, t - t.mean() * centre, "gaussian", centre)
                assert there < here + 1e-5


TWO_ANSWERS = (16, 84, 144, 146, 207, 364)  # both optima within a nat, a barrier of at least 2 nats between them


def profile_over_width(X: np.ndarray, t: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Evidence maximised over lambda on a grid, at each width, by the eigenvalues of Phi Phi'."""
    lam = np.geomspace(1e-10, 1e6, 200)[:, None]
    best = []
    for r in widths:
        Phi = oracles.radial("gaussian", X, X, r)
        mu, U = np.linalg.eigh(Phi @ Phi.T)
        K = 1 + np.maximum(mu, 0) / lam
        q = ((U.T @ t) ** 2 / K).sum(axis=1)
        n = len(t)
        best.append(np.max(-0.5 * (n * np.log(2 * np.pi) + np.log(K).sum(axis=1) + n * np.log(q / n) + n)))
    return np.array(best)


@pytest.mark.parametrize("seed", TWO_ANSWERS)
def test_two_answers_are_both_given(seed):
    X, t = problems.slow_and_fast_wave(seed)
    widths = np.geomspace(0.02, 3, 120)
    curve = profile_over_width(X, t, widths)
    peaks = oracles.local_optima(curve, +1)
    assert len(peaks) == 2
    found = abf.fit_abf(X, t, centre=False)
    assert bs.Status.MULTIPLE_OPTIMA in found.notes
    ours = np.array([o.widths[0] for o in found.optima])
    heights = np.array([o.log_evidence for o in found.optima])
    for peak in peaks:
        k = int(np.abs(np.log(ours / widths[peak])).argmin())
        np.testing.assert_allclose(ours[k], widths[peak], rtol=0.1)
        np.testing.assert_allclose(heights[k], curve[peak], atol=0.02)
    assert list(heights) == sorted(heights, reverse=True)
    assert found.log_evidence >= curve.max() - 1e-3


def test_one_answer_is_not_called_several():
    rng = np.random.default_rng(11)
    X = np.linspace(-2, 2, 40)[:, None]
    t = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)
    found = abf.fit_abf(X, t)
    assert len(found.optima) == 1
    assert bs.Status.MULTIPLE_OPTIMA not in found.notes


def test_one_shared_width(rng):
    X = rng.uniform(-1, 1, size=(50, 2))
    t = np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1]) + 0.1 * rng.normal(size=50)
    shared, own = abf.fit_abf(X, t, shared=True), abf.fit_abf(X, t)
    assert own.log_evidence >= shared.log_evidence - 1e-6
    assert len(np.unique(shared.widths)) == 1


def test_one_width_of_inputs_of_different_spread_is_one_width(rng):
    """The fit, its evidence and its predictions are those of functions of the width that is reported."""
    X = rng.uniform(-1, 1, size=(50, 2)) * [1.0, 8.0]
    t = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=50)
    found = abf.fit_abf(X, t, shared=True, centre=False)
    Phi = oracles.radial("gaussian", X, X, found.widths[0])
    exact = oracles.exact_log_evidence(Phi, t, found.fit.alpha, found.fit.beta)
    assert found.widths.shape == (1,) and oracles.relative(found.log_evidence, exact, floor=1.0) < 1e-7
    np.testing.assert_allclose(found.predict(X).mean, Phi @ found.fit.coef, atol=1e-8)


@pytest.mark.parametrize("shared", [False, True])
def test_a_start_is_widths_in_the_units_of_the_inputs(rng, shared):
    X = rng.uniform(-1, 1, size=(30, 2)) * [50.0, 0.02]
    t = np.sin(X[:, 0] / 10.0) + 0.1 * rng.normal(size=30)
    search = abf.ABFSearch(X, t, None, "gaussian", True, shared)
    given = np.array([13.0, 13.0]) if shared else np.array([13.0, 0.004])
    np.testing.assert_allclose(search.widths(search.starts(given, 1, rng)[0][1:]), given, rtol=1e-12)


def test_random_starts_follow_the_seed(rng):
    """Beyond the three named starts: other seeds begin elsewhere, the same seed in the same place."""
    X = rng.uniform(-1, 1, size=(25, 2))
    t = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=25)

    def values(seed: int) -> list[float]:
        return [run["value"] for run in abf.fit_abf(X, t, n_starts=5, max_steps=1, seed=seed).history]

    one, again, other = values(1), values(1), values(2)
    assert one == again
    assert one[:-2] == other[:-2] and one[-2] != other[-2] and one[-1] != other[-1]


def test_units_of_the_inputs_do_not_matter(rng):
    X = rng.uniform(-1, 1, size=(50, 2))
    t = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=50)
    units = np.array([1e-3, 1e4])
    one, other = abf.fit_abf(X, t), abf.fit_abf(X * units + [5.0, -1e5], 7.0 * t)
    np.testing.assert_allclose(other.widths, one.widths * units, rtol=1e-2)
    np.testing.assert_allclose(other.log_evidence, one.log_evidence - 50 * np.log(7.0), atol=1e-3)


@pytest.mark.parametrize("case", ["constant input", "constant target", "two rows", "one row", "duplicate rows"])
def test_degenerate_data_get_widths_and_a_status(rng, case):
    X, t = rng.uniform(-1, 1, size=(20, 2)), rng.normal(size=20)
    if case == "constant input":
        X[:, 1] = 3.0
    elif case == "constant target":
        t = np.full(20, 2.0)
    elif case == "duplicate rows":
        X[10:] = X[:10]
    else:
        n = 2 if case == "two rows" else 1
        X, t = X[:n], t[:n]
    found = abf.fit_abf(X, t)
    assert np.all(found.widths > 0)
    assert np.isfinite(found.widths).all()
    assert np.isfinite(found.log_evidence)
    assert isinstance(found.status, bs.Status)


@pytest.mark.parametrize("seed", [21, 37, 72, 76, 139, 184, 230, 258, 287, 294, 327, 341, 348])
def test_one_width_is_the_best_of_a_scan(seed):
    """With a single width there is no excuse: the highest point of a dense scan must be reached."""
    X, t = problems.slow_and_fast_wave(seed)
    curve = profile_over_width(X, t, np.geomspace(0.02, 3, 120))
    assert abf.fit_abf(X, t, centre=False).log_evidence >= curve.max() - 1e-3


@pytest.mark.parametrize("estimator", [bs.EvidenceRegressor, bs.RVMRegressor])
def test_ctrl_c_in_the_first_ascent_gives_the_best_so_far(rng, monkeypatch, estimator):
    """The widths per input of both estimators; later interrupts find no less evidence."""
    X = rng.normal(size=(50, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=50)
    module, name = (abf, "profile_gradient") if estimator is bs.EvidenceRegressor else (rvm_width, "width_gradient")
    gradient, left = getattr(module, name), [0]

    def stopping(*arguments, **options):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return gradient(*arguments, **options)

    monkeypatch.setattr(module, name, stopping)
    found = []
    for calls in (0, 1, 12):
        left[0] = calls
        model = estimator(width="ard").fit(X, y)
        assert model.status_ is Status.INTERRUPTED and np.isfinite(model.predict(X)).all()
        found.append(model.log_evidence_)
    assert sorted(found) == found
    assert found[2] > found[0] or estimator is bs.RVMRegressor


def test_an_interruption_before_any_ascent_gives_the_best_common_width(rng, monkeypatch):
    X = rng.normal(size=(50, 2))
    t = np.sin(X[:, 0]) + 0.1 * rng.normal(size=50)
    scanned = []
    fit = abf.fit_evidence

    def noted(*arguments, **options):
        scanned.append(fit(*arguments, **options).log_evidence)
        return fit(*arguments, **options)

    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(abf, "fit_evidence", noted)
        patched.setattr(abf, "profile_gradient", stopped)
        found = abf.fit_abf(X, t, n_starts=1)
    assert found.status is Status.INTERRUPTED and len(scanned) > 10
    # the scan is of a target of unit size: its evidences differ from that of the target by a constant
    unit = (t - t.mean()) / t.std()
    Phi = oracles.radial("gaussian", X, X, found.widths)
    assert fit(Phi, unit, centre=True).log_evidence > max(scanned[:-1]) - 1e-6


def test_default_starts_find_the_best_of_many():
    """Four inputs, one without effect: three starts end ten nats below."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, (60, 4))
    t = X[:, 0] * X[:, 1] + np.sin(4 * X[:, 2]) + 0.2 * rng.standard_normal(60)
    found = abf.fit_abf(X, t)
    assert abf.fit_abf(X, t, n_starts=3).log_evidence < found.log_evidence - 5
    assert found.log_evidence > abf.fit_abf(X, t, n_starts=20).log_evidence - 0.1


def test_many_rows_are_scanned_by_some_of_them(rng, monkeypatch):
    """The scan finds where to begin; the ascents and the fit have all rows and all centres."""
    X = rng.uniform(-1, 1, size=(150, 2))
    t = np.sin(4.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=150)
    whole = abf.fit_abf(X, t, shared=True)
    fit = abf.fit_evidence
    monkeypatch.setattr(abf, "SCANNED_WHOLE", 1_000)
    monkeypatch.setattr(abf, "SCANNED_ROWS", 90)
    monkeypatch.setattr(abf, "SCANNED_CENTRES", 40)
    designs = []
    monkeypatch.setattr(
        abf, "fit_evidence", lambda spectrum: designs.append((spectrum.n_rows, spectrum.n_columns)) or fit(spectrum)
    )
    some = abf.fit_abf(X, t, shared=True)
    assert designs[:40] == [(90, 40)] * 40 and set(designs[40:]) == {(150, 150)}
    assert some.fit.n_rows == 150 and some.fit.n_basis == 150
    np.testing.assert_allclose(some.log_evidence, whole.log_evidence, atol=1e-3)
    np.testing.assert_allclose(some.widths, whole.widths, rtol=1e-2)
