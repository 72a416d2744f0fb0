"""The registry: every criterion by name, and which of them serve for what."""

from __future__ import annotations

from collections.abc import Mapping

from bayessel._check import FloatArray
from bayessel.criteria._criterion import Criterion
from bayessel.criteria.description_length import MDL_ALPHA, MDL_W
from bayessel.criteria.error_estimates import BIC, FPE, GCV, UEV
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.criteria.holdout import HOLDOUT
from bayessel.criteria.leave_one_out import ELPD_LOO, LOO
from bayessel.criteria.prequential import PREQUENTIAL

#: every criterion by name, in the order of tables and reports
CRITERIA: Mapping[str, Criterion] = {
    one.name: one
    for one in (
        MDL_W, MDL_ALPHA, EVIDENCE, MODEL_EVIDENCE, GCV, LOO, ELPD_LOO, UEV, FPE, BIC, PREQUENTIAL, HOLDOUT,
    )
}  # fmt: skip
#: those that N, S and tr P decide
OF_SUMS = tuple(name for name, one in CRITERIA.items() if one.of_sums is not None)
#: those that the penalty of a ridge regression may be chosen by
OF_RIDGE = (LOO.name, *OF_SUMS)
#: those in which functions have to pay for themselves, so that they can tell that there is no signal
CHARGING = tuple(name for name, one in CRITERIA.items() if one.charges_functions)


def from_sums(name: str, n_rows: float, sum_squares: float | FloatArray, trace_p: float | FloatArray) -> FloatArray:
    """Return the criterion of that name from N, S and tr P; infinite where nothing is left for the noise."""
    formula = CRITERIA[name].of_sums
    if formula is None:
        raise ValueError(f"{name} does not follow from N, S and tr P; {', '.join(OF_SUMS)} do")
    return formula(n_rows, sum_squares, trace_p)
