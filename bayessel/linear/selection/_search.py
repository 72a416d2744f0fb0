"""The search for basis functions that the evidence guides."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bayessel._check import FOURTH_POWERS, as_count, as_flag, as_target, check_magnitude
from bayessel._row_weights import RowWeights
from bayessel.criteria.evidence import EVIDENCE
from bayessel.fit import Status, worst
from bayessel.linear.columns.dictionary import ColumnSource, as_columns
from bayessel.linear.columns.fit import ColumnChoice
from bayessel.linear.selection.objective import SelectionObjective
from bayessel.linear.selection.result import SearchFit, evidence_fields
from bayessel.linear.selection.selection_search import SearchSnapshot, SelectionSearch
from bayessel.linear.selection.strategies import Oscil, Strategy, parse
from bayessel.linear.selection.working_model import WorkingModel
from bayessel.work.interrupts import InterruptGuard


def search(
    F: npt.ArrayLike | ColumnSource,
    t: npt.ArrayLike,
    strategy: str | Strategy = "pta(1,0)",
    *,
    score: str = EVIDENCE.name,
    centre: bool = False,
    top: int = 0,
    max_size: int | None = None,
    max_steps: int = 100_000,
    tol: float = 0.1,
    within: float = 1.0,
    callback: Callable[[SelectionSearch], None] | None = None,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> SearchFit:
    r"""Select basis functions by a search that the model evidence guides (Barrio, Romero and Belanche 2010).

    One precision for all weights and one for the noise; functions are added and removed one at a time, the precisions
    re-estimated after each change. The search ends when the model is max(15, 0.3 m) functions larger than the best one
    seen, of m functions. Every added function costs one pass over the dictionary at most, removed ones none.

    What is returned is the smallest model seen whose evidence is within a nat of the best: among functions that overlap
    the evidence is flat, and the highest value may lie at any of dozens of sizes.

    Parameters
    ----------
    F
        Dictionary (N, P), float64 or float32, or an object with ``shape`` and ``columns(indices)`` that makes columns
        when they are looked at (`bayessel.basis.LazyDesign`; it is stored in single precision for the search where that
        takes no more than 2 GB, and the result is worked out from the columns themselves).
    t
        Target (N,).
    strategy
        'pta(l,r)': plus l, take away r; 'pta(1,0)', forward selection, is the fastest. 'sffs': floating, the smallest
        models with the highest evidence. 'oscil(c)': swings around the size of the forward selection. Or a callable,
        see `bayessel.linear.selection.strategies`.
    score
        'evidence' (third level, precisions integrated out). 'loo', 'elpd-loo', 'mdl-w', 'mdl-alpha': that criterion
        instead, at the precisions of the evidence, for the 8 candidates the evidence likes best.
    centre
        Give a bias (which is not a column of `F`) a flat prior.
    top
        Re-estimate the precisions for that many of the best candidates before one is chosen; 0 trusts the scores, which
        leave the precisions as they are.
    max_size
        Largest model; default N - 1. The status is STEP_LIMIT where the best model has this size.
    max_steps
        Most functions added and removed altogether.
    tol
        The precisions are left alone while re-estimation would move them by less than `tol` standard deviations.
    within
        Nats by which the model returned may be worse than the best one seen, so that it is smaller. With 0 it is the
        one the strategy ends with, as in the paper: the best, for 'oscil(c)' the best of the size it went around. (For
        `score` 'loo', N/2 times the logarithm of the mean squared error.) The snapshot that a strategy of your own
        returns is the model returned, whatever `within` is.
    callback
        Called with the `SelectionSearch` after every change; an exception ends the search, KeyboardInterrupt keeps what
        is there.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`; with the score 'evidence'.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> F = rng.normal(size=(200, 60))
    >>> fit = search(F, F[:, [3, 50]] @ [2.0, -1.0] + 0.1 * rng.normal(size=200), "sffs")
    >>> fit.basis.tolist(), fit.status.name
    ([3, 50], 'FEW_WELL_DETERMINED')
    """
    start = time.perf_counter()
    columns = as_columns(F, "F")
    target = as_target(t, columns.shape[0]).copy()
    data = columns.fingerprint(target)
    check_magnitude(target, "t", FOURTH_POWERS)
    centre = as_flag(centre, "centre")
    as_count(top, "top", 0)
    if max_size is not None:
        as_count(max_size, "max_size")
    as_count(max_steps, "max_steps")
    for name, value in (("tol", tol), ("within", within)):
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
            raise TypeError(f"{name} must be a number of at least 0, got {value!r}")
        if not (np.isfinite(value) and value >= 0.0):
            raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be called with the search after every change, got {callback!r}")
    objective, drive = SelectionObjective.named(score), parse(strategy)
    weights = RowWeights.of(len(target), noise_std, sample_weight)
    if weights is not None and score != EVIDENCE.name:
        raise ValueError(f"score={score!r} takes no weights or noise levels of rows; score='evidence' does")
    columns = columns.store()
    columns.check_scale("F")
    notes: list[Status] = []
    with columns.threads():
        model = WorkingModel(columns, target, centre, weights)
        work = SelectionSearch(
            model, objective, top=top, max_size=max_size, max_steps=max_steps, tol=float(tol), callback=callback
        )
        chosen: tuple[int, ...] | None = None
        value = np.nan
        if model.worth_searching:
            with InterruptGuard() as guard:
                place = drive(work)
                if not work.history and not work.exhausted:  # an empty model would be taken for a finding
                    raise ValueError("strategy ended before it had added a function; let it call search.add()")
                if isinstance(place, SearchSnapshot) and (within == 0.0 or not isinstance(drive, Oscil)):
                    chosen, value = place.model.active, place.value
            if guard.interrupted:
                notes.append(Status.INTERRUPTED)
        if chosen is None:
            size = work.smallest(float(within)) if within > 0.0 else work.best_size
            chosen, value = (work.path[size].basis, work.path[size].value) if size else ((), np.nan)
        order = np.array(chosen, dtype=np.intp)
        held = max_size is not None and work.best_size == max_size < min(columns.shape[1], model.most)
        if work.steps_left < 1 or held:
            notes.append(Status.STEP_LIMIT)
        if model.skipped:
            notes.append(Status.COLLINEAR_SKIPPED)
        del model
        work.model.let_go()
        basis = np.sort(order)
        columns.release()
        design = columns.raw(basis) if len(basis) else np.zeros((len(target), 0))
        numbers = evidence_fields(design, target, centre, weights)
    notes.extend(numbers["evidence_fit"].notes)
    return SearchFit(
        **numbers,
        basis=basis,
        order=order,
        n_candidates=columns.shape[1],
        status=worst(notes),
        notes=tuple(notes),
        history=tuple(work.history),
        optima=(ColumnChoice(value, tuple(order.tolist())),),
        path=dict(sorted(work.path.items())),
        n_added=work.n_added,
        n_removed=work.n_removed,
        seconds=time.perf_counter() - start,
        score=score,
        target=target,
        fingerprint=data,
        strategy=str(drive) if isinstance(strategy, str) else getattr(strategy, "__name__", str(strategy)),
    )
