"""Description lengths: two-part codes, prequential, normalised maximum likelihood; each against its definition.

Guards `bayessel.diagnostics._mdl`, `bayessel.diagnostics._nml`, `bayessel.diagnostics._prequential`,
`bayessel.criteria.description_length`, `bayessel.criteria.prequential`, `bayessel._formulas`.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, special, stats

import bayessel as bs
from bayessel._formulas import flag_code_length, weight_code_length
from bayessel.diagnostics import flag_length, mdl_alpha, mdl_w, nml, prequential
from bayessel.diagnostics._nml import nml_code_length
from bayessel.diagnostics._prequential import predictive_log_densities
from bayessel.linear import fit_evidence, fit_ridge, fit_rvm
from tests.oracles import linear as oracles
from tests.problems import linear as problems
from tests.problems.fits import StatedFit


def cosine(n=80, seed=0, log_width=-0.5):
    rng = np.random.default_rng([3, seed])
    x = np.linspace(-3, 3, n)[:, None]
    F = np.column_stack([oracles.radial("gaussian", x, x, np.sqrt(2) * 10**log_width), np.ones(n)])
    return F, np.cos(x[:, 0] ** 2) + rng.uniform(-0.1, 0.1, n)


@pytest.fixture(scope="module")
def sparse():
    F, t = cosine()
    return F, t, fit_rvm(F, t)


# --- flags ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "k0"), [(1, 2), (3, 10), (25, 201), (200, 201)])
def test_flag_codes_are_those_of_the_paper(k, k0):
    assert flag_length(k, k0) == pytest.approx((k + 1) * np.log(k0), rel=1e-14)
    # the frequency, then k0 bits at their entropy
    assert flag_length(k, k0, "bernoulli") == pytest.approx(
        np.log(k0) + k0 * stats.entropy([k / k0, 1 - k / k0]), rel=1e-12
    )
    assert flag_length(k, k0, "bernoulli") == pytest.approx(flag_length(k0 - k, k0, "bernoulli"), rel=1e-12)


@pytest.mark.parametrize("k0", [1, 2, 50])
def test_flag_codes_have_limits(k0):
    assert flag_length(0, k0, "bernoulli") == flag_length(k0, k0, "bernoulli") == pytest.approx(np.log(k0))
    assert flag_length(0, k0) == pytest.approx(np.log(k0))
    assert flag_length(k0, k0) == pytest.approx((k0 + 1) * np.log(k0))


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((3, 2), ValueError, "at most n_candidates"),
        ((-1, 2), ValueError, "at least 0"),
        ((0, 0), ValueError, "at least 1"),
        ((1, 2, "huffman"), ValueError, "'index', 'bernoulli'"),
        ((1.5, 2), TypeError, "integer"),
    ],
)
def test_flags_refuse(arguments, error, said):
    with pytest.raises(error, match=said):
        flag_length(*arguments)


# --- two-part codes ---------------------------------------------------------------------------------------------------


def definition_w(Phi, t, w, beta, k0, delta):
    """-log N(t | Phi w, 1 / beta) without its constant, a flat prior on log|w|, cells of size delta, k + 1 numbers."""
    density = stats.norm.logpdf(t, Phi @ w, beta**-0.5).sum() + 0.5 * len(t) * np.log(2 * np.pi)
    return -density - np.log(delta / np.abs(w)).sum() + (len(w) + 1) * np.log(k0)


def definition_alpha(C, t, n_precisions, k, k0, delta):
    density = stats.multivariate_normal.logpdf(t, np.zeros(len(t)), C) + 0.5 * len(t) * np.log(2 * np.pi)
    return -density - n_precisions * np.log(delta) + (k + 1) * np.log(k0)


@pytest.mark.parametrize("delta", [0.01, 0.1, 1.0])
def test_a_sparse_fit_by_the_definition(sparse, delta):
    F, t, fit = sparse
    Phi = F[:, fit.basis]
    w, _ = oracles.posterior(Phi, t, fit.alpha, fit.beta)
    assert mdl_w(fit, delta) == pytest.approx(definition_w(Phi, t, w, fit.beta, F.shape[1], delta), rel=1e-8)
    C = oracles.evidence_covariance(Phi, fit.alpha, fit.beta)
    k = len(fit.basis)
    assert mdl_alpha(fit, delta) == pytest.approx(definition_alpha(C, t, k, k, F.shape[1], delta), rel=1e-8)
    saved = flag_length(k, F.shape[1]) - flag_length(k, F.shape[1], "bernoulli")
    assert mdl_w(fit, delta) - mdl_w(fit, delta, flags="bernoulli") == pytest.approx(saved)
    assert mdl_alpha(fit, delta) - mdl_alpha(fit, delta, flags="bernoulli") == pytest.approx(saved)


@pytest.mark.parametrize("centre", [False, True])
def test_a_dense_fit_sends_every_weight_and_one_precision(rng, centre):
    Phi, t = problems.regression_problem(rng, 30, 4)
    fit = fit_evidence(Phi, t, centre=centre)
    whole = np.column_stack([Phi, np.ones(30)]) if centre else Phi
    w = np.append(fit.coef, fit.intercept) if centre else fit.coef
    k = whole.shape[1]
    assert mdl_w(fit) == pytest.approx(definition_w(whole, t, w, fit.beta, k, 0.1), rel=1e-10)
    evidence = bs.linear.log_evidence(Phi, t, fit.alpha, fit.beta, centre=centre)
    expected = -evidence - 15 * np.log(2 * np.pi) - np.log(0.5) + (k + 1) * np.log(k)
    assert mdl_alpha(fit, delta=0.5) == pytest.approx(expected, rel=1e-10)


def test_a_pruned_ridge_counts_what_is_left():
    X, Phi, t = problems.sin12x(0)
    fit = fit_ridge(Phi, t, penalty="local")
    kept = fit.basis
    assert 0 < len(kept) < 50
    expected = definition_w(Phi[:, kept], t, fit.coef[kept], fit.beta, 50, 0.1)
    assert mdl_w(fit) == pytest.approx(expected, rel=1e-10)
    model = bs.RidgeRBFRegressor(width=0.05, penalty="local", bias=False).fit(X, t)
    assert mdl_w(model) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("bias", [False, True])
def test_an_estimator_is_read_like_its_engine_result(bias):
    X, _, t = problems.sin12x(1)
    model = bs.EvidenceRegressor(width=0.1, bias=bias).fit(X, t)
    fit = fit_evidence(bs.RBFDictionary(X, 0.1, bias=False).design(X), t, centre=bias)
    assert mdl_w(model) == pytest.approx(mdl_w(fit), rel=1e-12)
    assert mdl_alpha(model) == pytest.approx(mdl_alpha(fit), rel=1e-12)
    assert nml(model) == pytest.approx(nml(fit), rel=1e-6)  # the numerical rank decides here


@pytest.mark.parametrize("scale", [1e-6, 1e3])
def test_units(sparse, scale):
    """Targets in other units cost n log s more, if the weights are sent to the same relative precision."""
    F, t, fit = sparse
    scaled = fit_rvm(F, scale * t, init=(fit.basis, fit.alpha / scale**2, fit.beta / scale**2))
    shift = len(t) * np.log(scale)
    assert set(scaled.basis) == set(fit.basis)
    assert mdl_w(scaled, delta=0.1 * scale) == pytest.approx(mdl_w(fit) + shift, abs=1e-3)
    assert mdl_alpha(scaled) == pytest.approx(mdl_alpha(fit) + shift, abs=1e-3)


def test_the_precision_of_the_target_makes_it_a_length(sparse):
    """-log of the probability of the cells the targets lie in, each by quadrature."""
    _, t, fit = sparse
    sigma, precision = fit.noise_std, 1e-3
    mass = [
        integrate.quad(stats.norm(mean, sigma).pdf, value - precision / 2, value + precision / 2)[0]
        for value, mean in zip(t, fit.fitted, strict=True)
    ]
    parameters = mdl_w(fit) - weight_code_length(
        fit.residuals @ fit.residuals, fit.beta, np.zeros(0), len(t), 0.1, flag_code_length(0, 1, "index")
    )
    assert mdl_w(fit, target_precision=precision) == pytest.approx(-np.log(mass).sum() + parameters, rel=1e-5)
    extra = mdl_w(fit, target_precision=precision) - mdl_w(fit)
    assert mdl_alpha(fit, target_precision=precision) - mdl_alpha(fit) == pytest.approx(extra)


def test_no_weight_and_zero_weights():
    whole = weight_code_length(8.0, 0.5, np.zeros(0), 4, 0.1, flag_code_length(0, 7, "index"))
    assert whole == pytest.approx(2.0 + 2.0 * np.log(2.0) + np.log(7.0))
    empty = StatedFit()
    assert mdl_w(empty) == pytest.approx(3.0 - 2.0 * np.log(2.0) + np.log(7.0))
    assert mdl_alpha(empty, delta=0.1) == pytest.approx(5.0 - 2.0 * np.log(2.0 * np.pi) + np.log(7.0))
    # a weight that is exactly zero needs not be sent
    padded = StatedFit(coef=np.array([0.0, 0.5]), alpha=np.ones(2))
    single = StatedFit(coef=np.array([0.5]), alpha=np.ones(1))
    assert mdl_w(padded) == mdl_w(single)
    # nor one that adds less to the fit than a millionth of the noise, sigma = 0.7
    for size, same in ((4.9e-7, True), (5.1e-7, False)):
        faint = replace(padded, coef=np.array([size, 0.5]), sizes=np.sqrt(2.0))  # columns of four times root one half
        assert (mdl_w(faint) == mdl_w(single)) is same
        assert (mdl_alpha(faint) == mdl_alpha(single)) is same


def test_one_candidate(rng):
    t = 3.0 + 0.1 * rng.normal(size=20)
    fit = fit_rvm(np.ones((20, 1)), t)
    assert fit.n_basis == 1
    assert mdl_w(fit) == pytest.approx(definition_w(np.ones((20, 1)), t, fit.coef, fit.beta, 1, 0.1))


def test_pure_noise_is_not_praised_for_vanishing_weights(rng):
    """The weights of a dense fit to noise are 1e-12 or less: sum log|w| would beat every other description."""
    x = np.linspace(0, 1, 60)[:, None]
    Phi = oracles.radial("gaussian", x, x, 0.3)
    seen = set()
    for _ in range(30):
        t = rng.normal(size=60)
        for fit in (fit_evidence(Phi, t, centre=True), fit_ridge(Phi, t, centre=True)):
            if fit.posterior.gamma > 1.0 + 1e-9:  # some function is determined
                continue
            mean = definition_w(np.ones((60, 1)), t, np.array([fit.intercept]), fit.beta, 61, 0.1)
            assert mdl_w(fit) == pytest.approx(mean, rel=1e-6)
            seen.add(type(fit).__name__)
    assert seen == {"LinearFit", "RidgeFit"}


def test_noise_free_targets_give_finite_lengths():
    x = np.linspace(-1, 1, 40)[:, None]
    Phi = x ** np.arange(4)
    for fit in (fit_rvm(Phi, Phi @ [1.0, -2.0, 0.0, 3.0]), fit_evidence(Phi, Phi @ [1.0, -2.0, 0.0, 3.0])):
        assert np.isfinite([mdl_w(fit), mdl_alpha(fit)]).all()


@pytest.mark.filterwarnings("ignore:(PURE_NOISE|NO_BETTER_THAN_CONSTANT):bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("of", [mdl_w, mdl_alpha])
def test_two_part_codes_refuse(sparse, of):
    fit = sparse[2]
    for delta in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="delta must be positive"):
            of(fit, delta=delta)
    with pytest.raises(ValueError, match="flags must be one of"):
        of(fit, flags="none")
    with pytest.raises(ValueError, match="target_precision must be positive"):
        of(fit, target_precision=0.0)
    with pytest.raises(TypeError, match="fitted must be a fitted bayessel estimator, an engine result"):
        of(np.ones(3))
    with pytest.raises(ValueError, match="EvidenceRegressor that has not been fitted"):
        of(bs.EvidenceRegressor())
    X, y = np.linspace(0, 1, 10)[:, None], np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="2 outputs"):
        of(bs.EvidenceRegressor().fit(X, y))
    model = bs.EvidenceRegressor(width=0.3).fit(X, y[:, 0])
    model.partial_fit([[0.55]], [0.1])
    with pytest.raises(ValueError, match="call reestimate"):
        of(model)
    assert np.isfinite(of(model.reestimate()))


@pytest.mark.parametrize("of", [mdl_w, mdl_alpha])
def test_a_gaussian_process_has_nothing_to_send(of):
    X, y = np.linspace(0, 1, 10)[:, None], np.sin(np.arange(10.0))
    for fit in (bs.gp.fit_map(X, y, starts=1), bs.GPRegressor().fit(X, y)):
        with pytest.raises(TypeError, match="which has no functions to count"):
            of(fit)


def test_what_lies_along_a_column_too_small_to_count_is_residual(rng):
    x, z = rng.normal(size=(2, 30))
    t = x + 2 * z + 0.1 * rng.normal(size=30)
    fit = fit_evidence(np.column_stack([x, 1e-20 * z]), t)
    assert nml(fit, flags=None) == pytest.approx(nml(x[:, None], t), rel=1e-12)


# --- prequential ------------------------------------------------------------------------------------------------------


def conditional(Phi, t, alpha, beta, n):
    """log p(t_n | t_1 .. t_{n-1}) from the joint normal of all rows."""
    C = oracles.evidence_covariance(Phi, alpha, beta)
    gain = np.linalg.solve(C[:n, :n], C[:n, n]) if n else np.zeros(0)
    return stats.norm.logpdf(t[n], gain @ t[:n], np.sqrt(C[n, n] - gain @ C[:n, n]))


def test_every_row_by_its_conditional(rng):
    Phi, t = problems.regression_problem(rng, 300, 5)
    alpha, beta = 10 ** rng.uniform(-1, 1, 5), 3.0
    for start in (0, 1, 7, 299):
        found = predictive_log_densities(Phi, t, alpha, beta, start)
        assert len(found) == 300 - start
        expected = [conditional(Phi, t, alpha, beta, n) for n in range(start, 300, 13)]
        np.testing.assert_allclose(found[::13], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("orders", [None, 3])
def test_with_fixed_precisions_it_is_minus_the_log_evidence(sparse, orders):
    F, t, fit = sparse
    found = prequential(F, t, fit, orders=orders, random_state=1)
    C = oracles.evidence_covariance(F[:, fit.basis], fit.alpha, fit.beta)
    evidence = stats.multivariate_normal.logpdf(t, np.zeros(len(t)), C)
    np.testing.assert_allclose(found.per_order, -evidence, rtol=1e-8)
    assert found.nats == pytest.approx(-fit.log_evidence, rel=1e-10)


def test_with_fixed_precisions_and_a_flat_bias_too(rng):
    Phi, t = problems.regression_problem(rng, 60, 3)
    t = t + 7.0
    fit = fit_evidence(Phi, t, centre=True)
    found = prequential(Phi, t, fit, orders=2, random_state=0)
    evidence = oracles.exact_log_evidence(Phi, t, fit.alpha, fit.beta, centre=True)
    np.testing.assert_allclose(found.per_order, -evidence, rtol=1e-10)


@pytest.mark.parametrize(("alpha", "beta", "tol"), [(1e-3, 1e3, 1e-9), (1e-6, 1e4, 1e-8), (1e-8, 1e8, 1e-5)])
def test_digits_with_columns_that_are_nearly_the_same(rng, alpha, beta, tol):
    Phi = problems.gaussian_dictionary(rng, 40, 20, 5.0)
    t = Phi @ rng.normal(size=20) / alpha**0.5 + rng.normal(size=40) / beta**0.5
    found = predictive_log_densities(Phi, t, np.full(20, alpha), beta).sum()
    assert oracles.relative(found, oracles.exact(Phi, t, alpha, beta).log_evidence, floor=1.0) < tol


def by_hand(F, t, fit, first, order, reference, mix):
    """Row after row: the newest fit to a power-of-two multiple of `first` rows, its conditional of this row alone."""
    F, t = F[order], t[order]
    out, at = [], None
    for n in range(len(t)):
        plain = stats.norm.logpdf(t[n], *reference)
        if n < first:
            out.append(-plain)
            continue
        if n in first * 2 ** np.arange(20):
            at = fit(F[:n], t[:n])
        model = conditional(F[:, at.basis], t, at.alpha, at.beta, n)
        out.append(-np.log((1 - mix) * np.exp(model) + mix * np.exp(plain)))
    return np.array(out)


@pytest.mark.parametrize("mix", [0.0, 0.05, None])
def test_refits_at_powers_of_two(mix):
    F, t = cosine(50, 1, 0.0)

    def fit(Phi, target):
        return fit_rvm(Phi, target, init="greedy")

    order = np.random.default_rng(5).permutation(50)
    found = prequential(F, t, fit, orders=order, first=8, mix=mix)
    expected = by_hand(F, t, fit, 8, order, (t.mean(), t.std()), 0.01 if mix is None else mix)
    np.testing.assert_allclose(found.rows[0], expected, rtol=1e-5, atol=1e-6)
    assert [refit["n"] for refit in found.refits] == [8, 16, 32]
    assert found.nats == pytest.approx(found.rows.sum())
    assert np.isnan(found.std_error)
    shares = [found.rows[0, a:b].mean() for a, b in ((8, 16), (16, 32), (32, 50))]
    np.testing.assert_allclose([refit["nats_per_row"] for refit in found.refits], shares)


def test_no_row_is_coded_by_what_comes_after_it():
    F, t = cosine(40)
    before = prequential(F, t, fit_evidence, first=4, reference=(0.0, 1.0))
    later = t.copy()
    later[30:] = 100.0
    after = prequential(F, later, fit_evidence, first=4, reference=(0.0, 1.0))
    np.testing.assert_array_equal(before.rows[0, :30], after.rows[0, :30])
    assert (before.rows[0, 30:] != after.rows[0, 30:]).all()


def test_orders_and_their_standard_error():
    F, t = cosine(60)
    found = prequential(F, t, fit_evidence, orders=4, random_state=3)
    again = prequential(F, t, fit_evidence, orders=found.orders)
    np.testing.assert_array_equal(found.rows, again.rows)
    assert found.nats == pytest.approx(found.per_order.mean())
    assert found.std_error == pytest.approx(stats.sem(found.per_order))
    assert len({tuple(order) for order in found.orders}) == 4
    natural = prequential(F, t, fit_evidence)
    np.testing.assert_array_equal(natural.orders, [np.arange(60)])


def test_a_model_without_columns_predicts_zero():
    t = np.array([0.5, -1.0, 2.0, 0.1])
    nothing = SimpleNamespace(basis=np.zeros(0, int), alpha=np.zeros(0), beta=4.0)
    found = prequential(np.ones((4, 3)), t, lambda Phi, target: nothing, first=1, reference=(0.0, 1.0), mix=0.0)
    expected = -np.append(stats.norm.logpdf(t[0]), stats.norm.logpdf(t[1:], scale=0.5))
    np.testing.assert_allclose(found.rows[0], expected)


@pytest.mark.parametrize(("n", "first"), [(1, 1), (2, 1), (3, 1), (4, 2), (31, 8), (32, 16), (100, 16)])
def test_the_first_rows_by_default(n, first):
    seen = []

    def fit(Phi, target):
        seen.append(len(target))
        return SimpleNamespace(basis=np.arange(1), alpha=1.0, beta=1.0)

    prequential(np.ones((n, 1)), np.arange(n, dtype=float), fit)
    assert seen == [first * 2**j for j in range(10) if first * 2**j < n]


def test_insurance_bounds_the_loss():
    """A fit to a few rows that believes them noise-free is surprised by every later one."""
    F, t = cosine(64, 0, -1.2)

    def sure(Phi, target):
        return SimpleNamespace(basis=np.array([64]), alpha=1.0, beta=1e12)

    bare = prequential(F, t, sure, mix=0.0)
    insured = prequential(F, t, sure)
    plain = -stats.norm.logpdf(t, t.mean(), t.std())
    assert bare.nats > 1e10
    assert (insured.rows[0, 16:] <= plain[16:] + np.log(100) + 1e-9).all()


def test_a_design_made_on_the_fly():
    x = np.linspace(-2, 2, 40)[:, None]
    t = np.sin(3 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    dictionary = bs.RBFDictionary(x, 0.7)
    stored = prequential(dictionary.design(x), t, fit_rvm, orders=2, random_state=0)
    lazy = prequential(bs.basis.LazyDesign(dictionary, x), t, fit_rvm, orders=2, random_state=0)
    np.testing.assert_allclose(lazy.per_order, stored.per_order, rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"orders": [0, 0, 1]}, ValueError, "permutations"),
        ({"orders": np.arange(5) * 1.0}, ValueError, "permutations"),
        ({"orders": 0}, ValueError, "at least 1"),
        ({"first": 0}, ValueError, "first must be at least 1"),
        ({"mix": 1.0}, ValueError, "mix must be"),
        ({"mix": -0.1}, ValueError, "mix must be"),
        ({"mix": "half"}, TypeError, "mix must be"),
        ({"reference": 3.0}, TypeError, "reference must be"),
        ({"reference": (0.0, 0.0)}, ValueError, "standard deviation of the reference"),
    ],
)
def test_prequential_refuses(options, error, said):
    with pytest.raises(error, match=said):
        prequential(np.ones((5, 1)), np.arange(5.0), fit_evidence, **options)


# --- normalised maximum likelihood ------------------------------------------------------------------------------------


def test_one_column_and_two_rows_integrate_to_one():
    """The code is a density: its integral over every target within the bounds is one."""
    Phi = np.array([[3.0], [4.0]])
    low_noise, low_signal, noise_range, signal_range = 0.02, 0.3, 30.0, 12.0

    def density(angle, radius):
        t = radius * np.array([np.cos(angle), np.sin(angle)])
        along = (3 * t[0] + 4 * t[1]) / 5
        signal, noise = along**2 / 2, (t @ t - along**2) / 2
        if low_noise <= noise <= low_noise * noise_range and low_signal <= signal <= low_signal * signal_range:
            return radius * np.exp(-nml(Phi, t, noise_range=noise_range, signal_range=signal_range))
        return 0.0

    # a midpoint rule in polar coordinates: the bounds are edges in both
    largest = np.sqrt(2 * (low_noise * noise_range + low_signal * signal_range))
    radii = (np.arange(150) + 0.5) * largest / 150
    angles = (np.arange(300) + 0.5) * 2 * np.pi / 300
    total = sum(density(a, r) for r in radii for a in angles) * (largest / 150) * (2 * np.pi / 300)
    assert total == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("n", "k"), [(2, 0), (3, 0), (2, 1), (3, 1), (3, 2), (7, 3)])
def test_the_normalisers_by_integration(n, k):
    """Both normalisations done numerically, from the maximised likelihood itself."""
    noise, signal = 0.07, 0.9  # tau-hat and R-hat of the data
    noise_range, signal_range = 40.0, 25.0

    def shell(d, square):  # volume per d square of the vectors of d numbers whose mean square over n is `square`
        return np.pi ** (d / 2) / special.gamma(d / 2) * n ** (d / 2) * square ** (d / 2 - 1)

    def of_noise(u):  # the maximised likelihood over the residuals with tau-hat = exp(u)
        return np.exp(u) * (2 * np.pi * np.e * np.exp(u)) ** (-n / 2) * shell(n - k, np.exp(u))

    def first(log_tau, log_power):  # tau-hat at least, R-hat at most
        over_noise = integrate.quad(of_noise, log_tau, log_tau + 60)[0]
        return over_noise * integrate.quad(lambda power: shell(k, power), 0.0, np.exp(log_power))[0]

    def second(v, u):  # the first with its bounds at the data's own values
        return of_noise(u) * np.exp(v) * shell(k, np.exp(v)) / first(u, v)

    maximised = (2 * np.pi * np.e * noise) ** (-n / 2)
    if k == 0:
        total = integrate.quad(of_noise, 0.0, np.log(noise_range))[0]
    else:
        ranges = (0.0, np.log(noise_range), 0.0, np.log(signal_range))
        total = integrate.dblquad(second, *ranges, epsabs=1e-6, epsrel=1e-6)[0] * first(np.log(noise), np.log(signal))
    expected = -np.log(maximised / total)
    assert nml_code_length(n, k, n * noise, n * signal, noise_range, signal_range) == pytest.approx(expected, rel=1e-5)


def test_only_the_span_counts(rng):
    Phi, t = problems.regression_problem(rng, 25, 3)
    expected = nml(Phi, t)
    assert nml(Phi @ rng.normal(size=(3, 3)), t) == pytest.approx(expected, rel=1e-10)
    assert nml(np.column_stack([Phi, Phi[:, 0], np.zeros(25)]), t) == pytest.approx(expected, rel=1e-10)
    assert nml(1e-9 * Phi, t) == pytest.approx(expected, rel=1e-10)
    assert nml(Phi, 100.0 * t) == pytest.approx(expected + 25 * np.log(100.0), rel=1e-10)
    assert nml(np.zeros((25, 2)), t) == pytest.approx(nml_code_length(25, 0, t @ t, 0.0))
    w = np.linalg.lstsq(Phi, t)[0]
    assert expected == pytest.approx(nml_code_length(25, 3, ((t - Phi @ w) ** 2).sum(), ((Phi @ w) ** 2).sum()))


def test_fits_are_read_by_their_columns(rng, sparse):
    F, t, fit = sparse
    flags = flag_length(fit.n_basis, F.shape[1])
    assert nml(fit, flags=None) == pytest.approx(nml(F[:, fit.basis], t), rel=1e-9)
    assert nml(fit) == pytest.approx(nml(fit, flags=None) + flags)
    Phi, y = problems.regression_problem(rng, 30, 4)
    whole, y = np.column_stack([Phi, np.ones(30)]), y + 5
    for other in (fit_evidence(Phi, y, centre=True), fit_ridge(Phi, y, centre=True), fit_evidence(whole, y)):
        assert nml(other, flags=None) == pytest.approx(nml(whole, y), rel=1e-10)


def test_as_many_columns_as_rows_have_no_code(rng):
    assert nml(rng.normal(size=(5, 5)), rng.normal(size=5)) == np.inf
    assert nml(rng.normal(size=(5, 9)), rng.normal(size=5)) == np.inf


def test_nml_finds_the_degree(rng):
    x = np.linspace(-1, 1, 60)[:, None]
    t = 1 - 2 * x[:, 0] + 3 * x[:, 0] ** 3 + 0.2 * rng.normal(size=60)
    lengths = [nml(x ** np.arange(degree + 1), t) for degree in range(10)]
    assert np.argmin(lengths) == 3


def test_nml_refuses(sparse):
    with pytest.raises(ValueError, match="greater than 1"):
        nml(sparse[2], noise_range=1.0)
    with pytest.raises(ValueError, match="flags must be one of"):
        nml(sparse[2], flags="morse")
    with pytest.raises(ValueError, match="one value per row"):
        nml(np.ones((3, 1)), [1.0, 2.0])
