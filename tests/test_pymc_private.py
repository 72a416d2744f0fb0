"""Each thing that bayessel uses of PyMC and PyTensor without a promise: it is there, and does what is relied on.

Guards `bayessel._pymc`.
"""

import ast
import subprocess
import sys
from importlib.util import find_spec

import cloudpickle
import numba
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.step_methods import BlockedStep, CompoundStep

from bayessel import _pymc
from tests.test_layers import imports, sources

#: modules of both that are documented: names in them are promised
DOCUMENTED = {
    "pymc": {"", "step_methods", "exceptions", "model.transform.conditioning"},
    "pytensor": {
        "",
        "compile.mode",
        "compile.sharedvalue",
        "gradient",
        "graph.basic",
        "graph.op",
        "graph.replace",
        "graph.rewriting.basic",
        "graph.traversal",
        "scalar",
        "tensor",
        "tensor.basic",
        "tensor.blockwise",
        "tensor.elemwise",
        "tensor.extra_ops",
        "tensor.math",
        "tensor.random.basic",
        "tensor.random.op",
        "tensor.rewriting.basic",
        "tensor.shape",
        "tensor.subtensor",
    },
}
#: modules that hold what is not promised: of PyMC and PyTensor, and of Numba
HOLDERS = {"bayessel._pymc", "bayessel._compiled"}
#: of named tuples, and of the module os
PROMISED = {"_asdict", "_fields", "_make", "_replace", "_exit"}


@pytest.fixture(scope="module")
def model():
    """Two variables, one of them positive, and data."""
    with pm.Model(coords={"row": range(3)}) as made:
        mu = pm.Normal("mu", 0.0, 2.0, shape=2)
        tau = pm.Gamma("tau", 2.0, 1.0)
        data = pm.Data("data", np.array([0.3, -1.0, 0.4]), dims="row")
        slope = pm.Data("slope", np.array([1.0, 2.0, 3.0]), dims="row")
        pm.Normal("y", mu.sum() * slope, tau=tau, observed=data, dims="row")
    return made


# --- nothing of it elsewhere -----------------------------------------------------------------------------------


def _is_module(name):
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a name in a module that is no package
        return False


def undocumented(source):
    found = []
    for line, name in imports(source):
        top, _, rest = name.partition(".")
        if top in DOCUMENTED:
            module = rest if _is_module(name) else rest.rpartition(".")[0]
            if module not in DOCUMENTED[top]:
                found.append((line, name))
        if top == "numba" and rest.count(".") > 1:
            found.append((line, name))
    return found


def private_attributes(source):
    """(line, name) of `_x` that is read from, or set on, something that is not `self` or a class's own."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                found.append((node.lineno, node.attr))
    return found


def own_names(source):
    """Every name that the text defines or sets."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found |= {part for alias in node.names for part in alias.name.split(".")}
    return found


def test_multiplications_follow_the_shapes_of_a_graph():
    matrix, vector = pt.dmatrix(), pt.vector("v", shape=(50,))
    fixed = pt.specify_shape(matrix, (50, 50))
    counts = [
        _pymc.multiplications(pm.compile([matrix, vector], outs, on_unused_input="ignore"))
        for outs in (vector + 1.0, pt.dot(fixed, vector), pt.linalg.cholesky(fixed))
    ]
    assert 50 <= counts[0] < 500 <= counts[1] < 20_000 < counts[2]


def test_private_parts_of_others_are_used_behind_one_module_each():
    modules = sources()
    ours = set().union(*map(own_names, modules.values())) | {name.rpartition(".")[2] for name in modules}
    faults = []
    for name, source in modules.items():
        if name not in HOLDERS:
            faults += [f"{name}:{line}: {what} is not documented" for line, what in undocumented(source)]
            strange = [one for one in private_attributes(source) if one[1] not in ours | PROMISED]
            faults += [f"{name}:{line}: {what} is private" for line, what in strange]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from pymc.util import get_random_generator", 1),
        ("import pymc.util", 1),
        ("from pymc import Model, modelcontext\nfrom pymc.step_methods import BlockedStep", 0),
        ("from pytensor.link.basic import PerformLinker", 1),
        ("from numba.core import caching", 0),
        ("from numba.core.caching import FunctionCache", 1),
        ("x = compiled._pytensor_function", 1),
        ("self._here = 3", 0),
    ],
)
def test_private_parts_are_seen(source, count):
    assert len(undocumented(source)) + len(private_attributes(source)) == count


# --- PyMC ------------------------------------------------------------------------------------------------------


def test_density_and_gradient_of_one_vector(model):
    values = {one.name: one for one in model.value_vars}
    point = {"mu": np.array([0.2, -0.4]), "tau_log__": np.array(0.5)}
    function, others = _pymc.density_and_gradient(model, [values["mu"]], point)
    assert list(others) == ["tau_log__"]
    whole = model.compile_logp()
    for log_tau in (0.5, -1.0):
        others["tau_log__"].set_value(np.array(log_tau))
        value, gradient = function(point["mu"])
        there = point | {"tau_log__": np.array(log_tau)}
        assert float(value) == pytest.approx(float(whole(there)), rel=1e-12)
        up, down = (whole(there | {"mu": point["mu"] + step}) for step in (1e-6, -1e-6))
        assert gradient.sum() == pytest.approx(float(up - down) / 2e-6, rel=1e-6)
    data = [one for one in function.get_shared() if one is not others["tau_log__"]]
    assert any(np.array_equal(one.get_value(), model["slope"].get_value()) for one in data)
    function.trust_input = True


def test_the_density_joined_to_one_vector(model):
    values = {one.name: one for one in model.value_vars}
    start = model.initial_point()
    [density], joined = _pymc.join_nonshared_inputs(start, [model.logp()], list(values.values()), {})
    vector = np.concatenate([np.ravel(start[name]) for name in values])
    found = pm.compile([joined], density)(vector)
    assert float(found) == pytest.approx(float(model.compile_logp()(start)), rel=1e-12)


def test_competence_of_step_methods(model):
    assert _pymc.competence(pm.NUTS, model["mu"], True) == _pymc.Competence.PREFERRED
    assert _pymc.competence(pm.NUTS, model["mu"], False) == _pymc.Competence.INCOMPATIBLE
    assert _pymc.competence(pm.Slice, model["tau"], False) < _pymc.Competence.IDEAL


def test_states_of_steps(model):
    with model:
        step = pm.Metropolis([model["tau"]], rng=np.random.default_rng(1))
    found = _pymc.state_class(step)
    assert isinstance(step.sampling_state, found) and issubclass(found, _pymc.StepMethodState)

    @_pymc.dataclass_state
    class State(_pymc.StepMethodState):
        count: int

    assert State(var_names=["x"], rng=np.random.default_rng(0), count=2).count == 2


def test_compound_steps_are_flattened(model):
    with model:
        inner = [pm.Metropolis([model["tau"]]), pm.Metropolis([model["mu"]])]
    assert _pymc.flatten_steps(CompoundStep([CompoundStep(inner)])) == inner
    assert _pymc.flatten_steps(inner[0]) == [inner[0]]
    assert issubclass(_pymc.PopulationArrayStepShared, BlockedStep)
    assert issubclass(pm.DEMetropolis, _pymc.PopulationArrayStepShared)


def test_names_of_value_variables(model):
    assert _pymc.is_transformed_name("tau_log__") and not _pymc.is_transformed_name("tau")
    assert _pymc.get_untransformed_name("tau_log__") == "tau"
    found = _pymc.get_value_vars_from_user_vars([model["tau"]], model)
    assert [one.name for one in found] == ["tau_log__"]


def test_generators_and_their_states():
    rng = _pymc.get_random_generator(7)
    assert isinstance(rng, np.random.Generator)
    given = np.random.default_rng(3)
    assert _pymc.get_random_generator(given, copy=False) is given
    rng.normal(size=3)
    state = _pymc.get_state_from_generator(rng)
    assert isinstance(state, _pymc.RandomGeneratorState)
    again = _pymc.RandomGeneratorState(state.bit_generator_state, state.seed_seq_state)
    there = _pymc.random_generator_from_state(again)
    assert np.array_equal(there.normal(size=5), rng.normal(size=5))
    assert np.array_equal(there.spawn(1)[0].normal(size=2), rng.spawn(1)[0].normal(size=2))


def test_initial_points(model):
    (start,) = _pymc.make_initial_point_fns_per_chain(
        model=model, overrides={"tau": 2.0}, jitter_rvs={model["mu"]}, chains=1
    )
    one, other = start(1), start(2)
    assert set(one) == {"mu", "tau_log__"} and float(one["tau_log__"]) == pytest.approx(np.log(2.0))
    assert not np.array_equal(one["mu"], other["mu"]) and (np.abs(one["mu"]) <= 1.0).all()
    assert np.array_equal(one["mu"], start(1)["mu"])


def test_random_parts_of_data_are_seen(model):
    assert _pymc.batched(model) == []
    with pm.Model() as parts:
        some = pm.Minibatch(np.arange(9.0), batch_size=3)
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1.0, observed=some, total_size=9)
        pm.Normal("z", mu, 1.0, observed=np.arange(3.0), total_size=9)
        pm.Normal("whole", mu, 1.0, observed=np.arange(3.0))
        pm.Potential("p", mu * some.sum())
    assert _pymc.batched(parts) == ["y", "z", "p"]


def test_observed_values_can_be_exchanged():
    def made(y, counts):
        with pm.Model() as made:
            mu, tau = pm.Normal("mu", initval=0.3), pm.Gamma("tau", 2.0, 1.0)
            pm.Normal("y", mu, tau=tau, observed=y)
            pm.Poisson("n", pm.math.exp(mu), observed=counts)
            pm.Normal("whole", mu, 1.0, observed=pm.Data("whole_data", np.array([1, 2])))
        return made

    first = made(np.array([0.3, -1.0]), [1, 2, 3])
    before = dict(first.rvs_to_values)
    other, found = _pymc.with_shared_observations(first)
    assert set(found) == {"y", "n", "whole"} and found["whole"] is first["whole_data"]
    assert dict(first.rvs_to_values) == before and other.free_RVs == first.free_RVs
    point = {"mu": 0.2, "tau_log__": -0.4}
    logp = other.compile_logp()
    assert logp(point) == pytest.approx(first.compile_logp()(point))
    found["y"].set_value(np.array([2.0, 3.0]))
    found["n"].set_value(np.array([0, 0, 7]))
    assert logp(point) == pytest.approx(made(np.array([2.0, 3.0]), [0, 0, 7]).compile_logp()(point))
    assert _pymc.find_observations(other)["n"].tolist() == [0, 0, 7]
    assert _pymc.find_observations(first)["n"].tolist() == [1, 2, 3]


def test_initial_values_are_left_out_of_models_that_are_cloned():
    with pm.Model() as first:
        x = pm.Normal("x", initval=2.0)
    with pytest.raises(NotImplementedError, match="initial_values"):
        _pymc.clone_model(first)
    other = _pymc.without_initial_values(first)
    assert other.free_RVs == first.free_RVs and first.rvs_to_initial_values[x] == 2.0
    assert _pymc.clone_model(other).initial_point()["x"] == 0.0


def test_what_arviz_is_told(model):
    assert list(_pymc.find_observations(model)) == ["y"]
    assert list(_pymc.find_constants(model)) == ["slope"]
    coords, dims = _pymc.coords_and_dims_for_inferencedata(model)
    assert list(coords["row"]) == [0, 1, 2] and list(dims["y"]) == ["row"]


@pytest.mark.filterwarnings("ignore:.*RandomVariable .*rng:DeprecationWarning")  # by pm.Simulator
def test_classes_of_densities_and_transforms(model):
    with pm.Model() as declared:
        half = pm.HalfCauchy("half", 1.0)
        t = pm.HalfStudentT("t", 3.0, 1.0)
        weibull = pm.Weibull("weibull", 2.0, 1.0)
        flat = pm.Flat("flat")
        walk = pm.GaussianRandomWalk("walk", mu=0.5, sigma=2.0, init_dist=pm.Normal.dist(), steps=3)
        censored = pm.Censored("censored", pm.Normal.dist(), lower=0.0, upper=1.0)
        simulated = pm.Simulator("simulated", lambda rng, size: rng.normal(size=size), observed=[0.3])
    assert isinstance(simulated.owner.op, _pymc.SimulatorRV)
    assert isinstance(half.owner.op, _pymc.HalfCauchyRV)
    assert isinstance(t.owner.op, _pymc.HalfStudentTRV)
    assert isinstance(flat.owner.op, _pymc.FlatRV)
    assert isinstance(pm.HalfFlat.dist().owner.op, _pymc.HalfFlatRV)
    copy = _pymc.clone_model(model)
    assert copy is not model and {rv.name for rv in copy.free_RVs} == {rv.name for rv in model.free_RVs}
    assert isinstance(_pymc.default_transform(half), _pymc.LogTransform) and _pymc.default_transform(flat) is None
    assert isinstance(walk.owner.op, _pymc.RandomWalkRV)
    innovations = walk.owner.inputs[1].owner  # after the first value
    assert [float(one.eval().item()) for one in innovations.op.dist_params(innovations)] == [0.5, 2.0]
    assert isinstance(weibull.owner.op, _pymc.WeibullBetaRV)
    assert isinstance(censored.owner.op, _pymc.SymbolicRandomVariable)
    assert isinstance(declared.rvs_to_transforms[half], _pymc.LogTransform)
    assert isinstance(model.rvs_to_transforms[model["tau"]], _pymc.Transform)
    assert _pymc.PointType is not None and _pymc.StatsType is not None


# --- PyTensor --------------------------------------------------------------------------------------------------


def test_memory_of_a_plain_python_function():
    x = pt.vector("x")
    mode = pytensor.compile.mode.Mode(linker=_pymc.PerformLinker(allow_gc=False), optimizer=None)
    function = pytensor.function([x], [pt.exp(x).sum()], mode=mode)
    sizes = []
    for count in (100, 200):
        assert float(function(np.zeros(count))[0]) == count
        sizes.append(_pymc.stored_bytes(function))
    assert sizes[1] - sizes[0] == 2 * 800  # x and exp(x)


def test_functions_that_numpy_does_not_have(model):
    """Their operations, called from Python for each number, are replaced where many draws are finished."""
    x = pt.vector("x")
    for graph, kind in ((pt.softplus(x), _pymc.Softplus), (pt.log1mexp(x), _pymc.Log1mexp)):
        assert isinstance(graph.owner.op.scalar_op, kind) and graph.owner.op.nfunc_spec is None


def test_copies_and_views_in_a_compiled_graph():
    x = pt.vector("x")
    function = pytensor.function([x], [x], mode="FAST_COMPILE")
    assert isinstance(function.maker.fgraph.outputs[0].owner.op, _pymc.DeepCopyOp)
    assert isinstance(_pymc.ViewOp()(x).owner.op, _pymc.ViewOp)


def test_triangular_systems_have_their_operation():
    node = pt.linalg.solve_triangular(pt.matrix("A"), pt.vector("b"), lower=True).owner
    core = getattr(node.op, "core_op", node.op)
    assert isinstance(core, _pymc.SolveTriangular) and core.lower


def test_operations_of_our_own_in_compiled_graphs():
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

    class Twice(Op):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            raise AssertionError("compiled code has its own")

    @_pymc.numba_funcify.register(Twice)
    def made(op, node, **options):
        @_pymc.numba_njit
        def twice(x):
            return 2.0 * x

        return twice

    x = pt.vector("x")
    function = pytensor.function([x], Twice()(x), mode="NUMBA")
    assert np.array_equal(function(np.arange(3.0)), [0.0, 2.0, 4.0])


@pytest.mark.parametrize("mode", ["FAST_COMPILE", None])
def test_generators_of_a_compiled_function_begin_anew(model, mode):
    outputs = list(model.free_RVs)
    draw = pm.compile([], outputs, random_seed=0, **({} if mode is None else {"mode": mode}))
    found = []
    for seed in (5, 6, 5):
        _pymc.reseed_rngs(_pymc.find_rng_nodes(outputs), seed)
        found.append([np.concatenate([np.ravel(one) for one in draw()]) for _ in range(2)])
    np.testing.assert_array_equal(found[0], found[2])
    assert not np.array_equal(found[0][0], found[0][1]) and not np.array_equal(found[0], found[1])


READER = """
import pickle, sys
from bayessel import _pymc
with open(sys.argv[1], "rb") as file:
    model, methods = pickle.load(file)
if sys.argv[2] == "told":
    _pymc.register_custom_methods(methods)
print(float(model.compile_logp()({"w": [0.5, 1.0]})))
"""


def test_methods_of_custom_distributions_reach_another_process(tmp_path):
    """PyMC registers them for a class that is made with the variable; a pickle holds the class alone."""
    with pm.Model() as model:
        w = pm.Normal("w", shape=2)
        pm.CustomDist("t", w, logp=lambda value, mean: -pt.sum((value - mean) ** 2), observed=np.ones(2))
    methods = _pymc.custom_methods(model)
    assert [set(own) >= {"_logprob", "_support_point"} for own in methods.values()] == [True]
    path = tmp_path / "model.pickle"
    path.write_bytes(cloudpickle.dumps((model, methods)))
    runs = {
        said: subprocess.run([sys.executable, "-c", READER, str(path), said], capture_output=True, text=True)
        for said in ("told", "untold")
    }
    assert float(runs["told"].stdout) == pytest.approx(-np.log(2 * np.pi) - 0.5 * (0.25 + 1.0) - 0.25)
    assert "Logprob method not implemented" in runs["untold"].stderr


def test_machine_code_has_an_address(model):
    point = model.initial_point(0)
    q = np.zeros(sum(np.size(value) for value in point.values()))
    function, shared = _pymc.density_and_gradient(model, model.value_vars, point)
    assert not shared and not _pymc.runs_python(function)  # that data have one shape is checked, but not at each value
    others = tuple(cell.storage[0] for cell in function.input_storage[1:])
    function(q)
    address, signature = _pymc.machine_code(function, (q, *others))
    assert address > 0 and signature.args == (numba.typeof((q, *others)),)
    plain, _ = _pymc.density_and_gradient(model, model.value_vars, point, mode="FAST_COMPILE")
    assert _pymc.runs_python(plain)
