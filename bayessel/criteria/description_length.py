"""Minimum description length of a linear model: how short a message sends its parameters and then the data."""

from __future__ import annotations

from bayessel._formulas import FLAGS, flag_code_length, precision_code_length, weight_code_length
from bayessel.criteria._criterion import Criterion
from bayessel.criteria.capabilities import Message, Sendable, counted_rows
from bayessel.fit import Fit
from bayessel.policy import NOISE_SHARE_OF_RATIOS

#: precisions to which weights, and logarithms of their precisions, are sent
WEIGHT_DELTA, PRECISION_DELTA = 0.1, 1.0


def weights_sent(fit: Fit, delta: float = WEIGHT_DELTA, flags: str = FLAGS[0]) -> float:
    """Length of the message that sends the weights, in nats."""
    message = _message(fit)
    which = flag_code_length(len(message.weights), message.n_candidates, flags)
    return weight_code_length(message.sum_squares, message.beta, message.weights, counted_rows(fit), delta, which)


def precisions_sent(fit: Fit, delta: float = PRECISION_DELTA, flags: str = FLAGS[0]) -> float:
    """Length of the message that sends the precisions of the weights, in nats."""
    message = _message(fit)
    which = flag_code_length(len(message.weights), message.n_candidates, flags)
    evidence = fit.log_evidence if message.log_evidence is None else message.log_evidence
    return precision_code_length(evidence, counted_rows(fit), message.n_precisions, delta, which)


def _message(fit: Fit) -> Message:
    assert isinstance(fit, Sendable)
    return fit.message()


MDL_W = Criterion(
    name="mdl-w",
    label="MDL-w",
    phrase="MDL-w",
    higher_is_better=False,
    unit="nats, up to a constant",
    family="mdl",
    column_rank=1,
    question="Minimum description length that sends the weights: the residuals at the noise level of the fit, every "
    "weight to a precision delta (0.1), and the numbers of the functions in use. Each function has to save what it "
    "costs, about ln k0 + ln |w| - ln delta nats (k0: functions on offer); so it prefers few.",
    distrust="Distrust it where the noise is at its floor, and where the choice of delta decides.",
    applies=lambda fit: isinstance(fit, Sendable),
    value=weights_sent,
    charges_functions=True,
    noise_share=NOISE_SHARE_OF_RATIOS,
)

MDL_ALPHA = Criterion(
    name="mdl-alpha",
    label="MDL-alpha",
    phrase="MDL-alpha",
    higher_is_better=False,
    unit="nats, up to a constant",
    family="mdl",
    column_rank=2,
    question="Minimum description length that sends the precisions alpha instead of the weights (delta 1): minus the "
    "log evidence, and about ln k0 nats for each function in use. Compare it with the evidence: the difference is the "
    "price per function.",
    distrust="Distrust it wherever the evidence is not to be trusted.",
    applies=lambda fit: isinstance(fit, Sendable),
    value=precisions_sent,
    charges_functions=True,
)

#: the precision that the length of each name is computed with
DELTAS = {MDL_W.name: WEIGHT_DELTA, MDL_ALPHA.name: PRECISION_DELTA}
