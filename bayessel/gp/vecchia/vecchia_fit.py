"""Fit the hyperparameters of a Gaussian process of many rows by Vecchia's approximation, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, IntArray, as_count, as_generator, as_positive, check_finite
from bayessel._types import Seed
from bayessel.covariance import Covariance, Prior
from bayessel.covariance.standard import as_covariance
from bayessel.fit import Evidence, Status, worst
from bayessel.gp.data_remarks import remarks_about
from bayessel.gp.map_result import GPFit, MapOptimum
from bayessel.gp.vecchia.conditional_predictor import ConditionalPredictor, PrecisionLeftOut
from bayessel.gp.vecchia.vecchia_marginal import NEIGHBOURS, VecchiaMarginal
from bayessel.gp.vecchia.vecchia_search import VecchiaSearch
from bayessel.prediction import Prediction

#: nats a row that doubling the neighbours of a row would still gain, from which on that is said
ROUGH_GAIN = 0.01
#: neighbours of new rows, in units of those of training rows: usually, and where the approximation is rough
PREDICTING, PREDICTING_ROUGHLY = 2, 6


@dataclass(frozen=True, eq=False, kw_only=True)
class VecchiaFit(GPFit):
    """A Gaussian process of many rows, each given few rows near it and inducing inputs that all rows share.

    What `bayessel.gp.map_result.GPFit` has, with these differences:

    Attributes
    ----------
    evidence : Evidence
        Vecchia's approximation of log p(t|θ), of kind "type2-vecchia".
    neighbours : int
        Rows that each row is conditioned on; new rows on twice as many, where that is rough on six times as many.
    inducing : (M, m) array or None
        Inducing inputs, in units of X.
    order : (n,) array of int
        Rows in the order of conditioning.
    renewed_at : (k,) array
        θ by whose lengths the neighbours were chosen.
    gain_of_neighbours : float
        Nats a row that twice as many neighbours would gain, in expectation: of the order of what is lost.
    """

    neighbours: int
    inducing: FloatArray | None = field(repr=False)
    order: IntArray = field(repr=False)
    renewed_at: FloatArray = field(repr=False)
    gain_of_neighbours: float

    def __getstate__(self) -> dict[str, Any]:
        # neighbours and factors are made again when they are needed
        made = ("_marginal", "_conditional")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @property
    def details(self) -> tuple[str, ...]:
        """What was approximated how, and what that costs."""
        shared = "" if self.inducing is None else f" and {len(self.inducing)} inducing inputs"
        said = f"Vecchia's approximation with {self.neighbours} neighbours{shared}: twice as many neighbours would gain"
        return (f"{said} {self.gain_of_neighbours:.1g} nats a row",)

    @cached_property
    @override
    def _marginal(self) -> Any:
        marginal = VecchiaMarginal(
            self.X, self.t, self.covariance, neighbours=self.neighbours, order=self.order, inducing=self.inducing
        )
        marginal.renew(self.renewed_at)
        return marginal

    @override
    def _downhill(self) -> Callable[[FloatArray], FloatArray]:
        """Θ -> the gradient of minus the log evidence, neighbours and inducing inputs held."""
        return lambda theta: -self._marginal.value_and_gradient(theta)[1]

    @cached_property
    def _conditional(self) -> ConditionalPredictor:
        times = PREDICTING_ROUGHLY if self.gain_of_neighbours > ROUGH_GAIN else PREDICTING
        return ConditionalPredictor(self._marginal, self.theta, times * self.neighbours)

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        """Normal distributions of new observations at new inputs (N, m), each given the training rows near it."""
        return self._conditional(rows, progress)

    @cached_property
    @override
    def _of_means(self) -> tuple[FloatArray, FloatArray]:
        return PrecisionLeftOut(self._marginal, self.theta).rows()

    def leave_block_out(self, rows: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Some rows predicted together from all others: means of their targets, and the covariance of these.

        Exact for the approximate distribution; inducing inputs and hyperparameters stay those of all rows.
        """
        chosen = np.arange(self.n_rows)[np.asarray(rows)]
        errors, covariance = PrecisionLeftOut(self._marginal, self.theta).block(chosen)
        return self.t[chosen] - errors, covariance

    def draw(self, rows: ArrayLike, size: int = 1, random_state: Seed = None) -> FloatArray:
        """Draws of the function at new inputs (N, m), jointly, given the targets: (size, N)."""
        return self._conditional.draws(rows, as_count(size, "size"), as_generator(random_state))


def fit_vecchia(
    X: ArrayLike,
    t: ArrayLike,
    covariance: Covariance | None = None,
    *,
    neighbours: int = NEIGHBOURS,
    n_inducing: int | None = None,
    start: ArrayLike | None = None,
    prior: Prior | str | None = "default",
    fixed: Mapping[str, float] | None = None,
    tol: float = 0.05,
    max_evaluations: int = 60,
    random_state: Seed = 0,
    threads: int | None = None,
) -> VecchiaFit:
    r"""Maximise Vecchia's approximation of :math:`\log p(t|\theta)`, plus log p(θ), over the hyperparameters.

    Work is O(n m³), with inducing inputs O(n m² M): for n beyond some thousands, where the exact process becomes slow.

    Parameters
    ----------
    X, t, covariance, prior, fixed
        As of `bayessel.gp.fit_map`; the covariance is a sum of stationary, bias, linear and noise terms.
    neighbours : int
        Rows near it, among those before it, that each row is conditioned on.
    n_inducing : int or None
        Inducing inputs, which stand for what rows far away say too: Vecchia's approximation is of what they leave.
        0: none. None: as many as the approximation's error asks for, 256 at most, and none beyond 200 000 rows.
    start : (k,) array, optional
        θ to begin with; default: of the exact process on 1024 of the rows.
    tol : float
        Stop when no more than this is to be gained, in nats.
    max_evaluations : int
        Of the likelihood on all rows.
    random_state : int, Generator or None
        Chooses the order of the rows, the rows of the first searches, and inducing inputs.
    threads : int, optional
        Default: as many as there are cores. The numbers are the same for any.

    Returns
    -------
    VecchiaFit

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> fit = fit_vecchia(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=2000))
    >>> fit.status.name, fit.evidence.kind, bool(fit.relevance.length[0] < fit.relevance.length[1])
    ('CONVERGED', 'type2-vecchia', True)
    """
    began = perf_counter()
    rng = as_generator(random_state)
    count = None if n_inducing is None else as_count(n_inducing, "n_inducing", 0)
    known = as_covariance(covariance).with_noise()
    marginal = VecchiaMarginal(X, t, known, neighbours=neighbours, order=rng, threads=threads)
    if start is not None:
        start = marginal.as_theta(start, "start")
        check_finite(start, "start")
    search = VecchiaSearch(
        marginal, prior, fixed, as_positive(tol, "tol"), as_count(max_evaluations, "max_evaluations"), rng
    )
    found = search.run(start, count)
    marginal, theta = found.marginal, found.theta
    notes = [*found.notes, *remarks_about(marginal.X, marginal.t)]
    gain = marginal.gain_of_neighbours(theta)
    if gain > ROUGH_GAIN:
        notes.append(Status.ROUGH_APPROXIMATION)
    names = tuple(name for name, free in zip(marginal.names, search.problem.free, strict=True) if free)
    return VecchiaFit(
        theta=theta,
        names=marginal.names,
        covariance=marginal.covariance,
        prior=search.problem.prior,
        free=search.problem.free,
        X=marginal.X,
        t=marginal.t,
        evidence=Evidence(found.log_evidence, "type2-vecchia", maximised=names),
        log_posterior=found.log_posterior,
        optima=(MapOptimum(theta, found.log_evidence, found.log_posterior),),
        status=worst(notes),
        notes=tuple(notes),
        history=tuple(search.history),
        n_evaluations=sum(entry["rows"] == len(marginal.t) for entry in search.history),
        seconds=perf_counter() - began,
        neighbours=marginal.m,
        inducing=marginal.inducing,
        order=marginal.order,
        renewed_at=marginal.renewed_at,
        gain_of_neighbours=gain,
    )
