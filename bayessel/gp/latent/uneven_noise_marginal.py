r"""Normal noise whose variance is a function of the inputs: two latent processes, one evidence by Laplace's method.

.. math:: t_i \sim N(f(x_i), e^{g_0 + g(x_i)}),\quad
    \log p(t|\theta) \approx \log p(t|\hat f, \hat g) - \tfrac12 a_f^T\hat f - \tfrac12 a_g^T\hat g
    - \tfrac12\log|B_f| - \tfrac12\log|B_g|

The curvature is the expected one, :math:`W_f = e^{-g}` and :math:`W_g = \tfrac12`, which couples no f with a g
(Hartmann and Vanhatalo 2019): Fisher scoring to the mode, and two determinants. The derivative of the mode by θ needs
the curvature as it is.
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

_MOST_STEPS, _HALVINGS, _CLOSE = 300, 30, 1e-15
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
        self._work: tuple[LatentWorkspace, LatentWorkspace] | None = None
        self._a: tuple[FloatArray, FloatArray] | None = None

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

    def _height(self, f: FloatArray, g: FloatArray, a: FloatArray, b: FloatArray, level: float) -> float:
        inside = float(a @ f) + float(b @ g)
        return float(log_normal(self.t - f, np.exp(np.clip(g, -_FARTHEST, _FARTHEST) + level)).sum()) - 0.5 * inside

    def _slopes(self, f: FloatArray, g: FloatArray, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Slopes of the log density in f and g, and the precision of the noise."""
        precision = np.exp(-np.clip(g, -_FARTHEST, _FARTHEST) - level)
        residual = self.t - f
        return residual * precision, 0.5 * (residual**2 * precision - 1.0), precision

    def _approximate(self, of_f: LatentWorkspace, of_g: LatentWorkspace, level: float) -> float:
        """Fisher scoring for the mode of both."""
        n = len(self.t)
        a, b = (np.zeros(n), np.zeros(n)) if self._a is None else self._a
        f, g = of_f.times_K(a), of_g.times_K(b)
        height = self._height(f, g, a, b, level)
        at_zero = self._height(np.zeros(n), np.zeros(n), a, b, level)
        if not height >= at_zero:
            a = b = f = g = np.zeros(n)
            height = at_zero
        self._how = Status.STEP_LIMIT
        if not of_g.factorise(np.full(n, 0.5)):
            return -np.inf
        for _ in range(_MOST_STEPS):
            slope_f, slope_g, precision = self._slopes(f, g, level)
            if not (np.isfinite(precision).all() and of_f.factorise(precision)):
                return -np.inf
            to_f, to_g = precision * f + slope_f, 0.5 * g + slope_g
            move_a = to_f - of_f.times_R(of_f.times_K(to_f)) - a
            move_b = to_g - of_g.times_R(of_g.times_K(to_g)) - b
            change_f, change_g = of_f.times_K(move_a), of_g.times_K(move_b)
            gain = 0.5 * float((slope_f - a) @ change_f + (slope_g - b) @ change_g)
            step = 1.0
            for _ in range(_HALVINGS):
                tried = f + step * change_f, g + step * change_g, a + step * move_a, b + step * move_b
                new = self._height(*tried, level)
                if new >= height - 1e-12 * abs(height):
                    break
                step *= 0.5
            else:
                if gain < 1e-6:
                    self._how = Status.CONVERGED
                break
            (f, g, a, b), height = tried, new
            if gain < _CLOSE * (1.0 + abs(height)):
                self._how = Status.CONVERGED
                break
        self._a, self._f, self._g = (a, b), f, g
        if not of_f.factorise(self._slopes(f, g, level)[2]):
            return -np.inf
        return height - of_f.half_log_det() - of_g.half_log_det()

    def _gradient(self, of_f: LatentWorkspace, of_g: LatentWorkspace, level: float) -> FloatArray:
        f, g, n = self._f, self._g, len(self.t)
        slope_f, slope_g, precision = self._slopes(f, g, level)
        variances, _ = of_f.invert()
        of_g.invert()
        # the determinant of f moves with g, and the mode of both with θ by (I + HK)⁻¹
        s = np.concatenate([np.zeros(n), 0.5 * variances * precision])
        K_f, K_g = of_f.whole(), of_g.whole()
        cross, own = slope_f, slope_g + 0.5
        HK = np.block([[precision[:, None] * K_f, cross[:, None] * K_g], [cross[:, None] * K_f, own[:, None] * K_g]])
        HK[np.diag_indices(2 * n)] += 1.0
        _, _, u, info = lapack.dgesv(HK, s, overwrite_a=1)
        if info:
            u = s
        u_f, u_g = u[:n], u[n:]
        by_level = float(slope_g.sum() + s[n:].sum() - u_f @ (K_f @ cross) - u_g @ (K_g @ own))
        first = of_f.pull(slope_f, 0.5 * slope_f + u_f)
        second = of_g.pull(slope_g, 0.5 * slope_g + u_g)
        return np.concatenate([first, second, [by_level]])

    def noise_variances(self, theta: ArrayLike) -> FloatArray:
        """Most probable variances of the noise at the rows."""
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            _, _, level = self._approximated(theta)
            return np.exp(np.clip(self._g, -_FARTHEST, _FARTHEST) + level)

    # ---- predicting

    @override
    def state(self, theta: ArrayLike) -> UnevenState:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            of_f, of_g, _ = self._approximated(theta)
            assert self._a is not None
            each = [(w.copy(), of.root.copy(), np.tril(of.B)) for w, of in zip(self._a, (of_f, of_g), strict=True)]
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
        noise = np.exp(np.clip(level, theta[-1] - _FARTHEST, theta[-1] + _FARTHEST))
        means = np.broadcast_to(there.mean[:, 0], noise.shape)
        inside = np.broadcast_to(there.variance[:, 0], noise.shape)
        weights = np.broadcast_to(np.log(w / w.sum())[:, None], noise.shape)
        return Prediction(means, inside + noise, weights, inside)

    @override
    def left_out(self, theta: ArrayLike) -> LeftOut:
        with self._threads(), np.errstate(over="ignore", under="ignore"):
            of_f, of_g, level = self._approximated(theta)
            assert self._a is not None
            means, variances = [], []
            for mean, weights, of in zip((self._f, self._g + level), self._a, (of_f, of_g), strict=True):
                variance, left = of.invert()
                cavity = variance / left
                means.append(mean - weights * cavity)
                variances.append(cavity)
            there = Normals(np.column_stack(means), np.column_stack(variances))
            whole = self.targets(there, self.as_theta(theta))
            assert whole.log_weights is not None
            logs = logsumexp(log_normal(self.t - whole.means, whole.variances) + whole.log_weights, axis=0)
            return LeftOut(logs, there)
