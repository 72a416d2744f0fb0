"""Members of an average fitted to all rows and anew to folds, as units of work in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel import work
from bayessel._check import FloatArray
from bayessel.estimators.held_out import N_FOLDS, gains_over_constant, ranks_of_rows
from bayessel.estimators.member_checks import row_codes
from bayessel.estimators.member_predictions import fitted, held_out_prediction, some_of
from bayessel.estimators.shared_references import shared_references
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class FittedMembers:
    """What became of the members.

    Attributes
    ----------
    members : dict
        Name -> fitted to all rows; empty where that was not asked for.
    gains : (K, N) array or None
        Nats over a constant of each row, predicted by the fit to the other folds; None without folds.
    interrupted : bool
        Ctrl-C came before the folds were done.
    """

    members: dict[str, Any]
    gains: FloatArray | None
    interrupted: bool


def folds_of(X: Any, y: FloatArray) -> npt.NDArray[np.intp] | None:
    """Fold of each row, equal rows in one; None where there are too few for folds."""
    rank = ranks_of_rows(row_codes(X).astype(np.float64), y)
    enough = rank.max() + 1 >= 2 * N_FOLDS and np.ptp(y) > 0.0
    return rank % N_FOLDS if enough else None


def fit_members(
    members: Mapping[str, Any],
    X: Any,
    y: FloatArray,
    folds: npt.NDArray[np.intp] | None,
    whole: bool,
    n_jobs: int | None,
    progressbar: bool,
) -> FittedMembers:
    """Fit to all rows where `whole` says so, and to the rows outside of each fold where there are folds."""
    units: dict[str, tuple[str, int]] = {}
    calls: list[work.WorkUnit[Any]] = []

    def add(name: str, k: int, function: Callable[..., Any], *arguments: Any) -> None:
        units[key := f"{name}/{k}"] = name, k
        calls.append(work.WorkUnit(key, function, (members[name], name, *arguments), f"averaging: {name}"))

    for name in members if whole else ():
        add(name, N_FOLDS, fitted, X, y)
    for k in range(N_FOLDS if folds is not None else 0):
        train, held = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
        for name in members:
            add(name, k, held_out_prediction, some_of(X, train), y[train], some_of(X, held))
    with shared_references():
        report = work.run(calls, None, n_jobs, None, progressbar, what="averaging")
    if report.lost:
        key, why = next(iter(report.lost.items()))
        raise RuntimeError(f"the member {units[key][0]!r} of an average could not be fitted: {why}")
    found = {units[key]: value for key, value in report.values.items()}
    if report.interrupted and not all((name, N_FOLDS) in found for name in members if whole):
        raise KeyboardInterrupt
    done = {name: found[name, N_FOLDS] for name in members} if whole else {}
    return FittedMembers(done, _gains(members, found, y, folds), report.interrupted)


def _gains(
    members: Mapping[str, Any],
    found: Mapping[tuple[str, int], Prediction],
    y: FloatArray,
    folds: npt.NDArray[np.intp] | None,
) -> FloatArray | None:
    """Nats over a constant of each row held out, (K, N)."""
    if folds is None or any((name, k) not in found for name in members for k in range(N_FOLDS)):
        return None
    with np.errstate(all="ignore"):
        return np.array(
            [gains_over_constant(y[:, None], folds, lambda k, *_, name=name: found[name, k]) for name in members]
        )
