"""Prequential code lengths of PyMC models: closed forms row by row, and minus the log evidence in sum.

Guards `bayessel.marginal_likelihood.prequential_length`, `bayessel.marginal_likelihood.weighted_rows`,
`bayessel.marginal_likelihood.elpd`.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.integrate import quad

import bayessel as bs
from bayessel.diagnostics import prequential_of
from bayessel.errors import SamplingWarning
from bayessel.marginal_likelihood import prequential_length
from bayessel.marginal_likelihood.prequential_length import _Weights
from bayessel.marginal_likelihood.weighted_rows import CLOSE, Moves, WeightedRows

HEADS = (np.random.default_rng(0).random(40) < 0.3).astype(int)
NUMBERS = np.random.default_rng(1).normal(3.0, 1.0, 30)


def coin(y=HEADS, a=2.0, b=1.0):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", a, b), observed=y)
    return model


def coin_terms(y, a=2.0, b=1.0):
    """-log p of each row: heads before it, and rows before it, by the beta distribution."""
    before = np.concatenate([[0], np.cumsum(y)[:-1]])
    heads = (a + before) / (a + b + np.arange(len(y)))
    return -np.log(np.where(y == 1, heads, 1.0 - heads))


def located(y=NUMBERS, scale=10.0, noise=1.0):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0.0, scale), noise, observed=y)
    return model


def located_terms(y, scale=10.0, noise=1.0):
    """-log p of each row: normal with the mean of the posterior, and its variance beside that of the noise."""
    n = np.arange(len(y))
    variance = 1.0 / (scale**-2 + n * noise**-2)
    mean = variance * noise**-2 * np.concatenate([[0.0], np.cumsum(y)[:-1]])
    return -stats.norm.logpdf(y, mean, np.sqrt(noise**2 + variance))


def regression(columns=3, n=30):
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    t = X @ [1.0, 2.0, -1.0] + 0.5 * rng.normal(size=n)
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 3.0, shape=columns)
        pm.Normal("y", pm.math.dot(X[:, :columns], w), pm.HalfNormal("s", 2.0), observed=t)
    return model


@pytest.fixture(scope="module")
def lines():
    return {columns: prequential_of(regression(columns), effort=0.5, random_seed=1) for columns in (2, 3)}


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_of_a_coin(seed):
    order = np.random.default_rng(seed).permutation(len(HEADS)) if seed > 1 else None
    found = prequential_of(coin(), order=order, random_seed=seed)
    exact = coin_terms(HEADS if order is None else HEADS[order])
    assert found.reliable, found.verdict
    assert np.abs(found.rows - exact).max() < 0.06
    assert abs(found.nats - exact.sum()) < 4.0 * found.std_error
    assert found.std_error < 0.08
    assert found.nats == pytest.approx(found.rows.sum())
    # a code for another coin is not this one
    assert abs(found.nats - coin_terms(HEADS, 1.0, 4.0).sum()) > 10.0 * found.std_error


@pytest.mark.parametrize(("scale", "noise"), [(10.0, 1.0), (1e4, 0.01)])
def test_rows_of_a_normal_mean(scale, noise):
    y = 3.0 + noise * (NUMBERS - 3.0)
    found = prequential_of(located(y, scale, noise), random_seed=1)
    exact = located_terms(y, scale, noise)
    assert found.reliable, found.verdict
    assert np.abs(found.rows - exact).max() < 5.0 * found.std_error
    assert abs(found.nats - exact.sum()) < 4.0 * found.std_error
    assert found.std_error < 0.2
    # the first row is too much at once, and taken in by degrees
    assert 0.0 < found.refits[1]["n"] < 1.0
    assert found.refits[-1]["until"] == len(y)
    assert all(a["until"] == b["n"] for a, b in zip(found.refits[:-1], found.refits[1:], strict=True))


def test_the_sum_is_the_evidence_in_any_order(lines):
    truth = -bs.evidence(regression(), random_seed=1, quiet=True).value
    other = prequential_of(regression(), order=np.arange(30)[::-1], effort=0.5, random_seed=2)
    for found in (lines[3], other):
        assert found.reliable, found.verdict
        assert abs(found.nats - truth) < 4.0 * found.std_error
        assert found.std_error < 0.2
    # rows cost what they cost where they stand
    assert np.abs(lines[3].rows - other.rows[::-1]).max() > 0.5
    # of the model without a column it is not the length
    assert abs(lines[2].nats - truth) > 10.0 * lines[2].std_error


def test_rows_coded_by_all_data_are_no_prequential_length(lines):
    # negative control: densities under the posterior of all rows sum to less than any prequential length
    trace = bs.sample(regression(), 200, tune=300, chains=2, random_seed=1, quiet=True)
    terms = trace["log_likelihood"]["y"].values.reshape(-1, 30)
    cheat = -np.log(np.exp(terms).mean(axis=0)).sum()
    assert lines[3].nats - cheat > 20.0 * lines[3].std_error


def test_rows_with_several_numbers():
    y = np.stack([NUMBERS[:8], NUMBERS[8:16]], axis=1)
    found = prequential_of(located(y), random_seed=3)
    exact = located_terms(y.ravel()).reshape(8, 2).sum(axis=1)
    assert found.rows.shape == (8,)
    assert np.abs(found.rows - exact).max() < 5.0 * found.std_error


def test_eight_schools():
    # a scale on which no row depends by itself; the published evidence
    with pm.Model() as model:
        effects = pm.Normal("effects", pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5), shape=8)
        pm.Normal("y", effects, [15, 10, 16, 11, 9, 11, 10, 18], observed=[28, 8, -3, 7, -1, 1, 18, 12])
    found = prequential_of(model, effort=0.5, random_seed=1)
    assert found.reliable, found.verdict
    assert abs(found.nats - 31.31135) < 4.0 * found.std_error
    assert found.std_error < 0.1


def bounded(y):
    with pm.Model() as model:
        pm.Uniform("y", 0.0, pm.Uniform("top", 1.0, 20.0), observed=y)
    return model


def test_rows_that_rule_parameters_out():
    y = np.array([3.0, 7.0, 15.0, 2.0, 11.0])
    found = prequential_of(bounded(y), random_seed=1)
    # p(y_1..y_n) is the integral of top^-n / 19 from the largest to 20
    n, low = np.arange(1, 6), np.maximum.accumulate(y)
    joint = [quad(lambda x, k=k: x**-k / 19.0, a, 20.0)[0] for k, a in zip(n.tolist(), low, strict=True)]
    exact = -np.diff(np.log([1.0, *joint]))
    assert found.reliable, found.verdict
    assert np.abs(found.rows - exact).max() < 4.0 * found.std_error


def test_groups_that_a_row_rules_out_are_counted():
    # one particle in two thousand is left: most groups have none
    with pytest.warns(SamplingWarning, match="row 0 is coded by"):
        found = prequential_of(bounded([19.99, 3.0]), effort=0.3, random_seed=1)
    assert not found.reliable
    assert found.std_error > 0.3


# --- results ----------------------------------------------------------------------------------------------------------


def test_one_seed_one_result_and_the_model_is_left_alone():
    model = coin()
    before = [str(one.name) for one in model.basic_RVs], sorted(model.named_vars)
    first, second = (prequential_of(model, effort=0.3, random_seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.rows, second.rows)
    assert first.std_error == second.std_error
    assert prequential_of(model, effort=0.3, random_seed=6).nats != first.nats
    assert before == ([str(one.name) for one in model.basic_RVs], sorted(model.named_vars))
    with model:
        assert prequential_of(effort=0.3, random_seed=5).nats == first.nats


@pytest.mark.filterwarnings("ignore:Estimated shape")
def test_arviz_compares_lengths(lines):
    terms = lines[3].elpd()
    assert terms.kind == "prequential"
    assert terms.elpd == pytest.approx(-lines[3].nats)
    np.testing.assert_array_equal(terms.elpd_i.values, -lines[3].rows)
    table = az.compare({"two": lines[2].elpd(), "three": terms})
    assert list(table.index) == ["three", "two"]
    assert "elpd_prequential" in str(terms)
    trace = bs.sample(regression(), 100, tune=100, chains=2, random_seed=1, quiet=True)
    with pytest.raises(ValueError, match="incompatible"):
        az.compare({"three": terms, "leave-one-out": az.loo(trace, pointwise=True)})


def test_terms_are_by_row_of_the_data():
    order = np.random.default_rng(3).permutation(len(HEADS))
    found = prequential_of(coin(), order=order, effort=0.3, random_seed=1)
    np.testing.assert_array_equal(found.elpd().elpd_i.values[order], -found.rows)


def test_particles_that_do_not_move_are_doubted(monkeypatch):
    monkeypatch.setattr(WeightedRows, "move", lambda self, *_: Moves(0.0, 1.0, 1.0))
    with pytest.warns(SamplingWarning, match="have not moved"):
        found = prequential_of(located(), effort=0.3, random_seed=1)
    assert not found.reliable
    assert found.elpd().warning


def test_moves_leave_the_posterior_as_it_is():
    rows, rng = WeightedRows(located()), np.random.default_rng(1)
    weights = (np.arange(len(NUMBERS)) < 5).astype(float)
    variance = 1.0 / (0.01 + 5.0)
    mean = variance * NUMBERS[:5].sum()
    particles = rng.normal(mean, np.sqrt(variance), size=(4000, 1))
    assert rows.move(particles, weights, rng).correlation < CLOSE
    assert stats.kstest(particles[:, 0], stats.norm(mean, np.sqrt(variance)).cdf).pvalue > 1e-3
    exact = stats.norm.logpdf(NUMBERS, particles[:7], 1.0)
    np.testing.assert_allclose(rows.terms(particles[:7]), exact, rtol=1e-10)


def test_weights_with_a_heavy_tail_are_not_usable():
    logs = np.random.default_rng(1).exponential(size=4000)
    assert _Weights.of(0.2 * logs).usable
    assert not _Weights.of(0.95 * logs).usable
    assert _Weights.of(np.full(9, -np.inf)) == (np.inf, 0.0)


# --- refusals ---------------------------------------------------------------------------------------------------------


def made(declare):
    with pm.Model() as model:
        declare()
    return model


def series():
    x = pm.Normal("x")
    pm.GaussianRandomWalk("y", x, 1.0, init_dist=pm.Normal.dist(), observed=NUMBERS)


def two():
    x = pm.Normal("x")
    pm.Normal("y", x, observed=NUMBERS)
    pm.Normal("z", x, observed=NUMBERS)


def discrete():
    pm.Normal("y", pm.Poisson("n", 3.0), observed=NUMBERS)


def potential():
    x = pm.Normal("x")
    pm.Potential("more", -(x**4))
    pm.Normal("y", x, observed=NUMBERS)


def flat():
    pm.Normal("y", pm.Flat("x"), observed=NUMBERS)


def ordered():
    x = pm.Normal("x", shape=2, transform=pm.distributions.transforms.ordered, initval=[-1.0, 1.0])
    pm.NormalMixture("y", [0.5, 0.5], x, 1.0, observed=NUMBERS)


def joint():
    pm.MvNormal("y", pm.Normal("x") + pt.zeros(30), np.eye(30) + 0.5, observed=NUMBERS)


def impossible():
    pm.Uniform("y", 0.0, pm.Uniform("top", 1.0, 2.0), observed=[0.5, 3.0])


def missing():
    pm.Normal("y", pm.Normal("x"), observed=np.ma.masked_invalid([1.0, np.nan, 2.0]))


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
@pytest.mark.parametrize(
    ("declare", "error", "said"),
    [
        (series, ValueError, "rows are not independent"),
        (joint, ValueError, "rows are not independent"),
        (two, ValueError, "one observed variable, .* got y, z"),
        (lambda: pm.Normal("x"), ValueError, "one observed variable, .* got none"),
        (lambda: pm.Normal("y", observed=NUMBERS), ValueError, "no free variable"),
        (discrete, TypeError, "n is discrete"),
        (potential, ValueError, "potential more"),
        (flat, ValueError, "prior of x is flat"),
        (ordered, ValueError, "ordered transform"),
        (impossible, ValueError, "row 1 has no probability"),
        (missing, ValueError, "missing values"),
    ],
)
def test_models_without_rows_are_refused(declare, error, said):
    with pytest.raises(error, match=said):
        prequential_of(made(declare), effort=0.2, random_seed=1)


def test_joint_models_of_the_package_are_refused():
    with pytest.raises(ValueError, match="one joint normal"):
        prequential_of(bs.models.gp(np.arange(6.0)[:, None], np.zeros(6)))


def test_bad_arguments():
    for order in ([0, 1], np.zeros(len(HEADS), int), np.arange(len(HEADS)) + 0.5):
        with pytest.raises(ValueError, match="permutation"):
            prequential_of(coin(), order=order)
    with pytest.raises(ValueError, match="effort"):
        prequential_of(coin(), effort=0.0)
    with pytest.raises(TypeError):
        prequential_of("model")
    assert prequential_length.LARGEST_K == 0.7
