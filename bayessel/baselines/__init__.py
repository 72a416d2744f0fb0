"""Methods to compare with: what simple and older methods reach on the same data, with scikit-learn's face."""

from bayessel.baselines.knn import KNNRegressorCV
from bayessel.baselines.linear import LinearBaseline
from bayessel.baselines.mars import BaggedMARSRegressor, MARSRegressor

__all__ = ["BaggedMARSRegressor", "KNNRegressorCV", "LinearBaseline", "MARSRegressor"]
