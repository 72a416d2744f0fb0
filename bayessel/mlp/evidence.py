r"""MacKay's evidence framework for networks: precisions that maximise Laplace's approximation of the evidence.

Weights have Normal priors in groups, one precision α_c each: the hidden biases, the hidden-to-output weights, and for
every input its weights into hidden units and into outputs, so that inputs that do not matter are switched off
(automatic relevance determination). At the most probable weights ŵ, with A the exact Hessian of
M(w) = β E_D(w) + ½ Σ_c α_c |w_c|²,

.. math:: \log p(t|\alpha,\beta) \approx -M(\hat w) + \tfrac12\sum_c n_c\log\alpha_c + \tfrac n2\log\frac{\beta}{2\pi}
          - \tfrac12\log|A| + \log S.

S = 2^H H! networks compute the same function. A unit that does nothing is no other unit with its sign turned or with
another place: with U units in use S = 2^U H!/(H−U)!. MacKay (1992), Neural Computation 4, 448, eqs. 3.4 to 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from bayessel._check import FloatArray, as_count, as_float_array, as_generator, as_positive
from bayessel._fingerprint import fingerprint
from bayessel._types import Seed
from bayessel.fit import Evidence, Status, worst
from bayessel.mlp.architecture import MOST_HIDDEN, Architecture, hidden_units
from bayessel.mlp.evidence_result import NetworkEvidenceFit, NetworkOptimum, leave_out, output_covariances
from bayessel.mlp.hessian import NetworkProblem, NewtonEnd, bends, gaussian_peak, newton
from bayessel.mlp.network_fit import Networks, slopes
from bayessel.mlp.targets import as_data
from bayessel.policy import NOISE_ROWS_OF_NETWORKS, NOISE_SHARE_OF_EVIDENCES
from bayessel.work.interrupts import InterruptGuard

#: the Hessian has this many rows at most when hidden units are chosen, and at all
USUAL_WEIGHTS, MOST_WEIGHTS = 1000, 4000
#: precision of the output biases, which is given
BIAS_PRECISION = 1.0
#: bounds of precisions: beyond, a group is off, or as good as free; noise of less is none
ALPHA_BOUNDS, BETA_BOUNDS = (1e-2, 1e8), (1e-8, 1e10)
#: rounds of re-estimation, Newton steps in each, and what these may leave to be gained, in nats; then the last rounds
FIRST_ROUNDS, STEPS, ROUGH = 100, 5, 1e-3
LAST_ROUNDS, LAST_STEPS, SURE = 30, 60, 1e-5
#: a search ends when so many rounds in a row have changed the evidence by less, in nats
CALM, LEAST_GAIN = 3, 0.02
#: a hidden unit whose mirror image is closer, in standard deviations, is not in use
MIRRORED = 2.0


@dataclass
class Groups:
    """Which precision each weight has: hidden biases, each input's hidden weights, output biases, …, as packed."""

    architecture: Architecture

    def __post_init__(self) -> None:
        network = self.architecture
        D, H, K = network.inputs, network.hidden, network.outputs
        sizes = [H, *[H] * D, K, H * K, *[K] * D]
        self.names = (
            "hidden_bias",
            *(f"input_hidden[{i}]" for i in range(D)),
            "bias",
            "hidden_output",
            *(f"input_output[{i}]" for i in range(D)),
        )
        self.of: npt.NDArray[np.int64] = np.repeat(np.arange(len(sizes)), sizes)
        self.sizes = np.array(sizes, dtype=np.float64)
        self.fixed = D + 1

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum over the weights of each group."""
        return np.bincount(self.of, values, len(self.sizes))


@dataclass(frozen=True, eq=False)
class Start:
    """One search: where it stands, and what it is worth."""

    found: NewtonEnd
    alpha: FloatArray
    beta: FloatArray
    gamma: FloatArray
    covariance: FloatArray
    log_evidence: float
    in_use: int
    exact: bool
    rounds: int
    converged: bool = False

    def left(self, n: int) -> float:
        """Rows that the parameters leave to the noise, of an output."""
        return n - float(self.gamma.sum()) / max(len(self.beta), 1)


def fit_network_evidence(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    hidden: int | str = "auto",
    kind: str = "gaussian",
    n_starts: int = 5,
    time_budget: float | None = None,
    random_state: Seed = None,
    progress: Callable[[int, int], None] | None = None,
) -> NetworkEvidenceFit:
    """Fit a network and the precisions of its weights and noise by the evidence framework.

    Parameters
    ----------
    X : (n, D) array
        Inputs; give every column mean 0 and standard deviation 1.
    t : (n,) or (n, K) array
        Targets, standardised too; for ``"logistic"`` zeros and ones, for ``"softmax"`` classes from 0.
    hidden : int or "auto"
        Hidden units; "auto": the fewest with at least as many weights as rows, from 6 to 25.
    kind : {"gaussian", "logistic", "softmax"}
        Noise of one precision per output, or classes.
    n_starts : int
        Searches from random weights; the one of the highest evidence is returned.
    time_budget : float, optional
        Seconds, after which no further search and no further round is begun.
    random_state : int, Generator or None
        Seed of the first weights.
    progress : callable, optional
        Called as ``progress(done, n_starts)`` after each search.

    Returns
    -------
    NetworkEvidenceFit
        Also after Ctrl-C, once a search has come to a first value.

    Notes
    -----
    Distrust it where weights are many for the rows: the peak is then no Gaussian, and a fit through all rows may look
    probable. Such ends are not preferred, and noted (``Status.INTERPOLATION``).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 3))
    >>> t = np.tanh(2 * X[:, 0]) + 0.1 * rng.standard_normal(150)
    >>> fit = fit_network_evidence(X, t, hidden=3, n_starts=2, random_state=3)
    >>> bool(0.08 < fit.noise_std[0] < 0.12), int(np.argmax(fit.relevance))
    (True, 0)
    """
    X, T = as_data(X, t, kind)
    architecture = Architecture(X.shape[1], _hidden(hidden, len(X), X.shape[1], T.shape[1]), T.shape[1])
    n_starts = as_count(n_starts, "n_starts")
    begin = perf_counter()
    end = np.inf if time_budget is None else begin + as_positive(time_budget, "time_budget")
    problem, groups = NetworkProblem(X, T, kind, architecture), Groups(architecture)
    seeds = as_generator(random_state).spawn(n_starts)
    starts: list[Start] = []
    with InterruptGuard(lambda: starts) as guard:
        for number, rng in enumerate(seeds):
            if starts and perf_counter() >= end:
                break
            search(problem, groups, rng, end, starts)
            if progress is not None:
                progress(number + 1, n_starts)
    late = perf_counter() >= end
    return _result(problem, groups, as_float_array(t, "t"), starts, guard.interrupted, late, perf_counter() - begin)


def search(problem: NetworkProblem, groups: Groups, rng: np.random.Generator, end: float, starts: list[Start]) -> None:
    """One search from random weights; its state so far is the last of `starts` at any time.

    First few Newton steps for every new set of precisions, which the Gauss-Newton Hessian gives: it is a peak wherever
    one stands. Then minima and exact Hessians.
    """
    q, alpha, beta = first(problem, groups, rng)
    place, rounds = len(starts), 0
    found = newton(problem, q, alpha[groups.of], beta, STEPS)
    for exact, most, steps, tol in ((False, FIRST_ROUNDS, STEPS, ROUGH), (True, LAST_ROUNDS, LAST_STEPS, SURE)):
        calm, before = 0, -np.inf
        if exact:
            found = newton(problem, found.at.q, alpha[groups.of], beta, 3 * steps, found.damping, tol)
        for last in range(most, 0, -1):
            rounds += 1
            now = value(problem, groups, found, alpha, beta, exact, rounds)
            starts[place:] = [now]
            if perf_counter() >= end:
                return
            calm = calm + 1 if abs(now.log_evidence - before) < LEAST_GAIN else 0
            before = now.log_evidence
            if exact and calm == CALM and found.converged:
                starts[place:] = [replace(now, converged=True)]
                return
            if calm == CALM or (exact and last == 1):
                break
            alpha, beta = reestimate(problem, groups, found, now)
            found = newton(problem, found.at.q, alpha[groups.of], beta, steps, found.damping, tol)


def first(
    problem: NetworkProblem, groups: Groups, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights that use the hidden units a little, and precisions that hold them loosely."""
    network = problem.architecture
    D, H, K = network.inputs, network.hidden, network.outputs
    alpha = np.ones(len(groups.sizes))
    alpha[1 : D + 1] = D
    alpha[groups.fixed] = BIAS_PRECISION
    alpha[groups.fixed + 1] = H
    q = rng.standard_normal(network.size) / np.sqrt(alpha[groups.of])
    q[network.slices["hidden_output"]] *= 0.5
    q[network.slices["input_output"]] *= 0.1
    return q, alpha, np.full(K, 4.0 if problem.kind == "gaussian" else 1.0)


def reestimate(problem: NetworkProblem, groups: Groups, found: NewtonEnd, now: Start) -> tuple[FloatArray, FloatArray]:
    """α_c = γ_c/|w_c|² and β_k = (n − γ_k)/|r_k|², where the evidence is stationary if ŵ stood still."""
    n = len(problem.X)
    squares = groups.sums(found.at.q**2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # weights or residuals of nil, or nearly
        alpha = np.clip(np.maximum(now.gamma, 1e-12) / squares, *ALPHA_BOUNDS)
    alpha = np.clip(alpha, 0.1 * now.alpha, 10.0 * now.alpha)
    alpha[groups.fixed] = BIAS_PRECISION
    if problem.kind != "gaussian":
        return alpha, now.beta
    residuals = np.sum((problem.T - found.at.f) ** 2, axis=0)
    spent = by_output(problem, found, now)
    with np.errstate(divide="ignore", over="ignore"):
        beta = np.maximum(n - spent, 0.01) / residuals
    return alpha, np.clip(np.clip(beta, 0.1 * now.beta, 10.0 * now.beta), *BETA_BOUNDS)


def by_output(problem: NetworkProblem, found: NewtonEnd, now: Start) -> FloatArray:
    """γ_k = β_k tr A⁻¹ ∇∇E_k: the well-determined parameters that each output pays for; they add up to Σ γ_c."""
    K = problem.architecture.outputs
    if K == 1:
        return np.array([now.gamma.sum()])
    spent = np.empty(K)
    for k in range(K):
        spent[k] = now.beta[k] * np.sum((found.J[k] @ now.covariance) * found.J[k])
        if now.exact:
            df = np.zeros_like(found.at.df)
            df[:, k] = found.at.df[:, k]
            spent[k] += np.sum(now.covariance * bends(problem, found.at, df))
    return spent


def value(
    problem: NetworkProblem,
    groups: Groups,
    found: NewtonEnd,
    alpha: FloatArray,
    beta: FloatArray,
    exact: bool,
    rounds: int,
) -> Start:
    """Laplace's log evidence where a search stands, with γ_c = n_c − α_c tr_c A⁻¹.

    Where the exact Hessian is no peak, the Gauss-Newton one takes its place.
    """
    exact = exact and found.peak is not None
    summit = found.peak if exact else gaussian_peak(found.gauss_newton, 1.0 / np.sqrt(np.diag(found.gauss_newton)))
    if summit is None:  # α is not less than 1e-2: the inputs are large
        raise ValueError(
            "the Hessian of the network has lost the digits of its prior; give every column of X mean 0 and standard "
            "deviation 1"
        )
    covariance = summit.covariance()
    gamma = groups.sizes - alpha * groups.sums(np.diag(covariance))
    log_evidence = -found.value + 0.5 * float(groups.sizes @ np.log(alpha)) - 0.5 * summit.log_determinant
    if problem.kind == "gaussian":
        log_evidence += 0.5 * len(problem.X) * float(np.sum(np.log(beta / (2.0 * np.pi))))
    in_use = units_in_use(problem.architecture, found.at.q, covariance)
    log_evidence += log_symmetry(problem.architecture.hidden, in_use)
    return Start(found, alpha, beta, gamma, covariance, log_evidence, in_use, exact, rounds)


def units_in_use(network: Architecture, q: FloatArray, covariance: FloatArray) -> int:
    """Hidden units whose mirror image, all signs turned, is another peak: farther than two standard deviations."""
    D, H, K = network.inputs, network.hidden, network.outputs
    first_v, used = network.slices["hidden_output"].start, 0
    for h in range(H):
        mine = np.concatenate([[h], H + np.arange(D) * H + h, first_v + h * K + np.arange(K)])
        block = covariance[np.ix_(mine, mine)]
        size = np.sqrt(np.maximum(np.diag(block), 1e-300))
        apart = 2.0 * q[mine] / size
        distance = apart @ np.linalg.lstsq(block / np.outer(size, size), apart, rcond=1e-10)[0]
        used += bool(distance > MIRRORED**2)
    return used


def log_symmetry(hidden: int, in_use: int) -> float:
    """log 2^U H!/(H−U)!: arrangements of U units that do something and H − U that do nothing."""
    return float(in_use * np.log(2.0) + gammaln(hidden + 1.0) - gammaln(hidden - in_use + 1.0))


def _hidden(value: int | str, n: int, inputs: int, outputs: int) -> int:
    fits = (USUAL_WEIGHTS - outputs * (1 + inputs)) // (1 + inputs + outputs)
    width = hidden_units(value, n, inputs, outputs, most=max(min(MOST_HIDDEN, fits), 1))
    size = Architecture(inputs, width, outputs).size
    if size > MOST_WEIGHTS:
        raise ValueError(
            f"the Hessian of {size} weights is too large: at most {MOST_WEIGHTS}; use fewer hidden units or "
            "inputs, or early stopping or sampling"
        )
    return width


def _result(
    problem: NetworkProblem,
    groups: Groups,
    given: FloatArray,
    starts: list[Start],
    interrupted: bool,
    late: bool,
    seconds: float,
) -> NetworkEvidenceFit:
    """The best start that leaves rows to the noise, and what has to be said of it; `given` is the target as it came."""
    n = len(problem.X)
    gaussian = problem.kind == "gaussian"
    enough = [not gaussian or s.left(n) >= max(NOISE_ROWS_OF_NETWORKS, NOISE_SHARE_OF_EVIDENCES * n) for s in starts]
    order = sorted(range(len(starts)), key=lambda i: (enough[i], starts[i].log_evidence), reverse=True)
    best = starts[order[0]]
    notes = []
    if not enough[order[0]] or any(s.log_evidence > best.log_evidence for s in starts):
        notes.append(Status.INTERPOLATION)
    if gaussian and np.ptp(problem.T, axis=0).max() == 0.0:
        notes.append(Status.CONSTANT_TARGET)
    elif gaussian and best.beta.max() >= BETA_BOUNDS[1]:
        notes.append(Status.NOISE_AT_FLOOR)
    if n < 3:
        notes.append(Status.TOO_FEW_ROWS)
    if interrupted:
        notes.append(Status.INTERRUPTED)
    elif not best.converged:
        notes.append(Status.TIME_BUDGET if late else Status.STEP_LIMIT)
    at = best.found.at
    networks = Networks(problem.architecture, at.q[None], problem.kind, given.ndim == 1)
    V = output_covariances(best.found.J, best.covariance)
    each = slopes(problem.architecture.split(at.q), problem.X)
    return NetworkEvidenceFit(
        networks=networks,
        evidence=Evidence(
            best.log_evidence,
            "laplace",
            maximised=("precisions", "noise") if gaussian else ("precisions",),
            integrated=("weights",),
        ),
        alpha=dict(zip(groups.names, map(float, best.alpha), strict=True)),
        beta=best.beta if gaussian else None,
        gamma=dict(zip(groups.names, map(float, best.gamma), strict=True)),
        units_in_use=best.in_use,
        covariance=best.covariance,
        relevance=np.sqrt(np.mean(each**2, axis=(0, 2))),
        left_out=leave_out(networks, problem.T, at.f, at.p, V, best.beta),
        optima=_optima([starts[i] for i in order]),
        status=worst(notes),
        notes=tuple(notes),
        history=tuple(
            {
                "log_evidence": s.log_evidence,
                "gamma": float(s.gamma.sum()),
                "rounds": s.rounds,
                "units_in_use": s.in_use,
                "converged": s.converged,
                "preferred": i == order[0],
            }
            for i, s in enumerate(starts)
        ),
        n_rows=n,
        fingerprint=fingerprint(problem.X, given),
        target_fingerprint=fingerprint(given),
        seconds=seconds,
    )


def _optima(ends: list[Start]) -> tuple[NetworkOptimum, ...]:
    """Ends that differ in what they are worth; arrangements of the same units do not."""
    found: list[NetworkOptimum] = []
    for end in ends:
        if all(abs(end.log_evidence - one.log_evidence) > LEAST_GAIN for one in found):
            found.append(NetworkOptimum(end.log_evidence, end.found.at.q, end.in_use))
    return tuple(found)
