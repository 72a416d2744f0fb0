r"""From outputs of a least-squares classifier to probabilities: a logistic slope fitted to leave-one-out outputs.

The output f of a model fitted to labels :math:`\pm1` estimates :math:`2p - 1`, shrunk and overdrawn: its sign is a
label, its size not yet a probability. :math:`p = \sigma(b f)` is, with b fitted to outputs that each row's own label
had no part in. There is no intercept, so the probability and the label always agree. The posterior of b is summed on a
grid: few rows, or classes that leave-one-out parts without a fault, give cautious probabilities instead of 0 and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from bayessel._check import FloatArray

#: prior of log b: p = (1 + f)/2 has the slope b = 2 at f = 0, right or wrong by a factor of 4 or so
PRIOR_MEDIAN, PRIOR_SPREAD = 2.0, 1.5
_RANGE = (np.log(1e-4), np.log(1e4))


class LogisticSlope:
    """p(y = 1 | f) = ∫ σ(b f) p(b | outputs) db, log b ~ N(log 2, 1.5²).

    Parameters
    ----------
    outputs : (N,) array
        Leave-one-out outputs.
    labels : (N,) array
        -1 and 1.
    weights : None or (N,) array
        Weights of the rows, of mean 1.
    """

    def __init__(self, outputs: FloatArray, labels: FloatArray, weights: FloatArray | None = None) -> None:
        margin = outputs * labels
        omega = np.ones(len(margin)) if weights is None else weights
        log_b = np.linspace(*_RANGE, 101)
        log_posterior = _log_posterior(log_b, margin, omega)
        # once more where the posterior is, as finely as it is narrow
        seen = log_b[log_posterior > log_posterior.max() - 25.0]
        step = log_b[1] - log_b[0]
        log_b = np.linspace(max(seen[0] - step, _RANGE[0]), min(seen[-1] + step, _RANGE[1]), 101)
        log_posterior = _log_posterior(log_b, margin, omega)
        kept = log_posterior > log_posterior.max() - 25.0
        self.b = np.exp(log_b[kept])
        self.share = np.exp(log_posterior[kept] - logsumexp(log_posterior[kept]))

    @property
    def slope(self) -> float:
        """Posterior mean of b."""
        return float(self.share @ self.b)

    def probability(self, outputs: Any) -> FloatArray:
        """Probability of the label 1; one half at an output of 0, and increasing."""
        f = np.asarray(outputs, dtype=np.float64)
        p = np.zeros(f.shape)
        for b, share in zip(self.b, self.share, strict=True):
            p += share * expit(b * f)
        return beside_label(p, f)  # the sum may round to the wrong side of one half, or of one


def beside_label(p: FloatArray, f: FloatArray) -> FloatArray:
    """Probabilities on the side of the label, the sign of the output f; one half where that is 0."""
    above, below = np.clip(p, np.nextafter(0.5, 1.0), 1.0), np.clip(p, 0.0, np.nextafter(0.5, 0.0))
    return np.where(f > 0.0, above, np.where(f < 0.0, below, 0.5))


def _log_posterior(log_b: FloatArray, margin: FloatArray, omega: FloatArray) -> FloatArray:
    likelihood = [-(omega @ np.logaddexp(0.0, -value * margin)) for value in np.exp(log_b)]
    return np.asarray(likelihood - 0.5 * ((log_b - np.log(PRIOR_MEDIAN)) / PRIOR_SPREAD) ** 2)
