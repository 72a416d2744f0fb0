r"""Errors estimated from N, :math:`S = t^TP^2t` and tr P alone (Orr 1996, section 5): GCV, UEV, FPE, BIC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayessel._check import FloatArray
from bayessel._formulas import (
    bayesian_information,
    final_prediction_error,
    generalised_cross_validation,
    unbiased_variance,
)
from bayessel.criteria._criterion import Criterion
from bayessel.criteria.capabilities import Smoother, counted_rows
from bayessel.fit import Fit
from bayessel.policy import NOISE_SHARE_OF_EXPANSIONS, NOISE_SHARE_OF_RATIOS

_SQUARES = "squared units of the target"


def _of(formula: Callable[[float, float | FloatArray, float | FloatArray], FloatArray]) -> dict[str, Any]:
    def value(fit: Fit) -> float:
        assert isinstance(fit, Smoother)
        n = counted_rows(fit)
        return float(formula(n, fit.sum_squares, n - fit.effective_parameters))

    return {"applies": lambda fit: isinstance(fit, Smoother), "value": value, "of_sums": formula}


GCV = Criterion(
    name="gcv",
    label="GCV",
    phrase="GCV",
    higher_is_better=False,
    unit=_SQUARES,
    family="prediction",
    column_rank=5,
    question="Generalised cross-validation: estimated mean squared prediction error on new rows, as if rows were left "
    "out one by one, with the same leverage for all.",
    distrust="Distrust it where the functions were chosen by the same rows, and where few rows are left to the noise.",
    noise_share=NOISE_SHARE_OF_RATIOS,
    **_of(generalised_cross_validation),
)

UEV = Criterion(
    name="uev",
    label="UEV",
    phrase="UEV",
    higher_is_better=False,
    unit=_SQUARES,
    family="prediction",
    column_rank=12,
    question="Unbiased estimate of the noise variance: the residuals, with gamma parameters paid for. The mildest.",
    distrust="Distrust it where gamma is not small beside the number of rows.",
    noise_share=NOISE_SHARE_OF_EXPANSIONS,
    **_of(unbiased_variance),
)

FPE = Criterion(
    name="fpe",
    label="FPE",
    phrase="FPE",
    higher_is_better=False,
    unit=_SQUARES,
    family="prediction",
    column_rank=11,
    question="Final prediction error: the residuals corrected for gamma parameters; milder than GCV.",
    distrust="Distrust it where gamma is not small beside the number of rows.",
    noise_share=NOISE_SHARE_OF_EXPANSIONS,
    **_of(final_prediction_error),
)

BIC = Criterion(
    name="bic",
    label="BIC",
    phrase="BIC",
    higher_is_better=False,
    unit=_SQUARES,
    family="parsimony",
    column_rank=7,
    question="Bayesian information criterion in its error form: every parameter costs ln N instead of 2, so it leans "
    "to smoother fits the more rows there are.",
    distrust="Distrust it where gamma is not small beside the number of rows.",
    noise_share=NOISE_SHARE_OF_EXPANSIONS,
    **_of(bayesian_information),
)
