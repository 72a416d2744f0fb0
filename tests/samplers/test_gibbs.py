"""The Gibbs steps against the model's own log density, variable by variable, over the whole zoo.

A draw's random numbers are replaced by known ones, so that the distribution it comes from can be read off exactly: the
shape and rate of a Gamma variable, the mean and covariance of a block. No Monte Carlo error is left; the oracle is
``model.compile_logp()`` on a grid, or its second differences.

Guards `bayessel.samplers.gibbs`, `bayessel.samplers.arrowhead_block`, `bayessel.samplers.conditionals`,
`bayessel.samplers.conjugacy.block`, `bayessel.samplers.conjugacy.scale`.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from pymc.exceptions import SamplingError
from scipy import stats

import bayessel as bs
from bayessel.samplers import arrowhead_block, conditionals
from bayessel.samplers.arrowhead_block import ArrowheadBlock
from bayessel.samplers.conjugacy import affine, block
from bayessel.samplers.conjugacy.graph import Space
from tests.problems import gibbs_models
from tests.samplers.test_conditionals import Replay

ONCE = "FAST_COMPILE"


class Scripted(Replay):
    """Gamma variables are 1; their shapes are kept."""

    def __init__(self, one=None):
        super().__init__(one)
        self.shapes = []

    def standard_gamma(self, shape):
        self.shapes.append(np.array(shape, dtype=float))
        return np.ones(np.shape(shape))


def plan(model):
    """The Gibbs steps of the model, one for each scale and one for each block."""
    blocks, scales = {}, []
    for line in bs.explain_steps(model, split="conjugate").splitlines():
        name, rest = line.split("  ", 1)
        label = rest.strip().split("  ")[0]
        if label.startswith("GammaPrecisionGibbs"):
            scales.append(name.strip())
        elif label.startswith("GaussianWeightsGibbs"):
            members = label.partition("[")[2].rstrip("]") or name.strip()
            blocks[members] = members.split(", ")
    return scales, list(blocks.values())


def somewhere(model, rng):
    """A point away from the initial one."""
    point = model.initial_point()
    for name, value in point.items():
        if value.dtype.kind == "f":
            point[name] = np.asarray(value + 0.5 * rng.normal(size=value.shape))
        else:
            point[name] = rng.integers(0, 2, size=value.shape).astype(value.dtype)
    return point


def prepared(cls, names, model):
    step = cls(names, model=model)
    step.setup_chain(np.random.default_rng(0), 0, 1)
    return step


# --- precisions, variances, scales --------------------------------------------------------------------------------


def log_density_of(kind, log_x, shape, rate):
    """Log density of log x for x ~ Gamma(shape, rate) or InvGamma(shape, rate)."""
    if kind == "inverse gamma":
        return stats.invgamma(shape, scale=rate).logpdf(np.exp(log_x)) + log_x
    return stats.gamma(shape, scale=1.0 / rate).logpdf(np.exp(log_x)) + log_x


def check_scale(model, logp, name, rng):
    """The step's Gamma distribution against the model's density along each element of the variable."""
    step = prepared(bs.GammaPrecisionGibbs, name, model)
    [conditional] = step.conditionals
    point = somewhere(model, rng)
    value_name = model.rvs_to_values[model[name]].name
    grid = np.linspace(-2.0, 2.0, 9)
    if conditional.kind not in ("gamma", "exponential", "inverse gamma"):
        check_stays(step, logp, point, value_name, rng)
        return
    step.rng = Scripted()
    new, _ = step.step(point)
    [shape] = step.rng.shapes
    sign = 1.0 if conditional.kind == "inverse gamma" else -1.0
    rate = np.exp(sign * new[value_name])
    assert list(new) == list(point)
    for place in np.ndindex(np.shape(rate)):
        expected = []
        for log_x in grid:
            moved = {**point, value_name: point[value_name].copy()}
            moved[value_name][place] = log_x
            expected.append(logp(moved))
        got = log_density_of(conditional.kind, grid, np.broadcast_to(shape, np.shape(rate))[place], rate[place])
        difference = np.asarray(expected) - got
        scale = np.abs(np.asarray(expected) - np.max(expected)).max()
        assert_allclose(difference - difference[0], 0.0, atol=1e-6 * (1.0 + scale))


def check_stays(step, logp, point, value_name, rng, n=500):
    """From exact draws of one element, taken on a grid, one step must lead to exact draws."""
    grid = np.linspace(-9.0, 7.0, 160)
    place = (0,) * np.ndim(point[value_name])
    log_p = []
    for log_x in grid:
        moved = {**point, value_name: point[value_name].copy()}
        moved[value_name][place] = log_x
        log_p.append(logp(moved))
    p = np.exp(np.asarray(log_p) - np.max(log_p))
    cdf = np.concatenate([[0.0], np.cumsum(0.5 * (p[1:] + p[:-1]))])
    cdf /= cdf[-1]
    ends = []
    for start in np.interp(rng.random(n), cdf, grid):
        moved = {**point, value_name: point[value_name].copy()}
        moved[value_name][place] = start
        ends.append(step.step(moved)[0][value_name][place])
    assert stats.kstest(ends, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-4


# --- blocks -------------------------------------------------------------------------------------------------------


def moments(step, point, names, seen):
    """Exact mean and covariance of the block that the step draws; `seen` reads it from a new point."""
    step.rng = Scripted()
    mean = seen(step.step(point)[0])
    columns = []
    for j in range(step.rng.used):
        step.rng = Scripted(j)
        columns.append(seen(step.step(point)[0]) - mean)
    columns = np.column_stack(columns)
    return mean, columns @ columns.T


def quadratic(f, size):
    """Mean and covariance of exp(f), f quadratic, from its differences."""
    eye, zero = np.eye(size), f(np.zeros(size))
    plus, minus = [f(e) for e in eye], [f(-e) for e in eye]
    H = np.array(
        [
            [
                plus[i] + minus[i] - 2 * zero if i == j else f(eye[i] + eye[j]) - plus[i] - plus[j] + zero
                for j in range(size)
            ]
            for i in range(size)
        ]
    )
    cov = np.linalg.inv(-H)
    return cov @ (0.5 * (np.array(plus) - np.array(minus))), cov


def check_block(model, logp, names, rng):
    """The block's Gaussian against second differences of the model's density (untransformed variables)."""
    step = prepared(bs.GaussianWeightsGibbs, names, model)
    point = somewhere(model, rng)
    values = [model.rvs_to_values[model[name]].name for name in names]
    shapes = [point[v].shape for v in values]

    def at(x):
        moved, end = dict(point), 0
        for v, shape in zip(values, shapes, strict=True):
            size = int(np.prod(shape))
            moved[v] = x[end : end + size].reshape(shape)
            end += size
        return float(logp(moved))

    mean, cov = moments(step, point, names, lambda new: np.concatenate([new[v].ravel() for v in values]))
    expected_mean, expected_cov = quadratic(at, len(mean))
    sd = np.sqrt(np.diag(expected_cov))
    assert_allclose((mean - expected_mean) / sd, 0.0, atol=1e-6 * (1.0 + np.abs(mean / sd).max()))
    assert_allclose((cov - expected_cov) / np.outer(sd, sd), 0.0, atol=1e-6)
    return step


def levels():
    """Pupils in classes in schools."""
    with pm.Model() as model:
        school = pm.Normal("school", 1.0, 2.0, shape=2)
        group = pm.Normal("class", school[np.array([0, 0, 1, 1])], 0.7, shape=4)
        pupil = pm.Normal("pupil", group[gibbs_models.GROUP], 0.5, shape=12)
        pm.Normal("y", pupil, 0.3, observed=np.linspace(-1.0, 1.0, 12))
    return model, {}


CONJUGATE = [make for make in gibbs_models.ALL if any(s[:3] in ("Gam", "Gau") for s in make()[1].values())]


@pytest.mark.parametrize("make", CONJUGATE, ids=lambda make: make.__name__)
def test_each_conditional_is_that_of_the_model(make, rng):
    model, _ = make()
    logp = model.compile_logp(mode=ONCE)
    scales, blocks = plan(model)
    for name in scales:
        if make is not gibbs_models.rvm or name != "alpha":  # that one moves the transform of w: below
            check_scale(model, logp, name, rng)
    for names in blocks:
        check_block(model, logp, names, rng)


@pytest.mark.parametrize("make", [gibbs_models.random_intercepts, gibbs_models.eight_schools, levels])
def test_blocks_with_coordinates_that_share_no_rows(make, rng, monkeypatch):
    monkeypatch.setattr(affine, "SPARSE_FROM", 1)
    monkeypatch.setattr(affine, "SPARSE_BELOW", 1.1)
    monkeypatch.setattr(arrowhead_block, "_WORTH_IT", 1)
    model, _ = make()
    _, blocks = plan(model)
    logp = model.compile_logp(mode=ONCE)
    for names in blocks:
        step = check_block(model, logp, names, rng)
        found = step.conditionals[0]._arrow
        # every school, intercept or pupil is eliminated, and for a lone group nothing is left
        assert found is not None and len(found.out) >= len(found.rest)
        monkeypatch.setattr(ArrowheadBlock, "draw", lambda *a: None)
        check_block(model, logp, names, rng)
        monkeypatch.undo()


def test_an_arrow_with_wrong_residuals_is_seen(rng, monkeypatch):
    monkeypatch.setattr(affine, "SPARSE_FROM", 1)
    monkeypatch.setattr(affine, "SPARSE_BELOW", 1.1)
    monkeypatch.setattr(arrowhead_block, "_WORTH_IT", 1)
    right = ArrowheadBlock.draw
    monkeypatch.setattr(
        ArrowheadBlock, "draw", lambda self, taus, ys, d, m, rng: right(self, taus, ys, d, m + 0.01, rng)
    )
    model, _ = gibbs_models.eight_schools()
    with pytest.raises(AssertionError):
        check_block(model, model.compile_logp(mode=ONCE), ["mu", "theta"], rng)


def test_many_groups_cost_little():
    rng = np.random.default_rng(1)
    groups = 300
    of_row = rng.integers(0, groups, size=3000)
    X = rng.normal(size=(3000, 2))
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1e4)
        a = pm.Normal("a", mu, 0.5, shape=groups)
        slope = pm.Normal("slope", 0.0, 1e4, shape=2)
        pm.Normal("y", a[of_row] + X @ slope, 0.1, observed=rng.normal(size=3000))
    step = prepared(bs.GaussianWeightsGibbs, ["mu", "a", "slope"], model)
    point = model.initial_point()
    step.rng = Scripted()
    mean = step.step(point)[0]
    assert len(step.conditionals[0]._arrow.rest) == 3 and step.rng.used == groups + 3
    step.conditionals[0]._arrow = None
    step.rng = Scripted()
    dense = step.step(point)[0]
    for name in ("mu", "a", "slope"):
        assert_allclose(mean[name], dense[name], rtol=1e-7, atol=1e-7)


# --- a variable whose transform depends on what is drawn ----------------------------------------------------------


def check_whitened(rng):
    """The weights of `models.rvm` are sampled in coordinates that depend on alpha: they must stay where they are."""
    model, _ = gibbs_models.rvm()
    w, transform = model["w"], model.rvs_to_transforms[model["w"]]
    sampled = model.rvs_to_values[w]
    to_w = model.compile_fn(model.replace_rvs_by_values([w])[0], mode=ONCE)
    alpha = pt.vector("alpha_at")
    to_z = pytensor.function([w, alpha], transform.forward(w, 1.0 / pt.sqrt(alpha)), mode=ONCE)
    log_p = model.compile_logp(jacobian=False, mode=ONCE)
    step = prepared(bs.GammaPrecisionGibbs, "alpha", model)
    point = somewhere(model, rng)
    inputs = {v.name for v in pytensor.graph.traversal.explicit_graph_inputs(model.replace_rvs_by_values([w]))}
    position = to_w({k: v for k, v in point.items() if k in inputs})
    step.rng = Scripted()
    new, _ = step.step(point)
    assert not np.allclose(new["alpha_log__"], point["alpha_log__"])
    assert_allclose(to_w({k: v for k, v in new.items() if k in inputs}), position, rtol=1e-9)
    [shape], rate = step.rng.shapes, np.exp(-new["alpha_log__"])
    grid = np.linspace(-2.0, 2.0, 9)
    for j in range(3):
        expected = []
        for log_x in grid:
            log_alpha = point["alpha_log__"].copy()
            log_alpha[j] = log_x
            moved = {**point, "alpha_log__": log_alpha, sampled.name: to_z(position, np.exp(log_alpha))}
            expected.append(float(log_p(moved)) + log_x)
        difference = np.array(expected) - log_density_of("gamma", grid, shape[j], rate[j])
        assert_allclose(difference, difference[0], rtol=1e-9)


def test_weights_stay_where_they_are_when_their_coordinates_change(rng):
    check_whitened(rng)


def test_weights_that_are_left_behind_are_seen(rng, monkeypatch):
    monkeypatch.setattr(Space, "moved_by", lambda self, targets: [])
    with pytest.raises(AssertionError):
        check_whitened(rng)


def test_a_sum_of_squares_follows_weights_that_change(rng):
    """Rows whose precision has a second random part: nothing of it may be kept from the first draw."""
    X = rng.normal(size=(30, 2))
    with pm.Model() as model:
        other = pm.Gamma("other", 2.0, 1.0, shape=3)
        beta = pm.Gamma("beta", 2.0, 1.0)
        w = pm.Normal("w", 0.0, 1.0, shape=2)
        pm.Normal("y", X @ w, tau=beta * other[np.arange(30) % 3], observed=X[:, 0] + rng.normal(size=30))
    step, logp = prepared(bs.GammaPrecisionGibbs, "beta", model), model.compile_logp(mode=ONCE)
    for _ in range(3):
        point = somewhere(model, rng)
        step.rng = Scripted()
        new, _ = step.step(point)
        [shape], rate = step.rng.shapes, np.exp(-new["beta_log__"])
        grid = np.linspace(-1.0, 1.0, 5)
        at = [float(logp({**point, "beta_log__": np.asarray(x)})) for x in grid]
        difference = np.array(at) - log_density_of("gamma", grid, shape, rate)
        assert_allclose(difference, difference[0], rtol=1e-9)


def test_a_sum_of_squares_in_few_coordinates_is_about_the_whole_mean(rng):
    """Of many rows and few weights the coordinates of a QR are kept: the constant part of the mean is one with y."""
    X = rng.normal(size=(30, 2))
    with pm.Model() as model:
        beta = pm.Gamma("beta", 2.0, 1.0)
        w = pm.Normal("w", 0.0, 1.0, shape=2)
        pm.Normal("y", 3.0 + np.arange(30) / 10 + X @ w, tau=beta, observed=X[:, 0] + rng.normal(size=30))
    step = prepared(bs.GammaPrecisionGibbs, "beta", model)
    step.step(somewhere(model, rng))
    assert step.conditionals[0].children[0].reduced is not None
    check_scale(model, model.compile_logp(mode=ONCE), "beta", rng)


# --- planted bugs -------------------------------------------------------------------------------------------------


def wrong_count(log_precision):
    """One residual too few, as in the shape (n − 1)/2 of a variance with a fitted mean."""
    return lambda shape, rate, n, S, rng: log_precision(shape, rate, n - 1.0, S, rng)


def wrong_rate(log_precision):
    return lambda shape, rate, n, S, rng: log_precision(shape, rate, n, 0.5 * S, rng)


@pytest.mark.parametrize("bug", [wrong_count, wrong_rate])
@pytest.mark.parametrize("make", [gibbs_models.linear, gibbs_models.precision_by_group])
def test_a_wrong_gamma_distribution_is_seen(make, bug, rng, monkeypatch):
    monkeypatch.setattr(conditionals, "log_precision", bug(conditionals.log_precision))
    model, _ = make()
    with pytest.raises(AssertionError):
        check_scale(model, model.compile_logp(mode=ONCE), "alpha", rng)


def test_a_wrong_auxiliary_variable_is_seen(rng, monkeypatch):
    right = conditionals.log_half_student_scale
    monkeypatch.setattr(
        conditionals, "log_half_student_scale", lambda log_x, df, A, n, S, rng: right(log_x, df, A, n + 1.0, S, rng)
    )
    model, _ = gibbs_models.eight_schools()
    with pytest.raises(AssertionError):
        check_scale(model, model.compile_logp(mode=ONCE), "tau", rng)


def test_a_wrong_block_is_seen(rng, monkeypatch):
    right = block.gaussian
    monkeypatch.setattr(block, "gaussian", lambda factors, d, m, rng: right(factors, d, 0.9 * m + 0.01, rng))
    model, _ = gibbs_models.random_intercepts()
    with pytest.raises(AssertionError):
        check_block(model, model.compile_logp(mode=ONCE), ["mu", "a", "slope"], rng)


# --- as step methods ----------------------------------------------------------------------------------------------


def run(step, point, n):
    points = []
    for _ in range(n):
        point, stats_ = step.step(point)
        assert stats_ == [{}]
        points.append(point)
    return points


@pytest.mark.parametrize("make", [gibbs_models.rvm, gibbs_models.random_intercepts, gibbs_models.horseshoe])
def test_a_restored_state_continues_with_the_same_bits(make):
    model, _ = make()
    scales, blocks = plan(model)
    names = [name for block in blocks for name in block]
    for cls, vars in ((bs.GammaPrecisionGibbs, scales), (bs.GaussianWeightsGibbs, names)):
        step, other = prepared(cls, vars, model), cls(vars, model=model)
        half = run(step, model.initial_point(), 3)[-1]
        state = step.sampling_state
        expected = run(step, half, 4)
        other.sampling_state = state
        for got, want in zip(run(other, half, 4), expected, strict=True):
            assert list(got) == list(want)
            for name in want:
                assert np.array_equal(got[name], want[name])


def test_new_data_are_seen_by_the_next_chain_and_not_before():
    model, _ = gibbs_models.precision_by_group()
    step = prepared(bs.GammaPrecisionGibbs, "alpha", model)
    point = model.initial_point()

    def rates():
        step.rng = Scripted()
        return np.exp(-step.step(point)[0]["alpha_log__"])

    before = rates()
    with model:
        pm.set_data({"y_data": 3.0 * model["y_data"].get_value(), "group": np.zeros(12, dtype=int)})
    assert np.array_equal(rates(), before)
    step.data_changed()
    after = rates()
    assert_allclose(after[1:], [1.0, 1.5, 2.0])  # no rows any more: the prior's own
    assert after[0] > before.sum()
    assert np.array_equal(step.rng.shapes[0], [2.0 + 6.0, 2.0, 2.0, 2.0])


def test_new_bounds_of_another_variable_are_seen():
    """A mean that is sampled between bounds that are data: its value follows them, and so does a precision about it."""
    y = np.array([0.3, 1.4, 0.9])
    with pm.Model() as model:
        u = pm.Uniform("u", 0.0, pm.Data("upper", 1.0))
        tau = pm.Gamma("tau", 2.0, 1.0)
        pm.Normal("y", u, tau=tau, observed=y)
    step = prepared(bs.GammaPrecisionGibbs, "tau", model)
    point = {**model.initial_point(), "u_interval__": np.array(0.4)}
    for upper in (1.0, 3.0, 0.5):
        with model:
            pm.set_data({"upper": upper})
        step.data_changed()
        step.rng = Scripted()
        rate = np.exp(-step.step(point)[0]["tau_log__"])
        mean = upper / (1.0 + np.exp(-0.4))
        assert_allclose(rate, 1.0 + 0.5 * np.sum((y - mean) ** 2), rtol=1e-10)


def test_rows_may_come_and_go():
    X, y = gibbs_models.regression()
    model = bs.models.linear(X, y)
    weights = prepared(bs.GaussianWeightsGibbs, "w", model)
    precisions = prepared(bs.GammaPrecisionGibbs, ["alpha", "beta"], model)
    with model:
        pm.set_data({"Phi": X[:5], "t_data": y[:5]}, coords={"row": np.arange(5)})
    other = bs.models.linear(
        X[:5], y[:5], **{k: v for k, v in zip(("alpha_rate", "beta_rate"), rates_of(model), strict=True)}
    )
    for step, twin in ((weights, bs.GaussianWeightsGibbs), (precisions, bs.GammaPrecisionGibbs)):
        step.data_changed()
        fresh = prepared(twin, [v.name for v in step.targets], other)
        step.rng, fresh.rng = np.random.default_rng(3), np.random.default_rng(3)
        got, want = step.step(model.initial_point())[0], fresh.step(other.initial_point())[0]
        for name in want:
            assert_allclose(got[name], want[name], rtol=1e-12)


def rates_of(model):
    """Rates of the Gamma priors of `models.linear`."""
    scales = [model[name].owner.inputs[-1] for name in ("alpha", "beta")]
    return [float(1.0 / scale) for scale in pytensor.function([], scales, mode=ONCE)()]


@pytest.mark.parametrize(
    ("make", "name", "reason"),
    [
        (gibbs_models.potential, "alpha", "stands in the potential more"),
        (gibbs_models.second_likelihood, "count", "k is Poisson, not Normal"),
        (gibbs_models.scale_in_the_mean, "tau", "stands in the mean of y"),
        (gibbs_models.random_shape, "shape", "stands in the shape of y"),
        (gibbs_models.random_shape, "rate", "the shape of y is random"),
        (gibbs_models.sum_of_variances, "s", "not a power of s"),
        (gibbs_models.two_elements_each, "s", "elements of y depend on several elements of s"),
        (gibbs_models.no_conjugate_prior, "flat", "Uniform is no conjugate prior"),
        (gibbs_models.positive_normals, "tau", "through the transform"),
        (gibbs_models.logistic, "w", "no conjugate prior of a scale"),
    ],
)
def test_what_is_not_conjugate_is_refused_with_the_reason(make, name, reason):
    model, _ = make()
    with pytest.raises(ValueError, match=f"that of {name} is not.*{reason}"):
        bs.GammaPrecisionGibbs(name, model=model)


@pytest.mark.parametrize(
    ("make", "names", "reason"),
    [
        (gibbs_models.nonlinear_mean, "rate", "not linear in rate .through Exp"),
        (gibbs_models.squared_weight, "w", "not linear in w jointly .through Mul"),
        (gibbs_models.products_of_normals, ["u", "v"], "not linear in u, v jointly"),
        (gibbs_models.logistic, "w", "y is Bernoulli, not Normal"),
        (gibbs_models.positive_normals, "m", "the transform log of m is not affine"),
        (gibbs_models.potential, "v", "stands in the potential more"),
        (gibbs_models.other_likelihoods, "m", "not Normal"),
        (gibbs_models.linear, "alpha", "alpha is Gamma, not Normal"),
    ],
)
def test_what_is_not_linear_is_refused_with_the_reason(make, names, reason):
    model, _ = make()
    with pytest.raises(ValueError, match=reason):
        bs.GaussianWeightsGibbs(names, model=model)


def test_a_scale_of_two_children_in_different_roles_is_refused():
    """A standard deviation here and a precision there: each alone is conjugate, both together are not."""
    with pm.Model() as model:
        s = pm.HalfNormal("s", 1.0)
        pm.Normal("a", 0.0, s, observed=[0.3, 0.1])
        pm.Normal("b", 0.0, tau=s, observed=[0.2])
    with pytest.raises(ValueError, match=r"that of s is not.*enters b and a with different powers"):
        bs.GammaPrecisionGibbs("s", model=model)


@pytest.mark.parametrize("role", ["a variance", "a precision"])
def test_a_half_student_prior_in_another_role_keeps_its_degrees(role, rng):
    """One observation, so that the prior decides: from exact draws of the model's density to exact draws."""
    with pm.Model() as model:
        x = pm.HalfStudentT("x", 5.0, 0.6)
        pm.Normal("y", 0.0, **({"sigma": pm.math.sqrt(x)} if role == "a variance" else {"tau": x}), observed=[0.4])
    step = prepared(bs.GammaPrecisionGibbs, "x", model)
    check_stays(step, model.compile_logp(mode=ONCE), model.initial_point(), "x_log__", rng, n=1500)


def test_a_scale_inside_its_own_block_is_refused():
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 1.0)
        pm.Normal("y", m, pm.math.abs(m) + 1.0, observed=[0.3, 0.1])
    with pytest.raises(ValueError, match="standard deviation of y"):
        bs.GaussianWeightsGibbs("m", model=model)


def test_designs_that_fill_the_memory_are_declined(monkeypatch):
    monkeypatch.setattr(block, "MAX_ENTRIES", 35)
    model, _ = gibbs_models.linear_with_fixed_precisions()
    with pytest.raises(ValueError, match="12 × 3 entries"):
        bs.GaussianWeightsGibbs("w", model=model)


def test_weights_beyond_double_precision_are_an_error_not_a_number():
    model, _ = gibbs_models.precision_by_group()
    step = prepared(bs.GaussianWeightsGibbs, "level", model)
    with pytest.raises(SamplingError, match="the conditional of level has left double precision"):
        step.step({**model.initial_point(), "alpha_log__": np.full(4, 1e4)})


@pytest.mark.parametrize("columns", [[0, 1, 1], [0, 1, 2]], ids=["one column twice", "fewer rows than columns"])
def test_flat_weights_that_the_data_do_not_determine_are_refused(columns):
    x = np.column_stack([np.ones(12), np.linspace(-1.0, 1.0, 12), np.linspace(-1.0, 1.0, 12) ** 2])[:, columns]
    x = x if columns == [0, 1, 1] else x[[0, 5]]
    with pm.Model() as model:
        w, sigma = pm.Flat("w", shape=3), pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", x @ w, sigma, observed=np.arange(float(len(x))))
    with pytest.raises(SamplingError, match="the data do not determine w, and a flat prior does not either"):
        bs.sample(model, draws=10, tune=10, chains=1, cores=1, random_seed=1, progressbar=False)


def test_precisions_of_priors_that_reach_far_stay_finite(rng):
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1e-6, 1e-6, shape=3)
        w = pm.Normal("w", 0.0, tau=alpha, shape=3)
        pm.Normal("y", w[0], 1.0, observed=[0.3])
    steps = bs.steps(model)
    for step in steps:
        step.setup_chain(rng, 0, 1)
    point = model.initial_point()
    with np.errstate(all="raise", under="ignore"):
        for _ in range(2000):
            for step in steps:
                point, _ = step.step(point)
                assert all(np.isfinite(value).all() for value in point.values())


@pytest.mark.parametrize("prior", [pm.Gamma, pm.InverseGamma, pm.LogNormal])
def test_no_elements_at_all(prior):
    with pm.Model() as model:
        none = prior("none", 2.0, 1.0, shape=0)
        pm.Normal("w", 0.0, none, shape=0)
        pm.Normal("y", 0.0, 1.0, observed=[1.0])
    step = prepared(bs.GammaPrecisionGibbs, "none", model)
    assert step.step(model.initial_point())[0][step.vars[0].name].shape == (0,)
