r"""Rolling-origin comparison: models fitted to the past of a series and judged by what comes next, again and again.

At each origin n a model is fitted to the rows before it and predicts the next ones. The losses :math:`d_1..d_m` of the
m origins are correlated in time, so the standard error of their mean is that of overlapping blocks of b origins with
means :math:`B_j`,

.. math:: \mathrm{se}^2 = \frac{b}{(m-b)(m-b+1)}\sum_j(B_j-\bar d)^2,

which is :math:`s^2/m` for b = 1. Two models are compared by the differences of their losses at the same origins.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel import work
from bayessel._check import FloatArray, as_count, as_flag, as_fraction, as_target, chosen_seed
from bayessel._numerics import few_threads
from bayessel._types import Seed
from bayessel.diagnostics.fit_reader import predictive_of
from bayessel.diagnostics.fresh_estimators import prepare, unfitted_copy
from bayessel.errors import SamplingWarning
from bayessel.pages.result_view import ResultView, ShownResult
from bayessel.work.jobs import check_jobs
from bayessel.work.seeds import seed_sequence

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: rows before the first origin that leave a model something to fit
FEWEST = 2
#: losses that are averaged; the coverage is one too
LOSSES = ("squared_error", "log_density", "coverage")


@dataclass(frozen=True, eq=False)
class RollingOrigin(ShownResult):
    """What models predicted of the rows after each origin.

    Attributes
    ----------
    table : DataFrame
        One line per model, best first: means of ``squared_error``, ``log_density`` (nats a row, larger is better) and
        ``coverage`` of the intervals, each with its standard error (``_se``); ``origins``, and ``warned``, the share
        of fits that warned. Sorted by the log density, or by the squared error where a model has no density.
    differences : DataFrame
        One line per pair of models: the first's mean minus the second's, with standard errors of the differences.
    rows : DataFrame
        Every prediction: model, origin (place of the first row predicted there), row (its place, or its index), ahead
        (1 is the first row predicted), target, mean, std, lower and upper end of the interval, and the losses.
    level : float
        Probability of the intervals.
    block : dict of str to int
        Origins of a block, for each loss the largest of any model or difference.
    warnings : dict of str to dict
        For each model: what its fits warned of, and how often.
    """

    table: pd.DataFrame
    differences: pd.DataFrame
    rows: pd.DataFrame = field(repr=False)
    level: float
    block: dict[str, int]
    warnings: dict[str, dict[str, int]] = field(repr=False)

    def _view(self) -> ResultView:
        warned = [f"{name}: fits warned {sum(said.values())} times" for name, said in self.warnings.items() if said]
        title = f"{self.rows['origin'].nunique()} origins, intervals of {self.level:.0%}"
        return ResultView(title, lines=warned, table=self.table, then=".differences")

    def __str__(self) -> str:
        head = f"{self.rows['origin'].nunique()} origins, intervals of {self.level:.0%}"
        return "\n".join([head, self.table.to_string(float_format=lambda v: f"{v:.4g}")])


def rolling_origin(
    models: Mapping[str, BaseEstimator],
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    initial: int | None = None,
    step: int | None = None,
    horizon: int = 1,
    gap: int = 0,
    window: int | None = None,
    level: float = 0.9,
    block: int | None = None,
    random_state: Seed = 0,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> RollingOrigin:
    """Compare models on rows in the order of time.

    Parameters
    ----------
    models
        Name -> estimator with ``fit`` and ``predict``; it is copied, never fitted itself. Densities and coverage are
        those of `predictive`, or of ``predict(X, return_std=True)`` as normal distributions; others, and those
        without an error bar, have squared errors alone.
    X, y
        Inputs and target in the order of time, such as `bayessel.basis.lagged` makes them.
    initial
        Rows before the first origin; None takes half of them.
    step
        Rows from one origin to the next; None takes `horizon`, so that every row is predicted once.
    horizon
        Rows predicted at each origin, from the inputs that these rows have. Where inputs are lags at a horizon of
        their own, use that horizon minus one as `gap`.
    gap
        Rows left out between those that are fitted and those that are predicted, whose targets are not known yet.
    window
        Fit to so many of the latest rows; None: to all rows before the origin.
    level
        Probability of the intervals whose coverage is counted.
    block
        Origins of a block of the standard errors; None takes what a correlation from one origin to the next asks for
        (Andrews 1991), and at least as many as overlap. The errors are too small where errors of the models keep
        their sign for longer than a quarter of all origins.
    random_state
        Seed of everything random in the models.
    n_jobs
        Processes, see `bayessel.work.run`.
    progressbar
        Show a bar where it takes long.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from bayessel.basis import lagged
    >>> noise = np.random.default_rng(0).normal(size=120)
    >>> series = np.convolve(noise, 0.8 ** np.arange(20))[:120]
    >>> X, y, _ = lagged(series, 2)
    >>> found = rolling_origin({"two lags": BayesianRidge(), "none": BayesianRidge(alpha_init=1e9)}, X, y, step=5)
    >>> found.table.shape[0], found.rows["origin"].nunique()
    (2, 12)
    """
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict of name -> estimator, with at least one; got {models!r}")
    for name, model in models.items():
        if isinstance(model, type) or not all(callable(getattr(model, what, None)) for what in ("fit", "predict")):
            raise TypeError(f"{name!r} must be an estimator with fit and predict, got {model!r}")
    target = as_target(y, np.shape(y)[0] if np.ndim(y) else 0, "y")
    n = len(target)
    if np.ndim(X) not in (1, 2) or np.shape(X)[0] != n:
        raise ValueError(f"X must have one row for each of the {n} values of y, got shape {np.shape(X)}")
    ahead, skipped = as_count(horizon, "horizon"), as_count(gap, "gap", 0)
    stride = ahead if step is None else as_count(step, "step")
    first = max(FEWEST, n // 2) if initial is None else as_count(initial, "initial", FEWEST)
    wide = None if window is None else as_count(window, "window", FEWEST)
    width = None if block is None else as_count(block, "block")
    share, seed, jobs = as_fraction(level, "level"), chosen_seed(random_state), check_jobs(n_jobs)
    origins = range(first, n - skipped - ahead + 1, stride)
    if not origins:
        raise ValueError(
            f"{n} rows leave none to predict after {first} fitted, a gap of {skipped} and a horizon of {ahead}: "
            "lower initial"
        )
    names = {str(name): model for name, model in models.items()}
    units = [
        _unit(name, model, X, target, origin, ahead, skipped, wide, share, seed)
        for origin in origins
        for name, model in names.items()
    ]
    report = work.run(units, n_jobs=jobs, progress=as_flag(progressbar, "progressbar"), what="rolling the origin")
    if report.lost:
        raise RuntimeError("; ".join(f"{key.replace(chr(0), ' at ')}: {why}" for key, why in report.lost.items()))
    done = [origin for origin in origins if all(_key(name, origin) in report.values for name in names)]
    if not done:
        raise KeyboardInterrupt
    if len(done) < len(origins):
        warnings.warn(f"interrupted after {len(done)} of {len(origins)} origins", SamplingWarning, stacklevel=2)
    index = y.index if isinstance(y, pd.Series) else X.index if isinstance(X, pd.DataFrame) else None
    rows = _rows({name: [report.values[_key(name, origin)] for origin in done] for name in names}, index, target)
    least = -(-ahead // stride)
    told = {name: Counter(said for o in done for said in report.values[_key(name, o)].said) for name in names}
    losses = {
        loss: rows.pivot_table(index="origin", columns="model", values=loss, dropna=False)[list(names)]
        for loss in LOSSES
    }
    blocks = {loss: _longest(values, least, width) for loss, values in losses.items()}
    lines = {}
    for name in names:
        lines[name] = _means({loss: values[name].to_numpy() for loss, values in losses.items()}, least, width)
        lines[name] |= {
            "origins": float(len(done)),
            "warned": float(np.mean([bool(report.values[_key(name, origin)].said) for origin in done])),
        }
    table = pd.DataFrame(lines).T.rename_axis("model")
    by_density = not table["log_density"].isna().any()
    table = table.sort_values("log_density" if by_density else "squared_error", ascending=not by_density, kind="stable")
    pairs = list(combinations(table.index, 2))
    apart = [
        _means({loss: (values[a] - values[b]).to_numpy() for loss, values in losses.items()}, least, width)
        for a, b in pairs
    ]
    differences = pd.DataFrame(apart, index=pd.MultiIndex.from_tuples(pairs, names=["model", "minus"]) if pairs else [])
    return RollingOrigin(table, differences, rows, share, blocks, {name: dict(counts) for name, counts in told.items()})


@dataclass(frozen=True, eq=False)
class Forecast:
    """One model at one origin: places of the rows, what it said of each, and what it warned of."""

    origin: int
    places: FloatArray
    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    log_density: FloatArray
    said: tuple[str, ...]


def _key(name: str, origin: int) -> str:
    return f"{name}\0{origin}"


def _unit(
    name: str,
    model: Any,
    X: Any,
    y: FloatArray,
    origin: int,
    horizon: int,
    gap: int,
    window: int | None,
    level: float,
    seed: int,
) -> work.WorkUnit[Forecast]:
    """A model at an origin as work; its rows are taken when it is begun."""

    def arguments() -> tuple[Any, ...]:
        begin = 0 if window is None else max(0, origin - window)
        places = np.arange(origin + gap, origin + gap + horizon)
        own = int(seed_sequence(seed, name, origin).generate_state(1)[0] >> 1)
        return model, _part(X, slice(begin, origin)), y[begin:origin], _part(X, places), y[places], places, level, own

    return work.WorkUnit(_key(name, origin), forecast, arguments, name)


def _part(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame | pd.Series) else np.asarray(X)[rows]


def forecast(
    model: Any, X: Any, y: FloatArray, new: Any, seen: FloatArray, places: FloatArray, level: float, seed: int
) -> Forecast:
    """Fit a copy of a model and predict the rows that follow."""
    fresh = unfitted_copy(model)
    prepare(fresh, seed)
    with few_threads(0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fresh.fit(X, y)
        there = predictive_of(fresh, new) if _says_how_sure(fresh) else None
        if there is not None and (there.std > 0.0).all():
            mean, std, log_density = there.mean, there.std, there.log_density(seen)
            lower, upper = there.quantile([0.5 - level / 2.0, 0.5 + level / 2.0])
        else:
            mean = np.asarray(fresh.predict(new), dtype=np.float64)
            std = lower = upper = log_density = np.full(len(seen), np.nan)
    if mean.shape != seen.shape or not np.isfinite(mean).all():
        raise ValueError(
            f"{type(fresh).__name__} must predict a finite number for each of {len(seen)} rows, got {mean!r}"
        )
    said = tuple(dict.fromkeys(f"{one.category.__name__}: {str(one.message)[:200]}" for one in caught))
    return Forecast(int(places[0]), places, mean, std, lower, upper, log_density, said)


def _says_how_sure(model: Any) -> bool:
    """Whether an estimator, or the last one of a pipeline or search, predicts distributions."""
    import inspect

    while True:
        if (best := getattr(model, "best_estimator_", None)) is not None:
            model = best
        elif (steps := getattr(model, "steps", None)) is not None:
            model = steps[-1][1]
        else:
            break
    has_own = getattr(model, "predictive", None) is not None
    return has_own or "return_std" in inspect.signature(model.predict).parameters


def _rows(found: dict[str, list[Forecast]], index: Any, y: FloatArray) -> pd.DataFrame:
    """Every prediction."""
    parts = []
    for name, forecasts in found.items():
        for one in forecasts:
            target = y[one.places]
            covered = np.where(np.isnan(one.lower), np.nan, (target >= one.lower) & (target <= one.upper))
            parts.append(
                pd.DataFrame(
                    {
                        "model": name,
                        "origin": one.origin,
                        "row": one.places if index is None else index[one.places],
                        "ahead": np.arange(1, len(one.places) + 1),
                        "target": target,
                        "mean": one.mean,
                        "std": one.std,
                        "lower": one.lower,
                        "upper": one.upper,
                        "squared_error": (target - one.mean) ** 2,
                        "log_density": one.log_density,
                        "coverage": covered,
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def _means(losses: dict[str, FloatArray], least: int, block: int | None) -> dict[str, float]:
    """Mean and standard error of each loss."""
    found = {}
    for loss, values in losses.items():
        found[loss] = float(values.mean())
        found[f"{loss}_se"] = block_standard_error(values, block or block_length(values, least))
    return found


def _longest(values: pd.DataFrame, least: int, block: int | None) -> int:
    return block or max(block_length(column.to_numpy(), least) for _, column in values.items())


def block_length(values: FloatArray, least: int = 1) -> int:
    """Length that suits a first-order autoregression: Andrews' rule for Bartlett weights, 1.1447 (a m)^(1/3).

    With the correlation r of neighbours :math:`a = 4r^2/(1-r^2)^2`. At most a quarter of the values, at least `least`.
    """
    m = len(values)
    away = values - values.mean()
    whole = float(away @ away)
    if m < 3 or not np.isfinite(whole) or not whole > 0.0:
        return max(1, min(least, m))
    r2 = min(float(away[1:] @ away[:-1]) / whole, 0.97) ** 2
    wanted = int(np.ceil(1.1447 * (4.0 * r2 / (1.0 - r2) ** 2 * m) ** (1.0 / 3.0)))
    return max(1, least, min(wanted, m // 4))


def block_standard_error(values: FloatArray, block: int) -> float:
    """Standard error of the mean of values in the order of time, from overlapping blocks; NaN with too few for that."""
    m = len(values)
    if m < 2 * block or m < 2:
        return np.nan
    sums = np.cumsum(np.concatenate([[0.0], values - values.mean()]))
    means = (sums[block:] - sums[:-block]) / block
    return float(np.sqrt(block / ((m - block) * (m - block + 1)) * (means**2).sum()))
