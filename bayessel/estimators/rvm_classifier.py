"""The relevance vector machine for classes with scikit-learn's face."""

from __future__ import annotations

from typing import override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel._types import Missing, ModeInference, RadialKind
from bayessel.basis import Dictionary
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.estimators._radial_classifier import RadialClassifier, all_functions, indicators
from bayessel.estimators.class_folds import ClassFolds, class_folds, clearly_positive
from bayessel.estimators.latent_member import LatentMember
from bayessel.estimators.radial_class_fit import RadialClassFit
from bayessel.fit import Status
from bayessel.likelihoods import Likelihood, as_likelihood
from bayessel.linear.latent import LatentFit, fit_latent_rvm


class RVMClassifier(RadialClassifier):
    r"""Relevance vector machine for classes: sparse Bayesian logistic or probit regression on radial functions.

    The log odds are :math:`f = b + \Phi w`, :math:`w_i \sim N(0, 1/\alpha_i)`, :math:`b \sim N(0, 5^2)`; the evidence
    of Laplace's method chooses every :math:`\alpha_i`, and most become infinite, which removes their function. Distrust
    its probabilities: functions were chosen by the labels they predict, so that rows left out at these functions look
    better predicted than new ones are. With more than two classes each is fitted against the rest and probabilities are
    normalised, which is no one model: there is then no evidence.

    Parameters
    ----------
    width : None, float or (D,) array
        r of exp(-d^2/r^2). None takes the width, in units of each input's robust spread, at which all functions
        together have the largest evidence, and offers the inputs as columns too.
    centers : None or (M, D) array
        Centres of the functions; None puts one at each training input (where the width is left to the estimator, at 400
        of more rows).
    kind : str
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias : bool
        Include a bias.
    likelihood : str or Likelihood
        'logit' or 'probit'.
    inference : str
        'auto': precisions in use have a prior and are integrated out, about a nat for each function; and where no width
        is given the fit is compared with all functions on rows held out of folds fitted anew: where it predicts clearly
        worse, these predict (FELL_BACK). 'type2': precisions at the maximum of the evidence, and no folds, as in the
        papers.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).
    dictionary : None or object
        Columns of your own instead of radial functions, divided by their standard deviations: a dictionary of
        `bayessel.basis` or any object with its methods; width, centers and kind are then left alone.

    Attributes
    ----------
    classes_ : array
        Labels, sorted.
    width_, dictionary_
        Width in use, functions on offer.
    found_width_ : LatentWidths or None
        With None: the widths compared and their log posterior.
    basis_, coef_, intercept_, alpha_, n_basis_, gamma_
        Columns of ``dictionary_`` in use by any class, their weights, the bias, their precisions, their number, and the
        number of well-determined parameters; with more than two classes a row for each.
    log_evidence_ : float
        Log probability of the labels in nats, of what predicts.
    gain_, gain_error_ : float
        Nats per row over the frequencies of the classes, and the standard error: of rows held out where there are
        folds, else of rows left out.
    folds_ : ClassFolds or None
        What rows held out say.
    fits_ : tuple of LatentFit
        What the engine returned, one for two classes, else one per class.
    fit_ : RadialClassFit
        What predicts.
    status_, notes_, history_, fingerprint_, version_
        How the fit ended, with advice; the moves; names of data and version.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "in", "out")
    >>> model = RVMClassifier(width=2.0).fit(X, y)
    >>> model.n_basis_ < 8, model.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    (True, ['in', 'out'])
    """

    def __init__(
        self,
        width: ArrayLike | None = None,
        centers: ArrayLike | None = None,
        kind: RadialKind = "gaussian",
        bias: bool = True,
        likelihood: str | Likelihood = "logit",
        inference: ModeInference = "auto",
        missing: Missing = "error",
        dictionary: DictionaryLike | None = None,
    ) -> None:
        self.width = width
        self.centers = centers
        self.kind = kind
        self.bias = bias
        self.likelihood = likelihood
        self.inference = inference
        self.missing = missing
        self.dictionary = dictionary

    @override
    def _members(self, X: FloatArray, codes: npt.NDArray[np.intp]) -> tuple[tuple[LatentMember, ...], list[Status]]:
        remarks: list[Status] = []
        if self.width is not None or self.dictionary is not None:
            dictionary = self._given(X)
        else:
            found = self._compared(X, codes, as_likelihood(self.likelihood))
            dictionary = self._radial(X, found.best * found.spread)
            remarks += [Status.INTERRUPTED] if found.interrupted else []
        self._sparse = self._chosen(dictionary, X, codes)
        self.fits_: tuple[LatentFit, ...] = self._sparse.fits
        self.folds_: ClassFolds | None = None
        if self.inference == "type2" or self.width is not None:
            return (self._sparse,), remarks
        self.folds_ = class_folds(
            X,
            codes,
            len(self.classes_),
            lambda Z, c: self._chosen(self._at_rows(dictionary, Z), Z, c, 1),
            lambda Z, c: all_functions(self, self._at_rows(dictionary, Z), Z, c),
        )
        if self.folds_.interrupted:
            remarks.append(Status.INTERRUPTED)
        if not self.folds_.falls_back:
            return (self._sparse,), remarks
        return (all_functions(self, dictionary, X, codes),), [*remarks, Status.FELL_BACK]

    def _at_rows(self, dictionary: Dictionary, X: FloatArray) -> Dictionary:
        """The same functions, at the rows of a fold where the centres are rows."""
        if self.dictionary is not None or self.centers is not None:
            return dictionary
        assert self.found_width_ is not None
        return self._radial(X, self.found_width_.best * self.found_width_.spread)

    def _chosen(
        self, dictionary: Dictionary, X: FloatArray, codes: npt.NDArray[np.intp], n_starts: int = 3
    ) -> LatentMember:
        """Functions of a dictionary, chosen for each class."""
        d = dictionary.without_bias()
        design, bias = d.columns(X), bool(self.bias)
        return LatentMember(
            d,
            tuple(
                fit_latent_rvm(design, t, self.likelihood, inference=self.inference, bias=bias, n_starts=n_starts)
                for t in indicators(codes, len(self.classes_))
            ),
        )

    @override
    def _attributes(self, member: LatentMember) -> None:
        super()._attributes(self._sparse)

    @override
    def _witness(self, fit: RadialClassFit) -> list[Status]:
        folds = self.folds_
        if folds is None or not len(folds.sparse):
            return super()._witness(fit)
        chosen = folds.all_functions if Status.FELL_BACK in fit.notes else folds.sparse
        gains = chosen - folds.frequencies
        self.gain_, self.gain_error_ = float(gains.mean()), float(gains.std() / np.sqrt(len(gains)))
        return [] if clearly_positive(gains) else [Status.NO_BETTER_THAN_CONSTANT]
