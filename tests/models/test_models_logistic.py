"""The logistic PyMC model: its density against SciPy's, its posterior against quadrature, from a classifier.

Guards `bayessel.models._logistic`, `bayessel.models._priors`.
"""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

import bayessel as bs

ONCE = "FAST_COMPILE"


def data(rng, n=30, m=3):
    Phi = rng.normal(size=(n, m))
    return Phi, (rng.uniform(size=n) < expit(Phi @ np.array([1.5, -1.0, 0.0])[:m])).astype(float)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("alpha", [None, 0.7, [0.5, 2.0, 1.0]])
def test_the_density_is_the_sum_of_its_parts(rng, bias, alpha):
    Phi, y = data(rng)
    w, b, a = rng.normal(size=3), -0.4, 1.3
    model = bs.models.logistic(Phi, y, alpha, bias=bias, bias_scale=3.0, alpha_shape=1.5, alpha_rate=0.7)
    used = a if alpha is None else np.asarray(alpha)
    expected = stats.bernoulli(expit(Phi @ w + (b if bias else 0.0))).logpmf(y).sum()
    expected += stats.norm(0.0, np.asarray(used) ** -0.5).logpdf(w).sum()
    point = {"w": w}
    if bias:
        point["b"] = b
        expected += stats.norm(0.0, 3.0).logpdf(b)
    if alpha is None:
        point["alpha_log__"] = np.log(a)
        expected += stats.gamma(1.5, scale=1 / 0.7).logpdf(a) + np.log(a)
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected, rtol=1e-9)


def test_labels_of_either_sort_and_names(rng):
    Phi, y = data(rng)
    one = bs.models.logistic(Phi, y, 1.0)
    other = bs.models.logistic(Phi, 2 * y - 1, 1.0, names=["p", "q", "r"])
    assert (one["y_data"].get_value() == other["y_data"].get_value()).all()
    assert tuple(other.coords["basis"]) == ("p", "q", "r")


def test_the_default_prior_knows_no_units(rng):
    Phi, y = data(rng)
    w = rng.normal(size=3)
    values = []
    for scale in (1.0, 1e-3, 1e4):
        point = {"w": w / scale, "b": 0.1, "alpha_log__": np.log(0.8 * scale**2)}
        logp = bs.models.logistic(scale * Phi, y).compile_logp(mode=ONCE)(point)
        values.append(logp - 3 * np.log(scale))  # the density of w is per unit of w
    assert_allclose(values, values[0], rtol=1e-9)


@pytest.mark.parametrize("m", [1, 3, 40])
def test_the_default_prior_is_one_weight_of_the_size_that_gives_log_odds_of_two(rng, m):
    """However many functions there are: M weights of that size make up log odds of 2, root mean square over rows."""
    Phi = rng.normal(size=(500, m)) * rng.uniform(0.1, 10.0, size=m)
    y = (rng.random(500) < 0.5).astype(float)
    rate = 1.0 / pm.draw(bs.models.logistic(Phi, y)["alpha"].owner.inputs[-1])
    size = np.sqrt(2.0 * rate)
    log_odds = Phi @ (size * rng.choice([-1.0, 1.0], size=(m, 4000)))
    assert_allclose(np.sqrt(np.mean(log_odds**2)), 2.0, rtol=0.03)


@pytest.mark.filterwarnings("ignore:NO_INFORMATION:bayessel.errors.NumericalWarning")
def test_the_classifier_declares_its_functions(rng):
    X = rng.normal(size=(60, 2))
    y = np.where((X**2).sum(axis=1) < 1.2, "in", "out")
    fitted = bs.LOOMIClassifier(width=1.5).fit(X, y)
    model = fitted.to_pymc(bias=False)
    assert_allclose(model["Phi"].get_value(), fitted.dictionary_.design(X)[:, fitted.basis_], rtol=1e-12)
    assert model["y_data"].get_value().tolist() == (y == "out").astype(int).tolist()
    assert list(model.coords["basis"]) == [fitted.dictionary_.names[i] for i in fitted.basis_]
    assert {v.name for v in model.free_RVs} == {"w", "alpha"}
    with pytest.raises(ValueError, match="two classes"):
        bs.LOOMIClassifier().fit(X, np.arange(60) % 3).to_pymc()


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"y": np.arange(30.0)}, ValueError, "labels 0 and 1"),
        ({"y": np.ones(4)}, ValueError, "one value per row"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"bias": "no"}, TypeError, "bias"),
        ({"bias_scale": 0.0}, ValueError, "bias_scale"),
        ({"names": ["a"]}, ValueError, "names"),
    ],
)
def test_bad_input_is_named(rng, change, error, said):
    Phi, y = data(rng)
    with pytest.raises(error, match=said):
        bs.models.logistic(**({"Phi": Phi, "y": y} | change))


@pytest.mark.slow
def test_the_posterior_is_that_of_quadrature(rng):
    Phi, y = data(rng, 40, 1)
    w = np.linspace(-6, 10, 4001)
    log_density = stats.norm(0, 1).logpdf(w) + stats.bernoulli(expit(Phi * w)).logpmf(y[:, None]).sum(axis=0)
    density = np.exp(log_density - log_density.max())
    density /= np.trapezoid(density, w)
    mean = np.trapezoid(w * density, w)
    sd = np.sqrt(np.trapezoid((w - mean) ** 2 * density, w))
    model = bs.models.logistic(Phi, y, 1.0, bias=False)
    trace = pm.sample(2000, tune=500, chains=2, cores=1, random_seed=1, model=model, progressbar=False)
    draws = trace["posterior"]["w"].values.ravel()
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(1000)
    assert draws.std() == pytest.approx(sd, rel=0.1)
