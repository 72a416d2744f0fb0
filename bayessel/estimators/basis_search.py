"""Search for basis functions guided by the evidence, with scikit-learn's face."""

from __future__ import annotations

from typing import Any, Self, override

from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_flag, one_of
from bayessel._row_weights import RowWeights, given
from bayessel._types import Missing, ModeInference, RadialKind
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.criteria.evidence import EVIDENCE
from bayessel.estimators._selecting_regressor import SelectingRegressor
from bayessel.estimators.referenced_fit import engine_fit
from bayessel.linear import search
from bayessel.linear.selection.objective import SCORES
from bayessel.linear.selection.strategies import Strategy
from bayessel.work.progress import Progress

#: seconds without a bar
QUIET = 2.0


class BasisSearchRegressor(SelectingRegressor):
    r"""A few radial functions, found by a search that the model evidence guides.

    The model is :math:`t = b + \Phi w + \epsilon`, :math:`w \sim N(0, I/\alpha)`, :math:`\epsilon \sim N(0, 1/\beta)`,
    with a flat prior on the bias b, on a subset of the dictionary. Functions are added and removed one at a time so
    that the evidence, with both precisions integrated out, becomes as large as possible (Barrio, Romero and Belanche
    2010). 'sffs' finds the smallest models with the highest evidence, 'oscil(5)' mostly predicts better, 'pta(1,0)' is
    fastest. All functions together, `EvidenceRegressor`, predict best where they can be afforded.

    Parameters
    ----------
    width : None, float, (D,) array or 'abf'
        r of exp(-d^2/r^2). None takes one width in units of each input's robust spread, or those of 'abf', whichever
        predicts rows held out of refitted folds best. 'abf' takes the widths, one per input, that a model of all
        functions prefers (of at most 500 rows).
    centers : None or (M, D) array
        Centres of the functions on offer; None puts one at each training input (where the
        width is left to the estimator, at 400 of more rows).
    kind : str
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias : bool
        Include a bias with a flat prior.
    strategy : str or callable
        'pta(l,r)' (plus l, take away r), 'sffs', 'oscil(c)', or your own: see `bayessel.linear.search`.
    objective : str
        'evidence', or what else `bayessel.linear.search` can climb, such as 'loo' or 'mdl-w'.
    top : int
        Re-estimate the precisions for that many of the best candidates of each step before one is taken.
    max_size : int, optional
        Largest number of functions.
    within : float
        Nats by which the model may be worse than the best one seen, so that it is smaller: where functions overlap, the
        evidence is flat. 0 takes the best (of the size that 'oscil(c)' goes around).
    progressbar : bool
        Show a search of more than two seconds on a terminal; never in pipes.
    missing : {"error", "indicator"}
        Missing values of X: refused, or filled by the median of the column, with a 0/1 column that says where
        (``docs/tables.md``).
    dictionary : None or object
        Columns of your own instead of radial functions: a dictionary of `bayessel.basis` or any object with its
        methods; width, centers and kind are then left alone, and `bias` decides about the bias. By default the columns
        are divided by their standard deviations (``dictionary_.scale``, to which ``coef_`` belongs), and all of them,
        with signal to noise and noise integrated out, are the reference of the fit.

    Attributes
    ----------
    width_ : float or (D,) array
        Width in use, in the units of X; one per input where it was found.
    found_width_ : FoundWidth or None
        With None: the widths compared, and the nats per held-out row that the fit is worth over a constant.
    log_evidence_, model_evidence_ : float
        ``log p(y | alpha_, beta_)`` in nats and in the units of y; the same with the precisions integrated out.
    basis_, coef_, n_basis_
        Columns of ``dictionary_`` in use (the bias is its last), their weights, their number. By default the weights
        are those that come closest to the model of all functions; the engine's own are ``fit_.inner.coef``.
    alpha_, beta_, noise_std_, gamma_
        Weight precision and noise precision of the functions in use, standard deviation of the noise (by default that
        of the model of all functions), well-determined parameters.
    path_ : dict
        Size -> the best model of that size that was seen: ``.value`` (larger is better) and ``.basis``.
    n_added_, n_removed_, seconds_
        What the search did.
    status_ : Status
        How the fit ended, with advice.
    history_ : list of dict
        The steps of the search.
    fit_ : SearchFit
        Everything the engine returned.

    Examples
    --------
    >>> import numpy as np
        >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(80, 1))
    >>> y = np.sinc(X[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = BasisSearchRegressor(width=1.5, strategy="sffs").fit(X, y)
    >>> model.n_basis_ < 12, bool(0.05 < model.noise_std_ < 0.15)
    (True, True)
    """

    def __init__(
        self,
        width: ArrayLike | None = None,
        centers: ArrayLike | None = None,
        kind: RadialKind = "gaussian",
        bias: bool = True,
        strategy: str | Strategy = "pta(1,0)",
        objective: str = EVIDENCE.name,
        top: int = 0,
        max_size: int | None = None,
        within: float = 1.0,
        progressbar: bool = True,
        inference: ModeInference = "auto",
        missing: Missing = "error",
        dictionary: DictionaryLike | None = None,
    ) -> None:
        self.width = width
        self.centers = centers
        self.kind = kind
        self.bias = bias
        self.strategy = strategy
        self.objective = objective
        self.top = top
        self.max_size = max_size
        self.within = within
        self.progressbar = progressbar
        self.inference = inference
        self.missing = missing
        self.dictionary = dictionary

    @override
    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, noise_std: ArrayLike | None = None
    ) -> Self:
        """Fit to inputs (N, D) and a target (N,), with weights and noise levels of rows as of `EvidenceRegressor`."""
        super().fit(X, y, sample_weight=sample_weight, noise_std=noise_std)
        fits = [engine_fit(one.fit_) for one in self.outputs_ or (self,)]
        self.n_added_, self.n_removed_ = sum(fit.n_added for fit in fits), sum(fit.n_removed for fit in fits)
        self.seconds_ = sum(fit.seconds for fit in fits)
        return self

    @override
    def _select(self, design: Any, y: FloatArray, weights: RowWeights | None = None) -> Any:
        one_of(self.objective, "objective", SCORES)
        with Progress(as_flag(self.progressbar, "progressbar"), "searching", after=QUIET, estimate=False) as bar:

            def tell(found: Any) -> None:
                said = f"searching: {found.size} functions, the best model has {found.best_size}"
                bar.update(found.size, said, found.largest)

            return search(
                design,
                y,
                self.strategy,
                score=self.objective,
                centre=bool(self.bias),
                top=self.top,
                max_size=self.max_size,
                within=self.within,
                callback=tell,
                **given(weights),
            )

    @property
    @override
    def _weighs(self) -> bool:
        return bool(self.objective == EVIDENCE.name)

    @override
    def _path_label(self) -> str:
        return "log model evidence" if self.objective == EVIDENCE.name else f"{self.objective} (larger is better)"
