r"""What adding or removing one function does to the evidence, for all functions at once.

All is written for the coordinates of the model's singular vectors: :math:`\Phi = QR`, :math:`R = UsV^T`; for a
candidate :math:`\varphi` let :math:`c = U^TQ^T\varphi`, and :math:`\varphi_\perp` what Q leaves of it. Then (Barrio,
Romero and Belanche 2010, eqs 25, 26 and 29, divided so that no unit is left)

.. math:: S/\alpha = |\varphi_\perp|^2/\lambda + \sum\frac{c_k^2}{\lambda+s_k^2},\quad
          Q/\beta = \varphi_\perp^Tt + \sum\frac{\lambda\, c_k\tilde z_k}{\lambda+s_k^2},\quad
          \beta^2R = \sum\frac{s_k^2c_k^2}{(\lambda+s_k^2)^2}

and the gain in well-determined parameters is :math:`(S/\alpha-\beta^2R)/(1+S/\alpha)`, whose numerator D is again a
sum of positive terms. Nothing is squared that is not small, and no difference of large numbers is taken, so wide
gaussians, whose condition numbers pass 1e16, are scored to nearly all digits. The paper's updates for unchanged
precisions (eqs 32-34, 44-46) are differences; they are used where they lose nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.selection.precisions import LEAST_DETERMINED, PrecisionLevel, SingularModel

#: candidates scored at a time, so that what is worked on stays in the cache
BLOCK = 2048


@dataclass(frozen=True, eq=False)
class CandidateSums:
    """S/alpha, Q/beta and D of every candidate; see the module."""

    S: FloatArray
    Q: FloatArray
    D: FloatArray


def candidate_sums(
    small: SingularModel, lam: float, B: FloatArray, perp2: FloatArray, perpt: FloatArray
) -> CandidateSums:
    """Sums of all candidates from B = Q^T F (M, P), their squared lengths outside and inner products with t there."""
    p = len(perp2)
    S, Q, D = perp2 / lam, perpt.copy(), perp2 / lam
    if not len(small.s):
        return CandidateSums(S, Q, D)
    inverse = 1.0 / (small.s2 + lam)
    squares, linear = np.stack([inverse, lam * inverse * inverse]), lam * inverse * small.z
    Ut = np.ascontiguousarray(small.U.T)
    for start in range(0, p, BLOCK):
        part = slice(start, min(start + BLOCK, p))
        C = Ut @ B[:, part]
        Q[part] += linear @ C
        np.multiply(C, C, out=C)
        both = squares @ C
        S[part] += both[0]
        D[part] += both[1]
    return CandidateSums(S, Q, D)


def gains_of_adding(sums: CandidateSums, at: PrecisionLevel) -> FloatArray:
    """Gain of the model evidence (Barrio et al. 2010, eq. 30), the precisions unchanged."""
    one = 1.0 + sums.S
    more = sums.D / one
    gain = sums.Q * sums.Q
    gain *= at.beta / at.lam
    gain /= one
    # three logarithms in one: of 1 + S/alpha, and of the change of what finding the precisions costs
    one *= np.maximum(at.gamma + more, LEAST_DETERMINED)
    one *= np.maximum(at.left - more, LEAST_DETERMINED)
    gain -= np.log(one)
    gain += _occam(at)
    gain *= 0.5
    return gain


def gains_of_removing(small: SingularModel, at: PrecisionLevel) -> FloatArray:
    """Gain (most often a loss) of the model evidence by each function's removal (eq. 42), the precisions unchanged."""
    inverse = 1.0 / (small.s2 + at.lam)
    V2 = (small.Vt**2).T
    h = at.lam * (V2 @ inverse)  # alpha Sigma_ii = 1 - S/alpha
    less = at.lam * (V2 @ (small.s * inverse) ** 2) / h
    mu = small.Vt.T @ (small.s * inverse * small.z)
    gain = -at.lam * at.beta * mu**2 / h - np.log(h)
    gamma, left = np.maximum(at.gamma - less, LEAST_DETERMINED), np.maximum(at.left + less, LEAST_DETERMINED)
    return np.asarray(0.5 * (gain - np.log(gamma * left) + _occam(at)))


def _occam(at: PrecisionLevel) -> float:
    """Twice what finding the precisions of this model costs."""
    return float(np.log(max(at.gamma, LEAST_DETERMINED) * max(at.left, LEAST_DETERMINED)))


def after_adding(
    sums: CandidateSums,
    small: SingularModel,
    lam: float,
    B: FloatArray,
    new: FloatArray,
    length: float,
    own: int,
    column: FloatArray,
) -> CandidateSums:
    r"""Sums after candidate `own` joined the model, the precisions unchanged (eqs 32-34).

    Parameters
    ----------
    sums, small, B
        Of the model before.
    new, length
        New row of B, :math:`q^TF` for the direction q that joins the span, and the length of the candidate along q.
    column
        :math:`Q^T\varphi` of the candidate, before.
    """
    inverse = 1.0 / (small.s2 + lam)
    c = small.U.T @ column
    into = np.stack([small.U @ (lam * inverse * c), small.U @ ((small.s * inverse) ** 2 * c)])
    along, y = into @ B if len(c) else np.zeros((2, len(new)))
    a = along + length * new  # phi_m^T C^-1 phi_i / beta
    s_own = (length**2 + float((lam * inverse) @ c**2)) / lam
    r_own = float((small.s * inverse) ** 2 @ c**2)
    q_own = float(sums.Q[own])
    step = a / (lam * (1.0 + s_own))
    S = sums.S - a * step / lam
    # D = S - beta^2 R, and R changes by eq. 34
    D = S - (sums.S - sums.D - 2.0 * step * y + step**2 * (1.0 + r_own))
    return CandidateSums(S, sums.Q - q_own * step, D)


def after_removing(
    sums: CandidateSums, small: SingularModel, lam: float, B: FloatArray, position: int
) -> CandidateSums:
    """Sums after the function at `position` left the model, the precisions unchanged (eqs 44-46; B from before)."""
    inverse = 1.0 / (small.s2 + lam)
    v = small.Vt[:, position]
    into = np.stack([small.U @ (small.s * inverse * v), small.U @ (small.s * inverse**2 * v)])
    p, y = into @ B
    h = lam * float(inverse @ v**2)
    k = lam**2 * float(inverse**2 @ v**2)
    mu = float(v @ (small.s * inverse * small.z))
    S = sums.S + p**2 / h
    D = S - (sums.S - sums.D - 2.0 * lam * y * p / h + k * (p / h) ** 2)
    return CandidateSums(S, sums.Q + lam * mu * p / h, D)
