"""DELVE's designs: worked example, ANOVA of another package, null simulations, posterior against exact simulation.

Guards `bayessel.diagnostics.delve._designs`, `bayessel.diagnostics.delve._losses`,
`bayessel.diagnostics.delve._mean_posterior`.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

from bayessel.diagnostics.delve import hierarchical, two_way
from bayessel.diagnostics.delve._losses import standardised_losses
from bayessel.diagnostics.delve._mean_posterior import MeanPosterior


def with_moments(mean, sigma_a, sigma_e, n_sets, n_cases, seed=0):
    """Losses whose estimates are exactly these."""
    rng = np.random.default_rng(seed)
    within = rng.normal(size=(n_sets, n_cases))
    within -= within.mean(axis=1, keepdims=True)
    within *= sigma_e * np.sqrt(n_sets * (n_cases - 1) / np.sum(within**2))
    effects = rng.normal(size=n_sets)
    effects -= effects.mean()
    effects *= np.sqrt((n_sets - 1) * (sigma_a**2 + sigma_e**2 / n_cases) / np.sum(effects**2))
    return mean + effects[:, None] + within


def test_worked_example_of_the_thesis():
    """Rasmussen (1996, section 2.4): k nearest neighbours against the linear method."""
    y = with_moments(-39.9114, 15.38834, 271.5414, 4, 256)
    result = hierarchical(y)
    assert result.mean == pytest.approx(-39.9114, abs=1e-10)
    assert result.std_error == pytest.approx(11.4546, abs=5e-5)
    assert result.p_value == pytest.approx(0.0399302, abs=5e-7)
    assert result.sigma_a == pytest.approx(15.38834, rel=1e-10)
    assert result.sigma_e == pytest.approx(271.5414, rel=1e-10)
    # "2.3 %"; exact draws of both variances (as below) give 0.02326(4)
    assert result.posterior.probability_wrong_sign == pytest.approx(0.023, abs=5e-4)
    lower = 0.5 * result.within / (rng := np.random.default_rng(0)).gamma(0.5 * 4 * 255, size=4_000_000)
    upper = 0.5 * 256 * np.sum((result.averages - result.mean) ** 2) / rng.gamma(1.5, size=len(lower))
    upper = upper[upper > lower]
    wrong = np.mean(rng.normal(result.mean, np.sqrt(upper / 1024)) > 0.0)
    assert abs(result.posterior.probability_wrong_sign - wrong) < 4.0 * np.sqrt(wrong / len(upper))


def test_p_value_is_the_t_test_of_the_averages():
    rng = np.random.default_rng(1)
    a, b = rng.gamma(2.0, size=(5, 20)), rng.gamma(2.0, size=(5, 20))
    expected = stats.ttest_rel(a.mean(axis=1), b.mean(axis=1)).pvalue
    assert hierarchical(a, b).p_value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_sets", [2, 3, 8])
def test_hierarchical_is_the_analysis_of_variance(n_sets):
    """Mean squares of statsmodels' one-way ANOVA."""
    statsmodels = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is in the extra `examples`")
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(n_sets)
    y = 3.0 + rng.normal(size=(n_sets, 1)) + rng.normal(size=(n_sets, 6))
    table = pd.DataFrame({"y": y.ravel(), "a": np.repeat(np.arange(n_sets), 6)})
    ms = anova_lm(statsmodels.ols("y ~ C(a)", table).fit())["mean_sq"]
    result = hierarchical(y)
    assert result.sigma_e**2 == pytest.approx(ms["Residual"], rel=1e-10)
    assert result.sigma_a**2 == pytest.approx(max(0.0, (ms["C(a)"] - ms["Residual"]) / 6), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("shape", [(2, 5), (4, 7), (8, 3)])
def test_two_way_is_the_analysis_of_variance(shape):
    statsmodels = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is in the extra `examples`")
    from statsmodels.stats.anova import anova_lm

    I, J = shape  # noqa: E741
    rng = np.random.default_rng(I)
    y = 1.0 + rng.normal(size=(I, 1)) + 2.0 * rng.normal(size=J) + rng.normal(size=shape)
    table = pd.DataFrame({"y": y.ravel(), "a": np.repeat(np.arange(I), J), "b": np.tile(np.arange(J), I)})
    ms = anova_lm(statsmodels.ols("y ~ C(a) + C(b)", table).fit())["mean_sq"]
    a, b, e = ms["C(a)"], ms["C(b)"], ms["Residual"]
    result = two_way(y)
    va, vb = max(0.0, (a - e) / J), max(0.0, (b - e) / I)
    assert (result.sigma_a**2, result.sigma_b**2, result.sigma_e**2) == pytest.approx((va, vb, e), rel=1e-9, abs=1e-13)
    assert result.std_error**2 == pytest.approx(va / I + vb / J + e / (I * J), rel=1e-10)
    m = I * J * y.mean() ** 2
    df = (m + e) ** 2 / (m**2 + e**2 / ((I - 1) * (J - 1))), (a + b) ** 2 / (a**2 / (I - 1) + b**2 / (J - 1))
    assert result.p_value == pytest.approx(stats.f.sf((m + e) / (a + b), *df), rel=1e-9)


def null_p_values(n_sets, sigma_a, sigma_b, repetitions, seed):
    rng = np.random.default_rng([n_sets, seed])
    p = np.empty(repetitions)
    for k in range(repetitions):
        y = rng.normal(size=(n_sets, 32))
        y += sigma_a * rng.normal(size=(n_sets, 1)) + sigma_b * rng.normal(size=32)
        p[k] = two_way(y).p_value
    return p


@pytest.mark.parametrize("n_sets", [2, 4, 8])
@pytest.mark.parametrize(("sigma_a", "sigma_b"), [(0.1, 0.1), (1.0, 0.3)])
def test_quasi_f_when_nothing_differs(n_sets, sigma_a, sigma_b):
    """Bands of Rasmussen (1996, fig. 2.3); with three of their standard errors for 1000 repetitions."""
    p = null_p_values(n_sets, sigma_a, sigma_b, 1000, 0)
    low, high = (0.02, 0.07) if n_sets >= 4 else (0.0, 0.14)
    noise = 3.0 * np.sqrt(0.05 * 0.95 / 1000)
    assert low - noise < np.mean(p < 0.05) < high + noise
    if n_sets >= 4:
        assert in_the_spike(np.mean(p > 0.95))


def in_the_spike(share):
    """Whether P(p > .95) of 1000 repetitions is between .12 and .28, with three standard errors.

    The thesis shows 2 and 4 training sets; with 8, σ_a ≤ 0.1 and σ_b = 0.3 it is .300(6) of 5000 repetitions, above.
    """
    return 0.12 - 3.0 * np.sqrt(0.12 * 0.88 / 1000) < share < 0.28 + 3.0 * np.sqrt(0.28 * 0.72 / 1000)


@pytest.mark.slow
def test_quasi_f_over_the_grid(record_property):
    """The whole figure: σ_a and σ_b over a grid, for 2, 4 and 8 training sets."""
    for n_sets in (2, 4, 8):
        for sigma_a in (0.01, 0.1, 0.3, 1.0):
            for sigma_b in (0.01, 0.1, 0.3, 1.0):
                p = null_p_values(n_sets, sigma_a, sigma_b, 1000, 1)
                small, large = np.mean(p < 0.05), np.mean(p > 0.95)
                case = f"I = {n_sets}, σ_a = {sigma_a}, σ_b = {sigma_b}"
                record_property(case, f"P(p < .05) {small:.3f}, P(p > .95) {large:.3f}")
                noise = 3.0 * np.sqrt(0.05 * 0.95 / 1000)
                assert small < (0.07 if n_sets >= 4 else 0.14) + noise
                if n_sets >= 4:
                    assert small > 0.02 - noise
                    assert in_the_spike(large)


def test_p_text():
    y = with_moments(5.0, 0.1, 0.2, 2, 40)
    assert two_way(y).p_text == "p < 0.05"
    assert two_way(np.vstack([y, y + 0.01 * np.random.default_rng(0).normal(size=y.shape)])).p_text.startswith("p = ")


# --- eq. 2.16 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_sets", "ratio"), [(2, 0.0), (2, 3.0), (4, 0.1), (8, 1.0), (8, 0.0)])
def test_posterior_integrates_to_one(n_sets, ratio):
    y = with_moments(0.7, ratio * 0.3, 2.0, n_sets, 64)
    posterior = hierarchical(y).posterior

    def formula(mu):
        a1 = 0.5 * np.sum((y - y.mean(axis=1, keepdims=True)) ** 2)
        a2 = 32.0 * np.sum((y.mean(axis=1) - mu) ** 2)
        p1, p2 = 0.5 * n_sets * 63, 0.5 * n_sets
        return a2**-p2 * special.betainc(p2, p1, a2 / (a1 + a2))

    total = 2.0 * (integrate.quad(formula, 0.7, 5.7, limit=500)[0] + integrate.quad(formula, 5.7, np.inf)[0])
    for mu in (0.7, 0.5, 1.5, 40.0):
        assert posterior.density(mu) == pytest.approx(formula(mu) / total, rel=1e-6)
    below = integrate.quad(formula, -np.inf, -4.3)[0] + integrate.quad(formula, -4.3, 0.0, limit=500)[0]
    assert posterior.probability_below(0.0) == pytest.approx(below / total, rel=1e-6)
    low, high = posterior.interval(0.9)
    assert posterior.probability_below(high) - posterior.probability_below(low) == pytest.approx(0.9, abs=1e-9)


@pytest.mark.parametrize(("sigma_a", "n_sets"), [(1.0, 4), (0.0, 3), (0.2, 8)])
def test_posterior_agrees_with_simulation(sigma_a, n_sets):
    """Independent exact draws: both precisions Gamma, kept where the upper level varies no less than the lower."""
    J = 20
    y = with_moments(0.3, sigma_a, 1.0, n_sets, J)
    averages = y.mean(axis=1)
    within, between = np.sum((y - averages[:, None]) ** 2), np.sum((averages - averages.mean()) ** 2)
    rng = np.random.default_rng(3)
    lower = 0.5 * within / rng.gamma(0.5 * n_sets * (J - 1), size=1_000_000)
    upper = 0.5 * J * between / rng.gamma(0.5 * (n_sets - 1), size=1_000_000)
    upper = upper[upper > lower]
    mu = rng.normal(averages.mean(), np.sqrt(upper / (n_sets * J)))
    posterior = hierarchical(y).posterior
    for at in (-0.5, 0.0, 0.2, 0.4, 1.0):
        share = np.mean(mu < at)
        error = np.sqrt(share * (1 - share) / len(mu))
        assert abs(posterior.probability_below(at) - share) < 4.0 * error + 1e-9
    # negative control: without the constraint the simulation is told apart
    unbound = 0.5 * J * between / rng.gamma(0.5 * (n_sets - 1), size=len(mu))
    free = rng.normal(averages.mean(), np.sqrt(unbound / (n_sets * J)))
    if sigma_a == 0.0:
        assert abs(posterior.probability_below(0.0) - np.mean(free < 0.0)) > 10.0 / np.sqrt(len(mu))


def test_scale_and_shift_do_not_matter():
    y = with_moments(0.5, 1.0, 2.0, 4, 16)
    for scale in (1e-120, 1e120):
        assert hierarchical(scale * y).p_value == pytest.approx(hierarchical(y).p_value, rel=1e-9)
        assert two_way(scale * y).p_value == pytest.approx(two_way(y).p_value, rel=1e-9)
        wrong = hierarchical(scale * y).posterior.probability_wrong_sign
        assert wrong == pytest.approx(hierarchical(y).posterior.probability_wrong_sign, rel=1e-9)
    for scale in (1e-200, 1e200):  # whose squares leave double precision
        for design in (hierarchical, two_way):
            ours, plain = design(scale * y), design(y)
            assert ours.p_value == pytest.approx(plain.p_value, rel=1e-9)
            for name in ("mean", "std_error", "sigma_a", "sigma_e"):
                assert getattr(ours, name) == pytest.approx(scale * getattr(plain, name), rel=1e-9, abs=0.0)
    assert hierarchical(y + 1e6).sigma_e == pytest.approx(hierarchical(y).sigma_e, rel=1e-8)


def test_methods_that_are_one():
    same = np.random.default_rng(0).normal(size=(4, 8))
    for design in (hierarchical, two_way):
        assert design(same, same).p_value == 1.0
        assert design(same, same - 1.0).p_value < 1e-6
    assert hierarchical(same, same).posterior.probability_wrong_sign == 0.5
    assert MeanPosterior(np.ones(3), 0.0, 5).interval() == (1.0, 1.0)


@pytest.mark.parametrize("design", [hierarchical, two_way])
@pytest.mark.parametrize(
    ("losses", "against", "said"),
    [
        (np.ones((1, 5)), None, "at least 2"),
        (np.ones((5, 1)), None, "at least 2"),
        (np.ones(5), None, "2-D"),
        ([[1.0, np.nan], [1.0, 2.0]], None, "finite"),
        (np.ones((2, 5)), np.ones((5, 2)), "same"),
    ],
)
def test_bad_losses(design, losses, against, said):
    with pytest.raises(ValueError, match=said):
        design(losses, against)


@pytest.mark.parametrize(
    ("averages", "within", "n_cases", "said"),
    [
        ([1.0], 1.0, 5, "two training sets or more"),
        ([1.0, 2.0], 1.0, 1, "n_cases must be at least 2"),
        ([1.0, 2.0], -1.0, 5, "sum of squares"),
        ([1.0, np.nan], 1.0, 5, "finite"),
    ],
)
def test_posteriors_of_nothing(averages, within, n_cases, said):
    with pytest.raises(ValueError, match=said):
        MeanPosterior(averages, within, n_cases)


# --- losses -----------------------------------------------------------------------------------------------------------


def test_guessing_blindly_costs_one():
    rng = np.random.default_rng(0)
    y = rng.gamma(2.0, size=500)
    assert standardised_losses(y, np.full(500, y.mean())).mean() == pytest.approx(1.0, rel=1e-12)
    assert standardised_losses(y, np.full(500, np.median(y)), "absolute").mean() == pytest.approx(1.0, rel=1e-12)
    density = stats.norm.logpdf(y, y.mean(), y.std())
    assert standardised_losses(y, density, "log").mean() == pytest.approx(0.0, abs=1e-12)
    assert standardised_losses(y, density + 0.5, "log").mean() == pytest.approx(-0.5, rel=1e-12)


def test_losses_refuse():
    with pytest.raises(ValueError, match="must vary"):
        standardised_losses(np.ones(4), np.ones(4))
    with pytest.raises(ValueError, match="'squared', 'absolute', 'log'"):
        standardised_losses([0.0, 1.0], [0.0, 1.0], "huber")
    for y in ([], 1.0, [1.0]):
        with pytest.raises(ValueError, match="two test cases or more"):
            standardised_losses(y, y)
    with pytest.raises(ValueError, match="1e\\+200, whose squares leave double precision"):
        standardised_losses([1e200, -1e200], [0.0, 0.0])
    with pytest.raises(ValueError, match="so far off in 1 of 2 cases that squared loss overflows"):
        standardised_losses([0.0, 1.0], [0.0, 1e180])
