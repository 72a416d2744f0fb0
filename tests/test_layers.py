"""Imports go one way: read from the sources, imports inside functions included."""

import ast
import sys

import pytest

from tests.paths import ROOT

FOLDERS = {
    "bayessel": ROOT / "bayessel",
    "bayessel.models": ROOT / "models",
    "bayessel.diagnostics": ROOT / "diagnostics",
}

# Layer -> the layers it may import, besides itself. The first component after "bayessel." names the layer; where the
# engines of a package are a layer of their own, the first two do.
GROUND = {
    "errors",
    "_check",
    "_compiled",
    "_csv_files",
    "_fast_exp",
    "_files",
    "_fingerprint",
    "_formulas",
    "_memory",
    "_mixture_quantiles",
    "_npz",
    "_numerics",
    "_parquet_files",
    "_row_weights",
    "_text",
    "_types",
    "work",
}
TABLES = GROUND | {"_table_blocks", "_table_columns", "_tables", "pages"}
BASIS = TABLES | {"basis"}
CONTRACT = {"fit", "status", "_wrapped_fit", "several_fits", "prediction", "count_prediction"}
RESULT = BASIS | CONTRACT | {"policy", "criteria"}
NOISE = RESULT | {"covariance", "likelihoods"}
LINEAR = NOISE | {"linear"}
PROCESS = NOISE | {"gp"}
ENGINES = LINEAR | PROCESS | {"mlp"}
MAY_IMPORT = {
    **dict.fromkeys(GROUND, GROUND),
    "_pymc": set(),
    "_table_columns": GROUND,
    "_table_blocks": GROUND | {"_table_columns"},
    "_tables": GROUND | {"_table_columns"},
    "basis": TABLES,
    "prediction": GROUND | {"pages"},
    "count_prediction": GROUND | {"pages"},
    "status": {"pages"},
    "fit": BASIS | {"prediction", "count_prediction", "status"},
    "_wrapped_fit": {"fit"},
    "several_fits": {"fit"},
    "policy": GROUND | {"fit"},
    "criteria": GROUND | {"fit", "policy"},
    "pages": GROUND,
    "chains": GROUND,
    "covariance": TABLES,
    "likelihoods": NOISE - {"likelihoods"},
    "linear": NOISE,
    "gp": NOISE,
    "mlp": RESULT,
    "models": {"errors", "_check", "_fast_exp", "_pymc", "_types", "basis", "covariance", "likelihoods", "gp", "mlp"},
    "samplers": RESULT | {"_pymc", "mlp", "chains"},
    "marginal_likelihood": RESULT | {"_pymc", "samplers", "chains"},
    "estimators": ENGINES | {"models", "samplers", "marginal_likelihood", "diagnostics"},
    "baselines.engines": RESULT,
    "baselines": RESULT | {"baselines.engines", "estimators"},
    "diagnostics": RESULT | {"_pymc", "pages", "chains", "marginal_likelihood"},
    "widths": ENGINES | {"estimators", "models", "samplers", "diagnostics", "pages", "chains"},
    "cli": ENGINES | {"estimators", "models", "samplers", "diagnostics", "pages", "widths"},
}
# Layers that load, and are tested, without the big frameworks: this is all they may use, even inside a function.
PURE = (ENGINES | {"baselines.engines", "chains"}) - {"pages"}
# One class, imported when it is raised: the warning that scikit-learn's users already filter by.
GRANTED = {("bayessel._check", "sklearn.exceptions.DataConversionWarning")}
LIGHT = {"numpy", "scipy", "pandas", "pyarrow", "joblib", "threadpoolctl"} | sys.stdlib_module_names
# What some layers may use besides: compiled loops, imported by the functions that run them.
ALSO = {
    "work": {"rich", "cloudpickle", "IPython"},
    "_compiled": {"numba"},
    "_fast_exp": {"numba", "llvmlite"},
    "gp": {"numba", "llvmlite"},
    "linear": {"numba"},
    "mlp": {"numba"},
}


def sources() -> dict[str, str]:
    """Module name -> source text, for the whole package."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            found[".".join((package, *parts))] = path.read_text()
    return found


def imports(source: str) -> list[tuple[int, str]]:
    """(line, dotted name) of everything imported anywhere in the text; `from a import b` counts as a.b."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            found += [(node.lineno, f"{start}.{alias.name}") for alias in node.names]
    return found


def layer_of(name: str) -> str:
    """Layer of a dotted name without its "bayessel."."""
    two = ".".join(name.split(".")[:2])
    return two if two in MAY_IMPORT else name.partition(".")[0]


def violations(module: str, source: str) -> list[str]:
    """What the module imports against the rules, one sentence each."""
    layer = layer_of(module.removeprefix("bayessel").lstrip("."))
    if not layer:  # the top level only points at names; its lazy table is tested with the public names
        return []
    if layer not in MAY_IMPORT:
        return [f"{module}: no layer is called {layer!r}; give it a place in MAY_IMPORT"]
    found = []
    for line, name in imports(source):
        top, _, rest = name.partition(".")
        target = layer_of(rest)
        where = f"{module}:{line}"
        if top == "":
            found.append(f"{where}: relative import")
        elif top in ("models", "diagnostics", "tests", "examples", "benchmarks"):
            found.append(f"{where}: {name} is a folder of the checkout, not a package")
        elif top == "bayessel":
            if target in MAY_IMPORT:
                if target != layer and target not in MAY_IMPORT[layer]:
                    found.append(f"{where}: {layer} must not import {target}")
            elif target != "__version__":
                found.append(f"{where}: import {name!r} from the module that defines it, not from the top level")
        elif (module, name) in GRANTED:
            continue
        elif layer in PURE and top not in LIGHT | ALSO.get(layer, set()):
            found.append(f"{where}: {layer} is a pure layer and must not import {top}")
    return found


def test_imports_go_one_way():
    modules = sources()
    assert {"bayessel", "bayessel.models", "bayessel.diagnostics", "bayessel.estimators"} <= set(modules)
    faults = [fault for module, source in modules.items() for fault in violations(module, source)]
    assert not faults, "\n".join(faults)


def test_the_top_level_imports_nothing_of_its_own_at_run_time():
    tree = ast.parse((ROOT / "bayessel" / "__init__.py").read_text())
    eager = [
        name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for _, name in imports(ast.unparse(node))
        if name.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert eager == []


@pytest.mark.parametrize(
    ("module", "source", "said"),
    [
        ("bayessel.errors", "from bayessel._tables import write", "must not import _tables"),
        ("bayessel.basis", "import bayessel.fit", "must not import fit"),
        ("bayessel.linear._ridge", "from bayessel import estimators", "must not import estimators"),
        ("bayessel.linear._ridge", "from bayessel.widths import compare_widths", "must not import widths"),
        ("bayessel.linear._ridge", "def f():\n    import pymc as pm", "pure layer"),
        ("bayessel.fit", "def f():\n    if True:\n        from arviz import DataTree", "pure layer"),
        ("bayessel.basis", "import requests", "pure layer"),
        ("bayessel._check", "from sklearn.utils import check_array", "pure layer"),
        ("bayessel.chains._rhat", "import numba", "pure layer"),
        ("bayessel.mlp.prior", "import pytensor", "pure layer"),
        ("bayessel.models._linear", "from bayessel.linear import log_evidence", "must not import linear"),
        ("bayessel.models._linear", "from bayessel.diagnostics import convergence", "must not import diagnostics"),
        ("bayessel.diagnostics._mdl", "from bayessel.linear._posterior import gamma", "must not import linear"),
        (
            "bayessel.diagnostics._mdl",
            "from bayessel.estimators import EvidenceRegressor",
            "must not import estimators",
        ),
        ("bayessel.estimators", "from bayessel.cli import main", "must not import cli"),
        ("bayessel.estimators", "from bayessel.baselines import KNNRegressorCV", "must not import baselines"),
        (
            "bayessel.baselines.engines.x",
            "from bayessel.estimators.base import Versioned",
            "must not import estim",
        ),
        ("bayessel.baselines.engines.x", "from sklearn.base import clone", "pure layer"),
        ("bayessel.baselines.engines.x", "import numba", "pure layer"),
        ("bayessel.widths", "from bayessel import RBFDictionary", "not from the top level"),
        ("bayessel.widths", "import bayessel", "not from the top level"),
        ("bayessel.widths", "from models import linear", "folder of the checkout"),
        ("bayessel.widths", "from . import linear", "relative import"),
        ("bayessel.astrology", "", "no layer"),
    ],
)
def test_a_wrong_import_is_seen(module, source, said):
    (fault,) = violations(module, source)
    assert said in fault


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("bayessel.linear._ridge", "import numpy as np\nfrom bayessel.linear._posterior import gamma"),
        ("bayessel.linear._stream", "def f():\n    import pandas"),
        ("bayessel.mlp.early_stopping", "def f():\n    import numba"),
        ("bayessel.baselines.knn", "import sklearn\nfrom bayessel.baselines.engines.neighbours import fit_neighbours"),
        ("bayessel.models._linear", "import pymc as pm\nfrom bayessel._check import as_matrix"),
        ("bayessel.widths", "from bayessel.linear import fit_evidence\nfrom bayessel.diagnostics import plots"),
        ("bayessel.cli", "from bayessel import __version__"),
    ],
)
def test_a_right_import_passes(module, source):
    assert violations(module, source) == []
