"""One reader of fits: from an engine's result, an estimator or a pipeline to the contract of `bayessel.fit`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights
from bayessel.count_prediction import CountPrediction
from bayessel.criteria.capabilities import Message, Sendable
from bayessel.fit import Fit, Status
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class Reading:
    """A fit, and what is known of it from around it.

    Attributes
    ----------
    fit : Fit
        In the units of the data.
    status : Status
        The most serious remark; an estimator may have one of its own.
    noise_std : float
        Standard deviation of the noise; NaN where there is none, or one for each of several outputs.
    data_fingerprint : str or None
        Name of inputs and target together; None of an engine's result on a design, whose columns are no inputs, and of
        a pipeline, which changed the inputs.
    counts : (N,) array or None
        How often each row was told to count; None where all count once.
    listed_once : bool
        Whether rows that the table lists several times count once.
    """

    fit: Fit
    status: Status
    noise_std: float
    data_fingerprint: str | None
    counts: FloatArray | None
    listed_once: bool

    @property
    def target_fingerprint(self) -> str | None:
        """Name of the target; None where the fit let go of it, as of a stream."""
        return self.fit.target_fingerprint or None

    def message(self, name: str) -> Message:
        """What a description length sends; fits without functions to count are refused."""
        if not isinstance(self.fit, Sendable):
            raise TypeError(
                f"{name} is a {type(self.fit).__name__}, which has no functions to count and no weights to send; "
                "`compare` has what can be said of it"
            )
        return self.fit.message()


def read(fitted: Any, name: str = "fitted") -> Reading:
    """Read an engine's result, a fitted estimator, alone or in a pipeline, a trace, a PyMC model, or its evidence."""
    inner, piped = unwrap(fitted)
    fit = inner if isinstance(inner, Fit) else _of_pymc(inner) or _fit_of(inner, name)
    own = None if isinstance(fit, Sendable) else fit.fingerprint or None
    return Reading(
        fit=fit,
        status=getattr(inner, "status_", fit.status),
        noise_std=_single(getattr(inner, "noise_std_", getattr(fit, "noise_std", None))),
        data_fingerprint=None if piped else getattr(inner, "fingerprint_", own),
        counts=_counts(getattr(inner, "_row_weights", row_weights_of(fit))),
        listed_once=Status.COPIES_COUNT_ONCE in getattr(inner, "notes_", ()),
    )


def row_weights_of(fit: Any) -> RowWeights | None:
    """What the fit of an engine was told of its rows; None where they are all alike."""
    spectrum = getattr(getattr(fit, "posterior", None), "spectrum", None)
    for holder in (fit, spectrum):
        found = getattr(holder, "row_weights", None)
        if isinstance(found, RowWeights):
            return found
    return None


def _counts(weights: RowWeights | None) -> FloatArray | None:
    return None if weights is None or (weights.count == 1.0).all() else weights.count


def unwrap(fitted: Any) -> tuple[Any, bool]:
    """Return the estimator inside a search or a pipeline, and whether its inputs are no longer those of the user."""
    piped = False
    while True:
        if (best := getattr(fitted, "best_estimator_", None)) is not None:
            fitted = best
        elif (steps := getattr(fitted, "steps", None)) is not None:
            fitted, piped = steps[-1][1], True
        else:
            return fitted, piped


def predictive_of(fitted: Any, rows: Any) -> Prediction:
    """Predictive distributions at new rows, as the fitted itself makes them: mixtures where it predicts mixtures."""
    if isinstance(fitted, Fit):
        found = fitted.predict(rows)
    elif (best := getattr(fitted, "best_estimator_", None)) is not None:
        return predictive_of(best, rows)
    elif (steps := getattr(fitted, "steps", None)) is not None:
        return predictive_of(steps[-1][1], fitted[:-1].transform(rows) if len(steps) > 1 else rows)
    elif (predictive := getattr(fitted, "predictive", None)) is not None:
        found = predictive(rows)
    else:
        try:
            mean, std = fitted.predict(rows, return_std=True)
        except (TypeError, AttributeError) as error:
            if "return_std" not in str(error) and "'predict'" not in str(error):
                raise
            raise TypeError(
                f"{type(fitted).__name__} predicts no distributions: predict(X, return_std=True) is needed, as the "
                "regressors of bayessel and sklearn's BayesianRidge have it"
            ) from error
        found = Prediction.normal(mean, np.asarray(std) ** 2)
    if not isinstance(found, Prediction):
        what = "counts" if isinstance(found, CountPrediction) else "labels"
        raise ValueError(f"{type(fitted).__name__} predicts {what}; this is for regressors of real targets")
    return found


def _fit_of(estimator: Any, name: str) -> Fit:
    if getattr(estimator, "rows_changed_", False):
        raise ValueError(
            f"{name}: rows were added or forgotten since the precisions were chosen; call reestimate() first"
        )
    found = getattr(estimator, "fit_", None)
    if isinstance(found, Fit):
        if (many := getattr(found, "n_outputs", 1)) != 1:
            raise ValueError(f"{name} has {many} outputs; fit one estimator per output and look at each")
        return found
    if found is None and callable(getattr(estimator, "get_params", None)):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"{name} is a {type(estimator).__name__} that has not been fitted; call fit(X, y) first")
    raise TypeError(
        f"{name} must be a fitted bayessel estimator, an engine result (a bayessel.fit.Fit, such as fit_rvm and "
        f"fit_evidence return), a PyMC model, its evidence or a trace, got {type(estimator).__name__}"
    )


def _of_pymc(given: Any) -> Fit | None:
    """A fit of what PyMC knows; it is imported for nothing else."""
    if "pymc" not in sys.modules or callable(getattr(given, "get_params", None)):
        return None
    from bayessel.diagnostics.sampled_fit import sampled_fit

    return sampled_fit(given)


def _single(noise: Any) -> float:
    return float(np.squeeze(noise)) if noise is not None and np.size(noise) == 1 else np.nan
