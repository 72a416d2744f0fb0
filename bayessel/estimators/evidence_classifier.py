"""The evidence procedure for classes with scikit-learn's face."""

from __future__ import annotations

from dataclasses import replace
from typing import override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel._types import Missing, ModeInference, RadialKind
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.estimators._radial_classifier import RadialClassifier, all_functions
from bayessel.estimators.latent_member import LatentMember, weighed
from bayessel.fit import Status
from bayessel.likelihoods import Likelihood, as_likelihood


class EvidenceClassifier(RadialClassifier):
    r"""Bayesian logistic or probit regression on radial functions, precision and width weighed by the evidence.

    The log odds are :math:`f = b + \Phi w`, :math:`w \sim N(0, I/\alpha)`, :math:`b \sim N(0, 5^2)`. Weights are
    integrated out by Laplace's method, log α by a sum, and by default the width by a sum over the most probable ones,
    so that probabilities are averages. Distrust it where Laplace's method is poor: few rows in many dimensions, classes
    that hardly overlap (probabilities there are a little too moderate). With more than two classes each is fitted
    against the rest and probabilities are normalised, which is no one model: there is then no evidence.

    Parameters
    ----------
    width : None, float or (D,) array
        r of exp(-d^2/r^2). None compares ten widths in units of each input's robust spread, mixes up to three, and
        puts a linear trend beside the functions.
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
        'auto' as above; 'type2' takes the most probable width and precision.
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
        Width and functions of the most probable member.
    found_width_ : LatentWidths or None
        With None: the widths compared and their log posterior.
    basis_, coef_, intercept_, alpha_, n_basis_, gamma_
        Columns of ``dictionary_`` in use, their weights, the bias, their precisions, their number, and the number of
        well-determined parameters, at the most probable hyperparameters; with more than two classes a row for each.
    log_evidence_ : float
        Log probability of the labels in nats.
    gain_, gain_error_ : float
        Nats per row left out over the frequencies of the classes, and the standard error.
    fit_ : RadialClassFit
        What predicts; ``fit_.members`` are the fits of the engine.
    status_, notes_, history_, fingerprint_, version_
        How the fit ended, with advice; what was done; names of data and version.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "in", "out")
    >>> model = EvidenceClassifier().fit(X, y)
    >>> model.status_.name, model.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    ('CONVERGED', ['in', 'out'])
    >>> bool(model.predict_proba([[0.0, 0.0]])[0, 0] > 0.9)
    True
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
        if self.width is not None or self.dictionary is not None:
            return (all_functions(self, self._given(X), X, codes),), []
        found = self._compared(X, codes, as_likelihood(self.likelihood))
        widths = found.worth_mixing if self.inference == "auto" else np.array([found.best])
        members = [
            replace(
                all_functions(self, self._radial(X, float(r) * found.spread), X, codes),
                log_prior=found.log_prior(float(r)),
            )
            for r in widths
        ]
        return weighed(members), [Status.INTERRUPTED] if found.interrupted else []
