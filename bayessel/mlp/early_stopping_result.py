"""What an ensemble of early-stopped networks hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray, as_matrix
from bayessel.fit import Status, worst
from bayessel.mlp.network import Architecture, forward
from bayessel.mlp.targets import link

if TYPE_CHECKING:
    from bayessel.mlp.early_stopping import EarlyStoppingState


@dataclass(frozen=True, eq=False)
class EarlyStoppingEnsemble:
    """Networks trained with early stopping; predictions are their averages.

    Attributes
    ----------
    weights : (m, P) array
        Packed weights of the networks in use, as `Architecture` packs them.
    architecture : Architecture
    kind : str
        "gaussian", "logistic" or "softmax".
    held_out : (n, K) array
        For each row the average prediction of the networks that were not trained on it; NaN where there is none.
    noise_std : (K,) array or None
        Root mean square of the residuals of `held_out`: noise and error of the networks. None for classes.
    status, notes
        The most serious remark, and all of them.
    history : tuple of dict
        One entry per finished network: iterations, the best one, evaluations, loss on the rows held out, why it ended.
    state : EarlyStoppingState
        Pass it to `fit_early_stopping` to go on.
    seconds : float
        Time of this call, compiling not counted.
    """

    weights: FloatArray = field(repr=False)
    architecture: Architecture
    kind: str
    held_out: FloatArray = field(repr=False)
    noise_std: FloatArray | None
    status: Status
    notes: tuple[Status, ...]
    history: tuple[dict[str, Any], ...] = field(repr=False)
    state: EarlyStoppingState = field(repr=False)
    seconds: float

    def members(self, X: Any) -> FloatArray:
        """Predictions of each network, (m, n, K): outputs, or probabilities of classes."""
        X = self._inputs(X)
        return np.array([self._one(weights, X) for weights in self.weights])

    def predict(self, X: Any) -> FloatArray:
        """Their average, (n, K)."""
        X = self._inputs(X)
        total = np.zeros((len(X), self.architecture.outputs))
        for weights in self.weights:
            total += self._one(weights, X)
        return total / len(self.weights)

    def _one(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        return link(forward(self.architecture.split(weights), X)[0], self.kind)

    def _inputs(self, X: Any) -> FloatArray:
        X = as_matrix(X, "X")
        if X.shape[1] != self.architecture.inputs:
            raise ValueError(
                f"the networks have {self.architecture.inputs} inputs, got X with {X.shape[1]} columns; pass the same "
                "columns as in the fit"
            )
        return X


def finish(
    X: FloatArray,
    T: FloatArray,
    state: EarlyStoppingState,
    weights: list[FloatArray],
    least: int,
    interrupted: bool,
    seconds: float,
) -> EarlyStoppingEnsemble:
    """The ensemble of these weights, with what each row is predicted by networks that have not seen it."""
    from bayessel.mlp.early_stopping import split

    architecture = Architecture(X.shape[1], state.hidden, T.shape[1])
    total, count = np.zeros_like(T), np.zeros(len(T))
    for number, one in enumerate(weights):
        rows = split(state.seed, number, len(X))[0]
        total[rows] += link(forward(architecture.split(one), X[rows])[0], state.kind)
        count[rows] += 1.0
    seen = count > 0
    held_out = np.full(T.shape, np.nan)
    held_out[seen] = total[seen] / count[seen, None]
    noise = None
    if state.kind == "gaussian":
        residuals = (T - held_out)[seen] if seen.any() else T - _average(architecture, weights, X)
        noise = np.sqrt(np.mean(residuals**2, axis=0))
    notes = []
    if interrupted:
        notes.append(Status.INTERRUPTED)
    elif len(state.finished) < least - 1 or len(weights) < least:
        notes.append(Status.TIME_BUDGET)
    if len(X) < 2 * least:
        notes.append(Status.TOO_FEW_ROWS)
    if np.ptp(T, axis=0).max() == 0.0:
        notes.append(Status.CONSTANT_TARGET)
    return EarlyStoppingEnsemble(
        np.array(weights),
        architecture,
        state.kind,
        held_out,
        noise,
        worst(notes),
        tuple(notes),
        tuple(dict(record) for _, record in state.finished),
        state,
        seconds,
    )


def _average(architecture: Architecture, weights: list[FloatArray], X: FloatArray) -> FloatArray:
    return np.asarray(np.mean([forward(architecture.split(one), X)[0] for one in weights], axis=0))
