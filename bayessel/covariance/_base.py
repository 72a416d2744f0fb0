"""What every covariance function says of itself: names, start, priors, values; and its turn in the fused gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bayessel._check import FloatArray
from bayessel.covariance.prior import Prior


class Evaluation(ABC):
    """A covariance at one θ and one set of inputs, worked through in panels of the lower triangle.

    A panel is rows [i0, i1) by columns [0, i1). First every panel is filled; later, when W = aaᵀ − Q⁻¹ is known, every
    panel is pulled with H = W weighted 1 below the diagonal, ½ on it and 0 above: Σ H∘∂K/∂θ is then the gradient.
    """

    @abstractmethod
    def fill(self, rows: slice, cols: slice, out: FloatArray) -> None:
        """Write K[rows, cols], noise on the diagonal included, into `out`."""

    @abstractmethod
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        """Add Σ H∘∂K[rows, cols]/∂θ to the gradient."""

    @abstractmethod
    def gradient(self) -> FloatArray:
        """The gradient gathered so far, (k,)."""


class Covariance(ABC):
    """A covariance function without data; θ are natural logarithms of its positive parameters."""

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
    def noise(self, theta: FloatArray, m: int) -> float:
        """Variance r² of the noise, 0 where the covariance has none."""

    @abstractmethod
    def matrix(self, theta: FloatArray, X: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        """Covariances of the noise-free function between rows of X and of Z (default X)."""

    @abstractmethod
    def diagonal(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Variances of the noise-free function at the rows of X."""

    @abstractmethod
    def at(self, theta: FloatArray, X: FloatArray) -> Evaluation:
        """Begin an evaluation at θ."""

    def relevance(self, theta: FloatArray, m: int) -> FloatArray | None:
        """Weights w_i of the inputs; None where the covariance has none."""
        return None

    def size(self, m: int) -> int:
        """Number of parameters for m inputs."""
        return len(self.names(m))
