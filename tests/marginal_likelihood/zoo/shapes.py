"""Shapes that samplers lose their way in, each a likelihood under a proper prior: a box, Normals or Student t.

The integrals fall into factors of one or two dimensions, or run over a radius.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp

from tests.marginal_likelihood.zoo.case import (
    Case,
    between,
    likelihood,
    line,
    log_add,
    log_integral,
    log_joint_normal,
    log_normal,
)


def box(half, k):
    """A model with a uniform prior on (−half, half) in k dimensions, and its variable."""
    with pm.Model() as model:
        x = pm.Uniform("x", -half, half, shape=k)
    return model, x


# --- shells -------------------------------------------------------------------------------------------------------


def shells(k):
    """Two spheres of radius 2, their walls 0.1 thick, side by side in a box."""
    centre = np.zeros(k)
    centre[0] = 3.5
    model, x = box(6.0, k)
    with model:

        def shell(x, c):
            return -0.5 * ((pt.sqrt(((x - c) ** 2).sum()) - 2.0) / 0.1) ** 2 - np.log(0.1 * np.sqrt(2.0 * np.pi))

        likelihood(lambda x: log_add(shell(x, -centre), shell(x, centre)), x)
    # area of the unit sphere times ∫ r^(k−1) N(r; 2, 0.1²) dr: the walls of the box are five widths away
    area = np.log(2.0) + 0.5 * k * np.log(np.pi) - gammaln(0.5 * k)
    radial = integrate.quad(lambda r: r ** (k - 1) * stats.norm.pdf(r, 2.0, 0.1), 1.0, 3.0, epsrel=1e-10)[0]
    truth = np.log(2.0) + area + np.log(radial) - k * np.log(12.0)
    return Case(model, float(truth), "two thin shells", may_flag=k > 2)


def shells_2():
    """In two dimensions."""
    return shells(2)


def shells_5():
    """In five dimensions."""
    return shells(5)


def shells_10():
    """In ten dimensions."""
    return shells(10)


# --- curves and lattices ------------------------------------------------------------------------------------------


def rosenbrock():
    """A curved valley, in a box."""
    model, x = box(5.0, 2)
    with model:
        likelihood(lambda x: -((1.0 - x[0]) ** 2) - 100.0 * (x[1] - x[0] ** 2) ** 2, x)
    a = np.linspace(-5.0, 5.0, 200_001)
    # the inner integral is a Normal one, cut off at the box
    inner = stats.norm.cdf(np.sqrt(200.0) * (5.0 - a**2)) - stats.norm.cdf(np.sqrt(200.0) * (-5.0 - a**2))
    z = integrate.simpson(np.exp(-((1.0 - a) ** 2)) * inner, x=a) * np.sqrt(np.pi / 100.0)
    return Case(model, float(np.log(z / 100.0)), "a curved valley")


def banana():
    """Three curved valleys under Normal priors, seen with Normal errors: six dimensions."""
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0, shape=3)
        b = pm.Normal("b", 0.0, 2.0, shape=3)
        pm.Normal("y", b + a**2, 0.1, observed=np.array([1.0, 2.5, -1.0]))

    def density(a, y):
        return log_normal(a, 0.0, 1.0) + log_normal(y, a**2, np.hypot(2.0, 0.1))

    truth = sum(log_integral(lambda a, y=y: density(a, y), line(-9.0, 9.0, 401)) for y in (1.0, 2.5, -1.0))
    return Case(model, truth, "curved valleys")


def egg_box():
    """Eighteen peaks of the same height in a box."""
    with pm.Model() as model:
        x = pm.Uniform("x", 0.0, 10.0 * np.pi, shape=2)
        likelihood(lambda x: (2.0 + pt.cos(0.5 * x[0]) * pt.cos(0.5 * x[1])) ** 5, x)
    c = np.cos(0.5 * np.linspace(0.0, 10.0 * np.pi, 2001))
    log_w = np.log(np.r_[0.5, np.ones(1999), 0.5] / 2000.0)
    truth = logsumexp((2.0 + c[:, None] * c) ** 5 + log_w[:, None] + log_w)
    return Case(model, float(truth), "many modes", may_flag=True)


# --- two modes ----------------------------------------------------------------------------------------------------


def two_modes(k):
    """Two Normal modes in a box, with three quarters and one quarter of the mass, of different widths."""
    model, x = box(10.0, k)
    with model:

        def mode(x, share, centre, sd):
            return np.log(share) - k * np.log(sd * np.sqrt(2.0 * np.pi)) - 0.5 * (((x - centre) / sd) ** 2).sum()

        likelihood(lambda x: log_add(mode(x, 0.75, 3.0, 0.5), mode(x, 0.25, -3.0, 0.8)), x)
    # the walls are more than eight standard deviations away
    return Case(model, -k * np.log(20.0), "two modes far apart", may_flag=k > 5)


def two_modes_2():
    """In two dimensions."""
    return two_modes(2)


def two_modes_5():
    """In five dimensions."""
    return two_modes(5)


def two_modes_10():
    """In ten dimensions."""
    return two_modes(10)


def two_modes_20():
    """In twenty dimensions."""
    return two_modes(20)


def log_gamma_and_normal():
    """Two modes in each of two directions, one pair skewed: four modes in ten dimensions."""
    k = 10
    model, x = box(30.0, k)
    with model:

        def skewed(u):
            return u - pt.exp(u)  # log of a standard Exponential

        def normal(u):
            return -0.5 * u**2 - 0.5 * np.log(2.0 * np.pi)

        def log_density(x):
            pair = log_add(skewed(x[0] - 10.0), skewed(x[0] + 10.0)) + log_add(normal(x[1] - 10.0), normal(x[1] + 10.0))
            return pair - 2.0 * np.log(2.0) + skewed(x[2:6] - 10.0).sum() + normal(x[6:] - 10.0).sum()

        likelihood(log_density, x)
    # what of a skewed mode lies outside of the box: below −30, 20 or 40 under its middle
    lost = np.log1p(-0.5 * np.exp(-20.0)) + 4 * np.log1p(-np.exp(-40.0))
    return Case(model, -k * np.log(60.0) + lost, "four modes, skewed and far apart", may_flag=True)


# --- narrow parts -------------------------------------------------------------------------------------------------


def spike_and_slab(k):
    """A narrow spike of odds one hundred on a slab of the same centre: annealing meets a transition of first order."""
    model, x = box(0.5, k)
    with model:

        def part(x, log_share, sd):
            return log_share - k * np.log(sd * np.sqrt(2.0 * np.pi)) - 0.5 * ((x / sd) ** 2).sum()

        likelihood(lambda x: log_add(part(x, np.log(100.0), 0.005), part(x, 0.0, 0.1)), x)
    inside = stats.norm.cdf(5.0) - stats.norm.cdf(-5.0)
    return Case(model, float(np.log(100.0 + inside**k)), "a transition of first order", may_flag=True)


def spike_and_slab_5():
    """In five dimensions."""
    return spike_and_slab(5)


def spike_and_slab_10():
    """In ten dimensions."""
    return spike_and_slab(10)


def needle():
    """Most of the mass is in a needle that the slope leads to from one place in a hundred of the prior."""
    k, spot = 4, np.array([0.31, -0.22, 0.2, 0.28])
    model, x = box(0.5, k)
    with model:

        def part(x, log_share, centre, sd):
            return log_share - k * np.log(sd * np.sqrt(2.0 * np.pi)) - 0.5 * (((x - centre) / sd) ** 2).sum()

        likelihood(lambda x: log_add(part(x, np.log(5.0), spot, 0.02), part(x, 0.0, -0.5 * spot, 0.05)), x)
    # the walls are more than six standard deviations away
    return Case(model, np.log(6.0), "a needle in a haystack", may_flag=True)


def nearly_one_line():
    """Twenty dimensions with correlations of 0.999, under Normal priors."""
    k = 20
    V = 0.999 * np.ones((k, k)) + 0.001 * np.eye(k)
    y = np.random.default_rng(6).multivariate_normal(np.zeros(k), V + np.eye(k))
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0, shape=k)
        pm.MvNormal("y", x, cov=V, observed=y)
    return Case(model, float(log_joint_normal(y, np.zeros(k), V + np.eye(k))), "correlations of 0.999")


def nearly_one_line_in_a_box():
    """The same likelihood in eight dimensions in a wide box, where nothing is conjugate."""
    k = 8
    V = 0.999 * np.ones((k, k)) + 0.001 * np.eye(k)
    P = np.linalg.inv(V)
    constant = -0.5 * k * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(V)[1]
    model, x = box(8.0, k)
    with model:
        likelihood(lambda x: -0.5 * x @ pt.constant(P) @ x + constant, x)
    return Case(model, -k * np.log(16.0), "correlations of 0.999")


# --- tails and walls ----------------------------------------------------------------------------------------------


def heavy_tails():
    """A likelihood with the tails of a Student t of 2 degrees of freedom in a wide box, ten dimensions."""
    k, half = 10, 50.0
    model, x = box(half, k)
    with model:
        likelihood(lambda x: (-1.5 * pt.log1p(0.5 * (x - 1.0) ** 2)).sum(), x)
    t = stats.t(2.0, loc=1.0)
    each = np.log(t.cdf(half) - t.cdf(-half)) - t.logpdf(1.0) - np.log(2.0 * half)
    return Case(model, float(k * each), "tails of power two in ten directions")


def cauchy_priors():
    """Cauchy priors that Student t data contradict: several maxima in each of four directions."""
    y = np.array([8.0, -0.3, 5.0, 12.0])
    with pm.Model() as model:
        x = pm.Cauchy("x", 0.0, 1.0, shape=4)
        pm.StudentT("y", nu=1.0, mu=x, sigma=1.0, observed=y)
    # the convolution of two Cauchy densities is one of twice the scale
    return Case(model, float(stats.cauchy.logpdf(y, 0.0, 2.0).sum()), "sixteen modes, tails of Cauchy", may_flag=True)


def against_the_wall():
    """The mass lies against the walls of a box, where the density is highest: eight dimensions."""
    k = 8
    with pm.Model() as model:
        x = pm.Uniform("x", 0.0, 1.0, shape=k)
        likelihood(lambda x: -30.0 * x.sum(), x)
    return Case(model, float(k * np.log((1.0 - np.exp(-30.0)) / 30.0)), "mass against the walls")


def bound_by_another():
    """Uniform below a bound that is itself unknown, seen with a Student t."""
    y = 2.0
    with pm.Model() as model:
        a = pm.Uniform("a", 0.0, 4.0)
        b = pm.Uniform("b", 0.0, a)
        pm.StudentT("y", nu=4.0, mu=b, sigma=0.3, observed=y)
    t = stats.t(4.0, loc=y, scale=0.3)  # ∫ p(y | b) db up to a is a distribution function of b
    truth = log_integral(lambda a: np.log(t.cdf(a) - t.cdf(0.0)) - np.log(4.0 * a), between(0.0, 4.0, 601))
    return Case(model, truth, "a bound that moves")


CASES = [
    shells_2,
    shells_5,
    shells_10,
    rosenbrock,
    banana,
    egg_box,
    two_modes_2,
    two_modes_5,
    two_modes_10,
    two_modes_20,
    log_gamma_and_normal,
    spike_and_slab_5,
    spike_and_slab_10,
    needle,
    nearly_one_line,
    nearly_one_line_in_a_box,
    heavy_tails,
    cauchy_priors,
    against_the_wall,
    bound_by_another,
]
