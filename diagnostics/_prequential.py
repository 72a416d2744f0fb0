r"""Prequential code length: every row coded by its prediction from the rows before it (Dawid 1984), in nats.

:math:`L = -\sum_n\log p(t_n|t_1,\dots,t_{n-1})`. With fixed precisions this is minus the log evidence whatever the
order of the rows, and says nothing new. Here the precisions, and the columns in use, are fitted anew to
:math:`t_1..t_n` each time n has doubled; in between the exact Gaussian predictive is carried along. No row is ever
coded by a fit that has seen it, so nothing has to be charged for the number of hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike

from bayessel._check import (
    FloatArray,
    IntArray,
    as_count,
    as_float_array,
    as_fraction,
    as_generator,
    as_matrix,
    as_positive,
    as_target,
    check_finite,
)
from bayessel._formulas import log_normal
from bayessel._numerics import few_threads
from bayessel._types import Seed
from bayessel.basis import LazyDesign
from bayessel.pages.result_view import ResultView, ShownResult

#: rows whose joint density is taken by one factorisation
BLOCK = 64


class PrecisionsOfColumns(Protocol):
    """A fit by what its predictions need: the columns in use, their precisions (or one for all), and the noise's."""

    @property
    def basis(self) -> Sequence[int] | IntArray: ...
    @property
    def alpha(self) -> ArrayLike: ...
    @property
    def beta(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Prequential(ShownResult):
    """Prequential code length of a target.

    Attributes
    ----------
    nats : float
        The code length, the mean over the orders.
    std_error : float
        Standard error of that mean over random orders (NaN for one order). Compare two models on the *same* orders:
        ``a.per_order - b.per_order`` spreads far less than either.
    per_order : (R,) array
        Code length of each order.
    rows : (R, N) array
        Nats of each row, in the order in which it was coded.
    orders : (R, N) array
        Row coded at each place.
    refits : tuple of dict
        For each fit: order, n (rows it was fitted to), n_basis, noise_std, and nats_per_row until the next one.
    """

    nats: float
    std_error: float
    per_order: FloatArray
    rows: FloatArray = field(repr=False)
    orders: IntArray = field(repr=False)
    refits: tuple[dict[str, float], ...] = field(repr=False)

    def _view(self) -> ResultView:
        import pandas as pd

        orders, rows = self.rows.shape
        error = f" ± {self.std_error:.2g}" if np.isfinite(self.std_error) else ""
        title = f"Prequential code length {self.nats:.3f}{error} nats of {rows} rows"
        said = f"mean over {orders} orders" if orders > 1 else "one order"
        return ResultView(title, lines=[said], table=pd.DataFrame(list(self.refits)))


def prequential(
    Phi: ArrayLike | LazyDesign,
    t: ArrayLike,
    fit: Callable[..., PrecisionsOfColumns] | PrecisionsOfColumns,
    *,
    orders: ArrayLike | None = None,
    random_state: Seed = None,
    first: int | None = None,
    reference: tuple[float, float] | None = None,
    mix: float | None = None,
) -> Prequential:
    r"""Code every row by its prediction from the rows before it.

    Rows 1 to `first` are coded by the fixed normal `reference`; then ``fit(Phi[:n], t[:n])`` chooses the columns and
    precisions at n = `first`, 2 `first`, 4 `first` and so on. Row order matters: time series have one, for everything
    else average over several random ones.

    Distrust it when the first fits are bad (look at ``refits``). A sparse fit to few rows easily takes them for
    noise-free, stakes everything on the next ones, and one of them costs it 1e18 nats. `mix` insures against that: it
    costs 0.01 nats per row and bounds the loss on any row at 4.6 nats more than the reference's. With ``mix=0`` the
    bare model is judged.

    Parameters
    ----------
    Phi, t
        Candidate columns (N, P), or a `bayessel.basis.LazyDesign`, and target (N,).
    fit
        The engine, called with the first n rows: a callable such as `bayessel.linear.fit_rvm` whose result has
        ``basis``, ``alpha``, ``beta``. Or such a result itself: its precisions then stay, from the first row on, and
        the length is minus the log evidence.
    orders
        None: the rows as given. An integer R: R random orders. Or permutations, (N,) or (R, N).
    random_state
        Seed or `numpy.random.Generator` of the random orders.
    first
        Rows before the first fit; default 16, or with fewer than 32 rows the largest power of two in half of them.
    reference
        Mean and standard deviation of the normal that codes them; default those of the whole target. They are the same
        for every model of the same target, so differences do not depend on them as long as `first` is the same.
    mix
        Share of the reference in every later prediction, (1 - mix) model + mix reference, in [0, 1); default 0.01, and
        0 with precisions that stay.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.linear import fit_evidence
    >>> x = np.random.default_rng(0).uniform(-1, 1, 120)[:, None]
    >>> t = x[:, 0] - 2 * x[:, 0] ** 3 + 0.1 * np.random.default_rng(1).normal(size=120)
    >>> lengths = [prequential(x ** np.arange(degree + 1), t, fit_evidence).nats for degree in (1, 3, 5)]
    >>> int(np.argmin(lengths))
    1
    """
    design = Phi if isinstance(Phi, LazyDesign) else as_matrix(Phi, "Phi")
    n = design.shape[0]
    target = as_target(t, n)
    floor = 4.0 * np.finfo(float).eps * (float(np.abs(target).max()) or 1.0)
    spread = max(float(target.std()), floor)
    centre, scale = _normal(reference) if reference is not None else (float(target.mean()), spread)
    begin = 2 ** min(4, max(0, int(np.log2(n)) - 1)) if first is None else as_count(first, "first")
    mix = (0.01 if callable(fit) else 0.0) if mix is None else mix
    share = as_fraction(mix, "mix", zero=True)  # at 1 nothing of the model would be left
    sequences = _orders(orders, n, random_state)
    rows, refits = np.empty(sequences.shape), []
    for place, order in enumerate(sequences):
        y = target[order]
        plain = log_normal(y - centre, scale**2)
        if not callable(fit):
            rows[place] = -_blend(_coded_by(fit, _columns(design, order, fit.basis), y, 0, spread), plain, share)
            continue
        start = min(begin, n)
        rows[place, :start] = -plain[:start]
        while start < n:
            stop = min(2 * start, n)
            result = fit(_rows(design, order[:start]), y[:start])
            columns = _columns(design, order[:stop], result.basis)
            rows[place, start:stop] = -_blend(
                _coded_by(result, columns, y[:stop], start, spread), plain[start:stop], share
            )
            refits.append(
                {
                    "order": float(place),
                    "n": float(start),
                    "n_basis": float(len(result.basis)),
                    "noise_std": float(result.beta) ** -0.5,
                    "nats_per_row": float(rows[place, start:stop].mean()),
                }
            )
            start = stop
    lengths = rows.sum(axis=1)
    count = len(lengths)
    return Prequential(
        nats=float(lengths.mean()),
        std_error=float(lengths.std(ddof=1) / np.sqrt(count)) if count > 1 else np.nan,
        per_order=lengths,
        rows=rows,
        orders=sequences,
        refits=tuple(refits),
    )


def predictive_log_densities(
    Phi: FloatArray, t: FloatArray, alpha: FloatArray, beta: float, start: int = 0, spread: float | None = None
) -> FloatArray:
    r"""log p(t_n | t_1 .. t_{n-1}, alpha, beta) for all rows n > `start`, (N - start,).

    A block of rows given all earlier ones is one multivariate normal, whose Cholesky factor holds the densities of its
    rows one after the other. With W = sqrt(beta) Phi A^-1/2 and the triangle R, R'R = I + W'W of the rows before, that
    normal has mean W R^-1 z and covariance (I + (W R^-1)(W R^-1)') / beta, and R goes on by a QR factorisation: no
    difference of large numbers, whatever the condition of the columns.

    Parameters
    ----------
    Phi, t
        Columns in use (N, k) and target.
    alpha, beta
        Precisions; alpha = 0 is a flat prior, such as that of a bias.
    start
        Rows that are only conditioned on.
    spread
        Where nothing was seen and a flat prior leaves the first row without a density, it gets
        1 / (sqrt(2 pi) spread): the convention of `bayessel.linear.log_evidence` for a bias.
    """
    with few_threads(Phi.size):
        return _sequence(Phi, t, alpha, beta, start, spread)


def _sequence(
    Phi: FloatArray, t: FloatArray, alpha: FloatArray, beta: float, start: int, spread: float | None
) -> FloatArray:
    flat = alpha == 0.0
    root = np.where(flat, 1.0, np.where(flat, 1.0, alpha) ** -0.5)
    W, y = np.sqrt(beta) * Phi * root, np.sqrt(beta) * t
    k = W.shape[1]
    prior = np.hstack([np.diag(np.where(flat, 0.0, 1.0)), np.zeros((k, 1))])
    out = np.empty(len(t) - start)
    at = start
    if start == 0 and flat.any() and len(t):
        if spread is None or flat.sum() > 1:
            raise ValueError("a flat prior on columns predicts nothing before it has seen rows: pass start")
        out[0], at = float(log_normal(np.zeros(()), 1.0)) - np.log(spread), 1
    R = _triangle(np.vstack([prior, np.column_stack([W[:at], y[:at]])]))
    while at < len(t):
        stop = min(at + BLOCK, len(t))
        V = sl.solve_triangular(R[:, :k], W[at:stop].T, trans="T", check_finite=False).T if k else W[at:stop]
        # I + V V' = L L' by a QR factorisation of [I; V']: V V' is never formed, where the noise would drown
        (U,) = sl.qr(np.vstack([np.eye(stop - at), V.T]), mode="r", check_finite=False)
        U = U[: stop - at]
        e = sl.solve_triangular(U, y[at:stop] - V @ R[:, k], trans="T", check_finite=False)
        out[at - start : stop - start] = log_normal(e, 1.0) - np.log(np.abs(np.diag(U))) + 0.5 * np.log(beta)
        if stop < len(t):
            R = _triangle(np.vstack([R, np.column_stack([W[at:stop], y[at:stop]])]))
        at = stop
    return out


def _blend(model: FloatArray, plain: FloatArray, share: float) -> FloatArray:
    """Log densities of (1 - share) model + share plain."""
    return np.logaddexp(np.log1p(-share) + model, np.log(share) + plain) if share else model


def _triangle(stack: FloatArray) -> FloatArray:
    """R of the columns but the last, and the last in the coordinates of Q: (k, k + 1)."""
    k = stack.shape[1] - 1
    (R,) = sl.qr(stack, mode="r", check_finite=False)
    return np.asarray(R[:k])


def _rows(design: Any, rows: Any) -> Any:
    """These rows of all columns, for the engine."""
    return LazyDesign(design.dictionary, design.X[rows]) if isinstance(design, LazyDesign) else design[rows]


def _columns(design: Any, rows: Any, basis: Any) -> FloatArray:
    """These rows of the columns in use."""
    basis = np.asarray(basis, dtype=int)
    return design.rows(rows, basis) if isinstance(design, LazyDesign) else design[np.ix_(rows, basis)]


def _coded_by(result: PrecisionsOfColumns, columns: FloatArray, y: FloatArray, start: int, spread: float) -> FloatArray:
    """Log densities of the rows from `start` on, at the precisions of a result."""
    alpha = np.asarray(result.alpha, dtype=np.float64)
    if alpha.ndim == 0:
        alpha = np.full(columns.shape[1], float(alpha))
    elif len(alpha) != columns.shape[1]:
        alpha = alpha[np.asarray(result.basis, dtype=int)]
    spectrum = getattr(result, "spectrum", None)
    if spectrum is not None and spectrum.centred:
        columns, alpha = np.hstack([columns, np.ones((len(y), 1))]), np.append(alpha, 0.0)
    return predictive_log_densities(columns, y, alpha, float(result.beta), start, spread)


def _normal(reference: Any) -> tuple[float, float]:
    if np.shape(reference) != (2,):
        raise TypeError(f"reference must be a pair, mean and standard deviation, got {reference!r}")
    pair = as_float_array(reference, "reference")
    check_finite(pair, "reference")
    return float(pair[0]), as_positive(pair[1], "the standard deviation of the reference")


def _orders(orders: ArrayLike | None, n: int, random_state: Seed) -> IntArray:
    if orders is None:
        return np.arange(n)[None]
    if np.ndim(orders) == 0:
        generator = as_generator(random_state)
        return np.array([generator.permutation(n) for _ in range(as_count(orders, "orders"))])
    given = np.atleast_2d(np.asarray(orders))
    if given.dtype.kind not in "iu" or given.shape[1:] != (n,) or not (np.sort(given, axis=1) == np.arange(n)).all():
        raise ValueError(f"orders must be permutations of 0..{n - 1}, one per row; got an array of shape {given.shape}")
    return given
