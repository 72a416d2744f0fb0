r"""The evidence procedure on data that do not fit into memory: one pass over row blocks.

Everything but leave-one-out needs only :math:`\Phi^T\Phi, \Phi^Tt, t^Tt` and N. Sums of squares run at BLAS speed while
the condition number is below about 700 (then they are right to 1e-10); beyond that a QR is streamed. The first blocks
decide, the end of the pass checks, and the result's ``spectrum.route`` says which was used.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_count, as_flag, as_float_array, check_magnitude, one_of
from bayessel._tables import iter_blocks
from bayessel.basis import Dictionary
from bayessel.errors import NumericalWarning
from bayessel.fit import Status, worst
from bayessel.linear.moments import Moments
from bayessel.linear.spectrum import Spectrum, suits_gram
from bayessel.linear.type2 import LinearFit, fit_evidence

#: rounding of the evidence that goes unsaid, in nats
TOLERATED = 1e-2

#: rows of a design (or inputs of a dictionary) and their targets
type Block = tuple[npt.ArrayLike, npt.ArrayLike]
type Blocks = Iterable[Block]


def fit_evidence_stream(
    source: str | os.PathLike[str] | Blocks | Callable[[], Blocks],
    *,
    dictionary: Dictionary | None = None,
    centre: bool | None = None,
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    block_rows: int = 65536,
    arithmetic: str = "auto",
    method: str = "profile",
) -> LinearFit:
    """Choose alpha and beta by the evidence from row blocks, with memory independent of the number of rows.

    Parameters
    ----------
    source
        An iterable of ``(Phi, t)`` blocks; a callable returning a fresh iterator of them (so that a second pass is
        possible); or the path of a CSV or Parquet file, read in blocks.
    dictionary
        Turn each block's inputs into columns, ``dictionary.design(X)``; its bias gets a flat prior. Without one the
        blocks are the design itself.
    centre
        Give a bias a flat prior. Default: the dictionary's bias, or False.
    target, inputs
        Columns of a file: name of the target, names of the inputs (default: all others).
    block_rows
        Rows read at once from a file.
    arithmetic
        'auto', 'gram' (sums of squares) or 'qr'.
    method
        As in `fit_evidence`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> blocks = []
    >>> for _ in range(5):
    ...     Phi = rng.normal(size=(1000, 3))
    ...     blocks.append((Phi, Phi @ [1.0, 2.0, -1.0] + 0.1 * rng.normal(size=1000)))
    >>> fit = fit_evidence_stream(blocks)
    >>> fit.n_rows, fit.coef.round(1).tolist(), fit.spectrum.route
    (5000, [1.0, 2.0, -1.0], 'stream-gram')
    """
    began = perf_counter()
    one_of(arithmetic, "arithmetic", ("auto", "gram", "qr"))
    as_count(block_rows, "block_rows")
    if dictionary is not None and not isinstance(dictionary, Dictionary):
        raise TypeError(f"dictionary must be a Dictionary such as RBFDictionary, got {type(dictionary).__name__}")
    if target is not None and not isinstance(source, str | os.PathLike):
        raise ValueError("target names a column of a file, but the source is not a path: leave target out")
    open_blocks, again = _opener(source, target, inputs, block_rows)
    if centre is None:
        centre = dictionary is not None and dictionary.bias
    moments = _pass(
        _designs(open_blocks(), dictionary),
        as_flag(centre, "centre"),
        None if arithmetic == "auto" else arithmetic == "qr",
    )
    notes: list[Status] = []
    if not moments.is_sizeable():
        raise ValueError(
            f"Phi has values of size {moments.size():.0e}, whose squares leave double precision; rescale it"
        )
    if not moments.exact and _loses_digits(moments):
        if again and arithmetic == "auto":
            moments = _pass(_designs(open_blocks(), dictionary), centre, True)
        else:
            notes.append(Status.LOST_DIGITS)
    spectrum = Spectrum.from_moments(moments, "stream-qr" if moments.exact else "stream-gram")
    check_magnitude(np.append(spectrum.s, 1.0) / np.sqrt(spectrum.n_rows), "Phi")
    check_magnitude(np.array([spectrum.t_scale]), "t")
    fit = fit_evidence(spectrum, method=method)
    if not notes and spectrum.rss > 0.0 and _rounding(spectrum, fit) > TOLERATED:
        notes.append(Status.LOST_DIGITS)
    if notes:
        warnings.warn(f"{notes[0].name}: {notes[0].value}", NumericalWarning, stacklevel=2)
    notes = [*fit.notes, *notes]
    return replace(fit, notes=tuple(notes), status=worst(notes), seconds=perf_counter() - began)


def _opener(
    source: str | os.PathLike[str] | Blocks | Callable[[], Blocks],
    target: str | None,
    inputs: Sequence[str] | None,
    block_rows: int,
) -> tuple[Callable[[], Iterator[Block]], bool]:
    """Return a function that starts a pass, and whether it can be called twice."""
    if isinstance(source, str | os.PathLike):
        if target is None:
            raise ValueError("name the target column of the file: target='...'")
        return lambda: iter(iter_blocks(os.fspath(source), target, inputs, rows=block_rows)), True
    if callable(source):
        return lambda: _started(source()), True
    if not isinstance(source, Iterable):
        raise TypeError(
            "source must be a path, an iterable of (Phi, t) blocks or a callable returning one, "
            f"got {type(source).__name__}"
        )
    return lambda: iter(source), not isinstance(source, Iterator)


def _started(blocks: Blocks) -> Iterator[Block]:
    if not isinstance(blocks, Iterable):
        raise TypeError(f"the source must return an iterable of (Phi, t) blocks, got {type(blocks).__name__}")
    return iter(blocks)


def _designs(blocks: Iterator[Block], dictionary: Dictionary | None) -> Iterator[tuple[FloatArray, FloatArray]]:
    for number, block in enumerate(blocks):
        if not isinstance(block, tuple | list) or len(block) != 2:
            parts = f" of {len(block)}" if isinstance(block, tuple | list) else ""
            raise TypeError(f"block {number} must be a pair (Phi, t), got {type(block).__name__}{parts}")
        X, t = as_float_array(block[0], f"Phi of block {number}"), as_float_array(block[1], f"t of block {number}")
        if X.ndim == 1 and dictionary is not None:
            X = X[:, None]
        if X.ndim != 2 or t.ndim != 1 or len(X) != len(t):
            raise ValueError(
                f"block {number} must be a (rows, columns) array and a (rows,) target, got {X.shape} and {t.shape}"
            )
        if X.shape[1] == 0:
            raise ValueError(f"Phi of block {number} must have at least one column, got shape {X.shape}")
        if len(t) == 0:
            continue
        if dictionary is not None:
            X = dictionary.design(X)
            X = X[:, :-1] if dictionary.bias else X
        yield X, t


def _pass(designs: Iterator[tuple[FloatArray, FloatArray]], centre: bool, exact: bool | None) -> Moments:
    """Sum one pass; with ``exact=None`` the first rows decide between sums of squares and QR."""
    waiting: list[tuple[FloatArray, FloatArray]] = []
    moments: Moments | None = None
    width: int | None = None
    for number, (Phi, t) in enumerate(designs):
        width = width or Phi.shape[1]
        if Phi.shape[1] != width:
            raise ValueError(f"block {number} has {Phi.shape[1]} columns, the first had {width}")
        if moments is None:
            waiting.append((Phi, t))
            if exact is None and sum(len(y) for _, y in waiting) < 4 * Phi.shape[1]:
                continue
            moments = _start(waiting, centre, exact)
            waiting = []
        else:
            moments.update(Phi, t)
        if not moments.is_finite():
            raise ValueError(
                f"block {number} contains NaN or infinity; drop or impute those rows (and rescale values beyond 1e150)"
            )
    if moments is None:
        if not waiting:
            raise ValueError(
                "the stream is empty: it needs at least one block with at least one row (a callable must return a "
                "fresh iterator at every call, since a second pass may be needed)"
            )
        moments = _start(waiting, centre, True if exact is None else exact)
        if not moments.is_finite():
            raise ValueError(
                "a block contains NaN or infinity; drop or impute those rows (and rescale values beyond 1e150)"
            )
    return moments


def _start(waiting: list[tuple[FloatArray, FloatArray]], centre: bool, exact: bool | None) -> Moments:
    if exact is None:
        enough = max(4 * waiting[0][0].shape[1], 4096)
        probe = Moments.of(*((Phi[:enough], t[:enough]) for Phi, t in waiting), centre=centre, exact=True)
        exact = not suits_gram(probe.condition())
    return Moments.of(*waiting, centre=centre, exact=exact)


def _rounding(spectrum: Spectrum, fit: LinearFit) -> float:
    r"""Estimate of what rounding moves the evidence by, in nats.

    The triangle is that of a design and a target that differ by eps of their lengths from the given ones. The residual
    then differs by :math:`\delta = \epsilon(\|t\| + \sum_j\|\phi_j\||w_j|)` and the evidence by
    :math:`\beta\sqrt q\,\delta`.
    """
    lengths = np.sqrt(np.einsum("k,kj,kj->j", spectrum.s**2, spectrum.Vt, spectrum.Vt))
    moved = float(np.finfo(float).eps) * (np.sqrt(spectrum.tss) + float(lengths @ np.abs(fit.coef)))
    return float(fit.beta * np.sqrt(float(spectrum.quad(fit.lam))) * moved)


def _loses_digits(moments: Moments) -> bool:
    if not moments.keeps_digits() or not suits_gram(moments.condition()):
        return True
    *_, rss, tss = moments.spectrum()
    return rss < 1e-5 * tss  # t^T t - sum z^2 has cancelled
