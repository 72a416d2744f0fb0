"""The contract of a fit: what every engine returns, whatever it fitted, and readers may rely on.

A fit has a status with advice, an evidence that says what sort of number it is, predictions that are distributions,
and the predictions of each row from the others. Readers (`bayessel.criteria`, `bayessel.diagnostics`) use this
contract and nothing else of a fit.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.count_prediction import CountPrediction
from bayessel.errors import NumericalWarning
from bayessel.prediction import ClassPrediction, Prediction


class Status(Enum):
    """How a fit ended; the value is the advice. Ordered from harmless to serious."""

    CONVERGED = "converged"
    COLLINEAR_SKIPPED = (
        "some candidate functions are zero, copies of functions in use (which then count as one), or lie to rounding "
        "in their span, so that nothing could be said of them; very wide or very narrow functions do"
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
    SEVERAL_TARGETS = (
        "several targets share their functions, and hyperparameters are those that maximise the evidence (or the "
        "criterion), not integrated out as with one target: predictions are often worse and error bars too narrow; fit "
        "one estimator per target (sklearn.multioutput.MultiOutputRegressor), or give the width or the inference if "
        "that is intended"
    )
    HEAVY_TAILS = (
        "some rows lie much further from the fit than normal noise puts them (six robust standard deviations of the "
        "residuals): a few rows decide the noise level, error bars are wrong for most, and the fit follows the few; "
        "look at these rows, or transform the target"
    )
    NO_BETTER_THAN_CONSTANT = (
        "rows left out (mostly in folds fitted anew) are not predicted clearly better (by a standard error of the mean "
        "log density) than by a constant or class frequencies: do not rely on the predictions; try more rows or inputs"
    )
    ROUGH_APPROXIMATION = (
        "twice as many neighbours would gain more than 0.01 nats a row (see `gain_of_neighbours`): Vecchia's "
        "approximation is that far from the exact process; give more neighbours, or more inducing inputs"
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


_REMARKS = frozenset(
    {
        Status.CONVERGED,
        Status.COLLINEAR_SKIPPED,
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


@dataclass(frozen=True)
class Evidence:
    """The log probability of the data under a model, and what sort of number it is.

    Attributes
    ----------
    value : float
        In nats, every constant included.
    kind : str
        "type2": at hyperparameters that maximise it ("type2-laplace", "type2-ep": a latent function integrated by
        Laplace's method, or by expectation propagation; "type2-vecchia": rows given few rows near them); "plug-in": at
        those that another criterion chose; "bound": a lower bound; "laplace": integrated by Laplace's method
        ("laplace-bound": of a bound; "laplace-vecchia": of Vecchia's approximation); "third-level":
        hyperparameters integrated too; "grid": they are summed over a grid, under proper priors; "sampled": integrated
        by Monte Carlo; "exact": integrated in closed form.
    error : float or None
        Monte Carlo standard error in nats; None where there is no sampling.
    maximised, integrated : tuple of str
        Names of what was maximised over, and of what was integrated out.
    """

    value: float
    kind: str
    error: float | None = None
    maximised: tuple[str, ...] = ()
    integrated: tuple[str, ...] = ()

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Each row predicted from all others, at the hyperparameters of all rows.

    Attributes
    ----------
    errors : (N,) array, of K outputs (N, K)
        Target minus prediction.
    variances : (N,) or (N, K) array
        Of the predictions, noise included.
    log_densities : (N,) array
        Log predictive density of each row, all its outputs together, in nats.
    prediction : Prediction or None
        The predictive distributions whole; None of labels.
    """

    errors: FloatArray
    variances: FloatArray
    log_densities: FloatArray
    prediction: Prediction | None = None

    @classmethod
    def normal(cls, errors: FloatArray, variances: FloatArray, target: FloatArray | None = None) -> LeaveOneOut:
        """Of predictions of a target that are normal distributions; log densities are those of its entries."""
        prediction = None
        if target is not None:  # nothing is known of a row with an infinite error: its variance is infinite too
            prediction = Prediction.normal(np.where(np.isinf(errors), 0.0, target - errors), variances)
        return cls(errors, variances, log_normal(errors, variances), prediction)

    @classmethod
    def of(cls, prediction: Prediction, target: FloatArray, log_densities: FloatArray | None = None) -> LeaveOneOut:
        """Of distributions that predict a target; `log_densities` where outputs of a row are not independent."""
        if log_densities is None:
            log_densities = prediction.log_density(target)
            log_densities = log_densities.sum(axis=1) if log_densities.ndim == 2 else log_densities
        return cls(target - prediction.mean, prediction.variance, log_densities, prediction)

    @property
    def target(self) -> FloatArray:
        """What was predicted, to the rounding of errors and means."""
        if self.prediction is None:
            raise ValueError("rows left out without their whole predictive distributions do not tell the target")
        with np.errstate(invalid="ignore"):
            return np.asarray(self.errors + self.prediction.mean)

    @property
    def pit(self) -> FloatArray:
        r"""Probability integral transforms :math:`P(T\le t_n)` under the prediction of each row, shaped like `errors`.

        Uniform on (0, 1) where the predictions are calibrated; NaN where nothing predicts the row.
        """
        if self.prediction is None:
            raise ValueError("labels have no probability integral transforms: their predictions are probabilities")
        known = np.isfinite(self.errors) & np.isfinite(self.variances)
        target = np.where(known, self.target, 0.0)
        with np.errstate(invalid="ignore"):
            return np.where(known, np.exp(self.prediction.log_cdf(target)), np.nan)

    def coverage(self, level: float = 0.9) -> float:
        """Share of the rows that lie in their central intervals of this probability; NaN where no row has one."""
        pit = self.pit
        known = pit[np.isfinite(pit)]
        return float(np.mean(np.abs(known - 0.5) <= 0.5 * level)) if known.size else np.nan

    @property
    def mean_square(self) -> float:
        """Mean squared error."""
        return float(np.mean(self.errors**2))

    @property
    def log_density(self) -> float:
        """Sum of the log predictive densities, in nats."""
        return float(self.log_densities.sum())


class Fit(ABC):
    """Base of every result of an engine: a dataclass that inherits it and has these fields or properties.

    Attributes
    ----------
    status, notes : Status, tuple of Status
        The most serious remark, and all of them.
    n_rows : int
        Rows fitted to.
    fingerprint, target_fingerprint : str
        Names of the data, inputs (or design) and target together, and of the target alone.
    evidence : Evidence or None
        None where the method has none.
    optima : tuple
        The local optima found, best first; one entry where only one was looked for.
    history : tuple of mappings
        What happened on the way: steps, starts, or evaluations.
    seconds : float
        Time by the clock.
    """

    if TYPE_CHECKING:  # read-only for readers; results have fields or properties of these names

        @property
        def status(self) -> Status: ...  # noqa: D102
        @property
        def notes(self) -> tuple[Status, ...]: ...  # noqa: D102
        @property
        def n_rows(self) -> int: ...  # noqa: D102
        @property
        def fingerprint(self) -> str: ...  # noqa: D102
        @property
        def target_fingerprint(self) -> str: ...  # noqa: D102
        @property
        def evidence(self) -> Evidence | None: ...  # noqa: D102
        @property
        def optima(self) -> tuple[Any, ...]: ...  # noqa: D102
        @property
        def history(self) -> tuple[Mapping[str, Any], ...]: ...  # noqa: D102
        @property
        def seconds(self) -> float: ...  # noqa: D102

    @abstractmethod
    def predict(self, rows: Any) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions of new observations at new rows."""

    @abstractmethod
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others, without refitting the hyperparameters."""

    @property
    def predicts_labels(self) -> bool:
        """Whether the targets are labels, and predictions their probabilities."""
        return False

    @property
    def leaves_rows_out(self) -> bool:
        """Whether `leave_one_out` has an answer; a stream keeps no rows to leave out."""
        return bool(self.target_fingerprint)

    @property
    def details(self) -> tuple[str, ...]:
        """Further lines of `describe`."""
        return ()

    @property
    def log_evidence(self) -> float:
        """Value of the evidence in nats; NaN where there is none."""
        return np.nan if self.evidence is None else float(self.evidence.value)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do about every remark, the most serious first."""
        return advice((self.status, *self.notes))

    def describe(self) -> str:
        """Return what was fitted, how it ended and what to do about it, in a few lines for people."""
        return described(self, type(self).__name__, (self.status, *self.notes))


def advice(notes: Iterable[Status]) -> tuple[str, ...]:
    """What to do about every remark, the most serious first."""
    found = sorted({*notes} - {Status.CONVERGED}, key=lambda note: -note.severity)
    return tuple(f"{note.name}: {note.value}" for note in found)


def described(fit: Fit, name: str, notes: tuple[Status, ...]) -> str:
    """A fit by the name of what it belongs to, with the remarks, of which the first is its status."""
    lines = [f"{name} of {fit.n_rows} rows, {fit.seconds:.2g} s: {notes[0].name}"]
    if fit.evidence is not None:
        error = "" if fit.evidence.error is None else f" ± {fit.evidence.error:.2g}"
        lines.append(f"log evidence {fit.evidence.value:.2f}{error} nats ({fit.evidence.kind})")
    if len(fit.optima) > 1:
        lines.append(f"{len(fit.optima)} local optima")
    lines += fit.details
    if fit.leaves_rows_out and not fit.predicts_labels:
        lines.append(coverage_of_rows_left_out(fit))
    return "\n".join([*(line for line in lines if line), *advice(notes)])


def coverage_of_rows_left_out(fit: Fit) -> str:
    """How many of the rows lie in the 90 % intervals that the other rows predict; nothing where none has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        left_out = fit.leave_one_out()
    if left_out.prediction is None or not np.isfinite(left_out.pit).any():
        return ""
    known = np.isfinite(left_out.pit)
    whole = "" if known.all() else f" (of {int(known.sum())} that have one)"
    return f"90 % intervals cover {100.0 * left_out.coverage(0.9):.0f} % of the rows left out{whole}"
