r"""Laplace's approximation of a linear model with any likelihood: its mode, log evidence and exact gradient.

With columns divided by the roots of their precisions, :math:`f = Gz` and :math:`z\sim N(0, I)`, and W the information
of the rows at the mode :math:`\hat z` of :math:`\log p(t|Gz) - \tfrac12z^Tz`,

.. math:: L = \log p(t|\hat f) - \tfrac12\hat z^T\hat z - \tfrac12\log|I + G^TWG|.

The gradient follows the mode too. With :math:`v_n = g_n^T(I + G^TWG)^{-1}g_n`, C the curvature,
:math:`h = \tfrac12v\,\partial W/\partial f` and :math:`q = (I + G^TCG)^{-1}G^Th`, by the log precision of a column

.. math:: \frac{\partial L}{\partial\log\alpha_m} =
    \tfrac12\bigl(1 - [(I + G^TWG)^{-1}]_{mm} - \hat z_m^2\bigr) + \hat z_mq_m,

and by a parameter of the likelihood
:math:`\sum_n\partial_\phi\log p - \tfrac12v^T\partial_\phi W - (Gq)^T\partial_\phi s`. References: Williams and Barber
(1998); Rasmussen and Williams (2006), sections 3.4 and 5.5.1; Tipping (2001), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from bayessel._check import FloatArray
from bayessel.likelihoods import Likelihood
from bayessel.likelihoods.base import Derivatives, Information, ParameterDerivatives
from bayessel.likelihoods.tilted_quadrature import Tilted

#: Newton steps at most, halvings of one, and the rise of the log joint density that a last step promises
_STEPS, _HALVINGS, CLOSE = 200, 120, 1e-15
#: steps by bounds of the likelihood in the beginning, and steps after which there are no others (likelihoods whose
#: information is an expectation)
_BOUNDED_FIRST, _BOUNDED_AFTER = 5, 60
#: relative rounding of a log joint density
_ROUNDING = 1e-12
#: a row takes at most this part of its own variance away, so that the others still say something
_LARGEST_LEVERAGE = 1.0 - 1e-12


@dataclass(frozen=True, eq=False)
class LatentTargets:
    """Targets (N,), their likelihood, and how often each row counts; None: once."""

    likelihood: Likelihood
    t: FloatArray
    count: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        """Rows."""
        return len(self.t)

    def derivatives(self, f: FloatArray, phi: FloatArray) -> Derivatives:
        """log p and its derivatives by f, each row as often as it counts."""
        found = self.likelihood.derivatives(self.t, f, phi)
        return found if self.count is None else Derivatives(*(self.count * each for each in found))

    def information(self, f: FloatArray, phi: FloatArray, known: Derivatives | None = None) -> Information:
        """Information of the rows and its derivative by f; `known` are the derivatives there."""
        if known is not None and type(self.likelihood).information is Likelihood.information:
            return Information(known.curvature, -known.third)
        found = self.likelihood.information(self.t, f, phi)
        return found if self.count is None else Information(*(self.count * each for each in found))

    def bounding(self, f: FloatArray, phi: FloatArray) -> FloatArray | None:
        """Precisions of normal densities that lie below those of the rows and touch them at f; None: not needed."""
        found = self.likelihood.bounding(self.t, f, phi)
        return found if found is None or self.count is None else self.count * found

    def parameter_derivatives(self, f: FloatArray, phi: FloatArray) -> ParameterDerivatives:
        """Derivatives by the parameters of the likelihood."""
        found = self.likelihood.parameter_derivatives(self.t, f, phi)
        return found if self.count is None else ParameterDerivatives(*(self.count * each for each in found))


@dataclass(frozen=True, eq=False)
class LaplaceMode:
    """The normal distribution about the mode.

    Attributes
    ----------
    targets : LatentTargets
    G : (N, k) array
        Columns divided by the roots of their precisions.
    phi : array
        Parameters of the likelihood.
    z, f : (k,), (N,) arrays
        The mode, as weights and as latent values.
    log_joint, log_evidence : float
        log p(t, z) without the constant of the prior; L.
    slope, information, information_slope, curvature : (N,) arrays
        Of the likelihood at the mode.
    root : (k, k) array
        Lower triangular factor of I + GᵀWG.
    steps : int
        Newton steps.
    converged : bool
        Whether the last of them was as small as asked for.
    """

    targets: LatentTargets
    G: FloatArray
    phi: FloatArray
    z: FloatArray
    f: FloatArray
    log_joint: float
    log_evidence: float
    slope: FloatArray
    information: FloatArray
    information_slope: FloatArray
    curvature: FloatArray
    root: FloatArray
    steps: int
    converged: bool

    @cached_property
    def spread(self) -> FloatArray:
        """R⁻ᵀGᵀ, (k, N), of the factor R: the columns' squares sum to the variances of f."""
        return np.asarray(solve_triangular(self.root, self.G.T, lower=True, check_finite=False))

    @cached_property
    def variance(self) -> FloatArray:
        """Variances of f at the rows, (N,)."""
        return np.asarray(np.einsum("kn,kn->n", self.spread, self.spread))

    @cached_property
    def own_variance(self) -> FloatArray:
        """Variances of z, (k,)."""
        inverse = solve_triangular(self.root, np.eye(len(self.z)), lower=True, check_finite=False)
        return np.asarray((inverse**2).sum(axis=0))

    @property
    def gamma(self) -> float:
        """Well-determined weights, tr(I − Cov z)."""
        return float(len(self.z) - self.own_variance.sum())

    def latent(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances of f at new rows of G, (n, k)."""
        away = solve_triangular(self.root, rows.T, lower=True, check_finite=False)
        return rows @ self.z, np.asarray(np.einsum("kn,kn->n", away, away))

    def gradient(self) -> tuple[FloatArray, FloatArray]:
        """Of the log evidence: by the log precision of each column, (k,), and by φ."""
        v, parameters = self.variance, self.targets.parameter_derivatives(self.f, self.phi)
        h = 0.5 * v * self.information_slope
        by_phi = parameters.value.sum(axis=1) - 0.5 * parameters.information @ v
        by_columns = 0.5 * (1.0 - self.own_variance - self.z**2)
        if h.any():
            q = self._against_mode(self.G.T @ h)
            by_columns = by_columns + self.z * q
            by_phi = by_phi - parameters.slope @ (self.G @ q)
        return by_columns, by_phi

    def _against_mode(self, b: FloatArray) -> FloatArray:
        """(I + GᵀCG)⁻¹b with the curvature C, which moves the mode."""
        if np.array_equal(self.curvature, self.information):
            first = solve_triangular(self.root, b, lower=True, check_finite=False)
            return np.asarray(solve_triangular(self.root, first, lower=True, trans="T", check_finite=False))
        H = np.eye(len(self.z)) + self.G.T @ (self.curvature[:, None] * self.G)
        return np.asarray(np.linalg.solve(H, b))

    def cavity(self) -> tuple[FloatArray, FloatArray]:
        """Means and variances of f at each row from the other rows, (N,) each: its own normal site taken away."""
        left = 1.0 - np.minimum(self.variance * self.information, _LARGEST_LEVERAGE)
        variance = self.variance / left
        return self.f - variance * self.slope, variance

    def left_out(self) -> Tilted:
        """Log densities of each row from the others, with their derivatives."""
        mean, variance = self.cavity()
        return self.targets.likelihood.tilted(self.targets.t, mean, np.maximum(variance, 1e-300), self.phi)


def find_mode(
    targets: LatentTargets, G: FloatArray, phi: FloatArray, start: FloatArray | None = None, close_to: float = CLOSE
) -> LaplaceMode:
    """The mode by Newton's method with the information of the rows, steps halved until the density rises.

    Parameters
    ----------
    targets
        What is modelled.
    G
        Columns divided by the roots of their precisions, (N, k).
    phi
        Parameters of the likelihood.
    start
        Weights z to begin with; None: zero.
    close_to
        Rise of the log joint density, relative to its size, that the last step may promise.
    """
    z, f = np.zeros(G.shape[1]), np.zeros(len(G))
    at = targets.derivatives(f, phi)
    value = float(at.value.sum())
    if start is not None:
        there = G @ start
        beside = targets.derivatives(there, phi)
        higher = float(beside.value.sum() - 0.5 * start @ start)
        if higher > value:  # never a number where the start is none
            z, f, at, value = start, there, beside, higher
    converged, steps = False, 0
    for count in range(_STEPS):
        bound = None if _BOUNDED_FIRST <= count < _BOUNDED_AFTER else targets.bounding(f, phi)
        root = _factor(G, targets.information(f, phi, at).value if bound is None else bound)
        g = G.T @ at.slope - z
        step = solve_triangular(root, g, lower=True, check_finite=False)
        promise = 0.5 * float(step @ step)
        step = solve_triangular(root, step, lower=True, trans="T", check_finite=False)
        close = promise <= close_to * (1.0 + abs(value))
        moved = G @ step
        length = 1.0
        for _ in range(_HALVINGS):
            new = targets.derivatives(f + length * moved, phi)
            to = z + length * step
            risen = float(new.value.sum() - 0.5 * to @ to)
            if risen >= value - (_ROUNDING * (1.0 + abs(value)) if close else 0.0):
                break
            length *= 0.5
        else:
            break  # nothing rises beyond rounding
        steps += 1
        z, at, value = to, new, risen
        f = f + length * moved
        if close:
            converged = True
            break
    found = targets.information(f, phi, at)
    root = _factor(G, found.value)
    evidence = value - float(np.log(np.diag(root)).sum())
    return LaplaceMode(
        targets, G, phi, z, f, value, evidence, at.slope, found.value, found.slope, at.curvature, root, steps, converged
    )


def _factor(G: FloatArray, information: FloatArray) -> FloatArray:
    """Lower triangular factor of I + GᵀWG."""
    weighed = np.sqrt(information)[:, None] * G
    S = weighed.T @ weighed
    S[np.diag_indices_from(S)] += 1.0
    try:
        return np.asarray(cholesky(S, lower=True, check_finite=False))
    except LinAlgError:  # rounding of huge entries
        S[np.diag_indices_from(S)] += 4.0 * np.finfo(float).eps * len(S) * np.trace(S)
        return np.asarray(cholesky(S, lower=True, check_finite=False))
