r"""A Gaussian process at its mode, with the uncertainty of its hyperparameters by Laplace's approximation.

States :math:`\theta_s = \hat\theta + H^{-1/2}z_s`, with the curvature H of the log posterior at the mode and normal z_s
in pairs of opposite sign, predict as a mixture. Where refitted folds doubt that the process predicts better than a
constant, the constant is one more part of the mixture, with the weight that predicts the rows held out best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, override

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.gp import Predictor
from bayessel.gp.map_result import GPFit
from bayessel.prediction import Prediction

#: states that predict, and the cubes of rows that their factorisations may take together
MOST_STATES, MOST_CUBES = 40, 4e10
#: least curvature in a direction, that of a prior with a standard deviation of two; the farthest step, in logarithms
LEAST_CURVATURE, FARTHEST = 0.25, 4.0


def states_around(mode: GPFit) -> FloatArray:
    """Hyperparameters around the mode, (S, k), the same for the same fit; of many rows few, of more the mode alone."""
    count = 2 * int(min(MOST_STATES, MOST_CUBES / max(mode.n_rows, 1) ** 3) / 2)
    curvature, axes = np.linalg.eigh(mode.hessian)
    if not count or not np.isfinite(curvature).all():
        return mode.theta[None]
    # signs of eigenvectors are arbitrary: fixed by what does not depend on the order of the parameters
    axes = axes * np.where((axes**3).sum(axis=0) < 0.0, -1.0, 1.0)
    z = np.random.default_rng(0).normal(size=(count // 2, len(mode.theta)))
    steps = np.vstack([z, -z]) / np.sqrt(np.maximum(curvature, LEAST_CURVATURE)) @ axes.T
    return np.asarray(mode.theta + np.clip(steps, -FARTHEST, FARTHEST))


@dataclass(frozen=True, eq=False)
class LaplaceProcess(Fit):
    """A Gaussian process whose hyperparameters are uncertain around their mode.

    Attributes
    ----------
    mode : GPFit
        The fit at the mode; evidence, optima, history and relevance are its.
    thetas : (S, k) array
        States that predict.
    share : float
        Weight of the process beside the constant.
    """

    mode: GPFit = field(repr=False)
    thetas: FloatArray = field(repr=False)
    share: float

    @property
    def status(self) -> Status:
        """That of the mode."""
        return self.mode.status

    @property
    def notes(self) -> tuple[Status, ...]:
        """Those of the mode."""
        return self.mode.notes

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return self.mode.n_rows

    @property
    def fingerprint(self) -> str:
        """Name of inputs and target."""
        return self.mode.fingerprint

    @property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return self.mode.target_fingerprint

    @property
    def evidence(self) -> Evidence:
        """log p(t|θ) at the mode, of kind "type2"; see `model_evidence`."""
        return self.mode.evidence

    @property
    def model_evidence(self) -> Evidence:
        """log p(t) by Laplace's approximation."""
        return self.mode.model_evidence

    @property
    def optima(self) -> tuple[Any, ...]:
        """Local maxima of the posterior density."""
        return self.mode.optima

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]:
        """Evaluations of the search for the mode."""
        return self.mode.history

    @property
    def seconds(self) -> float:
        """Time by the clock."""
        return self.mode.seconds

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict."""
        return len(self.thetas)

    @property
    def theta(self) -> FloatArray:
        """The mode, (k,)."""
        return self.mode.theta

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise at the mode."""
        return self.mode.noise_std

    @property
    def relevance(self) -> pd.DataFrame:
        """Lengths of the inputs, as of `GPFit`."""
        return self.mode.relevance

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters at the mode."""
        return self.mode.gamma

    @property
    def sum_squares(self) -> float:
        """Squared residuals of the mean at the mode."""
        return self.mode.sum_squares

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.mode.X, self.mode.t, self.mode.covariance, self.thetas)

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        """Mixtures over the states; `variance` and `progress` as of `bayessel.gp.Predictor`."""
        return self._beside_constant(self._predictor(rows, variance, progress))

    @override
    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> LeaveOneOut:
        """Each row predicted from all others; the states stay."""
        there = self._beside_constant(self._predictor.leave_one_out(progress))
        return LeaveOneOut.of(there, self.mode.t)

    def _beside_constant(self, there: Prediction) -> Prediction:
        """The mixture with the constant, where that has a weight."""
        if self.share >= 1.0:
            return there
        t, n = self.mode.t, self.n_rows
        spread = float(t.var(ddof=1))
        states = len(there.means)

        def below(parts: FloatArray, value: float) -> FloatArray:
            return np.vstack([parts, np.full((1, parts.shape[1]), value)])

        weights = np.log(np.append(np.full(states, self.share / states), 1.0 - self.share))
        inside = there.function_variances
        return replace(
            there,
            means=below(there.means, float(t.mean())),
            variances=below(there.variances, spread * (1.0 + 1.0 / n)),
            log_weights=np.broadcast_to(weights[:, None], (states + 1, there.means.shape[1])),
            function_variances=None if inside is None else below(inside, spread / n),
        )
