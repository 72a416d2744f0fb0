"""Gaussian blocks integrated out of a density, against p(x, θ) / p(x | θ) with PyMC's own joint density.

Guards `bayessel.samplers.conjugacy.marginal`, `bayessel.samplers.conjugacy.precision_forms`.
"""

import warnings

import mpmath
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from pytensor.gradient import grad

from bayessel._pymc import join_nonshared_inputs
from bayessel.samplers.conjugacy.block import GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.conjugacy.marginal import MarginalBlock
from bayessel.samplers.conjugacy.precision_forms import CommonBasis, Loose, Partition, PrecisionSums

RNG = np.random.default_rng(1)
X = np.column_stack([np.ones(12), 40.0 + RNG.normal(size=12), RNG.normal(size=12)])
Y = X @ [100.0, -2.0, 0.5] + RNG.normal(size=12)
GROUP = np.repeat(np.arange(4), 3)


def flat_regression():
    beta, sigma = pm.Flat("beta", shape=3), pm.HalfCauchy("sigma", 2.0)
    pm.Normal("y", X @ beta, sigma, observed=Y)
    return ["beta"], CommonBasis


def ridge():
    alpha, beta = pm.Gamma("alpha", 1.0, 1.0), pm.Gamma("beta", 1.0, 1.0)
    w = pm.Normal("w", 0.5, tau=alpha, shape=3)
    pm.Normal("y", X @ w, tau=beta, observed=Y)
    return ["w"], CommonBasis


def more_weights_than_rows():
    alpha, beta = pm.Gamma("alpha", 1.0, 1.0), pm.HalfNormal("beta", 2.0)
    w = pm.Normal("w", 0.0, alpha, shape=12)
    pm.Normal("y", np.vander(X[:5, 2], 12) @ w, beta, observed=Y[:5])
    return ["w"], CommonBasis


def centred():
    mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
    theta = pm.Normal("theta", mu, tau, shape=12)
    pm.Normal("y", theta, np.linspace(0.5, 2.0, 12), observed=Y)
    return ["mu", "theta"], CommonBasis


def not_centred():
    mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
    raw = pm.Normal("raw", 0.0, 1.0, shape=12)
    pm.Normal("y", pm.Deterministic("theta", mu + tau * raw), np.linspace(0.5, 2.0, 12), observed=Y)
    return ["mu", "raw"], Partition


def intercepts():
    sigma, tau = pm.HalfNormal("sigma", 1.0), pm.HalfNormal("tau", 1.0)
    mu, slope = pm.Normal("mu", 0.0, 10.0), pm.Normal("slope", 0.0, 10.0)
    a = pm.Normal("a", mu, tau, shape=4)
    pm.Normal("y", a[GROUP] + slope * X[:, 2], sigma, observed=Y)
    return ["mu", "slope", "a"], Partition


def only_intercepts():
    sigma, tau, s = pm.HalfNormal("sigma", 1.0), pm.HalfNormal("tau", 1.0), pm.HalfNormal("s", 1.0)
    a = pm.Normal("a", 0.0, tau, shape=4)
    pm.Normal("y", a[GROUP], sigma, observed=Y)
    pm.Normal("z", a, s, observed=Y[:4])
    return ["a"], Partition


def uneven_noise():
    b = pm.Normal("b", 0.0, 3.0, shape=2)
    slope = pm.Normal("slope", 0.0, 1.0)
    spread = pm.math.exp(0.1 + slope * X[:, 2])
    pm.Normal("y", b[0] + b[1] * X[:, 2], spread, observed=Y)
    return ["b"], Partition


def autoregression():
    alpha, beta, sigma = pm.Normal("alpha", 0.0, 10.0), pm.Normal("beta", 0.0, 10.0), pm.HalfCauchy("sigma", 2.5)
    pm.Normal("y", alpha + beta * Y[:-1], sigma, observed=Y[1:])
    return ["alpha", "beta"], CommonBasis


def growth():
    a, b = pm.Normal("a", 0.0, 100.0), pm.Normal("b", 0.0, 100.0)
    lam, tau = pm.Uniform("lam", 0.5, 1.0), pm.Gamma("tau", 1.0, 1.0)
    pm.Normal("y", a - b * lam ** np.abs(X[:, 2]), tau=tau, observed=Y)
    return ["a", "b"], Partition


def student_intercept():
    b, c, sigma = (
        pm.Normal("b", 0.0, 1.0, shape=3),
        pm.StudentT("c", nu=3.0, mu=8.0, sigma=10.0),
        pm.HalfNormal("sigma", 1.0),
    )
    pm.Normal("y", c + X @ b, sigma, observed=Y)
    return ["b"], Partition


def moving_prior():
    m, sigma = pm.Exponential("m", 1.0), pm.HalfNormal("sigma", 1.0)
    alpha = pm.Gamma("alpha", 2.0, 1.0, shape=3)
    w, v = pm.Normal("w", 0.0, tau=alpha), pm.Normal("v", m, 1.0)
    pm.Normal("y", X @ w + v, sigma, observed=Y)
    return ["w", "v"], Partition


def weighted_offset():
    b, c = pm.Normal("b", 0.0, 3.0, shape=3), pm.Laplace("c", 0.0, 1.0)
    pm.Normal("y", c + X @ b, np.linspace(0.5, 2.0, 12), observed=Y)
    return ["b"], Partition


def of_all_kinds():
    """Prior means beside zero; a target that moves, with weights; known noise; a member whose design moves."""
    alpha, c, phi = pm.HalfNormal("alpha", 1.0), pm.Laplace("c", 0.0, 1.0), pm.Normal("phi", 0.0, 1.0)
    a, b = pm.Normal("a", 0.7, alpha, shape=2), pm.Normal("b", -0.4, 2.0)
    u = pm.Normal("u", 0.3 + phi * b, 1.5)
    pm.Normal("y", c + X[:, [0, 2]] @ a + b + u, np.linspace(0.5, 2.0, 12), observed=Y)
    pm.Normal("z", a, 0.5, observed=[1.0, 2.0])
    return ["a", "b", "u"], Partition


MODELS = (
    *(flat_regression, centred, intercepts, moving_prior),
    *(
        pytest.param(make, marks=pytest.mark.slow)
        for make in (
            *(ridge, more_weights_than_rows, not_centred, only_intercepts, uneven_noise, autoregression),
            *(student_intercept, weighted_offset, growth, of_all_kinds),
        )
    ),
)


class Marginal:
    """The compiled parts of a model's marginal."""

    def __init__(self, make):
        with pm.Model() as self.model:
            self.names, self.form = make()
        self.block = block_of(self.model, self.names)
        form = self.block.form()
        start = self.model.initial_point()
        [logp, slope, draw], joined = join_nonshared_inputs(
            start, [form.logp, form.slope, form.draw], self.block.others, {}
        )
        self.logp = pm.compile([joined], logp)
        self.gradient = pm.compile([joined], grad(slope, joined))
        self.draw = pm.compile([joined, form.noise], draw)
        self.joint = self.model.compile_logp()
        self.size = self.block.size
        self.others = sum(start[value.name].size for value in self.block.others)

    def joint_at(self, q, x):
        """PyMC's log density."""
        point, at = dict(self.model.initial_point()), 0
        for value in self.block.others:
            like = point[value.name]
            point[value.name] = q[at : at + like.size].reshape(like.shape)
            at += like.size
        for member, place, shape in zip(
            self.block.members, self.block.block.slices, self.block.block.shapes, strict=True
        ):
            point[member.name] = x[place].reshape(shape)
        return float(self.joint(point))

    def by_candidates(self, q, noise):
        """log p(x, θ) − log p(x | θ), the second from the mean and a square root of the covariance."""
        mean = self.draw(q, np.zeros(self.size))
        root = np.column_stack([self.draw(q, e) - mean for e in np.eye(self.size)])
        log_given = -0.5 * noise @ noise - np.linalg.slogdet(root)[1] - 0.5 * self.size * np.log(2.0 * np.pi)
        return self.joint_at(q, mean + root @ noise) - log_given


def block_of(model, names):
    graph = ModelGraph(model)
    return MarginalBlock(graph, GaussianBlock(graph, [model[name] for name in names]))


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_the_marginal_is_the_joint_over_the_conditional(make):
    found = Marginal(make)
    assert type(found.block._form) is found.form
    rng = np.random.default_rng(7)
    for _ in range(3):
        q = rng.normal(0.0, 0.7, size=found.others)
        at = float(found.logp(q))
        for _ in range(3):
            assert_allclose(found.by_candidates(q, rng.normal(size=found.size)), at, rtol=1e-9, atol=1e-7)
        step = 1e-5 * np.eye(found.others)
        slopes = [(found.logp(q + e) - found.logp(q - e)) / 2e-5 for e in step]
        assert_allclose(found.gradient(q), slopes, rtol=2e-5, atol=2e-5 * max(1.0, np.max(np.abs(slopes))))


def test_the_comparison_sees_a_wrong_spread():
    found = Marginal(ridge)
    right = found.draw
    found.draw = lambda q, noise: right(q, 1.001 * noise)
    q = np.array([0.2, -0.3])
    assert abs(found.by_candidates(q, np.full(3, 2.0)) - float(found.logp(q))) > 1e-3


def test_coordinates_that_share_no_row_are_eliminated():
    for make, out, rest in ((intercepts, 4, 2), (only_intercepts, 4, 0), (not_centred, 0, 13)):
        form = Marginal(make).block._form
        assert (len(form.out), len(form.rest)) == (out, rest)


def test_new_data_are_summed_up_again():
    def make(x, y):
        with pm.Model() as model:
            beta, sigma = pm.Flat("beta", shape=3), pm.HalfCauchy("sigma", 2.0)
            pm.Normal("y", pm.Data("x", x) @ beta, sigma, observed=pm.Data("targets", y))
        return model

    x, y = X[:, [0, 2, 1]] ** 2, 3.0 - Y
    model = make(X, Y)
    block, fresh = block_of(model, ["beta"]), block_of(make(x, y), ["beta"])
    logp = pm.compile([model.value_vars[1]], block.form().logp)
    other = pm.compile([fresh.others[0]], fresh.form().logp)
    assert not np.isclose(logp(0.3), other(0.3))
    with model:
        pm.set_data({"x": x, "targets": y})
    assert block.refresh()
    assert_allclose(logp(0.3), other(0.3), rtol=1e-10)
    with model:
        pm.set_data({"x": np.ones((12, 3))})
    assert not block.refresh()  # nothing tells the weights apart


def test_rows_that_are_no_sums_have_the_shape_they_were_read_with():
    with pm.Model() as model:
        b, slope = pm.Normal("b", 0.0, 3.0), pm.Normal("slope", 0.0, 1.0)
        x = pm.Data("x", X[:, 2])
        pm.Normal("y", b * x, pm.math.exp(slope * x), observed=pm.Data("targets", Y))
    block = block_of(model, ["b"])
    with model:
        pm.set_data({"x": 2.0 * X[:, 2], "targets": Y})
    assert block.refresh()
    with model:
        pm.set_data({"x": X[:9, 2], "targets": Y[:9]})
    assert not block.refresh()


def test_a_scale_that_may_be_negative_has_the_support_that_the_model_has():
    def signed():
        b, scale = pm.Normal("b", 0.0, 1.0, shape=3), pm.Normal("scale", 0.0, 1.0)
        pm.Normal("y", X @ b, scale, observed=Y)
        return ["b"], CommonBasis

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it begins at zero
        found = Marginal(signed)
    assert found.logp(np.array([-0.7])) == -np.inf and np.isfinite(found.logp(np.array([0.7])))


def test_two_precisions_of_very_different_columns():
    """Seconds since 1970 beside an intercept: the data add 1e-15 of its terms to a direction, and decide it."""
    x = 1.6e9 + 86_400.0 * np.arange(40)
    design = np.column_stack([np.ones(40), x])
    residual = RNG.normal(size=40)
    prior, pull, squares = np.diag([1e-12, 1e-2]), design.T @ residual, float(residual @ residual)
    sums = [PrecisionSums(prior, np.zeros(2), 0.0), PrecisionSums(design.T @ design, pull, squares)]
    taus = [pt.scalar("one"), pt.scalar("tau")]
    value = pm.compile(taus, CommonBasis(sums).solve(taus, Loose(), pt.zeros(2)).value)
    with mpmath.workdps(60):
        for tau in (1e-3, 1.0, 1e4):
            A = mpmath.matrix(prior.tolist()) + mpmath.mpf(tau) * mpmath.matrix(sums[1].gram.tolist())
            b = mpmath.mpf(tau) * mpmath.matrix(pull.tolist())
            expected = 0.5 * (b.T * mpmath.lu_solve(A, b))[0] - 0.5 * mpmath.log(mpmath.det(A))
            expected -= 0.5 * mpmath.mpf(tau) * mpmath.mpf(squares)
            assert_allclose(float(value(1.0, tau)), float(expected), rtol=1e-6)


def test_precisions_that_differ_by_any_factor():
    """Both halves of bᵀA⁻¹b − Σ τ rᵀr grow with the larger precision, and their difference does not."""
    design, residuals = RNG.normal(size=(9, 4)), [RNG.normal(size=4), RNG.normal(size=9)]
    grams = [np.eye(4), design.T @ design]
    pulls = [residuals[0], design.T @ residuals[1]]
    sums = [PrecisionSums(G, b, float(r @ r)) for G, b, r in zip(grams, pulls, residuals, strict=True)]
    taus = [pt.scalar("one"), pt.scalar("tau")]
    value = pm.compile(taus, CommonBasis(sums).solve(taus, Loose(), pt.zeros(4)).value)
    with mpmath.workdps(120):
        for one in (1e-30, 1.0, 1e30, 1e60):
            A = mpmath.mpf(one) * mpmath.matrix(grams[0].tolist()) + mpmath.matrix(grams[1].tolist())
            b = mpmath.mpf(one) * mpmath.matrix(pulls[0].tolist()) + mpmath.matrix(pulls[1].tolist())
            square = sum(
                mpmath.mpf(w) * sum(mpmath.mpf(x) ** 2 for x in r) for w, r in zip((one, 1.0), residuals, strict=True)
            )
            expected = 0.5 * (b.T * mpmath.lu_solve(A, b))[0] - 0.5 * mpmath.log(mpmath.det(A)) - 0.5 * square
            assert_allclose(float(value(one, 1.0)), float(expected), rtol=1e-9)


def refused(make):
    with pm.Model() as model:
        names = make()
    with pytest.raises(NotConjugateError) as error:
        block_of(model, names)
    return str(error.value)


def test_what_cannot_be_integrated_out_is_said():
    def collinear():
        beta, sigma = pm.Flat("beta", shape=2), pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", X[:, [2, 2]] @ beta, sigma, observed=Y)
        return ["beta"]

    def alone():
        beta = pm.Normal("beta", shape=3)
        pm.Normal("y", X @ beta, 1.0, observed=Y)
        return ["beta"]

    def costly():
        scale = pm.HalfNormal("scale", 1.0)
        raw = pm.Normal("raw", shape=60)
        pm.Normal("y", pm.math.dot(np.ones((500, 60)), raw) * scale, 1.0, observed=np.ones(500))
        return ["raw"]

    def transformed():
        sigma = pm.HalfNormal("sigma", 1.0)
        x = pm.Normal("x", 0.0, 1.0, shape=3, transform=pm.distributions.transforms.Interval(-9.0, 9.0))
        pm.Normal("y", x, sigma, observed=Y[:3])
        return ["x"]

    def empty():
        a, sigma = pm.Normal("a", shape=0), pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", a.sum(), sigma, observed=Y)
        return ["a"]

    def wide():
        b, sigma = pm.Normal("b", shape=2_001), pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", b, sigma, observed=np.ones(2_001))
        return ["b"]

    assert "do not determine" in refused(collinear)
    assert "it has 0 coordinates" in refused(empty)
    assert "it has 2001 coordinates" in refused(wide)
    assert "nothing is left" in refused(alone)
    assert "cost more" in refused(costly)
    assert "not affine" in refused(transformed)
