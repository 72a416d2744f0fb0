"""The Gibbs steps against the model's own log density, variable by variable, over the whole zoo.

A draw's random numbers are replaced by known ones, so that the distribution it comes from can be read off exactly: the
shape and rate of a Gamma variable, the mean and covariance of a block. No Monte Carlo error is left; the oracle is
``model.compile_logp()`` on a grid, or its second differences.
"""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.samplers import conditionals
from bayessel.samplers.conjugacy.graph import Space
from tests import gibbs_models

ONCE = "FAST_COMPILE"


class Scripted:
    """A generator whose numbers are given: Gamma variables are 1, normal ones 0 but for one of them."""

    def __init__(self, one=None):
        self.one, self.used, self.shapes = one, 0, []

    def standard_gamma(self, shape):
        self.shapes.append(np.array(shape, dtype=float))
        return np.ones(np.shape(shape))

    def standard_normal(self, size):
        numbers = np.zeros(size)
        if self.one is not None and self.used <= self.one < self.used + size:
            numbers[self.one - self.used] = 1.0
        self.used += size
        return numbers


def plan(model):
    """The Gibbs steps of the model, one for each scale and one for each block."""
    blocks, scales = {}, []
    for line in bs.explain_steps(model).splitlines():
        name, rest = line.split("  ", 1)
        label = rest.strip().split("  ")[0]
        if label.startswith("GammaPrecisionGibbs"):
            scales.append(name.strip())
        elif label.startswith("GaussianWeightsGibbs"):
            members = label.partition("[")[2].rstrip("]") or name.strip()
            blocks[members] = members.split(", ")
    return scales, list(blocks.values())


def somewhere(model, rng):
    """A point away from the initial one."""
    point = model.initial_point()
    for name, value in point.items():
        if value.dtype.kind == "f":
            point[name] = np.asarray(value + 0.5 * rng.normal(size=value.shape))
        else:
            point[name] = rng.integers(0, 2, size=value.shape).astype(value.dtype)
    return point


def prepared(cls, names, model):
    step = cls(names, model=model)
    step.setup_chain(np.random.default_rng(0), 0, 1)
    return step


# --- precisions, variances, scales --------------------------------------------------------------------------------


def log_density_of(kind, log_x, shape, rate):
    """Log density of log x for x ~ Gamma(shape, rate) or InvGamma(shape, rate)."""
    if kind == "inverse gamma":
        return stats.invgamma(shape, scale=rate).logpdf(np.exp(log_x)) + log_x
    return stats.gamma(shape, scale=1.0 / rate).logpdf(np.exp(log_x)) + log_x


def check_scale(model, logp, name, rng):
    """The step's Gamma distribution against the model's density along each element of the variable."""
    step = prepared(bs.GammaPrecisionGibbs, name, model)
    [conditional] = step.conditionals
    point = somewhere(model, rng)
    value_name = model.rvs_to_values[model[name]].name
    grid = np.linspace(-2.0, 2.0, 9)
    if conditional.kind.startswith("half"):
        check_half_student(step, logp, point, value_name, rng)
        return
    step.rng = Scripted()
    new, _ = step.step(point)
    [shape] = step.rng.shapes
    sign = 1.0 if conditional.kind == "inverse gamma" else -1.0
    rate = np.exp(sign * new[value_name])
    assert list(new) == list(point)
    for place in np.ndindex(np.shape(rate)):
        expected = []
        for log_x in grid:
            moved = {**point, value_name: point[value_name].copy()}
            moved[value_name][place] = log_x
            expected.append(logp(moved))
        got = log_density_of(conditional.kind, grid, np.broadcast_to(shape, np.shape(rate))[place], rate[place])
        difference = np.asarray(expected) - got
        scale = np.abs(np.asarray(expected) - np.max(expected)).max()
        assert_allclose(difference - difference[0], 0.0, atol=1e-6 * (1.0 + scale))


def check_half_student(step, logp, point, value_name, rng, n=1500):
    """From exact draws of one element, taken on a grid, one step must lead to exact draws."""
    grid = np.linspace(-9.0, 7.0, 400)
    for place in [(0,) * np.ndim(point[value_name])]:
        log_p = []
        for log_x in grid:
            moved = {**point, value_name: point[value_name].copy()}
            moved[value_name][place] = log_x
            log_p.append(logp(moved))
        p = np.exp(np.asarray(log_p) - np.max(log_p))
        cdf = np.concatenate([[0.0], np.cumsum(0.5 * (p[1:] + p[:-1]))])
        cdf /= cdf[-1]
        ends = []
        for start in np.interp(rng.random(n), cdf, grid):
            moved = {**point, value_name: point[value_name].copy()}
            moved[value_name][place] = start
            ends.append(step.step(moved)[0][value_name][place])
        assert stats.kstest(ends, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-4


# --- blocks -------------------------------------------------------------------------------------------------------


def moments(step, point, names, seen):
    """Exact mean and covariance of the block that the step draws; `seen` reads it from a new point."""
    step.rng = Scripted()
    mean = seen(step.step(point)[0])
    columns = []
    for j in range(step.rng.used):
        step.rng = Scripted(j)
        columns.append(seen(step.step(point)[0]) - mean)
    columns = np.column_stack(columns)
    return mean, columns @ columns.T


def quadratic(f, size):
    """Mean and covariance of exp(f), f quadratic, from its differences."""
    eye, zero = np.eye(size), f(np.zeros(size))
    plus, minus = [f(e) for e in eye], [f(-e) for e in eye]
    H = np.array(
        [
            [
                plus[i] + minus[i] - 2 * zero if i == j else f(eye[i] + eye[j]) - plus[i] - plus[j] + zero
                for j in range(size)
            ]
            for i in range(size)
        ]
    )
    cov = np.linalg.inv(-H)
    return cov @ (0.5 * (np.array(plus) - np.array(minus))), cov


def check_block(model, logp, names, rng):
    """The block's Gaussian against second differences of the model's density (untransformed variables)."""
    step = prepared(bs.GaussianWeightsGibbs, names, model)
    point = somewhere(model, rng)
    values = [model.rvs_to_values[model[name]].name for name in names]
    shapes = [point[v].shape for v in values]

    def at(x):
        moved, end = dict(point), 0
        for v, shape in zip(values, shapes, strict=True):
            size = int(np.prod(shape))
            moved[v] = x[end : end + size].reshape(shape)
            end += size
        return float(logp(moved))

    mean, cov = moments(step, point, names, lambda new: np.concatenate([new[v].ravel() for v in values]))
    expected_mean, expected_cov = quadratic(at, len(mean))
    sd = np.sqrt(np.diag(expected_cov))
    assert_allclose((mean - expected_mean) / sd, 0.0, atol=1e-6 * (1.0 + np.abs(mean / sd).max()))
    assert_allclose((cov - expected_cov) / np.outer(sd, sd), 0.0, atol=1e-6)


CONJUGATE = [make for make in gibbs_models.ALL if any(s[:3] in ("Gam", "Gau") for s in make()[1].values())]


@pytest.mark.parametrize("make", CONJUGATE, ids=lambda make: make.__name__)
def test_each_conditional_is_that_of_the_model(make, rng):
    model, _ = make()
    logp = model.compile_logp(mode=ONCE)
    scales, blocks = plan(model)
    if all(transform is None or transform.name == "log" for transform in model.rvs_to_transforms.values()):
        for name in scales:
            check_scale(model, logp, name, rng)
        for names in blocks:
            check_block(model, logp, names, rng)
    else:
        assert make in (gibbs_models.rvm, gibbs_models.regularised_horseshoe)  # below
