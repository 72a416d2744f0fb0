"""A linear model seen through a likelihood, with one precision for all functions."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, one_of
from bayessel._numerics import few_threads
from bayessel.fit import Evidence, Status, worst
from bayessel.likelihoods import Likelihood
from bayessel.linear.latent.laplace import LaplaceMode, find_mode
from bayessel.linear.latent.result import LatentFit, LatentOptimum, LatentPart
from bayessel.linear.latent.settings import LatentProblem
from bayessel.linear.latent.shared_precision import SharedDesign, SharedModel

INFERENCES = ("auto", "type2")


def fit_latent(
    Phi: npt.ArrayLike,
    t: npt.ArrayLike,
    likelihood: str | Likelihood = "logit",
    *,
    inference: str = "auto",
    bias: bool = True,
    bias_scale: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> LatentFit:
    r"""Fit f = Φw + b, :math:`w \sim N(0, I/\alpha)`, to targets with any likelihood p(t | f), by Laplace's method.

    The precision has a prior on the size of the functions together (`bayessel.linear.latent.shared_precision`). At cost
    O(N M min(N, M)), then O(N k²) for each value of it, with k the rank of the design.

    Parameters
    ----------
    Phi
        Design (N, M) without a bias.
    t
        Targets (N,); labels as 0 and 1.
    likelihood
        Name or object of `bayessel.likelihoods`.
    inference
        'auto' sums over the logarithm of the precision: predictions are mixtures. 'type2' takes its most probable
        value. Parameters of the likelihood are at their most probable values either way.
    bias
        Whether there is a constant b, with a wide prior.
    bias_scale
        Its standard deviation; None: log odds or rates of 5, else five times the largest target.
    sample_weight
        How often each row counts, (N,).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(200, 3))
    >>> t = (Phi[:, 0] + 0.5 * rng.normal(size=200) > 0.0).astype(float)
    >>> fit = fit_latent(Phi, t)
    >>> fit.status.name, fit.predict([[2.0, 0.0, 0.0]]).probabilities.round(2).tolist()
    ('CONVERGED', [[0.0, 1.0]])
    """
    begun = time.perf_counter()
    one_of(inference, "inference", INFERENCES)
    problem = LatentProblem.of(Phi, t, likelihood, bias, bias_scale, sample_weight)
    with few_threads(problem.Phi.size), np.errstate(all="ignore"):
        design = SharedDesign.of(problem.Phi, problem.bias_scale, count=problem.targets.count)
        return _fitted(problem, design, inference, begun)


def _fitted(problem: LatentProblem, design: SharedDesign, inference: str, begun: float) -> LatentFit:
    model = SharedModel.of(problem.targets, design)
    log_s, best, evaluations = model.maximised()
    history: list[dict[str, object]] = [{"action": "maximise", "log_evidence": best.log_evidence, "steps": evaluations}]
    notes = problem.remarks
    k = design.directions.shape[1]
    null = null_log_evidence(problem)
    if k == 0:
        notes.append(Status.PURE_NOISE)
    if inference == "type2" or k == 0 or Status.CONSTANT_TARGET in notes:  # nothing tells the size of the functions
        places, logs = np.array([log_s]), np.zeros(1)
        modes, names = [best], ("alpha", *best.targets.likelihood.names)
        evidence = Evidence(best.log_evidence, "laplace", maximised=names, integrated=("w",))
    else:
        modes, places, logs, total = model.summed(log_s, best)
        names = best.targets.likelihood.names
        evidence = Evidence(total, "laplace", maximised=names, integrated=("w", "alpha"))
    if not all(mode.converged for mode in modes):
        notes.append(Status.STEP_LIMIT)
    if k and evidence.value < null:
        notes.append(Status.DOUBTFUL_SIGNAL)
    low, high = model.bounds[0]
    if k and not low + 1e-6 < log_s < high - 1e-6:
        notes.append(Status.AT_BOUND)
    parts = tuple(
        LatentPart.of(mode, _scales(at, k, problem.bias_scale), float(weight))
        for mode, at, weight in zip(modes, places, logs, strict=True)
    )
    m = problem.Phi.shape[1]
    size = design.size if design.size > 0.0 else 1.0
    fingerprint, target_fingerprint = problem.names
    return LatentFit(
        likelihood=problem.targets.likelihood,
        evidence=evidence,
        n_rows=len(problem.rows[1]),
        n_candidates=m,
        basis=np.arange(m),
        coef=design.base @ (np.exp(log_s) * best.z[:k]),
        intercept=problem.bias_scale * float(best.z[-1]) if problem.bias_scale else 0.0,
        alpha=np.full(m, size**2 * np.exp(-2.0 * log_s)),
        phi=best.phi,
        gamma=best.gamma,
        parts=parts,
        base=design.base,
        bias=problem.bias_scale > 0.0,
        null_log_evidence=null,
        target=problem.targets.t,
        count=problem.targets.count,
        status=worst(notes),
        notes=tuple(notes),
        optima=(LatentOptimum(np.arange(m), best.log_evidence),),
        history=tuple(history),
        seconds=time.perf_counter() - begun,
        fingerprint=fingerprint,
        target_fingerprint=target_fingerprint,
    )


def _scales(log_s: float, k: int, bias_scale: float) -> FloatArray:
    """What the directions and the bias are multiplied by."""
    return np.append(np.full(k, np.exp(log_s)), [bias_scale] if bias_scale else [])


def null_log_evidence(problem: LatentProblem) -> float:
    """Log evidence of the bias alone, parameters of the likelihood at their best."""
    nothing = SharedDesign.of(np.zeros((len(problem.Phi), 0)), problem.bias_scale)
    model = SharedModel.of(problem.targets, nothing)
    if not problem.targets.likelihood.names:
        found: LaplaceMode = find_mode(problem.targets, nothing.at(0.0), np.zeros(0))
        return found.log_evidence
    return model.maximised()[1].log_evidence
