"""The covariance of Rasmussen (1996), eq. 4.12: bias, linear part, ARD squared exponential, noise.

C(x, x') = a₀ + a₁ x·x' + v₀ exp(−½ Σ w_i (x_i − x'_i)²) + r² δ,   θ = log(v₀, r², w₁ … w_m, a₀, a₁).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, override

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance.algebra import SumEvaluation
from bayessel.covariance.base import Covariance, Evaluation, Leaf, Parameters
from bayessel.covariance.constant_linear_noise import VAGUE, FeatureEvaluation, NoiseEvaluation
from bayessel.covariance.stationary import SquaredExponential
from bayessel.covariance.stationary_evaluation import ExponentialEvaluation


@dataclass(frozen=True, repr=False)
class Standard(Leaf):
    """Bias + linear + ARD squared exponential + noise, with the priors and the start of the thesis.

    Examples
    --------
    >>> Standard().names(2)
    ('log v0', 'log r2', 'log w[0]', 'log w[1]', 'log a0', 'log a1')
    """

    @override
    def parameters(self, m: int) -> list[Parameters]:
        noise, a0, a1 = (
            Parameters.one("r2", *VAGUE, "noise"),
            *(Parameters.one(name, *VAGUE) for name in ("a0", "a1")),
        )
        return [Parameters.amplitude(), noise, Parameters.weights(self.used(m)), a0, a1]

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        n, m = X.shape
        k = len(self.used(m))
        smooth = ExponentialEvaluation(SquaredExponential(columns=self.columns), X, keep)
        # bias and plane are one product of matrices: [1, x] with variances (a0, a1, ..., a1)
        slopes = self.scatter(np.eye(k), m).T
        plane = FeatureEvaluation(
            np.vstack([np.ones(n), self.inputs(X)]),
            [0] + [1] * k,
            np.column_stack([np.zeros(m), slopes]),
        )
        weights = np.r_[0, 2 : k + 2]
        return SumEvaluation([smooth, plane, NoiseEvaluation(n, m)], [weights, slice(k + 2, k + 4), slice(1, 2)], m)


def as_covariance(value: Any) -> Covariance:
    """Return a covariance; None stands for `Standard`."""
    if value is None:
        return Standard()
    if isinstance(value, type) and issubclass(value, Covariance):
        raise TypeError(
            f"covariance must be an object, got the class {value.__name__}: write {value.__name__}() with brackets"
        )
    if not isinstance(value, Covariance):
        raise TypeError(
            f"covariance must be one of bayessel.covariance, such as Standard(), got {type(value).__name__}"
        )
    return value
