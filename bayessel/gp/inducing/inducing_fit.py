"""Fit a Gaussian process through inducing inputs: hyperparameters and places by the variational bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import override

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from bayessel._check import FloatArray, as_count, as_flag, as_generator, as_matrix, check_finite
from bayessel._numerics import few_threads
from bayessel._types import Seed
from bayessel.covariance import Covariance, Prior
from bayessel.covariance.standard import as_covariance
from bayessel.fit import Evidence, LeaveOneOut, Status, worst
from bayessel.gp.data_remarks import remarks_about
from bayessel.gp.inducing.bound import InducingFactor, InducingMarginal
from bayessel.gp.inducing.select import greedy_variance
from bayessel.gp.map_fit import fit_map
from bayessel.gp.map_problem import check_prior
from bayessel.gp.map_result import GPFit, MapOptimum
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: rows on which the exact process is fitted first
FIRST_ROWS = 1024
#: gain per evaluation, in nats, below which a search stops
LEAST_GAIN = 1e-2
#: evaluations over which the gain is measured
PATIENCE = 10
#: least noise variance in units of the mean square of t: below, the bound loses its digits
LEAST_NOISE = 1e-10
#: jitter where the usual one does not make K_ZZ positive definite
MORE_JITTER = 1e-6
#: θ may move this far from where a search began
RANGE = 15.0


@dataclass(frozen=True, eq=False, kw_only=True)
class InducingFit(GPFit):
    """A Gaussian process seen through M inducing inputs, by the variational lower bound of its evidence.

    What `bayessel.gp.map_result.GPFit` has, with these differences:

    Attributes
    ----------
    evidence : Evidence
        The lower bound of log p(t|θ), of kind "bound"; log p(t|θ) lies between it and `upper`.
    upper : float
        An upper bound of log p(t|θ) (Titsias 2014). A wide gap asks for more inducing inputs.
    inducing : (M, m) array
        Inducing inputs, in units of X.
    unexplained : float
        tr(K − Q)/tr(K): the fraction of prior variance that the inducing inputs do not see.
    jitter : float
        Added to the diagonal of K_ZZ, relative to its mean.
    """

    inducing: FloatArray = field(repr=False)
    upper: float
    unexplained: float
    jitter: float

    @cached_property
    def _bound(self) -> InducingMarginal:
        return InducingMarginal(self.X, self.t, self.covariance, jitter=self.jitter)

    @cached_property
    def _factor(self) -> InducingFactor:
        return self._bound.factor(self.theta, self.inducing)

    @override
    def _downhill(self) -> Callable[[FloatArray], FloatArray]:
        """Of the bound, with the inducing inputs held."""
        return lambda theta: -self._bound.value_and_gradient(theta, self.inducing)[1]

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        """Normal distributions of new observations at new inputs (N, m), O(M²) each."""
        mean, inside = self._bound.predict(self.theta, self.inducing, self._factor, rows)
        return Prediction.normal(mean, inside + self.noise_std**2, inside)

    @cached_property
    @override
    def _left_out(self) -> LeaveOneOut:
        """Exact for the approximate process, whose inducing inputs and hyperparameters stay those of all rows."""
        return LeaveOneOut.normal(*self._bound.leave_one_out(self.theta, self.inducing, self._factor), self.t)

    @cached_property
    @override
    def _off(self) -> tuple[FloatArray, FloatArray]:
        """Those of the approximate process: what the inducing inputs do not see is no part of its mean."""
        residuals, share, _ = self._bound.residuals(self.theta, self.inducing, self._factor)
        return residuals, share


def fit_inducing(
    X: ArrayLike,
    t: ArrayLike,
    covariance: Covariance | None = None,
    *,
    n_inducing: int = 256,
    inducing: ArrayLike | None = None,
    move_inducing: bool = True,
    start: ArrayLike | None = None,
    prior: Prior | str | None = "default",
    max_evaluations: int = 200,
    random_state: Seed = 0,
    callback: Callable[[int, float], None] | None = None,
) -> InducingFit:
    r"""Maximise the variational bound of log p(t|θ), plus log p(θ), over θ and M inducing inputs.

    Work is O(n M²) and memory O(M² + n m): for n beyond 5000, where the exact process becomes slow.

    Parameters
    ----------
    X : (n, m) array
        Inputs, standardised (median 0, mean absolute deviation 1) for the default priors.
    t : (n,) array
        Targets, standardised likewise.
    covariance : Covariance, optional
        Default `bayessel.covariance.Standard`. Bias and linear terms are not approximated. To one without noise
        `bayessel.covariance.Noise` is added.
    n_inducing : int
        M. Fewer are used where the rows have no more to say.
    inducing : (M, m) array, optional
        Where inducing inputs begin. Default: rows chosen one by one, each of the largest conditional variance.
    move_inducing : bool
        Let the search move them. False chooses rows again at the θ that was found, once, and searches on.
    start : (k,) array, optional
        θ to begin with. Default: the mode of the exact process on 1024 rows.
    prior : Prior, "default" or None
        As in `fit_map`.
    max_evaluations : int
        Of the bound, in all.
    random_state : int, Generator or None
        Chooses rows of the first fit and candidates for inducing inputs.
    callback
        Called with the number of evaluations and the bound at each; an exception it raises ends the search.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(400, 1))
    >>> fit = fit_inducing(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=400), n_inducing=20)
    >>> fit.log_evidence <= fit.upper, bool(fit.upper - fit.log_evidence < 0.1)
    (True, True)
    """
    began = perf_counter()
    rng = as_generator(random_state)
    as_count(max_evaluations, "max_evaluations")
    move_inducing = as_flag(move_inducing, "move_inducing")
    bound = InducingMarginal(X, t, as_covariance(covariance).with_noise())
    theta, chosen_prior = _beginning(bound, start, prior, rng)
    search = BoundSearch(bound, chosen_prior, max_evaluations, callback)
    count = min(as_count(n_inducing, "n_inducing"), len(bound.t))
    if inducing is None:
        Z, _ = greedy_variance(bound.parts, theta, bound.X, count, rng)
    else:
        Z = np.array(as_matrix(inducing, "inducing", allow_1d=True))
    if not np.isfinite(bound.value(theta, Z)):
        bound.jitter = MORE_JITTER
    with InterruptGuard(lambda: search.best is not None) as guard:
        # the noise of the few rows is too little for what few inducing inputs leave unexplained
        theta = bound.best_noise(theta, Z)
        theta[bound.parts.noise] = np.maximum(theta[bound.parts.noise], search.least_noise)
        if not move_inducing and inducing is None:
            theta, _ = search.run(theta, Z, move=False, share=0.5)
            again, _ = greedy_variance(bound.parts, theta, bound.X, count, rng)
            if search.better(theta, again):
                Z = again
        search.run(theta, Z, move=move_inducing, share=1.0)
    if search.best is None:
        raise ValueError(
            "the bound cannot be computed in double precision where the search begins; give another start, and look "
            f"for huge values in X: the largest is {np.abs(bound.X).max():.1e}"
        )
    return _finish(search, guard.interrupted, began)


class BoundSearch:
    """Searches over θ alone or over θ and Z, with one account of evaluations and of the best place seen."""

    def __init__(
        self,
        bound: InducingMarginal,
        prior: Prior | None,
        max_evaluations: int,
        callback: Callable[[int, float], None] | None,
    ) -> None:
        self.bound, self.prior, self.most, self.callback = bound, prior, max_evaluations, callback
        self.history: list[dict[str, float]] = []
        self.best: tuple[float, float, FloatArray, FloatArray] | None = None
        self.converged = False
        power = float(np.mean(bound.t**2))
        self.least_noise = float(np.log(LEAST_NOISE * power)) if power > 0.0 else np.log(LEAST_NOISE)

    def objective(self, theta: FloatArray, Z: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The bound plus log p(θ), and its gradients; more jitter where it is needed."""
        with few_threads(len(self.bound.t) * len(Z)):
            value, by_theta, by_Z = self.bound.value_and_gradient(theta, Z)
        known = 0.0
        if self.prior is not None:
            known = self.prior.log_density(theta)
            by_theta = by_theta + self.prior.gradient(theta)
        self.history.append({"rows": len(self.bound.t), "inducing": len(Z), "value": value + known})
        if np.isfinite(value) and (self.best is None or value + known > self.best[0]):
            self.best = (value + known, value, theta, Z)
        if self.callback is not None:
            self.callback(len(self.history), value)
        return value + known, by_theta, by_Z

    def better(self, theta: FloatArray, Z: FloatArray) -> bool:
        """Whether another choice of inducing inputs beats the best so far."""
        before = -np.inf if self.best is None else self.best[0]
        return self.objective(theta, Z)[0] > before

    def run(self, theta: FloatArray, Z: FloatArray, move: bool, share: float) -> tuple[FloatArray, FloatArray]:
        """Search from here with a share of the evaluations that are left; returns the best place."""
        left = int(share * (self.most - len(self.history)))
        if left < 1:
            return theta, Z
        k = len(theta)
        # inducing inputs in units of the lengths over which the function changes, or of the inputs' spread
        spread = self.bound.X.std(axis=0)
        spread = np.where(spread > 0.0, spread, 1.0)
        w = self.bound.covariance.relevance(theta, Z.shape[1])
        unit = spread if w is None else 1.0 / np.sqrt(np.maximum(w, 0.1 / spread**2))
        worst_seen = [0.0]

        def downhill(x: FloatArray) -> tuple[float, FloatArray]:
            places = Z + x[k:].reshape(Z.shape) * unit if move else Z
            value, by_theta, by_Z = self.objective(theta + x[:k], places)
            if not np.isfinite(value):  # a wall that a line search can see over: as high as anything so far, and flat
                return worst_seen[0] + 1.0, np.zeros(len(x))
            worst_seen[0] = max(worst_seen[0], -value)
            return -value, -np.concatenate([by_theta, (by_Z * unit).ravel()] if move else [by_theta])

        free = np.zeros(k + (Z.size if move else 0))
        ends: list[tuple[float | None, float | None]] = [(-RANGE, RANGE)] * k + [(None, None)] * (len(free) - k)
        for position in self.bound.parts.noise:
            ends[position] = (min(self.least_noise - theta[position], 0.0), RANGE)
        options = {"maxfun": left, "maxiter": left, "maxcor": 30, "ftol": 0.0, "gtol": 0.0}
        seen = [len(self.history)]

        def enough(x: FloatArray) -> None:
            recent = [entry["value"] for entry in self.history[seen[0] :]]
            if len(recent) > PATIENCE and max(recent[-PATIENCE:]) - max(recent[:-PATIENCE]) < LEAST_GAIN * PATIENCE:
                self.converged = True
                raise StopIteration

        self.converged = False
        done = minimize(downhill, free, jac=True, method="L-BFGS-B", bounds=ends, options=options, callback=enough)
        self.converged = self.converged or bool(done.success)
        if self.best is None:
            return theta, Z
        return self.best[2], self.best[3]


def _beginning(
    bound: InducingMarginal, start: ArrayLike | None, prior: Prior | str | None, rng: np.random.Generator
) -> tuple[FloatArray, Prior | None]:
    """Where θ begins, and its prior: from the exact process on few rows."""
    rows = rng.permutation(len(bound.t))[:FIRST_ROWS]
    if start is None:
        first = fit_map(bound.X[rows], bound.t[rows], bound.covariance, prior=prior, tol=0.01, random_state=rng)
        return first.theta, first.prior
    theta = bound.as_theta(start, "start")
    check_finite(theta, "start")
    return theta, check_prior(prior, bound)


def _finish(search: BoundSearch, interrupted: bool, began: float) -> InducingFit:
    assert search.best is not None
    total, value, theta, Z = search.best
    bound = search.bound
    notes = remarks_about(bound.X, bound.t)
    if interrupted:
        notes.append(Status.INTERRUPTED)
    elif not (search.converged or notes):  # what is nearly flat everywhere has no end to be found
        notes.append(Status.STEP_LIMIT)
    if bound.jitter == MORE_JITTER:
        notes.append(Status.ILL_CONDITIONED)
    if (theta[bound.parts.noise] <= search.least_noise + 1e-6).any():
        notes.append(Status.NOISE_AT_FLOOR)
    return InducingFit(
        theta=theta,
        names=bound.names,
        covariance=bound.covariance,
        prior=search.prior,
        free=np.ones(bound.size, dtype=bool),
        X=bound.X,
        t=bound.t,
        evidence=Evidence(value, "bound", maximised=(*bound.names, "inducing")),
        log_posterior=total,
        optima=(MapOptimum(theta, value, total),),
        status=worst(notes),
        notes=tuple(notes),
        history=tuple(search.history),
        n_evaluations=len(search.history),
        seconds=perf_counter() - began,
        inducing=Z,
        upper=bound.upper(theta, Z),
        unexplained=bound.unexplained(theta, Z),
        jitter=bound.jitter,
    )
