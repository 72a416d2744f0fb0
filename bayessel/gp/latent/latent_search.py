"""Fit a Gaussian process with another likelihood than normal noise: labels, counts, heavy tails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from time import perf_counter

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from bayessel._check import as_float_array, one_of
from bayessel._types import Seed
from bayessel.covariance import Covariance, Prior
from bayessel.fit import Evidence, Status, worst
from bayessel.gp.latent.laplace_marginal import LaplaceMarginal
from bayessel.gp.latent.latent_fit import LatentProcessFit
from bayessel.gp.latent.latent_process import ApproximateMarginal, LatentMarginal
from bayessel.gp.latent.propagation_marginal import PropagationMarginal
from bayessel.gp.latent.softmax_marginal import SoftmaxMarginal
from bayessel.gp.latent.uneven_noise_marginal import UnevenNoiseMarginal
from bayessel.gp.map_fit import search_modes
from bayessel.gp.map_problem import MapProblem
from bayessel.gp.map_result import MapOptimum
from bayessel.gp.optimise import minimise
from bayessel.likelihoods import Likelihood, as_likelihood

#: how the posterior of the latent function is approximated
APPROXIMATIONS = ("auto", "laplace", "ep")
#: rows up to which labels are fitted by expectation propagation, some five inverses an evaluation, if nothing is said
ROWS_OF_MOMENTS = 1500


#: likelihoods of more than one latent function
SEVERAL_FUNCTIONS: dict[str, type[SoftmaxMarginal | UnevenNoiseMarginal]] = {
    "softmax": SoftmaxMarginal,
    "heteroscedastic": UnevenNoiseMarginal,
}


def fit_latent_process(
    X: ArrayLike,
    t: ArrayLike,
    likelihood: Likelihood | str,
    covariance: Covariance | None = None,
    *,
    approximation: str = "auto",
    offset: ArrayLike | None = None,
    prior: Prior | str | None = "default",
    starts: int | ArrayLike = 3,
    fixed: Mapping[str, float] | None = None,
    tol: float = 1e-4,
    max_evaluations: int = 100,
    random_state: Seed = 0,
) -> LatentProcessFit:
    r"""Maximise the approximate :math:`\log p(t|\theta) + \log p(\theta)` over hyperparameters.

    Parameters
    ----------
    X : (n, m) array
        Inputs. The default priors and starts are for standardised data (median 0, mean absolute deviation 1).
    t : (n,) array
        Targets as the likelihood wants them: labels 0 and 1, counts, numbers.
    likelihood : Likelihood or str
        One of `bayessel.likelihoods`, or its name; "softmax" for classes 0, 1, …, with a function each;
        "heteroscedastic" for normal noise with a variance that is a second function of the inputs.
    covariance : Covariance, optional
        Of the latent function, without noise. Default: squared exponential with a length per input, linear part, bias.
    approximation : {"auto", "laplace", "ep"}
        Laplace's approximation, or expectation propagation (for log-concave likelihoods), which begins where the
        search with the former ended. "auto": the latter for labels of up to 1500 rows, the former for the rest.
    offset : (n,) array, optional
        Added to the latent function at the rows: for counts the logarithm of the exposure.
    prior, starts, fixed, tol, max_evaluations, random_state
        As of `bayessel.gp.fit_map`.

    Returns
    -------
    LatentProcessFit

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3.0, 3.0, size=60)
    >>> t = (rng.uniform(size=60) < 1.0 / (1.0 + np.exp(-4.0 * np.sin(x)))) * 1.0
    >>> fit = fit_latent_process(x, t, "probit")
    >>> fit.status.name, fit.predict([[1.5], [-1.5]]).mode.tolist()
    ('CONVERGED', [1, 0])
    """
    began = perf_counter()
    one_of(approximation, "approximation", APPROXIMATIONS)
    if isinstance(likelihood, str) and likelihood in SEVERAL_FUNCTIONS:
        if approximation == "ep" or offset is not None:
            raise ValueError(f"likelihood {likelihood!r} has approximation='laplace' and no offset")
        several = SEVERAL_FUNCTIONS[likelihood](X, t, covariance)
        found = search_modes(several, prior, fixed, starts, tol, max_evaluations, random_state)
        return _fit(found.problem, found.optima, found.notes, found.history, began)
    chosen = as_likelihood(likelihood)
    few = len(as_float_array(t, "t")) <= ROWS_OF_MOMENTS
    by_moments = approximation == "ep" or (approximation == "auto" and chosen.labels and chosen.log_concave and few)
    arguments = (X, t, covariance, chosen, offset)
    if by_moments:
        refined = PropagationMarginal(*arguments)
    marginal = LaplaceMarginal(*arguments)
    found = search_modes(marginal, prior, fixed, starts, tol, max_evaluations, random_state)
    problem, optima, notes, history = found.problem, found.optima, list(found.notes), found.history
    if by_moments and Status.INTERRUPTED not in notes:
        problem = MapProblem.of(refined, prior, fixed)
        best = found.minima[0]
        end = minimise(
            problem.expensive(refined),
            problem.coordinates(found.problem.full(best.x)),
            best.curvature,
            problem.exact,
            tol=tol,
            max_evaluations=max_evaluations,
            bounds=problem.bounds,
        )
        history = (*history, *({"rows": len(refined.t), "start": 0, **entry} for entry in end.history))
        known = problem.exact(end.x).value
        optima = (MapOptimum(problem.full(end.x), -(end.value - known), -end.value),)
        notes = [note for note in notes if note not in (Status.STEP_LIMIT, Status.ILL_CONDITIONED)]
        if not end.converged:
            notes.append(Status.ILL_CONDITIONED if end.stuck else Status.STEP_LIMIT)
    return _fit(problem, optima, notes, history, began)


def _fit(
    problem: MapProblem,
    optima: tuple[MapOptimum, ...],
    notes: Sequence[Status],
    history: tuple[dict[str, float], ...],
    began: float,
) -> LatentProcessFit:
    used, first = problem.marginal, optima[0]
    assert isinstance(used, ApproximateMarginal)
    return LatentProcessFit(
        theta=first.theta,
        names=used.names,
        marginal=used,
        prior=problem.prior,
        free=problem.free,
        evidence=Evidence(
            first.log_evidence, f"type2-{used.kind}", maximised=tuple(compress(used.names, problem.free))
        ),
        log_posterior=first.log_posterior,
        thetas=first.theta[None],
        log_weights=np.zeros(1),
        optima=optima,
        status=worst(notes),
        notes=tuple(notes),
        history=history,
        seconds=perf_counter() - began,
    )


def refit(fit: LatentProcessFit, rows: npt.NDArray[np.intp], tol: float = 1e-2) -> LatentProcessFit:
    """The same process fitted to some of its rows, by Laplace's approximation, from where the fit ended.

    For folds: what the other rows say of hyperparameters is forgotten but for where the search begins.
    """
    began = perf_counter()
    marginal = fit.marginal
    if isinstance(marginal, LatentMarginal) and not isinstance(marginal, LaplaceMarginal):
        marginal = LaplaceMarginal(marginal.X, marginal.t, marginal.covariance, marginal.likelihood, marginal.offset)
    fixed = {name: float(fit.theta[i]) for i, name in enumerate(fit.names) if not fit.free[i]}
    # a default prior may look at the targets
    found = search_modes(marginal.part(rows), fit.prior, fixed, fit.theta[None], tol, 30, 0)
    return _fit(found.problem, found.optima, found.notes, found.history, began)
