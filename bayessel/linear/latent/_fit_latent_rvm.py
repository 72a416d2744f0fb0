"""The relevance vector machine with any likelihood: a precision for each function, most of them infinite."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from bayessel._check import as_count, one_of
from bayessel._numerics import few_threads
from bayessel.fit import Evidence, Status, worst
from bayessel.likelihoods import Likelihood
from bayessel.linear.latent._fit_latent import INFERENCES, null_log_evidence
from bayessel.linear.latent.laplace import find_mode
from bayessel.linear.latent.result import LatentFit, LatentOptimum, LatentPart
from bayessel.linear.latent.settings import LatentProblem
from bayessel.linear.latent.shared_precision import TYPICAL_LOG_ODDS, typical_size
from bayessel.linear.latent.sparse_search import SparseSearch
from bayessel.policy import FLAT_NATS
from bayessel.work.interrupts import InterruptGuard


def fit_latent_rvm(
    Phi: npt.ArrayLike,
    t: npt.ArrayLike,
    likelihood: str | Likelihood = "logit",
    *,
    inference: str = "auto",
    bias: bool = True,
    bias_scale: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
    max_steps: int = 500,
    n_starts: int = 3,
) -> LatentFit:
    r"""Fit f = Φw + b, :math:`w_m \sim N(0, 1/\alpha_m)`, every precision chosen by the evidence of Laplace's method.

    Moves (a function joins, leaves, is exchanged) count when the evidence itself has risen, after a climb along its
    exact gradient; climbs from several first functions compete. Distrust the evidence as a witness of predictions: it
    was maximised over the choice of functions.

    Parameters
    ----------
    Phi, t, likelihood, bias, bias_scale, sample_weight
        As for `bayessel.linear.latent.fit_latent`.
    inference
        'auto': precisions in use have a prior and are integrated out approximately, about a nat for each. 'type2': the
        evidence alone is maximised over them, as in the papers, which uses several times as many functions.
    max_steps
        Largest number of moves.
    n_starts
        Climbs that compete: from nothing, and from other first functions.

    References
    ----------
    Tipping (2001), JMLR 1, 211, section 3; Tipping and Faul (2003), AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(200, 30))
    >>> t = (Phi[:, 4] - Phi[:, 7] + 0.3 * rng.normal(size=200) > 0.0).astype(float)
    >>> fit = fit_latent_rvm(Phi, t)
    >>> {4, 7} <= set(fit.basis.tolist()), fit.n_basis < 8
    (True, True)
    """
    begun = time.perf_counter()
    as_count(max_steps, "max_steps")
    as_count(n_starts, "n_starts")
    proper = one_of(inference, "inference", INFERENCES) == "auto"
    problem = LatentProblem.of(Phi, t, likelihood, bias, bias_scale, sample_weight)
    targets = problem.targets
    with few_threads(problem.Phi.size), np.errstate(all="ignore"):
        scale = np.sqrt(np.mean((problem.Phi / _largest(problem.Phi)) ** 2, axis=0)) * _largest(problem.Phi)
        varies = scale > 0.0
        if problem.bias_scale:  # a constant is there already
            varies &= np.ptp(problem.Phi, axis=0) > 4.0 * np.finfo(float).eps * scale
        offered = np.flatnonzero(varies)
        always = np.full((len(problem.Phi), 1 if problem.bias_scale else 0), problem.bias_scale)
        unit = typical_size(targets)
        unit = 1.0 if targets.likelihood.labels else unit / TYPICAL_LOG_ODDS
        search = SparseSearch(targets, problem.Phi[:, offered] / scale[offered], always, unit, max_steps, proper)
        with InterruptGuard() as guard:
            ends = search.searched(n_starts)
        null = null_log_evidence(problem)
    best = ends[0]
    order = np.argsort(best.active)
    active, log_alpha, k = best.active[order], best.log_alpha[order], len(order)
    mode = find_mode(targets, best.mode.G, best.mode.phi, best.mode.z)
    places = np.append(order, np.arange(k, len(mode.z)))
    basis = offered[active]
    worth = mode.log_evidence + search.of_precisions(log_alpha)[0]
    parameters = targets.likelihood.names
    notes = problem.remarks
    if k == 0:
        notes.append(Status.PURE_NOISE)
    elif worth < null + (0.0 if proper else FLAT_NATS * k):
        notes.append(Status.DOUBTFUL_SIGNAL)
    if guard.interrupted:
        notes.append(Status.INTERRUPTED)
    elif search.moves_left <= 0:
        notes.append(Status.STEP_LIMIT)
    near = [end for end in ends[1:] if end.objective > best.objective - FLAT_NATS]
    if near:
        notes.append(Status.MULTIPLE_OPTIMA)
    scales = np.append(np.exp(-0.5 * best.log_alpha), [problem.bias_scale] if problem.bias_scale else [])
    # columns of the parts are in the order they joined
    base = np.zeros((k, k))
    base[np.argsort(order), np.arange(k)] = 1.0 / scale[offered[best.active]]
    weights = search.weights(best)[places]
    fingerprint, target_fingerprint = problem.names
    return LatentFit(
        likelihood=targets.likelihood,
        evidence=Evidence(worth, "laplace", maximised=parameters, integrated=("w", "alpha"))
        if proper
        else Evidence(worth, "laplace", maximised=("alpha", *parameters), integrated=("w",)),
        n_rows=len(problem.rows[1]),
        n_candidates=problem.Phi.shape[1],
        basis=basis,
        coef=weights[:k] / scale[basis],
        intercept=problem.bias_scale * float(weights[-1]) if problem.bias_scale else 0.0,
        alpha=np.exp(log_alpha) * scale[basis] ** 2,
        phi=mode.phi,
        gamma=mode.gamma,
        parts=(LatentPart.of(mode, scales),),
        base=base,
        bias=problem.bias_scale > 0.0,
        null_log_evidence=null,
        target=targets.t,
        count=targets.count,
        status=worst(notes),
        notes=tuple(notes),
        optima=tuple(LatentOptimum(np.sort(offered[end.active]), end.mode.log_evidence) for end in ends),
        history=tuple(search.history),
        seconds=time.perf_counter() - begun,
        fingerprint=fingerprint,
        target_fingerprint=target_fingerprint,
    )


def _largest(Phi: npt.NDArray[np.float64]) -> float:
    return float(np.abs(Phi).max(initial=0.0)) or 1.0
