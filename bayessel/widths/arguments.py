"""The door of the comparison: every bad argument is refused here, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_count, as_matrix, as_positive, as_target, check_magnitude, one_of
from bayessel.basis import KINDS
from bayessel.criteria import CRITERIA
from bayessel.criteria.holdout import HOLDOUT
from bayessel.widths import _evidence, _gp, _rvm, _selection
from bayessel.widths._classes import CLASS_MODELS
from bayessel.widths._problem import WidthModel
from bayessel.widths.grids import spread_rows

REGRESSIONS: dict[str, WidthModel] = {
    "evidence": _evidence.MODEL,
    "rvm": _rvm.MODEL,
    "gp": _gp.MODEL,
    "search": _selection.MODEL,
}
MODELS = REGRESSIONS | CLASS_MODELS
TASKS = ("regression", "classification")


#: the word for widths that are sampled beside the comparison
POSTERIOR = "posterior"


def check_model(model: str) -> WidthModel:
    """Return the model of that name."""
    return MODELS[model if model in CLASS_MODELS else one_of(model, "model", tuple(REGRESSIONS))]


def check_task(task: str, model: str) -> str:
    """Return the name of the model of a task: for labels each has one of its own."""
    if one_of(task, "task", TASKS) == "regression" or model in CLASS_MODELS:
        return model
    check_model(model)
    if f"class-{model}" not in CLASS_MODELS:
        can = " or ".join(repr(name.removeprefix("class-")) for name in CLASS_MODELS)
        raise ValueError(f"task='classification' compares widths of model={can}, got {model!r}; see also GPClassifier")
    return f"class-{model}"


def check_posterior(widths: object, model: str, kinds: tuple[str, ...], width_prior: object, per_input: bool) -> bool:
    """Whether the posterior of the width is asked for; refused where there is none, or not one."""
    if not isinstance(widths, str) or widths != POSTERIOR:
        for name, given in (("width_prior", width_prior is not None), ("per_input", per_input)):
            if given:
                raise ValueError(f"{name} is of the posterior of the width: it goes with widths={POSTERIOR!r}")
        return False
    if check_model(model).declare is None:
        can = " or ".join(f"model={name!r}" for name, one in MODELS.items() if one.declare is not None)
        raise ValueError(
            f"widths={POSTERIOR!r} samples the width of {can}, got model={model!r}: take one of these, or leave widths "
            "out to compare them alone"
        )
    if len(kinds) > 1:
        raise ValueError(
            f"widths={POSTERIOR!r} samples the width of one kind of function, got {', '.join(map(repr, kinds))}: ask "
            "for each alone"
        )
    return True


def check_criteria(model: str, criteria: Sequence[str] | None, held: bool) -> tuple[str, ...]:
    """Return the criteria to compute, in their usual order; the held-out error comes with the held-out rows."""
    width_model = check_model(model)
    known = (*width_model.criteria, HOLDOUT.name)
    if criteria is None:
        wanted: tuple[str, ...] = width_model.default
    elif not isinstance(criteria, Iterable):
        raise TypeError(f"criteria must be a name or a list of names from {', '.join(known)}, got {criteria!r}")
    else:
        wanted = (criteria,) if isinstance(criteria, str) else tuple(criteria)
        if not wanted:
            raise ValueError(f"criteria is empty: choose from {', '.join(known)}, or leave it out for the usual ones")
    for name in wanted:
        if one_of(name, "criterion", tuple(CRITERIA)) not in known:
            reason = width_model.refused.get(name)
            why = f": {reason}" if reason else ""
            others = [other for other in MODELS if name in MODELS[other].criteria]
            raise ValueError(
                f"criterion {name!r} is not for model={model!r}{why}; take one of {', '.join(known)}"
                + (f", or model={others[0]!r}" if others else "")
            )
    if HOLDOUT.name in wanted and not held:
        raise ValueError(f"criterion {HOLDOUT.name!r} needs rows to hold out: holdout=0.2, or holdout=(X_new, y_new)")
    return tuple(name for name in CRITERIA if name in wanted or (held and name == HOLDOUT.name))


def check_kinds(kind: str | Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of function to compare, each once, in the order given."""
    if not isinstance(kind, str) and isinstance(kind, Iterable):
        kinds = tuple(dict.fromkeys(one_of(each, "kind", KINDS) for each in kind))
        if not kinds:
            raise ValueError(f"kind is empty: choose from {', '.join(KINDS)}")
        return kinds
    return (one_of(kind, "kind", KINDS),)


def check_process(kinds: tuple[str, ...], centers: ArrayLike | None) -> None:
    """Refuse what a Gaussian process does not have: other kinds of function, and centres."""
    if kinds != ("gaussian",):
        raise ValueError(f"model='gp' compares widths of kind='gaussian' only, got {', '.join(map(repr, kinds))}")
    if centers is not None:
        raise ValueError("model='gp' has no centres, for its functions lie around every point: leave centers out")


def check_data(
    X: ArrayLike, y: ArrayLike, names: Sequence[str] | None, target: str | None
) -> tuple[FloatArray, FloatArray, tuple[str, ...], str]:
    """Return inputs, target and what to call them."""
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


def check_holdout(
    holdout: float | tuple[ArrayLike, ArrayLike] | None, X: FloatArray, t: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray] | None]:
    """Return the rows to fit, and those to hold out: given ones, or a random share."""
    if holdout is None:
        return X, t, None
    if isinstance(holdout, tuple | list) and len(holdout) == 2:
        given = as_matrix(holdout[0], "holdout's X", allow_1d=True)
        if given.shape[1] != X.shape[1]:
            raise ValueError(f"holdout's X must have the {X.shape[1]} columns of X, got shape {given.shape}")
        held = as_target(holdout[1], len(given), "holdout's y")
        check_magnitude(held, "holdout's y")
        return X, t, (given, held)
    needed = f"holdout must be a share of the rows between 0 and 1, or a pair (X_new, y_new); got {holdout!r}"
    if isinstance(holdout, tuple | list | np.ndarray | str):
        raise TypeError(needed)
    share = as_positive(holdout, "the share of rows in holdout")
    if share >= 1.0:
        raise ValueError(needed)
    count = max(1, round(share * len(t)))
    if count >= len(t):
        raise ValueError(f"holdout={holdout} leaves no row of {len(t)} to fit")
    order = rng.permutation(len(t))
    out, kept = np.sort(order[:count]), np.sort(order[count:])
    return X[kept], t[kept], (X[out], t[out])


def check_centers(centers: ArrayLike | None, X: FloatArray) -> FloatArray:
    """Return the centres (M, D): every row, a spread of M rows, or those given."""
    if centers is None:
        return X
    if np.ndim(centers) == 0 and not isinstance(centers, str):
        return spread_rows(X, as_count(centers, "centers"))
    centres = as_matrix(centers, "centers", allow_1d=True)
    if centres.shape[1] != X.shape[1]:
        raise ValueError(f"centers must have the {X.shape[1]} columns of X, got shape {centres.shape}")
    return centres


def check_search(search: bool | str | Sequence[str] | None, criteria: tuple[str, ...]) -> tuple[str, ...]:
    """Return the criteria whose optima are to be refined; none where only the grid is wanted."""
    if search is None or search is False:
        return ()
    if search is True:
        return criteria
    if not isinstance(search, str) and not isinstance(search, Iterable):
        raise TypeError(f"search must be True or names of criteria to refine, got {search!r}")
    names = (search,) if isinstance(search, str) else tuple(search)
    return tuple(dict.fromkeys(one_of(name, "search", criteria) for name in names))
