"""The posterior over the grid: on few rows first, then on all rows where the weight is, finer there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from bayessel._check import FloatArray, as_flag, as_matrix, as_positive_vector, as_target, one_of
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
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import _largest_precision
from bayessel.linear.weight_posterior import Posterior

#: rows of the first looks; each has four times the rows of the one before
FIRST_ROWS, GROWTH = 100, 4
#: designs that go on to the next look lie this close to the best, in nats, or beside one that does
CLOSE_NATS, MOST_DESIGNS = 6.0, 12
#: widths are halved between neighbours that hold this share of the weight, down to this ratio
FINE_WEIGHT, FINE_RATIO, FINE_ROUNDS = 0.05, 1.25, 2
#: cells that hold this share of the posterior predict
MASS, MOST_CELLS = 0.99, 60
#: centres at the rows are thinned to so many: the radial part varies alike everywhere without them
MOST_CENTRES = 800
#: with more rows the factorisations do not keep their left singular vectors
MOST_ROWS_KEPT = 1500

Key = tuple[float, float]


@dataclass(frozen=True, eq=False)
class _Looked:
    """A design with its factorisation, and the log posterior over the ridges, without the weight of its cell."""

    design: WhitenedDictionary
    spectrum: Spectrum
    lam: FloatArray
    quad: FloatArray
    logs: FloatArray


def fit_integrated(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    spread: npt.ArrayLike,
    centers: npt.ArrayLike | None = None,
    kind: str = "gaussian",
    centre: bool = True,
    fine: bool = True,
) -> IntegratedFit:
    """Integrate width, share of a linear trend, signal to noise and noise level out.

    Parameters
    ----------
    X, t
        Inputs (N, D) and target (N,).
    spread
        Spread of each input; a shared width is measured in it.
    centers
        Centres of the radial functions; None: the rows, of more than 800 a part.
    kind
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    centre
        Add a bias with a flat prior.
    fine
        Refine the grid of widths where the posterior is; False is quicker and nearly as good for comparing.

    Where no column varies, the target does not, or less than two rows are left beside the bias, the fit is the constant
    alone (of zero without a bias), and its status says so.
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
        middles = X[order[:: -(-len(X) // MOST_CENTRES)]]
    whole = HyperparameterGrid(X, X if middles is None else middles, kind, scale, centre)
    if len(X) - int(centre) < 2 or not (np.ptp(t) if centre else np.abs(t).max()) > 0.0:
        return replace(_constant(whole, t), seconds=perf_counter() - began)
    typical = whole.typical() if len(X) <= 4 * FIRST_ROWS else None
    keys: list[Key] | None = None
    size = FIRST_ROWS
    while size < 0.7 * len(X):
        some = order[:: -(-len(X) // size)]
        few = X[some] if middles is None else middles[:: max(1, -(-len(middles) // size))]
        grid = HyperparameterGrid(X[some], few, kind, scale, centre)
        typical = grid.typical()
        looked = _look(grid, t[some], keys or _all(grid, fine), typical[1], rows=False)
        if not looked:
            break
        keys = _close(looked)
        size *= GROWTH
    _, middle = typical or whole.typical()
    looked = _look(whole, t, keys or _all(whole, fine), middle, rows=len(X) <= MOST_ROWS_KEPT)
    if not looked:
        return replace(_constant(whole, t), seconds=perf_counter() - began)
    for _ in range(FINE_ROUNDS if fine else 0):
        between = _between(looked)
        if not between:
            break
        looked |= _look(whole, t, between, middle, rows=len(X) <= MOST_ROWS_KEPT)
    return replace(_mixture(looked, X, t), seconds=perf_counter() - began)


def _all(grid: HyperparameterGrid, fine: bool) -> list[Key]:
    widths = grid.widths(N_WIDTHS if fine else FEW_WIDTHS)
    return [(float(r), q) for q in (SHARES if fine else FEW_SHARES) if q < 1.0 for r in widths] + [(np.inf, 1.0)]


def _look(
    grid: HyperparameterGrid, t: FloatArray, keys: Iterable[Key], typical: float, rows: bool
) -> dict[Key, _Looked]:
    """Posterior over the ridges at each place (width, share)."""
    found = {}
    for key in keys:
        design = grid.place(*key, typical)
        if design is None:
            continue
        spectrum = design.spectrum(grid.X, t, grid.centre, rows)
        lam, n = np.exp(-SIGNALS), spectrum.n_free
        quad = np.maximum(np.asarray(spectrum.quad(lam)), np.finfo(float).tiny)
        away = (SIGNALS - SIGNAL) / SIGNAL_SPREAD
        logs = (
            spectrum.assemble_evidence(np.zeros(len(lam)), np.asarray(spectrum.log_det(lam)), np.ones(len(lam)))
            + gammaln(0.5 * n) + 0.5 * n * np.log(2.0 / quad)
            - 0.5 * (away**2 + np.log(2.0 * np.pi)) - np.log(SIGNAL_SPREAD) + np.log(SIGNALS[1] - SIGNALS[0])
        )  # fmt: skip
        found[key] = _Looked(design, spectrum, lam, quad, logs + design.log_prior - np.log(len(SHARES)))
    return found


def _volumes(looked: dict[Key, _Looked]) -> dict[Key, float]:
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


def _weights(looked: dict[Key, _Looked]) -> dict[Key, float]:
    """Log of the evidence of each place, its stretch of log r included."""
    volumes = _volumes(looked)
    return {key: float(logsumexp(one.logs)) + volumes[key] for key, one in looked.items()}


def _close(looked: dict[Key, _Looked]) -> list[Key]:
    """Places near the best, and their neighbours along the widths."""
    weights = _weights(looked)
    best = max(weights.values())
    ranked = sorted(weights, key=lambda key: -weights[key])
    kept = [key for key in ranked if weights[key] > best - CLOSE_NATS][:MOST_DESIGNS]
    return kept


def _between(looked: dict[Key, _Looked]) -> list[Key]:
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


def _mixture(looked: dict[Key, _Looked], X: FloatArray, t: FloatArray) -> IntegratedFit:
    volumes = _volumes(looked)
    everywhere = [
        (key, k, float(one.logs[k]) + volumes[key]) for key, one in looked.items() for k in range(len(one.lam))
    ]
    logs = np.array([value for *_, value in everywhere])
    total = float(logsumexp(logs))
    ranked = np.argsort(-logs, kind="stable")
    enough = int(np.searchsorted(np.cumsum(np.exp(logs[ranked] - total)), MASS)) + 1
    kept = [everywhere[i] for i in ranked[: min(enough, MOST_CELLS)]]
    designs = list(dict.fromkeys(key for key, *_ in kept))
    parts, posteriors = [looked[key] for key in designs], []
    for key, part in zip(designs, parts, strict=True):
        k = max((value, k) for other, k, value in kept if other == key)[1]
        beta = float(part.spectrum.n_free / part.quad[k])
        spectrum = replace(part.spectrum, given=(LazyDesign(part.design.dictionary, X), t))
        posteriors.append(Posterior.of(spectrum, float(part.lam[k]), beta))
    lam = np.array([looked[key].lam[k] for key, k, _ in kept])
    quad = np.array([looked[key].quad[k] for key, k, _ in kept])
    betas = noise_precisions(parts[0].spectrum.n_free, quad)
    each = betas.shape[1]
    weights = np.repeat(np.array([value for *_, value in kept]) - np.log(each), each)
    cells = Cells(
        np.repeat(np.array([designs.index(key) for key, *_ in kept]), each),
        np.repeat(lam, each),
        betas.ravel(),
        weights - logsumexp(weights),
    )
    last = {key: float(np.exp(logsumexp(one.logs[-2:]) + volumes[key] - total)) for key, one in looked.items()}
    notes = (Status.NOISE_AT_FLOOR,) if sum(last.values()) > 0.5 else ()
    ways = sorted(_weights(looked).items(), key=lambda one: -one[1])
    history = tuple({"width": r, "trend": q, "log_weight": value - total} for (r, q), value in ways)
    return _result(tuple(part.design for part in parts), tuple(posteriors), cells, total, notes, history)


def _constant(grid: HyperparameterGrid, t: FloatArray) -> IntegratedFit:
    """The fit without functions, of which only the noise is integrated out."""
    design = grid.nothing()
    spectrum = design.spectrum(grid.X, t, grid.centre, rows=True)
    lam = np.ones(1)
    if spectrum.n_free < 2:
        notes, betas = (Status.TOO_FEW_ROWS,), np.array([[(spectrum.t_scale or 1.0) ** -2.0]])
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
        seconds=np.nan,
        posterior=posteriors[0],
        designs=designs,
        posteriors=posteriors,
        cells=cells,
    )
