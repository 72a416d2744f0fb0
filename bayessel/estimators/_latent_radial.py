"""Radial functions seen through a likelihood that is not normal noise: counts, targets with heavy tails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, override

import numpy as np

from bayessel._check import FloatArray, one_of
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights, quantile
from bayessel.basis import Dictionary, JoinedDictionary, RBFDictionary
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._radial_dictionary import centres_of
from bayessel.estimators.given_dictionary import bound_dictionary
from bayessel.estimators.latent_member import LatentMember, weighed
from bayessel.estimators.latent_widths import MOST_CENTRES, LatentWidths, compare_latent_widths, spread_centres
from bayessel.estimators.linear_trend import LinearTrend
from bayessel.estimators.radial_latent_fit import RadialLatentFit
from bayessel.estimators.standardise import Standardisation, robust_deviation
from bayessel.fit import Status, worst
from bayessel.likelihoods import Likelihood, as_likelihood
from bayessel.likelihoods.student import LEAST_FREEDOM
from bayessel.linear.latent import LatentFit, fit_latent
from bayessel.linear.latent.shared_precision import COUNTS

if TYPE_CHECKING:
    import pymc as pm

#: what a regressor on radial functions may see them through; even normal noise has a closed form and engines of its own
LIKELIHOODS = ("gaussian", "student", "poisson", "negative-binomial")


@dataclass(frozen=True, eq=False)
class RadialInDataUnits(FitInDataUnits):
    """Functions that were fitted to targets in units of their own, at inputs of the user."""

    @property
    @override
    def log_units(self) -> float:
        count = self.inner.best.count
        return -(float(self.n_rows) if count is None else float(count.sum())) * self.units.log_scale

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise; NaN for counts, whose noise depends on their mean."""
        best: LatentFit = self.inner.best
        if best.likelihood.name != "student":
            return np.nan
        log_variance, log_over = best.phi
        nu = LEAST_FREEDOM + np.exp(log_over)
        return float(np.sqrt(np.exp(log_variance) * nu / (nu - 2.0)) * self.units.target_scale)


def fitted_through(
    estimator: Any, X: FloatArray, y: FloatArray, weights: RowWeights | None
) -> tuple[RadialInDataUnits, LatentWidths | None]:
    """Fit to inputs (N, D) and a target (N,) with the settings of an estimator; the widths compared, if any were."""
    likelihood = as_likelihood(estimator.likelihood)
    t, units = likelihood.targets(y, "y"), Standardisation.none(X.shape[1])
    if likelihood.name == "student":  # a few huge targets decide the mean absolute deviation
        middle = float(np.median(t) if weights is None else quantile(t, 0.5, weights.count))
        units = replace(units, target_shift=middle, target_scale=robust_deviation(t, weights))
        t = units.targets(t)
    count = None if weights is None else weights.count
    found, remarks = None, list[Status]()
    given = estimator.dictionary is not None or estimator.width is not None
    if not given and likelihood.name in COUNTS and not t.any():
        # noughts alone bound rates from above only: functions of a wide prior would expect hundreds here and there
        nothing = LinearTrend(np.zeros(X.shape[1]), np.full(X.shape[1], np.inf))
        members = [LatentMember(nothing, (_fit(estimator, nothing, X, t, likelihood, count),))]
    elif given:
        d = _given(estimator, X)
        members = [LatentMember(d, (_fit(estimator, d, X, t, likelihood, count),))]
    else:
        found = compare_latent_widths(
            X,
            t,
            [t],
            likelihood,
            centers=None if estimator.centers is None else centres_of(estimator, X),
            kind=estimator.kind,
            bias=bool(estimator.bias),
            count=count,
        )
        chosen = found.worth_mixing if estimator.inference == "auto" else np.array([found.best])
        members = [_member(estimator, found, float(r), X, t, likelihood, count) for r in chosen]
        remarks = [Status.INTERRUPTED] if found.interrupted else []
    kept = weighed(members)
    notes = tuple(dict.fromkeys([*(note for note in kept[0].fits[0].notes), *remarks]))
    inner = RadialLatentFit(kept, worst(notes), notes, fingerprint(X, t))
    return RadialInDataUnits(inner, units, fingerprint(X, y), fingerprint(y)), found


def _given(estimator: Any, X: FloatArray) -> Dictionary:
    """The dictionary of the user, or of the user's width."""
    if estimator.dictionary is not None:
        return bound_dictionary(estimator, X).scaled(X).without_bias()
    if isinstance(estimator.width, str):
        raise ValueError(f"width={estimator.width!r} works with likelihood='gaussian'; leave it out, or pass numbers")
    centers = centres_of(estimator, X, stored=True, most=estimator._most_centres)
    return RBFDictionary(centers, estimator.width, kind=estimator.kind, bias=False)


def _member(
    estimator: Any,
    found: LatentWidths,
    r: float,
    X: FloatArray,
    t: FloatArray,
    likelihood: Likelihood,
    count: FloatArray | None,
) -> LatentMember:
    """Radial functions of one of the widths compared, at some of the rows, and a linear trend."""
    centers = centres_of(estimator, X) if estimator.centers is not None else spread_centres(X, MOST_CENTRES)
    functions = RBFDictionary(centers, r * found.spread, kind=estimator.kind, bias=False)
    d = JoinedDictionary(functions, LinearTrend.beside(X, functions.columns(X)))
    return LatentMember(d, (_fit(estimator, d, X, t, likelihood, count),), log_prior=found.log_prior(r))


def _fit(
    estimator: Any, d: Dictionary, X: FloatArray, t: FloatArray, likelihood: Likelihood, count: FloatArray | None
) -> LatentFit:
    bias = bool(estimator.bias)
    return fit_latent(d.columns(X), t, likelihood, inference=estimator.inference, bias=bias, sample_weight=count)


def check_settings(estimator: Any, noise_std: Any) -> None:
    """Refuse what goes with normal noise alone."""
    one_of(estimator.likelihood, "likelihood", LIKELIHOODS)
    if estimator.likelihood != "gaussian" and noise_std is not None:
        raise ValueError(f"noise_std is of likelihood='gaussian', got {estimator.likelihood!r}; leave it out")


def declared(estimator: Any, X: FloatArray, y: FloatArray) -> pm.Model:
    """The model on the functions of the most probable width as a `pymc.Model`, with a prior on its precision."""
    from bayessel.models import generalised

    d = estimator.dictionary_.without_bias()
    return generalised(d.columns(X), y, estimator.likelihood, bias=bool(estimator.bias), names=d.names)
