"""Gaussian processes as fits of an estimator: of draws of the hyperparameters, and in the units of the data."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import override

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.errors import NumericalWarning, SamplingWarning
from bayessel.estimators import _chains, _importance_loo
from bayessel.estimators._around_mode import AroundProcess
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._mixed_process import MixedProcess
from bayessel.estimators._relevance import lengths_of_draws
from bayessel.estimators.base import HERE
from bayessel.fit import Evidence, LeaveOneOut, Status, worst
from bayessel.gp import Predictor
from bayessel.gp.map_result import GPFit
from bayessel.prediction import Prediction

#: fewest draws per chain and parameter from which an evidence is computed
_DRAWS_OF_EVIDENCE = 5


@dataclass(frozen=True, eq=False)
class SampledProcess(AroundProcess):
    """A Gaussian process whose hyperparameters were drawn from their posterior.

    Attributes
    ----------
    mode : GPFit
        Where the chains began; evidence (type II), optima and history are its.
    draws : (chains, draws, k) array
        All draws.
    thetas : (S, k) array
        Those that predict.
    seconds : float
        Of finding the mode and of sampling.
    audited : Evidence or None
        What `GPRegressor.evidence` found, once it was called.
    """

    draws: FloatArray = field(repr=False)
    thetas: FloatArray = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    seconds: float
    audited: Evidence | None = None

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict."""
        return len(self.thetas)

    @property
    def every(self) -> FloatArray:
        """All draws, those of all chains together, (draws, k)."""
        return self.draws.reshape(-1, self.draws.shape[2])

    @property
    def theta(self) -> FloatArray:
        """One state to stand for all: the medians of the draws, (k,)."""
        return np.asarray(np.median(self.every, axis=0))

    @property
    def noise_std(self) -> float:
        """Root mean square of the noise over the states that predict."""
        inputs = self.mode.X.shape[1]
        return float(np.sqrt(np.mean([self.mode.covariance.noise(theta, inputs) for theta in self.thetas])))

    @property
    def relevance(self) -> pd.DataFrame:
        """Lengths of the inputs, as of `GPFit`: medians and central 95 % intervals of the draws."""
        inputs = self.mode.X.shape[1]
        return lengths_of_draws(np.array([self.mode.covariance.relevance(theta, inputs) for theta in self.every]))

    @cached_property
    def model_evidence(self) -> Evidence:
        """log p(t), the hyperparameters integrated out: audited, by bridge sampling, or of few draws by Laplace."""
        if self.audited is not None:
            return self.audited
        if self.draws.shape[1] < _DRAWS_OF_EVIDENCE * self.draws.shape[2]:
            return self.mode.model_evidence
        from bayessel.diagnostics import bridge_sampling

        found = bridge_sampling(self.mode.log_joint, self.draws)
        return Evidence(found.log_evidence, "sampled", found.error, integrated=self.mode.names)

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.mode.X, self.mode.t, self.mode.covariance, self.thetas)

    @cached_property
    def _predictor_of_all(self) -> Predictor:
        return Predictor(self.mode.X, self.mode.t, self.mode.covariance, self.every)

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        """Mixtures over the states that predict; `variance` and `progress` as of `bayessel.gp.Predictor`."""
        return self._predictor(rows, variance, progress)

    @cached_property
    def _weighted(self) -> tuple[Prediction, FloatArray]:
        mixture = self._predictor_of_all.leave_one_out()
        if len(self.every) < _importance_loo.FEW_DRAWS:
            return mixture, np.full(self.n_rows, np.inf)
        log_weights, shapes = _importance_loo.weights(self.log_likelihood())
        return replace(mixture, log_weights=log_weights), shapes

    @property
    def pareto_k(self) -> FloatArray:
        """Shapes of the tails of the rows' importance weights, (n,); above 0.7 they are unsure."""
        return self._weighted[1]

    #: what `log_likelihood` has, as `bayessel.sample` says of models
    terms = "leave-one-out conditionals log p(t_i | t_-i, parameters); their sum is not log p(t)"

    def log_likelihood(self) -> FloatArray:
        """log p(t_i | t_{−i}, θ) of every draw and row, (draws, n), from which `arviz.loo` finds the same."""
        mixture = self._predictor_of_all.leave_one_out()
        return log_normal(self.mode.t - mixture.means, mixture.variances)

    @override
    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> LeaveOneOut:
        """Each row predicted from all others, the hyperparameters too: by importance weights, Pareto-smoothed.

        `progress` is called with (draws done, draws in all).
        """
        self._predictor_of_all.leave_one_out(progress)
        mixture, shapes = self._weighted
        draws = len(self.every)
        if draws >= _importance_loo.FEW_DRAWS and (said := _importance_loo.doubts(shapes, draws)):
            warnings.warn(said, NumericalWarning, skip_file_prefixes=HERE)
        return LeaveOneOut.of(mixture, self.mode.t)


def sampled_process(
    mode: GPFit, run: _chains.Chains, n_states: int, audited: Evidence | None
) -> SampledProcess | GPFit:
    """What the draws of chains predict with; before the first draw the mode, with a warning."""
    notes, trace = [*mode.notes, *run.notes()], run.trace
    if not run.n_draws:
        said = f"{trace.attrs['advice']}; until then predictions are those of the mode"
        warnings.warn(said, SamplingWarning, skip_file_prefixes=HERE)
        return replace(mode, status=worst(notes), notes=tuple(notes))
    theta = trace["posterior"]["theta"].values
    notes += _chains.disagreement(theta)
    thetas = theta[:, _chains.kept_draws(run.n_draws, len(theta), n_states)].reshape(-1, theta.shape[2])
    how = worst(_chains.without_what_is_no_news(notes)), tuple(notes)
    return SampledProcess(mode, theta, thetas, *how, mode.seconds + trace.attrs["sampling_time"], audited)


@dataclass(frozen=True, eq=False)
class ProcessInDataUnits(FitInDataUnits):
    """A fit of a Gaussian process, at a mode or of draws, in the units of the data."""

    inner: GPFit | MixedProcess | SampledProcess
    #: which computation it was, and why
    method: str = ""

    @property
    @override
    def details(self) -> tuple[str, ...]:
        """How it was computed and why, and what the fit inside says."""
        return (self.method, *self.inner.details)

    @property
    def mode(self) -> GPFit:
        """The fit of the hyperparameters, in standardised units."""
        return self.inner if isinstance(self.inner, GPFit) else self.inner.mode

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict."""
        return self.inner.n_states

    @property
    def most_rows(self) -> int:
        """Rows predicted at a time: as many as memory holds."""
        return sys.maxsize

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise."""
        return self.inner.noise_std * float(self.units.target_scale)

    @property
    def model_evidence(self) -> Evidence:
        """log p(y), the hyperparameters integrated out."""
        found = self.inner.model_evidence
        return replace(found, value=found.value + self.log_units)

    @property
    def sum_squares(self) -> float:
        """Squared residuals of the mean, at the mode."""
        return self.inner.sum_squares * float(self.units.target_scale) ** 2

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        found = self.inner.predict(self.units.inputs(rows), variance, progress)
        return found.scaled(self.units.target_shift, self.units.target_scale)

    @override
    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> LeaveOneOut:
        return self.units.left_out(self.inner.leave_one_out(progress))
