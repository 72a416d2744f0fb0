"""Columns of the user's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_flag, as_matrix
from bayessel.basis.dictionary import Dictionary


class UserDictionary(Dictionary):
    """Columns of your own: any callable X -> (N, k), or a list of callables X -> (N,).

    A column must depend on its own row alone. Functions of a module can be pickled, lambdas cannot.

    Parameters
    ----------
    functions
        One callable returning an (N, k) or (N,) array, or a sequence of callables returning (N,) each.
    names
        One name per column.
    bias
        Add a column of ones, last.

    Examples
    --------
    >>> import numpy as np
    >>> D = UserDictionary([lambda X: X[:, 0] ** 2, lambda X: np.sin(X[:, 0])], ["square", "sine"])
    >>> D.design([2.0]).round(4).tolist()
    [[4.0, 0.9093]]
    """

    def __init__(
        self,
        functions: Callable[[FloatArray], Any] | Sequence[Callable[[FloatArray], Any]],
        names: Sequence[str],
        bias: bool = False,
    ) -> None:
        many = not callable(functions)
        given: Any = [functions] if callable(functions) else functions
        if not isinstance(given, Sequence) or not given or not all(callable(f) for f in given):
            raise TypeError(
                "functions must be a callable X -> (N, k) or a non-empty list of callables X -> (N,), "
                f"got {functions!r}"
            )
        self._functions: list[Callable[[FloatArray], Any]] = list(given)
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"names must be a list with one name per column, got {names!r}")
        self._names = [str(n) for n in names]
        if not self._names or (many and len(self._names) != len(self._functions)):
            raise ValueError(f"give one name per column: {len(self._functions)} functions, {len(self._names)} names")
        self.bias = as_flag(bias, "bias")

    def columns(self, X: FloatArray) -> FloatArray:
        """Evaluate the user's functions and check their shape."""
        parts = []
        for function in self._functions:
            parts.append(as_matrix(function(X.copy()), "the user's columns", allow_1d=True))
            if len(parts[-1]) != len(X):
                raise ValueError(
                    f"a user's column must have one value per row: {len(X)} rows, got shape {parts[-1].shape}"
                )
        body = np.hstack(parts)
        if body.shape[1] != len(self._names):
            raise ValueError(f"the functions return {body.shape[1]} columns but {len(self._names)} names were given")
        return body

    def column_names(self) -> list[str]:
        """Return the names given by the user."""
        return list(self._names)

    def __repr__(self) -> str:
        return f"UserDictionary({self._names})"
