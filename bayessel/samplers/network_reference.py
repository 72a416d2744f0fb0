"""Where annealing of a network begins: a Gamma distribution for each hyperparameter, about where the posterior is.

With the prior in its place networks would first take everything for noise, and learn all at once at some temperature,
where runs get stuck: at n = 100, H = 6 they were out by 40 nats. Whatever the reference is, the evidence is the same;
but runs that begin about a poor explanation of the data stay with it, too, and agree. So there are several references,
each about another most probable network, and pilot runs say which is the best.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, polygamma

from bayessel._check import FloatArray
from bayessel.mlp import fit_network_evidence
from bayessel.mlp.energy import GAUSSIAN, LOGISTIC, SOFTMAX
from bayessel.samplers.annealing import FIRST_STEP, adapted
from bayessel.samplers.network_path import NetworkPath

#: chains that the reference is made from: how many, their updates, leapfrog steps; searches for where they begin
CHAINS, UPDATES, LONG, SEARCHES = 4, 120, 50, 2
#: more weights are not searched for
MOST_WEIGHTS = 1000
#: the reference has the variance of the logarithms drawn times this, and never less than the other
BROADER, LEAST_VARIANCE = 2.0, 1e-3
#: the smallest shape: what is less is as good as this, and its draws are numbers
LEAST_SHAPE = 0.02


def refer(path: NetworkPath, rng: np.random.Generator) -> FloatArray:
    """One reference, from short chains that begin at a most probable network of the evidence framework.

    Chains that begin with nothing learned may take everything for noise for longer than all runs take.
    """
    Q = np.tile(_probable(path, rng), (CHAINS, 1))
    S = np.zeros((CHAINS, len(path.problem.prior)))  # drawn first of all, but for the third layers
    S[:, [-1, -2 - path.prior.architecture.inputs]] = np.log(
        [path.prior.input_output.mean, path.prior.input_hidden.mean]
    )
    step, kept = FIRST_STEP, []
    for update in range(UPDATES):
        step = adapted(step, path.walk(rng, (Q, S), step, 1.0, 1, LONG), 0.3)
        if update >= UPDATES // 3:
            kept.append(S.copy())
    return gammas_of(np.concatenate(kept))


def gammas_of(S: FloatArray) -> FloatArray:
    """(shape, rate) of the Gamma variables whose logarithms have the means of S (draws, m), and broader spreads.

    Var log x = ψ′(shape) falls with the shape: halving finds it. E log x = ψ(shape) − log rate.
    """
    variance = np.maximum(BROADER * S.var(axis=0), LEAST_VARIANCE)
    low, high = np.full(len(variance), np.log(LEAST_SHAPE)), np.full(len(variance), np.log(2.0 / LEAST_VARIANCE))
    for _ in range(60):
        middle = 0.5 * (low + high)
        wide = polygamma(1, np.exp(middle)) > variance
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    shape = np.exp(low)
    return np.column_stack([shape, np.exp(digamma(shape) - S.mean(axis=0))])


def _probable(path: NetworkPath, rng: np.random.Generator) -> FloatArray:
    """Weights that fit."""
    architecture = path.prior.architecture
    if architecture.size > MOST_WEIGHTS:
        return 0.1 * rng.standard_normal(architecture.size)
    kind = {GAUSSIAN: "gaussian", LOGISTIC: "logistic", SOFTMAX: "softmax"}[path.problem.kind]
    X, T = path.problem.X.T, path.problem.T.T
    return fit_network_evidence(
        X, T, hidden=architecture.hidden, kind=kind, n_starts=SEARCHES, random_state=rng
    ).weights
