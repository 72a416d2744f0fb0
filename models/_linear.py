"""The linear-in-the-parameters model as a PyMC model, with its weights or with them integrated out.

Both forms describe t = Φw + b + noise with w_i ~ N(0, 1/α_i) and noise ~ N(0, 1/β):

explicit
    w is a random variable beside α and β; M + 2 dimensions to sample; pointwise likelihood, prediction at new rows.
collapsed
    t ~ N(b, I/β + ΦA⁻¹Φᵀ), A = diag(α): at most three dimensions to sample, with far less correlation.

The collapsed density needs no factorisation while sampling. With the thin decomposition ΦA^{-1/2} = U diag(s) Vᵀ
made once, of min(N, M) columns, and z = Uᵀ(t − b), every α and β costs one product with U:

    −2 log p = N log 2π − N log β + Σ log(1 + βs²) + β Σ z²/(1 + βs²) + β ‖t − b − Uz‖².

Nothing is squared on the way, so designs of condition 1e16 and beyond are as good as any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt
from scipy.linalg import svd

from bayessel._check import FloatArray, as_matrix, as_positive, as_positive_vector, as_target
from bayessel.basis import RBFDictionary
from bayessel.models._declared import Declared, remember
from bayessel.models._joint_normal import declare_noise, declare_rest, declare_tied
from bayessel.models._labels import column_labels
from bayessel.models._origin import origin
from bayessel.models._priors import GammaPrior, noise_precision_prior, spread, weight_precision_prior
from bayessel.models._radial_design import as_radial
from bayessel.models._row_terms import RowTerms, beyond, conditional_densities, outside
from bayessel.models._symbolic_marginal import declare_symbolic

#: Prior standard deviation of the intercept in spreads of t: wide enough to act as flat, yet it can be drawn from.
BIAS_SPREADS = 100.0


def linear(
    Phi: npt.ArrayLike | RBFDictionary,
    t: npt.ArrayLike,
    alpha: float | npt.ArrayLike | None = None,
    beta: float | None = None,
    collapsed: bool = False,
    *,
    bias: bool = False,
    alpha_shape: float = 0.5,
    alpha_rate: float | None = None,
    beta_shape: float = 0.5,
    beta_rate: float | None = None,
    bias_scale: float | None = None,
    names: Sequence[str] | None = None,
    X: npt.ArrayLike | None = None,
    width_prior: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> pm.Model:
    """Declare t = Φw + b + N(0, 1/β), w ~ N(0, A⁻¹); `pm.sample(model=...)` runs on the result.

    Parameters
    ----------
    Phi : array (N, M) or RBFDictionary
        Design: one column per basis function, for instance ``dictionary.design(X)``. Its bias column, if any, is a
        column like the others; to leave the intercept unpenalised drop it and pass ``bias=True``. Or a dictionary of
        radial functions, whose width becomes a random variable: one, or one for each input if the dictionary has so
        many (the number itself is not used). With `bias` the dictionary's own is left away.
    t : array (N,)
        Target, in any unit.
    alpha : None, number or M numbers, unit [Φ]²/[t]²
        Weight precision. None: one shared random variable with a Gamma prior. A number, or one per column: fixed.
    beta : None or number, unit 1/[t]²
        Noise precision. None: a random variable with a Gamma prior. A number: fixed.
    collapsed : bool
        Integrate the weights out analytically. The marginal over the other parameters is unchanged.
    bias : bool
        Add an intercept ``b`` outside the penalty, with prior N(mean of t, bias_scale²).
    alpha_shape, alpha_rate, beta_shape, beta_rate : float
        The Gamma priors, p(x) ∝ x^(shape−1) exp(−rate·x). By default shape = 1/2 and the rates are in units of the
        data: β as if one extra residual of 1 % of the spread of t had been seen; α as if one extra weight had been
        seen, a tenth of the size that lets the prior alone account for the spread of t. The spread is the root mean
        square of t, about its mean when `bias`.
    bias_scale : float, unit [t]
        Default 100 standard deviations of t. A flat prior would be improper and could not be drawn from; at this
        width the posterior of b differs from the flat one by less than 1e-4/N of its variance in a well-posed fit.
    names : M labels, optional
        Coordinates of the dimension ``basis``; default 0 … M−1.
    X : array (N, D)
        Inputs of a dictionary's design.
    width_prior : (median, log_sd), numbers or one for each width
        Log-normal prior of the width of a dictionary: its median in units of the inputs, and the standard deviation of
        its logarithm. Default the standard deviation of each input (of one width their root mean square) and 1.5.
        Default priors of other parameters are those of the design at the median.

    Returns
    -------
    pymc.Model
        Random variables ``w`` (explicit form; dimension ``basis``), ``alpha``, ``beta``, ``b`` and the observed
        ``t`` (dimension ``row``). What was fixed keeps its name as data (``pm.set_data`` changes it without a new
        compilation), except several fixed alphas of the collapsed form, which are part of its decomposition.
        The target is the data ``t_data``; in the explicit form the design is the data ``Phi``, so that prediction
        at new rows is ``pm.set_data({"Phi": new, "t_data": zeros}, coords={"row": rows})`` followed by
        ``pm.sample_posterior_predictive(trace, predictions=True)``. Of a dictionary the random variable ``width`` (of
        more than one: dimension ``input``), and the data ``X`` and ``centers`` in place of the design.

    Notes
    -----
    On overlapping basis functions the weights are strongly correlated, and NUTS takes an order of magnitude longer over
    the explicit form. Of the collapsed one `draw_weights` draws the weights exactly, `predict` and `predictive_model`
    predict new rows, and ``pm.sample_posterior_predictive`` draws new targets at the rows that were seen, given those.
    The log likelihood of ``t`` has log p(t_i | t_{−i}) for each row, the observed ``t_rest`` what log p(t) is beyond
    their sum: ``arviz.loo(trace, var_name="t")`` is leave-one-out, as for the explicit form; `bayessel.sample` keeps
    ``t`` alone. A deterministic ``noise``, the standard deviation (``weight_scale`` or ``level`` if β is fixed), goes
    with the data.

    With everything fixed the collapsed form has nothing left to sample: its ``compile_logp`` is the log evidence.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> Phi = np.column_stack([np.ones(4), np.arange(4.0)])
    >>> model = bs.models.linear(Phi, [0.1, 0.9, 2.1, 2.9], collapsed=True)
    >>> sorted(variable.name for variable in model.free_RVs)
    ['alpha', 'beta']

    The width of radial functions as an unknown beside them, one for each of two inputs:

    >>> X = np.arange(8.0).reshape(4, 2)
    >>> model = bs.models.linear(bs.RBFDictionary(X, [1.0, 1.0]), [0.1, 0.9, 2.1, 2.9], X=X, collapsed=True)
    >>> sorted(variable.name for variable in model.free_RVs)
    ['alpha', 'beta', 'width']
    """
    radial = as_radial(Phi, X, width_prior, without_bias=bool(bias))
    design = as_matrix(Phi, "Phi") if radial is None else radial.design()
    n_rows, n_columns = design.shape
    target = as_target(t, n_rows, "t")
    # what is given stays as it is; what is not gets a prior
    given_alpha: float | FloatArray | GammaPrior | None = _given_alpha(alpha, n_columns)
    if given_alpha is None:
        given_alpha = weight_precision_prior(design, target, centre=bias, shape=alpha_shape, rate=alpha_rate)
    given_beta: float | GammaPrior
    if beta is None:
        given_beta = noise_precision_prior(target, centre=bias, shape=beta_shape, rate=beta_rate)
    else:
        given_beta = as_positive(beta, "beta")
    scale = BIAS_SPREADS * spread(target) if bias_scale is None else as_positive(bias_scale, "bias_scale")

    with pm.Model(coords={"row": np.arange(n_rows), "basis": column_labels(names, n_columns)}) as model:
        # data are shared variables: constants would enter the key of the compiled code, one compilation per data set
        t_data = pm.Data("t_data", target, dims="row")
        noise = _precision("beta", given_beta)
        offset = pm.Normal("b", _constant(target.mean()), _constant(scale)) if bias else None
        moving, width, seen = (None, None, ()) if radial is None else radial.declare()
        if collapsed and moving is not None:
            shift = _constant(0.0) if offset is None else offset
            t = declare_symbolic(moving, t_data, _precision("alpha", given_alpha), noise, shift, width, seen)
        elif collapsed:
            t = _declare_collapsed(design, t_data, given_alpha, noise, offset)
        else:
            columns = pm.Data("Phi", design, dims=("row", "basis")) if moving is None else moving
            w = pm.Normal("w", 0.0, tau=_precision("alpha", given_alpha), dims="basis")
            mean = pt.dot(columns, w)
            t = pm.Normal("t", mean if offset is None else mean + offset, tau=noise, observed=t_data, dims="row")
        remember(t, Declared("linear", bool(collapsed), dictionary=None if radial is None else radial.dictionary))
    return model


def _given_alpha(alpha: Any, n_columns: int) -> float | FloatArray | None:
    """One positive number as a float, one per column as a vector, or None."""
    if alpha is None:
        return None
    if np.ndim(alpha) == 0:
        return as_positive(alpha, "alpha")
    return as_positive_vector(alpha, "alpha", n_columns)


def _constant(value: Any) -> Any:
    """A number in double precision; a plain 3.0 would become a float32, and so would its logarithm in the density."""
    return pt.constant(np.asarray(value, dtype=np.float64))


def _precision(name: str, value: float | FloatArray | GammaPrior) -> Any:
    """Declare a precision in the model on the stack: data when it is a number, a random variable when it is a prior."""
    if isinstance(value, GammaPrior):
        return pm.Gamma(name, alpha=_constant(value.shape), beta=_constant(value.rate))
    return pm.Data(name, value, dims="basis" if np.ndim(value) else None)


def _declare_collapsed(
    design: FloatArray,
    t_data: Any,
    alpha: float | FloatArray | GammaPrior,
    noise: Any,
    offset: Any | None,
) -> Any:
    """Declare the observed t ~ N(b, I/β + ΦA⁻¹Φᵀ) in the model on the stack, a term for each row."""
    if isinstance(alpha, np.ndarray):
        # separate precisions have no common factor to leave outside, so they go into the decomposition for good
        design, weight_precision = design / np.sqrt(alpha), _constant(1.0)
        pm.Data("prior_scale", 1.0 / np.sqrt(alpha), dims="basis")
    else:
        weight_precision = _precision("alpha", alpha)
    parts = svd(design, full_matrices=False)
    left, singular, _ = (
        pm.Data(name, part) for name, part in zip(("Phi_left", "Phi_singular", "Phi_axes"), parts, strict=True)
    )
    shift = _constant(0.0) if offset is None else offset
    tied = _declare_tied(weight_precision, noise, offset, (t_data, left, singular))
    t: Any = pm.CustomDist(
        "t",
        left,
        singular,
        weight_precision,
        noise,
        shift,
        t_data,
        _constant(0.0) if tied is None else origin(tied, weight_precision, noise, shift),
        logp=lambda value, *parameters: left_out(value, *parameters[:5]),
        dist=_collapsed_draw,
        signature="(n,k),(k),(),(),(),(n),()->(n)",
        observed=t_data,
        dims="row",
    )
    parameters = left, singular, weight_precision, noise, shift
    terms: Any = left_out(t_data, *parameters)
    declare_rest(t, _collapsed_logp(t_data, *parameters), terms)
    return t


def _declare_tied(alpha: Any, beta: Any, offset: Any | None, data: tuple[Any, ...]) -> Any:
    """Declare what goes with the data and moves with the draws; None where no parameter is random."""
    free = pm.modelcontext(None).free_RVs
    if beta in free:
        return declare_noise(1.0 / pt.sqrt(beta), *data)
    if alpha in free:
        return declare_tied("weight_scale", 1.0 / pt.sqrt(alpha), *data)
    return None if offset is None else declare_tied("level", offset, *data)


def _collapsed_logp(value: Any, left: Any, singular: Any, alpha: Any, beta: Any, offset: Any) -> Any:
    """Log of N(value | offset, I/β + U diag(s²) Uᵀ/α) in nats, every constant kept."""
    deviation = value - offset
    z = pt.dot(left.T, deviation)
    residual = deviation - pt.dot(left, z)
    gain = (singular * pt.sqrt(beta / alpha)) ** 2  # s² alone may overflow
    quadratic = pt.sum(z**2 / (1.0 + gain)) + pt.sum(residual**2)
    n_rows = value.shape[0]
    return -0.5 * (n_rows * (np.log(2.0 * np.pi) - pt.log(beta)) + pt.sum(pt.log1p(gain)) + beta * quadratic)


class SharedRowTerms(RowTerms):
    """(t, U, s, α, β, b) -> the terms of N(t | b, I/β + U diag(s²) Uᵀ/α)."""

    gufunc_signature = "(n),(n,k),(k),(),(),()->(n)"

    def terms(self, t: FloatArray, *parameters: Any) -> FloatArray:
        """Λ/β = U diag(1/(1 + βs²/α)) Uᵀ + I − UUᵀ."""
        left, singular, alpha, beta, offset = parameters
        shrunk = 1.0 / (1.0 + (singular * np.sqrt(beta / alpha)) ** 2)
        z = left.T @ (t - offset)
        precision = beta * (outside(left) + left**2 @ shrunk)
        return conditional_densities(beta * (beyond(left, z, t - offset) + left @ (shrunk * z)), precision)


left_out = SharedRowTerms()


def _collapsed_draw(left: Any, singular: Any, alpha: Any, beta: Any, offset: Any, t: Any, given: Any, size: Any) -> Any:
    """Draw new targets: coordinates from their prior, or given those that were seen, then noise."""
    c = coordinates_given(
        pm.Normal.dist(0.0, 1.0, size=singular.shape), left, singular, alpha, beta, t - offset, pt.neq(given, 0)
    )
    noise = pm.Normal.dist(0.0, 1.0, size=left.shape[:1])
    return offset + pt.dot(left, singular * c) / pt.sqrt(alpha) + noise / pt.sqrt(beta)


def coordinates_given(c: Any, left: Any, singular: Any, alpha: Any, beta: Any, deviation: Any, given: Any) -> Any:
    """Φw = U diag(s) c/√α with c standard normal: as drawn, or moved to their posterior given the deviations."""
    half = singular * pt.sqrt(beta / alpha)
    gain = half**2
    moved = c / pt.sqrt(1.0 + gain) + half * pt.sqrt(beta) * pt.dot(left.T, deviation) / (1.0 + gain)
    return pt.switch(given, moved, c)
