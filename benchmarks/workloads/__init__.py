"""The workloads: one module each with TITLE, TEXT, ``cases(quick)`` and ``run(quick, memory)``."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

#: in the order of the page
NAMES = (
    "evidence",
    "tall",
    "ill_conditioned",
    "stream",
    "incremental",
    "widths",
    "accuracy",
    "rvm",
    "rvm_growth",
    "rvm_widths",
    "search",
    "search_delve",
    "forward",
    "loomi",
    "mars",
    "samplers",
    "samplers_gradient",
    "samplers_overhead",
    "samplers_gp",
    "mlp_race",
    "gp_marginal",
    "gp_map",
    "gp_sparse",
    "gp_delve",
    "mlp_delve",
    "delve_study",
    "field",
)


def load(name: str) -> ModuleType:
    """Import a workload by name."""
    if name not in NAMES:
        raise ValueError(f"there is no workload {name!r}; there are {', '.join(NAMES)}")
    return import_module(f"benchmarks.workloads.{name}")
