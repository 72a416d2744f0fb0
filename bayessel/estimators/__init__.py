"""The scikit-learn face of the engines."""

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
