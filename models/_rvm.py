"""The relevance vector machine as a PyMC model: one prior precision per weight, explicit or with the weights gone.

Both forms describe t = Φw + noise with w_i ~ N(0, 1/α_i) and noise ~ N(0, 1/β):

explicit
    w is a random variable beside α and β; pointwise likelihood, prediction at new rows, conjugate conditionals.
collapsed
    t ~ N(0, I/β + ΦA⁻¹Φᵀ), A = diag(α); the weights are drawn afterwards, exactly, by `draw_weights`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt
from scipy.linalg import qr, svd

from bayessel._check import (
    FloatArray,
    as_flag,
    as_matrix,
    as_positive,
    as_positive_vector,
    as_target,
    one_of,
)
from bayessel._pymc import Transform
from bayessel.basis import RBFDictionary
from bayessel.models._declared import Declared, remember
from bayessel.models._joint_normal import declare_noise, declare_rest
from bayessel.models._labels import column_labels
from bayessel.models._linear import _constant, _precision
from bayessel.models._marginal import left_out, log_marginal, weights_given
from bayessel.models._origin import origin
from bayessel.models._priors import noise_precision_prior, separate_precision_rates, spread
from bayessel.models._radial_design import as_radial
from bayessel.models._symbolic_marginal import declare_symbolic

PRIORS = ("gamma", "horseshoe")
#: Prior size of a single large contribution φ_i w_i of the horseshoe, in spreads of t.
SLAB_SPREADS = 5.0


class Whitened(Transform):
    """Sample w through coordinates z in which it is nearly a unit normal, whatever its prior precisions.

    w = D L⁻ᵀ(z + L⁻¹Dβ₀Φᵀt) with D = A^{-1/2} and LLᵀ = I + Dβ₀ΦᵀΦD: given α, and if β were β₀, z is exactly a unit
    normal under the posterior. β₀ is a guess and need not be good: it moves the sampler's path, not its target.
    """

    name = "whitened"
    ndim_supp = 1

    def __init__(self, design: FloatArray, target: FloatArray) -> None:
        beta = _typical_noise_precision(design, target)
        self.gram = pt.constant(beta * (design.T @ design))
        self.pull = pt.constant(beta * (design.T @ target))

    def _parts(self, scale: Any) -> tuple[Any, Any]:
        gram = self.gram * scale[:, None] * scale[None, :]
        factor = pt.linalg.cholesky(gram + pt.eye(gram.shape[0]))
        return factor, pt.linalg.solve_triangular(factor, scale * self.pull, lower=True)

    def forward(self, value: Any, *inputs: Any) -> Any:
        """z of w."""
        factor, centre = self._parts(inputs[-1])
        return pt.dot(factor.T, value / inputs[-1]) - centre

    def backward(self, value: Any, *inputs: Any) -> Any:
        """w of z."""
        factor, centre = self._parts(inputs[-1])
        return inputs[-1] * pt.linalg.solve_triangular(factor.T, value + centre, lower=False)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """log|dw/dz|."""
        factor, _ = self._parts(inputs[-1])
        return pt.sum(pt.log(inputs[-1])) - pt.sum(pt.log(pt.diag(factor)))


def _typical_noise_precision(design: FloatArray, target: FloatArray) -> float:
    """β at the best common ridge, by the evidence on a grid; a noise below a thousandth of the spread is not needed."""
    left, s, _ = svd(design, full_matrices=False)
    size = spread(target)
    z2 = (left.T @ (target / size)) ** 2
    rest = float(np.sum((target / size) ** 2) - z2.sum())
    gain = np.geomspace(1e-6, 1e6, 61)[:, None] * (s / (s[0] or 1.0)) ** 2
    quadratic = (z2 / (1.0 + gain)).sum(axis=1) + max(rest, 0.0)
    quadratic = np.maximum(quadratic, 1e-6 * len(target))
    best = int(np.argmin(np.log1p(gain).sum(axis=1) + len(target) * np.log(quadratic)))
    return float(len(target) / quadratic[best]) / size**2


def rvm(
    Phi: npt.ArrayLike | RBFDictionary,
    t: npt.ArrayLike,
    prior: str = "gamma",
    collapsed: bool = False,
    *,
    alpha_shape: float = 1.0,
    alpha_rate: float | npt.ArrayLike | None = None,
    beta_shape: float = 0.5,
    beta_rate: float | None = None,
    expected_basis: float | None = None,
    slab_scale: float | None = None,
    slab_df: float = 4.0,
    names: Sequence[str] | None = None,
    X: npt.ArrayLike | None = None,
    width_prior: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> pm.Model:
    """Declare t = Φw + N(0, 1/β), w_i ~ N(0, 1/α_i), each weight with its own α_i; `pm.sample` runs on the result.

    Parameters
    ----------
    Phi : array (N, M) or RBFDictionary
        Design: one column per basis function, for instance ``dictionary.design(X)``. A bias is a column like the
        others. A column of ones also tells the default priors that the mean of t says nothing about its spread. Or a
        dictionary of radial functions, whose width becomes a random variable as in `linear`.
    t : array (N,)
        Target, in any unit.
    prior : str
        'gamma': α_i ~ Gamma(a, b_i) independently, so that a weight alone has a Student t prior of 2a degrees of
        freedom and scale √(b_i/a). 'horseshoe': the regularised horseshoe of Piironen and Vehtari (2017),
        w_i ~ N(0, τ² λ̃_i²), λ̃_i² = c² λ_i²/(c² + τ² λ_i²) with λ_i half-Cauchy: weights are either shrunk to
        almost nothing or hardly at all, and never beyond c.
    collapsed : bool
        Integrate the weights out analytically. The marginal over the other parameters is unchanged; `draw_weights`
        draws the weights afterwards.
    alpha_shape, alpha_rate : float, or for the rate one per column
        Gamma prior of the α_i, p(x) ∝ x^(a−1) exp(−b x). Default a = 1, two degrees of freedom for each weight, and
        their scale is the size at which all weights together account for the spread of t, column by column in the
        units of that column. Smaller shapes are sparser and give a posterior of several modes, which
        chains leave rarely; the limit a, b → 0 of type-II maximum likelihood is improper: it can be maximised
        (``bs.linear.fit_rvm``) but not sampled.
    beta_shape, beta_rate : float
        Gamma prior of β. By default as if one extra residual of 1 % of the spread of t had been seen.
    expected_basis : float
        Horseshoe only: number p of functions expected to matter, which sets the global scale
        τ = tau · p/(M − p)/√(βN) for columns of unit root mean square, tau ~ C⁺(0, 1). Default M/10, at least 1.
    slab_scale, slab_df : float
        Horseshoe only: a weight that escapes shrinkage has a Student t prior of `slab_df` degrees of freedom and of
        this scale, as the root mean square of φ_i w_i in the unit of t: c² ~ InvGamma(df/2, df scale²/2). Default
        5 spreads of t.
    names : M labels, optional
        Coordinates of the dimension ``basis``; default 0 … M−1.
    X, width_prior
        Inputs of a dictionary's design, and the prior of its width, as of `linear`.

    Returns
    -------
    pymc.Model
        Random variables ``w`` (explicit form), ``alpha`` (both of dimension ``basis``), ``beta`` and the observed ``t``
        (dimension ``row``). The horseshoe has ``tau``, ``lam`` (dimension ``basis``) and ``c2`` instead of a random
        ``alpha``, which becomes a deterministic. The target is the data ``t_data``; in the explicit form the design
        is the data ``Phi``, so that prediction at new rows is
        ``pm.set_data({"Phi": new, "t_data": zeros}, coords={"row": rows})`` followed by
        ``pm.sample_posterior_predictive(trace, predictions=True)``.

    Notes
    -----
    `bayessel.sample` draws α and β of both forms with the weights integrated out (gamma priors). For gradients, as of
    the horseshoe, prefer the collapsed form: it has half the dimensions, none of the correlation between overlapping
    functions and no funnel; its log likelihood, predictions and ``noise`` are as of the collapsed `linear`. The
    explicit form has w in coordinates that are nearly unit normal at every α for the same reason; a Cholesky factor of
    size M in each step is the price. Where weights are hardly determined by the
    data, their posterior has the heavy tails of their prior, and so does the Monte Carlo error of their mean: look at
    medians, or take ``alpha_shape=2``.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-1, 1, 20)
    >>> Phi = bs.RBFDictionary(x, width=0.5).design(x)
    >>> model = bs.models.rvm(Phi, np.sinc(3 * x), collapsed=True)
    >>> sorted(variable.name for variable in model.free_RVs)
    ['alpha', 'beta']
    """
    radial = as_radial(Phi, X, width_prior)
    design = as_matrix(Phi, "Phi") if radial is None else radial.design()
    n_rows, n_columns = design.shape
    target = as_target(t, n_rows, "t")
    one_of(prior, "prior", PRIORS)
    gone = as_flag(collapsed, "collapsed")
    constant = bool((np.ptp(design, axis=0) == 0.0).any() and n_rows > 1)
    noise_prior = noise_precision_prior(target, centre=constant, shape=beta_shape, rate=beta_rate)
    shape = as_positive(alpha_shape, "alpha_shape")
    if alpha_rate is None and prior == "gamma":
        rates = separate_precision_rates(design, target, centre=constant, shape=shape)
    elif prior == "gamma":
        rates = as_positive_vector(alpha_rate, "alpha_rate", n_columns)

    with pm.Model(coords={"row": np.arange(n_rows), "basis": column_labels(names, n_columns)}) as model:
        # data are shared variables: constants would enter the key of the compiled code, one compilation per data set
        t_data = pm.Data("t_data", target, dims="row")
        beta = _precision("beta", noise_prior)
        if prior == "gamma":
            alpha = pm.Gamma("alpha", alpha=_constant(shape), beta=_constant(rates), dims="basis")
        else:
            alpha = _declare_horseshoe(design, target, beta, constant, expected_basis, slab_scale, slab_df)
        moving, width, seen = (None, None, ()) if radial is None else radial.declare()
        observed: Any
        if gone and moving is not None:
            observed = declare_symbolic(moving, t_data, alpha, beta, _constant(0.0), width, seen)
        elif moving is not None:
            w = pm.Normal("w", 0.0, tau=alpha, dims="basis")
            observed = pm.Normal("t", pt.dot(moving, w), tau=beta, observed=t_data, dims="row")
        elif gone:
            observed = _declare_collapsed(design, t_data, alpha, beta)
            # what its parameters are, for samplers that look for it
            observed.tag.linear_marginal = True
        else:
            design_data = pm.Data("Phi", design, dims=("row", "basis"))
            w = pm.Normal("w", 0.0, tau=alpha, dims="basis", transform=Whitened(design, target))
            observed = pm.Normal("t", pt.dot(design_data, w), tau=beta, observed=t_data, dims="row")
        remember(observed, Declared("rvm", gone, dictionary=None if radial is None else radial.dictionary))
    return model


def _declare_collapsed(design: FloatArray, t_data: Any, alpha: Any, beta: Any) -> Any:
    """Declare the observed t ~ N(0, I/β + ΦA⁻¹Φᵀ) in the model on the stack, a term for each row."""
    left, right = (pm.Data(name, part) for name, part in zip(("Phi_left", "Phi_right"), _reduced(design), strict=True))
    noise = declare_noise(1.0 / pt.sqrt(beta), t_data, left, right)

    t: Any = pm.CustomDist(
        "t",
        left,
        right,
        alpha,
        beta,
        t_data,
        origin(noise, alpha, beta),
        logp=lambda value, left, right, alpha, beta, *seen: left_out(value, pt.log(alpha), pt.log(beta), left, right),
        dist=_collapsed_draw,
        signature="(n,k),(k,m),(m),(),(n),()->(n)",
        observed=t_data,
        dims="row",
    )
    terms: Any = left_out(t_data, pt.log(alpha), pt.log(beta), left, right)
    declare_rest(t, _collapsed_logp(t_data, left, right, alpha, beta), terms)
    return t


def _reduced(design: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Q (N, k) and R (k, M), k = min(N, M): no more rows than the design has dimensions."""
    if design.shape[0] <= design.shape[1]:
        return np.eye(len(design)), design
    Q, R = qr(design, mode="economic")
    return np.asarray(Q), np.asarray(R)


def _collapsed_logp(value: Any, left: Any, right: Any, alpha: Any, beta: Any) -> Any:
    """Log of N(value | 0, I/β + QRA⁻¹RᵀQᵀ) in nats, every constant kept."""
    z = pt.dot(left.T, value)
    rest = value - pt.dot(left, z)
    outputs: Any = log_marginal(pt.log(alpha), pt.log(beta), z, right)
    inside = outputs[0]
    extra = value.shape[0] - left.shape[1]
    return inside - 0.5 * (extra * (np.log(2.0 * np.pi) - pt.log(beta)) + beta * pt.sum(rest**2))


def _collapsed_draw(left: Any, right: Any, alpha: Any, beta: Any, t: Any, given: Any, size: Any) -> Any:
    """Draw new targets: weights from their prior, or given those that were seen, then noise."""
    noise = pm.Normal.dist(0.0, 1.0, size=left.shape[:1])
    return pt.dot(left, pt.dot(right, weights_given(left, right, alpha, beta, t, given))) + noise / pt.sqrt(beta)


def _declare_horseshoe(
    design: FloatArray,
    target: FloatArray,
    beta: Any,
    constant: bool,
    expected_basis: float | None,
    slab_scale: float | None,
    slab_df: float,
) -> Any:
    """Declare tau, lam and c2 in the model on the stack; return the precisions of the weights, named alpha."""
    n_rows, n_columns = design.shape
    if expected_basis is None:
        p = min(n_columns / 2, max(1.0, n_columns / 10))
    elif (p := as_positive(expected_basis, "expected_basis")) >= n_columns:
        raise ValueError(f"expected_basis must be below the {n_columns} columns of Phi, got {p!r}")
    size = np.sqrt(np.mean(design**2, axis=0))
    size = np.where(size > 0.0, size, 1.0)  # a column of zeros has no scale
    scale = SLAB_SPREADS * spread(target) if slab_scale is None else as_positive(slab_scale, "slab_scale")
    if constant and slab_scale is None:
        # the weight of a constant carries the mean of t, however far from zero that is
        mean = abs(float(target.mean()))
        size = np.where(np.ptp(design, axis=0) == 0.0, size * scale / np.hypot(scale, mean), size)
    df = as_positive(slab_df, "slab_df")
    tau = pm.HalfCauchy("tau", _constant(1.0))
    lam = pm.HalfCauchy("lam", _constant(1.0), dims="basis")
    c2 = pm.InverseGamma("c2", _constant(0.5 * df), _constant(0.5 * df * scale**2))
    free = (p / (n_columns - p) / np.sqrt(n_rows) * tau * lam) ** 2 / beta
    # 1/λ̃² adds precisions: that of the horseshoe and that of the slab
    return pm.Deterministic("alpha", _constant(size**2) * (1.0 / free + 1.0 / c2), dims="basis")
