"""The criteria widths are compared by: names, directions, units, and what each of them asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

#: A note beside the statuses: the criterion vanishes where the fit passes through every row.
INTERPOLATION = "INTERPOLATION"
#: A note beside the statuses: the Gaussian approximation is poor, so the value was integrated exactly.
QUADRATURE = "QUADRATURE"
#: A note beside the statuses: the exact integral depends on the range of lambda, so there is no value.
UNDETERMINED = "UNDETERMINED"

#: A note beside the statuses: a criterion that pays for functions is no better than that of the model without them.
NO_SIGNAL = "NO_SIGNAL"

#: Criteria that charge a sparse model for its functions, so that they can tell that there is no signal.
PAYING = ("mdl-w", "mdl-alpha", "model-evidence")

#: Evidence ratios of 20 to 1 are commonly called strong; on the logarithm that is about 3 nats.
STRONG_NATS = float(np.log(20.0))

#: The share of an error estimate a reader may lose and shrug: mostly less than its own sampling error.
SMALL_LOSS = 0.05

#: Statuses that need no attention here: few well-determined parameters spoil only the approximation, which is seen to,
#: and functions so wide that some are combinations of others belong to every grid.
GOOD_STATUS = frozenset({"CONVERGED", "FEW_WELL_DETERMINED", "COLLINEAR_SKIPPED"})


@dataclass(frozen=True)
class Criterion:
    """One way of judging a model: its name, its direction and what it answers."""

    name: str
    label: str
    higher_is_better: bool
    unit: str
    family: str
    meaning: str

    @property
    def in_nats(self) -> bool:
        """Whether differences are logarithms of ratios, so that 3 of them are odds of 20 to 1."""
        return self.unit.startswith("nats")

    @property
    def shrugged(self) -> float:
        """The largest loss that a reader may shrug off: nats, or a share of the error."""
        return STRONG_NATS if self.in_nats else SMALL_LOSS


CRITERIA: Mapping[str, Criterion] = {
    entry.name: entry
    for entry in (
        Criterion(
            "mdl-w",
            "MDL-w",
            False,
            "nats, up to a constant",
            "mdl",
            "Minimum description length that sends the weights: the residuals at the noise level of the fit, every "
            "weight to a precision delta (0.1), and the numbers of the functions in use. Each function has to save "
            "what it costs, about ln k0 + ln |w| - ln delta nats (k0: functions on offer); so it prefers few.",
        ),
        Criterion(
            "mdl-alpha",
            "MDL-alpha",
            False,
            "nats, up to a constant",
            "mdl",
            "Minimum description length that sends the precisions alpha instead of the weights (delta 1): minus the "
            "log evidence, and about ln k0 nats for each function in use. Compare it with the evidence: the "
            "difference is the price per function.",
        ),
        Criterion(
            "evidence",
            "Log evidence",
            True,
            "nats",
            "evidence",
            "log p(y | width, best precisions): how probable the data are under this width's prior over functions, "
            "with the precisions at their best values. Only differences count: 3 nats are odds of 20 to 1.",
        ),
        Criterion(
            "model-evidence",
            "Log model evidence",
            True,
            "nats, up to a constant",
            "evidence",
            "The evidence with the precisions averaged out (third level, Gaussian approximation on their logarithms): "
            "it adds what finding the precisions costs. With one precision for all weights it is integrated exactly "
            "where fewer than 3 parameters are well determined or fewer than 3 rows are left for the noise; missing "
            "where even that has no answer.",
        ),
        Criterion(
            "gcv",
            "GCV",
            False,
            "squared units of the target",
            "prediction",
            "Generalised cross-validation: estimated mean squared prediction error on new rows, as if rows were left "
            "out one by one, with the same leverage for all.",
        ),
        Criterion(
            "loo",
            "LOO",
            False,
            "squared units of the target",
            "prediction",
            "Leave-one-out: mean squared error of predicting each row from all others (exact, without refitting). The "
            "precisions stay those of all rows, and so does the choice of functions in a sparse model: made with the "
            "row in sight, it is not paid for, so the error of a fit that picked many narrow functions is flattered. "
            "Rows held out, and the prequential length, do not flatter.",
        ),
        Criterion(
            "elpd-loo",
            "LOO log density",
            True,
            "nats (sum over rows)",
            "prediction",
            "Leave-one-out: sum of the log predictive densities of each row given all others, at the precisions and "
            "with the functions of all rows. Unlike the squared error it also judges the error bars; it flatters like "
            "LOO.",
        ),
        Criterion(
            "uev",
            "UEV",
            False,
            "squared units of the target",
            "prediction",
            "Unbiased estimate of the noise variance: the residuals, with gamma parameters paid for. The mildest.",
        ),
        Criterion(
            "fpe",
            "FPE",
            False,
            "squared units of the target",
            "prediction",
            "Final prediction error: the residuals corrected for gamma parameters; milder than GCV.",
        ),
        Criterion(
            "bic",
            "BIC",
            False,
            "squared units of the target",
            "parsimony",
            "Bayesian information criterion in its error form: every parameter costs ln N instead of 2, so it "
            "leans to smoother fits the more rows there are.",
        ),
        Criterion(
            "prequential",
            "Prequential code length",
            False,
            "nats",
            "sequence",
            "Sum of -log p(next row | rows before it) in random order, the fit renewed each time the number of rows "
            "has doubled; mean and standard error over orders. Nothing is scored by what it was fitted to.",
        ),
        Criterion(
            "holdout",
            "Held-out error",
            False,
            "squared units of the target",
            "prediction",
            "Mean squared error on rows that took no part in any fit.",
        ),
    )
}
