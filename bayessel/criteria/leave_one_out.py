"""Each row predicted from all others, hyperparameters held: squared errors, and log densities."""

from __future__ import annotations

from bayessel._check import FloatArray
from bayessel.criteria._criterion import Criterion
from bayessel.fit import Fit
from bayessel.policy import NOISE_SHARE_OF_RATIOS


def _knows_its_rows(fit: Fit) -> bool:
    return fit.leaves_rows_out  # a stream does not


def _squares(fit: Fit) -> FloatArray:
    return fit.leave_one_out().errors ** 2


LOO = Criterion(
    name="loo",
    label="LOO",
    phrase="LOO",
    higher_is_better=False,
    unit="squared units of the target",
    family="prediction",
    column_rank=6,
    question="Leave-one-out: mean squared error of predicting each row from all others (exact, without refitting).",
    distrust="The precisions stay those of all rows, and so does the choice of functions in a sparse model: made with "
    "the row in sight, it is not paid for, so the error of a fit that picked many narrow functions is flattered. Rows "
    "held out, and the prequential length, do not flatter.",
    applies=lambda fit: _knows_its_rows(fit) and not fit.predicts_labels,
    value=lambda fit: fit.leave_one_out().mean_square,
    terms=_squares,
    noise_share=NOISE_SHARE_OF_RATIOS,
)

ELPD_LOO = Criterion(
    name="elpd-loo",
    label="LOO log density",
    phrase="the LOO log density",
    higher_is_better=True,
    unit="nats (sum over rows)",
    family="prediction",
    column_rank=9,
    question="Leave-one-out: sum of the log predictive densities of each row given all others, at the precisions and "
    "with the functions of all rows. Unlike the squared error it also judges the error bars.",
    distrust="It flatters like LOO.",
    applies=_knows_its_rows,
    value=lambda fit: fit.leave_one_out().log_density,
    terms=lambda fit: fit.leave_one_out().log_densities,
    summed=True,
    noise_share=NOISE_SHARE_OF_RATIOS,
)
