"""Forward selection of columns, plain and regularised, and backward elimination."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from bayessel._check import (
    FOURTH_POWERS,
    FloatArray,
    as_count,
    as_flag,
    as_generator,
    as_positive,
    as_target,
    check_magnitude,
    one_of,
)
from bayessel._row_weights import RowWeights, counted
from bayessel._types import Seed
from bayessel.criteria.error_estimates import GCV
from bayessel.linear.columns.dictionary import STORE_DOUBLE, Columns, ColumnSource, as_columns
from bayessel.linear.columns.greedy import BestSize, until_stopped
from bayessel.linear.columns.growing_model import GrowingModel
from bayessel.linear.forward import stopping
from bayessel.linear.forward.assemble import finish
from bayessel.linear.forward.backward import eliminate
from bayessel.linear.forward.methods import LeastSquaresSteps
from bayessel.linear.forward.result import ForwardFit
from bayessel.linear.forward.settings import ForwardSettings

METHODS = ("ols", "rfs", "rols", "backward")
GAINS = ("error", "cost")
#: columns up to which the condition number is computed rather than estimated, where it is not clearly small
_FEW, _CLEAR = 100, 1e-5


def forward_select(
    Phi: npt.ArrayLike | ColumnSource,
    t: npt.ArrayLike,
    method: str = "ols",
    stop: str | None = GCV.name,
    *,
    centre: bool = False,
    gain: str = "error",
    lam: float | None = None,
    reestimate: bool = True,
    max_size: int | None = None,
    max_condition: float | None = None,
    folds: int = 5,
    random_state: Seed = 0,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> ForwardFit:
    r"""Choose columns of a dictionary one by one, each time the one that helps most, until a criterion stops falling.

    Parameters
    ----------
    Phi, t
        Dictionary (N, P), float64 or float32, or an object with ``shape`` and ``columns(indices)`` that makes columns
        when they are looked at (`bayessel.basis.LazyDesign`): it is kept up to 32 million entries (256 MB), else made
        again for every column chosen; target (N,).
    method
        'ols': orthogonal least squares. 'rfs': regularised forward selection, ridge regression whose one penalty is
        re-estimated after each addition. 'rols': the same with the penalty on the orthogonalised weights, as cheap as
        'ols'. 'backward': start from all columns and take away those that are missed least.
    stop
        'gcv', 'loo', 'fpe', 'uev', 'bic' (smallest), 'evidence' (largest log evidence of the chosen columns), 'cv'
        (smallest squared error of `folds`-fold cross-validation, the whole selection repeated in each fold), or None:
        take `max_size` columns. The search goes on max(15, 0.3 m) columns beyond the best size m.
    centre
        Give the bias (not a column of `Phi`) a flat prior.
    gain
        'error' looks for the greatest fall of the squared error, 'cost' of the error with its penalty; the same for
        'ols'.
    lam
        Penalty of 'rfs' and 'rols' at the start (default: a hundredth of a typical squared length of a column), kept
        if not `reestimate`; the penalty of 'backward' (default: none where there are fewer columns than rows, clearly
        independent; else the best of all columns by GCV that leaves the weights their digits).
    reestimate
        One step of the re-estimation formula after each addition, for the criterion that stops where it has such a
        formula, else for GCV; from the present penalty, or from the best of many if that is clearly better.
    max_size
        Largest number of columns.
    max_condition
        'ols' and 'rols' stop before the condition number of the chosen columns, at unit length, passes this. By default
        they stop where it passes 1/sqrt(eps), that is where the variance matrix is singular to working precision,
        unless the criterion is still falling, and at 1e12 in any case.
    folds, random_state
        Of cross-validation.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`; 'loo' and 'cv' leave out the whole of a row. Not with 'backward'.

    References
    ----------
    Orr 1996, section 7 and appendices A.12 to A.15; Chen, Cowan and Grant 1991.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(200, 60))
    >>> fit = forward_select(Phi, Phi[:, [3, 50]] @ [2.0, -1.0] + 0.1 * rng.normal(size=200), stop="bic")
    >>> fit.order[:2].tolist(), fit.status.name
    ([3, 50], 'CONVERGED')
    """
    start = time.perf_counter()
    one_of(method, "method", METHODS)
    one_of(gain, "gain", GAINS)
    centre, reestimate = as_flag(centre, "centre"), as_flag(reestimate, "reestimate")
    if stop is not None:
        one_of(stop, "stop", stopping.STOPS)
    columns = as_columns(Phi)
    n, p = columns.shape
    if n * p <= STORE_DOUBLE:  # a larger one would be kept with half the digits
        columns = columns.store()
    columns.check_scale("Phi")
    target = as_target(t, n).copy()
    name = columns.fingerprint(target)
    check_magnitude(target, "t", FOURTH_POWERS)
    largest = p if max_size is None else min(as_count(max_size, "max_size", 0), p)
    if stop is None and max_size is None:
        raise ValueError("stop=None takes max_size columns: say how many, or name a criterion to stop by")
    if lam is not None:
        lam = as_positive(lam, "lam")
        if method == "ols":
            raise ValueError("method='ols' has no penalty: leave lam out, or take method='rfs' or 'rols'")
    if max_condition is not None and not as_positive(max_condition, "max_condition") > 1.0:
        raise ValueError(f"max_condition must be greater than 1, got {max_condition!r}")
    if stop == "cv" and not 2 <= as_count(folds, "folds", 2) <= n:
        raise ValueError(f"folds must be between 2 and the number of rows, {n}; got {folds}")
    weights = RowWeights.of(n, noise_std, sample_weight)
    if weights is not None and method == "backward":
        raise ValueError(
            "method='backward' takes no weights or noise levels of rows: take 'ols', 'rfs' or 'rols', or leave them out"
        )
    rng = as_generator(random_state)
    with columns.threads(), np.errstate(all="ignore"):
        settings = ForwardSettings(method, stop, centre, gain, lam, reestimate, largest, max_condition, weights)
        if method == "backward":
            fit = eliminate(columns, target, settings, folds, rng, name)
        else:
            known = _cross_validated(columns, target, settings, folds, rng) if stop == "cv" else None
            fit = _forward(columns, target, settings, known, name)
    return replace(fit, seconds=time.perf_counter() - start)


def _condition(growth: GrowingModel) -> float:
    """Condition number of the chosen columns at unit length."""
    k = growth.n_columns
    if not k:
        return 1.0
    R = growth.basis.R[growth.n_flat :, growth.n_flat :]
    share, _ = sl.lapack.dtrcon(np.asfortranarray(R), norm="1", uplo="U", diag="N")
    if k > _FEW or share > _CLEAR:
        return float(1.0 / share) if share > 0.0 else np.inf
    s = sl.svdvals(R, check_finite=False)
    return float(s[0] / s[-1]) if s[-1] > 0.0 else np.inf


def _step(models: list[LeastSquaresSteps], settings: ForwardSettings) -> list[str | None]:
    """Add the best candidate to each model, one pass over the dictionary for all; why those end that cannot go on."""
    ends: list[str | None] = []
    grown, directions = [], []
    for model in models:
        g = model.growth
        limit = min(g.n_train, g.n_counted - (1 if settings.method == "ols" else 0)) - g.n_flat
        if g.n_columns >= settings.max_size:
            ends.append("max_size" if settings.max_size < g.columns.shape[1] else "candidates")
            continue
        if g.n_columns >= limit:
            ends.append("rows")
            continue
        best = g.best(model.gains)
        if best is None:
            ends.append("candidates")
            continue
        directions.append(g.extend(best))
        g.condition = _condition(g)
        if settings.checks_condition and g.condition > settings.largest_condition:
            g.retract(directions.pop())
            ends.append("ill-conditioned")
            continue
        grown.append(model)
        ends.append(None)
    if grown and grown[0].growth.n_columns < settings.max_size:  # else nobody asks what the candidates could add
        products = grown[0].growth.columns.cross(np.column_stack(directions))
        for k, model in enumerate(grown):
            model.growth.absorb(products[:, k])
    for model in grown:
        model.settle()
    return ends


def _forward(columns: Columns, t: FloatArray, settings: ForwardSettings, known: Any, name: str) -> ForwardFit:
    multiplied, target = columns.multiplied(settings.weights), t
    if settings.weights is not None:
        target = settings.weights.scale(t)
    model = settings.start(multiplied, target)
    g = model.growth
    watch = BestSize()
    path: list[dict[str, Any]] = []

    def step() -> str | None:
        at: dict[str, Any] = stopping.record(model, settings.stop)
        at["condition"] = g.condition
        if known is not None:
            at["value"] = known[1][g.n_columns] if g.n_columns < len(known[1]) else np.nan
        path.append(at)
        if settings.stop is None or known is not None:
            watch.best, watch.value = g.n_columns, at["value"]
            if known is not None and g.n_columns == known[0]:
                return str(known[2])
        elif watch.far_enough(g.n_columns, at["value"]):
            return "criterion"
        elif settings.is_singular([model], watch):
            path.pop()
            return "ill-conditioned"
        (end,) = _step([model], settings)
        return end

    stopped = until_stopped(step, lambda: path)
    best = watch.best
    reached = len(path) - 1 if known is None else len(known[1]) - 1
    return finish(
        columns,
        t,
        settings,
        np.array(g.chosen[:best], dtype=np.intp),
        float(path[best]["lam"]),
        value=float(path[best]["value"]),
        history=tuple(path),
        models=[tuple(g.chosen[: entry["size"]]) for entry in path],
        stopped=stopped,
        notes=stopping.notes_of(stopped, settings.stop, best, reached, g.skipped),
        name=name,
        triangle=g.body[:best, :best],
        coordinates=g.coordinates[:best],
    )


def _cross_validated(
    columns: Columns, t: FloatArray, settings: ForwardSettings, folds: int, rng: np.random.Generator
) -> tuple[int, list[float], str]:
    """Best size, the mean squared error of the held rows at each size, and why the folds stopped."""
    n, weights = len(t), settings.weights
    if weights is not None:
        columns, t = columns.multiplied(weights), weights.scale(t)
    number = rng.permutation(n) % folds
    models = [settings.start(columns, t, train=number != k) for k in range(folds)]
    watch, curve = BestSize(), []

    def step() -> str | None:
        curve.append(float(sum(np.sum(model.held_errors() ** 2) for model in models)) / counted(t, weights))
        if watch.far_enough(len(curve) - 1, curve[-1]):
            return "criterion"
        if settings.is_singular(models, watch):
            return "ill-conditioned"
        return next((end for end in _step(models, settings) if end is not None), None)

    stopped = until_stopped(step, lambda: curve)
    return watch.best, curve, stopped
