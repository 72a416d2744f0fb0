"""Every generated task by name."""

from __future__ import annotations

from bayessel._check import one_of
from bayessel.diagnostics.delve.families import kin, pumadyn, surfaces
from bayessel.diagnostics.delve.families.source import Source

#: all of them
NAMES = (
    *(f"kin-{kind}" for kind in kin.LEVELS),
    *(f"pumadyn-{kind}" for kind in pumadyn.LEVELS),
    *(f"hwang-{name}" for name in surfaces.HWANG),
    *(f"friedman-{number}" for number in surfaces.FRIEDMAN),
)


def family(name: str) -> Source:
    """The generated task of a name such as "kin-8nm", "pumadyn-32fh", "hwang-radial" or "friedman-1".

    Examples
    --------
    >>> from bayessel.diagnostics.delve import families
    >>> X, y = families.family("kin-8nm").sample(100, random_state=0)
    >>> X.shape, y.name
    ((100, 8), 'y')
    >>> round(families.difficulty(families.family("hwang-radial"), random_state=0).unpredictability, 2)
    0.06
    """
    head, _, kind = one_of(name, "name", NAMES).partition("-")
    if head == "kin":
        return kin.kin(kind)
    if head == "pumadyn":
        return pumadyn.pumadyn(kind)
    return surfaces.hwang(kind) if head == "hwang" else surfaces.friedman(int(kind))
