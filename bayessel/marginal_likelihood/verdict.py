"""What several routes to one evidence come to together, and whether it can be relied on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayessel._text import listing, number
from bayessel.marginal_likelihood.annealing_route import DOWN
from bayessel.marginal_likelihood.annealing_route import NAME as ANNEALING
from bayessel.marginal_likelihood.route import Route

#: routes that differ by more than so many of their errors, and by more nats than `APART`, contradict each other
ERRORS, APART = 4.0, 0.05
#: error beyond which a number is told, but not relied on, in nats
LARGEST_ERROR = 0.3
#: a bound: it takes part in the judgement and not in the number
_BOUNDS = (DOWN,)


class RouteVerdict(NamedTuple):
    """The number and what it is worth.

    Attributes
    ----------
    value, error : float
    reliable : bool
    sentence : str
        Why, and what to do.
    used : tuple of str
        Routes that the number is the mean of.
    """

    value: float
    error: float
    reliable: bool
    sentence: str
    used: tuple[str, ...]


def judge_routes(routes: Sequence[Route]) -> RouteVerdict:
    """Weigh the routes that call themselves reliable by their errors, and look for contradictions."""
    exact = [one for one in routes if one.is_exact and one.reliable]
    trusted = [one for one in routes if one.reliable and one.name not in _BOUNDS]
    bounds = [one for one in routes if one.reliable and one.name in _BOUNDS]
    if exact:
        best = min(exact, key=lambda one: one.error)
        return RouteVerdict(best.value, best.error, True, f"{best.name}: nothing is random", (best.name,))
    if not trusted:
        return _without_any(routes)
    used, value, error = _mean(trusted)
    names = tuple(one.name for one in used)
    for one in (*trusted, *bounds):
        for other in (*trusted, *bounds):
            apart = abs(one.value - other.value)
            if apart > max(APART, ERRORS * float(np.hypot(one.error, other.error))):
                return RouteVerdict(
                    value,
                    max(error, 0.5 * apart),
                    False,
                    f"{one.name} ({number(one.value)}) and {other.name} ({number(other.value)}) contradict each other: "
                    "chains or particles have missed a part of the posterior; look at the trace for several modes, and "
                    "run again with more draws and effort=4",
                    names,
                )
    for one in routes:
        # what has found more than all others has seen something that they have not
        if (
            not one.reliable
            and np.isfinite(one.value)
            and one.value - 4.0 * one.error > value + max(APART, 4.0 * error)
        ):
            return RouteVerdict(
                value,
                max(error, one.value - value),
                False,
                f"{one.name} has found {number(one.value)}, more than the others: they may miss a mode; run again with "
                "more draws and effort=4",
                names,
            )
    kinds = {one.name.partition(",")[0] for one in (*trusted, *bounds)}
    if kinds == {ANNEALING} and bounds:
        # the way down begins at draws that the way up knows nothing of, and errs to the other side
        apart = abs(bounds[0].value - value)
        error = max(error, 0.5 * apart)
        if error <= LARGEST_ERROR:
            return RouteVerdict(value, error, True, f"{ANNEALING} up and down agree", names)
    if error > LARGEST_ERROR:
        return RouteVerdict(value, error, False, "the error is large; run again with more draws and effort=4", names)
    if len(kinds) < 2:
        missing = next((f"{one.name}: {one.reason}" for one in routes if not one.reliable), "")
        return RouteVerdict(
            value,
            error,
            False,
            f"{listing(sorted(kinds))} alone says so, and nothing confirms it ({missing}); run again with effort=4",
            names,
        )
    return RouteVerdict(value, error, True, f"{listing(sorted(kinds))} agree", names)


def _mean(trusted: Sequence[Route]) -> tuple[list[Route], float, float]:
    """Mean weighted by precision, with an error that grows where the routes differ by more than theirs."""
    least = min(one.error for one in trusted)
    used = [one for one in trusted if one.error <= 5.0 * least]
    # both bridges rest on the same draws: the better one stands for both
    kinds: dict[str, Route] = {}
    for one in sorted(used, key=lambda one: one.error):
        kinds.setdefault(one.name.partition(",")[0], one)
    used = list(kinds.values())
    weights = np.array([one.error**-2.0 for one in used])
    values = np.array([one.value for one in used])
    value = float(weights @ values / weights.sum())
    error = float(weights.sum() ** -0.5)
    if len(used) > 1:
        excess = float(weights @ (values - value) ** 2) / (len(used) - 1)
        error *= max(1.0, excess**0.5)
    return used, value, error


def _without_any(routes: Sequence[Route]) -> RouteVerdict:
    tried = [one for one in routes if np.isfinite(one.value)]
    if not tried:
        said = "; ".join(f"{one.name}: {one.reason}" for one in routes)
        return RouteVerdict(float("nan"), float("inf"), False, f"no route has come to a number ({said})", ())
    best = min([one for one in tried if one.name not in _BOUNDS] or tried, key=lambda one: one.error)
    values = [one.value for one in tried]
    error = max(best.error, 0.5 * (max(values) - min(values)))
    return RouteVerdict(
        best.value,
        error,
        False,
        "no route believes itself: the number is a guess; look at the routes for the reasons, sample longer, or write "
        "the model so that it samples better",
        (best.name,),
    )
