r"""Minimum description length of a sparse linear model (Anguita and Gagliolo): how short it makes the data, in nats.

A two-part code sends the parameters to a stated precision :math:`\delta`, which of the :math:`k_0` candidates they
belong to (the flags :math:`\gamma`), and the data given both. The k weights themselves:

.. math:: \text{MDL-}w = \tfrac n2\log\sigma^2 + \frac{\|t-\Phi w\|^2}{2\sigma^2} + \sum\log|w_i| - k\log\delta_w
          + L(\gamma)

(the middle sum is the scale-free prior :math:`1/|w_i|`), or the logarithms of their precisions, with the weights
integrated out:

.. math:: \text{MDL-}\alpha = \tfrac12\log|C| + \tfrac12 t^TC^{-1}t - k\log\delta_\alpha + L(\gamma)

whose first two terms are minus the log evidence without its :math:`\tfrac n2\log2\pi`. Dropped everywhere alike:
:math:`\tfrac n2\log2\pi - n\log\delta_t` (:math:`\delta_t`, the precision of the targets: give it and this is added),
the normalisers of the two flat priors over logarithms (O(1) per parameter, not to be told from :math:`\delta`), and the
cost of the noise level and of the width. So only differences between fits of the same data mean something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bayessel._check import as_count, as_positive, one_of
from bayessel._formulas import FLAGS, flag_code_length, target_code_length
from bayessel.criteria.description_length import PRECISION_DELTA, WEIGHT_DELTA, precisions_sent, weights_sent
from bayessel.diagnostics.fit_reader import read

if TYPE_CHECKING:
    import xarray as xr
    from sklearn.base import BaseEstimator

    from bayessel.fit import Fit


def flag_length(k: int, n_candidates: int, code: str = FLAGS[0]) -> float:
    r"""Nats that say which k of :math:`k_0` candidates are in use.

    Parameters
    ----------
    k, n_candidates
        k and :math:`k_0`.
    code
        'index': k + 1 numbers up to :math:`k_0`, :math:`(k+1)\log k_0`, which charges large models linearly.
        'bernoulli': a string of :math:`k_0` bits with their frequency sent first,
        :math:`\log k_0 - k\log\frac k{k_0} - (k_0-k)\log(1-\frac k{k_0})`, symmetric around :math:`k_0/2`: it is
        :math:`\log k_0` both for no column and for all of them.

    Examples
    --------
    >>> round(flag_length(25, 201), 2), round(flag_length(25, 201, "bernoulli"), 2)
    (137.89, 80.79)
    """
    one_of(code, "flags", FLAGS)
    as_count(n_candidates, "n_candidates")
    if as_count(k, "k", 0) > n_candidates:
        raise ValueError(f"k must be at most n_candidates, got {k} of {n_candidates}")
    return flag_code_length(k, n_candidates, code)


def mdl_w(
    fitted: Fit | BaseEstimator | xr.DataTree,
    delta: float = WEIGHT_DELTA,
    flags: str = FLAGS[0],
    target_precision: float | None = None,
) -> float:
    r"""Description length of the data when the weights are sent, in nats: smaller is better.

    Distrust it where the noise is at its floor (the first term falls without end) and where the choice of `delta`
    decides: weights much smaller than `delta` are charged less than nothing.

    Parameters
    ----------
    fitted
        A result of `fit_rvm`, `fit_evidence` or `fit_ridge`, or a fitted estimator. A fit that leaves no column out is
        charged as :math:`k = k_0`. Weights that vanish (they move the fit by less than a millionth of the noise) are
        not sent. Or a trace of `bayessel.models.linear` or `rvm` on a design, explicit or collapsed: its mean weights
        are sent, all of them.
    delta
        Precision to which every weight is sent, in the units of the weights.
    flags
        'index' or 'bernoulli', see `flag_length`.
    target_precision
        Precision of the target's numbers; given, the length is that of the whole message and comparable with other
        ways to send the targets, up to O(1) per weight.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.linear import fit_evidence
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> t = x[:, 0] - 2 * x[:, 0] ** 3 + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> lengths = [mdl_w(fit_evidence(x ** np.arange(degree + 1), t)) for degree in (1, 3, 7)]
    >>> int(np.argmin(lengths))  # the cubic
    1
    """
    return _sent(weights_sent, fitted, delta, flags, target_precision)


def mdl_alpha(
    fitted: Fit | BaseEstimator | xr.DataTree,
    delta: float = PRECISION_DELTA,
    flags: str = FLAGS[0],
    target_precision: float | None = None,
) -> float:
    r"""Description length of the data when the weight precisions are sent, in nats: smaller is better.

    It is minus the log evidence (the constant apart) plus a price per precision and the flags, so that sparse models
    with one precision per column compare with dense ones that share a single one.

    Parameters
    ----------
    fitted
        A result of `fit_rvm`, `fit_evidence` or `fit_ridge`, a fitted estimator, or a trace as for `mdl_w`, whose
        geometric mean precisions are sent, given its mean intercept.
    delta
        Precision to which every :math:`\log\alpha_i` is sent.
    flags, target_precision
        As in `mdl_w`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.linear import fit_evidence, fit_rvm
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(40, 10))
    >>> t = 3.0 * Phi[:, 2] - Phi[:, 7] + 0.1 * rng.normal(size=40)
    >>> bool(mdl_alpha(fit_rvm(Phi, t)) < mdl_alpha(fit_evidence(Phi, t)))  # two functions of ten are enough
    True
    """
    return _sent(precisions_sent, fitted, delta, flags, target_precision)


def _sent(
    length: Callable[[Fit, float, str], float],
    fitted: Fit | BaseEstimator | xr.DataTree,
    delta: float,
    flags: str,
    precision: float | None,
) -> float:
    """A description length with checked settings; that of the whole message, if the targets have a precision."""
    delta = as_positive(delta, "delta")
    one_of(flags, "flags", FLAGS)
    at = read(fitted)
    at.message("fitted")
    value = length(at.fit, delta, flags)
    if precision is None:
        return value
    return value + target_code_length(at.fit.n_rows, as_positive(precision, "target_precision"))
