"""What Barrio, Romero and Belanche (2010) report of DELVE's tasks with 1024 cases, and what follows from it."""

from __future__ import annotations

FAMILIES = tuple(f"{name}-8{kind}" for name in ("pumadyn", "kin", "bank") for kind in ("fh", "fm", "nh", "nm"))
STRATEGIES = ("pta(1,0)", "pta(2,1)", "sffs", "oscil(5)")
#: table 4, mean number of functions, families in the order above
SIZES = {
    "pta(1,0)": (39, 80, 59, 68, 48, 71, 120, 264, 204, 52, 86, 221),
    "pta(2,1)": (11, 59, 24, 34, 39, 46, 103, 203, 191, 35, 61, 142),
    "sffs": (2.5, 4.5, 8.5, 13, 10, 22, 76, 159, 123, 27, 42, 100),
    "oscil(5)": (39, 80, 59, 68, 48, 71, 120, 264, 204, 52, 86, 221),
    "rvm": (3.5, 6.5, 9.0, 13, 9.2, 24, 90, 185, 130, 32, 43, 115),
    "ols": (11, 14, 15, 26, 18, 35, 49, 169, 164, 23, 51, 156),
}
#: table 6, mean number of functions added and removed
STEPS = {
    "pta(1,0)": (56, 107, 79, 88, 65, 92, 155, 343, 244, 94, 126, 261),
    "pta(2,1)": (78, 238, 118, 148, 162, 183, 403, 791, 692, 225, 302, 545),
    "sffs": (132, 344, 190, 361, 330, 381, 2051, 5892, 4216, 874, 1528, 3334),
    "oscil(5)": (205, 308, 256, 250, 224, 311, 433, 738, 529, 228, 403, 552),
}
#: table 7, smallest generalisation error first (the support vector machine shares the second place)
ORDER = ("abf", "oscil(5)", "pta(1,0)", "pta(2,1)", "rvm", "sffs", "ols")
#: table 2: of 60 tasks (64 to 1024 training cases), those where the better of two neighbours was so with p < 0.05, and
#: those where the other one was
TASKS = {
    ("abf", "oscil(5)"): (8, 4),
    ("oscil(5)", "pta(1,0)"): (10, 5),
    ("pta(1,0)", "pta(2,1)"): (6, 0),
    ("pta(2,1)", "rvm"): (5, 2),
    ("rvm", "sffs"): (4, 3),
    ("sffs", "ols"): (9, 0),
}


def size(method: str, family: str) -> float | None:
    """Mean number of functions, table 4."""
    return SIZES[method][FAMILIES.index(family)] if method in SIZES and family in FAMILIES else None


def steps(method: str, family: str) -> float | None:
    """Mean number of functions added and removed, table 6."""
    return STEPS[method][FAMILIES.index(family)] if method in STEPS and family in FAMILIES else None


def stops(best: int) -> int:
    """Smallest model that ends a search whose best one has `best` functions: more than max(15, 0.3 m) larger."""
    return best + max(15, round(0.3 * best)) + 1


def bounds(mean: float, sets: int = 4) -> tuple[float, float]:
    """Least and greatest mean size at which forward selection stops, given the mean size of the best models.

    The rule is convex in the size, so the mean at the end is least where all sets agree (but for rounding) and greatest
    where one set has all the functions and the others have one each.
    """
    low = mean + max(15.0, 0.3 * mean) + 1.0 - 0.5
    one = max(round(sets * mean) - (sets - 1), 1)
    return low, ((sets - 1) * stops(1) + stops(one)) / sets


def implied(family: str) -> dict[str, float]:
    """Sizes at which forward selection ended by tables 6 and 4: as counted, and the least and greatest by the rule.

    Forward selection adds as many functions as the last model has; plus two, take away one does three steps for each.
    """
    place = FAMILIES.index(family)
    found = {}
    for method, per in (("pta(1,0)", 1.0), ("pta(2,1)", 3.0)):
        low, high = bounds(SIZES[method][place])
        found |= {f"{method}, counted": STEPS[method][place] / per}
        found |= {f"{method}, least": low, f"{method}, greatest": high}
    return found


def contradiction(family: str, tolerance: float = 0.03) -> float:
    """Factor by which table 6 leaves what the stopping rule allows given table 4, the larger one of both strategies.

    1 where the tables agree to `tolerance` (rounding, and whether the first function counts as added).
    """
    ends, worst = implied(family), 1.0
    for method in ("pta(1,0)", "pta(2,1)"):
        counted, low, high = (ends[f"{method}, {what}"] for what in ("counted", "least", "greatest"))
        off = max(low / counted, counted / high)
        worst = max(worst, off if off > 1.0 + tolerance else 1.0)
    return worst
