"""Predictions of an estimator of Gaussian processes: pieces of new rows, their work, mixtures in units of the data."""

from __future__ import annotations

from typing import Any

from bayessel._check import FloatArray
from bayessel._numerics import few_threads
from bayessel.estimators._latent_regression import COUNTED
from bayessel.prediction import Prediction

#: test points worked on at a time; what is kept of all of them is what was asked for
CHUNK = 4096
#: operations for a test point where not all rows take part, by which bars are as long as the work
OPERATIONS = 1e5


def components(self: Any) -> int:
    """States that predict."""
    return int(self.fit_.n_states)


def piece(self: Any) -> int:
    """Test points worked on at a time: the factors of a large problem are computed once per piece."""
    return min(max(CHUNK, 4 * len(self._rows[1])), int(self.fit_.most_rows))


def operations(self: Any, variance: bool) -> float:
    """For a test point and state."""
    n = len(self._rows[1])
    return OPERATIONS if self.method_ != "dense" else float(n) * (n if variance else 1)


def mixture(self: Any, X: FloatArray, noise: bool = True, variance: bool = True, tell: Any = None) -> Prediction:
    """Predictive distributions at new rows, of observations or of the function."""
    with few_threads(len(self._rows[1]) ** 2):
        found: Any = self.fit_.predict(X, variance, tell)
    if not noise and self.likelihood in COUNTED:
        raise ValueError("counts have no noise apart from their rate; predictive(X).means are of the log rates")
    return found if noise else found.function


def log_density(self: Any, mixture: Prediction, y: FloatArray) -> FloatArray:
    """Log densities of observations, of all targets of a row together."""
    return mixture.log_density(y).reshape(len(y), -1).sum(axis=1)
