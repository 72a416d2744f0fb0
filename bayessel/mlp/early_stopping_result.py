"""What an ensemble of early-stopped networks returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, override

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel.fit import LeaveOneOut, Status, worst
from bayessel.mlp.architecture import Architecture
from bayessel.mlp.network_fit import NetworkFit, Networks
from bayessel.prediction import ClassPrediction, Prediction

if TYPE_CHECKING:
    from bayessel.mlp.early_stopping import EarlyStoppingState


@dataclass(frozen=True, eq=False, kw_only=True)
class EarlyStoppingEnsemble(NetworkFit):
    """Networks trained with early stopping; predictions are their averages. There is no prior, hence no evidence.

    Attributes
    ----------
    networks : Networks
        The m networks in use, `networks.packed` their weights (m, P).
    held_out : (n, K) array
        For each row the average prediction of the networks that were not trained on it; NaN where there is none.
    noise_std : (K,) array or None
        Root mean square of the residuals of `held_out`: noise and error of the networks. None for classes.
    status, notes
        The most serious remark, and all of them; TIME_BUDGET also where every network was trained on some row.
    history : tuple of dict
        One entry per finished network: iterations, the best one, evaluations, loss on the rows held out, why it ended.
    state : EarlyStoppingState
        Pass it to `fit_early_stopping` to go on.
    seconds : float
        Time of this call, compiling not counted.
    """

    held_out: FloatArray = field(repr=False)
    noise_std: FloatArray | None
    left_out: LeaveOneOut = field(repr=False)
    state: EarlyStoppingState = field(repr=False)

    @override
    def predict(self, rows: npt.ArrayLike) -> Prediction | ClassPrediction:
        """The average of the networks, with one noise for all its errors; for classes probabilities."""
        mean = self.networks.members(rows).mean(axis=0)
        if self.noise_std is None:
            return self.networks.classes(mean)
        return self.networks.normal(mean[None], self.noise_std**2, 0.0)

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted by the networks that were not trained on it; NaN where there is none."""
        return self.left_out


def finish(
    X: FloatArray,
    T: FloatArray,
    state: EarlyStoppingState,
    weights: list[FloatArray],
    least: int,
    interrupted: bool,
    seconds: float,
    given: FloatArray,
) -> EarlyStoppingEnsemble:
    """The ensemble of these weights, with what each row is predicted by networks that have not seen it.

    `given` are the targets T in the shape in which they came.
    """
    from bayessel.mlp.early_stopping import split

    networks = Networks(
        Architecture(X.shape[1], state.hidden, T.shape[1]), np.array(weights), state.kind, given.ndim == 1
    )
    members = networks.members(X)
    unseen = np.zeros((len(weights), len(X), 1), dtype=bool)
    for number in range(len(weights)):
        unseen[number, split(state.seed, number, len(X))[0]] = True
    count = unseen.sum(axis=0)
    with np.errstate(invalid="ignore"):
        held_out = np.where(unseen, members, 0.0).sum(axis=0) / count
    noise = None
    if state.kind == "gaussian":
        seen = count[:, 0] > 0
        residuals = (T - held_out)[seen] if seen.any() else T - members.mean(axis=0)
        floor = 4.0 * np.finfo(float).eps * (np.abs(T).max(axis=0, initial=0.0) + np.finfo(float).tiny)
        noise = np.maximum(np.sqrt(np.mean(residuals**2, axis=0)), floor)
    notes = []
    if interrupted:
        notes.append(Status.INTERRUPTED)
    elif len(state.finished) < least - 1 or len(weights) < least or 0 < np.sum(count > 0) < len(X):
        notes.append(Status.TIME_BUDGET)
    if len(X) < 2 * least or not unseen.any():
        notes.append(Status.TOO_FEW_ROWS)
    if np.ptp(T, axis=0).max() == 0.0:
        notes.append(Status.CONSTANT_TARGET)
    return EarlyStoppingEnsemble(
        networks=networks,
        held_out=held_out,
        noise_std=noise,
        left_out=networks.left_out(T, held_out, None if noise is None else noise**2),
        status=worst(notes),
        notes=tuple(notes),
        history=tuple(dict(record) for _, record in state.finished),
        state=state,
        n_rows=len(X),
        fingerprint=fingerprint(X, given),
        target_fingerprint=fingerprint(given),
        seconds=seconds,
    )
