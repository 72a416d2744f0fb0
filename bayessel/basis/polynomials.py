r"""Polynomials that are orthogonal over the training rows.

Of each input x the polynomials :math:`p_0 = 1, p_1, p_2, \dots` of degree 0, 1, 2, … have

.. math:: \frac1N\sum_n p_j(x_n)p_k(x_n) = \delta_{jk},

so that they vary alike and one prior precision serves for all; columns of several inputs are their products. They are
found by Arnoldi's process and evaluated by the same recurrence (Brubeck, Nakatsukasa and Trefethen 2021, Vandermonde
with Arnoldi), which keeps its digits where powers of x lose theirs.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Self, override

import numpy as np

from bayessel._check import FloatArray, as_count, as_flag
from bayessel.basis.dictionary import Dictionary, as_inputs, unbound

#: columns beyond which a dictionary is refused
MOST_COLUMNS = 100_000
#: a polynomial of which less than this part is left by those of lower degree is rounding
NEGLIGIBLE = 1e-10
#: polynomials whose recurrence misses them by this part of their size are left out
LOST = 1e-7
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class OrthogonalPolynomials:
    r"""Polynomials of one input.

    Attributes
    ----------
    middle, half_range : float
        Of the training values: u = (x − middle)/half_range.
    recurrence : (K + 1, K) array
        Column k: :math:`u p_k = \sum_j h_{jk}p_j` up to :math:`p_{k+1}`.
    """

    middle: float
    half_range: float
    recurrence: FloatArray

    @classmethod
    def of(cls, x: FloatArray, degree: int) -> Self:
        """Up to this degree; fewer where there are too few different values for it, or rounding would decide them."""
        low, high = float(x.min()) / 2.0, float(x.max()) / 2.0
        middle, half = low + high, high - low
        if not half > 4.0 * _EPS * max(abs(low), abs(high)):
            return cls(middle, 1.0, np.zeros((1, 0)))
        most = min(degree, len(np.unique(x)) - 1)
        u, H = (x - middle) / half, np.zeros((most + 1, most))
        Q = np.ones((len(x), most + 1))
        for k in range(most):
            rest = u * Q[:, k]
            whole = float(np.sqrt(np.mean(rest**2)))
            for _ in range(2):  # the second pass takes off what the rounding of the first has left
                along = Q[:, : k + 1].T @ rest / len(x)
                rest -= Q[:, : k + 1] @ along
                H[: k + 1, k] += along
            left = float(np.sqrt(np.mean(rest**2)))
            if left <= NEGLIGIBLE * whole:
                return cls(middle, half, H[: k + 1, :k])
            H[k + 1, k] = left
            Q[:, k + 1] = rest / left
        found = cls(middle, half, H)
        # where degrees come near the number of values the recurrence amplifies its rounding
        wrong = np.abs(found.values(x) - Q).max(axis=0) > LOST * np.abs(Q).max(axis=0)
        kept = int(np.argmax(wrong)) - 1 if wrong.any() else most
        return cls(middle, half, H[: kept + 1, :kept])

    @property
    def degree(self) -> int:
        """Largest degree."""
        return int(self.recurrence.shape[1])

    def values(self, x: FloatArray) -> FloatArray:
        """Values at x, (N, degree + 1), the constant first; infinite where they leave double precision."""
        H, u = self.recurrence, (x - self.middle) / self.half_range
        V = np.ones((len(x), self.degree + 1))
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(self.degree):
                V[:, k + 1] = (u * V[:, k] - V[:, : k + 1] @ H[: k + 1, k]) / H[k + 1, k]
        return V


class PolynomialDictionary(Dictionary):
    """Polynomials of the inputs, orthogonal over the training rows, and their products.

    Column "P2(x[0])*P1(x[1])" is the polynomial of degree 2 of input 0 times that of degree 1 of input 1. The columns
    span what the powers of the inputs span. An input with k different values has at most k − 1 polynomials, a
    constant one has none; where degrees come near the number of rows, those that rounding would decide are left out.

    Parameters
    ----------
    degree
        Largest degree, that of products counted as a sum.
    interactions
        Offer products of several inputs.
    inputs
        Numbers of the inputs in use; None takes all.
    bias
        Add a column of ones, last. Estimators have a bias of their own.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(2020, 2030, 200)
    >>> D = PolynomialDictionary(degree=10).bind(x[:, None])
    >>> D.n_columns, bool(np.linalg.cond(D.design(x)) < 1.001)
    (10, True)
    """

    def __init__(
        self, degree: int = 3, interactions: bool = True, inputs: Sequence[int] | None = None, bias: bool = False
    ) -> None:
        self.degree = as_count(degree, "degree")
        self.interactions = as_flag(interactions, "interactions")
        self.inputs = as_inputs(inputs)
        self.bias = as_flag(bias, "bias")
        self._n_inputs: int | None = None
        self._polynomials: dict[int, OrthogonalPolynomials] = {}
        self._products: list[tuple[tuple[int, int], ...]] = []

    @override
    def bind(self, X: FloatArray) -> PolynomialDictionary:
        """Find the polynomials of inputs (N, D)."""
        other = copy.copy(self)
        other._n_inputs = X.shape[1]
        chosen = self.inputs if self.inputs is not None else range(X.shape[1])
        if max(chosen) >= X.shape[1]:
            raise ValueError(f"inputs names input {max(chosen)}, but X has {X.shape[1]} columns")
        count = comb(len(chosen) + self.degree, self.degree) if self.interactions else len(chosen) * self.degree
        if count > MOST_COLUMNS:
            raise ValueError(
                f"degree {self.degree} of {len(chosen)} inputs has {count} columns, at most {MOST_COLUMNS} are made: "
                "lower the degree, name a few inputs, or pass interactions=False"
            )
        other._polynomials = {d: OrthogonalPolynomials.of(X[:, d], self.degree) for d in chosen}
        products = [
            tuple(sorted(Counter(which).items()))
            for total in range(1, self.degree + 1)
            for which in combinations_with_replacement(chosen, total)
            if self.interactions or len(set(which)) == 1
        ]
        other._products = [
            product for product in products if all(power <= other._polynomials[d].degree for d, power in product)
        ]
        return other

    @override
    def check_inputs(self, X: FloatArray) -> None:
        if self._n_inputs is None:
            raise unbound(self)
        if X.shape[1] != self._n_inputs:
            raise ValueError(f"X must have the {self._n_inputs} columns that were bound, got shape {X.shape}")

    @override
    def columns(self, X: FloatArray) -> FloatArray:
        """Products by total degree; infinite where they leave double precision."""
        self.check_inputs(X)
        values = {d: one.values(X[:, d]) for d, one in self._polynomials.items()}
        out = np.empty((len(X), len(self._products)))
        with np.errstate(over="ignore", invalid="ignore"):
            for j, ((d, power), *others) in enumerate(self._products):
                out[:, j] = values[d][:, power]
                for e, further in others:
                    out[:, j] *= values[e][:, further]
        return out

    @override
    def column_names(self) -> list[str]:
        """Return names such as 'P2(x[0])*P1(x[1])'."""
        if self._n_inputs is None:
            raise unbound(self)
        return ["*".join(f"P{power}(x[{d}])" for d, power in product) for product in self._products]

    def __repr__(self) -> str:
        chosen = "" if self.inputs is None else f", inputs={list(self.inputs)}"
        return f"PolynomialDictionary(degree={self.degree}, interactions={self.interactions}{chosen})"
