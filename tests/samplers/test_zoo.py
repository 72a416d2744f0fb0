"""`sample` on models as users write them, against numerical integration of densities written out in NumPy.

The fast suite takes every model as far as nothing is compiled for it: which steps it gets, and that each exact draw is
from the conditional of the model's own density. A few models are sampled; the slow suite samples all.

Guards `bayessel.samplers.step_choice`, `bayessel.samplers.run.sampling`, `bayessel.samplers.gibbs`,
`bayessel.samplers.conjugacy.block`, `bayessel.samplers.conjugacy.scale`.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.errors import SamplingWarning
from bayessel.samplers import conditionals
from tests.samplers.test_gibbs import ONCE, check_block, check_scale
from tests.samplers.zoo import ALL, REFUSED, discrete, mixtures, pitfalls, regressions, series
from tests.samplers.zoo.case import G, W, line, on_grid, positive
from tests.samplers.zoo.judge import chosen, distances, sampled, unexpected, worst

#: Sampled by the fast suite too: soon compiled, and among them the steps in every mixture.
FAST = [
    series.autoregression,
    series.local_level,
    mixtures.truncated,
    mixtures.missing_outcomes,
    regressions.gamma_rates,
    regressions.data_with_dims,
    discrete.potential,
    pitfalls.sampled_as_they_are,
    pitfalls.far_from_zero,
    pitfalls.classes_and_numbers,
]


def name_of(make):
    return make.__name__


# --- which steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ALL, ids=name_of)
def test_each_variable_has_the_step_that_is_proved_for_it(make):
    case = make()
    assert not unexpected(case)
    assert not unexpected(case, "auto")


def test_an_unexpected_step_is_seen():
    case = series.autoregression()
    assert unexpected(case._replace(expected={"rho": G, "sigma": G})) == {"rho": W}


# --- exact draws --------------------------------------------------------------------------------------------------


def check_conditionals(model, rng):
    """Every exact draw against the model's own density along the variables it draws; how many there were."""
    logp = model.compile_logp(mode=ONCE)
    blocks = {}
    for name, label in chosen(bs.explain_steps(model, split="conjugate")).items():
        step, _, members = label.partition("[")
        if step == G:
            check_scale(model, logp, name, rng)
            blocks[name] = None
        elif step == W:
            blocks[members.rstrip("]") or name] = (members.rstrip("]") or name).split(", ")
    for members in filter(None, blocks.values()):
        check_block(model, logp, members, rng)
    return len(blocks)


#: Left out: what reads the draws looks at logarithms of scales, between −9 and 7. Both are sampled in the fast suite.
ELSEWHERE = [pitfalls.sampled_as_they_are, pitfalls.far_from_zero]
CONJUGATE = [make for make in ALL if make not in ELSEWHERE and {G, W} & set(make().expected.values())]


@pytest.mark.parametrize("make", CONJUGATE, ids=name_of)
def test_each_exact_draw_is_from_the_conditional_of_the_model(make, rng):
    assert check_conditionals(make().model, rng)


@pytest.mark.parametrize("make", [series.local_level, regressions.robust_by_weights], ids=name_of)
def test_a_wrong_conditional_is_seen(make, rng, monkeypatch):
    right = conditionals.log_precision
    monkeypatch.setattr(conditionals, "log_precision", lambda a, b, n, S, rng: right(a, b, n, 0.9 * S, rng))
    with pytest.raises(AssertionError):
        check_conditionals(make().model, rng)


# --- the posterior ------------------------------------------------------------------------------------------------


def check_posterior(make, draws=None, chains=4):
    """Moments in Monte Carlo standard errors; those of the density to the power 1.5 must be seen to be wrong."""
    case = make()
    with warnings.catch_warnings():
        if case.narrow:  # what is missed there may be told so
            warnings.simplefilter("ignore", SamplingWarning)
        result = sampled(case, draws, chains)
    assert result.attrs["status"] == "complete"
    off = distances(result.posterior, case.truth(1.0))
    told = case.narrow and int(result.sample_stats["diverging"].sum()) > 0
    assert worst(off) < 4.0 or told, off
    assert worst(distances(result.posterior, case.truth(1.5))) > 4.0


@pytest.mark.parametrize("make", FAST, ids=name_of)
def test_posteriors_in_short(make):
    check_posterior(make)


@pytest.mark.slow
@pytest.mark.parametrize("make", [make for make in ALL if make not in FAST], ids=name_of)
def test_posteriors(make):
    check_posterior(make)


def test_a_sampler_with_a_wrong_scale_is_seen(monkeypatch):
    right = conditionals.log_precision
    monkeypatch.setattr(conditionals, "log_precision", lambda a, b, n, S, rng: right(a, b, n - 1.0, S, rng))
    case = regressions.robust_by_weights()
    exact = bs.steps(case.model, split="conjugate")
    off = distances(sampled(case, 3000, 2, step=exact).posterior, case.truth(1.0))
    assert worst(off) > 4.0


@pytest.mark.filterwarnings("ignore:.*RandomVariable .*rng:DeprecationWarning")  # by pm.Simulator
@pytest.mark.parametrize("make", REFUSED, ids=name_of)
def test_what_cannot_be_sampled_is_refused_in_words(make):
    case = make()
    with pytest.raises(ValueError, match=case.words):
        sampled(case, 10, 1)


# --- the truth itself ---------------------------------------------------------------------------------------------


def test_the_grid_finds_the_moments_of_known_densities():
    truth = on_grid(
        lambda m, s: stats.norm.logpdf(m, 1.0, s) + stats.gamma.logpdf(s, 5.0, scale=0.2),
        {"m": line(-30.0, 32.0, 801), "s": positive(0.02, 9.0, 101)},
        lambda m, s: {"sum": (m + s, 0.25)},
    )(1.0)
    # sd of m: E s² = shape (shape + 1) scale²; of log s: trigamma of the shape
    assert_allclose(truth["m"], (1.0, np.sqrt(30 * 0.04)), atol=1e-6)
    log_s = stats.loggamma(5.0, loc=np.log(0.2))
    assert_allclose(truth["log s"], (log_s.mean(), log_s.std()), atol=1e-5)
    assert_allclose(truth["sum"], (2.0, np.sqrt(30 * 0.04 + 5 * 0.04 + 0.25)), atol=1e-6)


def test_a_grid_that_is_too_short_is_an_error():
    with pytest.raises(AssertionError, match="at the ends of its axis"):
        on_grid(stats.norm.logpdf, {"m": line(-2.0, 8.0)})(1.0)
