"""The healed predictive variance: against dense refits with the added column and a dense Gaussian process; coverage.

Guards `bayessel.linear.healing`.
"""

import numpy as np
import pytest

from bayessel.linear.healing import Healing, KernelFeatures
from tests.oracles import linear as oracles


def kernel_of(kind, r):
    return lambda A, B: oracles.radial(kind, A, B, r)


def problem(rng, n=15, d=1, k=4):
    X = rng.uniform(-1, 1, (n, d))
    Phi = oracles.radial("gaussian", X, X[:k], 0.7)
    t = np.sin(3 * X[:, 0]) + 0.2 * rng.normal(size=n)
    alpha, beta = rng.gamma(1.0, size=k) + 0.05, 20.0
    new = rng.uniform(-2.5, 2.5, (6, d))
    new[0] = X[0]  # on the data too
    return X, Phi, t, alpha, beta, new, oracles.radial("gaussian", new, X[:k], 0.7)


@pytest.mark.parametrize("kind", ["gaussian", "multiquadric", "inverse_multiquadric", "cauchy"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("precision", [1e-4, 0.6, 50.0])
def test_one_added_function_is_a_refit_with_that_column(rng, kind, d, precision):
    X, Phi, t, alpha, beta, new, Phi_new = problem(rng, d=d)
    kernel = kernel_of(kind, 0.7)
    mean, variance = Healing(Phi, t, alpha, beta, X, kernel, precision).predict(new, Phi_new)
    for i, x in enumerate(new):
        wide = np.c_[Phi, kernel(X, x[None])]
        row = np.append(Phi_new[i], 1.0)
        mu, Sigma = oracles.posterior(wide, t, np.append(alpha, precision), beta)
        np.testing.assert_allclose(mean[i], row @ mu, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(variance[i], row @ Sigma @ row, rtol=1e-8)


def test_without_columns_in_use_the_added_function_is_the_model(rng):
    X, _, t, _, beta, new, _ = problem(rng)
    kernel = kernel_of("gaussian", 0.7)
    none = np.zeros((len(X), 0)), np.zeros((len(new), 0))
    mean, variance = Healing(none[0], t, np.zeros(0), beta, X, kernel, 0.5).predict(new, none[1])
    for i, x in enumerate(new):
        mu, Sigma = oracles.posterior(kernel(X, x[None]), t, 0.5, beta)
        np.testing.assert_allclose([mean[i], variance[i]], [mu[0], Sigma[0, 0]], rtol=1e-9)


def process(X, Phi, t, alpha, beta, new, Phi_new, kernel, precision, bias=0.0):
    """Dense Gaussian process with covariance of the columns plus the kernel plus a constant."""
    C = np.eye(len(t)) / beta + (Phi / alpha) @ Phi.T + kernel(X, X) / precision + bias
    across = (Phi / alpha) @ Phi_new.T + kernel(X, new) / precision + bias
    prior = (Phi_new**2 / alpha).sum(axis=1) + 1 / precision + bias
    solved = np.linalg.solve(C, across)
    return solved.T @ t, prior - np.einsum("ij,ij->j", across, solved)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("bias", [None, 0.3])
def test_at_full_rank_it_is_the_dense_process(rng, d, bias):
    data = problem(rng, d=d)
    X, Phi, t, alpha, beta, new, Phi_new = data
    kernel = kernel_of("gaussian", 0.7)
    features = KernelFeatures(kernel, X, 100)
    healed = Healing(Phi, t, alpha, beta, X, kernel, 0.4, features=features, bias_precision=bias)
    mean, variance = healed.predict(new, Phi_new)
    expected = process(*data, kernel, 0.4, bias=0.0 if bias is None else 1 / bias)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(variance, expected[1], rtol=1e-6)


def test_more_directions_come_nearer_to_the_dense_process(rng):
    """Rank by rank between the two ends, the leftover function included, against a dense refit at each rank."""
    data = problem(rng, n=40)
    X, Phi, t, alpha, beta, new, Phi_new = data
    kernel = kernel_of("gaussian", 0.7)
    target = process(*data, kernel, 0.4)[1]
    errors = []
    for rank in (0, 2, 4, 40):
        features = KernelFeatures(kernel, X, rank)
        mean, variance = Healing(Phi, t, alpha, beta, X, kernel, 0.4, features=features).predict(new, Phi_new)
        errors.append(np.abs(np.log(variance / target)).max())
        V, V_new = features.on_rows, features(new)
        for i, x in enumerate(new):
            left = 1.0 - V_new[i] @ V_new[i]
            column = (kernel(X, x[None])[:, 0] - V @ V_new[i]) / np.sqrt(left) if left > 1e-10 else np.zeros(len(X))
            wide = np.c_[Phi, V, column]
            row = np.concatenate([Phi_new[i], V_new[i], [np.sqrt(max(left, 0.0))]])
            mu, Sigma = oracles.posterior(wide, t, np.concatenate([alpha, np.full(V.shape[1] + 1, 0.4)]), beta)
            np.testing.assert_allclose(mean[i], row @ mu, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(variance[i], row @ Sigma @ row, rtol=1e-6)
    assert errors[-1] < 1e-5 < errors[-2] < errors[0]


def test_features_reproduce_the_kernel(rng):
    X, new = rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (9, 2))
    kernel = kernel_of("cauchy", 0.5)
    features = KernelFeatures(kernel, X, 30)
    np.testing.assert_allclose(features.on_rows @ features.on_rows.T, kernel(X, X), atol=1e-9)
    np.testing.assert_allclose(features(X), features.on_rows, atol=1e-7)
    np.testing.assert_allclose(features.on_rows @ features(new).T, kernel(X, new), atol=1e-7)
    twice = KernelFeatures(kernel, np.vstack([X, X]), 60)
    assert twice.on_rows.shape == (60, 30)


def test_infinite_precision_changes_nothing(rng):
    X, Phi, t, alpha, beta, new, Phi_new = problem(rng)
    kernel = kernel_of("gaussian", 0.7)
    mean, variance = Healing(Phi, t, alpha, beta, X, kernel, np.inf).predict(new, Phi_new)
    mu, Sigma = oracles.posterior(Phi, t, alpha, beta)
    np.testing.assert_allclose(mean, Phi_new @ mu, rtol=1e-9)
    np.testing.assert_allclose(variance, np.einsum("ij,jk,ik->i", Phi_new, Sigma, Phi_new), rtol=1e-9)


def test_far_away_the_variance_is_that_of_the_prior(rng):
    X, Phi, t, alpha, beta, _, _ = problem(rng)
    kernel = kernel_of("gaussian", 0.7)
    for features in (None, KernelFeatures(kernel, X, 15)):
        mean, variance = Healing(Phi, t, alpha, beta, X, kernel, 0.25, features=features).predict(
            np.array([[50.0]]), np.zeros((1, 4))
        )
        np.testing.assert_allclose([mean[0], variance[0]], [0.0, 4.0], atol=1e-9)


def test_blocks_give_what_one_call_gives(rng, monkeypatch):
    X, Phi, t, alpha, beta, new, Phi_new = problem(rng)
    healed = Healing(Phi, t, alpha, beta, X, kernel_of("gaussian", 0.7), 0.25)
    together = healed.predict(new, Phi_new)
    one_by_one = [healed.predict(new[[i]], Phi_new[[i]]) for i in range(len(new))]
    np.testing.assert_allclose(together, np.hstack(one_by_one), rtol=1e-12)


def test_nearly_dependent_columns_keep_the_added_variance_positive(rng):
    """s is far below what the difference of its two terms could resolve; sixty digits say what it is."""
    import mpmath

    X = np.linspace(-1, 1, 10)[:, None]
    Phi = oracles.radial("gaussian", X, X, 8.0)
    alpha, beta = np.full(10, 1e-3), 1e6
    t = np.sin(2 * X[:, 0])
    kernel = kernel_of("gaussian", 8.0)
    new = np.array([[0.3], [3.0], [12.0]])
    mean, variance = Healing(Phi, t, alpha, beta, X, kernel, 1.0).predict(new, kernel(new, X))
    with mpmath.workdps(60):
        for i, x in enumerate(new):
            wide = mpmath.matrix(np.c_[Phi, kernel(X, x[None])].tolist())
            row = mpmath.matrix([*kernel(new, X)[i].tolist(), 1.0])
            H = mpmath.mpf(beta) * (wide.T * wide) + mpmath.diag([*alpha.tolist(), 1.0])
            Sigma = H**-1
            expected = (row.T * Sigma * row)[0]
            centre = (row.T * (Sigma * (mpmath.mpf(beta) * (wide.T * mpmath.matrix(t.tolist())))))[0]
            assert oracles.relative(variance[i], expected) < 1e-4
            assert oracles.relative(mean[i], centre, floor=1.0) < 1e-5


# --- coverage --------------------------------------------------------------------------------------------------
# Truths are drawn from a Gaussian process of unit variance and length scale 1 (so that the kernel of width sqrt(2) is
# its covariance), N = 60 inputs uniform in [-5, 5], noise 0.1. "Inside" are new observations in [-5, 5], "outside" in
# [-10, -5] and [5, 10]: half the range of the data on either side, as far as five length scales from the data.

A, NOISE, ROWS, NEW_ROWS = 5.0, 0.1, 60, 50
WAYS = {
    "plain": (False, None),
    "function, var": ("function", "var"),
    "function, mean": ("function", "mean"),
    "function, evidence": ("function", "evidence"),
    "process, var": ("process", "var"),
    "process, evidence": ("process", "evidence"),
}


def one_truth(seed, width=2.0**0.5):
    """Coverage (inside, outside) by way of healing, and mean and largest ratio of healed to plain std on the data."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    from bayessel import RVMRegressor

    rng = np.random.default_rng([7, seed])
    outside = rng.uniform(A, 2 * A, NEW_ROWS) * rng.choice([-1, 1], NEW_ROWS)
    x = np.concatenate([rng.uniform(-A, A, ROWS + NEW_ROWS), outside])[:, None]
    K = np.exp(-((x - x.T) ** 2) / 2)
    y = np.linalg.cholesky(K + 1e-9 * np.eye(len(K))) @ rng.normal(size=len(K)) + NOISE * rng.normal(size=len(K))
    X, t, new, seen = x[:ROWS], y[:ROWS], x[ROWS:], y[ROWS:]

    def covered(mean, std):
        hit = np.abs(seen - mean) < 1.959964 * std
        return [hit[:NEW_ROWS].mean(), hit[NEW_ROWS:].mean()]

    model = RVMRegressor(width=width).fit(X, t)
    on_data = model.predict(X, return_std=True)[1]
    found = {}
    for name, (augment, precision) in WAYS.items():
        model.set_params(augment_precision=precision)
        ratio = model.predict(X, return_std=True, augment=augment)[1] / on_data
        found[name] = [*covered(*model.predict(new, return_std=True, augment=augment)), ratio.mean(), ratio.max()]
    bounds = (0.1, 10.0) if width == "fit" else "fixed"
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, bounds) + WhiteKernel(0.01, (1e-6, 1))
    twin = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, t)
    found["Gaussian process"] = [*covered(*twin.predict(new, return_std=True)), np.nan, np.nan]
    return found


def coverage(seeds, **given):
    """Way -> means of coverage inside, outside and of the two ratios, and the standard errors of the coverages."""
    runs = [one_truth(seed, **given) for seed in seeds]
    table = {}
    for name in runs[0]:
        values = np.array([run[name] for run in runs])
        table[name] = values.mean(axis=0), values[:, :2].std(axis=0, ddof=1) / np.sqrt(len(runs))
    return table


def test_among_the_data_wide_functions_change_little_and_narrow_ones_more():
    """The table of docs/healing.md on cos x², two draws: within 5 % on average at r = 1, beyond it at r = 0.2."""
    from bayessel import RVMRegressor

    x = np.linspace(-3, 3, 100)[:, None]
    for seed in range(2):
        y = np.cos(x[:, 0] ** 2) + np.random.default_rng(seed).uniform(-0.1, 0.1, 100)
        mean = {}
        for r in (0.2, 1.0):
            model = RVMRegressor(width=r).fit(x, y)
            plain = model.predict(x, return_std=True)[1]
            for way in ("function", "process"):
                mean[way, r] = (model.predict(x, return_std=True, augment=way)[1] / plain).mean()
        assert 1.0 <= mean["function", 1.0] < 1.01 and 1.0 <= mean["process", 1.0] < 1.05
        assert 1.02 < mean["function", 0.2] < 1.05 and 1.08 < mean["process", 0.2] < 1.16


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_healed_intervals_cover_and_plain_ones_do_not():
    """A few truths only; the numbers are those of the long run."""
    table = coverage(range(10))
    assert table["plain"][0][1] < 0.45 < 0.65 < table["function, mean"][0][1]
    assert table["process, evidence"][0][1] > 0.8 and table["process, evidence"][0][0] > 0.88


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_healed_intervals_cover_ninety_five_of_a_hundred():
    """200 truths; run with -s for the table of docs/healing.md."""
    table = coverage(range(200))
    for name, (mean, error) in table.items():
        print(  # noqa: T201
            f"{name:20s} inside {mean[0]:.3f} ± {error[0]:.3f}   outside {mean[1]:.3f} ± {error[1]:.3f}"
            f"   healed/plain on the data: mean {mean[2]:.3f}, largest {mean[3]:.3f}"
        )
    healed, error = table["process, evidence"]
    assert 0.90 <= healed[0] <= 0.97 and healed[1] >= 0.75
    assert healed[1] + 2 * error[1] >= 0.90
    assert healed[2] <= 1.05  # on the data the two agree
    assert table["plain"][0][1] < 0.3  # control: without healing the same intervals fail
    # what the twin covers is what can be had
    twin, twin_error = table["Gaussian process"]
    assert healed[1] >= twin[1] - 3 * np.hypot(error[1], twin_error[1])


@pytest.mark.parametrize("unit", [1e-90, 1e80])
def test_units_of_the_target_change_the_scale_alone(rng, unit):
    """Noise precisions of 1e180 overflow nothing; far from all rows the variance is that of the prior."""
    X, Phi, t, alpha, beta, new, Phi_new = problem(rng)
    new[1], kernel = 90.0, kernel_of("gaussian", 0.7)
    Phi_new[1] = 0.0
    mean, variance = Healing(Phi, t, alpha, beta, X, kernel, 0.5).predict(new, Phi_new)
    there = Healing(Phi, unit * t, alpha / unit**2, beta / unit**2, X, kernel, 0.5 / unit**2).predict(new, Phi_new)
    np.testing.assert_allclose(there[0] / unit, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there[1] / unit**2, variance, rtol=1e-9)
    assert variance[1] == pytest.approx(2.0) and mean[1] == 0.0


def test_a_prior_as_wide_as_numbers_go(rng):
    X, Phi, t, alpha, beta, _, Phi_new = problem(rng)
    far = np.full((1, 1), 90.0)
    mean, variance = Healing(Phi, t, alpha, beta, X, kernel_of("gaussian", 0.7), 1e-310).predict(far, 0 * Phi_new[:1])
    assert mean[0] == 0.0 and np.isinf(variance[0])
