"""Sums and products of covariances: covariances again, with the parameters of all terms one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, override

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance.base import Covariance, Evaluation, Scratch, as_columns
from bayessel.covariance.constant_linear_noise import NoiseEvaluation
from bayessel.covariance.prior import Prior


@dataclass(frozen=True, init=False, repr=False)
class Composite(Covariance):
    """Several covariances; those of the same kind within are taken apart, so that (a + b) + c is a + b + c."""

    terms: tuple[Covariance, ...]

    def __init__(self, *terms: Covariance) -> None:
        kind = type(self)
        flat: list[Covariance] = []
        for term in terms:
            if not isinstance(term, Covariance):
                raise TypeError(f"{kind.__name__} needs covariances, got {type(term).__name__}")
            flat += term.terms if isinstance(term, Composite) and type(term) is kind else [term]
        if not flat:
            raise ValueError(f"{kind.__name__} needs at least one covariance")
        object.__setattr__(self, "terms", tuple(flat))

    @override
    def names(self, m: int) -> tuple[str, ...]:
        """A name that several terms have is preceded by the place of the term: '2: log w[0]', '3.1: log w[0]'."""
        places = self._places(m)
        count = Counter(name for _, name in places)
        return tuple(f"{place}: {name}" if count[name] > 1 else name for place, name in places)

    def _places(self, m: int) -> list[tuple[str, str]]:
        """Of every parameter the place of its term, such as '3.1' for the first within the third, and its own name."""
        found = []
        for k, term in enumerate(self.terms, 1):
            if isinstance(term, Composite):
                found += [(f"{k}.{place}", name) for place, name in term._places(m)]
            else:
                found += [(str(k), name) for name in term.names(m)]
        return found

    def __repr__(self) -> str:
        inner = [f"({term!r})" if isinstance(term, Sum) else repr(term) for term in self.terms]
        if len(inner) == 1:
            return f"{type(self).__name__}({inner[0]})"
        return (" + " if isinstance(self, Sum) else " * ").join(inner)

    @override
    def start(self, m: int) -> FloatArray:
        return np.concatenate([term.start(m) for term in self.terms])

    @override
    def prior(self, m: int) -> Prior:
        return Prior.join(*(term.prior(m) for term in self.terms))

    @override
    def on(self, columns: Iterable[int]) -> Self:
        chosen = as_columns(columns)
        return type(self)(*(term.on(chosen) for term in self.terms))

    @override
    def relevance(self, theta: FloatArray, m: int) -> FloatArray | None:
        parts = self._parts(theta, m)
        found = [w for term, part in zip(self.terms, parts, strict=True) if (w := term.relevance(part, m)) is not None]
        return np.max(found, axis=0) if found else None

    def _parts(self, theta: FloatArray, m: int) -> list[FloatArray]:
        return np.split(np.asarray(theta), np.cumsum([term.size(m) for term in self.terms])[:-1])

    def _indices(self, m: int) -> list[slice]:
        ends = np.cumsum([0, *(term.size(m) for term in self.terms)]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]


@dataclass(frozen=True, init=False, repr=False)
class Sum(Composite):
    """The sum of independent functions, and of noise; θ are the parameters of all terms, in their order."""

    @property
    @override
    def noisy(self) -> bool:
        return any(term.noisy for term in self.terms)

    @override
    def noise(self, theta: FloatArray, m: int) -> float:
        return sum(t.noise(part, m) for t, part in zip(self.terms, self._parts(theta, m), strict=True))

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        return SumEvaluation([term.evaluation(X, keep) for term in self.terms], self._indices(X.shape[1]), X.shape[1])


class SumEvaluation(Evaluation):
    """Terms with their shares of θ, given as indices."""

    def __init__(self, terms: Sequence[Evaluation], shares: Sequence[Any], m: int) -> None:
        self.terms, self.shares, self.m = list(terms), list(shares), m
        # the function is the sum of these; noise has a diagonal and nothing else
        self.functions = [t for t in terms if not isinstance(t, NoiseEvaluation)] or list(terms[:1])
        self.panel = Scratch()

    @override
    def at(self, theta: FloatArray) -> Self:
        self.size = len(theta)
        for term, share in zip(self.terms, self.shares, strict=True):
            term.at(theta[share])
        self.finite = all(term.finite for term in self.terms)
        self.noise = sum(term.noise for term in self.terms)
        return self

    @override
    def values(self, rows: slice, cols: slice) -> FloatArray:
        out = self.panel(rows, cols)
        self.fill(rows, cols, out)
        return out

    @override
    def again(self, rows: slice, cols: slice) -> FloatArray:
        out = self.panel(rows, cols)
        np.copyto(out, self.functions[0].again(rows, cols))
        for term in self.functions[1:]:
            out += term.again(rows, cols)
        return out

    @override
    def fill(self, rows: slice, cols: slice, out: FloatArray) -> None:
        first, *others = self.functions
        if not others:
            first.fill(rows, cols, out)
            return
        np.add(first.values(rows, cols), others[0].values(rows, cols), out=out)
        for term in others[1:]:
            out += term.values(rows, cols)

    @override
    def diagonal(self) -> FloatArray:
        found = self.functions[0].diagonal().copy()
        for term in self.functions[1:]:
            found += term.diagonal()
        return found

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        for term in self.functions:
            term.pull(rows, cols, H)

    @override
    def pull_diagonal(self, h: FloatArray) -> None:
        for term in self.functions:
            term.pull_diagonal(h)

    @override
    def pull_noise(self, h: float) -> None:
        for term in self.terms:
            term.pull_noise(h)

    @override
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        found = np.zeros((cols.stop - cols.start, self.m))
        for term in self.functions:
            found += term.pull_inputs(rows, cols, H)
        return found

    @override
    def gradient(self) -> FloatArray:
        found = np.empty(self.size)
        for term, share in zip(self.terms, self.shares, strict=True):
            found[share] = term.gradient()
        return found


@dataclass(frozen=True, init=False, repr=False)
class Product(Composite):
    """The product of covariances; θ are the parameters of all factors, in their order.

    Amplitudes of the factors multiply, and only their product is determined by data: give all but one
    ``amplitude=False``.
    """

    def __init__(self, *terms: Covariance) -> None:
        super().__init__(*terms)
        for term in self.terms:
            if term.noisy:
                raise ValueError(f"a factor of a product cannot have a noise term, got {term!r}; add the noise last")

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        factors = [term.evaluation(X, keep) for term in self.terms]
        return ProductEvaluation(factors, self._indices(X.shape[1]), X.shape[1])


class ProductEvaluation(Evaluation):
    """Factors with their shares of θ: each is pulled with H∘(the product of the others)."""

    def __init__(self, factors: Sequence[Evaluation], shares: Sequence[Any], m: int) -> None:
        self.factors, self.shares, self.m = list(factors), list(shares), m
        self.panel = Scratch()
        self.weights = [Scratch() for _ in factors]

    @override
    def at(self, theta: FloatArray) -> Self:
        self.size = len(theta)
        for factor, share in zip(self.factors, self.shares, strict=True):
            factor.at(theta[share])
        # the product of what is finite may not be
        self.finite = all(f.finite for f in self.factors) and bool(np.isfinite(self.diagonal().sum()))
        return self

    @override
    def values(self, rows: slice, cols: slice) -> FloatArray:
        return self._multiply([f.values(rows, cols) for f in self.factors], self.panel(rows, cols))

    @override
    def again(self, rows: slice, cols: slice) -> FloatArray:
        return self._multiply([f.again(rows, cols) for f in self.factors], self.panel(rows, cols))

    @staticmethod
    def _multiply(panels: list[FloatArray], out: FloatArray) -> FloatArray:
        np.copyto(out, panels[0])
        for panel in panels[1:]:
            out *= panel
        return out

    @override
    def diagonal(self) -> FloatArray:
        return np.prod([f.diagonal() for f in self.factors], axis=0)

    def _weights(self, rows: slice, cols: slice, H: FloatArray) -> list[FloatArray]:
        """What each factor is pulled with; all of them before the first one works, for it overwrites its values."""
        panels = [f.again(rows, cols) for f in self.factors]
        found = []
        for i, room in enumerate(self.weights):
            out = room(rows, cols)
            np.copyto(out, H)
            for j, panel in enumerate(panels):
                if j != i:
                    out *= panel
            found.append(out)
        return found

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        for factor, weights in zip(self.factors, self._weights(rows, cols, H), strict=True):
            factor.pull(rows, cols, weights)

    @override
    def pull_diagonal(self, h: FloatArray) -> None:
        diagonals = [f.diagonal() for f in self.factors]
        for i, factor in enumerate(self.factors):
            others = [d for j, d in enumerate(diagonals) if j != i]
            factor.pull_diagonal(h * np.prod(others, axis=0))

    @override
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        found = np.zeros((cols.stop - cols.start, self.m))
        for factor, weights in zip(self.factors, self._weights(rows, cols, H), strict=True):
            found += factor.pull_inputs(rows, cols, weights)
        return found

    @override
    def gradient(self) -> FloatArray:
        return np.concatenate([f.gradient() for f in self.factors])
