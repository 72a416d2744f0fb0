"""Compare kernel widths: one table, one picture, one verdict on which width the data prefer.

For every width r a dictionary of radial functions is built and decomposed once; from that one decomposition come the
evidence (maximised over alpha and beta) and the minimum of every other criterion over its own ridge parameter.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayessel._check import FloatArray, as_count, as_flag, as_matrix, as_positive, as_target, check_magnitude, one_of
from bayessel.basis import KINDS, RBFDictionary
from bayessel.diagnostics._comparison import WidthComparison
from bayessel.diagnostics._curves import (
    CRITERIA,
    INTERPOLATION,
    QUADRATURE,
    UNDETERMINED,
    Prediction,
    number,
    preferences,
)
from bayessel.errors import NumericalWarning
from bayessel.linear import LinearFit, Spectrum, fit_evidence, fit_ridge, model_evidence_quadrature
from bayessel.result import Status, fingerprint

__all__ = ["WidthComparison", "compare_widths", "suggest_widths"]

MODELS = ("evidence",)
_LATER_MODELS = ("rvm", "search", "gp")
_LATER_CRITERIA = ("mdl-w", "mdl-alpha")
_RIDGE = ("gcv", "loo", "uev", "fpe", "bic")
_GRID_POINTS = 400


#: more widths than this are a slip of the keyboard
MAX_WIDTHS = 10_000


def compare_widths(
    X: Any,
    y: Any,
    widths: Iterable[float],
    model: str = "evidence",
    criteria: Sequence[str] | None = None,
    kind: str = "gaussian",
    centers: Any = None,
    bias: bool = True,
    progressbar: bool = True,
    names: Sequence[str] | None = None,
    target: str | None = None,
    client: Any = None,
) -> WidthComparison:
    r"""Judge every width by every criterion and keep what a person needs to decide.

    Parameters
    ----------
    X, y
        Inputs (N, D), or (N,) for a single input, and target (N,). Column names of a pandas frame are kept.
    widths
        Widths r of :math:`e^{-d^2/r^2}`, in the units of the inputs: positive numbers in any order.
    model
        ``"evidence"``: linear in the functions, one weight precision alpha, one noise precision beta.
    criteria
        Any of ``"evidence"``, ``"model-evidence"`` (higher is better), ``"gcv"``, ``"loo"``, ``"uev"``, ``"fpe"``,
        ``"bic"`` (lower is better). Default: all. The evidence fit is made in any case; it gives gamma and the noise.
    kind
        Radial function: ``"gaussian"``, ``"multiquadric"``, ``"inverse_multiquadric"`` or ``"cauchy"``.
    centers
        Centres of the functions (M, D); a number M takes M rows spread over the inputs; default: every row of X.
    bias
        Give the model a constant with a flat prior (the target and the functions are centred).
    progressbar
        Show progress on a terminal; never in pipes.
    names, target
        Names of the inputs and of the target, for pictures and reports.
    client
        Reserved for a cluster's client; only None so far.

    Returns
    -------
    WidthComparison
        With ``.table``, ``.best(criterion)``, ``.verdict()``, ``.plot()``, ``.to_html(path)``, ``.to_netcdf(path)``.
        After Ctrl-C: what was finished until then, with ``.interrupted`` set. The widths are visited from coarse to
        fine, so an interrupted run still spans the grid.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-3, 3, 60)
    >>> y = np.cos(x**2) + 0.1 * np.random.default_rng(0).standard_normal(60)
    >>> comparison = compare_widths(x, y, widths=[0.1, 0.3, 1.0, 3.0], progressbar=False)
    >>> comparison.best("evidence")
    0.3
    """
    if client is not None:
        raise ValueError(
            f"client must be None: this release compares widths in one process; got {type(client).__name__}"
        )
    chosen = _check_choices(model, criteria, kind)
    grid = check_widths(widths)
    inputs, t, names, target = _check_data(X, y, names, target)
    centres = _check_centers(centers, inputs)
    bias = as_flag(bias, "bias")
    rows: dict[float, dict[str, Any]] = {}
    leaders = _Leaders(inputs, centres, kind)
    interrupted = False
    with _progress(progressbar) as progress:
        task = progress.add_task("comparing widths", total=len(grid))
        try:
            for r in _coarse_to_fine(grid):
                progress.update(task, description=f"width r = {number(r)}")
                row, fit = _one_width(inputs, t, r, chosen, kind, centres, bias)
                leaders.offer(r, row, chosen, fit)
                rows[r] = row
                progress.advance(task)
        except KeyboardInterrupt:
            if not rows:
                raise
            interrupted = True
    done = sorted(rows)
    table = pd.DataFrame([rows[r] for r in done], index=pd.Index(done, name="width", dtype=np.float64))
    kept = preferences(table, chosen)
    return WidthComparison(
        table=table,
        criteria=chosen,
        X=inputs,
        y=t,
        fits={r: leaders.fits[r] for r in kept if r in leaders.fits},
        names=names,
        target=target,
        model=model,
        kind=kind,
        n_centers=len(centres),
        bias=bias,
        planned=len(grid),
        interrupted=interrupted,
        fingerprint=fingerprint(inputs, t),
    )


def _one_width(
    X: FloatArray, t: FloatArray, r: float, criteria: Sequence[str], kind: str, centres: FloatArray, bias: bool
) -> tuple[dict[str, Any], Any]:
    """One decomposition, every criterion: a row of the table and the evidence fit behind it."""
    Phi = RBFDictionary(centres, r, kind=kind, bias=False).design(X)
    spectrum = Spectrum.of(Phi, t, centre=bias, rows="loo" in criteria)
    values: dict[str, float] = {}
    lams: dict[str, float] = {}
    beside: dict[str, list[str]] = {}
    with warnings.catch_warnings():
        # one warning per width and criterion would bury the reader: the statuses are in the table and in the verdict
        warnings.simplefilter("ignore", NumericalWarning)
        fit = fit_evidence(spectrum)
        for status in set(fit.notes) - {fit.status}:
            beside.setdefault(status.name, []).append("evidence")
        for name in (name for name in criteria if name in _RIDGE):
            values[name], lams[f"lam_{name}"], notes = _ridge_minimum(spectrum, name)
            for note in notes:
                beside.setdefault(note, []).append(name)
        if "model-evidence" in criteria:
            values["model-evidence"], notes = _third_level(spectrum, fit)
            for note in notes:
                beside.setdefault(note, []).append("model-evidence")
    values["evidence"] = float(fit.log_evidence)
    row: dict[str, Any] = {name: values[name] for name in criteria}
    row |= {"gamma": float(fit.gamma), "noise_std": float(fit.noise_std), "lam": float(fit.lam), **lams}
    row |= {"n_basis": int(fit.n_basis), "status": fit.status.name}
    row["notes"] = " ".join(f"{note}({','.join(names)})" for note, names in sorted(beside.items()))
    return row, fit


def _third_level(spectrum: Spectrum, fit: LinearFit) -> tuple[float, set[str]]:
    """Evidence with alpha and beta integrated out: Gaussian approximation where it is good, quadrature elsewhere.

    The approximation needs some well-determined parameters and some rows left for the noise. NaN where the integral
    itself has no answer: its mass lies at the ends of the range, so that the improper prior decides.
    """
    if 3.0 <= fit.gamma <= spectrum.n_free - 3.0:
        return float(fit.model_evidence), set()
    if spectrum.n_free > 0:
        exact = model_evidence_quadrature(spectrum)
        if exact.status is Status.CONVERGED and np.isfinite(exact.value):
            return float(exact.value), {QUADRATURE}
    return float("nan"), {UNDETERMINED}


def _ridge_minimum(spectrum: Spectrum, name: str) -> tuple[float, float, set[str]]:
    """Smallest value of a criterion over lambda, the lambda, and what to be wary of.

    With about as many functions as rows UEV, FPE and BIC fall to zero as the fit comes to pass through every row: there
    S/(N - gamma) vanishes whatever the data. They are expansions for gamma << N, and that end says nothing about a
    width; so for these three the best minimum counts that leaves a quarter of the rows for the noise, and NaN if there
    is none. GCV and LOO have no such end.
    """
    ridge = fit_ridge(spectrum, criterion=name)
    needed = spectrum.n_rows / 4.0
    if name in ("gcv", "loo") or spectrum.n_rows - ridge.gamma >= needed:
        notes = {ridge.status, *ridge.notes} - {Status.CONVERGED}
        return float(ridge.value), float(np.max(ridge.lam)), {note.name for note in notes}
    inside = [(value, lam) for lam, value in ridge.minima if float(spectrum.trace_p(lam)) >= needed]
    value, lam = min(inside, default=(np.nan, np.nan))
    return value, lam, {INTERPOLATION}


class _Leaders:
    """Predictions at the widths that lead so far, one per criterion at most.

    Memory is then bounded by the number of criteria, not by the number of widths.
    """

    def __init__(self, X: FloatArray, centres: FloatArray, kind: str) -> None:
        self.X, self.centres, self.kind = X, centres, kind
        self.fits: dict[float, Prediction] = {}
        self._best: dict[str, tuple[float, float]] = {}

    def offer(self, r: float, row: dict[str, Any], criteria: Sequence[str], fit: Any) -> None:
        """Keep this width if it leads in some criterion (of equals the smallest); drop those that no longer do."""
        for name in criteria:
            height = row[name] if CRITERIA[name].higher_is_better else -row[name]
            # the second entry breaks ties towards the smaller width, whatever the order of visits
            if np.isfinite(height) and (height, -r) > self._best.get(name, (-np.inf, 0.0)):
                self._best[name] = (height, -r)
        leading = {-minus for _, minus in self._best.values()}
        self.fits = {old: kept for old, kept in self.fits.items() if old in leading}
        if r in leading:
            self.fits[r] = self._predict(r, fit)

    def _predict(self, r: float, fit: Any) -> Prediction:
        dictionary = RBFDictionary(self.centres, r, kind=self.kind, bias=False)
        mean, std = fit.predict(dictionary.design(self.X), return_std=True)
        grid = grid_mean = grid_std = np.empty(0)
        if self.X.shape[1] == 1:
            lo, hi = float(self.X.min()), float(self.X.max())
            grid = np.linspace(lo, hi, _GRID_POINTS) if hi > lo else np.array([lo])
            grid_mean, grid_std = fit.predict(dictionary.design(grid), return_std=True)
        return Prediction(mean, std, grid, grid_mean, grid_std)


# the door: every bad argument is refused here, with what to do about it


def _check_choices(model: str, criteria: Sequence[str] | None, kind: str) -> tuple[str, ...]:
    if model in _LATER_MODELS:
        raise ValueError(f"model {model!r} is not available in this release; available: {', '.join(map(repr, MODELS))}")
    one_of(model, "model", MODELS)
    one_of(kind, "kind", KINDS)
    if criteria is None:
        return tuple(CRITERIA)
    if not isinstance(criteria, Iterable):
        raise TypeError(f"criteria must be a name or a list of names from {', '.join(CRITERIA)}, got {criteria!r}")
    wanted = (criteria,) if isinstance(criteria, str) else tuple(criteria)
    if not wanted:
        raise ValueError(f"criteria is empty: choose from {', '.join(CRITERIA)}, or leave it out for all")
    for name in wanted:
        if name in _LATER_CRITERIA:
            raise ValueError(f"criterion {name!r} is not available in this release; available: {', '.join(CRITERIA)}")
        one_of(name, "criterion", tuple(CRITERIA))
    return tuple(name for name in CRITERIA if name in wanted)


def _check_data(
    X: Any, y: Any, names: Sequence[str] | None, target: str | None
) -> tuple[FloatArray, FloatArray, tuple[str, ...], str]:
    inputs = as_matrix(X, "X", allow_1d=True)
    t = as_target(y, len(inputs), "y")
    check_magnitude(t, "y")
    if names is None:
        own = getattr(X, "columns", None)
        one = getattr(X, "name", None)
        d = inputs.shape[1]
        names = list(own) if own is not None else [one] if one else ["x"] if d == 1 else [f"x{k}" for k in range(d)]
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Iterable):
        raise TypeError(f"names must be a list of names, one per input, got {names!r}")
    names = list(names)
    if len(names) != inputs.shape[1]:
        raise ValueError(f"names must be one per input: X has {inputs.shape[1]} columns, got {len(names)} names")
    target = target or getattr(y, "name", None) or "y"
    return inputs, t, tuple(map(str, names)), str(target)


def _check_centers(centers: Any, X: FloatArray) -> FloatArray:
    if centers is None:
        return X
    if np.ndim(centers) == 0 and not isinstance(centers, str):
        return spread_rows(X, as_count(centers, "centers"))
    centres = as_matrix(centers, "centers", allow_1d=True)
    if centres.shape[1] != X.shape[1]:
        raise ValueError(f"centers must have the {X.shape[1]} columns of X, got shape {centres.shape}")
    return centres


def _progress(wanted: bool) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not (wanted and console.is_terminal))


# grids and centres, chosen from the data


def check_widths(widths: Iterable[float]) -> tuple[float, ...]:
    """Positive finite numbers, sorted, each once."""
    if isinstance(widths, str):
        raise TypeError(f"widths must be numbers, got the string {widths!r}; try np.geomspace(0.1, 10, 25)")
    if np.ndim(widths) == 0 and not isinstance(widths, Iterable):  # type: ignore[arg-type]
        widths = [widths]  # a single width is a comparison of one
    listed = list(np.ravel(widths)) if isinstance(widths, np.ndarray) else list(widths)
    if not listed:
        raise ValueError("widths is empty: give at least one positive number, such as np.geomspace(0.1, 10, 25)")
    if len(listed) > MAX_WIDTHS:
        raise ValueError(f"widths has {len(listed)} numbers: at most {MAX_WIDTHS} make sense, and 25 usually do")
    return tuple(sorted({as_positive(value, "every width") for value in listed}))


def spread_rows(X: FloatArray, m: int) -> FloatArray:
    """Up to ``m`` different rows of ``X`` that cover it: each next one is the farthest from those before it.

    Deterministic; distances are in units of each input's standard deviation, so that no input dominates by its units.
    """
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    taken = [int(np.argmin((Z**2).sum(axis=1)))]
    far = ((Z - Z[taken[0]]) ** 2).sum(axis=1)
    while len(taken) < m and far.max() > 0:
        taken.append(int(np.argmax(far)))
        far = np.minimum(far, ((Z - Z[taken[-1]]) ** 2).sum(axis=1))
    return X[np.sort(taken)]


def suggest_widths(X: Any, count: int = 25) -> FloatArray:
    """Suggest widths from half a typical distance of neighbours to twice the largest distance, evenly on the logarithm.

    Narrower functions see one row each and wider ones are all but straight lines, so the answer nearly always lies
    between. Rounded to three digits. Beyond 1 000 rows a spread of 1 000 stands for all.
    """
    from scipy.spatial.distance import cdist

    inputs = as_matrix(X, "X", allow_1d=True)
    rows = inputs if len(inputs) <= 1000 else inputs[np.linspace(0, len(inputs) - 1, 1000).astype(int)]
    distance = cdist(rows, rows)
    if distance.max() == 0:
        raise ValueError("all rows of X are equal: no width can be suggested from their distances")
    distance[distance == 0] = np.inf
    nearest = distance.min(axis=1)
    lo = 0.5 * float(np.median(nearest[np.isfinite(nearest)]))
    hi = 2.0 * float(distance[np.isfinite(distance)].max())
    return np.array([float(f"{r:.3g}") for r in np.geomspace(lo, hi, as_count(count, "count", 2))])


def _coarse_to_fine(grid: Sequence[float]) -> list[float]:
    """Both ends first, then ever finer in between."""
    last = len(grid) - 1
    order = [0, last]
    step = 1
    while step < last:
        step *= 2
    while step >= 1:
        order += range(0, last, step)
        step //= 2
    return [grid[i] for i in dict.fromkeys(order)]
