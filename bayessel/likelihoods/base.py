"""The contract of a likelihood p(t | f, φ): the distribution of one target given one value of a latent function.

Every method works on all rows at once and knows nothing of where f comes from: weights of a linear model, a Gaussian
process, a network. φ are the likelihood's own parameters, natural logarithms of positive numbers like those of a
covariance. An engine that adds an offset to f (the logarithm of an exposure) adds it before it asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel.count_prediction import CountPrediction
from bayessel.covariance.prior import Prior
from bayessel.likelihoods.tilted_quadrature import Tilted, tilted_by_quadrature
from bayessel.prediction import ClassPrediction, Prediction


class Derivatives(NamedTuple):
    """Of log p(t | f) by f, (n,) each: value, slope, curvature (minus the second derivative), third derivative."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray
    third: FloatArray


class Information(NamedTuple):
    """What a row tells about f, (n,) ≥ 0, and its derivative by f: the curvature, or its expectation over targets."""

    value: FloatArray
    slope: FloatArray


class ParameterDerivatives(NamedTuple):
    """Derivatives by the k parameters φ, (k, n) each: of log p, of its slope in f, and of the information."""

    value: FloatArray
    slope: FloatArray
    information: FloatArray


class Likelihood(ABC):
    """Distribution of targets given a latent function.

    Attributes
    ----------
    name : str
        By which people ask for it.
    log_concave : bool
        Whether log p(t | f) is concave in f, so that the posterior has one mode.
    labels : bool
        Whether targets are labels, 0 and 1, and predictions their probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.likelihoods import as_likelihood
    >>> counts = as_likelihood("poisson")
    >>> counts.log_concave, counts.labels
    (True, False)
    >>> counts.predict(np.array([np.log(3.0)]), np.array([1e-9]), np.zeros(0)).mean.round(3).tolist()
    [3.0]
    """

    name: ClassVar[str]
    log_concave: ClassVar[bool] = True
    labels: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters φ."""
        return ()

    def start(self, t: FloatArray) -> FloatArray:
        """Where searches for φ begin, from the targets."""
        return np.zeros(0)

    def prior(self, t: FloatArray) -> Prior:
        """Default prior of φ."""
        return Prior.join(Prior.normal(0.0, 1.0, 0))

    @abstractmethod
    def targets(self, t: ArrayLike, name: str = "t") -> FloatArray:
        """Targets as the other methods want them, checked."""

    @abstractmethod
    def derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Derivatives:
        """log p(t | f) and its derivatives by f."""

    def information(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Information:
        """What Newton steps and Laplace's approximation take for the curvature; never negative."""
        found = self.derivatives(t, f, phi)
        return Information(found.curvature, -found.third)

    def bounding(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> FloatArray | None:
        """Precisions of normal densities in f that lie below p(t|f) up to a factor and touch it at f; None: not needed.

        A Newton step by them cannot fall, however far the mode is. Where the information is an expectation, steps by it
        are short far from the mode.
        """
        return None

    def parameter_derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> ParameterDerivatives:
        """Derivatives by φ at a fixed f."""
        nothing = np.zeros((0, len(f)))
        return ParameterDerivatives(nothing, nothing, nothing)

    def tilted(self, t: FloatArray, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> Tilted:
        """log ∫ p(t | f) N(f | mean, variance) df and its derivatives."""
        return tilted_by_quadrature(
            lambda f: self.derivatives(t[:, None], f, phi)[:3],
            mean,
            variance,
            None if not self.names else lambda f: self.parameter_derivatives(t[:, None], f, phi).value,
        )

    @abstractmethod
    def predict(
        self, mean: FloatArray, variance: FloatArray, phi: FloatArray
    ) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions of targets where the latent function is normal with these means and variances."""

    @abstractmethod
    def draw(self, f: FloatArray, phi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Targets drawn at latent values."""
