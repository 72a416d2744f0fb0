"""What fits have in common that show another one: in other units, at inputs, or beside a reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, override

from bayessel.fit import Fit, Status


class WrappedFit(Fit):
    """Base of fits that show another one, `inner`: what they do not say themselves is what it says."""

    if TYPE_CHECKING:
        inner: Fit

    @property
    def status(self) -> Status:
        """How the fit inside ended."""
        return self.inner.status

    @property
    def notes(self) -> tuple[Status, ...]:
        """Remarks of the fit inside."""
        return self.inner.notes

    @property
    @override
    def predicts_labels(self) -> bool:
        """Whether the fit inside predicts labels."""
        return self.inner.predicts_labels

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return int(self.inner.n_rows)

    @property
    def optima(self) -> tuple[Any, ...]:
        """Those of the fit inside, in its units."""
        return tuple(self.inner.optima)

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]:
        """That of the fit inside, in its units."""
        return tuple(self.inner.history)

    @property
    def seconds(self) -> float:
        """Time by the clock."""
        return float(self.inner.seconds)

    @property
    @override
    def details(self) -> tuple[str, ...]:
        """Those of the fit inside."""
        return tuple(self.inner.details)
