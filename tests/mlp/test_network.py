"""The network on arrays: outputs and derivatives term by term, compiled passes, priors that do not depend on H.

Guards `bayessel.mlp.architecture`, `bayessel.mlp.compiled_passes`, `bayessel.mlp.fast_tanh`, `bayessel.mlp.prior`.
"""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from bayessel.mlp import Architecture, Gamma, NetworkPrior, Weights, compiled_passes, forward
from bayessel.mlp.architecture import backward, hidden_units, pack
from bayessel.mlp.fast_tanh import tanh
from tests.oracles import network_passes
from tests.oracles.monte_carlo import assert_means

SIZES = [(7, 3, 4, 2), (1, 3, 4, 1), (5, 1, 1, 1), (4, 2, 1, 3), (1, 1, 1, 1)]  # n, D, H, K


def written_out(vector, X, D, H, K):
    """f_k(x) = Σ_h v_hk tanh(Σ_i x_i u_ih + a_h) + Σ_i x_i w_ik + b_k, one number after the other."""
    a, u = vector[:H], vector[H : H + D * H]
    b = vector[H + D * H : H + D * H + K]
    v = vector[H + D * H + K : H + D * H + K + H * K]
    w = vector[H + D * H + K + H * K :]
    f = np.zeros((len(X), K), dtype=vector.dtype)
    for row, x in enumerate(X):
        for k in range(K):
            f[row, k] = b[k] + sum(x[i] * w[i * K + k] for i in range(D))
            for h in range(H):
                f[row, k] += v[h * K + k] * np.tanh(a[h] + sum(x[i] * u[i * H + h] for i in range(D)))
    return f


@pytest.mark.parametrize(("n", "D", "H", "K"), SIZES)
def test_outputs_and_derivatives_written_out(rng, n, D, H, K):
    network = Architecture(D, H, K)
    vector, X, df = rng.standard_normal(network.size), rng.standard_normal((n, D)), rng.standard_normal((n, K))
    weights = network.split(vector)
    f, Z = forward(weights, X)
    assert_allclose(f, written_out(vector, X, D, H, K), rtol=1e-13, atol=1e-14)
    assert_allclose(Z, np.tanh(X @ weights.input_hidden + weights.hidden_bias), rtol=1e-14)
    # complex steps: derivatives without subtraction
    steps = vector + 1e-30j * np.eye(network.size)
    expected = [np.sum(written_out(step, X, D, H, K).imag * df) / 1e-30 for step in steps]
    assert_allclose(backward(weights, X, Z, df), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("n", "D", "H", "K"), SIZES)
def test_compiled_passes_are_those_of_numpy(rng, n, D, H, K):
    network = Architecture(D, H, K)
    weights = network.split(rng.standard_normal(network.size))
    X, df = rng.standard_normal((n, D)), rng.standard_normal((n, K))
    f, Z = network_passes.forward(weights, X)
    for found_f, found_Z in (forward(weights, X), compiled_passes.forward_by_name(*weights, X)):
        assert_allclose(found_f, f, rtol=1e-13, atol=1e-14)
        assert_allclose(found_Z if found_Z.shape == Z.shape else found_Z.T, Z, rtol=1e-15)
    parts = compiled_passes.backward_by_name(weights.hidden_output, X, np.ascontiguousarray(Z.T), df)
    assert [part.shape for part in parts] == list(network.shapes.values())
    expected = pack(network_passes.backward(weights.hidden_output, X, Z, df))
    assert_allclose(pack(Weights(*parts)), expected, rtol=1e-12, atol=1e-13)
    assert_allclose(backward(weights, X, Z, df), expected, rtol=1e-12, atol=1e-13)


def test_compiled_tanh_against_many_digits(rng):
    x = np.concatenate([rng.standard_normal(4000) * 10.0 ** rng.uniform(-8, 1.5, 4000), np.linspace(-23, 23, 2001)])
    with mpmath.workprec(100):
        exact = [mpmath.tanh(mpmath.mpf(float(v))) for v in x]
        got = np.array([tanh(v) for v in x])
        error = [abs((mpmath.mpf(float(g)) - e) / e) if e else abs(g) for g, e in zip(got, exact, strict=True)]
    assert max(error) < 5e-16
    assert np.abs(got).max() <= 1.0
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1e300, 5e-324, -1e-320])
    assert_array_equal([tanh(v) for v in special], [0.0, -0.0, 1.0, -1.0, 1.0, 5e-324, -1e-320])
    assert np.signbit(tanh(-0.0)) and np.isnan(tanh(np.nan))


def test_packing(rng):
    network = Architecture(3, 4, 2)
    assert list(network.shapes) == ["hidden_bias", "input_hidden", "bias", "hidden_output", "input_output"]
    vector = rng.standard_normal(network.size)
    weights = network.split(vector)
    assert [part.shape for part in weights] == [(4,), (3, 4), (2,), (4, 2), (3, 2)]
    assert network.size == sum(part.size for part in weights) == 4 * (1 + 3 + 2) + 2 + 6
    assert all(np.shares_memory(part, vector) for part in weights)
    assert_array_equal(pack(weights), vector)
    assert_array_equal(vector[network.slices["hidden_output"]], weights.hidden_output.ravel())
    assert Architecture(3, 4, 2) == network and len({Architecture(3, 4, 2), network}) == 1
    with pytest.raises(ValueError, match="has 32 weights, got a vector of 31"):
        network.split(vector[1:])
    with pytest.raises(ValueError, match="hidden must be at least 1, got 0"):
        Architecture(3, 0)
    with pytest.raises(TypeError, match="inputs must be an integer"):
        Architecture(3.0, 2)


def test_a_chain_of_draws_at_once(rng):
    network, X = Architecture(2, 3, 2), rng.standard_normal((5, 2))
    draws, df = rng.standard_normal((2, 4, network.size)), rng.standard_normal((2, 4, 5, 2))
    weights = network.split(draws)
    f, Z = forward(weights, X)
    gradient = backward(weights, X, Z, df)
    assert_array_equal(pack(weights), draws)
    for index in np.ndindex(2, 4):
        one = network.split(draws[index])
        f_one, Z_one = forward(one, X)
        assert_allclose(f[index], f_one, rtol=1e-14)
        assert_allclose(gradient[index], backward(one, X, Z_one, df[index]), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("D", "K"), [(1, 1), (8, 1), (32, 1), (8, 3)])
def test_default_number_of_hidden_units(D, K):
    for n in (1, 10, 64, 100, 128, 256, 512, 1024):
        enough = (H for H in range(6, 26) if Architecture(D, H, K).size >= n)
        assert hidden_units("auto", n, D, K) == next(enough, 25)
    assert hidden_units(3, 100, D, K) == 3
    with pytest.raises(ValueError, match="hidden must be 'auto' or a number of hidden units, got 'many'"):
        hidden_units("many", 100, D, K)
    with pytest.raises(TypeError, match="hidden must be an integer"):
        hidden_units(2.5, 100, D, K)


# the prior


def test_gamma_by_mean_and_shape(rng):
    gamma = Gamma(400.0, 0.5)
    tau = np.array([1e-3, 1.0, 400.0, 1e4])
    # p(τ) ∝ τ^{α/2−1} exp(−τα/(2μ)), normalised by mpmath
    with mpmath.workdps(30):
        norm = mpmath.quad(lambda u: mpmath.exp(0.25 * u - mpmath.exp(u) * 0.5 / 800.0), [-400, 0, 5, 8, 12, 15])
        expected = [float((0.25 - 1) * mpmath.log(v) - v * 0.5 / 800.0 - mpmath.log(norm)) for v in tau]
    assert_allclose(gamma.log_density(tau), np.sum(expected), rtol=1e-10)
    assert_means(Gamma(3.0, 4.0).draw(rng, (40, 200, 1)), 3.0)
    assert stats.kstest(gamma.draw(rng, 2000), stats.gamma(0.25, scale=1600.0).cdf).pvalue > 1e-4
    assert Gamma(1.0, 1e-4).draw(rng, 1000).min() > 0.0  # most of them are zero in double precision
    for wrong in ({"mean": 0.0, "shape": 1.0}, {"mean": 1.0, "shape": np.inf}):
        with pytest.raises(ValueError, match="must be positive and finite"):
            Gamma(**wrong)


def test_defaults_of_the_thesis():
    prior = NetworkPrior(Architecture(8, 10))
    assert prior.noise == Gamma(400.0, 0.5) and prior.hidden_bias == Gamma(100.0, 0.5) and prior.bias_sd == 1.0
    assert prior.hidden_output == Gamma(1000.0, 0.5)
    assert prior.input_hidden == prior.input_output == Gamma(1600.0, 0.5)
    assert prior.input_hidden_shape == prior.input_output_shape == 1.0
    own = NetworkPrior(Architecture(8, 10), noise=Gamma(1.0, 4.0))
    assert own.noise == Gamma(1.0, 4.0) and own.hidden_output == prior.hidden_output
    with pytest.raises(TypeError, match=r"noise must be a Gamma\(mean, shape\), got 3.0"):
        NetworkPrior(Architecture(8, 10), noise=3.0)
    with pytest.raises(TypeError, match="architecture must be an Architecture, got int"):
        NetworkPrior(8)


def test_densities_of_the_prior_by_scipy(rng):
    network = Architecture(3, 2, 2)
    prior = NetworkPrior(network, bias_sd=2.0, noise=Gamma(2.0, 3.0), input_hidden_shape=1.5)
    weights, tau = prior.draw(rng)
    a, u, b, v, w = weights
    expected = [
        stats.norm(0.0, tau.hidden_bias**-0.5).logpdf(a).sum(),
        sum(stats.norm(0.0, tau.input_hidden[i] ** -0.5).logpdf(u[i]).sum() for i in range(3)),
        stats.norm(0.0, 2.0).logpdf(b).sum(),
        stats.norm(0.0, tau.hidden_output**-0.5).logpdf(v).sum(),
        sum(stats.norm(0.0, tau.input_output[i] ** -0.5).logpdf(w[i]).sum() for i in range(3)),
    ]
    assert_allclose(prior.weights_log_density(pack(weights), tau), np.sum(expected), rtol=1e-12)

    def gamma(mean, shape, value):
        return np.sum(stats.gamma(shape / 2.0, scale=2.0 * mean / shape).logpdf(value))

    expected = [
        gamma(2.0, 3.0, tau.noise),
        gamma(100.0, 0.5, tau.hidden_bias),
        gamma(200.0, 0.5, tau.hidden_output),
        gamma(225.0, 0.5, tau.mean_input_hidden),
        gamma(tau.mean_input_hidden, 1.5, tau.input_hidden),
        gamma(225.0, 0.5, tau.mean_input_output),
        gamma(tau.mean_input_output, 1.0, tau.input_output),
    ]
    assert_allclose(prior.precisions_log_density(tau), np.sum(expected), rtol=1e-12)


def test_draws_of_the_prior(rng):
    network = Architecture(2, 3, 2)
    prior = NetworkPrior(network)
    found = {name: [] for name in ("noise", "hidden_bias", "hidden_output", "mean_input_hidden", "mean_input_output")}
    below, standard = [], []
    for _ in range(1500):
        weights, tau = prior.draw(rng)
        for name, values in found.items():
            values.append(np.ravel(getattr(tau, name))[0])
        below.append([tau.input_hidden[1] / tau.mean_input_hidden, tau.input_output[0] / tau.mean_input_output])
        standard.append(pack(weights) * np.sqrt(prior.weight_precisions(tau)))
    means = {"noise": 400.0, "hidden_bias": 100.0, "hidden_output": 300.0}
    for name, values in found.items():
        law = stats.gamma(0.25, scale=4.0 * means.get(name, 100.0))
        assert stats.kstest(values, law.cdf).pvalue > 1e-4, name
    for values in np.transpose(below):
        assert stats.kstest(values, stats.gamma(0.5, scale=2.0).cdf).pvalue > 1e-4
    assert stats.kstest(np.ravel(standard), "norm").pvalue > 1e-4
    correlations = np.corrcoef(np.transpose(standard)) - np.eye(network.size)
    assert np.abs(correlations).max() < 4.5 / np.sqrt(1500)
    same = [NetworkPrior(network).draw(np.random.default_rng(5)) for _ in range(2)]
    assert_array_equal(pack(same[0][0]), pack(same[1][0]))


def outputs(prior, x, rng, draws, precisions=None):
    """f(x) of networks drawn from the prior, or from the prior given the precisions."""
    found = np.empty(draws)
    for s in range(draws):
        tau = prior.draw_precisions(rng) if precisions is None else precisions
        found[s] = forward(prior.architecture.split(prior.draw_weights(tau, rng)), x)[0][0, 0]
    return found


@pytest.mark.parametrize("H", [1, 3, 30, 1000])
def test_variance_given_the_precisions_does_not_depend_on_hidden_units(rng, H):
    x, draws = np.array([[0.5, -1.0, 1.5]]), 4000
    # at the means: u_i ~ N(0, 1/(25·9)), a ~ N(0, 1/100), v ~ N(0, 1/(100 H)), b ~ N(0, 1); E[tanh²] by quadrature
    slope = np.sum(x**2) / 225.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    square = np.sum(weights * np.tanh(np.sqrt(slope + 0.01) * nodes) ** 2) / np.sqrt(2.0 * np.pi)
    expected = square / 100.0 + slope + 1.0
    prior = NetworkPrior(Architecture(3, H), bias_sd=1.0)
    f = outputs(prior, x, rng, draws, prior.at_mean())
    assert_means((f**2).reshape(40, -1, 1), expected)
    # without bias and direct connections, where the hidden units are all there is
    hidden = prior.at_mean()._replace(input_output=np.full(3, 1e12))
    f = outputs(NetworkPrior(Architecture(3, H), bias_sd=1e-6), x, rng, draws, hidden)
    assert_means((f**2).reshape(40, -1, 1), square / 100.0)


def quartile_scores(samples, reference):
    """By how many standard errors the shares of draws below the reference's quartiles are off ¼, ½, ¾."""
    shares = np.array([0.25, 0.5, 0.75])
    found = np.array([np.mean(samples < q) for q in np.quantile(reference, shares)])
    return (found - shares) / np.sqrt(shares * (1.0 - shares) * (1.0 / len(samples) + 1.0 / len(reference)))


def test_quartiles_under_the_prior_do_not_depend_on_hidden_units(rng):
    x = np.array([[0.5, -1.0, 1.5]])
    found = {H: np.abs(outputs(NetworkPrior(Architecture(3, H)), x, rng, 4000)) for H in (1, 10, 100, 1000)}
    for H in (1, 10, 100):
        assert np.abs(quartile_scores(found[H], found[1000])).max() < 4.0
    # the printed scaling, precision ∝ 1/H, and none at all
    for mean in (100.0 / 1000.0, 100.0):
        other = NetworkPrior(Architecture(3, 1000), hidden_output=Gamma(mean, 0.5))
        assert np.abs(quartile_scores(np.abs(outputs(other, x, rng, 1000)), found[1000])).max() > 6.0


def test_a_constant_number_of_inputs_matters(rng):
    # the number of inputs whose weights have a standard deviation beyond one
    counts = {}
    for D in (4, 16, 64):
        prior = NetworkPrior(Architecture(D, 1))
        tau = [Gamma(prior.input_hidden.mean, 1.0).draw(rng, (40, 50, D)) for _ in range(2)]
        counts[D] = np.mean([np.sum(t < 1.0, axis=-1) for t in tau], axis=0)
        expected = D * stats.gamma(0.5, scale=2.0 * prior.input_hidden.mean).cdf(1.0)
        assert_means(counts[D][..., None], expected)
        assert_allclose(expected, np.sqrt(2.0 / np.pi) / 5.0, rtol=0.001)
