r"""A Gaussian process that predicts with many states of its hyperparameters, of one covariance or of several.

Each part is a covariance with states of equal weight; the parts have weights of their own. Where refitted folds doubt
that the process predicts better than a constant, the constant is one more part of the mixture, with the weight that
predicts the rows held out best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, override

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel.covariance import Covariance, Prior
from bayessel.covariance.prior import UnknownMeanPrior
from bayessel.estimators._around_mode import AroundProcess
from bayessel.fit import LeaveOneOut, Status
from bayessel.gp import Predictor
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class ProcessPart:
    """States (S, k) of the parameters of a covariance, the weight of them together, and the prior of the parameters."""

    covariance: Covariance
    thetas: FloatArray
    weight: float
    prior: Prior | UnknownMeanPrior | None = None


@dataclass(frozen=True, eq=False)
class MixedProcess(AroundProcess):
    """A Gaussian process whose hyperparameters are uncertain around their mode.

    Attributes
    ----------
    mode : GPFit
        The fit at the mode; evidence, optima, history and relevance are its.
    parts : tuple of ProcessPart
        What predicts; the weights sum to one.
    share : float
        Weight of all parts beside the constant.
    """

    parts: tuple[ProcessPart, ...] = field(repr=False)
    share: float

    def __getstate__(self) -> dict[str, Any]:
        # copies of the data are made again when they are needed
        return {name: value for name, value in self.__dict__.items() if name != "_predictors"}

    @property
    def status(self) -> Status:
        """That of the mode."""
        return self.mode.status

    @property
    def notes(self) -> tuple[Status, ...]:
        """Those of the mode."""
        return self.mode.notes

    @property
    def seconds(self) -> float:
        """Time by the clock."""
        return self.mode.seconds

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict."""
        return sum(len(part.thetas) for part in self.parts)

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

    @cached_property
    def _predictors(self) -> list[Predictor]:
        return [Predictor(self.mode.X, self.mode.t, part.covariance, part.thetas) for part in self.parts]

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        """Mixtures over the states; `variance` and `progress` as of `bayessel.gp.Predictor`."""
        return self._mixed(lambda predictor, tell: predictor(rows, variance, tell), progress)

    @override
    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> LeaveOneOut:
        """Each row predicted from all others; the states stay."""
        there = self._mixed(lambda predictor, tell: predictor.leave_one_out(tell), progress)
        return LeaveOneOut.of(there, self.mode.t)

    def _mixed(
        self,
        predicted: Callable[[Predictor, Callable[[int, int], None] | None], Prediction],
        progress: Callable[[int, int], None] | None,
    ) -> Prediction:
        """The mixture of all parts, with the constant where that has a weight."""
        found: list[Prediction] = []
        before, states = 0.0, self.n_states
        for predictor in self._predictors:

            def told(done: int, total: int, before: float = before, count: int = len(predictor)) -> None:
                if progress is not None:
                    whole = total * states // count
                    progress(round(before * whole / states + done), whole)

            found.append(predicted(predictor, told))
            before += len(predictor)
        weights = [np.full(len(part.thetas), self.share * part.weight / len(part.thetas)) for part in self.parts]
        if self.share < 1.0:
            t = self.mode.t
            spread, shape = float(t.var(ddof=1)), (1, found[0].means.shape[1])
            mean, inside = np.full(shape, t.mean()), np.full(shape, spread / self.n_rows)
            found.append(Prediction(mean, inside + spread, None, inside))
            weights.append(np.array([1.0 - self.share]))
        if len(found) == 1:
            return found[0]
        means, variances = (np.vstack([getattr(one, name) for one in found]) for name in ("means", "variances"))
        # predictions of rows left out do not keep the two apart
        inner = [one.function_variances for one in found]
        functions = None if any(one is None for one in inner) else np.vstack([one for one in inner if one is not None])
        each = np.log(np.concatenate(weights))[:, None]
        return Prediction(means, variances, np.broadcast_to(each, means.shape), functions)
