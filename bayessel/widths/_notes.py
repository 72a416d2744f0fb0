"""Notes beside the statuses of a comparison: their names, their advice, and how a cell of the table holds them.

A cell such as 'MULTIPLE_OPTIMA(gcv,loo) AT_BOUND(uev)' names statuses (or the notes below) and the criteria concerned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: The criterion vanishes where the fit passes through every row.
INTERPOLATION = "INTERPOLATION"
#: The Gaussian approximation is poor, so the value was integrated exactly.
QUADRATURE = "QUADRATURE"
#: The exact integral depends on the range of lambda, so there is no value.
UNDETERMINED = "UNDETERMINED"
#: A criterion that pays for functions is no better than that of the model without them.
NO_SIGNAL = "NO_SIGNAL"

ADVICE = {
    INTERPOLATION: "the criterion has no bound, or is a ratio of two vanishing numbers, where the fit passes through "
    "every row, whatever the data; only fits that leave enough rows to the noise count (a quarter of them for UEV, FPE "
    "and BIC, a tenth for the others); take fewer centres, or trust rows held out",
    NO_SIGNAL: "the model without functions, fitted to the same rows, does at least as well by this criterion: it does "
    "not pay for the functions in use",
    QUADRATURE: "the Gaussian approximation is poor here, so alpha and beta were integrated out numerically",
    UNDETERMINED: "the integral over lambda has its mass at the ends of the range, so the range would decide: no value",
}


def join_notes(beside: Mapping[str, Sequence[str]]) -> str:
    """Write statuses with the criteria they concern."""
    return " ".join(f"{note}({','.join(names)})" for note, names in sorted(beside.items()))


def notes_of(text: str) -> dict[str, list[str]]:
    """Read a cell of the column notes: criteria by status."""
    pairs = (word.removesuffix(")").split("(") for word in text.split())
    return {status: names.split(",") for status, names in pairs}
