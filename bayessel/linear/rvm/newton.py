r"""Joint ascent in all log precisions: Newton steps with the exact Hessian, kept uphill by damping.

With :math:`V` and :math:`v` scaled as in `state`, :math:`d = \mathrm{diag} V` and :math:`E` the sum of squares,

.. math::
    2\,\partial L/\partial a_i &= 1 - d_i - v_i^2, \qquad 2\,\partial L/\partial b = N - \beta E - \sum(1-d_i) \\
    -2\,\partial^2L/\partial a_i\partial a_j &= \delta_{ij}(d_i + v_i^2) - V_{ij}^2 - 2v_iv_jV_{ij} \\
    -2\,\partial^2L/\partial a_i\partial b &= 2v_i(Vv)_i - d_i + (V^2)_{ii} \\
    -2\,\partial^2L/\partial b^2 &= \beta E - 2v^TVv + \sum_i(d_i - (V^2)_{ii})

A column whose best precision is infinite leaves on the way.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from bayessel._check import FloatArray
from bayessel.linear.rvm.moves import delete_gains
from bayessel.linear.rvm.state import DictionaryForm, RVMState

#: largest change of a log precision in one step
LONGEST = 2.0
#: smallest log noise precision, in units of the target's spread: noise a million times the target
B_MIN = -28.0
#: columns of a model up to which the compiled loop is faster than calls of LAPACK
FEW = 100


def slopes(state: RVMState, n_rows: float, learn_noise: bool) -> FloatArray:
    """Gradient of the log evidence in (a, b)."""
    d = np.diagonal(state.V)
    g = np.empty(state.size + learn_noise)
    g[: state.size] = 0.5 * (1.0 - d - state.v**2)
    if learn_noise:
        g[-1] = 0.5 * (n_rows - np.exp(state.b) * state.sum_squares - float((1.0 - d).sum()))
    return g


def curvature(state: RVMState, n_rows: float, learn_noise: bool) -> FloatArray:
    """Minus the Hessian of the log evidence in (a, b)."""
    V, v, k = state.V, state.v, state.size
    d = np.diagonal(V)
    H = np.empty((k + learn_noise, k + learn_noise))
    block = H[:k, :k]
    np.multiply(V, V, out=block)
    squares = block.sum(axis=1)
    block += 2.0 * np.outer(v, v) * V
    block *= -0.5
    block[np.arange(k), np.arange(k)] += 0.5 * (d + v**2)
    if learn_noise:
        Vv = V @ v
        H[:k, k] = H[k, :k] = 0.5 * (2.0 * v * Vv - d + squares)
        H[k, k] = 0.5 * (np.exp(state.b) * state.sum_squares - 2.0 * float(v @ Vv) + float((d - squares).sum()))
    return H


def ascend(
    form: DictionaryForm,
    state: RVMState,
    *,
    learn_noise: bool = True,
    steps: int = 30,
    tol: float = 1e-6,
    b_max: float = 60.0,
) -> RVMState:
    """Climb from `state` until a step gains less than `tol`; never ends lower than it began."""
    few = form.few(state.active) if 0 < state.size <= FEW else None
    if few is None:
        return ascend_step_by_step(form, state, learn_noise=learn_noise, steps=steps, tol=tol, b_max=b_max)
    from bayessel.linear.rvm.compiled_ascent import ascend_compiled

    kept, a, b = ascend_compiled(
        *few[:-1], form.n_rows, state.a, state.b, learn_noise, steps, tol, B_MIN, b_max, LONGEST, few[-1]
    )
    # measured as the forms do; below the start by rounding alone
    new = form.solve(state.active[kept], a, b)
    return new if new.log_evidence >= state.log_evidence else state


def ascend_step_by_step(
    form: DictionaryForm, state: RVMState, *, learn_noise: bool, steps: int, tol: float, b_max: float
) -> RVMState:
    """The same with arrays, for models of many columns."""
    for _ in range(steps):
        k = state.size
        if k + learn_noise == 0:
            break
        state, removed = prune(form, state)
        if removed:
            continue
        step = _step(state, form.n_rows, learn_noise)
        share = 1.0
        while True:
            a = np.clip(state.a + share * step[:k], -80.0, 90.0)
            b = float(np.clip(state.b + share * step[k], B_MIN, b_max)) if learn_noise else state.b
            new = form.solve(state.active, a, b)
            if new.log_evidence >= state.log_evidence:
                break
            share *= 0.35
            if share < 1e-3:
                return state
        gain = new.log_evidence - state.log_evidence
        state = new
        if gain < tol and share > 0.5:
            break
    return prune(form, state)[0]


def _step(state: RVMState, n_rows: float, learn_noise: bool) -> FloatArray:
    g = slopes(state, n_rows, learn_noise)
    H = curvature(state, n_rows, learn_noise)
    d = np.diagonal(state.V)
    size = np.empty(len(g))
    size[: state.size] = 0.5 * (d + state.v**2)
    if learn_noise:
        size[-1] = 0.5 * n_rows
    size += 1e-9
    damping = 0.0
    while True:
        damped = H.copy()
        damped.flat[:: len(g) + 1] += damping * size + 1e-9
        R, info = dpotrf(damped)
        if info == 0:
            step = np.asarray(dpotrs(R, g)[0])
            longest = float(np.abs(step).max())
            if longest < 2.0 * LONGEST or damping > 1e3:
                return step * min(1.0, LONGEST / longest) if longest > 0.0 else step
        damping = max(3.0 * damping, 0.03)
        if damping > 1e8:
            return g / size


def prune(form: DictionaryForm, state: RVMState) -> tuple[RVMState, bool]:
    """Let go of columns whose best precision is infinite: all at once if that does not cost, else the best one."""
    d = np.diagonal(state.V)
    # at a precision so high that nothing is determined, 1 - d is rounding: such a column is a candidate too
    dead = (state.v**2 <= d * (1.0 - d)) | (d > 1.0 - 1e-10)
    if not dead.any():
        return state, False
    stay = ~dead
    new = form.solve(state.active[stay], state.a[stay], state.b)
    if new.log_evidence >= state.log_evidence:
        return new, True
    gain = np.where(dead, delete_gains(state), -np.inf)
    stay = np.arange(state.size) != np.argmax(gain)
    new = form.solve(state.active[stay], state.a[stay], state.b)
    return (new, True) if new.log_evidence >= state.log_evidence else (state, False)
