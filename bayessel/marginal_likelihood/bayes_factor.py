"""The odds between two models of the same data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from bayessel._text import number
from bayessel.errors import DataMismatchError
from bayessel.marginal_likelihood.model_evidence import ModelEvidence
from bayessel.pages.result_view import ResultView, ShownResult, Standing
from bayessel.policy import STRONG_NATS


@dataclass(frozen=True)
class BayesFactor(ShownResult):
    """How much more probable one model makes the data than another.

    Attributes
    ----------
    log_factor, error : float
        log p(data | first) − log p(data | second) in nats, and its standard error.
    reliable : bool
        Whether both evidences are.
    """

    log_factor: float
    error: float
    reliable: bool

    def __float__(self) -> float:
        return self.log_factor

    @property
    def probability(self) -> float:
        """Posterior probability of the first model, when both were equally probable before."""
        return float(expit(self.log_factor))

    def _view(self) -> ResultView:
        better, nats = ("first" if self.log_factor > 0.0 else "second"), abs(self.log_factor)
        odds = f"{number(float(np.exp(nats)))} to 1" if nats < 13.8 else f"10^{nats / np.log(10.0):.1f} to 1"
        if nats < 2.0 * self.error:
            said = "the error is larger than half the difference: the two cannot be told apart with these runs"
        elif nats < 1.0:
            said = "the data hardly prefer one of them"
        elif nats < STRONG_NATS:
            said = f"the data prefer the {better}, not strongly"
        else:
            said = f"the data strongly prefer the {better}"
        doubt = "" if self.reliable else "; at least one of the evidences is not reliable"
        value = f"log Bayes factor {self.log_factor:.2f} ± {self.error:.2g} nats"
        title = f"{value}, odds {odds} for the {better}"
        standing = Standing.GOOD if self.reliable and nats >= STRONG_NATS else Standing.REMARK
        return ResultView(title, said + doubt, standing if self.reliable else Standing.DOUBT)


def bayes_factor(first: ModelEvidence, second: ModelEvidence) -> BayesFactor:
    """Log Bayes factor of two models of the same data, with its error.

    Parameters
    ----------
    first, second : ModelEvidence
        What `bayessel.evidence` returned for each.

    Returns
    -------
    BayesFactor
        `print` it for a sentence.

    Raises
    ------
    DataMismatchError
        What was observed differs.
    ValueError
        The prior of one of them does not integrate to one, so that the factor has no meaning.

    Examples
    --------
    >>> import pymc as pm, bayessel as bs
    >>> def coin(a, b):
    ...     with pm.Model() as model:
    ...         pm.Binomial("heads", 10, pm.Beta("p", a, b), observed=9)
    ...     return bs.evidence(model, random_seed=1)
    >>> print(bs.bayes_factor(coin(1, 1), coin(50, 50)))
    log Bayes factor 1.99 ± 1.4e-09 nats, odds 7.279 to 1 for the first: the data prefer the first, not strongly
    """
    for name, one in (("first", first), ("second", second)):
        if not isinstance(one, ModelEvidence):
            said = f"{name} must be what bayessel.evidence returns, got {type(one).__name__}"
            raise TypeError(f"{said}; call bayessel.evidence on it first")
        if one.comparable:
            raise ValueError(
                f"the evidence of the {name} model cannot be compared: {one.comparable}; give it priors that integrate "
                "to one, such as pm.Normal with a wide sigma"
            )
        if not np.isfinite(one.value):
            raise ValueError(f"the evidence of the {name} model has no value: {one.verdict}")
    if first.target_fingerprint != second.target_fingerprint:
        raise DataMismatchError(
            f"the two models observed different data (fingerprints {first.target_fingerprint} and "
            f"{second.target_fingerprint}): their evidences cannot be compared"
        )
    return BayesFactor(
        first.value - second.value, float(np.hypot(first.error, second.error)), first.reliable and second.reliable
    )
