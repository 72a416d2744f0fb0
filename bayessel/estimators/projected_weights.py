r"""Weights under which a few functions come closest to the predictions of a large model.

The large model predicts means :math:`m_i` with variances :math:`v_i` at places that count :math:`c_i`. The few predict
:math:`b + \phi_i^T w` there, and

.. math:: \min_{w, b} \sum_i \frac{c_i}{v_i}\bigl(m_i - b - \phi_i^T w\bigr)^2

is, to second order, the smallest Kullback-Leibler divergence of predictions about another mean (Goutis and Robert
1998; Piironen, Paasiniemi and Vehtari 2020). It never looks at the noisy targets: what the large model knows of them
goes into the weights of the few.
"""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray

#: directions of the functions, scaled to length one, whose share is less than this are rounding
LEAST_DIRECTION = 1e-6
#: what is left of a column without its mean, of its size, below which the column is a constant
LEAST_SHARE = 1e-10


def projected_weights(
    columns: FloatArray, means: FloatArray, variances: FloatArray, counts: FloatArray, bias: bool
) -> tuple[FloatArray, float]:
    """Weights of the columns (N, k) and of the bias, 0 without one."""
    known = counts / variances
    middles, middle = np.zeros(columns.shape[1]), 0.0
    if bias:  # columns far from zero lie in the span of the bias but for their last digits
        middles, middle = known @ columns / known.sum(), float(known @ means / known.sum())
    root = np.sqrt(known)
    design = root[:, None] * (columns - middles)
    lengths, sizes = (np.sqrt((known[:, None] * part**2).sum(axis=0)) for part in (columns - middles, columns))
    varying = lengths > LEAST_SHARE * sizes
    weights = np.zeros(columns.shape[1])
    unit = design[:, varying] / lengths[varying]
    weights[varying] = np.linalg.lstsq(unit, root * (means - middle), rcond=LEAST_DIRECTION)[0] / lengths[varying]
    return weights, middle - float(middles @ weights)
