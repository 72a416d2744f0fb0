r"""The evidence of a Bayesian network by annealing, weights and hyperparameters integrated out, with an error bar.

.. math:: p(T) = \int p(T|w, s)\, p(w|s)\, p(s)\, dw\, ds

Pilot runs choose the reference, temperatures and step sizes (`bayessel.samplers.annealing`); the runs after them are
unbiased and independent, so that their spread is an error bar.

Annealing begins at a Gamma distribution for each hyperparameter, about where the posterior is. With the prior in its
place networks would first take everything for noise, and learn all at once at some temperature, where runs get stuck:
at n = 100, H = 6 they were out by 40 nats. Whatever the reference is, the evidence is the same; but runs that begin
about a poor explanation of the data stay with it, too, and agree. So there are several references, each about another
most probable network, and pilot runs say which is the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammaln, polygamma

from bayessel._check import FloatArray, as_count, as_matrix, check_finite, one_of
from bayessel._fingerprint import fingerprint
from bayessel._types import Seed, SupportsSubmit
from bayessel.mlp import fit_network_evidence
from bayessel.mlp.architecture import Architecture, hidden_units
from bayessel.mlp.prior import NetworkPrior, Precisions
from bayessel.mlp.targets import KINDS, as_data
from bayessel.samplers.annealing import FIRST_STEP, AnnealedEvidence, Particles, adapted, anneal
from bayessel.samplers.network.trajectory import (
    NetworkPosterior,
    TrajectorySettings,
    Workspace,
    log_likelihoods,
    posterior_of,
    sweep_all,
)

#: relative jitter of step sizes
JITTER = 0.2
#: chains that the reference is made from: how many, their updates, leapfrog steps; searches for where they begin
CHAINS, UPDATES, LONG, SEARCHES = 4, 120, 50, 2
#: more weights are not searched for
MOST_WEIGHTS = 1000
#: the reference has the variance of the logarithms drawn times this, and never less than the other
BROADER, LEAST_VARIANCE = 2.0, 1e-3
#: the smallest shape: what is less is as good as this, and its draws are numbers
LEAST_SHAPE = 0.02


def anneal_network(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    hidden: int | str = "auto",
    kind: str = "gaussian",
    prior: NetworkPrior | None = None,
    precisions: Precisions | None = None,
    draws: npt.ArrayLike | None = None,
    n_particles: int = 100,
    n_runs: int = 4,
    n_pilots: int = 4,
    updates: int = 2,
    n_leapfrog: int = 20,
    bracket: bool = False,
    ends: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    time_budget: float | None = None,
    random_state: Seed = None,
    progress: Callable[[int, int], None] | None = None,
    n_jobs: int | None = None,
    executor: SupportsSubmit | None = None,
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
    ends : ((S, P) array, (S, m) array), optional
        Draws of the posterior, packed weights and logarithms of hyperparameters, that the runs back begin with, shared
        out among them. None: they begin where the runs have ended, and miss what those have missed.
    time_budget : float, optional
        Seconds, after which no further run is begun; the pilots and one run are always made.
    random_state : int, Generator or None
        Seed.
    progress : callable, optional
        Called as ``progress(done, runs in all)`` after each run, pilots included.
    n_jobs : int, optional
        Processes: None takes more than one where the work is long, -1 every core. The numbers are the same.
    executor : optional
        A Dask client, or anything else that `bayessel.work.run` takes.

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
    path = NetworkPath(
        *posterior_of(X, T, kind, belief),
        belief,
        kind,
        held,
        np.ones((len(logs_of(belief.at_mean())), 2)),
        as_count(updates, "updates"),
        as_count(n_leapfrog, "n_leapfrog"),
        None if draws is None else _draws(draws, belief),
    )
    path.warm_up()
    return anneal(
        path,
        n_particles=n_particles,
        n_runs=n_runs,
        n_pilots=n_pilots if held is None else 1,
        bracket=bracket,
        ends=None if ends is None else _ends(ends, belief),
        time_budget=time_budget,
        random_state=random_state,
        progress=progress,
        n_jobs=n_jobs,
        executor=executor,
        integrated=("weights", "precisions") if held is None else ("weights",),
        fingerprint=fingerprint(X, T),
        n_rows=len(X),
    )


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
        raise TypeError(f"precisions must be bayessel.mlp.prior.Precisions, got {type(precisions).__name__}")
    for name, part, like in zip(Precisions._fields, precisions, prior.at_mean(), strict=True):
        values = np.asarray(part, dtype=np.float64)
        if values.shape != np.shape(like):
            raise ValueError(f"precisions.{name} must have the shape {np.shape(like)}, got {values.shape}")
        if not (np.isfinite(values).all() and (values > 0.0).all()):
            raise ValueError(f"precisions.{name} must be positive and finite, got {part!r}")
    return logs_of(precisions)


def _draws(draws: npt.ArrayLike, prior: NetworkPrior) -> FloatArray:
    S = as_matrix(draws, "draws")
    check_finite(S, "draws")
    wanted = len(logs_of(prior.at_mean()))
    if S.shape[1] != wanted or len(S) < 2:
        raise ValueError(
            f"draws must be at least 2 rows of {wanted} logarithms of hyperparameters, in the order of Precisions, got "
            f"shape {S.shape}"
        )
    return S


def _ends(ends: tuple[npt.ArrayLike, npt.ArrayLike], prior: NetworkPrior) -> Particles:
    Q, S = as_matrix(ends[0], "ends[0]"), _draws(ends[1], prior)
    check_finite(Q, "ends[0]")
    if Q.shape != (len(S), prior.architecture.size):
        raise ValueError(
            f"ends must be packed weights and as many rows of hyperparameters, ({len(S)}, {prior.architecture.size}) "
            f"of the former, got shape {Q.shape}"
        )
    return Q, S


@dataclass
class NetworkPath:
    """One network's path, from a reference for its hyperparameters, nothing learned, to the posterior.

    γ_t(w, s) = p(w|s) r(s)^{1−t} [p(s) p(T|w,s)]^t, so that g = log p(T|w,s) + log p(s) − log r(s). Weights w are
    packed, hyperparameters s the logarithms of `precisions`; their densities are those of the logarithms.

    Attributes
    ----------
    problem, work
        Data and hyperpriors as `trajectory` has them, and space to work in.
    prior : NetworkPrior
    kind : str
        "gaussian", "logistic" or "softmax".
    held : (m,) array or None
        Logarithms of hyperparameters that are given; None: they are integrated out.
    reference : (m, 2) array
        Shape and rate of a Gamma distribution for each hyperparameter, r(s).
    updates, n_leapfrog : int
        Updates of each particle at each temperature, and leapfrog steps of each.
    draws : (·, m) array or None
        Logarithms of hyperparameters drawn from the posterior, for the reference of the first pilot run.
    n_gradients : int
        How many were computed so far.
    """

    problem: NetworkPosterior
    work: Workspace
    prior: NetworkPrior
    kind: str
    held: FloatArray | None
    reference: FloatArray
    updates: int
    n_leapfrog: int
    draws: FloatArray | None = None
    n_gradients: int = 0

    def warm_up(self) -> None:
        """Compile, so that time budgets are of the work alone."""
        rng = np.random.default_rng(0)
        particles = self.first(rng, 1)
        self.gains(particles)
        self.walk(rng, particles, FIRST_STEP, 1e-3, 1, 1)
        self.n_gradients = 0

    def begin(self, rng: np.random.Generator, number: int) -> None:
        """Make the reference from what was drawn, or from short chains that begin at a most probable network.

        Chains that begin with nothing learned may take everything for noise for longer than all runs take.
        """
        if self.held is not None:
            return
        if self.draws is not None and number == 0:
            self.reference = gammas_of(self.draws)
            return
        Q = np.tile(self._probable(rng), (CHAINS, 1))
        S = np.zeros((CHAINS, len(self.reference)))  # drawn first of all, but for the third layers
        D = self.prior.architecture.inputs
        S[:, [-1, -2 - D]] = np.log([self.prior.input_output.mean, self.prior.input_hidden.mean])
        step, kept = FIRST_STEP, []
        for update in range(UPDATES):
            step = adapted(step, self.walk(rng, (Q, S), step, 1.0, 1, LONG), 0.3)
            if update >= UPDATES // 3:
                kept.append(S.copy())
        self.reference = gammas_of(np.concatenate(kept))

    def _probable(self, rng: np.random.Generator) -> FloatArray:
        """Weights that fit."""
        network = self.prior.architecture
        if network.size > MOST_WEIGHTS:
            return 0.1 * rng.standard_normal(network.size)
        X, T = self.problem.X.T, self.problem.T.T
        fit = fit_network_evidence(X, T, hidden=network.hidden, kind=self.kind, n_starts=SEARCHES, random_state=rng)
        return fit.weights

    def first(self, rng: np.random.Generator, n: int) -> Particles:
        """Weights (n, P) and logarithms of hyperparameters (n, m) from the reference."""
        if self.held is not None:
            S = np.tile(self.held, (n, 1))
        else:
            shape, rate = self.reference.T
            S = log_gamma_draws(rng, np.tile(shape, (n, 1))) - np.log(rate)
        Q = np.empty((n, self.prior.architecture.size))
        for q, s in zip(Q, S, strict=True):
            q[:] = self.prior.draw_weights(precisions_of(s, self.prior), rng)
        return Q, S

    def gains(self, particles: Particles) -> FloatArray:
        """g of each particle."""
        Q, S = particles
        found = np.empty(len(Q))
        log_likelihoods(self.problem, Q, S, self.work, found)
        if self.held is None:
            found += self.log_prior(S) - self.log_reference(S)
        return np.where(np.isfinite(found), found, -np.inf)

    def move(self, rng: np.random.Generator, particles: Particles, step_size: float, t: float) -> float:
        """Update all particles in place."""
        return self.walk(rng, particles, step_size, t, self.updates, self.n_leapfrog)

    def walk(
        self, rng: np.random.Generator, particles: Particles, step_size: float, t: float, updates: int, n_leapfrog: int
    ) -> float:
        """The same with so many updates of so many leapfrog steps."""
        settings = TrajectorySettings(step_size, JITTER, n_leapfrog, 1, 0.0, self.held is None)
        rate, spent = sweep_all(rng, self.problem, *particles, self.work, settings, updates, self.reference, t)
        self.n_gradients += int(spent)
        return float(rate)

    def log_prior(self, S: FloatArray) -> FloatArray:
        """log p(s) of each row; the rates of second layers are their shape over the mean."""
        D, K = self.prior.architecture.inputs, self.prior.architecture.outputs
        shape, rate = (np.tile(part, (len(S), 1)) for part in self.problem.prior.T)
        for begin in (K + 2, K + 3 + D):
            mine, mean = slice(begin, begin + D), begin + D
            rate[:, mine] = shape[:, mine] * np.exp(-S[:, [mean]])
        return self._log_gammas(S, shape, rate)

    def log_reference(self, S: FloatArray) -> FloatArray:
        """log r(s) of each row."""
        return self._log_gammas(S, *self.reference.T)

    def _log_gammas(self, S: FloatArray, shape: FloatArray, rate: FloatArray) -> FloatArray:
        """Sums over hyperparameters; a noise that the model does not have counts nothing."""
        logs = shape * (np.log(rate) + S) - rate * np.exp(S) - gammaln(shape)
        if self.kind != "gaussian":
            logs = logs[:, self.prior.architecture.outputs :]
        return np.asarray(logs.sum(axis=1))


def log_gamma_draws(rng: np.random.Generator, shape: FloatArray) -> FloatArray:
    """Logarithms of Gamma(shape, 1) draws: G(s) = G(s + 1) u^{1/s} is never rounded to zero."""
    return np.asarray(np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.shape) / shape)


def logs_of(precisions: Precisions) -> FloatArray:
    """Logarithms in the order of `precisions`."""
    return np.log(np.concatenate([np.ravel(part) for part in precisions]))


def precisions_of(s: FloatArray, prior: NetworkPrior) -> Precisions:
    """The inverse of `logs_of`."""
    D, K = prior.architecture.inputs, prior.architecture.outputs
    parts = np.split(np.exp(s), np.cumsum([K, 1, 1, D, 1, D]))
    return Precisions(*(part if i in (0, 3, 5) else part[0] for i, part in enumerate(parts)))


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
