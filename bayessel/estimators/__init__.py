"""The scikit-learn face of the engines; each estimator loads what it needs on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayessel.estimators.averaging import average
    from bayessel.estimators.basis_search import BasisSearchRegressor
    from bayessel.estimators.evidence import EvidenceRegressor
    from bayessel.estimators.evidence_classifier import EvidenceClassifier
    from bayessel.estimators.forward_selection import ForwardSelectionRegressor
    from bayessel.estimators.gp import GPRegressor
    from bayessel.estimators.gp_classifier import GPClassifier
    from bayessel.estimators.loomi import LOOMIClassifier
    from bayessel.estimators.mlp_classifier import MLPClassifier
    from bayessel.estimators.mlp_regressor import MLPRegressor
    from bayessel.estimators.ridge import RidgeRBFRegressor
    from bayessel.estimators.rvm import RVMRegressor
    from bayessel.estimators.rvm_classifier import RVMClassifier

__all__ = [
    "BasisSearchRegressor",
    "EvidenceClassifier",
    "EvidenceRegressor",
    "ForwardSelectionRegressor",
    "GPClassifier",
    "GPRegressor",
    "LOOMIClassifier",
    "MLPClassifier",
    "MLPRegressor",
    "RVMClassifier",
    "RVMRegressor",
    "RidgeRBFRegressor",
    "average",
]

_DEFINED_IN = {
    "BasisSearchRegressor": "bayessel.estimators.basis_search",
    "EvidenceClassifier": "bayessel.estimators.evidence_classifier",
    "EvidenceRegressor": "bayessel.estimators.evidence",
    "ForwardSelectionRegressor": "bayessel.estimators.forward_selection",
    "GPClassifier": "bayessel.estimators.gp_classifier",
    "GPRegressor": "bayessel.estimators.gp",
    "LOOMIClassifier": "bayessel.estimators.loomi",
    "MLPClassifier": "bayessel.estimators.mlp_classifier",
    "MLPRegressor": "bayessel.estimators.mlp_regressor",
    "RVMClassifier": "bayessel.estimators.rvm_classifier",
    "RVMRegressor": "bayessel.estimators.rvm",
    "RidgeRBFRegressor": "bayessel.estimators.ridge",
    "average": "bayessel.estimators.averaging",
}


def __getattr__(name: str) -> Any:
    """Load an estimator on first use (PEP 562)."""
    if name in _DEFINED_IN:
        return getattr(import_module(_DEFINED_IN[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
