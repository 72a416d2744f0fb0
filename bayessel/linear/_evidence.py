r"""The Gaussian log density of the targets: the one place where its constants stand."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray

LOG_2PI = float(np.log(2.0 * np.pi))


def log_density[L: (float, FloatArray)](
    n_rows: float, log_beta: L, log_det: L, misfit: L, spread2: float | None = None
) -> L:
    r"""Return :math:`\log p(t|\alpha,\beta)` in nats.

    .. math:: -\tfrac12[N\log 2\pi - n\log\beta + \log|I + \Phi\Phi^T/\lambda| + \beta q]

    with n = N. A centred design has a bias with a flat prior: integrating over it leaves n = N - 1, and a prior density
    of :math:`1/(\sqrt{2\pi}s_t)`, s_t the standard deviation of the target, adds :math:`-\tfrac12\log\|t_c\|^2`. That
    is the same for all models of one data set, and such that rescaling t by s adds exactly -N log s.

    Parameters
    ----------
    n_rows
        N; of rows with weights their sum.
    log_beta
        Logarithm of the noise precision.
    log_det, misfit
        :math:`\log|I + \Phi\Phi^T/\lambda|` and :math:`\beta q`, :math:`q = t^T(I+\Phi\Phi^T/\lambda)^{-1}t`; with a
        bias, of the centred arrays.
    spread2
        :math:`\|t_c\|^2` with a bias, None without.
    """
    n_free, flat = (n_rows, 0.0) if spread2 is None else (n_rows - 1, float(np.log(spread2)))
    value: L = -0.5 * (n_rows * LOG_2PI - n_free * log_beta + log_det + misfit + flat)
    return value
