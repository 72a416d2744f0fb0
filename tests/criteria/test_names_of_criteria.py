"""A criterion is spelled where it is defined; elsewhere its name is read from the registry."""

import ast

from bayessel.criteria import CRITERIA
from tests.test_layers import sources

# Words that are also something else, by module: how often they stand there, and what for. Numbers may only fall.
ALLOWED = {
    "bayessel": (2, "a function"),
    "bayessel._types": (2, "types of options: the model of one weight precision, a way of inference for networks"),
    "bayessel.marginal_likelihood.model_evidence": (1, "a group of a trace"),
    "bayessel.diagnostics.sampled_fit": (2, "the same"),
    "bayessel.cli._fit_classes": (1, "the model of one weight precision"),
    "bayessel.cli._fit_models": (4, "the model of one weight precision, and a way of inference for networks"),
    "bayessel.cli._methods": (2, "the same"),
    "bayessel.cli._widths": (2, "the same"),
    "bayessel.estimators._network": (2, "a way of inference for networks"),
    "bayessel.estimators.rvm": (3, "where the precision of what is added comes from"),
    "bayessel.linear.selection.result": (1, "a field of a fit"),
    "bayessel.widths.arguments": (1, "the model of one weight precision"),
    "bayessel.widths._compare": (1, "the model of one weight precision"),
    "bayessel.diagnostics": (1, "a function in `__all__`"),
}


def literals(source: str) -> list[str]:
    """Names of criteria among the strings of a module; docstrings are prose and never a name alone."""
    return [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in CRITERIA
    ]


def test_no_name_is_spelled_twice():
    found = {module: literals(source) for module, source in sources().items() if "bayessel.criteria" not in module}
    counts = {module: len(names) for module, names in found.items() if names}
    more = {module: found[module] for module, count in counts.items() if count > ALLOWED.get(module, (0, ""))[0]}
    assert not more, f"names of criteria outside the registry: {more}"
    fewer = {module: counts.get(module, 0) for module, (n, _) in ALLOWED.items() if counts.get(module, 0) < n}
    assert not fewer, f"the numbers allowed may fall to {fewer}"


def test_a_name_is_seen():
    assert literals("def f(by='gcv'):\n    'the gcv of a fit'\n    return {'mdl-w': 1}['mdl-w']") == ["gcv"] + 2 * [
        "mdl-w"
    ]
