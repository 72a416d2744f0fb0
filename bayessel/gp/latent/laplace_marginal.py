r"""Laplace's approximation of a latent Gaussian process: a normal distribution about the most probable function.

.. math:: \log p(t|\theta) \approx \log p(t|\hat f) - \tfrac12\hat f^TK^{-1}\hat f - \tfrac12\log|I + SKS|

with :math:`W = S^2` the information of the rows at the mode (Rasmussen and Williams 2006, algorithms 3.1 and 5.1). For
likelihoods that are not log-concave the information is the expected one, so that steps always lead uphill (Fisher
scoring) and the determinant exists.
"""

from __future__ import annotations

from typing import override

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status
from bayessel.gp.latent.latent_process import LatentMarginal, LatentWorkspace, Marginals

#: Newton steps at most; steps of Fisher scoring converge more slowly
_MOST_STEPS = 200
#: steps by bounds of the likelihood in the beginning, and steps after which there are no others: those by the expected
#: information go nowhere while residuals are much larger than the noise
_BOUNDED_FIRST, _BOUNDED_AFTER = 5, 60
_HALVINGS = 30
#: what a further step may still gain, in nats
_CLOSE = 1e-11


class LaplaceMarginal(LatentMarginal):
    """The log evidence of a latent process by Laplace's approximation; parameters as of `LatentMarginal`.

    Notes
    -----
    The mode of the last θ is where the next search for it begins: 2 to 4 factors of n³/3 operations each, and 2n³/3
    for the gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.likelihoods.bernoulli import LogitLabels
    >>> x = np.linspace(-3.0, 3.0, 30)
    >>> marginal = LaplaceMarginal(x, (np.sin(x) > 0.0) * 1.0, None, LogitLabels())
    >>> bool(-30 * np.log(2.0) < marginal.value(marginal.start()) < 0.0)
    True
    """

    kind = "laplace"
    _a: FloatArray | None = None
    _f: FloatArray

    @override
    def _approximate(self, work: LatentWorkspace, phi: FloatArray) -> float:
        likelihood, t = self.likelihood, self.t
        a = np.zeros(len(t)) if self._a is None else self._a
        f = work.times_K(a)
        found = likelihood.derivatives(t, f + self.offset, phi)
        height = float(found.value.sum()) - 0.5 * float(a @ f)
        if self._a is not None:
            # the old mode may be worse here than no function at all
            at_zero = float(likelihood.derivatives(t, self.offset, phi).value.sum())
            if not height >= at_zero:
                a, f = np.zeros(len(t)), np.zeros(len(t))
                found, height = likelihood.derivatives(t, self.offset, phi), at_zero
        seen = np.zeros(0)
        self._converged = False
        for count in range(_MOST_STEPS):
            W = likelihood.information(t, f + self.offset, phi).value
            if not _BOUNDED_FIRST <= count < _BOUNDED_AFTER:
                bound = likelihood.bounding(t, f + self.offset, phi)
                W = W if bound is None else bound
            if not np.array_equal(W, seen):
                if not (np.isfinite(W).all() and work.factorise(W)):
                    return -np.inf
                seen = W
            b = W * f + found.slope
            move = b - work.times_R(work.times_K(b)) - a
            change = work.times_K(move)
            # half the squared Newton decrement: what the step gains if the height is quadratic
            gain = 0.5 * float((found.slope - a) @ change)
            step, tried = 1.0, found
            for _ in range(_HALVINGS):
                new_a, new_f = a + step * move, f + step * change
                tried = likelihood.derivatives(t, new_f + self.offset, phi)
                new = float(tried.value.sum()) - 0.5 * float(new_a @ new_f)
                if new >= height - 1e-12 * abs(height):
                    break
                step *= 0.5
            else:
                self._converged = gain < 1e-6
                break
            a, f, found, height = new_a, new_f, tried, new
            if gain < _CLOSE * (1.0 + abs(height)):
                self._converged = True
                break
        self._a, self._f = a, f
        W = likelihood.information(t, f + self.offset, phi).value
        if not work.factorise(W):
            return -np.inf
        return height - work.half_log_det()

    @override
    def _found(self, value: float) -> float:
        value = super()._found(value)
        if np.isfinite(value) and not self._converged:
            self.status = Status.STEP_LIMIT
        return value

    @override
    def _gradient(self, work: LatentWorkspace, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        likelihood, t, f = self.likelihood, self.t, self._f + self.offset
        a = likelihood.derivatives(t, f, phi).slope
        information = likelihood.information(t, f, phi)
        own = likelihood.parameter_derivatives(t, f, phi)
        variances, _ = work.invert()
        # the determinant moves with the mode, and the mode by (K⁻¹ + W)⁻¹K⁻¹ ∂K a
        by_mode = -0.5 * variances * information.slope
        u = by_mode
        if by_mode.any():
            u = by_mode - work.root * work.times_inverse(work.root * work.times_K(by_mode))
        moved = work.times_K(u)
        by_phi = own.value.sum(axis=1) - 0.5 * own.information @ variances + own.slope @ moved
        # ½ aaᵀ + ½(uaᵀ + auᵀ) = ½(a(½a + u)ᵀ + (½a + u)aᵀ)
        return work.pull(a, 0.5 * a + u), by_phi

    @override
    def _posterior_weights(self) -> FloatArray:
        assert self._a is not None
        return self._a.copy()

    @override
    def _marginals(self, work: LatentWorkspace) -> Marginals:
        assert self._a is not None
        variances, left = work.invert()
        cavity = variances / left
        return Marginals(self._f.copy(), variances, self._f - self._a * cavity, cavity)
