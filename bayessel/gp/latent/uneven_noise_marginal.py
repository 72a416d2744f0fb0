r"""Normal noise whose variance is a function of the inputs: two latent processes, one evidence by Laplace's method.

.. math:: t_i \sim N(f(x_i), e^{g_0 + g(x_i)}),\quad
    \log p(t|\theta) \approx \log N(t|0, K_f + D(\hat g)) - \tfrac12\hat g^TK_g^{-1}\hat g
    - \tfrac12\log|I + \tfrac12K_g|

Given g the function f is integrated out, so that the mode of g knows that residuals are smaller than the noise: with a
the weights and v the variances of f at the rows its slope is :math:`\tfrac12(a_i^2D_i + v_i/D_i - 1)`. At a common mode
of f and g noise follows the residuals, and is too small. The information about g is that of one normal observation of
variance :math:`e^{g}`, ½ a row, and moves with nothing: then the gradient by θ is the partial one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self, override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.linalg import lapack
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.covariance import Bias, Covariance, Linear, Prior, SquaredExponential
from bayessel.fit import Status
from bayessel.gp.latent.latent_process import ApproximateMarginal, LatentWorkspace, LeftOut, Normals, latent_covariance
from bayessel.likelihoods.normal_noise import NormalNoise
from bayessel.prediction import Prediction

_MOST_STEPS, _HALVINGS, _CLOSE = 300, 30, 1e-13
#: Fisher's information of a normal observation about the logarithm of its variance
_INFORMATION = 0.5
#: least variance of the noise, in units of that of the targets: with less, matrices lose their last digits
LEAST_NOISE = 1e-10
#: nodes of the normal distribution of the log variance in predictions
_NODES = 15
#: farthest logarithm of a variance from that of the typical noise
_FARTHEST = 30.0


class UnevenState(NamedTuple):
    """What predicts: of either process K⁻¹ times its mean, the roots of its precisions, and the factor of its B."""

    weights: FloatArray
    root: FloatArray
    L: FloatArray
    noise_weights: FloatArray
    noise_root: FloatArray
    noise_L: FloatArray


class UnevenNoiseMarginal(ApproximateMarginal):
    """The log evidence of a process with uneven noise; θ are those of f, those of g, and log σ² = g₀.

    Parameters
    ----------
    X : (n, m) array
    t : (n,) array
    covariance : Covariance or None
        Of f, without noise.
    of_noise : Covariance or None
        Of g. None: a smooth function with one length, and a plane; where f is a constant, g is one too.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(-2.0, 2.0, 40)
    >>> marginal = UnevenNoiseMarginal(x, np.sin(2 * x) + np.exp(x - 2.0) * rng.normal(size=40), None)
    >>> bool(np.isfinite(marginal.value(marginal.start())))
    True
    """

    kind = "laplace"
    labels = False
    _a: FloatArray
    _g: FloatArray

    def __init__(
        self, X: ArrayLike, t: ArrayLike, covariance: Covariance | None, of_noise: Covariance | None = None
    ) -> None:
        super().__init__(X, NormalNoise().targets(t), latent_covariance(covariance))
        m = self.X.shape[1]
        if of_noise is None:
            constant = self.covariance == Bias()
            of_noise = Bias() if constant else SquaredExponential(ard=False) + Linear() + Bias()
        self.of_noise = latent_covariance(of_noise)
        self.n_covariance, self.n_both = self.size, self.size + self.of_noise.size(m)
        self.names = (*self.names, *(f"noise: {name}" for name in self.of_noise.names(m)), "log sigma2")
        self.size = len(self.names)
        t2 = float(np.var(self.t)) or float(np.mean(self.t**2)) or 1.0
        self._floor = LEAST_NOISE * t2
        self._work: tuple[LatentWorkspace, LatentWorkspace] | None = None
        self._b = np.zeros(0)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_work": None}

    @override
    def start(self) -> FloatArray:
        return np.concatenate([super().start(), self.of_noise.start(self.X.shape[1]), NormalNoise().start(self.t)])

    @override
    def prior(self) -> Prior:
        return Prior.join(super().prior(), self.of_noise.prior(self.X.shape[1]), NormalNoise().prior(self.t))

    @override
    def part(self, rows: npt.NDArray[np.intp]) -> Self:
        return type(self)(self.X[rows], self.t[rows], self.covariance, self.of_noise)

    def _at(self, theta: ArrayLike) -> tuple[LatentWorkspace, LatentWorkspace, float] | None:
        """The workspaces with both K at θ, and g₀."""
        if self._work is None:
            self._work = LatentWorkspace(self.X, self.covariance), LatentWorkspace(self.X, self.of_noise)
        vector, (first, second) = self.as_theta(theta), self._work
        ready = first.covariances(vector[: self.n_covariance])
        ready = ready and second.covariances(vector[self.n_covariance : self.n_both])
        return (first, second, float(vector[-1])) if ready else None

    @override
    def value(self, theta: ArrayLike) -> float:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            at = self._at(theta)
            return self._found(-np.inf if at is None else self._approximate(*at))

    @override
    def value_and_gradient(self, theta: ArrayLike) -> tuple[float, FloatArray]:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            at = self._at(theta)
            value = self._found(-np.inf if at is None else self._approximate(*at))
            if at is None or value == -np.inf:
                return -np.inf, np.zeros(self.size)
            return value, self._gradient(*at)

    def _found(self, value: float) -> float:
        good = bool(np.isfinite(value))
        self.status = Status.ILL_CONDITIONED if not good else self._how
        return value if good else -np.inf

    def _noise(self, g: FloatArray, level: float) -> FloatArray:
        """Variances of the noise."""
        return np.exp(np.clip(g, -_FARTHEST, _FARTHEST) + level) + self._floor

    def _given_noise(self, of_f: LatentWorkspace, noise: FloatArray) -> float:
        """log N(t | 0, K_f + D) where D are these variances; the factor is left in the workspace."""
        if not (np.isfinite(1.0 / noise).all() and of_f.factorise(1.0 / noise)):
            return -np.inf
        a = of_f.times_R(self.t)
        constant = 0.5 * float(np.log(2.0 * np.pi * noise).sum())
        return -0.5 * float(self.t @ a) - of_f.half_log_det() - constant

    def _slope(self, a: FloatArray, variances: FloatArray, noise: FloatArray) -> FloatArray:
        """Of that by g, from the weights and the variances of f at the rows."""
        return 0.5 * (a**2 * noise + variances / noise - 1.0) * (1.0 - self._floor / noise)

    def _approximate(self, of_f: LatentWorkspace, of_g: LatentWorkspace, level: float) -> float:
        """Fisher scoring for the mode of g, with f integrated out."""
        n = len(self.t)
        self._how = Status.STEP_LIMIT
        if not of_g.factorise(np.full(n, _INFORMATION)):
            return -np.inf
        determinant = of_g.half_log_det()
        known = len(self._b) == n
        b = self._b if known else np.zeros(n)
        g = of_g.times_K(b)
        noise = self._noise(g, level)
        height = self._given_noise(of_f, noise) - 0.5 * float(b @ g)
        if known:
            at_zero = self._given_noise(of_f, self._noise(np.zeros(n), level))
            if not height >= at_zero:
                b, g, height = np.zeros(n), np.zeros(n), at_zero
                noise = self._noise(g, level)
            else:
                self._given_noise(of_f, noise)
        if not np.isfinite(height):
            return -np.inf
        for _ in range(_MOST_STEPS):
            a = of_f.times_R(self.t)
            slope = self._slope(a, of_f.invert()[0], noise)
            move = _INFORMATION * g + slope
            move = move - of_g.times_R(of_g.times_K(move)) - b
            change = of_g.times_K(move)
            gain = 0.5 * float((slope - b) @ change)
            step = 1.0
            for _ in range(_HALVINGS):
                new_b, new_g = b + step * move, g + step * change
                new_noise = self._noise(new_g, level)
                new = self._given_noise(of_f, new_noise) - 0.5 * float(new_b @ new_g)
                if new >= height - 1e-12 * abs(height):
                    break
                step *= 0.5
            else:
                if gain < 1e-6:
                    self._how = Status.CONVERGED
                if not np.isfinite(self._given_noise(of_f, noise)):
                    return -np.inf
                break
            b, g, noise, height = new_b, new_g, new_noise, new
            if gain < _CLOSE * (1.0 + abs(height)):
                self._how = Status.CONVERGED
                break
        self._b, self._g = b, g
        self._a = of_f.times_R(self.t)
        return height - determinant

    def _gradient(self, of_f: LatentWorkspace, of_g: LatentWorkspace, level: float) -> FloatArray:
        # at its mode the density does not move with g, and no determinant does
        a, b = self._a, self._b
        by_level = float(self._slope(a, of_f.invert()[0], self._noise(self._g, level)).sum())
        of_g.invert()
        return np.concatenate([of_f.pull(a, 0.5 * a), of_g.pull(b, 0.5 * b), [by_level]])

    def noise_variances(self, theta: ArrayLike) -> FloatArray:
        """Most probable variances of the noise at the rows."""
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            _, _, level = self._approximated(theta)
            return self._noise(self._g, level)

    # ---- predicting

    @override
    def state(self, theta: ArrayLike) -> UnevenState:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            processes, weights = self._approximated(theta)[:2], (self._a, self._b)
            each = [(w.copy(), of.root.copy(), np.tril(of.B)) for w, of in zip(weights, processes, strict=True)]
            return UnevenState(*each[0], *each[1])

    def _approximated(self, theta: ArrayLike) -> tuple[LatentWorkspace, LatentWorkspace, float]:
        at = self._at(theta)
        if at is None or not np.isfinite(self._approximate(*at)):
            raise np.linalg.LinAlgError("the latent process has no approximation at this theta")
        return at

    @override
    def function(self, state: UnevenState, theta: FloatArray, new: FloatArray) -> Normals:
        """Means and variances of f and of g₀ + g at new inputs, (N, 2) each."""
        mean, variance = np.empty((len(new), 2)), np.empty((len(new), 2))
        cuts = slice(0, self.n_covariance), slice(self.n_covariance, self.n_both)
        for k, (covariance, cut) in enumerate(zip((self.covariance, self.of_noise), cuts, strict=True)):
            weights, root, L = state[3 * k : 3 * k + 3]
            across = covariance.matrix(theta[cut], self.X, new)
            half, _ = lapack.dtrtrs(L.T, root[:, None] * across, lower=0, trans=1)
            prior = covariance.diagonal(theta[cut], new)
            mean[:, k] = weights @ across
            left = prior - np.einsum("ij,ij->j", half, half)
            variance[:, k] = np.maximum(left, np.finfo(float).eps * prior)
        mean[:, 1] += theta[-1]
        return Normals(mean, variance)

    @override
    def targets(self, there: Normals, theta: FloatArray) -> Prediction:
        x, w = np.polynomial.hermite_e.hermegauss(_NODES)
        level = there.mean[:, 1] + np.sqrt(there.variance[:, 1]) * x[:, None]
        noise = np.exp(np.clip(level, theta[-1] - _FARTHEST, theta[-1] + _FARTHEST)) + self._floor
        means = np.broadcast_to(there.mean[:, 0], noise.shape)
        inside = np.broadcast_to(there.variance[:, 0], noise.shape)
        weights = np.broadcast_to(np.log(w / w.sum())[:, None], noise.shape)
        return Prediction(means, inside + noise, weights, inside)

    @override
    def left_out(self, theta: ArrayLike) -> LeftOut:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            of_f, of_g, level = self._approximated(theta)
            means, variances = [], []
            both = (of_f.times_K(self._a), self._a, of_f), (self._g + level, self._b, of_g)
            for mean, weights, of in both:
                variance, left = of.invert()
                cavity = variance / left
                means.append(mean - weights * cavity)
                variances.append(cavity)
            there = Normals(np.column_stack(means), np.column_stack(variances))
            whole = self.targets(there, self.as_theta(theta))
            assert whole.log_weights is not None
            logs = logsumexp(log_normal(self.t - whole.means, whole.variances) + whole.log_weights, axis=0)
            return LeftOut(logs, there)
