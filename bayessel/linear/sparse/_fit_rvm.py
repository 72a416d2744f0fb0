"""The relevance vector machine: precisions of all weights and of the noise, by the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_count, as_positive, as_target, check_magnitude
from bayessel._numerics import few_threads
from bayessel.linear.posterior import Posterior, weigh
from bayessel.linear.sparse import starts
from bayessel.linear.sparse.columns import Columns, as_columns
from bayessel.linear.sparse.exact import evaluate
from bayessel.linear.sparse.forms import choose_form, thin
from bayessel.linear.sparse.kicks import kick
from bayessel.linear.sparse.local import Search, climb
from bayessel.linear.sparse.newton import ascend
from bayessel.linear.sparse.orthogonal import OrthogonalForm
from bayessel.linear.sparse.reestimation import Contest
from bayessel.linear.sparse.result import SparseFit
from bayessel.linear.sparse.state import Form, State
from bayessel.result import Status, worst

INITS = ("auto", "greedy", "full", "backward")
#: entries of the dictionary beyond which one contest has to do, and beyond which there is time for a second one
FEW_STARTS, ONE_START = 100_000, 4_000_000
#: entries up to which it is tried whether the data want to be interpolated
QUIET_START = 5_000
#: functions times rounds of shaking
KICKS = 80
#: share of the rows left to the noise below which its level says nothing
INTERPOLATES = 0.02
#: the noise is at least this many times the rounding of the largest target
FLOOR = 4096.0
_EPS = float(np.finfo(float).eps)


def fit_rvm(
    Phi: Any,
    t: Any,
    *,
    init: Any = "auto",
    beta: float | None = None,
    max_steps: int = 1000,
    tol: float = 1e-4,
) -> SparseFit:
    r"""Fit a relevance vector machine by type-II maximum likelihood.

    Parameters
    ----------
    Phi
        Dictionary (N, P), float64 or float32, or an object with ``shape`` and ``columns(indices)`` that makes columns
        when they are looked at (`bayessel.basis.LazyDesign`).
    t
        Target (N,).
    init
        'auto' tries several starts and keeps the best evidence; 'full', 'greedy', 'backward' name one; a `SparseFit`,
        or (basis, alpha, beta), is a warm start.
    beta
        Noise precision when it is known; learned otherwise.
    max_steps
        Largest number of moves of the final search.
    tol
        Smallest gain of the evidence, in nats, worth a move.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(60, 100))
    >>> fit = fit_rvm(Phi, Phi[:, [3, 50]] @ [2.0, -1.0] + 0.1 * rng.normal(size=60))
    >>> fit.status.name, fit.basis.tolist()
    ('CONVERGED', [3, 50])
    """
    columns = as_columns(Phi)
    target = as_target(t, columns.shape[0]).copy()
    check_magnitude(target, "t")
    as_count(max_steps, "max_steps")
    as_positive(tol, "tol")
    known = None if beta is None else as_positive(beta, "beta")
    warm = _warm(init, columns.shape[1])
    with few_threads(columns.shape[0] * columns.shape[1]):
        return _fit(columns, target, init if warm is None else "warm", warm, known, max_steps, tol)


def _warm(init: Any, n_columns: int) -> tuple[Any, FloatArray, float] | None:
    if isinstance(init, str):
        if init not in INITS:
            raise ValueError(
                f"init must be one of {', '.join(map(repr, INITS))}, a SparseFit, or (basis, alpha, beta); got {init!r}"
            )
        return None
    if isinstance(init, SparseFit):
        basis, alpha, beta = init.basis, init.alpha, init.beta
    elif isinstance(init, tuple) and len(init) == 3:
        basis, alpha, beta = init
    else:
        raise TypeError(f"init must be a name, a SparseFit, or (basis, alpha, beta); got {type(init).__name__}")
    basis = np.asarray(basis)
    if basis.size == 0:
        basis = basis.astype(np.intp)
    if basis.ndim != 1 or basis.dtype.kind not in "iu" or len(set(basis.tolist())) != len(basis):
        raise ValueError(f"init's basis must be different column numbers, got {basis!r}")
    if len(basis) and not (0 <= basis.min() and basis.max() < n_columns):
        raise ValueError(f"init's basis must lie in 0 ... {n_columns - 1}, got {basis.min()} ... {basis.max()}")
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.shape != basis.shape or not (np.isfinite(alpha).all() and (alpha > 0).all()):
        raise ValueError("init's alpha must be one positive finite precision per column of its basis")
    return basis, alpha, as_positive(beta, "init's beta")


def _fit(
    columns: Columns,
    t: FloatArray,
    init: str,
    warm: tuple[Any, FloatArray, float] | None,
    known: float | None,
    max_steps: int,
    tol: float,
) -> SparseFit:
    n, p = columns.shape
    spread = float(t.std())
    rms = float(np.sqrt((t @ t) / n)) if np.abs(t).max() > 0 else 0.0
    constant = spread <= 4.0 * _EPS * rms * np.sqrt(n)
    s = (rms or 1.0) if constant else spread
    b_max = -2.0 * float(np.log(FLOOR * _EPS * max(float(np.abs(t).max()), s) / s))
    fixed = None if known is None else float(np.log(known) + 2.0 * np.log(s))
    b_max = b_max if fixed is None else max(b_max, fixed)
    columns, form = choose_form(columns, t / s)
    notes: list[Status] = []
    if n < 3:
        notes.append(Status.TOO_FEW_ROWS)
    elif constant:
        notes.append(Status.CONSTANT_TARGET)
    found: dict[str, tuple[State, Search]] = {}
    if warm is not None:
        basis, alpha, precision = warm
        a = np.log(alpha) - 2.0 * np.log(np.maximum(columns.lengths[basis], 1e-300)) + 2.0 * np.log(s)
        b = fixed if fixed is not None else min(float(np.log(precision) + 2.0 * np.log(s)), b_max)
        useful = columns.lengths[basis] > 0
        found["warm"] = _climb(form, form.solve(basis[useful], a[useful], b), fixed, b_max, max_steps, tol)
    else:
        for name, start in _starts(form, init, n * p, columns.constant(), fixed):
            found[name] = _climb(form, start, fixed, b_max, 40, max(tol, 0.05))
    reached = {key: value[0].log_evidence for key, value in found.items()}
    name = max(reached, key=lambda key: reached[key])
    if init == "auto" and n * p <= FEW_STARTS:
        name = _kicked(found, form, tol)
    state, search = found[name]
    if warm is None:
        search.moves_left = max_steps
        state = climb(form, state, search, tol=tol)
    if search.moves_left <= 0:
        notes.append(Status.STEP_LIMIT)
    if search.collinear:
        notes.append(Status.COLLINEAR_SKIPPED)
    return _finish(columns, t, s, state, search, name, reached, notes, fixed, known, b_max)


def _starts(form: Form, init: str, entries: int, constant: int | None, b: float | None) -> Iterator[tuple[str, State]]:
    """Yield the starts of a search by name; the larger the problem, the fewer."""
    few = entries > FEW_STARTS and init == "auto"
    contests = {"full(0.01)": Contest(0.01), "full(0.001)": Contest(0.001), "mackay": Contest(0.1, 0, -10.6, 60)}
    contests["loose"] = Contest(0.1, 0, -30.0, 60)
    if constant is not None:
        contests["constant"] = Contest(0.1, keep=constant)
    if few and isinstance(form, OrthogonalForm):
        contests = {"constant": contests["constant"]} if constant is not None else {"full(0.03)": Contest(0.03)}
        if entries > ONE_START and constant is not None:
            contests["full(0.1)"] = Contest(0.1)
    elif few:
        contests = {"full(0.03)": Contest(0.03)}
    if init in ("auto", "full") and len(form.candidates):
        for name, contest in contests.items():
            yield name, starts.full(form, contest, b)
    if init == "greedy" or (init == "auto" and not few):
        for noise in (0.01, 0.001) if entries > QUIET_START else (0.01, 0.001, 1e-6):
            yield f"greedy({noise:g})", starts.greedy(form, noise if b is None else float(np.exp(-b)))
        yield "sequential", starts.empty(form, -float(np.log(0.1)) if b is None else b)
    if init == "backward":
        yield "backward", starts.greedy(form, 1e-4 if b is None else float(np.exp(-b)), least_gain=1e-2, block=5)


def _kicked(found: dict[str, tuple[State, Search]], form: Form, tol: float) -> str:
    """Shake the two best; return the name of the best that came out."""
    ranked = sorted(found, key=lambda key: -found[key][0].log_evidence)[:2]
    for name in ranked:
        state, search = found[name]
        rounds = min(6, KICKS // max(state.size, 1))
        if rounds:
            found[name] = kick(form, state, search, rounds, max(tol, 0.02)), search
    return max(ranked, key=lambda key: found[key][0].log_evidence)


def _climb(form: Form, state: State, fixed: float | None, b_max: float, moves: int, tol: float) -> tuple[State, Search]:
    search = Search(learn_noise=fixed is None, b_max=b_max, moves_left=moves)
    search.note("start", state)
    return climb(form, state, search, tol=tol), search


def _finish(
    columns: Columns,
    t: FloatArray,
    s: float,
    state: State,
    search: Search,
    name: str,
    reached: dict[str, float],
    notes: list[Status],
    fixed: float | None,
    known: float | None,
    b_max: float,
) -> SparseFit:
    """Polish the chosen columns in their own coordinates, back to the user's units, and evaluate exactly."""
    n, p = columns.shape
    order = np.argsort(state.active)
    basis, a, b = state.active[order], state.a[order], state.b
    exact = thin(columns.take(basis), t / s)
    own = exact.solve(np.arange(len(basis)), a, b)
    own = ascend(exact, own, learn_noise=fixed is None, steps=20, tol=1e-9, b_max=b_max)
    basis, a, b = basis[own.active], own.a, own.b
    search.note("polish", own)
    alpha = np.exp(a) * (columns.lengths[basis] / s) ** 2
    beta = float(np.exp(b) / s**2) if known is None else known
    gamma = own.size - float(np.trace(own.V))
    if fixed is None and len(basis) and (b >= b_max - 1e-6 or n - gamma < INTERPOLATES * n):
        notes.append(Status.NOISE_AT_FLOOR)
    if len(basis) and float((own.scale**2).max()) > 1e16:
        notes.append(Status.ILL_CONDITIONED)
    if not len(basis) and Status.CONSTANT_TARGET not in notes and n >= 3:
        notes.append(Status.PURE_NOISE)
    design = columns.raw(basis)
    spectrum, scale, active, flat = weigh(design, t, alpha / beta, centre=False, rows=True)
    posterior = Posterior.of(spectrum, 1.0, beta, n_columns=max(len(basis), 1), scale=scale, active=active, flat=flat)
    value, coef = evaluate(design, t, alpha, beta, posterior)
    shift = -n * np.log(s)
    history = tuple(
        {
            "start": name,
            "action": step["action"],
            "log_evidence": step["log_evidence"] + shift,
            "n_basis": step["n_basis"],
            "noise_std": float(np.exp(-0.5 * step["b"]) * s),
        }
        for step in search.history
    )
    return SparseFit(
        log_evidence=value,
        basis=basis,
        alpha=alpha,
        coef=coef,
        beta=beta,
        n_rows=n,
        n_candidates=p,
        status=worst(notes),
        notes=tuple(notes),
        history=history,
        starts={key: value + shift for key, value in reached.items()},
        design=design,
        target=t,
        posterior=posterior,
    )
