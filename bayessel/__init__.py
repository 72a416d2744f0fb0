"""Bayesian model selection and sampling around PyMC: evidence, kernel-width comparison, Gibbs and Hamiltonian steps.

The names below are loaded on first use, so that ``import bayessel`` and the pure layers (`bayessel.linear`,
`bayessel.gp`, `bayessel.mlp`, `bayessel.basis`, `bayessel.covariance`) load without PyMC, PyTensor, ArviZ, matplotlib.
"""

from importlib import import_module
from importlib.metadata import version
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # not `from bayessel import`: a type checker in the checkout looks for that in this folder alone
    import bayessel.diagnostics as diagnostics
    import bayessel.models as models
    from bayessel import baselines, basis, covariance, errors, gp, linear, mlp
    from bayessel.basis import RBFDictionary, width
    from bayessel.estimators import (
        BasisSearchRegressor,
        EvidenceClassifier,
        EvidenceRegressor,
        ForwardSelectionRegressor,
        GPClassifier,
        GPRegressor,
        LOOMIClassifier,
        MLPClassifier,
        MLPRegressor,
        RidgeRBFRegressor,
        RVMClassifier,
        RVMRegressor,
        average,
    )
    from bayessel.fit import Status
    from bayessel.marginal_likelihood.audit import evidence
    from bayessel.marginal_likelihood.bayes_factor import bayes_factor
    from bayessel.samplers.gibbs import GammaPrecisionGibbs, GaussianWeightsGibbs
    from bayessel.samplers.persistent_hmc import PersistentHMC
    from bayessel.samplers.run.many import sample_many
    from bayessel.samplers.run.sampling import sample
    from bayessel.samplers.step_choice import explain_steps, steps
    from bayessel.widths import compare_widths

__version__ = version("bayessel")
# Where Python starts in a checkout it finds this folder first; models/ and diagnostics/ are then those installed.
__path__ = extend_path(__path__, __name__)

# Public name -> module that defines it; a module is its own value.
_DEFINED_IN = {
    "BasisSearchRegressor": "bayessel.estimators",
    "EvidenceClassifier": "bayessel.estimators",
    "EvidenceRegressor": "bayessel.estimators",
    "ForwardSelectionRegressor": "bayessel.estimators",
    "GPClassifier": "bayessel.estimators",
    "GPRegressor": "bayessel.estimators",
    "GammaPrecisionGibbs": "bayessel.samplers.gibbs",
    "GaussianWeightsGibbs": "bayessel.samplers.gibbs",
    "LOOMIClassifier": "bayessel.estimators",
    "MLPClassifier": "bayessel.estimators",
    "MLPRegressor": "bayessel.estimators",
    "PersistentHMC": "bayessel.samplers.persistent_hmc",
    "RBFDictionary": "bayessel.basis",
    "RVMClassifier": "bayessel.estimators",
    "RVMRegressor": "bayessel.estimators",
    "RidgeRBFRegressor": "bayessel.estimators",
    "Status": "bayessel.fit",
    "average": "bayessel.estimators",
    "bayes_factor": "bayessel.marginal_likelihood.bayes_factor",
    "compare_widths": "bayessel.widths",
    "evidence": "bayessel.marginal_likelihood.audit",
    "explain_steps": "bayessel.samplers.step_choice",
    "sample": "bayessel.samplers.run.sampling",
    "sample_many": "bayessel.samplers.run.many",
    "steps": "bayessel.samplers.step_choice",
    "width": "bayessel.basis",
}
_MODULES = ("baselines", "basis", "covariance", "diagnostics", "errors", "gp", "linear", "mlp", "models")

__all__ = [
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
    "baselines",
    "basis",
    "bayes_factor",
    "compare_widths",
    "covariance",
    "diagnostics",
    "errors",
    "evidence",
    "explain_steps",
    "gp",
    "linear",
    "mlp",
    "models",
    "sample",
    "sample_many",
    "steps",
    "width",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use and keep it in the module (PEP 562)."""
    if name in _MODULES:
        return import_module(f"bayessel.{name}")
    if name in _DEFINED_IN:
        value = getattr(import_module(_DEFINED_IN[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'bayessel' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
