"""What classifiers on a dictionary share: fitting each class, probabilities, densities, a witness, PyMC models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, as_flag, one_of
from bayessel._fingerprint import fingerprint
from bayessel.basis import Dictionary, JoinedDictionary, RBFDictionary
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.estimators import _class_predictions, _description
from bayessel.estimators._radial_dictionary import centres_of
from bayessel.estimators.base import Versioned, validated_classification
from bayessel.estimators.given_dictionary import bound_dictionary
from bayessel.estimators.latent_member import LatentMember
from bayessel.estimators.latent_widths import MOST_CENTRES, LatentWidths, compare_latent_widths, spread_centres
from bayessel.estimators.linear_trend import LinearTrend
from bayessel.estimators.radial_class_fit import RadialClassFit
from bayessel.estimators.weighted_rows import without_weights
from bayessel.fit import Evidence, LeaveOneOut, Status, worst
from bayessel.likelihoods import Likelihood, as_likelihood
from bayessel.linear.latent import LatentFit, fit_latent

if TYPE_CHECKING:
    import pymc as pm

INFERENCES = ("auto", "type2")


def indicators(codes: npt.NDArray[np.intp], n_classes: int) -> list[FloatArray]:
    """Of the second of two classes, else of each."""
    return [(codes == k).astype(float) for k in ([1] if n_classes == 2 else range(n_classes))]


def all_functions(
    estimator: RadialClassifier, dictionary: Dictionary, X: FloatArray, codes: npt.NDArray[np.intp]
) -> LatentMember:
    """All functions of a dictionary, with one precision."""
    design, bias = dictionary.without_bias().columns(X), bool(estimator.bias)
    return LatentMember(
        dictionary.without_bias(),
        tuple(
            fit_latent(design, t, estimator.likelihood, inference=estimator.inference, bias=bias)
            for t in indicators(codes, len(estimator.classes_))
        ),
    )


#: rows worked on at a time
CHUNK = 4096


class RadialClassifier(ClassifierMixin, Versioned):
    """Base of `EvidenceClassifier` and `RVMClassifier`; not for direct use."""

    width: ArrayLike | None
    centers: ArrayLike | None
    kind: str
    bias: bool
    likelihood: str | Likelihood
    inference: str
    dictionary: DictionaryLike | None
    dictionary_: Dictionary
    width_: float | FloatArray | None
    fit_: RadialClassFit
    notes_: tuple[Status, ...]
    found_width_: LatentWidths | None

    # ---- what a subclass says

    def _members(self, X: FloatArray, codes: npt.NDArray[np.intp]) -> tuple[tuple[LatentMember, ...], list[Status]]:
        """Fits on dictionaries, the one that attributes tell of first, and remarks beside theirs."""
        raise TypeError("a subclass fits")

    # ---- fitting

    @without_weights
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and labels (N,) of any sort."""
        X, self.classes_, codes = validated_classification(self, X, y)
        one_of(self.inference, "inference", INFERENCES)
        model = as_likelihood(self.likelihood)
        if not model.labels:
            raise ValueError(f"likelihood must be one of labels, such as 'logit', got {model.name!r}")
        as_flag(self.bias, "bias")
        self.found_width_ = None
        self.optima_: tuple[Any, ...] = ()
        members, remarks = self._members(X, codes)
        self._show(X, codes, members, remarks)
        self._warn()
        return self

    def _compared(self, X: FloatArray, codes: npt.NDArray[np.intp], likelihood: Likelihood) -> LatentWidths:
        """Widths compared by the evidence of all functions, kept as `found_width_`."""
        self.found_width_ = compare_latent_widths(
            X,
            codes,
            indicators(codes, len(self.classes_)),
            likelihood,
            centers=None if self.centers is None else centres_of(self, X),
            kind=self.kind,
            bias=bool(self.bias),
        )
        return self.found_width_

    def _given(self, X: FloatArray) -> Dictionary:
        """The dictionary that does not depend on the labels: the user's own, or of the user's width."""
        if self.dictionary is not None:
            return bound_dictionary(self, X).scaled(X)
        return RBFDictionary(centres_of(self, X, stored=True), self.width, kind=self.kind, bias=bool(self.bias))

    def _radial(self, X: FloatArray, width: FloatArray) -> JoinedDictionary:
        """Radial functions at some of the rows, of widths that were found, and a linear trend."""
        centers = centres_of(self, X)
        if self.centers is None:
            centers = spread_centres(X, MOST_CENTRES)
        functions = RBFDictionary(centers, width, kind=self.kind, bias=bool(self.bias))
        return functions + LinearTrend.beside(X, functions.without_bias().columns(X))

    def _show(
        self, X: FloatArray, codes: npt.NDArray[np.intp], members: tuple[LatentMember, ...], remarks: list[Status]
    ) -> None:
        """Set `fit_` and the attributes that tell of it."""
        first = members[0]
        two = len(self.classes_) == 2
        found = first.fits[0].evidence
        mixed = float(logsumexp([one.log_evidence for one in members]))
        evidence = Evidence(mixed, found.kind, None, found.maximised, found.integrated) if two else None
        notes = [*dict.fromkeys(note for one in first.fits for note in one.notes), *remarks]
        notes += [] if two else [Status.ONE_AGAINST_REST]
        self.fit_ = RadialClassFit(
            classes=self.classes_,
            codes=codes,
            members=members,
            evidence=evidence,
            n_rows=len(X),
            status=worst(notes),
            notes=tuple(dict.fromkeys(notes)),
            optima=first.fits[0].optima,
            history=tuple(step for one in first.fits for step in one.history),
            seconds=sum(one.seconds for member in members for one in member.fits),
            fingerprint=fingerprint(X, codes),
            target_fingerprint=fingerprint(codes),
        )
        said = self._witness(self.fit_)
        self.notes_ = tuple(dict.fromkeys([*self.fit_.notes, *said]))
        self.status_ = worst(self.notes_)
        self.history_ = [dict(step) for step in self.fit_.history]
        self.fingerprint_, self.n_rows_ = self.fit_.fingerprint, len(X)
        self._rows = X
        self._attributes(first)

    def _attributes(self, member: LatentMember) -> None:
        """Functions in use by any class, with their weights."""
        d = member.dictionary
        self.dictionary_ = d
        functions = d.parts[0] if isinstance(d, JoinedDictionary) else d
        self.width_ = functions.width if isinstance(functions, RBFDictionary) else None
        self.basis_ = np.unique(np.concatenate([one.basis for one in member.fits])).astype(int)
        self.n_basis_ = len(self.basis_)
        self.coef_, self.alpha_ = (self._collected(member.fits, name) for name in ("coef", "alpha"))
        self.intercept_ = np.array([one.intercept for one in member.fits])
        self.gamma_ = sum(one.gamma for one in member.fits)

    def _collected(self, fits: tuple[LatentFit, ...], name: str) -> FloatArray:
        """Values of the columns in use, one row per class; a column that a class leaves out has infinite precision."""
        found = np.full((len(fits), self.n_basis_), 0.0 if name == "coef" else np.inf)
        for row, one in zip(found, fits, strict=True):
            row[np.searchsorted(self.basis_, one.basis)] = getattr(one, name)
        return np.asarray(found[0] if len(fits) == 1 else found)

    def _witness(self, fit: RadialClassFit) -> list[Status]:
        """What rows left out say beside the frequencies of the classes."""
        gains = fit.leave_one_out().log_densities - fit.base_rates
        self.gain_ = float(gains.mean())
        self.gain_error_ = float(gains.std() / np.sqrt(len(gains)))
        return [] if self.gain_ > max(self.gain_error_, 1e-9) else [Status.NO_BETTER_THAN_CONSTANT]

    # ---- predicting

    predict = _class_predictions.predict
    predict_proba = _class_predictions.predict_proba
    predict_log_proba = _class_predictions.predict_log_proba
    decision_function = _class_predictions.decision_function
    log_predictive_density = _class_predictions.log_predictive_density

    def _rows_at_a_time(self) -> int:
        return CHUNK

    def _log_p(self, X: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.maximum(self.fit_.predict(X).probabilities, np.finfo(float).tiny)))

    def leave_one_out(self) -> LeaveOneOut:
        """Each training row predicted from all others, see `bayessel.estimators.radial_class_fit`."""
        check_is_fitted(self)
        return self.fit_.leave_one_out()

    describe = _description.describe

    @property
    def log_evidence_(self) -> float:
        """Log evidence in nats; NaN of more than two classes."""
        check_is_fitted(self)
        return self.fit_.log_evidence

    def to_pymc(self) -> pm.Model:
        """The model on the functions in use as a `pymc.Model`, with a prior on its precision; two classes."""
        from bayessel.models import generalised

        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise ValueError(f"to_pymc declares a model of two classes, and there are {len(self.classes_)}")
        d = self.dictionary_.without_bias()
        design = d.columns(self._rows)[:, self.basis_]
        labels, names = self.fit_.codes, [d.names[i] for i in self.basis_]
        return generalised(design, labels, self.likelihood, bias=bool(self.bias), names=names)
