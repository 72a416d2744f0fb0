r"""A precision for each function, chosen by the evidence of Laplace's method, most of them infinite.

With ``proper`` precisions the size :math:`s_m = \mathrm{rms}(\phi_m)/\sqrt{\alpha_m}` of each function in use has the
prior of `bayessel.linear.latent.shared_precision`, and its logarithm is integrated out by Laplace's method with the
curvature 2 that a well-determined precision has: about a nat for each function. Otherwise precisions are free.

At the mode every row is a normal site, with the information W and the slope s of its likelihood. For a function
outside, with :math:`S = \phi^TW\phi - \phi^TWG(I + G^TWG)^{-1}G^TW\phi` and :math:`Q = \phi^Ts`, the evidence of these
sites rises by :math:`\tfrac12(Q^2/S - 1 - \log(Q^2/S))` at the precision :math:`S^2/(Q^2 - S)` where
:math:`Q^2 > S` (Tipping and Faul 2003). That is a promise: sites move with the mode. A move counts when the evidence
itself has risen, at its own mode and with precisions that its exact gradient has improved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.linear.latent.laplace import LaplaceMode, LatentTargets, find_mode
from bayessel.linear.latent.shared_precision import TYPICAL_LOG_ODDS, prior_sd
from bayessel.policy import IMPROVEMENT_NATS

#: functions that may join at one step, in the order of their promises
TRIED = 4
#: evaluations of the gradient after a move, and in the end
_AFTER_MOVE, _IN_THE_END = 6, 60
#: nats below the state at hand from which a climb may still lead above it
_HOPE = 2.0
#: how closely modes are found on the way
_CLOSE = 1e-10
#: log odds, or units of log rates and targets, that one function may reach; and the least that counts
LARGEST, LEAST = 100.0, 1e-4
#: second derivative of the evidence by log s where a precision is well determined
_CURVATURE = 2.0
#: functions in use beyond which exchanges are not looked for, each costs a pass over all candidates
_MOST_EXCHANGED = 25


@dataclass(frozen=True, eq=False)
class SparseState:
    """Functions in use with their log precisions, and the mode.

    Attributes
    ----------
    active : (k,) int array
        Columns in use.
    log_alpha : (k,) array
        Logarithms of their precisions.
    mode : LaplaceMode
        Its columns are those in use, then those that are always there.
    objective : float
        What is maximised, in nats: L, the log prior of the parameters of the likelihood, and what precisions cost.
    """

    active: npt.NDArray[np.intp]
    log_alpha: FloatArray
    mode: LaplaceMode
    objective: float


@dataclass(eq=False)
class SparseSearch:
    """What is searched, and what happened.

    Attributes
    ----------
    targets : LatentTargets
    Phi : (N, M) array
        Candidates, of mean square 1.
    always : (N, j) array
        Columns that are always there, divided by the roots of their precisions.
    unit : float
        Of the latent function: 1 for log odds and log rates, else the spread of the targets.
    moves_left : int
        Moves that are still allowed.
    proper : bool
        Whether precisions have a prior.
    history : list
        Moves that were made.
    """

    targets: LatentTargets
    Phi: FloatArray
    always: FloatArray
    unit: float
    moves_left: int
    proper: bool = True
    history: list[Mapping[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.prior = self.targets.likelihood.prior(self.targets.t)
        self.sd = prior_sd(self.targets.likelihood)
        self.n_parameters = len(self.targets.likelihood.names)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Of a log precision, and of the parameters of the likelihood; a function makes up `LEAST` to `LARGEST`."""
        own = (-2.0 * float(np.log(LARGEST * self.unit)), -2.0 * float(np.log(LEAST * self.unit)))
        reach = 6.0 * self.prior.second
        ends = zip((self.prior.first - reach).tolist(), (self.prior.first + reach).tolist(), strict=True)
        return [own, *ends]

    # ---- states

    def state(
        self,
        active: npt.NDArray[np.intp],
        log_alpha: FloatArray,
        phi: FloatArray,
        weights: FloatArray | None = None,
    ) -> SparseState:
        """The mode for some functions; `weights` w to begin with, those of the columns that are always there last."""
        G = np.hstack([self.Phi[:, active] * np.exp(-0.5 * log_alpha), self.always])
        start = None
        if weights is not None:
            start = weights * np.append(np.exp(0.5 * log_alpha), np.ones(self.always.shape[1]))
        mode = find_mode(self.targets, G, phi, start, _CLOSE)
        value = mode.log_evidence + self.prior.log_density(phi) + self.of_precisions(log_alpha)[0]
        return SparseState(active, log_alpha, mode, value)

    def of_precisions(self, log_alpha: FloatArray) -> tuple[float, FloatArray]:
        """What precisions add to the objective, and the derivatives by their logarithms."""
        if not self.proper:
            return 0.0, np.zeros(len(log_alpha))
        away = -0.5 * log_alpha - np.log(TYPICAL_LOG_ODDS * self.unit)
        whole = log_normal(away, self.sd**2) + 0.5 * np.log(2.0 * np.pi / _CURVATURE)
        return float(whole.sum()), 0.5 * away / self.sd**2

    def empty(self) -> SparseState:
        """No function in use."""
        phi = self.targets.likelihood.start(self.targets.t)
        if len(phi):
            phi = np.clip(phi, *np.array(self.bounds[1:]).T)
        return self.polished(self.state(np.zeros(0, dtype=np.intp), np.zeros(0), phi), _IN_THE_END)

    @staticmethod
    def weights(state: SparseState) -> FloatArray:
        """Weights of the functions in use and of the columns that are always there."""
        found = state.mode.z.copy()
        found[: len(state.active)] *= np.exp(-0.5 * state.log_alpha)
        return found

    # ---- promises

    def scores(self, state: SparseState) -> tuple[FloatArray, FloatArray]:
        """S and Q of every candidate, (M,) each."""
        mode = state.mode
        W = mode.information
        through = solve_triangular(mode.root, (mode.G * W[:, None]).T @ self.Phi, lower=True, check_finite=False)
        S = np.einsum("nm,n,nm->m", self.Phi, W, self.Phi) - np.einsum("km,km->m", through, through)
        return S, self.Phi.T @ mode.slope

    def promises(self, state: SparseState) -> tuple[FloatArray, FloatArray]:
        """Gains of joining, and log precisions, of every candidate; minus infinity of those in use."""
        S, Q = self.scores(state)
        W = state.mode.information
        lies_in_span = S < 1e-9 * np.einsum("nm,n,nm->m", self.Phi, W, self.Phi)
        ratio = np.where(lies_in_span, 0.0, Q**2 / np.maximum(S, 1e-300))
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(ratio > 1.0, 0.5 * (ratio - 1.0 - np.log(ratio)), -np.inf)
            log_alpha = np.where(ratio > 1.0, 2.0 * np.log(S) - np.log(np.maximum(Q**2 - S, 1e-300)), 0.0)
        gain[state.active] = -np.inf
        return gain, np.clip(log_alpha, *self.bounds[0])

    # ---- moves

    def polished(self, state: SparseState, evaluations: int) -> SparseState:
        """The state after so many evaluations of the exact gradient in all precisions and parameters; never worse."""
        k, best = len(state.active), state
        if k + self.n_parameters == 0:
            return state

        def negative(theta: FloatArray) -> tuple[float, FloatArray]:
            nonlocal best
            found = self.state(state.active, theta[:k], theta[k:], self.weights(best))
            if found.objective > best.objective:
                best = found
            by_columns, by_phi = found.mode.gradient()
            by_columns = by_columns[:k] + self.of_precisions(theta[:k])[1]
            return -found.objective, -np.append(by_columns, by_phi + self.prior.gradient(theta[k:]))

        bounds = [self.bounds[0]] * k + self.bounds[1:]
        minimize(
            negative,
            np.clip(np.append(state.log_alpha, state.mode.phi), *np.array(bounds).T),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxfun": evaluations, "maxiter": evaluations, "ftol": 1e-13, "gtol": 1e-7},
        )
        return best

    def without(self, state: SparseState, j: int) -> SparseState:
        """The state without the function in use of this place."""
        keep = np.arange(len(state.active)) != j
        weights = np.delete(self.weights(state), j)
        return self.state(state.active[keep], state.log_alpha[keep], state.mode.phi, weights)

    def joined(self, state: SparseState, m: int, log_alpha: float) -> SparseState:
        """The state with one more function."""
        k = len(state.active)
        weights = np.insert(self.weights(state), k, 0.0)
        phi = state.mode.phi
        return self.state(np.append(state.active, m), np.append(state.log_alpha, log_alpha), phi, weights)

    def pruned(self, state: SparseState) -> SparseState:
        """Functions leave while the evidence does not fall."""
        while len(state.active):
            # least first, by what the own size of a weight promises
            z = np.abs(state.mode.z[: len(state.active)])
            for j in np.argsort(z)[: max(1, len(z) // 2)]:
                if z[j] > 2.0:
                    continue
                fewer = self.without(state, int(j))
                if fewer.objective >= state.objective - 1e-9:
                    state = fewer
                    self._note("delete", state)
                    break
            else:
                break
        return state

    def entrants(self, state: SparseState, most: int) -> Iterator[tuple[int, float]]:
        """Candidates in the order of their promises, with log precisions; no two that are alike."""
        gain, log_alpha = self.promises(state)
        chosen: list[int] = []
        for m in np.argsort(-gain, kind="stable"):
            if not gain[m] > 0.1 * IMPROVEMENT_NATS or len(chosen) == most:
                return
            column = self.Phi[:, m]
            if any(abs(column @ self.Phi[:, c]) > 0.999 * len(column) for c in chosen):
                continue
            chosen.append(int(m))
            yield int(m), float(log_alpha[m])

    def climbed(self, state: SparseState) -> SparseState:
        """The best move after the other until none raises the evidence."""
        self._note("start", state)
        while self.moves_left > 0:
            self.moves_left -= 1
            best, what = self.extended(state), "add"
            if best is None:
                state = self.polished(state, _IN_THE_END)
                best, what = self.exchanged(state), "exchange"
            if best is None:
                break
            self._note(what, best)
            state = self.pruned(best)
        return self.pruned(self.polished(state, _IN_THE_END))

    def extended(self, state: SparseState) -> SparseState | None:
        """The state with one more function; None where none raises the evidence."""
        tried = [self.joined(state, m, a) for m, a in self.entrants(state, TRIED)]
        for new in sorted(tried, key=lambda one: -one.objective):
            best = self.polished(new, _AFTER_MOVE)
            if best.objective > state.objective + IMPROVEMENT_NATS:
                return best
        return None

    def exchanged(self, state: SparseState) -> SparseState | None:
        """The state with one function exchanged for another, the first that raises the evidence; None without one."""
        if len(state.active) > _MOST_EXCHANGED:
            return None
        for j in range(len(state.active)):
            fewer = self.without(state, j)
            for m, log_alpha in self.entrants(fewer, 2):
                if m == state.active[j]:
                    continue
                new = self.joined(fewer, m, log_alpha)
                if new.objective > state.objective - _HOPE:
                    new = self.polished(new, _AFTER_MOVE)
                if new.objective > state.objective + IMPROVEMENT_NATS:
                    return new
        return None

    def searched(self, n_starts: int) -> list[SparseState]:
        """Ends of climbs from nothing and from other first functions, the best first."""
        empty = self.empty()
        ends = [self.climbed(empty)]
        for m, log_alpha in list(self.entrants(empty, n_starts))[1:]:
            ends.append(self.climbed(self.joined(empty, m, log_alpha)))
        found: list[SparseState] = []
        for end in sorted(ends, key=lambda one: -one.objective):
            if not any(set(end.active) == set(other.active) for other in found):
                found.append(end)
        return found

    def _note(self, action: str, state: SparseState) -> None:
        self.history.append({"action": action, "log_evidence": state.mode.log_evidence, "n_basis": len(state.active)})
