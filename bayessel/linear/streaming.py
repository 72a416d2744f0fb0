r"""The evidence procedure on data that do not fit into memory: one pass over row blocks.

Everything but leave-one-out needs only :math:`\Phi^T\Phi, \Phi^Tt, t^Tt` and N. Sums of squares run at BLAS speed while
the condition number is below about 700 (then they are right to 1e-10); beyond that a QR is streamed. The first blocks
decide, the end of the pass checks, and the result's ``spectrum.route`` says which was used.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from bayessel._check import as_count, as_flag, check_magnitude, one_of
from bayessel._types import SupportsSubmit
from bayessel.basis import Dictionary
from bayessel.errors import NumericalWarning
from bayessel.fit import Status, worst
from bayessel.linear.block_sums import design_blocks, summed_blocks
from bayessel.linear.moments import Moments
from bayessel.linear.partitioned_sums import summed_partitions
from bayessel.linear.row_partitions import Blocks, block_source
from bayessel.linear.spectrum import Spectrum, suits_gram
from bayessel.linear.type2 import LinearFit, fit_evidence

#: rounding of the evidence that goes unsaid, in nats
TOLERATED = 1e-2


def fit_evidence_stream(
    source: str | os.PathLike[str] | Blocks | Callable[[], Blocks] | object,
    *,
    dictionary: Dictionary | None = None,
    centre: bool | None = None,
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    block_rows: int = 65536,
    arithmetic: str = "auto",
    method: str = "profile",
    executor: SupportsSubmit | None = None,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> LinearFit:
    """Choose alpha and beta by the evidence from row blocks, with memory independent of the number of rows.

    Parquet files and folders and Dask's collections are summed partition by partition, by several processes or on a
    cluster if wanted, and the numbers are the same bits whoever sums.

    Parameters
    ----------
    source
        An iterable of ``(Phi, t)`` blocks; a callable returning a fresh iterator of them (so that a second pass is
        possible); the path of a CSV or Parquet file, read in blocks, or of a folder of Parquet files; a pair of Dask
        arrays (X, y) or a Dask data frame, of which each chunk of rows is computed where it is summed.
    dictionary
        Turn each block's inputs into columns, ``dictionary.design(X)``; its bias gets a flat prior. Without one the
        blocks are the design itself.
    centre
        Give a bias a flat prior. Default: the dictionary's bias, or False.
    target, inputs
        Columns of a file or data frame: name of the target, names of the inputs (default: all others).
    block_rows
        Rows read at once from a file.
    arithmetic
        'auto', 'gram' (sums of squares) or 'qr'.
    method
        As in `fit_evidence`.
    executor, n_jobs
        Who sums the partitions: a ``dask.distributed.Client``, an executor of ``concurrent.futures`` or of submitit;
        else so many processes (default: this one, and others beside it where that pays). Only partitions can be
        given away, blocks that this process makes cannot.
    progressbar
        Show how many partitions are done.

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
    rows = block_source(source, target, inputs, block_rows)
    if executor is not None and not rows.partitions and not rows.divisible:
        raise ValueError(
            "executor can sum partitions only: give a folder of Parquet files, a Parquet file or Dask's arrays (X, y); "
            f"blocks of a {type(source).__name__} are made in this process"
        )
    if centre is None:
        centre = dictionary is not None and dictionary.bias
    as_flag(centre, "centre")

    def one_pass(exact: bool | None) -> Moments:
        if not rows.partitions:
            return summed_blocks(design_blocks(rows.start(), dictionary), centre, exact)
        return summed_partitions(
            rows.partitions, dictionary, centre, exact, executor=executor, n_jobs=n_jobs, progressbar=progressbar
        )

    moments = one_pass(None if arithmetic == "auto" else arithmetic == "qr")
    notes: list[Status] = []
    if not moments.is_sizeable():
        raise ValueError(
            f"Phi has values of size {moments.size():.0e}, whose squares leave double precision; rescale it"
        )
    if not moments.exact and _loses_digits(moments):
        if rows.again and arithmetic == "auto":
            moments = one_pass(True)
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
