"""The scikit-learn face of the engines."""

from bayessel.estimators.evidence import EvidenceRegressor
from bayessel.estimators.gp import GPRegressor
from bayessel.estimators.ridge import RidgeRBFRegressor
from bayessel.estimators.rvm import RVMRegressor

__all__ = ["EvidenceRegressor", "GPRegressor", "RVMRegressor", "RidgeRBFRegressor"]
