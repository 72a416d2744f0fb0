"""The evidence framework for networks: exact Hessians, closed forms, quadrature, relevance, symmetries, odd input.

Guards `bayessel.mlp.evidence`, `bayessel.mlp.evidence_result`, `bayessel.mlp.hessian`, `bayessel.mlp.network_fit`,
`bayessel.mlp.targets`.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, softmax
from scipy.stats import multivariate_normal, norm

from bayessel._fingerprint import fingerprint
from bayessel.fit import Status
from bayessel.mlp import Architecture, fit_network_evidence
from bayessel.mlp import evidence as ev
from bayessel.mlp.architecture import pack
from bayessel.mlp.evidence_result import leave_out, moderated, output_covariances
from bayessel.mlp.hessian import NetworkProblem, bends, gauss_newton, gaussian_peak, gradient, jacobian, loss_at, newton
from bayessel.mlp.network_fit import Networks
from bayessel.mlp.targets import as_data, link
from tests.oracles.network_quadrature import log_evidence_of_one_unit

KINDS = ("gaussian", "logistic", "softmax")


def problem(rng, kind="gaussian", n=40, D=3, H=4, K=2):
    X = rng.standard_normal((n, D))
    signal = np.sin(2 * X[:, :1]) + X[:, 1:2] * np.arange(K)
    if kind == "gaussian":
        t = signal + 0.2 * rng.standard_normal((n, K))
    else:
        t = (signal > 0).astype(float) if kind == "logistic" else np.digitize(signal[:, -1], [-0.5, 0.5])
    X, T = as_data(X, t, kind)
    return NetworkProblem(X, T, kind, Architecture(D, H, T.shape[1]))


@pytest.mark.parametrize("kind", KINDS)
def test_hessian_is_the_derivative_of_the_gradient_and_that_of_the_loss(rng, kind):
    at_hand = problem(rng, kind)
    network, beta = at_hand.architecture, np.array([2.0, 5.0, 1.0])[: at_hand.architecture.outputs]
    q = rng.standard_normal(network.size)
    _, at = loss_at(at_hand, q, beta)
    h = 1e-5 * np.eye(network.size)
    slopes = [(loss_at(at_hand, q + e, beta)[0] - loss_at(at_hand, q - e, beta)[0]) / 2e-5 for e in h]
    assert_allclose(gradient(at_hand, at), slopes, rtol=1e-6, atol=1e-6)
    differences = [
        (gradient(at_hand, loss_at(at_hand, q + e, beta)[1]) - gradient(at_hand, loss_at(at_hand, q - e, beta)[1]))
        / 2e-5
        for e in h
    ]
    J = jacobian(at_hand.architecture, at.q, at_hand.X, at.Z)
    A = gauss_newton(at_hand, at, beta, J) + bends(at_hand, at, at.df)
    assert_allclose(A, differences, rtol=1e-6, atol=1e-6 * np.abs(A).max())
    outputs = np.array([(loss_at(at_hand, q + e, beta)[1].f - loss_at(at_hand, q - e, beta)[1].f) / 2e-5 for e in h])
    assert_allclose(J, outputs.transpose(2, 1, 0), rtol=1e-6, atol=1e-8)


def test_an_unknown_kind_is_refused(rng):
    """And not taken for softmax."""
    known = problem(rng)
    beta = np.ones(2)
    _, at = loss_at(known, rng.standard_normal(known.architecture.size), beta)
    with pytest.raises(ValueError, match="no link for kind 'poisson'"):
        link(at.f, "poisson")
    J = jacobian(known.architecture, at.q, known.X, at.Z)
    with pytest.raises(ValueError, match="no Gauss-Newton Hessian for kind 'poisson'"):
        gauss_newton(known._replace(kind="poisson"), at, beta, J)


def test_peaks_against_numpy(rng):
    B = rng.standard_normal((6, 6))
    A = B @ B.T + np.diag(10.0 ** np.arange(-3, 3))
    found = gaussian_peak(A, 1.0 / np.sqrt(np.diag(A)))
    assert_allclose(found.log_determinant, np.linalg.slogdet(A)[1], rtol=1e-12)
    assert_allclose(found.covariance(), np.linalg.inv(A), rtol=1e-8)
    assert_allclose(found.solve(B), np.linalg.solve(A, B), rtol=1e-8)
    assert_allclose(found.solve(B[0]), np.linalg.solve(A, B[0]), rtol=1e-8)
    assert gaussian_peak(A - 2 * np.linalg.eigvalsh(A)[-1] * np.eye(6), np.ones(6)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_newton_ends_where_scipy_finds_nothing_better(rng, kind):
    at_hand = problem(rng, kind)
    network = at_hand.architecture
    alpha, beta = rng.uniform(0.5, 2, network.size), np.full(network.outputs, 3.0)
    found = newton(at_hand, rng.standard_normal(network.size), alpha, beta, 300, tol=1e-10)
    assert found.converged and found.peak is not None

    def whole(q):
        loss, at = loss_at(at_hand, q, beta)
        return loss + 0.5 * np.sum(alpha * q * q), gradient(at_hand, at) + alpha * q

    assert_allclose(found.value, whole(found.at.q)[0], rtol=1e-12)
    further = minimize(whole, found.at.q, jac=True, method="BFGS")
    assert further.fun > found.value - 1e-6
    assert np.linalg.eigvalsh(found.A)[0] > 0


def test_a_saddle_is_left(rng):
    """Where all hidden units are off and direct weights are held, the slope is nil: no minimum for a rising target."""
    x = np.linspace(-2, 2, 60)[:, None]
    at_hand = NetworkProblem(x, np.tanh(2 * x), "gaussian", Architecture(1, 3, 1))
    q = np.zeros(at_hand.architecture.size)
    alpha, beta = np.full(len(q), 0.1), np.array([50.0])
    alpha[-1] = 1e8
    start = newton(at_hand, q, alpha, beta, 0)
    assert start.peak is None and not start.converged
    found = newton(at_hand, q, alpha, beta, 300)
    assert found.converged and found.value < 0.3 * start.value


def settled(at_hand, groups, alpha, beta, q):
    found = newton(at_hand, q, alpha[groups.of], beta, 500, tol=1e-10)
    assert found.converged
    return ev.value(at_hand, groups, found, alpha, beta, True, 1)


def test_without_hidden_units_it_is_the_evidence_of_the_linear_model(rng):
    at_hand = problem(rng, K=2)
    groups = ev.Groups(at_hand.architecture)
    alpha = np.full(len(groups.sizes), 1e12)
    alpha[groups.fixed] = ev.BIAS_PRECISION
    alpha[-3:] = 0.5, 2.0, 7.0
    beta = np.array([3.0, 8.0])
    now = settled(at_hand, groups, alpha, beta, 1e-8 * rng.standard_normal(at_hand.architecture.size))
    X, n = at_hand.X, len(at_hand.X)
    expected = 0.0
    for k in range(2):
        C = np.eye(n) / beta[k] + 1.0 / ev.BIAS_PRECISION + (X / alpha[-3:]) @ X.T
        expected += multivariate_normal(np.zeros(n), C).logpdf(at_hand.T[:, k])
    assert now.in_use == 0
    assert_allclose(now.log_evidence, expected, rtol=1e-8)


def test_it_is_the_integral_over_the_weights(rng):
    """One input, one hidden unit: three weights integrate in closed form, two by quadrature; enough rows for a peak."""
    x = rng.uniform(-2, 2, (150, 1))
    t = 1.5 * np.tanh(2 * x[:, 0] - 0.5) + 0.15 * rng.standard_normal(150)
    at_hand = NetworkProblem(x, t[:, None], "gaussian", Architecture(1, 1, 1))
    groups = ev.Groups(at_hand.architecture)
    alpha, beta = np.array([1.0, 0.5, ev.BIAS_PRECISION, 0.7, 2.0]), np.array([40.0])
    now = settled(at_hand, groups, alpha, beta, np.array([-0.5, 2.0, 0.0, 1.5, 0.0]))
    expected = log_evidence_of_one_unit(x[:, 0], t, alpha, beta[0])
    assert now.in_use == 1
    assert abs(now.log_evidence - expected) < 0.1
    assert abs(now.log_evidence - np.log(2.0) - expected) > 0.5  # without its mirror image


def test_well_determined_parameters_add_up(rng):
    at_hand = problem(rng, K=2)
    groups = ev.Groups(at_hand.architecture)
    alpha, beta = rng.uniform(0.5, 3, len(groups.sizes)), np.array([3.0, 9.0])
    now = settled(at_hand, groups, alpha, beta, rng.standard_normal(at_hand.architecture.size))
    A = now.found.A
    inverse = np.linalg.inv(A)
    expected = [np.sum(1 - alpha[c] * np.diag(inverse)[groups.of == c]) for c in range(len(alpha))]
    assert_allclose(now.gamma, expected, rtol=1e-6, atol=1e-8)
    assert_allclose(ev.by_output(at_hand, now.found, now).sum(), now.gamma.sum(), rtol=1e-8)
    assert now.gamma.sum() < at_hand.architecture.size


def test_other_names_and_signs_of_hidden_units_change_nothing(rng):
    at_hand = problem(rng)
    network, groups = at_hand.architecture, ev.Groups(at_hand.architecture)
    alpha, beta = rng.uniform(0.5, 3, len(groups.sizes)), np.array([30.0, 30.0])
    now = settled(at_hand, groups, alpha, beta, rng.standard_normal(network.size))
    a, u, b, v, w = network.split(now.found.at.q)
    order, sign = rng.permutation(4), np.array([1.0, -1, 1, -1])
    turned = pack(
        type(network.split(now.found.at.q))((a * sign)[order], (u * sign)[:, order], b, (v * sign[:, None])[order], w)
    )
    assert_allclose(settled(at_hand, groups, alpha, beta, turned).log_evidence, now.log_evidence, rtol=1e-9)
    assert_allclose(ev.log_symmetry(7, 7), np.log(2**7 * 5040))
    assert ev.log_symmetry(7, 0) == 0.0
    assert_allclose(np.exp(ev.log_symmetry(4, 2)), 2**2 * 4 * 3)


def data(rng, n=150):
    X = rng.standard_normal((n, 4))
    f = np.tanh(2 * X[:, 0] - 0.5) + 0.5 * X[:, 2]
    return X, f + 0.1 * rng.standard_normal(n), f


def test_the_relevant_inputs_are_found(rng):
    X, t, f = data(rng)
    fit = fit_network_evidence(X, t, hidden=3, n_starts=3, random_state=0)
    assert set(np.argsort(fit.relevance)[-2:]) == {0, 2}
    assert fit.relevance[[1, 3]].max() < 0.1 * fit.relevance[[0, 2]].min()
    assert fit.alpha["input_hidden[0]"] < 0.1 * min(fit.alpha["input_hidden[1]"], fit.alpha["input_hidden[3]"])
    assert 0.08 < fit.noise_std[0] < 0.12
    assert np.sqrt(np.mean((fit.predict(X).mean - f) ** 2)) < 0.06
    assert fit.status is Status.CONVERGED and fit.evidence.kind == "laplace"
    step = 1e-5
    differences = [fit.predict(X + step * e).mean - fit.predict(X - step * e).mean for e in np.eye(4)]
    slopes = np.sqrt(np.mean((np.array(differences) / (2 * step)) ** 2, axis=1))
    assert_allclose(fit.relevance, slopes, rtol=1e-5, atol=1e-7)


def test_at_the_end_precisions_are_where_the_evidence_is_stationary(rng):
    """On linear data the hidden units go, and the rest is the maximum of a closed form."""
    X = rng.standard_normal((60, 3))
    t = X @ [1.0, 0.3, -0.5] + 0.3 * rng.standard_normal(60)
    fit = fit_network_evidence(X, t, hidden=1, n_starts=3, random_state=1)

    def minus(x):
        C = np.eye(60) * np.exp(-x[3]) + 1.0 / ev.BIAS_PRECISION + (X * np.exp(-x[:3])) @ X.T
        return -multivariate_normal(np.zeros(60), C).logpdf(t)

    best = minimize(minus, np.zeros(4), method="L-BFGS-B")
    linear = [fit.alpha[f"input_output[{i}]"] for i in range(3)]
    if fit.units_in_use == 0:
        assert_allclose(fit.log_evidence, -best.fun, atol=0.05)
        assert_allclose(np.log([*linear, fit.beta[0]]), best.x, atol=0.2)
    else:
        assert fit.log_evidence > -best.fun - 0.05


def test_error_bars(rng):
    X, t, _ = data(rng)
    fit = fit_network_evidence(X, t, hidden=3, n_starts=2, random_state=0)
    found = fit.predict(X[:9])
    mean, std = found.mean, found.std
    h = 1e-5 * np.eye(len(fit.weights))

    def outputs(q):
        return loss_at(NetworkProblem(X[:9], mean[:, None], "gaussian", fit.networks.architecture), q, np.ones(1))[1].f[
            :, 0
        ]

    J = np.array([(outputs(fit.weights + e) - outputs(fit.weights - e)) / 2e-5 for e in h]).T
    expected = np.einsum("np,pq,nq->n", J, fit.covariance, J) + 1.0 / fit.beta[0]
    assert_allclose(std, np.sqrt(expected), rtol=1e-5)
    X_new, t_new, _ = data(rng, 2000)
    mean, std = fit.predict(X_new).mean, fit.predict(X_new).std
    assert 0.8 < np.mean(((t_new - mean) / std) ** 2) < 1.4
    assert std[np.argmax(np.abs(X_new).sum(axis=1))] > np.median(std)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_classes_that_no_line_parts(rng, kind):
    X = rng.uniform(-1.5, 1.5, (200, 2))
    classes = (X[:, 0] * X[:, 1] > 0).astype(int)
    fit = fit_network_evidence(X, classes, kind=kind, hidden=5, n_starts=3, random_state=0)
    X_new = rng.uniform(-1.5, 1.5, (500, 2))
    p = fit.predict(X_new).probabilities[:, -1]
    assert np.mean((p > 0.5) == (X_new[:, 0] * X_new[:, 1] > 0)) > 0.95
    assert fit.beta is None and fit.noise_std is None
    # moderated: less sure than the most probable network, most so where nothing was seen
    far = fit.predict(100.0 * X_new).probabilities
    assert ((far >= 0) & (far <= 1)).all()
    assert fit.log_evidence > 200 * np.log(0.5)


@pytest.mark.parametrize(("kind", "K"), [("logistic", 1), ("softmax", 2), ("softmax", 4)])
def test_moderated_probabilities_are_averages_over_the_outputs(rng, kind, K):
    f, root = 1.5 * rng.standard_normal((6, K)), rng.standard_normal((6, K, K))
    C = root @ root.transpose(0, 2, 1) / K
    draws = f + np.einsum("nkl,snl->snk", root, rng.standard_normal((40_000, 6, K))) / np.sqrt(K)
    expected = (expit(draws) if kind == "logistic" else softmax(draws, axis=2)).mean(axis=0)
    found = moderated(f, C, kind)
    # an approximation for several classes: much nearer than the most probable outputs
    error, plain = (np.abs(p - expected).max() for p in (found, link(f, kind)))
    assert error < (0.02 if K < 3 else 0.05) and error < 0.5 * plain
    if K > 1:  # what is common to all outputs changes nothing, however unsure it is
        assert_allclose(moderated(f + 3.0, C + 100.0, kind), found, rtol=1e-9)
        assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    if K == 2:
        d, v = f[:, 1] - f[:, 0], C[:, 0, 0] + C[:, 1, 1] - 2 * C[:, 0, 1]
        assert_allclose(found[:, 1], moderated(d[:, None], v[:, None, None], "logistic")[:, 0], rtol=1e-12)


def test_same_seed_same_result_and_history(rng):
    X, t, _ = data(rng, 60)
    seen = []
    one = fit_network_evidence(X, t, hidden=2, n_starts=3, random_state=4, progress=lambda *a: seen.append(a))
    two = fit_network_evidence(X, t, hidden=2, n_starts=3, random_state=4)
    assert_array_equal(one.weights, two.weights)
    assert one.log_evidence == two.log_evidence == max(h["log_evidence"] for h in one.history)
    assert seen == [(1, 3), (2, 3), (3, 3)] and [h["preferred"] for h in one.history].count(True) == 1


def test_budget_and_interruption_give_back_what_there_is(rng, monkeypatch):
    X, t, _ = data(rng, 60)
    late = fit_network_evidence(X, t, hidden=2, n_starts=3, time_budget=1e-9, random_state=0)
    assert late.status is Status.TIME_BUDGET and len(late.history) == 1
    assert np.isfinite(late.log_evidence) and np.isfinite(late.predict(X).mean).all()
    calls, true = [], ev.reestimate

    def impatient(*arguments):
        calls.append(1)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return true(*arguments)

    monkeypatch.setattr(ev, "reestimate", impatient)
    stopped = fit_network_evidence(X, t, hidden=2, n_starts=3, random_state=0)
    assert stopped.status is Status.INTERRUPTED and np.isfinite(stopped.predict(X).mean).all()


def test_odd_data(rng):
    X = rng.standard_normal((30, 2))
    constant = fit_network_evidence(X, np.zeros(30), hidden=2, n_starts=1, random_state=0)
    assert Status.CONSTANT_TARGET in constant.notes
    assert_allclose(constant.predict(X).mean, 0.0, atol=1e-2)
    exact = fit_network_evidence(X, X[:, 0], hidden=2, n_starts=1, random_state=0)
    assert exact.status in (Status.NOISE_AT_FLOOR, Status.STEP_LIMIT, Status.CONVERGED) and exact.noise_std[0] < 1e-3
    few = fit_network_evidence(
        rng.standard_normal((5, 3)), rng.standard_normal(5), hidden=6, n_starts=2, random_state=0
    )
    assert np.isfinite(few.predict(rng.standard_normal((4, 3))).mean).all() and np.isfinite(few.log_evidence)
    one = fit_network_evidence([[1.0]], [2.0], hidden=1, n_starts=1, random_state=0)
    assert Status.TOO_FEW_ROWS in one.notes and np.isfinite(one.predict([[1.0]]).mean).all()
    noise = fit_network_evidence(X, rng.standard_normal(30), hidden=2, n_starts=2, random_state=0)
    assert noise.predict(X).mean.std() < 0.9


def test_hidden_units_are_chosen_so_that_the_hessian_stays_small():
    assert ev._hidden("auto", 64, 8, 1) == 6
    assert Architecture(60, ev._hidden("auto", 5000, 60, 5), 5).size <= ev.USUAL_WEIGHTS


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"X": [[np.inf]] * 5}, ValueError, "finite"),
        ({"t": np.zeros(4)}, ValueError, "one row per row of X"),
        ({"kind": "poisson"}, ValueError, "kind must be one of"),
        ({"hidden": 0}, ValueError, "hidden"),
        ({"hidden": "all"}, ValueError, "'auto'"),
        ({"hidden": 5000}, ValueError, "too large"),
        ({"n_starts": 0}, ValueError, "n_starts"),
        ({"time_budget": 0.0}, ValueError, "time_budget"),
        ({"random_state": -1}, ValueError, "random_state"),
    ],
)
def test_bad_input_says_what_was_needed(change, error, text):
    given = {"X": np.arange(10.0).reshape(5, 2), "t": np.arange(5.0)} | change
    with pytest.raises(error, match=text):
        fit_network_evidence(given.pop("X"), given.pop("t"), **given)


def test_other_columns_are_refused(rng):
    X, t, _ = data(rng, 20)
    fit = fit_network_evidence(X, t, hidden=1, n_starts=1, random_state=0)
    with pytest.raises(ValueError, match="4 inputs"):
        fit.predict(X[:, :3])


@pytest.mark.parametrize("kind", ["gaussian", "logistic", "softmax"])
def test_rows_left_out_are_those_of_a_linear_network_without_them(rng, kind):
    """One Newton step from the peak, written out in weights: A less the row's part, by its K × K curvature."""
    X, K = rng.standard_normal((12, 2)), 2
    T = rng.standard_normal((12, K)) if kind == "gaussian" else np.eye(K)[rng.integers(0, K, 12)]
    network = Architecture(2, 2, K)
    q, root = rng.standard_normal(network.size), rng.standard_normal((network.size, network.size))
    covariance = 0.3 * root @ root.T / network.size
    beta = np.array([0.2, 0.4]) if kind == "gaussian" else np.ones(K)
    at_hand = NetworkProblem(X, T, kind, network)
    at = loss_at(at_hand, q, beta)[1]
    J = jacobian(at_hand.architecture, at.q, at_hand.X, at.Z)
    V = output_covariances(J, covariance)
    found = leave_out(Networks(network, q[None], kind), T, at.f, at.p, V, beta)
    A = np.linalg.inv(covariance)
    for i, p in enumerate(at.p):
        own = J[:, i]
        curvature = {
            "gaussian": np.diag(beta),
            "logistic": np.diag(p * (1 - p)),
            "softmax": np.diag(p) - np.outer(p, p),
        }
        without = A - own.T @ curvature[kind] @ own
        if np.linalg.eigvalsh(without)[0] < 0.0 or np.linalg.eigvalsh(own @ np.linalg.inv(without) @ own.T)[-1] > 100.0:
            continue  # the row holds its prediction alone
        f = at.f[i] + own @ np.linalg.solve(without, own.T @ at.df[i])
        spread = own @ np.linalg.solve(without, own.T)
        if kind == "gaussian":
            assert_allclose(found.errors[i], T[i] - f, rtol=1e-8)
            assert_allclose(found.variances[i], np.diag(spread) + 1.0 / beta, rtol=1e-8)
            expected = norm.logpdf(T[i], f, np.sqrt(np.diag(spread) + 1.0 / beta)).sum()
        else:
            p = moderated(f[None], spread[None], kind)[0]
            assert_allclose(found.errors[i], T[i] - p, rtol=1e-8)
            expected = np.log(p if kind == "softmax" else np.where(T[i] == 1, p, 1 - p))
            expected = expected @ T[i] if kind == "softmax" else expected.sum()
        assert_allclose(found.log_densities[i], expected, rtol=1e-8)


@pytest.mark.parametrize("kind", ["gaussian", "logistic"])
def test_rows_left_out_are_about_those_of_fits_without_them(rng, kind):
    """The search goes on from the peak without the row, precisions held."""
    X = rng.uniform(-1.5, 1.5, (60, 1))
    f = np.sin(2 * X[:, 0])
    t = f + 0.2 * rng.standard_normal(60) if kind == "gaussian" else (rng.random(60) < expit(3 * f)).astype(float)
    fit = fit_network_evidence(X, t, kind=kind, hidden=2, n_starts=2, random_state=0)
    out, inside = fit.leave_one_out(), fit.predict(X).log_density(t)
    architecture = fit.networks.architecture
    alpha = np.array(list(fit.alpha.values()))[ev.Groups(architecture).of]
    beta = np.ones(1) if fit.beta is None else fit.beta
    gaps = []
    for i in range(0, 60, 4):
        rest = np.arange(60) != i
        found = newton(NetworkProblem(X[rest], t[rest, None], kind, architecture), fit.weights, alpha, beta, 50)
        assert found.converged
        own = replace(fit, networks=replace(fit.networks, packed=found.at.q[None]), covariance=found.peak.covariance())
        gaps.append(
            [out.log_densities[i] - own.predict(X[[i]]).log_density(t[[i]])[0], inside[i] - out.log_densities[i]]
        )
    apart, moved = np.abs(gaps).mean(axis=0)
    assert apart < 0.25 * moved


def test_optima_and_names_are_those_of_the_contract(rng):
    X, t, _ = data(rng, 60)
    fit = fit_network_evidence(X, t, hidden=2, n_starts=4, random_state=0)
    assert fit.optima[0].log_evidence == fit.log_evidence == fit.evidence.value
    assert np.diff([one.log_evidence for one in fit.optima]).max(initial=-1.0) < 0.0
    assert fit.fingerprint == fingerprint(X, t) and fit.target_fingerprint == fingerprint(t)
    assert fit.predict(X[:3]).mean.shape == (3,) and fit.leave_one_out().errors.shape == (60,)
    several = fit_network_evidence(X, np.c_[t, -t], hidden=2, n_starts=1, random_state=0)
    assert several.predict(X[:3]).mean.shape == (3, 2) and several.leave_one_out().log_densities.shape == (60,)


def test_weights_and_residuals_next_to_nil_end_at_the_bounds(rng):
    """Quotients of their squares overflow."""
    at_hand = problem(rng, K=1)
    groups = ev.Groups(at_hand.architecture)
    q, alpha, beta = ev.first(at_hand, groups, rng)
    found = newton(at_hand, q, alpha[groups.of], beta, 3)
    now = ev.value(at_hand, groups, found, alpha, beta, False, 1)
    found = found._replace(at=found.at._replace(q=1e-158 * q, f=at_hand.T + 1e-157))
    new_alpha, new_beta = ev.reestimate(at_hand, groups, found, now)
    free = np.arange(len(alpha)) != groups.fixed
    assert_allclose(new_alpha[free], 10.0 * alpha[free])
    assert_allclose(new_beta, 10.0 * beta)


def test_one_output_without_noise_is_said_beside_one_that_has_noise(rng):
    X = rng.standard_normal((40, 2))
    T = np.column_stack([np.tanh(X[:, 0]) + 0.3 * rng.standard_normal(40), 0.5 * X[:, 0]])
    fit = fit_network_evidence(X, T, hidden=2, n_starts=1, random_state=0)
    assert fit.noise_std[0] > 0.1 and fit.noise_std[1] < 1e-4
    assert Status.NOISE_AT_FLOOR in fit.notes
