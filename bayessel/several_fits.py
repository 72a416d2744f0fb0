"""Independent fits of several targets of the same rows, shown as one: the base of such results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel.fit import Evidence, Fit, Status, worst


class SeveralFits(Fit):
    """Base of results that hold the `Fit` of each target as `parts`: sums over them, and remarks of every one."""

    if TYPE_CHECKING:  # a field or a property

        @property
        def parts(self) -> Sequence[Any]: ...  # noqa: D102

    @property
    def n_outputs(self) -> int:
        """Number of targets, K."""
        return len(self.parts)

    @property
    def notes(self) -> tuple[Status, ...]:
        """Those of every part, each once."""
        return tuple(dict.fromkeys(note for part in self.parts for note in part.notes))

    @property
    def status(self) -> Status:
        """The most serious of all parts."""
        return worst(part.status for part in self.parts)

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return int(self.parts[0].n_rows)

    @property
    def evidence(self) -> Evidence | None:
        """The sum over targets; None where one has none."""
        found = [part.evidence for part in self.parts]
        return None if None in found else sum_of(found)

    @property
    def optima(self) -> tuple[Any, ...]:
        """One entry: the best optimum of each part."""
        return (tuple(part.optima[0] for part in self.parts),)

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]:
        """That of every part, in order, with the number of the output."""
        return tuple({"output": k, **step} for k, part in enumerate(self.parts) for step in part.history)

    @property
    def seconds(self) -> float:
        """Time by the clock, all parts together."""
        return float(sum(part.seconds for part in self.parts))

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters of all parts together; NaN where one does not count them."""
        return float(sum(getattr(part, "effective_parameters", np.nan) for part in self.parts))


def sum_of(found: Sequence[Evidence]) -> Evidence:
    """Evidence of independent targets together; their Monte Carlo errors add in squares."""
    errors = [one.error for one in found if one.error is not None]
    error = float(np.sqrt(np.sum(np.square(errors)))) if errors else None
    return replace(found[0], value=float(sum(one.value for one in found)), error=error)
