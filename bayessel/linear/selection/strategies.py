r"""Orders in which functions are added and removed (Barrio, Romero and Belanche 2010, section 4).

A strategy is anything that can be called with a `SelectionSearch`: it calls ``search.add()`` and ``search.remove()``
until ``search.going`` is over. Where it returns a snapshot, that is the model `search` returns (of `Oscil` only with
``within=0``); nothing means the smallest within a nat of the best that was seen. One of your own::

    def two_steps_back(search):
        while search.going and search.add():
            if search.n_added % 10 == 0:  # not the size: it would never get past ten
                search.remove()
                search.remove()

    bs.linear.search(F, t, strategy=two_steps_back)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bayessel._check import as_count

if TYPE_CHECKING:
    from bayessel.linear.selection.selection_search import SearchSnapshot, SelectionSearch


class Strategy(Protocol):
    """What `search` calls."""

    def __call__(self, search: SelectionSearch, /) -> SearchSnapshot | None:
        """Drive the search; return a snapshot of the model to be returned, or None for the best one."""


@dataclass(frozen=True)
class PTA:
    """Plus l, take away r: add the best function `l` times, remove the least useful one `r` times, and again.

    (1, 0) is forward selection.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.linear import search
    >>> rng = np.random.default_rng(0)
    >>> F = rng.normal(size=(40, 8))
    >>> search(F, F[:, 2] - F[:, 5] + 0.1 * rng.normal(size=40), PTA(2, 1)).basis.tolist()
    [2, 5]
    """

    l: int = 1  # noqa: E741 - the paper's letter
    r: int = 0

    def __post_init__(self) -> None:
        as_count(self.l, "l")
        as_count(self.r, "r", 0)
        if self.l <= self.r:
            raise ValueError(f"pta(l, r) needs l > r, or the model never grows; got pta({self.l},{self.r})")

    def __call__(self, search: SelectionSearch) -> None:
        """Drive the search."""
        while search.going:
            for _ in range(self.l):
                if not search.add():
                    return
            for _ in range(self.r):
                search.remove()

    def __str__(self) -> str:
        return f"pta({self.l},{self.r})"


@dataclass(frozen=True)
class SFFS:
    """Sequential forward floating selection: add one, then remove while that beats the best model of that size.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.linear import search
    >>> rng = np.random.default_rng(0)
    >>> F = rng.normal(size=(40, 8))
    >>> search(F, F[:, 2] - F[:, 5] + 0.1 * rng.normal(size=40), SFFS()).basis.tolist()
    [2, 5]
    """

    def __call__(self, search: SelectionSearch) -> None:
        """Drive the search."""
        while search.going and search.add():
            while search.remove(if_best=True):
                pass

    def __str__(self) -> str:
        return "sffs"


@dataclass(frozen=True)
class Oscil:
    """Oscillate around the size that forward selection found: add s, remove 2 s, add s.

    After an improvement s = 1, else s grows by one; the swing with s = c is the last one tried. Every swing starts from
    the best model of that size, and that is what it stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.linear import search
    >>> rng = np.random.default_rng(0)
    >>> F = rng.normal(size=(40, 8))
    >>> search(F, F[:, 2] - F[:, 5] + 0.1 * rng.normal(size=40), Oscil(2)).basis.tolist()
    [2, 5]
    """

    c: int = 5

    def __post_init__(self) -> None:
        as_count(self.c, "c")

    def __call__(self, search: SelectionSearch) -> SearchSnapshot:
        """Drive the search."""
        PTA(1, 0)(search)
        search.go_to_best()
        size, best, value = search.size, search.snapshot(), search.value
        s = 1
        while s <= min(self.c, size - 1):
            improved = False
            swing: list[Callable[[], bool]] = [lambda: search.add(beyond=True)] * s
            swing += [search.remove] * (2 * s) + [search.add] * s
            for change in swing:
                if not change():
                    break
                if search.size == size and search.better(value):  # on the way down, or at the end of the swing
                    best, value, improved = search.snapshot(), search.value, True
            search.restore(best)
            s = 1 if improved else s + 1
        return best

    def __str__(self) -> str:
        return f"oscil({self.c})"


def parse(strategy: str | Strategy) -> Strategy:
    """Read 'pta(2,1)', 'sffs', 'oscil(5)'; anything callable is taken as it is."""
    if callable(strategy) and not isinstance(strategy, type):
        return strategy
    if isinstance(strategy, str):
        text = strategy.replace(" ", "").lower()
        if text == "sffs":
            return SFFS()
        if found := re.fullmatch(r"pta\((\d+),(\d+)\)", text):
            return PTA(int(found[1]), int(found[2]))
        if found := re.fullmatch(r"oscil(?:\((\d+)\))?", text):
            return Oscil(int(found[1] or 5))
        raise ValueError(
            f"strategy must be 'pta(l,r)' with l > r, 'sffs', 'oscil(c)', or a callable that drives a search; "
            f"got {strategy!r}"
        )
    if isinstance(strategy, type):
        raise TypeError(
            f"strategy must be an object that drives a search, got its class: pass {strategy.__name__}(...)"
        )
    raise TypeError(f"strategy must be a name or a callable that drives a search, got {type(strategy).__name__}")
