"""The relevance vector machine: precisions of all weights and of the noise, by the evidence."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray, as_count, as_flag, as_positive, as_target, check_magnitude
from bayessel._row_weights import RowWeights
from bayessel.linear.columns.dictionary import Columns, ColumnSource, as_columns
from bayessel.linear.rvm.assemble import finish, of_all_candidates, polish
from bayessel.linear.rvm.exchange import ColumnSubset, ExchangeStart, exchanged, pays
from bayessel.linear.rvm.multistart import search, search_from
from bayessel.linear.rvm.problem import RVMProblem
from bayessel.linear.rvm.result import RVMFit

#: entries of a dictionary from which the products with it may use several BLAS threads
SEVERAL_THREADS = 100_000_000
#: starts of a search that may have a sample of the candidates
SAMPLES = ("auto", "quick")
INITS = ("auto", "greedy", "full", "backward", "quick")


def fit_rvm(
    Phi: npt.ArrayLike | ColumnSource,
    t: npt.ArrayLike,
    *,
    init: str | RVMFit | tuple[npt.ArrayLike, npt.ArrayLike, float] = "auto",
    beta: float | None = None,
    max_steps: int = 1000,
    tol: float = 1e-4,
    restarts: int | None = None,
    centre: bool = False,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> RVMFit:
    r"""Fit a relevance vector machine by type-II maximum likelihood.

    Parameters
    ----------
    Phi
        Dictionary (N, P), float64 or float32, or an object with ``shape`` and ``columns(indices)`` that makes columns
        when they are looked at (`bayessel.basis.LazyDesign`).
    t
        Target (N,).
    init
        'auto' tries several starts and keeps the best evidence; 'full', 'greedy', 'backward' name one kind of them,
        'quick' is one of each of the first two, where the last nats do not matter; an `RVMFit`, or (basis, alpha,
        beta), is a warm start.
    beta
        Noise precision when it is known; learned otherwise.
    max_steps
        Largest number of moves of the final search.
    tol
        Smallest gain of the evidence, in nats, worth a move.
    restarts
        The surface has many optima a few nats apart. After the starts the best model is shaken (functions taken out,
        the noise held low) and searched again until this many tries in a row bring nothing. Default: a few for small
        problems, none for large ones; ten or more where the last nats matter more than the time.
    centre
        Add a bias with a flat prior, which is no column of `Phi`: offsets of columns and target then change nothing.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(200, 60))
    >>> fit = fit_rvm(Phi, Phi[:, [3, 50]] @ [2.0, -1.0] + 0.1 * rng.normal(size=200))
    >>> fit.status.name, {3, 50} <= set(fit.basis.tolist()), fit.n_basis < 30
    ('CONVERGED', True, True)
    """
    begun = time.perf_counter()
    columns = as_columns(Phi)
    target = as_target(t, columns.shape[0]).copy()
    check_magnitude(target, "t")
    weights = RowWeights.of(len(target), noise_std, sample_weight)
    as_count(max_steps, "max_steps")
    as_positive(tol, "tol")
    as_flag(centre, "centre")
    if restarts is not None:
        as_count(restarts, "restarts", 0)
    known = None if beta is None else as_positive(beta, "beta")
    if isinstance(init, str) and init not in INITS:
        raise ValueError(
            f"init must be one of {', '.join(map(repr, INITS))}, a RVMFit, or (basis, alpha, beta); got {init!r}"
        )
    kind, warm = (init, None) if isinstance(init, str) else ("warm", _warm(init, columns.shape[1]))
    # the search works on small arrays: only where reading the dictionary dominates are several threads worth their wait
    with columns.threads(SEVERAL_THREADS):
        # trial steps in fragile places may overflow: such a state has no finite evidence and is never kept
        with np.errstate(all="ignore"):
            drawn: ExchangeStart | None = None
            if warm is None and kind in SAMPLES and pays(columns):
                drawn = exchanged(columns, target, known, weights, centre, kind, max_steps, tol)
                warm = drawn.basis, drawn.alpha, drawn.beta
            offered = columns if drawn is None else Columns(ColumnSubset(columns.source, drawn.candidates))
            problem = RVMProblem.of(offered, target, known, weights, centre)
            if warm is None:
                name, state, history, reached = search(problem, kind, max_steps, tol, restarts)
                basis, own = polish(problem, state, history)
            else:
                name, start = kind if drawn is None else "sampled candidates", problem.state(*warm)
                state, history = search_from(problem, start, max_steps, tol)
                reached = {name: state}
                # a fragile start may be better than the search can see: polished too, and the better one counts
                ends = [polish(problem, candidate, history) for candidate in (state, start)]
                basis, own = max(ends, key=lambda end: end[1].log_evidence)
        fit = finish(problem, basis, own, history, name, reached, columns.fingerprint(target))
        if drawn is not None:
            fit = of_all_candidates(fit, drawn.candidates, columns.shape[1])
    return replace(fit, seconds=time.perf_counter() - begun)


def _warm(
    init: RVMFit | tuple[npt.ArrayLike, npt.ArrayLike, float], n_columns: int
) -> tuple[IntArray, FloatArray, float]:
    if not isinstance(init, RVMFit | tuple) or (isinstance(init, tuple) and len(init) != 3):
        raise TypeError(f"init must be a name, a RVMFit, or (basis, alpha, beta); got {type(init).__name__}")
    given, precisions, beta = (init.basis, init.alpha, init.beta) if isinstance(init, RVMFit) else init
    basis = np.asarray(given)
    if basis.size == 0:
        basis = basis.astype(np.intp)
    if basis.ndim != 1 or basis.dtype.kind not in "iu" or len(set(basis.tolist())) != len(basis):
        raise ValueError(f"init's basis must be different column numbers, got {basis!r}")
    if len(basis) and not (0 <= basis.min() and basis.max() < n_columns):
        raise ValueError(f"init's basis must lie in 0 ... {n_columns - 1}, got {basis.min()} ... {basis.max()}")
    alpha = np.asarray(precisions, dtype=np.float64)
    if alpha.shape != basis.shape or not (np.isfinite(alpha).all() and (alpha > 0).all()):
        raise ValueError("init's alpha must be one positive finite precision per column of its basis")
    return basis, alpha, as_positive(beta, "init's beta")
