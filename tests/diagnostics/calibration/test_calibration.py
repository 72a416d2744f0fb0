"""SBC and Geweke's test: an exact sampler passes, wrong ones fail, and the numbers behind them are right.

Guards `bayessel.diagnostics.calibration._geweke`, `bayessel.diagnostics.calibration._joint`,
`bayessel.diagnostics.calibration._pictures`, `bayessel.diagnostics.calibration._replications`,
`bayessel.diagnostics.calibration._sbc`, `bayessel.diagnostics.calibration._uniformity`.
"""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pymc.step_methods.compound import BlockedStep, CompoundStep, StepMethodState
from pymc.util import get_random_generator, get_value_vars_from_user_vars
from scipy import stats

from bayessel.diagnostics.calibration import geweke, sbc
from bayessel.diagnostics.calibration._geweke import compare_means
from bayessel.diagnostics.calibration._joint import JointModel
from bayessel.diagnostics.calibration._sbc import SBC, lag_one
from bayessel.diagnostics.calibration._uniformity import SIMULATIONS, band, bin_edges, chi_square, ecdf, rank

N, MEAN, SD, NOISE = 2, 1.0, 1.0, 1.0
QUICK = {"compile_kwargs": {"mode": "FAST_COMPILE"}, "progressbar": False, "n_jobs": 1}


class Conjugate(BlockedStep):
    """mu | y by the closed form, or by one of several mistakes; told of new data or not."""

    name, _state_class = "conjugate", StepMethodState

    def __init__(self, vars, *, mistake="", model=None, rng=None, blocked=True):
        self.vars = get_value_vars_from_user_vars(vars, model)
        self.model, self.mistake, self.rng = model, mistake, get_random_generator(rng)
        self.setups = 0

    def setup_chain(self, rng, tune, draws):
        super().setup_chain(rng, tune, draws)
        self.setups += 1
        self.cached = self.model["y_data"].get_value().sum()

    def step(self, point):
        total = self.cached if self.mistake == "stale data" else self.model["y_data"].get_value().sum()
        precision = SD**-2 + N * NOISE**-2
        mean, sd = (SD**-2 * MEAN + NOISE**-2 * total) / precision, precision**-0.5
        if self.mistake == "prior only":
            mean, sd = MEAN, SD
        elif self.mistake == "too narrow":
            sd *= 0.75
        elif self.mistake == "shifted":
            mean += 0.4 * sd
        elif self.mistake == "never moves":
            return point, [{}]
        return {**point, "mu": np.asarray(mean + sd * self.rng.standard_normal())}, [{}]


class Told(Conjugate):
    def data_changed(self):
        pass


@pytest.fixture(scope="module")
def normal():
    with pm.Model() as model:
        y = pm.Data("y_data", np.arange(float(N)))
        mu = pm.Normal("mu", MEAN, SD)
        pm.Deterministic("twice", 2.0 * mu)
        pm.Normal("y", mu, NOISE, shape=N, observed=y)
    return model


def factory(mistake="", kind=Told):
    return lambda model: [kind([model["mu"]], mistake=mistake, model=model)]


MISTAKES = ["prior only", "too narrow", "shifted", "never moves"]


# --- simulation-based calibration -----------------------------------------------------------------------------------


def ranks_of(model, make_steps, replications=200, seed=1, **arguments):
    return sbc(model, make_steps, replications, 31, thin=1, tune=1, random_seed=seed, **QUICK, **arguments)


def test_an_exact_sampler_has_uniform_ranks(normal):
    result = ranks_of(normal, factory(), include=["twice"])
    assert result.ok and "Calibrated as far as 200 replications" in result.text
    assert result.names == ("mu", "twice", "log prior", "log likelihood")
    assert result.ranks.shape == (200, 4) and result.ranks.min() >= 0 and result.ranks.max() == 31
    assert_array_equal(result.ranks[:, 0], result.ranks[:, 1])
    assert np.abs(result.similarity).max() < 0.05
    assert result.table.loc["mu", "ecdf_p"] == ecdf(result.ranks[:, 0], 32)
    assert_array_equal(normal["y_data"].get_value(), np.arange(float(N)))  # its own data are back


@pytest.mark.parametrize(
    ("mistake", "seen_in", "said"),
    [
        ("prior only", "log likelihood", "draws are too low"),
        ("too narrow", "mu", "pile up at the ends"),
        ("shifted", "mu", "draws are too high"),
        ("never moves", "mu", "raise thin"),
    ],
)
def test_wrong_samplers_have_not(normal, mistake, seen_in, said):
    # 200 see a quarter of the spread missing in two of three runs only
    result = ranks_of(normal, factory(mistake), 500 if mistake == "too narrow" else 200)
    assert not result.ok and seen_in in result.failed
    assert "Not calibrated" in str(result) and said in str(result)
    if mistake == "prior only":  # the parameters alone cannot see it
        assert "mu" not in result.failed


def test_same_seed_same_ranks(normal):
    one, other, third = (ranks_of(normal, factory(), 10, seed) for seed in (3, 3, 4))
    assert_array_equal(one.ranks, other.ranks)
    assert (one.ranks != third.ranks).any()


def test_an_interrupted_run_gives_what_it_has(normal):
    class Impatient(Told):
        def setup_chain(self, rng, tune, draws):
            super().setup_chain(rng, tune, draws)
            if self.setups > 25:
                raise KeyboardInterrupt

    result = ranks_of(normal, factory(kind=Impatient))
    assert len(result.ranks) == 25 and "25 replications" in result.text


def test_pictures_of_ranks(normal, tmp_path):
    result = ranks_of(normal, factory("too narrow"), 50)
    figure = result.plot()
    assert len(figure.axes) == 6 and figure.axes[0].get_title(loc="left").startswith(str(result.table.index[0]))
    figure.savefig(tmp_path / "ranks.png")
    assert len(result.plot(["mu"]).axes) == 2
    with pytest.raises(ValueError, match="no quantity is called 'nu'"):
        result.plot(["nu"])


# --- ranks ----------------------------------------------------------------------------------------------------------


def test_rank_counts_draws_below_and_breaks_ties_evenly(rng):
    draws = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    found = np.array([rank(draws, np.array([2.5, 0.0]), rng) for _ in range(4000)])
    assert (found[:, 0] == 2).all()
    assert chi_square(found[:, 1], 4) > 1e-3


@pytest.mark.parametrize("draws", [3, 15, 63])
def test_the_spread_of_uniform_ranks_is_one_however_few_draws(draws):
    ranks = np.repeat(np.arange(draws + 1), 5)[:, None]
    row = SBC(ranks, ("x",), draws, 0.01, np.zeros(1), 0.0).table.loc["x"]
    assert_allclose([row["mean_rank"], row["rank_sd"]], [0.5, 1.0], rtol=1e-12)


@pytest.mark.parametrize(("n", "values"), [(500, 64), (100, 10), (60, 100), (37, 7)])
def test_p_values_are_uniform_under_uniform_ranks(rng, n, values):
    # the ECDF p-value is discrete and so conservative at worst
    p = np.array([[f(rng.integers(0, values, n), values) for f in (chi_square, ecdf)] for _ in range(400)])
    assert stats.kstest(p[:, 0], "uniform").statistic < 0.13  # counts are whole numbers, hence steps
    assert stats.kstest(p[:, 1], "uniform", alternative="greater").pvalue > 1e-3
    assert stats.kstest(p[:, 1], "uniform").statistic < 0.13


def test_p_values_see_slopes_and_humps(rng):
    n, values = 500, 64
    slope = np.minimum((64 * rng.beta(1.0, 1.3, n)).astype(int), 63)
    hump = np.minimum((64 * rng.beta(1.4, 1.4, n)).astype(int), 63)
    for ranks in (slope, hump):
        assert max(chi_square(ranks, values), ecdf(ranks, values)) < 0.01


def test_band_and_p_value_say_the_same(rng):
    n, values, level = 200, 32, 0.05
    z, lower, upper = band(n, values, level)
    outside = 0
    for _ in range(400):
        ranks = rng.integers(0, values, n)
        counts = np.cumsum(np.bincount(ranks, minlength=values))[:-1]
        out = bool(((counts < lower) | (counts > upper)).any())
        assert out == (ecdf(ranks, values) <= level * (1 + 1 / SIMULATIONS)) or abs(ecdf(ranks, values) - level) < 0.01
        outside += out
    assert outside <= 400 * level + 4 * np.sqrt(400 * level)
    assert (lower <= n * z).all() and (upper >= n * z).all()


def test_bins_are_equal_and_full_enough():
    for n, values in [(500, 64), (500, 100), (1000, 1000), (60, 64), (20, 3), (500, 61)]:
        edges = bin_edges(n, values)
        assert edges[0] == 0 and edges[-1] == values and (np.diff(edges) > 0).all()
        assert len(edges) == 3 or n / (len(edges) - 1) >= 10
        if values != 61:
            assert len(set(np.diff(edges))) == 1 or values == 3


def test_autocorrelation_of_neighbours_is_that_of_the_process(rng):
    found = []
    for _ in range(1000):
        x = np.empty((31, 2))
        x[0] = rng.standard_normal(2)
        for k in range(1, 31):
            x[k] = [0.6, 0.0] * x[k - 1] + [0.8, 1.0] * rng.standard_normal(2)
        found.append(lag_one(x))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(1000)
    assert abs(mean[1]) < 4 * error[1]
    assert abs(mean[0] - 0.6) < 0.1
    assert_array_equal(lag_one(np.ones((5, 1))), [1.0])


# --- Geweke's test --------------------------------------------------------------------------------------------------


def joint_of(model, make_steps, draws=500, seed=1, **arguments):
    arguments = {"chains": 4, "tune": 0, "marginal": 2000} | arguments
    return geweke(model, make_steps, draws, random_seed=seed, **arguments, **QUICK)


@pytest.mark.parametrize("kind", [Told, Conjugate])
def test_the_simulators_agree_for_an_exact_sampler(normal, kind):
    # one kind is told of new data, the other has to be set up again
    steps = []

    def make_steps(model):
        steps.append(CompoundStep(factory(kind=kind)(model)))
        return steps[0]

    result = joint_of(normal, make_steps, draws=500 if kind is Told else 300)
    assert result.ok, result.text
    assert "The two simulators agree" in result.text
    assert set(result.names) == {"mu", "log prior", "log likelihood", "mean of y", "mean square of y"}
    assert (result.table["ess"] <= 4 * result.successive.shape[1] * 1.5).all()
    assert (steps[0].methods[0].setups > 100) == (kind is Conjugate)


@pytest.mark.parametrize("mistake", [*MISTAKES, "stale data"])
def test_wrong_samplers_do_not_leave_the_joint_distribution(normal, mistake):
    result = joint_of(normal, factory(mistake))
    assert not result.ok
    if mistake == "never moves":  # it cannot be refuted, but nothing can be said for it either
        assert "mu" in result.unresolved and "No verdict" in result.text
    else:
        assert result.failed and "does not leave the posterior invariant" in result.text
    if mistake == "prior only":
        assert all(name.startswith("log likelihood") for name in result.failed)


def test_an_interrupted_test_counts_its_finished_chains(normal):
    class Impatient(Told):
        def setup_chain(self, rng, tune, draws):
            super().setup_chain(rng, tune, draws)
            if self.setups > 3:
                raise KeyboardInterrupt

    assert joint_of(normal, factory(kind=Impatient), draws=50).successive.shape[0] == 3
    assert_array_equal(normal["y_data"].get_value(), np.arange(float(N)))


def test_pictures_of_the_joint_distribution(normal, tmp_path):
    result = joint_of(normal, factory("shifted"), draws=200)
    figure = result.plot()
    assert len(figure.axes) == 6
    figure.savefig(tmp_path / "joint.png")


def test_z_scores_know_autocorrelation(rng):
    def ar(phi, shift=0.0):
        x = rng.standard_normal((4, 1500))
        for k in range(1, 1500):
            x[:, k] = phi * x[:, k - 1] + np.sqrt(1 - phi**2) * x[:, k]
        return x + shift

    z = np.array([compare_means(rng.standard_normal(3000), ar(0.9))[4] for _ in range(100)])
    assert abs(z.mean()) < 4 / np.sqrt(100) and 0.8 < z.std() < 1.3
    ess = compare_means(rng.standard_normal(3000), ar(0.9))[3]
    assert 0.6 < ess / (6000 * 0.1 / 1.9) < 1.6
    assert abs(compare_means(rng.standard_normal(3000), ar(0.5, 0.2))[4]) > 4
    assert (
        compare_means(np.ones(5), np.ones((2, 5)))[5] == 1.0 and compare_means(np.ones(5), np.zeros((2, 5)))[5] == 0.0
    )


# --- the model as a joint distribution ------------------------------------------------------------------------------


def test_draws_points_and_quantities_belong_together(rng):
    with pm.Model() as model:
        y = pm.Data("y_data", np.array([1, 2, 3]))  # whole numbers, cast on the way
        rate = pm.Gamma("rate", 3.0, 2.0)
        x = pm.Normal("x", rate, 0.1, shape=(2, 1))
        pm.Deterministic("sum", x.sum())
        pm.Poisson("y", rate, shape=3, observed=y)
    joint = JointModel(model, rng, include=["sum"], compile_kwargs={"mode": "FAST_COMPILE"})
    assert joint.names == ["rate", "x[0, 0]", "x[1, 0]", "sum", "log prior", "log likelihood"]
    point, data = joint.draw()
    assert list(point) == list(model.initial_point())
    joint.set_data(data)
    values, free = joint.look(point)
    lam, a, b = values[:3]
    assert_allclose([lam, a + b], [np.exp(point["rate_log__"]), values[3]])
    assert_allclose(values[4], stats.gamma(3, scale=0.5).logpdf(lam) + stats.norm(lam, 0.1).logpdf([a, b]).sum())
    assert_allclose(values[5], stats.poisson(lam).logpmf(data[0]).sum())
    many = np.array([joint.new_data(free)[0] for _ in range(500)])
    assert abs(many.mean() - lam) < 5 * np.sqrt(lam / 1500)
    rates = np.array([np.exp(joint.draw()[0]["rate_log__"]) for _ in range(500)])
    assert stats.kstest(rates, stats.gamma(3, scale=0.5).cdf).pvalue > 1e-3


def test_models_and_steps_that_cannot_be_tested_are_refused(normal):
    y = np.zeros(3)
    with pm.Model() as inlined:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=y)
    with pytest.raises(TypeError, match=r"observed data of y must be pm.Data"):
        ranks_of(inlined, factory())
    with pm.Model() as potential:
        mu = pm.Normal("mu")
        pm.Potential("extra", -(mu**2))
        pm.Normal("y", mu, 1.0, observed=pm.Data("y_data", y))
    with pytest.raises(ValueError, match=r"potentials \(extra\)"):
        ranks_of(potential, factory())
    with pm.Model() as nothing:
        pm.Normal("mu")
    with pytest.raises(ValueError, match="free variables and observed data"):
        joint_of(nothing, factory())
    with pm.Model() as wide:
        pm.Normal("y", 0.0, tau=pm.Gamma("mu", 1e-6, 1e-6), observed=pm.Data("y_data", y))
    with pytest.raises(ValueError, match=r"not finite: give the model priors"), np.errstate(all="ignore"):
        for seed in range(5):
            ranks_of(wide, lambda model: [], seed=seed)
    with pytest.raises(ValueError, match="no step moves mu"):
        ranks_of(normal, lambda model: [])
    with pytest.raises(TypeError, match="must return step methods of PyMC, got str"):
        ranks_of(normal, lambda model: "nuts")


@pytest.mark.parametrize(
    ("test", "arguments", "text"),
    [
        (sbc, {"replications": 3}, "replications must be at least 10"),
        (sbc, {"draws": 0}, "draws must be at least 3"),
        (sbc, {"thin": 0}, "thin must be at least 1"),
        (sbc, {"level": 2.0}, "level must be between"),
        (geweke, {"draws": 1}, "draws must be at least 10"),
        (geweke, {"chains": 1}, "chains must be at least 2"),
        (geweke, {"level": 0.0}, "level must be between"),
    ],
)
def test_bad_arguments_are_refused(normal, test, arguments, text):
    with pytest.raises(ValueError, match=text):
        test(normal, factory(), **arguments)


def test_a_model_with_a_density_of_its_own_is_tested_in_other_processes():
    with pm.Model() as model:
        t = pm.Data("t_data", np.array(0.5))
        w = pm.Normal("w")
        pm.CustomDist("t", w, logp=lambda value, mean: -0.5 * (value - mean) ** 2, random=_around, observed=t)
    found = [
        sbc(model, _metropolis, replications=10, draws=7, tune=20, thin=1, random_seed=1, **QUICK | {"n_jobs": jobs})
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(found[0].ranks, found[1].ranks)


def _around(mean, rng=None, size=None):
    return rng.normal(mean, 1.0, size=size)


def _metropolis(model):
    return pm.Metropolis(model=model)
