"""The terms chosen so far, the candidates for the next, and what leaving rows out says of both."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from bayessel._check import FloatArray
from bayessel.linear.columns.orthonormal import OrthonormalBasis
from bayessel.linear.loomi.information import mutual_information
from bayessel.linear.loomi.penalty import fitted_penalty

#: a candidate of which less than this part lies outside the span of the model says nothing reliable
OUTSIDE = 1e-10
#: a leave-one-out output, times what is left of the row, below this is rounding, and says nothing of the label
NOTHING = 1e-14
#: gains in bits below this are rounding
SAME = 1e-12
#: numbers of a block of candidates: what fits into the second-level cache
_BLOCK = 32_768


class LOOMISelection:
    """The state of the selection: candidates orthogonal to the model, in rows, rows of the data by class.

    With weights ω every column and y are multiplied by √ω; sums of squares are then those of the weighted problem, the
    leverages too, and only √ω ψ instead of ψ is kept: it has the sign that counts. The names are those of the formulas
    at the head of `_fit_loomi`.
    """

    def __init__(self, V: FloatArray, y: FloatArray, omega: FloatArray, penalty: float, ties: str) -> None:
        self.order = np.argsort(y, kind="stable")
        self.n_negative = int((y < 0.0).sum())
        self.y = y[self.order]
        omega = omega[self.order] * (len(y) / omega.sum())
        self.plain = bool((omega == omega[0]).all())
        self.omega, self.root = omega, np.sqrt(omega)
        negative, positive = omega[: self.n_negative], omega[self.n_negative :]
        self.by_class = bool((negative == negative[0]).all() and (positive == positive[0]).all())
        self.class_weight = (float(negative.sum()), float(positive.sum()))
        V[:] = V[:, self.order] if self.plain else V[:, self.order] * self.root
        self.V = V
        self.norm = np.sqrt(np.einsum("ij,ij->i", V, V))
        self.live = self.norm > 0.0
        self.skipped = not self.live.all()
        self.penalty, self.ties = penalty, ties
        self.e = self.y * self.root
        self.psi = np.zeros(len(y))
        self.eta = np.ones(len(y))
        self.chosen: list[int] = []
        self.basis = OrthonormalBasis(len(y))
        self.g: list[float] = []
        self.lam: list[float] = []
        self.history: list[dict[str, float]] = []

    @property
    def size(self) -> int:
        """Number of terms."""
        return len(self.chosen)

    def advance(self) -> bool:
        """Add the best candidate; False when none is left."""
        if not self.live.any():
            return False
        if not self.size:
            original = self.V
            scores = np.full(len(self.V), np.inf)
            candidates = np.flatnonzero(self.live)
            scores[candidates] = self._loo_mse(candidates)
            best, ties = int(scores.argmin()), 1
        else:
            J = self._orthogonalise_and_score()
            if not self.live.any():
                return False
            tied = np.flatnonzero(J >= J.max() - SAME)
            ties = len(tied)
            best = int(tied[0] if ties == 1 or self.ties == "first" else tied[self._loo_mse(tied).argmin()])
            original = self.V
        self._add(best, original[best].copy(), ties)
        return True

    def _add(self, column: int, w: FloatArray, ties: int) -> None:
        # what modified Gram-Schmidt leaves of the span is taken out once more
        q, inside, length = self.basis.extended(w)
        self.basis.append(q, inside, length)
        w = q * length
        kappa = float(w @ w)
        lam = fitted_penalty(w, self.e, self.penalty)
        g = float(w @ self.e) / (kappa + lam)
        leverage = w**2 / (kappa + lam)
        self.psi += self.y * g * w - self.root * leverage
        self.eta -= leverage
        self.e = self.e - g * w
        self.chosen.append(column)
        self.w = w
        self.g.append(g)
        self.lam.append(lam)
        self.live[column] = False
        J, error, mse = self._judge()
        self.history.append(
            {
                "size": self.size,
                "column": column,
                "mutual_information": J,
                "loo_error": error,
                "loo_mse": mse,
                "penalty": lam,
                "ties": ties,
            }
        )

    def _outputs(self, psi: FloatArray, eta: FloatArray) -> FloatArray:
        """s_k, in the order of the classes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            s = psi / (self.root * eta)
        # a row that alone decides a term: nothing is known without it
        return np.where((eta > NOTHING) & (abs(psi) > NOTHING), s, 0.0)

    def _judge(self) -> tuple[float, float, float]:
        s = self._outputs(self.psi, self.eta)
        right = self.omega * (s > 0.0)
        hit, miss = right[self.n_negative :].sum(), self.class_weight[0] - right[: self.n_negative].sum()
        J = float(mutual_information(hit, miss, self.class_weight[1], self.class_weight[0]))
        total = sum(self.class_weight)
        return J, float(1.0 - right.sum() / total), float((self.omega * (1.0 - s) ** 2).sum() / total)

    def _orthogonalise_and_score(self) -> FloatArray:
        """Take the last term out of every candidate, block by block, and score by the labels each would give."""
        w, m = self.w, self.n_negative
        kappa = float(w @ w)
        n = len(w)
        hits, misses = np.zeros(len(self.V)), np.zeros(len(self.V))
        height = max(1, _BLOCK // n)
        room = np.empty((height, n))
        for at in range(0, len(self.V), height):
            V = self.V[at : at + height]
            T = room[: len(V)]
            np.multiply.outer(V @ w / kappa, w, out=T)
            V -= T
            squares = np.einsum("ij,ij->i", V, V)
            inside = squares <= (OUTSIDE * self.norm[at : at + height]) ** 2
            if (inside & self.live[at : at + height]).any():
                self.skipped = True
                self.live[at : at + height] &= ~inside
            shrunk = 1.0 / (squares + self.penalty)
            g = (V @ self.e) * shrunk
            np.multiply(V, shrunk[:, None], out=T)
            if not self.plain:
                T *= self.root
            T[:, :m] += g[:, None]
            T[:, m:] -= g[:, None]
            T *= V
            right = T < self.psi - NOTHING
            if self.by_class:
                hits[at : at + height] = np.count_nonzero(right[:, m:], axis=1) * self.omega[-1]
                misses[at : at + height] = (m - np.count_nonzero(right[:, :m], axis=1)) * self.omega[0]
            else:
                hits[at : at + height] = right[:, m:] @ self.omega[m:]
                misses[at : at + height] = (~right[:, :m]) @ self.omega[:m]
        J = np.asarray(mutual_information(hits, misses, self.class_weight[1], self.class_weight[0]))
        return np.where(self.live, J, -np.inf)

    def _loo_mse(self, candidates: npt.NDArray[np.intp]) -> FloatArray:
        """Mean of (e/η)² if the candidate joined."""
        found = np.empty(len(candidates))
        height = max(1, _BLOCK // len(self.e))
        for at in range(0, len(candidates), height):
            V = self.V[candidates[at : at + height]]
            shrunk = 1.0 / (np.einsum("ij,ij->i", V, V) + self.penalty)
            g = (V @ self.e) * shrunk
            error = self.e - g[:, None] * V
            eta = self.eta - V**2 * shrunk[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(eta > NOTHING, error / eta, self.root)  # unknown: as if the output were 0
            found[at : at + height] = np.einsum("ij,ij->i", ratio, ratio) / len(self.e)
        return found

    def model(self, design: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A, θ and the leave-one-out outputs of the first terms, whose columns these are."""
        size = design.shape[1]
        W = self.basis.rows[:size] * np.diag(self.basis.R)[:size, None]
        kappa = np.einsum("ij,ij->i", W, W)
        A = np.triu((W @ (design[self.order] * self.root[:, None])) / kappa[:, None])
        np.fill_diagonal(A, 1.0)
        coef = np.asarray(solve_triangular(A, np.array(self.g[:size])))
        leverage = W**2 / (kappa + self.lam[:size])[:, None]
        s = self._outputs((self.y * (np.array(self.g[:size]) @ W)) - self.root * leverage.sum(0), 1.0 - leverage.sum(0))
        outputs = np.empty(len(s))
        outputs[self.order] = self.y * s
        return A, coef, outputs
