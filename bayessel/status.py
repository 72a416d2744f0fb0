"""How a fit ended, in a word, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from bayessel.pages.result_view import Standing


class Status(Enum):
    """How a fit ended; the value is the advice. Ordered from harmless to serious.

    Examples
    --------
    >>> from bayessel.linear import fit_evidence
    >>> fit = fit_evidence([[1.0], [2.0], [3.0], [4.0]], [2.0, 2.0, 2.0, 2.0], centre=True)
    >>> fit.status is Status.CONSTANT_TARGET, fit.status.distrusted
    (True, True)
    >>> worst([Status.CONVERGED, Status.STEP_LIMIT]).name
    'STEP_LIMIT'
    """

    CONVERGED = "converged"
    COLLINEAR_SKIPPED = (
        "some candidate functions are zero, copies of functions in use (which then count as one), or lie to rounding "
        "in their span, so that nothing could be said of them; very wide or very narrow functions do"
    )
    SAMPLED_CANDIDATES = (
        "there are so many functions that not all were looked at on all rows: the fit has some of them, sampled and "
        "exchanged for better ones (a relevance vector machine), or spread over the rows; pass centers=... to choose"
    )
    COPIES_COUNT_ONCE = (
        "rows that agree in all inputs and in the target are taken for one record listed several times: together all "
        "rows count as many as there are different ones (weights that sum to more count likewise); if they are "
        'observations of their own, inference="type2" counts every row'
    )
    FEW_WELL_DETERMINED = (
        "fewer than 3 well-determined parameters (or fewer than 3 rows left for the noise): the Gaussian approximation "
        "of the third-level evidence would be poor, so it was integrated exactly over a range of lambda"
    )
    ONE_AGAINST_REST = "more than two classes, each fitted against the rest: compare it by rows left out"
    IMPROPER_PRIOR = (
        "a weight has a penalty of zero, so its prior is improper and the model has no evidence; compare it by another "
        "criterion, such as leave-one-out"
    )
    MULTIPLE_OPTIMA = "several optima of similar worth were found; look at `optima` before trusting one of them"
    CANDIDATES_USED_UP = (
        "all candidates together do not come as close as was asked for; offer other functions, or raise tol"
    )
    AT_BOUND = "the optimum lies on the edge of the search range; the data do not determine this parameter"
    ROUGH_APPROXIMATION = (
        "twice as many neighbours would gain more than 0.01 nats a row (see `gain_of_neighbours`): Vecchia's "
        "approximation is that far from the exact process; give more neighbours, or more inducing inputs"
    )
    UNEVEN_NOISE = (
        "errors of rows left out are larger in some places than in others (their sizes follow an input, the fitted "
        "values, or the order of the rows), and the noise is taken for even: error bars are too wide here and too "
        "narrow there; transform the target (its logarithm, where errors grow with it), or give the noise of each row"
    )
    TREND_IN_RESIDUALS = (
        "errors of rows left out follow an input, the fitted values, or the order of the rows: something is left that "
        "the model has not found, or rows that follow each other share it (as in time); offer other functions, widths "
        "or inputs, such as the number of the row"
    )
    INTERPOLATION = (
        "a better value of the criterion was found at a fit that leaves too few rows to the noise; it is not preferred "
        "(look at the end of `optima`, or at `starts`), because there the criterion says nothing about new data"
    )
    DOUBTFUL_SIGNAL = (
        "with the precisions integrated out, a model without functions (or with the constant alone) is more probable "
        "than this one: what was found may be noise"
    )
    FELL_BACK = (
        "what was fitted predicts clearly worse than all functions together do (by what these expect of functions "
        "selected or penalised; networks: rows held out of folds fitted anew); predictions are those of all functions "
        "(EvidenceRegressor), and what was fitted is a rough summary of them"
    )
    HEAVY_TAILS = (
        "some rows lie much further from the fit than normal noise puts them (six robust standard deviations of the "
        "residuals): a few rows decide the noise level, error bars are wrong for most, and the fit follows the few; "
        "look at these rows, take likelihood='student' (EvidenceRegressor, GPRegressor), or transform the target"
    )
    NO_BETTER_THAN_CONSTANT = (
        "rows left out (mostly in folds fitted anew) are not predicted clearly better (by a standard error of the mean "
        "log density) than by a constant or class frequencies: do not rely on the predictions; try more rows or inputs"
    )
    PURE_NOISE = (
        "the inputs carry nothing: none of them varies, or the evidence prefers a model without signal; the weights "
        "are shrunk to zero; try another width or other inputs"
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
        "the data are fitted to the precision of the numbers: the noise level is a floor, not an estimate. If the "
        "targets have noise, offer fewer or wider functions (there may be as many as rows) or look for copies of rows"
    )
    CONSTANT_TARGET = "the target does not vary: only the bias was fitted and the noise level is a floor"
    TOO_FEW_ROWS = "too few rows to tell signal from noise: only the prior and the mean speak"
    STEP_LIMIT = (
        "the step limit was reached while the objective was still improving; raise max_steps (or max_size), or loosen "
        "the tolerance"
    )
    LOST_DIGITS = (
        "the sums of squares of this stream lost digits (ill-conditioned columns, means that drift far, or noise "
        "near the rounding of the targets); pass a callable or a file, for a second pass, or arithmetic='qr'"
    )
    CHAINS_DISAGREE = (
        "the chains have not mixed (R-hat above 1.05, or fewer than 50 effective draws of a parameter); go on with "
        "them, or tune for longer: until then treat the predictions as those of a few states"
    )
    UNSURE_EVIDENCE = (
        "the error bar of the evidence is above half a nat, or one run alone has none, or nothing confirms it: it is "
        "then itself unsure; take more draws, more particles, more runs, or more updates at each temperature"
    )
    TIME_BUDGET = (
        "the time budget was over before the run was complete; this is the part that was done (the mode, if there is "
        "no draw yet), and the run can be continued"
    )
    INTERRUPTED = "interrupted by the user; this is the best seen until then"

    @property
    def severity(self) -> int:
        """Position in the list above; larger is more serious."""
        return list(Status).index(self)

    @property
    def distrusted(self) -> bool:
        """Whether numbers of such a fit deserve a second look; estimators warn of these.

        The others are remarks on the search or on patterns in residuals, or tell of what the user asked for.
        """
        return self not in _REMARKS

    @property
    def words(self) -> str:
        """The name as a person reads it."""
        return self.name.lower().replace("_", " ")

    @property
    def standing(self) -> Standing:
        """How it is shown: harmless, worth knowing, or to be distrusted."""
        if self is Status.CONVERGED:
            return Standing.GOOD
        return Standing.DOUBT if self.distrusted else Standing.REMARK


_REMARKS = frozenset(
    {
        Status.CONVERGED,
        Status.COLLINEAR_SKIPPED,
        Status.SAMPLED_CANDIDATES,
        Status.COPIES_COUNT_ONCE,
        Status.FEW_WELL_DETERMINED,
        Status.ONE_AGAINST_REST,
        Status.IMPROPER_PRIOR,
        Status.MULTIPLE_OPTIMA,
        Status.CANDIDATES_USED_UP,
        Status.AT_BOUND,
        Status.ROUGH_APPROXIMATION,
        Status.UNEVEN_NOISE,
        Status.TREND_IN_RESIDUALS,
        Status.TIME_BUDGET,
        Status.INTERRUPTED,
    }
)


def worst(notes: Iterable[Status]) -> Status:
    """Return the most serious of several statuses, CONVERGED if there are none."""
    return max(notes, key=lambda s: s.severity, default=Status.CONVERGED)
