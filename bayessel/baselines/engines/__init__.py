"""The baselines on plain arrays: no scikit-learn."""

from bayessel.baselines.engines.linear_fit import LinearBaselineFit, fit_linear_baseline
from bayessel.baselines.engines.neighbours import NeighbourFit, fit_neighbours

__all__ = ["LinearBaselineFit", "NeighbourFit", "fit_linear_baseline", "fit_neighbours"]
