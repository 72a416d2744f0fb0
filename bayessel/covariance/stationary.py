r"""Stationary covariances v₀ f(s) of the scaled squared distance s = Σ w_i (x_i − x'_i)².

======================  ===========================================
SquaredExponential      e^{−s/2}
Matern12                e^{−r},                  r = √s
Matern32                (1 + r) e^{−r},          r = √(3s)
Matern52                (1 + r + r²/3) e^{−r},   r = √(5s)
RationalQuadratic       (1 + s/2α)^{−α}
======================  ===========================================

(Rasmussen 1996, eq. 4.12; Rasmussen and Williams 2006, section 4.2.) Lengths are w_i^{−1/2}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, override

import numpy as np

from bayessel._check import FloatArray, as_flag
from bayessel.covariance.base import Evaluation, Leaf, Parameters
from bayessel.covariance.stationary_evaluation import ExponentialEvaluation, ProfileEvaluation


@dataclass(frozen=True, repr=False)
class Stationary(Leaf):
    """A stationary covariance; θ = (log v0, log w[0], ...).

    Parameters
    ----------
    ard : bool
        A weight for each input; False: one for all of them, ``log w``.
    amplitude : bool
        False: v₀ = 1 and not a parameter, as for a factor of a product that has an amplitude already.
    columns : tuple of int, optional
        The inputs it looks at; default all of them.
    """

    ard: bool = True
    amplitude: bool = True
    #: whether f has a kink at s = 0, so that distances need every digit there
    sharp: ClassVar[bool] = False

    def __post_init__(self) -> None:
        as_flag(self.ard, "ard")
        as_flag(self.amplitude, "amplitude")

    @override
    def parameters(self, m: int) -> list[Parameters]:
        weights = Parameters.weights(self.used(m), self.ard)
        return [Parameters.amplitude(), weights] if self.amplitude else [weights]

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        return ProfileEvaluation(self, X)

    def profile(self, e: FloatArray, shape: FloatArray) -> None:
        """Turn e = −s/2 into f(s), in place."""
        raise NotImplementedError

    def slopes(self, e: FloatArray, shape: FloatArray, K: FloatArray, T: FloatArray) -> None:
        """From e = −s/2: f(s) into K, ∂f/∂s into e, and ∂f/∂log α into T where there is an α."""
        raise NotImplementedError


def root(e: FloatArray, factor: float) -> FloatArray:
    """√(factor s) from e = −s/2, in place; rounding may have left e above nil."""
    np.minimum(e, 0.0, out=e)
    e *= -2.0 * factor
    return np.sqrt(e, out=e)


@dataclass(frozen=True, repr=False)
class SquaredExponential(Stationary):
    """v₀ exp(−½ Σ w_i (x_i − x'_i)²); θ = (log v0, log w[0], ...).

    Examples
    --------
    >>> float(SquaredExponential().matrix(np.zeros(2), np.array([[0.0], [1.0]]))[0, 1].round(4))  # exp(-1/2)
    0.6065
    """

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        return ExponentialEvaluation(self, X, keep)


@dataclass(frozen=True, repr=False)
class Matern12(Stationary):
    """v₀ e^{−r}, r² = Σ w_i (x_i − x'_i)²: continuous functions with kinks everywhere; θ = (log v0, log w[0], ...).

    Examples
    --------
    >>> float(Matern12().matrix(np.zeros(2), np.array([[0.0], [1.0]]))[0, 1].round(4))  # exp(-1)
    0.3679
    """

    sharp: ClassVar[bool] = True

    @override
    def profile(self, e: FloatArray, shape: FloatArray) -> None:
        root(e, 1.0)
        np.exp(np.negative(e, out=e), out=e)

    @override
    def slopes(self, e: FloatArray, shape: FloatArray, K: FloatArray, T: FloatArray) -> None:
        root(e, 1.0)
        np.exp(np.negative(e, out=K), out=K)
        # where two rows coincide the slope is infinite, but what it is multiplied with is nil
        np.divide(-0.5, e, out=e, where=e > 0.0)
        e *= K


@dataclass(frozen=True, repr=False)
class Matern32(Stationary):
    """v₀ (1 + r) e^{−r}, r² = 3 Σ w_i (x_i − x'_i)²: differentiable once; θ = (log v0, log w[0], ...).

    Examples
    --------
    >>> float(Matern32().matrix(np.zeros(2), np.array([[0.0], [1.0]]))[0, 1].round(4))
    0.4834
    """

    @override
    def profile(self, e: FloatArray, shape: FloatArray) -> None:
        r = root(e, 3.0)
        decay = np.exp(-r)
        r += 1.0
        r *= decay

    @override
    def slopes(self, e: FloatArray, shape: FloatArray, K: FloatArray, T: FloatArray) -> None:
        r = root(e, 3.0)
        np.exp(np.negative(r, out=T), out=T)
        np.multiply(np.add(r, 1.0, out=K), T, out=K)
        np.multiply(T, -1.5, out=e)


@dataclass(frozen=True, repr=False)
class Matern52(Stationary):
    """v₀ (1 + r + r²/3) e^{−r}, r² = 5 Σ w_i (x_i − x'_i)²: differentiable twice; θ = (log v0, log w[0], ...).

    Examples
    --------
    >>> float(Matern52().matrix(np.zeros(2), np.array([[0.0], [1.0]]))[0, 1].round(4))
    0.524
    """

    @override
    def profile(self, e: FloatArray, shape: FloatArray) -> None:
        r = root(e, 5.0)
        decay = np.exp(-r)
        decay *= 1.0 + r * (1.0 + r / 3.0)
        np.copyto(e, decay)

    @override
    def slopes(self, e: FloatArray, shape: FloatArray, K: FloatArray, T: FloatArray) -> None:
        r = root(e, 5.0)
        np.exp(np.negative(r, out=T), out=T)
        np.multiply(r, 1.0 / 3.0, out=K)
        K += 1.0
        K *= r
        K += 1.0
        K *= T
        r += 1.0
        r *= T
        r *= -5.0 / 6.0


@dataclass(frozen=True, repr=False)
class RationalQuadratic(Stationary):
    """v₀ (1 + s/2α)^{−α}, s = Σ w_i (x_i − x'_i)²: a mixture of lengths; θ = (log v0, log w[0], ..., log alpha).

    Examples
    --------
    >>> float(RationalQuadratic().matrix(np.zeros(3), np.array([[0.0], [1.0]]))[0, 1].round(4))  # 1/(1 + 1/2)
    0.6667
    """

    @override
    def parameters(self, m: int) -> list[Parameters]:
        return [*super().parameters(m), Parameters.one("alpha", 0.0, 0.0, 1.5)]

    @override
    def profile(self, e: FloatArray, shape: FloatArray) -> None:
        np.minimum(e, 0.0, out=e)
        e *= -1.0 / shape[0]
        np.log1p(e, out=e)
        e *= -shape[0]
        np.exp(e, out=e)

    @override
    def slopes(self, e: FloatArray, shape: FloatArray, K: FloatArray, T: FloatArray) -> None:
        alpha = shape[0]
        np.minimum(e, 0.0, out=e)
        e *= -1.0 / alpha  # u = s/2α
        np.log1p(e, out=T)
        np.exp(np.multiply(T, -alpha, out=K), out=K)
        rest = e / (e + 1.0)  # u/(1+u)
        # ∂f/∂log α = α f (u/(1+u) − log(1+u))
        np.subtract(rest, T, out=T)
        T *= alpha
        T *= K
        # ∂f/∂s = −½ f/(1+u)
        np.subtract(rest, 1.0, out=e)
        e *= 0.5
        e *= K
