r"""The evidence procedure: weight precision :math:`\alpha` and noise precision :math:`\beta` chosen by the evidence.

With :math:`\lambda=\alpha/\beta` the best noise level is known in closed form,
:math:`\hat\beta(\lambda) = n/q(\lambda)` (n = N, or N - 1 when a bias with a flat prior was integrated out), so the
evidence is a curve over :math:`\log\lambda` alone. Its slope is :math:`\tfrac12(\gamma - \alpha\|w\|^2)`: each of its
zeros is a fixed point of MacKay's re-estimation. The curve is scanned over the whole range that double precision can
tell apart and every local maximum is refined; MacKay's and the EM iteration are there for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from bayessel._check import FloatArray, as_count, as_positive, one_of
from bayessel.fit import Evidence, Status, worst
from bayessel.linear.design_fit import DesignFit
from bayessel.linear.reported_sums import sums
from bayessel.linear.spectrum import Spectrum, as_spectrum
from bayessel.linear.third_level import model_evidence
from bayessel.linear.weight_posterior import Posterior

METHODS = ("profile", "mackay", "em")
_EPS = float(np.finfo(float).eps)
#: lambda over the largest squared singular value at which an iteration would stop before it has begun
HOPELESS = 1e6


@dataclass(frozen=True)
class Maximum:
    """A local maximum of the evidence over lambda."""

    lam: float
    log_evidence: float


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearFit(DesignFit):
    """A linear model whose precisions were chosen by the evidence.

    Attributes
    ----------
    evidence : Evidence
        log p(t | alpha, beta) at the reported alpha and beta, in nats, every constant included.
    alpha, lam : float
        Weight precision, and its ratio to the noise precision, alpha/beta.
    gamma : float
        Well-determined parameters (the bias of a centred fit not counted).
    optima : tuple of Maximum
        All local maxima of the evidence, highest first.
    history : tuple of dict
        The iterations ('mackay', 'em') or the refined maxima ('profile').

    Examples
    --------
    >>> x = np.linspace(-1.0, 1.0, 30)
    >>> fit = fit_evidence(x[:, None] ** np.arange(4), np.sin(x) + 0.1 * np.cos(40.0 * x))
    >>> fit.status.name, fit.coef.shape, bool(0.0 < fit.gamma < 4.0)
    ('CONVERGED', (4,), True)
    >>> fit.predict([[1.0, 0.5, 0.25, 0.125]]).mean.shape, fit.leave_one_out().errors.shape
    ((1,), (30,))
    """

    evidence: Evidence
    alpha: float
    optima: tuple[Maximum, ...]

    @property
    def lam(self) -> float:
        """alpha / beta."""
        return self.posterior.lam

    @property
    def model_evidence(self) -> float:
        """Third-level evidence: both precisions integrated out; see `bayessel.linear.third_level`."""
        return model_evidence(self.spectrum, self.log_evidence, self.gamma)


def fit_evidence(
    Phi: npt.ArrayLike | Spectrum,
    t: npt.ArrayLike | None = None,
    *,
    centre: bool = False,
    method: str = "profile",
    max_steps: int = 1000,
    tol: float = 1e-6,
    alpha0: float = 1e-3,
    beta0: float | None = None,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> LinearFit:
    """Choose alpha and beta by the evidence.

    Parameters
    ----------
    Phi, t
        Design (N, M) and target (N,), or a `Spectrum` alone.
    centre
        Give the bias a flat prior by taking the means of `t` and of the columns off (leave the bias column out);
        see `log_evidence`.
    method
        'profile' scans the exact profile over lambda and finds all local maxima; 'mackay' and 'em' iterate their
        re-estimation formulas from (alpha0, beta0) and may end in a lesser one.
    max_steps, tol
        Limits of the iterations: stop when log alpha and log beta move less than `tol` of their own posterior widths
        sqrt(2/gamma) and sqrt(2/(N - gamma)).
    alpha0, beta0
        Start of the iterations; beta0 defaults to 1/(0.1 var t). An alpha0 at which the data would determine no weight
        is brought down to where they determine the first one.
    noise_std
        Standard deviations of the noise of each row (N,), up to a common factor, which is found: the noise of row i has
        the variance s_i^2/(s^2 beta), s the geometric mean of all s_i, and a new row is predicted with s.
    sample_weight
        How often each row counts (N,), positive: 2 is a row that came twice, so that large weights make a fit surer.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(50, 4))
    >>> fit = fit_evidence(Phi, Phi @ [1.0, -2.0, 0.5, 1.0] + 0.1 * rng.normal(size=50))
    >>> fit.status.name, bool(0.05 < fit.noise_std < 0.15)
    ('CONVERGED', True)
    """
    one_of(method, "method", METHODS)
    as_count(max_steps, "max_steps")
    as_positive(tol, "tol")
    as_positive(alpha0, "alpha0")
    if beta0 is not None:
        as_positive(beta0, "beta0")
    began = perf_counter()
    spectrum = as_spectrum(Phi, t, centre, "fit_evidence", noise_std=noise_std, sample_weight=sample_weight)
    fit = _maximise(spectrum, method, max_steps, tol, alpha0, beta0)
    return replace(fit, seconds=perf_counter() - began)


def _maximise(
    spectrum: Spectrum, method: str, max_steps: int, tol: float, alpha0: float, beta0: float | None
) -> LinearFit:
    beta_max = _largest_precision(spectrum)
    scale2 = float(spectrum.s[0] ** 2) if len(spectrum.s) else 0.0
    if spectrum.tss <= (4.0 * _EPS * spectrum.t_scale) ** 2 * spectrum.n_counted or spectrum.n_free < 1:
        status = Status.TOO_FEW_ROWS if spectrum.n_free < 2 else Status.CONSTANT_TARGET
        # without a second row the noise is unknown: the size of the target stands for it rather than a floor
        beta = beta_max if status is Status.CONSTANT_TARGET else (spectrum.t_scale or 1.0) ** -2.0
        return _finish(spectrum, max(scale2, 1.0) * 1e12, beta, beta_max, [status], (), ())
    if scale2 == 0.0:
        return _finish(spectrum, 1.0, None, beta_max, [Status.PURE_NOISE], (), ())
    if method == "profile":
        return _profile(spectrum, beta_max)
    return _iterate(spectrum, beta_max, method, max_steps, tol, alpha0, beta0)


def _largest_precision(spectrum: Spectrum) -> float:
    """1/(4 eps max|t|)^2: below this noise level the rounding of the targets themselves is larger."""
    scale = spectrum.t_scale if spectrum.t_scale > 0.0 else 1.0
    return float(min((4.0 * _EPS * scale) ** -2.0, 1e300))


def _best_beta[L: (float, FloatArray)](spectrum: Spectrum, lam: L, beta_max: float) -> L:
    with np.errstate(divide="ignore"):
        beta: L = np.minimum(spectrum.n_free / spectrum.quad(lam), beta_max)
    return beta


def _slope(spectrum: Spectrum, u: FloatArray, beta_max: float) -> FloatArray:
    """Derivative of the profile with respect to u = log lambda: (gamma - alpha |w|^2)/2."""
    lam = np.exp(u)
    gamma, quad, norm2 = spectrum.profile_sums(lam)
    with np.errstate(divide="ignore"):
        beta = np.minimum(spectrum.n_free / quad, beta_max)
    return np.asarray(0.5 * (gamma - beta * lam * norm2))


def _profile(spectrum: Spectrum, beta_max: float) -> LinearFit:
    lo = 2.0 * np.log(spectrum.s[0] * _EPS)
    hi = 2.0 * np.log(spectrum.s[0]) + np.log(1e12)
    # each singular value contributes a step about 2 wide in log lambda: 0.1 cannot miss one
    grid = np.arange(lo, hi, 0.1)
    parts = np.array_split(grid, 1 + len(grid) * len(spectrum.s) // 2_000_000)  # working arrays of 16 MB
    slope = np.concatenate([_slope(spectrum, part, beta_max) for part in parts])
    # on a plateau (interpolation at small lambda, no signal at large) the slope is rounding; its sign means nothing
    noise = 1e-11 * spectrum.n_counted
    sign = np.where(np.abs(slope) < noise, 0, np.sign(slope)).astype(int)
    candidates: list[float] = []
    last = 1 if sign[0] > 0 else 0  # 0: nothing but plateau so far
    last_index = 0
    for i, current in enumerate(sign):
        if current == 0:
            continue
        if current < 0 and last > 0:
            root = brentq(
                lambda u: float(_slope(spectrum, np.array([u]), beta_max)[0]),
                grid[last_index],
                grid[i],
                xtol=1e-13,
                rtol=8 * _EPS,
            )
            candidates.append(float(root))
        elif current < 0 and last == 0:
            candidates.append(float(grid[max(i - 1, 0)]))  # falls from the very edge: the edge is a maximum
        last, last_index = int(current), i
    edge_high = last > 0
    if edge_high or not candidates:
        candidates.append(float(grid[-1]))
    lams = np.exp(np.array(candidates))
    betas = np.atleast_1d(_best_beta(spectrum, lams, beta_max))
    values = np.atleast_1d(spectrum.log_evidence(lams, betas))
    order = np.argsort(-values, kind="stable")
    optima = tuple(Maximum(float(lams[i]), float(values[i])) for i in order)
    history = tuple(
        {
            "step": float(k),
            "lam": float(lams[i]),
            "alpha": float(lams[i] * betas[i]),
            "beta": float(betas[i]),
            "log_evidence": float(values[i]),
            "gamma": float(spectrum.gamma(float(lams[i]))),
        }
        for k, i in enumerate(order)
    )
    best = int(order[0])
    if candidates[best] <= _plateau_end(grid, slope, noise):
        # interpolation: the evidence no longer depends on lambda; the largest such lambda keeps the most digits
        flat = grid[grid <= _plateau_end(grid, slope, noise)]
        flat_values = np.atleast_1d(spectrum.log_evidence(np.exp(flat), _best_beta(spectrum, np.exp(flat), beta_max)))
        same = flat_values >= values[best] - 1e-10 * max(1.0, abs(values[best]))
        lams[best] = np.exp(flat[np.flatnonzero(same)[-1]]) if same.any() else lams[best]
        betas[best] = float(_best_beta(spectrum, lams[best], beta_max))
    notes: list[Status] = []
    if candidates[best] >= grid[-1]:
        notes.append(Status.PURE_NOISE)
    elif candidates[best] <= grid[0] + 0.2 and betas[best] < beta_max:
        notes.append(Status.AT_BOUND)
    if len(optima) > 1 and optima[0].log_evidence - optima[1].log_evidence < 2.0:
        notes.append(Status.MULTIPLE_OPTIMA)
    return _finish(spectrum, float(lams[best]), float(betas[best]), beta_max, notes, optima, history)


def _plateau_end(grid: FloatArray, slope: FloatArray, noise: float) -> float:
    """End of the stretch at small lambda where the slope is rounding (minus infinity if there is none)."""
    moving = np.flatnonzero(np.abs(slope) >= noise)
    if len(moving) and moving[0] == 0:
        return -np.inf
    return float(grid[moving[0]] if len(moving) else grid[-1])


def _iterate(
    spectrum: Spectrum, beta_max: float, method: str, max_steps: int, tol: float, alpha0: float, beta0: float | None
) -> LinearFit:
    n, m = spectrum.n_free, spectrum.n_columns
    alpha = alpha0
    beta = as_positive(beta0, "beta0") if beta0 is not None else min(n / (0.1 * spectrum.tss), beta_max)
    if alpha > HOPELESS * spectrum.s[0] ** 2 * beta:
        alpha = float(spectrum.s[0] ** 2 * beta)
    history = []
    notes = [Status.STEP_LIMIT]
    alpha_max = spectrum.s[0] ** 2 * 1e12 * beta_max
    for step in range(max_steps):
        lam = alpha / beta
        gamma = float(spectrum.gamma(lam))
        norm2, misfit = float(spectrum.weight_norm2(lam)), float(spectrum.sum_squares(lam))
        if method == "mackay":
            alpha_new, beta_new = gamma / max(norm2, 1e-300), max(n - gamma, _EPS * n) / max(misfit, 1e-300)
        else:  # tr Sigma = (M - gamma)/alpha and tr(Phi Sigma Phi^T) = gamma/beta
            alpha_new = m / (norm2 + (m - gamma) / alpha)
            beta_new = n / (misfit + gamma / beta)
        beta_new = min(beta_new, beta_max)
        alpha_new = min(alpha_new, alpha_max)
        history.append(
            {
                "step": float(step),
                "lam": lam,
                "alpha": alpha,
                "beta": beta,
                "gamma": gamma,
                "log_evidence": float(spectrum.log_evidence(lam, beta)),
            }
        )
        moved = max(
            abs(np.log(alpha_new / alpha)) / np.sqrt(2.0 / max(gamma, 1e-12)),
            abs(np.log(beta_new / beta)) / np.sqrt(2.0 / max(n - gamma, 1e-12)),
        )
        alpha, beta = float(alpha_new), float(beta_new)
        if moved < tol:
            notes = []
            break
    lam = alpha / beta
    if lam >= 1e11 * spectrum.s[0] ** 2:
        notes.append(Status.PURE_NOISE)
    found = (Maximum(lam, float(spectrum.log_evidence(lam, beta))),)
    return _finish(spectrum, lam, beta, beta_max, notes, found, tuple(history))


def _finish(
    spectrum: Spectrum,
    lam: float,
    beta: float | None,
    beta_max: float,
    notes: list[Status],
    optima: tuple[Maximum, ...],
    history: tuple[dict[str, float], ...],
) -> LinearFit:
    if beta is None:
        beta = float(_best_beta(spectrum, lam, beta_max))
    # alpha is what a reader multiplies out; lambda is recomputed from it so that the three agree to the last bit
    alpha = lam * beta
    lam = alpha / beta
    at = sums(spectrum, lam)
    gamma = at.gamma
    n_left = spectrum.n_free - gamma
    if beta >= beta_max and Status.CONSTANT_TARGET not in notes and Status.TOO_FEW_ROWS not in notes:
        notes.append(Status.NOISE_AT_FLOOR)
    if len(spectrum.s) and lam < 1e-16 * float(spectrum.s[0] ** 2):
        notes.append(Status.ILL_CONDITIONED)
    if (gamma < 3.0 or n_left < 3.0) and not notes:
        notes.append(Status.FEW_WELL_DETERMINED)
    posterior = Posterior.of(spectrum, lam, beta)
    value = float(spectrum.assemble_evidence(at.quad, at.log_det, beta))
    return LinearFit(
        evidence=Evidence(value, "type2", maximised=("alpha", "beta"), integrated=posterior.integrated),
        alpha=alpha,
        gamma=gamma,
        status=worst(notes),
        notes=tuple(notes),
        optima=(Maximum(lam, value), *optima[1:]),
        history=history,
        seconds=np.nan,
        posterior=posterior,
    )
