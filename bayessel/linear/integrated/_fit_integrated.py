"""The posterior over the grid: on few rows first, then on all rows where the weight is, finer there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from time import perf_counter
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp, ndtri

from bayessel._check import FloatArray, as_flag, as_matrix, as_positive_vector, as_target, one_of
from bayessel._row_weights import RowWeights, counted
from bayessel._row_weights import some as weights_of
from bayessel.basis import KINDS, LazyDesign
from bayessel.fit import Evidence, Status, worst
from bayessel.linear.integrated.hyperparameter_grid import (
    FEW_SHARES,
    FEW_WIDTHS,
    N_WIDTHS,
    SHARES,
    SIGNAL,
    SIGNAL_SPREAD,
    SIGNALS,
    HyperparameterGrid,
    WhitenedDictionary,
)
from bayessel.linear.integrated.mixture import Cells, IntegratedFit, noise_precisions
from bayessel.linear.integrated.tridiagonal import Tridiagonal, quad_and_log_det
from bayessel.linear.type2 import _largest_precision
from bayessel.linear.weight_posterior import Posterior

#: rows of the first looks; each has four times the rows of the one before
FIRST_ROWS, GROWTH = 100, 4
#: designs that go on to the next look lie this close to the best, in nats, or beside one that does
CLOSE_NATS, MOST_DESIGNS = 6.0, 12
#: widths are halved between neighbours that hold this share of the weight, down to this ratio
FINE_WEIGHT, FINE_RATIO, FINE_ROUNDS = 0.05, 1.25, 2
#: designs that hold this share of the posterior predict, at most so many (first number: where the grid is fine), and of
#: theirs the cells that hold almost all of that
MASS_OF_DESIGNS, MOST_KEPT = (0.97, 0.9), (8, 4)
MASS, MOST_CELLS = 0.99, 60
#: centres at the rows are thinned to so many: the radial part varies alike everywhere without them
MOST_CENTRES = 400

#: 95 % quantile of Student's t distribution with one degree of freedom over that of the normal distribution: with it
#: 90 % intervals cover where one row is left beside the bias
_STUDENT_OF_ONE = float(np.tan(0.45 * np.pi) / ndtri(0.95))
#: ridges of the signal-to-noise ratios
LAM = np.exp(-SIGNALS)

#: width in units of the spread, and share of the trend
Key = tuple[float, float]

#: log posterior over the ridges of a place, without the weight of its cell
Looked = FloatArray


class Places(Protocol):
    """Where designs are looked for; `HyperparameterGrid` for radial functions with a trend.

    A place is a width and a share of the trend.
    """

    @property
    def X(self) -> FloatArray:
        """Inputs of the rows."""

    @property
    def t(self) -> FloatArray:
        """Target."""

    @property
    def centre(self) -> bool:
        """Whether a bias takes the means off."""

    @property
    def row_weights(self) -> RowWeights | None:
        """Counts and noise levels of the rows, where they differ."""

    def place(self, width: float, share: float, typical: float, /) -> WhitenedDictionary | None:
        """The design of a place; None where its columns do not vary."""

    def tridiagonal(self, width: float, share: float, /) -> Tridiagonal | None:
        """What the evidence of a place needs; None where its columns do not vary."""

    def log_prior(self, width: float, share: float, typical: float, /) -> float:
        """Log of what a place has of the prior."""

    def nothing(self) -> WhitenedDictionary:
        """The design of the bias alone."""


def fit_integrated(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    spread: npt.ArrayLike,
    centers: npt.ArrayLike | None = None,
    kind: str = "gaussian",
    centre: bool = True,
    fine: bool = True,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> IntegratedFit:
    """Integrate width, share of a linear trend, signal to noise and noise level out.

    Parameters
    ----------
    X, t
        Inputs (N, D) and target (N,).
    spread
        Spread of each input; a shared width is measured in it.
    centers
        Centres of the radial functions; None: the rows, of more than 400 a part.
    kind
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    centre
        Add a bias with a flat prior.
    fine
        Refine the grid of widths where the posterior is; False is quicker and nearly as good for comparing.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`.

    Where no column varies, the target does not, or less than two rows are left beside the bias, the fit is the constant
    alone (of zero without a bias), and its status says so.

    Examples
    --------
    >>> x = np.linspace(-2.0, 2.0, 40)[:, None]
    >>> fit = fit_integrated(x, np.sin(2.0 * x[:, 0]) + 0.1 * np.cos(50.0 * x[:, 0]), spread=[1.2])
    >>> fit.evidence.kind, bool(abs(fit.predict([[0.5]]).mean[0] - np.sin(1.0)) < 0.1)
    ('grid', True)
    """
    began = perf_counter()
    X = as_matrix(X, "X", allow_1d=True)
    t = as_target(t, len(X))
    one_of(kind, "kind", KINDS)
    as_flag(centre, "centre")
    scale = as_positive_vector(spread, "spread", X.shape[1])
    middles = None if centers is None else as_matrix(centers, "centers", allow_1d=X.shape[1] == 1)
    order = np.lexsort((*X.T, t))
    if middles is None and len(X) > MOST_CENTRES:
        middles = X[order[np.linspace(0, len(X) - 1, MOST_CENTRES).round().astype(np.intp)]]
    weights = RowWeights.of(len(X), noise_std, sample_weight)
    whole = HyperparameterGrid(X, t, X if middles is None else middles, kind, scale, centre, weights)
    if not varies(whole):
        return replace(constant(whole), seconds=perf_counter() - began)
    typical = whole.typical() if len(X) <= 4 * FIRST_ROWS else None
    keys: list[Key] | None = None
    size = FIRST_ROWS
    while size < 0.7 * len(X):
        some = order[:: -(-len(X) // size)]
        Z = X[some]
        few = Z if middles is None else middles[:: max(1, -(-len(middles) // size))]
        grid = HyperparameterGrid(Z, t[some], few, kind, scale, centre, weights_of(weights, some))
        typical = grid.typical()
        looked = look(grid, keys or _all(grid, fine), typical[1])
        if not looked:
            break
        keys = _close(looked)
        size *= GROWTH
    _, middle = typical or whole.typical()
    looked = look(whole, keys or _all(whole, fine), middle)
    if not looked:
        return replace(constant(whole), seconds=perf_counter() - began)
    for _ in range(FINE_ROUNDS if fine else 0):
        between = _between(looked)
        if not between:
            break
        looked |= look(whole, between, middle)
    return replace(mixture(whole, looked, middle, fine), seconds=perf_counter() - began)


def varies(grid: Places) -> bool:
    """Whether there are rows and targets to tell anything from."""
    t = grid.t
    return counted(t, grid.row_weights) - int(grid.centre) >= 2 and bool(
        (np.ptp(t) if grid.centre else np.abs(t).max()) > 0.0
    )


def _all(grid: HyperparameterGrid, fine: bool) -> list[Key]:
    widths = grid.widths(N_WIDTHS if fine else FEW_WIDTHS)
    return [(float(r), q) for q in (SHARES if fine else FEW_SHARES) if q < 1.0 for r in widths] + [(np.inf, 1.0)]


def look(grid: Places, keys: Iterable[Key], typical: float) -> dict[Key, Looked]:
    """Posterior over the ridges at each place (width, share) whose columns vary."""
    forms = {key: form for key in keys if (form := grid.tridiagonal(key[0], key[1])) is not None}
    if not forms:
        return {}
    quad, log_det = quad_and_log_det(list(forms.values()), LAM)
    plain = grid.nothing().spectrum(grid.X, grid.t, grid.centre, True, grid.row_weights)
    n = plain.n_free
    away = (SIGNALS - SIGNAL) / SIGNAL_SPREAD
    logs = (
        plain.assemble_evidence(np.zeros_like(quad), log_det, np.ones_like(quad))
        + gammaln(0.5 * n) + 0.5 * n * np.log(2.0 / quad)
        - 0.5 * (away**2 + np.log(2.0 * np.pi)) - np.log(SIGNAL_SPREAD) + np.log(SIGNALS[1] - SIGNALS[0])
    )  # fmt: skip
    return {key: line + grid.log_prior(key[0], key[1], typical) for key, line in zip(forms, logs, strict=True)}


def _volumes(looked: dict[Key, Looked]) -> dict[Key, float]:
    """Log of the stretch of log r that each place stands for; 0 for the linear model."""
    found: dict[Key, float] = {}
    for share in {q for _, q in looked}:
        keys = sorted(key for key in looked if key[1] == share)
        u = np.log([r for r, _ in keys])
        if share == 1.0 or len(keys) == 1:
            found |= dict.fromkeys(keys, 0.0)
            continue
        edges = np.concatenate([[u[0]], 0.5 * (u[1:] + u[:-1]), [u[-1]]])
        steps = np.diff(edges)
        steps[[0, -1]] *= 2.0
        found |= dict(zip(keys, np.log(steps).tolist(), strict=True))
    return found


def _weights(looked: dict[Key, Looked]) -> dict[Key, float]:
    """Log of the evidence of each place, its stretch of log r included."""
    volumes = _volumes(looked)
    return {key: float(logsumexp(logs)) + volumes[key] for key, logs in looked.items()}


def _close(looked: dict[Key, Looked]) -> list[Key]:
    """Places near the best, and their neighbours along the widths."""
    weights = _weights(looked)
    best = max(weights.values())
    ranked = sorted(weights, key=lambda key: -weights[key])
    kept = [key for key in ranked if weights[key] > best - CLOSE_NATS][:MOST_DESIGNS]
    return kept


def _between(looked: dict[Key, Looked]) -> list[Key]:
    """Widths between neighbours where the weight is and the grid is coarse."""
    weights = _weights(looked)
    total = logsumexp(list(weights.values()))
    found = []
    for share in {q for _, q in looked if q < 1.0}:
        keys = sorted(key for key in looked if key[1] == share)
        for low, high in pairwise(keys):
            heavy = max(weights[low], weights[high]) - total > np.log(FINE_WEIGHT)
            if heavy and high[0] / low[0] > FINE_RATIO:
                found.append((float(np.sqrt(low[0] * high[0])), share))
    return found


def mixture(grid: Places, looked: dict[Key, Looked], typical: float, fine: bool) -> IntegratedFit:
    """The fit of the places that hold the posterior."""
    volumes = _volumes(looked)
    ways = sorted(_weights(looked).items(), key=lambda one: -one[1])
    total = float(logsumexp([value for _, value in ways]))
    held = np.cumsum(np.exp([value - total for _, value in ways]))
    heavy = [
        key for key, _ in ways[: min(int(np.searchsorted(held, MASS_OF_DESIGNS[not fine])) + 1, MOST_KEPT[not fine])]
    ]
    everywhere = [(key, k, float(looked[key][k]) + volumes[key]) for key in heavy for k in range(len(LAM))]
    logs = np.array([value for *_, value in everywhere])
    ranked = np.argsort(-logs, kind="stable")
    enough = int(np.searchsorted(np.cumsum(np.exp(logs[ranked] - logsumexp(logs))), MASS)) + 1
    kept = [everywhere[i] for i in ranked[: min(enough, MOST_CELLS)]]
    X, t, rows = grid.X, grid.t, len(grid.X) <= MOST_CENTRES
    numbers: dict[Key, int] = {}
    designs: list[WhitenedDictionary] = []
    posteriors: list[Posterior] = []
    quads: list[FloatArray] = []
    for key in dict.fromkeys(key for key, *_ in kept):
        design = grid.place(key[0], key[1], typical)
        if design is None:
            continue
        spectrum = design.spectrum(X, t, grid.centre, rows, grid.row_weights)
        spectrum = replace(spectrum, given=(LazyDesign(design.dictionary, X), t))
        quad = np.maximum(np.asarray(spectrum.quad(LAM)), np.finfo(float).tiny)
        k = max((value, k) for other, k, value in kept if other == key)[1]
        numbers[key] = len(designs)
        designs.append(design)
        posteriors.append(Posterior.of(spectrum, float(LAM[k]), float(spectrum.n_free / quad[k])))
        quads.append(quad)
    kept = [one for one in kept if one[0] in numbers]
    lam = np.array([LAM[k] for _, k, _ in kept])
    betas = noise_precisions(posteriors[0].spectrum.n_free, np.array([quads[numbers[key]][k] for key, k, _ in kept]))
    each = betas.shape[1]
    weights = np.repeat(np.array([value for *_, value in kept]) - np.log(each), each)
    cells = Cells(
        np.repeat(np.array([numbers[key] for key, *_ in kept]), each),
        np.repeat(lam, each),
        betas.ravel(),
        weights - logsumexp(weights),
    )
    last = {key: float(np.exp(logsumexp(logs[-2:]) + volumes[key] - total)) for key, logs in looked.items()}
    notes = (Status.NOISE_AT_FLOOR,) if sum(last.values()) > 0.5 else ()
    history = tuple({"width": r, "trend": q, "log_weight": value - total} for (r, q), value in ways)
    return _result(tuple(designs), tuple(posteriors), cells, total, notes, history)


def constant(grid: Places) -> IntegratedFit:
    """The fit without functions, of which only the noise is integrated out."""
    design, t = grid.nothing(), grid.t
    spectrum = design.spectrum(grid.X, t, grid.centre, True, grid.row_weights)
    lam = np.ones(1)
    if spectrum.n_free < 2:
        square = _STUDENT_OF_ONE**2 * float(spectrum.quad(1.0))
        # one row says nothing of the noise: its size stands in
        floor = (4.0 * np.finfo(float).eps * spectrum.t_scale) ** 2
        square = square if spectrum.n_free > 0 and square > floor else (spectrum.t_scale or 1.0) ** 2
        notes, betas = (Status.TOO_FEW_ROWS,), np.array([[1.0 / square]])
    elif not (np.ptp(t) if grid.centre else np.abs(t).max()) > 0.0:
        notes, betas = (Status.CONSTANT_TARGET,), np.array([[_largest_precision(spectrum)]])
    else:
        notes, betas = (Status.PURE_NOISE,), noise_precisions(spectrum.n_free, np.asarray(spectrum.quad(lam)))
    each = betas.shape[1]
    cells = Cells(np.zeros(each, dtype=np.intp), np.ones(each), betas[0], np.full(each, -np.log(each)))
    beta = float(np.median(betas))
    quad = float(spectrum.quad(1.0))
    value = float(spectrum.assemble_evidence(quad, float(spectrum.log_det(1.0)), beta))
    spectrum = replace(spectrum, given=(LazyDesign(design.dictionary, grid.X), t))
    return _result((design,), (Posterior.of(spectrum, 1.0, beta),), cells, value, notes, ())


def _result(
    designs: tuple[WhitenedDictionary, ...],
    posteriors: tuple[Posterior, ...],
    cells: Cells,
    value: float,
    notes: tuple[Status, ...],
    history: tuple[dict[str, float], ...],
) -> IntegratedFit:
    integrated = (*posteriors[0].integrated, "alpha", "beta", "width", "trend")
    return IntegratedFit(
        evidence=Evidence(value, "grid", integrated=integrated),
        gamma=float(posteriors[0].spectrum.gamma(posteriors[0].lam)),
        optima=(designs[0],),
        status=worst(notes),
        notes=notes,
        history=history,
        seconds=0.0,
        posterior=posteriors[0],
        designs=designs,
        posteriors=posteriors,
        cells=cells,
    )
