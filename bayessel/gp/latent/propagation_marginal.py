r"""Expectation propagation for a latent Gaussian process: every row becomes a normal site that has the row's moments.

Without its own site the latent value of a row is normal with mean m and variance v; the site is the one by which this
normal gets the mean and variance of :math:`p(t_i|f)N(f|m, v)` (Minka 2001; Rasmussen and Williams 2006, section 3.6).
All sites are renewed at a time: one factor and one inverse for n of them.
"""

from __future__ import annotations

from typing import override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel.covariance import Covariance
from bayessel.fit import Status
from bayessel.gp.latent.latent_process import LatentMarginal, LatentWorkspace, Marginals
from bayessel.likelihoods import Likelihood

#: rounds at most; every further round after these moves the sites by less
_MOST_ROUNDS, _SLOWER_AFTER = 200, 10
#: sites are at rest when the evidence moves by less, in nats, and the moments by less, in units of the function
_CLOSE, _AT_REST = 1e-8, 1e-6


class PropagationMarginal(LatentMarginal):
    """The log evidence of a latent process by expectation propagation; parameters as of `LatentMarginal`.

    For log-concave likelihoods, whose sites all have positive precisions.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.likelihoods.bernoulli import ProbitLabels
    >>> x = np.linspace(-3.0, 3.0, 30)
    >>> marginal = PropagationMarginal(x, (np.sin(x) > 0.0) * 1.0, None, ProbitLabels())
    >>> bool(-30 * np.log(2.0) < marginal.value(marginal.start()) < 0.0)
    True
    """

    kind = "ep"
    _sites: tuple[FloatArray, FloatArray] | None = None

    def __init__(
        self,
        X: ArrayLike,
        t: ArrayLike,
        covariance: Covariance | None,
        likelihood: Likelihood,
        offset: ArrayLike | None = None,
    ) -> None:
        if not likelihood.log_concave:
            raise ValueError(
                f"expectation propagation wants a log-concave likelihood, got {likelihood.name!r}, whose sites may "
                "have negative precisions; use Laplace's approximation"
            )
        super().__init__(X, t, covariance, likelihood, offset)

    @override
    def _approximate(self, work: LatentWorkspace, phi: FloatArray) -> float:
        t, n = self.t, len(self.t)
        if self._sites is None:
            # what Laplace's approximation has at no function
            tau = self.likelihood.information(t, self.offset, phi).value
            nu = self.likelihood.derivatives(t, self.offset, phi).slope
        else:
            tau, nu = self._sites
        before, self._converged = np.inf, False
        for count in range(_MOST_ROUNDS):
            if not (np.isfinite(tau).all() and work.factorise(tau)):
                return -np.inf
            half_log_det = work.half_log_det()
            prior_mean = work.times_K(nu)
            weights = nu - work.times_R(prior_mean)
            mean = work.times_K(weights)
            variance, left = work.invert()
            cavity = variance / left
            cavity_mean = mean - (nu - tau * mean) * cavity
            tilted = self.likelihood.tilted(t, cavity_mean + self.offset, cavity, phi)
            value = 0.5 * float(nu @ mean) - half_log_det + float(tilted.log_z.sum())
            value += 0.5 * float((cavity_mean**2 / cavity - mean**2 / variance - np.log(left)).sum())
            share = 1.0 - cavity * tilted.curvature
            share = np.maximum(share, 1e-12)
            new_tau = np.maximum(tilted.curvature, 0.0) / share
            new_nu = (tilted.slope + cavity_mean * new_tau * share) / share
            # what the sites would have the means be
            off = np.abs(cavity * tilted.slope - (mean - cavity_mean)) / np.sqrt(variance)
            self._weights, self._seen = weights, Marginals(mean, variance, cavity_mean, cavity)
            self._parameters, self._root = tilted.parameters.sum(axis=1), work.root.copy()
            if abs(value - before) < _CLOSE * (1.0 + 1e-4 * n) and float(off.max(initial=0.0)) < _AT_REST:
                self._converged = True
                break
            before = value
            step = 1.0 if count < _SLOWER_AFTER else 0.7
            tau, nu = tau + step * (new_tau - tau), nu + step * (new_nu - nu)
        self._sites = tau, nu
        return value

    @override
    def _found(self, value: float) -> float:
        value = super()._found(value)
        if np.isfinite(value) and not self._converged:
            self.status = Status.STEP_LIMIT
        return value

    @override
    def _gradient(self, work: LatentWorkspace, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        # at rest the evidence does not move with the sites
        b = self._weights
        return work.pull(b, 0.5 * b), self._parameters

    @override
    def _posterior_weights(self) -> FloatArray:
        return self._weights.copy()

    @override
    def _marginals(self, work: LatentWorkspace) -> Marginals:
        return self._seen
