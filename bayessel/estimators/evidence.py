"""The evidence procedure with scikit-learn's face."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, one_of
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import given
from bayessel._types import Missing, ModeInference, PrecisionSteps, RadialKind, RadialLikelihood
from bayessel.basis import JoinedDictionary, RBFDictionary
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.estimators._changing_rows import TrainingRows
from bayessel.estimators._latent_radial import RadialInDataUnits, check_settings, declared, fitted_through
from bayessel.estimators._radial_dictionary import find_widths
from bayessel.estimators._rbf_regressor import RBFRegressor
from bayessel.estimators.given_dictionary import FoldWitness, bound_dictionary, fit_witnessed
from bayessel.estimators.latent_member import LatentMember
from bayessel.estimators.listed_records import Records
from bayessel.estimators.shared_references import reference_of
from bayessel.linear import LinearFit, Spectrum, fit_abf, fit_evidence
from bayessel.linear.integrated.mixture import IntegratedFit
from bayessel.linear.type2 import METHODS
from bayessel.prediction import Prediction

if TYPE_CHECKING:
    import pymc as pm

INFERENCES = ("auto", "type2")
#: functions at rows of the data, unless centres are given: their cost grows with the cube of their number
MOST_CENTRES = 1500


class EvidenceRegressor(RBFRegressor):
    r"""Bayesian linear regression on radial functions; hyperparameters integrated out, or chosen by the evidence.

    By default the functions have a linear trend beside them, and widths, the share of the trend, signal and noise are
    integrated out: predictions are mixtures that hold the uncertainty of all of them, over a shared width and widths
    per input, weighed by what refitted folds predict of rows held out (`bayessel.estimators.stacked_widths`). With
    ``inference="type2"``, or a width of your own, the model is :math:`t = b + \Phi w + \epsilon`,
    :math:`w \sim N(0, I/\alpha)`, :math:`\epsilon \sim N(0, 1/\beta)` with a flat prior on the bias b, and the evidence
    chooses α and β. Distrust both where the noise varies with the input or residuals have heavy tails, and the second
    far from the data: gaussians decay, and what is left there is the bias and its own error bar.

    Parameters
    ----------
    width : None, float, (D,) array, 'fit' or 'ard'
        r of exp(-d^2/r^2). None leaves it to the estimator: integrated out, or with ``inference="type2"`` one width in
        units of each input's robust spread, or one per input, whichever predicts rows held out of refitted folds best.
        'fit' chooses one width by the evidence gradient, 'ard' one per input.
    inference : str
        'auto' integrates the hyperparameters out where the width is left to the estimator; 'type2' maximises the
        evidence over them, always.
    centers : None or (M, D) array
        Centres of the functions; None puts one at each training input, at 1500 of more rows (where the width is left
        to the estimator, at 400), evenly spread over their order by the first input; a note says so.
    kind : str
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias : bool
        Include a bias with a flat prior.
    method : str
        'profile' (all maxima, the best returned), 'mackay' or 'em'.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).
    dictionary : None or object
        Columns of your own instead of radial functions: a dictionary of `bayessel.basis` or any object with its
        methods; width, centers and kind are then left alone, and `bias` decides about the bias. By default signal and
        noise are integrated out, with columns divided by their standard deviations (``coef_`` is that of the columns as
        they are), and refitted folds are the witness; 'type2' takes the columns as they are.
    likelihood : {"gaussian", "student", "poisson", "negative-binomial"}
        What is observed at the function: real numbers with normal noise; with heavy tails, so that a few outliers
        decide nothing; counts, whose mean has the function as its logarithm. All but the first by Laplace's method:
        the precision of the functions and the width are summed over ('type2': at their most probable values), the
        parameters of the likelihood at their most probable values. Functions stand once at each row listed: with
        ``centers=None`` a weight of two is not quite a row that came twice.

    Attributes
    ----------
    width_ : float or (D,) array
        Width in use, in the units of X; one per input where it was found.
    found_width_ : FoundWidth, LatentWidths or None
        With None: what was compared, and the nats per held-out row that the fit is worth over a constant; with another
        likelihood than "gaussian" the widths and their log posterior.
    witness_ : FoldWitness or None
        With a dictionary: the nats per held-out row over a constant of folds fitted anew, and the share of the fit
        beside a constant.
    log_evidence_ : float
        In nats and in the units of y, summed over outputs: log p(y) with the hyperparameters integrated out, or with
        ``inference="type2"`` ``log p(y | alpha_, beta_)``. The latter is, with ``bias=False``,
        ``bs.linear.log_evidence(Phi, y, alpha_, beta_)`` for ``Phi = dictionary_.design(X)``; with a bias, pass the
        kernel columns alone and ``centre=True``.
    alpha_, beta_, noise_std_, gamma_
        Weight precision (integrated: one over the variance of the function), noise precision, its root inverse,
        well-determined parameters (arrays for several outputs). Integrated, they are those of the most probable
        hyperparameters, as are ``width_``, ``dictionary_`` and ``coef_``; ``noise_std_`` and predictions are averages.
    basis_, coef_, n_basis_
        Columns of ``dictionary_`` in use (the bias is the last column; left out with another likelihood than
        "gaussian"), their weights, their number.
    status_ : Status
        How the fit ended, with advice.
    history_ : list of dict
        The maxima of the profile, or the iterations.
    fit_ : IntegratedFit, LinearFit or SeveralOutputs
        What the engine returned: of inputs where hyperparameters were integrated out, else in terms of the columns of
        the dictionary without the bias; then after `partial_fit` and `forget` an `IncrementalFit`.
    optima_ : tuple
        With 'fit' or 'ard': every optimum of the widths that was found.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(50, 1))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=50)
    >>> model = EvidenceRegressor(width="fit").fit(X, y)
    >>> mean, std = model.predict([[0.25]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 3 * std[0])
    True
    >>> model.status_.name, [round(float(optimum.widths[0]), 2) for optimum in model.optima_]
    ('MULTIPLE_OPTIMA', [0.21, 0.47])
    """

    _most_centres = MOST_CENTRES
    optima_: tuple[Any, ...]
    witness_: FoldWitness | None

    def __init__(
        self,
        width: ArrayLike | None = None,
        centers: ArrayLike | None = None,
        kind: RadialKind = "gaussian",
        bias: bool = True,
        method: PrecisionSteps = "profile",
        inference: ModeInference = "auto",
        missing: Missing = "error",
        dictionary: DictionaryLike | None = None,
        likelihood: RadialLikelihood = "gaussian",
    ) -> None:
        self.width = width
        self.centers = centers
        self.kind = kind
        self.bias = bias
        self.method = method
        self.inference = inference
        self.missing = missing
        self.dictionary = dictionary
        self.likelihood = likelihood

    @override
    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, noise_std: ArrayLike | None = None
    ) -> Self:
        check_settings(self, noise_std)
        return super().fit(X, y, sample_weight=sample_weight, noise_std=noise_std)

    @override
    def _fit_records(self, X: FloatArray, y: FloatArray) -> None:
        if self.likelihood == "gaussian":
            super()._fit_records(X, y)
            return
        one_of(self.inference, "inference", INFERENCES)
        self.optima_, self.witness_ = (), None
        self._records, self._rows = Records(X, y, None), TrainingRows(X, y)
        self._engine, self.found_width_ = fitted_through(self, X, y, self._row_weights)
        member: LatentMember = self._engine.inner.members[0]
        best, d = member.fits[0], member.dictionary
        functions = d.parts[0] if isinstance(d, JoinedDictionary) else d
        self.dictionary_ = d
        self.width_ = functions.width if isinstance(functions, RBFDictionary) else None
        scale = float(self._engine.units.target_scale)
        self.basis_, self.n_basis_, self.coef_ = best.basis, best.n_basis, scale * best.coef
        self.alpha_, self.gamma_ = float(best.alpha[0]) / scale**2, best.gamma
        self.noise_std_ = self._engine.noise_std
        self.beta_ = self.noise_std_**-2.0
        self.log_evidence_ = float(self._engine.evidence.value)
        self.notes_, self.status_ = self._engine.notes, self._engine.status
        self.history_, self.n_rows_ = [dict(step) for step in self._engine.history], len(X)
        self._fingerprint = self._engine.fingerprint

    @override
    def _fits_each(self) -> bool:
        return super()._fits_each() or self.likelihood != "gaussian"

    @override
    def to_pymc(self) -> pm.Model:
        if self.likelihood == "gaussian":
            return super().to_pymc()
        rows = self._one_output("to_pymc", np.zeros(0))
        return declared(self, rows.X, rows.y)

    @override
    def _fit_data(self, X: FloatArray, y: FloatArray) -> None:
        one_of(self.inference, "inference", INFERENCES)
        one_of(self.method, "method", METHODS)
        self.optima_, self.witness_ = (), None
        if self._thins():
            self._fit_integrated(X, y)
        else:
            super()._fit_data(X, y)

    def _fit_integrated(self, X: FloatArray, y: FloatArray) -> None:
        """Integrate the hyperparameters out."""
        if self.dictionary is not None:
            columns = bound_dictionary(self, X)
            fit, self.witness_ = fit_witnessed(X, y, columns, self._records.weights)
            self.dictionary_, self.width_ = columns, None
        else:
            fit, found = reference_of(self, X, y)
            self._width_notes, d = found.notes, fit.mode.dictionary
            assert isinstance(d, RBFDictionary)
            self.dictionary_ = RBFDictionary(d.centers, d.width, kind=d.kind, bias=bool(self.bias), linear=d.linear)
        self._engine, self._rows, self._fingerprint = fit, TrainingRows(X, y), fingerprint(X, y)
        self._show([fit], False)

    @override
    def _thins(self) -> bool:
        return self.width is None and self.inference == "auto"

    @override
    def _mixtures(self) -> Callable[[FloatArray], Prediction] | None:
        if not isinstance(self._engine, IntegratedFit | RadialInDataUnits):
            return None
        predict: Any = self._engine.predict
        return predict

    def _choose_width(self, X: FloatArray, y: FloatArray, centers: FloatArray) -> Any:
        if self.width is None:
            return find_widths(
                self,
                X,
                y,
                lambda Phi, t, w: fit_evidence(Phi, t, centre=bool(self.bias), method=self.method, **given(w)),
                per_input=y.ndim == 1,
            )
        if not isinstance(self.width, str):
            return self.width
        one_of(self.width, "width", ("fit", "ard"))
        weights = given(self._records.weights)
        found = fit_abf(X, y, centers=centers, kind=self.kind, centre=self.bias, shared=self.width == "fit", **weights)
        self.optima_ = found.optima
        self._width_notes = found.notes
        return float(found.widths[0]) if self.width == "fit" else found.widths

    def _fit_one(self, spectrum: Spectrum, design: FloatArray, t: FloatArray) -> LinearFit:
        return fit_evidence(spectrum, method=self.method)
