r"""Forward selection of a two-class classifier by leave-one-out mutual information (Hong et al. 2014).

The model is :math:`f = \Phi\theta`, fitted to labels :math:`y = \pm1` by least squares, one term after another. A term
is orthogonalised against those before it, :math:`w_l`, with :math:`\kappa_l = w_l^\top w_l`, and gets the weight
:math:`g_l = w_l^\top e_{l-1} / (\kappa_l + \lambda_l)`. What the model fitted without a row would call that row follows
without another fit: with

.. math:: \psi_k = \sum_l y_k g_l w_{lk} - w_{lk}^2 / (\kappa_l + \lambda_l), \qquad
          \eta_k = 1 - \sum_l w_{lk}^2 / (\kappa_l + \lambda_l)

the signed leave-one-out decision is :math:`s_k = y_k f^{(-k)}(x_k) = \psi_k / \eta_k` (their eqs 31 to 33). It is exact
for the penalty :math:`\theta^\top A^\top \Lambda A \theta` of the whole fit, :math:`\Phi = W A`.

Two rules are ours. Labels worse than chance count as negative information: without its own row the mean of balanced
classes has the wrong sign for every row, which as information is perfect. And the waiting for a rise of J begins when J
is positive for the first time: one or two wide functions often give every row the label of the larger class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from bayessel._check import FloatArray, as_count, as_matrix, as_positive, as_positive_vector, as_target, one_of
from bayessel.basis import LazyDesign
from bayessel.result import Status, fingerprint, worst

#: a penalty above this, or one that diverges, is set back to its start (their section 5)
LARGEST_PENALTY = 1e6
#: iterations of the penalty of one term
ITERATIONS = 10
#: a candidate of which less than this part lies outside the span of the model says nothing reliable
OUTSIDE = 1e-10
#: stages that may pass before J is positive at all
WITHOUT_INFORMATION = 20
TIES = ("first", "loo-mse")
#: a leave-one-out output, times what is left of the row, below this is rounding, and says nothing of the label
NOTHING = 1e-14
#: numbers of a block of candidates: what fits into the second-level cache
_BLOCK = 32_768
#: gains in bits below this are rounding
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class LOOMIFit:
    """A two-class model f = Φθ and what leaving rows out says of it.

    Attributes
    ----------
    basis : (M,) int array
        Columns in use, in the order they were chosen.
    coef : (M,) array
        Their weights θ.
    penalties : (M,) array
        λ of every term in the orthogonal form.
    mutual_information : float
        J, bits, between the labels and the leave-one-out labels; negative when those are worse than chance.
    loo_error, loo_mse : float
        Weighted share of wrong leave-one-out labels; weighted mean of (y - f^(-k))².
    loo_output : (N,) array
        f^(-k)(x_k): output for each row of the model fitted without it.
    history : list of dict
        One entry per stage: column, mutual_information, loo_error, loo_mse, penalty, ties (how many candidates shared
        the largest J).
    status : Status
        How the selection ended.
    """

    basis: npt.NDArray[np.intp]
    coef: FloatArray
    penalties: FloatArray
    mutual_information: float
    loo_error: float
    loo_mse: float
    loo_output: FloatArray
    target: FloatArray
    weights: FloatArray
    design: FloatArray
    A: FloatArray = field(repr=False)
    history: list[dict[str, Any]] = field(repr=False)
    status: Status
    notes: tuple[Status, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return len(self.target)

    @property
    def n_basis(self) -> int:
        """Number of terms M."""
        return len(self.basis)

    @property
    def penalty_matrix(self) -> FloatArray:
        """AᵀΛA, the penalty on θ: leaving a row out and fitting again with it gives `loo_output` exactly."""
        return np.asarray((self.A.T * self.penalties) @ self.A)

    @property
    def loo_labels(self) -> FloatArray:
        """Label, -1 or 1, that each row gets from the model fitted without it; an output of exactly 0 counts as -1."""
        return np.where(self.loo_output * self.target > 0.0, self.target, -self.target)

    @property
    def fingerprint(self) -> str:
        """Name of the data, columns in use and labels."""
        return fingerprint(self.design, self.target)

    def decision(self, columns: Any) -> FloatArray:
        """Output f at new rows, from the columns in use there, (n, M), or from all, (n, P)."""
        given = as_matrix(columns, "columns")
        if given.shape[1] != self.n_basis:
            if given.shape[1] <= int(self.basis.max()):
                raise ValueError(
                    f"columns must be the {self.n_basis} in use or the whole dictionary, got {given.shape}"
                )
            given = given[:, self.basis]
        return np.asarray(given @ self.coef)


def mutual_information(right: Any, wrong: Any, positive: float, negative: float) -> Any:
    """Bits between labels and predicted labels, from the weights of +1 called +1 and of -1 called +1.

    Counts against the classifier when its labels are worse than chance: a mirror image carries the same information,
    but nobody would turn round what leave-one-out says of a mean of balanced classes. `right` and `wrong` may be
    arrays; `positive` and `negative` are the weights of the classes.
    """
    a = np.clip(np.asarray(right, dtype=np.float64), 0.0, positive)  # sums of weights round
    b = np.clip(np.asarray(wrong, dtype=np.float64), 0.0, negative)
    total = positive + negative
    called, others = a + b, (positive - a) + (negative - b)

    def part(joint: FloatArray, of_class: float, of_label: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = joint / total * np.log2(joint * total / (of_class * of_label))
        return np.where(joint > 0.0, value, 0.0)

    J = part(a, positive, called) + part(b, negative, called)
    J = J + part(positive - a, positive, others) + part(negative - b, negative, others)
    return np.where(a * negative >= b * positive, np.maximum(J, 0.0), -np.maximum(J, 0.0))


def fit_loomi(
    F: Any,
    y: Any,
    *,
    patience: int = 1,
    min_size: int = 1,
    max_size: int | None = None,
    weights: Any = None,
    penalty: float = 1e-6,
    ties: str = "first",
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> LOOMIFit:
    """Choose columns one by one by the mutual information J of labels and leave-one-out labels.

    The first column is the one of the smallest leave-one-out squared error. J counts labels, so ties are common. Each
    chosen column gets its own penalty under the evidence, which a column that explains nothing would drive to infinity;
    beyond 1e6 it is set back to `penalty`.

    Parameters
    ----------
    F : array (N, P) or LazyDesign
        Candidate columns, all of them of size one or so (`penalty` is in their units, squared).
    y : array (N,)
        Labels -1 and 1.
    patience : int
        Stop when J has not risen for so many stages; the model is the one of the largest J. J is a step function: on
        Ripley's data 1 ends at 4 terms, 3 and 5 at 6 and 11, with test errors within sampling of each other.
    min_size, max_size : int
        Sizes that may be returned. The selection goes on to `min_size` whatever J does, which low-noise data with an
        intricate boundary need.
    weights : None or (N,) array
        Positive weights of the rows in the squared error and in J, as for classes of unequal number or cost.
    penalty : float
        λ of a candidate while it is being scored, and the start of its own.
    ties : str
        Which of the candidates that share the largest J joins: 'first', the one of the lowest number, as the paper's
        algorithm has it, which lets the order of the columns decide; or 'loo-mse', the one of the smallest
        leave-one-out squared error.
    callback : callable
        Called with the history entry of every stage.

    Returns
    -------
    LOOMIFit

    References
    ----------
    X. Hong et al., Applied Soft Computing 23 (2014) 9-18.

    Examples
    --------
    >>> x = np.linspace(-3.0, 3.0, 40)
    >>> F = np.exp(-((x[:, None] - x) ** 2))
    >>> fit = fit_loomi(F, np.where(abs(x) < 1.5, 1.0, -1.0))
    >>> fit.n_basis, round(fit.mutual_information, 2), round(fit.loo_error, 3)
    (3, 0.85, 0.025)
    """
    labels, V = _door(F, y)
    n, p = len(labels), len(V)
    patience, min_size = as_count(patience, "patience"), as_count(min_size, "min_size")
    most = min(n, p) if max_size is None else min(as_count(max_size, "max_size"), n, p)
    if max_size is not None and max_size < min_size:
        raise ValueError(f"max_size must be at least min_size={min_size}, got {max_size}")
    omega = np.ones(n) if weights is None else as_positive_vector(weights, "weights", n)
    selection = _Selection(V, labels, omega, as_positive(penalty, "penalty"), one_of(ties, "ties", TIES))
    del V  # the selection's now; nobody else needs it
    best = None
    since, notes = 0, []
    try:
        while selection.size < most:
            if not selection.advance():
                if selection.size < most:
                    notes.append(Status.COLLINEAR_SKIPPED)
                break
            entry = selection.history[-1]
            if callback is not None:
                callback(entry)
            if selection.size < min_size:
                continue
            if best is None or entry["mutual_information"] > best[1] + _SAME:
                best, since = (selection.size, entry["mutual_information"]), 0
            else:
                # a model that gives every row the same label is no classifier yet, however often J has stayed there
                since += best[1] > _SAME or selection.size > WITHOUT_INFORMATION
                if since >= patience:
                    break
        else:
            if max_size is not None and most < min(n, p) and since == 0:
                notes.append(Status.STEP_LIMIT)
    except KeyboardInterrupt:
        if not selection.size:
            raise
        notes.append(Status.INTERRUPTED)
    size = selection.size if best is None else best[0]
    if selection.skipped:
        notes.append(Status.COLLINEAR_SKIPPED)
    basis = np.array(selection.chosen[:size], dtype=np.intp)
    design = F.columns(basis) if isinstance(F, LazyDesign) else np.array(np.asarray(F)[:, basis], dtype=np.float64)
    A, coef, outputs = selection.model(design)
    entry = selection.history[size - 1]
    return LOOMIFit(
        basis=basis,
        coef=coef,
        penalties=np.array(selection.lam[:size]),
        mutual_information=entry["mutual_information"],
        loo_error=entry["loo_error"],
        loo_mse=entry["loo_mse"],
        loo_output=outputs,
        target=labels,
        weights=omega * (n / omega.sum()),
        design=design,
        A=A,
        history=selection.history,
        status=worst(notes),
        notes=tuple(dict.fromkeys(notes)),
    )


def _door(F: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    """Labels, and a copy of the candidates in rows."""
    if isinstance(F, LazyDesign):
        labels = as_target(y, F.shape[0], "y")
        V = np.empty(F.shape[::-1])
        step = max(1, 2_000_000 // F.shape[0])
        for at in range(0, F.shape[1], step):
            V[at : at + step] = F.columns(np.arange(at, min(at + step, F.shape[1]))).T
    else:
        design = as_matrix(F, "F")
        labels = as_target(y, len(design), "y")
        V = np.array(design.T, order="C")
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise ValueError(f"y must be labels -1 and 1, got {np.unique(labels)[:5].tolist()}")
    if abs(labels.sum()) == len(labels):
        raise ValueError(f"y must have rows of both classes, got only {labels[0]:g}")
    return labels, V


class _Selection:
    """The state of the forward selection: candidates orthogonal to the model, in rows, rows of the data by class.

    With weights ω every column and y are multiplied by √ω; sums of squares are then those of the weighted problem, the
    leverages too, and only √ω ψ instead of ψ is kept: it has the sign that counts.
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
        self.w: list[FloatArray] = []
        self.g: list[float] = []
        self.lam: list[float] = []
        self.history: list[dict[str, Any]] = []

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
            tied = np.flatnonzero(J >= J.max() - _SAME)
            ties = len(tied)
            best = int(tied[0] if ties == 1 or self.ties == "first" else tied[self._loo_mse(tied).argmin()])
            original = self.V
        self._add(best, original[best].copy(), ties)
        return True

    def _add(self, column: int, w: FloatArray, ties: int) -> None:
        unit = w / np.sqrt(w @ w)
        for _ in range(2 if self.size else 0):  # what modified Gram-Schmidt leaves of the span
            for old in self.w:
                unit -= (old @ unit) / (old @ old) * old
        w = unit * np.sqrt(w @ w)
        kappa = float(w @ w)
        lam = fitted_penalty(w, self.e, self.penalty)
        g = float(w @ self.e) / (kappa + lam)
        leverage = w**2 / (kappa + lam)
        self.psi += self.y * g * w - self.root * leverage
        self.eta -= leverage
        self.e = self.e - g * w
        self.chosen.append(column)
        self.w.append(w)
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
        w, m = self.w[-1], self.n_negative
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
        W = np.array(self.w[:size])
        kappa = np.einsum("ij,ij->i", W, W)
        A = np.triu((W @ (design[self.order] * self.root[:, None])) / kappa[:, None])
        np.fill_diagonal(A, 1.0)
        coef = np.asarray(solve_triangular(A, np.array(self.g[:size])))
        leverage = W**2 / (kappa + self.lam[:size])[:, None]
        s = self._outputs((self.y * (np.array(self.g[:size]) @ W)) - self.root * leverage.sum(0), 1.0 - leverage.sum(0))
        outputs = np.empty(len(s))
        outputs[self.order] = self.y * s
        return A, coef, outputs


def fitted_penalty(w: FloatArray, e: FloatArray, start: float) -> float:
    """Penalty λ of one term under the evidence p(e | h, ε), λ = h/ε, by ten iterations (their eqs 45 and 47)."""
    kappa, product, lam = float(w @ w), float(w @ e), start
    for _ in range(ITERATIONS):
        g = product / (kappa + lam)
        left = e - g * w
        rest = float(left @ left)
        if g == 0.0 or rest == 0.0:
            return start
        epsilon = (len(e) - kappa / (kappa + lam)) / rest
        lam = kappa / (g**2 * (kappa + lam)) / epsilon
        if not np.isfinite(lam) or lam <= 0.0:
            return start
    return lam if lam <= LARGEST_PENALTY else start
