"""What every covariance function says of itself, and the contract by which it takes part in the fused gradient.

A `Covariance` is a description without data. Bound to inputs it is an `Evaluation`, which moves from θ to θ and is
worked through in panels, blocks of rows that stay in the cache: the n×n array is filled panel by panel, factored and
inverted in place, and then every panel of W = Q⁻¹ − aaᵀ is handed back to be multiplied with ∂K/∂θ and summed. No
derivative is ever an n×n array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, override

import numpy as np

from bayessel._check import FloatArray, as_count, as_float_array, as_matrix
from bayessel.covariance.prior import Prior

if TYPE_CHECKING:
    from bayessel.covariance.algebra import Product, Sum

#: rows of a panel: so few that what is done to it stays in the cache, so many that a call into NumPy is worth it
PANEL = 64


class Scratch:
    """Room for one panel, of any shape, allocated once."""

    def __init__(self) -> None:
        self._room = np.empty(0)

    def __call__(self, rows: slice, cols: slice) -> FloatArray:
        """An array for K[rows, cols]; whatever was there is overwritten."""
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        size = shape[0] * shape[1]
        if self._room.size < size:
            self._room = np.empty(size)
        return self._room[:size].reshape(shape)


class Evaluation(ABC):
    """A covariance between the n rows of X, at one θ after the other.

    Attributes
    ----------
    noise
        Variance r² of the noise; it is on the diagonal of Q, and in nothing below.
    finite
        False where the numbers leave double precision at this θ; then nothing else may be asked.

    Notes
    -----
    Slices have start and stop. `pull` takes any H, symmetric or not, on any block; of a symmetric matrix the lower
    triangle with half its diagonal will do.
    """

    noise: float = 0.0
    finite: bool = True

    @abstractmethod
    def at(self, theta: FloatArray) -> Self:
        """Move to θ and forget what was pulled; call it where floating-point warnings are off."""

    @abstractmethod
    def values(self, rows: slice, cols: slice) -> FloatArray:
        """K[rows, cols]; to be read before the next call, and not to be written to."""

    def again(self, rows: slice, cols: slice) -> FloatArray:
        """`values` of a panel that has been asked for at this θ before: an evaluation may have kept it."""
        return self.values(rows, cols)

    def fill(self, rows: slice, cols: slice, out: FloatArray) -> None:
        """Write K[rows, cols] into `out`."""
        np.copyto(out, self.values(rows, cols))

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """k(x_i, x_i), (n,); exact where `values` rounds."""

    @abstractmethod
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        """Add Σ H∘∂K[rows, cols]/∂θ to the gradient."""

    @abstractmethod
    def pull_diagonal(self, h: FloatArray) -> None:
        """Add Σ h_i ∂k(x_i, x_i)/∂θ to the gradient."""

    def pull_noise(self, h: float) -> None:
        """Add h ∂r²/∂θ to the gradient."""
        return

    @abstractmethod
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        """Σ_i H_ij ∂k(x_i, x_j)/∂x_j over i in rows, for j in cols: (columns, m). The rows are held fixed."""

    @abstractmethod
    def gradient(self) -> FloatArray:
        """What was pulled since `at`, (k,)."""


class Covariance(ABC):
    """A covariance function without data; θ are natural logarithms of its positive parameters.

    ``a + b`` and ``a * b`` are covariances, and ``a.on([0, 2])`` is the same function of some of the inputs. Two with
    the same description are equal.

    Examples
    --------
    >>> from bayessel.covariance import Matern52, Noise, Periodic
    >>> both = Matern52().on([0]) * Periodic().on([1]) + Noise()
    >>> len(both.names(2)), both.noisy
    (6, True)
    """

    @abstractmethod
    def names(self, m: int) -> tuple[str, ...]:
        """Names of the parameters for m inputs, in the order of θ."""

    @abstractmethod
    def start(self, m: int) -> FloatArray:
        """Where optimisers and samplers begin, for standardised data."""

    @abstractmethod
    def prior(self, m: int) -> Prior:
        """Default priors of θ, for standardised data."""

    @abstractmethod
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        """Bind to inputs; with `keep`, a term may keep its panels between `values` and `again`, n×n numbers."""

    @abstractmethod
    def on(self, columns: Iterable[int]) -> Covariance:
        """The same function of some of the inputs, given by their numbers; of `a.on([1, 3])`, among those in use."""

    @property
    def noisy(self) -> bool:
        """Whether there is a noise term."""
        return False

    def with_noise(self) -> Covariance:
        """The covariance, `Noise` added to one that has none: without noise the targets would have to be exact."""
        from bayessel.covariance.constant_linear_noise import Noise

        return self if self.noisy else self + Noise()

    def noise(self, theta: FloatArray, m: int) -> float:
        """Variance r² of the noise, 0 where the covariance has none."""
        return 0.0

    def relevance(self, theta: FloatArray, m: int) -> FloatArray | None:
        """Weights w_i of the inputs, the largest where several terms have one; None where no term has."""
        return None

    def size(self, m: int) -> int:
        """Number of parameters for m inputs."""
        return len(self.names(m))

    def at(self, theta: FloatArray, X: FloatArray) -> Evaluation:
        """An evaluation of these inputs at θ; see that it is finite."""
        X, theta = as_matrix(X, "X", finite=False), as_float_array(theta, "theta")
        names = self.names(X.shape[1])
        if theta.shape != (len(names),):
            entries = "1 entry" if len(names) == 1 else f"{len(names)} entries"
            raise ValueError(f"theta must have {entries} ({', '.join(names)}), got shape {theta.shape}")
        with np.errstate(all="ignore"):
            return self.evaluation(X).at(theta)

    def matrix(self, theta: FloatArray, X: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        """Covariances of the noise-free function between rows of X and of Z (default X)."""
        X = as_matrix(X, "X", finite=False)
        n, first, k = len(X), 0, len(X)
        if Z is not None:
            Z = as_matrix(Z, "Z", finite=False)
            if Z.shape[1] != X.shape[1]:
                raise ValueError(f"Z must have {X.shape[1]} inputs as X has, got {Z.shape[1]}")
            first, k = n, len(Z)
        evaluation = self.at(theta, X if Z is None else np.concatenate([X, Z]))
        if not evaluation.finite:
            return np.full((n, k), np.nan)
        K = np.empty((n, k))
        for i in range(0, n, PANEL):
            rows = slice(i, min(i + PANEL, n))
            evaluation.fill(rows, slice(first, first + k), K[rows])
        if Z is None:
            np.fill_diagonal(K, evaluation.diagonal())
        return K

    def diagonal(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Variances of the noise-free function at the rows of X."""
        return self.at(theta, X).diagonal()

    def __add__(self, other: Covariance) -> Sum:
        from bayessel.covariance.algebra import Sum

        return Sum(self, other) if isinstance(other, Covariance) else NotImplemented

    def __mul__(self, other: Covariance) -> Product:
        from bayessel.covariance.algebra import Product

        return Product(self, other) if isinstance(other, Covariance) else NotImplemented


class Parameters(NamedTuple):
    """Parameters of one kind: their names, where each begins, their priors, and what others read from them."""

    names: Sequence[str]
    start: float
    prior: Prior
    role: Literal["weights", "noise"] | None = None

    @classmethod
    def one(
        cls, name: str, start: float, mean: float, sd: float, role: Literal["weights", "noise"] | None = None
    ) -> Self:
        """One parameter with a normal prior of its logarithm."""
        return cls([f"log {name}"], start, Prior.normal(mean, sd), role)

    @classmethod
    def amplitude(cls) -> Self:
        """The variance v₀ of a function: log v₀ ~ N(−1, 1)."""
        return cls.one("v0", 0.0, -1.0, 1.0)

    @classmethod
    def weights(cls, columns: Sequence[int], ard: bool = True) -> Self:
        """Weights of k inputs, or one for all: 1/w ~ Gamma(½, 1/(2k²)) (Rasmussen 1996, eq. 4.18)."""
        k, names = len(columns), named("w", columns) if ard else ["log w"]
        return cls(names, -float(np.log(k)), Prior.inverse_gamma(0.5, 0.5 / k**2, len(names)), "weights")


@dataclass(frozen=True, repr=False)
class Leaf(Covariance):
    """A covariance that is no sum or product: a list of parameters, and an evaluation of some of the inputs.

    Parameters
    ----------
    columns : tuple of int, optional
        The inputs it looks at; default all of them. See `Covariance.on`.
    """

    columns: tuple[int, ...] | None = field(default=None, kw_only=True)

    @abstractmethod
    def parameters(self, m: int) -> list[Parameters]:
        """All parameters for m inputs, in the order of θ."""

    @override
    def names(self, m: int) -> tuple[str, ...]:
        return tuple(name for part in self.parameters(m) for name in part.names)

    @override
    def start(self, m: int) -> FloatArray:
        return np.concatenate([np.full(len(part.names), part.start) for part in self.parameters(m)])

    @override
    def prior(self, m: int) -> Prior:
        return Prior.join(*(part.prior for part in self.parameters(m)))

    def _with_role(self, role: str, theta: FloatArray, m: int) -> FloatArray | None:
        """e^θ of the parameters that have a role; None where there are none."""
        at = 0
        for part in self.parameters(m):
            if part.role == role:
                return np.asarray(np.exp(theta[at : at + len(part.names)]))
            at += len(part.names)
        return None

    @property
    @override
    def noisy(self) -> bool:
        return any(part.role == "noise" for part in self.parameters(1 + max(self.columns or (0,))))

    @override
    def noise(self, theta: FloatArray, m: int) -> float:
        found = self._with_role("noise", theta, m)
        return 0.0 if found is None else float(found[0])

    @override
    def relevance(self, theta: FloatArray, m: int) -> FloatArray | None:
        found = self._with_role("weights", theta, m)
        if found is None:
            return None
        weights = np.zeros(m)
        weights[list(self.used(m))] = found
        return weights

    def __repr__(self) -> str:
        given = [f for f in fields(self) if f.name != "columns" and getattr(self, f.name) != f.default]
        options = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in given)
        chosen = "" if self.columns is None else f".on({list(self.columns)})"
        return f"{type(self).__name__}({options}){chosen}"

    def used(self, m: int) -> tuple[int, ...]:
        """Numbers of the inputs in use, out of m."""
        if self.columns is None:
            return tuple(range(m))
        if max(self.columns) >= m:
            raise ValueError(f"a covariance looks at input {max(self.columns)}, but there are {m} (counted from 0)")
        return self.columns

    @override
    def on(self, columns: Iterable[int]) -> Self:
        chosen = as_columns(columns)
        if not chosen or len(set(chosen)) < len(chosen):
            raise ValueError(f"columns must be different numbers of inputs, at least one, got {list(chosen)}")
        if self.columns is not None:
            if max(chosen) >= len(self.columns):
                raise ValueError(f"columns must be among the {len(self.columns)} in use, got {list(chosen)}")
            chosen = tuple(self.columns[c] for c in chosen)
        return replace(self, columns=chosen)

    def inputs(self, X: FloatArray) -> FloatArray:
        """The inputs in use as rows, (inputs, n)."""
        chosen = X if self.columns is None else X[:, self.used(X.shape[1])]
        return np.ascontiguousarray(chosen.T, dtype=np.float64)

    def scatter(self, part: FloatArray, m: int) -> FloatArray:
        """Derivatives with respect to the inputs in use, as rows -> with respect to all m, as columns."""
        whole = np.zeros((part.shape[1], m))
        whole[:, self.used(m)] = part.T
        return whole


def as_columns(columns: Any) -> tuple[int, ...]:
    """Numbers of inputs as a tuple."""
    try:
        given = tuple(columns)
    except TypeError as error:
        raise TypeError(f"columns must be numbers of inputs, such as [0], got {columns!r}") from error
    return tuple(as_count(c, "an entry of columns", 0) for c in given)


def named(kind: str, columns: Iterable[int]) -> list[str]:
    """Names such as 'log w[3]'."""
    return [f"log {kind}[{i}]" for i in columns]
