"""The public names are pinned, and the pure layers load without the big frameworks."""

import importlib
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import bayessel as bs
from tests.test_layers import sources

# A name added or taken away is a decision: change it here and in CHANGELOG.md.
NAMES = {
    "BasisSearchRegressor",
    "EvidenceClassifier",
    "EvidenceRegressor",
    "ForwardSelectionRegressor",
    "GPClassifier",
    "GPRegressor",
    "GammaPrecisionGibbs",
    "GaussianWeightsGibbs",
    "LOOMIClassifier",
    "MLPClassifier",
    "MLPRegressor",
    "PersistentHMC",
    "RBFDictionary",
    "RVMClassifier",
    "RVMRegressor",
    "RidgeRBFRegressor",
    "Status",
    "__version__",
    "average",
    "bayes_factor",
    "evidence",
    "baselines",
    "basis",
    "compare_widths",
    "covariance",
    "diagnostics",
    "errors",
    "explain_steps",
    "gp",
    "linear",
    "mlp",
    "models",
    "sample",
    "sample_many",
    "steps",
    "width",
}
MODULES = {"baselines", "basis", "covariance", "diagnostics", "errors", "gp", "linear", "mlp", "models"}
HEAVY = ("pymc", "pytensor", "arviz", "matplotlib")


def test_names_are_pinned():
    assert set(bs.__all__) == NAMES
    assert len(bs.__all__) == len(NAMES) <= 36
    assert set(dir(bs)) >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_loads(name):
    value = getattr(bs, name)
    assert value is getattr(bs, name)
    if name in MODULES:
        assert isinstance(value, ModuleType)
        assert value.__name__ == f"bayessel.{name}"
    elif name != "__version__":
        assert callable(value)
        assert value.__module__.startswith("bayessel.")
        assert value.__doc__


def public_objects():
    """Functions and classes that any package exports, by their full names."""
    packages = [
        bs,
        *(importlib.import_module(one.name) for one in pkgutil.walk_packages(bs.__path__, "bayessel.") if one.ispkg),
    ]
    found = {}
    for package in packages:
        for name in getattr(package, "__all__", ()):
            value = getattr(package, name)
            if callable(value) and getattr(value, "__module__", "").startswith("bayessel"):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def test_every_public_name_has_an_example():
    found = public_objects()
    assert len(found) > 100 and bs.EvidenceRegressor in found.values()
    without = sorted(name for name, value in found.items() if ">>>" not in (value.__doc__ or ""))
    assert not without


def test_star_import_brings_the_names():
    namespace = {}
    exec("from bayessel import *", namespace)
    assert set(namespace) - {"__builtins__"} == NAMES


def test_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match=r"'RVM'.*EvidenceRegressor"):
        _ = bs.RVM


@pytest.mark.parametrize(
    ("function", "submodule"),
    [("width", "bayessel.widths"), ("compare_widths", "bayessel.widths")],
)
def test_a_function_stays_itself_after_submodules_load(function, submodule):
    # Importing bayessel.x binds the attribute x of the package: no function may share a submodule's name.
    before = getattr(bs, function)
    __import__(submodule)
    assert getattr(bs, function) is before


def overshadowed(package: ModuleType) -> set[str]:
    """Names that a package exports and that one of its modules has: importing the module would replace them."""
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    exported = set(getattr(package, "__all__", ()))
    return {name for name in exported & modules if not isinstance(getattr(package, name), ModuleType)}


def test_no_exported_name_is_that_of_a_module():
    packages = [bs, *(importlib.import_module(name) for name in sources() if name != "bayessel")]
    found = {
        package.__name__: names
        for package in packages
        if hasattr(package, "__path__") and (names := overshadowed(package))
    }
    assert not found


def test_a_name_that_a_module_replaces_is_seen(monkeypatch):
    monkeypatch.setattr(bs.linear, "__all__", ["ridge", "widths", "posterior"])
    monkeypatch.setattr(bs.linear, "ridge", print)
    assert overshadowed(bs.linear) == {"ridge"}


def loaded_by(statement: str) -> set[str]:
    """Return which heavy packages a fresh interpreter has loaded after the statement."""
    code = f"import sys\n{statement}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_pure_layers_load_without_the_frameworks():
    layers = ("linear", "gp", "mlp", "basis", "fit", "errors")
    assert loaded_by(f"import {', '.join(f'bayessel.{layer}' for layer in layers)}") == set()


def test_looking_at_the_top_level_loads_nothing():
    assert loaded_by("import bayessel; dir(bayessel); bayessel.RBFDictionary; bayessel.linear.log_evidence") == set()


def test_the_watch_on_loaded_packages_sees_them():
    assert loaded_by("import bayessel, matplotlib") == {"matplotlib"}
