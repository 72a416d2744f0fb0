"""`evidence` on models whose evidence is known, by closed forms, quadrature and sums over allocations.

What is asked of a number is that it is within 0.05 nat of the truth, or says that it cannot be relied on; and where
the model is not made to mislead, that it can.

Guards `bayessel.marginal_likelihood.audit`, `bayessel.marginal_likelihood.verdict`.
"""

import warnings

import numpy as np
import pymc as pm
import pytensor
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp

import bayessel as bs
from bayessel.errors import SamplingWarning
from tests.marginal_likelihood.zoo import ALL, conjugate, hierarchies, mixtures, processes, regressions, shapes
from tests.marginal_likelihood.zoo import without_comparison as lonely
from tests.marginal_likelihood.zoo.case import between, effects, line, log_integral, positive

#: Run by the fast suite too: each family, and what compiles soon.
FAST = [
    conjugate.beta_binomial,
    conjugate.timber_by_density,
    hierarchies.eight_schools,
    hierarchies.funnel,
    processes.process_1,
    shapes.rosenbrock,
    regressions.censored_lifetimes,
    mixtures.two_components,
    lonely.flat_priors,
    lonely.potential,
]
#: nats
NEAR = 0.05


def name_of(make):
    return make.__name__


def found_for(case, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        # PyMC computes initial points in C where graphs are nested, and says that this is slow without BLAS
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
        warnings.filterwarnings("ignore", message="Numba will use object mode")
        return bs.evidence(case.model, random_seed=seed, quiet=True)


def complaints(case, found):
    """What is wrong with a number, in words."""
    off = abs(found.value - case.truth)
    said = []
    if found.reliable and not off <= NEAR + 2.0 * case.truth_error:
        said.append(f"{found.value - case.truth:+.4f} nats off, and reliable")
    if not found.reliable and not case.may_flag:
        said.append(f"not reliable: {found.verdict}")
    if case.comparable == bool(found.comparable):
        said.append(f"comparable says {found.comparable!r}")
    said += [f"the error of {one.name} is {one.error}" for one in found.routes if not one.error > 0.0]
    return said


def check(make, seed=1):
    case = make()
    found = found_for(case, seed)
    assert not complaints(case, found), f"truth {case.truth:.4f}\n{found}"


@pytest.mark.parametrize("make", FAST, ids=name_of)
def test_evidence_in_short(make):
    check(make)


@pytest.mark.slow
@pytest.mark.parametrize("make", [make for make in ALL if make not in FAST], ids=name_of)
def test_evidence(make):
    check(make)


def test_a_wrong_number_is_seen():
    case = conjugate.gamma_exponential()
    found = found_for(case, 1)
    assert not complaints(case, found)
    assert complaints(case._replace(truth=case.truth + 0.06), found)
    assert complaints(case._replace(comparable=False), found)


# --- the truth itself ---------------------------------------------------------------------------------------------


def test_there_are_enough_cases_and_each_has_its_name():
    names = [make.__name__ for make in ALL]
    assert len(names) == len(set(names)) >= 45


def test_published_values_are_met():
    """Eight schools by quadrature; shells and the egg box as in the papers of MultiNest, in their two decimals."""
    assert_allclose(hierarchies.of_schools(), -31.31135, atol=1e-5)
    published = {shapes.shells_2: -1.75, shapes.shells_5: -5.67, shapes.shells_10: -14.59, shapes.egg_box: 235.86}
    for make, value in published.items():
        assert_allclose(make().truth, value, atol=0.006)


def test_integrals_of_known_densities_are_one():
    def density(m, s):
        return stats.norm.logpdf(m, 1.0, s) + stats.gamma.logpdf(s, 5.0, scale=0.2)

    assert_allclose(log_integral(density, line(-20.0, 22.0, 801), positive(0.02, 9.0, 61)), 0.0, atol=1e-4)
    # a density that jumps at an end
    assert_allclose(log_integral(stats.beta(2.0, 1.0, 3.0, 2.0).logpdf, between(3.0, 5.0)), 0.0, atol=1e-6)


def test_effects_are_integrated_out():
    y = np.array([0.3, -2.0])
    found = effects(lambda theta: stats.norm.logpdf(y, theta, 0.8), np.array([0.0, 1.0]), np.array([1.0, 0.3]))
    expected = [stats.norm.logpdf(y, m, np.hypot(s, 0.8)).sum() for m, s in ((0.0, 1.0), (1.0, 0.3))]
    assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize(("axis", "words"), [(line(-2.0, 8.0), "too short"), (line(-9.0, 9.0, 9), "too coarse")])
def test_a_grid_that_does_not_serve_is_an_error(axis, words):
    with pytest.raises(AssertionError, match=words):
        log_integral(stats.norm.logpdf, axis)


def prior_mean(model, rng, n=4000):
    """Log of the mean likelihood of draws from PyMC's prior, and its standard error."""
    draws = pm.draw(model.free_RVs, draws=n, random_seed=rng)
    total = sum(pm.logp(rv, model.rvs_to_values[rv]).sum() for rv in model.observed_RVs)
    function = pytensor.function(model.free_RVs, total, mode="FAST_COMPILE")
    logs = np.array([function(*row) for row in zip(*draws, strict=True)])
    return logsumexp(logs) - np.log(n), np.exp(0.5 * logsumexp(2.0 * logs) - logsumexp(logs))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Numba will use object mode")
@pytest.mark.parametrize(
    "make",
    [
        conjugate.five_classes,
        conjugate.gamma_precision,
        hierarchies.eight_schools_student,
        processes.log_gaussian_cox,
        processes.process_2,
        shapes.cauchy_priors,
        regressions.correlated_pair,
        regressions.probit_steps,
        mixtures.two_components,
        mixtures.unknown_weights,
        lonely.truncated_prior,
    ],
    ids=name_of,
)
def test_truths_agree_with_draws_from_the_prior(make, rng):
    """Crude, but it shares nothing with the truths: a constant that is missing is seen."""
    case = make()
    found, error = prior_mean(case.model, rng)
    assert abs(found - case.truth) < 4.0 * error < 1.5, (found, case.truth, error)
