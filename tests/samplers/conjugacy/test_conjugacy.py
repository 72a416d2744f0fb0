"""Reading graphs: the interpreter against compiled functions, proofs of linearity and of powers against numbers.

Guards `bayessel.samplers.conjugacy.graph`, `bayessel.samplers.conjugacy.affine`,
`bayessel.samplers.conjugacy.monomial`, `bayessel.samplers.conjugacy.graph_interpreter`,
`bayessel.samplers.conjugacy.scale`.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.samplers.conjugacy import scale
from bayessel.samplers.conjugacy.affine import affine, design
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, precision
from bayessel.samplers.conjugacy.graph_interpreter import Program
from bayessel.samplers.conjugacy.monomial import monomial

X = np.random.default_rng(4).normal(size=(5, 3))
PLACES = np.array([2, 0, 0, 1, 2])


@pytest.fixture
def model():
    with pm.Model() as model:
        pm.Gamma("s", 2.0, 1.0)
        pm.Gamma("r", 2.0, 1.0, shape=3)
        pm.Normal("a", 0.0, 1.0)
        pm.Normal("w", 0.0, 1.0, shape=3)
        pm.Normal("C", 0.0, 1.0, shape=(3, 2))
        pm.Normal("other", 0.0, 1.0, shape=3)
    return model


# Expressions of the variables of `model`, m.
LINEAR = {
    "matrix product": lambda m: pt.dot(X, m["w"]),
    "operator": lambda m: X @ m["w"],
    "from the left": lambda m: m["w"] @ X.T,
    "matrices": lambda m: X @ m["C"] + m["a"],
    "einsum by hand": lambda m: (X * m["w"]).sum(axis=1),
    "mean and offset": lambda m: 3.0 - m["w"].mean() + m["w"],
    "division and sign": lambda m: -m["w"] / 4.0,
    "integers": lambda m: 2 * m["w"] + np.arange(3),
    "index": lambda m: m["w"][PLACES] + m["a"],
    "slices": lambda m: m["w"][1:] - m["w"][:-1],
    "two indices": lambda m: m["C"][PLACES, [0, 1, 0, 1, 0]],
    "transposed": lambda m: m["C"].T[:, ::-1],
    "reshaped": lambda m: m["C"].reshape((2, 3)).flatten(),
    "joined": lambda m: pt.concatenate([m["w"], pt.ones(2), m["C"][:, 0]]),
    "stacked": lambda m: pt.stack([m["a"], 1.0 + m["w"][2], pt.constant(3.0)]),
    "written into": lambda m: pt.set_subtensor(pt.ones(6)[1:4], m["w"]),
    "added to": lambda m: pt.inc_subtensor(m["other"][1:], m["w"][:2]),
    "cumulative": lambda m: pt.cumsum(m["w"]),
    "chosen": lambda m: pt.switch(PLACES > 0, m["a"], m["w"][PLACES]),
    "broadcast": lambda m: pt.broadcast_to(m["a"], (4,)) + pt.outer(pt.ones(2), m["w"])[0, 0],
    "repeated": lambda m: pt.tile(m["w"], 2),
    "solved": lambda m: pt.linalg.solve_triangular(np.tril(X[:3]), m["w"], lower=True),
    "coefficients that are random": lambda m: m["other"] * m["w"] + m["s"] * m["a"],
    "cast": lambda m: pt.cast(m["w"], "float64"),
    "tensordot": lambda m: pt.tensordot(X, m["C"], axes=1),
    "padded": lambda m: pt.expand_dims(m["w"], (0, 2)),
    "filled": lambda m: pt.full_like(m["w"], m["a"]) + pt.zeros_like(m["a"]) + m["w"],
    "summed": lambda m: m["C"].sum(axis=0, keepdims=True) - m["C"],
    "copied": lambda m: m["w"].copy() * 2.0,
}
NONLINEAR = {
    "square": lambda m: m["w"] ** 2,
    "product": lambda m: m["w"] * m["a"],
    "norm": lambda m: pt.dot(m["w"], m["w"]),
    "divisor": lambda m: 1.0 / m["a"],
    "exponential": lambda m: pt.exp(m["w"]) + m["a"],
    "absolute": lambda m: abs(m["a"]),
    "maximum": lambda m: pt.maximum(m["w"], 0.0),
    "condition": lambda m: pt.switch(m["a"] > 0, m["w"], 0.0),
    "product over elements": lambda m: pt.prod(m["w"]),
    "rounded": lambda m: pt.round(m["w"]),
    "whole numbers": lambda m: pt.cast(m["w"], "int64"),
    "largest": lambda m: pt.max(m["w"]),
    "sorted": lambda m: pt.sort(m["w"]),
    "place": lambda m: m["other"][pt.cast(m["a"], "int64")],
    "matrix inverse": lambda m: pt.linalg.solve(pt.diag(m["w"]), m["other"]),
    "cumulative product": lambda m: pt.cumprod(m["w"]),
}


def values_of(model, rng):
    return {rv: np.asarray(rng.gamma(2.0, size=tuple(rv.type.shape))) for rv in model.free_RVs}


def compiled(outputs, env):
    """What PyTensor itself makes of the expressions."""
    inputs = list(env)
    function = pytensor.function(inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore")
    return function(*env.values())


@pytest.mark.parametrize("name", [*LINEAR, *NONLINEAR])
def test_the_interpreter_agrees_with_pytensor(name, model, rng):
    expression = {**LINEAR, **NONLINEAR}[name](model)
    env = values_of(model, rng)
    program = Program([expression], list(env))
    program.refresh()
    assert_allclose(program(env)[0], compiled([expression], env)[0], rtol=1e-14)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_expressions_are_proved_and_their_matrix_is_right(name, model, rng):
    graph = ModelGraph(model)
    expression = LINEAR[name](model)
    block = [model[v] for v in ("a", "w", "C")]
    env = values_of(model, rng)
    part = affine(graph, expression, block)
    program = graph.program([part.linear])
    program.refresh()
    shapes = [env[x].shape for x in block]
    at = compiled([expression], env)[0]
    A = design(program, block, shapes, at.shape, env)
    offset = compiled([expression], {**env, **{x: np.zeros_like(env[x]) for x in block}})[0]
    X_ = np.concatenate([env[x].ravel() for x in block])
    assert_allclose((A @ X_).reshape(at.shape) + offset, at, rtol=1e-12, atol=1e-12)
    # coefficients are named exactly where they are random
    expected = {"coefficients that are random": {"other", "s"}}.get(name, set())
    assert {v.name for v in part.coefficients} == expected


@pytest.mark.parametrize("name", NONLINEAR)
def test_other_expressions_are_not_taken_for_linear(name, model):
    with pytest.raises(NotConjugateError, match="not linear"):
        affine(ModelGraph(model), NONLINEAR[name](model), [model[v] for v in ("a", "w", "C")])


def test_free_expressions_and_large_offsets(model, rng):
    graph = ModelGraph(model)
    assert affine(graph, pt.exp(model["w"]), [model["a"]]) is None
    # shapes are no values
    assert affine(graph, model["other"].sum() / model["w"].shape[0], [model["w"]]) is None
    part = affine(graph, 1e20 + model["a"] * 1e-3, [model["a"]])
    program = graph.program([part.linear])
    program.refresh()
    A = design(program, [model["a"]], [()], (), values_of(model, rng))
    assert A.item() == 1e-3


POWERS = {
    "itself": (lambda m: m["s"], 1.0),
    "precision": (lambda m: 1.0 / pt.sqrt(m["s"]), -0.5),
    "variance": (lambda m: 3.0 * m["s"] ** 0.5, 0.5),
    "square": (lambda m: pt.sqr(m["s"]) / m["r"].sum(), 2.0),
    "what tau= becomes": (lambda m: pm.Normal.dist(0.0, tau=m["s"] * 3.0).owner.inputs[-1], -0.5),
    "products": (lambda m: m["s"] * pt.sqrt(m["s"]) / m["s"] ** 2, -0.5),
    "negative": (lambda m: abs(-m["s"]), 1.0),
    "no power": (lambda m: m["s"] / m["s"], 0.0),
}
VECTORS = {
    "indexed": lambda m: 1.0 / pt.sqrt(m["r"][PLACES]),
    "rows": lambda m: (m["r"][:, None] * pt.ones((3, 2))) ** -0.5,
    "columns": lambda m: pt.sqrt(1.0 / (m["r"] * np.ones((2, 3)))),
    "row of a product": lambda m: pt.sqrt(1.0 / (m["r"][:, None] * pt.ones((3, 2)))[:, 1]),
    "flattened": lambda m: ((m["r"] * np.ones((2, 3))).reshape((6,))) ** -0.5,
    "through another": lambda m: pt.sqrt(m["s"] / m["r"][PLACES]),
    "twice the same": lambda m: (m["r"][PLACES] ** 2 / m["r"][PLACES]) ** -0.5,
}
NO_POWERS = {
    "sum": lambda m: m["s"] + 1.0,
    "exponential": lambda m: pt.exp(m["s"]),
    "sum of elements": lambda m: m["r"].sum() * pt.ones(3),
    "maximum": lambda m: pt.maximum(m["s"], 0.1),
    "random exponent": lambda m: m["s"] ** m["a"],
    "exponent itself": lambda m: 2.0 ** m["s"],
    "matrix product": lambda m: pt.dot(X, m["r"]),
    "random place": lambda m: m["r"][pt.cast(m["a"], "int64")],
}


@pytest.mark.parametrize("name", POWERS)
def test_powers_are_found(name, model, rng):
    make, power = POWERS[name]
    expression, graph = make(model), ModelGraph(model)
    assert monomial(graph, expression, model["s"]).power == power
    env = values_of(model, rng)
    one, four = (compiled([expression], {**env, model["s"]: np.asarray(v)})[0] for v in (1.0, 4.0))
    assert_allclose(four, one * 4.0**power)


@pytest.mark.parametrize("name", VECTORS)
def test_places_of_the_elements_are_found(name, model, rng):
    expression, graph = VECTORS[name](model), ModelGraph(model)
    part = monomial(graph, expression, model["r"])
    assert part.power == -0.5
    env = values_of(model, rng)
    at = compiled([expression], env)[0]
    program = graph.program(list(part.places))
    program.refresh({model["r"]: np.arange(3.0)})
    for places in program(env):
        places = np.broadcast_to(places, at.shape).astype(int)
        unit = compiled([expression], {**env, model["r"]: np.ones(3)})[0]
        assert_allclose(at, unit * env[model["r"]][places] ** -0.5)


@pytest.mark.parametrize("name", NO_POWERS)
def test_other_expressions_are_not_taken_for_powers(name, model):
    graph = ModelGraph(model)
    expression = NO_POWERS[name](model)
    with pytest.raises(NotConjugateError):
        for x in graph.roots([expression]):
            if x.name in "sr":
                monomial(graph, expression, x)


def test_precisions_are_taken_as_they_were_given(model):
    tau = model["s"] * 3.0
    sd = pm.Normal.dist(pt.zeros(3), tau=tau).owner.inputs[-1]
    found = precision(sd)
    while found is not tau:
        found = found.owner.inputs[0]
    env = values_of(model, np.random.default_rng(0))
    for expression in (sd, pt.sqrt(model["r"]), 2.0 * sd, pt.dot(X, model["r"])):
        assert_allclose(compiled([precision(expression)], env)[0], compiled([1.0 / expression**2], env)[0])


def test_data_are_read_at_refresh_and_constants_once():
    x, data = pt.dvector("x"), pytensor.shared(np.arange(3.0))
    program = Program([pt.exp(data) * 2.0, x + data], [x])
    program.refresh()
    assert program.static == [True, False]
    data.set_value(np.ones(3))
    assert_allclose(program({x: np.zeros(3)})[1], np.arange(3.0))
    program.refresh()
    assert_allclose(program({x: np.zeros(3)})[1], 1.0)
    program.refresh({x: np.full(3, 5.0)})
    assert program.static == [True, True] and program.free_inputs == []
    assert_allclose(program({})[1], 6.0)


def test_an_expression_with_a_hole_is_refused():
    with pytest.raises(ValueError, match="neither an input"):
        Program([pt.dvector("x") + pt.dvector("y")], [])


ELEMENTWISE = {
    "reciprocal": pt.reciprocal,
    "sqrt": pt.sqrt,
    "exp": pt.exp,
    "log": pt.log,
    "log1p": pt.log1p,
    "tanh": pt.tanh,
    "sigmoid": pt.sigmoid,
    "square": pt.sqr,
    "negative": lambda v: -v,
    "sign": pt.sign,
    "absolute": abs,
    "third": lambda v: v / 3,
    "one over": lambda v: 1 / v,
    "power": lambda v: v**-0.5,
    "whole power": lambda v: v**3,
    "whole quotient": lambda v: v // 2,
    "sum": lambda v: v + v + 1,
    "product": lambda v: v * v * 2,
    "maximum": lambda v: pt.maximum(v, 2),
    "switch": lambda v: pt.switch(v > 1, v, 0.5),
    "clipped": lambda v: pt.clip(v, 0, 2),
    "mean": lambda v: pt.mean(pt.stack([v, v])),
}


@pytest.mark.parametrize("value", [3, -2, 1, 50, 0.1, 1.5], ids=str)
def test_numbers_of_every_type_are_computed_as_pytensor_does(value):
    number = pt.as_tensor(value)
    x = pt.dscalar("x")
    names = [name for name in ELEMENTWISE if value > 0 or name not in ("sqrt", "log", "log1p", "power")]
    outputs = [f(v) for name, f in ELEMENTWISE.items() for v in (number, number * x) if name in names]
    program = Program(outputs, [x])
    program.refresh()
    got = program({x: np.asarray(0.7)})
    expected = pytensor.function([x], outputs, mode="FAST_COMPILE")(0.7)
    for output, a, b in zip(outputs, got, expected, strict=True):
        # single precision where PyTensor uses it, and no less
        assert_allclose(a, b, rtol=1e-6 if output.type.dtype == "float32" else 1e-14)


def test_whole_numbers_as_parameters_of_a_prior(rng):
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2, 3)
        pm.Normal("y", 0, tau=tau, observed=np.ones(4))
    step = bs.GammaPrecisionGibbs("tau", model=model)
    step.setup_chain(rng, 0, 1)
    draws = np.exp([step.step({"tau_log__": np.zeros(())})[0]["tau_log__"] for _ in range(2000)])
    assert stats.kstest(draws, stats.gamma(2 + 2, scale=1 / (3 + 2)).cdf).pvalue > 1e-4


PRIORS_OF_SCALES = {
    "Weibull": (lambda: pm.Weibull.dist(1.5, 2.0), stats.weibull_min(1.5, scale=2.0)),
    "LogNormal": (lambda: pm.LogNormal.dist(0.3, 0.7), stats.lognorm(0.7, scale=np.exp(0.3))),
    "HalfNormal": (lambda: pm.HalfNormal.dist(1.5), stats.halfnorm(scale=1.5)),
    "Gamma": (lambda: pm.Gamma.dist(2.0, 1.6), stats.gamma(2.0, scale=1 / 1.6)),
    "InverseGamma": (lambda: pm.InverseGamma.dist(3.0, 2.0), stats.invgamma(3.0, scale=2.0)),
    "Exponential": (lambda: pm.Exponential.dist(2.5), stats.expon(scale=0.4)),
    "HalfCauchy": (lambda: pm.HalfCauchy.dist(0.6), stats.halfcauchy(scale=0.6)),
    "HalfStudentT": (lambda: pm.HalfStudentT.dist(nu=3.0, sigma=0.6), stats.t(3.0, scale=0.6)),
}


@pytest.mark.parametrize("name", PRIORS_OF_SCALES)
def test_the_prior_of_a_logarithm_is_that_of_the_scale_with_its_jacobian(name):
    """Up to a constant; draws from a posterior that the data decide would not tell. PyMC rounds some numbers short."""
    make, known = PRIORS_OF_SCALES[name]
    prior = make()
    parameters = [np.float64(v.eval()) for v in prior.owner.op.dist_params(prior.owner) if hasattr(v.type, "dtype")]
    c, terms, rest = scale.log_prior(prior.owner.op, parameters)
    log_x = np.linspace(-3.0, 2.0, 11)
    found = scale.LogConcave((11,), c, terms, **rest).value(log_x)
    expected = known.logpdf(np.exp(log_x)) + log_x
    assert_allclose(found - found[0], expected - expected[0], rtol=1e-5, atol=1e-6)
