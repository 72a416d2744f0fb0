"""Rows that come and go: the training rows of an estimator and the ridge state that follows them exactly."""

from __future__ import annotations

from typing import Any, override

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import Dictionary
from bayessel.linear import RidgeState


class TrainingRows:
    """Inputs (N, D) and target (N,) of one output, to which rows are added and from which they are removed."""

    changed = False

    def __init__(self, X: FloatArray, y: FloatArray) -> None:
        self.X, self.y = X, y

    def add(self, X: FloatArray, y: FloatArray) -> None:
        """Add rows."""
        self.X, self.y = np.vstack([self.X, X]), np.concatenate([self.y, y])

    def remove(self, X: FloatArray, y: FloatArray) -> None:
        """Remove rows that are among the present ones."""
        self._keep(self._found(X, y))

    def _found(self, X: FloatArray, y: FloatArray) -> list[int]:
        """Numbers of these rows among the present ones."""
        keep = np.ones(len(self.y), dtype=bool)
        doomed = []
        for row, value in zip(X, y, strict=True):
            found = np.flatnonzero(keep & (self.y == value) & (self.X == row).all(axis=1))
            if not len(found):
                raise ValueError(
                    f"a row to forget is not among the rows that were fitted: x = {row.tolist()}, y = {value}"
                )
            keep[found[0]] = False
            doomed.append(int(found[0]))
        if not keep.any():
            raise ValueError(f"cannot forget all {len(self.y)} rows: a fit needs at least one")
        return doomed

    def _keep(self, doomed: list[int]) -> None:
        self.X, self.y = np.delete(self.X, doomed, axis=0), np.delete(self.y, doomed)


class ChangingRows(TrainingRows):
    """Training rows of one output, and the exact fit to them at the penalties of an earlier fit.

    Parameters
    ----------
    X, y
        Inputs (N, D) and target (N,).
    dictionary
        The functions; its bias is free.
    kept
        Columns in use, the bias not counted.
    lam
        Penalties of these.
    """

    def __init__(self, X: FloatArray, y: FloatArray, dictionary: Dictionary, kept: Any, lam: FloatArray) -> None:
        super().__init__(X, y)
        self._dictionary, self._kept, self._lam = dictionary, kept, lam
        self._state: RidgeState | None = None

    @property
    def changed(self) -> bool:  # type: ignore[override]
        """Whether rows were added or removed."""
        return self._state is not None

    @property
    def state(self) -> RidgeState:
        """The ridge state of the present rows."""
        if self._state is None:
            self._state = RidgeState(self.columns(self.X), self.y, self._lam, centre=self._dictionary.bias)
        return self._state

    def columns(self, X: FloatArray) -> FloatArray:
        """Columns in use at inputs X, the bias not counted."""
        return self._dictionary.columns(X)[:, self._kept]

    @override
    def add(self, X: FloatArray, y: FloatArray) -> None:
        """Add rows, O(M²) each."""
        rows = self.columns(X)
        self._change(lambda state: [state.add_row(row, value) for row, value in zip(rows, y, strict=True)])
        super().add(X, y)

    @override
    def remove(self, X: FloatArray, y: FloatArray) -> None:
        """Remove rows that are among the present ones, O(M²) each."""
        doomed = self._found(X, y)
        self._change(lambda state: [state.remove_row(i) for i in sorted(doomed, reverse=True)])
        self._keep(doomed)

    def _change(self, edit: Any) -> None:
        try:
            edit(self.state)
        except BaseException:
            self._state = None  # half changed; the rows still tell what was fitted
            raise
