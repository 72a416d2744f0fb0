"""The scikit-learn face of the engines."""

from bayessel.estimators.evidence import EvidenceRegressor
from bayessel.estimators.ridge import RidgeRBFRegressor

__all__ = ["EvidenceRegressor", "RidgeRBFRegressor"]
