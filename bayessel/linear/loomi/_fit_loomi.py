r"""Forward selection of a two-class classifier by leave-one-out mutual information (Hong et al. 2014).

The model is :math:`f = \Phi\theta`, fitted to labels :math:`y = \pm1` by least squares, one term after another. A term
is orthogonalised against those before it, :math:`w_l`, with :math:`\kappa_l = w_l^\top w_l`, and gets the weight
:math:`g_l = w_l^\top e_{l-1} / (\kappa_l + \lambda_l)`. What the model fitted without a row would call that row follows
without another fit: with

.. math:: \psi_k = \sum_l y_k g_l w_{lk} - w_{lk}^2 / (\kappa_l + \lambda_l), \qquad
          \eta_k = 1 - \sum_l w_{lk}^2 / (\kappa_l + \lambda_l)

the signed leave-one-out decision is :math:`s_k = y_k f^{(-k)}(x_k) = \psi_k / \eta_k` (their eqs 31 to 33). It is exact
for the penalty :math:`\theta^\top A^\top \Lambda A \theta` of the whole fit, :math:`\Phi = W A`.

Two rules are ours. Labels worse than chance count as negative information: without its own row the mean of balanced
classes has the wrong sign for every row, which as information is perfect. And the waiting for a rise of J begins when J
is positive for the first time: one or two wide functions often give every row the label of the larger class.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_count, as_matrix, as_positive, as_positive_vector, as_target, one_of
from bayessel._fingerprint import fingerprint
from bayessel.fit import Status, worst
from bayessel.linear.columns.dictionary import Columns, ColumnSource, as_columns
from bayessel.linear.columns.fit import ColumnChoice
from bayessel.linear.loomi.loomi_selection import SAME, LOOMISelection
from bayessel.linear.loomi.result import LOOMIFit
from bayessel.work.interrupts import InterruptGuard

#: stages that may pass before J is positive at all
WITHOUT_INFORMATION = 20
TIES = ("first", "loo-mse")
#: squared length, in penalties, that the longest column must have
TELLING = 1e4


def fit_loomi(
    F: npt.ArrayLike | ColumnSource,
    y: npt.ArrayLike,
    *,
    patience: int = 1,
    min_size: int = 1,
    max_size: int | None = None,
    weights: npt.ArrayLike | None = None,
    penalty: float = 1e-6,
    ties: str = "first",
    callback: Callable[[Mapping[str, float]], None] | None = None,
) -> LOOMIFit:
    """Choose columns one by one by the mutual information J of labels and leave-one-out labels.

    The first column is the one of the smallest leave-one-out squared error. J counts labels, so ties are common. Each
    chosen column gets its own penalty under the evidence, which a column that explains nothing would drive to infinity;
    beyond 1e6 it is set back to `penalty`.

    Parameters
    ----------
    F : array (N, P), or an object with ``shape`` and ``columns(indices)``
        Candidate columns, all of them of size one or so (`penalty` is in their units, squared).
    y : array (N,)
        Labels -1 and 1.
    patience : int
        Stop when J has not risen for so many stages; the model is the one of the largest J. J is a step function: 1
        gives the smallest models (the paper's on Ripley's data, 4 terms), but now and then stops before the boundary
        is found; 3 does so rarely and costs two or three terms.
    min_size, max_size : int
        Sizes that may be returned. The selection goes on to `min_size` whatever J does, which low-noise data with an
        intricate boundary need.
    weights : None or (N,) array
        Positive weights of the rows in the squared error and in J, as for classes of unequal number or cost.
    penalty : float
        λ of a candidate while it is being scored, and the start of its own.
    ties : str
        Which of the candidates that share the largest J joins: 'first', the one of the lowest number, as the paper's
        algorithm has it, which lets the order of the columns decide; or 'loo-mse', the one of the smallest
        leave-one-out squared error.
    callback : callable
        Called with the history entry of every stage.

    Returns
    -------
    LOOMIFit

    References
    ----------
    X. Hong et al., Applied Soft Computing 23 (2014) 9-18.

    Examples
    --------
    >>> x = np.linspace(-3.0, 3.0, 40)
    >>> F = np.exp(-((x[:, None] - x) ** 2))
    >>> fit = fit_loomi(F, np.where(abs(x) < 1.5, 1.0, -1.0))
    >>> fit.n_basis, round(fit.mutual_information, 2), round(fit.loo_error, 3)
    (3, 0.85, 0.025)
    """
    begun = time.perf_counter()
    penalty = as_positive(penalty, "penalty")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be called with the entry of every stage, got {callback!r}")
    columns, labels, V = _checked(F, y, penalty)
    n, p = len(labels), len(V)
    patience, min_size = as_count(patience, "patience"), as_count(min_size, "min_size")
    most = min(n, p) if max_size is None else min(as_count(max_size, "max_size"), n, p)
    if max_size is not None and max_size < min_size:
        raise ValueError(f"max_size must be at least min_size={min_size}, got {max_size}")
    omega = np.ones(n) if weights is None else as_positive_vector(weights, "weights", n)
    selection = LOOMISelection(V, labels, omega, penalty, one_of(ties, "ties", TIES))
    del V  # the selection's now; nobody else needs it
    best = None
    since, notes = 0, []
    with InterruptGuard(lambda: selection.history) as guard:
        while selection.size < most:
            if not selection.advance():
                if selection.size < most:
                    notes.append(Status.COLLINEAR_SKIPPED)
                break
            entry = selection.history[-1]
            if callback is not None:
                callback(entry)
            if selection.size < min_size:
                continue
            if best is None or entry["mutual_information"] > best[1] + SAME:
                best, since = (selection.size, entry["mutual_information"]), 0
            else:
                # a model that gives every row the same label is no classifier yet, however often J has stayed there
                since += best[1] > SAME or selection.size > WITHOUT_INFORMATION
                if since >= patience:
                    break
        else:
            if max_size is not None and most < min(n, p) and since == 0:
                notes.append(Status.STEP_LIMIT)
    if guard.interrupted:
        notes.append(Status.INTERRUPTED)
    size = len(selection.history) if best is None else best[0]  # a term that was just joining does not count
    if selection.skipped:
        notes.append(Status.COLLINEAR_SKIPPED)
    basis = np.array(selection.chosen[:size], dtype=np.intp)
    design = np.array(columns.raw(basis))
    A, coef, outputs = selection.model(design)
    entry = selection.history[size - 1]
    if entry["mutual_information"] <= SAME:
        notes.append(Status.NO_INFORMATION)
    return LOOMIFit(
        n_rows=n,
        n_candidates=p,
        basis=basis,
        coef=coef,
        penalties=np.array(selection.lam[:size]),
        mutual_information=entry["mutual_information"],
        loo_error=entry["loo_error"],
        loo_mse=entry["loo_mse"],
        loo_output=outputs,
        target=labels,
        weights=omega * (n / omega.sum()),
        design=design,
        A=A,
        optima=(ColumnChoice(entry["mutual_information"], tuple(selection.chosen[:size])),),
        history=tuple(selection.history),
        seconds=time.perf_counter() - begun,
        fingerprint=columns.fingerprint(labels),
        target_fingerprint=fingerprint(labels),
        status=worst(notes),
        notes=tuple(dict.fromkeys(notes)),
    )


def _checked(
    F: npt.ArrayLike | ColumnSource, y: npt.ArrayLike, penalty: float
) -> tuple[Columns, FloatArray, FloatArray]:
    """Columns as they come, labels, and a copy of the candidates in rows."""
    columns = as_columns(F if callable(getattr(F, "columns", None)) else as_matrix(F, "F"), "F")
    n, p = columns.shape
    labels = as_target(y, n, "y").copy()
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise ValueError(f"y must be labels -1 and 1, got {np.unique(labels)[:5].tolist()}")
    if abs(labels.sum()) == len(labels):
        raise ValueError(f"y must have rows of both classes, got only {labels[0]:g}")
    V = np.empty((p, n))
    step = max(1, 2_000_000 // n)
    for at in range(0, p, step):
        part = slice(at, min(at + step, p))
        V[part] = columns.raw(part).T
    longest = float(np.einsum("ij,ij->i", V, V).max())
    if longest < TELLING * penalty:
        raise ValueError(
            f"the longest column of F has the squared length {longest:.1e}, and candidates are scored with the penalty "
            f"{penalty:.1e} in these units: pass columns of size one or so (functions that reach the rows), or lower it"
        )
    return columns, labels, V
