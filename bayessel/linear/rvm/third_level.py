r"""Third-level evidence of a sparse model: the precisions integrated out around their maximum.

With each log precision a priori uniform over a range of W, a Gaussian of curvature H around the maximum gives
:math:`\log p(t) \approx L + \sum_j \min(\tfrac12\log(2\pi/h_j), \log W) - (k+1)\log W` over the eigenvalues
:math:`h_j` of H: no direction may be wider than its prior. As in `bayessel.linear.third_level` the constants of two
hyperparameters are left out, so that a model with one function and one precision has the same value here and there.
"""

from __future__ import annotations

import numpy as np

from bayessel.linear._evidence import LOG_2PI
from bayessel.linear.rvm.newton import curvature
from bayessel.linear.rvm.state import RVMState
from bayessel.policy import NOISE_SHARE_OF_EVIDENCES

#: log of the range of each precision: twelve decades
RANGE = float(np.log(1e12))


def interpolates(state: RVMState, n_rows: float, share: float = NOISE_SHARE_OF_EVIDENCES) -> bool:
    """Whether less than a share of the rows is left to the noise, so that its level says little."""
    return n_rows - state.size + float(np.trace(state.V)) < share * n_rows


def model_evidence(state: RVMState, n_rows: float, log_evidence: float) -> float:
    """Laplace's approximation over log precisions of weights and noise, in nats."""
    widths = np.linalg.eigvalsh(curvature(state, n_rows, True))
    least = 2.0 * np.pi / RANGE**2
    occam = 0.5 * (LOG_2PI - np.log(np.maximum(widths, least)))
    return float(log_evidence + occam.sum() - LOG_2PI - (state.size - 1) * np.log(RANGE))
