"""Vecchia's approximation against the dense likelihood, a twin of dense matrices, and differences.

Guards `bayessel.gp.vecchia.vecchia_marginal`, `bayessel.gp.vecchia.compiled_rows`, `bayessel.gp.vecchia.global_part`,
`bayessel.gp.vecchia.covariance_terms`, `bayessel.gp.vecchia.ordering`, `bayessel.gp.vecchia.row_factors`,
`bayessel.work.blocks`.
"""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayessel.covariance import (
    Arcsin,
    Bias,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Noise,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    Standard,
)
from bayessel.fit import Status
from bayessel.gp import Marginal
from bayessel.gp.vecchia.vecchia_marginal import VecchiaMarginal
from bayessel.work import blocks
from tests.oracles import vecchia as twin

COVARIANCES = {
    "standard": Standard(),
    "one length": SquaredExponential(ard=False) + Noise(),
    "no amplitude": Matern52(amplitude=False) + Bias() + Noise(),
    "matern 1/2": Matern12() + Noise(),
    "matern 3/2": Matern32() + Linear() + Noise(),
    "matern 5/2": Matern52() + Bias() + Linear() + Noise(),
    "rational quadratic": RationalQuadratic() + Noise(),
    "several": RationalQuadratic(ard=False) + SquaredExponential().on([0]) + Bias() + Noise(),
}
each = pytest.mark.parametrize("name", COVARIANCES)


def problem(rng, name, n=50, inputs=2):
    covariance = COVARIANCES[name]
    X = rng.normal(size=(n, inputs))
    theta = covariance.start(inputs) + 0.3 * rng.normal(size=covariance.size(inputs))
    return X, rng.normal(size=n), covariance, theta


def parts(covariance, theta, X, Z):
    """Stationary part and features' part of the noise-free covariance between rows, from the dense classes."""
    inputs = X.shape[1]
    terms = getattr(covariance, "terms", None)
    if terms is None:  # the default covariance as the sum that it is
        k = inputs
        terms = (SquaredExponential(), Noise(), Bias(), Linear())
        shares = [np.r_[theta[0], theta[2 : 2 + k]], theta[1:2], theta[k + 2 : k + 3], theta[k + 3 :]]
    else:
        ends = np.cumsum([term.size(inputs) for term in terms])[:-1]
        shares = np.split(theta, ends)
    smooth, flat = np.zeros((len(X), len(Z))), np.zeros((len(X), len(Z)))
    for term, share in zip(terms, shares, strict=True):
        into = flat if isinstance(term, Bias | Linear) else smooth
        if not isinstance(term, Noise):
            into += term.matrix(share, X, Z)
    return smooth, flat


def dense_twin(marginal, theta, jitter=1e-8):
    """log p(t|θ) from dense matrices."""
    X, covariance = marginal.X[marginal.order], marginal.covariance
    near = twin.neighbours(X * np.sqrt(covariance.relevance(marginal.renewed_at, X.shape[1])), marginal.m)
    smooth, flat = parts(covariance, theta, X, X)
    seen = np.zeros_like(smooth)
    if marginal.inducing is not None:
        Z = marginal.inducing
        K = parts(covariance, theta, Z, Z)[0]
        K += jitter * np.trace(K) / len(K) * np.eye(len(K))
        across = parts(covariance, theta, X, Z)[0]
        seen = across @ np.linalg.solve(K, across.T)
    rest = smooth - seen + covariance.noise(theta, X.shape[1]) * np.eye(len(X))
    whole = twin.covariance(rest, near) + seen + flat
    return multivariate_normal(np.zeros(len(X)), whole).logpdf(marginal.t[marginal.order])


# --- against the dense likelihood -----------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [1, 2, 8, 30])
@each
def test_all_earlier_rows_are_the_dense_likelihood(rng, name, inputs):
    X, t, covariance, theta = problem(rng, name, 40, inputs)
    value, gradient = Marginal(X, t, covariance).value_and_gradient(theta)
    found, slopes = VecchiaMarginal(X, t, covariance, neighbours=39).value_and_gradient(theta)
    np.testing.assert_allclose(found, value, rtol=1e-9)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())


def test_inducing_inputs_change_nothing_where_all_rows_are_neighbours(rng):
    X, t, covariance, theta = problem(rng, "several", 40)
    found = VecchiaMarginal(X, t, covariance, neighbours=39, inducing=rng.normal(size=(6, 2))).value(theta)
    np.testing.assert_allclose(found, Marginal(X, t, covariance).value(theta), rtol=1e-9)


@pytest.mark.parametrize("shared", [0, 6])
@each
def test_few_neighbours_are_the_twin(rng, name, shared):
    X, t, covariance, theta = problem(rng, name)
    inducing = rng.normal(size=(shared, 2)) if shared else None
    marginal = VecchiaMarginal(X, t, covariance, neighbours=4, inducing=inducing, renewed_at=theta)
    np.testing.assert_allclose(marginal.value(theta), dense_twin(marginal, theta), rtol=1e-9)
    assert abs(marginal.value(theta) - Marginal(X, t, covariance).value(theta)) > 1e-3


@pytest.mark.parametrize("shared", [0, 6])
@each
def test_gradient_is_that_of_differences(rng, name, shared):
    X, t, covariance, theta = problem(rng, name)
    inducing = rng.normal(size=(shared, 2)) if shared else None
    marginal = VecchiaMarginal(X, t, covariance, neighbours=4, inducing=inducing)
    h = 1e-5
    central = [(marginal.value(theta + h * e) - marginal.value(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    np.testing.assert_allclose(marginal.value_and_gradient(theta)[1], central, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["matern 1/2", "rational quadratic", "one length"])
def test_information_is_the_expected_one(rng, name):
    """½ tr(Q⁻¹∂Q Q⁻¹∂Q), by differences of dense matrices."""
    X, t, covariance, theta = problem(rng, name, 25)

    def Q(at):
        return covariance.matrix(at, X) + covariance.noise(at, 2) * np.eye(len(X))

    h = 1e-5
    each = [np.linalg.solve(Q(theta), (Q(theta + h * e) - Q(theta - h * e)) / (2 * h)) for e in np.eye(len(theta))]
    expected = [[0.5 * np.trace(one @ other) for other in each] for one in each]
    found = VecchiaMarginal(X, t, covariance, neighbours=24).information(theta)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


# --- odd rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_fewer_rows_than_neighbours(rng, n):
    X, t, covariance, theta = problem(rng, "standard", n)
    marginal = VecchiaMarginal(X, t, covariance, neighbours=30)
    np.testing.assert_allclose(marginal.value(theta), Marginal(X, t, covariance).value(theta), rtol=1e-9)
    assert marginal.gain_of_neighbours(theta) == 0.0


@pytest.mark.parametrize(
    "X",
    [np.repeat(np.arange(20.0), 3)[:, None], np.stack(np.meshgrid(range(8), range(8)), -1).reshape(-1, 2) / 4.0],
    ids=["copies", "grid"],
)
def test_copies_and_grids(rng, X):
    t, theta = rng.normal(size=len(X)), Standard().start(X.shape[1])
    near, whole = (VecchiaMarginal(X, t, neighbours=m) for m in (12, len(X)))
    np.testing.assert_allclose(whole.value(theta), Marginal(X, t).value(theta), rtol=1e-9)
    assert abs(near.value(theta) - whole.value(theta)) < 0.1 * len(X)


def test_what_has_no_factor_is_minus_infinity(rng):
    X, t, covariance, theta = problem(rng, "one length", 30)
    marginal = VecchiaMarginal(np.repeat(X, 2, axis=0), np.repeat(t, 2), covariance, neighbours=5)
    value, gradient = marginal.value_and_gradient(np.array([theta[0], theta[1], -200.0]))
    assert value == -np.inf and not gradient.any() and marginal.status is Status.ILL_CONDITIONED
    assert marginal.value(np.full(3, np.nan)) == -np.inf


@pytest.mark.parametrize(
    ("covariance", "text"),
    [
        (Periodic() + Noise(), "method='vecchia' takes sums of"),
        (Arcsin() + Noise(), "use method='inducing'"),
        (SquaredExponential() * Matern32(amplitude=False) + Noise(), "method='vecchia' takes sums of"),
        (Bias() + Linear() + Noise(), "which need no approximation"),
        (SquaredExponential(), "needs a noise term"),
    ],
)
def test_covariances_that_are_not_known_are_refused(rng, covariance, text):
    with pytest.raises(ValueError, match=text):
        VecchiaMarginal(rng.normal(size=(9, 2)), rng.normal(size=9), covariance)


# --- the same numbers -----------------------------------------------------------------------------------------------


def test_any_number_of_threads_gives_the_same_numbers(rng, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    X, t, covariance, theta = problem(rng, "several", 400)
    for inducing, tolerance in ((None, 0.0), (X[:9], 1e-12)):  # sums of whole arrays depend on where these lie
        found = [
            VecchiaMarginal(X, t, covariance, neighbours=8, inducing=inducing, threads=n).value_and_gradient(theta)
            for n in (1, 2, 5)
        ]
        for value, gradient in found[1:]:
            np.testing.assert_allclose(value, found[0][0], rtol=tolerance)
            np.testing.assert_allclose(gradient, found[0][1], rtol=tolerance)


def test_the_order_of_the_rows_does_not_matter(rng):
    X, t, covariance, theta = problem(rng, "standard", 80)
    there = rng.permutation(80)
    one, other = (VecchiaMarginal(X[at], t[at], covariance, neighbours=5) for at in (np.arange(80), there))
    assert one.value(theta) == other.value(theta)


# --- what the approximation costs -----------------------------------------------------------------------------------


def test_more_neighbours_and_inducing_inputs_are_closer_to_the_dense_likelihood(rng):
    """The Kullback-Leibler divergence from the dense distribution in nats a row, and what `gain_of_neighbours` says."""
    n = 600
    X, theta = rng.uniform(-2.0, 2.0, size=(n, 2)), np.log([1.0, 0.01, 1.0, 1.0, 0.1, 0.1])
    Q = Standard().matrix(theta, X) + 0.01 * np.eye(n)
    t = np.linalg.cholesky(Q) @ rng.normal(size=n)
    dense = Marginal(X, t).value(theta)
    lost, said = [], []
    for m, shared in ((5, 0), (10, 0), (20, 0), (20, 60)):
        marginal = VecchiaMarginal(X, t, neighbours=m, inducing=X[:shared] if shared else None, renewed_at=theta)
        found = marginal.factors(theta)
        columns = found.part.F[np.argsort(marginal.order)]
        U = marginal.sparse(found.b / np.sqrt(found.v)[:, None]).toarray()
        rest = np.linalg.inv(U.T @ U)[np.ix_(np.argsort(marginal.order), np.argsort(marginal.order))]
        whole = rest + columns @ columns.T
        ratio = np.linalg.solve(whole, Q)
        lost.append(0.5 * (np.trace(ratio) - n - np.linalg.slogdet(ratio)[1]) / n)
        said.append(marginal.gain_of_neighbours(theta))
        assert abs((marginal.value(theta) - dense) / n + lost[-1]) < 5 * np.sqrt(2 * lost[-1] / n) + 1e-9
    assert (np.diff(lost) < 0.0).all() and lost[-1] < 1e-3
    assert (np.diff(said) < 0.0).all()
    assert 0.2 < said[1] / lost[1] < 2.0
