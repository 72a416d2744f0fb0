"""The baselines on plain arrays: no scikit-learn."""

from bayessel.baselines.engines.bagged import fit_bagged
from bayessel.baselines.engines.linear_fit import fit_linear_baseline
from bayessel.baselines.engines.mars import MARSFit, fit_mars
from bayessel.baselines.engines.neighbours import fit_neighbours

__all__ = [
    "MARSFit",
    "fit_bagged",
    "fit_linear_baseline",
    "fit_mars",
    "fit_neighbours",
]
