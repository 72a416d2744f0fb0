r"""Sines and cosines of each input: :math:`\sin(2\pi kx/P), \cos(2\pi kx/P)` for k = 1 … order."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import override

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_count, as_flag, as_positive_vector
from bayessel.basis.dictionary import Dictionary, as_inputs, unbound

#: the period that is taken where none is given, in ranges of the input: no periodicity is seen within one range
RANGES = 2.0
_EPS = float(np.finfo(float).eps)


class FourierDictionary(Dictionary):
    """Sines and cosines of each input, for what repeats itself: seasons, hours of the day, angles.

    Columns "sin1(x[0])", "cos1(x[0])", "sin2(x[0])", … of size one: they vary alike, and one prior precision serves
    for all. An input that does not vary in the training rows has none.

    Parameters
    ----------
    order
        Harmonics of each input.
    period
        P in the units of the inputs: one number, or one for each input in use. None takes twice the range of the
        training values, which lets any function through, at its ends too.
    inputs
        Numbers of the inputs in use; None takes all.
    bias
        Add a column of ones, last. Estimators have a bias of their own.

    Examples
    --------
    >>> import numpy as np
    >>> month = np.arange(24.0)[:, None]
    >>> D = FourierDictionary(2, period=12).bind(month)
    >>> D.names
    ['sin1(x[0])', 'cos1(x[0])', 'sin2(x[0])', 'cos2(x[0])']
    >>> bool(np.allclose(D.design([[3.0]]), [[1, 0, 0, -1]]))
    True
    """

    def __init__(
        self,
        order: int,
        period: npt.ArrayLike | None = None,
        inputs: Sequence[int] | None = None,
        bias: bool = False,
    ) -> None:
        self.order = as_count(order, "order")
        self.period = None if period is None else as_positive_vector(period, "period", max(1, np.size(period)))
        self.inputs = as_inputs(inputs)
        self.bias = as_flag(bias, "bias")
        self._n_inputs: int | None = None
        self._periods: dict[int, float] = {}

    @override
    def bind(self, X: FloatArray) -> FourierDictionary:
        """Take the periods of inputs (N, D)."""
        chosen = list(self.inputs if self.inputs is not None else range(X.shape[1]))
        if max(chosen) >= X.shape[1]:
            raise ValueError(f"inputs names input {max(chosen)}, but X has {X.shape[1]} columns")
        halves = X[:, chosen].max(axis=0) / 2.0 - X[:, chosen].min(axis=0) / 2.0
        if self.period is None:
            periods = 2.0 * RANGES * np.minimum(halves, 1e300)
        elif len(self.period) in (1, len(chosen)):
            periods = np.broadcast_to(self.period, len(chosen))
        else:
            raise ValueError(f"period must be one number or {len(chosen)}, one for each input in use")
        varies = halves > 2.0 * _EPS * np.abs(X[:, chosen]).max(axis=0)
        other = copy.copy(self)
        other._n_inputs = X.shape[1]
        other._periods = {d: float(p) for d, p, moves in zip(chosen, periods, varies, strict=True) if moves}
        return other

    @override
    def check_inputs(self, X: FloatArray) -> None:
        if self._n_inputs is None:
            raise unbound(self)
        if X.shape[1] != self._n_inputs:
            raise ValueError(f"X must have the {self._n_inputs} columns that were bound, got shape {X.shape}")

    @override
    def columns(self, X: FloatArray) -> FloatArray:
        """Sine and cosine of each harmonic, input by input."""
        self.check_inputs(X)
        found = [np.zeros((len(X), 0))]
        for d, period in self._periods.items():
            # the remainder is exact: years and seconds since long ago keep their digits
            phase = 2.0 * np.pi * np.outer(np.remainder(X[:, d], period) / period, np.arange(1.0, self.order + 1.0))
            found.append(np.stack([np.sin(phase), np.cos(phase)], axis=2).reshape(len(X), -1))
        return np.hstack(found)

    @override
    def column_names(self) -> list[str]:
        """Return names such as 'sin2(x[0])'."""
        if self._n_inputs is None:
            raise unbound(self)
        return [
            f"{what}{k}(x[{d}])" for d in self._periods for k in range(1, self.order + 1) for what in ("sin", "cos")
        ]

    def __repr__(self) -> str:
        period = "" if self.period is None else f", period={np.squeeze(self.period).tolist()}"
        chosen = "" if self.inputs is None else f", inputs={list(self.inputs)}"
        return f"FourierDictionary({self.order}{period}{chosen})"
