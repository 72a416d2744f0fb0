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
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.count_prediction import CountPrediction
from bayessel.errors import NumericalWarning
from bayessel.pages.result_view import ResultView, ShownResult
from bayessel.prediction import ClassPrediction, Prediction
from bayessel.status import Status as Status
from bayessel.status import worst as worst

if TYPE_CHECKING:
    import pandas as pd

#: rows up to which a card says how well rows left out are covered
_LEFT_OUT_AT_ONCE = 1000


@dataclass(frozen=True)
class Evidence(ShownResult):
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

    def _view(self) -> ResultView:
        error = "" if self.error is None else f" ± {self.error:.2g}"
        lines = [f"maximised over {', '.join(self.maximised)}"] if self.maximised else []
        lines += [f"integrated over {', '.join(self.integrated)}"] if self.integrated else []
        return ResultView(f"log evidence {self.value:.2f}{error} nats ({self.kind})", lines=lines)


@dataclass(frozen=True, eq=False)
class LeaveOneOut(ShownResult):
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

    def _view(self) -> ResultView:
        rows = len(self.log_densities)
        lines = [
            f"log density {self.log_density:.2f} nats, {self.log_density / max(rows, 1):.3f} a row",
            f"root mean square error {np.sqrt(self.mean_square):.4g}",
        ]
        if self.prediction is not None and np.isfinite(self.pit).any():
            lines.append(f"90 % intervals cover {100.0 * self.coverage(0.9):.0f} % of the rows")
        return ResultView(f"Each of {rows} rows predicted from the others", lines=lines)


class Fit(ShownResult, ABC):
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

    def _view(self) -> ResultView:
        return view_of(self, type(self).__name__, (self.status, *self.notes))

    def _text(self) -> str:
        # a prompt shows it unasked: without the predictions of rows left out, which may take a while
        return described(self, type(self).__name__, (self.status, *self.notes), left_out=False)

    def __str__(self) -> str:
        return self.describe()


def advice(notes: Iterable[Status]) -> tuple[str, ...]:
    """What to do about every remark, the most serious first."""
    return tuple(f"{note.name}: {note.value}" for note in _remarks(notes))


def _remarks(notes: Iterable[Status]) -> list[Status]:
    return sorted({*notes} - {Status.CONVERGED}, key=lambda note: -note.severity)


def described(fit: Fit, name: str, notes: tuple[Status, ...], left_out: bool = True) -> str:
    """A fit by the name of what it belongs to, with the remarks, of which the first is its status."""
    title = f"{name} of {fit.n_rows} rows, {fit.seconds:.2g} s: {notes[0].name}"
    return "\n".join([title, *_found(fit, left_out), *advice(notes)])


def view_of(fit: Fit, name: str, notes: tuple[Status, ...], table: pd.DataFrame | None = None) -> ResultView:
    """The same as a card; rows left out are those of fits small enough to do so at once."""
    return ResultView(
        f"{name} of {fit.n_rows} rows",
        notes[0].words,
        notes[0].standing,
        _found(fit, fit.n_rows <= _LEFT_OUT_AT_ONCE),
        [(note.words, note.value) for note in _remarks(notes)],
        table,
    )


def _found(fit: Fit, left_out: bool) -> list[str]:
    """Lines on what was found."""
    lines = []
    if fit.evidence is not None:
        error = "" if fit.evidence.error is None else f" ± {fit.evidence.error:.2g}"
        lines.append(f"log evidence {fit.evidence.value:.2f}{error} nats ({fit.evidence.kind})")
    if len(fit.optima) > 1:
        lines.append(f"{len(fit.optima)} local optima")
    lines += fit.details
    if left_out and fit.leaves_rows_out and not fit.predicts_labels:
        lines.append(coverage_of_rows_left_out(fit))
    return [line for line in lines if line]


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
