"""What every result carries: a status with advice, and the fingerprint of the data it was fitted to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy as np


class Status(Enum):
    """How a fit ended; the value is the advice. Ordered from harmless to serious."""

    CONVERGED = "converged"
    COLLINEAR_SKIPPED = (
        "some candidate functions are zero, copies of functions in use (which then count as one), or lie to rounding "
        "in their span, so that nothing could be said of them; very wide or very narrow functions do"
    )
    FEW_WELL_DETERMINED = (
        "fewer than 3 well-determined parameters (or fewer than 3 rows left for the noise): the Gaussian approximation "
        "of the third-level evidence would be poor, so it was integrated exactly over a range of lambda"
    )
    MULTIPLE_OPTIMA = (
        "several optima of similar worth were found; look at `maxima` (or `optima`) before trusting one of them"
    )
    CANDIDATES_USED_UP = (
        "all candidates together do not come as close as was asked for; offer other functions, or raise tol"
    )
    AT_BOUND = "the optimum lies on the edge of the search range; the data do not determine this parameter"
    INTERPOLATION = (
        "a better value of the criterion was found at a fit that leaves too few rows to the noise; it is not preferred "
        "(look at the end of `minima`, or at `starts`), because there the criterion says nothing about new data"
    )
    DOUBTFUL_SIGNAL = (
        "with the precisions integrated out, a model without functions (or with the constant alone) is more probable "
        "than this one: what was found may be noise"
    )
    NO_BETTER_THAN_CONSTANT = (
        "rows held out of folds fitted anew are not predicted clearly better (by a standard error of the mean log "
        "density) than by a constant with normal noise: do not rely on these predictions; try other inputs or more rows"
    )
    PURE_NOISE = (
        "the evidence prefers a model without signal: the weights are shrunk to zero; try another width or inputs"
    )
    NO_INFORMATION = (
        "leave-one-out labels say nothing of the true ones, or are worse than chance: this is no classifier; try "
        "another width, other inputs, or more rows"
    )
    ILL_CONDITIONED = (
        "the ratio beta/alpha is so large that digits are lost (relative error up to 10 eps sqrt(beta/alpha)); look "
        "for duplicate basis functions, wide kernels or noise-free targets"
    )
    NOISE_AT_FLOOR = (
        "the data are fitted to the precision of the numbers: the noise level is a floor, not an estimate; are the "
        "targets noise-free, or are there as many functions as rows?"
    )
    CONSTANT_TARGET = "the target does not vary: only the bias was fitted and the noise level is a floor"
    TOO_FEW_ROWS = "too few rows to tell signal from noise: only the prior and the mean speak"
    STEP_LIMIT = (
        "the step limit was reached while the objective was still improving; raise max_steps (or max_size), or loosen "
        "the tolerance"
    )
    LOST_DIGITS = (
        "the sums of squares of this stream lost digits (ill-conditioned columns, means that drift far, or a target "
        "without noise); pass a callable or a file, so that a second pass is possible, or arithmetic='qr'"
    )
    CHAINS_DISAGREE = (
        "the chains have not mixed (R-hat above 1.05, or fewer than 50 effective draws of a parameter); go on with "
        "them, or tune for longer: until then treat the predictions as those of a few states"
    )
    UNSURE_EVIDENCE = (
        "the error bar of the evidence is above half a nat, or one run alone has none: it is then itself unsure; take "
        "more particles, more runs, or more updates at each temperature"
    )
    TIME_BUDGET = (
        "the time budget was over before the run was complete; this is what there is (the mode, if there is no draw "
        "yet), and it can be gone on with"
    )
    INTERRUPTED = "interrupted by the user; this is the best seen until then"

    @property
    def severity(self) -> int:
        """Position in the list above; larger is more serious."""
        return list(Status).index(self)

    @property
    def distrusted(self) -> bool:
        """Whether numbers of such a fit deserve a second look; estimators warn of these.

        The others are remarks on the way the fit was found, or tell the user what the user asked for: a time budget, an
        interruption.
        """
        return self not in _REMARKS


_REMARKS = frozenset(
    {
        Status.CONVERGED,
        Status.COLLINEAR_SKIPPED,
        Status.FEW_WELL_DETERMINED,
        Status.MULTIPLE_OPTIMA,
        Status.CANDIDATES_USED_UP,
        Status.AT_BOUND,
        Status.TIME_BUDGET,
        Status.INTERRUPTED,
    }
)


def worst(notes: Iterable[Status]) -> Status:
    """Return the most serious of several statuses, CONVERGED if there are none."""
    return max(notes, key=lambda s: s.severity, default=Status.CONVERGED)


def fingerprint(*arrays: Any) -> str:
    """Return 16 hexadecimal digits that name the data: shapes and float64 values, in order."""
    digest = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(np.asarray(array, dtype=np.float64))
        digest.update(repr(values.shape).encode())
        digest.update((values + 0.0).astype("<f8", copy=False).data)  # + 0.0 makes -0.0 and 0.0 one number
    return digest.hexdigest()[:16]
