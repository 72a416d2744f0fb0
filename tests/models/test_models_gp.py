"""The Gaussian process as a PyMC model: its density is the one written out, its draws are its own, NUTS agrees.

Guards `bayessel.models._gp`, `bayessel.models._gp_draws`, `bayessel.models._labels`.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.covariance import Linear, Matern52, Noise, Prior, Standard
from bayessel.covariance.prior import UnknownMeanPrior
from bayessel.errors import DataMismatchError
from bayessel.models._gp_draws import FunctionAt
from bayessel.models._gp_op import noise_variance
from bayessel.samplers.run.fingerprint import fingerprints
from bayessel.samplers.run.identity import check_same

PYTHON = {"mode": "FAST_COMPILE"}


def problem(rng, n=20, m=2):
    X = rng.standard_normal((n, m))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def written_out(theta, X, t):
    """The model of Rasmussen (1996), ch. 4, from SciPy's distributions; θ = log(v0, r2, w, a0, a1)."""
    m = X.shape[1]
    v0, r2, *w, a0, a1 = np.exp(theta)
    squares = np.sum(w * (X[:, None] - X[None]) ** 2, axis=-1)
    Q = a0 + a1 * X @ X.T + v0 * np.exp(-0.5 * squares) + r2 * np.eye(len(X))
    likelihood = stats.multivariate_normal(np.zeros(len(X)), Q).logpdf(t)
    prior = stats.norm(-1.0, 1.0).logpdf(theta[0]) + stats.norm(-3.0, 3.0).logpdf(theta[[1, -2, -1]]).sum()
    # 1/w ~ Gamma(1/2, rate 1/(2m²)); d(1/w)/dθ = 1/w
    precision = np.exp(-theta[2:-2])
    prior += np.sum(stats.gamma(0.5, scale=2.0 * m**2).logpdf(precision) - theta[2:-2])
    return likelihood + prior


def test_the_density_written_out(rng):
    X, t = problem(rng)
    model = bs.models.gp(X, t)
    logp, both = model.compile_logp(**PYTHON), model.logp_dlogp_function(ravel_inputs=True, **PYTHON)
    for _ in range(3):
        theta = Standard().start(2) + 0.5 * rng.standard_normal(6)
        assert_allclose(logp({"theta": theta}), written_out(theta, X, t), rtol=1e-9)
        value, gradient = both._pytensor_function(theta)
        assert_allclose(value, written_out(theta, X, t), rtol=1e-9)
        steps = 1e-5 * np.eye(6)
        differences = [(written_out(theta + e, X, t) - written_out(theta - e, X, t)) / 2e-5 for e in steps]
        assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)


def test_names_and_data(rng):
    X, t = problem(rng)
    model = bs.models.gp(X, t)
    assert list(model.coords["parameter"]) == list(Standard().names(2))
    assert [v.name for v in model.free_RVs] == ["theta"] and [v.name for v in model.observed_RVs] == ["t", "t_rest"]
    assert [v.name for v in model.deterministics] == ["noise", "length"]
    theta = Standard().start(2)
    beside = [model["noise"], model["length"]]
    noise, length = model.compile_fn(beside, inputs=[model["theta"]], **PYTHON)({"theta": theta})
    assert_allclose(noise**2, Standard().noise(theta, 2))
    assert_allclose(length, Standard().relevance(theta, 2) ** -0.5)
    assert_allclose(model.initial_point()["theta"], Standard().start(2))
    other_X, other_t = problem(rng, n=9)
    with model:
        pm.set_data({"X": other_X, "t_data": other_t}, coords={"row": np.arange(9)})
    theta = Standard().start(2)
    assert_allclose(model.compile_logp(**PYTHON)({"theta": theta}), written_out(theta, other_X, other_t), rtol=1e-9)


def test_automatic_steps_know_what_suits_it(rng):
    model = bs.models.gp(*problem(rng))
    [step] = bs.steps(model, compile_kwargs=PYTHON)
    assert step.mass == "dense" and step.jumps and step.updates_per_draw == "auto"
    [step] = bs.steps(model, compile_kwargs=PYTHON, mass="diag", jumps=False)
    assert step.mass == "diag" and not step.jumps
    with model:
        pm.Normal("beside")  # another variable, which says nothing
    [step] = bs.steps(model, assigned=pm.Slice([model["beside"]], model=model), compile_kwargs=PYTHON)[1:]
    assert step.mass == "dense"


def test_a_prior_of_ones_own(rng):
    X, t = problem(rng, m=1)
    prior = Prior.normal(0.0, 2.0, 5)
    model = bs.models.gp(X[:, 0], t, prior=prior)
    theta = Standard().start(1)
    expected = bs.gp.log_marginal(theta, X, t) + prior.log_density(theta)
    assert_allclose(model.compile_logp(**PYTHON)({"theta": theta}), expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"prior must have 5 entries .*log v0.*, got 2"):
        bs.models.gp(X, t, prior=Prior.normal(0.0, 1.0, 2))


def test_draws_from_the_prior(rng):
    X, t = problem(rng, n=4)
    model = bs.models.gp(X, t)
    with model:
        draws = pm.draw([model["theta"], model["t"]], 4000, random_seed=int(rng.integers(2**31)), **PYTHON)
    theta, targets = draws
    assert theta.shape == (4000, 6) and targets.shape == (4000, 4)
    # 1/w ~ Gamma(1/2) is m² times a chi-squared variable of one degree of freedom
    scaled = np.exp(-theta[:, 2:4]) / 4.0
    for found, law in [
        (theta[:, 0], stats.norm(-1.0, 1.0)),
        (theta[:, 1], stats.norm(-3.0, 3.0)),
        (theta[:, 5], stats.norm(-3.0, 3.0)),
        (scaled[:, 0], stats.chi2(1)),
        (scaled[:, 1], stats.chi2(1)),
    ]:
        assert stats.kstest(found, law.cdf).pvalue > 1e-4
    # targets whitened by the covariance matrix of their own θ are unit normal
    white = np.array(
        [np.linalg.solve(np.linalg.cholesky(covariance_of(p, X)), y) for p, y in zip(theta, targets, strict=True)]
    )
    assert stats.kstest(white.ravel(), "norm").pvalue > 1e-4


def covariance_of(theta, X):
    covariance = Standard()
    return covariance.matrix(theta, X) + covariance.noise(theta, X.shape[1]) * np.eye(len(X))


def test_the_function_given_targets_beside_it(rng):
    X, new = rng.standard_normal((3, 2)), rng.standard_normal((2, 2))
    seen, theta = rng.standard_normal(3), Standard().start(2)
    K = Standard().matrix(theta, np.vstack([X, new]))
    Q = covariance_of(theta, X)
    gain = np.linalg.solve(Q, K[:3, 3:]).T
    op = FunctionAt(Standard())
    for given, mean, rest in ((0, np.zeros(2), K[3:, 3:]), (1, gain @ seen, K[3:, 3:] - gain @ K[:3, 3:])):
        # linear in z: its columns are those of a root of the covariance
        at = [op.draw(theta, X, seen, new, np.int64(given), z) for z in (np.zeros(2), *np.eye(2))]
        B = np.array(at[1:]).T - at[0][:, None]
        assert_allclose(at[0], mean, atol=1e-12)
        assert_allclose(B @ B.T, rest, atol=1e-10)


def test_noise_that_is_called_otherwise(rng):
    class Rough(Noise):
        def names(self, m):
            return ("rough",)

    for covariance, theta in ((Rough(), [0.3]), (Noise() + Noise(), [0.3, 0.1])):
        found = noise_variance(covariance, pt.as_tensor(np.array(theta)), 2)
        assert_allclose(found.eval(mode="FAST_COMPILE"), np.exp(theta).sum())


def test_another_covariance_and_noise_where_it_has_none(rng):
    X, t = problem(rng)
    covariance = Matern52(ard=False) + Linear()
    model = bs.models.gp(X, t, covariance)
    names = list(model.coords["parameter"])
    assert names == list((covariance + Noise()).names(2)) and "log r2" in names
    theta = (covariance + Noise()).start(2)
    v, w, a1, r2 = (np.exp(theta[names.index(name)]) for name in ("log v0", "log w", "log a1", "log r2"))
    s = np.sqrt(5.0 * w * np.sum((X[:, None] - X[None]) ** 2, axis=-1))
    Q = v * (1.0 + s + s**2 / 3.0) * np.exp(-s) + a1 * X @ X.T + r2 * np.eye(len(X))
    expected = stats.multivariate_normal(np.zeros(len(X)), Q).logpdf(t)
    expected += (covariance + Noise()).prior(2).log_density(theta)
    assert_allclose(model.compile_logp(**PYTHON)({"theta": theta}), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("X", "t", "said"),
    [
        ([[1.0], [np.nan]], [0.0, 1.0], "X must be finite"),
        ([[1.0], [2.0]], [0.0, np.inf], "t must be finite"),
        ([[1.0], [2.0]], [0.0], "t must have one value per row"),
        (np.empty((0, 2)), [], "at least one row"),
    ],
)
def test_bad_data(X, t, said):
    with pytest.raises(ValueError, match=said):
        bs.models.gp(X, t)


def test_a_store_tells_another_covariance_or_prior_from_other_data(rng):
    X, t = problem(rng)

    def header(*arguments, **options):
        return dict(zip(("model", "data"), fingerprints(bs.models.gp(*arguments, **options)), strict=True))

    wide = Prior(*(getattr(Standard().prior(2), part) for part in ("is_normal", "first")), np.full(6, 9.0))
    stored = header(X, t)
    with pytest.raises(ValueError, match="the model is another one"):
        check_same(stored | {"variables": {}}, header(X, t, Matern52() + Linear() + Noise()) | {"variables": {}}, "st")
    for other in (header(X, t, prior=wide), header(X, t + 1.0)):
        assert other["model"] == stored["model"]
        with pytest.raises(DataMismatchError, match="other data, or other arrays in the model, such as"):
            check_same(stored, other, "st")


def test_the_prior_with_an_unknown_mean_is_the_one_on_arrays(rng):
    X, t = problem(rng)
    prior = UnknownMeanPrior(Standard().prior(2), 1.5)
    model = bs.models.gp(X, t, prior=prior)
    theta = Standard().start(2) + 0.3 * rng.normal(size=6)
    expected = bs.gp.log_marginal(theta, X, t) + prior.log_density(theta)
    assert_allclose(model.compile_logp(**PYTHON)({"theta": theta}), expected, rtol=1e-9)
    draws = pm.draw(model["theta"], 400, random_seed=1, **PYTHON)
    assert draws.shape == (400, 6)
    ours = prior.draw(rng, 400)
    assert stats.ks_2samp(draws[:, 2], ours[:, 2]).pvalue > 1e-3
