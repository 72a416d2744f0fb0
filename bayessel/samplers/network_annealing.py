r"""The evidence of a Bayesian network by annealing, weights and hyperparameters integrated out, with an error bar.

.. math:: p(T) = \int p(T|w, s)\, p(w|s)\, p(s)\, dw\, ds

Pilot runs choose the reference, temperatures and step sizes (`annealing`, `network_reference`); the runs after them are
unbiased and independent, so that their spread is an error bar.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_count, as_flag, as_generator, as_matrix, as_positive, check_finite, one_of
from bayessel.fit import Evidence, Status, fingerprint, worst
from bayessel.mlp.energy import GAUSSIAN, LOGISTIC, SOFTMAX
from bayessel.mlp.network import Architecture, hidden_units
from bayessel.mlp.prior import NetworkPrior, Precisions
from bayessel.mlp.targets import KINDS, as_data
from bayessel.samplers.annealed_evidence import LARGEST_ERROR, AnnealedEvidence, log_mean, relative_error
from bayessel.samplers.annealing import FIRST_STEP, Schedule, backwards, forwards, pilot
from bayessel.samplers.network_path import NetworkPath, logs_of
from bayessel.samplers.network_reference import gammas_of, refer


def anneal_network(
    X: Any,
    t: Any,
    *,
    hidden: int | str = "auto",
    kind: str = "gaussian",
    prior: NetworkPrior | None = None,
    precisions: Precisions | None = None,
    draws: Any = None,
    n_particles: int = 100,
    n_runs: int = 4,
    n_pilots: int = 4,
    updates: int = 2,
    n_leapfrog: int = 20,
    bracket: bool = False,
    time_budget: float | None = None,
    random_state: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> AnnealedEvidence:
    """Estimate the evidence of a Bayesian network by annealing from its prior.

    Parameters
    ----------
    X : (n, D) array
        Inputs, standardised as for `bayessel.models.mlp`.
    t : (n,) or (n, K) array
        Targets; for ``"logistic"`` zeros and ones, for ``"softmax"`` classes from 0.
    hidden : int or "auto"
        Hidden units; unread when a prior is given.
    kind : {"gaussian", "logistic", "softmax"}
        Gaussian noise, or classes.
    prior : NetworkPrior, optional
        Of the network and its noise; None: that of `bayessel.models.mlp`.
    precisions : Precisions, optional
        Hyperparameters to hold; None: they are integrated out.
    draws : (·, m) array, optional
        Logarithms of hyperparameters drawn from the posterior, in the order of `Precisions`, from which the reference
        is made. They decide how sure the estimate is, not what it estimates. None: a few chains are run.
    n_particles, n_runs : int
        Particles of a run, and independent runs after the pilot runs; the error falls as 1/√(both).
    n_pilots : int
        References that are tried, each with a pilot run; the best is kept. One from the draws, if they are given, the
        others from most probable networks. With hyperparameters held there is one.
    updates, n_leapfrog : int
        Updates of each particle at each temperature, and leapfrog steps of each.
    bracket : bool
        Also run back from the posterior to the prior, which errs upwards: a gap between `log_weights` and `upper` that
        the error bar does not explain tells of moves that do not mix.
    time_budget : float, optional
        Seconds, after which no further run is begun; the pilots and one run are always made.
    random_state : int, Generator or None
        Seed.
    progress : callable, optional
        Called as ``progress(done, runs in all)`` after each run, pilots included.

    Returns
    -------
    AnnealedEvidence
        Of the standardised targets. Stopped with Ctrl-C it is of the runs there are, if there is one.

    Notes
    -----
    The default priors are vague, and an evidence is a statement about priors: compare networks with each other, or with
    models whose priors were thought about as much. Distrust an error bar above half a nat. A part of the posterior that
    no pilot has found is missing from the estimate, and from its error bar: look whether `pilots` agree.

    References
    ----------
    Neal (2001), Annealed importance sampling, Statistics and Computing 11, 125; Del Moral, Doucet and Jasra (2006),
    Sequential Monte Carlo samplers, JRSS B 68, 411.
    """
    one_of(kind, "kind", KINDS)
    X, T = as_data(X, t, kind)
    belief = _prior(prior, hidden, X, T)
    held = None if precisions is None else _held(precisions, belief)
    seen = None if draws is None else _draws(draws, belief)
    n_particles, n_runs = as_count(n_particles, "n_particles", 2), as_count(n_runs, "n_runs")
    n_pilots = as_count(n_pilots, "n_pilots") if held is None else 1
    updates, n_leapfrog = as_count(updates, "updates"), as_count(n_leapfrog, "n_leapfrog")
    as_flag(bracket, "bracket")
    limit = np.inf if time_budget is None else as_positive(time_budget, "time_budget")
    path = _path(X, T, kind, belief, held, updates, n_leapfrog)
    pilot_rng, *seeds = as_generator(random_state).spawn(1 + n_runs)
    _warm_up(path)
    begin = perf_counter()
    total = n_pilots + n_runs
    pilots: list[tuple[float, Schedule, FloatArray]] = []
    for number, rng in enumerate(pilot_rng.spawn(n_pilots)):
        if held is None:
            path.reference = gammas_of(seen) if seen is not None and number == 0 else refer(path, rng)
        pilots.append((*pilot(path, n_particles, rng), path.reference))
        if progress is not None:
            progress(len(pilots), total)
    _, schedule, path.reference = max(pilots, key=lambda one: one[0])
    logs: list[float] = []
    upper: list[float] = []
    interrupted = False
    try:
        for rng in seeds:
            if logs and perf_counter() - begin >= limit:
                break
            found, particles = forwards(path, schedule, n_particles, rng)
            if bracket:
                upper.append(backwards(path, schedule, particles, rng))
            logs.append(found)
            if progress is not None:
                progress(n_pilots + len(logs), total)
    except KeyboardInterrupt:
        if not logs:
            raise
        interrupted = True
    notes = [Status.INTERRUPTED] if interrupted else []
    if len(logs) < n_runs and not interrupted:
        notes.append(Status.TIME_BUDGET)
    roughly = np.array([one[0] for one in pilots])
    return _result(np.array(logs), upper, roughly, schedule, path, notes, fingerprint(X, T), perf_counter() - begin)


def _result(
    logs: FloatArray,
    upper: list[float],
    pilots: FloatArray,
    schedule: Schedule,
    path: NetworkPath,
    notes: list[Status],
    name: str,
    seconds: float,
) -> AnnealedEvidence:
    error = relative_error(logs)
    if not error < LARGEST_ERROR:
        notes = [*notes, Status.UNSURE_EVIDENCE]
    w = np.exp(logs - logs.max())
    integrated = ("weights", "precisions") if path.held is None else ("weights",)
    return AnnealedEvidence(
        evidence=Evidence(log_mean(logs), "sampled", error, integrated=integrated),
        log_weights=logs,
        effective_runs=float(w.sum() ** 2 / np.sum(w * w)),
        upper=float(np.mean(upper)) if upper else np.nan,
        pilots=pilots,
        temperatures=np.array(schedule.temperatures),
        step_sizes=np.array(schedule.step_sizes),
        acceptance_rates=np.array(schedule.acceptance_rates),
        n_gradients=path.n_gradients,
        status=worst(notes),
        notes=tuple(notes),
        fingerprint=name,
        n_rows=path.problem.X.shape[1],
        seconds=seconds,
    )


def _path(
    X: FloatArray, T: FloatArray, kind: str, prior: NetworkPrior, held: FloatArray | None, updates: int, n_leapfrog: int
) -> NetworkPath:
    from bayessel.samplers.network import Problem, workspace
    from bayessel.samplers.network_step import hyperpriors

    architecture, rows = prior.architecture, hyperpriors(prior, False)
    return NetworkPath(
        Problem(
            {"gaussian": GAUSSIAN, "logistic": LOGISTIC, "softmax": SOFTMAX}[kind],
            np.ascontiguousarray(X.T),
            np.ascontiguousarray(T.T),
            rows,
            prior.bias_sd**-2,
            np.einsum("ij,ij->j", X, X),
        ),
        workspace(architecture.inputs, architecture.hidden, architecture.outputs, len(X)),
        prior,
        held,
        np.ones((len(rows), 2)),
        updates,
        n_leapfrog,
    )


def _warm_up(path: NetworkPath) -> None:
    """Compile, so that time budgets are of the work alone."""
    rng = np.random.default_rng(0)
    particles = path.first(rng, 1)
    path.gains(particles)
    path.walk(rng, particles, FIRST_STEP, 1e-3, 1, 1)
    path.n_gradients = 0


def _prior(prior: NetworkPrior | None, hidden: int | str, X: FloatArray, T: FloatArray) -> NetworkPrior:
    D, K = X.shape[1], T.shape[1]
    if prior is None:
        return NetworkPrior(Architecture(D, hidden_units(hidden, len(X), D, K), K))
    if not isinstance(prior, NetworkPrior):
        raise TypeError(f"prior must be a NetworkPrior, got {type(prior).__name__}")
    if (prior.architecture.inputs, prior.architecture.outputs) != (D, K):
        raise ValueError(
            f"the prior is of a network with {prior.architecture.inputs} inputs and {prior.architecture.outputs} "
            f"outputs, the data have {D} and {K}; make one for Architecture({D}, …, {K})"
        )
    return prior


def _held(precisions: Precisions, prior: NetworkPrior) -> FloatArray:
    if not isinstance(precisions, Precisions):
        raise TypeError(f"precisions must be bayessel.mlp.Precisions, got {type(precisions).__name__}")
    for name, part, like in zip(Precisions._fields, precisions, prior.at_mean(), strict=True):
        values = np.asarray(part, dtype=np.float64)
        if values.shape != np.shape(like):
            raise ValueError(f"precisions.{name} must have the shape {np.shape(like)}, got {values.shape}")
        if not (np.isfinite(values).all() and (values > 0.0).all()):
            raise ValueError(f"precisions.{name} must be positive and finite, got {part!r}")
    return logs_of(precisions)


def _draws(draws: Any, prior: NetworkPrior) -> FloatArray:
    S = as_matrix(draws, "draws")
    check_finite(S, "draws")
    wanted = len(logs_of(prior.at_mean()))
    if S.shape[1] != wanted or len(S) < 2:
        raise ValueError(
            f"draws must be at least 2 rows of {wanted} logarithms of hyperparameters, in the order of Precisions, got "
            f"shape {S.shape}"
        )
    return S
