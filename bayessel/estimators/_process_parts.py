r"""States of the hyperparameters of a Gaussian process that stand for their posterior: drawn, or around the mode.

Up to some hundred rows they are drawn by Hamiltonian Monte Carlo, under priors whose top-level mean is unknown
(`bayessel.covariance.prior.UnknownMeanPrior`), beside draws for a covariance with one length for all inputs. What each
covariance is worth, the rows say: the weights are those under which the rows left out are predicted best, each by
draws weighed as if it had not been seen,

.. math:: p(t_i|t_{-i}) = \Bigl(\tfrac1S \sum_s 1/p(t_i|t_{-i}, \theta_s)\Bigr)^{-1}.

With more rows states are θ̂ + H^{-1/2}z_s by Laplace's approximation, H the Hessian of −log p(θ|t) and z_s normal in
pairs of opposite sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.covariance import Bias, Linear, Noise, Prior, SquaredExponential, Standard
from bayessel.covariance.prior import UnknownMeanPrior
from bayessel.estimators import held_out
from bayessel.estimators._mixed_process import MixedProcess, ProcessPart
from bayessel.fit import Status, worst
from bayessel.gp import Marginal, Predictor, fit_map
from bayessel.gp.hamiltonian_draws import hamiltonian_draws
from bayessel.gp.map_result import GPFit
from bayessel.gp.noise_floor import NoiseFloor
from bayessel.work.interrupts import InterruptGuard

#: states that predict, and the cubes of rows that the factorisations of those around a mode may take together
MOST_STATES, MOST_CUBES = 40, 4e10
#: trajectories of a chain, and those before them that tune it; as many up to so many rows
DRAWS, TUNE, FULL_ROWS = 60, 25, 200
#: share of the trajectories below which there are too few of them: with (rows / FULL_ROWS)^-1.5, from 450 rows on
LEAST_SHARE = 0.3
#: least curvature in a direction: of draws, whose steps correct it; of states around the mode, where it is that of a
#: prior with a standard deviation of two; their farthest step, in logarithms
LEAST_METRIC, LEAST_CURVATURE, FARTHEST = 0.1, 0.25, 4.0
#: Newton steps with one Hessian, and the squared decrement up to which they lead to the mode
_NEWTON_STEPS, _NEAR = 4, 0.1


def mixed_process(mode: GPFit, share: float, seed: int) -> MixedProcess:
    """The process that predicts by default, with this weight beside a constant; after Ctrl-C that of the mode."""
    found: tuple[ProcessPart, ...] = (ProcessPart(mode.covariance, mode.theta[None], 1.0, mode.prior),)
    if Status.INTERRUPTED in mode.notes or Status.CONSTANT_TARGET in mode.notes:
        return MixedProcess(mode, found, share)
    began = perf_counter()
    with InterruptGuard() as guard:
        found = process_parts(mode, seed)
    mode = replace(mode, seconds=mode.seconds + perf_counter() - began)
    if guard.interrupted:
        notes = (*mode.notes, Status.INTERRUPTED)
        mode = replace(mode, status=worst(notes), notes=notes)
    return MixedProcess(mode, found, share)


def process_parts(mode: GPFit, seed: int) -> tuple[ProcessPart, ...]:
    """What predicts for a fit by its mode; the same for the same fit and seed."""
    if _share(mode) < LEAST_SHARE:
        return (ProcessPart(mode.covariance, states_around(mode), 1.0, mode.prior),)
    drawn = [(_drawn(fit, seed, _share(mode)), fit) for fit in _fits(mode, seed)]
    return stacked(mode, [ProcessPart(fit.covariance, thetas, 1.0, prior_of_draws(fit)) for thetas, fit in drawn])


def _share(mode: GPFit) -> float:
    """How many trajectories there are of those that few rows have."""
    return float((max(mode.n_rows, FULL_ROWS) / FULL_ROWS) ** -1.5)


def prior_of_draws(fit: GPFit) -> UnknownMeanPrior | None:
    """The prior under which states are drawn; None where none are, or a fit has no prior."""
    return None if fit.prior is None or _share(fit) < LEAST_SHARE else UnknownMeanPrior(fit.prior)


def stacked(mode: GPFit, drawn: list[ProcessPart]) -> tuple[ProcessPart, ...]:
    """Parts weighed by the rows left out, with as many of their states as their weight is worth."""
    weights = np.ones(1)
    if len(drawn) > 1:
        densities = []
        for part in drawn:
            left_out = Predictor(mode.X, mode.t, part.covariance, evenly(part.thetas, MOST_STATES)).leave_one_out()
            each = log_normal(mode.t - left_out.means, left_out.variances)
            densities.append(np.log(len(each)) - logsumexp(-each, axis=0))
        weights = held_out.stacking_weights(np.array(densities))
    counts = np.round(MOST_STATES * weights).astype(int)
    used = weights * (counts > 0)
    return tuple(
        replace(part, thetas=evenly(part.thetas, count), weight=float(weight / used.sum()))
        for part, count, weight in zip(drawn, counts, weights, strict=True)
        if count
    )


def evenly(thetas: FloatArray, count: int) -> FloatArray:
    """At most so many of the states, evenly spread, the last among them."""
    length = len(thetas)
    count = min(count, length)
    return thetas[[length - 1 - (k * length) // count for k in range(count)][::-1]]


def _fits(mode: GPFit, seed: int) -> Iterator[GPFit]:
    """The fit, and of the default covariance the same with one length for all inputs."""
    yield mode
    standard = mode.covariance
    if not isinstance(standard, Standard) or len(standard.used(mode.X.shape[1])) == 1:
        return
    columns = standard.columns
    shared = SquaredExponential(ard=False, columns=columns) + Linear(columns=columns) + Bias() + Noise()
    fit = fit_map(mode.X, mode.t, shared, random_state=seed)
    if Status.INTERRUPTED in fit.notes:
        raise KeyboardInterrupt
    yield fit


def _drawn(fit: GPFit, seed: int, share: float) -> FloatArray:
    """Draws under an unknown top-level mean, (S, k); where no chain moves, states around the mode."""
    given, prior = fit.prior, prior_of_draws(fit)
    if given is None or prior is None or not np.isfinite(fit.hessian).all():
        return fit.theta[None]
    marginal = Marginal(fit.X, fit.t, fit.covariance)
    floor = NoiseFloor.of(marginal)

    def density(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = floor.value_and_gradient(marginal, theta)
        return value + prior.log_density(theta), gradient + prior.gradient(theta)

    fit = _peak(fit, given, marginal)
    hessian = fit.hessian + np.diag(given.hessian_diagonal(fit.theta)) - prior.hessian(fit.theta)
    found = hamiltonian_draws(
        density,
        fit.theta,
        _root(hessian, fit.theta, LEAST_METRIC),
        draws=round(share * DRAWS),
        tune=round(np.sqrt(share) * TUNE),
        rng=np.random.default_rng(seed),
    )
    return found.draws if len(np.unique(found.draws[:, 0])) > 1 else states_around(fit)


def _peak(fit: GPFit, prior: Prior, marginal: Marginal) -> GPFit:
    """The fit at its mode to rounding, by Newton steps, so that chains do not depend on where a search stopped."""
    values, axes = np.linalg.eigh(fit.hessian)
    theta = fit.theta
    for _ in range(_NEWTON_STEPS):
        along = axes.T @ (marginal.value_and_gradient(theta)[1] + prior.gradient(theta))
        if not values[0] > 0.0 or not float((along**2 / values).sum()) < _NEAR:
            return fit
        theta = theta + axes @ (along / values)
    return replace(fit, theta=theta)


def states_around(mode: GPFit) -> FloatArray:
    """Hyperparameters around the mode, (S, k), the same for the same fit; of many rows few, of more the mode alone."""
    count = 2 * int(min(MOST_STATES, MOST_CUBES / max(mode.n_rows, 1) ** 3) / 2)
    if not count or not np.isfinite(mode.hessian).all():
        return mode.theta[None]
    z = np.random.default_rng(0).normal(size=(count // 2, len(mode.theta)))
    steps = np.vstack([z, -z]) @ _root(mode.hessian, mode.theta, LEAST_CURVATURE).T
    states = mode.theta + np.clip(steps, -FARTHEST, FARTHEST)
    # noise-free targets may leave no factor where the noise is still less
    possible = [theta for theta in states if np.isfinite(mode.log_joint(theta))]
    return np.array(possible) if possible else mode.theta[None]


def _root(hessian: FloatArray, theta: FloatArray, least: float) -> FloatArray:
    """W with W Wᵀ = H⁻¹; its columns in the order of θ, so that the order of the inputs changes nothing."""
    values, axes = np.linalg.eigh(hessian)
    root = (axes / np.sqrt(np.maximum(values, least))) @ axes.T
    return np.asarray(root[:, np.argsort(theta, kind="stable")])
